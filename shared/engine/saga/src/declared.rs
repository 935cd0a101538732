//! Enforcement of the table of an application: faults of the table itself, and functions that use what they do not
//! declare.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use dedup::guard::MAX_RETRY_AFTER;
use messages::queue::RETENTION;
use messages::{Outgoing, Queue, QueueSpec, SendError, SendMessages, StoreError, naming};
use outbox::session::CONTROL;

use crate::engine::Engine;
use crate::runner::LAST_POSTPONED_DELIVERY;
use crate::system::{Function, MissingSetting, Service, Source, System};

/// All faults of the table of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongTable {
    /// The application.
    pub system: &'static str,
    /// The faults, at least one.
    pub faults: Vec<String>,
}

impl fmt::Display for WrongTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the table of {} is wrong: {}", self.system, self.faults.join("; "))
    }
}

impl std::error::Error for WrongTable {}

impl<P> System<P> {
    /// Checks the table: names are unique, every queue that is mentioned is specified, and a function is behind every
    /// queue with a consumer. A queue that another application reads is specified without a consumer.
    ///
    /// # Errors
    /// Returns all faults.
    pub fn check(&self) -> Result<(), WrongTable> {
        let mut faults = Vec::new();
        if !is_name(self.name) {
            faults.push(format!(
                "the name {:?} has other characters than lower-case letters, digits and hyphens",
                self.name
            ));
        }
        self.check_queues(&mut faults);
        self.check_functions(&mut faults);
        self.check_control(&mut faults);
        // A queue or function that is declared twice has its other faults twice.
        let mut reported = BTreeSet::new();
        faults.retain(|fault| reported.insert(fault.clone()));
        if faults.is_empty() { Ok(()) } else { Err(WrongTable { system: self.name, faults }) }
    }

