//! Up-to-date views for readers.
//!
//! Views are written with a delay. While the document of a partition is stored, its view is computed from the document,
//! whether or not it has been written yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::try_join;
use messages::{Host, PartitionKey, StoreError};
use outbox::{AgeFilter, Cursor, FieldFilter, Page, ReadViews, View, ViewPosition};
use uuid::Uuid;

use crate::document::ReadDocuments;
use crate::state_machine::Saga;

/// Reads the views of a saga.
#[derive(Clone)]
pub struct Views<S> {
    /// The saga, which computes the view of a document.
    pub saga: S,
    /// Reads the written views.
    pub written: Arc<dyn ReadViews>,
    /// Reads documents.
    pub documents: Arc<dyn ReadDocuments>,
    /// The clock.
    pub host: Arc<dyn Host>,
}

impl<S: Saga> Views<S> {
    /// Returns the view of a partition; `None` if it was removed.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable or holds a value that this version cannot read. A retry helps only in
    /// the first case.
    pub async fn view(&self, partition: PartitionKey) -> Result<Option<View>, StoreError> {
        let (written, mut shown) =
            try_join(self.written.view(partition), self.shown(std::slice::from_ref(&partition))).await?;
        Ok(latest(written, shown.remove(&partition).transpose()?).filter(|view| !view.is_removed()))
    }

    /// Returns the views of partitions that have not ended, the oldest first. A partition that began without a session
    /// is included once its view has been written.
    ///
    /// # Errors
    /// Returns the errors of [`Views::view`].
    pub async fn unfinished(&self) -> Result<Vec<View>, StoreError> {
        self.oldest_unfinished(usize::MAX).await
    }

    /// Works like [`Views::unfinished`], with at most `limit` views.
    ///
    /// # Errors
    /// Returns the errors of [`Views::view`].
    pub async fn oldest_unfinished(&self, limit: usize) -> Result<Vec<View>, StoreError> {
        let mut views = self.refresh(self.written.oldest_unfinished(limit).await?).await?;
        views.retain(|view| !view.ended);
        Ok(views)
    }

    /// Returns up to `limit` views of a list that have not ended, in no particular order.
    ///
    /// # Errors
    /// Returns the errors of [`Views::view`].
    pub async fn unfinished_of(&self, list: Uuid, limit: usize) -> Result<Vec<View>, StoreError> {
        let mut views = self.refresh(self.written.unfinished_of(list, limit).await?).await?;
        views.retain(|view| !view.ended);
        Ok(views)
    }

    /// Returns up to `limit` views that a list contains, the latest first, after a cursor or from the beginning. A page
    /// is short if the documents of views show that they have left the list.
    ///
    /// # Errors
    /// Returns the errors of [`Views::view`].
    pub async fn list(&self, list: Uuid, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        let Page { items, next } = self.written.list(list, after, limit).await?;
        let mut items = self.refresh(items).await?;
        items.retain(|view| view.is_in(list));
        Ok(Page { items, next })
    }

    /// Returns up to `limit` views that match both filters, after a cursor or from the beginning; see
    /// [`ReadViews::matching`]. A view is found by its fields as they were last written, and returned as it is now,
    /// unless it no longer matches.
    ///
    /// # Errors
    /// Returns the errors of [`Views::view`].
    pub async fn matching(
        &self,
        meant: &AgeFilter,
        fields: &FieldFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let Page { items, next } = self.written.matching(meant, fields, after, limit).await?;
        let mut items = self.refresh(items).await?;
        items.retain(|view| {
            let is_listed = meant.list.is_none_or(|list| view.is_in(list));
            is_listed && view.ended == meant.ended && fields.matches(&view.body)
        });
        Ok(Page { items, next })
    }

    /// Returns up to `limit` views of a list that have not ended or were written after `since`, including removed ones;
    /// see [`ReadViews::changed`].
    ///
    /// # Errors
    /// Returns the errors of [`Views::view`].
    pub async fn changed(
        &self,
        list: Uuid,
        since: u64,
        after: Option<ViewPosition>,
        limit: usize,
    ) -> Result<Vec<(ViewPosition, View)>, StoreError> {
        let (places, views): (Vec<ViewPosition>, Vec<View>) =
            self.written.changed(list, since, after, limit).await?.into_iter().unzip();
        Ok(places.into_iter().zip(self.refresh(views).await?).collect())
    }

    /// Returns the current version of each of these views, in order.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable; a retry may succeed.
    pub async fn refresh(&self, written: Vec<View>) -> Result<Vec<View>, StoreError> {
        let partitions: Vec<PartitionKey> = written.iter().map(|view| view.partition).collect();
        let mut shown = self.shown(&partitions).await?;
        let latest = written.into_iter().filter_map(|view| {
            // A document that cannot be read must not hide the whole list; its written view is still valid.
            let shown = shown.remove(&view.partition).and_then(Result::ok);
            latest(Some(view), shown)
        });
        Ok(latest.collect())
    }

    /// Returns the views that the stored documents yield.
    async fn shown(
        &self,
        partitions: &[PartitionKey],
    ) -> Result<BTreeMap<PartitionKey, Result<View, StoreError>>, StoreError> {
        if partitions.is_empty() {
            return Ok(BTreeMap::new());
        }
        let loaded = self.documents.load(partitions, self.host.now()).await?;
        let views = partitions.iter().zip(loaded).filter_map(|(partition, loaded)| {
            let document = match loaded.transpose()? {
                Ok(document) => document,
                Err(error) => return Some((*partition, Err(error))),
            };
            let version = document.version;
            match document.open(&self.saga) {
                Ok(document) => {
                    let mut view = self.saga.view(*partition, &document.content.state)?;
                    view.ended |= document.content.terminated.is_some();
                    Some((*partition, Ok(view.at_revision(version))))
                }
                Err(error) => Some((*partition, Err(error))),
            }
        });
        Ok(views.collect())
    }
}

fn latest(written: Option<View>, shown: Option<View>) -> Option<View> {
    [written, shown].into_iter().flatten().max_by_key(|view| view.revision)
}
