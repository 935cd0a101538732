//! The state of a deployment of any system: what responds and can be written, what waits, and what an operator has to do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use dedup::{CheckTokens, ProcessedMessages};
use futures::future::{join, join3, join4, try_join};
use jiff::{SignedDuration, Timestamp};
use messages::store::chain;
use messages::{Depth, Host, InspectQueues, PartitionKey, Queue, QueueSpec, StoreError, Token};
use outbox::session::CONTROL;
use outbox::{InspectOutbox, Key, View, Write};
use saga::failures::{FailureStatus, Operation, Phase, Selection};
use saga::{Engine, MissingSetting, Stores, SweepHeartbeat, System};
use serde::{Deserialize, Serialize};
use serde_json::Value;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;
use uuid::Uuid;

/// The maximum number of instances that are counted.
pub const MAX_INSTANCES: usize = 1_000;
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
/// The age at which an instance that waits for a message counts as stalled if none is pending for it. No queue retries
/// a message for this long.
pub const STALLED_AFTER: SignedDuration = SignedDuration::from_hours(24);
/// The number of documents that are read at a time.
const DOCUMENTS: usize = 100;
/// The maximum number of stalled instances that a concern names.
const MAX_NAMED: usize = 3;

/// Checks the health of a deployment.
#[derive(Clone)]
pub struct Health {
    stores: Stores,
    check_tokens: Option<Arc<dyn CheckTokens>>,
    processed: Option<Arc<dyn ProcessedMessages>>,
    sweeps: SweepHeartbeat,
    queues: Arc<dyn InspectQueues>,
    host: Arc<dyn Host>,
    written: Arc<Mutex<Option<LastWrite>>>,
}

/// The last write of the record.
#[derive(Debug, Clone)]
struct LastWrite {
    at: Timestamp,
    since: UnreceivedSince,
    /// The reason of a failure.
    why: Option<&'static str>,
}

/// The health of a store or queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Part {
    /// `database`, `ledger`, `processed messages`, `files`, or `queue` and its name.
    pub name: String,
    /// `true` if it responds.
    pub ok: bool,
    /// The problem in general terms; the log has the details.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub why: Option<&'static str>,
}

/// The depth of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct QueueReport {
    /// Its name.
    pub queue: String,
    /// Messages that are visible.
    pub visible: u64,
    /// Messages that were received and not acknowledged.
    pub in_flight: u64,
    /// Messages that are delayed.
    pub delayed: u64,
    /// The age of the oldest message in seconds; null if there is none. For a queue that does not report it, the time
    /// since which the checks have found messages and no worker that receives them.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub oldest_seconds: Option<u64>,
}

/// An operation on failures that is running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct RunningOperation {
    /// The id of the operation.
    pub operation_id: Uuid,
    /// The operator who started it.
    pub by: String,
    /// The number of selected failures.
    pub total: u64,
    /// The number of failures retried so far.
    pub retried: u64,
    /// The time in seconds since its next step was due.
    #[serde(skip)]
    overdue_seconds: u64,
}

/// The health of a deployment of any system. Fields from the database are `null` while it is unavailable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Report {
    /// `true` if every store and queue responds, and the database can be written.
    pub ok: bool,
    /// Each store and queue.
    pub parts: Vec<Part>,
    /// Problems that need an operator, in plain language.
    pub concerns: Vec<String>,
    /// The time at which the last complete sweep of the outboxes ended, to the minute; `null` if there was none.
    #[cfg_attr(feature = "openapi", schema(required, value_type = Option<String>))]
    pub last_sweep: Option<Timestamp>,
    /// The queues that respond.
    pub queues: Vec<QueueReport>,
    /// The number of instances that have a view and have not ended; up to the 1,000 oldest are counted.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub unfinished: Option<usize>,
    /// Unfinished instances that are older than a day and wait for a message, although none is pending for them.
    #[cfg_attr(feature = "openapi", schema(required, value_type = Option<Vec<Uuid>>))]
    pub stalled: Option<Vec<PartitionKey>>,
    /// The activity of outboxes and failures.
    #[serde(flatten)]
    pub activity: Activity,
    /// Messages in dead-letter queues that are not collected yet; `null` if no such queue responds.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub dead_letters: Option<u64>,
    /// `true` if a worker has swept within five minutes.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub has_worker: Option<bool>,
}

