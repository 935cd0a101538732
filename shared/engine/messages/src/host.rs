//! The port for time, sleep and randomness.
//!
//! The trait [`Host`] lets a test control them. No library code reads a clock, sleeps or generates a random number by
//! itself.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

/// The machine that a program runs on.
#[async_trait]
pub trait Host: Send + Sync {
    /// Returns the current time. It may jump in either direction by less than the lifetime of a ledger item, 30 days; no
    /// guarantee depends on it otherwise.
    fn now(&self) -> Timestamp;

    /// Returns `true` if a deadline has passed; `false` without a deadline.
    fn is_past(&self, deadline: Option<Timestamp>) -> bool {
        deadline.is_some_and(|deadline| self.now() >= deadline)
    }

    /// Returns a new unique id, ascending in time (UUID version 7).
    fn fresh_id(&self) -> Uuid;

    /// Returns a new unique id that cannot be guessed from other ids (UUID version 4), for tokens.
    fn random_id(&self) -> Uuid;

    /// Returns a random number from 0 (included) to 1 (excluded), for jitter.
    fn unit_random(&self) -> f64;

    /// Waits for a duration.
    async fn sleep(&self, duration: Duration);
}

/// Awaits the work of a delivery, and drops it once `overtime` has passed after the deadline of the invocation. Otherwise
/// the end of the invocation would stop it, together with the answers to the other deliveries of the batch. Returns
/// `None` if the work was dropped, which stops it at its current `await`. The limit applies only if both a deadline and an
/// overtime are given.
pub async fn stop_late<T>(
    host: &dyn Host,
    deadline: Option<Timestamp>,
    overtime: Option<Duration>,
    work: impl Future<Output = T> + Send,
) -> Option<T> {
    let Some((deadline, overtime)) = deadline.zip(overtime) else { return Some(work.await) };
    let rest = Duration::try_from(deadline.duration_since(host.now())).unwrap_or_default();
    let (mut work, mut end) = (pin!(work), host.sleep(rest.saturating_add(overtime)));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => end.as_mut().poll(context).map(|()| None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::Pin;
    use std::task::{Context, Waker};

    use super::*;

    /// A host whose timers expire at once.
    struct ImpatientHost;

    #[async_trait]
    impl Host for ImpatientHost {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
        fn fresh_id(&self) -> Uuid {
            Uuid::nil()
        }
        fn random_id(&self) -> Uuid {
            Uuid::nil()
        }
        fn unit_random(&self) -> f64 {
            0.0
        }
        async fn sleep(&self, _: Duration) {}
    }

    fn polled<T>(work: impl Future<Output = T>) -> Poll<T> {
        let work: Pin<&mut _> = pin!(work);
        work.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn only_late_work_is_dropped() {
        let (host, deadline, overtime) = (&ImpatientHost, Some(Timestamp::UNIX_EPOCH), Some(Duration::ZERO));
        assert_eq!(polled(stop_late(host, deadline, overtime, ready(7))), Poll::Ready(Some(7)));
        assert_eq!(polled(stop_late(host, deadline, overtime, pending::<()>())), Poll::Ready(None));
        for (deadline, overtime) in [(None, overtime), (deadline, None)] {
            assert_eq!(polled(stop_late(host, deadline, overtime, pending::<()>())), Poll::Pending);
        }
    }
}
