//! History of decisions about messages: one item for the decisions of a call about the messages of one partition.
//!
//! A message leaves about two decisions of 400 bytes, and DynamoDB counts a write in units of 1 KB, so a common item halves
//! the price. Items of one partition may overlap in time, because several processes write them. A reader merges them.
//!
//! An item is never changed, so it has no stamp. A repeated request writes it again under its own key.

use std::collections::BTreeMap;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::{AttributeValue, DeleteRequest, PutRequest, WriteRequest};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use messages::{DecisionRecord, PartitionKey, RecordedVerdict, StoreError};
use saga::KeepHistory;
use saga::history::Place;
use uuid::Uuid;

use crate::Dynamo;
use crate::error::MalformedItem;
use crate::item::{self, Item, readable, text};
use crate::listing::{Range, Scan};
use crate::names::attributes::{DECISIONS, EXPIRES, KEY};
use crate::names::{LISTED, position, shard, shards, sortable};
use crate::store::CONCURRENT;

/// The kind of the items. Decisions about messages without a partition are distributed over shards.
const KIND: &str = "history";
/// The maximum size of the decisions in an item, unless it has only one.
const MAX_BYTES: usize = 1 << NUMBER_BITS;
/// The bits of a decision's number within its item. An item has fewer decisions than bytes.
const NUMBER_BITS: u32 = 16;
/// The maximum time between the first and the last decision of an item. A reader begins this much before its cursor.
const MAX_SPAN: SignedDuration = SignedDuration::from_mins(1);
/// The maximum number of items that are read at once.
const PAGE: usize = 100;
/// The maximum number of requests of one call
/// (<https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html>).
const MAX_BATCH: usize = 25;

/// Decisions about the messages of one partition, the earliest first.
#[derive(Debug)]
struct Part {
    partition: Option<PartitionKey>,
    first_at: Timestamp,
    last_at: Timestamp,
    decisions: Vec<String>,
    bytes: usize,
}

impl Part {
    fn of(decision: &DecisionRecord, text: String) -> Self {
        let DecisionRecord { partition, at, .. } = *decision;
        Self { partition, first_at: at, last_at: at, bytes: text.len(), decisions: vec![text] }
    }

    fn has_room_for(&self, decision: &DecisionRecord, text: &str) -> bool {
        self.partition == decision.partition
            && self.bytes + text.len() <= MAX_BYTES
            && decision.at.duration_since(self.first_at) <= MAX_SPAN
    }

    fn add(&mut self, decision: &DecisionRecord, text: String) {
        self.last_at = decision.at;
        self.bytes += text.len();
        self.decisions.push(text);
    }

    fn encode(self, id: Uuid, retention: SignedDuration) -> Item {
        let mut item = item::new(&format!("{KIND}#{}", id.simple()));
        item::set(
            &mut item,
            LISTED.partition,
            text(self.partition.map_or_else(|| shard(KIND, id), listed_in)),
        );
        item::set(&mut item, LISTED.sort, text(position(self.first_at, id)));
        item::set(&mut item, DECISIONS, AttributeValue::L(self.decisions.into_iter().map(text).collect()));
        item::expire(&mut item, Some(self.last_at.checked_add(retention).unwrap_or(Timestamp::MAX)));
        item
    }
}

/// Returns the parts in the order of their times. Decisions of one moment keep their order.
fn parts(observations: &[DecisionRecord]) -> Result<Vec<Part>, serde_json::Error> {
    let mut ordered: Vec<&DecisionRecord> = observations.iter().collect();
    ordered.sort_by_key(|decision| (decision.partition, decision.at));
    let mut parts: Vec<Part> = Vec::new();
    for decision in ordered {
        // The item has the partition in its position.
        let text = serde_json::to_string(&DecisionRecord { partition: None, ..decision.clone() })?;
        match parts.last_mut().filter(|part| part.has_room_for(decision, &text)) {
            Some(part) => part.add(decision, text),
            None => parts.push(Part::of(decision, text)),
        }
    }
    Ok(parts)
}

fn listed_in(partition: PartitionKey) -> String {
    format!("{KIND}#{partition}")
}

