//! The body of a request, with a minimum rate.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep};

use super::connections::{ConnectionState, Phase};
use super::limits::MinRate;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A request body that fails if the client sends it too slowly.
pub(super) struct TimedBody {
    body: Incoming,
    state: Arc<ConnectionState>,
    min_rate: MinRate,
    received: u64,
    waited: Duration,
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
    is_late: Arc<AtomicBool>,
}

#[derive(Debug, thiserror::Error)]
#[error("the request did not arrive in time")]
struct BodyTimeout;

impl TimedBody {
    /// Returns the body, and a flag that is set if it was too slow. The reader of the body cannot distinguish this
    /// error from others.
    pub(super) fn new(
        body: Incoming,
        state: Arc<ConnectionState>,
        min_rate: MinRate,
    ) -> (Self, Arc<AtomicBool>) {
        let is_late = Arc::new(AtomicBool::new(false));
        let late = Arc::clone(&is_late);
        (Self { body, state, min_rate, received: 0, waited: Duration::ZERO, waiting: None, is_late }, late)
    }

    fn received(&mut self, bytes: usize) {
        if let Some((since, _)) = self.waiting.take() {
            self.waited += since.elapsed();
        }
        self.received = self.received.saturating_add(bytes as u64);
        self.state.enter(Phase::Work);
    }

    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let allowance = self.min_rate.allowance(self.received);
        let left = allowance.saturating_sub(self.waited).min(self.min_rate.pause);
        let (_, end) =
            self.waiting.get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(left))));
        self.state.enter(Phase::Body);
        if end.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.is_late.store(true, Ordering::Relaxed);
        Poll::Ready(Some(Err(BodyTimeout.into())))
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => {
                let bytes = match &frame {
                    Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
                    Some(Err(_)) | None => 0,
                };
                self.received(bytes);
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Poll::Pending => self.wait(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
