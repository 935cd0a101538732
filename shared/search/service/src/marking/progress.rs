//! The studies that earlier chunks of a pass have settled. No group is read and marked again.

use std::collections::HashSet;

use imports::{FileRef, StudyRef};

/// The progress of a pass over the studies of an added file.
///
/// A study is settled once it was compared with all its candidates and marked, together with everything that is the
/// same. Most candidates are unrelated studies that share a key. Such a pair is compared once: the later of the two
/// studies does not read the earlier one again.
///
/// Memory: some twenty bytes for each study that has candidates.
#[derive(Debug)]
pub(super) struct Progress {
    file: FileRef,
    settled: HashSet<u64>,
    /// Studies that are at least possibly the same as a settled one, or that a reviewer decided about.
    related: HashSet<u64>,
    /// Keys for which a lookup does not return all studies. A settled study may not have seen the others.
    common: HashSet<u64>,
}

/// The studies that a closure has settled, and the studies related to them.
#[derive(Debug, Default)]
pub(super) struct Closure {
    pub(super) settled: Vec<StudyRef>,
    pub(super) related: Vec<StudyRef>,
}

impl Progress {
    pub(super) fn new(file: FileRef) -> Self {
        Self { file, settled: HashSet::new(), related: HashSet::new(), common: HashSet::new() }
    }

    /// Adds a closure that was neither cut off nor interrupted.
    pub(super) fn add(&mut self, Closure { settled, related }: Closure) {
        let file = self.file;
        self.settled.extend(records(file, &settled));
        self.related.extend(records(file, &related));
    }

    /// Records a lookup by a key; `is_complete` is `true` if it has returned all studies with this key. Returns `true`
    /// if every study with this key has seen every other one: no lookup so far has omitted studies.
    pub(super) fn note_lookup(&mut self, key: u64, is_complete: bool) -> bool {
        if !is_complete {
            self.common.insert(key);
        }
        !self.common.contains(&key)
    }

    pub(super) fn is_settled(&self, study: StudyRef) -> bool {
        self.has(study) && self.settled.contains(&study.record)
    }

    /// Returns `true` if this candidate was compared with the study before, and they are different works.
    /// `is_mutual` is `true` if they share a key that shows each of them to the other.
    pub(super) fn is_excluded(&self, study: StudyRef, candidate: StudyRef, is_mutual: bool) -> bool {
        is_mutual && self.is_settled(candidate) && self.has(study) && !self.related.contains(&study.record)
    }

    /// Returns `true` for a study of the added file.
    pub(super) fn has(&self, study: StudyRef) -> bool {
        study.file() == self.file
    }
}

fn records(file: FileRef, studies: &[StudyRef]) -> impl Iterator<Item = u64> {
    let of_file = move |study: &&StudyRef| study.file() == file;
    studies.iter().filter(of_file).map(|study| study.record)
}

#[cfg(test)]
mod tests {
    use imports::{FileId, SearchId};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn unrelated_pair_is_excluded_after_settlement() {
        let at = |file: u128, record| StudyRef {
            search_id: SearchId::from_uuid(Uuid::from_u128(1)),
            file_id: FileId::from_uuid(Uuid::from_u128(file)),
            record,
        };
        let file = at(1, 1).file();
        let mut progress = Progress::new(file);
        assert!(!progress.is_excluded(at(1, 2), at(1, 1), true));
        progress.add(Closure { settled: vec![at(1, 1), at(2, 9)], related: vec![at(1, 3)] });
        assert!(progress.is_settled(at(1, 1)) && !progress.is_settled(at(2, 9)));
        assert!(progress.is_excluded(at(1, 2), at(1, 1), true));
        assert!(!progress.is_excluded(at(1, 2), at(1, 1), false), "the settled study may not have seen it");
        assert!(!progress.is_excluded(at(1, 3), at(1, 1), true), "its mark names the settled study");
        assert!(!progress.is_excluded(at(1, 1), at(1, 2), true), "they were not compared");
        assert!(
            !progress.is_excluded(at(2, 2), at(1, 1), true),
            "relations of other files are not remembered"
        );
        let lookups = [(7, false), (7, true), (8, true)];
        assert_eq!(
            lookups.map(|(key, is_complete)| progress.note_lookup(key, is_complete)),
            [false, false, true]
        );
    }
}
