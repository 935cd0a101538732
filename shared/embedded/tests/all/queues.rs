//! Queues, beyond what every adapter promises.

use std::time::Duration;

use contracts::{Destination, Disposition};
use embedded::{Depth, ReceiveLimits, Settings};
use outbox::{Outgoing, Queue, ReceiveMessages, Received, SendMessages};
use testing::sample;

use crate::depot::{Depot, Tested};

const VISIBILITY: Duration = Duration::from_secs(30);

async fn send(depot: &Depot, destination: Destination, delay_s: u64) -> Result<Outgoing, outbox::SendError> {
    let search_id = sample::search(&*depot.host);
    let message = sample::message(&*depot.host, search_id);
    let body = message.encode().unwrap();
    let outgoing =
        Outgoing { id: message.id, search_id, destination, body, delay: Duration::from_secs(delay_s) };
    depot.store.send(std::slice::from_ref(&outgoing)).await.remove(0)?;
    Ok(outgoing)
}

async fn receive(depot: &Depot, queue: Queue) -> Result<Vec<Received>, contracts::StoreError> {
    depot.store.receive(queue, 10, VISIBILITY).await
}

#[tokio::test]
async fn messages_come_in_the_order_in_which_they_became_visible() -> Tested {
    let depot = Depot::new();
    let late = send(&depot, Destination::Saga, 5).await?;
    let first = send(&depot, Destination::Saga, 0).await?;
    let second = send(&depot, Destination::Saga, 0).await?;
    depot.host.advance(Duration::from_secs(5));
    let bodies: Vec<_> = receive(&depot, Queue::Saga).await?.into_iter().map(|it| it.delivery.body).collect();
    assert_eq!(bodies, [first.body, second.body, late.body]);
    Ok(())
}

#[tokio::test]
async fn depths_tell_visible_held_and_delayed_messages_apart() -> Tested {
    let depot = Depot::new();
    for delay in [0, 0, 0, 60] {
        send(&depot, Destination::Parse, delay).await?;
    }
    let held = depot.store.receive(Queue::Parse, 1, VISIBILITY).await?;
    let depths = depot.store.depths().await?;
    assert_eq!(depths[&Queue::Parse], Depth { visible: 2, in_flight: 1, delayed: 1 });
    assert_eq!(depths.len(), Queue::ALL.len());
    assert_eq!(held.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_receipt_ends_with_its_visibility_timeout() -> Tested {
    let depot = Depot::new();
    send(&depot, Destination::Saga, 0).await?;
    let held = receive(&depot, Queue::Saga).await?.remove(0);
    depot.host.advance(VISIBILITY);
    ReceiveMessages::settle(&depot.store, Queue::Saga, &held.receipt, &Disposition::Acknowledge).await?;
    assert_eq!(depot.store.depths().await?[&Queue::Saga].visible, 1);
    let error =
        ReceiveMessages::settle(&depot.store, Queue::Saga, "nonsense", &Disposition::Acknowledge).await;
    assert!(!error.unwrap_err().is_retryable());
    Ok(())
}

#[tokio::test]
async fn dead_letters_say_why_and_can_be_sent_back_or_deleted() -> Tested {
    let receive_limits = ReceiveLimits { parse: 1, ..ReceiveLimits::default() };
    let depot = Depot::with(Settings { receive_limits, ..Settings::default() });
    let (rejected, exhausted) =
        (send(&depot, Destination::Parse, 0).await?, send(&depot, Destination::Parse, 0).await?);
    let held = depot.store.receive(Queue::Parse, 1, VISIBILITY).await?.remove(0);
    let why = Disposition::DeadLetter { reason: "no such format".into() };
    ReceiveMessages::settle(&depot.store, Queue::Parse, &held.receipt, &why).await?;
    assert_eq!(receive(&depot, Queue::Parse).await?.len(), 1);
    depot.host.advance(VISIBILITY);
    assert_eq!(receive(&depot, Queue::Parse).await?, []);

    let dead = depot.store.dead_letters(Queue::ParseDead).await?;
    let told: Vec<_> =
        dead.iter().map(|it| (it.message_id, it.body.as_str(), it.reason.as_deref())).collect();
    assert_eq!(
        told,
        [
            (Some(rejected.id), rejected.body.as_str(), Some("no such format")),
            (Some(exhausted.id), exhausted.body.as_str(), Some("received 1 times without success")),
        ]
    );
    assert!(depot.store.redrive(Queue::ParseDead, &dead[0].record_id).await?);
    assert!(!depot.store.redrive(Queue::ParseDead, &dead[0].record_id).await?);
    assert!(depot.store.delete_dead_letter(Queue::ParseDead, &dead[1].record_id).await?);
    let back = receive(&depot, Queue::Parse).await?.remove(0).delivery;
    assert_eq!((back.body, back.receive_count), (rejected.body, 1));
    Ok(())
}

#[tokio::test]
async fn given_up_messages_do_not_hide_the_one_behind_them() -> Tested {
    let receive_limits = ReceiveLimits { parse: 1, ..ReceiveLimits::default() };
    let depot = Depot::with(Settings { receive_limits, ..Settings::default() });
    for _ in 0..15 {
        send(&depot, Destination::Parse, 0).await?;
    }
    for _ in 0..2 {
        receive(&depot, Queue::Parse).await?;
    }
    depot.host.advance(VISIBILITY);
    let fresh = send(&depot, Destination::Parse, 0).await?;
    let received: Vec<_> =
        receive(&depot, Queue::Parse).await?.into_iter().map(|it| it.delivery.body).collect();
    assert_eq!(received, [fresh.body]);
    Ok(())
}

#[tokio::test]
async fn a_message_sent_before_the_wait_ends_it() -> Tested {
    let depot = Depot::new();
    let mut signal = depot.store.message_signal();
    assert_eq!(receive(&depot, Queue::Saga).await?, []);
    send(&depot, Destination::Saga, 0).await?;
    signal.wait(Duration::from_secs(3600)).await;
    assert!(depot.host.sleeps().is_empty(), "it did not wait");
    signal.wait(Duration::from_secs(3600)).await;
    assert_eq!(depot.host.sleeps(), [Duration::from_secs(3600)], "it was told once");
    Ok(())
}
