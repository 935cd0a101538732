//! Records of applications: read outside transactions, then checked and written in the transaction of a session.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::StoreError;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReadConcern;
use mongodb::{ClientSession, Collection};
use outbox::records::{OwnedRecord, RecordRead};
use outbox::{Key, ReadRecords, StoredRecord, Write, WriteRecords};
use serde_json::Value;

use crate::Mongo;
use crate::driver_error::{DUPLICATE_KEY, is_code};
use crate::error::CallError;
use crate::names::application::EXPIRES_AT;
use crate::names::collections;
use crate::value::{count_field, date, int, serde_field, to_bson};

const ID: &str = "_id";
const REVISION: &str = "Revision";
const BODY: &str = "Body";
/// Number of sessions that read the record and depended on it without writing it.
const CHECKS: &str = "Checks";

/// Returns the stored id of a key: kind and id, separated by a slash. Slashes in the kind are escaped, so that the ids
/// of different keys differ.
fn id(key: &Key) -> String {
    format!("{}/{}", key.kind.replace('%', "%25").replace('/', "%2F"), key.id)
}

fn decode(stored: &Document) -> Result<StoredRecord, CallError> {
    let read = || {
        let body = stored.contains_key(BODY).then(|| serde_field(stored, BODY)).transpose()?;
        let expires_at = match stored.get(EXPIRES_AT) {
            Some(Bson::DateTime(at)) => Timestamp::from_millisecond(at.timestamp_millis()).ok(),
            _ => None,
        };
        Ok(StoredRecord { revision: count_field(stored, REVISION)?, body, expires_at })
    };
    read().map_err(|why: String| CallError::unreadable(collections::RECORD, stored.get(ID), "a record", &why))
}

/// Returns the fields of a record with this content. A removed record has no body.
fn fields(body: Option<&Value>, expires_at: Option<Timestamp>) -> Result<Document, CallError> {
    let mut fields = doc! {};
    if let Some(body) = body {
        fields.insert(BODY, to_bson(body)?);
    }
    if let Some(at) = expires_at {
        fields.insert(EXPIRES_AT, date(at));
    }
    Ok(fields)
}

/// Returns the update of a record to this content.
fn content(body: Option<&Value>, expires_at: Option<Timestamp>) -> Result<Document, CallError> {
    let set = fields(body, expires_at)?;
    let absent = [BODY, EXPIRES_AT].into_iter().filter(|name| !set.contains_key(name));
    let unset: Document = absent.map(|name| (name.to_owned(), "".into())).collect();
    let parts = [("$set", set), ("$unset", unset)].into_iter().filter(|(_, fields)| !fields.is_empty());
    Ok(parts.map(|(operator, fields)| (operator.to_owned(), fields.into())).collect())
}

#[async_trait]
impl ReadRecords for Mongo {
    /// The read is linearizable, because a deposed primary that does not know it yet could answer a majority read with
    /// old data. A session would detect this when it commits, but a read-only request would not.
    async fn stored_record(&self, key: &Key) -> Result<Option<StoredRecord>, StoreError> {
        let work = async {
            let records = self.collection(collections::RECORD).await?;
            let found = records.find_one(doc! { ID: id(key) }).read_concern(ReadConcern::linearizable());
            found.await?.as_ref().map(decode).transpose()
        };
        self.call(format!("reading record {key}"), work).await
    }
}

#[async_trait]
impl WriteRecords for Mongo {
    async fn write_record(&self, Write { key, body, expires_at }: &Write) -> Result<(), StoreError> {
        let work = async {
            let records = self.collection(collections::RECORD).await?;
            let mut update = content(body.as_ref(), *expires_at)?;
            update.insert("$inc", doc! { REVISION: 1_i64 });
            let written = records.update_one(doc! { ID: id(key) }, update.clone()).upsert(true).await;
            match written {
                // A concurrent write created the record, so the update now matches.
                Err(error) if is_code(&error, DUPLICATE_KEY) => {
                    records.update_one(doc! { ID: id(key) }, update).await?;
                }
                written => drop(written?),
            }
            Ok(())
        };
        self.call(format!("writing record {key}"), work).await
    }

