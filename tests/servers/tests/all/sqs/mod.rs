//! SQS.

mod faults;
mod lambda;
mod messages;
mod pump;

use std::sync::Arc;
use std::time::Duration;

use ::messages::{MessageId, Outgoing, PartitionKey, QueueSpec};
use aws::queues::{Queues, Sqs};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use backend::SystemHost;
use imports::queues;
use servers::amazon::{Service, config};
use uuid::Uuid;

use servers::{TestResult, cleaned_up, unique};

/// The receive limit of the saga queue in these tests.
const RECEIVE_LIMIT: u32 = 4;
/// The queues of these tests.
static QUEUES: [QueueSpec; 3] = [
    QueueSpec::with_consumer(queues::SAGA, queues::SAGA_DEAD, RECEIVE_LIMIT, 30, 10, 1),
    QueueSpec::without_consumer(queues::SAGA_DEAD),
    QueueSpec::without_consumer(queues::CONTROL),
];

/// Runs a test with separate queues: the saga queue with its dead-letter queue, and the control queue.
async fn with_queues<F: Future<Output = TestResult>>(test: impl FnOnce(Client, Queues) -> F) -> TestResult {
    let client = Client::new(&config(Service::Sqs).await);
    let name = unique("q");
    let dead = create(&client, &format!("{name}-dead"), None).await;
    let policy = format!(
        "{{\"deadLetterTargetArn\": \"{}\", \"maxReceiveCount\": {RECEIVE_LIMIT}}}",
        arn(&client, &dead).await
    );
    let saga = create(&client, &name, Some(policy)).await;
    let control = create(&client, &format!("{name}-control"), None).await;
    let urls = [(queues::SAGA, saga), (queues::SAGA_DEAD, dead), (queues::CONTROL, control)];
    let addresses = Queues::of(imports::SYSTEM, urls.clone());
    let clean = async {
        for (_, url) in &urls {
            client.delete_queue().queue_url(url).send().await.expect("the queue can be deleted");
        }
    };
    cleaned_up(test(client.clone(), addresses), clean).await
}

async fn create(client: &Client, name: &str, redrive: Option<String>) -> String {
    let mut request = client.create_queue().queue_name(name);
    if let Some(policy) = redrive {
        request = request.attributes(QueueAttributeName::RedrivePolicy, policy);
    }
    request.send().await.expect("the queue can be created").queue_url.expect("a queue has an address")
}

async fn arn(client: &Client, url: &str) -> String {
    let request = client.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::QueueArn);
    let attributes = request.send().await.expect("the queue is there").attributes.expect("it has attributes");
    attributes.get(&QueueAttributeName::QueueArn).expect("it has an ARN").clone()
}

/// Returns the adapter without long polling, so that tests do not wait for absent messages.
fn adapter(client: Client, addresses: Queues) -> Sqs {
    Sqs::new(client, addresses, &QUEUES, Arc::new(SystemHost)).waiting(Duration::ZERO)
}

fn outgoing(n: u128, body: impl Into<String>) -> Outgoing {
    Outgoing {
        id: MessageId::from_uuid(Uuid::from_u128(n)),
        partition: PartitionKey::from_uuid(Uuid::from_u128(1)),
        queue: queues::SAGA,
        body: body.into(),
        delay: Duration::ZERO,
    }
}
