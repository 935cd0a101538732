//! The operators' view of all projects.

use std::time::Duration;

use contracts::sample;
use imports::queues::CONTROL;
use imports::{Job, JobState, ProjectId};
use jiff::SignedDuration;
use messages::{Host, PartitionKey, SessionId};
use outbox::{CommitSession, Entry, SessionRecord, View, WriteViews};
use saga::{Persist, WriteDocuments};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{SECOND, all, api, get, refusal};
use crate::world::World;

const SEARCHES: &str = "/admin/searches";
const EFFECTS: &str = "/admin/effects";

/// Stores searches of two projects without documents, only with views, each with an age in hours.
async fn write(world: &World, searches: &[(&str, u128, JobState, i64)]) {
    let now = world.host.now();
    let views = searches.iter().map(|(name, project, state, hours)| {
        let job = testing::search::job(&*world.host, sample::partition(&*world.host), 1, *state);
        let created_at = now.checked_sub(SignedDuration::from_hours(*hours)).unwrap();
        let (project_id, name) = (ProjectId::from_uuid(Uuid::from_u128(*project)), Some((*name).to_owned()));
        View::from(&Job { project_id, name, created_at, ..job })
    });
    world.store().write(&views.collect::<Vec<_>>()).await.unwrap();
}

fn names(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn admin_list_puts_stuck_searches_first() {
    let world = World::new();
    write(
        &world,
        &[
            ("fresh", 1, JobState::Uploading, 0),
            ("stuck", 2, JobState::Parsing, 30),
            ("slow", 1, JobState::Parsing, 3),
            ("old", 1, JobState::Completed, 40),
            ("broken", 2, JobState::Error, 2),
            ("done", 2, JobState::Completed, 1),
        ],
    )
    .await;
    let api = api(&world);
    for (query, expected) in [
        ("", &["stuck", "slow", "fresh", "done", "broken", "old"][..]),
        ("state=Parsing", &["stuck", "slow"]),
        ("state=Parsing&older_than=4h", &["stuck"]),
        ("older_than=5400", &["stuck", "slow", "broken", "old"]),
        ("older_than=1d 12h", &["old"]),
        ("state=Error,Uploading", &["fresh", "broken"]),
        ("state=Completed", &["done", "old"]),
        ("project=00000000-0000-0000-0000-000000000002", &["stuck", "done", "broken"]),
        ("project=00000000-0000-0000-0000-000000000002&state=Error", &["broken"]),
        ("project=00000000-0000-0000-0000-000000000003", &[]),
    ] {
        for limit in [1, 2, 50] {
            let (items, sizes) = all(&api, &format!("{SEARCHES}?limit={limit}&{query}")).await;
            assert_eq!(names(&items), expected, "{query}");
            assert!(sizes.iter().all(|size| *size <= limit), "{sizes:?}");
        }
    }
}

#[tokio::test]
async fn state_filter_uses_current_state_without_deleted() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let api = api(&world);
    let state = async || get(&api, SEARCHES).await["items"][0]["state"].clone();
    assert_eq!(state().await, "Uploading");
    world.upload(&announced, 0, SECOND).await;
    world.run().await;
    assert_eq!(state().await, "Completed", "before the view is updated");
    world.pass(Duration::from_secs(60)).await;
    assert_eq!(state().await, "Completed");
    let everywhere = service::ProjectAccess::All;
    world.functions.start_upload.delete(&everywhere, announced.search_id).await.unwrap();
    assert_eq!(get(&api, SEARCHES).await["items"], serde_json::json!([]));
}

/// A request scans up to 1,000 entries, regardless of the number that match.
#[tokio::test]
async fn page_scan_is_bounded() {
    let world = World::new();
    let mut searches = vec![("the first", 1, JobState::Error, 9)];
    searches.extend([("another", 1, JobState::Completed, 1); 700]);
    searches.extend([("open", 1, JobState::Uploading, 1); 400]);
    write(&world, &searches).await;
    let (items, sizes) = all(&api(&world), &format!("{SEARCHES}?state=Error,Parsing&limit=3")).await;
    assert_eq!((names(&items), sizes), (vec!["the first"], vec![0, 1]));
}

/// Stores a document with these entries. Each entry has been due for the given number of seconds.
async fn with_entries(world: &World, entries: &[(i64, bool)]) -> PartitionKey {
    let (partition, now) = (sample::partition(&*world.host), sample::now(&*world.host));
    let entry = |(age, exhausted): &(i64, bool)| {
        let entry = sample::entry(&*world.host, partition, sample::later(now, -age)).unwrap();
        let (attempts, error) = if *exhausted { (3, Some("it was refused".to_owned())) } else { (0, None) };
        Entry { poisoned: *exhausted, attempts, error, ..entry }
    };
    let add = entries.iter().map(entry).collect();
    let write = Persist { add, ..sample::persist(partition, None, sample::content(&*world.host, "x")) };
    world.store().persist(&[write], now).await.unwrap();
    partition
}

