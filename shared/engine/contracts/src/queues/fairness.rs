//! Partitions take turns: a backlog of one does not delay others.

use std::time::Duration;

use messages::{Disposition, Outgoing, PartitionKey, ReceivedMessage};

use super::{LONG, Ports, VISIBILITY, retry};
use crate::{CheckResult, sample};

/// Checks the whole contract. The standard queues of SQS keep them approximately, and only among many messages
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html>).
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    backlog_does_not_delay_other_partitions(ports).await?;
    partitions_alternate_without_messages_in_flight(ports).await?;
    delayed_message_is_not_in_flight(ports).await?;
    timed_out_message_is_not_in_flight(ports).await?;
    batch_continues_with_the_next_partition(ports).await
}

impl Ports<'_> {
    async fn send_of(
        &self,
        partition: PartitionKey,
        count: usize,
    ) -> Result<Vec<Outgoing>, Box<dyn std::error::Error + Send + Sync>> {
        let mut sent = Vec::new();
        for _ in 0..count {
            let message = sample::message(self.host, partition);
            let outgoing = Outgoing::new(&message, self.queue.clone(), Duration::ZERO)?;
            self.send(std::slice::from_ref(&outgoing)).await?;
            sent.push(outgoing);
        }
        Ok(sent)
    }

    async fn next(&self) -> Result<ReceivedMessage, messages::StoreError> {
        self.one(&self.queue, LONG).await
    }
}

/// The order depends on the number of messages in flight and not on age.
pub async fn backlog_does_not_delay_other_partitions(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let (large, small) = (sample::partition(ports.host), sample::partition(ports.host));
    let large = ports.send_of(large, 20).await?;
    for sent in &large[..3] {
        assert_eq!(
            ports.next().await?.delivery.body,
            sent.body,
            "those of one partition come in their order"
        );
    }
    let small = ports.send_of(small, 5).await?;
    for sent in &small[..3] {
        assert_eq!(ports.next().await?.delivery.body, sent.body, "this partition has fewer in flight");
    }
    for sent in [&large[3], &small[3], &large[4], &small[4], &large[5]] {
        assert_eq!(ports.next().await?.delivery.body, sent.body, "the other one has waited longer");
    }
    Ok(())
}

/// The partitions alternate even if no message is in flight, for example if a single worker answers each message before
/// it receives the next.
pub async fn partitions_alternate_without_messages_in_flight(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(ports.send_of(sample::partition(ports.host), 3).await?);
    }
    for turn in 0..3 {
        for partition in &sent {
            // Without this delay, all groups would have waited equally long.
            ports.host.sleep(Duration::from_millis(1)).await;
            let received = ports.next().await?;
            assert_eq!(received.delivery.body, partition[turn].body);
            ports.answer(&ports.queue, &received.receipt, Disposition::Acknowledge).await?;
        }
    }
    Ok(())
}

/// This holds for messages that were retried, and for messages that were sent with a delay.
pub async fn delayed_message_is_not_in_flight(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let (busy, patient) = (sample::partition(ports.host), sample::partition(ports.host));
    ports.send_of(patient, 2).await?;
    for _ in 0..2 {
        let received = ports.next().await?;
        ports.answer(&ports.queue, &received.receipt, retry(LONG)).await?;
    }
    ports.send_of(busy, 2).await?;
    ports.next().await?;
    ports.host.sleep(VISIBILITY).await;
    let waits = ports.send_of(patient, 1).await?;
    assert_eq!(ports.next().await?.delivery.body, waits[0].body);
    Ok(())
}

/// The message is visible again, and counts as waiting.
pub async fn timed_out_message_is_not_in_flight(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let (slow, busy) = (sample::partition(ports.host), sample::partition(ports.host));
    let slow = ports.send_of(slow, 2).await?;
    for _ in 0..2 {
        ports.one(&ports.queue, VISIBILITY).await?;
    }
    let busy = ports.send_of(busy, 3).await?;
    ports.next().await?;
    ports.host.sleep(VISIBILITY).await;
    for sent in [&slow[0], &busy[1], &slow[1], &busy[2]] {
        assert_eq!(ports.next().await?.delivery.body, sent.body);
    }
    Ok(())
}

/// A turn is a batch, because its messages of one partition share the work for the partition.
pub async fn batch_continues_with_the_next_partition(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(ports.send_of(sample::partition(ports.host), 4).await?);
    }
    let batch = ports.receive.receive(&ports.queue, 6, LONG).await?;
    let bodies: Vec<_> = batch.iter().map(|received| &received.delivery.body).collect();
    let expected: Vec<_> = sent[0].iter().chain(&sent[1][..2]).map(|message| &message.body).collect();
    assert_eq!(bodies, expected);
    let next = ports.receive.receive(&ports.queue, 6, LONG).await?;
    let bodies: Vec<_> = next.iter().map(|received| &received.delivery.body).collect();
    let expected: Vec<_> = sent[2].iter().chain(&sent[1][2..]).map(|message| &message.body).collect();
    assert_eq!(bodies, expected, "the partition with fewer in flight comes first");
    ports.drain().await
}
