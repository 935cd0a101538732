//! Servers with injected faults.
#![allow(clippy::unwrap_used, reason = "a test without a free port, or with a panic behind it, has failed")]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A server with scripted responses.
pub struct ScriptedServer {
    /// The address of the server.
    pub address: String,
    requests: Arc<AtomicUsize>,
}

impl ScriptedServer {
    /// Starts the server. `answer` receives the index of a request and its body, and returns a status and a body.
    pub async fn start(answer: impl Fn(usize, &str) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let (answer, count) = (Arc::new(answer), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, count) = (Arc::clone(&answer), Arc::clone(&count));
                tokio::spawn(async move {
                    let body = |text: &str| answer(count.fetch_add(1, Ordering::SeqCst), text);
                    respond(stream, body).await;
                });
            }
        });
        Self { address, requests }
    }

    /// Returns the number of requests.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn respond(mut stream: TcpStream, answer: impl FnOnce(&str) -> (u16, String)) {
    let Some(request) = read_message(&mut stream).await else { return };
    let (status, body) = answer(&String::from_utf8_lossy(&request.bytes[request.head..]));
    let _ = stream.write_all(response(status, &body).as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn response(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

/// A complete request or response.
struct Message {
    bytes: Vec<u8>,
    /// The length of the head, including the empty line.
    head: usize,
}

/// Reads a message of known length. Returns `None` if the connection ends early.
async fn read_message(stream: &mut TcpStream) -> Option<Message> {
    let mut bytes = Vec::new();
    let (head, length) = loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            break (head.len() + 4, content_length(head));
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    while bytes.len() < head + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(Message { bytes, head })
}

fn content_length(head: &str) -> usize {
    let headers = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = headers.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths.next().and_then(|(_, length)| length.trim().parse().ok()).unwrap_or(0)
}

/// The fate of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// The request is forwarded.
    Passed,
    /// The request is not forwarded; the response has this status and body.
    Refused(u16, &'static str),
    /// The request is not forwarded, and its connection is closed.
    Lost,
    /// The request is executed, and its connection is closed without a response.
    Unanswered,
    /// The request is forwarded, and a copy arrives with [`Unreliable::deliver_copies`].
    Copied,
    /// The request is executed immediately, and the response is delayed by this time.
    Late(Duration),
    /// The response is cut off after this number of bytes of its body, at the latest before the last one.
    BrokenOff(usize),
}

impl fmt::Debug for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Refused(status, _) => write!(f, "refused with {status}"),
            Self::Lost => f.write_str("lost"),
            Self::Unanswered => f.write_str("unanswered"),
            Self::Copied => f.write_str("copied"),
            Self::Late(time) => write!(f, "answered after {time:?}"),
            Self::BrokenOff(usize::MAX) => f.write_str("broken off at the end"),
            Self::BrokenOff(bytes) => write!(f, "broken off after {bytes} bytes"),
        }
    }
}

impl Fate {
    /// DynamoDB's response if a table exceeds its throughput
    pub const THROTTLED: Self = Self::Refused(
        400,
        r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
            "message":"The level of configured provisioned throughput for the table was exceeded."}"#,
    );
    /// The response of DynamoDB and SQS to an internal error.
    pub const FAILED: Self = Self::Refused(500, r#"{"__type":"InternalServerError","message":"Try again."}"#);
    /// S3's response if the request rate is too high
    pub const SLOW_DOWN: Self = Self::Refused(
        503,
        "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>",
    );

    /// Returns a plan that assigns one of these fates to a percentage of the requests. The seed determines the choice.
    pub fn some(seed: u64, percent: u8, fates: Vec<Self>) -> impl Fn(usize) -> Self + Send + Sync {
        move |request| {
            let mut random = StdRng::seed_from_u64(seed.wrapping_add(request as u64));
            let struck = random.random_range(0..100) < percent;
            let fate = random.random_range(0..fates.len());
            if struck { fates[fate] } else { Self::Passed }
        }
    }
}

