//! Views of sagas for readers.
//!
//! A document contains the view in one field, as the application wrote it, and separate fields for queries. The
//! separate fields keep the names of the first version.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use futures::TryStreamExt;
use futures::future::try_join;
use messages::store::some_of;
use messages::{PartitionKey, StoreError};
use mongodb::bson::{Bson, Document, Timestamp as ClusterTime, doc};
use outbox::{AgeFilter, Cursor, Page, ReadViews, View, ViewPosition, WriteViews};
use uuid::Uuid;

use crate::Mongo;
use crate::error::CallError;
use crate::names::collections;
use crate::names::view::{CHANGED_AT, CHANGED_IN, CREATED_AT, ENDED, FURTHER_LISTS, LIST};
use crate::pipeline::Statement;
use crate::value::{
    Key, bool_field, count_field, int, int_field, literal, nanos, serde_field, timestamp, to_bson, uuid,
    uuid_field,
};

const ID: &str = "_id";
const REVISION: &str = "Revision";
const BODY: &str = "Job";

/// Maximum time from the cluster time of a write until it is readable, in seconds. The server ends a transaction after
/// a minute
/// (<https://www.mongodb.com/docs/manual/reference/parameters/#mongodb-parameter-param.transactionLifetimeLimitSeconds>).
const MAX_WRITE_DELAY: u64 = 5 * 60;

fn encode(view: &View) -> Result<Document, CallError> {
    let mut stored = doc! {
        ID: view.partition.key(),
        REVISION: int(view.revision),
        ENDED: view.ended,
        LIST: view.list.key(),
        CREATED_AT: nanos(view.created_at),
        CHANGED_IN: view.reported_in().key(),
        BODY: to_bson(&view.body)?,
    };
    let further: Vec<Bson> = view.further_lists().map(|list| list.key()).collect();
    if !further.is_empty() {
        stored.insert(FURTHER_LISTS, further);
    }
    Ok(stored)
}

/// Returns the expression of a view with the cluster time of its write.
fn as_written(view: &View) -> Result<Document, CallError> {
    let at = doc! { CHANGED_AT: "$$CLUSTER_TIME" };
    Ok(doc! { "$mergeObjects": [literal(encode(view)?), at] })
}

fn decode(stored: &Document) -> Result<View, CallError> {
    read(stored).map_err(|why| CallError::unreadable(collections::VIEW, stored.get(ID), "a view", &why))
}

fn read(stored: &Document) -> Result<View, String> {
    Ok(View {
        partition: uuid_field(stored, ID).map(PartitionKey::from_uuid)?,
        revision: count_field(stored, REVISION)?,
        ended: bool_field(stored, ENDED)?,
        list: uuid_field(stored, LIST)?,
        also_in: further_lists(stored)?,
        created_at: int_field(stored, CREATED_AT).map(timestamp)?,
        body: serde_field(stored, BODY)?,
    })
}

fn further_lists(stored: &Document) -> Result<BTreeSet<Uuid>, String> {
    let wrong = || format!("its {FURTHER_LISTS} are not UUIDs");
    match stored.get(FURTHER_LISTS) {
        None => Ok(BTreeSet::new()),
        Some(Bson::Array(lists)) => lists.iter().map(|list| uuid(list).ok_or_else(wrong)).collect(),
        Some(_) => Err(wrong()),
    }
}

/// Returns the filter and the update of an upsert that creates a view unless it exists.
pub(crate) fn create(view: &View) -> Result<(Document, Vec<Document>), CallError> {
    let is_absent = doc! { "$eq": [{ "$type": format!("${REVISION}") }, "missing"] };
    Ok((doc! { ID: view.partition.key() }, replaced(is_absent, view)?))
}

/// Returns the write of a view, unless the stored revision is the same or later. The condition is part of the update
/// and the filter contains only the id. If two statements insert concurrently, the server then repeats the loser, which
/// compares its revision with the winner's. If the filter had this condition, an earlier revision could replace a later
/// one.
fn statement(view: &View) -> Result<Statement, CallError> {
    let is_later = doc! { "$gt": [int(view.revision), { "$ifNull": [format!("${REVISION}"), -1] }] };
    Ok(Statement {
        filter: doc! { ID: view.partition.key() },
        pipeline: replaced(is_later, view)?,
        upsert: true,
    })
}

