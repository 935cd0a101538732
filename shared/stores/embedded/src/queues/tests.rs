//! Tests that each waiting group has exactly one turn, and of the cost of finding it.

use rusqlite::StatementStatus;

use super::*;
use crate::fair_queueing::{FIRST, IN_TURN, OVERDUE, WAITING, put_all_back};
use crate::schema;
use crate::tables;

const BUSY: Queue = Queue::named("busy");
const DEAD: Queue = Queue::named("dead");
static QUEUES: [QueueSpec; 2] =
    [QueueSpec::with_consumer(BUSY, DEAD, 3, 30, 10, 2), QueueSpec::without_consumer(DEAD)];

fn database() -> Connection {
    let mut db = Connection::open_in_memory().unwrap();
    schema::migrate(&mut db, 0).unwrap();
    db
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn message(partition: u128, visible_at: i64) -> QueuedMessage {
    let partition = Some(PartitionKey::from_uuid(uuid::Uuid::from_u128(partition)));
    QueuedMessage {
        queue: BUSY,
        id: None,
        partition,
        body: "x".into(),
        sent_at: at(0),
        visible_at: at(visible_at),
    }
}

fn take_from(db: &Connection, spec: &'static QueueSpec, max: usize, now: i64) -> Vec<ReceivedMessage> {
    receive(db, &Request { queue: spec, max, now: at(now), until: at(now + 5) }).unwrap()
}

fn count(db: &Connection, what: &str) -> i64 {
    db.query_row(&format!("SELECT count(*) FROM message AS this WHERE {what}"), [], |row| row.get(0)).unwrap()
}

/// Messages that have an unexpected turn, or lack an expected turn.
const WRONG_TURNS: &str = "(turn IS NOT NULL) <> (held = 0 AND seq = (
    SELECT seq FROM message AS other
    WHERE other.queue = this.queue AND other.search_id IS this.search_id AND other.held = 0
    ORDER BY visible_at, seq LIMIT 1))";

/// A choice below `most`, drawn as Knuth's MMIX draws it.
fn draw(seed: &mut u64, max: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % max
}

#[test]
fn first_waiting_message_of_group_has_turn() {
    let (db, mut seed, mut held) = (database(), 1, Vec::new());
    let mut drained = 0;
    for step in 0..4_000 {
        let now = step / 4;
        match draw(&mut seed, 12) {
            0..4 => {
                let delay = [0, 0, 1, 9][draw(&mut seed, 4) as usize];
                insert(&db, &message(draw(&mut seed, 5).into(), now + delay)).unwrap();
            }
            4..7 => held.extend(take_from(&db, &QUEUES[0], 1 + draw(&mut seed, 10) as usize, now)),
            7 => drop(take_from(&db, &QUEUES[1], 2, now)),
            8 => {
                for received in take_from(&db, &QUEUES[1], 1, now) {
                    let receipt = ReceiptClaim::parse(&QUEUES[1], &received.receipt, at(now)).unwrap();
                    answer(&db, &receipt, &Disposition::Acknowledge).unwrap();
                    drained += 1;
                }
            }
            9 if draw(&mut seed, 20) == 0 => drop(put_all_back(&db, at(now)).unwrap()),
            _ if held.is_empty() => {}
            _ => {
                let received: ReceivedMessage = held.swap_remove(draw(&mut seed, held.len() as u64) as usize);
                let receipt = ReceiptClaim::parse(&QUEUES[0], &received.receipt, at(now)).unwrap();
                let after = Duration::from_secs(draw(&mut seed, 8));
                let disposition = match draw(&mut seed, 4) {
                    0 => Disposition::DeadLetter { reason: "wrong".into() },
                    1 => Disposition::Retry { after, reason: "busy".into() },
                    _ => Disposition::Acknowledge,
                };
                answer(&db, &receipt, &disposition).unwrap();
            }
        }
        assert_eq!(count(&db, WRONG_TURNS), 0, "after step {step}");
    }
    assert!(drained > 50 && count(&db, "held = 1") > 0 && count(&db, "turn IS NOT NULL") > 5);
    // Every waiting message is delivered or dead-lettered.
    while !take_from(&db, &QUEUES[0], 10, 10_000).is_empty() {}
    assert_eq!(count(&db, "queue = 'busy' AND held = 0"), 0);
}

/// The cost of a receive: the steps of SQLite's virtual machine in the queries that find messages.
fn steps_of_a_receive(backlog: i64, groups: i64) -> i32 {
    let db = database();
    // None of these messages can be received yet, and all are in the indexes.
    for n in 0..backlog {
        insert(&db, &message(1, n)).unwrap();
        insert(&db, &message(2, backlog + n)).unwrap();
    }
    for n in 0..groups {
        insert(&db, &message(10 + n as u128, n)).unwrap();
    }
    let queries = [OVERDUE, IN_TURN, WAITING, FIRST];
    let steps = || -> i32 {
        let of = |query| db.prepare_cached(query).unwrap().get_status(StatementStatus::VmStep);
        queries.into_iter().map(of).sum()
    };
    let before = steps();
    // The first worker receives messages of the backlog, and the other workers receive messages of other groups.
    for _ in 0..3 {
        assert_eq!(take_from(&db, &QUEUES[0], 10, backlog).len(), 10);
    }
    steps() - before
}

#[test]
fn receive_cost_is_independent_of_backlog() {
    let few = steps_of_a_receive(30, 30);
    for (backlog, groups) in [(20_000, 30), (30, 20_000)] {
        let many = steps_of_a_receive(backlog, groups);
        assert!(many <= few * 2, "{many} steps instead of {few}, with {backlog} messages of {groups} groups");
    }
}

/// A database of an earlier version that contains messages.
#[test]
fn messages_of_earlier_schema_get_turns() {
    let mut db = Connection::open_in_memory().unwrap();
    tables::steps(&db, 0, 5).unwrap();
    let sent = "INSERT INTO message (queue, search_id, body, sent_at, visible_at, held) VALUES
            ('busy', 'a', 'second', 0, 2, 0), ('busy', 'a', 'first', 0, 1, 0), ('busy', 'a', 'held', 0, 0, 1),
            ('busy', NULL, 'third', 0, 3, 0), ('dead', 'a', 'dead', 0, 4, 0);";
    db.execute_batch(sent).unwrap();
    schema::migrate(&mut db, 5).unwrap();
    assert_eq!(count(&db, WRONG_TURNS), 0);
    let bodies =
        |spec| take_from(&db, spec, 10, 1).into_iter().map(|it| it.delivery.body).collect::<Vec<_>>();
    assert_eq!(bodies(&QUEUES[0]), ["held", "first", "second", "third"]);
    assert_eq!(bodies(&QUEUES[1]), ["dead"]);
}
