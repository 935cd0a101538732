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
use super::body::TimedBody;
use super::connections::{ConnectionSlot, ConnectionState, Phase};
use super::refusal::{self, Refusal};
use super::stream::Stream;

/// The size of the read buffer of a connection, in bytes. A request's head has to fit into it.
const BUFFER_BYTES: usize = 32 * 1024;
/// The maximum number of header fields of a request.
const MAX_HEADERS: usize = 100;
/// The size of the buffer for discarded input.
const DISCARD_BYTES: usize = 16 * 1024;

/// The reason why a connection ended.
enum End {
    /// The client closed the connection, or violated the protocol or a limit of the server.
    Client(hyper::Result<()>),
    /// Another client needed its slot.
    Replaced,
    /// The server is stopping.
    Stopping,
}

/// Answers the requests of a connection until it ends.
pub(super) async fn run(
    stream: TcpStream,
    slot: ConnectionSlot,
    server: Arc<Server>,
    stopping: CancellationToken,
) {
    let state = Arc::clone(&slot.state);
    // A client that has already disconnected has no address.
    let Ok(local) = stream.local_addr() else { return };
    let limits = server.limits;
    // Responses are written as a whole. Without this option, they are only slower.
    let _ = stream.set_nodelay(true);
    let stream = Stream::new(stream, Arc::clone(&state), limits.answer);
    let answering = Arc::clone(&state);
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
            () = state.close_requested() => break End::Replaced,
            () = stopping.cancelled(), if !is_stopping => {
                is_stopping = true;
                if state.phase() == Phase::Head {
                    break End::Stopping;
                }
                std::pin::Pin::new(&mut connection).graceful_shutdown();
            }
        }
    };
    let parts = connection.into_parts();
    let (mut stream, is_refused) = parts.io.into_inner();
    let has_begun = match state.phase() {
        Phase::Head => !parts.read_buf.is_empty(),
        Phase::Body => true,
        Phase::Work | Phase::Answer => false,
    };
    if let Some(refusal) = final_response(&end, has_begun, is_refused) {
        // The socket's buffer is empty and has space for a few bytes.
        let _ = stream.try_write(&refusal.bytes());
    }
    if matches!(end, End::Client(_)) {
        state.enter(Phase::Head);
        tokio::select! {
            () = linger(&mut stream, limits.linger) => {}
            () = state.close_requested() => {}
            () = stopping.cancelled() => {}
        }
    }
    drop(stream);
    drop(slot);
}

/// Returns the error response for a client that has started a request, or that uses another protocol.
fn final_response(end: &End, has_begun: bool, is_refused: bool) -> Option<Refusal> {
    match end {
        End::Client(Err(error)) if error.is_parse() && !is_refused => Some(refusal::HTTP_2),
        End::Client(Err(error)) if error.is_timeout() && has_begun => Some(refusal::SLOW),
        End::Client(_) => None,
        End::Replaced => has_begun.then_some(refusal::REPLACED),
        End::Stopping => has_begun.then_some(refusal::STOPPING),
    }
}

/// Discards input for a while before the connection is closed. Otherwise a client that is still sending receives a
/// reset, which may overtake the response.
async fn linger(stream: &mut TcpStream, limit: Duration) {
    let discarding = async {
        stream.shutdown().await?;
        let mut discarded = vec![0; DISCARD_BYTES];
        while stream.read(&mut discarded).await? > 0 {}
        std::io::Result::Ok(())
    };
    // The connection ends in either case.
    let _ = tokio::time::timeout(limit, discarding).await;
}

async fn answer(
    server: Arc<Server>,
    state: Arc<ConnectionState>,
    local: IpAddr,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    state.enter(Phase::Work);
    let method = request.method().clone();
    let (parts, body) = request.into_parts();
    let response = match server.access.admit(&parts, local) {
        Err(denied) => denied.into_response(),
        Ok(()) => {
            let (body, is_late) = TimedBody::new(body, Arc::clone(&state), server.limits.body);
            let request = Request::from_parts(parts, Body::new(body));
            let routed = AssertUnwindSafe(server.router.clone().oneshot(request)).catch_unwind().await;
            match routed {
                Ok(Ok(response)) if is_late.load(Ordering::Relaxed) && !response.status().is_success() => {
                    refusal::SLOW.into_response()
                }
                Ok(Ok(response)) => response,
                // The panic is logged.
                Err(_) => refusal::BROKEN.into_response(),
            }
        }
    };
    state.enter(Phase::Answer);
    Ok(refusal::completed(&method, response))
}
