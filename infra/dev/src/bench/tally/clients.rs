//! Clients that send events to an engine, each waiting for the response before it sends the next event.
//!
//! Each client has its own connection and takes the next event from a shared list. A rejected event is retried until it
//! is accepted. The measured time is from the first attempt to the response.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::EVENTS;
use super::workload::{SentEvent, Workload};
use crate::bench::quantile_ms;

/// The options of the workload.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address of the engine, such as `http://127.0.0.1:8080`.
    pub url: String,
    /// The number of sagas.
    pub sagas: usize,
    /// The number of clients.
    pub clients: usize,
    /// The percentage of events that are sent twice.
    pub duplicates: u32,
    /// The percentage of events that are swapped with the next one of their saga.
    pub reordered: u32,
    /// The seed of the random choices.
    pub seed: u64,
    /// `true` if each saga is announced first.
    pub begin: bool,
    /// `true` if copies of an event share an `idempotency-key`.
    pub idempotency_key: bool,
}

/// The result of the workload.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The number of sagas.
    pub sagas: usize,
    /// The number of clients.
    pub clients: usize,
    /// The number of accepted events, including duplicates.
    pub messages: usize,
    /// The time from the first request to the last response, including announcements.
    pub seconds: f64,
    /// Events per second.
    pub per_second: f64,
    /// The median time until an event was accepted.
    pub p50_ms: f64,
    /// The 99th percentile of this time.
    pub p99_ms: f64,
    /// The number of events that had to be retried.
    pub repeated: usize,
    /// The number of events missing in the final states.
    pub lost: usize,
    /// The number of events that took effect more than once.
    pub doubled: usize,
    /// The CPU usage of the clients, as a share of one core.
    pub cores: f64,
}

/// The time limit for an event to be accepted, and for a saga to show its last event.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The delay before the first retry, which doubles up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_secs(1);

/// Sends all events and checks the final states.
///
/// # Errors
/// Returns an error if the engine is unavailable or keeps rejecting an event.
pub async fn send(options: Options) -> anyhow::Result<Report> {
    let Options { sagas, duplicates, reordered, seed, .. } = options;
    let messages = Workload { sagas, duplicates, reordered, seed }.messages();
    let sender = Arc::new(Sender { run: Uuid::new_v4().simple().to_string(), options, messages });
    let (began, worked) = (Instant::now(), processor_time());
    if sender.options.begin {
        sender.all(sagas, Sender::begin).await?;
    }
    let answers = sender.all(sender.messages.len(), Sender::event).await?;
    let (elapsed, worked) = (began.elapsed(), processor_time().saturating_sub(worked));
    let found = sender.found().await?;
    let mut took: Vec<Duration> = answers.iter().map(|answer| answer.took).collect();
    took.sort_unstable();
    Ok(Report {
        sagas,
        clients: sender.options.clients,
        messages: took.len(),
        seconds: elapsed.as_secs_f64(),
        per_second: took.len() as f64 / elapsed.as_secs_f64(),
        p50_ms: quantile_ms(&took, 0.5),
        p99_ms: quantile_ms(&took, 0.99),
        repeated: answers.iter().filter(|answer| answer.repeated).count(),
        lost: found.iter().map(|found| found.lost).sum(),
        doubled: found.iter().map(|found| found.doubled).sum(),
        cores: worked.as_secs_f64() / elapsed.as_secs_f64(),
    })
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

struct Sender {
    /// Distinguishes the sagas of this run from those of others.
    run: String,
    options: Options,
    messages: Vec<SentEvent>,
}

/// One request.
struct Ask {
    path: String,
    body: String,
    /// The key that copies of the request share.
    key: Option<String>,
}

struct TimedResponse {
    took: Duration,
    repeated: bool,
    body: Bytes,
}

#[derive(Deserialize)]
struct State {
    events: Vec<u8>,
}

/// The number of lost and of repeated events of a tally.
#[derive(Debug, Clone, Copy)]
pub struct TallyErrors {
    /// The events that did not take effect.
    pub lost: usize,
    /// The events that took effect again.
    pub doubled: usize,
}

impl Sender {
    fn ask(&self, saga: usize, what: &str, body: String) -> Ask {
        Ask { path: format!("/tally/{}-{saga}/{what}", self.run), body, key: None }
    }

    fn begin(&self, saga: usize) -> Ask {
        self.ask(saga, "begin", "{}".to_owned())
    }

    fn event(&self, place: usize) -> Ask {
        let (saga, event) = self.messages[place];
        let key = self.options.idempotency_key.then(|| format!("{}-{saga}-{event}", self.run));
        Ask { key, ..self.ask(saga, "event", format!("{{\"event\":{event}}}")) }
    }

    fn look(&self, saga: usize) -> Ask {
        self.ask(saga, "state", "{}".to_owned())
    }

    /// Lets the clients send `count` requests in any order.
    async fn all(
        self: &Arc<Self>,
        count: usize,
        ask: fn(&Self, usize) -> Ask,
    ) -> anyhow::Result<Vec<TimedResponse>> {
        let next = Arc::new(AtomicUsize::new(0));
        let mut clients = JoinSet::new();
        for _ in 0..self.options.clients.max(1) {
            let (sender, next) = (Arc::clone(self), Arc::clone(&next));
            clients.spawn(async move {
                let mut connection = Connection::to(&sender.options.url)?;
                let mut answers = Vec::new();
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    if place >= count {
                        return anyhow::Ok(answers);
                    }
                    answers.push(connection.insist(&ask(&sender, place)).await?);
                }
            });
        }
        let mut answers = Vec::with_capacity(count);
        while let Some(done) = clients.join_next().await {
            answers.extend(done.context("a client ended early")??);
        }
        Ok(answers)
    }

    /// Reads the final state of every saga. Waits for engines that accept an event before it takes effect.
    async fn found(self: &Arc<Self>) -> anyhow::Result<Vec<TallyErrors>> {
        let began = Instant::now();
        loop {
            let answers = self.all(self.options.sagas, Self::look).await?;
            let found = answers.iter().map(TallyErrors::of).collect::<anyhow::Result<Vec<_>>>()?;
            if found.iter().all(|found| found.lost == 0) || began.elapsed() > TIMEOUT {
                return Ok(found);
            }
            tokio::time::sleep(LONGEST).await;
        }
    }
}

