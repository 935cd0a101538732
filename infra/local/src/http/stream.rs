//! The byte stream of a connection, with a time limit for writes and a line of text in errors of hyper.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::connections::{ConnectionState, Phase};
use super::refusal;

/// A connection for hyper.
pub(super) struct Stream {
    inner: TokioIo<TcpStream>,
    state: Arc<ConnectionState>,
    /// An error response with its text, which replaces the response of hyper, and the number of bytes written.
    refusal: Option<(Vec<u8>, usize)>,
    limit: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Stream {
    pub(super) fn new(stream: TcpStream, state: Arc<ConnectionState>, limit: Duration) -> Self {
        Self { inner: TokioIo::new(stream), state, refusal: None, limit, stalled: None }
    }

    /// Returns the connection, and `true` if hyper has rejected its input.
    pub(super) fn into_inner(self) -> (TcpStream, bool) {
        (self.inner.into_inner(), self.refusal.is_some())
    }

    /// Returns the result of an operation, or an error if it is pending for too long.
    fn within_limit<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.stalled = None;
            return result;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its response")))
    }

    fn write_refusal(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some((bytes, written)) = &mut self.refusal else { return Poll::Ready(Ok(())) };
        while let Some(rest) = bytes.get(*written..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.inner).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => *written += more,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl Write for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.refusal.is_none() {
            self.refusal = refusal::with_text(bytes).map(|text| (text, 0));
            if self.refusal.is_some() {
                // The text is written when hyper flushes. No further writes follow.
                return Poll::Ready(Ok(bytes.len()));
            }
        }
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if written.is_ready() {
            self.state.progressed();
        }
        self.within_limit(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = match self.write_refusal(cx) {
            Poll::Ready(Ok(())) => Pin::new(&mut self.inner).poll_flush(cx),
            other => other,
        };
        let flushed = self.within_limit(cx, result);
        if flushed.is_ready() && self.state.phase() == Phase::Answer {
            self.state.enter(Phase::Head);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.write_refusal(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
