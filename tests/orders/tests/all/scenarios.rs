//! Complete orders, from the first request to the end.

use std::collections::BTreeSet;
use std::time::Duration;

use messages::{Backoff, Body, Disposition, Host, Message, Queue, ReceiveMessages, Verdict, send_one};
use orders::shop::{OrderError, partition};
use orders::{Command, NEWS, News, OrderEvent, SYSTEM, Step, TIME_TO_PAY, WAREHOUSE, WAREHOUSE_DEAD};
use outbox::{Key, ReadRecords};
use saga::failures::{FailureStatus, Selection};
use saga::{ReadDocuments, SAGA};
use serde_json::json;

use crate::world::{TestResult, World, messages};

const SAGA_DEAD: Queue = Queue::named("saga-dead");

#[tokio::test]
async fn paid_order_is_shipped() -> TestResult {
    let world = World::with_stock(1).await;
    world.shop.place("4711", 100).await?;
    assert_eq!(world.state("4711").await, "placed");
    world.run().await;
    world.shop.pay("4711", 100).await?;
    world.run().await;
    let order = world.order("4711").await;
    assert!(matches!(&order.step, Step::Shipped { carrier, .. } if carrier == "dhl"), "{order:?}");
    let news = messages(&world.take(&NEWS).await);
    let told = News::OrderEnded { number: "4711".into(), shipped: true };
    assert_eq!(news.iter().map(|news| news.read().unwrap()).collect::<Vec<News>>(), [told]);
    assert!(matches!(world.shop.pay("4711", 100).await, Err(OrderError::Ended)));
    Ok(())
}

#[tokio::test]
async fn unpaid_order_expires_after_an_hour() -> TestResult {
    let world = World::with_stock(1).await;
    world.shop.place("4711", 100).await?;
    world.run().await;
    world.pass(TIME_TO_PAY.unsigned_abs() - Duration::from_secs(1)).await;
    assert_eq!(world.state("4711").await, "placed");
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(world.state("4711").await, "overdue");
    Ok(())
}

/// The number of an order may be used again after the retention of its document.
#[tokio::test]
async fn second_life_replaces_view_and_record() -> TestResult {
    let (world, order) = (World::with_stock(1).await, partition("4711"));
    let key = Key::new("receipt", "4711");
    world.shop.place("4711", 100).await?;
    world.shop.pay("4711", 100).await?;
    world.run().await;
    assert_eq!(world.store.record(&key).await?.ok_or("it is stored")?.body, json!("it is on its way"));
    let shipped = world.shop.order("4711").await?;
    world.pass(Duration::from_hours(8 * 24)).await;
    assert_eq!(world.store.load_latest(order, world.host.now()).await?, None);
    let mut session = world.shop.entry.session(order);
    session.send(&OrderEvent::Placed { number: "4711".into(), cents: 200, at: world.host.now() })?;
    session.commit().await?;
    world.run().await;
    let again = world.shop.order("4711").await?;
    assert_eq!((&again.body["state"], &again.body["cents"]), (&json!("placed"), &json!(200)));
    assert!(again.revision > shipped.revision);
    world.pass(TIME_TO_PAY.unsigned_abs()).await;
    assert_eq!(world.state("4711").await, "overdue");
    assert_eq!(world.store.record(&key).await?.ok_or("it is stored")?.body, json!("nobody paid in time"));
    Ok(())
}

#[tokio::test]
async fn timer_of_paid_order_does_nothing() -> TestResult {
    let world = World::with_stock(1).await;
    world.shop.place("4711", 100).await?;
    world.run().await;
    world.shop.pay("4711", 100).await?;
    let batch = world.take(&SAGA).await;
    world.deliver(&SAGA, &batch).await;
    world.pass(2 * TIME_TO_PAY.unsigned_abs()).await;
    assert_eq!(world.state("4711").await, "shipped");
    assert_eq!(world.verdicts("4711", "PaymentOverdue").await, [], "it was cancelled");
    Ok(())
}

#[tokio::test]
async fn insufficient_payment_is_refused_and_repeatable() -> TestResult {
    let world = World::with_stock(1).await;
    world.shop.place("4711", 100).await?;
    world.run().await;
    world.shop.pay("4711", 99).await?;
    world.run().await;
    assert_eq!(world.state("4711").await, "placed");
    let dead = world.store.dead_letters(&SAGA_DEAD).await?;
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].reason.as_deref(), Some("paid too little"));
    world.shop.pay("4711", 100).await?;
    world.run().await;
    assert_eq!(world.state("4711").await, "shipped");
    Ok(())
}

#[tokio::test]
async fn payment_may_overtake_its_order() -> TestResult {
    for (paid, then) in [(100, "shipped"), (99, "placed")] {
        let world = World::with_stock(1).await;
        world.shop.place("4711", 100).await?;
        world.shop.pay("4711", paid).await?;
        let batch = world.take(&SAGA).await;
        let names: Vec<_> = messages(&batch).into_iter().map(|message| message.body.name).collect();
        assert_eq!(names, ["Placed", "Paid"]);
        for received in batch.iter().rev() {
            world.deliver(&SAGA, std::slice::from_ref(received)).await;
        }
        world.run().await;
        assert_eq!(world.state("4711").await, then);
    }
    Ok(())
}

