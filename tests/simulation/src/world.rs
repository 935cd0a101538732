//! The state that outlives a worker: the stores, the queues, the clock, and the memory of the checks.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use dedup::ledger::Item;
use jiff::Timestamp;
use messages::{Body, DecisionRecord, Message, MessageId, PartitionKey, Queue, QueueSpec, SessionId, Token};
use outbox::session::{CONTROL, SessionStatus};
use outbox::{Entry, Key, Owner, SessionRecord, StoredRecord, View};
use saga::{Content, Control, Document};
use serde_json::Value;

use crate::checks::Checks;
use crate::clocks::Clocks;
use crate::control::Controls;
use crate::coverage::{Call, Coverage};
use crate::damage::Damage;
use crate::describe::short;
use crate::fault::Plan;
use crate::model::{self, Bounds, CheckResult, ExpectedWrite, ObservedWrite, SETTLES, State, Station};
use crate::mutants::Notes;
use crate::options::{Config, Invariant, Mode, Stats, Violation};
use crate::point::{Kind, Points};
use crate::ports::failures::FailureTables;
use crate::ports::queues::{Copy, Queues};
use crate::restore::{self, Restores};
use crate::rng::Rng;
use crate::stale_reads::StaleReads;
use crate::time::{millis, timestamp};

/// Derives the second random generator of a schedule from its seed.
const MORE: u64 = 0xA24B_AED4_963E_E407;
/// Distinguishes the choice of short deadlines, so that the other schedules do not depend on it.
const SHORT: u64 = 0x51D3_0C27;

const STARTS_WITHOUT_STORE: &str = "a function is started by a message while the database is away";
pub(crate) const RETRIER_DIES: &str = "a worker dies between two steps of an operation on failures";
pub(crate) const RETRIED: &str = "dead letters are retried as failures";
pub(crate) const EARLIER_FAILURES: &str = "an earlier state of the failures is read";

/// The situations that must occur for every application.
const SITUATIONS: [&str; 4] = [STARTS_WITHOUT_STORE, RETRIER_DIES, RETRIED, EARLIER_FAILURES];

/// A scheduled event.
pub(crate) enum Occasion {
    /// A worker starts again.
    Restart(usize),
    /// A worker is replaced by a new one, as by a deployment.
    Replace(usize),
    /// An earlier message is sent again.
    Replay,
    /// An outside event.
    Act(Box<dyn FnOnce(&mut World) + Send>),
    /// The arrival of a call whose caller stopped waiting.
    Arrive(Call, Box<dyn FnOnce(&mut World) + Send>),
}

/// A stored saga document.
#[derive(Clone)]
pub(crate) struct StoredDocument {
    pub(crate) document: Document,
    pub(crate) state: State,
    pub(crate) expires_at: Option<Timestamp>,
}

/// A stored transactional session.
#[derive(Clone)]
pub(crate) struct StoredSession {
    pub(crate) found: SessionStatus,
    pub(crate) outbox: Vec<Entry>,
}