/// The activity of outboxes and failures. A field whose query fails is `null`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Activity {
    /// The time in seconds since the oldest effect became due or began to fail; `null` if none is due.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub oldest_effect_seconds: Option<u64>,
    /// The number of open failures.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub open_failures: Option<u64>,
    /// The number of open failures that are effects.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub poisoned_effects: Option<u64>,
    /// The running operation on failures.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub operation: Option<RunningOperation>,
}

/// The results of asking all stores and queues.
pub struct CheckResults {
    /// The stores, in order.
    pub stores: Vec<Part>,
    /// The queues.
    pub queues: Vec<Part>,
    /// The depths of the queues that respond.
    pub depths: BTreeMap<Queue, Depth>,
    /// The time of the last sweep.
    pub last_sweep: Result<Option<Timestamp>, StoreError>,
}

/// The time since which each queue has messages that no worker receives.
type UnreceivedSince = BTreeMap<String, Timestamp>;

/// The record that a check writes.
fn checked() -> Key {
    Key::new("engine", "health")
}

impl Health {
    /// Returns the checks over an engine. Services that are not configured are not reported.
    pub fn over(engine: &Engine) -> Result<Self, MissingSetting> {
        Ok(Self {
            stores: engine.stores()?.clone(),
            check_tokens: engine.check_tokens.clone().ok(),
            processed: engine.processed.clone().ok(),
            sweeps: engine.sweeps()?,
            queues: Arc::clone(&engine.inspect),
            host: Arc::clone(&engine.host),
            written: Arc::default(),
        })
    }

    /// Returns the stores of the database.
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// Returns the full report of a system. `program` is the command line that shows and retries failures.
    pub async fn report<P>(&self, system: &System<P>, program: &str) -> Report {
        let CheckResults { stores: mut parts, queues, depths, last_sweep } = self.check().await;
        parts.extend(queues);
        let queues: Vec<QueueReport> =
            depths.into_iter().map(|(queue, depth)| QueueReport::of(&queue, depth)).collect();
        let mut report = Report {
            ok: parts.iter().all(|part| part.ok),
            parts,
            concerns: Vec::new(),
            last_sweep: last_sweep.as_ref().ok().copied().flatten(),
            dead_letters: dead_letters(system.queues, &queues),
            queues,
            unfinished: None,
            stalled: None,
            activity: Activity::default(),
            has_worker: self.has_swept(&last_sweep),
        };
        if last_sweep.is_ok() {
            let (activity, views) =
                join(self.activity(), self.stores.read_views.oldest_unfinished(MAX_INSTANCES)).await;
            report.activity = activity;
            if let Some(views) = known("unfinished instances", views) {
                report.unfinished = Some(views.len());
                let now = self.host.now();
                // The age of an instance without a time of creation is unknown.
                let is_old = |view: &&View| {
                    view.created_at > Timestamp::UNIX_EPOCH
                        && now.duration_since(view.created_at) > STALLED_AFTER
                };
                let old = views.iter().filter(is_old);
                let old: Vec<PartitionKey> = old.map(|view| view.partition).collect();
                report.stalled = known("stalled instances", self.stalled(&old).await);
            }
        }
        report.concerns = report.concerns(system, program);
        report
    }

    /// Asks all stores and queues, and writes a small record.
    pub async fn check(&self) -> CheckResults {
        let others = join(self.ask_ledger(), self.ask_processed());
        let (last_sweep, (ledger, processed), counted) =
            join3(self.sweeps.last(), others, self.queues.depths()).await;
        let mut database = Part::of("database".to_owned(), &last_sweep);
        let (mut queues, mut depths) = (Vec::new(), BTreeMap::new());
        for (queue, depth) in counted {
            queues.push(Part::of(format!("queue {queue}"), &depth));
            depths.extend(depth.map(|depth| (queue, depth)));
        }
        if database.ok {
            let since = self.unreceived(&depths).await;
            database.why = self.write(&since).await;
            database.ok = database.why.is_none();
            for (queue, depth) in &mut depths {
                let since = since.get(queue.name()).map(|since| self.host.now().duration_since(*since));
                depth.oldest = depth.oldest.or(since.and_then(|age| age.try_into().ok()));
            }
        }
        let mut stores = vec![database];
        let asked = [("ledger", ledger), ("processed messages", processed)];
        stores
            .extend(asked.into_iter().filter_map(|(name, answer)| Some(Part::of(name.to_owned(), &answer?))));
        CheckResults { stores, queues, depths, last_sweep }
    }

