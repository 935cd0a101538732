//! The store of processed messages.

use async_trait::async_trait;
use dedup::ProcessedMessages;
use dedup::filter::RESENT_RECORD;
use jiff::Timestamp;
use messages::{MessageId, StoreError};

use crate::coverage::Call;
use crate::port::Port;
use crate::time::timestamp;
use crate::world::World;

#[async_trait]
impl ProcessedMessages for Port {
    async fn is_remembered(&self, key: &str, now: Timestamp) -> Result<bool, StoreError> {
        let key = key.to_owned();
        let look = move |world: &mut World| world.is_processed(&key, now);
        self.call(Call::PROCESSED_LOOK, look).await
    }

    async fn remember(&self, key: &str, expires_at: Timestamp) -> Result<(), StoreError> {
        let key = key.to_owned();
        let insert = move |world: &mut World| {
            world.processed.insert(key, expires_at);
        };
        let remembered = self.call(Call::PROCESSED_REMEMBER, insert).await;
        if remembered.is_err() {
            self.perform(World::record_forgotten);
        }
        remembered
    }
}

impl World {
    /// Returns `true` if a handler has recorded that it handled this message, and not only that it sent it again.
    pub(crate) fn has_record_of(&self, message: MessageId) -> bool {
        let id = message.to_string();
        let is_record = |key: &String| key.split(':').nth(1) == Some(&id) && !key.contains(RESENT_RECORD);
        self.processed.keys().any(is_record)
    }

    fn is_processed(&mut self, key: &str, now: Timestamp) -> bool {
        if self.deletes_at_once {
            let now = timestamp(self.now);
            self.processed.retain(|_, until| *until > now);
        }
        self.processed.get(key).is_some_and(|until| *until > now)
    }
}
