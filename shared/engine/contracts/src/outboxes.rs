//! The calls of a sweep for one record with readable entries.

use jiff::Timestamp;
use messages::StoreError;
use outbox::{Entry, Owner, Settlement, SweepOutbox, Unreadable};

/// Returns `true` if a record is due.
pub async fn is_due<O: SweepOutbox + ?Sized>(
    outbox: &O,
    owner: Owner,
    now: Timestamp,
    limit: usize,
) -> Result<bool, StoreError> {
    Ok(outbox.due(now, limit).await?.contains(&Ok(owner)))
}

/// Claims the ready entries of a record.
pub async fn claim<O: SweepOutbox + ?Sized>(
    outbox: &O,
    owner: Owner,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<Entry>, StoreError> {
    let claimed = outbox.claim_due(&[owner], now, until).await?;
    assert_eq!(claimed.len(), 1, "one answer for one record");
    let unreadable = |Unreadable { place, why }| StoreError::unusable(format!("reading {place}"), why);
    let entries = claimed.into_iter().flat_map(|claimed| match claimed {
        Ok(stored) => stored.into_iter().map(|stored| stored.map_err(unreadable)).collect(),
        Err(error) => vec![Err(error)],
    });
    entries.collect()
}

/// Settles entries of one record.
pub async fn settle<O: SweepOutbox + ?Sized>(
    outbox: &O,
    owner: Owner,
    settlements: &[Settlement],
) -> Result<(), StoreError> {
    outbox.settle(&[(owner, settlements.to_vec())]).await
}
