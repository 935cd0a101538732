//! The indexes, and what there is in their place.

use jiff::SignedDuration;
use mongodb::bson::{Bson, Document, doc};

use crate::migrate::{OnDifference, Outcome};
use crate::names::{collections, record};
use crate::{duplicates, entry, failures, files, history, outbox, progress, reading, studies, views};

/// An index as it should be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Index {
    /// Its collection.
    pub(crate) collection: &'static str,
    /// Its name.
    pub(crate) name: &'static str,
    key: Document,
    options: Document,
}

/// The index of records that have entries.
pub(crate) const HAS_ENTRIES: &str = "outbox_pending";

/// The index of records that have a poisoned entry.
pub(crate) const POISONED: &str = "outbox_poisoned";

/// How long what is known of the attempts at a file stays at least, from the last of them on: several days of comparing its
/// studies, and of waiting for another attempt.
const READING_KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Every index, for a retention of ended sagas and one of settled sessions.
pub(crate) fn wanted(sagas: SignedDuration, sessions: SignedDuration) -> Vec<Index> {
    // The server takes no more than 31 bits.
    let seconds = |retention: SignedDuration| i32::try_from(retention.as_secs().max(0)).unwrap_or(i32::MAX);
    let index = |collection, name, key, options| Index { collection, name, key, options };
    // Expiry only without entries: what was not performed, or is poisoned, is never deleted by the system.
    let ttl = |retention| doc! { "expireAfterSeconds": seconds(retention), "partialFilterExpression": { record::PENDING: 0 } };
    // Only what waits is in it, so that a sweep stays as fast however much has ended. The id makes the answer of a
    // sweep complete without reading a document.
    let ready = doc! { record::READY_AT: 1, record::ID: 1 };
    let waiting = doc! { "partialFilterExpression": { record::READY_AT: { "$exists": true } } };
    let with_entries = doc! { "partialFilterExpression": { record::PENDING: { "$gt": 0 } } };
    let by_file = doc! { studies::SEARCH: 1, studies::FILE: 1, studies::RECORD: 1 };
    let poisoned = doc! { format!("{}.{}", record::OUTBOX, entry::POISONED): 1, record::ID: 1 };
    let with_poison = doc! { "partialFilterExpression": outbox::has_poison() };
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
            doc! { views::CREATED_AT: 1, "_id": 1 },
            doc! { "partialFilterExpression": { views::ENDED: false } },
        ),
        index(
            collections::VIEW,
            "ended",
            doc! { views::CREATED_AT: -1, "_id": -1 },
            doc! { "partialFilterExpression": { views::ENDED: true } },
        ),
        index(
            collections::VIEW,
            "unfinished_of_project",
            doc! { views::LIST: 1, views::CREATED_AT: 1, "_id": 1 },
            doc! { "partialFilterExpression": { views::ENDED: false } },
        ),
        index(
            collections::VIEW,
            "by_project",
            doc! { views::LIST: 1, views::CREATED_AT: -1, "_id": -1 },
            doc! {},
        ),
        index(
            collections::VIEW,
            "changed",
            doc! { views::TOLD_IN: 1, views::WRITTEN_AT: 1, "_id": 1 },
            doc! {},
        ),
        index(
            collections::VIEW,
            "unfinished_changed",
            doc! { views::LIST: 1, views::WRITTEN_AT: 1, "_id": 1 },
            doc! { "partialFilterExpression": { views::ENDED: false } },
        ),
        index(
            collections::PROGRESS,
            "ttl_ReportedAt",
            doc! { progress::REPORTED_AT: 1 },
            doc! { "expireAfterSeconds": seconds(sagas) },
        ),
        index(
            collections::READING,
            "ttl_TouchedAt",
            doc! { reading::TOUCHED_AT: 1 },
            doc! { "expireAfterSeconds": seconds(sagas.max(READING_KEPT)) },
        ),
        index(collections::STUDY, "by_file", by_file.clone(), doc! {}),
        index(collections::QUARANTINE, "by_file", by_file, doc! {}),
        // Each study is in it some nine times: with each of its keys.
        index(collections::STUDY, "by_key", doc! { studies::PROJECT: 1, duplicates::KEYS: 1 }, doc! {}),
        // Only marked studies are in it, and they are rare. It is read from its end, in the order of records: two indexes
        // on the same fields in the same direction would count as one.
        index(
            collections::STUDY,
            "marked",
            doc! { studies::SEARCH: 1, studies::FILE: 1, studies::RECORD: -1 },
            doc! { "partialFilterExpression": { studies::DUPLICATE: { "$exists": true } } },
        ),
        // Records with something poisoned: few, of many that wait.
        index(collections::SAGA, POISONED, poisoned.clone(), with_poison.clone()),
        index(collections::SESSION, POISONED, poisoned, with_poison),
        index(
            collections::FAILURE,
            "by_state",
            doc! { failures::STANDING: 1, failures::LAST_SEEN: -1, "_id": -1 },
            doc! {},
        ),
        index(
            collections::FAILURE,
            "by_cause",
            doc! { failures::STANDING: 1, failures::CAUSE: 1, failures::LAST_SEEN: -1, "_id": -1 },
            doc! {},
        ),
        index(collections::FAILURE, "ttl_ExpiresAt", doc! { failures::EXPIRES_AT: 1 }, at_its_time.clone()),
        // One at a time.
        index(
            collections::OPERATION,
            "running",
            doc! { failures::RUNNING: 1 },
            doc! { "unique": true, "partialFilterExpression": { failures::RUNNING: true } },
        ),
        index(collections::OPERATION, "latest", doc! { failures::AT: -1, "_id": -1 }, doc! {}),
        index(collections::OPERATION, "ttl_ExpiresAt", doc! { failures::EXPIRES_AT: 1 }, at_its_time.clone()),
        index(collections::ACT, "latest", doc! { failures::AT: -1, "_id": -1 }, doc! {}),
        index(collections::ACT, "ttl_ExpiresAt", doc! { failures::EXPIRES_AT: 1 }, at_its_time.clone()),
        index(
            collections::HISTORY,
            "by_partition",
            doc! { history::PARTITION: 1, history::AT: 1, "_id": 1 },
            doc! {},
        ),
        index(collections::HISTORY, "ttl_ExpiresAt", doc! { history::EXPIRES_AT: 1 }, at_its_time),
        index(collections::FILE, "by_search", doc! { studies::SEARCH: 1, files::POSITION: 1 }, doc! {}),
    ]
}

