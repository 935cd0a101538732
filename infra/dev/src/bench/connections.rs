//! The memory of a server during attacks of unauthenticated clients, and the waiting time of the next client.
//!
//! Each attack has its own server, so that its peak memory is due to that attack.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::served::ServeProcess;

/// The number of bytes that each client sends in a form without a boundary.
const POURED_BYTES: usize = 190_000_000;
/// The maximum number of connections of an attack.
const MAX_CONNECTIONS: usize = 10_000;
/// The maximum waiting time of the next client, in milliseconds, and of the server's stop, in seconds.
const BOUND_MS: f64 = 1_000.0;
const BOUND_S: f64 = 10.0;
/// The waiting time after which a client counts as locked out.
const TIMEOUT: Duration = Duration::from_secs(60);

/// An attack on a server.
struct Attack {
    name: &'static str,
    /// The bytes that each connection sends, and the number of filler bytes after them.
    sent: &'static [u8],
    poured_bytes: usize,
    connections: usize,
    /// The server's limit of file descriptors; `None` for that of the system.
    descriptors: Option<u32>,
    /// The maximum memory of the server, in MiB.
    bound_mib: f64,
}

const ATTACKS: [Attack; 3] = [
    Attack {
        name: "8 clients pour 190 MB each without a boundary",
        sent: b"POST /uploads HTTP/1.1\r\nhost: localhost\r\ncontent-type: multipart/form-data; boundary=never\r\n\
            content-length: 190000000\r\n\r\n",
        poured_bytes: POURED_BYTES,
        connections: 8,
        descriptors: None,
        bound_mib: 100.0,
    },
    Attack {
        name: "10,000 connections of one byte",
        sent: b"G",
        poured_bytes: 0,
        connections: MAX_CONNECTIONS,
        descriptors: None,
        bound_mib: 300.0,
    },
    Attack {
        name: "1,100 half heads, with 1,024 descriptors",
        sent: b"GET / HTTP/1.1\r\nhost: local",
        poured_bytes: 0,
        connections: 1_100,
        descriptors: Some(1_024),
        bound_mib: 300.0,
    },
];

/// The result of one attack.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The attack.
    pub attack: &'static str,
    /// The peak memory of the server, in MiB; `None` if the system does not report it.
    pub peak_mib: Option<f64>,
    /// The bound of this memory.
    pub bound_mib: f64,
    /// The waiting time of the next client, in milliseconds.
    pub answer_ms: f64,
    /// The bound of this waiting time.
    pub bound_ms: f64,
    /// The duration of the server's stop during the attack, in seconds.
    pub stop_s: f64,
    /// The bound of this duration.
    pub bound_s: f64,
}

impl Row {
    /// Returns `true` if the bounds hold.
    pub fn holds(&self) -> bool {
        self.peak_mib.is_none_or(|peak| peak <= self.bound_mib)
            && self.answer_ms <= self.bound_ms
            && self.stop_s <= self.bound_s
    }
}

/// Measures all attacks against a program, with data directories below `dir`.
///
/// # Errors
/// Returns an error if the server does not start or respond, or this process cannot open enough connections.
pub async fn measure(dir: &Path, given: Option<&Path>) -> anyhow::Result<Vec<Row>> {
    let program = super::served::program(given)?;
    let wanted = u64::try_from(MAX_CONNECTIONS)? + 100;
    let allowed = getrlimit(Resource::Nofile);
    anyhow::ensure!(
        allowed.maximum.is_none_or(|max| max >= wanted),
        "this needs {wanted} descriptors (ulimit -n)"
    );
    setrlimit(Resource::Nofile, Rlimit { current: allowed.maximum, ..allowed })?;
    let mut rows = Vec::new();
    for attack in &ATTACKS {
        let folder = tempfile::tempdir_in(dir)?;
        let server = ServeProcess::start(&program, folder.path(), attack.descriptors).await?;
        let held = attack.hold(&server.address).await?;
        let answer = answered(&server.address).await?;
        let peak_mib = server.peak_mib();
        let stop = server.stop().await?;
        drop(held);
        rows.push(Row {
            attack: attack.name,
            peak_mib,
            bound_mib: attack.bound_mib,
            answer_ms: answer.as_secs_f64() * 1e3,
            bound_ms: BOUND_MS,
            stop_s: stop.as_secs_f64(),
            bound_s: BOUND_S,
        });
    }
    Ok(rows)
}

impl Attack {
    /// Opens the connections one after the other, sends on all of them concurrently, and keeps them open.
    async fn hold(&self, address: &str) -> anyhow::Result<Vec<TcpStream>> {
        let mut sending = JoinSet::new();
        for _ in 0..self.connections {
            let stream = TcpStream::connect(address).await?;
            sending.spawn(pour(stream, self.sent, self.poured_bytes));
        }
        Ok(sending.join_all().await)
    }
}

/// Sends all bytes, or as many as the server accepts.
async fn pour(mut stream: TcpStream, sent: &[u8], poured_bytes: usize) -> TcpStream {
    let piece = vec![b'x'; poured_bytes.min(1_000_000)];
    let mut going_on = stream.write_all(sent).await.is_ok();
    let mut left = poured_bytes;
    while going_on && left > 0 {
        going_on = stream.write_all(&piece).await.is_ok();
        left = left.saturating_sub(piece.len());
    }
    stream
}

/// Returns the waiting time of a new client.
async fn answered(address: &str) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let asking = async {
        let mut stream = TcpStream::connect(address).await?;
        stream
            .write_all(b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        anyhow::ensure!(answer.starts_with(b"HTTP/1.1 200 "), "the next client was refused");
        anyhow::Ok(())
    };
    tokio::time::timeout(TIMEOUT, asking).await.context("the next client was locked out")??;
    Ok(begun.elapsed())
}
