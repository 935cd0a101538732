//! Definitions of the indexes, and their comparison with the existing ones.

use jiff::SignedDuration;
use mongodb::bson::{Bson, Document, doc};
use outbox::records::KEPT_AFTER_EXPIRY;

use crate::entry;
use crate::names::{application, collections, failure, history, record, view};

/// Treatment of an index that exists with other options than defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDifference {
    /// Keep the index and report it. The operator decides about the rebuild of a large index.
    Report,
    /// Drop the index and build it as defined.
    Rebuild,
}

/// Outcome of the migration of an index.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The index exists as defined.
    Present,
    /// The index was missing and is built.
    Created,
    /// These indexes conflict with the definition and remain.
    Differs(Vec<Document>),
    /// These indexes conflicted with the definition and were replaced.
    Rebuilt(Vec<Document>),
}

/// Definition of an index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Index {
    /// Collection.
    pub(crate) collection: &'static str,
    /// Name of the index.
    pub(crate) name: &'static str,
    key: Document,
    options: Document,
}

/// Index of records with outbox entries.
pub(crate) const HAS_ENTRIES: &str = "outbox_pending";

/// Index of records with an exhausted entry.
pub(crate) const POISONED: &str = "outbox_poisoned";

/// Returns the definitions of the engine's indexes, for these retentions of ended sagas and of settled sessions.
pub(crate) fn wanted(sagas: SignedDuration, sessions: SignedDuration) -> Vec<Index> {
    // Records expire only without entries, so that no pending or exhausted effect is deleted automatically.
    let ttl = |retention| doc! { "expireAfterSeconds": seconds(retention), "partialFilterExpression": { record::PENDING: 0 } };
    // The index contains waiting records only, so the cost of a sweep does not depend on the number of ended ones. With
    // the id in the index a sweep reads no documents.
    let ready = doc! { record::READY_AT: 1, record::ID: 1 };
    let waiting = doc! { "partialFilterExpression": { record::READY_AT: { "$exists": true } } };
    let with_entries = doc! { "partialFilterExpression": { record::PENDING: { "$gt": 0 } } };
    let exhausted = doc! { format!("{}.{}", record::OUTBOX, entry::POISONED): 1, record::ID: 1 };
    let with_exhausted = doc! { "partialFilterExpression": entry::has_exhausted() };
    let at_its_time = doc! { "expireAfterSeconds": 0 };
    vec![
        index(collections::SAGA, "ttl_CompletedAt_7d", doc! { record::COMPLETED_AT: 1 }, ttl(sagas)),
        index(collections::SAGA, "outbox_ready", ready.clone(), waiting.clone()),
        index(collections::SAGA, HAS_ENTRIES, doc! { record::PENDING: 1 }, with_entries.clone()),
        index(collections::SESSION, HAS_ENTRIES, doc! { record::PENDING: 1 }, with_entries),
        index(collections::SESSION, "ttl_At", doc! { record::AT: 1 }, ttl(sessions)),
        index(collections::SESSION, "outbox_ready", ready, waiting),
        index(
            collections::VIEW,
            "unfinished",
            doc! { view::CREATED_AT: 1, "_id": 1 },
            doc! { "partialFilterExpression": { view::ENDED: false } },
        ),
        index(
            collections::VIEW,
            "ended",
            doc! { view::CREATED_AT: -1, "_id": -1 },
            doc! { "partialFilterExpression": { view::ENDED: true } },
        ),
        index(
            collections::VIEW,
            "unfinished_of_project",
            doc! { view::LIST: 1, view::CREATED_AT: 1, "_id": 1 },
            doc! { "partialFilterExpression": { view::ENDED: false } },
        ),
        index(
            collections::VIEW,
            "by_project",
            doc! { view::LIST: 1, view::CREATED_AT: -1, "_id": -1 },
            doc! {},
        ),
        index(
            collections::VIEW,
            "by_further_list",
            doc! { view::FURTHER_LISTS: 1, view::CREATED_AT: -1, "_id": -1 },
            doc! { "partialFilterExpression": { view::FURTHER_LISTS: { "$exists": true } } },
        ),
        index(
            collections::VIEW,
            "changed",
            doc! { view::CHANGED_IN: 1, view::CHANGED_AT: 1, "_id": 1 },
            doc! {},
        ),
        index(
            collections::VIEW,
            "unfinished_changed",
            doc! { view::LIST: 1, view::CHANGED_AT: 1, "_id": 1 },
            doc! { "partialFilterExpression": { view::ENDED: false } },
        ),
        // Records with an exhausted entry, which are few among the waiting records.
        index(collections::SAGA, POISONED, exhausted.clone(), with_exhausted.clone()),
        index(collections::SESSION, POISONED, exhausted, with_exhausted),
        index(
            collections::RECORD,
            "ttl_ExpiresAt_7d",
            doc! { application::EXPIRES_AT: 1 },
            doc! { "expireAfterSeconds": seconds(KEPT_AFTER_EXPIRY) },
        ),
        index(
            collections::FAILURE,
            "by_state",
            doc! { failure::STATUS: 1, failure::LAST_SEEN: -1, "_id": -1 },
            doc! {},
        ),
        index(
            collections::FAILURE,
            "by_cause",
            doc! { failure::STATUS: 1, failure::CAUSE: 1, failure::LAST_SEEN: -1, "_id": -1 },
            doc! {},
        ),
        index(collections::FAILURE, "ttl_ExpiresAt", doc! { failure::EXPIRES_AT: 1 }, at_its_time.clone()),
        // Only one operation may run at a time.
        index(
            collections::OPERATION,
            "running",
            doc! { failure::RUNNING: 1 },
            doc! { "unique": true, "partialFilterExpression": { failure::RUNNING: true } },
        ),
        index(collections::OPERATION, "latest", doc! { failure::AT: -1, "_id": -1 }, doc! {}),
        index(collections::OPERATION, "ttl_ExpiresAt", doc! { failure::EXPIRES_AT: 1 }, at_its_time.clone()),
        index(collections::ACT, "latest", doc! { failure::AT: -1, "_id": -1 }, doc! {}),
        index(collections::ACT, "ttl_ExpiresAt", doc! { failure::EXPIRES_AT: 1 }, at_its_time.clone()),
        index(
            collections::HISTORY,
            "by_partition",
            doc! { history::PARTITION: 1, history::AT: 1, "_id": 1 },
            doc! {},
        ),
        index(collections::HISTORY, "ttl_ExpiresAt", doc! { history::EXPIRES_AT: 1 }, at_its_time),
    ]
}