impl Index {
    /// As the server takes it.
    pub(crate) fn specification(&self) -> Document {
        let mut specification = doc! { "name": self.name, "key": self.key.clone() };
        specification.extend(self.options.clone());
        specification
    }

    /// The existing indexes that take its place: those of its name or on its fields.
    fn rivals(&self, existing: &[Document]) -> Vec<Document> {
        let is_rival = |index: &&Document| {
            let same_name = index.get_str("name").is_ok_and(|name| name == self.name);
            same_name || index.get_document("key").is_ok_and(|key| pairs(key) == pairs(&self.key))
        };
        existing.iter().filter(is_rival).cloned().collect()
    }

    fn is(&self, existing: &Document) -> bool {
        let same_key = existing.get_document("key").is_ok_and(|key| pairs(key) == pairs(&self.key));
        let mut options = existing.clone();
        // `v` and `background` change nothing about what an index does; `ns` is from before 4.4.
        for name in ["name", "key", "v", "ns", "background"] {
            options.remove(name);
        }
        existing.get_str("name").is_ok_and(|name| name == self.name)
            && same_key
            && plain(&options) == plain(&self.options)
    }

    /// What is to become of it beside the indexes that exist.
    pub(crate) fn outcome(&self, existing: &[Document], on_difference: OnDifference) -> Outcome {
        let rivals = self.rivals(existing);
        match (rivals.as_slice(), on_difference) {
            ([], _) => Outcome::Created,
            ([only], _) if self.is(only) => Outcome::Present,
            (_, OnDifference::Report) => Outcome::Differs(rivals),
            (_, OnDifference::Rebuild) => Outcome::Rebuilt(rivals),
        }
    }
}

/// The fields of a key, in their order, which counts.
fn pairs(key: &Document) -> Vec<(String, Bson)> {
    key.iter().map(|(name, value)| (name.clone(), number(value))).collect()
}

/// Options with their numbers in one type: a shell writes doubles where a driver writes integers.
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
    fn the_ttl_index_has_its_name_its_field_and_seven_days() {
        let index = ttl();
        assert_eq!((index.collection, index.name), ("pmSearchImportJobState", "ttl_CompletedAt_7d"));
        assert_eq!(index.key, doc! { "CompletedAt": 1 });
        assert_eq!(index.options.get("expireAfterSeconds"), Some(&Bson::Int32(604_800)));
    }

    /// A place that expired while its file was being compared would have the file read from its beginning again.
    #[test]
    fn what_is_known_of_reading_outlives_any_retention_of_ended_searches() {
        let minute = SignedDuration::from_mins(1);
        let index = wanted(minute, minute).into_iter().find(|index| index.name == "ttl_TouchedAt").unwrap();
        assert_eq!(index.options.get("expireAfterSeconds"), Some(&Bson::Int32(604_800)));
    }

    #[test]
    fn an_index_as_it_should_be_is_present_even_with_numbers_of_another_type() {
        let mut listed = as_listed(&ttl());
        listed.insert("expireAfterSeconds", 604_800.0);
        assert_eq!(ttl().outcome(&[listed], OnDifference::Rebuild), Outcome::Present);
    }

    #[test]
    fn a_missing_index_is_created() {
        let id = doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
        assert_eq!(ttl().outcome(&[id], OnDifference::Report), Outcome::Created);
    }

    #[test]
    fn other_options_or_another_name_on_the_same_fields_differ() {
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
