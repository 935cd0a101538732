//! Saga documents.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use contracts::{AttemptId, Job, SearchId, StoreError};
use futures::TryStreamExt;
use jiff::Timestamp;
use mongodb::bson::{Bson, Document as Bsons, doc};
use mongodb::options::ReadConcern;
use outbox::Settlement;
use worker::document::{Document, Persist, Persisted, ReadSaga, WriteSaga};

use crate::Mongo;
use crate::document::{self, author, decode, has_expired};
use crate::fault::Fault;
use crate::names::{collections, record};
use crate::pipeline::{self, Statement};
use crate::value::{Key, expired_until, some_of};

#[async_trait]
impl ReadSaga for Mongo {
    async fn load(&self, searches: &[SearchId], now: Timestamp) -> Result<Vec<Option<Document>>, StoreError> {
        let doing = format!("loading search {}", some_of(searches.iter()));
        self.call(doing, load(self, searches, now)).await
    }
}

async fn load(mongo: &Mongo, searches: &[SearchId], now: Timestamp) -> Result<Vec<Option<Document>>, Fault> {
    let expired_until = expired_until(now, mongo.saga_retention());
    let mut found: BTreeMap<SearchId, Document> = BTreeMap::new();
    for stored in find(mongo, searches, doc! {}, ReadConcern::majority()).await? {
        if !has_expired(&stored, expired_until) {
            let document = decode(&stored)?;
            found.insert(document.search_id, document);
        }
    }
    Ok(searches.iter().map(|search| found.get(search).cloned()).collect())
}

/// The documents of searches, in one call: the limit tells the server that there is nothing more to ask for, so
/// that it keeps no cursor open.
/// The jobs of searches as their documents show them.
pub(crate) async fn shown(mongo: &Mongo, searches: &[SearchId]) -> Result<BTreeMap<SearchId, Job>, Fault> {
    let mut jobs = BTreeMap::new();
    for stored in find(mongo, searches, doc! { record::OUTBOX: 0 }, ReadConcern::majority()).await? {
        let (search, version, content) = document::content(&stored)?;
        jobs.extend(content.job(search, version).map(|job| (search, job)));
    }
    Ok(jobs)
}

async fn find(
    mongo: &Mongo,
    searches: &[SearchId],
    projection: Bsons,
    concern: ReadConcern,
) -> Result<Vec<Bsons>, Fault> {
    let ids: Vec<Bson> = searches.iter().collect::<BTreeSet<_>>().into_iter().map(Key::key).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    let found = mongo
        .collection(collections::SAGA)
        .find(doc! { record::ID: { "$in": ids } })
        .projection(projection)
        .limit(count.into())
        .batch_size(count)
        .read_concern(concern)
        .await?;
    Ok(found.try_collect().await?)
}

#[async_trait]
impl WriteSaga for Mongo {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<Persisted>, StoreError> {
        let doing = format!("storing search {}", some_of(writes.iter().map(|write| write.search_id)));
        self.call(doing, persist(self, writes, now)).await
    }

    async fn settle(&self, settlements: &[(SearchId, Vec<Settlement>)]) -> Result<(), StoreError> {
        let doing =
            format!("settling the outbox of search {}", some_of(settlements.iter().map(|(id, _)| id)));
        let statements: Vec<Statement> = settlements
            .iter()
            .filter(|(_, some)| !some.is_empty())
            .map(|(search, some)| pipeline::settle(search.key(), some))
            .collect();
        if statements.is_empty() {
            return Ok(());
        }
        let work = async { self.update(collections::SAGA, statements).await?.expect_none_taken() };
        self.call(doing, work).await
    }
}

async fn persist(mongo: &Mongo, writes: &[Persist], now: Timestamp) -> Result<Vec<Persisted>, Fault> {
    if writes.is_empty() {
        return Ok(Vec::new());
    }
    let statements = writes
        .iter()
        .map(|write| pipeline::persist(write, now, mongo.saga_retention()))
        .collect::<Result<Vec<_>, _>>()?;
    let inserts: Vec<bool> = statements.iter().map(|statement| statement.upsert).collect();
    let outcomes = mongo.update(collections::SAGA, statements).await?.outcomes(&inserts);
    if outcomes.contains(&None) {
        look_up(mongo, writes, outcomes).await
    } else {
        Ok(outcomes.into_iter().flatten().collect())
    }
}

/// Lets the documents say what became of the writes that the answer leaves open: each names its author.
///
/// All writes have ended by now and are confirmed, so a document by another author is one that this write did not
/// make, or one that somebody has built upon it already. Taking the latter for a conflict does no harm: the new
/// attempt finds its message among the processed ones; and whoever wrote in between has taken the partition over,
/// so that nothing this attempt gives back counts. (Of two writes of one search in one call the earlier is taken for
/// a conflict likewise; the worker writes a search once in a call.)
async fn look_up(
    mongo: &Mongo,
    writes: &[Persist],
    outcomes: Vec<Option<Persisted>>,
) -> Result<Vec<Persisted>, Fault> {
    let open = writes.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_none());
    let searches: Vec<SearchId> = open.map(|(write, _)| write.search_id).collect();
    let only_author = doc! { format!("{}.attempt", record::CONTENT): 1 };
    let authors: BTreeMap<SearchId, AttemptId> = find(mongo, &searches, only_author, ReadConcern::majority())
        .await?
        .iter()
        .map(author)
        .collect::<Result<_, _>>()?;
    let by_author = |write: &Persist| {
        let is_ours = authors.get(&write.search_id) == Some(&write.content.attempt);
        if is_ours { Persisted::Stored } else { Persisted::Conflict }
    };
    Ok(writes.iter().zip(outcomes).map(|(write, known)| known.unwrap_or_else(|| by_author(write))).collect())
}
