//! Definitions of the indexes of the search import's own collections.

use jiff::SignedDuration;
use mongodb::bson::doc;

use super::names::{attempts, collections, file, progress, study, word};
use crate::indexes::{Index, index, seconds};

/// The index that finds the studies of a project by their keys.
pub(super) const BY_KEY: &str = "by_key";

/// Minimum retention of the attempts to read a file, from the last write on. It exceeds the several days that the
/// comparison of its studies and the wait for another attempt may take.
const MIN_ATTEMPT_RETENTION: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Returns the definitions of the indexes, for this retention of ended sagas.
pub(crate) fn wanted(sagas: SignedDuration) -> Vec<Index> {
    let by_file = doc! { study::SEARCH: 1, study::FILE: 1, study::RECORD: 1 };
    vec![
        index(
            collections::PROGRESS,
            "ttl_ReportedAt",
            doc! { progress::REPORTED_AT: 1 },
            doc! { "expireAfterSeconds": seconds(sagas) },
        ),
        index(
            collections::READING,
            "ttl_TouchedAt",
            doc! { attempts::TOUCHED_AT: 1 },
            doc! { "expireAfterSeconds": seconds(sagas.max(MIN_ATTEMPT_RETENTION)) },
        ),
        index(collections::STUDY, "by_file", by_file.clone(), doc! {}),
        index(collections::QUARANTINE, "by_file", by_file, doc! {}),
        // Each study has about nine keys, with one index entry each.
        index(collections::STUDY, BY_KEY, doc! { study::PROJECT: 1, study::KEYS: 1 }, doc! {}),
        // The index contains marked studies only, which are rare. Queries read this index backwards to get the order of
        // records, because MongoDB treats two indexes on the same fields in the same direction as one.
        index(
            collections::STUDY,
            "marked",
            doc! { study::SEARCH: 1, study::FILE: 1, study::RECORD: -1 },
            doc! { "partialFilterExpression": { study::DUPLICATE: { "$exists": true } } },
        ),
        // A query for an original implies that the field exists, so it can use the partial index.
        index(
            collections::STUDY,
            "by_original",
            doc! { study::ORIGINAL: 1 },
            doc! { "partialFilterExpression": { study::ORIGINAL: { "$exists": true } } },
        ),
        index(collections::FILE, "by_search", doc! { study::SEARCH: 1, file::POSITION: 1 }, doc! {}),
        index(collections::FILE, "by_words", doc! { file::WORDS: 1 }, doc! {}),
        index(
            collections::WORD,
            "by_part",
            doc! { study::SEARCH: 1, study::FILE: 1, word::LAST: 1, word::BUCKET: 1 },
            doc! {},
        ),
    ]
}

#[cfg(test)]
mod tests {
    use mongodb::bson::Bson;

    use super::*;

    /// If the status expired during the comparison of a file, the file would be read from its beginning again.
    #[test]
    fn attempts_outlive_short_retention_of_ended_searches() {
        let minute = SignedDuration::from_mins(1);
        let index = wanted(minute).into_iter().find(|index| index.name == "ttl_TouchedAt").unwrap();
        assert_eq!(index.specification().get("expireAfterSeconds"), Some(&Bson::Int32(604_800)));
    }
}
