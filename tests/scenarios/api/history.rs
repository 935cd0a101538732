//! The history of decisions about messages.

use std::time::Duration;

use dedup::GrantTokens;
use imports::messages::UploadTimeout;
use imports::queues::SAGA;
use imports::{SearchEvent, TimeoutId};
use messages::{Host, Message, MessageId, Payload, Token, send_one};
use serde_json::Value;
use uuid::Uuid;

use http_api::{BodyMode, router_for};
use service::{Operator, Principal, ProjectAccess};

use super::{all, api, get, path_of, refusal};
use crate::world::World;

/// Returns verdict, reason and attempt of the decisions about one type of message.
fn of<'a>(items: &'a [Value], message: &str) -> Vec<(&'a str, &'a str, u64)> {
    let of_saga = items.iter().filter(|item| item["function"] == "run-saga" && item["message"] == message);
    let shown = |item: &'a Value| {
        (item["verdict"].as_str().unwrap(), item["why"].as_str().unwrap(), item["attempt"].as_u64().unwrap())
    };
    of_saga.map(shown).collect()
}

#[tokio::test]
async fn history_has_reasons_for_ignored_messages() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.deliver_all(&[&SAGA]).await;
    let (search, now) = (announced.search_id, world.host.now());
    let token = Token::minted_at_entry(search, Uuid::from_u128(8));
    world.store().grant(search, std::slice::from_ref(&token), now).await.unwrap();
    let timeout_id = TimeoutId::from_uuid(Uuid::from_u128(7));
    let body = SearchEvent::UploadTimeout(UploadTimeout::of_timer(timeout_id)).body().unwrap();
    let message = Message::new(MessageId::from_uuid(Uuid::from_u128(6)), "test", search, now, body);
    send_one(world.store(), &Message { token: Some(token), ..message }, SAGA, Duration::ZERO).await.unwrap();
    // Delivers an outdated timeout twice.
    let late = world.take(&SAGA).await;
    world.deliver(&SAGA, &late).await;
    world.deliver(&SAGA, &late).await;
    let path = format!("{}/history", path_of(announced.search_id));
    let (items, _) = all(&api(&world), &path).await;
    let decided = of(&items, "UploadTimeout");
    let [(ignored, why, 1), (duplicate, why_again, 1)] = decided[..] else { panic!("{decided:?}") };
    assert_eq!((ignored, duplicate), ("ignored", "duplicate"));
    assert_eq!(why, "an outdated timeout");
    assert!(!why_again.is_empty());
}

#[tokio::test]
async fn history_is_listed_in_pages_with_details() {
    let (world, announced, path) = super::imported().await;
    let (api, path) = (api(&world), format!("{path}/history"));
    let (items, _) = all(&api, &path).await;
    assert!(items.len() > 10, "{items:?}");
    for limit in [1, 7, items.len()] {
        assert_eq!(all(&api, &format!("{path}?limit={limit}")).await.0, items);
    }
    let parsed = items.iter().find(|item| item["message"] == "StartParsing" && item["verdict"] == "handled");
    let parsed = parsed.unwrap();
    assert_eq!((&parsed["function"], &parsed["source"]), (&"parse-references".into(), &"run-saga".into()));
    assert_eq!((&parsed["attempt"], &parsed["duration_ms"]), (&1.into(), &0.into()));
    assert_eq!(parsed["trace_id"], announced.search_id.as_uuid().simple().to_string());
    let sent = items.iter().find(|item| item["verdict"] == "dispatched").unwrap();
    assert_eq!(sent["attempt"], Value::Null, "sent messages have no attempt");
}

#[tokio::test]
async fn history_with_invalid_search_or_cursor_is_refused() {
    let (world, _, path) = super::imported().await;
    let (api, path) = (api(&world), format!("{path}/history"));
    for (query, status) in [("limit=0", 400), ("limit=1001", 400), ("limit=x", 400), ("after=1.2", 400)] {
        assert_eq!(refusal(&api, &format!("{path}?{query}")).await.0, status, "{query}");
    }
    let studies = path.replace("/history", "/studies?limit=1");
    let next = get(&api, &studies).await["next"].as_str().unwrap().to_owned();
    assert_eq!(refusal(&api, &format!("{path}?after={next}")).await.0, 400, "of another list");
    let unknown = path_of(contracts::sample::partition(&*world.host));
    assert_eq!(refusal(&api, &format!("{unknown}/history")).await.0, 404);
}

#[tokio::test]
async fn operator_reads_history_of_any_project() {
    let (world, announced, path) = super::imported().await;
    let (items, _) = all(&api(&world), &format!("{path}/history")).await;
    let operator =
        Principal { operator: Some(Operator { name: "ada".to_owned() }), ..ProjectAccess::none().into() };
    let function = world.functions.start_upload.clone();
    let operators = router_for(function, BodyMode::Streaming, move |_| operator.clone());
    let theirs = format!("/admin/searches/{}/history", announced.search_id);
    assert_eq!(all(&operators, &theirs).await.0, items);
    assert_eq!(all(&operators, &format!("{theirs}?limit=7")).await.0, items);
    assert_eq!(
        refusal(&operators, &format!("{path}/history")).await.0,
        404,
        "the search belongs to another project"
    );
    let unknown = contracts::sample::partition(&*world.host);
    assert_eq!(refusal(&operators, &format!("/admin/searches/{unknown}/history")).await.0, 404);
    assert_eq!(refusal(&operators, "/admin/searches/x/history").await.0, 400);
}

/// A verdict of a newer version is shown unchanged.
#[tokio::test]
async fn unknown_verdict_is_listed_in_history() {
    let (world, _, path) = super::imported().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let later =
        "UPDATE decision SET observation = json_set(observation, '$.verdict', 'postponed') WHERE n = 2";
    database.execute(later, []).unwrap();
    let (items, _) = all(&api(&world), &format!("{path}/history")).await;
    assert!(items.len() > 10, "{items:?}");
    assert_eq!(items.iter().filter(|item| item["verdict"] == "postponed").count(), 1);
}
