//! The views of a saga: written by the saga, read by clients and pages.

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{PartitionKey, StoreError};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::view_filter::FieldFilter;

/// The number of views that a filter by fields reads in one call of the store.
const EXAMINED_AT_ONCE: usize = 250;
/// The maximum number of views that a filter by fields reads for one page.
const MAX_EXAMINED: usize = 5_000;

/// The view of one saga.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The saga's partition.
    pub partition: PartitionKey,
    /// The version of the document that the view is computed from; 0 without a document. A write whose revision is not
    /// larger than the stored one changes nothing, so writes may be repeated and reordered.
    pub revision: u64,
    /// `true` if the view will not change any more.
    pub ended: bool,
    /// The list that the view belongs to, such as that of a customer. The list's readers are notified of changes. It must
    /// stay the same: readers of an earlier list are not notified that the view has left it.
    pub list: Uuid,
    /// Further lists that contain the view, such as those of the ordered products, at most [`MAX_FURTHER_LISTS`]. They
    /// are read in pages, and their readers are not notified. DynamoDB stores a copy for each of them, and limits all
    /// of them together to 4 MiB.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub also_in: BTreeSet<Uuid>,
    /// The position of the view in the list, the latest first.
    pub created_at: Timestamp,
    /// The content for readers.
    pub body: Value,
}

/// The maximum number of further lists of a view. Each further list costs one more write of the store.
pub const MAX_FURTHER_LISTS: usize = 16;

/// The field of a payload that contains everything except the body.
const ENVELOPE: &str = "view";

/// The field of a removed view that contains its former list.
const REMOVED_FROM: &str = "removed_from";

/// A view without its body, unless the other fields of the payload cannot be the body: a body may be another value than an
/// object, or have a field with the envelope's name.
#[derive(Serialize, Deserialize)]
struct Envelope {
    partition: PartitionKey,
    revision: u64,
    ended: bool,
    list: Uuid,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    also_in: BTreeSet<Uuid>,
    created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    body: Option<Value>,
}

/// Deserializes a value that is present, also if it is `null`.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

impl View {
    /// Returns the view of a state in the default list, without a time of creation. Instances that wait for nothing are
    /// only reported if their views have one.
    ///
    /// # Errors
    /// Returns an error if the state cannot be represented in JSON.
    pub fn of(
        partition: PartitionKey,
        state: &impl Serialize,
        ended: bool,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self::new(partition, serde_json::to_value(state)?, ended))
    }

    /// Creates a view with this content in the default list, without a time of creation.
    pub fn new(partition: PartitionKey, body: Value, ended: bool) -> Self {
        let (list, also_in, created_at) = (Uuid::nil(), BTreeSet::new(), Timestamp::UNIX_EPOCH);
        Self { partition, revision: 0, ended, list, also_in, created_at, body }
    }

    /// Returns the view with the revision of its document. If the body is an object, the revision is also stored in the
    /// body.
    #[must_use]
    pub fn at_revision(mut self, revision: u64) -> Self {
        self.revision = revision;
        if let Value::Object(fields) = &mut self.body {
            fields.insert("revision".to_owned(), revision.into());
        }
        self
    }

    /// Serializes the view for an outbox entry: the fields of the body, and the envelope as one more field. A body
    /// that is another value, or has a field with the envelope's name, is in the envelope.
    pub fn into_payload(self) -> String {
        let Self { partition, revision, ended, list, also_in, created_at, body } = self;
        let (mut fields, body) = match body {
            Value::Object(fields) if !fields.contains_key(ENVELOPE) => (fields, None),
            other => (serde_json::Map::new(), Some(other)),
        };
        let envelope = Envelope { partition, revision, ended, list, also_in, created_at, body };
        // Cannot fail: the envelope consists of ids, numbers, times and JSON.
        fields.insert(ENVELOPE.to_owned(), serde_json::to_value(envelope).unwrap_or_default());
        Value::Object(fields).to_string()
    }

    /// Parses the result of [`View::into_payload`]. `earlier` parses the payloads of versions before this format.
    ///
    /// # Errors
    /// Returns an error if the payload has neither format.
    pub fn from_payload(
        payload: &str,
        earlier: fn(Value) -> Option<Self>,
    ) -> Result<Self, serde_json::Error> {
        let mut value: Value = serde_json::from_str(payload)?;
        let envelope = value.as_object_mut().and_then(|fields| fields.remove(ENVELOPE));
        let Some(envelope) = envelope else {
            return earlier(value).ok_or_else(|| serde::de::Error::custom("it is not a view"));
        };
        let Envelope { partition, revision, ended, list, also_in, created_at, body } =
            serde_json::from_value(envelope)?;
        Ok(Self { partition, revision, ended, list, also_in, created_at, body: body.unwrap_or(value) })
    }

    /// Returns the tombstone of a removed saga, which belonged to this list. The view is in no list, and no later write
    /// of a view replaces it.
    pub fn removed(partition: PartitionKey, from: Uuid) -> Self {
        let revision = i64::MAX.unsigned_abs();
        Self { revision, list: Uuid::max(), ..Self::new(partition, json!({ REMOVED_FROM: from }), true) }
    }

    /// Returns `true` for the result of [`View::removed`].
    pub fn is_removed(&self) -> bool {
        self.list == Uuid::max()
    }

    /// Returns the list whose readers are notified of changes: its list, or the former one of a removed view. Views
    /// that earlier versions removed do not contain it.
    pub fn reported_in(&self) -> Uuid {
        let from = self.body.get(REMOVED_FROM).filter(|_| self.is_removed());
        from.and_then(|from| from.as_str()?.parse().ok()).unwrap_or(self.list)
    }

    /// Returns `true` if a list contains the view.
    pub fn is_in(&self, list: Uuid) -> bool {
        self.list == list || self.also_in.contains(&list)
    }

    /// Returns the further lists of the view, without its own list.
    pub fn further_lists(&self) -> impl Iterator<Item = Uuid> {
        self.also_in.iter().copied().filter(|list| *list != self.list)
    }

    /// Returns the position of the view in its lists.
    pub fn place(&self) -> Cursor {
        Cursor { created_at: self.created_at, partition: self.partition }
    }
}