fn replaced(condition: Document, view: &View) -> Result<Vec<Document>, CallError> {
    Ok(vec![doc! { "$replaceWith": { "$cond": [condition, as_written(view)?, "$$ROOT"] } }])
}

#[async_trait]
impl WriteViews for Mongo {
    async fn write(&self, views: &[View]) -> Result<(), StoreError> {
        if views.is_empty() {
            return Ok(());
        }
        let doing =
            format!("storing the view of partition {}", some_of(views.iter().map(|view| view.partition)));
        let work = async {
            let statements = views.iter().map(statement).collect::<Result<Vec<_>, _>>()?;
            self.update(collections::VIEW, statements).await?.expect_no_conflict()
        };
        self.call(doing, work).await
    }
}

#[async_trait]
impl ReadViews for Mongo {
    async fn view(&self, partition: PartitionKey) -> Result<Option<View>, StoreError> {
        let work = async {
            let views = self.collection(collections::VIEW).await?;
            let stored = views.find_one(doc! { ID: partition.key() }).await?;
            stored.as_ref().map(decode).transpose()
        };
        self.call(format!("reading the view of partition {partition}"), work).await
    }

    async fn by_age(
        &self,
        meant: &AgeFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let beyond = if meant.ended { "$lt" } else { "$gt" };
        let mut created = doc! { "$lt": nanos(meant.before) };
        let mut filter = doc! { ENDED: meant.ended };
        if let Some(Cursor { created_at, partition }) = after {
            let created_at = nanos(created_at);
            // This condition bounds the scan of the index.
            created.insert(format!("{beyond}e"), created_at);
            let same_time = doc! { CREATED_AT: created_at, ID: { beyond: partition.key() } };
            filter.insert("$or", vec![doc! { CREATED_AT: { beyond: created_at } }, same_time]);
        }
        filter.insert(CREATED_AT, created);
        let work = page(self, filter, meant.list, meant.ended, limit);
        self.call("listing views by their age".to_owned(), work).await
    }

    async fn count_unfinished_of(&self, list: Uuid, limit: usize) -> Result<usize, StoreError> {
        let work = async {
            let views = self.collection(collections::VIEW).await?;
            // MongoDB interprets 0 as no limit.
            let max = u64::try_from(limit.max(1)).unwrap_or(u64::MAX);
            let count = views.count_documents(doc! { LIST: list.key(), ENDED: false }).limit(max).await?;
            Ok(usize::try_from(count).unwrap_or(usize::MAX).min(limit))
        };
        self.call(format!("counting the unfinished views of list {list}"), work).await
    }

    async fn unfinished_of(&self, list: Uuid, limit: usize) -> Result<Vec<View>, StoreError> {
        if limit == 0 {
            // MongoDB interprets 0 as no limit.
            return Ok(Vec::new());
        }
        let work = async {
            let views = self.collection(collections::VIEW).await?;
            let found = views.find(doc! { LIST: list.key(), ENDED: false }).limit(int(limit)).await?;
            found
                .map_err(CallError::from)
                .and_then(async |stored: Document| decode(&stored))
                .try_collect()
                .await
        };
        self.call(format!("listing the unfinished views of list {list}"), work).await
    }

    async fn list(&self, list: Uuid, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        let mut filter = Document::new();
        if let Some(Cursor { created_at, partition }) = after {
            let created_at = nanos(created_at);
            let same_time = doc! { CREATED_AT: created_at, ID: { "$lt": partition.key() } };
            filter.insert("$or", vec![doc! { CREATED_AT: { "$lt": created_at } }, same_time]);
        }
        let work = page(self, filter, Some(list), true, limit);
        self.call(format!("listing the views of list {list}"), work).await
    }