/// A proxy with injected faults. Each request has its own connection.
pub struct Unreliable {
    /// The address of the proxy.
    pub address: String,
    to: String,
    fates: Arc<Mutex<BTreeMap<Fate, usize>>>,
    copies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Unreliable {
    /// Starts the proxy. `fate` receives the index of a request and returns its fate.
    pub async fn before(to: &str, fate: impl Fn(usize) -> Fate + Send + Sync + 'static) -> Self {
        Self::start(to, move |index, _| fate(index)).await
    }

    /// Starts a proxy in which the first attempt of every call of an AWS client has this fate. All others are forwarded.
    pub async fn before_first_attempts(to: &str, fate: Fate) -> Self {
        Self::start(to, move |_, head| if head.contains("attempt=1;") { fate } else { Fate::Passed }).await
    }

    /// Starts the proxy. `fate` receives the index of a request and its head.
    async fn start(to: &str, fate: impl Fn(usize, &str) -> Fate + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let fates = Arc::new(Mutex::new(BTreeMap::new()));
        let copies = Arc::new(Mutex::new(Vec::new()));
        let to = to.trim_start_matches("http://").to_owned();
        let proxy = Self { address, to: to.clone(), fates: Arc::clone(&fates), copies: Arc::clone(&copies) };
        let (fate, met, number) = (Arc::new(fate), fates, Arc::new(AtomicUsize::new(0)));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (to, fate, met, number, copies) = (
                    to.clone(),
                    Arc::clone(&fate),
                    Arc::clone(&met),
                    Arc::clone(&number),
                    Arc::clone(&copies),
                );
                tokio::spawn(async move {
                    // The end of a connection does not concern the proxy.
                    let _ = pass(client, &to, &copies, |head| {
                        let fate = fate(number.fetch_add(1, Ordering::SeqCst), head);
                        *met.lock().unwrap().entry(fate).or_default() += 1;
                        fate
                    })
                    .await;
                });
            }
        });
        proxy
    }

    /// Sends the copies of [`Fate::Copied`] to the server, like a network that delayed them, and returns the responses.
    pub async fn deliver_copies(&self) -> Vec<String> {
        let copies = std::mem::take(&mut *self.copies.lock().unwrap());
        let mut responses = Vec::new();
        for copy in copies {
            responses.push(String::from_utf8(ask(&self.to, &copy).await.unwrap()).unwrap());
        }
        responses
    }

    /// Returns the number of requests.
    pub fn requests(&self) -> usize {
        self.fates.lock().unwrap().values().sum()
    }

    /// Returns the number of requests for each fate except [`Fate::Passed`].
    pub fn faults(&self) -> BTreeMap<Fate, usize> {
        let mut fates = self.fates.lock().unwrap().clone();
        fates.remove(&Fate::Passed);
        fates
    }
}

/// Forwards one request.
async fn pass(
    mut client: TcpStream,
    to: &str,
    copies: &Mutex<Vec<Vec<u8>>>,
    fate: impl FnOnce(&str) -> Fate,
) -> std::io::Result<()> {
    let Some(request) = read_message(&mut client).await else { return Ok(()) };
    let fate = fate(&String::from_utf8_lossy(&request.bytes[..request.head]));
    if fate == Fate::Copied {
        copies.lock().unwrap().push(request.bytes.clone());
    }
    let answer = match fate {
        Fate::Lost => return Ok(()),
        Fate::Refused(status, body) => response(status, body).into_bytes(),
        _ => ask(to, &request.bytes).await?,
    };
    let answer = match fate {
        Fate::Unanswered => return Ok(()),
        Fate::BrokenOff(bytes) => broken_off(&answer, bytes),
        Fate::Late(time) => {
            tokio::time::sleep(time).await;
            &answer
        }
        _ => &answer,
    };
    client.write_all(answer).await?;
    client.shutdown().await
}

/// Returns the response of the server, up to the end of its connection.
async fn ask(to: &str, request: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(to).await?;
    server.write_all(&closing(request)).await?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).await?;
    Ok(closing(&answer))
}

/// Returns the message with a header that closes its connection.
fn closing(message: &[u8]) -> Vec<u8> {
    let first_line = message.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let (first, rest) = message.split_at(first_line);
    [first, b"connection: close\r\n", rest].concat()
}

fn broken_off(answer: &[u8], bytes: usize) -> &[u8] {
    let body = answer.windows(4).position(|part| part == b"\r\n\r\n").map_or(0, |end| end + 4);
    &answer[..body.saturating_add(bytes).min(answer.len().saturating_sub(1))]
}
