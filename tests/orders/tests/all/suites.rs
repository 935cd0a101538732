//! The engine's contract suites with the queues of orders, on SQLite.

use std::sync::Arc;

use embedded::{Settings, Store};
use orders::{QUEUES, WAREHOUSE};
use saga::{SAGA, Views};
use tempfile::TempDir;
use testing::ManualHost;
use testing::sample::Samples;

use crate::world::TestResult;

fn open() -> (TempDir, Arc<ManualHost>, Store) {
    let (dir, host) = (TempDir::new().unwrap(), Arc::new(ManualHost::seeded(1)));
    let store = Store::open(dir.path(), host.clone(), Settings::new(&QUEUES)).unwrap();
    (dir, host, store)
}

#[tokio::test]
async fn sagas() -> TestResult {
    let (_dir, host, store) = open();
    let (sweep, retention) = (store.saga_outbox(), store.settings().saga_retention);
    let ports = testing::documents::Ports {
        read: &store,
        write: &store,
        sweep: &sweep,
        host: &*host,
        retention,
        damage: None,
        damage_entry: None,
    };
    testing::documents::all(&ports).await
}

#[tokio::test]
async fn sessions() -> TestResult {
    let (_dir, host, store) = open();
    let sweep = store.session_outbox();
    let ports = testing::sessions::Ports::of(&store, &sweep, &*host);
    testing::sessions::all(&ports).await
}

#[tokio::test]
async fn views() -> TestResult {
    let (_dir, host, store) = open();
    let shared = Arc::new(store.clone());
    let views = Views { saga: Samples, written: shared.clone(), documents: shared, host: host.clone() };
    let ports = testing::views::Ports { views: &views, write: &store, documents: &store, host: &*host };
    testing::views::all(&ports).await
}

#[tokio::test]
async fn ledger() -> TestResult {
    let (_dir, host, store) = open();
    let ports = testing::ledger::Ports { claim: &store, grant: &store, check: &store, host: &*host };
    testing::ledger::all(&ports).await
}

#[tokio::test]
async fn processed() -> TestResult {
    let (_dir, host, store) = open();
    testing::processed::all(&testing::processed::Ports { store: &store, host: &*host }).await
}

#[tokio::test]
async fn queues() -> TestResult {
    for (queue, other) in [(SAGA, WAREHOUSE), (WAREHOUSE, SAGA)] {
        let (_dir, host, store) = open();
        let ports = testing::queues::Ports {
            send: &store,
            receive: &store,
            inspect: &store,
            host: &*host,
            queues: &QUEUES,
            queue,
            other,
            fair: true,
        };
        testing::queues::all(&ports).await?;
    }
    Ok(())
}
