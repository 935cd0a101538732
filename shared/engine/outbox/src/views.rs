//! What readers are shown of a saga: written by it, read by people and pages.

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{PartitionKey, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// One saga as its readers see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The saga's partition.
    pub partition: PartitionKey,
    /// Version of the document that it shows; 0 before there is one. A write with a revision that is not larger than the
    /// stored one changes nothing, so writes may be repeated and may overtake each other.
    pub revision: u64,
    /// Whether nothing will change any more.
    pub ended: bool,
    /// The list that it is in, such as that of a customer.
    pub list: Uuid,
    /// Its place in the list, the latest first.
    pub created_at: Timestamp,
    /// What is shown.
    pub body: Value,
}

/// The name under which a payload has what is not the body.
const ENVELOPE: &str = "view";

/// The name under which a view that was removed has the list that it was in.
const REMOVED_FROM: &str = "removed_from";

/// A view without its body.
#[derive(Serialize, Deserialize)]
struct Envelope {
    partition: PartitionKey,
    revision: u64,
    ended: bool,
    list: Uuid,
    created_at: Timestamp,
}

impl View {
    /// The view of a document of this version. A body that is an object says the revision too.
    #[must_use]
    pub fn at_revision(mut self, revision: u64) -> Self {
        self.revision = revision;
        if let Value::Object(fields) = &mut self.body {
            fields.insert("revision".to_owned(), revision.into());
        }
        self
    }

    /// As an outbox entry holds it: the body's own fields, and the rest beside them.
    pub fn into_payload(self) -> String {
        let Self { partition, revision, ended, list, created_at, body } = self;
        let envelope = Envelope { partition, revision, ended, list, created_at };
        let mut fields = match body {
            Value::Object(fields) => fields,
            other => serde_json::Map::from_iter([("body".to_owned(), other)]),
        };
        // Ids, numbers and times are always JSON.
        fields.insert(ENVELOPE.to_owned(), serde_json::to_value(envelope).unwrap_or_default());
        Value::Object(fields).to_string()
    }

    /// The inverse of [`View::into_payload`]. `earlier` reads the payloads of releases that wrote none of this.
    ///
    /// # Errors
    /// When it is neither.
    pub fn from_payload(
        payload: &str,
        earlier: fn(Value) -> Option<Self>,
    ) -> Result<Self, serde_json::Error> {
        let mut value: Value = serde_json::from_str(payload)?;
        let envelope = value.as_object_mut().and_then(|fields| fields.remove(ENVELOPE));
        let Some(envelope) = envelope else {
            return earlier(value).ok_or_else(|| serde::de::Error::custom("it is not a view"));
        };
        let Envelope { partition, revision, ended, list, created_at } = serde_json::from_value(envelope)?;
        Ok(Self { partition, revision, ended, list, created_at, body: value })
    }

    /// What stands for a saga that is to be shown no more, and was in this list. It is in no list, and no other view takes
    /// its place, however late it comes.
    pub fn removed(partition: PartitionKey, from: Uuid) -> Self {
        let (revision, created_at) = (i64::MAX.unsigned_abs(), Timestamp::UNIX_EPOCH);
        let body = json!({ REMOVED_FROM: from });
        Self { partition, revision, ended: true, list: Uuid::max(), created_at, body }
    }

    /// Whether it is [`View::removed`].
    pub fn is_removed(&self) -> bool {
        self.list == Uuid::max()
    }

    /// The list whose readers are told when it changes: the one that it is in, or was in before it was removed. One that an
    /// earlier release has removed does not say.
    pub fn told_in(&self) -> Uuid {
        let from = self.body.get(REMOVED_FROM).filter(|_| self.is_removed());
        from.and_then(|from| from.as_str()?.parse().ok()).unwrap_or(self.list)
    }

    /// Where it is in its list.
    pub fn place(&self) -> Cursor {
        Cursor { created_at: self.created_at, partition: self.partition }
    }
}

/// Writes views.
#[async_trait]
pub trait WriteViews: Send + Sync {
    /// Stores each view unless the stored one has the same or a later revision. Repeating changes nothing.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn write(&self, views: &[View]) -> Result<(), StoreError>;
}

/// Where a page of a list ends: the next one begins after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// When the last one of the page was created.
    pub created_at: Timestamp,
    /// Its partition.
    pub partition: PartitionKey,
}

/// Where a view is among those of its list, in the order in which they were written last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    /// When, as the store counts: what is written later has a larger number, but for what [`ReadViews::settled`] says.
    pub at: u64,
    /// Its partition, which decides among those of one number.
    pub partition: PartitionKey,
}

/// Which views are read by their age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aged {
    /// Those of one list, or of all.
    pub list: Option<Uuid>,
    /// Those that have ended, the latest first; or those that have not, the oldest first.
    pub ended: bool,
    /// Only those that were created before.
    pub before: Timestamp,
}

