//! Failures, operations on them, and the audit log.
//!
//! Each document contains the value in one field, in its JSON form, and separate fields for queries.

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use messages::StoreError;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use saga::KeepFailures;
use saga::failures::store::{AUDIT_RETENTION, MAX_GROUPS};
use saga::failures::{
    AuditEntry, CauseGroup, Causes, Change, Failure, FailureCursor, FailureId, Operation, OperationId,
    Selection,
};
use serde::de::DeserializeOwned;

use crate::Mongo;
use crate::driver_error::DUPLICATE_KEY;
use crate::error::CallError;
use crate::names::collections;
use crate::names::failure::{AT, CAUSE, EXPIRES_AT, LAST_SEEN, RUNNING, STATUS};
use crate::value::{
    Key, count_field, date, from_bson, int, int_field, nanos, serde_field, timestamp, to_bson,
};

const ID: &str = "_id";
const REVISION: &str = "Revision";
const PLACE: &str = "Place";
const PARTITION: &str = "Partition";
const MESSAGE: &str = "Message";
const REASON: &str = "Reason";
const FIRST_SEEN: &str = "FirstSeen";
const BODY: &str = "Failure";
const OPERATION: &str = "Operation";
const ACT: &str = "Act";

/// The maximum number of failures that are changed at the same time.
const CONCURRENT_CHANGES: usize = 16;

#[async_trait]
impl KeepFailures for Mongo {
    async fn failures(&self, ids: &[FailureId]) -> Result<Vec<Option<Failure>>, StoreError> {
        self.call("reading failures".to_owned(), failures(self, ids)).await
    }

    async fn change(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError> {
        // A step of a retry changes up to a thousand failures, and each change waits for a majority of the servers.
        let changes: Vec<_> = changes.iter().map(|one| change(self, one)).collect();
        let made = stream::iter(changes).buffered(CONCURRENT_CHANGES);
        self.call("changing failures".to_owned(), made.try_collect()).await
    }

    async fn select(
        &self,
        selection: &Selection,
        after: Option<FailureCursor>,
        limit: usize,
    ) -> Result<Vec<Failure>, StoreError> {
        self.call("listing failures".to_owned(), select(self, selection, after, limit)).await
    }

    async fn causes(&self, selection: &Selection) -> Result<Causes, StoreError> {
        self.call("counting failures by cause".to_owned(), causes(self, selection)).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        self.call(format!("reading operation {id}"), operation(self, doc! { ID: id.key() })).await
    }

    async fn operations(&self, limit: usize) -> Result<Vec<Operation>, StoreError> {
        let work = listed(self, collections::OPERATION, doc! {}, AT, limit, read_operation);
        self.call("listing operations".to_owned(), work).await
    }

    async fn running(&self) -> Result<Option<Operation>, StoreError> {
        self.call("looking for a running operation".to_owned(), operation(self, doc! { RUNNING: true })).await
    }

    async fn advance(&self, revision: u64, operation: &Operation) -> Result<bool, StoreError> {
        self.call(format!("storing operation {}", operation.id), advance(self, revision, operation)).await
    }

    async fn note(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let work = async {
            let expires_at = entry.at.checked_add(AUDIT_RETENTION).unwrap_or(jiff::Timestamp::MAX);
            let noted = doc! { AT: nanos(entry.at), EXPIRES_AT: date(expires_at), ACT: to_bson(entry)? };
            self.collection(collections::ACT).await?.insert_one(noted).await?;
            Ok(())
        };
        self.call("storing an audit entry".to_owned(), work).await
    }

    async fn audit_entries(&self, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        let read = |stored: &Document| read(collections::ACT, "an audit entry", stored, ACT);
        let work = listed(self, collections::ACT, doc! {}, AT, limit, read);
        self.call("reading the audit log".to_owned(), work).await
    }
}

fn read<T: DeserializeOwned>(
    collection: &'static str,
    what: &'static str,
    stored: &Document,
    field: &str,
) -> Result<T, CallError> {
    serde_field(stored, field).map_err(|why| CallError::unreadable(collection, stored.get(ID), what, &why))
}

fn revision(collection: &'static str, what: &'static str, stored: &Document) -> Result<u64, CallError> {
    count_field(stored, REVISION).map_err(|why| CallError::unreadable(collection, stored.get(ID), what, &why))
}

fn decode(stored: &Document) -> Result<Failure, CallError> {
    let (collection, what) = (collections::FAILURE, "a failure");
    let failure: Failure = read(collection, what, stored, BODY)?;
    Ok(Failure { revision: revision(collection, what, stored)?, ..failure })
}

async fn failures(mongo: &Mongo, ids: &[FailureId]) -> Result<Vec<Option<Failure>>, CallError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let wanted: Vec<Bson> = ids.iter().map(Key::key).collect();
    let found = mongo.collection(collections::FAILURE).await?.find(doc! { ID: { "$in": wanted } }).await?;
    let found: Vec<Document> = found.try_collect().await?;
    let found = found.iter().map(decode).collect::<Result<Vec<_>, _>>()?;
    Ok(ids.iter().map(|id| found.iter().find(|failure| failure.id == *id).cloned()).collect())
}