#[tokio::test]
async fn effects_are_listed_with_details() {
    let world = World::new();
    let search = with_entries(&world, &[(-60, false), (7_200, true)]).await;
    let announced = world.announce(&["a.ris"]).await;
    let api = api(&world);
    let (items, _) = all(&api, EFFECTS).await;
    let [waiting, exhausted] = &items[..] else { panic!("{items:?}") };
    assert_eq!(
        (&waiting["state"], &waiting["kind"], &waiting["queue"]),
        (&json!("waiting"), &json!("message"), &json!("saga"))
    );
    assert_eq!(
        (&waiting["due_at"], &waiting["next_attempt_at"]),
        (&json!("2026-01-01T00:01:00Z"), &json!("2026-01-01T00:01:00Z"))
    );
    assert_eq!(
        (&waiting["attempts"], &waiting["error"], &waiting["session_id"]),
        (&json!(0), &Value::Null, &Value::Null)
    );
    assert_eq!((&exhausted["state"], &exhausted["attempts"]), (&json!("poisoned"), &json!(3)));
    assert_eq!(
        (&exhausted["error"], &exhausted["next_attempt_at"]),
        (&json!("it was refused"), &Value::Null)
    );
    for item in &items {
        assert_eq!((&item["search_id"], &item["message"]), (&json!(search.to_string()), &json!("Happened")));
    }
    for (query, count) in [
        ("state=waiting", 1),
        ("state=poisoned", 1),
        ("state=claimed", 0),
        ("older_than=1h", 1),
        ("older_than=3h", 0),
    ] {
        assert_eq!(all(&api, &format!("{EFFECTS}?{query}")).await.0.len(), count, "{query}");
    }
    // Entries of a request's session are labelled as such, with their search.
    world.deliver_all(&[&CONTROL]).await;
    let session = sample::entry(&*world.host, announced.search_id, sample::now(&*world.host)).unwrap();
    let record = SessionRecord {
        id: SessionId::from_uuid(world.host.fresh_id()),
        entries: vec![session],
        views: Vec::new(),
        reads: Vec::new(),
        writes: Vec::new(),
        committed_at: world.host.now(),
    };
    world.store().commit(&record).await.unwrap();
    let (items, _) = all(&api, EFFECTS).await;
    let of_session = items.last().unwrap();
    assert_eq!(of_session["session_id"], record.id.to_string());
    assert_eq!(of_session["search_id"], announced.search_id.to_string());
}

#[tokio::test]
async fn pages_of_effects_keep_searches_together() {
    let world = World::new();
    for _ in 0..5 {
        with_entries(&world, &[(0, false), (0, true), (0, false)]).await;
    }
    let api = api(&world);
    let (everything, _) = all(&api, EFFECTS).await;
    assert_eq!(everything.len(), 15);
    for (limit, expected) in
        [(1, vec![3, 3, 3, 3, 3, 0]), (4, vec![6, 6, 3]), (15, vec![15, 0]), (50, vec![15])]
    {
        let (items, sizes) = all(&api, &format!("{EFFECTS}?limit={limit}")).await;
        assert_eq!((items, sizes), (everything.clone(), expected), "{limit}");
    }
    let (exhausted, sizes) = all(&api, &format!("{EFFECTS}?state=poisoned&limit=2")).await;
    assert_eq!((exhausted.len(), sizes), (5, vec![2, 2, 1]));
}

#[tokio::test]
async fn unreadable_effect_is_listed_by_position() {
    let world = World::new();
    let search = with_entries(&world, &[(0, false)]).await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let kind = r#"{"kind":"webhook","to":"x"}"#;
    database.execute("UPDATE outbox SET kind = ?1 WHERE owner_id = ?2", [kind, &search.to_string()]).unwrap();
    let item = get(&api(&world), EFFECTS).await["items"][0].clone();
    assert_eq!((&item["kind"], &item["state"]), (&json!("unreadable"), &json!("poisoned")));
    assert_eq!((&item["search_id"], &item["due_at"]), (&json!(search.to_string()), &Value::Null));
    assert!(item["error"].as_str().unwrap().contains("webhook"), "{item}");
}

#[tokio::test]
async fn invalid_decisions_are_refused() {
    let world = World::new();
    let api = api(&world);
    for query in ["state=lost", "older_than=soon", "limit=0", "limit=201", "after=x"] {
        assert_eq!(refusal(&api, &format!("{EFFECTS}?{query}")).await.0, 400, "{query}");
    }
    for query in
        ["state=Lost", "older_than=soon", "older_than=-1h", "project=x", "limit=0", "limit=201", "after=x"]
    {
        assert_eq!(refusal(&api, &format!("{SEARCHES}?{query}")).await.0, 400, "{query}");
    }
}
