//! The depths of the queues.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use aws_sdk_sqs::types::QueueAttributeName::{
    self, ApproximateNumberOfMessages as Visible, ApproximateNumberOfMessagesDelayed as Delayed,
    ApproximateNumberOfMessagesNotVisible as InFlight,
};
use futures::future::join_all;
use messages::{Depth, InspectQueues, Queue, StoreError};

use crate::failed;
use crate::queues::Sqs;

#[async_trait]
impl InspectQueues for Sqs {
    /// Reports the queues whose addresses are set. The age of the oldest message is available only as a metric of
    /// CloudWatch
    /// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html>).
    async fn depths(&self) -> BTreeMap<Queue, Result<Depth, StoreError>> {
        let known = self.queues.iter().map(|spec| &spec.queue).filter(|queue| self.urls.url(queue).is_some());
        let depths = join_all(known.map(async |queue| (queue.clone(), self.depth(queue).await))).await;
        depths.into_iter().collect()
    }
}

impl Sqs {
    async fn depth(&self, queue: &Queue) -> Result<Depth, StoreError> {
        let doing = format!("counting the messages of queue {queue}");
        let request = self
            .client
            .get_queue_attributes()
            .queue_url(self.url(queue, &doing)?)
            .attribute_names(Visible)
            .attribute_names(InFlight)
            .attribute_names(Delayed);
        let answer = request.send().await.map_err(|error| failed(&*doing, &self.resource(queue), &error))?;
        let attributes = answer.attributes.unwrap_or_default();
        Ok(Depth {
            visible: count(&attributes, &Visible),
            in_flight: count(&attributes, &InFlight),
            delayed: count(&attributes, &Delayed),
            oldest: None,
        })
    }
}

fn count(attributes: &HashMap<QueueAttributeName, String>, name: &QueueAttributeName) -> u64 {
    attributes.get(name).and_then(|count| count.parse().ok()).unwrap_or_default()
}
