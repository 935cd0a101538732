//! Messages that fail by themselves: the code that handles them panics, or what follows from them cannot be stored. Each
//! fails alone, and is dead-lettered with its reason at the third delivery.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use dedup::{Asked, Done, Handler, HandlerError};
use jiff::Timestamp;
use messages::{
    Consumer, Delivery, Disposition, Message, PartitionKey, Queue, Reporter, StoreError, deliver, messages,
};
use outbox::Settlement;
use saga::{Decision, Event, Persist, Persisted, SAGA, Saga, WriteDocuments};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::world::World;

const WORK: Queue = Queue::named("parse");

messages! {
    /// What happens to a sum.
    pub(crate) enum Summed of "sum" to SAGA {
        Added { number: u64 } = 1,
        Exploded {} = 1,
        Miscounted {} = 1,
        Grown {} = 1,
        Spoiled {} = 1,
    }
}

messages! {
    /// What is asked of a handler without state.
    pub(crate) enum Work of "sum" to WORK {
        Easy {} = 1,
        Impossible {} = 1,
        Endless {} = 1,
    }
}

messages! {
    /// What it replies.
    pub(crate) enum Worked of "sum" to SAGA {
        Ended { text: String } = 1,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Sum {
    sum: u64,
    /// JSON has no such keys.
    spoiled: BTreeMap<(u8, u8), u8>,
}

struct Sums;

impl Saga for Sums {
    const NAME: &'static str = "sums";
    type State = Sum;
    type Event = Summed;

    fn transition(&self, state: &Sum, event: &Event<'_, Summed>, _: Timestamp) -> Decision<Sum> {
        match event.body {
            Summed::Added { number } => {
                Decision::to(Sum { sum: state.sum + number, ..state.clone() }, "added").into()
            }
            Summed::Exploded {} => panic!("the state machine has a defect"),
            Summed::Miscounted {} => Decision::to(state.clone(), "counted").into(),
            Summed::Grown {} => {
                let text = "x".repeat(2 * 1024 * 1024);
                Decision::to(state.clone(), "grew").send(&Worked::Ended { text }).into()
            }
            Summed::Spoiled {} => {
                let spoiled = BTreeMap::from([((1, 2), 3)]);
                Decision::to(Sum { spoiled, ..state.clone() }, "spoiled").into()
            }
        }
    }

    fn ended_at(&self, _: &Sum) -> Option<Timestamp> {
        None
    }

    fn tokens(&self, events: &[&Summed]) -> usize {
        assert!(!events.contains(&&Summed::Miscounted {}), "the tokens cannot be counted");
        events.len()
    }
}

fn partition(number: u128) -> PartitionKey {
    PartitionKey::from_uuid(Uuid::from_u128(number))
}

/// A message that its partition admits, as a queue delivers it for the `received`-th time.
async fn delivered(world: &World, of: u128, event: &Summed, received: u32) -> Delivery {
    let entry = world.backend.ports.engine.entry_point("client").unwrap();
    let mut session = entry.session(partition(of));
    session.send(event).unwrap();
    let [message] = session.commit().await.unwrap().try_into().unwrap();
    delivery(&message, received)
}

fn delivery(message: &Message, received: u32) -> Delivery {
    Delivery { record_id: message.id.to_string(), body: message.encode().unwrap(), receive_count: received }
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
async fn a_faulty_event_fails_alone_and_is_dead_lettered_at_its_third_delivery() {
    for (event, why) in [
        (Summed::Exploded {}, "it panicked: the state machine has a defect"),
        (Summed::Miscounted {}, "it panicked: the tokens cannot be counted"),
        (Summed::Grown {}, "more than the 1048576 that a queue accepts"),
        (Summed::Spoiled {}, "the state cannot be serialized"),
    ] {
        let world = World::new();
        let function = sums(&world);
        let add = async |of, received| delivered(&world, of, &Summed::Added { number: 1 }, received).await;
        let faulty = delivered(&world, 1, &event, 1).await;
        for times in 1..=3 {
            // Before it, after it, and in another partition.
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
        // Its token stays, so that an operator may send it again once the code is mended.
        assert_dead(&function.consume(&[received(&faulty, 4)], None).await[0], why);
    }
}

/// Handles commands, and has a defect.
struct Worker;

#[async_trait]
impl Handler for Worker {
    type Command = Work;

    async fn handle(
        &self,
        asked: &Asked<Work>,
        _: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<Done, HandlerError> {
        tokio::task::yield_now().await;
        match asked.command {
            Work::Easy {} => Ok(Done::because("done")),
            Work::Impossible {} => panic!("the handler has a defect"),
            Work::Endless {} => {
                Done::because("done").reply(&Worked::Ended { text: "x".repeat(2 * 1024 * 1024) })
            }
        }
    }
}

#[tokio::test]
async fn a_faulty_command_fails_alone_and_is_dead_lettered_at_its_third_delivery() {
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

/// Panics as soon as it sees a body that says so, before it has answered any.
struct Fragile;

#[async_trait]
impl Consumer for Fragile {
    async fn consume(&self, batch: &[Delivery], _: Option<Timestamp>) -> Vec<Disposition> {
        assert!(batch.iter().all(|delivery| delivery.body != "bad"), "a bad body");
        vec![Disposition::Acknowledge; batch.len()]
    }
}

#[tokio::test]
async fn a_consumer_that_panics_over_a_batch_is_given_each_delivery_alone() {
    let world = World::new();
    let reporter = world.backend.ports.engine.reporter("fragile");
    let of = |body: &str, receive_count| {
        let (record_id, body) = (body.to_owned(), body.to_owned());
        Delivery { record_id, body, receive_count }
    };
    let batch = [of("good", 5), of("bad", 2), of("good", 1), of("bad", 3)];
    let answers = deliver(&Fragile, &batch, None, &reporter).await;
    assert_eq!([&answers[0], &answers[2]], [&Disposition::Acknowledge; 2]);
    assert_retried(&answers[1], "it panicked: a bad body");
    assert_dead(&answers[3], "it panicked: a bad body");
}

/// A store that refuses a whole call for one of its writes, as for a document that is too large.
struct Refusing(Arc<dyn WriteDocuments>);

#[async_trait]
impl WriteDocuments for Refusing {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<Persisted>, StoreError> {
        if writes.iter().any(|write| write.partition == partition(1)) {
            return Err(StoreError::unusable("storing documents", "one is too large"));
        }
        self.0.persist(writes, now).await
    }

    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError> {
        self.0.settle(settlements).await
    }
}

#[tokio::test]
async fn a_document_that_the_store_refuses_fails_its_own_message() {
    let world = World::new();
    let mut engine = world.backend.ports.engine.clone();
    let stores = engine.stores().unwrap().clone();
    let write_documents = Arc::new(Refusing(Arc::clone(&stores.write_documents)));
    engine.stores = Ok(saga::Stores { write_documents, ..stores });
    let function = engine.run("sums", Sums).unwrap();
    let mut batch = Vec::new();
    for of in [1, 2, 3] {
        batch.push(delivered(&world, of, &Summed::Added { number: 1 }, 1).await);
    }
    let answers = function.consume(&batch, None).await;
    assert_retried(&answers[0], "one is too large");
    assert_eq!(&answers[1..], [Disposition::Acknowledge, Disposition::Acknowledge]);
    assert_eq!((sum(&world, 2).await, sum(&world, 3).await), (Some(1), Some(1)));
}
