//! Tests of queues beyond the contract of all adapters.

use std::time::Duration;

use contracts::sample;
use imports::queues;
use messages::Depth;
use messages::{
    Disposition, Outgoing, Queue, QueueSpec, ReceiveMessages, ReceivedMessage, SendError, SendMessages,
    StoreError,
};

use crate::depot::{Depot, TestResult};

const VISIBILITY: Duration = Duration::from_secs(30);

/// Commands are dead-lettered after one delivery.
static IMPATIENT: [QueueSpec; 2] = [
    QueueSpec::with_consumer(queues::PARSE, queues::PARSE_DEAD, 1, 900, 1, 2),
    QueueSpec::without_consumer(queues::PARSE_DEAD),
];

async fn send(depot: &Depot, queue: Queue, delay_s: u64) -> Result<Outgoing, SendError> {
    let message = sample::message(&*depot.host, sample::partition(&*depot.host));
    let outgoing = Outgoing::new(&message, queue, Duration::from_secs(delay_s))?;
    depot.store.send(std::slice::from_ref(&outgoing)).await.remove(0)?;
    Ok(outgoing)
}

async fn receive(depot: &Depot, queue: &Queue) -> Result<Vec<ReceivedMessage>, StoreError> {
    depot.store.receive(queue, 10, VISIBILITY).await
}

#[tokio::test]
async fn messages_are_received_in_visibility_order() -> TestResult {
    let depot = Depot::new();
    let late = send(&depot, queues::SAGA, 5).await?;
    let first = send(&depot, queues::SAGA, 0).await?;
    let second = send(&depot, queues::SAGA, 0).await?;
    depot.host.advance(Duration::from_secs(5));
    let bodies: Vec<_> =
        receive(&depot, &queues::SAGA).await?.into_iter().map(|it| it.delivery.body).collect();
    assert_eq!(bodies, [first.body, second.body, late.body]);
    Ok(())
}

#[tokio::test]
async fn depths_distinguish_visible_held_and_delayed() -> TestResult {
    let depot = Depot::new();
    for delay in [0, 0, 0, 60] {
        send(&depot, queues::PARSE, delay).await?;
    }
    let held = depot.store.receive(&queues::PARSE, 1, VISIBILITY).await?;
    let depths = depot.store.count_messages().await?;
    assert_eq!(
        depths[&queues::PARSE],
        Depth { visible: 2, in_flight: 1, delayed: 1, oldest: Some(Duration::ZERO) }
    );
    assert_eq!(depths.len(), queues::QUEUES.len());
    assert_eq!(held.len(), 1);
    Ok(())
}

#[tokio::test]
async fn receipt_expires_with_visibility_timeout() -> TestResult {
    let depot = Depot::new();
    send(&depot, queues::SAGA, 0).await?;
    let held = receive(&depot, &queues::SAGA).await?.remove(0);
    depot.host.advance(VISIBILITY);
    depot.store.answer(&queues::SAGA, &held.receipt, &Disposition::Acknowledge).await?;
    assert_eq!(depot.store.count_messages().await?[&queues::SAGA].visible, 1);
    let error = depot.store.answer(&queues::SAGA, "nonsense", &Disposition::Acknowledge).await;
    assert!(!error.unwrap_err().is_retryable());
    Ok(())
}

#[tokio::test]
async fn dead_letters_are_listed_with_their_reasons() -> TestResult {
    let depot = Depot::with(&IMPATIENT);
    let (rejected, exhausted) =
        (send(&depot, queues::PARSE, 0).await?, send(&depot, queues::PARSE, 0).await?);
    let held = depot.store.receive(&queues::PARSE, 1, VISIBILITY).await?.remove(0);
    let why = Disposition::DeadLetter { reason: "no such format".into() };
    depot.store.answer(&queues::PARSE, &held.receipt, &why).await?;
    assert_eq!(receive(&depot, &queues::PARSE).await?.len(), 1);
    depot.host.advance(VISIBILITY);
    assert_eq!(receive(&depot, &queues::PARSE).await?, []);

    let dead = depot.store.dead_letters(&queues::PARSE_DEAD).await?;
    let told: Vec<_> =
        dead.iter().map(|it| (it.message_id, it.body.as_str(), it.reason.as_deref())).collect();
    assert_eq!(
        told,
        [
            (Some(rejected.id), rejected.body.as_str(), Some("no such format")),
            (Some(exhausted.id), exhausted.body.as_str(), Some("received 1 times without success")),
        ]
    );
    Ok(())
}

#[tokio::test]
async fn dead_letters_do_not_hide_later_messages() -> TestResult {
    let depot = Depot::with(&IMPATIENT);
    for _ in 0..15 {
        send(&depot, queues::PARSE, 0).await?;
    }
    for _ in 0..2 {
        receive(&depot, &queues::PARSE).await?;
    }
    depot.host.advance(VISIBILITY);
    let fresh = send(&depot, queues::PARSE, 0).await?;
    let received: Vec<_> =
        receive(&depot, &queues::PARSE).await?.into_iter().map(|it| it.delivery.body).collect();
    assert_eq!(received, [fresh.body]);
    Ok(())
}

#[tokio::test]
async fn message_sent_before_wait_ends_it() -> TestResult {
    let depot = Depot::new();
    let mut signal = depot.store.message_signal();
    assert_eq!(receive(&depot, &queues::SAGA).await?, []);
    send(&depot, queues::SAGA, 0).await?;
    signal.wait(Duration::from_secs(3600)).await;
    assert!(depot.host.sleeps().is_empty(), "it did not wait");
    signal.wait(Duration::from_secs(3600)).await;
    assert_eq!(depot.host.sleeps(), [Duration::from_secs(3600)], "it was told once");
    Ok(())
}

#[tokio::test]
async fn unknown_queue_fails_alone() -> TestResult {
    let depot = Depot::with(&IMPATIENT);
    let message = |queue| {
        let message = sample::message(&*depot.host, sample::partition(&*depot.host));
        Outgoing::new(&message, queue, Duration::ZERO)
    };
    let sent = depot.store.send(&[message(queues::SAGA)?, message(queues::PARSE)?]).await;
    assert!(matches!(&sent[..], [Err(SendError::UnknownQueue(queue)), Ok(())] if *queue == queues::SAGA));
    assert_eq!(receive(&depot, &queues::PARSE).await?.len(), 1);
    assert!(!receive(&depot, &queues::SAGA).await.unwrap_err().is_retryable());
    assert_eq!(depot.store.count_messages().await?.len(), IMPATIENT.len());
    Ok(())
}