    /// Returns the functions behind requests of clients.
    pub fn request_functions(&self) -> impl Iterator<Item = &'static Function<P>> {
        self.functions.iter().copied().filter(|function| function.source == Source::Requests)
    }

    fn specifies(&self, queue: &Queue) -> bool {
        QueueSpec::of(self.queues, queue).is_some()
    }

    fn check_queues(&self, faults: &mut Vec<String>) {
        // Two queues whose names differ in punctuation would have the same setting.
        let names = self.queues.iter().map(|spec| naming::snake(spec.queue.name()));
        for name in repeated(names) {
            faults.push(format!("queue {name} is specified more than once"));
        }
        // A dead letter does not name the queue that it comes from, and a retry returns it there.
        let dead = self.queues.iter().filter_map(|spec| Some(spec.dead_letters.as_ref()?.name().to_owned()));
        for name in repeated(dead) {
            faults.push(format!("{name} is the dead-letter queue of several queues"));
        }
        for QueueSpec { queue, dead_letters, receive_limit, events, batch_size, workers, .. } in self.queues {
            let mut sources = self.functions.iter().filter_map(|function| function.source.queue());
            let has_function = sources.any(|source| source == queue);
            if *batch_size > 0 && !has_function {
                faults.push(format!(
                    "queue {queue} is specified with a consumer, and no function is behind it"
                ));
            }
            if has_function && (*batch_size == 0 || *workers == 0) {
                faults.push(format!(
                    "queue {queue} has a function, and is specified without a consumer, or with no messages in a batch"
                ));
            }
            if !is_queue_name(queue.name()) {
                faults.push(format!(
                    "the name of queue {:?} is not 1 to {MAX_QUEUE_NAME} letters, digits, hyphens and underscores",
                    queue.name()
                ));
            }
            if let Some(sent_to) = events.map(|events| events.queue()).filter(|sent_to| sent_to != queue) {
                faults.push(format!("queue {queue} declares events that are sent to {sent_to}"));
            }
            let Some(dead) = dead_letters else { continue };
            if !self.specifies(dead) {
                faults.push(format!("{dead}, the dead-letter queue of {queue}, is not specified"));
            }
            if dead == queue {
                faults.push(format!("queue {queue} is its own dead-letter queue"));
            }
            match receive_limit {
                None => faults.push(format!("queue {queue} has a dead-letter queue and no receive limit")),
                Some(limit) if *limit < LAST_POSTPONED_DELIVERY => faults.push(format!(
                    "queue {queue} has a receive limit of {limit}, and the delays of retries are for \
                     {LAST_POSTPONED_DELIVERY} or more"
                )),
                Some(limit) if *limit > MAX_RECEIVE_LIMIT => faults.push(format!(
                    "queue {queue} has a receive limit of {limit}; after more than {MAX_RECEIVE_LIMIT} deliveries with the \
                     longest delay, the queue would delete the message before it is dead-lettered"
                )),
                Some(_) => {}
            }
        }
    }

    /// Checks that a function sweeps the outboxes of an application that has any.
    fn check_control(&self, faults: &mut Vec<String>) {
        let with_outbox: Vec<_> =
            self.functions.iter().filter(|function| function.services.contains(&Service::DATABASE)).collect();
        let Some(control) = self.behind(&CONTROL) else {
            if !with_outbox.is_empty() {
                faults.push(format!(
                    "no function is behind queue {CONTROL}, so timers, and effects that a crash leaves unsent, would never be sent"
                ));
            }
            return;
        };
        // A function that drains dead-letter queues sends their messages itself.
        for function in with_outbox.into_iter().filter(|function| function.drains.is_empty()) {
            let sends =
                function.sends.iter().filter(|queue| **queue != CONTROL && !control.sends.contains(queue));
            faults.extend(sends.map(|queue| {
                format!(
                    "{} does not send to {queue}, so what a crash of {} leaves unsent would never be sent there",
                    control.name, function.name
                )
            }));
        }
    }

    fn check_functions(&self, faults: &mut Vec<String>) {
        for name in repeated(self.functions.iter().map(|function| function.name.to_owned())) {
            faults.push(format!("function {name} is declared more than once"));
        }
        let sources = self.functions.iter().filter_map(|function| function.source.queue());
        for queue in repeated(sources.map(|queue| queue.name().to_owned())) {
            faults.push(format!("queue {queue} has more than one function"));
        }
        for function in self.functions {
            let name = function.name;
            let uses = [
                ("is behind", function.source.queue().into_iter().cloned().collect::<Vec<_>>()),
                ("sends to", function.sends.to_vec()),
                ("drains", function.drains.to_vec()),
            ];
            for (verb, queues) in uses {
                let unknown = queues.iter().filter(|queue| !self.specifies(queue));
                faults.extend(unknown.map(|queue| format!("{name} {verb} {queue}, which is not specified")));
            }
            let Some(queue) = function.source.queue() else { continue };
            if function.build.is_none() {
                faults.push(format!("{name} is behind a queue and builds no consumer"));
            }
            // A message that is rejected has to be kept somewhere.
            if QueueSpec::of(self.queues, queue).is_some_and(|spec| spec.dead_letters.is_none()) {
                faults.push(format!("{name} is behind {queue}, which has no dead-letter queue"));
            }
        }
    }
}

/// The maximum receive limit. With the longest delays of a handler, as many deliveries end within the retention of a
/// queue.
#[allow(clippy::cast_possible_truncation, reason = "the result is 23")]
const MAX_RECEIVE_LIMIT: u32 = (RETENTION.as_secs() / MAX_RETRY_AFTER.as_secs()) as u32 - 1;

/// The maximum length of a queue's name. SQS accepts 80 characters
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html>), and the template puts
/// the name of the stack in front of it.
const MAX_QUEUE_NAME: usize = 60;

fn is_queue_name(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=MAX_QUEUE_NAME).contains(&text.len()) && text.bytes().all(allowed)
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(allowed)
}

/// Returns what occurs more than once.
fn repeated(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut counts = BTreeMap::<String, usize>::new();
    names.for_each(|name| *counts.entry(name).or_default() += 1);
    counts.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name).collect()
}

impl<P> Function<P> {
    /// Returns the queues to which the function may send in a system with these queues: those that it declares, and its
    /// own if it is behind a queue of commands. A handler sends a command again that continues later, or for which it
    /// had no time.
    pub fn sends_in(&self, queues: &[QueueSpec]) -> Vec<Queue> {
        let has_commands = |queue: &Queue| {
            QueueSpec::of(queues, queue).is_some_and(|spec| spec.events.is_none())
                && *queue != CONTROL
                && !QueueSpec::is_dead_letter_queue(queues, queue)
        };
        let mut sends = self.sends.to_vec();
        if let Source::Queue(own) = &self.source
            && has_commands(own)
            && !sends.contains(own)
        {
            sends.push(own.clone());
        }
        sends
    }
}

