//! Views of sagas for readers.
//!
//! The position of a write is its time in microseconds by the clock of its writer. Positions of one view always ascend.
//! Clocks of machines differ, and indexes are eventually consistent, so a reader resumes `MAX_DELAY` earlier.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use aws_sdk_dynamodb::types::AttributeValue;
use futures::future::try_join;
use messages::{PartitionKey, StoreError};
use outbox::{AgeFilter, Cursor, Page, ReadViews, View, ViewPosition, WriteViews};
use uuid::Uuid;

use crate::Dynamo;
use crate::error::MalformedItem;
use crate::item::{self, Item, nanos, number, readable, text};
use crate::listing::{Range, Scan};
use crate::names::attributes::{CONTENT, CREATED, ENDED, FURTHER_LISTS, KEY, LIST, PARTITION, REVISION};
use crate::names::{CHANGED, LISTED, OPEN, TIME, position, shard, shards, sortable};
use crate::store::make_all;
use crate::transaction::{Outcome, Step};
use crate::update::{Change, Knowledge};

/// The maximum time from the position of a write until all readers find it, in microseconds: the difference of two
/// clocks, which is up to ten minutes, the duration of a call and the delay of an index.
const MAX_DELAY: u64 = 15 * 60 * 1_000_000;

pub(crate) fn key(partition: PartitionKey) -> String {
    format!("view#{partition}")
}

/// Returns the item of a view that was written at a position.
pub(crate) fn encode(view: &View, at: u64, doing: &str) -> Result<Item, StoreError> {
    let id = view.partition.as_uuid();
    let mut item = item::new(&key(view.partition));
    let created = position(view.created_at, id);
    let changed = changed(ViewPosition { at, partition: view.partition });
    for (name, value) in [
        (REVISION, number(view.revision)),
        (ENDED, AttributeValue::Bool(view.ended)),
        (LIST, text(view.list.to_string())),
        (CREATED, nanos(view.created_at)),
        (CONTENT, item::json(&view.body, doing)?),
        (LISTED.partition, text(view.list.to_string())),
        (LISTED.sort, text(&created)),
        (TIME.partition, text(shard(kind(view.ended), id))),
        (TIME.sort, text(created)),
        (CHANGED.partition, text(view.reported_in().to_string())),
        (CHANGED.sort, text(changed)),
    ] {
        item::set(&mut item, name, value);
    }
    if !view.ended {
        item::set(&mut item, OPEN.partition, text(view.list.to_string()));
    }
    let further: Vec<Uuid> = view.further_lists().collect();
    if !further.is_empty() {
        item::set(&mut item, FURTHER_LISTS, item::json(&further, doing)?);
    }
    Ok(item)
}

/// Returns the steps that create a view with its copies in further lists.
pub(crate) fn creation(view: &View, at: u64, doing: &str) -> Result<Vec<Step>, StoreError> {
    let item = encode(view, at, doing)?;
    let copies: Vec<Step> = copies(view, &item).map(Step::Put).collect();
    Ok([vec![Step::Create(item)], copies].concat())
}

/// Returns the partition of a list's copies in the index, which earlier versions do not read.
fn copies_of(list: Uuid) -> String {
    format!("in#{list}")
}

fn key_of_copy(list: Uuid, partition: PartitionKey) -> String {
    format!("view_in#{list}#{partition}")
}

/// Returns the copies of a view's item in its further lists. They are in no other index.
fn copies(view: &View, item: &Item) -> impl Iterator<Item = Item> {
    view.further_lists().map(move |list| {
        let mut copy = item.clone();
        for index in [TIME, CHANGED, OPEN] {
            copy.remove(index.partition);
            copy.remove(index.sort);
        }
        for (name, value) in [
            (KEY, key_of_copy(list, view.partition)),
            (PARTITION, view.partition.to_string()),
            (LISTED.partition, copies_of(list)),
        ] {
            item::set(&mut copy, name, text(value));
        }
        copy
    })
}

fn further_lists(stored: &Item, doing: &str) -> Result<BTreeSet<Uuid>, StoreError> {
    if !stored.contains_key(FURTHER_LISTS) {
        return Ok(BTreeSet::new());
    }
    item::from_json(stored, FURTHER_LISTS, doing)
}