/// Returns the seconds of a retention. The server accepts at most 31 bits.
pub(crate) fn seconds(retention: SignedDuration) -> i32 {
    i32::try_from(retention.as_secs().max(0)).unwrap_or(i32::MAX)
}

/// Returns the definition of an index.
pub(crate) fn index(collection: &'static str, name: &'static str, key: Document, options: Document) -> Index {
    Index { collection, name, key, options }
}

impl Index {
    /// Returns the specification for the server.
    pub(crate) fn specification(&self) -> Document {
        let mut specification = doc! { "name": self.name, "key": self.key.clone() };
        specification.extend(self.options.clone());
        specification
    }

    /// Returns the existing indexes that conflict with this index, because they have its name or its fields.
    fn rivals(&self, existing: &[Document]) -> Vec<Document> {
        let is_rival = |index: &&Document| {
            let same_name = index.get_str("name").is_ok_and(|name| name == self.name);
            same_name || index.get_document("key").is_ok_and(|key| pairs(key) == pairs(&self.key))
        };
        existing.iter().filter(is_rival).cloned().collect()
    }

    fn matches(&self, existing: &Document) -> bool {
        let same_key = existing.get_document("key").is_ok_and(|key| pairs(key) == pairs(&self.key));
        let mut options = existing.clone();
        // `v` and `background` do not change the function of an index. `ns` was removed in 4.4.
        for name in ["name", "key", "v", "ns", "background"] {
            options.remove(name);
        }
        existing.get_str("name").is_ok_and(|name| name == self.name)
            && same_key
            && plain(&options) == plain(&self.options)
    }

    /// Returns the outcome of the migration of this index, given the existing ones.
    pub(crate) fn outcome(&self, existing: &[Document], on_difference: OnDifference) -> Outcome {
        let rivals = self.rivals(existing);
        match (rivals.as_slice(), on_difference) {
            ([], _) => Outcome::Created,
            ([only], _) if self.matches(only) => Outcome::Present,
            (_, OnDifference::Report) => Outcome::Differs(rivals),
            (_, OnDifference::Rebuild) => Outcome::Rebuilt(rivals),
        }
    }
}

/// Returns the fields of a key in their order, which is significant.
fn pairs(key: &Document) -> Vec<(String, Bson)> {
    key.iter().map(|(name, value)| (name.clone(), number(value))).collect()
}

/// Converts the numbers of options to one type, because a shell writes doubles where a driver writes integers.
fn plain(options: &Document) -> Document {
    options.iter().map(|(name, value)| (name.clone(), number(value))).collect()
}

fn number(value: &Bson) -> Bson {
    match value {
        Bson::Int32(number) => Bson::Double((*number).into()),
        Bson::Int64(number) => Bson::Double(*number as f64),
        Bson::Document(document) => Bson::Document(plain(document)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ttl() -> Index {
        let days = |days: i64| SignedDuration::from_hours(days * 24);
        wanted(days(7), days(3)).remove(0)
    }

    fn as_listed(index: &Index) -> Document {
        let mut listed = doc! { "v": 2 };
        listed.extend(index.specification());
        listed
    }

    #[test]
    fn ttl_index_has_name_field_and_seven_days() {
        let index = ttl();
        assert_eq!((index.collection, index.name), ("pmSearchImportJobState", "ttl_CompletedAt_7d"));
        assert_eq!(index.key, doc! { "CompletedAt": 1 });
        assert_eq!(index.options.get("expireAfterSeconds"), Some(&Bson::Int32(604_800)));
    }

    #[test]
    fn index_with_other_number_type_is_present() {
        let mut listed = as_listed(&ttl());
        listed.insert("expireAfterSeconds", 604_800.0);
        assert_eq!(ttl().outcome(&[listed], OnDifference::Rebuild), Outcome::Present);
    }

    #[test]
    fn missing_index_is_created() {
        let id = doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
        assert_eq!(ttl().outcome(&[id], OnDifference::Report), Outcome::Created);
    }

    #[test]
    fn other_options_or_name_on_same_fields_differ() {
        let mut seconds = as_listed(&ttl());
        seconds.insert("expireAfterSeconds", 60);
        let renamed =
            doc! { "v": 2, "key": { "CompletedAt": 1 }, "name": "CompletedAt_1", "expireAfterSeconds": 60 };
        for found in [seconds, renamed] {
            let outcome = ttl().outcome(std::slice::from_ref(&found), OnDifference::Report);
            assert_eq!(outcome, Outcome::Differs(vec![found.clone()]));
            assert_eq!(
                ttl().outcome(std::slice::from_ref(&found), OnDifference::Rebuild),
                Outcome::Rebuilt(vec![found])
            );
        }
    }
}
