//! The workload without its types, so that the rest of the crate is compiled once and not for each workload.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dedup::ledger::NoLedger;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use messages::{
    Body, Consumer, DecisionRecord, Json, Message, MessageId, Outgoing, PartitionKey, Queue, QueueSpec,
    SendError, SendMessages, Token,
};
use outbox::session::Options;
use outbox::{Policy, SessionRecord};
use saga::{
    Content, Effect, Engine, Event, Failures, Function, MissingSetting, Partitions, Saga, Settings, Stores,
};

use crate::access::{Access, Scene};
use crate::coverage::Call;
use crate::model::{
    Bounds, CheckResult, ExpectedWrite, ObservedWrite, SETTLES, State, Station, WantedMessage,
};
use crate::options::{Invariant, Mode, Mutant};
use crate::port::Port;
use crate::ports::outboxes::{SagaOutboxes, SessionOutboxes};
use crate::rng::Rng;
use crate::workload::{Change, Rest, Workload};
use crate::world::{Rules, World};

/// A simulated application without the types of its workload.
pub(crate) trait Application: Rules {
    fn system(&self) -> &'static str;
    fn consumer(&self, port: &Port, function: &str) -> Result<Arc<dyn Consumer>, MissingSetting>;
    fn failures(&self, port: &Port) -> Result<Failures, MissingSetting>;
    fn client(&self, port: &Port, rng: Rng) -> BoxFuture<'static, ()>;
}

/// Returns the application of a workload.
pub(crate) fn of<W: Workload>(workload: &W) -> Arc<dyn Application> {
    Arc::new(TypedApplication { saga: workload.saga(), workload: workload.clone() })
}

struct TypedApplication<W: Workload> {
    saga: W::Saga,
    workload: W,
}

impl<W: Workload> TypedApplication<W> {
    fn ports(&self, port: &Port, function: Option<&'static str>) -> W::Ports {
        let engine = engine(self.system(), port);
        let engine = match function.and_then(|name| self.workload.system().function(name)) {
            Some(function) => {
                let send = Arc::new(DeclaredSends::of(function, port));
                Engine { send, ..engine.declared_by(function) }
            }
            None => engine,
        };
        self.workload.ports(engine, Access::new(port, function))
    }

    fn state<'a>(&self, state: &'a State) -> Result<&'a <W::Saga as Saga>::State, String> {
        state.downcast_ref().ok_or_else(|| "it is another saga's state".to_owned())
    }
}

impl<W: Workload> Application for TypedApplication<W> {
    fn system(&self) -> &'static str {
        self.workload.system().name
    }

    fn consumer(&self, port: &Port, function: &str) -> Result<Arc<dyn Consumer>, MissingSetting> {
        let function = self.workload.system().function(function);
        match function.and_then(|function| Some((function.name, function.build?))) {
            Some((name, build)) => build(&self.ports(port, Some(name))),
            // The engine's function, for a system that does not name one.
            None => Ok(Arc::new(engine(self.system(), port).dispatch_outbox(SETTLES)?)),
        }
    }

    fn failures(&self, port: &Port) -> Result<Failures, MissingSetting> {
        engine(self.system(), port).failures("operator", self.workload.system())
    }

    fn client(&self, port: &Port, rng: Rng) -> BoxFuture<'static, ()> {
        self.workload.client(self.ports(port, None), Access::new(port, None), rng)
    }
}

