//! Servers that fail on purpose.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};

/// A server that answers every request as it is told to.
pub(crate) struct Scripted {
    pub(crate) address: String,
    requests: Arc<AtomicUsize>,
}

impl Scripted {
    /// `answer` gets the number of the request, from 0, and its body; it gives a status and a body.
    pub(crate) async fn start(answer: impl Fn(usize, &str) -> (u16, String) + Send + Sync + 'static) -> Self {
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
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn respond(mut stream: TcpStream, answer: impl FnOnce(&str) -> (u16, String)) {
    let mut request = Vec::new();
    let (head, length) = loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            break (head.len() + 4, content_length(head));
        }
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    };
    while request.len() < head + length && stream.read_buf(&mut request).await.unwrap_or(0) > 0 {}
    let (status, body) = answer(&String::from_utf8_lossy(&request[head..]));
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn content_length(head: &str) -> usize {
    let headers = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = headers.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths.next().and_then(|(_, length)| length.trim().parse().ok()).unwrap_or(0)
}

/// A way to a server that breaks.
pub(crate) struct Breaking {
    pub(crate) address: String,
    connections: Arc<AtomicUsize>,
}

impl Breaking {
    /// `limit` gets the number of the connection, from 0, and gives the bytes after which the server's side of it
    /// breaks off.
    pub(crate) async fn start(to: &str, limit: impl Fn(usize) -> u64 + Send + 'static) -> Self {
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
    pub(crate) fn connections(&self) -> usize {
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
