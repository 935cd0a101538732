//! How a deployment is: what answers, what waits, and what nobody has done anything about.

use std::collections::BTreeMap;
use std::sync::Arc;

use dedup::RememberProcessed;
use futures::future::{join3, join4, try_join};
use imports::{FindObjects, JobState, Jobs, ObjectKey, Ports, ProjectId};
use jiff::Timestamp;
use messages::store::chain;
use messages::{Depth, Host, InspectQueues, PartitionKey, Queue, StoreError, Token};
use outbox::InspectOutbox;
use saga::failures::{Operation, Selection, Standing};
use saga::{Missing, Partitions, Stores, Sweeps};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// The most searches that are counted.
const MAX_SEARCHES: usize = 1_000;
/// How many records with effects are looked through for the oldest one, at a time and altogether in each outbox.
const RECORDS: usize = 200;
const MAX_RECORDS: usize = 1_000;
/// What no message is called.
const NOBODYS: &str = "health";
/// How long an effect may be due before somebody should look, in seconds; the default of the template's alarm.
const LATE: u64 = 900;

/// Looks how a deployment is.
#[derive(Clone)]
pub struct Health {
    stores: Stores,
    partitions: Option<Partitions>,
    processed: Option<Arc<dyn RememberProcessed>>,
    bucket: Option<(Arc<dyn FindObjects>, String)>,
    sweeps: Sweeps,
    queues: Arc<dyn InspectQueues>,
    jobs: Jobs,
    host: Arc<dyn Host>,
}

/// Whether a store or queue answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Part {
    /// `database`, `ledger`, `processed messages`, `files`, or `queue` and its name.
    pub name: String,
    /// Whether it answers.
    pub ok: bool,
    /// What is wrong, in general words; the log has the rest.
    #[schema(required)]
    pub why: Option<&'static str>,
}

/// Whether everything answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Reach {
    /// Whether everything does.
    pub ok: bool,
    /// Each store and queue.
    pub parts: Vec<Part>,
}

/// How much is in a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct QueueReport {
    /// Its name.
    pub queue: String,
    /// Messages that may be received now.
    pub visible: u64,
    /// Messages that were received and not answered.
    pub in_flight: u64,
    /// Messages that are held back.
    pub delayed: u64,
    /// How many seconds ago the oldest one was sent; null when there is none, or the queue does not tell.
    #[schema(required)]
    pub oldest_seconds: Option<u64>,
}

/// An operation on failures that is running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RunningOperation {
    /// Its id.
    pub operation_id: Uuid,
    /// Who asked for it.
    pub by: String,
    /// How many failures there were.
    pub total: u64,
    /// How many were put back to work.
    pub retried: u64,
}

/// How a deployment is. What the database would say is null while it does not answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Report {
    /// Whether every store and queue answers.
    pub ok: bool,
    /// Each store and queue.
    pub parts: Vec<Part>,
    /// What somebody should do something about, in words.
    pub concerns: Vec<String>,
    /// When the outboxes were last swept to their end, to the minute; null when they never were.
    #[schema(required)]
    pub last_sweep: Option<String>,
    /// For how many seconds the oldest effect has been due, or has been failing; null when none is due. At most 1,000
    /// records of each outbox are looked through.
    #[schema(required)]
    pub oldest_effect_seconds: Option<u64>,
    /// The queues that are known to whoever answers, and answer.
    pub queues: Vec<QueueReport>,
    /// Searches that have not ended, by state; at most 1,000 are counted, the oldest.
    #[schema(required)]
    pub searches: Option<BTreeMap<String, u64>>,
    /// Failures that nobody has done anything about.
    #[schema(required)]
    pub open_failures: Option<u64>,
    /// Effects among them.
    #[schema(required)]
    pub poisoned_effects: Option<u64>,
    /// The operation on failures that is running.
    #[schema(required)]
    pub operation: Option<RunningOperation>,
}

