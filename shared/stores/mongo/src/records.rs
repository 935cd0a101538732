//! An application's records: read by themselves, checked and written in the transaction of a session.

use std::collections::BTreeMap;

use async_trait::async_trait;
use messages::StoreError;
use mongodb::bson::{Document, doc};
use mongodb::options::ReadConcern;
use mongodb::{ClientSession, Collection};
use outbox::records::Read;
use outbox::{Key, ReadRecords, Record, Write, WriteRecords};
use serde_json::Value;

use crate::Mongo;
use crate::fault::{DUPLICATE_KEY, Fault, is_code};
use crate::names::collections;
use crate::value::{count_field, int, serde_field, to_bson};

const ID: &str = "_id";
const REVISION: &str = "Revision";
const BODY: &str = "Body";
/// Counts the sessions that have relied on the record without writing it.
const CHECKS: &str = "Checks";

/// Kind and id with a slash between them. A slash within the kind is escaped, so that no two keys share an id.
fn id(key: &Key) -> String {
    format!("{}/{}", key.kind.replace('%', "%25").replace('/', "%2F"), key.id)
}

fn decode(stored: &Document) -> Result<Record, Fault> {
    let read = || Ok(Record { revision: count_field(stored, REVISION)?, body: serde_field(stored, BODY)? });
    read().map_err(|why: String| Fault::foreign(collections::RECORD, stored.get(ID), "a record", &why))
}

#[async_trait]
impl ReadRecords for Mongo {
    /// Linearizable: a majority may be asked through a primary that has been deposed and does not know it. A session
    /// would notice when it commits; a request that only reads would not.
    async fn record(&self, key: &Key) -> Result<Option<Record>, StoreError> {
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
    async fn write_record(&self, Write { key, body }: &Write) -> Result<(), StoreError> {
        let work = async {
            let records = self.collection(collections::RECORD).await?;
            let update =
                || Ok::<_, Fault>(doc! { "$set": { BODY: to_bson(body)? }, "$inc": { REVISION: 1_i64 } });
            let written = records.update_one(doc! { ID: id(key) }, update()?).upsert(true).await;
            match written {
                // Somebody has created it at the same moment: now it is there.
                Err(error) if is_code(&error, DUPLICATE_KEY) => {
                    records.update_one(doc! { ID: id(key) }, update()?).await?;
                }
                written => drop(written?),
            }
            Ok(())
        };
        self.call(format!("writing record {key}"), work).await
    }
}

/// What a session does with one record.
#[derive(Debug, Default, PartialEq)]
struct Step {
    /// The revision that it has read; 0 when there was no record.
    read: Option<u64>,
    /// How often it writes the record; each counts.
    writes: u32,
    /// What it writes, the latest.
    body: Option<Value>,
}

/// Everything that a session does with records, in the order of their ids: two sessions that meet in several records
/// meet in the same one first, and one of them goes on.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan(BTreeMap<String, Step>);

/// What became of the records of a session.
pub(crate) enum Staged {
    /// What was read still holds, and what is to be written is.
    Done,
    /// Something that was read has changed.
    Changed,
    /// Somebody created a record at the same moment; the next transaction will see it.
    Overtaken(Fault),
}

impl Plan {
    /// What is to be done; none when the session has read one record twice and not found the same.
    pub(crate) fn of(reads: &[Read], writes: &[Write]) -> Option<Self> {
        let mut steps: BTreeMap<String, Step> = BTreeMap::new();
        for Read { key, revision } in reads {
            let step = steps.entry(id(key)).or_default();
            if step.read.is_some_and(|read| read != *revision) {
                return None;
            }
            step.read = Some(*revision);
        }
        for Write { key, body } in writes {
            let step = steps.entry(id(key)).or_default();
            step.writes = step.writes.saturating_add(1);
            step.body = Some(body.clone());
        }
        Some(Self(steps))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Does it in a transaction.
    ///
    /// A transaction sees a snapshot, and two of them that only read what the other one writes would both commit (write
    /// skew). The server refuses two that write the same document. So what was read is written too, whether or not
    /// its content changes; a write that changes nothing would not count, hence [`CHECKS`].
    pub(crate) async fn stage(&self, mongo: &Mongo, client: &mut ClientSession) -> Result<Staged, Fault> {
        let records = mongo.collection(collections::RECORD).await?;
        for (id, step) in &self.0 {
            let staged = match step.read {
                None => step.write(&records, id, client).await?,
                Some(0) => step.create(&records, id, client).await?,
                Some(revision) => step.replace(&records, id, revision, client).await?,
            };
            if !matches!(staged, Staged::Done) {
                return Ok(staged);
            }
        }
        Ok(Staged::Done)
    }
}

impl Step {
    /// What was not read is written whatever is there.
    async fn write(
        &self,
        records: &Collection<Document>,
        id: &str,
        client: &mut ClientSession,
    ) -> Result<Staged, Fault> {
        let update = doc! { "$set": { BODY: to_bson(&self.body)? }, "$inc": { REVISION: int(self.writes) } };
        match records.update_one(doc! { ID: id }, update).upsert(true).session(client).await {
            Err(error) if is_code(&error, DUPLICATE_KEY) => Ok(Staged::Overtaken(error.into())),
            written => Ok(written.map(|_| Staged::Done)?),
        }
    }

