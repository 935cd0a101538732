//! Outbox entries that were given up, for an operator.

use contracts::{MessageId, StoreError};
use jiff::Timestamp;
use outbox::{Entry, Owner};
use rusqlite::{Connection, params};

use crate::Store;
use crate::fault::Fault;
use crate::outbox::{entry, key, owner};
use crate::value::{limit, nanos};

impl Store {
    /// Up to `limit` entries that nobody will try again by themselves, the oldest first.
    ///
    /// # Errors
    /// When the store does not answer, or holds something that is not an entry.
    pub async fn poisoned(&self, limit: usize) -> Result<Vec<(Owner, Entry)>, StoreError> {
        self.engine().read("listing poisoned entries".to_owned(), move |db| poisoned(db, limit)).await
    }

    /// Puts a poisoned entry back to work; `false` when there is none such.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn requeue(&self, owner: Owner, id: MessageId) -> Result<bool, StoreError> {
        let now = self.now();
        let doing = format!("putting entry {id} of {owner} back to work");
        self.engine().write(doing, move |db| requeue(db, owner, id, now)).await
    }
}

fn poisoned(db: &Connection, count: usize) -> Result<Vec<(Owner, Entry)>, Fault> {
    let mut statement = db.prepare_cached("SELECT * FROM outbox WHERE poisoned ORDER BY seq LIMIT ?1")?;
    let mut rows = statement.query([limit(count)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let owner = owner(&row.get::<_, String>("owner")?, &row.get::<_, String>("owner_id")?)?;
        found.push((owner, entry(row)?));
    }
    Ok(found)
}

fn requeue(db: &Connection, owner: Owner, id: MessageId, now: Timestamp) -> Result<bool, Fault> {
    let (kind, owner_id) = key(owner);
    let changed = db
        .prepare_cached(
            "UPDATE outbox SET poisoned = 0, attempts = 0, requeued = requeued + 1, claimed_until = NULL,
                next_attempt_at = ?4, ready_at = max(due_at, ?4)
             WHERE owner = ?1 AND owner_id = ?2 AND entry_id = ?3 AND poisoned",
        )?
        .execute(params![kind, owner_id, id.to_string(), nanos(now)])?;
    Ok(changed > 0)
}
