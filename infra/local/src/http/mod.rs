//! The HTTP server: the API, and the uploads, which S3 receives in a deployment.
//!
//! Every client that can reach the port may be hostile, including pages in a browser on this machine:
//!
//! - [`access`]: the requests that are admitted, by host name, origin and token;
//! - [`limits`]: the time and the connections that clients may use;
//! - `connections`: the choice of connections to close when the limit is reached;
//! - `connection`, `stream`, `body`: one connection, its bytes, and the body of a request, each with its limits;
//! - [`mod@page`]: a page for browsers, served from memory;
//! - `uploads`, with feature `search`: uploaded forms with files, in bounded memory;
//! - `refusal`: error responses with a status and one line of text.

pub mod access;
mod body;
mod connection;
mod connections;
pub mod limits;
pub mod page;
mod refusal;
mod stream;
#[cfg(feature = "search")]
pub mod uploads;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::access::AccessPolicy;
use self::connections::Connections;
pub use self::limits::Limits;
pub use self::page::{PageFile, page};
#[cfg(feature = "search")]
pub use self::uploads::{UPLOADS, UploadsAt, uploads};

/// The maximum number of connections that wait to be accepted. Linux limits it to `net.core.somaxconn`, 4,096 by
/// default. Clients beyond this limit retry after a second, so a burst would delay other clients.
const BACKLOG: u32 = 4_096;
/// The delay after no connection could be accepted, for example without a free file descriptor.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// A server with its routes, access policy and limits.
pub struct Server {
    /// The routes.
    pub router: Router,
    /// The policy that admits requests.
    pub access: AccessPolicy,
    /// The limits on clients.
    pub limits: Limits,
}

/// Listens at an address with a backlog for bursts of connections.
///
/// # Errors
/// Returns an error if the address is taken or does not belong to this machine.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // The last connections of a previous server may still hold the port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves requests until `stop` resolves. Requests in progress may then finish within [`Limits::stop`].
pub async fn serve(listener: TcpListener, server: Server, stop: impl Future<Output = ()> + Send) {
    let connections = Connections::new(server.limits.connections);
    let (server, stopping) = (Arc::new(server), CancellationToken::new());
    let mut tasks = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = tasks.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                wait_to_accept(&error, &connections).await;
                continue;
            }
        };
        match connections.enter().await {
            Some(slot) => {
                tasks.spawn(connection::run(stream, slot, Arc::clone(&server), stopping.clone()));
            }
            None => reject(&stream),
        }
    }
    drop(listener);
    stopping.cancel();
    finish(tasks, server.limits.stop).await;
}

/// Waits for requests in progress, up to a time limit.
async fn finish(mut tasks: JoinSet<()>, limit: Duration) {
    let finished = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(limit, finished).await.is_err() {
        tracing::info!(connections = tasks.len(), "closing connections whose requests did not end in time");
        tasks.shutdown().await;
    }
}

/// Handles a failed accept. Unless the client disconnected, closes an idle connection and waits for free resources.
async fn wait_to_accept(error: &io::Error, connections: &Connections) {
    if !is_client_error(error) {
        tracing::warn!(%error, "no connection can be accepted");
        connections.ask_to_leave(1, Instant::now());
        tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
    }
}

fn is_client_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Rejects a connection because all others are waiting for the server.
fn reject(stream: &TcpStream) {
    // Unread input would cause a reset when the connection is closed.
    let _ = stream.try_read(&mut [0; 4_096]);
    let _ = stream.try_write(&refusal::FULL.bytes());
}
