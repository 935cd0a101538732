//! Spans as a collector receives them, and their ids.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::routing::post;
use messages::{DecisionSink, MessageId, PartitionKey};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::*;
use crate::Collect;

fn observation(function: &str, source: &str, verdict: Verdict) -> DecisionRecord {
    let partition = PartitionKey::from_uuid(Uuid::from_u128(1));
    let message = MessageId::from_uuid(Uuid::from_u128(2));
    DecisionRecord {
        at: Timestamp::UNIX_EPOCH,
        function: function.into(),
        partition: Some(partition),
        message_id: Some(message),
        message: "SearchUploadSaved".into(),
        verdict,
        why: String::new(),
        source: source.into(),
        traceparent: Some(Traceparent { trace: 1, span: 7 }.to_string()),
        began_at: None,
        attempt: None,
        state: None,
    }
}

#[test]
fn sender_is_parent_of_receiver() {
    let message = MessageId::from_uuid(Uuid::from_u128(2));
    let beginning = Traceparent::of(PartitionKey::from_uuid(Uuid::from_u128(1)), message.derive(0));
    let begun = |function, verdict| DecisionRecord {
        traceparent: Some(beginning.to_string()),
        ..observation(function, "notify-upload", verdict)
    };
    let sent = Span::of(&begun("notify-upload", Verdict::Handled)).unwrap();
    let handled = Span::of(&begun("run-saga", Verdict::Handled)).unwrap();
    assert_eq!((sent.trace, sent.id, sent.parent), (1, beginning.span, None));
    assert_eq!((handled.trace, handled.parent), (1, Some(sent.id)));
    let effects = Traceparent { trace: 1, span: 7 }.then(MessageId::from_uuid(Uuid::from_u128(2)));
    assert_eq!(handled.id, effects.span);
}

#[test]
fn request_message_is_child_of_its_span() {
    let sent = Span::of(&observation("start-upload", "start-upload", Verdict::Dispatched)).unwrap();
    let handled = Span::of(&observation("run-saga", "start-upload", Verdict::Handled)).unwrap();
    assert_eq!((sent.trace, sent.parent), (1, Some(7)));
    assert_eq!((handled.trace, handled.parent), (1, Some(7)));
    assert!(![7, handled.id].contains(&sent.id));
}

#[test]
fn ineffective_delivery_has_its_own_span() {
    let handled = Span::of(&observation("run-saga", "notify-upload", Verdict::Handled)).unwrap();
    let copy = observation("run-saga", "notify-upload", Verdict::Duplicate);
    let later = Timestamp::from_second(1).unwrap();
    let copy = Span::of(&DecisionRecord { at: later, ..copy }).unwrap();
    assert_ne!(copy.id, handled.id);
    assert_eq!(copy.parent, handled.parent);
}

#[test]
fn collector_requires_plain_http() {
    assert!(Collector::at("http://localhost:4318/").is_ok());
    for wrong in ["https://collector", "localhost:4318", "", "http://"] {
        assert!(Collector::at(wrong).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn collector_receives_spans_of_invocation_once() {
    let (sender, mut received) = mpsc::unbounded_channel::<Value>();
    let take = async |State(sender): State<mpsc::UnboundedSender<Value>>, Json(body): Json<Value>| {
        sender.send(body).unwrap();
    };
    let router = axum::Router::new().route("/v1/traces", post(take)).with_state(sender);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let observer = Arc::new(Collect::new("orders", "f".into(), Some(Collector::at(&endpoint).unwrap())));
    observer.observe(observation("run-saga", "notify-upload", Verdict::Handled));
    observer.flush().await;
    observer.flush().await;
    let spans = received.recv().await.unwrap();
    let span = &spans["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["name"], "run-saga SearchUploadSaved");
    assert_eq!(span["parentSpanId"], "0000000000000007");
    assert!(received.try_recv().is_err());
    server.abort();
}
