//! Foreign and invalid messages affect only themselves.

use std::time::Duration;

use backend::Config;
use dedup::GrantTokens;
use imports::messages::SearchUploadStarted;
use imports::queues::{CONTROL, PARSE, PARSE_DEAD, PARSE_UNREADABLE, SAGA, SAGA_DEAD, UPLOADS};
use imports::{JobState, Manifest, ProjectId, SearchEvent, SearchId};
use jiff::Timestamp;
use messages::{
    Backoff, Disposition, Host, Message, MessageId, Payload, Queue, ReceiveMessages, ReceivedMessage, Token,
    Verdict, messages, send_one,
};
use outbox::session::{SettleSession, control_message};
use rusqlite::Connection;
use saga::{Decision, ReadDocuments, Saga};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::world::{TWO_RECORDS, World, deliveries};

#[tokio::test]
async fn bad_record_does_not_affect_others() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    let notifications = world.take(&UPLOADS).await;
    world.deliver(&UPLOADS, &notifications).await;
    world.put("not json").await;
    world.put("{\"specversion\":\"1.0\"}").await;
    let mut batch = world.take(&SAGA).await;
    batch.rotate_right(1);
    let answers = world.deliver(&SAGA, &batch).await;
    let rejected = answers.iter().map(|answer| matches!(answer, Disposition::DeadLetter { .. }));
    assert_eq!(rejected.collect::<Vec<_>>(), [true, false, false, true]);
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
}

#[tokio::test]
async fn rejected_body_is_dead_lettered_unchanged() {
    let world = World::new();
    let body = format!("{{\"junk\": \"{}\"}}", "x".repeat(10_000));
    world.put(&body).await;
    world.run().await;
    let dead = world.store().dead_letters(&SAGA_DEAD).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].body, body);
    assert!(dead[0].reason.as_deref().is_some_and(|reason| reason.contains("CloudEvent")));
}

#[tokio::test]
async fn invalid_announcement_creates_nothing() {
    let world = World::new();
    let search = SearchId::from_uuid(Uuid::from_u128(9));
    let token = Token::minted_at_entry(search, Uuid::from_u128(8));
    let now = world.host.now();
    world.store().grant(search, std::slice::from_ref(&token), now).await.unwrap();
    let started = SearchEvent::SearchUploadStarted(SearchUploadStarted {
        project_id: ProjectId::from_uuid(Uuid::nil()),
        manifest: Manifest { name: String::new(), files: Vec::new(), repairs: None },
    });
    let id = MessageId::from_uuid(Uuid::from_u128(7));
    let message = Message::new(id, "test", search, now, started.body().unwrap());
    let message = Message { token: Some(token), ..message };
    send_one(world.store(), &message, SAGA, Duration::ZERO).await.unwrap();
    world.run().await;
    assert_eq!(world.store().dead_letters(&SAGA_DEAD).await.unwrap().len(), 1);
    let documents = world.store().load(&[search], now).await.unwrap();
    assert!(matches!(documents[..], [Ok(None)]));
}

#[tokio::test]
async fn message_without_token_is_refused_by_default() {
    for (admit_untokened, dead) in [(false, 1), (true, 0)] {
        let world = World::with(Config { admit_untokened, ..Config::default() });
        let announced = world.announce(&["a.ris"]).await;
        let started = world.take(&SAGA).await;
        let mut message = Message::decode(&started[0].delivery.body).unwrap();
        message.token = None;
        send_one(world.store(), &message, SAGA, Duration::ZERO).await.unwrap();
        let batch = world.take(&SAGA).await;
        world.deliver(&SAGA, &batch).await;
        assert_eq!(world.store().dead_letters(&SAGA_DEAD).await.unwrap().len(), dead);
        assert_eq!(world.job(announced.search_id).await.state, JobState::Uploading);
    }
}