    /// Returns the time since which the checks have found messages in a queue and no worker that receives them, for each
    /// queue that does not report the age of its messages. After a failed read it is unknown, and begins now.
    async fn unreceived(&self, depths: &BTreeMap<Queue, Depth>) -> UnreceivedSince {
        let is_unreceived =
            |depth: &Depth| depth.oldest.is_none() && depth.visible > 0 && depth.in_flight == 0;
        if !depths.values().any(is_unreceived) {
            return UnreceivedSince::new();
        }
        let known = known("queues without a worker", self.stores.records.record(&checked()).await).flatten();
        let known = known.and_then(|record| UnreceivedSince::deserialize(&record.body).ok());
        let known = known.unwrap_or_default();
        let now = self.host.now();
        let unreceived =
            depths.iter().filter(|(_, depth)| is_unreceived(depth)).map(|(queue, _)| queue.name());
        unreceived
            .map(|queue| {
                (queue.to_owned(), known.get(queue).copied().filter(|since| *since <= now).unwrap_or(now))
            })
            .collect()
    }

    /// Overwrites a small record, and returns the problem if that fails. A full disk still serves every read.
    async fn write(&self, since: &UnreceivedSince) -> Option<&'static str> {
        let now = self.host.now();
        let last = self.written.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_current =
            |last: &LastWrite| now.duration_since(last.at).abs() < WRITE_EVERY && last.since == *since;
        if let Some(last) = last.filter(is_current) {
            return last.why;
        }
        let body = since.iter().map(|(queue, since)| (queue.clone(), since.to_string().into())).collect();
        let write = Write::new(checked(), Value::Object(body));
        let why = self.stores.write_records.write_record(&write).await.err().map(|error| {
            tracing::error!(error = chain(&error), "the database cannot be written");
            if error.is_refused_by_disk() { "the disk is full or read-only" } else { "it cannot be written" }
        });
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(LastWrite { at: now, since: since.clone(), why });
        why
    }

    /// Returns `true` if a worker has swept recently; `None` if that is not known.
    pub fn has_swept(&self, last_sweep: &Result<Option<Timestamp>, StoreError>) -> Option<bool> {
        let swept = last_sweep.as_ref().ok()?;
        Some(swept.is_some_and(|at| self.host.now().duration_since(at).abs() < NO_SWEEP))
    }

    /// Looks up a message that was never sent.
    async fn ask_processed(&self) -> Option<Result<bool, StoreError>> {
        Some(self.processed.as_ref()?.is_remembered(UNSENT_MESSAGE, self.host.now()).await)
    }

    /// Looks up a token that was never granted.
    async fn ask_ledger(&self) -> Option<Result<bool, StoreError>> {
        let check = self.check_tokens.as_ref()?;
        let partition = PartitionKey::from_uuid(Uuid::nil());
        let token = Token::minted_at_entry(partition, Uuid::nil());
        Some(check.is_granted(partition, &token, self.host.now()).await)
    }

    /// Returns the activity of outboxes and failures. A query that fails leaves only its own fields empty.
    pub async fn activity(&self) -> Activity {
        let effects = async {
            let [sagas, sessions] = [&self.stores.saga_outbox, &self.stores.session_outbox];
            let (one, other) = try_join(self.due_since(&**sagas), self.due_since(&**sessions)).await?;
            Ok([one, other].into_iter().flatten().min())
        };
        let open = Selection::of(FailureStatus::Open);
        let of_effects = Selection { place: Some("outbox".to_owned()), ..open.clone() };
        let (due_since, all, exhausted, operation) = join4(
            effects,
            self.count_failures(&open),
            self.count_failures(&of_effects),
            self.stores.failures.running(),
        )
        .await;
        let age =
            |since: Timestamp| u64::try_from(self.host.now().duration_since(since).as_secs()).unwrap_or(0);
        Activity {
            oldest_effect_seconds: known("effects", due_since).flatten().map(age),
            open_failures: known("failures", all),
            poisoned_effects: known("failures", exhausted),
            operation: known("operations", operation)
                .flatten()
                .map(|operation| RunningOperation::new(operation, self.host.now())),
        }
    }

    /// Returns the instances among these that wait for a message, although none is pending for them.
    pub async fn stalled(&self, instances: &[PartitionKey]) -> Result<Vec<PartitionKey>, StoreError> {
        let mut stalled = Vec::new();
        for partitions in instances.chunks(DOCUMENTS) {
            let loaded = self.stores.read_documents.load(partitions, self.host.now()).await?;
            for (partition, document) in partitions.iter().zip(loaded) {
                let is_stalled = match document {
                    Ok(Some(document)) => document.content.is_stalled(&document.outbox),
                    // The first message of the instance was lost.
                    Ok(None) => true,
                    // A newer version can read it.
                    Err(_) => false,
                };
                stalled.extend(is_stalled.then_some(*partition));
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
            // A store omits records that were settled during the read, so a short page is not always the last one.
            let Some(last) = page.last() else { break };
            after = Some(last.id.clone());
        }
        Ok(oldest)
    }

    async fn count_failures(&self, selection: &Selection) -> Result<u64, StoreError> {
        Ok(self.stores.failures.causes(selection).await?.count)
    }
}

