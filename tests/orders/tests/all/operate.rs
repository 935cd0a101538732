//! An operator who pauses, resumes and terminates orders, and sends them events.

use std::time::Duration;

use messages::{Disposition, Host, PartitionKey, Queue, Verdict};
use operate::{Health, instance::instance};
use orders::shop::partition;
use orders::{SYSTEM, Step, TIME_TO_PAY, WAREHOUSE};
use saga::{
    Content, Control, ControlError, ControlOutcome, EventDelivery, OperatorEvent, Persist, ReadDocuments,
    SAGA, SendEventError, WriteDocuments,
};
use serde_json::json;

use crate::world::{TestResult, World};

/// A time beyond the delays between the first deliveries of a postponed message.
const LATER: Duration = Duration::from_mins(10);

/// Returns a world with one order that waits for its payment.
async fn placed() -> World {
    let world = World::with_stock(1).await;
    world.shop.place("4711", 100).await.unwrap();
    world.run().await;
    world
}

async fn control(world: &World, control: Control) -> Result<ControlOutcome, ControlError> {
    world.engine.control(partition("4711"), control, "ann", "wrong price").await
}

fn paid(key: &str, order: PartitionKey) -> OperatorEvent {
    OperatorEvent {
        partition: order,
        queue: None,
        name: "Paid".to_owned(),
        data: json!({ "cents": 100 }),
        key: key.to_owned(),
        may_begin: false,
    }
}

#[tokio::test]
async fn paused_order_is_paid_after_resume() -> TestResult {
    let world = placed().await;
    assert_eq!(control(&world, Control::Pause).await?, ControlOutcome::Changed);
    assert_eq!(control(&world, Control::Pause).await?, ControlOutcome::Unchanged);
    world.shop.pay("4711", 100).await?;
    let batch = world.take(&SAGA).await;
    let answers = world.deliver(&SAGA, &batch).await;
    let [Disposition::Retry { reason, .. }] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(reason, "the instance was paused by ann: wrong price");
    assert_eq!(world.state("4711").await, "placed");

    assert_eq!(control(&world, Control::Resume).await?, ControlOutcome::Changed);
    world.pass(LATER).await;
    assert_eq!(world.state("4711").await, "shipped");
    assert_eq!(world.verdicts("4711", "Paid").await, [Verdict::Retried, Verdict::Handled]);
    Ok(())
}

#[tokio::test]
async fn timer_of_paused_order_waits() -> TestResult {
    let world = placed().await;
    control(&world, Control::Pause).await?;
    world.pass(TIME_TO_PAY.unsigned_abs()).await;
    assert_eq!(world.state("4711").await, "placed");
    control(&world, Control::Resume).await?;
    world.pass(LATER).await;
    assert_eq!(world.state("4711").await, "overdue");
    Ok(())
}

#[tokio::test]
async fn terminated_order_ignores_payment_and_timer() -> TestResult {
    let world = placed().await;
    world.shop.pay("4711", 100).await?;
    assert_eq!(control(&world, Control::Terminate).await?, ControlOutcome::Changed);
    assert_eq!(control(&world, Control::Terminate).await?, ControlOutcome::Unchanged);
    world.run().await;
    world.pass(2 * TIME_TO_PAY.unsigned_abs()).await;
    let view = world.shop.order("4711").await?;
    assert!(view.ended && view.body["state"] == "placed", "{view:?}");
    assert_eq!(world.take(&WAREHOUSE).await, []);
    assert_eq!(world.verdicts("4711", "Paid").await, [Verdict::Duplicate], "its token was removed");
    assert_eq!(world.verdicts("4711", "PaymentOverdue").await, [], "its timer was cancelled");
    assert!(world.engine.stores()?.read_views.oldest_unfinished(10).await?.is_empty());
    assert!(matches!(control(&world, Control::Resume).await, Err(ControlError::Ended(_))));
    Ok(())
}

#[tokio::test]
async fn late_reply_to_terminated_order_is_dropped() -> TestResult {
    let world = placed().await;
    world.shop.pay("4711", 100).await?;
    for queue in [SAGA, WAREHOUSE] {
        let batch = world.take(&queue).await;
        world.deliver(&queue, &batch).await;
    }
    control(&world, Control::Terminate).await?;
    world.run().await;
    assert_eq!(world.verdicts("4711", "Ship").await, [Verdict::Handled]);
    assert_eq!(world.verdicts("4711", "Shipped").await, [Verdict::Duplicate]);
    assert_eq!(world.order("4711").await.step, Step::Paid);
    Ok(())
}

/// The command is sent, because the order has decided it. The warehouse sees that no reply is expected.
#[tokio::test]
async fn command_of_terminated_order_is_not_executed() -> TestResult {
    let world = placed().await;
    world.shop.pay("4711", 100).await?;
    let batch = world.take(&SAGA).await;
    world.deliver(&SAGA, &batch).await;
    control(&world, Control::Terminate).await?;
    world.run().await;
    assert_eq!(world.verdicts("4711", "Ship").await, [Verdict::Duplicate]);
    Ok(())
}

