//! Failures: dead-lettered messages and exhausted effects.
//!
//! A deleted failure leaves an item without content for a day, by whose stamp a repeated deletion is recognized.

use std::collections::BTreeMap;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use jiff::SignedDuration;
use messages::StoreError;
use saga::KeepFailures;
use saga::failures::store::MAX_GROUPS;
use saga::failures::{
    AuditEntry, CauseGroup, Causes, Change as FailureChange, Failure, FailureCursor, FailureId,
    FailureStatus, Operation, OperationId, Selection,
};
use uuid::Uuid;

use crate::Dynamo;
use crate::item::{self, Item, number, readable, text};
use crate::listing::{Range, Scan};
use crate::names::attributes::{CONTENT, DELETED, KEY, REVISION};
use crate::names::{LISTED, TIME, position, shard, shards, sortable};
use crate::store::make_all;
use crate::update::{Change, Knowledge};

/// The retention of what remains of a deleted failure.
const DELETED_RETENTION: SignedDuration = SignedDuration::from_hours(24);
/// The maximum number of failures that are read at once to count them.
const COUNTED: usize = 500;

fn key(id: FailureId) -> String {
    format!("failure#{id}")
}

fn of_status(status: FailureStatus) -> String {
    format!("failure#{status}")
}

/// The key of a cause has a bounded length, whatever the reason.
fn of_cause(status: FailureStatus, fingerprint: &str) -> String {
    format!("failure#{status}#{}", Uuid::new_v5(&Uuid::nil(), fingerprint.as_bytes()))
}

fn encode(failure: &Failure, revision: u64, doing: &str) -> Result<Item, StoreError> {
    let (id, status) = (failure.id.as_uuid(), failure.state.standing());
    let mut item = item::new(&key(failure.id));
    let at = position(failure.last_seen, id);
    for (name, value) in [
        (REVISION, number(revision)),
        (CONTENT, item::json(failure, doing)?),
        (TIME.partition, text(shard(&of_status(status), id))),
        (TIME.sort, text(&at)),
        (LISTED.partition, text(shard(&of_cause(status, &failure.fingerprint), id))),
        (LISTED.sort, text(at)),
    ] {
        item::set(&mut item, name, value);
    }
    item::expire(&mut item, failure.expires_at);
    Ok(item)
}

fn decode(stored: &Item, doing: &str) -> Result<Option<Failure>, StoreError> {
    if item::is_deleted(stored) {
        return Ok(None);
    }
    let failure: Failure = item::from_json(stored, CONTENT, doing)?;
    Ok(Some(Failure { revision: readable(item::revision(stored), doing)?, ..failure }))
}

/// Returns a value of a list. An unreadable item is logged and skipped, so that it does not hide the others.
pub(crate) fn listed<T>(stored: &Item, read: Result<Option<T>, StoreError>) -> Option<T> {
    read.unwrap_or_else(|error| {
        let (key, error) = (item::str_of(stored, KEY).unwrap_or_default(), error.chain());
        tracing::error!(key, error, "a stored value cannot be read and is not listed");
        None
    })
}

impl Dynamo {
    async fn change_failure(&self, change: &FailureChange) -> Result<bool, StoreError> {
        let (doing, key) = (format!("changing failure {}", change.id), key(change.id));
        let known = if change.revision == 0 { Knowledge::Absent } else { Knowledge::Nothing };
        self.change_item(&key, known, &doing, |stored| {
            let stored = stored.filter(|item| !item::is_deleted(item));
            let found = readable(stored.map(item::revision).transpose(), &doing)?.unwrap_or(0);
            if found != change.revision || (found == 0 && change.next.is_none()) {
                return Ok(Change::Keep(false));
            }
            let next = match &change.next {
                Some(failure) => encode(failure, change.revision.saturating_add(1), &doing)?,
                None => {
                    let mut rest = item::new(&key);
                    item::set(&mut rest, DELETED, AttributeValue::Bool(true));
                    item::expire(&mut rest, self.host.now().checked_add(DELETED_RETENTION).ok());
                    rest
                }
            };
            Ok(Change::Write(next, true))
        })
        .await
    }

