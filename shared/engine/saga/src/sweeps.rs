//! The time of the last completed outbox sweep, for health checks.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use messages::{Host, StoreError};
use outbox::{Key, ReadRecords, Write, WriteRecords};

/// The minimum age of the stored time before it is replaced. Some workers sweep every second, and a write for each
/// sweep would be wasted.
const NOTE_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// Records completed sweeps.
#[derive(Clone)]
pub struct SweepHeartbeat {
    /// Reads the stored time.
    pub records: Arc<dyn ReadRecords>,
    /// Writes the stored time.
    pub write: Arc<dyn WriteRecords>,
    /// The clock.
    pub host: Arc<dyn Host>,
}

impl SweepHeartbeat {
    /// Records that a sweep has completed, unless the last minute is recorded already.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; the call may be repeated.
    pub async fn note(&self) -> Result<(), StoreError> {
        let now = self.host.now();
        // A clock that was ahead may have stored a time in the future.
        if self.last().await?.is_some_and(|last| now.duration_since(last).abs() < NOTE_EVERY) {
            return Ok(());
        }
        self.write.write_record(&Write::new(key(), now.to_string())).await
    }

    /// Returns the time of the last completed sweep, to the minute; `None` before the first one.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    pub async fn last(&self) -> Result<Option<Timestamp>, StoreError> {
        let noted = self.records.record(&key()).await?;
        Ok(noted.and_then(|record| record.body.as_str()?.parse().ok()))
    }
}

fn key() -> Key {
    Key::new("engine", "swept")
}
