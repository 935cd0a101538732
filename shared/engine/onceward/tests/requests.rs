//! Requests with idempotency keys on SQLite.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use std::sync::Arc;

use onceward::prelude::*;
use onceward::saga::engine::OpenSession;
use onceward::saga::requests::{IdempotentRequest, RequestError, Response};
use onceward::serde_json::{Value, json};
use onceward::sqlite::{Settings, Store, WorkVerdict, rusqlite};
use onceward::{SystemHost, outbox};
use serde::Serialize;

/// Books a seat. The number of free seats is a record.
#[derive(Serialize)]
struct Book {
    seats: u64,
    /// Since the second version of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<Value>,
}

#[derive(Debug, PartialEq)]
struct Overloaded;

#[async_trait]
impl IdempotentRequest for Book {
    const NAME: &'static str = "Book";
    type Error = Overloaded;

    fn is_repeated(&self, stored: &Value, own: &Value) -> bool {
        let mut upgraded = json!({ "note": null });
        upgraded.as_object_mut().unwrap().extend(stored.as_object().unwrap().clone());
        upgraded == *own || stored == own
    }

    async fn perform(&self, session: &mut OpenSession<'_>) -> Result<Response, Overloaded> {
        if self.seats == 0 {
            return Err(Overloaded);
        }
        let free = session.read(free()).await.unwrap().map_or(10, |record| record.body.as_u64().unwrap());
        let Some(left) = free.checked_sub(self.seats) else {
            return Ok(Response { status: 409, body: json!("sold out") });
        };
        session.write(self::free(), json!(left));
        Ok(Response { status: 201, body: json!({ "left": left }) })
    }
}

fn free() -> outbox::Key {
    outbox::Key::new("seats", "free")
}

/// Books one seat in the application's own table.
#[derive(Serialize)]
struct BookRow<'a> {
    seat: u32,
    #[serde(skip)]
    store: &'a Store,
}

#[async_trait]
impl IdempotentRequest for BookRow<'_> {
    const NAME: &'static str = "BookRow";
    type Error = Overloaded;

    async fn perform(&self, session: &mut OpenSession<'_>) -> Result<Response, Overloaded> {
        let seat = self.seat;
        session.set_work(self.store.with_work(move |db| {
            let booked =
                db.execute("INSERT INTO app_seat (seat) VALUES (?1) ON CONFLICT DO NOTHING", [seat])?;
            Ok(if booked == 1 { WorkVerdict::Commit } else { WorkVerdict::Refuse })
        }));
        Ok(Response { status: 201, body: json!(seat) })
    }
}

struct World {
    entry: EntryPoint,
    store: Arc<Store>,
    _dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let (dir, host) = (tempfile::tempdir().unwrap(), Arc::new(SystemHost));
        let queues: &'static [QueueSpec] =
            Box::leak(Box::new([QueueSpec::standard(CONTROL, Queue::named("control-dead"))]));
        let store = Arc::new(Store::open(dir.path(), host.clone(), Settings::of("seats", queues)).unwrap());
        let entry = store.engine("seats", host, Arc::new(())).entry_point("http").unwrap();
        Self { entry, store, _dir: dir }
    }

    async fn book(&self, key: &str, seats: u64) -> Result<(u16, Value, bool), RequestError<Overloaded>> {
        let partition = PartitionKey::named("seats", "all");
        let request = Book { seats, note: None };
        let responded = self.entry.respond_once("ann", key, partition, &request).await?;
        Ok((responded.response.status, responded.response.body, responded.is_repeated))
    }
}

#[tokio::test]
async fn repeated_request_gets_the_stored_response() {
    let world = World::new();
    assert_eq!(world.book("one", 4).await.unwrap(), (201, json!({ "left": 6 }), false));
    assert_eq!(world.book("one", 4).await.unwrap(), (201, json!({ "left": 6 }), true));
    assert_eq!(world.book("two", 4).await.unwrap(), (201, json!({ "left": 2 }), false));
    assert_eq!(world.book("three", 4).await.unwrap(), (409, json!("sold out"), false));
    assert_eq!(world.book("three", 4).await.unwrap(), (409, json!("sold out"), true), "refusals are stored");
}