/// Returns an answer, and logs an error.
pub fn known<T>(what: &str, answer: Result<T, StoreError>) -> Option<T> {
    answer.inspect_err(|error| tracing::error!(what, error = chain(error), "a health query failed")).ok()
}

impl Part {
    /// Returns the health of a part from its answer.
    pub fn of<T>(name: String, answer: &Result<T, StoreError>) -> Self {
        let why = answer.as_ref().err().map(|error| {
            tracing::error!(part = name, error = chain(error), "a store or queue does not respond");
            if error.is_retryable() { "it does not respond" } else { "its response is not usable" }
        });
        Self { name, ok: why.is_none(), why }
    }
}

impl QueueReport {
    /// Returns the report of a queue.
    pub fn of(queue: &Queue, depth: Depth) -> Self {
        let Depth { visible, in_flight, delayed, oldest } = depth;
        let oldest_seconds = oldest.map(|oldest| oldest.as_secs());
        Self { queue: queue.name().to_owned(), visible, in_flight, delayed, oldest_seconds }
    }

    /// Returns the number of messages in any state.
    pub fn total(&self) -> u64 {
        self.visible + self.in_flight + self.delayed
    }
}

impl RunningOperation {
    fn new(operation: Operation, now: Timestamp) -> Self {
        let Operation { id, by, total, retried, phase, next_step_at, .. } = operation;
        let due = match phase {
            Phase::Watching { until } => until,
            Phase::Running | Phase::Done { .. } | Phase::Stopped { .. } => next_step_at,
        };
        let overdue_seconds = u64::try_from(now.duration_since(due).as_secs()).unwrap_or(0);
        Self { operation_id: id.as_uuid(), by, total, retried, overdue_seconds }
    }
}

impl Activity {
    /// Returns the problem of open failures, with the next step.
    pub fn failures(&self, program: &str) -> Option<String> {
        let open = self.open_failures.filter(|open| *open > 0)?;
        let open = counted(open, "failure is open", "failures are open");
        Some(format!("{open}; `{program} failures groups` shows the causes"))
    }

    /// Returns the problem of a retry that no worker continues.
    pub fn interrupted_retry(&self) -> Option<String> {
        let RunningOperation { by, overdue_seconds, .. } =
            self.operation.as_ref().filter(|operation| operation.overdue_seconds >= LATE)?;
        let min = overdue_seconds / 60;
        Some(format!(
            "the retry of failures that {by} began has not continued for {min} min; check the schedule of the function \
             that collects dead letters, and its log"
        ))
    }

    /// Returns the problem of effects that are late.
    pub fn late(&self) -> Option<String> {
        let age = self.oldest_effect_seconds.filter(|age| *age >= LATE)?;
        Some(format!("an effect has been due for {} min and is not performed", age / 60))
    }
}

/// Returns the problem of each part that does not respond.
pub fn silent(parts: &[Part]) -> impl Iterator<Item = String> {
    parts.iter().filter_map(|part| Some(format!("{}: {}", part.name, part.why?)))
}

/// Returns the problem of dead letters that are not collected, with the next step.
pub fn uncollected(
    table: &[QueueSpec],
    queues: &[QueueReport],
    dead: Option<u64>,
    program: &str,
) -> Option<String> {
    let dead = dead.filter(|dead| *dead > 0)?;
    let is_dead = |queue: &&QueueReport| is_dead_letter_queue(table, queue) && queue.total() > 0;
    let filled = queues.iter().filter(is_dead);
    let filled: Vec<String> = filled.map(|queue| format!("{} in {}", queue.total(), queue.queue)).collect();
    let dead = counted(dead, "message is dead-lettered", "messages are dead-lettered");
    let next = format!("a worker collects them, and so does `{program} failures retry --all --dry-run`");
    Some(format!("{dead} ({}); {next}", filled.join(", ")))
}

