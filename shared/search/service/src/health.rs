//! The state of a deployment: what responds and can be written, what waits, and what an operator has to do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use dedup::ProcessedMessages;
use futures::future::{join3, join4, try_join};
use imports::queues::{PARSE, QUEUES};
use imports::{FindObjects, InspectMachine, Job, JobState, Jobs, ObjectKey, Ports, ProjectId};
use jiff::{SignedDuration, Timestamp};
use messages::store::chain;
use messages::{Depth, Host, InspectQueues, PartitionKey, Queue, QueueSpec, StoreError, Token};
use outbox::{InspectOutbox, Key, Write, WriteRecords};
use saga::failures::{FailureStatus, Operation, Selection};
use saga::{MissingSetting, Partitions, Stores, SweepHeartbeat, System};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// The maximum number of searches that are counted.
const MAX_SEARCHES: usize = 1_000;
/// The number of records with effects that are examined for the oldest one, at a time and in total for each outbox.
const RECORDS: usize = 200;
const MAX_RECORDS: usize = 1_000;
/// The name of a message that is never sent.
const UNSENT_MESSAGE: &str = "health";
/// The age of a due effect at which an operator should investigate, in seconds; the default of the template's alarm.
const LATE: u64 = 900;
/// The time after which a missing sweep means that no worker runs: sweeps end, and are noted, about once a minute.
const NO_SWEEP: SignedDuration = SignedDuration::from_mins(5);
/// The time for which the outcome of a write is reported again. Every caller may request the health of a deployment,
/// and a durable write is expensive.
const WRITE_EVERY: SignedDuration = SignedDuration::from_secs(10);
/// The age at which a search that waits for a message counts as stalled if none is pending for it. No queue retries a
/// message for this long.
const STALLED_AFTER: SignedDuration = SignedDuration::from_hours(24);
/// The number of documents that are read at a time.
const DOCUMENTS: usize = 100;
/// The maximum number of stalled searches that a concern names.
const MAX_NAMED: usize = 3;
/// The free space below which an import of ordinary size may fail, in bytes.
const LOW_SPACE: u64 = 100 << 20;

/// Checks the health of a deployment.
#[derive(Clone)]
pub struct Health {
    stores: Stores,
    partitions: Option<Partitions>,
    processed: Option<Arc<dyn ProcessedMessages>>,
    bucket: Option<(Arc<dyn FindObjects>, String)>,
    sweeps: SweepHeartbeat,
    queues: Arc<dyn InspectQueues>,
    jobs: Jobs,
    host: Arc<dyn Host>,
    write: Arc<dyn WriteRecords>,
    written: Arc<Mutex<Option<LastWrite>>>,
    machine: Option<Arc<dyn InspectMachine>>,
    system: &'static System<Ports>,
}

/// The last write of the record.
#[derive(Debug, Clone, Copy)]
struct LastWrite {
    at: Timestamp,
    /// The reason of a failure.
    why: Option<&'static str>,
}

/// The health of a store or queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Part {
    /// `database`, `ledger`, `processed messages`, `files`, or `queue` and its name.
    pub name: String,
    /// `true` if it responds.
    pub ok: bool,
    /// The problem in general terms; the log has the details.
    #[schema(required)]
    pub why: Option<&'static str>,
}

/// The reachability of all stores and queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Reachability {
    /// `true` if everything responds.
    pub ok: bool,
    /// Each store and queue.
    pub parts: Vec<Part>,
}

/// The depth of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct QueueReport {
    /// Its name.
    pub queue: String,
    /// Messages that are visible.
    pub visible: u64,
    /// Messages that were received and not acknowledged.
    pub in_flight: u64,
    /// Messages that are delayed.
    pub delayed: u64,
    /// The age of the oldest message in seconds; null if there is none, or the queue does not report it.
    #[schema(required)]
    pub oldest_seconds: Option<u64>,
}