impl<W: Workload> Rules for TypedApplication<W> {
    fn queues(&self) -> &'static [QueueSpec] {
        self.workload.system().queues
    }

    fn stations(&self) -> Vec<Station> {
        let functions = self.workload.system().functions.iter().filter(|function| function.build.is_some());
        functions
            .filter_map(|function| {
                Some(Station { function: function.name, queue: function.source.queue()?.clone() })
            })
            .collect()
    }

    fn world(&self) -> Box<dyn Any + Send> {
        Box::new(W::World::default())
    }

    fn world_of(&self, world: &World) -> Box<dyn Any + Send> {
        Box::new(W::World::clone(&Rest::<W>::new(world)))
    }

    fn clients_return(&self) -> bool {
        self.workload.clients_return()
    }

    fn calls(&self) -> &'static [Call] {
        self.workload.calls()
    }

    fn situations(&self) -> &'static [&'static str] {
        self.workload.situations()
    }

    fn unused(&self) -> &'static [Call] {
        self.workload.unused()
    }

    fn races(&self) -> &'static [Call] {
        self.workload.races()
    }

    fn read(&self, content: &Content) -> Result<State, String> {
        let state = content.state.read::<<W::Saga as Saga>::State>();
        state.map(|state| Arc::new(state) as State).map_err(|error| error.to_string())
    }

    fn succeeded(&self, state: &State) -> bool {
        self.state(state).is_ok_and(|state| self.workload.succeeded(state))
    }

    fn may_wait(&self, state: &State) -> bool {
        self.state(state).is_ok_and(|state| self.workload.may_wait(state))
    }

    fn refuses(&self, world: &World, message: &Message) -> bool {
        self.workload.refuses(&Rest::<W>::new(world), message)
    }

    fn postpones(&self, state: Option<&State>, message: &Message, now: Timestamp) -> bool {
        let unknown = <W::Saga as Saga>::State::default();
        let state = state.map_or(Ok(&unknown), |state| self.state(state));
        let (Ok(state), Ok(body)) = (state, message.read::<<W::Saga as Saga>::Event>()) else { return false };
        let event = Event { id: message.id, partition: message.partition, body: &body };
        matches!(self.saga.transition(state, &event, now), saga::Decision::Postpone { .. })
    }

    fn relies_on_documents(&self, world: &World) -> bool {
        self.workload.relies_on_documents(&Rest::<W>::new(world))
    }

    fn embed_reply_token(&self, request: &mut Body, reply_token: &Token) {
        self.saga.embed_reply_token(request, reply_token);
    }

    fn follow(
        &self,
        base: Option<(&Content, &State)>,
        messages: &[&Message],
        now: Timestamp,
    ) -> Result<ExpectedWrite, String> {
        let (mut state, timers) = match base {
            Some((content, state)) => (self.state(state)?.clone(), content.timers.clone()),
            None => Default::default(),
        };
        let timers = if timers.is_empty() { self.saga.timers(&state) } else { timers };
        let expected = base.into_iter().flat_map(|(content, _)| &content.expected);
        let expected = expected.map(|expected| expected.token.clone()).collect();
        let mut wanted = Draft::new(&self.saga, now, timers, expected);
        for message in messages {
            wanted.follow(&mut state, message)?;
        }
        let stored = Json::of(&state).map_err(|error| error.to_string())?;
        let Draft { messages, shown, timers, cancelled, .. } = wanted;
        Ok(ExpectedWrite { state: stored, messages, shown, timers, cancelled })
    }

    fn patience(&self) -> Option<Duration> {
        self.workload.patience()
    }

    fn bounds(&self, world: &World, partition: PartitionKey) -> Bounds {
        self.workload.bounds(&Rest::<W>::new(world), partition)
    }

    fn changed(&self, written: &ObservedWrite<'_>) -> CheckResult {
        let ObservedWrite { write, before, after, messages, views } = *written;
        let before = before.map(|state| self.state(state)).transpose()?;
        let after = self.state(after)?;
        self.workload.changed(&Change { write, before, after, messages, views })
    }

    fn committed(&self, session: &SessionRecord) -> CheckResult {
        self.workload.committed(session)
    }

    fn observed(&self, world: &mut World, observation: &DecisionRecord) -> CheckResult {
        self.workload.observed(&mut Scene::new(world), observation)
    }

    fn dead_lettered(&self, world: &mut World, queue: &Queue, message: &Message, is_outlasted: bool) {
        self.workload.dead_lettered(&mut Scene::new(world), queue, message, is_outlasted);
    }

    fn check(&self, world: &World) -> CheckResult {
        self.workload.check(&Rest::new(world))
    }

    fn unchanged(&self, before: &(dyn Any + Send), world: &World) -> Result<(), String> {
        let Some(before) = before.downcast_ref() else { return Ok(()) };
        self.workload.unchanged(before, &Rest::<W>::new(world))
    }
}

/// Sends messages for a function. Unlike the engine, it reports a message to an undeclared queue as a violation.
struct DeclaredSends {
    function: &'static str,
    queues: Vec<Queue>,
    port: Port,
}

impl DeclaredSends {
    fn of<P>(function: &Function<P>, port: &Port) -> Self {
        let mut queues = function.declared_queues();
        if port.has(Mutant::QueueUndeclared)
            && let Some(omitted) = function.sends.last()
        {
            queues.retain(|queue| queue != omitted);
        }
        Self { function: function.name, queues, port: port.clone() }
    }
}

#[async_trait]
impl SendMessages for DeclaredSends {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        for Outgoing { queue, .. } in messages.iter().filter(|sent| !self.queues.contains(&sent.queue)) {
            let detail = || format!("{} sends to {queue}, which its table does not declare", self.function);
            self.port.universe.with(|world| world.violate(Invariant::Application, detail));
        }
        self.port.send(messages).await
    }
}

