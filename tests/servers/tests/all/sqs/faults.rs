//! Faults and their error messages.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws::queues::{Queues, Sqs};
use aws_sdk_sqs::Client;
use backend::SystemHost;
use imports::queues;
use messages::{Disposition, Outgoing, ReceiveMessages, SendError, SendMessages};
use serde_json::{Value, json};
use servers::amazon::{Service, config, config_at};

use super::{QUEUES, adapter, outgoing};
use contracts::ManualHost;
use servers::net::{Fate, ScriptedServer, Unreliable};
use servers::unique;

fn saga_at(url: &str) -> Queues {
    Queues::of(imports::SYSTEM, [(queues::SAGA, url.to_owned())])
}

async fn scripted(server: &ScriptedServer) -> Sqs {
    let url = format!("{}/000000000000/saga", server.address);
    adapter(Client::new(&config_at(&server.address).await), saga_at(&url))
}

/// Returns the ids of the entries in a request.
fn ids(request: &str) -> Vec<String> {
    let request: Value = serde_json::from_str(request).unwrap();
    let id = |entry: &Value| entry["Id"].as_str().unwrap().to_owned();
    request["Entries"].as_array().unwrap().iter().map(id).collect()
}

fn failed(id: &str, sender_fault: bool) -> Value {
    json!({ "Id": id, "Code": "InternalError", "Message": "words", "SenderFault": sender_fault })
}

/// Returns a response in which all entries but those in `failing` are sent.
fn answer(request: &str, failing: &[Value]) -> (u16, String) {
    let sent: Vec<Value> = ids(request)
        .iter()
        .filter(|id| !failing.iter().any(|entry| entry["Id"] == **id))
        .map(|id| json!({ "Id": id, "MessageId": "m", "MD5OfMessageBody": "9dd4e461268c8034f5c8564e155c67a6" }))
        .collect();
    (200, json!({ "Successful": sent, "Failed": failing }).to_string())
}

fn four() -> Vec<Outgoing> {
    (0..4).map(|n| outgoing(n, "x")).collect()
}

#[tokio::test]
async fn only_transient_failures_are_resent() {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let server = ScriptedServer::start(move |request, body| {
        seen.lock().unwrap().push(ids(body));
        match request {
            0 => answer(body, &[failed("1", false), failed("2", true)]),
            _ => answer(body, &[]),
        }
    })
    .await;
    let results = scripted(&server).await.send(&four()).await;
    assert_eq!(*requests.lock().unwrap(), [vec!["0", "1", "2", "3"], vec!["1"]]);
    let ok: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(ok, [true, true, false, true]);
    assert!(!results[2].as_ref().unwrap_err().is_retryable(), "it is the sender's fault");
}

#[tokio::test]
async fn persistent_failure_is_left_to_outbox() {
    let server = ScriptedServer::start(|_, body| answer(body, &[failed("3", false)])).await;
    let results = scripted(&server).await.send(&four()).await;
    assert_eq!(server.requests(), 3);
    assert!(results[..3].iter().all(Result::is_ok));
    let SendError::Store(error) = results[3].as_ref().unwrap_err() else { panic!("{results:?}") };
    assert!(error.is_retryable() && error.chain().contains("InternalError: words"), "{}", error.chain());
}

/// Returns the adapter with this time limit of a call, on a clock that the test sets.
async fn limited(address: &str, limit: Duration, host: Arc<ManualHost>) -> Sqs {
    let client = aws::queues::client(&config_at(address).await, limit);
    Sqs::new(client, saga_at(&format!("{address}/000000000000/saga")), &QUEUES, host)
}

/// The outbox stops in time only if no call takes longer than the limit.
#[tokio::test]
async fn repeated_rounds_end_within_call_limit() {
    let (host, limit) = (Arc::new(ManualHost::seeded(1)), Duration::from_secs(15));
    let clock = Arc::clone(&host);
    let server = ScriptedServer::start(move |_, body| {
        clock.advance(Duration::from_secs(8));
        answer(body, &[failed("3", false)])
    })
    .await;
    let results = limited(&server.address, limit, host).await.send(&four()).await;
    assert_eq!(server.requests(), 2, "the limit has passed before a third round");
    assert!(results[..3].iter().all(Result::is_ok), "{results:?}");
    assert!(
        results[3].as_ref().is_err_and(SendError::is_retryable),
        "the outbox sends it later: {results:?}"
    );
}

#[tokio::test]
async fn repeated_round_gets_only_remaining_time() {
    let (host, limit) = (Arc::new(ManualHost::seeded(1)), Duration::from_secs(3_600));
    let clock = Arc::clone(&host);
    let server = ScriptedServer::start(move |_, body| {
        // The remaining time is longer than the pause before the next round, and shorter than the time limit of one
        // attempt.
        clock.advance(limit - Duration::from_millis(400));
        answer(body, &[failed("3", false)])
    })
    .await;
    let slow = |request| if request == 0 { Fate::Passed } else { Fate::Late(Duration::from_secs(60)) };
    let proxy = Unreliable::before(&server.address, slow).await;
    let results = limited(&proxy.address, limit, host).await.send(&four()).await;
    assert_eq!(server.requests(), 2, "the client has no time for another attempt");
    assert!(results[..3].iter().all(Result::is_ok), "{results:?}");
    assert!(results[3].as_ref().is_err_and(SendError::is_retryable), "{results:?}");
}