/// An operation on failures that is running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RunningOperation {
    /// The id of the operation.
    pub operation_id: Uuid,
    /// The operator who started it.
    pub by: String,
    /// The number of selected failures.
    pub total: u64,
    /// The number of failures retried so far.
    pub retried: u64,
}

/// The health of a deployment. Fields from the database are null while it is unavailable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Report {
    /// `true` if every store and queue responds, and the database can be written.
    pub ok: bool,
    /// Each store and queue.
    pub parts: Vec<Part>,
    /// Problems that need an operator, in plain language.
    pub concerns: Vec<String>,
    /// The time at which the last complete sweep of the outboxes ended, to the minute; null if there was none.
    #[schema(required)]
    pub last_sweep: Option<String>,
    /// The time in seconds since the oldest effect became due or began to fail; null if none is due. Up to 1,000
    /// records of each outbox are examined.
    #[schema(required)]
    pub oldest_effect_seconds: Option<u64>,
    /// The queues of the deployment that respond.
    pub queues: Vec<QueueReport>,
    /// Unfinished imports by state; up to the 1,000 oldest are counted.
    #[schema(required)]
    pub searches: Option<BTreeMap<String, u64>>,
    /// Imports that are older than a day and wait for a message, although none is pending for them; among the 1,000
    /// oldest unfinished imports.
    #[schema(required)]
    pub stalled_searches: Option<Vec<Uuid>>,
    /// The number of open failures.
    #[schema(required)]
    pub open_failures: Option<u64>,
    /// The number of open failures that are effects.
    #[schema(required)]
    pub poisoned_effects: Option<u64>,
    /// The running operation on failures.
    #[schema(required)]
    pub operation: Option<RunningOperation>,
    /// Messages in dead-letter queues that are not collected yet; null if no such queue responds.
    #[schema(required)]
    pub dead_letters: Option<u64>,
    /// `true` if a worker runs: it holds the data directory, or has swept within five minutes.
    #[schema(required)]
    pub has_worker: Option<bool>,
    /// Free space on the disk of the data directory, in bytes; null for deployments on services.
    #[schema(required)]
    pub free_bytes: Option<u64>,
}

impl Health {
    /// Returns the checks over these ports. Services that are not configured are not reported.
    ///
    /// # Errors
    /// Returns an error if no database is configured.
    pub fn over(ports: &Ports, system: &'static System<Ports>) -> Result<Self, MissingSetting> {
        Ok(Self {
            stores: ports.engine.stores()?.clone(),
            partitions: ports.engine.partitions().ok().cloned(),
            processed: ports.engine.processed.clone().ok(),
            bucket: ports.bucket.clone().ok().map(|bucket| (bucket, ports.settings.key_prefix.clone())),
            sweeps: ports.engine.sweeps()?,
            queues: Arc::clone(&ports.engine.inspect),
            jobs: ports.jobs()?,
            host: Arc::clone(&ports.engine.host),
            write: Arc::clone(&ports.engine.stores()?.write_records),
            written: Arc::default(),
            machine: ports.machine.clone(),
            system,
        })
    }

    /// Returns the stores of the database.
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// Reports whether everything responds.
    pub async fn reach(&self) -> Reachability {
        self.check().await.reach
    }

    /// Returns the full report.
    pub async fn report(&self) -> Report {
        let CheckResults { reach, depths, last_sweep } = self.check().await;
        let queues: Vec<QueueReport> =
            depths.into_iter().map(|(queue, depth)| QueueReport::of(&queue, depth)).collect();
        let mut report = Report {
            ok: reach.ok,
            parts: reach.parts,
            concerns: Vec::new(),
            last_sweep: last_sweep.as_ref().ok().copied().flatten().map(|at| at.to_string()),
            oldest_effect_seconds: None,
            dead_letters: dead_letters(&queues),
            queues,
            searches: None,
            stalled_searches: None,
            open_failures: None,
            poisoned_effects: None,
            operation: None,
            has_worker: self.has_worker(&last_sweep),
            free_bytes: self.machine.as_ref().and_then(|machine| machine.free_bytes()),
        };
        if last_sweep.is_ok() {
            self.ask_database(&mut report).await;
        }
        report.concerns = report.concerns(self.system, self.machine.is_some());
        report
    }

