//! A host with manual time.

use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use messages::Host;
use uuid::{Builder, Uuid};

/// A [`Host`] whose clock a test sets. Ids and random numbers depend only on its seed and their count, so a run is
/// reproducible.
#[derive(Debug)]
pub struct ManualHost {
    seed: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    now: Timestamp,
    ids: u32,
    randoms: u64,
    sleeps: Vec<Duration>,
}

impl ManualHost {
    /// Returns a host whose clock shows `now`.
    pub fn new(now: Timestamp, seed: u64) -> Self {
        Self { seed, state: Mutex::new(State { now, ids: 0, randoms: 0, sleeps: Vec::new() }) }
    }

    /// Returns a host whose clock shows the beginning of 2026.
    pub fn seeded(seed: u64) -> Self {
        Self::new(Timestamp::constant(1_767_225_600, 0), seed)
    }

    /// Sets the clock forward or back.
    pub fn set(&self, now: Timestamp) {
        self.with(|state| state.now = now);
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.with(|state| state.now = after(state.now, by));
    }

    /// Returns the durations of all sleeps in order.
    pub fn sleeps(&self) -> Vec<Duration> {
        self.with(|state| state.sleeps.clone())
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        // A test that panicked with the lock has already failed, and the state is consistent.
        change(&mut self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

fn after(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| at.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}

#[async_trait]
impl Host for ManualHost {
    fn now(&self) -> Timestamp {
        self.with(|state| state.now)
    }

    fn fresh_id(&self) -> Uuid {
        let (now, count) = self.with(|state| {
            state.ids = state.ids.wrapping_add(1);
            (state.now, state.ids)
        });
        let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
        // The count precedes the seed, so that ids of the same time ascend as well. The version and the variant replace
        // some bits of the first three of these ten bytes.
        let ([a, b, c, d], [.., x, y, z]) = (count.to_be_bytes(), self.seed.to_be_bytes());
        Builder::from_unix_timestamp_millis(millis, &[0, 0, 0, a, b, c, d, x, y, z]).into_uuid()
    }

    /// Returns the same type of id as [`Host::fresh_id`], because runs must be reproducible and tests print ids.
    fn random_id(&self) -> Uuid {
        self.fresh_id()
    }

    fn unit_random(&self) -> f64 {
        let count = self.with(|state| {
            state.randoms = state.randoms.wrapping_add(1);
            state.randoms
        });
        unit(self.seed.wrapping_add(count.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// Advances the clock immediately, and lets other tasks run before it returns.
    async fn sleep(&self, duration: Duration) {
        self.with(|state| {
            state.sleeps.push(duration);
            state.now = after(state.now, duration);
        });
        Yield { done: false }.await;
    }
}

/// The output of SplitMix64 (Steele, Lea and Flood, 2014) as a fraction.
fn unit(mut z: u64) -> f64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    // A double represents the upper 53 bits exactly.
    (z >> 11) as f64 / (1_u64 << 53) as f64
}

/// A future that is pending once.
struct Yield {
    done: bool,
}

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.done {
            return Poll::Ready(());
        }
        self.done = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