/// The rules of the simulated application that the world and the checks need.
pub(crate) trait Rules: Send + Sync {
    fn queues(&self) -> &'static [QueueSpec];
    fn stations(&self) -> Vec<Station>;
    fn world(&self) -> Box<dyn Any + Send>;
    fn world_of(&self, world: &World) -> Box<dyn Any + Send>;
    fn clients_return(&self) -> bool;
    fn calls(&self) -> &'static [Call];
    fn situations(&self) -> &'static [&'static str];
    fn unused(&self) -> &'static [Call];
    fn races(&self) -> &'static [Call];
    fn restores(&self) -> bool;
    fn restore(&self, world: &mut World, backup: &(dyn Any + Send));

    fn saga_queues(&self) -> Vec<Queue>;
    fn read(&self, queue: &Queue, content: &Content) -> Result<State, String>;
    fn succeeded(&self, state: &State) -> bool;
    fn may_stay_open(&self, state: &State) -> bool;
    fn may_wait(&self, state: &State) -> bool;
    fn refuses(&self, world: &World, message: &Message) -> bool;
    fn postpones(&self, queue: &Queue, state: Option<&State>, message: &Message, now: Timestamp) -> bool;
    fn controls(&self) -> &'static [Control];
    fn operator_event(&self, world: &mut World, partition: PartitionKey) -> Option<(&'static str, Value)>;
    fn relies_on_documents(&self, world: &World) -> bool;
    fn embed_reply_token(&self, queue: &Queue, request: &mut Body, reply_token: &Token);
    fn follow(
        &self,
        queue: &Queue,
        base: Option<(&Content, &State)>,
        messages: &[&Message],
        now: Timestamp,
    ) -> Result<ExpectedWrite, String>;

    fn patience(&self) -> Option<Duration>;
    fn bounds(&self, world: &World, partition: PartitionKey) -> Bounds;
    fn changed(&self, written: &ObservedWrite<'_>) -> CheckResult;
    fn committed(&self, session: &SessionRecord) -> CheckResult;
    fn observed(&self, world: &mut World, observation: &DecisionRecord) -> CheckResult;
    fn dead_lettered(&self, world: &mut World, queue: &Queue, message: &Message, is_outlasted: bool);
    fn check(&self, world: &World) -> CheckResult;
    fn unchanged(&self, before: &(dyn Any + Send), world: &World) -> Result<(), String>;
}

pub(crate) struct World {
    pub(crate) config: Config,
    pub(crate) application: Arc<dyn Rules>,
    /// The functions that consume the queues.
    pub(crate) stations: Vec<Station>,
    /// The functions that run sagas.
    pub(crate) sagas: Vec<&'static str>,
    /// The queues of sagas.
    pub(crate) saga_queues: Vec<Queue>,
    /// Milliseconds since the start.
    pub(crate) now: u64,
    pub(crate) rng: Rng,
    /// The generator for choices that only some schedules have, so that other schedules do not change.
    pub(crate) more: Rng,
    pub(crate) ids: u32,
    pub(crate) points: Points,
    pub(crate) occasions: Vec<(u64, Occasion)>,
    pub(crate) plan: Plan,
    pub(crate) clocks: Clocks,
    /// `true` if the stores delete expired data immediately, and not days later.
    pub(crate) deletes_at_once: bool,
    /// `true` if the deadlines of handlers pass after a few calls, so that their work continues later.
    pub(crate) has_short_deadlines: bool,
    /// The maximum number of tokens of a partition before a claim adds its own.
    pub(crate) room: usize,
    /// The maximum number of tokens that an attempt leaves for a later one to remove.
    pub(crate) keep: usize,
    pub(crate) damage: Damage,
    /// `true` after the end, when only duplicates of earlier messages arrive.
    pub(crate) only_repeats: bool,
    /// The number of messages that are still duplicated. Without a bound a message that waits for a busy partition
    /// would be received and duplicated repeatedly.
    pub(crate) spare_copies: u64,
    /// The number of requests to the ledger that still arrive twice.
    pub(crate) spare_repeats: u64,
    /// The worker on whose behalf the world is changed.
    pub(crate) acting: Option<usize>,
    /// The workers' names.
    pub(crate) names: Vec<String>,
    /// The workers that are restarted after a crash.
    pub(crate) restarts: Vec<bool>,
    /// The visibility timeout of each worker's messages.
    pub(crate) hides_ms: Vec<u64>,
    /// The workers that run the steps of operations on failures.
    pub(crate) retriers: Vec<usize>,
    /// The workers that run the saga.
    pub(crate) runs_saga: Vec<bool>,

    pub(crate) documents: BTreeMap<PartitionKey, StoredDocument>,
    /// Earlier versions for stale loads: the last few documents, or none.
    pub(crate) earlier: BTreeMap<PartitionKey, VecDeque<Option<Document>>>,
    pub(crate) items: BTreeMap<PartitionKey, Item>,
    pub(crate) sessions: BTreeMap<SessionId, StoredSession>,
    /// Unreadable outbox entries.
    pub(crate) unreadable: BTreeSet<MessageId>,
    pub(crate) views: BTreeMap<PartitionKey, View>,
    /// Earlier views and lists of overdue effects.
    pub(crate) stale_reads: StaleReads,
    /// Failures: dead-lettered messages and exhausted effects.
    pub(crate) failures: FailureTables,
    pub(crate) records: BTreeMap<Key, StoredRecord>,
    /// The operator who pauses and terminates instances; `None` in other schedules.
    pub(crate) controls: Controls,
    /// The restore of the stores; `None` in other schedules.
    pub(crate) restores: Restores,
    pub(crate) processed: BTreeMap<String, Timestamp>,
    pub(crate) queues: Queues,
    /// `true` if an operator retries dead letters with an operation on failures, and does not redrive them.
    pub(crate) gathers_dead_letters: bool,
    /// `true` if an operator has requested a retry of all failures.
    pub(crate) is_retrying: bool,
    /// The remaining number of crashes between two steps of an operation.
    pub(crate) retriers_die: u64,
    /// The messages that an operator has redriven.
    pub(crate) redriven: Vec<Copy>,
    /// The times at which effects were exhausted.
    pub(crate) exhausted_at: BTreeMap<MessageId, u64>,
    /// The messages that an operator requeued in their outboxes, and the time that they had been exhausted.
    pub(crate) requeued: Vec<(Message, u64)>,
    /// The workload's own world.
    pub(crate) outside: Box<dyn Any + Send>,

    pub(crate) checks: Checks,
    pub(crate) mutants: Notes,
    pub(crate) coverage: Coverage,
    pub(crate) stats: Stats,
    pub(crate) trace: Vec<String>,
    pub(crate) violation: Option<Violation>,
}

impl World {
    pub(crate) fn new(application: Arc<dyn Rules>, config: Config, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut stations = application.stations();
        if stations.iter().all(|station| station.queue != CONTROL) {
            stations.push(Station { function: SETTLES, queue: CONTROL });
        }
        let saga_queues = application.saga_queues();
        let unused = application.unused();
        let calls = Call::ENGINE.iter().chain(application.calls());
        let calls: Vec<Call> = calls.filter(|call| !unused.contains(call)).copied().collect();
        let queues = Queues::new(application.queues(), &stations);
        let mut more = Rng::new(seed ^ MORE);
        let restores: &[&str] = if application.restores() { &restore::SITUATIONS } else { &[] };
        let general = SITUATIONS.iter().chain(restores).copied();
        let (gathers_dead_letters, retriers_die) = (more.one_in(2), more.below(3));
        let mut world = Self {
            plan: Plan::draw(&mut rng, &mut more, &calls, application.races()),
            clocks: Clocks::draw(&mut rng),
            deletes_at_once: rng.one_in(2),
            has_short_deadlines: Rng::new(seed ^ SHORT).one_in(4),
            room: rng.pick(&[0, 3, 200]),
            keep: rng.pick(&[0, 2, 16]),
            damage: Damage::default(),
            only_repeats: false,
            spare_copies: rng.below(16),
            spare_repeats: rng.below(4),
            config,
            now: 0,
            rng,
            more,
            ids: 0,
            points: Points::default(),
            occasions: Vec::new(),
            acting: None,
            names: Vec::new(),
            restarts: Vec::new(),
            hides_ms: Vec::new(),
            retriers: Vec::new(),
            runs_saga: Vec::new(),
            documents: BTreeMap::new(),
            earlier: BTreeMap::new(),
            items: BTreeMap::new(),
            sessions: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            views: BTreeMap::new(),
            stale_reads: StaleReads::new(seed),
            failures: FailureTables::default(),
            records: BTreeMap::new(),
            controls: Controls::default(),
            restores: Restores::default(),
            processed: BTreeMap::new(),
            queues,
            gathers_dead_letters,
            is_retrying: false,
            retriers_die,
            redriven: Vec::new(),
            exhausted_at: BTreeMap::new(),
            requeued: Vec::new(),
            outside: application.world(),
            sagas: model::sagas_of(&stations, &saga_queues),
            saga_queues,
            stations,
            checks: Checks::default(),
            mutants: Notes::default(),
            coverage: Coverage::new(calls, general, application.situations()),
            application,
            stats: Stats::default(),
            trace: Vec::new(),
            violation: None,
        };
        world.choose_damage();
        world
    }

    /// Returns how duplicates are detected after documents have expired.
    pub(crate) fn duplicate_detection(&self) -> Mode {
        if self.application.relies_on_documents(self) { Mode::Optimistic } else { self.config.mode }
    }

    /// Returns the time of a worker's clock.
    pub(crate) fn time_of(&self, worker: usize) -> Timestamp {
        timestamp(self.now).checked_add(self.clocks.error_of(worker)).unwrap_or(Timestamp::MAX)
    }

    /// Schedules an event.
    pub(crate) fn at(&mut self, ms: u64, occasion: Occasion) {
        self.occasions.push((ms, occasion));
    }

    /// Records the first violation; later ones usually follow from it.
    pub(crate) fn violate(&mut self, invariant: Invariant, detail: impl FnOnce() -> String) {
        if self.violation.is_none() {
            let violation = Violation { invariant, detail: detail() };
            self.note(|| format!("VIOLATION of {violation}"));
            self.violation = Some(violation);
        }
    }

    /// Records the violations of a check.
    pub(crate) fn hold(&mut self, checked: Result<(), Violation>) {
        if let Err(Violation { invariant, detail }) = checked {
            self.violate(invariant, || detail);
        }
    }

    /// Returns `true` if a function that starts now can connect to the database.
    pub(crate) fn can_connect(&mut self) -> bool {
        let is_away = self.plan.is_out(Call::SAGA_LOAD, self.now);
        if is_away {
            self.coverage.meet(STARTS_WITHOUT_STORE);
        }
        !is_away
    }

    /// Returns `true` if a point may continue now.
    pub(crate) fn is_open(&self, kind: Kind) -> bool {
        match kind {
            Kind::Call(..) => true,
            Kind::Receive(queue) => {
                self.queues.has_visible(queue, self.now) && !self.plan.is_out(Call::QUEUE_RECEIVE, self.now)
            }
            Kind::Operate => self.has_exhausted_entries(),
            Kind::Retry => self.is_retrying,
            Kind::Sweep => self.next_ready().is_some_and(|ready| ready <= self.now),
        }
    }

    /// Returns the time at which a closed point may open, if this depends only on time.
    pub(crate) fn opens_at(&self, kind: Kind) -> Option<u64> {
        match kind {
            Kind::Call(..) => Some(0),
            Kind::Receive(queue) => {
                let visible = self.queues.next_visible(queue)?;
                Some(visible.max(self.plan.back_at(Call::QUEUE_RECEIVE, self.now)))
            }
            Kind::Operate => self.has_exhausted_entries().then_some(0),
            Kind::Retry => self.is_retrying.then_some(0),
            Kind::Sweep => self.next_ready(),
        }
    }

    /// Returns the time at which the first outbox entry of all records is ready.
    fn next_ready(&self) -> Option<u64> {
        let sagas = self.documents.values().map(|stored| &stored.document.outbox);
        let sessions = self.sessions.values().map(|stored| &stored.outbox);
        sagas.chain(sessions).flatten().filter_map(Entry::ready_at).min().map(millis)
    }

    /// Returns the outbox of a record.
    pub(crate) fn outbox(&mut self, owner: Owner) -> Option<&mut Vec<Entry>> {
        match owner {
            Owner::Saga(id) => self.documents.get_mut(&id).map(|stored| &mut stored.document.outbox),
            Owner::Session(id) => self.sessions.get_mut(&id).map(|stored| &mut stored.outbox),
        }
    }

    /// Records the decision of a function.
    pub(crate) fn observed(&mut self, observation: &DecisionRecord) {
        self.note(|| {
            let DecisionRecord { message, verdict, why, .. } = observation;
            let id = observation.message_id.map(|id| short(&id)).unwrap_or_default();
            format!("{:<16} {message} {id}: {why}", verdict.name())
        });
        // The functions contain panics; here each of them is a defect.
        if observation.why.starts_with("it panicked") {
            self.violate(Invariant::Answers, || format!("{}: {}", observation.function, observation.why));
        }
        self.check_handled(observation);
        self.check_repeated(observation);
        let application = Arc::clone(&self.application);
        let checked = application.observed(self, observation);
        self.hold(checked);
    }

    /// Returns the number of duplicates of a message.
    pub(crate) fn copies(&mut self) -> usize {
        let copied = self.spare_copies > 0 && self.rng.one_in(8);
        self.spare_copies -= u64::from(copied);
        if copied { 2 } else { 1 }
    }

    /// Returns the delay of a message until it reaches its queue.
    pub(crate) fn transit_ms(&mut self) -> u64 {
        match self.rng.below(20) {
            0 => self.rng.between(1_000, 90_000),
            1..=4 => self.rng.between(100, 10_000),
            _ => self.rng.below(100),
        }
    }
}