/// Computes the result of messages without the engine.
struct Draft<'a, S> {
    saga: &'a S,
    now: Timestamp,
    messages: BTreeMap<MessageId, WantedMessage>,
    shown: Option<MessageId>,
    timers: BTreeMap<String, MessageId>,
    cancelled: Vec<MessageId>,
    /// The tokens that the document expected before.
    expected: BTreeSet<Token>,
}

impl<'a, S: Saga> Draft<'a, S> {
    fn new(
        saga: &'a S,
        now: Timestamp,
        timers: BTreeMap<String, MessageId>,
        expected: BTreeSet<Token>,
    ) -> Self {
        let (messages, cancelled) = (BTreeMap::new(), Vec::new());
        Self { saga, now, messages, shown: None, timers, cancelled, expected }
    }

    fn awaits(&self, message: &Message) -> bool {
        let is_expected = message.token.as_ref().is_some_and(|token| self.expected.contains(token));
        is_expected || self.timers.values().any(|id| *id == message.id)
    }

    fn follow(&mut self, state: &mut S::State, message: &Message) -> Result<(), String> {
        let body = message.read::<S::Event>().map_err(|error| error.to_string())?;
        let event = Event { id: message.id, partition: message.partition, body: &body };
        let advance = match self.saga.transition(state, &event, self.now) {
            saga::Decision::Advance(advance) => advance,
            // The message was expected, and is no longer.
            saga::Decision::Ignore { .. } if self.awaits(message) => {
                self.timers.retain(|_, id| *id != message.id);
                return Ok(());
            }
            saga::Decision::Ignore { why }
            | saga::Decision::Postpone { why }
            | saga::Decision::Reject { why } => {
                return Err(format!("{} changed the state, but: {why}", message.body.name));
            }
        };
        self.timers.retain(|_, id| *id != message.id);
        for (index, effect) in advance.effects.into_iter().enumerate() {
            self.add(message, &advance.next, index, effect);
        }
        *state = *advance.next;
        Ok(())
    }

    fn add(&mut self, message: &Message, next: &S::State, index: usize, effect: Effect) {
        let id = message.id.derive(index);
        match effect {
            Effect::Send { to, body } => self.send(id, to, body, false, false),
            Effect::Request { to, body } => self.send(id, to, body, true, false),
            Effect::Schedule { timer, due_at: _, to, body } => {
                self.cancel(&timer);
                let id = message.id.for_timer(&timer);
                self.timers.insert(timer, id);
                self.send(id, to, body, false, true);
            }
            Effect::Cancel { timer } => self.cancel(&timer),
            Effect::UpdateView if self.saga.view(message.partition, next).is_some() => self.shown = Some(id),
            Effect::UpdateView | Effect::Broken(_) => {}
        }
    }

    fn send(&mut self, id: MessageId, queue: Queue, body: Body, asks: bool, is_timer: bool) {
        self.messages.insert(id, WantedMessage { queue, name: body.name, asks, is_timer });
    }

    fn cancel(&mut self, timer: &str) {
        let Some(id) = self.timers.remove(timer) else { return };
        if self.messages.remove(&id).is_none() {
            self.cancelled.push(id);
        }
    }
}

/// Returns the engine of one worker.
pub(crate) fn engine(system: &'static str, port: &Port) -> Engine {
    let (mode, room, keep) = port.universe.with(|world| (world.config.mode, world.room, world.keep));
    let shared = Arc::new(port.clone());
    let stores = Stores::of(&shared, SagaOutboxes(port.clone()), SessionOutboxes(port.clone()));
    let partitions = match mode {
        Mode::Ledger => Partitions::of(shared.clone()),
        Mode::Optimistic => Partitions::of(Arc::new(NoLedger)),
    };
    Engine {
        system,
        stores: Ok(stores),
        partitions: Ok(partitions),
        processed: Ok(shared.clone()),
        send: shared.clone(),
        receive: shared.clone(),
        inspect: shared.clone(),
        host: shared.clone(),
        observer: shared,
        history: None,
        policy: match port.has(Mutant::GivesUpSoon) {
            false => Policy::default(),
            true => Policy { give_up_after: SignedDuration::from_mins(5), ..Policy::default() },
        },
        session: Options::default(),
        runner: Settings {
            admit_untokened: mode == Mode::Optimistic,
            max_tokens: room,
            max_leftover: keep,
            ..Settings::default()
        },
        earlier_view: |_| None,
    }
}
