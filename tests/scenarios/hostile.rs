//! Messages that are none of ours cost only themselves.

use contracts::{Disposition, JobState};
use outbox::Queue;
use std::time::Duration;

use crate::world::{TWO_RECORDS, World};

#[tokio::test]
async fn a_bad_record_does_not_fail_its_neighbours() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    let notifications = world.take(Queue::Uploads).await;
    world.deliver(Queue::Uploads, &notifications).await;
    world.put("not json").await;
    world.put("{\"specversion\":\"1.0\"}").await;
    let mut batch = world.take(Queue::Saga).await;
    batch.rotate_right(1);
    let answers = world.deliver(Queue::Saga, &batch).await;
    let rejected = answers.iter().map(|answer| matches!(answer, Disposition::DeadLetter { .. }));
    assert_eq!(rejected.collect::<Vec<_>>(), [true, false, false, true]);
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
}

#[tokio::test]
async fn a_rejected_body_ends_in_the_dead_letter_queue_unchanged() {
    let world = World::new();
    let body = format!("{{\"junk\": \"{}\"}}", "x".repeat(10_000));
    world.put(&body).await;
    world.run().await;
    let dead = world.store().dead_letters(Queue::SagaDead).await.unwrap();
    assert_eq!(dead.len(), 1);
    assert_eq!(dead[0].body, body);
    assert!(dead[0].reason.as_deref().is_some_and(|reason| reason.contains("CloudEvent")));
}

#[tokio::test]
async fn an_invalid_announcement_is_rejected_and_creates_nothing() {
    use contracts::message::SearchUploadStarted;
    use contracts::{Body, Manifest, Message, MessageId, ProjectId, SearchId, Token};
    let world = World::new();
    let search = SearchId::from_uuid(uuid::Uuid::from_u128(9));
    let token = Token::minted_at_entry(search, uuid::Uuid::from_u128(8));
    let now = contracts::Host::now(world.host.as_ref());
    dedup::GrantTokens::grant(world.store(), search, std::slice::from_ref(&token), now).await.unwrap();
    let message = Message {
        id: MessageId::from_uuid(uuid::Uuid::from_u128(7)),
        source: "test".into(),
        time: now,
        correlation_id: search,
        causation_id: None,
        token: Some(token),
        traceparent: None,
        body: Body::SearchUploadStarted(SearchUploadStarted {
            project_id: ProjectId::from_uuid(uuid::Uuid::nil()),
            manifest: Manifest { name: String::new(), files: Vec::new() },
        }),
    };
    outbox::send_one(world.store(), &message, Duration::ZERO).await.unwrap();
    world.run().await;
    assert_eq!(world.store().dead_letters(Queue::SagaDead).await.unwrap().len(), 1);
    assert_eq!(worker::ReadSaga::load(world.store(), &[search], now).await.unwrap(), [None]);
}

#[tokio::test]
async fn a_message_without_a_token_is_refused_unless_the_setting_admits_it() {
    for (admit_untokened, dead) in [(false, 1), (true, 0)] {
        let world = World::with(config::Config { admit_untokened, ..config::Config::default() });
        let announced = world.announce(&["a.ris"]).await;
        let started = world.take(Queue::Saga).await;
        let mut message = contracts::Message::decode(&started[0].delivery.body).unwrap();
        message.token = None;
        outbox::send_one(world.store(), &message, Duration::ZERO).await.unwrap();
        let batch = world.take(Queue::Saga).await;
        world.deliver(Queue::Saga, &batch).await;
        assert_eq!(world.store().dead_letters(Queue::SagaDead).await.unwrap().len(), dead);
        assert_eq!(world.job(announced.search_id).await.state, JobState::Uploading);
    }
}

#[tokio::test]
async fn every_kind_of_bad_input_is_rejected_by_itself_and_kept_unchanged() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let other = world.announce(&["b.ris"]).await;
    let good = world.take(Queue::Saga).await;
    let bodies: Vec<&str> = good.iter().map(|received| received.delivery.body.as_str()).collect();
    let of = |search: contracts::SearchId| {
        let search = search.to_string();
        *bodies.iter().find(|body| body.contains(&search)).unwrap()
    };
    let token = |body| contracts::Message::decode(body).unwrap().token.unwrap().to_string();
    let (mine, others) = (of(announced.search_id), of(other.search_id));
    let junk = "x".repeat(1 << 20);
    let bad = [
        ("not JSON", "{\"specversion\"".to_owned(), "JSON"),
        ("not a CloudEvent", "{}".to_owned(), "CloudEvent"),
        ("an unknown type", mine.replace("SearchUploadStarted", "SomethingElse"), "SomethingElse"),
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
    world.deliver(Queue::Saga, &good).await;
    for (_, body, _) in &bad {
        world.put(body).await;
    }
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed, "its neighbours go on");
    let dead = world.store().dead_letters(Queue::SagaDead).await.unwrap();
    assert_eq!(dead.len(), bad.len());
    for (what, body, reason) in &bad {
        let letter = dead.iter().find(|letter| letter.body == *body);
        let letter = letter.unwrap_or_else(|| panic!("{what} is not kept as it came"));
        let told = letter.reason.as_deref().unwrap_or_default();
        assert!(told.contains(reason), "{what}: {told}");
    }
}