#[tokio::test]
async fn keys_of_different_clients_are_different() {
    let (world, partition) = (World::new(), PartitionKey::named("seats", "all"));
    let request = Book { seats: 1, note: None };
    for (client, key) in [("ann", "bob"), ("an", "nbob"), ("", "annbob")] {
        let responded = world.entry.respond_once(client, key, partition, &request).await.unwrap();
        assert!(!responded.is_repeated, "{client}, {key}");
    }
}

#[tokio::test]
async fn failures_are_not_stored_bad_keys_refused() {
    let world = World::new();
    for _ in 0..2 {
        assert!(matches!(world.book("one", 0).await, Err(RequestError::Failed(Overloaded))));
    }
    world.book("two", 1).await.unwrap();
    assert!(matches!(world.book("two", 2).await, Err(RequestError::KeyReused)));
    for key in ["", &"x".repeat(256)] {
        assert!(matches!(world.book(key, 1).await, Err(RequestError::InvalidKey)));
    }
}

#[tokio::test]
async fn request_of_an_earlier_version_is_recognised() {
    let (world, partition) = (World::new(), PartitionKey::named("seats", "all"));
    world.book("one", 4).await.unwrap();
    let request = Book { seats: 4, note: Some(Value::Null) };
    assert!(world.entry.respond_once("ann", "one", partition, &request).await.unwrap().is_repeated);
    let other = Book { seats: 5, ..request };
    let refused = world.entry.respond_once("ann", "one", partition, &other).await;
    assert!(matches!(refused, Err(RequestError::KeyReused)));
}

/// Returns seats. Its serialized form equals that of a booking.
#[derive(Serialize)]
struct Return {
    seats: u64,
}

#[async_trait]
impl IdempotentRequest for Return {
    const NAME: &'static str = "Return";
    type Error = Overloaded;

    async fn perform(&self, _: &mut OpenSession<'_>) -> Result<Response, Overloaded> {
        unreachable!("its key was used for another request")
    }
}

#[tokio::test]
async fn key_of_another_kind_of_request_is_refused() {
    let (world, partition) = (World::new(), PartitionKey::named("seats", "all"));
    world.book("one", 4).await.unwrap();
    let refused = world.entry.respond_once("ann", "one", partition, &Return { seats: 4 }).await;
    assert!(matches!(refused, Err(RequestError::KeyReused)));
}

/// A request whose response is kept for a given time.
#[derive(Serialize)]
struct BookBriefly<const HOURS: i64>;

#[async_trait]
impl<const HOURS: i64> IdempotentRequest for BookBriefly<HOURS> {
    const NAME: &'static str = "BookBriefly";
    type Error = Overloaded;
    const RETENTION: SignedDuration = SignedDuration::from_hours(HOURS);

    async fn perform(&self, session: &mut OpenSession<'_>) -> Result<Response, Overloaded> {
        Book { seats: 1, note: None }.perform(session).await
    }
}

#[tokio::test]
async fn response_is_forgotten_after_its_retention() {
    let (world, partition) = (World::new(), PartitionKey::named("seats", "all"));
    for (left, is_repeated) in [(9, false), (9, true)] {
        let kept = world.entry.respond_once("ann", "kept", partition, &BookBriefly::<1>).await.unwrap();
        assert_eq!((kept.response.body, kept.is_repeated), (json!({ "left": left }), is_repeated));
    }
    // The retention has ended when the response is stored.
    for left in [8, 7] {
        let forgotten = world.entry.respond_once("ann", "none", partition, &BookBriefly::<-1>).await.unwrap();
        assert_eq!((forgotten.response.body, forgotten.is_repeated), (json!({ "left": left }), false));
    }
}

