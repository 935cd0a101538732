//! Views: sagas as their readers see them.
//!
//! What is shown is in a field of its own, as the application wrote it; what a view is found by is in fields beside it,
//! under the names that they had first.

use async_trait::async_trait;
use futures::TryStreamExt;
use messages::{PartitionKey, StoreError};
use mongodb::bson::{Document, doc};
use outbox::{Cursor, Page, ReadViews, View, WriteViews};
use uuid::Uuid;

use crate::Mongo;
use crate::fault::Fault;
use crate::names::collections;
use crate::pipeline::Statement;
use crate::value::{
    Key, bool_field, count_field, int, int_field, literal, nanos, serde_field, some_of, timestamp, to_bson,
    uuid_field,
};

const ID: &str = "_id";
const REVISION: &str = "Revision";
/// Whether nothing will change any more; the index of unfinished views holds only those for which it is false.
pub(crate) const ENDED: &str = "Ended";
/// The list that it is in.
pub(crate) const LIST: &str = "ProjectId";
/// In nanoseconds, for the order.
pub(crate) const CREATED_AT: &str = "CreatedAt";
const BODY: &str = "Job";

fn encode(view: &View) -> Result<Document, Fault> {
    Ok(doc! {
        ID: view.partition.key(),
        REVISION: int(view.revision),
        ENDED: view.ended,
        LIST: view.list.key(),
        CREATED_AT: nanos(view.created_at),
        BODY: to_bson(&view.body)?,
    })
}

fn decode(stored: &Document) -> Result<View, Fault> {
    read(stored).map_err(|why| Fault::foreign(collections::VIEW, stored.get(ID), "a view", &why))
}

fn read(stored: &Document) -> Result<View, String> {
    Ok(View {
        partition: uuid_field(stored, ID).map(PartitionKey::from_uuid)?,
        revision: count_field(stored, REVISION)?,
        ended: bool_field(stored, ENDED)?,
        list: uuid_field(stored, LIST)?,
        created_at: int_field(stored, CREATED_AT).map(timestamp)?,
        body: serde_field(stored, BODY)?,
    })
}

/// Creates a view unless there is one: filter and update of an upsert.
pub(crate) fn create(view: &View) -> Result<(Document, Document), Fault> {
    let mut fields = encode(view)?;
    fields.remove(ID);
    Ok((doc! { ID: view.partition.key() }, doc! { "$setOnInsert": fields }))
}

/// Writes a view unless the stored one is as recent. The condition is in the update, not in the filter: then the
/// filter is the id alone, and of two that insert at once the server itself repeats the loser, which compares
/// revisions with the winner. With the condition in the filter a later revision could lose to an earlier one.
fn statement(view: &View) -> Result<Statement, Fault> {
    let is_later = doc! { "$gt": [int(view.revision), { "$ifNull": [format!("${REVISION}"), -1] }] };
    let next = doc! { "$cond": [is_later, literal(encode(view)?), "$$ROOT"] };
    Ok(Statement {
        filter: doc! { ID: view.partition.key() },
        pipeline: vec![doc! { "$replaceWith": next }],
        upsert: true,
    })
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
            self.update(collections::VIEW, statements).await?.expect_none_taken()
        };
        self.call(doing, work).await
    }
}

#[async_trait]
impl ReadViews for Mongo {
    async fn view(&self, partition: PartitionKey) -> Result<Option<View>, StoreError> {
        let work = async {
            let views = self.collection(collections::VIEW);
            let stored = views.find_one(doc! { ID: partition.key() }).await?;
            stored.as_ref().map(decode).transpose()
        };
        self.call(format!("reading the view of partition {partition}"), work).await
    }

    async fn oldest_unfinished(&self, limit: usize) -> Result<Vec<View>, StoreError> {
        if limit == 0 {
            // MongoDB takes 0 for no limit.
            return Ok(Vec::new());
        }
        let work = async {
            let views = self.collection(collections::VIEW);
            let found = views
                .find(doc! { ENDED: false })
                .sort(doc! { CREATED_AT: 1, ID: 1 })
                .limit(int(limit))
                .await?;
            found.map_err(Fault::from).and_then(async |stored: Document| decode(&stored)).try_collect().await
        };
        self.call("listing the unfinished views".to_owned(), work).await
    }

    async fn count_unfinished_of(&self, list: Uuid, limit: usize) -> Result<usize, StoreError> {
        let work = async {
            let views = self.collection(collections::VIEW);
            // MongoDB takes 0 for no limit.
            let most = u64::try_from(limit.max(1)).unwrap_or(u64::MAX);
            let count = views.count_documents(doc! { LIST: list.key(), ENDED: false }).limit(most).await?;
            Ok(usize::try_from(count).unwrap_or(usize::MAX).min(limit))
        };
        self.call(format!("counting the unfinished views of list {list}"), work).await
    }

    async fn unfinished_of(&self, list: Uuid, limit: usize) -> Result<Vec<View>, StoreError> {
        if limit == 0 {
            // MongoDB takes 0 for no limit.
            return Ok(Vec::new());
        }
        let work = async {
            let views = self.collection(collections::VIEW);
            let found = views.find(doc! { LIST: list.key(), ENDED: false }).limit(int(limit)).await?;
            found.map_err(Fault::from).and_then(async |stored: Document| decode(&stored)).try_collect().await
        };
        self.call(format!("listing the unfinished views of list {list}"), work).await
    }

    async fn list(&self, list: Uuid, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        let mut filter = doc! { LIST: list.key() };
        if let Some(Cursor { created_at, partition }) = after {
            let created_at = nanos(created_at);
            let same_time = doc! { CREATED_AT: created_at, ID: { "$lt": partition.key() } };
            filter.insert("$or", vec![doc! { CREATED_AT: { "$lt": created_at } }, same_time]);
        }
        let work = async {
            let views = self.collection(collections::VIEW);
            let found =
                views.find(filter).sort(doc! { CREATED_AT: -1, ID: -1 }).limit(int(limit.saturating_add(1)));
            let found: Vec<Document> = found.await?.try_collect().await?;
            Ok(Page::of(found.iter().map(decode).collect::<Result<_, _>>()?, limit))
        };
        self.call(format!("listing the views of list {list}"), work).await
    }
}
