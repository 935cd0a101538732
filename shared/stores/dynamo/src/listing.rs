//! Queries of an index. Indexes propose keys; the store then reads the items consistently.

use aws_sdk_dynamodb::types::AttributeValue;
use futures::{StreamExt, TryStreamExt, stream};
use messages::StoreError;

use crate::Dynamo;
use crate::item::{self, Item, text};
use crate::names::Index;
use crate::names::attributes::KEY;
use crate::store::CONCURRENT;

/// A text that sorts before every sort key, because these consist of digits, letters and `#`.
const FIRST: &str = " ";
/// A text that sorts after every sort key.
const LAST: &str = "~";
/// The maximum number of keys of one query.
const PAGE: usize = 1_000;
/// The minimum number of keys that are read for a page, because some of them may be skipped.
const MIN_PAGE: usize = 25;

/// The partition keys of an index that are read together, and their order.
pub(crate) struct Scan {
    pub(crate) index: Index,
    pub(crate) partitions: Vec<String>,
    pub(crate) descending: bool,
}

/// A range of sort keys.
#[derive(Clone)]
pub(crate) struct Range {
    from: String,
    to: String,
    /// A sort key that is not part of the range.
    without: Option<String>,
}

impl Range {
    pub(crate) fn all() -> Self {
        Self { from: FIRST.to_owned(), to: LAST.to_owned(), without: None }
    }

    /// Ends the range at a sort key, which is included.
    pub(crate) fn until(self, to: String) -> Self {
        Self { to: self.to.min(to), ..self }
    }

    /// Begins the range after a sort key.
    pub(crate) fn after(self, from: &str) -> Self {
        Self { from: self.from.max(from.to_owned()), without: Some(from.to_owned()), ..self }
    }

    /// Ends the range before a sort key.
    pub(crate) fn before(self, to: &str) -> Self {
        Self { without: Some(to.to_owned()), ..self.until(to.to_owned()) }
    }

    fn beyond(self, last: &str, descending: bool) -> Self {
        if descending { self.before(last) } else { self.after(last) }
    }

    fn is_empty(&self) -> bool {
        self.from > self.to
    }
}

/// A key that an index proposes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Proposal {
    pub(crate) sort: String,
    pub(crate) key: String,
    partition: String,
}

impl Proposal {
    /// Returns `true` if the item still has the position at which the index has found it.
    fn holds(&self, index: Index, stored: &Item) -> bool {
        item::str_of(stored, index.partition) == Ok(self.partition.as_str())
            && item::str_of(stored, index.sort) == Ok(self.sort.as_str())
    }
}

impl Dynamo {
    /// Returns the first keys of a range, in the order of the scan.
    pub(crate) async fn keys(
        &self,
        scan: &Scan,
        range: &Range,
        limit: usize,
        doing: &str,
    ) -> Result<Vec<Proposal>, StoreError> {
        if limit == 0 || range.is_empty() {
            return Ok(Vec::new());
        }
        let reads: Vec<_> = scan
            .partitions
            .iter()
            .map(|partition| self.keys_of(scan, partition, range, limit, doing))
            .collect();
        let found: Vec<Vec<Proposal>> = stream::iter(reads).buffered(CONCURRENT).try_collect().await?;
        let mut found = found.concat();
        found.sort_unstable();
        if scan.descending {
            found.reverse();
        }
        found.truncate(limit);
        Ok(found)
    }

    async fn keys_of(
        &self,
        scan: &Scan,
        partition: &str,
        range: &Range,
        limit: usize,
        doing: &str,
    ) -> Result<Vec<Proposal>, StoreError> {
        let (mut found, mut start) = (Vec::new(), None);
        loop {
            // Reads one more item, because the item with this sort key is not part of the range.
            let (page, next) =
                self.query(scan, partition, range, limit.saturating_add(1), start, doing).await?;
            found.extend(page.into_iter().filter(|proposal| range.without.as_ref() != Some(&proposal.sort)));
            start = next;
            if found.len() >= limit || start.is_none() {
                found.truncate(limit);
                return Ok(found);
            }
        }
    }

    async fn query(
        &self,
        scan: &Scan,
        partition: &str,
        range: &Range,
        limit: usize,
        start: Option<Item>,
        doing: &str,
    ) -> Result<(Vec<Proposal>, Option<Item>), StoreError> {
        let limit = i32::try_from(limit.min(PAGE)).unwrap_or(i32::MAX);
        let answer = self
            .client
            .query()
            .table_name(&self.settings.table)
            .index_name(scan.index.name)
            .key_condition_expression("#partition = :partition AND #sort BETWEEN :from AND :to")
            .expression_attribute_names("#partition", scan.index.partition)
            .expression_attribute_names("#sort", scan.index.sort)
            .expression_attribute_values(":partition", text(partition))
            .expression_attribute_values(":from", text(&range.from))
            .expression_attribute_values(":to", text(&range.to))
            .scan_index_forward(!scan.descending)
            .set_exclusive_start_key(start)
            .limit(limit)
            .send()
            .await
            .map_err(|error| self.failed(doing, &error))?;
        let proposal = |item: &Item| Proposal {
            sort: field(item, scan.index.sort),
            key: field(item, KEY),
            partition: partition.to_owned(),
        };
        Ok((answer.items().iter().map(proposal).collect(), answer.last_evaluated_key))
    }

    /// Calls `see` with each key of an index, in any order.
    pub(crate) async fn each_key(
        &self,
        scan: &Scan,
        doing: &str,
        mut see: impl FnMut(String) + Send,
    ) -> Result<(), StoreError> {
        for partition in &scan.partitions {
            let mut start = None;
            loop {
                let (page, next) = self.query(scan, partition, &Range::all(), PAGE, start, doing).await?;
                page.into_iter().for_each(|proposal| see(proposal.key));
                start = next;
                if start.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns the first items of a range that `read` accepts, in the order of the scan.
    pub(crate) async fn items<T: Send>(
        &self,
        scan: &Scan,
        mut range: Range,
        limit: usize,
        doing: &str,
        read: impl Fn(&Item) -> Result<Option<T>, StoreError> + Send + Sync,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        while found.len() < limit {
            let wanted = (limit - found.len()).clamp(MIN_PAGE, PAGE);
            let keys = self.keys(scan, &range, wanted, doing).await?;
            let items = self.get_many(keys.iter().map(|proposal| proposal.key.clone()), doing).await?;
            for proposal in &keys {
                let item = items.get(&proposal.key).filter(|item| proposal.holds(scan.index, item));
                found.extend(item.map(&read).transpose()?.flatten());
            }
            let Some(last) = keys.last().filter(|_| keys.len() == wanted) else { break };
            range = range.beyond(&last.sort, scan.descending);
        }
        found.truncate(limit);
        Ok(found)
    }
}

fn field(item: &Item, name: &str) -> String {
    match item.get(name) {
        Some(AttributeValue::S(value)) => value.clone(),
        _ => String::new(),
    }
}
