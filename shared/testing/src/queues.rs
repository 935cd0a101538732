//! What [`SendMessages`] and [`ReceiveMessages`] promise.
//!
//! A receive of a real queue may return fewer messages than there are, and in any order; the suite asks again
//! and compares sets. The queues under test must be nobody else's.

use std::collections::BTreeMap;
use std::time::Duration;

use contracts::{Destination, Disposition, Host, Message, StoreError};
use outbox::queue::MAX_BATCH;
use outbox::{Outgoing, Queue, ReceiveMessages, Received, SendMessages};

use crate::{Checked, sample};

/// What is under test.
pub struct Ports<'a> {
    /// Sends.
    pub send: &'a dyn SendMessages,
    /// Receives.
    pub receive: &'a dyn ReceiveMessages,
    /// Ids and time: the clock that the queues go by.
    pub host: &'a dyn Host,
    /// How often [`Queue::Saga`] delivers a message before it gives up; at least 2.
    pub receive_limit: u32,
}

/// Checks every promise.
///
/// # Errors
/// When a port fails.
pub async fn all(ports: &Ports<'_>) -> Checked {
    a_message_arrives_unchanged_where_it_belongs(ports).await?;
    an_acknowledged_message_never_comes_again(ports).await?;
    a_received_message_is_hidden_and_comes_again(ports).await?;
    a_delayed_message_is_held_back(ports).await?;
    an_outdated_receipt_settles_nothing(ports).await?;
    a_retried_message_comes_again_after_its_delay(ports).await?;
    a_rejected_message_moves_to_the_dead_letters_unchanged(ports).await?;
    a_message_received_too_often_moves_to_the_dead_letters(ports).await?;
    a_receive_returns_no_more_than_asked_for_and_allowed(ports).await?;
    a_batch_has_one_result_for_each_message(ports).await?;
    copies_of_one_message_are_delivered_both(ports).await
}

const QUEUE: Queue = Queue::Saga;
/// Short, since a real queue makes the suite wait for it.
const VISIBILITY: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(600);
/// How often an empty answer is doubted: a real queue asks only some of its servers at a time.
const TRIES: usize = 5;

impl Ports<'_> {
    fn outgoing(&self, delay: Duration) -> Result<Outgoing, Box<dyn std::error::Error + Send + Sync>> {
        let message = sample::message(self.host, sample::search(self.host));
        Ok(outgoing(&message, delay)?)
    }

    async fn send(&self, messages: &[Outgoing]) -> Checked {
        let results = self.send.send(messages).await;
        assert_eq!(results.len(), messages.len(), "one result for each message");
        results.into_iter().collect::<Result<(), _>>()?;
        Ok(())
    }

    async fn sent(&self) -> Result<Outgoing, Box<dyn std::error::Error + Send + Sync>> {
        let message = self.outgoing(Duration::ZERO)?;
        self.send(std::slice::from_ref(&message)).await?;
        Ok(message)
    }

    /// Receives until there are `expected` messages or several tries were in vain.
    async fn receive(
        &self,
        queue: Queue,
        expected: usize,
        visibility: Duration,
    ) -> Result<Vec<Received>, StoreError> {
        let mut received = Vec::new();
        for _ in 0..TRIES.max(expected) {
            if received.len() >= expected {
                break;
            }
            let max = (expected - received.len()).min(MAX_BATCH);
            received.extend(self.receive.receive(queue, max, visibility).await?);
        }
        Ok(received)
    }

    async fn one(&self, queue: Queue, visibility: Duration) -> Result<Received, StoreError> {
        let mut received = self.receive(queue, 1, visibility).await?;
        assert_eq!(received.len(), 1, "nothing arrived in queue {}", queue.name());
        Ok(received.remove(0))
    }

    async fn is_empty(&self, queue: Queue) -> Result<bool, StoreError> {
        Ok(self.receive.receive(queue, MAX_BATCH, VISIBILITY).await?.is_empty())
    }

    async fn settle(&self, queue: Queue, receipt: &str, disposition: Disposition) -> Result<(), StoreError> {
        self.receive.settle(queue, receipt, &disposition).await
    }

    /// Empties what the checks use.
    async fn drain(&self) -> Result<(), StoreError> {
        for queue in [Some(QUEUE), QUEUE.dead_letters()].into_iter().flatten() {
            loop {
                let received = self.receive(queue, 1, LONG).await?;
                if received.is_empty() {
                    break;
                }
                for message in received {
                    self.settle(queue, &message.receipt, Disposition::Acknowledge).await?;
                }
            }
        }
        Ok(())
    }
}

