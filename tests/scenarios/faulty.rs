//! Messages whose handler panics or whose results cannot be stored. Each fails without affecting others, and is
//! dead-lettered with its reason at the third delivery.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use dedup::{CommandMessage, Handler, HandlerError, HandlerResult};
use jiff::Timestamp;
use messages::{
    Consumer, Delivery, Disposition, Message, PartitionKey, Queue, Reporter, StoreError, deliver, messages,
};
use outbox::{Key, Settlement};
use saga::{Decision, Event, Persist, PersistOutcome, SAGA, Saga, WriteDocuments};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::world::World;

const WORK: Queue = Queue::named("parse");

messages! {
    /// The events of a sum.
    pub(crate) enum SumEvent of "sum" to SAGA {
        Added { number: u64 } = 1,
        Exploded {} = 1,
        Miscounted {} = 1,
        Grown {} = 1,
        Spoiled {} = 1,
        Divided {} = 1,
        Scheduled {} = 1,
        Removed {} = 1,
        Averaged { average: f64 } = 1,
    }
}

messages! {
    /// The command for a handler without state.
    pub(crate) enum Work of "sum" to WORK {
        Easy {} = 1,
        Impossible {} = 1,
        Endless {} = 1,
    }
}

messages! {
    /// The reply of the handler.
    pub(crate) enum WorkReply of "sum" to SAGA {
        Ended { text: String } = 1,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Sum {
    sum: u64,
    /// JSON does not support these keys, so serialization fails.
    spoiled: BTreeMap<(u8, u8), u8>,
    average: f64,
}

struct Sums;

impl Saga for Sums {
    const NAME: &'static str = "sums";
    type State = Sum;
    type Event = SumEvent;

    fn transition(&self, state: &Sum, event: &Event<'_, SumEvent>, now: Timestamp) -> Decision<Sum> {
        match event.body {
            SumEvent::Added { number } => {
                Decision::to(Sum { sum: state.sum + number, ..state.clone() }, "added").into()
            }
            SumEvent::Exploded {} => panic!("the state machine has a defect"),
            SumEvent::Miscounted {} => Decision::to(state.clone(), "counted").into(),
            SumEvent::Grown {} => {
                let text = "x".repeat(2 * 1024 * 1024);
                Decision::to(state.clone(), "grew").send(&WorkReply::Ended { text }).into()
            }
            SumEvent::Spoiled {} => {
                let spoiled = BTreeMap::from([((1, 2), 3)]);
                Decision::to(Sum { spoiled, ..state.clone() }, "spoiled").into()
            }
            // JSON has no such number, and contains `null` instead.
            SumEvent::Divided {} => {
                Decision::to(Sum { average: f64::NAN, ..state.clone() }, "divided").into()
            }
            SumEvent::Scheduled {} => {
                let average = SumEvent::Averaged { average: f64::INFINITY };
                Decision::to(state.clone(), "scheduled").schedule("average", now, &average).into()
            }
            SumEvent::Removed {} => {
                Decision::to(state.clone(), "removed").remove(Key::new("sum", "x".repeat(1_100))).into()
            }
            SumEvent::Averaged { .. } => Decision::to(state.clone(), "averaged").into(),
        }
    }

    fn ended_at(&self, _: &Sum) -> Option<Timestamp> {
        None
    }

    fn tokens(&self, events: &[&SumEvent]) -> usize {
        assert!(!events.contains(&&SumEvent::Miscounted {}), "the tokens cannot be counted");
        events.len()
    }
}

fn partition(number: u128) -> PartitionKey {
    PartitionKey::from_uuid(Uuid::from_u128(number))
}

/// Returns an admitted message, as a queue delivers it for the `received`-th time.
async fn delivered(world: &World, of: u128, event: &SumEvent, received: u32) -> Delivery {
    let entry = world.backend.ports.engine.entry_point("client").unwrap();
    let mut session = entry.session(partition(of));
    session.send(event).unwrap();
    let [message] = session.commit().await.unwrap().try_into().unwrap();
    delivery(&message, received)
}

fn delivery(message: &Message, received: u32) -> Delivery {
    Delivery {
        record_id: message.id.to_string(),
        body: message.encode().unwrap(),
        receive_count: received,
        reason: None,
    }
}

fn received(delivery: &Delivery, times: u32) -> Delivery {
    Delivery { receive_count: times, ..delivery.clone() }
}

async fn sum(world: &World, of: u128) -> Option<u64> {
    Some(world.document(partition(of)).await?.content.state.value()["sum"].as_u64().unwrap())
}

fn sums(world: &World) -> Arc<dyn Consumer> {
    world.backend.ports.engine.run("sums", Sums).unwrap()
}

#[track_caller]
fn assert_retried(answer: &Disposition, why: &str) {
    let Disposition::Retry { after, reason } = answer else { panic!("{answer:?}") };
    assert!(!after.is_zero() && reason.contains(why), "{answer:?}");
}

#[track_caller]
fn assert_dead(answer: &Disposition, why: &str) {
    let Disposition::DeadLetter { reason } = answer else { panic!("{answer:?}") };
    assert!(reason.contains(why), "{answer:?}");
}

#[tokio::test]
async fn faulty_event_fails_alone_until_dead_lettered() {
    for (event, why) in [
        (SumEvent::Exploded {}, "it panicked: the state machine has a defect"),
        (SumEvent::Miscounted {}, "it panicked: the tokens cannot be counted"),
        (SumEvent::Grown {}, "more than the 1048576 that a queue accepts"),
        (SumEvent::Spoiled {}, "the state cannot be represented in JSON: key must be a string"),
        (SumEvent::Divided {}, "the state cannot be represented in JSON: invalid type: null, expected f64"),
        (SumEvent::Scheduled {}, "expected f64"),
        (SumEvent::Removed {}, "cannot be removed: the key is longer than 1,024 bytes"),
    ] {
        let world = World::new();
        let function = sums(&world);
        let add = async |of, received| delivered(&world, of, &SumEvent::Added { number: 1 }, received).await;
        let faulty = delivered(&world, 1, &event, 1).await;
        for times in 1..=3 {
            // Messages before and after it, and in another partition.
            let batch = [add(1, 7).await, received(&faulty, times), add(1, 1).await, add(2, 3).await];
            let answers = function.consume(&batch, None).await;
            let [before, answer, after, other] = answers.as_slice() else { panic!("{answers:?}") };
            assert_eq!([before, after, other], [&Disposition::Acknowledge; 3], "{event:?}");
            match times {
                1 | 2 => assert_retried(answer, why),
                _ => assert_dead(answer, why),
            }
            let expected = u64::from(times);
            assert_eq!((sum(&world, 1).await, sum(&world, 2).await), (Some(2 * expected), Some(expected)));
        }
        // The token of the faulty message is kept, so that an operator can redrive the message after the code is fixed.
        assert_dead(&function.consume(&[received(&faulty, 4)], None).await[0], why);
    }
}

/// A defective handler of commands.
struct Worker;

#[async_trait]
impl Handler for Worker {
    type Command = Work;

    async fn handle(
        &self,
        asked: &CommandMessage<Work>,
        _: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError> {
        tokio::task::yield_now().await;
        match asked.command {
            Work::Easy {} => Ok(HandlerResult::completed("done")),
            Work::Impossible {} => panic!("the handler has a defect"),
            Work::Endless {} => HandlerResult::completed("done")
                .reply(&WorkReply::Ended { text: "x".repeat(2 * 1024 * 1024) }),
        }
    }
}

#[tokio::test]
async fn faulty_command_fails_alone_until_dead_lettered() {
    let world = World::new();
    let function = world.backend.ports.engine.guard("worker", Worker).unwrap();
    let entry = world.backend.ports.engine.entry_point("client").unwrap();
    for (work, why) in [
        (Work::Impossible {}, "it panicked: the handler has a defect"),
        (Work::Endless {}, "more than the 1048576 that a queue accepts"),
    ] {
        let mut session = entry.session(partition(1));
        for command in [&Work::Easy {}, &work, &Work::Easy {}] {
            session.send(command).unwrap();
        }
        let messages = session.commit().await.unwrap();
        for times in 1..=3 {
            let batch: Vec<_> = messages.iter().map(|message| delivery(message, times)).collect();
            let answers = function.consume(&batch, None).await;
            let [Disposition::Acknowledge, answer, Disposition::Acknowledge] = answers.as_slice() else {
                panic!("{answers:?}")
            };
            match times {
                1 | 2 => assert_retried(answer, why),
                _ => assert_dead(answer, why),
            }
        }
    }
}

/// Panics when it finds a body that requests it, before it has answered any message.
struct FragileWorker;

#[async_trait]
impl Consumer for FragileWorker {
    async fn consume(&self, batch: &[Delivery], _: Option<Timestamp>) -> Vec<Disposition> {
        assert!(batch.iter().all(|delivery| delivery.body != "bad"), "a bad body");
        vec![Disposition::Acknowledge; batch.len()]
    }
}

#[tokio::test]
async fn panicking_consumer_gets_each_delivery_alone() {
    let world = World::new();
    let reporter = world.backend.ports.engine.reporter("fragile");
    let of = |body: &str, receive_count| {
        let (record_id, body) = (body.to_owned(), body.to_owned());
        Delivery { record_id, body, receive_count, reason: None }
    };
    let batch = [of("good", 5), of("bad", 2), of("good", 1), of("bad", 3)];
    let answers = deliver(&FragileWorker, &batch, None, &reporter).await;
    assert_eq!([&answers[0], &answers[2]], [&Disposition::Acknowledge; 2]);
    assert_retried(&answers[1], "it panicked: a bad body");
    assert_dead(&answers[3], "it panicked: a bad body");
}

/// A store that rejects a whole call because of one write, such as a document that is too large.
struct RejectingStore {
    store: Arc<dyn WriteDocuments>,
    rejects: fn(&Persist) -> bool,
}

impl RejectingStore {
    /// Returns the function of the saga on such a store.
    fn sums(world: &World, rejects: fn(&Persist) -> bool) -> Arc<dyn Consumer> {
        let mut engine = world.backend.ports.engine.clone();
        let stores = engine.stores().unwrap().clone();
        let write_documents = Arc::new(Self { store: Arc::clone(&stores.write_documents), rejects });
        engine.stores = Ok(saga::Stores { write_documents, ..stores });
        engine.run("sums", Sums).unwrap()
    }
}

#[async_trait]
impl WriteDocuments for RejectingStore {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<PersistOutcome>, StoreError> {
        if writes.iter().any(self.rejects) {
            return Err(StoreError::unusable("storing documents", "one is too large"));
        }
        self.store.persist(writes, now).await
    }

    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError> {
        self.store.settle(settlements).await
    }
}

#[tokio::test]
async fn rejected_document_fails_only_its_message() {
    let world = World::new();
    let function = RejectingStore::sums(&world, |write| write.partition == partition(1));
    let mut batch = Vec::new();
    for of in [1, 2, 3] {
        batch.push(delivered(&world, of, &SumEvent::Added { number: 1 }, 1).await);
    }
    let answers = function.consume(&batch, None).await;
    assert_retried(&answers[0], "one is too large");
    assert_eq!(&answers[1..], [Disposition::Acknowledge, Disposition::Acknowledge]);
    assert_eq!((sum(&world, 2).await, sum(&world, 3).await), (Some(1), Some(1)));
}

/// The claim of the attempt that stored nothing would otherwise keep the messages from being attempted alone.
#[tokio::test]
async fn rejected_document_of_two_messages_fails_one() {
    let world = World::new();
    let is_large = |write: &Persist| serde_json::to_string(&write.content.state).unwrap().contains("9000");
    let function = RejectingStore::sums(&world, is_large);
    let batch = [
        delivered(&world, 4, &SumEvent::Added { number: 1 }, 1).await,
        delivered(&world, 4, &SumEvent::Added { number: 900_000 }, 1).await,
        delivered(&world, 4, &SumEvent::Added { number: 2 }, 1).await,
    ];
    let answers = function.consume(&batch, None).await;
    assert_eq!([&answers[0], &answers[2]], [&Disposition::Acknowledge; 2], "{answers:?}");
    assert_retried(&answers[1], "one is too large");
    assert_eq!(sum(&world, 4).await, Some(3));
}

/// The document names the queue of its saga. No version of another saga can read it.
#[tokio::test]
async fn event_for_another_saga_is_dead_lettered() {
    let world = World::new();
    let search = world.announce(&["a.ris"]).await.search_id;
    world.run().await;
    let function = sums(&world);
    let entry = world.backend.ports.engine.entry_point("client").unwrap();
    let mut session = entry.session(search);
    session.send(&SumEvent::Added { number: 1 }).unwrap();
    let [message] = session.commit().await.unwrap().try_into().unwrap();
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let sql = "UPDATE saga SET content = json_set(content, '$.queue', 'another')";
    assert_eq!(database.execute(sql, []).unwrap(), 1);
    let why = "the instance belongs to the saga of queue another";
    for times in 1..=2 {
        assert_retried(&function.consume(&[delivery(&message, times)], None).await[0], why);
    }
    assert_dead(&function.consume(&[delivery(&message, 3)], None).await[0], why);
}
