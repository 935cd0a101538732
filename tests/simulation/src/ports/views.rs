//! Views, and an application's records.

use std::collections::BTreeMap;

use async_trait::async_trait;
use messages::{PartitionKey, StoreError};
use outbox::{
    AgeFilter, Cursor, Key, OwnedRecord, Page, ReadRecords, ReadViews, Record, View, ViewPosition, Write,
    WriteRecords, WriteViews,
};
use uuid::Uuid;

use crate::coverage::Call;
use crate::describe::short;
use crate::options::Mutant;
use crate::port::Port;
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
    async fn record(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let key = key.clone();
        self.call(Call::RECORDS_READ, move |world| world.records.get(&key).cloned()).await
    }
}

#[async_trait]
impl WriteRecords for Port {
    async fn write_record(&self, Write { key, body }: &Write) -> Result<(), StoreError> {
        self.universe.with(|world| {
            let revision = world.records.get(key).map_or(0, |record| record.revision) + 1;
            world.records.insert(key.clone(), Record { revision, body: body.clone() });
        });
        Ok(())
    }

    async fn advance_record(&self, record: &OwnedRecord) -> Result<(), StoreError> {
        let record = record.clone();
        self.call(Call::RECORDS_ADVANCE, move |world| world.advance_record(record)).await
    }
}

impl World {
    fn advance_record(&mut self, OwnedRecord { key, revision, body }: OwnedRecord) {
        let found = self.records.get(&key).map_or(0, |record| record.revision);
        self.note(|| format!("records.advance  {key} from {found} to {revision}"));
        self.check_record(&key, revision);
        if found < revision || self.has(Mutant::RecordGoesBack) {
            self.records.insert(key, Record { revision, body });
        }
    }
}
