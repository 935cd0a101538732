//! The engine's contract suites with the queues of orders, on SQLite.

use std::sync::Arc;

use contracts::ManualHost;
use contracts::sample::Samples;
use embedded::{Settings, Store};
use orders::{QUEUES, WAREHOUSE};
use saga::{SAGA, Views};
use tempfile::TempDir;

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
    let ports = contracts::documents::Ports {
        read: &store,
        write: &store,
        sweep: &sweep,
        host: &*host,
        retention,
        damage: None,
        damage_entry: None,
    };
    contracts::documents::all(&ports).await
}

#[tokio::test]
async fn sessions() -> TestResult {
    let (_dir, host, store) = open();
    let sweep = store.session_outbox();
    let ports = contracts::sessions::Ports::of(&store, &sweep, &*host);
    contracts::sessions::all(&ports).await
}

#[tokio::test]
async fn views() -> TestResult {
    let (_dir, host, store) = open();
    let shared = Arc::new(store.clone());
    let views = Views { saga: Samples, written: shared.clone(), documents: shared, host: host.clone() };
    let ports = contracts::views::Ports { views: &views, write: &store, documents: &store, host: &*host };
    contracts::views::all(&ports).await
}

#[tokio::test]
async fn ledger() -> TestResult {
    let (_dir, host, store) = open();
    let ports = contracts::ledger::Ports { claim: &store, grant: &store, check: &store, host: &*host };
    contracts::ledger::all(&ports).await
}

#[tokio::test]
async fn processed() -> TestResult {
    let (_dir, host, store) = open();
    contracts::processed::all(&contracts::processed::Ports { store: &store, host: &*host }).await
}

#[tokio::test]
async fn queues() -> TestResult {
    for (queue, other) in [(SAGA, WAREHOUSE), (WAREHOUSE, SAGA)] {
        let (_dir, host, store) = open();
        let ports = contracts::queues::Ports {
            send: &store,
            receive: &store,
            inspect: &store,
            host: &*host,
            queues: &QUEUES,
            queue,
            other,
            fair: true,
        };
        contracts::queues::all(&ports).await?;
    }
    Ok(())
}