fn scan(partition: Option<PartitionKey>) -> Scan {
    let partitions = partition.map_or_else(|| shards(KIND), |partition| vec![listed_in(partition)]);
    Scan { index: LISTED, partitions, descending: false }
}

/// The ids of one process ascend, and so do the numbers of its decisions.
fn sequence(id: Uuid, index: usize) -> u128 {
    let number = u128::try_from(index).unwrap_or(u128::MAX);
    (id.as_u128() >> NUMBER_BITS << NUMBER_BITS) | number
}

/// A stored part.
struct StoredPart {
    position: String,
    first_at: Option<Timestamp>,
    decisions: Vec<(Place, DecisionRecord<RecordedVerdict>)>,
}

/// Returns the part, unless its retention has passed: TTL deletes late.
fn decode(
    stored: &Item,
    partition: Option<PartitionKey>,
    now: Timestamp,
    doing: &str,
) -> Result<Option<StoredPart>, StoreError> {
    let expires: Option<i64> = readable(item::number_of(stored, EXPIRES), doing)?;
    if expires.is_some_and(|second| second <= now.as_second()) {
        return Ok(None);
    }
    let position = readable(item::str_of(stored, LISTED.sort), doing)?;
    let id = position.split_once('#').and_then(|(_, id)| id.parse().ok());
    let id: Uuid = readable(id.ok_or(MalformedItem(LISTED.sort)), doing)?;
    let texts = stored.get(DECISIONS).and_then(|value| value.as_l().ok()).ok_or(MalformedItem(DECISIONS));
    let read = |(index, text): (usize, &AttributeValue)| {
        let text = readable(text.as_s().map_err(|_| MalformedItem(DECISIONS)), doing)?;
        let decision: DecisionRecord<RecordedVerdict> =
            serde_json::from_str(text).map_err(|error| StoreError::unusable(doing, error))?;
        let place = Place { at: decision.at, sequence: sequence(id, index) };
        Ok((place, DecisionRecord { partition, ..decision }))
    };
    let decisions: Vec<_> = readable(texts, doing)?.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    let first_at = decisions.first().map(|(place, _)| place.at);
    Ok(Some(StoredPart { position: position.to_owned(), first_at, decisions }))
}

#[async_trait]
impl KeepHistory for Dynamo {
    async fn append(&self, observations: &[DecisionRecord]) -> Result<(), StoreError> {
        let doing = "storing decisions";
        let parts = parts(observations).map_err(|error| StoreError::unusable(doing, error))?;
        let mut requests = Vec::new();
        for part in parts {
            let item = part.encode(self.host.fresh_id(), self.settings.history_retention);
            item::check(&item, doing)?;
            let put = PutRequest::builder().set_item(Some(item)).build();
            let put = put.map_err(|error| StoreError::unusable(doing, error))?;
            requests.push(WriteRequest::builder().put_request(put).build());
        }
        self.write_all(requests, doing).await
    }

    async fn history(
        &self,
        partition: Option<PartitionKey>,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<(Place, DecisionRecord<RecordedVerdict>)>, StoreError> {
        let (doing, now) = ("reading the history of a partition", self.host.now());
        if limit == 0 {
            return Ok(Vec::new());
        }
        let (scan, page) = (scan(partition), limit.min(PAGE));
        let begin = |place: Place| place.at.checked_sub(MAX_SPAN).unwrap_or(Timestamp::MIN);
        let mut range = after.map_or_else(Range::all, |after| Range::all().after(&sortable(begin(after))));
        let mut found = BTreeMap::new();
        loop {
            let read = |item: &Item| decode(item, partition, now, doing);
            let mut parts = self.items(&scan, range.clone(), page, doing, read).await?;
            let is_last = parts.len() < page;
            let decisions = parts.iter_mut().flat_map(|part| std::mem::take(&mut part.decisions));
            found.extend(decisions.filter(|(place, _)| after.is_none_or(|after| *place > after)));
            let Some(last) = parts.last().filter(|_| !is_last) else { break };
            // Later items contain no decision that precedes the first decision of this item.
            let is_before = |place: &Place| last.first_at.is_none_or(|first| place.at < first);
            if found.keys().take_while(|place| is_before(place)).take(limit).count() == limit {
                break;
            }
            range = range.after(&last.position);
        }
        Ok(found.into_iter().take(limit).collect())
    }

    async fn remove(&self, partition: PartitionKey) -> Result<(), StoreError> {
        let doing = format!("removing the history of partition {partition}");
        let mut keys = Vec::new();
        self.each_key(&scan(Some(partition)), &doing, |key| keys.push(key)).await?;
        let delete = |key: String| {
            let request = DeleteRequest::builder().key(KEY, text(key)).build();
            let request = request.map_err(|error| StoreError::unusable(&*doing, error))?;
            Ok(WriteRequest::builder().delete_request(request).build())
        };
        let requests: Vec<WriteRequest> = keys.into_iter().map(delete).collect::<Result<_, StoreError>>()?;
        self.write_all(requests, &doing).await
    }
}

impl Dynamo {
    /// Makes writes without conditions, in any order.
    async fn write_all(&self, requests: Vec<WriteRequest>, doing: &str) -> Result<(), StoreError> {
        let batches = requests.chunks(MAX_BATCH).map(|batch| self.write_batch(batch.to_vec(), doing));
        let batches: Vec<_> = batches.collect();
        stream::iter(batches).buffered(CONCURRENT).try_collect().await
    }

