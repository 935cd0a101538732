//! Effects that cannot be sent become failures, and are sent again or deleted with them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use embedded::{Call, Intercept, Phase};
use imports::{JobState, SearchId};
use jiff::SignedDuration;
use messages::Host;
use saga::failures::{FailureStatus, Failures, Phase as Step, Retry, Selection};

use crate::failures::{all, gather, of, operation, run_to_the_end};
use crate::world::{Slow, TWO_RECORDS, World};

const SECOND: Duration = Duration::from_secs(1);

/// Returns the database with one exhausted effect in each of two searches. The effect of the second is unreadable.
async fn with_two_exhausted(world: &World) -> (rusqlite::Connection, [SearchId; 2]) {
    let searches = [world.announce(&["a.ris"]).await.search_id, world.announce(&["b.ris"]).await.search_id];
    world.run().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let poison = "UPDATE outbox SET poisoned = 1, ready_at = NULL, error = 'sending 3 messages failed'
        WHERE owner_id = ?1 AND kind NOT LIKE '%job%'";
    for search in &searches {
        assert_eq!(database.execute(poison, [search.to_string()]).unwrap(), 1);
    }
    let damage = "UPDATE outbox SET kind = 'webhook' WHERE owner_id = ?1 AND poisoned = 1";
    assert_eq!(database.execute(damage, [searches[1].to_string()]).unwrap(), 1);
    (database, searches)
}

/// The entries of an outbox are requeued as they were reported. An unreadable entry becomes a new failure when it is
/// exhausted again.
#[tokio::test]
async fn exhausted_effects_become_failures_and_are_requeued() {
    let world = World::new();
    let (_, searches) = with_two_exhausted(&world).await;
    for _ in 0..2 {
        gather(&world).await;
    }
    let found = of(&world, FailureStatus::Open).await;
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|failure| failure.origin.place() == "outbox" && failure.seen == 1));
    let timer = found.iter().find(|failure| failure.partition == Some(searches[0])).unwrap();
    assert_eq!(
        (timer.message.as_str(), timer.reason.as_str()),
        ("UploadTimeout", "sending 3 messages failed")
    );

    world.functions.failures.retry(all(), "Ann").await.unwrap();
    run_to_the_end(&world).await;
    assert_eq!(of(&world, FailureStatus::Retried).await.len(), 2);
    // One entry is sent; the other is still unreadable and is exhausted again.
    world.pass(Duration::from_secs(60)).await;
    world.run().await;
    gather(&world).await;
    let again = of(&world, FailureStatus::Open).await;
    assert_eq!(again.iter().map(|failure| (failure.seen, failure.retried)).collect::<Vec<_>>(), [(2, 1)]);
    assert_eq!(of(&world, FailureStatus::Retried).await.len(), 1);
}

/// After a day without access to a queue there may be one such effect per search.
#[tokio::test]
async fn many_exhausted_effects_are_recorded_across_invocations() {
    let world = World::new();
    for _ in 0..450 {
        world.announce(&["a.ris"]).await;
    }
    world.run().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let poison = "UPDATE outbox SET poisoned = 1, ready_at = NULL WHERE kind NOT LIKE '%job%'";
    assert_eq!(database.execute(poison, []).unwrap(), 450);
    let slow = world.crashing(&Arc::new(Slow(Call::FailuresChange, Arc::clone(&world.host))));
    for open in [200, 400, 450] {
        let deadline = world.host.now().checked_add(SignedDuration::from_secs(1)).unwrap();
        slow.failures.collect(Some(deadline)).await.unwrap();
        assert_eq!(of(&world, FailureStatus::Open).await.len(), open);
    }
    assert_eq!(database.execute("UPDATE outbox SET poisoned = 0 WHERE poisoned = 1", []).unwrap(), 450);
    gather(&world).await;
    assert_eq!(of(&world, FailureStatus::Open).await.len(), 0);
}

#[tokio::test]
async fn deleted_failure_deletes_its_effect() {
    for archived in 0..=2 {
        effects_go_with_their_failures(archived).await;
    }
}

/// Checks deletion after `archived` of the two failures were archived.
async fn effects_go_with_their_failures(archived: usize) {
    let world = World::new();
    let (database, _) = with_two_exhausted(&world).await;
    gather(&world).await;
    let left = || {
        let sql = "SELECT count(*) FROM outbox WHERE poisoned = 1";
        database.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap()
    };
    let found = of(&world, FailureStatus::Open).await;
    assert_eq!((found.len(), left()), (2, 2));
    let failures = &world.functions.failures;
    for failure in &found[..archived] {
        failures.archive(&[failure.id], "looked at", "Ann").await.unwrap();
    }
    gather(&world).await;
    assert_eq!(of(&world, FailureStatus::Open).await.len(), 2 - archived, "archived failures stay hidden");
    for (failure, left_then) in found.iter().zip([1, 0]) {
        failures.delete(&[failure.id], "not needed", "Ann").await.unwrap();
        assert_eq!(left(), left_then);
    }
    gather(&world).await;
    assert!(of(&world, FailureStatus::Open).await.is_empty());
}

