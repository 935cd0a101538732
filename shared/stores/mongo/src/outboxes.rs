//! Outbox entries of sagas and transactional sessions, stored in the records that caused them.

use async_trait::async_trait;
use futures::TryStreamExt;
use jiff::Timestamp;
use messages::store::some_of;
use messages::{PartitionKey, SessionId, StoreError};
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::Hint;
use outbox::{
    ClaimedEntries, EntryResult, InspectOutbox, OutboxRecord, Owner, Settlement, SweepOutbox, Unreadable,
    UnreadableAction,
};

use crate::entry_location::EntryLocation;
use crate::error::CallError;
use crate::indexes::{HAS_ENTRIES, POISONED};
use crate::names::{collections, record};
use crate::pipeline::Statement;
use crate::reply::Reply;
use crate::value::{Key, batch_size, literal, nanos, uuid};
use crate::{Mongo, entry, pipeline};

/// Outboxes of all records in one collection.
#[derive(Debug, Clone)]
pub struct Outbox {
    mongo: Mongo,
    collection: &'static str,
}

impl Outbox {
    fn new(mongo: Mongo, collection: &'static str) -> Self {
        Self { mongo, collection }
    }

    fn name(&self) -> String {
        self.mongo.name_of(self.collection)
    }
}

impl Mongo {
    /// Returns the outboxes of all sagas.
    pub fn saga_outbox(&self) -> Outbox {
        Outbox::new(self.clone(), collections::SAGA)
    }

    /// Returns the outboxes of all committed sessions.
    pub fn session_outbox(&self) -> Outbox {
        Outbox::new(self.clone(), collections::SESSION)
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
        let doing = format!("looking for due entries in {}", self.name());
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
        let work = async { update(&self.mongo, self.collection, statements).await?.expect_no_conflict() };
        self.mongo.call(doing, work).await
    }

    async fn resolve_unreadable(&self, place: &str, treatment: &UnreadableAction) -> Result<(), StoreError> {
        let work = async {
            let statement = pipeline::resolve_unreadable(&EntryLocation::read(place)?, treatment);
            update(&self.mongo, self.collection, vec![statement]).await?.expect_no_conflict()
        };
        self.mongo.call(format!("resolving unreadable entry {place} of {}", self.name()), work).await
    }
}

#[async_trait]
impl InspectOutbox for Outbox {
    async fn pending(&self, after: Option<&str>, limit: usize) -> Result<Vec<OutboxRecord>, StoreError> {
        let doing = format!("listing the outboxes in {}", self.name());
        let filter = doc! { record::PENDING: { "$gt": 0 } };
        let query = EntryQuery { filter, index: HAS_ENTRIES, is_shown: |_| true };
        let work = listed(&self.mongo, self.collection, query, after, limit);
        self.mongo.call(doing, work).await
    }

    async fn poisoned(&self, after: Option<&str>, limit: usize) -> Result<Vec<OutboxRecord>, StoreError> {
        let doing = format!("listing poisoned entries in {}", self.name());
        let query =
            EntryQuery { filter: entry::has_exhausted(), index: POISONED, is_shown: entry::is_exhausted };
        let work = listed(&self.mongo, self.collection, query, after, limit);
        self.mongo.call(doing, work).await
    }

    async fn entries_of(&self, owner: Owner) -> Result<Vec<EntryResult>, StoreError> {
        let doing = format!("reading the outbox of {owner}");
        self.mongo.call(doing, entries_of(&self.mongo, self.collection, owner)).await
    }

    async fn plan(&self) -> Result<String, StoreError> {
        let doing = format!("explaining the query for due entries in {}", self.name());
        self.mongo.call(doing, plan(&self.mongo, self.collection)).await
    }
}

/// A query for entries of outboxes.
struct EntryQuery {
    /// The records.
    filter: Document,
    /// The name of the index that finds these records.
    index: &'static str,
    /// `true` for the entries of a record that are listed.
    is_shown: fn(&Bson) -> bool,
}

