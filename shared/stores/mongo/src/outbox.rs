//! The outbox entries of sagas and of transactional sessions, in the records that caused them.

use async_trait::async_trait;
use futures::TryStreamExt;
use jiff::Timestamp;
use messages::{PartitionKey, SessionId, StoreError};
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::Hint;
use outbox::{
    ClaimedEntries, EntryResult, InspectOutbox, OutboxRecord, Owner, Settlement, SweepOutbox, Unreadable,
    UnreadableAction,
};

use crate::fault::Fault;
use crate::indexes::{HAS_ENTRIES, POISONED};
use crate::names::{collections, record};
use crate::pipeline::Statement;
use crate::place::Place;
use crate::reply::Reply;
use crate::value::{Key, literal, nanos, some_of, uuid};
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

fn id(owner: Owner) -> Bson {
    match owner {
        Owner::Saga(id) => id.key(),
        Owner::Session(id) => id.key(),
    }
}

#[async_trait]
impl SweepOutbox for Outbox {
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Result<Owner, Unreadable>>, StoreError> {
        let doing = format!("looking for due entries in {}", self.collection);
        self.mongo.call(doing, due(&self.mongo, self.collection, now, limit)).await
    }

    async fn claim_due(
        &self,
        owners: &[Owner],
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<ClaimedEntries>, StoreError> {
        let doing = format!("claiming the outbox of {}", some_of(owners.iter()));
        self.mongo.call(doing, claim_due(&self.mongo, self.collection, owners, now, until)).await
    }

    async fn settle(&self, settlements: &[(Owner, Vec<Settlement>)]) -> Result<(), StoreError> {
        let doing = format!("settling the outbox of {}", some_of(settlements.iter().map(|(owner, _)| owner)));
        let statements: Vec<Statement> = settlements
            .iter()
            .filter(|(_, some)| !some.is_empty())
            .map(|(owner, some)| pipeline::settle(id(*owner), some))
            .collect();
        if statements.is_empty() {
            return Ok(());
        }
        let work = async { update(&self.mongo, self.collection, statements).await?.expect_none_taken() };
        self.mongo.call(doing, work).await
    }

    async fn resolve_unreadable(&self, place: &str, treatment: &UnreadableAction) -> Result<(), StoreError> {
        let work = async {
            let statement = pipeline::resolve_unreadable(&Place::read(place)?, treatment);
            update(&self.mongo, self.collection, vec![statement]).await?.expect_none_taken()
        };
        self.mongo
            .call(format!("treating entry {place} of {}, which cannot be read", self.collection), work)
            .await
    }
}

#[async_trait]
impl InspectOutbox for Outbox {
    async fn pending(&self, after: Option<&str>, limit: usize) -> Result<Vec<OutboxRecord>, StoreError> {
        let doing = format!("listing the outboxes in {}", self.collection);
        let (filter, index) = (doc! { record::PENDING: { "$gt": 0 } }, HAS_ENTRIES);
        let work = listed(&self.mongo, self.collection, (filter, index, |_| true), after, limit);
        self.mongo.call(doing, work).await
    }

    async fn poisoned(&self, after: Option<&str>, limit: usize) -> Result<Vec<OutboxRecord>, StoreError> {
        let doing = format!("listing what is poisoned in the outboxes in {}", self.collection);
        let (filter, index) = (has_poison(), POISONED);
        let work = listed(&self.mongo, self.collection, (filter, index, entry::is_poisoned), after, limit);
        self.mongo.call(doing, work).await
    }