#[tokio::test]
async fn entry_missing_in_response_is_resent() {
    let server = ScriptedServer::start(|request, body| match request {
        0 => (200, json!({ "Successful": [], "Failed": [] }).to_string()),
        _ => answer(body, &[]),
    })
    .await;
    let results = scripted(&server).await.send(&four()).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn throttling_is_retried_then_unavailable() {
    let throttled = r#"{"__type": "com.amazonaws.sqs#RequestThrottled", "message": "slower"}"#;
    let server = ScriptedServer::start(|_, _| (400, throttled.to_owned())).await;
    let results = scripted(&server).await.send(&four()).await;
    assert!(results.iter().all(|result| result.as_ref().is_err_and(SendError::is_retryable)), "{results:?}");
    assert_eq!(server.requests(), aws::MAX_ATTEMPTS as usize);
}

#[tokio::test]
async fn wrong_credentials_are_reported() {
    let refused = r#"{"__type": "com.amazon.coral.service#UnrecognizedClientException",
        "message": "The security token included in the request is invalid."}"#;
    let server = ScriptedServer::start(|_, _| (403, refused.to_owned())).await;
    let error = scripted(&server).await.receive(&queues::SAGA, 1, Duration::ZERO).await.unwrap_err();
    assert!(
        error.is_retryable() && error.chain().contains("the credentials were refused"),
        "{}",
        error.chain()
    );
}

#[tokio::test]
async fn missing_queue_names_setting() {
    let address = Service::Sqs.address();
    let url = format!("{address}/000000000000/{}", unique("missing"));
    let sqs = adapter(Client::new(&config(Service::Sqs).await), saga_at(&url));
    let expected = format!("there is no queue \"{url}\" (set by SEARCH_IMPORT_SAGA_QUEUE_URL)");
    let error = sqs.receive(&queues::SAGA, 1, Duration::ZERO).await.unwrap_err();
    assert!(error.is_retryable() && error.chain().ends_with(&expected), "{}", error.chain());
    let result = sqs.send(&[outgoing(1, "x")]).await.remove(0);
    let Err(SendError::Store(error)) = result else { panic!("{result:?}") };
    assert!(error.is_retryable() && error.chain().ends_with(&expected), "{}", error.chain());
}

#[tokio::test]
async fn queue_without_address_names_setting() {
    let server = ScriptedServer::start(|_, body| answer(body, &[])).await;
    let sqs = scripted(&server).await;
    let parse = Outgoing { queue: queues::PARSE, ..outgoing(1, "x") };
    let results = sqs.send(&[parse, outgoing(2, "x")]).await;
    let Err(unknown @ SendError::UnknownQueue(_)) = &results[0] else { panic!("{results:?}") };
    assert_eq!(unknown.to_string(), "no URL is set for queue parse");
    assert!(results[1].is_ok(), "its neighbour is sent: {results:?}");
    let error = sqs.receive(&queues::CONTROL, 1, Duration::ZERO).await.unwrap_err();
    assert!(error.chain().contains("SEARCH_IMPORT_CONTROL_QUEUE_URL is not set"), "{}", error.chain());
}

#[tokio::test]
async fn delay_beyond_sqs_limit_is_refused_locally() {
    let server = ScriptedServer::start(|_, body| answer(body, &[])).await;
    let delayed = |n, seconds| Outgoing { delay: Duration::from_secs(seconds), ..outgoing(n, "x") };
    let results = scripted(&server).await.send(&[delayed(1, 901), delayed(2, 900)]).await;
    assert!(results[1].is_ok(), "{results:?}");
    let SendError::Store(error) = results[0].as_ref().unwrap_err() else { panic!("{results:?}") };
    assert!(!error.is_retryable() && error.chain().contains("900s that SQS can wait"), "{}", error.chain());
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn foreign_receipt_is_refused() {
    let server = ScriptedServer::start(|_, _| (200, String::new())).await;
    let client = Client::new(&config_at(&server.address).await);
    let sqs = Sqs::new(client, saga_at("http://x"), &QUEUES, Arc::new(SystemHost));
    let error = sqs.answer(&queues::SAGA, "AQEB", &Disposition::Acknowledge).await.unwrap_err();
    assert!(!error.is_retryable() && error.chain().contains("this is not a receipt"), "{}", error.chain());
    assert_eq!(server.requests(), 0);
}

#[tokio::test]
async fn silent_queue_times_out() {
    // The kernel accepts connections, and no process responds.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", silent.local_addr().unwrap());
    let client = aws::queues::client(&config_at(&address).await, Duration::from_millis(100));
    let result =
        adapter(client, saga_at(&format!("{address}/000000000000/saga"))).send(&[outgoing(1, "x")]).await;
    let Err(SendError::Store(error)) = &result[0] else { panic!("{result:?}") };
    assert!(error.is_retryable(), "it may be there later: {}", error.chain());
}
