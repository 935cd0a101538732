//! A saga that never ends: an account that counts its payments. A client also sends commands without an event, and events
//! that are never accepted.

use async_trait::async_trait;
use dedup::{CommandMessage, Handler, HandlerError, HandlerResult};
use futures::future::BoxFuture;
use jiff::Timestamp;
use messages::{Message, PartitionKey, Payload, Queue, QueueSpec, Reporter, messages};
use saga::{Decision, Engine, EntryPoint, Event, Function, SAGA, Saga, Service, Source, System};
use simulation::{Access, Config, Invariant, Mode, Range, Rng, Violation, Workload, run_many};

const MAIL: Queue = Queue::named("mail");

messages! {
    /// The events of an account.
    pub(crate) enum AccountEvent of "accounts" to SAGA {
        Paid {} = 1,
        /// Postponed until the account has a payment.
        Closed {} = 1,
    }
}

messages! {
    /// Letters to customers.
    pub(crate) enum Letter of "accounts" to MAIL {
        Welcome {} = 1,
    }
}

struct Account;

impl Saga for Account {
    const NAME: &'static str = "accounts";
    type State = u32;
    type Event = AccountEvent;

    fn transition(&self, paid: &u32, event: &Event<'_, AccountEvent>, _: Timestamp) -> Decision<u32> {
        match (event.body, paid) {
            (AccountEvent::Closed {}, 0) => Decision::postpone("nobody has paid"),
            (AccountEvent::Closed {}, _) => Decision::ignore("accounts stay open"),
            (AccountEvent::Paid {}, _) => Decision::to(paid + 1, "paid").into(),
        }
    }

    fn ended_at(&self, _: &u32) -> Option<Timestamp> {
        None
    }
}

struct Mail;

#[async_trait]
impl Handler for Mail {
    type Command = Letter;

    async fn handle(
        &self,
        _: &CommandMessage<Letter>,
        _: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError> {
        Ok(HandlerResult::completed("sent"))
    }
}

static COUNTS: Function<Engine> = Function {
    name: "accounts-saga",
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(SAGA),
    sends: &[SAGA],
    drains: &[],
    build: Some(|engine| engine.run("accounts-saga", Account)),
};

static SENDS: Function<Engine> = Function {
    name: "mail",
    services: &[Service::PROCESSED, Service::TOKENS],
    source: Source::Queue(MAIL),
    sends: &[],
    drains: &[],
    build: Some(|engine| engine.guard("mail", Mail)),
};

static QUEUES: [QueueSpec; 4] = [
    QueueSpec::with_consumer(SAGA, Queue::named("saga-dead"), 20, 30, 10, 2),
    QueueSpec::without_consumer(Queue::named("saga-dead")),
    QueueSpec::with_consumer(MAIL, Queue::named("mail-dead"), 20, 30, 10, 2),
    QueueSpec::without_consumer(Queue::named("mail-dead")),
];

static SYSTEM: System<Engine> = System { name: "accounts", queues: &QUEUES, functions: &[&COUNTS, &SENDS] };

/// The workload, which states that accounts stay open, or does not.
#[derive(Clone, Copy)]
struct Accounts {
    stay_open: bool,
}

impl Workload for Accounts {
    type Saga = Account;
    type Ports = Engine;
    type World = ();

    fn saga(&self) -> Account {
        Account
    }

    fn system(&self) -> &'static System<Engine> {
        &SYSTEM
    }

    fn ports(&self, engine: Engine, _: Access<()>) -> Engine {
        engine
    }

    fn client(&self, engine: Engine, _: Access<()>, mut rng: Rng) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Ok(entry) = engine.entry_point("shop") else { return };
            let account = PartitionKey::from_uuid(engine.host.fresh_id());
            commit(&entry, account, &Letter::Welcome {}).await;
            for _ in 0..rng.between(0, 2) {
                commit(&entry, account, &AccountEvent::Paid {}).await;
            }
            if rng.one_in(4) {
                let unpaid = PartitionKey::from_uuid(engine.host.fresh_id());
                commit(&entry, unpaid, &AccountEvent::Closed {}).await;
            }
        })
    }

    fn may_stay_open(&self, _: &u32) -> bool {
        self.stay_open
    }

    fn may_wait(&self, _: &u32) -> bool {
        true
    }

    fn refuses(&self, (): &(), message: &Message) -> bool {
        message.body.name == "Closed"
    }
}

/// Sends a message in a session. If the commit fails, the control message settles the session.
async fn commit<P: Payload>(entry: &EntryPoint, account: PartitionKey, message: &P) {
    let mut session = entry.session(account);
    if session.send(message).is_ok() {
        let _ = session.commit().await;
    }
}

fn first_violation(stay_open: bool) -> Option<Violation> {
    let range = Range { first_seed: 0, count: 500, threads: 2, stop_at_first: true };
    let found = run_many(&Accounts { stay_open }, &Config::new(Mode::Ledger), &range, &|_| ()).first;
    found.map(|(_, violation)| violation)
}

#[test]
fn long_lived_instances_may_stay_open() {
    assert!(first_violation(true).is_none(), "{:?}", first_violation(true));
    assert_eq!(first_violation(false).unwrap().invariant, Invariant::Quiescence);
}
