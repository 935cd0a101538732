//! Servers that fail on purpose.
#![allow(clippy::unwrap_used, reason = "a test without a free port has failed")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
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

/// A way to a server that breaks.
pub struct Breaking {
    /// Where it listens.
    pub address: String,
    connections: Arc<AtomicUsize>,
}

impl Breaking {
    /// `limit` gets the number of the connection, from 0, and gives the bytes after which the server's side of it
    /// breaks off.
    pub async fn start(to: &str, limit: impl Fn(usize) -> u64 + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let (to, count) = (to.trim_start_matches("http://").to_owned(), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let limit = limit(count.fetch_add(1, Ordering::SeqCst));
                tokio::spawn(forward(client, to.clone(), limit));
            }
        });
        Self { address, connections }
    }

    /// How many connections came.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn forward(client: TcpStream, to: String, limit: u64) {
    let Ok(server) = TcpStream::connect(to).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    let up = tokio::spawn(async move { copy(&mut from_client, &mut to_server).await });
    let _ = copy(&mut from_server.take(limit), &mut to_client).await;
    up.abort();
}

/// A way to DynamoDB that lets some requests through and answers others as an overloaded table does.
pub struct Throttling {
    /// Where it listens.
    pub address: String,
    throttled: Arc<AtomicUsize>,
}

/// What DynamoDB says then
/// (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>).
const THROTTLED: &str = r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException",
    "message":"The level of configured provisioned throughput for the table was exceeded."}"#;

impl Throttling {
    /// `refuse` gets the number of a request, from 0, and says whether it is refused.
    pub async fn before(to: &str, refuse: impl Fn(usize) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let throttled = Arc::new(AtomicUsize::new(0));
        let (to, count) = (to.trim_start_matches("http://").to_owned(), Arc::clone(&throttled));
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((client, _)) = listener.accept().await {
                let refused = refuse(number);
                number += 1;
                count.fetch_add(usize::from(refused), Ordering::SeqCst);
                tokio::spawn(pass_one(client, to.clone(), refused));
            }
        });
        Self { address, throttled }
    }

    /// How many requests were refused.
    pub fn throttled(&self) -> usize {
        self.throttled.load(Ordering::SeqCst)
    }
}

/// Passes one request for each connection, so that requests can be distinguished.
async fn pass_one(mut client: TcpStream, to: String, refused: bool) {
    let Some(request) = read_message(&mut client).await else { return };
    if refused {
        let _ = client.write_all(response(400, THROTTLED).as_bytes()).await;
        let _ = client.shutdown().await;
        return;
    }
    let Ok(mut server) = TcpStream::connect(to).await else { return };
    if server.write_all(&request.bytes).await.is_err() {
        return;
    }
    let Some(answer) = read_message(&mut server).await else { return };
    let status_line = answer.bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let (first, rest) = answer.bytes.split_at(status_line);
    let _ = client.write_all(&[first, b"connection: close\r\n", rest].concat()).await;
    let _ = client.shutdown().await;
}