impl TallyErrors {
    fn of(answer: &TimedResponse) -> anyhow::Result<Self> {
        let State { events } = serde_json::from_slice(&answer.body).context("a state cannot be read")?;
        Ok(Self::among(&events))
    }

    /// Compares the events of a final state with those that were sent.
    pub fn among(events: &[u8]) -> Self {
        let different: BTreeSet<&u8> = events.iter().collect();
        Self {
            lost: usize::from(EVENTS).saturating_sub(different.len()),
            doubled: events.len() - different.len(),
        }
    }
}

/// The connection of one client, which is reopened if the server closes it.
struct Connection {
    authority: String,
    open: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    fn to(url: &str) -> anyhow::Result<Self> {
        let url: Uri = url.parse().with_context(|| format!("{url} is not a URL"))?;
        let authority = url.authority().with_context(|| format!("{url} has no host"))?;
        Ok(Self { authority: authority.to_string(), open: None })
    }

    /// Repeats a request until it is accepted.
    async fn insist(&mut self, ask: &Ask) -> anyhow::Result<TimedResponse> {
        let began = Instant::now();
        let mut wait = FIRST;
        let mut repeated = false;
        loop {
            let why = match self.ask(ask).await {
                Ok((true, body)) => return Ok(TimedResponse { took: began.elapsed(), repeated, body }),
                Ok((false, body)) => String::from_utf8_lossy(&body).into_owned(),
                Err(error) => {
                    self.open = None;
                    format!("{error:#}")
                }
            };
            if began.elapsed() > TIMEOUT {
                bail!("{} was refused for {TIMEOUT:?}: {why}", ask.path);
            }
            repeated = true;
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST);
        }
    }

    async fn ask(&mut self, ask: &Ask) -> anyhow::Result<(bool, Bytes)> {
        if self.open.as_ref().is_none_or(SendRequest::is_closed) {
            self.open = Some(connect(&self.authority).await?);
        }
        let sender = self.open.as_mut().context("there is no connection")?;
        sender.ready().await?;
        let mut request = Request::post(&ask.path)
            .header("host", &self.authority)
            .header("content-type", "application/json");
        if let Some(key) = &ask.key {
            request = request.header("idempotency-key", key);
        }
        let response = sender.send_request(request.body(Full::from(ask.body.clone()))?).await?;
        let taken = response.status().is_success();
        Ok((taken, response.into_body().collect().await?.to_bytes()))
    }
}

async fn connect(authority: &str) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(authority).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // The connection ends with its sender, or with an error that the sender receives as well.
    tokio::spawn(connection);
    Ok(sender)
}
