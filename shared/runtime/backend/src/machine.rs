//! The real machine.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of version 7 that are drawn at one moment share its time and go on counting.
    #[test]
    fn what_tokens_are_made_of_has_neither_time_nor_count_in_it() {
        let drawn: Vec<Uuid> = (0..1_000).map(|_| SystemHost.random_id()).collect();
        assert!(drawn.iter().all(|id| id.get_version_num() == 4));
        let beginnings: std::collections::BTreeSet<u32> = drawn.iter().map(|id| id.as_fields().0).collect();
        assert!(beginnings.len() > 990, "of 1,000 only {} begin differently", beginnings.len());
    }
}