#[tokio::test]
async fn bad_messages_are_rejected_alone_and_kept() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let other = world.announce(&["b.ris"]).await;
    let good = world.take(&SAGA).await;
    let bodies: Vec<&str> = good.iter().map(|received| received.delivery.body.as_str()).collect();
    let of = |search: SearchId| {
        let search = search.to_string();
        *bodies.iter().find(|body| body.contains(&search)).unwrap()
    };
    let token = |body| Message::decode(body).unwrap().token.unwrap().to_string();
    let (mine, others) = (of(announced.search_id), of(other.search_id));
    let junk = "x".repeat(1 << 20);
    let bad = [
        ("not JSON", "{\"specversion\"".to_owned(), "JSON"),
        ("not a CloudEvent", "{}".to_owned(), "CloudEvent"),
        ("no type of ours", mine.replace("SearchUploadStarted.v1", "SearchUploadStarted"), "unknown"),
        ("another system's", mine.replace("search-import.Search", "order-desk.Search"), "order-desk"),
        ("other data than its type says", mine.replace("\"manifest\"", "\"manifold\""), "manifest"),
        ("no correlation id", mine.replace("correlationid", "something"), "correlationid"),
        ("a malformed one", mine.replace(&announced.search_id.to_string(), "x"), "envelope"),
        (
            "a foreign one",
            mine.replace(&announced.search_id.to_string(), &other.search_id.to_string()),
            "token",
        ),
        ("another partition's token", mine.replace(&token(mine), &token(others)), "token"),
        ("1 MiB of junk", junk, "JSON"),
    ];
    world.deliver(&SAGA, &good).await;
    for (_, body, _) in &bad {
        world.put(body).await;
    }
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed, "other searches continue");
    let dead = world.store().dead_letters(&SAGA_DEAD).await.unwrap();
    assert_eq!(dead.len(), bad.len());
    for (what, body, reason) in &bad {
        let letter = dead.iter().find(|letter| letter.body == *body);
        let letter = letter.unwrap_or_else(|| panic!("{what} is not kept as it came"));
        let told = letter.reason.as_deref().unwrap_or_default();
        assert!(told.contains(reason), "{what}: {told}");
    }
}

/// Returns a message as a newer version would send it.
fn of_a_later_release(message: &Message) -> Message {
    let mut later = message.clone();
    later.body.version = 2;
    later.body.data = later.body.data.with("since", json!("version 2"));
    later
}

/// Sends messages to a queue and delivers them once.
async fn delivered(
    world: &World,
    queue: &Queue,
    messages: &[Message],
) -> Vec<(ReceivedMessage, Disposition)> {
    for message in messages {
        send_one(world.store(), message, queue.clone(), Duration::ZERO).await.unwrap();
    }
    let batch = world.take(queue).await;
    let answers = world.deliver(queue, &batch).await;
    batch.into_iter().zip(answers).collect()
}

fn waits(answer: &Disposition, receive_count: u32) -> &str {
    let Disposition::Retry { after, reason } = answer else { panic!("{answer:?}") };
    let least = Backoff::UPGRADE.at_least(receive_count);
    assert!((least..=2 * least).contains(after), "{after:?}");
    reason
}

messages! {
    /// The events of a newer version.
    enum NextEvent of "search-import" to SAGA {
        SearchUploadStarted { since: String } = 2,
        SearchRenamed { since: String } = 1,
    }
    upcast unsupported
}

fn unsupported(name: &str, from: u16, _: serde_json::Value) -> Result<serde_json::Value, String> {
    Err(format!("version {from} of {name} is not supported"))
}

/// The saga of a newer version.
struct NextRelease;

impl Saga for NextRelease {
    const NAME: &'static str = imports::SYSTEM;
    type State = Vec<String>;
    type Event = NextEvent;

    fn transition(
        &self,
        state: &Vec<String>,
        event: &saga::Event<'_, NextEvent>,
        _: Timestamp,
    ) -> Decision<Vec<String>> {
        let (NextEvent::SearchUploadStarted { since } | NextEvent::SearchRenamed { since }) = event.body;
        Decision::to([state.as_slice(), std::slice::from_ref(since)].concat(), "the next release").into()
    }

    fn ended_at(&self, _: &Vec<String>) -> Option<Timestamp> {
        None
    }
}

