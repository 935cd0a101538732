//! The workload without its types, so that the rest of the crate is compiled once and not for each workload.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dedup::CheckTokens;
use dedup::ledger::NoLedger;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use messages::{
    Body, Consumer, DecisionRecord, Message, Outgoing, PartitionKey, Queue, QueueSpec, SendError,
    SendMessages, Token,
};
use outbox::session::Options;
use outbox::{Policy, SessionRecord};
use saga::{
    Content, Control, Engine, EventDelivery, Failures, Function, MissingSetting, OperatorEvent, Partitions,
    Saga, SendEventError, Settings, Stores,
};
use serde_json::Value;

use crate::access::{Access, Scene};
use crate::coverage::Call;
use crate::model::{Bounds, CheckResult, ExpectedWrite, ObservedWrite, SETTLES, State, Station};
use crate::options::{Invariant, Mode, Mutant};
use crate::port::Port;
use crate::ports::outboxes::{SagaOutboxes, SessionOutboxes};
use crate::restore::RestoredStores;
use crate::rng::Rng;
use crate::sagas::{AnySaga, OtherSaga};
use crate::workload::{Change, Rest, Workload};
use crate::world::{Rules, World};

/// The result of sending an event of an operator.
type SentEvent = Result<EventDelivery, SendEventError>;

/// A simulated application without the types of its workload.
pub(crate) trait Application: Rules {
    fn system(&self) -> &'static str;
    fn consumer(&self, port: &Port, function: &str) -> Result<Arc<dyn Consumer>, MissingSetting>;
    fn failures(&self, port: &Port) -> Result<Failures, MissingSetting>;
    fn send_event(&self, port: &Port, event: OperatorEvent) -> BoxFuture<'static, SentEvent>;
    fn client(&self, port: &Port, rng: Rng) -> BoxFuture<'static, ()>;
    fn after_restore(&self, port: &Port, what: RestoredStores) -> BoxFuture<'static, bool>;
    fn check_stored(&self, port: &Port) -> BoxFuture<'static, bool>;
}

pub(crate) fn of<W: Workload>(workload: &W) -> Arc<dyn Application> {
    let may_wait = {
        let workload = workload.clone();
        move |state: &<W::Saga as Saga>::State| workload.may_wait(state)
    };
    let may_stay_open = {
        let workload = workload.clone();
        move |state: &<W::Saga as Saga>::State| workload.may_stay_open(state)
    };
    let first = OtherSaga::staying_open(workload.saga(), may_wait, may_stay_open);
    let sagas = std::iter::once(first).chain(workload.others()).collect();
    Arc::new(TypedApplication { sagas, workload: workload.clone() })
}

struct TypedApplication<W: Workload> {
    /// The saga of the workload, and further ones.
    sagas: Vec<OtherSaga>,
    workload: W,
}

impl<W: Workload> TypedApplication<W> {
    /// Returns the ports of a function.
    fn ports_of(&self, port: &Port, function: &Function<W::Ports>) -> W::Ports {
        let send =
            Arc::new(DeclaredSends::of(function.name, &[function], self.workload.system().queues, port));
        let engine = Engine {
            send,
            ..engine(self.system(), port).declared_by(function, self.workload.system().queues)
        };
        self.workload.ports(engine, Access::new(port, Some(function.name)))
    }

    /// Returns the ports of a client, whose requests the table may restrict.
    fn ports_of_client(&self, port: &Port) -> W::Ports {
        let (system, unrestricted) = (self.workload.system(), engine(self.system(), port));
        let functions: Vec<_> = system.request_functions().collect();
        let engine = if functions.is_empty() {
            unrestricted
        } else {
            let send = Arc::new(DeclaredSends::of("a client's request", &functions, system.queues, port));
            Engine { send, ..unrestricted.declared_for_requests(system) }
        };
        self.workload.ports(engine, Access::new(port, None))
    }

    /// Returns the ports of an operator, who is not restricted.
    fn ports_of_operator(&self, port: &Port) -> W::Ports {
        self.workload.ports(engine(self.system(), port), Access::new(port, None))
    }

    /// Returns the saga behind a queue.
    fn saga(&self, queue: &Queue) -> Result<&dyn AnySaga, String> {
        let found = self.sagas.iter().find(|saga| saga.0.queue() == *queue);
        found.map(|saga| &*saga.0).ok_or_else(|| format!("no saga is behind {queue}"))
    }
}

/// A state of the workload's first saga; `None` for a state of any other saga.
fn first<W: Workload>(state: &State) -> Option<&<W::Saga as Saga>::State> {
    state.downcast_ref()
}

