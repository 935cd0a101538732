//! The pump between real queues and an endpoint that behaves like a Lambda emulator.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws::queues::Queues;
use aws_sdk_sqs::Client;
use axum::extract::{Path, State};
use axum::routing::post;
use axum::{Json, Router};
use imports::queues;
use lambda_host::pump::{Functions, Pump, Source};
use messages::SendMessages;
use serde_json::{Value, json};
use servers::TestResult;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{RECEIVE_LIMIT, adapter, outgoing, with_queues};

/// Each invocation: the function and its event.
type Invocations = Arc<Mutex<Vec<(String, Value)>>>;

/// A function that fails for every message "bad".
async fn answer(
    State(seen): State<Invocations>,
    Path(function): Path<String>,
    Json(event): Json<Value>,
) -> Json<Value> {
    let records = event["Records"].as_array().cloned().unwrap_or_default();
    let bad = records.iter().filter(|record| record["body"] == "bad");
    let failures: Vec<Value> = bad.map(|record| json!({ "itemIdentifier": record["messageId"] })).collect();
    seen.lock().unwrap().push((function, event));
    Json(json!({ "batchItemFailures": failures }))
}

async fn endpoint(seen: Invocations) -> (String, JoinHandle<()>) {
    let router =
        Router::new().route("/2015-03-31/functions/{name}/invocations", post(answer)).with_state(seen);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    (address, tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }))
}

/// Waits for a message in a queue and reads it.
async fn arrived(client: &Client, url: &str) -> String {
    for _ in 0..60 {
        let received = client.receive_message().queue_url(url).wait_time_seconds(1).send().await.unwrap();
        if let Some(message) = received.messages.unwrap_or_default().pop() {
            return message.body.unwrap();
        }
    }
    panic!("nothing arrived in {url}");
}

/// Returns the receive counts of the deliveries with this body, in order.
fn receive_counts(seen: &Invocations, body: &str) -> Vec<u32> {
    let seen = seen.lock().unwrap();
    let records = seen.iter().filter_map(|(_, event)| event["Records"].as_array()).flatten();
    let of_body = records.filter(|record| record["body"] == body);
    let count = |record: &Value| record["attributes"]["ApproximateReceiveCount"].as_str().unwrap().parse();
    of_body.map(|record| count(record).unwrap()).collect()
}

#[tokio::test]
async fn failed_messages_are_redelivered_until_dead_lettered() -> TestResult {
    with_queues(|client: Client, urls: Queues| async move {
        let seen = Invocations::default();
        let (address, server) = endpoint(Arc::clone(&seen)).await;
        let messages = ["good", "bad", "good"].map(|body| outgoing(1, body));
        for sent in adapter(client.clone(), urls.clone()).send(&messages).await {
            sent.unwrap();
        }
        let pump = Pump {
            system: imports::SYSTEM,
            sqs: client.clone(),
            urls: BTreeMap::from([(queues::SAGA, urls.url(&queues::SAGA).unwrap().to_owned())]),
            functions: Functions::at(&address).unwrap(),
            scheduled: vec![functions::dispatch_outbox::NAME],
            every: Duration::from_secs(60),
            visibility: Some(Duration::from_secs(1)),
            report: Box::new(|_| {}),
        };
        let sources = Source::of(&functions::SYSTEM).into_iter();
        let sources: Vec<_> = sources.map(|source| Source { concurrency: 1, ..source }).collect();
        let dead = pump.run_until(&sources, arrived(&client, urls.url(&queues::SAGA_DEAD).unwrap())).await;
        server.abort();
        assert_eq!(dead, "bad");
        assert_eq!(receive_counts(&seen, "good"), [1, 1]);
        assert_eq!(receive_counts(&seen, "bad"), (1..=RECEIVE_LIMIT).collect::<Vec<_>>());
        let functions: Vec<String> =
            seen.lock().unwrap().iter().map(|(function, _)| function.clone()).collect();
        assert!(functions.iter().any(|function| function == "dispatch-outbox"), "{functions:?}");
        Ok(())
    })
    .await
}