/// During a rollback or a partial deployment no message is lost, and no other message waits for it.
#[tokio::test]
async fn newer_messages_wait_for_upgrade() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let other = world.announce(&["b.ris"]).await;
    let mut renamed = Vec::new();
    let mut known = Vec::new();
    for received in world.take(&SAGA).await {
        world.store().answer(&SAGA, &received.receipt, &Disposition::Acknowledge).await.unwrap();
        let message = Message::decode(&received.delivery.body).unwrap();
        if message.partition == other.search_id {
            known.push(message);
            continue;
        }
        renamed.push(of_a_later_release(&message));
        let token = Token::minted_at_entry(message.partition, Uuid::from_u128(77));
        world.store().grant(message.partition, std::slice::from_ref(&token), world.host.now()).await.unwrap();
        let mut unknown = of_a_later_release(&message);
        unknown.id = message.id.derive(1);
        unknown.token = Some(token);
        (unknown.body.name, unknown.body.version) = ("SearchRenamed".to_owned(), 1);
        renamed.push(unknown);
    }
    let sent: Vec<Message> = [renamed.as_slice(), &known].concat();
    let first = delivered(&world, &SAGA, &sent).await;
    assert!(waits(&first[0].1, 1).contains("version 2, and this program supports up to 1"));
    assert!(waits(&first[1].1, 1).contains("SearchRenamed is unknown to this program"));
    assert_eq!(first[2].1, Disposition::Acknowledge, "the other message is handled");
    assert_eq!(world.verdicts(announced.search_id, "SearchUploadStarted").await, [Verdict::Retried]);
    assert_eq!(world.verdicts(announced.search_id, "SearchRenamed").await, [Verdict::Retried]);

    world.run().await;
    world.host.advance(Duration::from_secs(59));
    assert_eq!(world.take(&SAGA).await, [], "they wait");
    world.host.advance(Duration::from_secs(61));
    let second = delivered(&world, &SAGA, &[]).await;
    assert_eq!(second.len(), 2);
    for (received, answer) in &second {
        let is_one = |message: &Message| message.encode().unwrap() == received.delivery.body;
        assert!(renamed.iter().any(is_one), "the message is unchanged");
        waits(answer, 2);
    }
    assert_eq!(world.store().dead_letters(&SAGA_DEAD).await.unwrap(), []);

    // The upgrade.
    let upgraded = world.backend.ports.engine.run(functions::run_saga::NAME, NextRelease).unwrap();
    world.host.advance(Duration::from_secs(240));
    let batch = world.take(&SAGA).await;
    let ours: Vec<ReceivedMessage> = batch
        .into_iter()
        .filter(|received| received.delivery.body.contains(&announced.search_id.to_string()))
        .collect();
    let answers = upgraded.consume(&deliveries(&ours), None).await;
    assert_eq!(answers, [Disposition::Acknowledge, Disposition::Acknowledge]);
    for (received, answer) in ours.iter().zip(&answers) {
        world.store().answer(&SAGA, &received.receipt, answer).await.unwrap();
    }
    let handled = [Verdict::Retried, Verdict::Retried, Verdict::Handled];
    for message in ["SearchUploadStarted", "SearchRenamed"] {
        assert_eq!(world.verdicts(announced.search_id, message).await, handled, "{message}");
    }
    let document = world.document(announced.search_id).await;
    assert_eq!(document.unwrap().content.state, json!(["version 2", "version 2"]));
}

#[tokio::test]
async fn newer_version_of_command_waits() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.deliver_all(&[&UPLOADS, &SAGA]).await;
    let command = Message::decode(&world.take(&PARSE).await[0].delivery.body).unwrap();
    let look = SettleSession {
        session_id: messages::SessionId::from_uuid(Uuid::from_u128(5)),
        remaining_ms: 0,
        increment_ms: 0,
        attempt: 0,
        metadata: std::collections::BTreeMap::new(),
    };
    let control = control_message(imports::SYSTEM, announced.search_id, &look, world.host.now());
    world.take(&CONTROL).await;
    for (queue, message) in [(PARSE, command), (CONTROL, control)] {
        let answers = delivered(&world, &queue, &[of_a_later_release(&message)]).await;
        assert!(waits(&answers[0].1, 1).contains("version 2"), "{queue}");
        assert_eq!(answers.len(), 1, "{queue}");
    }
}