impl Health {
    /// Over the ports of whoever asks. What is not configured there, it says nothing of.
    ///
    /// # Errors
    /// When no database is configured.
    pub fn over(ports: &Ports) -> Result<Self, Missing> {
        Ok(Self {
            stores: ports.engine.stores()?.clone(),
            partitions: ports.engine.partitions().ok().cloned(),
            processed: ports.engine.processed.clone().ok(),
            bucket: ports.bucket.clone().ok().map(|bucket| (bucket, ports.settings.key_prefix.clone())),
            sweeps: ports.engine.sweeps()?,
            queues: Arc::clone(&ports.engine.inspect),
            jobs: ports.jobs()?,
            host: Arc::clone(&ports.engine.host),
        })
    }

    /// The database.
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// Whether everything answers.
    pub async fn reach(&self) -> Reach {
        self.look().await.reach
    }

    /// How everything is.
    pub async fn report(&self) -> Report {
        let Looked { reach, depths, last_sweep } = self.look().await;
        let mut report = Report {
            ok: reach.ok,
            parts: reach.parts,
            concerns: Vec::new(),
            last_sweep: last_sweep.as_ref().ok().copied().flatten().map(|at| at.to_string()),
            oldest_effect_seconds: None,
            queues: depths.into_iter().map(|(queue, depth)| QueueReport::of(&queue, depth)).collect(),
            searches: None,
            open_failures: None,
            poisoned_effects: None,
            operation: None,
        };
        if last_sweep.is_ok() {
            self.ask_database(&mut report).await;
        }
        report.concerns = report.concerns();
        report
    }

    async fn look(&self) -> Looked {
        let others = join3(self.ask_ledger(), self.ask_processed(), self.ask_bucket());
        let (last_sweep, (ledger, processed, files), counted) =
            join3(self.sweeps.last(), others, self.queues.depths()).await;
        let mut parts = vec![Part::of("database".to_owned(), &last_sweep)];
        let asked = [("ledger", ledger), ("processed messages", processed), ("files", files)];
        parts
            .extend(asked.into_iter().filter_map(|(name, answer)| Some(Part::of(name.to_owned(), &answer?))));
        let mut depths = BTreeMap::new();
        for (queue, depth) in counted {
            parts.push(Part::of(format!("queue {queue}"), &depth));
            depths.extend(depth.map(|depth| (queue, depth)));
        }
        Looked { reach: Reach { ok: parts.iter().all(|part| part.ok), parts }, depths, last_sweep }
    }

    /// Whether a message was processed that nobody has sent.
    async fn ask_processed(&self) -> Option<Result<bool, StoreError>> {
        Some(self.processed.as_ref()?.is_remembered(NOBODYS, self.host.now()).await)
    }

    /// Whether there are files of a search that nobody has announced.
    async fn ask_bucket(&self) -> Option<Result<bool, StoreError>> {
        let (bucket, key_prefix) = self.bucket.as_ref()?;
        let nobody = Uuid::nil();
        let folder =
            ObjectKey::folder(key_prefix, ProjectId::from_uuid(nobody), PartitionKey::from_uuid(nobody));
        Some(bucket.find(&folder).await.map(|found| !found.is_empty()))
    }

    /// Whether a partition that nobody has admits a token that nobody was given.
    async fn ask_ledger(&self) -> Option<Result<bool, StoreError>> {
        let granted = &self.partitions.as_ref()?.granted;
        let partition = PartitionKey::from_uuid(Uuid::nil());
        let token = Token::minted_at_entry(partition, Uuid::nil());
        Some(granted.is_granted(partition, &token, self.host.now()).await)
    }