impl Engine {
    /// Returns the engine restricted to what a function declares in a system with these queues. Other services of the
    /// engine count as not configured, and messages to other queues are refused.
    #[must_use]
    pub fn declared_by<P>(self, function: &Function<P>, queues: &[QueueSpec]) -> Self {
        let queue = function.source.queue().cloned();
        Self { queue, ..self.declared_by_all(function.name, &[function], queues) }
    }

    /// Returns the engine restricted to what the functions behind requests of clients declare together. An application
    /// without such a function has its entry points in other programs, so its engine is not restricted.
    #[must_use]
    pub fn declared_for_requests<P>(self, system: &System<P>) -> Self {
        let functions: Vec<_> = system.request_functions().collect();
        if functions.is_empty() {
            self
        } else {
            self.declared_by_all("the request's function", &functions, system.queues)
        }
    }

    fn declared_by_all<P>(
        self,
        name: &'static str,
        functions: &[&Function<P>],
        queues: &[QueueSpec],
    ) -> Self {
        let check = |service: Service| {
            let mut declared = functions.iter().flat_map(|function| function.services);
            if declared.any(|declared| service == *declared) {
                Ok(())
            } else {
                Err(undeclared(service, name))
            }
        };
        Self {
            stores: check(Service::DATABASE).and(self.stores),
            partitions: check(Service::LEDGER).and(self.partitions),
            check_tokens: check(Service::TOKENS).and(self.check_tokens),
            processed: check(Service::PROCESSED).and(self.processed),
            send: Arc::new(DeclaredQueues {
                function: name,
                queues: functions.iter().flat_map(|function| function.sends_in(queues)).collect(),
                inner: self.send,
            }),
            ..self
        }
    }
}

fn undeclared(service: Service, function: &str) -> MissingSetting {
    MissingSetting {
        setting: format!("service {} of {function}", service.0).into(),
        what: "used by the function, but the table does not declare it",
    }
}

/// Sends to the queues that a function declares.
struct DeclaredQueues {
    function: &'static str,
    queues: Vec<Queue>,
    inner: Arc<dyn SendMessages>,
}

#[async_trait]
impl SendMessages for DeclaredQueues {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        let is_declared = |message: &Outgoing| self.queues.contains(&message.queue);
        if messages.iter().all(is_declared) {
            return self.inner.send(messages).await;
        }
        let declared: Vec<Outgoing> =
            messages.iter().filter(|message| is_declared(message)).cloned().collect();
        let mut sent = self.inner.send(&declared).await.into_iter();
        let outcomes = messages.iter().map(|message| {
            let declared = if is_declared(message) { sent.next() } else { None };
            declared.unwrap_or_else(|| Err(self.refusal(&message.queue)))
        });
        outcomes.collect()
    }
}

