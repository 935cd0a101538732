//! One connection, from its first request to its last.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::Response;
use axum::response::IntoResponse;
use futures::FutureExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioTimer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::Server;
use super::body::Timed;
use super::connections::{Phase, Seat, Slot};
use super::refusal::{self, Refusal};
use super::stream::Stream;

/// The most that is read from a connection before it is used, in bytes; a request's head has to fit into it.
const BUFFER_BYTES: usize = 32 * 1024;
/// The most header fields of a request.
const MAX_HEADERS: usize = 100;
/// How much is thrown away at once of what nobody wants to read.
const DISCARDED_BYTES: usize = 16 * 1024;

/// How a connection ended.
enum End {
    /// The client closed it, or did not keep to the protocol or its limits.
    Client(hyper::Result<()>),
    /// Somebody else needed its place.
    MadeRoom,
    /// The server stops.
    Stopping,
}

/// Answers the requests of a connection until it ends.
pub(super) async fn run(stream: TcpStream, seat: Seat, server: Arc<Server>, stopping: CancellationToken) {
    let slot = Arc::clone(&seat.slot);
    // A client that has gone already has no address.
    let Ok(local) = stream.local_addr() else { return };
    let limits = server.limits;
    // Answers are written as a whole. Where that cannot be said, they are only slower.
    let _ = stream.set_nodelay(true);
    let stream = Stream::new(stream, Arc::clone(&slot), limits.answer);
    let answering = Arc::clone(&slot);
    let service = service_fn(move |request| {
        answer(Arc::clone(&server), Arc::clone(&answering), local.ip(), request).boxed()
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_header_size(BUFFER_BYTES)
        .max_headers(MAX_HEADERS)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(stream, service);
    let mut is_stopping = false;
    let end = loop {
        tokio::select! {
            end = poll_fn(|cx| connection.poll_without_shutdown(cx)) => break End::Client(end),
            () = slot.asked_to_leave() => break End::MadeRoom,
            () = stopping.cancelled(), if !is_stopping => {
                is_stopping = true;
                if slot.phase() == Phase::Head {
                    break End::Stopping;
                }
                std::pin::Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    let parts = connection.into_parts();
    let (mut stream, is_refused) = parts.io.into_inner();
    let has_begun = match slot.phase() {
        Phase::Head => !parts.read_buf.is_empty(),
        Phase::Body => true,
        Phase::Work | Phase::Answer => false,
    };
    if let Some(refusal) = last_words(&end, has_begun, is_refused) {
        // A few bytes, into an empty buffer of the socket.
        let _ = stream.try_write(&refusal.bytes());
    }
    if matches!(end, End::Client(_)) {
        slot.enter(Phase::Head);
        tokio::select! {
            () = linger(&mut stream, limits.linger) => {}
            () = slot.asked_to_leave() => {}
            () = stopping.cancelled() => {}
        }
    }
    drop(stream);
    drop(seat);
}

/// What a client still has to be told that has begun a request, or has sent something else.
fn last_words(end: &End, has_begun: bool, is_refused: bool) -> Option<Refusal> {
    match end {
        End::Client(Err(error)) if error.is_parse() && !is_refused => Some(refusal::HTTP_2),
        End::Client(Err(error)) if error.is_timeout() && has_begun => Some(refusal::SLOW),
        End::Client(_) => None,
        End::MadeRoom => has_begun.then_some(refusal::MADE_ROOM),
        End::Stopping => has_begun.then_some(refusal::STOPPING),
    }
}

/// A client that is still sending when its connection is closed is told so by a reset, which may overtake the answer.
/// So it may go on for a while.
async fn linger(stream: &mut TcpStream, limit: Duration) {
    let discarding = async {
        stream.shutdown().await?;
        let mut discarded = vec![0; DISCARDED_BYTES];
        while stream.read(&mut discarded).await? > 0 {}
        std::io::Result::Ok(())
    };
    // Whether it has gone or goes on, the connection ends.
    let _ = tokio::time::timeout(limit, discarding).await;
}

async fn answer(
    server: Arc<Server>,
    slot: Arc<Slot>,
    local: IpAddr,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    slot.enter(Phase::Work);
    let method = request.method().clone();
    let (parts, body) = request.into_parts();
    let response = match server.door.admit(&parts, local) {
        Err(stranger) => stranger.into_response(),
        Ok(()) => {
            let (body, is_late) = Timed::new(body, Arc::clone(&slot), server.limits.body);
            let request = Request::from_parts(parts, Body::new(body));
            let routed = AssertUnwindSafe(server.router.clone().oneshot(request)).catch_unwind().await;
            match routed {
                Ok(Ok(response)) if is_late.load(Ordering::Relaxed) && !response.status().is_success() => {
                    refusal::SLOW.into_response()
                }
                Ok(Ok(response)) => response,
                // The panic is in the log.
                Err(_) => refusal::BROKEN.into_response(),
            }
        }
    };
    slot.enter(Phase::Answer);
    Ok(refusal::completed(&method, response))
}
