//! The four calls of a function's runtime.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// The timeout that an invocation announces to the function.
const TIMEOUT: SignedDuration = SignedDuration::from_secs(30);
/// The maximum size of a response, in bytes
/// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
const MAX_ANSWER_BYTES: usize = 6 * 1024 * 1024;
/// The function's name in its invocations.
const ARN: &str = "arn:aws:lambda:local:000000000000:function:function";

/// The result of one invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The function's response.
    Answer(Bytes),
    /// The function's error, as reported by its runtime.
    Failure(Value),
}

/// A Runtime API on a local port, which stops when this value is dropped.
pub struct RuntimeApi {
    address: SocketAddr,
    shared: Arc<ServerState>,
    server: JoinHandle<()>,
}

struct ServerState {
    events: mpsc::UnboundedSender<Event>,
    waiting: tokio::sync::Mutex<mpsc::UnboundedReceiver<Event>>,
    answers: Mutex<HashMap<String, oneshot::Sender<Outcome>>>,
    polls: watch::Sender<usize>,
    init_error: watch::Sender<Option<Value>>,
}

struct Event {
    request_id: String,
    body: Vec<u8>,
}

impl RuntimeApi {
    /// Listens on a free port of the loopback interface.
    pub async fn listen() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (events, waiting) = mpsc::unbounded_channel();
        let shared = Arc::new(ServerState {
            events,
            waiting: tokio::sync::Mutex::new(waiting),
            answers: Mutex::default(),
            polls: watch::Sender::new(0),
            init_error: watch::Sender::new(None),
        });
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(answer))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(failure))
            .route("/2018-06-01/runtime/init/error", post(init_error))
            .layer(DefaultBodyLimit::max(MAX_ANSWER_BYTES))
            .with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            // The server ends only when the task is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, shared, server })
    }

    /// Returns the address of the server, the value of `AWS_LAMBDA_RUNTIME_API`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until the function has requested its first event.
    pub async fn polled(&self) {
        let mut polls = self.shared.polls.subscribe();
        // The sender is part of this value, so it exists.
        let _ = polls.wait_for(|polls| *polls > 0).await;
    }

    /// Waits until the function reports that it cannot start.
    pub async fn init_failed(&self) -> Value {
        let mut init_error = self.shared.init_error.subscribe();
        let reported = init_error.wait_for(Option::is_some).await;
        reported.ok().and_then(|error| error.clone()).unwrap_or_default()
    }

    /// Passes an event to the function and waits for the outcome; `None` if the server has stopped.
    pub async fn invoke(&self, event: &Value) -> Option<Outcome> {
        let request_id = Uuid::now_v7().to_string();
        let (sender, answer) = oneshot::channel();
        self.shared.answers().insert(request_id.clone(), sender);
        self.shared.events.send(Event { request_id, body: event.to_string().into_bytes() }).ok()?;
        answer.await.ok()
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl ServerState {
    fn answers(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<Outcome>>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, request_id: &str, outcome: Outcome) -> StatusCode {
        match self.answers().remove(request_id) {
            Some(waiting) => {
                // The caller may have stopped waiting.
                let _ = waiting.send(outcome);
                StatusCode::ACCEPTED
            }
            None => StatusCode::BAD_REQUEST,
        }
    }
}

async fn next(State(shared): State<Arc<ServerState>>) -> Response {
    shared.polls.send_modify(|polls| *polls += 1);
    let Some(event) = shared.waiting.lock().await.recv().await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let deadline = Timestamp::now().saturating_add(TIMEOUT).unwrap_or(Timestamp::MAX).as_millisecond();
    let headers = [
        ("content-type", "application/json".to_owned()),
        ("lambda-runtime-aws-request-id", event.request_id),
        ("lambda-runtime-deadline-ms", deadline.to_string()),
        ("lambda-runtime-invoked-function-arn", ARN.to_owned()),
    ];
    (headers, event.body).into_response()
}

async fn answer(State(shared): State<Arc<ServerState>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    shared.settle(&id, Outcome::Answer(body))
}

async fn failure(State(shared): State<Arc<ServerState>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    shared.settle(&id, Outcome::Failure(read(&body)))
}

async fn init_error(State(shared): State<Arc<ServerState>>, body: Bytes) -> StatusCode {
    shared.init_error.send_replace(Some(read(&body)));
    StatusCode::ACCEPTED
}

fn read(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(body)))
}