impl DeclaredQueues {
    /// Another function, such as the one that dispatches the outbox, may send the message, so the error is not
    /// permanent.
    fn refusal(&self, queue: &Queue) -> SendError {
        let why = format!("the table does not declare that {} sends to it", self.function);
        SendError::Store(StoreError::unavailable(format!("sending to queue {queue}"), why))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::FutureExt;
    use messages::{MessageId, PartitionKey};
    use uuid::Uuid;

    use super::*;
    use crate::plan::toy;
    use crate::system::Source;

    const SAGA: Queue = Queue::named("saga");
    const DEAD: Queue = Queue::named("saga-dead");
    const WORK: Queue = Queue::named("work");

    const WORKS: &[Queue] = &[WORK];

    const fn function(source: Source, sends: &'static [Queue]) -> Function<()> {
        const DRAINS: &[Queue] = &[DEAD];
        Function { name: "orders", services: &[], source, sends, drains: DRAINS, build: None }
    }

    const fn unlimited(mut spec: QueueSpec) -> QueueSpec {
        spec.receive_limit = None;
        spec
    }

    #[test]
    fn correct_table_has_no_faults() {
        static QUEUES: [QueueSpec; 2] =
            [QueueSpec::without_consumer(WORK), QueueSpec::without_consumer(DEAD)];
        static ORDERS: Function<()> = function(Source::Requests, WORKS);
        static SYSTEM: System<()> = System { name: "fresh-orders-2", queues: &QUEUES, functions: &[&ORDERS] };
        assert_eq!(SYSTEM.check(), Ok(()));
    }

    #[test]
    fn all_faults_are_reported_together() {
        static QUEUES: [QueueSpec; 3] = [
            unlimited(QueueSpec::standard(SAGA, SAGA)),
            QueueSpec::standard(Queue::named("mail"), DEAD).with_events::<toy::Event>(),
            QueueSpec::without_consumer(SAGA),
        ];
        static FIRST: Function<()> = function(Source::Queue(SAGA), WORKS);
        static SECOND: Function<()> = function(Source::Queue(SAGA), &[]);
        static SYSTEM: System<()> =
            System { name: "My orders", queues: &QUEUES, functions: &[&FIRST, &SECOND] };
        let expected = [
            "the name \"My orders\" has other characters than lower-case letters, digits and hyphens",
            "queue saga is specified more than once",
            "queue saga is its own dead-letter queue",
            "queue saga has a dead-letter queue and no receive limit",
            "saga-dead, the dead-letter queue of mail, is not specified",
            "queue mail declares events that are sent to saga",
            "queue mail is specified with a consumer, and no function is behind it",
            "function orders is declared more than once",
            "queue saga has more than one function",
            "orders sends to work, which is not specified",
            "orders drains saga-dead, which is not specified",
            "orders is behind a queue and builds no consumer",
        ];
        let faults = SYSTEM.check().unwrap_err();
        for fault in expected {
            let count = faults.faults.iter().filter(|found| *found == fault).count();
            assert_eq!(count, 1, "{fault}: {faults:#?}");
        }
        assert!(faults.to_string().starts_with("the table of My orders is wrong: the name"), "{faults}");
    }

    #[test]
    fn consumed_queue_without_dead_letters_is_a_fault() {
        static QUEUES: [QueueSpec; 3] = [
            QueueSpec::without_consumer(SAGA),
            QueueSpec::without_consumer(WORK),
            QueueSpec::without_consumer(DEAD),
        ];
        static ORDERS: Function<()> = function(Source::Queue(SAGA), WORKS);
        static SYSTEM: System<()> = System { name: "orders", queues: &QUEUES, functions: &[&ORDERS] };
        let faults = SYSTEM.check().unwrap_err().faults;
        assert!(
            faults.contains(&"orders is behind saga, which has no dead-letter queue".to_owned()),
            "{faults:?}"
        );
    }

    /// A timer is sent from the outbox by the function behind the control queue alone.
    #[test]
    fn control_function_sends_to_all_queues() {
        const fn stored(name: &'static str, source: Source, sends: &'static [Queue]) -> Function<()> {
            Function { name, services: &[Service::DATABASE], source, sends, drains: &[], build: None }
        }
        static QUEUES: [QueueSpec; 3] = [
            QueueSpec::standard(CONTROL, DEAD),
            QueueSpec::without_consumer(DEAD),
            QueueSpec::without_consumer(WORK),
        ];
        static ORDERS: Function<()> = stored("orders", Source::Requests, WORKS);
        const OWN: &[Queue] = &[CONTROL];
        static SWEEP: Function<()> = stored("sweep", Source::Queue(CONTROL), OWN);
        static SYSTEM: System<()> = System { name: "orders", queues: &QUEUES, functions: &[&ORDERS, &SWEEP] };
        let fault =
            "sweep does not send to work, so what a crash of orders leaves unsent would never be sent there";
        let faults = SYSTEM.check().unwrap_err().faults;
        assert!(faults.contains(&fault.to_owned()), "{faults:?}");
    }

    #[test]
    fn unusable_queue_is_a_fault() {
        static QUEUES: [QueueSpec; 3] = [
            QueueSpec::with_consumer(SAGA, DEAD, 20, 30, 0, 1),
            QueueSpec::without_consumer(DEAD),
            QueueSpec::without_consumer(Queue::named("old mail")),
        ];
        static ORDERS: Function<()> = function(Source::Queue(SAGA), &[]);
        static SYSTEM: System<()> = System { name: "orders", queues: &QUEUES, functions: &[&ORDERS] };
        let faults = SYSTEM.check().unwrap_err().faults;
        for fault in [
            "queue saga has a function, and is specified without a consumer, or with no messages in a batch",
            "the name of queue \"old mail\" is not 1 to 60 letters, digits, hyphens and underscores",
        ] {
            assert!(faults.contains(&fault.to_owned()), "{faults:?}");
        }
    }

    #[test]
    fn only_handlers_send_to_their_own_queue() {
        static QUEUES: [QueueSpec; 3] = [
            QueueSpec::standard(SAGA, Queue::named("x")).with_events::<toy::Event>(),
            QueueSpec::standard(WORK, DEAD),
            QueueSpec::standard(DEAD, Queue::named("y")),
        ];
        static SYSTEM: System<()> = System { name: "orders", queues: &QUEUES, functions: &[] };
        let sends = |source| function(source, &[]).sends_in(SYSTEM.queues);
        assert_eq!(sends(Source::Queue(WORK)), [WORK]);
        for source in
            [Source::Queue(SAGA), Source::Queue(DEAD), Source::Notifications(WORK), Source::Requests]
        {
            assert_eq!(sends(source), []);
        }
    }

    #[test]
    fn unsuitable_dead_letters_are_a_fault() {
        static QUEUES: [QueueSpec; 3] = [
            QueueSpec::with_consumer(SAGA, DEAD, 5, 30, 10, 1),
            QueueSpec::with_consumer(WORK, DEAD, 24, 30, 10, 1),
            QueueSpec::without_consumer(DEAD),
        ];
        static SYSTEM: System<()> = System { name: "orders", queues: &QUEUES, functions: &[] };
        let faults = SYSTEM.check().unwrap_err().faults;
        for fault in [
            "saga-dead is the dead-letter queue of several queues",
            "queue saga has a receive limit of 5, and the delays of retries are for 20 or more",
            "queue work has a receive limit of 24; after more than 23 deliveries with the longest delay, the queue \
             would delete the message before it is dead-lettered",
        ] {
            assert!(faults.contains(&fault.to_owned()), "{faults:?}");
        }
    }

    #[test]
    fn database_without_control_queue_is_a_fault() {
        static ORDERS: Function<()> = Function {
            name: "orders",
            services: &[Service::DATABASE],
            source: Source::Requests,
            sends: &[],
            drains: &[],
            build: None,
        };
        static SYSTEM: System<()> = System { name: "orders", queues: &[], functions: &[&ORDERS] };
        let faults = SYSTEM.check().unwrap_err().faults;
        assert!(
            faults.iter().any(|fault| fault.starts_with("no function is behind queue control")),
            "{faults:?}"
        );
    }

    /// Records the queues of sent messages.
    #[derive(Default)]
    struct RecordingSender(Mutex<Vec<Queue>>);

    #[async_trait]
    impl SendMessages for RecordingSender {
        async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
            self.0.lock().unwrap().extend(messages.iter().map(|message| message.queue.clone()));
            messages.iter().map(|_| Ok(())).collect()
        }
    }

    #[test]
    fn undeclared_queue_is_refused_others_are_sent() {
        let inner = Arc::new(RecordingSender::default());
        let queues = function(Source::Queue(SAGA), WORKS).sends_in(&[QueueSpec::standard(SAGA, DEAD)]);
        let sends = DeclaredQueues { function: "orders", queues, inner: inner.clone() };
        let message = |queue| Outgoing {
            id: MessageId::from_uuid(Uuid::nil()),
            partition: PartitionKey::from_uuid(Uuid::nil()),
            queue,
            body: String::new(),
            delay: std::time::Duration::ZERO,
        };
        let outcomes = sends.send(&[message(WORK), message(DEAD), message(SAGA)]).now_or_never().unwrap();
        assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
        let refusal = outcomes[1].as_ref().unwrap_err();
        assert!(refusal.is_retryable() && refusal.to_string().contains("queue saga-dead"), "{refusal}");
        assert_eq!(*inner.0.lock().unwrap(), [WORK, SAGA]);
    }
}
