//! The host, with a clock that can be advanced, so that no test waits an hour for an unpaid order.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use backend::SystemHost;
use jiff::{SignedDuration, Timestamp};
use messages::Host;
use uuid::Uuid;

#[derive(Default)]
pub(crate) struct MovedHost {
    seconds: AtomicI64,
}

impl MovedHost {
    pub(crate) fn advance(&self, by: SignedDuration) {
        self.seconds.fetch_add(by.as_secs(), Ordering::Relaxed);
    }
}

#[async_trait]
impl Host for MovedHost {
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
