//! A connection's bytes: writing does not wait for ever, and what hyper refuses by itself gets a line of text.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::connections::{Phase, Slot};
use super::refusal;

/// A connection as hyper reads and writes it.
pub(super) struct Stream {
    inner: TokioIo<TcpStream>,
    slot: Arc<Slot>,
    /// A refusal with its text, which takes the place of what hyper wrote; and how much of it is written.
    refusal: Option<(Vec<u8>, usize)>,
    limit: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Stream {
    pub(super) fn new(stream: TcpStream, slot: Arc<Slot>, limit: Duration) -> Self {
        Self { inner: TokioIo::new(stream), slot, refusal: None, limit, stalled: None }
    }

    /// The connection, and whether hyper has refused what it read.
    pub(super) fn into_inner(self) -> (TcpStream, bool) {
        (self.inner.into_inner(), self.refusal.is_some())
    }

    /// What was tried, unless it is tried for too long.
    fn within_limit<T>(&mut self, cx: &mut Context<'_>, tried: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if tried.is_ready() {
            self.stalled = None;
            return tried;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer")))
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
                // It is written when hyper flushes; nothing comes after it.
                return Poll::Ready(Ok(bytes.len()));
            }
        }
        let tried = Pin::new(&mut self.inner).poll_write(cx, bytes);
        if tried.is_ready() {
            self.slot.moves();
        }
        self.within_limit(cx, tried)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = match self.write_refusal(cx) {
            Poll::Ready(Ok(())) => Pin::new(&mut self.inner).poll_flush(cx),
            other => other,
        };
        let flushed = self.within_limit(cx, tried);
        if flushed.is_ready() && self.slot.phase() == Phase::Answer {
            self.slot.enter(Phase::Head);
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.write_refusal(cx))?;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