/// Returns the partition of a view, or of its copy in a further list.
fn partition(stored: &Item) -> Result<PartitionKey, MalformedItem> {
    if stored.contains_key(PARTITION) {
        return item::parsed(stored, PARTITION).map(PartitionKey::from_uuid);
    }
    let id = item::str_of(stored, KEY)?.strip_prefix("view#").and_then(|id| id.parse().ok());
    id.map(PartitionKey::from_uuid).ok_or(MalformedItem(KEY))
}

fn kind(ended: bool) -> &'static str {
    if ended { "view_ended" } else { "view_open" }
}

fn changed(ViewPosition { at, partition }: ViewPosition) -> String {
    format!("{at:020}#{partition}")
}

fn read_position(stored: &Item) -> Result<u64, MalformedItem> {
    at_of(item::str_of(stored, CHANGED.sort)?).ok_or(MalformedItem(CHANGED.sort))
}

fn at_of(sort: &str) -> Option<u64> {
    sort.split_once('#')?.0.parse().ok()
}

fn decode(stored: &Item, doing: &str) -> Result<View, StoreError> {
    let read = || {
        Ok(View {
            partition: partition(stored)?,
            revision: item::revision(stored)?,
            ended: item::is(stored, ENDED),
            list: item::parsed(stored, LIST)?,
            also_in: BTreeSet::new(),
            created_at: item::time_of(stored, CREATED)?.ok_or(MalformedItem(CREATED))?,
            body: serde_json::Value::Null,
        })
    };
    let (body, also_in) = (item::from_json(stored, CONTENT, doing)?, further_lists(stored, doing)?);
    Ok(View { body, also_in, ..readable(read(), doing)? })
}

impl Dynamo {
    /// Returns the position of a write now.
    pub(crate) fn view_position(&self) -> u64 {
        u64::try_from(self.host.now().as_microsecond()).unwrap_or(0)
    }

    async fn write_view(&self, view: &View) -> Result<(), StoreError> {
        let doing = format!("storing the view of partition {}", view.partition);
        if !view.also_in.is_empty() {
            return self.write_with_copies(view, &doing).await;
        }
        let key = key(view.partition);
        let is_done = self.change_item(&key, Knowledge::Nothing, &doing, |stored| {
            let Some(next) = self.next_view(view, stored, &doing)? else { return Ok(Change::Keep(true)) };
            let has_copies = stored.is_some_and(|stored| stored.contains_key(FURTHER_LISTS));
            Ok(if has_copies { Change::Keep(false) } else { Change::Write(next, true) })
        });
        if is_done.await? { Ok(()) } else { self.write_with_copies(view, &doing).await }
    }

    /// Returns the item of a view; `None` if the stored one has the same or a later revision.
    fn next_view(&self, view: &View, stored: Option<&Item>, doing: &str) -> Result<Option<Item>, StoreError> {
        let Some(stored) = stored else { return encode(view, self.view_position(), doing).map(Some) };
        let revision: Option<u64> = readable(item::number_of(stored, REVISION), doing)?;
        if revision.is_some_and(|revision| revision >= view.revision) {
            return Ok(None);
        }
        let last = readable(read_position(stored), doing)?;
        encode(view, self.view_position().max(last.saturating_add(1)), doing).map(Some)
    }

    /// Stores a view and its copies in one transaction, and deletes the copies in lists that it has left. The stored
    /// view therefore always names all copies.
    async fn write_with_copies(&self, view: &View, doing: &str) -> Result<(), StoreError> {
        let mut round = 0;
        loop {
            let stored = self.get(&key(view.partition), doing).await?;
            let Some(item) = self.next_view(view, stored.as_ref(), doing)? else { return Ok(()) };
            let known = stored.as_ref().map(|stored| further_lists(stored, doing)).transpose()?;
            let (known, further): (_, BTreeSet<Uuid>) =
                (known.unwrap_or_default(), view.further_lists().collect());
            let left = known.difference(&further);
            let left = left.map(|list| Step::Delete { key: key_of_copy(*list, view.partition) });
            let mut steps: Vec<Step> = copies(view, &item).map(Step::Put).chain(left).collect();
            let stamp = stored.as_ref().map(|stored| item::stamp(stored).to_owned());
            steps.push(Step::Replace { item, stamp });
            match self.transact(&steps, doing).await? {
                Outcome::Done => return Ok(()),
                Outcome::Refused(_) => self.wait(&mut round, doing).await?,
            }
        }
    }

    async fn open_views(&self, list: Uuid, limit: usize, doing: &str) -> Result<Vec<View>, StoreError> {
        let scan = Scan { index: OPEN, partitions: vec![list.to_string()], descending: false };
        self.items(&scan, Range::all(), limit, doing, |item| decode(item, doing).map(Some)).await
    }
}

