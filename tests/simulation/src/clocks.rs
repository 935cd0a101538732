//! The workers' clocks. Each clock differs from the world's clock by up to the error that AWS accepts in signed
//! requests.

use jiff::SignedDuration;

use crate::rng::Rng;

/// The maximum error of a clock, which AWS accepts in a signed request.
pub(crate) const MAX_MS: u64 = 300_000;

/// The maximum clock error of a schedule: none, seconds, or the five minutes that AWS accepts
/// (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html>).
const SKEWS_MS: [u64; 4] = [0, 0, 5_000, MAX_MS];

/// The clocks of one schedule.
pub(crate) struct Clocks {
    most_ms: u64,
    /// The errors by worker.
    ahead_ms: Vec<i64>,
}

impl Clocks {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        Self { most_ms: rng.pick(&SKEWS_MS), ahead_ms: Vec::new() }
    }

    /// Chooses the clock of the next worker.
    pub(crate) fn add(&mut self, rng: &mut Rng) {
        let ahead = i64::try_from(rng.between(0, 2 * self.most_ms)).unwrap_or(0);
        self.ahead_ms.push(ahead - i64::try_from(self.most_ms).unwrap_or(0));
    }

    /// Returns the error of a worker's clock, which is positive if the clock is ahead.
    pub(crate) fn error_of(&self, worker: usize) -> SignedDuration {
        SignedDuration::from_millis(self.ahead_ms.get(worker).copied().unwrap_or(0))
    }
}