#[tokio::test]
async fn response_is_stored_with_row_of_application() {
    let (world, partition) = (World::new(), PartitionKey::named("seats", "all"));
    let create =
        |db: &rusqlite::Connection| db.execute_batch("CREATE TABLE app_seat (seat INTEGER PRIMARY KEY)");
    world.store.transaction(create).await.unwrap();
    let book = async |key: &str, seat| {
        let request = BookRow { seat, store: &world.store };
        world.entry.respond_once("ann", key, partition, &request).await
    };
    assert!(!book("one", 17).await.unwrap().is_repeated);
    assert!(book("one", 17).await.unwrap().is_repeated, "the row is not inserted again");
    let taken = book("two", 17).await;
    assert!(matches!(taken, Err(RequestError::Commit(CommitError::Refused))), "{taken:?}");
    assert!(!book("two", 18).await.unwrap().is_repeated, "a refusal stores no response");
    let count =
        |db: &rusqlite::Connection| db.query_row("SELECT count(*) FROM app_seat", [], |row| row.get(0));
    assert_eq!(world.store.transaction::<i64>(count).await.unwrap(), 2);
}

#[tokio::test]
async fn removed_and_expired_records_are_absent() {
    let (world, partition) = (World::new(), PartitionKey::named("seats", "all"));
    let (now, hour) = (SystemHost.now(), SignedDuration::from_hours(1));
    let key = outbox::Key::new("seat", "1A");
    let read = async |session: &mut OpenSession<'_>| {
        session.read(outbox::Key::new("seat", "1A")).await.unwrap().map(|record| record.body)
    };
    let mut session = world.entry.session(partition);
    session.write_until(key.clone(), json!("Ann"), now + hour);
    assert_eq!(read(&mut session).await, Some(json!("Ann")), "its own write");
    session.commit().await.unwrap();
    let mut session = world.entry.session(partition);
    assert_eq!(read(&mut session).await, Some(json!("Ann")));
    session.remove(key.clone());
    assert_eq!(read(&mut session).await, None, "its own removal");
    session.commit().await.unwrap();
    let (mut session, mut late) = (world.entry.session(partition), world.entry.session(partition));
    assert_eq!((read(&mut session).await, read(&mut late).await), (None, None));
    session.write_until(key.clone(), json!("Bob"), now - hour);
    session.commit().await.unwrap();
    assert_eq!(read(&mut world.entry.session(partition)).await, None, "it has expired");
    late.write(key, json!("Eve"));
    assert!(late.commit().await.unwrap_err().is_refused(), "the seat was taken in between");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_conflicting_requests_all_succeed() {
    let (world, partition) = (Arc::new(World::new()), PartitionKey::named("seats", "all"));
    let is_conflict = |error: &CommitError| matches!(error, CommitError::Changed);
    let requests: Vec<_> = (0..300)
        .map(|_| {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                let attempt = || async {
                    let mut session = world.entry.session(partition);
                    let count = session.read(free()).await.unwrap().map_or(0, |it| it.body.as_u64().unwrap());
                    session.write(free(), json!(count + 1));
                    session.commit().await.map(drop)
                };
                world.entry.repeat_conflicts(attempt, is_conflict).await
            })
        })
        .collect();
    for request in requests {
        request.await.unwrap().unwrap();
    }
    let counted = world.entry.session(partition).read(free()).await.unwrap().unwrap().body;
    assert_eq!(counted, 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_concurrent_requests_takes_effect() {
    let world = Arc::new(World::new());
    let requests: Vec<_> = (0..8)
        .map(|_| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { world.book("one", 1).await.unwrap() })
        })
        .collect();
    let mut first = 0;
    for request in requests {
        let (status, body, is_repeated) = request.await.unwrap();
        assert_eq!((status, body), (201, json!({ "left": 9 })));
        first += usize::from(!is_repeated);
    }
    assert_eq!(first, 1);
}