fn outgoing(message: &Message, delay: Duration) -> Result<Outgoing, contracts::message::EncodeError> {
    Ok(Outgoing {
        id: message.id,
        search_id: message.correlation_id,
        destination: Destination::Saga,
        body: message.encode()?,
        delay,
    })
}

fn retry(after: Duration) -> Disposition {
    Disposition::Retry { after, reason: "busy".to_owned() }
}

/// Each destination has its queue.
///
/// # Errors
/// When a port fails.
pub async fn a_message_arrives_unchanged_where_it_belongs(ports: &Ports<'_>) -> Checked {
    ports.drain().await?;
    let sent = ports.sent().await?;
    assert!(ports.is_empty(Queue::Control).await?, "it is in another queue");
    let received = ports.one(QUEUE, LONG).await?;
    assert_eq!(received.delivery.body, sent.body);
    assert_eq!(received.delivery.receive_count, 1);
    assert!(!received.delivery.record_id.is_empty(), "an empty id fails a whole batch");
    ports.settle(QUEUE, &received.receipt, Disposition::Acknowledge).await?;
    Ok(())
}

/// Not even after its visibility timeout; acknowledging it again is no error.
///
/// # Errors
/// When a port fails.
pub async fn an_acknowledged_message_never_comes_again(ports: &Ports<'_>) -> Checked {
    ports.drain().await?;
    ports.sent().await?;
    let received = ports.one(QUEUE, VISIBILITY).await?;
    for _ in 0..2 {
        ports.settle(QUEUE, &received.receipt, Disposition::Acknowledge).await?;
    }
    ports.host.sleep(VISIBILITY * 2).await;
    assert!(ports.is_empty(QUEUE).await?);
    Ok(())
}

/// Once the visibility timeout has passed, counted.
///
/// # Errors
/// When a port fails.
pub async fn a_received_message_is_hidden_and_comes_again(ports: &Ports<'_>) -> Checked {
    ports.drain().await?;
    let sent = ports.sent().await?;
    let first = ports.one(QUEUE, VISIBILITY).await?;
    assert!(ports.is_empty(QUEUE).await?, "it is hidden");
    ports.host.sleep(VISIBILITY).await;
    let second = ports.one(QUEUE, LONG).await?;
    assert_eq!((second.delivery.body, second.delivery.receive_count), (sent.body, 2));
    assert_eq!(second.delivery.record_id, first.delivery.record_id);
    assert_ne!(second.receipt, first.receipt);
    ports.settle(QUEUE, &second.receipt, Disposition::Acknowledge).await?;
    Ok(())
}

/// As long as it was sent with.
///
/// # Errors
/// When a port fails.
pub async fn a_delayed_message_is_held_back(ports: &Ports<'_>) -> Checked {
    ports.drain().await?;
    let message = ports.outgoing(VISIBILITY)?;
    ports.send(std::slice::from_ref(&message)).await?;
    assert!(ports.is_empty(QUEUE).await?, "it is held back");
    ports.host.sleep(VISIBILITY).await;
    let received = ports.one(QUEUE, LONG).await?;
    assert_eq!((received.delivery.body, received.delivery.receive_count), (message.body, 1));
    ports.settle(QUEUE, &received.receipt, Disposition::Acknowledge).await?;
    Ok(())
}