impl<W: Workload> Application for TypedApplication<W> {
    fn system(&self) -> &'static str {
        self.workload.system().name
    }

    fn consumer(&self, port: &Port, function: &str) -> Result<Arc<dyn Consumer>, MissingSetting> {
        let function = self.workload.system().function(function);
        match function.and_then(|function| Some((function, function.build?))) {
            Some((function, build)) => build(&self.ports_of(port, function)),
            // The engine's function, for a system that does not name one.
            None => Ok(Arc::new(engine(self.system(), port).dispatch_outbox(SETTLES)?)),
        }
    }

    fn failures(&self, port: &Port) -> Result<Failures, MissingSetting> {
        engine(self.system(), port).failures("operator", self.workload.system())
    }

    fn send_event(&self, port: &Port, event: OperatorEvent) -> BoxFuture<'static, SentEvent> {
        let (engine, system) = (engine(self.system(), port), self.workload.system());
        Box::pin(async move { engine.send_event(system, &event, "operator").await })
    }

    fn client(&self, port: &Port, rng: Rng) -> BoxFuture<'static, ()> {
        self.workload.client(self.ports_of_client(port), Access::new(port, None), rng)
    }

    fn after_restore(&self, port: &Port, what: RestoredStores) -> BoxFuture<'static, bool> {
        self.workload.after_restore(self.ports_of_operator(port), Access::new(port, None), what)
    }

    fn check_stored(&self, port: &Port) -> BoxFuture<'static, bool> {
        self.workload.check_stored(self.ports_of_operator(port), Access::new(port, None))
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

    fn restores(&self) -> bool {
        self.workload.restores()
    }

    fn restore(&self, world: &mut World, backup: &(dyn Any + Send)) {
        let (Some(backup), Some(own)) = (backup.downcast_ref(), world.outside.downcast_mut()) else { return };
        self.workload.restore(own, backup);
    }

    fn saga_queues(&self) -> Vec<Queue> {
        self.sagas.iter().map(|saga| saga.0.queue()).collect()
    }

    fn read(&self, queue: &Queue, content: &Content) -> Result<State, String> {
        self.saga(queue)?.read(content)
    }

    fn succeeded(&self, state: &State) -> bool {
        first::<W>(state).is_none_or(|state| self.workload.succeeded(state))
    }

    fn may_stay_open(&self, state: &State) -> bool {
        self.sagas.iter().any(|saga| saga.0.may_stay_open(state))
    }

    fn may_wait(&self, state: &State) -> bool {
        self.sagas.iter().any(|saga| saga.0.may_wait(state))
    }

    fn refuses(&self, world: &World, message: &Message) -> bool {
        self.workload.refuses(&Rest::<W>::new(world), message)
    }

    fn postpones(&self, queue: &Queue, state: Option<&State>, message: &Message, now: Timestamp) -> bool {
        self.saga(queue).is_ok_and(|saga| saga.postpones(state, message, now))
    }

    fn controls(&self) -> &'static [Control] {
        self.workload.controls()
    }

    fn operator_event(&self, world: &mut World, partition: PartitionKey) -> Option<(&'static str, Value)> {
        self.workload.operator_event(&mut Scene::new(world), partition)
    }

    fn relies_on_documents(&self, world: &World) -> bool {
        self.workload.relies_on_documents(&Rest::<W>::new(world))
    }

    fn embed_reply_token(&self, queue: &Queue, request: &mut Body, reply_token: &Token) {
        if let Ok(saga) = self.saga(queue) {
            saga.embed_reply_token(request, reply_token);
        }
    }

    fn follow(
        &self,
        queue: &Queue,
        base: Option<(&Content, &State)>,
        messages: &[&Message],
        now: Timestamp,
    ) -> Result<ExpectedWrite, String> {
        self.saga(queue)?.follow(base, messages, now)
    }

    fn patience(&self) -> Option<Duration> {
        self.workload.patience()
    }

    fn bounds(&self, world: &World, partition: PartitionKey) -> Bounds {
        self.workload.bounds(&Rest::<W>::new(world), partition)
    }

    fn changed(&self, written: &ObservedWrite<'_>) -> CheckResult {
        let ObservedWrite { write, before, after, messages, views } = *written;
        let Some(after) = first::<W>(after) else { return Ok(()) };
        let before = before.and_then(first::<W>);
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
    fn of<P>(name: &'static str, functions: &[&Function<P>], table: &[QueueSpec], port: &Port) -> Self {
        let mut queues: Vec<_> = functions.iter().flat_map(|function| function.sends_in(table)).collect();
        if port.has(Mutant::QueueUndeclared)
            && let Some(omitted) = functions.last().and_then(|function| function.sends.last())
        {
            queues.retain(|queue| queue != omitted);
        }
        Self { function: name, queues, port: port.clone() }
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

/// Returns the engine of one worker.
pub(crate) fn engine(system: &'static str, port: &Port) -> Engine {
    let (mode, room, keep) = port.universe.with(|world| (world.config.mode, world.room, world.keep));
    let shared = Arc::new(port.clone());
    let stores = Stores::of(&shared, SagaOutboxes(port.clone()), SessionOutboxes(port.clone()));
    let (partitions, check_tokens): (_, Arc<dyn CheckTokens>) = match mode {
        Mode::Ledger => (Partitions::of(shared.clone()), shared.clone()),
        Mode::Optimistic => (Partitions::of(Arc::new(NoLedger)), Arc::new(NoLedger)),
    };
    Engine {
        system,
        queue: None,
        // Crashes stop handlers at every step.
        overtime: None,
        stores: Ok(stores),
        partitions: Ok(partitions),
        check_tokens: Ok(check_tokens),
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