fn fields(next: &Failure) -> Result<Document, CallError> {
    let mut fields = doc! {
        STATUS: next.state.standing().name(),
        CAUSE: &next.fingerprint,
        PLACE: next.origin.place(),
        MESSAGE: &next.message,
        REASON: &next.reason,
        FIRST_SEEN: nanos(next.first_seen),
        LAST_SEEN: nanos(next.last_seen),
        BODY: to_bson(next)?,
    };
    fields.extend(next.partition.map(|partition| (PARTITION.to_owned(), partition.key())));
    fields.extend(next.expires_at.map(|at| (EXPIRES_AT.to_owned(), date(at).into())));
    Ok(fields)
}

/// Makes a change if the failure still has the revision that was read. A change that is repeated after a lost reply
/// therefore returns `false`.
async fn change(mongo: &Mongo, Change { id, revision, next }: &Change) -> Result<bool, CallError> {
    let failures = mongo.collection(collections::FAILURE).await?;
    let as_read = doc! { ID: id.key(), REVISION: int(*revision) };
    let Some(next) = next else {
        return Ok(failures.delete_one(as_read).await?.deleted_count == 1);
    };
    let mut stored = fields(next)?;
    stored.insert(REVISION, int(revision + 1));
    stored.insert(ID, id.key());
    if *revision == 0 {
        return inserted(failures.insert_one(stored).await);
    }
    Ok(failures.replace_one(as_read, stored).await?.matched_count == 1)
}

/// Returns whether a document was inserted. `false` means that its id was taken.
fn inserted<T>(answer: Result<T, Error>) -> Result<bool, CallError> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if is_taken(&error) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn is_taken(error: &Error) -> bool {
    matches!(error.kind.as_ref(), ErrorKind::Write(WriteFailure::WriteError(write)) if write.code == DUPLICATE_KEY)
}

fn filter(selection: &Selection) -> Document {
    let mut filter = doc! { STATUS: selection.standing.name() };
    filter.extend(selection.fingerprint.as_ref().map(|cause| (CAUSE.to_owned(), cause.into())));
    filter.extend(selection.place.as_ref().map(|place| (PLACE.to_owned(), place.into())));
    filter.extend(selection.partition.map(|partition| (PARTITION.to_owned(), partition.key())));
    filter.extend(
        selection.until.map(|until| (LAST_SEEN.to_owned(), Bson::Document(doc! { "$lte": nanos(until) }))),
    );
    if !selection.ids.is_empty() {
        let ids: Vec<Bson> = selection.ids.iter().map(Key::key).collect();
        filter.insert(ID, doc! { "$in": ids });
    }
    filter
}

async fn select(
    mongo: &Mongo,
    selection: &Selection,
    after: Option<FailureCursor>,
    limit: usize,
) -> Result<Vec<Failure>, CallError> {
    let mut filter = filter(selection);
    if let Some(FailureCursor { last_seen, id }) = after {
        let last_seen = nanos(last_seen);
        let same = doc! { LAST_SEEN: last_seen, ID: { "$lt": id.key() } };
        filter.insert("$or", vec![doc! { LAST_SEEN: { "$lt": last_seen } }, same]);
    }
    listed(mongo, collections::FAILURE, filter, LAST_SEEN, limit, decode).await
}

