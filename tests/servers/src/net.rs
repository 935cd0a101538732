//! Servers that fail on purpose.
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

/// A server with scripted answers.
pub struct Scripted {
    /// Where it listens.
    pub address: String,
    requests: Arc<AtomicUsize>,
}

impl Scripted {
    /// `answer` gets the number of the request, from 0, and its body; it gives a status and a body.
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

    /// How many requests came.
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

/// A request or a response, whole.
struct Message {
    bytes: Vec<u8>,
    /// The length of its head, the empty line included.
    head: usize,
}

/// Reads one of a known length. None when the connection ends before it does.
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

/// What becomes of a request on its way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Nothing happens to it.
    Passed,
    /// It never arrives, and is answered with this status and body.
    Refused(u16, &'static str),
    /// It never arrives, and its connection ends.
    Lost,
    /// It is carried out, and its connection ends without an answer.
    Unanswered,
    /// It is carried out at once, and answered after this time.
    Late(Duration),
    /// The answer ends after so many bytes of its body, and before its last one.
    BrokenOff(usize),
}

impl fmt::Debug for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Refused(status, _) => write!(f, "refused with {status}"),
            Self::Lost => f.write_str("lost"),
            Self::Unanswered => f.write_str("unanswered"),
            Self::Late(time) => write!(f, "answered after {time:?}"),
            Self::BrokenOff(usize::MAX) => f.write_str("broken off at the end"),
            Self::BrokenOff(bytes) => write!(f, "broken off after {bytes} bytes"),
        }
    }
}

impl Fate {
    /// What DynamoDB says when a table has more to do than it is allowed to
    /// (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>).
    pub const THROTTLED: Self = Self::Refused(
        400,
        r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
            "message":"The level of configured provisioned throughput for the table was exceeded."}"#,
    );
    /// What DynamoDB and SQS say when something is wrong with themselves.
    pub const FAILED: Self = Self::Refused(500, r#"{"__type":"InternalServerError","message":"Try again."}"#);
    /// What S3 says when it is asked for too much
    /// (<https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>).
    pub const SLOW_DOWN: Self = Self::Refused(
        503,
        "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>",
    );

    /// A plan in which this share of the requests meets one of these fates, the same ones for the same seed.
    pub fn some(seed: u64, percent: u8, fates: Vec<Self>) -> impl Fn(usize) -> Self + Send + Sync {
        move |request| {
            let mut random = StdRng::seed_from_u64(seed.wrapping_add(request as u64));
            let struck = random.random_range(0..100) < percent;
            let fate = random.random_range(0..fates.len());
            if struck { fates[fate] } else { Self::Passed }
        }
    }
}

/// A way to a server on which something happens to some of the requests. Each has a connection of its own.
pub struct Unreliable {
    /// Where it begins.
    pub address: String,
    fates: Arc<Mutex<BTreeMap<Fate, usize>>>,
}

impl Unreliable {
    /// `fate` gets the number of a request, from 0, and says what becomes of it.
    pub async fn before(to: &str, fate: impl Fn(usize) -> Fate + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let fates = Arc::new(Mutex::new(BTreeMap::new()));
        let (to, fate, met) =
            (to.trim_start_matches("http://").to_owned(), Arc::new(fate), Arc::clone(&fates));
        let number = Arc::new(AtomicUsize::new(0));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (to, fate, met, number) =
                    (to.clone(), Arc::clone(&fate), Arc::clone(&met), Arc::clone(&number));
                tokio::spawn(async move {
                    // A connection that ends is the business of its two ends.
                    let _ = pass(client, &to, || {
                        let fate = fate(number.fetch_add(1, Ordering::SeqCst));
                        *met.lock().unwrap().entry(fate).or_default() += 1;
                        fate
                    })
                    .await;
                });
            }
        });
        Self { address, fates }
    }

    /// How many requests came.
    pub fn requests(&self) -> usize {
        self.fates.lock().unwrap().values().sum()
    }

    /// How many met each fate but [`Fate::Passed`].
    pub fn faults(&self) -> BTreeMap<Fate, usize> {
        let mut fates = self.fates.lock().unwrap().clone();
        fates.remove(&Fate::Passed);
        fates
    }
}

/// Passes one request.
async fn pass(mut client: TcpStream, to: &str, fate: impl FnOnce() -> Fate) -> std::io::Result<()> {
    let Some(request) = read_message(&mut client).await else { return Ok(()) };
    let fate = fate();
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

/// What the server answers, up to the end of its connection.
async fn ask(to: &str, request: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(to).await?;
    server.write_all(&closing(request)).await?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).await?;
    Ok(closing(&answer))
}

/// A message that says that its connection ends after it.
fn closing(message: &[u8]) -> Vec<u8> {
    let first_line = message.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let (first, rest) = message.split_at(first_line);
    [first, b"connection: close\r\n", rest].concat()
}

fn broken_off(answer: &[u8], bytes: usize) -> &[u8] {
    let body = answer.windows(4).position(|part| part == b"\r\n\r\n").map_or(0, |end| end + 4);
    &answer[..body.saturating_add(bytes).min(answer.len().saturating_sub(1))]
}