    async fn advance_record(&self, record: &OwnedRecord) -> Result<(), StoreError> {
        let (key, StoredRecord { revision, body, expires_at }) = (&record.key, record.stored());
        let work = async {
            let records = self.collection(collections::RECORD).await?;
            let revision = i64::try_from(revision).unwrap_or(i64::MAX);
            let earlier = || doc! { ID: id(key), REVISION: { "$lt": revision } };
            let mut update = content(body.as_ref(), expires_at)?;
            // The filter has another revision, so the server would not add this one to a new record.
            update.insert("$max", doc! { REVISION: revision });
            let written = records.update_one(earlier(), update.clone()).upsert(true).await;
            match written {
                // The record has reached the revision, or a concurrent write has created it with an earlier one.
                Err(error) if is_code(&error, DUPLICATE_KEY) => {
                    records.update_one(earlier(), update).await?;
                }
                written => drop(written?),
            }
            Ok(())
        };
        self.call(format!("writing record {key}"), work).await
    }
}

/// Access of a session to one record.
#[derive(Debug, Default, PartialEq)]
struct RecordStep {
    /// Revision that the session read; 0 if the record was absent.
    read: Option<u64>,
    /// Number of writes; each one increments the revision.
    writes: u32,
    /// Body of the last write; `None` if it removes the record.
    body: Option<Value>,
    /// Expiry of the last write.
    expires_at: Option<Timestamp>,
}

/// Accesses of a session to records, in the order of their ids. If two sessions share several records, both access the
/// same record first. So one of the sessions proceeds.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan(BTreeMap<String, RecordStep>);

/// Outcome of staging the records of a session in its transaction.
pub(crate) enum RecordsOutcome {
    /// The revisions that were read are current, and the writes are staged.
    Staged,
    /// A record that was read has changed.
    Changed,
    /// A concurrent write created a record. The next transaction will see it.
    Conflict(CallError),
}

impl Plan {
    /// Returns the accesses; `None` if the session read different revisions of one record.
    pub(crate) fn of(reads: &[RecordRead], writes: &[Write]) -> Option<Self> {
        let mut steps: BTreeMap<String, RecordStep> = BTreeMap::new();
        for RecordRead { key, revision } in reads {
            let step = steps.entry(id(key)).or_default();
            if step.read.is_some_and(|read| read != *revision) {
                return None;
            }
            step.read = Some(*revision);
        }
        for Write { key, body, expires_at } in writes {
            let step = steps.entry(id(key)).or_default();
            step.writes = step.writes.saturating_add(1);
            (step.body, step.expires_at) = (body.clone(), *expires_at);
        }
        Some(Self(steps))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks and writes the records in a transaction.
    ///
    /// Transactions use snapshot isolation. Two of them that each read a record that the other one writes would both
    /// commit (write skew). The server only detects conflicting writes of one document. Therefore the transaction also
    /// writes each record that was only read. A write without a change would not conflict, so it increments [`CHECKS`].
    pub(crate) async fn stage(
        &self,
        mongo: &Mongo,
        client: &mut ClientSession,
    ) -> Result<RecordsOutcome, CallError> {
        let records = mongo.collection(collections::RECORD).await?;
        for (id, step) in &self.0 {
            let staged = match step.read {
                None => step.write(&records, id, client).await?,
                Some(0) => step.create(&records, id, client).await?,
                Some(revision) => step.replace(&records, id, revision, client).await?,
            };
            if !matches!(staged, RecordsOutcome::Staged) {
                return Ok(staged);
            }
        }
        Ok(RecordsOutcome::Staged)
    }
}

impl RecordStep {
    /// Returns the update of a record that the session writes.
    fn update(&self) -> Result<Document, CallError> {
        let mut update = content(self.body.as_ref(), self.expires_at)?;
        update.insert("$inc", doc! { REVISION: int(self.writes) });
        Ok(update)
    }

