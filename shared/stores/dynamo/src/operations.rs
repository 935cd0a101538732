//! Operations on failures, and audit entries.
//!
//! The item `running` names the operation that runs. A transaction changes it together with the operation, so there is
//! never more than one.

use jiff::Timestamp;
use messages::StoreError;
use saga::failures::store::AUDIT_RETENTION;
use saga::failures::{AuditEntry, Operation, OperationId};

use crate::Dynamo;
use crate::failures::listed;
use crate::item::{self, Item, number, readable, text};
use crate::listing::{Range, Scan};
use crate::names::attributes::{CONTENT, OPERATION, REVISION};
use crate::names::{TIME, position};
use crate::transaction::{Outcome, Step};
use crate::update::{Change, Knowledge};

const RUNNING: &str = "running";
/// The partition keys of operations and audit entries in the index of time. Operators cause few of them.
const OPERATIONS: &str = "operation";
const AUDIT_ENTRIES: &str = "act";
/// The value of the lock if no operation runs.
const NONE: &str = "none";

fn key(id: OperationId) -> String {
    format!("operation#{id}")
}

fn decode(stored: &Item, doing: &str) -> Result<Operation, StoreError> {
    let operation: Operation = item::from_json(stored, CONTENT, doing)?;
    Ok(Operation { revision: readable(item::revision(stored), doing)?, ..operation })
}

fn encode(operation: &Operation, revision: u64, doing: &str) -> Result<Item, StoreError> {
    let mut item = item::new(&key(operation.id));
    item::set(&mut item, REVISION, number(revision));
    item::set(&mut item, CONTENT, item::json(operation, doing)?);
    item::set(&mut item, TIME.partition, text(OPERATIONS));
    item::set(&mut item, TIME.sort, text(position(operation.begun_at, operation.id.as_uuid())));
    item::expire(&mut item, operation.expires_at());
    Ok(item)
}

fn stamp(stored: &Item) -> String {
    item::stamp(stored).to_owned()
}

impl Dynamo {
    pub(crate) async fn read_operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        let doing = format!("reading operation {id}");
        self.get(&key(id), &doing).await?.map(|item| decode(&item, &doing)).transpose()
    }

    pub(crate) async fn latest_operations(&self, limit: usize) -> Result<Vec<Operation>, StoreError> {
        let doing = "listing operations";
        let scan = Scan { index: TIME, partitions: vec![OPERATIONS.to_owned()], descending: true };
        let read = |item: &Item| Ok(listed(item, decode(item, doing).map(Some)));
        self.items(&scan, Range::all(), limit, doing, read).await
    }

    pub(crate) async fn running_operation(&self) -> Result<Option<Operation>, StoreError> {
        let doing = "looking for an operation that is running";
        let Some(lock) = self.get(RUNNING, doing).await? else { return Ok(None) };
        match readable(item::str_of(&lock, OPERATION), doing)?.parse() {
            Ok(id) => self.read_operation(OperationId::from_uuid(id)).await,
            Err(_) => Ok(None),
        }
    }

    /// Both items are read first and written on condition of their stamps. If another writer comes first, the decision
    /// is made again.
    pub(crate) async fn advance_operation(
        &self,
        revision: u64,
        operation: &Operation,
    ) -> Result<bool, StoreError> {
        let doing = format!("storing operation {}", operation.id);
        let mut round = 0;
        loop {
            let stored = self.get(&key(operation.id), &doing).await?;
            let lock = self.get(RUNNING, &doing).await?;
            let Some(steps) = steps(revision, operation, stored.as_ref(), lock.as_ref(), &doing)? else {
                return Ok(false);
            };
            if let Outcome::Done = self.transact(&steps, &doing).await? {
                return Ok(true);
            }
            self.wait(&mut round, &doing).await?;
        }
    }

    pub(crate) async fn note_audit_entry(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let (doing, id) = ("recording an audit entry", self.host.fresh_id());
        let key = format!("act#{id}");
        self.change_item(&key, Knowledge::Absent, doing, |stored| {
            if stored.is_some() {
                return Ok(Change::Keep(()));
            }
            let mut item = item::new(&key);
            item::set(&mut item, CONTENT, item::json(entry, doing)?);
            item::set(&mut item, TIME.partition, text(AUDIT_ENTRIES));
            item::set(&mut item, TIME.sort, text(position(entry.at, id)));
            item::expire(&mut item, entry.at.checked_add(AUDIT_RETENTION).ok().or(Some(Timestamp::MAX)));
            Ok(Change::Write(item, ()))
        })
        .await
    }

    pub(crate) async fn latest_audit_entries(&self, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        let doing = "reading audit entries";
        let scan = Scan { index: TIME, partitions: vec![AUDIT_ENTRIES.to_owned()], descending: true };
        let read = |item: &Item| Ok(listed(item, item::from_json(item, CONTENT, doing).map(Some)));
        self.items(&scan, Range::all(), limit, doing, read).await
    }
}

/// Returns the writes of the next revision; `None` if the stored operation has another revision, or if another
/// operation runs while this one would.
fn steps(
    read: u64,
    operation: &Operation,
    stored: Option<&Item>,
    lock: Option<&Item>,
    doing: &str,
) -> Result<Option<Vec<Step>>, StoreError> {
    let found = readable(stored.map(item::revision).transpose(), doing)?.unwrap_or(0);
    let holder = readable(lock.map(|lock| item::str_of(lock, OPERATION)).transpose(), doing)?.unwrap_or(NONE);
    let id = operation.id.to_string();
    let runs = !operation.phase.has_ended();
    if found != read || (runs && holder != NONE && holder != id) {
        return Ok(None);
    }
    let next = encode(operation, read.saturating_add(1), doing)?;
    let mut steps = vec![Step::Replace { item: next, stamp: stored.map(stamp) }];
    if runs || holder == id {
        let mut held = item::new(RUNNING);
        item::set(&mut held, OPERATION, text(if runs { id.as_str() } else { NONE }));
        steps.push(Step::Replace { item: held, stamp: lock.map(stamp) });
    }
    Ok(Some(steps))
}
