//! Requests with idempotency keys on SQLite.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use std::sync::Arc;

use onceward::prelude::*;
use onceward::saga::engine::OpenSession;
use onceward::saga::requests::{IdempotentRequest, RequestError, Response};
use onceward::serde_json::{Value, json};
use onceward::sqlite::{Settings, Store};
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

struct World {
    entry: EntryPoint,
    _dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let (dir, host) = (tempfile::tempdir().unwrap(), Arc::new(SystemHost));
        let queues: &'static [QueueSpec] =
            Box::leak(Box::new([QueueSpec::standard(CONTROL, Queue::named("control-dead"))]));
        let store = Arc::new(Store::open(dir.path(), host.clone(), Settings::of("seats", queues)).unwrap());
        let entry = store.engine("seats", host, Arc::new(())).entry_point("http").unwrap();
        Self { entry, _dir: dir }
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