/// Writes views.
#[async_trait]
pub trait WriteViews: Send + Sync {
    /// Stores each view unless the stored one has the same or a later revision. Idempotent.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; the call may be repeated.
    async fn write(&self, views: &[View]) -> Result<(), StoreError>;
}

/// The cursor after a page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The time at which the last view of the page was created.
    pub created_at: Timestamp,
    /// The partition of that view.
    pub partition: PartitionKey,
}

/// The position of a view in the order of the last writes to its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ViewPosition {
    /// The store's number of the write. Later writes have larger numbers, with the exception that
    /// [`ReadViews::settled`] describes.
    pub at: u64,
    /// The partition, which orders views with the same number.
    pub partition: PartitionKey,
}

/// A filter for views by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgeFilter {
    /// Views that one list contains; `None` for all views.
    pub list: Option<Uuid>,
    /// `true` for views that have ended, the latest first; `false` for the others, the oldest first.
    pub ended: bool,
    /// The time before which the selected views were created.
    pub before: Timestamp,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T = View> {
    /// The items.
    pub items: Vec<T>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<Cursor>,
}

impl Page {
    /// Creates a page of at most `limit` views. `found` has one more view if another page follows.
    pub fn of(mut found: Vec<View>, limit: usize) -> Self {
        let follows = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| follows).map(View::place);
        Self { items: found, next }
    }

    /// Creates a page like [`Page::of`] from two queries of a list: of the views that belong to it, and of those for
    /// which it is a further list. Both begin after the same cursor and are sorted in the order of the page.
    pub fn of_both(mut own: Vec<View>, further: Vec<View>, latest_first: bool, limit: usize) -> Self {
        if !further.is_empty() {
            own.extend(further);
            own.sort_by_key(View::place);
            if latest_first {
                own.reverse();
            }
            // A view may have moved from one list to the other between the queries.
            own.dedup_by_key(|view| view.partition);
        }
        Self::of(own, limit)
    }
}

/// Reads views as they were last written.
#[async_trait]
pub trait ReadViews: Send + Sync {
    /// Returns the view of a partition.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable or holds a value that is not a view. A retry helps only in the
    /// first case.
    async fn view(&self, partition: PartitionKey) -> Result<Option<View>, StoreError>;

    /// Returns the views that have not ended, the oldest first.
    ///
    /// # Errors
    /// Returns the errors of [`ReadViews::view`].
    async fn unfinished(&self) -> Result<Vec<View>, StoreError> {
        self.oldest_unfinished(usize::MAX).await
    }

    /// Works like [`ReadViews::unfinished`], with at most `limit` views.
    ///
    /// # Errors
    /// Returns the errors of [`ReadViews::view`].
    async fn oldest_unfinished(&self, limit: usize) -> Result<Vec<View>, StoreError> {
        let all = AgeFilter { list: None, ended: false, before: Timestamp::MAX };
        Ok(self.by_age(&all, None, limit).await?.items)
    }

