//! The host of a program: the clock, sleep and randomness of the machine, and a clock that tests advance.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use messages::Host;
use uuid::Uuid;

/// The system's clock, tokio's sleep, and the thread's random generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemHost;

#[async_trait]
impl Host for SystemHost {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn fresh_id(&self) -> Uuid {
        Uuid::now_v7()
    }

    fn random_id(&self) -> Uuid {
        Uuid::new_v4()
    }

    fn unit_random(&self) -> f64 {
        rand::random()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// The host of a program whose clock can be advanced, so that no test waits an hour for a timer. Sleep and randomness are
/// those of [`SystemHost`].
#[derive(Debug, Default)]
pub struct AdvancedHost {
    seconds: AtomicI64,
}

impl AdvancedHost {
    /// Advances the clock by whole seconds.
    pub fn advance(&self, by: SignedDuration) {
        self.seconds.fetch_add(by.as_secs(), Ordering::Relaxed);
    }
}

#[async_trait]
impl Host for AdvancedHost {
    fn now(&self) -> Timestamp {
        let by = SignedDuration::from_secs(self.seconds.load(Ordering::Relaxed));
        SystemHost.now().saturating_add(by).unwrap_or(Timestamp::MAX)
    }

    fn fresh_id(&self) -> Uuid {
        SystemHost.fresh_id()
    }

    fn random_id(&self) -> Uuid {
        SystemHost.random_id()
    }

    fn unit_random(&self) -> f64 {
        SystemHost.unit_random()
    }

    async fn sleep(&self, duration: Duration) {
        SystemHost.sleep(duration).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of version 7 that are drawn at the same moment share its time and a counter, so a token made of one could be
    /// guessed.
    #[test]
    fn random_ids_contain_neither_time_nor_counter() {
        let drawn: Vec<Uuid> = (0..1_000).map(|_| SystemHost.random_id()).collect();
        assert!(drawn.iter().all(|id| id.get_version_num() == 4));
        let beginnings: std::collections::BTreeSet<u32> = drawn.iter().map(|id| id.as_fields().0).collect();
        assert!(beginnings.len() > 990, "only {} of 1,000 ids have a prefix of their own", beginnings.len());
    }
}