    async fn check(&self) -> CheckResults {
        let others = join3(self.ask_ledger(), self.ask_processed(), self.ask_bucket());
        let (last_sweep, (ledger, processed, files), counted) =
            join3(self.sweeps.last(), others, self.queues.depths()).await;
        let mut database = Part::of("database".to_owned(), &last_sweep);
        if database.ok {
            database.why = self.write().await;
            database.ok = database.why.is_none();
        }
        let mut parts = vec![database];
        let asked = [("ledger", ledger), ("processed messages", processed), ("files", files)];
        parts
            .extend(asked.into_iter().filter_map(|(name, answer)| Some(Part::of(name.to_owned(), &answer?))));
        let mut depths = BTreeMap::new();
        for (queue, depth) in counted {
            parts.push(Part::of(format!("queue {queue}"), &depth));
            depths.extend(depth.map(|depth| (queue, depth)));
        }
        CheckResults {
            reach: Reachability { ok: parts.iter().all(|part| part.ok), parts },
            depths,
            last_sweep,
        }
    }

    /// Overwrites a small record, and returns the problem if that fails. A full disk still serves every read.
    async fn write(&self) -> Option<&'static str> {
        let now = self.host.now();
        let last = *self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.filter(|last| now.duration_since(last.at) < WRITE_EVERY) {
            return last.why;
        }
        let write = Write { key: Key::new("engine", "health"), body: now.to_string().into() };
        let why = self.write.write_record(&write).await.err().map(|error| {
            tracing::error!(error = chain(&error), "the database cannot be written");
            if error.is_refused_by_disk() { "the disk is full or read-only" } else { "it cannot be written" }
        });
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(LastWrite { at: now, why });
        why
    }

    /// Returns `true` if a worker runs. If no process can be seen, the last sweep counts.
    fn has_worker(&self, last_sweep: &Result<Option<Timestamp>, StoreError>) -> Option<bool> {
        let held = self.machine.as_ref().and_then(|machine| machine.has_worker());
        let swept = last_sweep.as_ref().ok()?;
        let is_recent = |at: Timestamp| self.host.now().duration_since(at) < NO_SWEEP;
        Some(match (held, swept) {
            (Some(false), _) => false,
            // It has just started.
            (Some(true), None) => true,
            (_, swept) => swept.is_some_and(is_recent),
        })
    }

    /// Looks up a message that was never sent.
    async fn ask_processed(&self) -> Option<Result<bool, StoreError>> {
        Some(self.processed.as_ref()?.is_remembered(UNSENT_MESSAGE, self.host.now()).await)
    }

    /// Lists the files of a search that was never announced.
    async fn ask_bucket(&self) -> Option<Result<bool, StoreError>> {
        let (bucket, key_prefix) = self.bucket.as_ref()?;
        let unused = Uuid::nil();
        let folder =
            ObjectKey::folder(key_prefix, ProjectId::from_uuid(unused), PartitionKey::from_uuid(unused));
        Some(bucket.find(&folder).await.map(|found| !found.is_empty()))
    }

    /// Looks up a token that was never granted.
    async fn ask_ledger(&self) -> Option<Result<bool, StoreError>> {
        let granted = &self.partitions.as_ref()?.granted;
        let partition = PartitionKey::from_uuid(Uuid::nil());
        let token = Token::minted_at_entry(partition, Uuid::nil());
        Some(granted.is_granted(partition, &token, self.host.now()).await)
    }

    /// Fills the report; a query that fails leaves only its own fields empty.
    async fn ask_database(&self, report: &mut Report) {
        let effects = async {
            let [sagas, sessions] = [&self.stores.saga_outbox, &self.stores.session_outbox];
            let (one, other) = try_join(self.due_since(&**sagas), self.due_since(&**sessions)).await?;
            Ok([one, other].into_iter().flatten().min())
        };
        let failures = async {
            let all = Selection::of(FailureStatus::Open);
            let effects =
                Selection { place: Some("outbox".to_owned()), ..Selection::of(FailureStatus::Open) };
            try_join(self.count_failures(&all), self.count_failures(&effects)).await
        };
        let asked =
            (effects, self.jobs.oldest_unfinished(MAX_SEARCHES), failures, self.stores.failures.running());
        let (due_since, jobs, failures, operation) = join4(asked.0, asked.1, asked.2, asked.3).await;
        let age =
            |since: Timestamp| u64::try_from(self.host.now().duration_since(since).as_secs()).unwrap_or(0);
        report.oldest_effect_seconds = known("effects", due_since).flatten().map(age);
        let jobs = known("searches", jobs);
        report.stalled_searches = match &jobs {
            Some(jobs) => known("stalled searches", self.stalled(jobs).await),
            None => None,
        };
        report.searches = jobs.map(|jobs| {
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

    /// Returns the stalled searches among these.
    async fn stalled(&self, jobs: &[Job]) -> Result<Vec<Uuid>, StoreError> {
        let now = self.host.now();
        let old = jobs.iter().filter(|job| now.duration_since(job.created_at) > STALLED_AFTER);
        let old: Vec<PartitionKey> = old.map(|job| job.search_id).collect();
        let mut stalled = Vec::new();
        for searches in old.chunks(DOCUMENTS) {
            let loaded = self.stores.read_documents.load(searches, now).await?;
            for (search, document) in searches.iter().zip(loaded) {
                let is_stalled = match document {
                    Ok(Some(document)) => document.content.is_stalled(&document.outbox),
                    // Its announcement was lost.
                    Ok(None) => true,
                    // A newer version can read it.
                    Err(_) => false,
                };
                stalled.extend(is_stalled.then(|| search.as_uuid()));
            }
        }
        Ok(stalled)
    }

    /// Returns the time since which the oldest effect of an outbox is due, without exhausted ones.
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

/// The public part of the health, and the data that it was derived from.
struct CheckResults {
    reach: Reachability,
    depths: BTreeMap<Queue, Depth>,
    last_sweep: Result<Option<Timestamp>, StoreError>,
}

fn known<T>(what: &str, answer: Result<T, StoreError>) -> Option<T> {
    answer.inspect_err(|error| tracing::error!(what, error = chain(error), "a health query failed")).ok()
}

impl Part {
    fn of<T>(name: String, answer: &Result<T, StoreError>) -> Self {
        let why = answer.as_ref().err().map(|error| {
            tracing::error!(part = name, error = chain(error), "a store or queue does not respond");
            if error.is_retryable() { "it does not respond" } else { "its response is not usable" }
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

    fn total(&self) -> u64 {
        self.visible + self.in_flight + self.delayed
    }
}

impl From<Operation> for RunningOperation {
    fn from(operation: Operation) -> Self {
        let Operation { id, by, total, retried, .. } = operation;
        Self { operation_id: id.as_uuid(), by, total, retried }
    }
}

impl Report {
    /// Returns the problems that need an operator, each with the next step. Local commands know the data directory.
    fn concerns(&self, system: &System<Ports>, is_embedded: bool) -> Vec<String> {
        let silent = self.parts.iter().filter_map(|part| Some(format!("{}: {}", part.name, part.why?)));
        let failures = self.open_failures.filter(|open| *open > 0).map(|open| {
            let open = counted(open, "failure is open", "failures are open");
            format!("{open}; `search-import failures groups` shows the causes")
        });
        let late = self.oldest_effect_seconds.filter(|age| *age >= LATE);
        let late =
            late.map(|age| format!("an effect has been due for {} min and is not performed", age / 60));
        let space = self.free_bytes.filter(|free| *free < LOW_SPACE).map(|free| {
            format!("the disk has {} MiB left; free some space, or imports will stop", free >> 20)
        });
        silent
            .chain(space)
            .chain(self.no_worker(system, is_embedded))
            .chain(failures)
            .chain(self.dead())
            .chain(late)
            .chain(self.stuck(system))
            .chain(self.stalled())
            .collect()
    }

    fn no_worker(&self, system: &System<Ports>, is_embedded: bool) -> Option<String> {
        let open: u64 = self.searches.iter().flatten().map(|(_, count)| count).sum();
        let is_work = |queue: &&QueueReport| system.behind(&queue.queue.clone().into()).is_some();
        let messages: u64 = self.queues.iter().filter(is_work).map(QueueReport::total).sum();
        let work = match (open, messages, self.oldest_effect_seconds) {
            (0, 0, None) => return None,
            (0, 0, Some(_)) => "effects are due".to_owned(),
            (0, messages, _) => counted(messages, "message waits", "messages wait"),
            (open, ..) => counted(open, "search has not ended", "searches have not ended"),
        };
        let next = if is_embedded {
            "`search-import resume` finishes what was interrupted, and `search-import serve` keeps workers running"
        } else {
            "check the schedule of `dispatch-outbox` and its log"
        };
        (self.has_worker == Some(false)).then(|| format!("{work}, and no worker runs; {next}"))
    }

    fn dead(&self) -> Option<String> {
        let dead = self.dead_letters.filter(|dead| *dead > 0)?;
        let is_dead = |queue: &&QueueReport| is_dead_letter_queue(&queue.queue) && queue.total() > 0;
        let queues = self.queues.iter().filter(is_dead);
        let queues: Vec<String> =
            queues.map(|queue| format!("{} in {}", queue.total(), queue.queue)).collect();
        let dead = counted(dead, "message is dead-lettered", "messages are dead-lettered");
        let next = "a worker collects them, and so does `search-import failures retry --all --dry-run`";
        Some(format!("{dead} ({}); {next}", queues.join(", ")))
    }

    /// A long file may be read for longer than the limit, and other files wait behind it.
    fn stuck(&self, system: &System<Ports>) -> Option<String> {
        let is_stuck = |queue: &&QueueReport| {
            system.behind(&queue.queue.clone().into()).is_some()
                && queue.oldest_seconds.is_some_and(|age| age >= LATE)
                && queue.visible + queue.delayed > 0
                && (queue.queue != PARSE.name() || queue.in_flight == 0)
        };
        let stuck = self.queues.iter().find(is_stuck)?;
        let (queue, min) = (&stuck.queue, stuck.oldest_seconds.unwrap_or_default() / 60);
        Some(format!(
            "the oldest message of queue {queue} has waited for {min} min; check the log of its function"
        ))
    }
}

impl Report {
    fn stalled(&self) -> Option<String> {
        let stalled = self.stalled_searches.as_ref().filter(|stalled| !stalled.is_empty())?;
        let count = counted(stalled.len() as u64, "import waits", "imports wait");
        let named: Vec<String> = stalled.iter().take(MAX_NAMED).map(Uuid::to_string).collect();
        let more = if stalled.len() > MAX_NAMED { ", …" } else { "" };
        Some(format!(
            "{count} for a message, but none is pending ({}{more}); end it with `search-import cancel`, and import its \
             files again",
            named.join(", ")
        ))
    }
}

fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn is_dead_letter_queue(name: &str) -> bool {
    let dead = |spec: &QueueSpec| spec.dead_letters.as_ref().is_some_and(|dead| dead.name() == name);
    QUEUES.iter().any(dead)
}

/// Returns the number of messages in all dead-letter queues that are known here.
fn dead_letters(queues: &[QueueReport]) -> Option<u64> {
    let dead = queues.iter().filter(|queue| is_dead_letter_queue(&queue.queue));
    dead.map(QueueReport::total).reduce(|one, other| one + other)
}
