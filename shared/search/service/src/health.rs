//! The state of a deployment: what responds and can be written, what waits, and what an operator has to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join;
use imports::queues::{PARSE, QUEUES};
use imports::{FindObjects, InspectMachine, Job, JobState, Jobs, ObjectKey, Ports, ProjectId};
use jiff::Timestamp;
use messages::{Depth, Host, PartitionKey, Queue, StoreError};
use operate::health::{self, Activity, CheckResults, MAX_INSTANCES, STALLED_AFTER, counted, known};
pub use operate::health::{Part, QueueReport, RunningOperation};
use saga::{MissingSetting, Stores, System};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// The free space below which an import of ordinary size may fail, in bytes.
const LOW_SPACE: u64 = 100 << 20;
/// The program that shows and retries failures.
const PROGRAM: &str = "search-import";

/// Checks the health of a deployment.
#[derive(Clone)]
pub struct Health {
    engine: health::Health,
    bucket: Option<(Arc<dyn FindObjects>, String)>,
    jobs: Jobs,
    host: Arc<dyn Host>,
    machine: Option<Arc<dyn InspectMachine>>,
    system: &'static System<Ports>,
}

/// The reachability of all stores and queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Reachability {
    /// `true` if everything responds.
    pub ok: bool,
    /// Each store and queue.
    pub parts: Vec<Part>,
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
    pub fn over(ports: &Ports, system: &'static System<Ports>) -> Result<Self, MissingSetting> {
        Ok(Self {
            engine: health::Health::over(&ports.engine)?,
            bucket: ports.bucket.clone().ok().map(|bucket| (bucket, ports.settings.key_prefix.clone())),
            jobs: ports.jobs()?,
            host: Arc::clone(&ports.engine.host),
            machine: ports.machine.clone(),
            system,
        })
    }

    /// Returns the stores of the database.
    pub fn stores(&self) -> &Stores {
        self.engine.stores()
    }

    /// Reports whether everything responds.
    pub async fn reach(&self) -> Reachability {
        self.check().await.0
    }

    /// Returns the full report.
    pub async fn report(&self) -> Report {
        let (reach, depths, last_sweep) = self.check().await;
        let queues: Vec<QueueReport> =
            depths.into_iter().map(|(queue, depth)| QueueReport::of(&queue, depth)).collect();
        let mut report = Report {
            ok: reach.ok,
            parts: reach.parts,
            concerns: Vec::new(),
            last_sweep: last_sweep.as_ref().ok().copied().flatten().map(|at| at.to_string()),
            oldest_effect_seconds: None,
            dead_letters: health::dead_letters(&QUEUES, &queues),
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

    /// Returns the public part of the health, and the data that it was derived from.
    async fn check(&self) -> (Reachability, BTreeMap<Queue, Depth>, Result<Option<Timestamp>, StoreError>) {
        let (checked, files) = join(self.engine.check(), self.ask_bucket()).await;
        let CheckResults { stores: mut parts, queues, depths, last_sweep } = checked;
        parts.extend(files.map(|answer| Part::of("files".to_owned(), &answer)));
        parts.extend(queues);
        (Reachability { ok: parts.iter().all(|part| part.ok), parts }, depths, last_sweep)
    }

    /// Returns `true` if a worker runs. If the processes cannot be checked, a recent sweep shows that a worker runs.
    fn has_worker(&self, last_sweep: &Result<Option<Timestamp>, StoreError>) -> Option<bool> {
        let held = self.machine.as_ref().and_then(|machine| machine.has_worker());
        let swept = last_sweep.as_ref().ok()?;
        Some(match (held, swept) {
            (Some(false), _) => false,
            // The worker has just started.
            (Some(true), None) => true,
            (_, _) => self.engine.has_swept(last_sweep)?,
        })
    }

    /// Lists the files of a search that was never announced.
    async fn ask_bucket(&self) -> Option<Result<bool, StoreError>> {
        let (bucket, key_prefix) = self.bucket.as_ref()?;
        let unused = Uuid::nil();
        let folder =
            ObjectKey::folder(key_prefix, ProjectId::from_uuid(unused), PartitionKey::from_uuid(unused));
        Some(bucket.find(&folder).await.map(|found| !found.is_empty()))
    }

    /// Fills the report; a query that fails leaves only its own fields empty.
    async fn ask_database(&self, report: &mut Report) {
        let (activity, jobs) = join(self.engine.activity(), self.jobs.oldest_unfinished(MAX_INSTANCES)).await;
        let Activity { oldest_effect_seconds, open_failures, poisoned_effects, operation } = activity;
        report.oldest_effect_seconds = oldest_effect_seconds;
        (report.open_failures, report.poisoned_effects) = (open_failures, poisoned_effects);
        report.operation = operation;
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
    }

    /// Returns the stalled searches among these.
    async fn stalled(&self, jobs: &[Job]) -> Result<Vec<Uuid>, StoreError> {
        let now = self.host.now();
        let old = jobs.iter().filter(|job| now.duration_since(job.created_at) > STALLED_AFTER);
        let old: Vec<PartitionKey> = old.map(|job| job.search_id).collect();
        Ok(self.engine.stalled(&old).await?.iter().map(PartitionKey::as_uuid).collect())
    }
}

impl Report {
    /// Returns the problems that need an operator, each with the next step, which depends on whether the stores are
    /// embedded.
    fn concerns(&self, system: &System<Ports>, is_embedded: bool) -> Vec<String> {
        let activity = self.activity();
        let slow = [PARSE];
        let space = self.free_bytes.filter(|free| *free < LOW_SPACE).map(|free| {
            format!("the disk has {} MiB left; free some space, or imports will stop", free >> 20)
        });
        health::silent(&self.parts)
            .chain(space)
            .chain(self.no_worker(system, is_embedded))
            .chain(activity.failures(PROGRAM))
            .chain(health::uncollected(&QUEUES, &self.queues, self.dead_letters, PROGRAM))
            .chain(activity.late())
            .chain(activity.interrupted_retry())
            .chain(health::stuck(system, &self.queues, &slow))
            .chain(self.stalled())
            .collect()
    }

    fn activity(&self) -> Activity {
        Activity {
            oldest_effect_seconds: self.oldest_effect_seconds,
            open_failures: self.open_failures,
            poisoned_effects: self.poisoned_effects,
            operation: self.operation.clone(),
        }
    }

    fn no_worker(&self, system: &System<Ports>, is_embedded: bool) -> Option<String> {
        let open: u64 = self.searches.iter().flatten().map(|(_, count)| count).sum();
        let messages = health::waiting(system, &self.queues);
        let work = match (open, messages, self.oldest_effect_seconds) {
            (0, 0, None) => return None,
            (0, 0, Some(_)) => "effects are due".to_owned(),
            (0, messages, _) => counted(messages, "message waits", "messages wait"),
            (open, ..) => counted(open, "import has not ended", "imports have not ended"),
        };
        let next = if is_embedded {
            "`search-import resume` finishes what was interrupted, and `search-import serve` keeps workers running"
        } else {
            "check the schedule of `dispatch-outbox` and its log"
        };
        (self.has_worker == Some(false)).then(|| format!("{work}, and no worker runs; {next}"))
    }

    fn stalled(&self) -> Option<String> {
        let stalled = self.stalled_searches.as_ref().filter(|stalled| !stalled.is_empty())?;
        let count = counted(stalled.len() as u64, "import waits", "imports wait");
        let ids = health::first_ids(stalled);
        Some(format!(
            "{count} for a message, but none is pending ({ids}); end it with `search-import cancel`, and import its \
             files again"
        ))
    }
}
