//! The interface that an application implements to be simulated.

use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use messages::{DecisionRecord, Message, PartitionKey, Queue};
use outbox::session::SessionStatus;
use outbox::{Key, Record, SessionRecord, View};
use saga::{Content, Control, Document, Engine, Persist, Saga, System};
use serde_json::Value;

use crate::access::{Access, Scene};
use crate::coverage::Call;
use crate::options::{Mode, Mutant};
use crate::restore::RestoredStores;
use crate::rng::Rng;
use crate::sagas::OtherSaga;
use crate::time::timestamp;
use crate::time::{millis, span};
use crate::world::World;

pub use crate::model::{Bounds, CheckResult};

/// An application under simulation. Its functions come from its system's table; this trait adds the outside world, and
/// invariants in addition to the engine's guarantees.
pub trait Workload: Clone + Send + Sync + 'static {
    /// The saga.
    type Saga: Saga;
    /// The ports that the functions of the workload use.
    type Ports: Send + 'static;
    /// State that outlives its workers in addition to the engine's stores, such as uploaded files.
    type World: Clone + Default + Send + 'static;

    /// The saga.
    fn saga(&self) -> Self::Saga;

    /// Returns the further sagas, in addition to [`Workload::saga`].
    fn others(&self) -> Vec<OtherSaga> {
        Vec::new()
    }

    /// The queues and functions of the system. The function of a queue is simulated as shipped.
    fn system(&self) -> &'static System<Self::Ports>;

    /// Returns the ports of one worker: those of the engine, and the application's own ports over `access`.
    fn ports(&self, engine: Engine, access: Access<Self::World>) -> Self::Ports;

    /// Runs a client from its first to its last request. The client starts immediately. It restarts after a crash only
    /// if [`Workload::clients_return`] is set.
    fn client(&self, ports: Self::Ports, access: Access<Self::World>, rng: Rng) -> BoxFuture<'static, ()>;

    /// Returns `true` if a crashed client restarts with the same random numbers, so that it can repeat its requests. It
    /// can also record its first start in the outside world, and stop.
    fn clients_return(&self) -> bool {
        false
    }

    /// The calls of its own ports, each created with [`Call::own`] and its index in this list.
    fn calls(&self) -> &'static [Call] {
        &[]
    }

    /// The engine's calls that the workload never makes. By default, its sagas write no records with
    /// [`saga::Advance::write`].
    fn unused(&self) -> &'static [Call] {
        &[Call::RECORDS_ADVANCE]
    }

    /// The calls of its own ports that delay a worker in some schedules, so that others overtake it.
    fn races(&self) -> &'static [Call] {
        &[]
    }

    /// Returns `true` if some schedules restore the stores of the workload to an earlier time.
    fn restores(&self) -> bool {
        false
    }

    /// Replaces the part of its world that a restore of the database changes. Uploaded files and the true history are
    /// kept.
    fn restore(&self, _world: &mut Self::World, _backup: &Self::World) {}

    /// Performs the steps of the runbook after a restore, before the functions start again. Returns `false` if the
    /// operator has to repeat these steps a minute later.
    fn after_restore(
        &self,
        _ports: Self::Ports,
        _access: Access<Self::World>,
        _what: RestoredStores,
    ) -> BoxFuture<'static, bool> {
        Box::pin(std::future::ready(true))
    }

    /// Finds and deletes data without a reference, once everything is at rest after a restore. Returns `false` if the
    /// call has to be repeated.
    fn check_stored(&self, _ports: Self::Ports, _access: Access<Self::World>) -> BoxFuture<'static, bool> {
        Box::pin(std::future::ready(true))
    }

    /// Situations that a run must cover in addition to faults at calls; reported with [`Scene::meet`].
    fn situations(&self) -> &'static [&'static str] {
        &[]
    }

    /// Defects that can be planted in its own ports, which check them with [`Access::has`], and the modes in which they
    /// must be found.
    fn defects(&self) -> &'static [(&'static str, &'static [Mode])] {
        &[]
    }

    /// The engine's defects that its own protections hide, so that no schedule finds them.
    fn hidden_defects(&self) -> &'static [Mutant] {
        &[]
    }

    /// Returns the maximum stored size of a partition.
    fn bounds(&self, _world: &Self::World, _partition: PartitionKey) -> Bounds {
        Bounds::default()
    }

    /// Returns the maximum time that a partition waits before it acts by itself, or `None` if it may wait indefinitely.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// Returns `true` if this final state is a success, for the totals.
    fn succeeded(&self, _state: &<Self::Saga as Saga>::State) -> bool {
        true
    }

    /// Returns `true` if an instance of [`Workload::saga`] may stay in this state when no message is left. All other
    /// instances must have ended by then. A recurring timer always leaves a message, so its instance must end.
    fn may_stay_open(&self, _state: &<Self::Saga as Saga>::State) -> bool {
        false
    }

    /// Returns `true` if an instance of [`Workload::saga`] may wait in this state without a running timer.
    fn may_wait(&self, _state: &<Self::Saga as Saga>::State) -> bool {
        false
    }

    /// Returns `true` if the saga refuses this message, so that it remains a dead letter.
    fn refuses(&self, _world: &Self::World, _message: &Message) -> bool {
        false
    }

    /// The actions that an operator performs on instances in some schedules. A pause is always followed by a resume.
    fn controls(&self) -> &'static [Control] {
        &[]
    }

    /// Returns the name and the data of an event that an operator sends to an instance of [`Workload::saga`], and
    /// records it.
    fn operator_event(
        &self,
        _scene: &mut Scene<'_, Self::World>,
        _partition: PartitionKey,
    ) -> Option<(&'static str, Value)> {
        None
    }

    /// Returns `true` if only documents detect the duplicates of some messages, although there is a ledger. In that
    /// case, no duplicates arrive after documents have expired.
    fn relies_on_documents(&self, _world: &Self::World) -> bool {
        false
    }

    /// Checks the invariants of each change of a document.
    fn changed(&self, _change: &Change<'_, Self::Saga>) -> CheckResult {
        Ok(())
    }

    /// Checks the invariants of each committed session.
    fn committed(&self, _session: &SessionRecord) -> CheckResult {
        Ok(())
    }

    /// Records a decision of a function.
    fn observed(&self, _scene: &mut Scene<'_, Self::World>, _observation: &DecisionRecord) -> CheckResult {
        Ok(())
    }

    /// Records a message that its queue dead-lettered after failed deliveries. `true` means that it waited for a
    /// service or an upgrade for longer than queues guarantee.
    fn dead_lettered(
        &self,
        _scene: &mut Scene<'_, Self::World>,
        _queue: &Queue,
        _message: &Message,
        _is_outlasted: bool,
    ) {
    }

    /// Checks the invariants of the final state.
    fn check(&self, _rest: &Rest<'_, Self>) -> CheckResult {
        Ok(())
    }

    /// Checks that duplicates after the end changed nothing.
    ///
    /// # Errors
    /// Returns an error if a duplicate changed something.
    fn unchanged(&self, _before: &Self::World, _after: &Self::World) -> Result<(), String> {
        Ok(())
    }
}

