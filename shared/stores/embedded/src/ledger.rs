//! The partition ledger: each item is loaded, changed by [`dedup::ledger::Item`] and stored in one write.

use async_trait::async_trait;
use dedup::ledger::{ITEM_LIFETIME, Item};
use dedup::{Admission, CheckTokens, Claim, ClaimPartition, GrantTokens, Release};
use jiff::Timestamp;
use messages::{PartitionKey, StoreError, Token};
use rusqlite::{Connection, OptionalExtension, params};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::value::{from_json, json, nanos};

#[async_trait]
impl ClaimPartition for Store {
    async fn claim(&self, claim: &Claim) -> Result<Admission, StoreError> {
        let claim = claim.clone();
        let doing = format!("claiming partition {}", claim.partition);
        let work = move |db: &Connection| {
            let (answer, next) = Item::claim(load_awaited(db, claim.partition, claim.now)?, &claim);
            if let Some(item) = next {
                save(db, claim.partition, &item)?;
            }
            Ok(answer)
        };
        self.change_in_passing(Call::LedgerClaim, doing, work).await
    }

    async fn release(&self, release: &Release) -> Result<bool, StoreError> {
        let release = release.clone();
        let doing = format!("releasing partition {}", release.partition);
        let work = move |db: &Connection| match load(db, release.partition)?
            .and_then(|item| item.release(&release))
        {
            Some(item) => save(db, release.partition, &item).map(|()| true),
            None => Ok(false),
        };
        self.change_in_passing(Call::LedgerRelease, doing, work).await
    }
}

#[async_trait]
impl GrantTokens for Store {
    async fn grant(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let tokens = tokens.to_vec();
        let doing = format!("granting tokens to partition {partition}");
        let work = move |db: &Connection| {
            let item = Item::with_tokens(load_awaited(db, partition, now)?, &tokens, now);
            save(db, partition, &item)
        };
        self.change(Call::LedgerGrant, doing, work).await
    }

    async fn begin(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let tokens = tokens.to_vec();
        let doing = format!("beginning partition {partition}");
        let work = move |db: &Connection| {
            let (are_there, begun) = Item::create_if_absent(load_awaited(db, partition, now)?, &tokens, now);
            if let Some(item) = begun {
                save(db, partition, &item)?;
            }
            Ok(are_there)
        };
        self.change(Call::LedgerBegin, doing, work).await
    }

    async fn revoke(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let tokens = tokens.to_vec();
        let doing = format!("revoking tokens of partition {partition}");
        let work = move |db: &Connection| match Item::without_tokens(
            load_awaited(db, partition, now)?,
            &tokens,
            now,
        ) {
            Some(item) => save(db, partition, &item),
            None => Ok(()),
        };
        self.change(Call::LedgerRevoke, doing, work).await
    }
}

#[async_trait]
impl CheckTokens for Store {
    async fn is_granted(
        &self,
        partition: PartitionKey,
        token: &Token,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let token = token.clone();
        let doing = format!("looking for a token of partition {partition}");
        let work = move |db: &Connection| {
            Ok(load_awaited(db, partition, now)?.is_some_and(|item| item.is_granted(&token, now)))
        };
        self.look(Call::LedgerCheck, doing, work).await
    }
}

fn load(db: &Connection, partition: PartitionKey) -> Result<Option<Item>, Fault> {
    let stored = db
        .prepare_cached("SELECT item FROM ledger WHERE partition_id = ?1")?
        .query_row([partition.to_string()], |row| row.get::<_, String>(0))
        .optional()?;
    stored.as_deref().map(from_json).transpose()
}

/// Loads an item. A stored message or effect of its partition extends it.
///
/// The lifetime of an item exceeds the retention of SQS, so no message arrives after it. The queues in this database keep
/// their messages until they are handled, also while no program runs.
fn load_awaited(db: &Connection, partition: PartitionKey, now: Timestamp) -> Result<Option<Item>, Fault> {
    let Some(mut item) = load(db, partition)? else { return Ok(None) };
    if item.expires_at <= now && is_awaited(db, partition)? {
        item.expires_at = now.checked_add(ITEM_LIFETIME).unwrap_or(Timestamp::MAX);
    }
    Ok(Some(item))
}

fn is_awaited(db: &Connection, partition: PartitionKey) -> Result<bool, Fault> {
    Ok(db.prepare_cached(IS_AWAITED)?.query_row([partition.to_string()], |row| row.get(0))?)
}

/// The condition that a message or effect of a partition is stored. A session's effect contains the partition of its
/// message.
macro_rules! awaited {
    () => {
        "(partition_id IN (SELECT search_id FROM message WHERE search_id IS NOT NULL)
          OR partition_id IN (SELECT owner_id FROM outbox WHERE owner = 'saga')
          OR EXISTS (SELECT 1 FROM outbox WHERE owner = 'session' AND instr(payload, partition_id)))"
    };
}
const IS_AWAITED: &str = concat!("SELECT ", awaited!(), " FROM ledger WHERE partition_id = ?1");
/// Deletes the expired items, except those of partitions with a stored message or effect.
pub(crate) const PURGE: &str = concat!("DELETE FROM ledger WHERE expires_at <= ?1 AND NOT ", awaited!());

fn save(db: &Connection, partition: PartitionKey, item: &Item) -> Result<(), Fault> {
    db.prepare_cached("INSERT OR REPLACE INTO ledger VALUES (?1, ?2, ?3)")?.execute(params![
        partition.to_string(),
        json(item)?,
        nanos(item.expires_at)
    ])?;
    Ok(())
}
