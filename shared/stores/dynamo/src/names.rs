//! Keys, attributes and indexes of the table.

use jiff::Timestamp;
use uuid::Uuid;

/// Attributes of the items.
pub mod attributes {
    /// The key of an item.
    pub const KEY: &str = "pk";
    /// Changes with each write of the item.
    pub const STAMP: &str = "stamp";
    /// The second from which TTL may delete the item.
    pub const EXPIRES: &str = "expires_at";
    /// The time from which an item without outbox entries may be deleted, in nanoseconds.
    pub const KEEP_UNTIL: &str = "keep_until";
    /// The version of a document.
    pub const VERSION: &str = "version";
    /// The revision of a record, a view, a failure or an operation.
    pub const REVISION: &str = "revision";
    /// The content as JSON.
    pub const CONTENT: &str = "content";
    /// The outbox: a list of entries.
    pub const OUTBOX: &str = "outbox";
    /// The state of a session.
    pub const STATE: &str = "state";
    /// The list of a view.
    pub const LIST: &str = "list";
    /// The further lists of a view, as JSON. The attribute is absent if the list is empty.
    pub const FURTHER_LISTS: &str = "also_in";
    /// The partition of a view's copy in a further list.
    pub const PARTITION: &str = "partition";
    /// `true` for a view that has ended.
    pub const ENDED: &str = "ended";
    /// The time of creation of a view, in nanoseconds.
    pub const CREATED: &str = "created_at";
    /// `true` for a deleted failure.
    pub const DELETED: &str = "deleted";
    /// The operation that runs.
    pub const OPERATION: &str = "operation";
    /// A list of serialized decisions about messages.
    pub const DECISIONS: &str = "decisions";
    /// The serialized entry of an outbox.
    pub const ENTRY: &str = "entry";
}

/// A global index, whose key consists of two strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Index {
    /// The name.
    pub name: &'static str,
    /// The attribute of the partition key.
    pub partition: &'static str,
    /// The attribute of the sort key.
    pub sort: &'static str,
}

/// Records with entries that will be ready, by kind and shard, in the order of that time.
pub(crate) const READY: Index = Index { name: "outbox_ready", partition: "ready_in", sort: "ready" };
/// Records with exhausted entries, by kind and shard, in the order of their keys.
pub(crate) const POISONED: Index =
    Index { name: "outbox_poisoned", partition: "poisoned_in", sort: attributes::KEY };
/// Views, failures, operations and audit entries by time.
pub(crate) const TIME: Index = Index { name: "by_time", partition: "timed_in", sort: "timed" };
/// Views of a list, failures of a cause, and decisions about a partition, by time.
pub(crate) const LISTED: Index = Index { name: "by_list", partition: "listed_in", sort: "listed" };
/// Views of a list in the order of their writes.
pub(crate) const CHANGED: Index = Index { name: "by_change", partition: "changed_in", sort: "changed" };
/// Views of a list that have not ended, in the order of their writes.
pub(crate) const OPEN: Index = Index { name: "by_opening", partition: "open_in", sort: "changed" };

/// All indexes of the table.
pub const INDEXES: [Index; 6] = [READY, POISONED, TIME, LISTED, CHANGED, OPEN];

/// The number of partition keys over which the items of one kind are distributed in an index. A partition of an index
/// accepts 1,000 writes a second, and every message with an effect writes `outbox_ready` twice.
const SHARDS: u8 = 8;

/// Returns the partition key of an item in an index of its kind.
pub(crate) fn shard(kind: &str, id: Uuid) -> String {
    let [.., last] = *id.as_bytes();
    format!("{kind}#{}", last % SHARDS)
}

/// Returns all partition keys of a kind.
pub(crate) fn shards(kind: &str) -> Vec<String> {
    (0..SHARDS).map(|shard| format!("{kind}#{shard}")).collect()
}

/// Returns a time as text that sorts like the time.
pub(crate) fn sortable(at: Timestamp) -> String {
    // Makes every timestamp positive: the offset is larger than the distance of the earliest timestamp from 1970.
    const OFFSET: i128 = 400_000_000_000_000_000_000;
    format!("{:021}", at.as_nanosecond().saturating_add(OFFSET))
}

/// Returns a time and an id as text that sorts by time first.
pub(crate) fn position(at: Timestamp, id: Uuid) -> String {
    format!("{}#{id}", sortable(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_times_sorts_like_times() {
        let times =
            [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::from_second(1).unwrap(), Timestamp::MAX];
        let texts: Vec<String> = times.into_iter().map(sortable).collect();
        assert!(texts.is_sorted(), "{texts:?}");
        assert!(texts.iter().all(|text| text.len() == 21), "{texts:?}");
    }

    #[test]
    fn item_is_in_one_of_the_shards() {
        let id = Uuid::from_u128(0x1ff);
        assert!(shards("saga").contains(&shard("saga", id)));
        assert_eq!(shards("saga").len(), usize::from(SHARDS));
    }
}