    /// One thing that cannot be read leaves the others.
    async fn ask_database(&self, report: &mut Report) {
        let effects = async {
            let [sagas, sessions] = [&self.stores.saga_outbox, &self.stores.session_outbox];
            let (one, other) = try_join(self.due_since(&**sagas), self.due_since(&**sessions)).await?;
            Ok([one, other].into_iter().flatten().min())
        };
        let failures = async {
            let all = Selection::of(Standing::Open);
            let effects = Selection { place: Some("outbox".to_owned()), ..Selection::of(Standing::Open) };
            try_join(self.count_failures(&all), self.count_failures(&effects)).await
        };
        let asked =
            (effects, self.jobs.oldest_unfinished(MAX_SEARCHES), failures, self.stores.failures.running());
        let (due_since, jobs, failures, operation) = join4(asked.0, asked.1, asked.2, asked.3).await;
        let age =
            |since: Timestamp| u64::try_from(self.host.now().duration_since(since).as_secs()).unwrap_or(0);
        report.oldest_effect_seconds = known("effects", due_since).flatten().map(age);
        report.searches = known("searches", jobs).map(|jobs| {
            let mut states: BTreeMap<String, u64> =
                [JobState::Uploading, JobState::Uploaded, JobState::Parsing]
                    .map(|state| (state.to_string(), 0))
                    .into();
            jobs.iter().for_each(|job| *states.entry(job.state.to_string()).or_default() += 1);
            states
        });
        (report.open_failures, report.poisoned_effects) = known("failures", failures).unzip();
        report.operation = known("operations", operation).flatten().map(RunningOperation::from);
    }

    /// Since when the oldest effect of an outbox is due that is not given up.
    async fn due_since(&self, outbox: &dyn InspectOutbox) -> Result<Option<Timestamp>, StoreError> {
        let (now, mut after, mut oldest): (_, Option<String>, Option<Timestamp>) =
            (self.host.now(), None, None);
        for _ in 0..MAX_RECORDS / RECORDS {
            let page = outbox.pending(after.as_deref(), RECORDS).await?;
            let entries = page.iter().flat_map(|record| &record.entries).flatten();
            let due =
                entries.filter(|entry| !entry.poisoned && entry.due_at <= now).map(|entry| entry.due_at);
            oldest = oldest.into_iter().chain(due).min();
            match page.last() {
                Some(last) if page.len() == RECORDS => after = Some(last.id.clone()),
                Some(_) | None => break,
            }
        }
        Ok(oldest)
    }

    async fn count_failures(&self, selection: &Selection) -> Result<u64, StoreError> {
        Ok(self.stores.failures.groups(selection).await?.iter().map(|group| group.count).sum())
    }
}

/// What everybody is told, and what it was made of.
struct Looked {
    reach: Reach,
    depths: BTreeMap<Queue, Depth>,
    last_sweep: Result<Option<Timestamp>, StoreError>,
}

fn known<T>(what: &str, answer: Result<T, StoreError>) -> Option<T> {
    answer
        .inspect_err(|error| tracing::error!(what, error = chain(error), "looking how things are failed"))
        .ok()
}

impl Part {
    fn of<T>(name: String, answer: &Result<T, StoreError>) -> Self {
        let why = answer.as_ref().err().map(|error| {
            tracing::error!(part = name, error = chain(error), "something does not answer");
            if error.is_retryable() { "it does not answer" } else { "what it answers is of no use" }
        });
        Self { name, ok: why.is_none(), why }
    }
}

impl QueueReport {
    fn of(queue: &Queue, depth: Depth) -> Self {
        let Depth { visible, in_flight, delayed, oldest } = depth;
        let oldest_seconds = oldest.map(|oldest| oldest.as_secs());
        Self { queue: queue.name().to_owned(), visible, in_flight, delayed, oldest_seconds }
    }
}

impl From<Operation> for RunningOperation {
    fn from(operation: Operation) -> Self {
        let Operation { id, by, total, retried, .. } = operation;
        Self { operation_id: id.as_uuid(), by, total, retried }
    }
}

impl Report {
    fn concerns(&self) -> Vec<String> {
        let silent = self.parts.iter().filter_map(|part| Some(format!("{}: {}", part.name, part.why?)));
        let failures = self.open_failures.filter(|open| *open > 0).map(|open| match open {
            1 => "1 failure is open".to_owned(),
            open => format!("{open} failures are open"),
        });
        let late = self.oldest_effect_seconds.filter(|age| *age >= LATE);
        let late =
            late.map(|age| format!("an effect has been due for {} min, and is not performed", age / 60));
        silent.chain(failures).chain(late).collect()
    }
}