    /// Repeats the writes that the service did not make, because the table is throttled.
    async fn write_batch(&self, mut left: Vec<WriteRequest>, doing: &str) -> Result<(), StoreError> {
        let (table, mut round) = (&self.settings.table, 0);
        loop {
            let requested = left.len();
            let call = self.client.batch_write_item().request_items(table, left).send();
            let answer = call.await.map_err(|error| self.failed(doing, &error))?;
            let unmade = answer.unprocessed_items.and_then(|mut tables| tables.remove(table));
            left = unmade.unwrap_or_default();
            if left.is_empty() {
                return Ok(());
            }
            if left.len() < requested {
                round = 0;
            }
            self.wait(&mut round, doing).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use messages::{MessageId, Verdict};

    use super::*;

    fn decision(partition: u128, seconds: i64, why: &str) -> DecisionRecord {
        DecisionRecord {
            at: Timestamp::from_second(seconds).unwrap(),
            function: "runs".to_owned(),
            partition: Some(PartitionKey::from_uuid(Uuid::from_u128(partition))),
            message_id: Some(MessageId::from_uuid(Uuid::from_u128(1))),
            message: "Paid".to_owned(),
            verdict: Verdict::Handled,
            why: why.to_owned(),
            source: "pays".to_owned(),
            traceparent: None,
            began_at: None,
            attempt: None,
            state: None,
        }
    }

    /// Returns the numbers of decisions of the parts.
    fn sizes(observations: &[DecisionRecord]) -> Vec<usize> {
        parts(observations).unwrap().iter().map(|part| part.decisions.len()).collect()
    }

    #[test]
    fn decisions_about_one_partition_share_an_item() {
        let batch = [decision(1, 5, "a"), decision(2, 5, "b"), decision(1, 4, "c"), decision(2, 6, "d")];
        let found = parts(&batch).unwrap();
        assert_eq!(found.iter().map(|part| part.decisions.len()).collect::<Vec<_>>(), [2, 2]);
        let [first, _] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((first.first_at.as_second(), first.last_at.as_second()), (4, 5));
    }

    #[test]
    fn items_are_bounded_in_time_and_size() {
        assert_eq!(sizes(&[decision(1, 0, ""), decision(1, 60, ""), decision(1, 61, "")]), [2, 1]);
        let long = decision(1, 0, &"x".repeat(MAX_BYTES / 3));
        assert_eq!(sizes(&[long.clone(), long.clone(), long]), [2, 1]);
        let longest = decision(1, 0, &"x".repeat(MAX_BYTES));
        assert_eq!(sizes(&[longest.clone(), longest]), [1, 1]);
    }

    #[test]
    fn sequence_ascends_with_ids_and_numbers() {
        let ids = [Uuid::now_v7(), Uuid::now_v7(), Uuid::max()];
        let all: Vec<u128> =
            ids.iter().flat_map(|id| [0, 1, MAX_BYTES - 1].map(|index| sequence(*id, index))).collect();
        assert!(all.is_sorted_by(|one, other| one < other), "{all:?}");
    }
}