    /// Writes a record that was not read, unconditionally.
    async fn write(
        &self,
        records: &Collection<Document>,
        id: &str,
        client: &mut ClientSession,
    ) -> Result<RecordsOutcome, CallError> {
        match records.update_one(doc! { ID: id }, self.update()?).upsert(true).session(client).await {
            Err(error) if is_code(&error, DUPLICATE_KEY) => Ok(RecordsOutcome::Conflict(error.into())),
            written => Ok(written.map(|_| RecordsOutcome::Staged)?),
        }
    }

    /// Inserts a record that was absent when it was read. If the session does not write it, the record is deleted again
    /// in the same transaction: a concurrent transaction that creates it writes the same key of the id index, and the
    /// server rejects one of the two.
    async fn create(
        &self,
        records: &Collection<Document>,
        id: &str,
        client: &mut ClientSession,
    ) -> Result<RecordsOutcome, CallError> {
        let mut record = doc! { ID: id, REVISION: int(self.writes) };
        record.extend(fields(self.body.as_ref(), self.expires_at)?);
        match records.insert_one(record).session(&mut *client).await {
            Err(error) if is_code(&error, DUPLICATE_KEY) => return Ok(RecordsOutcome::Changed),
            inserted => inserted?,
        };
        if self.writes == 0 {
            records.delete_one(doc! { ID: id }).session(client).await?;
        }
        Ok(RecordsOutcome::Staged)
    }

    /// Writes or checks a record that must still have the revision that was read.
    async fn replace(
        &self,
        records: &Collection<Document>,
        id: &str,
        revision: u64,
        client: &mut ClientSession,
    ) -> Result<RecordsOutcome, CallError> {
        let update = match self.writes {
            0 => doc! { "$inc": { CHECKS: 1_i64 } },
            _ => self.update()?,
        };
        let as_read = doc! { ID: id, REVISION: int(revision) };
        let replaced = records.update_one(as_read, update).session(client).await?;
        Ok(if replaced.matched_count == 0 { RecordsOutcome::Changed } else { RecordsOutcome::Staged })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(key: &Key, revision: u64) -> RecordRead {
        RecordRead { key: key.clone(), revision }
    }

    #[test]
    fn different_keys_have_different_ids() {
        assert_eq!(id(&Key::new("stock", "a/b")), "stock/a/b");
        let all = [("stock", "a/b"), ("stock/a", "b"), ("stock%2Fa", "b"), ("stock%252Fa", "b")];
        let ids: std::collections::BTreeSet<_> =
            all.iter().map(|(kind, id_of)| id(&Key::new(*kind, *id_of))).collect();
        assert_eq!(ids.len(), all.len());
    }

    #[test]
    fn accesses_of_one_record_are_merged() {
        let key = Key::new("stock", "a");
        let write = |body: Value| Write::new(key.clone(), body);
        let plan = Plan::of(&[read(&key, 3), read(&key, 3)], &[write(json!(1)), write(json!(2))]).unwrap();
        let step = RecordStep { read: Some(3), writes: 2, body: Some(json!(2)), expires_at: None };
        assert_eq!(plan, Plan([("stock/a".to_owned(), step)].into()));
    }

    #[test]
    fn record_changed_between_two_reads_has_no_plan() {
        let key = Key::new("stock", "a");
        assert_eq!(Plan::of(&[read(&key, 0), read(&key, 1)], &[]), None);
    }

    #[test]
    fn body_round_trips_with_its_numbers() {
        let body =
            json!({ "count": 3, "below": -3, "price": 0.5, "whole": 2.0, "most": i64::MAX, "none": null });
        let stored = doc! { ID: "stock/a", REVISION: 1_i64, BODY: to_bson(&body).unwrap() };
        assert_eq!(
            decode(&stored).unwrap(),
            StoredRecord { revision: 1, body: Some(body), expires_at: None }
        );
    }
}