/// Records the calls that list outboxes.
#[derive(Default)]
struct Listings(Mutex<Vec<Call>>);

#[async_trait]
impl Intercept for Listings {
    async fn step(&self, call: Call, phase: Phase) {
        if phase == Phase::Before && matches!(call, Call::OutboxPending | Call::OutboxPoisoned) {
            self.0.lock().unwrap().push(call);
        }
    }
}

/// After an outage, very many other effects may be exhausted.
#[tokio::test]
async fn retry_with_canary_and_deletion_list_no_outbox() {
    let world = World::new();
    for name in ["a.ris", "b.ris"] {
        world.announce(&[name]).await;
    }
    world.run().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let poison = "UPDATE outbox SET poisoned = 1, ready_at = NULL WHERE kind NOT LIKE '%job%'";
    assert_eq!(database.execute(poison, []).unwrap(), 2);
    gather(&world).await;
    let [one, other] = of(&world, FailureStatus::Open).await.try_into().unwrap();
    let listings = Arc::new(Listings::default());
    let failures = world.crashing(&listings).failures;
    let selection = Selection { ids: BTreeSet::from([one.id]), ..Selection::of(FailureStatus::Open) };
    failures.retry(Retry { selection, canary: 1, ..all() }, "Ann").await.unwrap();
    while failures.run_step(None).await.unwrap() {
        world.host.advance(SECOND);
    }
    failures.delete(&[other.id], "not needed", "Ann").await.unwrap();
    assert_eq!(*listings.0.lock().unwrap(), []);
    assert_eq!(of(&world, FailureStatus::Retried).await.len(), 1);
    let left = "SELECT count(*), sum(poisoned) FROM outbox WHERE kind NOT LIKE '%job%'";
    let left = database.query_row(left, [], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?)));
    assert_eq!(left.unwrap(), (1, 0), "one effect is due again, and the other is deleted");
}

/// A closed failure says nothing about the current state of its effect.
#[tokio::test]
async fn deleted_failure_keeps_requeued_effect() {
    let world = World::new();
    let search = world.announce(&["a.ris"]).await.search_id;
    world.run().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let poison = "UPDATE outbox SET poisoned = 1, ready_at = NULL, kind = 'webhook'
        WHERE owner_id = ?1 AND kind NOT LIKE '%job%'";
    assert_eq!(database.execute(poison, [search.to_string()]).unwrap(), 1);
    gather(&world).await;
    world.functions.failures.retry(all(), "Ann").await.unwrap();
    run_to_the_end(&world).await;
    let retried = of(&world, FailureStatus::Retried).await;
    world.functions.failures.delete(&[retried[0].id], "done", "Ann").await.unwrap();
    let sql = "SELECT count(*) FROM outbox WHERE kind = 'webhook'";
    assert_eq!(database.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap(), 1);
}

#[tokio::test]
async fn requeued_effect_closes_its_failure() {
    let world = World::new();
    let search = world.announce(&["a.ris"]).await.search_id;
    world.run().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let poison = |exhausted: bool| {
        let sql = "UPDATE outbox SET poisoned = ?1 WHERE owner_id = ?2 AND kind NOT LIKE '%job%'";
        assert_eq!(database.execute(sql, rusqlite::params![exhausted, search.to_string()]).unwrap(), 1);
    };
    poison(true);
    gather(&world).await;
    assert_eq!(of(&world, FailureStatus::Open).await.len(), 1);
    poison(false);
    gather(&world).await;
    assert_eq!(of(&world, FailureStatus::Closed).await.len(), 1);
}

/// The document of an instance that ended longer ago than the retention cannot be loaded any more. It stays stored as long
/// as its outbox has entries.
#[tokio::test]
async fn canary_effect_of_expired_instance_is_judged() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let job = world.job(announced.search_id).await;
    assert_eq!(job.state, JobState::Completed);
    // The timer of another import.
    let other = world.announce(&["b.ris"]).await.search_id;
    world.run().await;
    let sql = "INSERT INTO outbox (owner, owner_id, entry_id, kind, payload, due_at, attempts, next_attempt_at, poisoned,
            requeued)
        SELECT owner, ?1, entry_id, kind, payload, due_at, 0, next_attempt_at, 1, 0 FROM outbox
        WHERE owner_id = ?2 AND kind NOT LIKE '%job%'";
    let ids = [announced.search_id, other].map(|search| search.to_string());
    assert_eq!(database.execute(sql, ids).unwrap(), 1);
    gather(&world).await;
    assert_eq!(of(&world, FailureStatus::Open).await.len(), 1);
    world.pass(Duration::from_secs(8 * 24 * 3_600)).await;
    assert!(world.document(announced.search_id).await.is_none());
    let failures = &world.functions.failures;
    let begun = failures.retry(Retry { canary: 1, ..all() }, "Ann").await.unwrap();
    run_to_the_end(&world).await;
    let phase = operation(&world, &begun).await.phase;
    assert!(matches!(&phase, Step::Stopped { why, .. } if why.contains("went ahead")), "{phase:?}");
}

