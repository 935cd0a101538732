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

    fn unit_random(&self) -> f64 {
        rand::random()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
