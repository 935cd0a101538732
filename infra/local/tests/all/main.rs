//! The HTTP server with slow clients, and with too many connections; deliveries to functions.

#![expect(clippy::expect_used, reason = "a failure here fails the test")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

mod deliveries;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::{get, post};
use local::http::limits::MinRate;
use local::http::{AccessPolicy, Limits, Server, listen, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

/// Long enough for everything that ends on its own, even on a busy machine.
const BOUND: Duration = Duration::from_secs(60);
/// A time that exceeds the duration of any test.
const NEVER: Duration = Duration::from_secs(3_600);
/// A limit that tests wait for.
const SHORT: Duration = Duration::from_millis(50);

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
const NEVER_ANSWERED: &[u8] = b"GET /never HTTP/1.1\r\nhost: localhost\r\n\r\n";
const HALF_HEAD: &[u8] = b"GET / HTTP/1.1\r\nhost: local";
const HALF_BODY: &[u8] = b"POST /read HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nhalf";

/// Returns limits that no client reaches.
fn unlimited() -> Limits {
    Limits {
        connections: 100,
        uploads: 1,
        upload_wait: NEVER,
        head: NEVER,
        body: MinRate { pause: NEVER, bytes_per_second: 1 },
        answer: NEVER,
        linger: NEVER,
        stop: NEVER,
    }
}

struct TestServer {
    address: std::net::SocketAddr,
    /// One permit for each request that is never answered.
    never: Arc<Semaphore>,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl TestServer {
    fn start(limits: Limits) -> Self {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let never = Arc::new(Semaphore::new(0));
        let begun = Arc::clone(&never);
        let router = Router::new()
            .route("/", get(async || "hello"))
            .route("/read", post(async |body: Bytes| body))
            .route("/large", get(async || vec![b'x'; 64 << 20]))
            .route(
                "/never",
                get(async move || {
                    begun.add_permits(1);
                    std::future::pending::<()>().await;
                }),
            )
            .route("/panic", get(async || -> () { panic!("on purpose") }));
        let server = Server { router, access: AccessPolicy::default(), limits };
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(serve(listener, server, async move { drop(stopped.await) }));
        Self { address, never, stop: Some(stop), serving }
    }

    /// Connects a client that sends these bytes.
    async fn client(&self, sent: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        stream
    }

    /// Connects a client whose request is never answered.
    async fn busy(&self) -> TcpStream {
        let client = self.client(NEVER_ANSWERED).await;
        let begun = tokio::time::timeout(BOUND, self.never.acquire()).await.expect("it begins");
        begun.unwrap().forget();
        client
    }

    async fn stop(mut self) {
        self.stop.take();
        tokio::time::timeout(BOUND, self.serving).await.expect("it stops").unwrap();
    }
}

/// Returns everything that the server sends until it closes the connection.
async fn all(mut stream: TcpStream) -> String {
    let mut said = Vec::new();
    let read = tokio::time::timeout(BOUND, stream.read_to_end(&mut said)).await;
    // A connection reset also counts as the end.
    let _ = read.expect("the connection ends");
    String::from_utf8(said).unwrap()
}

/// Returns the first bytes that the server sends.
async fn first(stream: &mut TcpStream) -> String {
    let mut said = vec![0; 1_000];
    let read = tokio::time::timeout(BOUND, stream.read(&mut said)).await.expect("it answers").unwrap();
    said.truncate(read);
    String::from_utf8(said).unwrap()
}

fn assert_refused(said: &str, status: u16, text: &str) {
    assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
    let (_, body) = said.split_once("\r\n\r\n").unwrap();
    assert!(body.contains(text) && body.ends_with('\n') && body.lines().count() == 1, "{said}");
}

#[tokio::test]
async fn partial_head_times_out_and_idle_connection_closes() {
    let server = TestServer::start(Limits { head: SHORT, ..unlimited() });
    assert_refused(&all(server.client(HALF_HEAD).await).await, 408, "in time");
    assert_eq!(all(server.client(b"").await).await, "");
    let said = all(server.client(GET).await).await;
    assert!(said.starts_with("HTTP/1.1 200 ") && said.ends_with("hello"), "{said}");
}

#[tokio::test]
async fn partial_body_times_out() {
    let min_rate = MinRate { pause: SHORT, bytes_per_second: 1_000_000_000 };
    let server = TestServer::start(Limits { body: min_rate, linger: SHORT, ..unlimited() });
    assert_refused(&all(server.client(HALF_BODY).await).await, 408, "in time");
}

#[tokio::test]
async fn dripping_body_times_out_by_its_rate() {
    let min_rate = MinRate { pause: Duration::from_millis(200), bytes_per_second: 1_000_000_000 };
    let server = TestServer::start(Limits { body: min_rate, linger: SHORT, ..unlimited() });
    let head = b"POST /read HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n";
    let (mut reading, mut writing) = server.client(head).await.into_split();
    let dripping = tokio::spawn(async move {
        while writing.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let mut said = vec![0; 1_000];
    let read = tokio::time::timeout(BOUND, reading.read(&mut said)).await.expect("it answers").unwrap();
    assert_refused(std::str::from_utf8(&said[..read]).unwrap(), 408, "in time");
    dripping.await.unwrap();
}

#[tokio::test]
async fn unread_response_closes_the_connection() {
    let server = TestServer::start(Limits { answer: SHORT, linger: SHORT, ..unlimited() });
    let mut client = server.client(b"GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(first(&mut client).await.starts_with("HTTP/1.1 200 "));
    // The client reads no more until the server has no connection left.
    server.stop().await;
    drop(client);
}

#[tokio::test]
async fn new_client_replaces_longest_waiting_one() {
    let server = TestServer::start(Limits { connections: 3, ..unlimited() });
    let mut working = server.busy().await;
    let mut held = Vec::new();
    for _ in 0..50 {
        held.push(server.client(HALF_HEAD).await);
    }
    assert!(first(&mut server.client(GET).await).await.starts_with("HTTP/1.1 200 "));
    for half in held.drain(..40) {
        let said = all(half).await;
        // A connection that is closed before its input was read gets a reset.
        if !said.is_empty() {
            assert_refused(&said, 503, "too many connections");
        }
    }
    let still = tokio::time::timeout(SHORT, working.read_u8()).await;
    assert!(still.is_err(), "a connection in progress stays");
}

#[tokio::test]
async fn busy_server_rejects_new_client() {
    let server = TestServer::start(Limits { connections: 2, ..unlimited() });
    let _held = (server.busy().await, server.busy().await);
    assert_refused(&all(server.client(b"").await).await, 503, "please try again");
}

#[tokio::test]
async fn shutdown_is_bounded_in_time() {
    let server = TestServer::start(Limits { stop: SHORT, ..unlimited() });
    let clients = [
        server.client(b"").await,
        server.client(HALF_HEAD).await,
        server.client(HALF_BODY).await,
        server.busy().await,
    ];
    assert!(first(&mut server.client(GET).await).await.starts_with("HTTP/1.1 200 "));
    server.stop().await;
    for client in clients {
        let said = all(client).await;
        if !said.is_empty() {
            assert_refused(&said, 503, "stopping");
        }
    }
}

#[tokio::test]
async fn shutdown_drains_in_flight_requests() {
    let server = TestServer::start(unlimited());
    let head =
        b"POST /read HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 10\r\n\r\n";
    let mut client = server.client(head).await;
    // The server sends this once the handler reads the body.
    assert!(first(&mut client).await.starts_with("HTTP/1.1 100 "));
    let stopping = tokio::spawn(server.stop());
    client.write_all(b"half of it").await.unwrap();
    let said = all(client).await;
    assert!(said.starts_with("HTTP/1.1 200 ") && said.ends_with("half of it"), "{said}");
    stopping.await.unwrap();
}

#[tokio::test]
async fn panic_fails_only_its_request() {
    let server = TestServer::start(Limits { linger: SHORT, ..unlimited() });
    let mut client = server.client(b"GET /panic HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert_refused(&first(&mut client).await, 500, "log");
    client.write_all(GET).await.unwrap();
    assert!(first(&mut client).await.starts_with("HTTP/1.1 200 "));
}
