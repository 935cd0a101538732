//! The HTTP API on a port of this machine, and the uploads that S3 takes in the cloud.
//!
//! Whoever can reach the port may be hostile, the pages of a browser on this machine included:
//!
//! - [`door`]: who is answered at all: which names this server has, which pages may ask it, and who has its token;
//! - [`limits`]: how much time, and how many connections, clients may take;
//! - `connections`: who has to go when somebody else wants in;
//! - `connection`, `stream`, `body`: one connection, its bytes, and the body of a request, each within its limits;
//! - [`mod@page`]: a page for browsers, out of memory;
//! - [`mod@uploads`]: forms with files, in bounded memory;
//! - `refusal`: each refusal has a status and one line of text.

mod body;
mod connection;
mod connections;
pub mod door;
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

use self::connections::Connections;
pub use self::door::Door;
pub use self::limits::Limits;
pub use self::page::{PageFile, page};
#[cfg(feature = "search")]
pub use self::uploads::{UPLOADS, UploadsAt, uploads};

/// How many connections may wait to be accepted; Linux takes `net.core.somaxconn` of them, 4,096 by default. Those that
/// find no room try again after a second, so that a burst would delay the client after it.
const BACKLOG: u32 = 4_096;
/// How long to wait when no connection can be accepted, as without a descriptor for it.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// What is answered, to whom, and within which limits.
pub struct Server {
    /// What is answered.
    pub router: Router,
    /// Who is.
    pub door: Door,
    /// What a client may take.
    pub limits: Limits,
}

/// Listens at an address, with room for bursts of connections.
///
/// # Errors
/// When the address is taken or is not this machine's.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A server that has just ended may still hold the port for its last connections.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Answers requests until `stop` resolves. Those under way are finished if they can be within [`Limits::stop`].
///
/// # Errors
/// When the port is lost.
pub async fn serve(
    listener: TcpListener,
    server: Server,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
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
                refused(&error, &connections).await;
                continue;
            }
        };
        match connections.enter().await {
            Some(seat) => {
                tasks.spawn(connection::run(stream, seat, Arc::clone(&server), stopping.clone()));
            }
            None => turn_away(&stream),
        }
    }
    drop(listener);
    stopping.cancel();
    finish(tasks, server.limits.stop).await;
    Ok(())
}

/// Waits for requests under way, and not for longer than this.
async fn finish(mut tasks: JoinSet<()>, most: Duration) {
    let finished = async { while tasks.join_next().await.is_some() {} };
    if tokio::time::timeout(most, finished).await.is_err() {
        tracing::info!(connections = tasks.len(), "closing connections whose requests did not end in time");
        tasks.shutdown().await;
    }
}

/// A connection could not be accepted: it is gone already, or there is nothing left to accept it with.
async fn refused(error: &io::Error, connections: &Connections) {
    if !is_the_clients(error) {
        tracing::warn!(%error, "no connection can be accepted");
        connections.ask_to_leave(1, Instant::now());
        tokio::time::sleep(ACCEPT_AGAIN).await;
    }
}

fn is_the_clients(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Everybody who is connected is being answered.
fn turn_away(stream: &TcpStream) {
    // What was read is not answered with a reset.
    let _ = stream.try_read(&mut [0; 4_096]);
    let _ = stream.try_write(&refusal::FULL.bytes());
}