/// Whoever was too slow takes nothing from whoever has it now.
///
/// # Errors
/// When a port fails.
pub async fn an_outdated_receipt_settles_nothing(ports: &Ports<'_>) -> Checked {
    ports.drain().await?;
    ports.sent().await?;
    let slow = ports.one(QUEUE, VISIBILITY).await?;
    ports.host.sleep(VISIBILITY).await;
    let current = ports.one(QUEUE, LONG).await?;
    let rejected = Disposition::DeadLetter { reason: "late".to_owned() };
    for disposition in [Disposition::Acknowledge, retry(Duration::ZERO), rejected] {
        ports.settle(QUEUE, &slow.receipt, disposition).await?;
        assert!(ports.is_empty(QUEUE).await?, "it is hidden as before");
        assert!(ports.is_empty(Queue::SagaDead).await?, "it was not moved");
    }
    ports.settle(QUEUE, &current.receipt, retry(Duration::ZERO)).await?;
    let again = ports.one(QUEUE, LONG).await?;
    assert_eq!(again.delivery.receive_count, 3, "it was not deleted");
    ports.settle(QUEUE, &again.receipt, Disposition::Acknowledge).await?;
    Ok(())
}

/// Earlier or later than its visibility timeout would have it.
///
/// # Errors
/// When a port fails.
pub async fn a_retried_message_comes_again_after_its_delay(ports: &Ports<'_>) -> Checked {
    ports.drain().await?;
    let sent = ports.sent().await?;
    let first = ports.one(QUEUE, LONG).await?;
    ports.settle(QUEUE, &first.receipt, retry(VISIBILITY)).await?;
    assert!(ports.is_empty(QUEUE).await?, "it is held back");
    ports.host.sleep(VISIBILITY).await;
    let second = ports.one(QUEUE, LONG).await?;
    assert_eq!((&second.delivery.body, second.delivery.receive_count), (&sent.body, 2));
    ports.settle(QUEUE, &second.receipt, retry(Duration::ZERO)).await?;
    let third = ports.one(QUEUE, LONG).await?;
    assert_eq!(third.delivery.receive_count, 3);
    ports.settle(QUEUE, &third.receipt, Disposition::Acknowledge).await?;
    Ok(())
}

/// At once, and out of the queue it was in.
///
/// # Errors
/// When a port fails.
pub async fn a_rejected_message_moves_to_the_dead_letters_unchanged(ports: &Ports<'_>) -> Checked {
    ports.drain().await?;
    let sent = ports.sent().await?;
    let received = ports.one(QUEUE, VISIBILITY).await?;
    let rejected = Disposition::DeadLetter { reason: "wrong in itself".to_owned() };
    ports.settle(QUEUE, &received.receipt, rejected).await?;
    let dead = ports.one(Queue::SagaDead, LONG).await?;
    assert_eq!(dead.delivery.body, sent.body);
    ports.host.sleep(VISIBILITY).await;
    assert!(ports.is_empty(QUEUE).await?);
    ports.settle(Queue::SagaDead, &dead.receipt, Disposition::Acknowledge).await?;
    Ok(())
}

/// Exactly as often as the queue allows it is delivered.
///
/// # Errors
/// When a port fails.
pub async fn a_message_received_too_often_moves_to_the_dead_letters(ports: &Ports<'_>) -> Checked {
    ports.drain().await?;
    let sent = ports.sent().await?;
    for count in 1..=ports.receive_limit {
        let received = ports.one(QUEUE, LONG).await?;
        assert_eq!(received.delivery.receive_count, count);
        ports.settle(QUEUE, &received.receipt, retry(Duration::ZERO)).await?;
    }
    assert!(ports.receive(QUEUE, 1, LONG).await?.is_empty(), "it was delivered too often");
    let dead = ports.one(Queue::SagaDead, LONG).await?;
    assert_eq!(dead.delivery.body, sent.body);
    ports.settle(Queue::SagaDead, &dead.receipt, Disposition::Acknowledge).await?;
    Ok(())
}

