//! The interface of the simulation for a workload's ports and clients.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use jiff::Timestamp;
use messages::{Message, MessageId, PartitionKey, Queue, StoreError};

use crate::coverage::{Call, Phase};
use crate::options::{Mode, Mutant};
use crate::point::Kind;
use crate::port::Port;
use crate::restore::RestoredStores;
use crate::rng::Rng;
use crate::time::{span, timestamp};
use crate::world::{Occasion, World};

pub use crate::describe::short;

/// The simulation, as seen by one worker of a workload with the world `A`.
pub struct Access<A> {
    port: Port,
    function: Option<&'static str>,
    world: PhantomData<fn() -> A>,
}

impl<A> Clone for Access<A> {
    fn clone(&self) -> Self {
        Self::new(&self.port, self.function)
    }
}

impl<A> Access<A> {
    pub(crate) fn new(port: &Port, function: Option<&'static str>) -> Self {
        Self { port: port.clone(), function, world: PhantomData }
    }

    /// Returns the name of the worker's function; `None` for a client.
    pub fn function(&self) -> Option<&'static str> {
        self.function
    }
}

impl<A: Send + 'static> Access<A> {
    /// Makes a call of one of the workload's own ports: it may fail, report a wrong outcome, be late or never return,
    /// like the engine's own calls. Its work is performed atomically.
    pub async fn call<T: Send>(
        &self,
        call: Call,
        perform: impl FnOnce(&mut Scene<'_, A>) -> T + Clone + Send + 'static,
    ) -> Result<T, StoreError> {
        self.port.call(call, move |world| perform(&mut Scene::new(world))).await
    }

    /// Makes a call that may be answered with earlier data ([`Call::earlier`]): then `perform` receives `true`.
    pub async fn read<T: Send>(
        &self,
        call: Call,
        perform: impl FnOnce(&mut Scene<'_, A>, bool) -> T + Clone + Send + 'static,
    ) -> Result<T, StoreError> {
        self.port.read(call, move |world, is_stale| perform(&mut Scene::new(world), is_stale)).await
    }

    /// Sends the next request of a client to another instance of the function, which has not reached the latest primary
    /// yet.
    pub fn reach_another_instance(&self) {
        self.port.perform(World::begin_batch);
    }

    /// Performs an action of the outside world immediately; it cannot fail.
    pub fn with<T>(&self, act: impl FnOnce(&mut Scene<'_, A>) -> T) -> T {
        self.port.perform(|world| act(&mut Scene::new(world)))
    }

    /// Waits. A waiting worker or client may crash.
    pub async fn sleep(&self, duration: Duration) {
        let until = self.port.universe.with(|world| world.now.saturating_add(span(duration)));
        self.port.stop_at(Kind::Call(Call::HOST_SLEEP, Phase::Before), until).await;
    }

    /// Returns `true` if this defect of the workload is planted.
    pub fn has(&self, defect: &'static str) -> bool {
        self.port.has(Mutant::Own(defect))
    }

    /// Returns the way in which the functions detect duplicates.
    pub fn mode(&self) -> Mode {
        self.port.universe.with(|world| world.config.mode)
    }
}

/// The world during one atomic action. It dereferences to the workload's own world, `A`.
pub struct Scene<'a, A> {
    world: &'a mut World,
    own: PhantomData<A>,
}

impl<'a, A: 'static> Scene<'a, A> {
    pub(crate) fn new(world: &'a mut World) -> Self {
        Self { world, own: PhantomData }
    }

    /// The generator for choices.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.world.rng
    }

    /// `true` if this request arrives after its caller was answered, or stopped waiting for an answer.
    pub fn is_stray(&self) -> bool {
        self.world.acting.is_none()
    }

    /// Returns the restored stores, if there was a restore.
    pub fn restored(&self) -> Option<RestoredStores> {
        self.world.restored()
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        timestamp(self.world.now)
    }

    /// Writes a line of the trace if tracing is enabled.
    pub fn note(&mut self, what: impl FnOnce() -> String) {
        self.world.note(what);
    }

    /// Records that one of [`Workload::situations`](crate::Workload::situations) has occurred.
    pub fn meet(&mut self, situation: &'static str) {
        self.world.coverage.meet(situation);
    }

    /// Puts a message that the engine did not send into a queue, such as the notification of a store.
    pub fn post(&mut self, queue: &Queue, body: &str) {
        self.world.post_from_outside(queue, body);
    }

    /// Schedules an action.
    pub fn later(&mut self, after: Duration, act: impl FnOnce(&mut Scene<'_, A>) + Send + 'static) {
        let at = self.world.now.saturating_add(span(after));
        self.world.at(at, Occasion::Act(Box::new(move |world| act(&mut Scene::new(world)))));
    }

    /// Returns the messages of a partition's stored effects.
    pub fn effects(&self, partition: PartitionKey) -> impl Iterator<Item = &Message> {
        self.world.checks.messages_of(partition)
    }

    /// Returns `true` if no worker will handle this message again: a handler has recorded it, or no queue contains it.
    pub fn is_done(&self, message: MessageId) -> bool {
        self.world.has_record_of(message) || !self.world.queues.contain(message)
    }

    /// Returns the message of a stored effect.
    pub fn effect(&self, partition: PartitionKey, id: MessageId) -> Option<&Message> {
        self.world.checks.message(partition, id)
    }
}

impl<A: 'static> Deref for Scene<'_, A> {
    type Target = A;

    #[allow(clippy::expect_used, reason = "a world is made for its workload, and never changed for another")]
    fn deref(&self) -> &A {
        self.world.outside.downcast_ref().expect("the world is this workload's")
    }
}

impl<A: 'static> DerefMut for Scene<'_, A> {
    #[allow(clippy::expect_used, reason = "a world is made for its workload, and never changed for another")]
    fn deref_mut(&mut self) -> &mut A {
        self.world.outside.downcast_mut().expect("the world is this workload's")
    }
}