    async fn plan(&self) -> Result<String, StoreError> {
        let doing = format!("explaining how due entries in {} are looked for", self.collection);
        self.mongo.call(doing, plan(&self.mongo, self.collection)).await
    }
}

/// Records of which an entry is poisoned.
pub(crate) fn has_poison() -> Document {
    doc! { format!("{}.{}", record::OUTBOX, entry::POISONED): true }
}

/// Entries of records that an index finds.
async fn listed(
    mongo: &Mongo,
    collection: &'static str,
    (mut filter, index, is_shown): (Document, &str, fn(&Bson) -> bool),
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<OutboxRecord>, Fault> {
    if limit == 0 {
        // MongoDB takes 0 for no limit.
        return Ok(Vec::new());
    }
    if let Some(after) = after {
        // Ids of every type have an order for an expression; a plain comparison finds those of the same type only.
        let after = literal(Place::read(after)?.record().clone());
        filter.insert("$expr", doc! { "$gt": [format!("${}", record::ID), after] });
    }
    let found = mongo
        .collection(collection)
        .await?
        .find(filter)
        .projection(doc! { record::ID: 1, record::OUTBOX: 1 })
        .sort(doc! { record::ID: 1 })
        // Of many documents with an empty outbox it would otherwise read each, in the order of ids.
        .hint(Hint::Name(index.to_owned()))
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .await?;
    Ok(found.map_ok(|stored| shown(collection, &stored, is_shown)).try_collect().await?)
}

fn shown(collection: &'static str, stored: &Document, is_shown: fn(&Bson) -> bool) -> OutboxRecord {
    let record = Place::Record { record: stored.get(record::ID).cloned().unwrap_or(Bson::Null) };
    let owner = owner(collection, stored);
    let entries = match (&owner, entry::stored(stored, record::OUTBOX)) {
        (Ok(_), Ok(entries)) => {
            entries.iter().filter(|entry| is_shown(entry)).map(|entry| read(record.record(), entry)).collect()
        }
        (Ok(_), Err(why)) => vec![Err(Unreadable { place: record.write(), why })],
        (Err(unreadable), _) => vec![Err(unreadable.clone())],
    };
    OutboxRecord { id: record.write(), owner: owner.ok(), entries }
}

fn read(record: &Bson, stored: &Bson) -> EntryResult {
    entry::decode(stored).map_err(|why| Unreadable { place: Place::of(record, stored).write(), why })
}

/// Reads nothing but the index: it holds only records that wait, in the order of waiting, with their ids.
async fn due(
    mongo: &Mongo,
    collection: &'static str,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Result<Owner, Unreadable>>, Fault> {
    if limit == 0 {
        // MongoDB takes 0 for no limit.
        return Ok(Vec::new());
    }
    let found = mongo
        .collection(collection)
        .await?
        .find(ready_by(now))
        .projection(projection())
        .sort(order())
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .await?;
    Ok(found.map_ok(|stored| owner(collection, &stored)).try_collect().await?)
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
        mongo.database().await?.run_command(doc! { "explain": find, "verbosity": "queryPlanner" }).await?;
    let planner = explained.get_document("queryPlanner").ok();
    Ok(planner.and_then(|planner| planner.get_document("winningPlan").ok()).map(stages).unwrap_or_default())
}

/// The stages of a plan, the outermost first, with the index that is read.
fn stages(plan: &Document) -> String {
    let name = |field| plan.get_str(field).ok().map(str::to_owned);
    let inner = plan.get_document("inputStage").ok().map(stages);
    [name("stage"), name("indexName"), inner].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn owner(collection: &'static str, stored: &Document) -> Result<Owner, Unreadable> {
    let id = stored.get(record::ID);
    match (id.and_then(uuid), collection) {
        (Some(id), collections::SESSION) => Ok(Owner::Session(SessionId::from_uuid(id))),
        (Some(id), _) => Ok(Owner::Saga(PartitionKey::from_uuid(id))),
        (None, _) => {
            let place = Place::Record { record: id.cloned().unwrap_or(Bson::Null) }.write();
            let fault = Fault::foreign(collection, id, "a record with an outbox", "its _id is not a UUID");
            Err(Unreadable { place, why: fault.to_string() })
        }
    }
}

/// Claims, settlements and treatments do nothing when they are repeated. So a lost answer costs one more call, and not
/// entries that are claimed by nobody who knows of it.
async fn update(mongo: &Mongo, collection: &str, statements: Vec<Statement>) -> Result<Reply, Fault> {
    match mongo.update(collection, statements.clone()).await {
        Err(fault) if fault.may_pass() => mongo.update(collection, statements).await,
        answer => answer,
    }
}

/// One command marks the ready entries of all records, each record atomically; a second one fetches them by the mark.
/// When the server refuses some of the statements, the others are applied all the same.
async fn claim_due(
    mongo: &Mongo,
    collection: &'static str,
    owners: &[Owner],
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<ClaimedEntries>, Fault> {
    if owners.is_empty() {
        return Ok(Vec::new());
    }
    let statements = owners.iter().map(|owner| pipeline::claim(id(*owner), now, until)).collect();
    let refused = match update(mongo, collection, statements).await {
        Ok(_) => None,
        Err(fault @ Fault::Statement { .. }) => Some(fault),
        Err(fault) => return Err(fault),
    };
    let ids: Vec<Bson> = owners.iter().map(|owner| id(*owner)).collect();
    let mark = nanos(until);
    let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    let found: Vec<Document> = mongo
        .collection(collection)
        .await?
        .find(
            doc! { record::ID: { "$in": ids }, format!("{}.{}", record::OUTBOX, entry::CLAIMED_UNTIL): mark },
        )
        .projection(doc! { record::OUTBOX: 1 })
        .limit(count.into())
        .batch_size(count)
        .await?
        .try_collect()
        .await?;
    let claimed_of = |owner: &Owner| -> ClaimedEntries {
        let record = id(*owner);
        match (found.iter().find(|stored| stored.get(record::ID) == Some(&record)), &refused) {
            (Some(stored), _) => {
                let entries = entry::stored(stored, record::OUTBOX).unwrap_or_default();
                let claimed = entries.iter().filter(|entry| entry::claimed_until(entry) == Some(mark));
                Ok(claimed.map(|entry| read(&record, entry)).collect())
            }
            (None, Some(refused)) => {
                Err(StoreError::unavailable(format!("claiming the outbox of {owner}"), refused.to_string()))
            }
            (None, None) => Ok(Vec::new()),
        }
    };
    Ok(owners.iter().map(claimed_of).collect())
}
