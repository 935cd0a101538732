//! The port for time, sleep and randomness.
//!
//! The trait [`Host`] lets a test control them. No library code reads a clock, sleeps or generates a random number by
//! itself.

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
