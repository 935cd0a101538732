//! The outboxes of sagas and of committed sessions.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use messages::{PartitionKey, SessionId, StoreError};
use outbox::{
    ClaimedEntries, EntryResult, InspectOutbox, OutboxRecord, Owner, Settlement, SweepOutbox, Unreadable,
    UnreadableAction,
};
use uuid::Uuid;

use crate::Dynamo;
use crate::entries::{Entries, EntryFilter};
use crate::item::{self, Item, readable};
use crate::listing::{Range, Scan};
use crate::names::attributes::KEY;
use crate::names::{POISONED, READY, shards, sortable};
use crate::store::{CONCURRENT, make_all};
use crate::update::{Change, Knowledge};

pub(crate) const SAGA: &str = "saga";
pub(crate) const SESSION: &str = "session";

/// The outboxes of all records of one kind.
#[derive(Clone)]
pub struct Outbox {
    store: Dynamo,
    kind: &'static str,
}

impl Dynamo {
    /// Returns the outboxes of all sagas.
    pub fn saga_outbox(&self) -> Outbox {
        Outbox { store: self.clone(), kind: SAGA }
    }

    /// Returns the outboxes of all committed sessions.
    pub fn session_outbox(&self) -> Outbox {
        Outbox { store: self.clone(), kind: SESSION }
    }
}

fn parts(owner: Owner) -> (&'static str, Uuid) {
    match owner {
        Owner::Saga(id) => (SAGA, id.as_uuid()),
        Owner::Session(id) => (SESSION, id.as_uuid()),
    }
}

/// Returns the key of a record with an outbox.
pub(crate) fn key(owner: Owner) -> String {
    let (kind, id) = parts(owner);
    format!("{kind}#{id}")
}

fn owner(key: &str) -> Result<Owner, Unreadable> {
    let (kind, id) = key.split_once('#').unwrap_or_default();
    match (kind, id.parse()) {
        (SAGA, Ok(id)) => Ok(Owner::Saga(PartitionKey::from_uuid(id))),
        (SESSION, Ok(id)) => Ok(Owner::Session(SessionId::from_uuid(id))),
        _ => Err(Unreadable {
            place: key.to_owned(),
            why: "its key is not that of a saga or session".to_owned(),
        }),
    }
}

/// The location does not belong to this outbox.
#[derive(Debug, thiserror::Error)]
#[error("\"{0}\" is not the location of an entry of this outbox")]
struct OtherPlace(String);

impl Dynamo {
    /// Changes the outbox of a record. `change` returns `false` if nothing is to be written.
    async fn change_entries<T: Send>(
        &self,
        owner: Owner,
        doing: &str,
        change: impl Fn(&mut Entries) -> Result<(bool, T), StoreError> + Send + Sync,
    ) -> Result<T, StoreError> {
        let (kind, id) = parts(owner);
        self.change_item(&key(owner), Knowledge::Nothing, doing, |stored| {
            let mut entries = readable(Entries::of(stored), doing)?;
            let (is_changed, outcome) = change(&mut entries)?;
            let Some(mut item) = stored.cloned().filter(|_| is_changed) else {
                return Ok(Change::Keep(outcome));
            };
            readable(entries.store(&mut item, kind, id), doing)?;
            Ok(Change::Write(item, outcome))
        })
        .await
    }

    /// Repeats a claim whose write failed, because the write may have taken effect. No other worker would perform the
    /// entries before the end of the claim.
    async fn claim_one(&self, owner: Owner, now: Timestamp, until: Timestamp) -> ClaimedEntries {
        let (doing, key) = (format!("claiming the outbox of {owner}"), key(owner));
        let may_be_claimed = AtomicBool::new(false);
        let claim = || {
            self.change_entries(owner, &doing, |entries| {
                let is_changed = entries.claim(now, until, &doing)?;
                may_be_claimed.fetch_or(is_changed, Ordering::Relaxed);
                Ok((is_changed, entries.claimed_until(until)))
            })
        };
        let claimed = match claim().await {
            Err(error) if error.is_retryable() && may_be_claimed.load(Ordering::Relaxed) => claim().await,
            claimed => claimed,
        };
        Ok(claimed?.iter().map(|entry| entry.read(&key)).collect())
    }

    pub(crate) async fn settle_one(
        &self,
        owner: Owner,
        settlements: &[Settlement],
    ) -> Result<(), StoreError> {
        if settlements.is_empty() {
            return Ok(());
        }
        let doing = format!("settling the outbox of {owner}");
        self.change_entries(owner, &doing, |entries| Ok((entries.settle(settlements, &doing)?, ()))).await
    }
}

#[async_trait]
impl SweepOutbox for Outbox {
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Result<Owner, Unreadable>>, StoreError> {
        let scan = Scan { index: READY, partitions: shards(self.kind), descending: false };
        let range = Range::all().until(sortable(now));
        let doing = format!("looking for due entries of every {}", self.kind);
        // The claim reads the records themselves.
        let keys = self.store.keys(&scan, &range, limit, &doing).await?;
        Ok(keys.into_iter().map(|found| owner(&found.key)).collect())
    }

