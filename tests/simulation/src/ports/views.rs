//! Views, and an application's records.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{PartitionKey, StoreError};
use outbox::records::KEPT_AFTER_EXPIRY;
use outbox::{
    AgeFilter, Cursor, Key, OwnedRecord, Page, ReadRecords, ReadViews, StoredRecord, View, ViewPosition,
    Write, WriteRecords, WriteViews,
};
use uuid::Uuid;

use crate::coverage::Call;
use crate::describe::short;
use crate::options::Mutant;
use crate::port::Port;
use crate::time::timestamp;
use crate::world::World;

#[async_trait]
impl WriteViews for Port {
    async fn write(&self, views: &[View]) -> Result<(), StoreError> {
        let views = views.to_vec();
        self.call(Call::VIEWS_WRITE, move |world| views.iter().for_each(|view| world.write_view(view))).await
    }
}

impl World {
    fn write_view(&mut self, view: &View) {
        self.note(|| {
            let ended = if view.ended { ", ended" } else { "" };
            format!("views.write      {} revision {}{ended}", short(&view.partition), view.revision)
        });
        self.check_view(view);
        let stored = self.views.get(&view.partition);
        if stored.is_none_or(|stored| stored.revision < view.revision) {
            self.stale_reads.keep_views(&self.views);
            self.views.insert(view.partition, view.clone());
        }
    }

    /// Returns the views for a call.
    fn views_found(&mut self, is_stale: bool) -> &BTreeMap<PartitionKey, View> {
        if is_stale { self.stale_reads.views().unwrap_or(&self.views) } else { &self.views }
    }

    /// Returns the matching views, the latest first.
    fn views_that(&mut self, is_stale: bool, are: impl Fn(&View) -> bool) -> Vec<View> {
        let mut views: Vec<View> =
            self.views_found(is_stale).values().filter(|view| are(view)).cloned().collect();
        views.sort_by_key(|view| std::cmp::Reverse((view.created_at, view.partition)));
        views
    }
}

#[async_trait]
impl ReadViews for Port {
    async fn view(&self, partition: PartitionKey) -> Result<Option<View>, StoreError> {
        let view = move |world: &mut World, is_stale| world.views_found(is_stale).get(&partition).cloned();
        self.read(Call::VIEWS_READ, view).await
    }

    async fn by_age(
        &self,
        meant: &AgeFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let meant = *meant;
        let page = move |world: &mut World, is_stale| {
            let place = |cursor: Cursor| (cursor.created_at, cursor.partition);
            let follows = |view: &View, after| (place(view.place()) < place(after)) == meant.ended;
            let mut views = world.views_that(is_stale, |view| {
                view.ended == meant.ended
                    && meant.list.is_none_or(|list| view.is_in(list))
                    && view.created_at < meant.before
                    && after.is_none_or(|after| view.place() != after && follows(view, after))
            });
            if !meant.ended {
                views.reverse();
            }
            Page::of(views, limit)
        };
        self.read(Call::VIEWS_READ, page).await
    }

    async fn count_unfinished_of(&self, list: Uuid, limit: usize) -> Result<usize, StoreError> {
        let count = move |world: &mut World, is_stale| {
            world.views_that(is_stale, |view| view.list == list && !view.ended).len().min(limit)
        };
        self.read(Call::VIEWS_READ, count).await
    }

    async fn unfinished_of(&self, list: Uuid, limit: usize) -> Result<Vec<View>, StoreError> {
        let unfinished = move |world: &mut World, is_stale| {
            let mut views = world.views_that(is_stale, |view| view.list == list && !view.ended);
            views.truncate(limit);
            views
        };
        self.read(Call::VIEWS_READ, unfinished).await
    }

    async fn list(&self, list: Uuid, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        let page = move |world: &mut World, is_stale| {
            let place = |cursor: Cursor| (cursor.created_at, cursor.partition);
            let follows = |view: &View| after.is_none_or(|after| place(view.place()) < place(after));
            let mut items = world.views_that(is_stale, |view| view.is_in(list) && follows(view));
            let more = items.len() > limit;
            items.truncate(limit);
            Page { next: items.last().filter(|_| more).map(View::place), items }
        };
        self.read(Call::VIEWS_READ, page).await
    }

    /// Changes are not requested: views are stored without an order.
    async fn changed(
        &self,
        _: Uuid,
        _: u64,
        _: Option<ViewPosition>,
        _: usize,
    ) -> Result<Vec<(ViewPosition, View)>, StoreError> {
        Err(unordered())
    }

    async fn last_written(&self, _: Uuid) -> Result<u64, StoreError> {
        Err(unordered())
    }

    fn settled(&self, at: u64) -> u64 {
        at
    }
}

fn unordered() -> StoreError {
    StoreError::unusable("reading what has changed", "the simulation keeps no order of views")
}

#[async_trait]
impl ReadRecords for Port {
    async fn stored_record(&self, key: &Key) -> Result<Option<StoredRecord>, StoreError> {
        let key = key.clone();
        self.call(Call::RECORDS_READ, move |world| world.stored_record(&key).cloned()).await
    }
}

#[async_trait]
impl WriteRecords for Port {
    async fn write_record(&self, write: &Write) -> Result<(), StoreError> {
        self.universe.with(|world| world.write_record(write));
        Ok(())
    }

    async fn advance_record(&self, record: &OwnedRecord) -> Result<(), StoreError> {
        let record = record.clone();
        self.call(Call::RECORDS_ADVANCE, move |world| world.advance_record(record)).await
    }
}

impl World {
    /// Returns a record unless its store has deleted it, which it does some time after the record was removed.
    pub(crate) fn stored_record(&self, key: &Key) -> Option<&StoredRecord> {
        let now = timestamp(self.now);
        let is_kept = |end: Timestamp| now.duration_since(end) < KEPT_AFTER_EXPIRY;
        self.records.get(key).filter(|record| record.expires_at.is_none_or(is_kept))
    }

    /// Returns the revision of a record; 0 if there is none.
    pub(crate) fn record_revision(&self, key: &Key) -> u64 {
        self.stored_record(key).map_or(0, |record| record.revision)
    }

    pub(crate) fn write_record(&mut self, Write { key, body, expires_at }: &Write) {
        let revision = self.record_revision(key) + 1;
        let record = StoredRecord { revision, body: body.clone(), expires_at: *expires_at };
        self.records.insert(key.clone(), record);
    }

    fn advance_record(&mut self, record: OwnedRecord) {
        let (found, next) = (self.record_revision(&record.key), record.stored());
        let (key, revision) = (record.key, next.revision);
        self.note(|| format!("records.advance  {key} from {found} to {revision}"));
        self.check_record(&key, revision);
        if next.body.is_none() && self.has(Mutant::RemovalForgetsRevision) {
            self.records.remove(&key);
            return;
        }
        if found < revision || self.has(Mutant::RecordGoesBack) {
            self.records.insert(key, next);
        }
    }
}
