//! Keys of processed messages.

use async_trait::async_trait;
use dedup::ProcessedMessages;
use jiff::Timestamp;
use messages::StoreError;
use rusqlite::{Connection, params};

use crate::Store;
use crate::intercept::Call;
use crate::value::nanos;

/// Deletes the expired keys that no message in a queue may repeat. The queues in this database keep their messages until
/// they are handled.
pub(crate) const PURGE: &str = "DELETE FROM processed WHERE expires_at <= ?1
    AND expires_at < (SELECT coalesce(min(sent_at), 9223372036854775807) FROM message)";

#[async_trait]
impl ProcessedMessages for Store {
    async fn is_remembered(&self, key: &str, now: Timestamp) -> Result<bool, StoreError> {
        let doing = format!("looking for the processed message {key}");
        let key = key.to_owned();
        let work = move |db: &Connection| {
            // A copy of the message was sent before the key expired.
            let mut statement = db.prepare_cached(
                "SELECT 1 FROM processed WHERE key = ?1
                 AND (expires_at > ?2 OR expires_at >= (SELECT min(sent_at) FROM message))",
            )?;
            Ok(statement.exists(params![key, nanos(now)])?)
        };
        self.look(Call::ProcessedLook, doing, work).await
    }

    async fn remember(&self, key: &str, expires_at: Timestamp) -> Result<(), StoreError> {
        let doing = format!("remembering the processed message {key}");
        let key = key.to_owned();
        let work = move |db: &Connection| {
            db.prepare_cached("INSERT OR REPLACE INTO processed VALUES (?1, ?2)")?
                .execute(params![key, nanos(expires_at)])?;
            Ok(())
        };
        self.change(Call::ProcessedRemember, doing, work).await
    }
}