/// A change of a document that is about to be stored.
pub struct Change<'a, S: Saga> {
    /// The write, with unparsed states.
    pub write: &'a Persist,
    /// The state that the attempt had loaded; none without a document.
    pub before: Option<&'a S::State>,
    /// The new state.
    pub after: &'a S::State,
    /// The messages that the change adds to the outbox, in order.
    pub messages: &'a [Message],
    /// The views that the change adds.
    pub views: &'a [View],
}

/// The final state. It dereferences to the workload's own world.
pub struct Rest<'a, W: Workload> {
    world: &'a World,
    workload: PhantomData<W>,
}

impl<'a, W: Workload> Rest<'a, W> {
    pub(crate) fn new(world: &'a World) -> Self {
        Self { world, workload: PhantomData }
    }

    /// Returns the partitions that have a document, a view or a session.
    pub fn partitions(&self) -> Vec<PartitionKey> {
        let documents = self.world.documents.keys().copied();
        let mut all: Vec<_> = documents.chain(self.world.views.keys().copied()).collect();
        all.extend(self.world.checks.sessions.values().copied());
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the document of a partition.
    pub fn document(&self, partition: PartitionKey) -> Option<&'a Document> {
        self.world.documents.get(&partition).map(|stored| &stored.document)
    }

    /// Returns the content of the partition's document.
    pub fn content(&self, partition: PartitionKey) -> Option<&'a Content> {
        self.document(partition).map(|document| &document.content)
    }

    /// Returns the state of the partition.
    pub fn state(&self, partition: PartitionKey) -> Option<&'a <W::Saga as Saga>::State> {
        self.world.documents.get(&partition)?.state.downcast_ref()
    }

    /// The state of a partition of another saga of the workload.
    pub fn state_of<S: Saga>(&self, partition: PartitionKey) -> Option<&'a S::State> {
        self.world.documents.get(&partition)?.state.downcast_ref()
    }

    /// Returns the view of the partition.
    pub fn view(&self, partition: PartitionKey) -> Option<&'a View> {
        self.world.views.get(&partition)
    }

    /// Returns a record of the application that sessions wrote.
    pub fn record(&self, key: &Key) -> Option<Record> {
        self.world.stored_record(key).cloned()?.at(timestamp(self.world.now))
    }

    /// Returns all records of the application that were not removed and have not expired.
    pub fn records(&self) -> impl Iterator<Item = (&'a Key, Record)> {
        let now = timestamp(self.world.now);
        self.world.records.iter().filter_map(move |(key, record)| Some((key, record.clone().at(now)?)))
    }

    /// Returns `true` if a session of this partition was committed.
    pub fn is_committed(&self, partition: PartitionKey) -> bool {
        self.world.is_committed(partition)
    }

    /// Returns the messages of this partition that were dead-lettered until an operator redrove them, and those that
    /// were exhausted in their outbox for longer than this.
    pub fn abandoned_messages(
        &self,
        partition: PartitionKey,
        longer_than: Duration,
    ) -> impl Iterator<Item = Message> {
        self.world.redriven_messages(partition, span(longer_than))
    }

    /// Returns `true` if an outage or the wait for an upgrade since this time was longer than the retention of queues.
    pub fn was_outlasted(&self, since: Timestamp) -> bool {
        let since = millis(since);
        self.world.plan.outlasts_queues(since, self.world.now) || self.world.awaits_upgrade(since)
    }

    /// Returns the mode in which the workers detect duplicates.
    pub fn mode(&self) -> Mode {
        self.world.config.mode
    }

    /// Returns the restored stores, if there was a restore.
    pub fn restored(&self) -> Option<RestoredStores> {
        self.world.restored()
    }

    /// Returns every message that was stored as an effect in this partition, even if it was not sent, unless a restore
    /// has undone the change.
    pub fn effects(&self, partition: PartitionKey) -> impl Iterator<Item = &'a Message> {
        self.world.checks.messages_of(partition)
    }
}

impl<W: Workload> Deref for Rest<'_, W> {
    type Target = W::World;

    #[allow(clippy::expect_used, reason = "a world is made for its workload, and never changed for another")]
    fn deref(&self) -> &W::World {
        self.world.outside.downcast_ref().expect("the world is this workload's")
    }
}

impl World {
    pub(crate) fn is_committed(&self, partition: PartitionKey) -> bool {
        let committed =
            |id| self.sessions.get(id).is_some_and(|stored| stored.found == SessionStatus::Committed);
        self.checks.sessions.iter().any(|(id, of)| *of == partition && committed(id))
    }
}