/// Nor the same message twice.
///
/// # Errors
/// When a port fails.
pub async fn a_receive_returns_no_more_than_asked_for_and_allowed(ports: &Ports<'_>) -> Checked {
    ports.drain().await?;
    let mut messages = Vec::new();
    for _ in 0..MAX_BATCH + 5 {
        messages.push(ports.outgoing(Duration::ZERO)?);
    }
    let (first, second) = messages.split_at(MAX_BATCH);
    ports.send(first).await?;
    ports.send(second).await?;
    let mut received = ports.receive.receive(QUEUE, 3, LONG).await?;
    assert!(received.len() <= 3);
    let more = ports.receive.receive(QUEUE, 100, LONG).await?;
    assert!(more.len() <= MAX_BATCH);
    received.extend(more);
    received.extend(ports.receive(QUEUE, messages.len() - received.len(), LONG).await?);
    let mut bodies: Vec<_> = received.iter().map(|message| &message.delivery.body).collect();
    let mut expected: Vec<_> = messages.iter().map(|message| &message.body).collect();
    bodies.sort_unstable();
    expected.sort_unstable();
    assert_eq!(bodies, expected);
    let ids: std::collections::BTreeSet<_> =
        received.iter().map(|message| &message.delivery.record_id).collect();
    assert_eq!(ids.len(), received.len(), "two records have one id");
    ports.drain_held(&received).await?;
    Ok(())
}

impl Ports<'_> {
    async fn drain_held(&self, received: &[Received]) -> Result<(), StoreError> {
        for message in received {
            self.settle(QUEUE, &message.receipt, Disposition::Acknowledge).await?;
        }
        Ok(())
    }
}

/// In their order, whatever their destinations; no message is no result.
///
/// # Errors
/// When a port fails.
pub async fn a_batch_has_one_result_for_each_message(ports: &Ports<'_>) -> Checked {
    ports.drain().await?;
    assert!(ports.send.send(&[]).await.is_empty());
    let (saga, mut control) = (ports.outgoing(Duration::ZERO)?, ports.outgoing(Duration::ZERO)?);
    control.destination = Destination::Control;
    ports.send(&[saga.clone(), control.clone()]).await?;
    for (queue, body) in [(Queue::Saga, saga.body), (Queue::Control, control.body)] {
        let received = ports.one(queue, LONG).await?;
        assert_eq!(received.delivery.body, body);
        ports.settle(queue, &received.receipt, Disposition::Acknowledge).await?;
    }
    Ok(())
}

/// The queue tells nothing apart by the message's id; acknowledging one copy leaves the other.
///
/// # Errors
/// When a port fails.
pub async fn copies_of_one_message_are_delivered_both(ports: &Ports<'_>) -> Checked {
    ports.drain().await?;
    let message = ports.outgoing(Duration::ZERO)?;
    ports.send(std::slice::from_ref(&message)).await?;
    ports.send(std::slice::from_ref(&message)).await?;
    let received = ports.receive(QUEUE, 2, VISIBILITY).await?;
    let mut copies: BTreeMap<&str, &str> = BTreeMap::new();
    for copy in &received {
        copies.insert(&copy.delivery.record_id, &copy.delivery.body);
    }
    assert_eq!(copies.into_values().collect::<Vec<_>>(), [&message.body, &message.body]);
    let first = received.first().ok_or("two copies")?;
    ports.settle(QUEUE, &first.receipt, Disposition::Acknowledge).await?;
    ports.host.sleep(VISIBILITY).await;
    let other = ports.one(QUEUE, LONG).await?;
    assert_eq!(other.delivery.body, message.body);
    ports.settle(QUEUE, &other.receipt, Disposition::Acknowledge).await?;
    Ok(())
}
