//! When outboxes were swept to their end, for whoever wants to know whether anybody still does it.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use messages::{Host, StoreError};
use outbox::{Key, ReadRecords, Write, WriteRecords};

/// How old a note is at least before another one takes its place: some sweep every second, and none is worth a write.
const NOTE_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// Notes sweeps.
#[derive(Clone)]
pub struct Sweeps {
    /// Reads the note.
    pub records: Arc<dyn ReadRecords>,
    /// Writes it.
    pub write: Arc<dyn WriteRecords>,
    /// Time.
    pub host: Arc<dyn Host>,
}

impl Sweeps {
    /// Notes that a sweep has ended well, unless one of the last minute is noted.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn note(&self) -> Result<(), StoreError> {
        let now = self.host.now();
        if self.last().await?.is_some_and(|last| now.duration_since(last) < NOTE_EVERY) {
            return Ok(());
        }
        self.write.write_record(&Write { key: key(), body: now.to_string().into() }).await
    }

    /// When a sweep ended well, to the minute; none before the first one.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn last(&self) -> Result<Option<Timestamp>, StoreError> {
        let noted = self.records.record(&key()).await?;
        Ok(noted.and_then(|record| record.body.as_str()?.parse().ok()))
    }
}

fn key() -> Key {
    Key::new("engine", "swept")
}