    async fn select_by_ids(&self, selection: &Selection, doing: &str) -> Result<Vec<Failure>, StoreError> {
        let items = self.get_many(selection.ids.iter().map(|id| key(*id)), doing).await?;
        let mut found: Vec<Failure> =
            items.values().filter_map(|item| listed(item, decode(item, doing))).collect();
        found.retain(|failure| selection.has(failure));
        found.sort_by_key(|failure| std::cmp::Reverse((failure.last_seen, failure.id)));
        Ok(found)
    }
}

#[async_trait]
impl KeepFailures for Dynamo {
    async fn failures(&self, ids: &[FailureId]) -> Result<Vec<Option<Failure>>, StoreError> {
        let doing = "reading failures";
        let found = self.get_many(ids.iter().map(|id| key(*id)), doing).await?;
        let read = |id: &FailureId| found.get(&key(*id)).map_or(Ok(None), |item| decode(item, doing));
        ids.iter().map(read).collect()
    }

    async fn change(&self, changes: &[FailureChange]) -> Result<Vec<bool>, StoreError> {
        make_all(changes.iter().map(|change| self.change_failure(change)).collect()).await
    }

    async fn select(
        &self,
        selection: &Selection,
        after: Option<FailureCursor>,
        limit: usize,
    ) -> Result<Vec<Failure>, StoreError> {
        let doing = "listing failures";
        if !selection.ids.is_empty() {
            let mut found = self.select_by_ids(selection, doing).await?;
            found.retain(|failure| {
                after.is_none_or(|after| (failure.last_seen, failure.id) < (after.last_seen, after.id))
            });
            found.truncate(limit);
            return Ok(found);
        }
        let scan = match &selection.fingerprint {
            None => {
                Scan { index: TIME, partitions: shards(&of_status(selection.standing)), descending: true }
            }
            Some(cause) => Scan {
                index: LISTED,
                partitions: shards(&of_cause(selection.standing, cause)),
                descending: true,
            },
        };
        // Sorts after every position at this time.
        let until = selection.until.map(|until| format!("{}~", sortable(until)));
        let range = until.map_or_else(Range::all, |until| Range::all().until(until));
        let range =
            after.map_or(range.clone(), |after| range.before(&position(after.last_seen, after.id.as_uuid())));
        let read =
            |item: &Item| Ok(listed(item, decode(item, doing)).filter(|failure| selection.has(failure)));
        self.items(&scan, range, limit, doing, read).await
    }

    async fn causes(&self, selection: &Selection) -> Result<Causes, StoreError> {
        let (mut groups, mut causes, mut after) =
            (BTreeMap::<String, CauseGroup>::new(), Causes::default(), None);
        loop {
            let found = self.select(selection, after, COUNTED).await?;
            after = found.last().map(Failure::place);
            // The last seen come first.
            causes.last_seen = causes.last_seen.or(found.first().map(|failure| failure.last_seen));
            causes.count += found.len() as u64;
            let is_last = found.len() < COUNTED;
            found.into_iter().for_each(|failure| count(&mut groups, failure));
            if is_last {
                break;
            }
        }
        causes.groups = groups.into_values().collect();
        causes
            .groups
            .sort_by(|one, other| other.count.cmp(&one.count).then(one.fingerprint.cmp(&other.fingerprint)));
        causes.groups.truncate(MAX_GROUPS);
        Ok(causes)
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.read_operation(id).await
    }

    async fn operations(&self, limit: usize) -> Result<Vec<Operation>, StoreError> {
        self.latest_operations(limit).await
    }

    async fn running(&self) -> Result<Option<Operation>, StoreError> {
        self.running_operation().await
    }

    async fn advance(&self, revision: u64, operation: &Operation) -> Result<bool, StoreError> {
        self.advance_operation(revision, operation).await
    }

    async fn note(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        self.note_audit_entry(entry).await
    }

    async fn audit_entries(&self, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        self.latest_audit_entries(limit).await
    }
}

fn count(groups: &mut BTreeMap<String, CauseGroup>, failure: Failure) {
    let group = groups.entry(failure.fingerprint.clone()).or_insert_with(|| CauseGroup {
        fingerprint: failure.fingerprint,
        reason: failure.reason,
        messages: std::collections::BTreeSet::new(),
        count: 0,
        first_seen: failure.first_seen,
        last_seen: failure.last_seen,
    });
    group.count += 1;
    group.messages.insert(failure.message);
    group.first_seen = group.first_seen.min(failure.first_seen);
    group.last_seen = group.last_seen.max(failure.last_seen);
}
