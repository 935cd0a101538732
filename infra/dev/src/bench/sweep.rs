//! The cost of a sweep of the outboxes, which must not depend on the number of settled records.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use backend::{Config, SystemHost};
use contracts::sample;
use embedded::{Settings, Store};
use imports::job::earlier_view;
use imports::queues::QUEUES;
use messages::{Host, Outgoing, Reporter, SendError, SendMessages};
use mongo::OnDifference;
use outbox::dispatch::sweep;
use outbox::{Dispatcher, Policy, SweepOutbox};
use saga::{Persist, Stores};
use serde::Serialize;

/// The maximum ratio of the medians for many and few settled records, which allows for noise.
pub const BOUND: f64 = 1.5;

/// The number of records stored in one write.
const FILL: usize = 1_000;
/// The number of due records in a sweep that is not idle.
const DUE: usize = 10;
/// The number of measured sweeps of each type.
const SWEEPS: usize = 51;

/// The cost of sweeps for a number of settled records.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The number of settled records.
    pub settled: usize,
    /// The median of an idle sweep, in microseconds.
    pub idle_us: f64,
    /// The median of a sweep that finds, performs and settles ten records, in microseconds.
    pub due_us: f64,
    /// The store's query plan for due records.
    pub plan: String,
}

/// The result of the benchmark, from few to many records.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The results for each number of settled records.
    pub rows: Vec<Row>,
    /// The ratio of the times of an idle sweep with the largest and with the smallest number of records.
    pub idle_ratio: f64,
    /// The corresponding ratio for a sweep that is not idle.
    pub due_ratio: f64,
}

impl Report {
    /// Returns `true` if the cost does not depend on the number of settled records.
    pub fn holds(&self) -> bool {
        self.idle_ratio <= BOUND && self.due_ratio <= BOUND
    }
}

/// Measures SQLite in a temporary folder below `dir`.
pub async fn in_folder(dir: &Path, sizes: &[usize]) -> anyhow::Result<Report> {
    let folder = tempfile::tempdir_in(dir)?;
    let store = Arc::new(Store::open(folder.path(), Arc::new(SystemHost), Settings::new(&QUEUES))?);
    let backend = backend::embedded(&store, Arc::new(SystemHost), Arc::new(()), Config::default());
    measure(backend.ports.engine.stores()?, sizes).await
}

/// Measures MongoDB in a temporary database on the configured server.
pub async fn in_database(mut config: Config, sizes: &[usize]) -> anyhow::Result<Report> {
    let own = format!("_sweep_{}", SystemHost.fresh_id().simple());
    config.services.mongodb_database.push_str(&own);
    let mongo = backend::services::database(&config, &aws::config().await).await?;
    mongo.ensure_indexes(OnDifference::Report).await?;
    let (sagas, sessions) = (mongo.saga_outbox(), mongo.session_outbox());
    let report = measure(&Stores::of(&Arc::new(mongo.clone()), sagas, sessions), sizes).await;
    mongo.drop_database().await?;
    report
}

/// Fills the empty stores up to each of the sizes, in ascending order, and sweeps.
async fn measure(stores: &Stores, sizes: &[usize]) -> anyhow::Result<Report> {
    let bench = Bench::new(stores);
    let (mut stored, mut rows) = (0, Vec::new());
    for settled in sizes {
        while stored < *settled {
            let count = FILL.min(settled - stored);
            bench.store(count, 0).await?;
            stored += count;
        }
        rows.push(bench.sweeps(*settled).await?);
    }
    let ratio = |of: fn(&Row) -> f64| match (rows.first(), rows.last()) {
        (Some(first), Some(last)) => of(last) / of(first),
        _ => 1.0,
    };
    let (idle_ratio, due_ratio) = (ratio(|row| row.idle_us), ratio(|row| row.due_us));
    Ok(Report { rows, idle_ratio, due_ratio })
}

/// A sender that discards every message, because only the store is measured.
struct NullSink;

#[async_trait]
impl SendMessages for NullSink {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        messages.iter().map(|_| Ok(())).collect()
    }
}

struct Bench<'a> {
    stores: &'a Stores,
    outboxes: [Arc<dyn SweepOutbox>; 2],
    dispatcher: Dispatcher,
}

impl<'a> Bench<'a> {
    fn new(stores: &'a Stores) -> Self {
        let dispatcher = Dispatcher {
            send: Arc::new(NullSink),
            views: Arc::clone(&stores.write_views),
            records: Arc::clone(&stores.write_records),
            earlier_view,
            policy: Policy::default(),
            reporter: Reporter {
                function: "bench",
                host: Arc::new(SystemHost),
                observer: Arc::new(()),
                began_at: None,
                attempt: None,
                state: None,
            },
        };
        let outboxes: [Arc<dyn SweepOutbox>; 2] = [stores.session_outbox.clone(), stores.saga_outbox.clone()];
        Self { stores, outboxes, dispatcher }
    }

    /// Stores the documents of ended searches, each with this many due effects.
    async fn store(&self, count: usize, effects: usize) -> anyhow::Result<()> {
        let now = SystemHost.now();
        let document = |_| {
            let partition = sample::partition(&SystemHost);
            let add =
                (0..effects).map(|_| sample::entry(&SystemHost, partition, now)).collect::<Result<_, _>>()?;
            let write = sample::persist(partition, None, sample::ended(&SystemHost, now));
            anyhow::Ok(Persist { add, ..write })
        };
        let writes = (0..count).map(document).collect::<anyhow::Result<Vec<_>>>()?;
        self.stores.write_documents.persist(&writes, now).await?;
        Ok(())
    }

    async fn sweeps(&self, settled: usize) -> anyhow::Result<Row> {
        let (mut idle, mut due) = (Vec::new(), Vec::new());
        for _ in 0..SWEEPS {
            idle.push(self.sweep(0).await?);
            self.store(DUE, 1).await?;
            due.push(self.sweep(DUE).await?);
        }
        let plan = self.stores.saga_outbox.plan().await?;
        Ok(Row { settled, idle_us: median(idle), due_us: median(due), plan })
    }

    /// Sweeps once. Returns the duration in microseconds.
    async fn sweep(&self, expected: usize) -> anyhow::Result<f64> {
        let begun = Instant::now();
        let performed = sweep(&self.outboxes, &self.dispatcher, None).await?.entries;
        let took = begun.elapsed();
        anyhow::ensure!(performed == expected, "a sweep performed {performed} effects, not {expected}");
        Ok(took.as_secs_f64() * 1e6)
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