    /// Returns up to `limit` views that match the filter, after a cursor or from the beginning.
    ///
    /// # Errors
    /// Returns the errors of [`ReadViews::view`].
    async fn by_age(
        &self,
        meant: &AgeFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError>;

    /// Returns up to `limit` views that match both filters, in the order of [`ReadViews::by_age`], after a cursor or
    /// from the beginning.
    ///
    /// Fields have no index, so views are read and compared, 5,000 for one call. If fewer than `limit` of them match,
    /// the page is short, and its cursor continues.
    ///
    /// # Errors
    /// Returns the errors of [`ReadViews::view`].
    async fn matching(
        &self,
        meant: &AgeFilter,
        fields: &FieldFilter,
        mut after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        if fields.is_empty() || limit == 0 {
            return self.by_age(meant, after, limit).await;
        }
        let (mut items, mut examined) = (Vec::new(), 0);
        loop {
            let page = self.by_age(meant, after, EXAMINED_AT_ONCE).await?;
            examined += page.items.len();
            let end = page.items.last().map(View::place);
            for view in page.items {
                if !fields.matches(&view.body) {
                    continue;
                }
                let place = view.place();
                items.push(view);
                if items.len() == limit {
                    let is_end = page.next.is_none() && Some(place) == end;
                    return Ok(Page { items, next: (!is_end).then_some(place) });
                }
            }
            match page.next {
                Some(next) if examined < MAX_EXAMINED => after = Some(next),
                next => return Ok(Page { items, next }),
            }
        }
    }

    /// Returns the number of views that belong to a list and have not ended, up to `limit`.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn count_unfinished_of(&self, list: Uuid, limit: usize) -> Result<usize, StoreError>;

    /// Returns up to `limit` views that belong to a list and have not ended, in no particular order.
    ///
    /// # Errors
    /// Returns the errors of [`ReadViews::view`].
    async fn unfinished_of(&self, list: Uuid, limit: usize) -> Result<Vec<View>, StoreError>;

    /// Returns up to `limit` views that a list contains, the latest first, after a cursor or from the beginning.
    ///
    /// # Errors
    /// Returns the errors of [`ReadViews::view`].
    async fn list(&self, list: Uuid, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError>;

    /// Returns up to `limit` views that belong to a list and have not ended, or were written after `since` ([`ViewPosition::at`]),
    /// including those that were removed from it. In the order of [`ViewPosition`], after a cursor or from the
    /// beginning.
    ///
    /// # Errors
    /// Returns the errors of [`ReadViews::view`].
    async fn changed(
        &self,
        list: Uuid,
        since: u64,
        after: Option<ViewPosition>,
        limit: usize,
    ) -> Result<Vec<(ViewPosition, View)>, StoreError>;

    /// Returns the largest [`ViewPosition::at`] of a list; 0 if it has no writes.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn last_written(&self, list: Uuid) -> Result<u64, StoreError>;

    /// Returns the number up to which the writes are complete for a reader that has seen the write `at`. A write with a
    /// number between the two may still appear: of concurrent writes, a store may number one first and finish the other
    /// first. Only the store's own clock counts.
    fn settled(&self, at: u64) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(body: Value) -> View {
        View::new(PartitionKey::from_uuid(Uuid::from_u128(1)), body, false)
    }

    #[test]
    fn payload_round_trips_with_revision_in_body() {
        let shown = view(json!({ "state": "Paid" })).at_revision(3);
        assert_eq!(shown.body["revision"], 3);
        assert!(!shown.clone().into_payload().contains("also_in"), "earlier versions read it");
        let listed = View { also_in: BTreeSet::from([Uuid::max()]), ..shown.clone() };
        let bodies =
            [json!("Closed"), json!([1]), json!(null), json!({ "view": 1, "a": 2 }), json!({ "body": 3 })];
        for view in bodies.into_iter().map(view).chain([shown, listed]) {
            assert_eq!(View::from_payload(&view.clone().into_payload(), |_| None).unwrap(), view);
        }
    }

    #[test]
    fn removed_view_is_reported_in_its_list() {
        let (partition, list) = (PartitionKey::from_uuid(Uuid::from_u128(1)), Uuid::from_u128(2));
        let removed = View::removed(partition, list);
        assert_eq!((removed.list, removed.reported_in()), (Uuid::max(), list));
        let earlier = View { body: Value::Null, ..removed };
        assert_eq!((earlier.is_removed(), earlier.reported_in()), (true, Uuid::max()));
        // The body of an application cannot move a view to another list.
        let shown = View { list, ..view(json!({ REMOVED_FROM: Uuid::from_u128(3) })) };
        assert_eq!(shown.reported_in(), list);
    }

    #[test]
    fn earlier_payload_is_read_by_application() {
        let earlier = |value: Value| Some(view(value));
        let read = View::from_payload(r#"{"state":"Paid"}"#, earlier).unwrap();
        assert_eq!(read.body, json!({ "state": "Paid" }));
        assert!(View::from_payload("{}", |_| None).is_err());
        assert!(View::from_payload("[1", earlier).is_err());
    }
}
