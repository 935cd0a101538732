//! The partition ledger: each item is loaded, changed by [`dedup::ledger::Item`] and stored in one write.

use async_trait::async_trait;
use dedup::ledger::Item;
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
            let (answer, next) = Item::claim(load(db, claim.partition)?, &claim);
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
            let item = Item::with_tokens(load(db, partition)?, &tokens, now);
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
            let (are_there, begun) = Item::create_if_absent(load(db, partition)?, &tokens, now);
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
        let work = move |db: &Connection| match Item::without_tokens(load(db, partition)?, &tokens, now) {
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
        let work =
            move |db: &Connection| Ok(load(db, partition)?.is_some_and(|item| item.is_granted(&token, now)));
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

fn save(db: &Connection, partition: PartitionKey, item: &Item) -> Result<(), Fault> {
    db.prepare_cached("INSERT OR REPLACE INTO ledger VALUES (?1, ?2, ?3)")?.execute(params![
        partition.to_string(),
        json(item)?,
        nanos(item.expires_at)
    ])?;
    Ok(())
}
