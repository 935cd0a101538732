//! Functions that use a queue or a service that the table does not declare.

use std::sync::Arc;

use contracts::ManualHost;
use local::{FaultInjection, OpenRunnerError, Runner};
use messages::Queue;
use orders::shop::partition;
use orders::{
    Command, DISPATCH_OUTBOX, News, ORDERS_SAGA, OrderEvent, Orders, QUEUES, SYSTEM, WAREHOUSE,
    WAREHOUSE_FAULTS, WAREHOUSE_FUNCTION,
};
use outbox::session::CommitError;
use saga::{Engine, Function, SAGA, Service, Source, System};
use tempfile::TempDir;

use crate::world::TestResult;

/// The saga, which declares neither its ledger nor its announcements.
static SAGA_FUNCTION: Function<Engine> = Function {
    name: "orders-saga",
    services: &[Service::DATABASE],
    source: Source::Queue(SAGA),
    sends: &[WAREHOUSE],
    drains: &[],
    build: Some(|engine| engine.run("orders-saga", Orders)),
};

static INCOMPLETE: System<Engine> = System {
    name: SYSTEM.name,
    queues: &QUEUES,
    functions: &[&SAGA_FUNCTION, &WAREHOUSE_FUNCTION, &WAREHOUSE_FAULTS, &DISPATCH_OUTBOX],
};

async fn open(
    system: &'static System<Engine>,
) -> Result<(TempDir, Runner<Engine>), Box<dyn std::error::Error + Send + Sync>> {
    let dir = TempDir::new()?;
    let host = Arc::new(ManualHost::seeded(1));
    let runner = Runner::open(system, dir.path(), host, FaultInjection::default()).await?;
    Ok((dir, runner))
}

#[test]
fn table_has_no_faults() {
    assert_eq!(SYSTEM.check(), Ok(()));
}

#[tokio::test]
async fn undeclared_service_stops_the_start() -> TestResult {
    let (_dir, runner) = open(&INCOMPLETE).await?;
    let missing = runner.run_until(async {}).await.unwrap_err();
    assert_eq!(
        missing.to_string(),
        "service ledger of orders-saga is not set; it is used by the function, but the table does not declare it"
    );
    Ok(())
}

#[tokio::test]
async fn undeclared_queue_is_refused() -> TestResult {
    let (_dir, runner) = open(&INCOMPLETE).await?;
    let engine = runner.ports().declared_by(&SAGA_FUNCTION, INCOMPLETE.queues);
    let number = "4711".to_owned();
    engine.send_now("test", partition(&number), &Command::Ship { number: number.clone() }).await?;
    let news = News::OrderEnded { number: number.clone(), shipped: true };
    let refused = engine.send_now("test", partition(&number), &news).await.unwrap_err();
    assert!(refused.is_retryable() && refused.to_string().contains("queue news"), "{refused}");
    Ok(())
}

/// The ledger and its tokens are two permissions of a role.
#[tokio::test]
async fn tokens_and_ledger_are_declared_apart() -> TestResult {
    let (_dir, runner) = open(&SYSTEM).await?;
    let services = |function| {
        let engine = runner.ports().declared_by(function, SYSTEM.queues);
        (engine.partitions.is_ok(), engine.check_tokens.is_ok())
    };
    assert_eq!(services(&ORDERS_SAGA), (true, false));
    assert_eq!(services(&WAREHOUSE_FUNCTION), (false, true));
    Ok(())
}

/// The shop, which declares neither the ledger nor the queue of the warehouse.
static SHOP: Function<Engine> = Function {
    name: "shop",
    services: &[Service::DATABASE],
    source: Source::Requests,
    sends: &[SAGA],
    drains: &[],
    build: None,
};

static WITH_SHOP: System<Engine> = System {
    name: SYSTEM.name,
    queues: &QUEUES,
    functions: &[&SAGA_FUNCTION, &WAREHOUSE_FUNCTION, &WAREHOUSE_FAULTS, &DISPATCH_OUTBOX, &SHOP],
};

#[tokio::test]
async fn requests_use_only_what_their_functions_declare() -> TestResult {
    let (_dir, runner) = open(&WITH_SHOP).await?;
    let engine = runner.request_ports();
    let entry = engine.entry_point("shop")?;
    let mut session = entry.session(partition("4711"));
    session.send(&OrderEvent::Paid { cents: 1 })?;
    let Err(CommitError::Tokens(missing)) = session.commit().await else { panic!("the ledger is used") };
    assert!(missing.chain().contains("service ledger of"), "{missing}");
    let number = "4711".to_owned();
    let ship = Command::Ship { number: number.clone() };
    let refused = engine.send_now("shop", partition(&number), &ship).await.unwrap_err();
    assert!(refused.to_string().contains("queue warehouse"), "{refused}");
    // An operator is not restricted.
    runner.ports().send_now("operator", partition(&number), &ship).await?;
    Ok(())
}

#[tokio::test]
async fn wrong_table_is_not_opened() -> TestResult {
    static REQUESTS: Function<Engine> = Function {
        name: "requests",
        services: &[],
        source: Source::Requests,
        sends: &[Queue::named("post")],
        drains: &[],
        build: None,
    };
    static WRONG: System<Engine> = System { name: SYSTEM.name, queues: &QUEUES, functions: &[&REQUESTS] };
    let error = open(&WRONG).await.err().unwrap();
    let error = error.downcast::<OpenRunnerError>()?;
    assert!(matches!(*error, OpenRunnerError::Table(_)), "{error}");
    assert!(error.to_string().ends_with("requests sends to post, which is not specified"), "{error}");
    Ok(())
}