    async fn changed(
        &self,
        list: Uuid,
        since: u64,
        after: Option<ViewPosition>,
        limit: usize,
    ) -> Result<Vec<(ViewPosition, View)>, StoreError> {
        if limit == 0 {
            // MongoDB interprets 0 as no limit.
            return Ok(Vec::new());
        }
        let mut open = doc! { LIST: list.key(), ENDED: false };
        open.extend(after.map(|after| beyond(after.at, Some(after.partition))).unwrap_or_default());
        let mut written = doc! { CHANGED_IN: list.key() };
        written.extend(match after {
            Some(after) if after.at > since => beyond(after.at, Some(after.partition)),
            _ => beyond(since, None),
        });
        let work = async {
            let (open, written) =
                try_join(in_order(self, open, limit), in_order(self, written, limit)).await?;
            let found: BTreeMap<ViewPosition, View> = open.into_iter().chain(written).collect();
            Ok(found.into_iter().take(limit).collect())
        };
        self.call(format!("reading changed views of list {list}"), work).await
    }

    async fn last_written(&self, list: Uuid) -> Result<u64, StoreError> {
        let work = async {
            let views = self.collection(collections::VIEW).await?;
            let last =
                views.find_one(doc! { CHANGED_IN: list.key() }).sort(doc! { CHANGED_AT: -1, ID: -1 }).await?;
            Ok(last.as_ref().map_or(0, written_at))
        };
        self.call(format!("reading the last change of the views of list {list}"), work).await
    }

    fn settled(&self, at: u64) -> u64 {
        at.saturating_sub(MAX_WRITE_DELAY << u32::BITS)
    }
}

/// Returns the filter of views written after this time, or at this time after the partition.
fn beyond(at: u64, partition: Option<PartitionKey>) -> Document {
    let later = doc! { CHANGED_AT: { "$gt": cluster_time(at) } };
    let Some(partition) = partition else { return later };
    let beyond = doc! { "$gt": partition.key() };
    // Views without a time sort before all others.
    let number = if at == 0 { Bson::Null } else { cluster_time(at).into() };
    let mut filter = doc! { "$or": [later, { CHANGED_AT: number.clone(), ID: beyond }] };
    if at > 0 {
        // This condition bounds the scan of the index.
        filter.insert(CHANGED_AT, doc! { "$gte": number });
    }
    filter
}

/// Returns the views that match a filter, and that a list contains.
async fn page(
    mongo: &Mongo,
    filter: Document,
    list: Option<Uuid>,
    latest_first: bool,
    limit: usize,
) -> Result<Page, CallError> {
    let direction = if latest_first { -1 } else { 1 };
    let views = mongo.collection(collections::VIEW).await?;
    let found = async |also: Option<(&str, Uuid)>| -> Result<Vec<View>, CallError> {
        let also = also.map(|(field, list)| (field.to_owned(), list.key()));
        let filter: Document = also.into_iter().chain(filter.clone()).collect();
        let sort = doc! { CREATED_AT: direction, ID: direction };
        let found = views.find(filter).sort(sort).limit(int(limit.saturating_add(1))).await?;
        found.map_err(CallError::from).and_then(async |stored: Document| decode(&stored)).try_collect().await
    };
    let Some(list) = list else { return Ok(Page::of(found(None).await?, limit)) };
    let (own, further) = try_join(found(Some((LIST, list))), found(Some((FURTHER_LISTS, list)))).await?;
    Ok(Page::of_both(own, further, latest_first, limit))
}

async fn in_order(
    mongo: &Mongo,
    filter: Document,
    limit: usize,
) -> Result<Vec<(ViewPosition, View)>, CallError> {
    let views = mongo.collection(collections::VIEW).await?;
    let found = views.find(filter).sort(doc! { CHANGED_AT: 1, ID: 1 }).limit(int(limit)).await?;
    let found: Vec<Document> = found.try_collect().await?;
    let read = |stored: &Document| {
        let view = decode(stored)?;
        Ok((ViewPosition { at: written_at(stored), partition: view.partition }, view))
    };
    found.iter().map(read).collect()
}

/// Returns the cluster time of the last write as a number: seconds, and the counter within the second.
fn written_at(stored: &Document) -> u64 {
    match stored.get(CHANGED_AT) {
        Some(Bson::Timestamp(at)) => u64::from(at.time) << u32::BITS | u64::from(at.increment),
        _ => 0,
    }
}

/// The inverse of [`written_at`].
fn cluster_time(at: u64) -> ClusterTime {
    let half = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or(u32::MAX);
    ClusterTime { time: half(at >> u32::BITS), increment: half(at) }
}
