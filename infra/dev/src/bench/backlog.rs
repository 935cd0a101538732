//! The time and the calls of sweeps over many searches that are due simultaneously.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use backend::{Config, SystemHost};
use embedded::{Settings, Store};
use imports::job::earlier_view;
use imports::queues::QUEUES;
use messages::{DecisionRecord, DecisionSink, Host, Metric, Outgoing, Reporter, SendError, SendMessages};
use mongo::OnDifference;
use outbox::dispatch::sweep;
use outbox::{Dispatcher, Entry, Policy, SweepOutbox};
use saga::{Persist, Stores};
use serde::Serialize;
use testing::sample;

/// The duration of a call to the queue, about that of SQS within a region.
pub const QUEUE_CALL: Duration = Duration::from_millis(10);

/// The number of searches stored in one write.
const FILL: usize = 1_000;

/// The work that is due for many searches simultaneously.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Want {
    /// The searches have ended, and each has an unwritten view.
    Views,
    /// The searches timed out, and each has a message to send.
    Timeouts,
}

/// The cost of a complete sweep.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The due work.
    pub want: Want,
    /// The number of searches.
    pub searches: usize,
    /// The duration.
    pub seconds: f64,
    /// Calls to the store.
    pub store_calls: u64,
    /// Calls to the queue, each of up to ten messages.
    pub queue_calls: u64,
}

/// Measures SQLite in a temporary folder below `dir`.
///
/// # Errors
/// Returns an error if the store is unavailable.
pub async fn in_folder(config: &Config, dir: &Path, sizes: &[usize]) -> anyhow::Result<Vec<Row>> {
    let folder = tempfile::tempdir_in(dir)?;
    let store = Arc::new(Store::open(folder.path(), Arc::new(SystemHost), Settings::new(&QUEUES))?);
    let backend = backend::embedded(&store, Arc::new(SystemHost), Arc::new(()), config.clone());
    measure(backend.ports.engine.stores()?, sizes, config.outbox).await
}

/// Measures MongoDB in a temporary database on the configured server.
///
/// # Errors
/// Returns an error if the server is unavailable.
pub async fn in_database(mut config: Config, sizes: &[usize]) -> anyhow::Result<Vec<Row>> {
    let own = format!("_backlog_{}", SystemHost.fresh_id().simple());
    config.services.mongodb_database.push_str(&own);
    let mongo = backend::services::database(&config, &aws::config().await).await?;
    mongo.ensure_indexes(OnDifference::Report).await?;
    let (sagas, sessions) = (mongo.saga_outbox(), mongo.session_outbox());
    let stores = Stores::of(&Arc::new(mongo.clone()), sagas, sessions);
    let rows = measure(&stores, sizes, config.outbox).await;
    mongo.drop_database().await?;
    rows
}

async fn measure(stores: &Stores, sizes: &[usize], policy: Policy) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for want in [Want::Views, Want::Timeouts] {
        for searches in sizes {
            store(stores, want, *searches).await?;
            rows.push(sweep_all(stores, want, *searches, policy).await?);
        }
    }
    Ok(rows)
}

async fn store(stores: &Stores, want: Want, searches: usize) -> anyhow::Result<()> {
    let now = SystemHost.now();
    for filled in (0..searches).step_by(FILL) {
        let document = |_| {
            let partition = sample::partition(&SystemHost);
            let entry = match want {
                Want::Views => {
                    let view = sample::view(&SystemHost, partition, 1, true);
                    Entry::view(messages::MessageId::from_uuid(SystemHost.fresh_id()), view, now)
                }
                Want::Timeouts => sample::entry(&SystemHost, partition, now)?,
            };
            let write = sample::persist(partition, None, sample::ended(&SystemHost, now));
            anyhow::Ok(Persist { add: vec![entry], ..write })
        };
        let writes =
            (filled..searches.min(filled + FILL)).map(document).collect::<anyhow::Result<Vec<_>>>()?;
        stores.write_documents.persist(&writes, now).await?;
    }
    Ok(())
}

async fn sweep_all(stores: &Stores, want: Want, searches: usize, policy: Policy) -> anyhow::Result<Row> {
    let (queue, observer) = (Arc::new(Queue::default()), Arc::new(StoreCalls::default()));
    let dispatcher = Dispatcher {
        send: queue.clone(),
        views: Arc::clone(&stores.write_views),
        earlier_view,
        policy,
        reporter: Reporter {
            function: "bench",
            host: Arc::new(SystemHost),
            observer: observer.clone(),
            began_at: None,
            attempt: None,
            state: None,
        },
    };
    let outboxes: [Arc<dyn SweepOutbox>; 2] = [stores.session_outbox.clone(), stores.saga_outbox.clone()];
    let begun = Instant::now();
    let performed = sweep(&outboxes, &dispatcher, None).await?.entries;
    let seconds = begun.elapsed().as_secs_f64();
    anyhow::ensure!(performed == searches, "a sweep performed {performed} effects, not {searches}");
    let queue_calls = queue.calls.load(Ordering::Relaxed);
    let store_calls = observer.calls.load(Ordering::Relaxed);
    Ok(Row { want, searches, seconds, store_calls, queue_calls })
}

/// A sender that accepts every message with the delay of a remote queue.
#[derive(Default)]
struct Queue {
    calls: AtomicU64,
}

#[async_trait]
impl SendMessages for Queue {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(QUEUE_CALL).await;
        messages.iter().map(|_| Ok(())).collect()
    }
}

#[derive(Default)]
struct StoreCalls {
    calls: AtomicU64,
}

impl DecisionSink for StoreCalls {
    fn observe(&self, _: DecisionRecord) {}

    fn measure(&self, measure: Metric, value: u64) {
        if measure == Metric::STORAGE_CALLS {
            self.calls.fetch_add(value, Ordering::Relaxed);
        }
    }
}