/// Claims all open failures for a retry while an operator deletes one of them.
struct ClaimsFirst(Failures, Mutex<bool>);

#[async_trait]
impl Intercept for ClaimsFirst {
    async fn step(&self, call: Call, phase: Phase) {
        let is_first = call == Call::OutboxRead
            && phase == Phase::Before
            && !std::mem::replace(&mut *self.1.lock().unwrap(), true);
        if is_first {
            self.0.run_step(None).await.unwrap();
        }
    }
}

/// An effect must not be deleted while an operation retries it.
#[tokio::test]
async fn effect_is_either_deleted_or_retried() {
    let world = World::new();
    let search = world.announce(&["a.ris"]).await.search_id;
    world.run().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let poison = "UPDATE outbox SET poisoned = 1, ready_at = NULL WHERE kind NOT LIKE '%job%'";
    assert_eq!(database.execute(poison, []).unwrap(), 1);
    gather(&world).await;
    let [failure] = of(&world, FailureStatus::Open).await.try_into().unwrap();
    let failures = world.functions.failures.clone();
    failures.retry(all(), "Ann").await.unwrap();
    let racing = world.crashing(&Arc::new(ClaimsFirst(failures, Mutex::default()))).failures;
    racing.delete(&[failure.id], "not needed", "Bob").await.unwrap();
    run_to_the_end(&world).await;
    let sql = "SELECT count(*) FROM outbox WHERE owner_id = ?1 AND kind NOT LIKE '%job%'";
    let left = database.query_row(sql, [search.to_string()], |row| row.get::<_, u32>(0)).unwrap();
    assert_eq!((left, of(&world, FailureStatus::Retried).await.len()), (0, 0));
}

/// The entry of an archived failure stays in its outbox. It must not become an open failure again.
#[tokio::test]
async fn archived_failure_lasts_as_long_as_its_effect() {
    let world = World::new();
    let (database, _) = with_two_exhausted(&world).await;
    gather(&world).await;
    for failure in of(&world, FailureStatus::Open).await {
        world.functions.failures.archive(&[failure.id], "looked at", "Ann").await.unwrap();
    }
    for _ in 0..2 {
        world.pass(Duration::from_secs(31 * 24 * 3_600)).await;
        world.store().purge(world.host.now()).await.unwrap();
        gather(&world).await;
        assert_eq!(of(&world, FailureStatus::Archived).await.len(), 2);
        assert!(of(&world, FailureStatus::Open).await.is_empty());
    }
    database.execute("DELETE FROM outbox WHERE poisoned = 1", []).unwrap();
    gather(&world).await;
    assert_eq!(of(&world, FailureStatus::Closed).await.len(), 2);
    world.pass(Duration::from_secs(31 * 24 * 3_600)).await;
    world.store().purge(world.host.now()).await.unwrap();
    assert!(of(&world, FailureStatus::Closed).await.is_empty());
}

/// Hides the exhausted entries while they are listed.
struct HidesExhausted(Mutex<rusqlite::Connection>);

#[async_trait]
impl Intercept for HidesExhausted {
    async fn step(&self, call: Call, phase: Phase) {
        if call == Call::OutboxPoisoned {
            let sql = "UPDATE outbox SET poisoned = ?1 WHERE kind NOT LIKE '%job%'";
            self.0.lock().unwrap().execute(sql, [phase != Phase::Before]).unwrap();
        }
    }
}

/// DynamoDB's indexes are eventually consistent.
#[tokio::test]
async fn failure_of_unlisted_effect_stays_open() {
    let world = World::new();
    world.announce(&["a.ris"]).await;
    world.run().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let poison = "UPDATE outbox SET poisoned = 1, ready_at = NULL WHERE kind NOT LIKE '%job%'";
    assert_eq!(database.execute(poison, []).unwrap(), 1);
    gather(&world).await;
    let lagging = world.crashing(&Arc::new(HidesExhausted(Mutex::new(database))));
    lagging.failures.collect(None).await.unwrap();
    assert_eq!(of(&world, FailureStatus::Open).await.len(), 1);
}
