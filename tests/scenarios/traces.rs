//! A search is a single trace, from the S3 notification to its end.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use imports::queues::{PARSE, SAGA, UPLOADS};
use messages::{Message, ReceivedMessage, Traceparent};
use tower::ServiceExt;
use uuid::Uuid;

use crate::api::api;
use crate::world::{TWO_RECORDS, World};

/// Returns the received message with this name, and the span named as its parent.
fn find(received: &[ReceivedMessage], name: &str) -> (Message, Traceparent) {
    let mut messages = received.iter().map(|received| Message::decode(&received.delivery.body).unwrap());
    let message = messages.find(|message| message.body.name == name).expect(name);
    let parent = message.traceparent.as_deref().and_then(Traceparent::parse).expect("it is in a trace");
    (message, parent)
}

#[tokio::test]
async fn message_trace_parent_is_handling_of_cause() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    let notifications = world.take(&UPLOADS).await;
    world.deliver(&UPLOADS, &notifications).await;

    let events = world.take(&SAGA).await;
    let ((started, told), (saved, stored)) =
        (find(&events, "SearchUploadStarted"), find(&events, "SearchUploadSaved"));
    let trace = announced.search_id.as_uuid().as_u128();
    assert_eq!((told.trace, stored.trace), (trace, trace), "both ways in lead into one trace");
    assert_ne!(told.span, stored.span);
    assert_ne!(started.id, saved.id);

    world.deliver(&SAGA, &events).await;
    let commands = world.take(&PARSE).await;
    let (command, parent) = find(&commands, "StartParsing");
    let cause = command.causation_id.expect("a cause");
    assert_eq!(parent, Traceparent::of(announced.search_id, cause));

    world.deliver(&PARSE, &commands).await;
    let replies = world.take(&SAGA).await;
    let (_, parent) = find(&replies, "ReferenceFileParsingCompleted");
    assert_eq!(parent, Traceparent::of(announced.search_id, command.id));
}

#[tokio::test]
async fn messages_continue_trace_of_request() {
    let world = World::new();
    let client = "00-0199b6d07d5e7a3c8f216a1f0c9e4b11-b000000000000010-01";
    for (header, continued) in [(client, true), ("00-not-a-parent", false)] {
        let manifest =
            serde_json::json!({ "name": "Gambling", "files": [{ "name": "a.ris", "size_bytes": 700 }] });
        let request = Request::post(format!("/projects/{}/searches", Uuid::nil()))
            .header("content-type", "application/json")
            .header("traceparent", header)
            .body(Body::from(manifest.to_string()))
            .unwrap();
        let response = api(&world).oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        let (_, parent) = find(&world.take(&SAGA).await, "SearchUploadStarted");
        assert_eq!(parent.to_string() == client, continued, "{header}");
    }
}