/// Some of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T = View> {
    /// The items.
    pub items: Vec<T>,
    /// Where it ends; none when nothing follows.
    pub next: Option<Cursor>,
}

impl Page {
    /// The first `limit` of what was found, when one more was asked for to see whether anything follows.
    pub fn of(mut found: Vec<View>, limit: usize) -> Self {
        let follows = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| follows).map(View::place);
        Self { items: found, next }
    }
}

/// Reads views as they were written last.
#[async_trait]
pub trait ReadViews: Send + Sync {
    /// The view of a partition.
    ///
    /// # Errors
    /// When the store does not answer, or holds something that is not a view.
    async fn view(&self, partition: PartitionKey) -> Result<Option<View>, StoreError>;

    /// Those that have not ended, the oldest first.
    ///
    /// # Errors
    /// As [`ReadViews::view`].
    async fn unfinished(&self) -> Result<Vec<View>, StoreError> {
        self.oldest_unfinished(usize::MAX).await
    }

    /// Up to `limit` of them.
    ///
    /// # Errors
    /// As [`ReadViews::view`].
    async fn oldest_unfinished(&self, limit: usize) -> Result<Vec<View>, StoreError> {
        let all = Aged { list: None, ended: false, before: Timestamp::MAX };
        Ok(self.by_age(&all, None, limit).await?.items)
    }

    /// Up to `limit` of those that are meant, from after a place among them or from the beginning.
    ///
    /// # Errors
    /// As [`ReadViews::view`].
    async fn by_age(&self, meant: &Aged, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError>;

    /// How many of a list have not ended, up to `limit`.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn count_unfinished_of(&self, list: Uuid, limit: usize) -> Result<usize, StoreError>;

    /// Up to `limit` of a list that have not ended, in no order.
    ///
    /// # Errors
    /// As [`ReadViews::view`].
    async fn unfinished_of(&self, list: Uuid, limit: usize) -> Result<Vec<View>, StoreError>;

    /// Up to `limit` of a list, the latest first, from after a place in it or from its beginning.
    ///
    /// # Errors
    /// As [`ReadViews::view`].
    async fn list(&self, list: Uuid, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError>;

    /// Up to `limit` of a list that have not ended, whenever they were written, or were written after `since`
    /// ([`Written::at`]), those that were removed from it among them. In the order of [`Written`], from after a place or from
    /// the beginning.
    ///
    /// # Errors
    /// As [`ReadViews::view`].
    async fn changed(
        &self,
        list: Uuid,
        since: u64,
        after: Option<Written>,
        limit: usize,
    ) -> Result<Vec<(Written, View)>, StoreError>;

    /// The largest [`Written::at`] of a list; 0 when nothing was written of it.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn last_written(&self, list: Uuid) -> Result<u64, StoreError>;

    /// Whoever has read something that was written at `at` has been able to read everything that was written up to this
    /// number. Between the two, something may still appear: of writes that are made at the same time a store may number one
    /// first and finish the other first. No clock but the store's own is in it.
    fn settled(&self, at: u64) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(body: Value) -> View {
        let partition = PartitionKey::from_uuid(Uuid::from_u128(1));
        let created_at = Timestamp::UNIX_EPOCH;
        View { partition, revision: 0, ended: false, list: Uuid::nil(), created_at, body }
    }

    #[test]
    fn a_payload_reads_back_and_its_body_says_the_revision() {
        let shown = view(json!({ "state": "Paid" })).at_revision(3);
        assert_eq!(shown.body["revision"], 3);
        assert_eq!(View::from_payload(&shown.clone().into_payload(), |_| None).unwrap(), shown);
    }

    #[test]
    fn what_was_removed_is_told_in_the_list_that_it_was_in() {
        let (partition, list) = (PartitionKey::from_uuid(Uuid::from_u128(1)), Uuid::from_u128(2));
        let removed = View::removed(partition, list);
        assert_eq!((removed.list, removed.told_in()), (Uuid::max(), list));
        let earlier = View { body: Value::Null, ..removed };
        assert_eq!((earlier.is_removed(), earlier.told_in()), (true, Uuid::max()));
        // What an application shows cannot move a view to another list.
        let shown = View { list, ..view(json!({ REMOVED_FROM: Uuid::from_u128(3) })) };
        assert_eq!(shown.told_in(), list);
    }

    #[test]
    fn a_payload_of_an_earlier_release_is_read_by_the_application() {
        let earlier = |value: Value| Some(view(value));
        let read = View::from_payload(r#"{"state":"Paid"}"#, earlier).unwrap();
        assert_eq!(read.body, json!({ "state": "Paid" }));
        assert!(View::from_payload("{}", |_| None).is_err());
        assert!(View::from_payload("[1", earlier).is_err());
    }
}