    async fn claim_due(
        &self,
        owners: &[Owner],
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<ClaimedEntries>, StoreError> {
        let claims: Vec<_> = owners.iter().map(|owner| self.store.claim_one(*owner, now, until)).collect();
        Ok(stream::iter(claims).buffered(CONCURRENT).collect().await)
    }

    async fn settle(&self, settlements: &[(Owner, Vec<Settlement>)]) -> Result<(), StoreError> {
        let settled: Vec<_> =
            settlements.iter().map(|(owner, some)| self.store.settle_one(*owner, some)).collect();
        make_all(settled).await.map(drop)
    }

    async fn resolve_unreadable(&self, place: &str, treatment: &UnreadableAction) -> Result<(), StoreError> {
        let doing = format!("resolving unreadable entry {place}");
        let split = place.rsplit_once('#').and_then(|(key, id)| Some((owner(key).ok()?, id)));
        let meant = split.filter(|(owner, _)| parts(*owner).0 == self.kind);
        let Some((owner, id)) = meant else {
            return Err(StoreError::unusable(doing, OtherPlace(place.to_owned())));
        };
        self.store.change_entries(owner, &doing, |entries| Ok((entries.resolve(id, treatment), ()))).await
    }
}

impl Outbox {
    /// Reads the records with these keys, and returns those with entries, in the order of their keys.
    async fn records(
        &self,
        keys: &BTreeSet<String>,
        filter: EntryFilter,
        doing: &str,
    ) -> Result<Vec<OutboxRecord>, StoreError> {
        let mut found = self.store.get_many(keys.iter().cloned(), doing).await?;
        let records = keys.iter().filter_map(|key| found.remove(key)).map(|item| shown(&item, filter));
        Ok(records.filter(|record| !record.entries.is_empty()).collect())
    }

    /// Lists records in the order of their keys. The page is never empty while further keys exist.
    async fn listed(
        &self,
        after: Option<&str>,
        limit: usize,
        filter: EntryFilter,
        doing: &str,
    ) -> Result<Vec<OutboxRecord>, StoreError> {
        let mut after = after.unwrap_or_default().to_owned();
        loop {
            let mut keys = self.exhausted_keys(&after, limit, doing).await?;
            if filter == EntryFilter::All {
                keys.extend(self.ready_keys(&after, limit, doing).await?);
            }
            let keys: BTreeSet<String> = keys.into_iter().take(limit).collect();
            let Some(last) = keys.last().cloned() else { return Ok(Vec::new()) };
            let records = self.records(&keys, filter, doing).await?;
            if !records.is_empty() {
                return Ok(records);
            }
            after = last;
        }
    }

    async fn exhausted_keys(
        &self,
        after: &str,
        limit: usize,
        doing: &str,
    ) -> Result<BTreeSet<String>, StoreError> {
        let scan = Scan { index: POISONED, partitions: shards(self.kind), descending: false };
        let range = Range::all().after(after);
        let keys = self.store.keys(&scan, &range, limit, doing).await?;
        Ok(keys.into_iter().map(|found| found.key).collect())
    }

    /// Returns the first keys of the records in the index of ready entries. It is in the order of time, so it is read as
    /// a whole. Only operators list all outboxes, and no more than `limit` keys are held.
    async fn ready_keys(
        &self,
        after: &str,
        limit: usize,
        doing: &str,
    ) -> Result<BTreeSet<String>, StoreError> {
        let mut first = BTreeSet::new();
        for partition in shards(self.kind) {
            let scan = Scan { index: READY, partitions: vec![partition], descending: false };
            self.store
                .each_key(&scan, doing, |key| {
                    if key.as_str() > after {
                        first.insert(key);
                    }
                    if first.len() > limit {
                        first.pop_last();
                    }
                })
                .await?;
        }
        Ok(first)
    }
}

fn shown(item: &Item, filter: EntryFilter) -> OutboxRecord {
    let id = item::str_of(item, KEY).unwrap_or_default().to_owned();
    let owner = owner(&id);
    let entries = match (&owner, Entries::of(Some(item))) {
        (Ok(_), Ok(entries)) => entries.shown(item, filter),
        (Ok(_), Err(why)) => vec![Err(Unreadable { place: id.clone(), why: why.to_string() })],
        (Err(unreadable), _) => vec![Err(unreadable.clone())],
    };
    OutboxRecord { id, owner: owner.ok(), entries }
}

#[async_trait]
impl InspectOutbox for Outbox {
    async fn pending(&self, after: Option<&str>, limit: usize) -> Result<Vec<OutboxRecord>, StoreError> {
        self.listed(after, limit, EntryFilter::All, &format!("listing the outboxes of every {}", self.kind))
            .await
    }

    async fn poisoned(&self, after: Option<&str>, limit: usize) -> Result<Vec<OutboxRecord>, StoreError> {
        self.listed(
            after,
            limit,
            EntryFilter::Exhausted,
            &format!("listing exhausted entries of every {}", self.kind),
        )
        .await
    }

    async fn entries_of(&self, owner: Owner) -> Result<Vec<EntryResult>, StoreError> {
        let (doing, keys) = (format!("reading the outbox of {owner}"), BTreeSet::from([key(owner)]));
        let records = self.records(&keys, EntryFilter::All, &doing).await?;
        Ok(records.into_iter().flat_map(|record| record.entries).collect())
    }

    /// DynamoDB has no query plans: a query names its index.
    async fn plan(&self) -> Result<String, StoreError> {
        Ok(format!("a query of the index {} for each of {} keys", READY.name, shards(self.kind).len()))
    }
}
