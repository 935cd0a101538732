//! The outbox entries of sagas and of transactional sessions, in the records that caused them.

use async_trait::async_trait;
use futures::TryStreamExt;
use jiff::Timestamp;
use messages::{PartitionKey, SessionId, StoreError};
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::{Hint, ReturnDocument};
use outbox::{Entry, InspectOutbox, Owner, Settlement, SweepOutbox};

use crate::fault::Fault;
use crate::indexes::HAS_ENTRIES;
use crate::names::{collections, record};
use crate::value::{Key, nanos, timestamp, uuid};
use crate::{Mongo, entry, pipeline};

/// The outboxes of all records of one kind.
#[derive(Debug, Clone)]
pub struct Outbox {
    mongo: Mongo,
    collection: &'static str,
}

impl Outbox {
    pub(crate) fn new(mongo: Mongo, collection: &'static str) -> Self {
        Self { mongo, collection }
    }
}

/// Where a record is, and its id there.
fn place(owner: Owner) -> (&'static str, Bson) {
    match owner {
        Owner::Saga(id) => (collections::SAGA, id.key()),
        Owner::Session(id) => (collections::SESSION, id.key()),
    }
}

#[async_trait]
impl SweepOutbox for Outbox {
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Owner>, StoreError> {
        let doing = format!("looking for due entries in {}", self.collection);
        self.mongo.call(doing, due(&self.mongo, self.collection, now, limit)).await
    }

    async fn claim_due(
        &self,
        owner: Owner,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Entry>, StoreError> {
        let doing = format!("claiming the outbox of {owner}");
        self.mongo.call(doing, claim_due(&self.mongo, owner, now, until)).await
    }

    async fn settle(&self, owner: Owner, settlements: &[Settlement]) -> Result<(), StoreError> {
        if settlements.is_empty() {
            return Ok(());
        }
        let (collection, id) = place(owner);
        let statement = pipeline::settle(id, settlements);
        // A single write, so the driver can repeat it safely when its answer is lost.
        let work = async {
            self.mongo.collection(collection).update_one(statement.filter, statement.pipeline).await?;
            Ok(())
        };
        self.mongo.call(format!("settling the outbox of {owner}"), work).await
    }
}

#[async_trait]
impl InspectOutbox for Outbox {
    async fn pending(
        &self,
        after: Option<Owner>,
        limit: usize,
    ) -> Result<Vec<(Owner, Vec<Entry>)>, StoreError> {
        let doing = format!("listing the outboxes in {}", self.collection);
        self.mongo.call(doing, pending(&self.mongo, self.collection, after, limit)).await
    }

    async fn plan(&self) -> Result<String, StoreError> {
        let doing = format!("explaining how due entries in {} are looked for", self.collection);
        self.mongo.call(doing, plan(&self.mongo, self.collection)).await
    }
}

async fn pending(
    mongo: &Mongo,
    collection: &'static str,
    after: Option<Owner>,
    limit: usize,
) -> Result<Vec<(Owner, Vec<Entry>)>, Fault> {
    if limit == 0 {
        // MongoDB takes 0 for no limit.
        return Ok(Vec::new());
    }
    let mut filter = doc! { record::PENDING: { "$gt": 0 } };
    if let Some(after) = after {
        filter.insert(record::ID, doc! { "$gt": place(after).1 });
    }
    let found = mongo
        .collection(collection)
        .find(filter)
        .projection(doc! { record::ID: 1, record::OUTBOX: 1 })
        .sort(doc! { record::ID: 1 })
        // Of many documents with an empty outbox it would otherwise read each, in the order of ids.
        .hint(Hint::Name(HAS_ENTRIES.to_owned()))
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .await?;
    let read = async |stored: Document| {
        let entries = entry::decode_all(&stored, record::OUTBOX).map_err(|why| {
            Fault::foreign(collection, stored.get(record::ID), "a record with an outbox", &why)
        })?;
        Ok((owner(collection, &stored)?, entries))
    };
    found.map_err(Fault::from).and_then(read).try_collect().await
}

/// Reads nothing but the index: it holds only records that wait, in the order of waiting, with their ids.
async fn due(
    mongo: &Mongo,
    collection: &'static str,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Owner>, Fault> {
    if limit == 0 {
        // MongoDB takes 0 for no limit.
        return Ok(Vec::new());
    }
    let found = mongo
        .collection(collection)
        .find(ready_by(now))
        .projection(projection())
        .sort(order())
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .await?;
    found
        .map_err(Fault::from)
        .and_then(async |stored: Document| owner(collection, &stored))
        .try_collect()
        .await
}

fn ready_by(now: Timestamp) -> Document {
    doc! { record::READY_AT: { "$lte": nanos(now) } }
}

fn projection() -> Document {
    doc! { record::ID: 1 }
}

fn order() -> Document {
    doc! { record::READY_AT: 1, record::ID: 1 }
}

async fn plan(mongo: &Mongo, collection: &'static str) -> Result<String, Fault> {
    let find = doc! {
        "find": collection,
        "filter": ready_by(Timestamp::UNIX_EPOCH),
        "projection": projection(),
        "sort": order(),
        "limit": 1,
    };
    let explained =
        mongo.database().run_command(doc! { "explain": find, "verbosity": "queryPlanner" }).await?;
    let planner = explained.get_document("queryPlanner").ok();
    Ok(planner.and_then(|planner| planner.get_document("winningPlan").ok()).map(stages).unwrap_or_default())
}

/// The stages of a plan, the outermost first, with the index that is read.
fn stages(plan: &Document) -> String {
    let name = |field| plan.get_str(field).ok().map(str::to_owned);
    let inner = plan.get_document("inputStage").ok().map(stages);
    [name("stage"), name("indexName"), inner].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn owner(collection: &'static str, stored: &Document) -> Result<Owner, Fault> {
    let id = stored.get(record::ID);
    match (id.and_then(uuid), collection) {
        (Some(id), collections::SESSION) => Ok(Owner::Session(SessionId::from_uuid(id))),
        (Some(id), _) => Ok(Owner::Saga(PartitionKey::from_uuid(id))),
        (None, _) => Err(Fault::foreign(collection, id, "a record with an outbox", "its _id is not a UUID")),
    }
}

/// One atomic write that marks the ready entries and gives back the record as it was before, from which follows
/// which entries these were.
async fn claim_due(
    mongo: &Mongo,
    owner: Owner,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<Entry>, Fault> {
    let (collection, id) = place(owner);
    let statement = pipeline::claim(id, now, until);
    let before = mongo
        .collection(collection)
        .find_one_and_update(statement.filter, statement.pipeline)
        .projection(doc! { record::OUTBOX: 1 })
        .return_document(ReturnDocument::Before)
        .await?;
    let Some(before) = before else { return Ok(Vec::new()) };
    let entries = entry::decode_all(&before, record::OUTBOX)
        .map_err(|why| Fault::foreign(collection, before.get(record::ID), "a record with an outbox", &why))?;
    // As the server compares them: to the nanosecond within the range of 64 bits.
    let claimed_until = Some(timestamp(nanos(until)));
    let ready =
        entries.into_iter().filter(|entry| entry.ready_at().is_some_and(|at| nanos(at) <= nanos(now)));
    Ok(ready.map(|entry| Entry { claimed_until, ..entry }).collect())
}