#[tokio::test]
async fn future_version_command_waits_for_upgrade() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.deliver_all(&[&UPLOADS, &SAGA]).await;
    let command = world.take(&PARSE).await.remove(0);
    world.store().answer(&PARSE, &command.receipt, &Disposition::Acknowledge).await.unwrap();
    let command = Message::decode(&command.delivery.body).unwrap();
    let later = of_a_later_release(&command);
    // The parse queue has dead-lettered the command.
    let answers = delivered(&world, &PARSE_DEAD, std::slice::from_ref(&later)).await;
    let Disposition::DeadLetter { reason } = &answers[0].1 else { panic!("{answers:?}") };
    assert!(reason.contains("version 2, and this program supports up to 1"), "{reason}");
    let kept = world.store().dead_letters(&PARSE_UNREADABLE).await.unwrap();
    assert_eq!(kept.len(), 1);
    // The upgraded version knows the command, and an operator redrives it to the parser.
    send_one(world.store(), &command, PARSE, Duration::ZERO).await.unwrap();
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
}

/// Replaces the stored document of a search, bypassing all ports, and returns the previous one.
fn replace(world: &World, search: SearchId, with: impl Fn(&str) -> String) -> String {
    let database = Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let id = search.to_string();
    let sql = "SELECT content FROM saga WHERE search_id = ?1";
    let before: String = database.query_row(sql, [&id], |row| row.get(0)).unwrap();
    let sql = "UPDATE saga SET content = ?2 WHERE search_id = ?1";
    assert_eq!(database.execute(sql, [&id, &with(&before)]).unwrap(), 1);
    before
}

/// Returns the content with another state.
fn restated(content: &str, state: Option<Value>, version: u32) -> String {
    let mut content: Value = serde_json::from_str(content).unwrap();
    content["state_version"] = version.into();
    if let Some(state) = state {
        content["state"] = state;
    }
    content.to_string()
}

/// The document cannot show whether the search expects the reply.
#[tokio::test]
async fn file_is_read_if_document_has_newer_version() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.deliver_all(&[&UPLOADS, &CONTROL, &SAGA]).await;
    let readable = replace(&world, announced.search_id, |content| restated(content, None, 2));
    let commands = world.take(&PARSE).await;
    assert_eq!(world.deliver(&PARSE, &commands).await, [Disposition::Acknowledge]);
    replace(&world, announced.search_id, |_| readable.clone());
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
    assert_eq!(world.studies(announced.search_id).await.len(), 2);
}

#[tokio::test]
async fn unreadable_document_fails_only_its_search() {
    type Damage = fn(&str) -> String;
    let damages: [(&str, Damage); 3] = [
        ("not JSON", |_| "{".to_owned()),
        ("no state of ours", |content| restated(content, Some(json!({ "Shipped": 7 })), 1)),
        ("a later release's", |content| restated(content, None, 2)),
    ];
    for (what, damage) in damages {
        let world = World::new();
        let mut searches = Vec::new();
        for _ in 0..10 {
            searches.push(world.announce(&["a.ris"]).await);
        }
        world.run().await;
        for search in &searches {
            world.upload(search, 0, TWO_RECORDS).await;
        }
        let notifications = world.take(&UPLOADS).await;
        world.deliver(&UPLOADS, &notifications).await;
        let damaged = searches[4].search_id;
        let sound = replace(&world, damaged, damage);

        let batch = world.take(&SAGA).await;
        let answers = world.deliver(&SAGA, &batch).await;
        assert_eq!(answers.len(), 10);
        for (received, answer) in batch.iter().zip(&answers) {
            if received.delivery.body.contains(&damaged.to_string()) {
                waits(answer, 1);
            } else {
                assert_eq!(*answer, Disposition::Acknowledge, "{what}");
            }
        }
        assert_eq!(world.verdicts(damaged, "SearchUploadSaved").await, [Verdict::Retried], "{what}");
        world.run().await;
        for search in searches.iter().filter(|search| search.search_id != damaged) {
            assert_eq!(world.job(search.search_id).await.state, JobState::Completed, "{what}");
        }
        assert!(world.jobs().job(damaged).await.is_err(), "{what}");

        // After the document is readable again, its message is redelivered.
        replace(&world, damaged, |_| sound.clone());
        world.host.advance(2 * Backoff::UPGRADE.at_least(1));
        world.run().await;
        assert_eq!(world.job(damaged).await.state, JobState::Completed, "{what}");
    }
}