#[tokio::test]
async fn triple_delivery_takes_effect_once() -> TestResult {
    let world = World::with_copies(2, 3).await;
    world.shop.place("4711", 100).await?;
    world.shop.place("4712", 100).await?;
    world.run().await;
    world.shop.pay("4711", 100).await?;
    world.run().await;
    world.pass(TIME_TO_PAY.unsigned_abs()).await;
    assert_eq!((world.state("4711").await, world.state("4712").await), (json!("shipped"), json!("overdue")));
    for (number, name) in [
        ("4711", "Placed"),
        ("4711", "Paid"),
        ("4711", "Shipped"),
        ("4711", "Ship"),
        ("4712", "PaymentOverdue"),
    ] {
        let verdicts = world.verdicts(number, name).await;
        let handled = verdicts.iter().filter(|verdict| **verdict == Verdict::Handled).count();
        assert_eq!(handled, 1, "{name}: {verdicts:?}");
        assert!(verdicts.len() >= 3, "{name}: {verdicts:?}");
    }
    let news = messages(&world.take(&NEWS).await);
    let ids: BTreeSet<_> = news.iter().map(|news| news.id).collect();
    assert_eq!((news.len(), ids.len()), (6, 2), "copies share their id");
    Ok(())
}

#[tokio::test]
async fn earlier_warehouse_names_no_carrier() -> TestResult {
    let world = World::with_stock(1).await;
    world.shop.place("4711", 100).await?;
    world.shop.pay("4711", 100).await?;
    let batch = world.take(&SAGA).await;
    world.deliver(&SAGA, &batch).await;
    let asked = messages(&world.take(&WAREHOUSE).await).remove(0);
    let body = Body {
        system: "orders".into(),
        name: "Shipped".into(),
        version: 1,
        data: json!({ "tracking": "1Z" }).into(),
    };
    let reply = asked.caused_message(asked.id.derive(0), "warehouse", world.engine.host.now(), body);
    let reply = Message { token: asked.reply_token, ..reply };
    send_one(world.engine.send.as_ref(), &reply, SAGA, Duration::ZERO).await?;
    world.run().await;
    let step = world.order("4711").await.step;
    assert!(matches!(step, Step::Shipped { carrier, tracking, .. } if carrier == "post" && tracking == "1Z"));
    Ok(())
}

#[tokio::test]
async fn newer_message_waits_for_upgrade() -> TestResult {
    let world = World::with_stock(1).await;
    let paid = json!({ "cents": 100, "currency": "EUR" });
    world.event(partition("4711"), "Paid", 9, paid).await;
    for receives in 1..=5 {
        let batch = world.take(&SAGA).await;
        let said = world.deliver(&SAGA, &batch).await;
        let [Disposition::Retry { after, .. }] = said.as_slice() else { panic!("{receives}: {said:?}") };
        assert!(*after >= Backoff::UPGRADE.at_least(receives), "{receives}: {said:?}");
        assert_eq!(world.take(&SAGA).await, [], "it is held back");
        world.host.advance(*after);
    }
    assert_eq!(world.store.dead_letters(&SAGA_DEAD).await?, []);
    Ok(())
}

#[tokio::test]
async fn malformed_message_does_not_wait() -> TestResult {
    let world = World::with_stock(1).await;
    world.event(partition("4711"), "Paid", 1, json!({ "cents": "many" })).await;
    world.run().await;
    assert_eq!(world.store.dead_letters(&SAGA_DEAD).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn dead_lettered_command_is_reported_to_its_saga() -> TestResult {
    let world = World::with_stock(1).await;
    world.shop.place("4711", 100).await?;
    world.shop.pay("4711", 100).await?;
    let batch = world.take(&SAGA).await;
    world.deliver(&SAGA, &batch).await;
    let commands = world.take(&WAREHOUSE).await;
    let reason = "the warehouse is closed".to_owned();
    world.store.answer(&WAREHOUSE, &commands[0].receipt, &Disposition::DeadLetter { reason }).await?;
    // The report is sent twice, as after a crash, and the reply arrives last.
    let dead = world.take(&WAREHOUSE_DEAD).await;
    world.deliver(&WAREHOUSE_DEAD, &dead).await;
    world.deliver(&WAREHOUSE_DEAD, &dead).await;
    world.deliver(&WAREHOUSE, &commands).await;
    world.run().await;
    assert_eq!(world.state("4711").await, "unshipped");
    assert_eq!(world.verdicts("4711", "Shipped").await, [Verdict::Duplicate]);
    let failures = world.engine.failures("test", &SYSTEM)?;
    let closed = failures.store.select(&Selection::of(FailureStatus::Closed), None, 10).await?;
    let reasons: Vec<_> = closed.iter().map(|failure| failure.reason.as_str()).collect();
    assert_eq!(reasons, ["the warehouse is closed"]);
    Ok(())
}

/// The saga could not accept the report.
#[tokio::test]
async fn dead_letter_without_request_stays_open() -> TestResult {
    let world = World::with_stock(1).await;
    let entry = world.engine.entry_point("http")?;
    let mut session = entry.session(partition("4711"));
    session.send(&Command::Ship { number: "4711".to_owned() })?;
    session.commit().await?;
    let commands = world.take(&WAREHOUSE).await;
    let reason = "the warehouse is closed".to_owned();
    world.store.answer(&WAREHOUSE, &commands[0].receipt, &Disposition::DeadLetter { reason }).await?;
    let dead = world.take(&WAREHOUSE_DEAD).await;
    world.deliver(&WAREHOUSE_DEAD, &dead).await;
    assert_eq!(world.take(&SAGA).await, []);
    let failures = world.engine.failures("test", &SYSTEM)?;
    let open = failures.store.select(&Selection::of(FailureStatus::Open), None, 10).await?;
    assert_eq!(open.len(), 1, "{open:?}");
    Ok(())
}

#[test]
fn event_versions_match_their_names() {
    use messages::Payload;
    let versions: Vec<_> = OrderEvent::KINDS.iter().map(|kind| (kind.name, kind.version)).collect();
    assert_eq!(
        versions,
        [("Placed", 1), ("Paid", 1), ("Shipped", 2), ("PaymentOverdue", 1), ("NotShipped", 1)]
    );
}