#[tokio::test]
async fn event_of_operator_takes_effect_once() -> TestResult {
    let world = placed().await;
    let order = partition("4711");
    let sent = world.engine.send_event(&SYSTEM, &paid("1", order), "ann").await?;
    assert!(matches!(sent, EventDelivery::Sent(_)));
    let again = world.engine.send_event(&SYSTEM, &paid("1", order), "ann").await?;
    assert_eq!(again, EventDelivery::SentBefore);
    world.run().await;
    assert_eq!(world.state("4711").await, "shipped");
    assert_eq!(
        world.verdicts("4711", "Paid").await,
        [Verdict::Handled, Verdict::Handled],
        "sent and handled"
    );
    Ok(())
}

#[tokio::test]
async fn unsuitable_events_are_refused() -> TestResult {
    let world = placed().await;
    let order = partition("4711");
    let refusal = async |event: OperatorEvent| {
        world.engine.send_event(&SYSTEM, &event, "ann").await.unwrap_err().to_string()
    };
    let unknown = OperatorEvent { name: "Payed".to_owned(), ..paid("1", order) };
    assert_eq!(
        refusal(unknown).await,
        "no saga has an event Payed; the events are Placed, Paid, Shipped, PaymentOverdue, NotShipped"
    );
    let unreadable = OperatorEvent { data: json!({ "cents": "many" }), ..paid("1", order) };
    assert!(refusal(unreadable).await.starts_with("the data of Paid is malformed"));
    let elsewhere = OperatorEvent { queue: Some(Queue::named("news")), ..paid("1", order) };
    assert!(refusal(elsewhere).await.starts_with("no saga has an event Paid"));
    let absent = world.engine.send_event(&SYSTEM, &paid("1", partition("none")), "ann").await;
    assert!(matches!(absent, Err(SendEventError::UnknownInstance(_))));

    world.engine.send_event(&SYSTEM, &paid("1", order), "ann").await?;
    let other = OperatorEvent { data: json!({ "cents": 200 }), ..paid("1", order) };
    assert_eq!(refusal(other).await, "the id 1 belongs to another event");
    control(&world, Control::Terminate).await?;
    let ended = world.engine.send_event(&SYSTEM, &paid("2", order), "ann").await;
    assert!(matches!(ended, Err(SendEventError::Ended(_))));
    Ok(())
}

/// The states of two sagas may have the same form.
#[tokio::test]
async fn event_for_instance_of_another_saga_is_refused() -> TestResult {
    let world = placed().await;
    let (order, now) = (partition("4711"), world.host.now());
    let stored = world.store.load_latest(order, now).await?.ok_or("it is stored")?;
    assert_eq!(stored.content.queue.as_deref(), Some("saga"));
    let content = Content { queue: Some("other-saga".to_owned()), ..stored.content };
    let (loaded, version) = (Some(stored.version), stored.version + 1);
    let (add, cancel) = (Vec::new(), Vec::new());
    let write = Persist { partition: order, loaded, version, content, add, cancel };
    world.store.persist(&[write], now).await?;
    let refused = world.engine.send_event(&SYSTEM, &paid("1", order), "ann").await;
    assert!(matches!(refused, Err(SendEventError::OtherSaga(_, owner)) if owner == "other-saga"));
    Ok(())
}

#[tokio::test]
async fn actions_are_in_history_and_audit_log() -> TestResult {
    let world = placed().await;
    let order = partition("4711");
    for action in [Control::Pause, Control::Resume] {
        control(&world, action).await?;
    }
    world.engine.send_event(&SYSTEM, &paid("1", order), "ben").await?;
    control(&world, Control::Terminate).await?;
    let details = instance(&world.engine, order).await?.unwrap();
    assert_eq!(details.terminated.as_ref().map(ToString::to_string).as_deref(), Some("ann: wrong price"));
    let mut actions = details.decisions.unwrap();
    actions.retain(|decision| decision.function == "operator" && decision.source == "operator");
    actions.retain(|decision| decision.verdict == Verdict::Handled);
    let actions: Vec<&str> = actions.iter().map(|decision| decision.why.as_str()).collect();
    let expected = [
        "paused by ann: wrong price",
        "resumed by ann: wrong price",
        "sent by ben",
        "terminated by ann: wrong price",
    ];
    assert_eq!(actions, expected);
    let audit = world.engine.stores()?.failures.audit_entries(10).await?;
    let audit: Vec<String> = audit.iter().rev().map(|entry| format!("{} {}", entry.by, entry.did)).collect();
    assert_eq!(audit, ["ann paused", "ann resumed", "ben sent Paid", "ann terminated"]);
    Ok(())
}

#[tokio::test]
async fn health_reports_any_system() -> TestResult {
    let world = placed().await;
    let report = Health::over(&world.engine)?.report(&SYSTEM, "orders-tools operate").await;
    assert!(report.ok, "{report:?}");
    assert_eq!(report.has_worker, Some(false));
    assert!(
        report.concerns.iter().any(|concern| concern.contains("no worker has swept lately")),
        "{report:?}"
    );

    world.shop.pay("4711", 99).await?;
    world.run().await;
    let report = Health::over(&world.engine)?.report(&SYSTEM, "orders-tools operate").await;
    assert_eq!(report.dead_letters, Some(1));
    let next = "`orders-tools operate failures retry --all --dry-run`";
    assert!(report.concerns.iter().any(|concern| concern.contains(next)), "{report:?}");
    Ok(())
}