    /// What was absent is inserted. When it is not to be written it is removed again at once: a transaction that
    /// creates it meanwhile writes the same key of the index of ids, and the server refuses one of the two.
    async fn create(
        &self,
        records: &Collection<Document>,
        id: &str,
        client: &mut ClientSession,
    ) -> Result<Staged, Fault> {
        let record = doc! { ID: id, REVISION: int(self.writes), BODY: to_bson(&self.body)? };
        match records.insert_one(record).session(&mut *client).await {
            Err(error) if is_code(&error, DUPLICATE_KEY) => return Ok(Staged::Changed),
            inserted => inserted?,
        };
        if self.writes == 0 {
            records.delete_one(doc! { ID: id }).session(client).await?;
        }
        Ok(Staged::Done)
    }

    /// What was there must be what was read.
    async fn replace(
        &self,
        records: &Collection<Document>,
        id: &str,
        revision: u64,
        client: &mut ClientSession,
    ) -> Result<Staged, Fault> {
        let update = match &self.body {
            Some(body) => doc! { "$set": { BODY: to_bson(body)? }, "$inc": { REVISION: int(self.writes) } },
            None => doc! { "$inc": { CHECKS: 1_i64 } },
        };
        let as_read = doc! { ID: id, REVISION: int(revision) };
        let replaced = records.update_one(as_read, update).session(client).await?;
        Ok(if replaced.matched_count == 0 { Staged::Changed } else { Staged::Done })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(key: &Key, revision: u64) -> Read {
        Read { key: key.clone(), revision }
    }

    #[test]
    fn no_two_keys_share_an_id() {
        assert_eq!(id(&Key::new("stock", "a/b")), "stock/a/b");
        let all = [("stock", "a/b"), ("stock/a", "b"), ("stock%2Fa", "b"), ("stock%252Fa", "b")];
        let ids: std::collections::BTreeSet<_> =
            all.iter().map(|(kind, id_of)| id(&Key::new(*kind, *id_of))).collect();
        assert_eq!(ids.len(), all.len());
    }

    #[test]
    fn what_is_read_and_written_is_one_step_and_each_write_counts() {
        let key = Key::new("stock", "a");
        let write = |body| Write { key: key.clone(), body };
        let plan = Plan::of(&[read(&key, 3), read(&key, 3)], &[write(json!(1)), write(json!(2))]).unwrap();
        let step = Step { read: Some(3), writes: 2, body: Some(json!(2)) };
        assert_eq!(plan, Plan([("stock/a".to_owned(), step)].into()));
    }

    #[test]
    fn a_record_that_changed_between_two_reads_has_changed() {
        let key = Key::new("stock", "a");
        assert_eq!(Plan::of(&[read(&key, 0), read(&key, 1)], &[]), None);
    }

    #[test]
    fn a_body_comes_back_with_the_numbers_that_it_had() {
        let body =
            json!({ "count": 3, "below": -3, "price": 0.5, "whole": 2.0, "most": i64::MAX, "none": null });
        let stored = doc! { ID: "stock/a", REVISION: 1_i64, BODY: to_bson(&body).unwrap() };
        assert_eq!(decode(&stored).unwrap(), Record { revision: 1, body });
    }
}