/// Returns the problem of a queue whose messages wait for too long. A message of a `slow` queue may be handled for longer
/// than the limit, and others wait behind it.
pub fn stuck<P>(system: &System<P>, queues: &[QueueReport], slow: &[Queue]) -> Option<String> {
    let is_stuck = |queue: &&QueueReport| {
        system.behind(&queue.queue.clone().into()).is_some()
            && queue.oldest_seconds.is_some_and(|age| age >= LATE)
            && queue.visible + queue.delayed > 0
            && (slow.iter().all(|slow| queue.queue != slow.name()) || queue.in_flight == 0)
    };
    let stuck = queues.iter().find(is_stuck)?;
    let (queue, min) = (&stuck.queue, stuck.oldest_seconds.unwrap_or_default() / 60);
    Some(format!(
        "the oldest message of queue {queue} has waited for {min} min; check the log of its function"
    ))
}

/// Returns the number of messages in queues that a function consumes. Messages that are not due do not count, and those
/// of the control queue only confirm sessions: the effects of a session count on their own.
pub fn waiting<P>(system: &System<P>, queues: &[QueueReport]) -> u64 {
    let is_work = |queue: &&QueueReport| {
        queue.queue != CONTROL.name() && system.behind(&queue.queue.clone().into()).is_some()
    };
    queues.iter().filter(is_work).map(|queue| queue.visible + queue.in_flight).sum()
}

/// Returns the first of these ids, for a sentence.
pub fn first_ids<T: ToString>(ids: &[T]) -> String {
    let named: Vec<String> = ids.iter().take(MAX_NAMED).map(T::to_string).collect();
    let more = if ids.len() > MAX_NAMED { ", …" } else { "" };
    format!("{}{more}", named.join(", "))
}

/// Returns a number with its noun, such as `1 record` or `2 records`.
pub fn counted(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

fn is_dead_letter_queue(table: &[QueueSpec], queue: &QueueReport) -> bool {
    QueueSpec::is_dead_letter_queue(table, &queue.queue.clone().into())
}

/// Returns the number of messages in all dead-letter queues that respond.
pub fn dead_letters(table: &[QueueSpec], queues: &[QueueReport]) -> Option<u64> {
    let dead = queues.iter().filter(|queue| is_dead_letter_queue(table, queue));
    dead.map(QueueReport::total).reduce(|one, other| one + other)
}

impl Report {
    /// Returns the problems that need an operator, each with the next step.
    fn concerns<P>(&self, system: &System<P>, program: &str) -> Vec<String> {
        silent(&self.parts)
            .chain(self.no_worker(system))
            .chain(self.activity.failures(program))
            .chain(uncollected(system.queues, &self.queues, self.dead_letters, program))
            .chain(self.activity.late())
            .chain(self.activity.interrupted_retry())
            .chain(stuck(system, &self.queues, &[]))
            .chain(self.waits_for_nothing(program))
            .collect()
    }

    fn no_worker<P>(&self, system: &System<P>) -> Option<String> {
        let open = self.unfinished.and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
        let work = match (open, waiting(system, &self.queues), self.activity.oldest_effect_seconds) {
            (0, 0, None) => return None,
            (0, 0, Some(_)) => "effects are due".to_owned(),
            (0, messages, _) => counted(messages, "message waits", "messages wait"),
            (open, ..) => counted(open, "instance has not ended", "instances have not ended"),
        };
        let next =
            "start the program that runs the functions, or check the schedule of the sweep and its log";
        (self.has_worker == Some(false)).then(|| format!("{work}, and no worker has swept lately; {next}"))
    }

    fn waits_for_nothing(&self, program: &str) -> Option<String> {
        let stalled = self.stalled.as_ref().filter(|stalled| !stalled.is_empty())?;
        let count = counted(stalled.len() as u64, "instance waits", "instances wait");
        let ids = first_ids(stalled);
        Some(format!(
            "{count} for a message, but none is pending ({ids}); send it with `{program} send`, or end the instance with \
             `{program} terminate`"
        ))
    }
}