/// Lists the entries of records that an index finds.
async fn listed(
    mongo: &Mongo,
    collection: &'static str,
    EntryQuery { mut filter, index, is_shown }: EntryQuery,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<OutboxRecord>, CallError> {
    if limit == 0 {
        // MongoDB interprets 0 as no limit.
        return Ok(Vec::new());
    }
    if let Some(after) = after {
        // An expression compares ids of all types. A plain comparison would only find ids of the same type.
        let after = literal(EntryLocation::read(after)?.record().clone());
        filter.insert("$expr", doc! { "$gt": [format!("${}", record::ID), after] });
    }
    let found = mongo
        .collection(collection)
        .await?
        .find(filter)
        .projection(doc! { record::ID: 1, record::OUTBOX: 1 })
        .sort(doc! { record::ID: 1 })
        // Without the hint the server would scan the index of ids and read all records with an empty outbox.
        .hint(Hint::Name(index.to_owned()))
        .limit(i64::try_from(limit).unwrap_or(i64::MAX))
        .await?;
    Ok(found.map_ok(|stored| shown(mongo, collection, &stored, is_shown)).try_collect().await?)
}

async fn entries_of(
    mongo: &Mongo,
    collection: &'static str,
    owner: Owner,
) -> Result<Vec<EntryResult>, CallError> {
    let found = mongo
        .collection(collection)
        .await?
        .find_one(doc! { record::ID: id(owner) })
        .projection(doc! { record::ID: 1, record::OUTBOX: 1 })
        .await?;
    let record = found.map(|stored| shown(mongo, collection, &stored, |_| true));
    Ok(record.map(|record| record.entries).unwrap_or_default())
}

fn shown(
    mongo: &Mongo,
    collection: &'static str,
    stored: &Document,
    is_shown: fn(&Bson) -> bool,
) -> OutboxRecord {
    let record = EntryLocation::Record { record: stored.get(record::ID).cloned().unwrap_or(Bson::Null) };
    let owner = owner(mongo, collection, stored);
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
    entry::decode(stored).map_err(|why| Unreadable { place: EntryLocation::of(record, stored).write(), why })
}

/// Lists the owners of due entries. It reads only the index, which contains the waiting records in the order of their
/// due times, with their ids.
async fn due(
    mongo: &Mongo,
    collection: &'static str,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Result<Owner, Unreadable>>, CallError> {
    if limit == 0 {
        // MongoDB interprets 0 as no limit.
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
    Ok(found.map_ok(|stored| owner(mongo, collection, &stored)).try_collect().await?)
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

async fn plan(mongo: &Mongo, collection: &'static str) -> Result<String, CallError> {
    let find = doc! {
        "find": mongo.name_of(collection),
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

/// Returns the stages of a plan from the outermost one, with the index that is read.
fn stages(plan: &Document) -> String {
    let name = |field| plan.get_str(field).ok().map(str::to_owned);
    let inner = plan.get_document("inputStage").ok().map(stages);
    [name("stage"), name("indexName"), inner].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn owner(mongo: &Mongo, collection: &'static str, stored: &Document) -> Result<Owner, Unreadable> {
    let id = stored.get(record::ID);
    match (id.and_then(uuid), collection) {
        (Some(id), collections::SESSION) => Ok(Owner::Session(SessionId::from_uuid(id))),
        (Some(id), _) => Ok(Owner::Saga(PartitionKey::from_uuid(id))),
        (None, _) => {
            let place = EntryLocation::Record { record: id.cloned().unwrap_or(Bson::Null) }.write();
            let error =
                CallError::unreadable(collection, id, "a record with an outbox", "its _id is not a UUID");
            Err(Unreadable { place, why: error.of_system(mongo.system()).to_string() })
        }
    }
}

/// Applies claims, settlements or changes of unreadable entries, which are idempotent. It repeats the command once
/// after a retryable error, because otherwise a lost reply would leave entries claimed by a worker that does not know
/// it.
async fn update(mongo: &Mongo, collection: &str, statements: Vec<Statement>) -> Result<Reply, CallError> {
    match mongo.update(collection, statements.clone()).await {
        Err(error) if error.is_retryable() => mongo.update(collection, statements).await,
        answer => answer,
    }
}

/// Claims the ready entries of records. The first command marks them, atomically per record, and the second one fetches
/// them by the mark. If the server rejects some of the statements, it still applies the others.
async fn claim_due(
    mongo: &Mongo,
    collection: &'static str,
    owners: &[Owner],
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<ClaimedEntries>, CallError> {
    if owners.is_empty() {
        return Ok(Vec::new());
    }
    let statements = owners.iter().map(|owner| pipeline::claim(id(*owner), now, until)).collect();
    let refused = match update(mongo, collection, statements).await {
        Ok(_) => None,
        Err(error @ CallError::Statement { .. }) => Some(error),
        Err(error) => return Err(error),
    };
    let ids: Vec<Bson> = owners.iter().map(|owner| id(*owner)).collect();
    let mark = nanos(until);
    let count = batch_size(ids.len());
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