#[async_trait]
impl WriteViews for Dynamo {
    async fn write(&self, views: &[View]) -> Result<(), StoreError> {
        let writes: Vec<_> = views.iter().map(|view| self.write_view(view)).collect();
        make_all(writes).await.map(drop)
    }
}

#[async_trait]
impl ReadViews for Dynamo {
    async fn view(&self, partition: PartitionKey) -> Result<Option<View>, StoreError> {
        let doing = format!("reading the view of partition {partition}");
        let stored = self.get(&key(partition), &doing).await?;
        stored.map(|item| decode(&item, &doing)).transpose()
    }

    /// Views of all lists are in the index of time. The index of lists contains the views of one list together with the
    /// views of all other lists.
    async fn by_age(
        &self,
        meant: &AgeFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let doing = "listing views by their age";
        let descending = meant.ended;
        let scan = match meant.list {
            None => Scan { index: TIME, partitions: shards(kind(meant.ended)), descending },
            Some(list) => listed(list, descending),
        };
        // A position at this time is longer, so it sorts after this and is not included.
        let range = Range::all().until(sortable(meant.before));
        let range = bounded(range, after, descending);
        let ended = meant.ended;
        let read = |item: &Item| Ok(Some(decode(item, doing)?).filter(|view| view.ended == ended));
        Ok(Page::of(self.items(&scan, range, limit.saturating_add(1), doing, read).await?, limit))
    }

    async fn count_unfinished_of(&self, list: Uuid, limit: usize) -> Result<usize, StoreError> {
        let doing = format!("counting the views of list {list} that have not ended");
        Ok(self.open_views(list, limit, &doing).await?.len())
    }

    async fn unfinished_of(&self, list: Uuid, limit: usize) -> Result<Vec<View>, StoreError> {
        let doing = format!("listing the views of list {list} that have not ended");
        self.open_views(list, limit, &doing).await
    }

    async fn list(&self, list: Uuid, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        let doing = format!("reading list {list} of views");
        let scan = listed(list, true);
        let range = bounded(Range::all(), after, true);
        let read = |item: &Item| decode(item, &doing).map(Some);
        Ok(Page::of(self.items(&scan, range, limit.saturating_add(1), &doing, read).await?, limit))
    }

    async fn changed(
        &self,
        list: Uuid,
        since: u64,
        after: Option<ViewPosition>,
        limit: usize,
    ) -> Result<Vec<(ViewPosition, View)>, StoreError> {
        let doing = format!("reading changes of list {list} of views");
        let scan = |index| Scan { index, partitions: vec![list.to_string()], descending: false };
        let range = after.map_or_else(Range::all, |after| Range::all().after(&changed(after)));
        // After every position of this number.
        let written = range.clone().after(&format!("{since:020}~"));
        let written = after.filter(|after| after.at > since).map_or(written, |_| range.clone());
        let read = |item: &Item| {
            let view = decode(item, &doing)?;
            let at = readable(read_position(item), &doing)?;
            Ok(Some((ViewPosition { at, partition: view.partition }, view)))
        };
        let (open, written) = try_join(
            self.items(&scan(OPEN), range, limit, &doing, read),
            self.items(&scan(CHANGED), written, limit, &doing, read),
        )
        .await?;
        let found: BTreeMap<ViewPosition, View> = open.into_iter().chain(written).collect();
        Ok(found.into_iter().take(limit).collect())
    }

    async fn last_written(&self, list: Uuid) -> Result<u64, StoreError> {
        let doing = format!("looking when list {list} of views changed last");
        let scan = Scan { index: CHANGED, partitions: vec![list.to_string()], descending: true };
        let last = self.keys(&scan, &Range::all(), 1, &doing).await?;
        Ok(last.first().and_then(|last| at_of(&last.sort)).unwrap_or(0))
    }

    fn settled(&self, at: u64) -> u64 {
        at.saturating_sub(MAX_DELAY)
    }
}

/// Returns the scan of the views that a list contains.
fn listed(list: Uuid, descending: bool) -> Scan {
    Scan { index: LISTED, partitions: vec![list.to_string(), copies_of(list)], descending }
}

fn bounded(range: Range, after: Option<Cursor>, descending: bool) -> Range {
    let Some(Cursor { created_at, partition }) = after else { return range };
    let cursor = position(created_at, partition.as_uuid());
    if descending { range.before(&cursor) } else { range.after(&cursor) }
}