/// Returns the latest `limit` values that can be read, by the time in a field. Damaged documents do not count towards
/// the limit, because a short page would look like the last one.
async fn listed<T>(
    mongo: &Mongo,
    collection: &'static str,
    filter: Document,
    time: &'static str,
    limit: usize,
    read: impl Fn(&Document) -> Result<T, CallError>,
) -> Result<Vec<T>, CallError> {
    if limit == 0 {
        // MongoDB interprets 0 as no limit.
        return Ok(Vec::new());
    }
    let documents = mongo.collection(collection).await?;
    let mut wanted = limit;
    loop {
        let order = doc! { time: -1, ID: -1 };
        let found = documents.find(filter.clone()).sort(order).limit(int(wanted)).await?;
        let found: Vec<Document> = found.try_collect().await?;
        let is_last = found.len() < wanted;
        let (mut readable, mut damaged) = (Vec::with_capacity(found.len()), Vec::new());
        for stored in &found {
            match read(stored) {
                Ok(value) => readable.push(value),
                Err(error) => damaged.push(error),
            }
        }
        if is_last || readable.len() >= limit {
            readable.truncate(limit);
            for error in damaged {
                let error = error.of_system(mongo.system()).to_string();
                tracing::error!(error, "a stored value cannot be read and is not listed");
            }
            return Ok(readable);
        }
        wanted = limit.saturating_add(damaged.len());
    }
}

async fn causes(mongo: &Mongo, selection: &Selection) -> Result<Causes, CallError> {
    let group = doc! {
        ID: format!("${CAUSE}"),
        "count": { "$sum": 1_i64 },
        "first": { "$min": format!("${FIRST_SEEN}") },
        "last": { "$max": format!("${LAST_SEEN}") },
        "reason": { "$max": format!("${REASON}") },
        "messages": { "$addToSet": format!("${MESSAGE}") },
    };
    let all = doc! { ID: null, "count": { "$sum": "$count" }, "last": { "$max": "$last" } };
    let failures = mongo.collection(collections::FAILURE).await?;
    let found = failures.aggregate([
        doc! { "$match": filter(selection) },
        doc! { "$group": group },
        doc! { "$facet": {
            "groups": [doc! { "$sort": { "count": -1, ID: 1 } }, doc! { "$limit": int(MAX_GROUPS) }],
            "all": [doc! { "$group": all }],
        } },
    ]);
    let found: Vec<Document> = found.await?.try_collect().await?;
    found.first().map_or_else(|| Ok(Causes::default()), read_causes).map_err(CallError::InvalidReply)
}

fn read_causes(found: &Document) -> Result<Causes, String> {
    let at = |stored: &Document, field| int_field(stored, field).map(timestamp);
    let part =
        |name| -> Result<Vec<Document>, String> { from_bson(found.get(name).cloned().unwrap_or(Bson::Null)) };
    let group = |stored: &Document| -> Result<CauseGroup, String> {
        Ok(CauseGroup {
            fingerprint: serde_field(stored, ID)?,
            reason: serde_field(stored, "reason")?,
            messages: from_bson(stored.get("messages").cloned().unwrap_or(Bson::Null))?,
            count: count_field(stored, "count")?,
            first_seen: at(stored, "first")?,
            last_seen: at(stored, "last")?,
        })
    };
    let groups = part("groups")?.iter().map(group).collect::<Result<_, _>>()?;
    let all = part("all")?;
    let Some(all) = all.first() else { return Ok(Causes::default()) };
    Ok(Causes { groups, count: count_field(all, "count")?, last_seen: Some(at(all, "last")?) })
}

async fn operation(mongo: &Mongo, filter: Document) -> Result<Option<Operation>, CallError> {
    let operations = mongo.collection(collections::OPERATION).await?;
    operations.find_one(filter).await?.as_ref().map(read_operation).transpose()
}

fn read_operation(stored: &Document) -> Result<Operation, CallError> {
    let (collection, what) = (collections::OPERATION, "an operation");
    let operation: Operation = read(collection, what, stored, OPERATION)?;
    Ok(Operation { revision: revision(collection, what, stored)?, ..operation })
}

async fn advance(mongo: &Mongo, revision: u64, operation: &Operation) -> Result<bool, CallError> {
    let operations = mongo.collection(collections::OPERATION).await?;
    let mut stored = doc! {
        ID: operation.id.key(),
        REVISION: int(revision + 1),
        AT: nanos(operation.begun_at),
        RUNNING: operation.expires_at().is_none(),
        OPERATION: to_bson(operation)?,
    };
    stored.extend(operation.expires_at().map(|at| (EXPIRES_AT.to_owned(), date(at).into())));
    if revision == 0 {
        return inserted(operations.insert_one(stored).await);
    }
    let as_read = doc! { ID: operation.id.key(), REVISION: int(revision) };
    Ok(operations.replace_one(as_read, stored).await?.matched_count == 1)
}
