//! Time, sleep and randomness: what a program takes from the machine it runs on.
//!
//! They come in through a port so that a test decides them. Nothing in the libraries reads a clock, sleeps or
//! draws a random number by itself.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use uuid::Uuid;

/// The machine, as the libraries see it.
#[async_trait]
pub trait Host: Send + Sync {
    /// The current time. It may jump either way; nothing's safety rests on it.
    fn now(&self) -> Timestamp;

    /// Whether a deadline has passed. Where there is none, time never runs out.
    fn is_past(&self, deadline: Option<Timestamp>) -> bool {
        deadline.is_some_and(|deadline| self.now() >= deadline)
    }

    /// A fresh unique id, ascending in time (UUID version 7).
    fn fresh_id(&self) -> Uuid;

    /// A fresh unique id that cannot be guessed from others, however many of them are known (UUID version 4): what tokens
    /// are made of.
    fn random_id(&self) -> Uuid;

    /// A random number from 0 (included) to 1 (excluded), for jitter.
    fn unit_random(&self) -> f64;

    /// Waits.
    async fn sleep(&self, duration: Duration);
}
