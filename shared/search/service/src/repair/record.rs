//! The record of a search's repairs. Every repair reads and changes it, so two concurrent repairs cannot repair the
//! same file.

use std::collections::{BTreeMap, BTreeSet};

use imports::{FileRef, Job, Outcome, SearchId};
use messages::StoreError;
use outbox::{Key, ReadRecords};
use serde::{Deserialize, Serialize};

/// The kind of the record. The id equals the id of the original search.
pub const REPAIRS: &str = "repairs";

/// A file that replaces another one, or some of its records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepairedFile {
    /// The repaired file, of the original search or of an earlier repair.
    pub of: FileRef,
    /// The numbers of the corrected records; empty if the whole file is read again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub records: BTreeSet<u64>,
    /// The file that is read instead.
    pub by: FileRef,
}

/// All repairs of a search in chronological order, including repairs of repairs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repairs {
    /// The repairing files.
    pub files: Vec<RepairedFile>,
    /// The deleted searches; their files cannot be read again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub deleted: BTreeSet<SearchId>,
}

/// The state of a repairing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The repair of the file has not ended.
    Open,
    /// The file was read completely.
    Read,
    /// The file failed, or its search was deleted.
    Failed,
}

/// Returns the key of the record of an original search.
pub(crate) fn key(original: SearchId) -> Key {
    Key::new(REPAIRS, original.to_string())
}

/// Returns the state of a repairing file from the existing searches.
pub(crate) fn fate(jobs: &BTreeMap<SearchId, Job>, file: FileRef) -> Fate {
    let Some(job) = jobs.get(&file.search_id) else { return Fate::Failed };
    let found = job.files.iter().find(|known| known.file_id == file.file_id);
    match found.and_then(|found| found.outcome.as_ref()) {
        Some(Outcome::Completed(_)) => Fate::Read,
        Some(Outcome::Failed { .. }) => Fate::Failed,
        None if job.state.has_ended() => Fate::Failed,
        None => Fate::Open,
    }
}

impl Repairs {
    /// Reads the repairs of an original search.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable or contains a record that this version cannot read.
    pub async fn read(records: &dyn ReadRecords, original: SearchId) -> Result<Self, StoreError> {
        let Some(record) = records.record(&key(original)).await? else { return Ok(Self::default()) };
        Self::deserialize(&record.body)
            .map_err(|error| StoreError::unusable(format!("reading the repairs of search {original}"), error))
    }

    /// Returns the searches that repair something.
    pub fn searches(&self) -> BTreeSet<SearchId> {
        self.files.iter().map(|repaired| repaired.by.search_id).collect()
    }

    /// Returns the file that this one replaces entirely, if it does.
    pub fn instead_of(&self, file: FileRef) -> Option<FileRef> {
        self.files.iter().find(|repaired| repaired.by == file && repaired.is_whole()).map(|found| found.of)
    }

    /// Returns the chain of replacements from this file to the original, including both.
    pub fn earlier(&self, file: FileRef) -> Vec<FileRef> {
        Self::chain(file, |last| self.instead_of(last))
    }

    /// Returns the chain of replacements and corrections from this file to the original, including both.
    pub fn origins(&self, file: FileRef) -> Vec<FileRef> {
        Self::chain(file, |last| self.files.iter().find(|repaired| repaired.by == last).map(|found| found.of))
    }

    /// Returns the deleted searches whose sources can be deleted, because no existing file repairs their files.
    pub fn forgotten(&self) -> BTreeSet<SearchId> {
        let standing = self.files.iter().filter(|repaired| !self.deleted.contains(&repaired.by.search_id));
        let origins = standing.flat_map(|repaired| self.origins(repaired.by)).map(|file| file.search_id);
        &self.deleted - &origins.collect()
    }

    fn chain(file: FileRef, before: impl Fn(FileRef) -> Option<FileRef>) -> Vec<FileRef> {
        let mut files = vec![file];
        while let Some(earlier) = files.last().and_then(|last| before(*last))
            // An intact record contains no cycle.
            && !files.contains(&earlier)
        {
            files.push(earlier);
        }
        files
    }

    /// Returns the search that reads this file again, or has done so.
    pub fn reread_by(&self, file: FileRef, fate: impl Fn(FileRef) -> Fate) -> Option<SearchId> {
        let original = |file| self.earlier(file).pop();
        let is_it = |repaired: &&RepairedFile| {
            repaired.is_whole()
                && original(repaired.by) == original(file)
                && fate(repaired.by) != Fate::Failed
        };
        self.files.iter().find(is_it).map(|found| found.by.search_id)
    }

    /// Returns the search that has corrected this record, or is about to.
    pub fn corrected_by(
        &self,
        file: FileRef,
        record: u64,
        fate: impl Fn(FileRef) -> Fate,
    ) -> Option<SearchId> {
        let is_it = |repaired: &&RepairedFile| {
            repaired.of == file && repaired.records.contains(&record) && fate(repaired.by) != Fate::Failed
        };
        self.files.iter().find(is_it).map(|found| found.by.search_id)
    }

    /// Returns the search that needs an uploaded file of this one until it has ended.
    pub fn needs(&self, search: SearchId, fate: impl Fn(FileRef) -> Fate) -> Option<SearchId> {
        let is_it = |repaired: &&RepairedFile| {
            let earlier = self.earlier(repaired.by);
            fate(repaired.by) == Fate::Open && earlier.iter().skip(1).any(|file| file.search_id == search)
        };
        self.files.iter().find(is_it).map(|found| found.by.search_id)
    }
}

impl RepairedFile {
    /// Returns `true` if the whole file is read again.
    pub fn is_whole(&self) -> bool {
        self.records.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use imports::FileId;
    use uuid::Uuid;

    use super::*;

    fn file(search: u128, file: u128) -> FileRef {
        FileRef {
            search_id: SearchId::from_uuid(Uuid::from_u128(search)),
            file_id: FileId::from_uuid(Uuid::from_u128(file)),
        }
    }

    fn repaired(of: FileRef, records: &[u64], by: FileRef) -> RepairedFile {
        RepairedFile { of, records: records.iter().copied().collect(), by }
    }

    fn search(number: u128) -> Option<SearchId> {
        Some(file(number, 0).search_id)
    }

    /// Search 2 failed to repair file 1 of search 1. Search 3 repairs the file of search 2.
    fn twice() -> Repairs {
        let files = vec![repaired(file(1, 1), &[], file(2, 1)), repaired(file(2, 1), &[], file(3, 1))];
        Repairs { files, ..Repairs::default() }
    }

    #[test]
    fn file_is_repaired_once_through_any_repair() {
        let last = |then: Fate| move |asked| if asked == file(3, 1) { then } else { Fate::Failed };
        for asked in [file(1, 1), file(2, 1), file(3, 1)] {
            for then in [Fate::Open, Fate::Read] {
                assert_eq!(twice().reread_by(asked, last(then)), search(3));
            }
            assert_eq!(twice().reread_by(asked, last(Fate::Failed)), None);
        }
        assert_eq!(twice().reread_by(file(1, 2), |_| Fate::Read), None, "another file");
    }

    #[test]
    fn record_is_corrected_again_only_after_failure() {
        let repairs =
            Repairs { files: vec![repaired(file(1, 1), &[3, 5], file(2, 1))], ..Repairs::default() };
        assert_eq!(repairs.corrected_by(file(1, 1), 3, |_| Fate::Open), search(2));
        assert_eq!(repairs.corrected_by(file(1, 1), 4, |_| Fate::Open), None);
        assert_eq!(repairs.corrected_by(file(1, 1), 3, |_| Fate::Failed), None);
        assert_eq!(repairs.reread_by(file(1, 1), |_| Fate::Open), None, "the whole file is not repaired");
    }

    #[test]
    fn search_is_needed_while_repair_reads_it() {
        let open = |asked| if asked == file(3, 1) { Fate::Open } else { Fate::Failed };
        for needed in [1, 2] {
            assert_eq!(twice().needs(file(needed, 0).search_id, open), search(3));
        }
        assert_eq!(twice().needs(file(3, 0).search_id, open), None);
        assert_eq!(twice().needs(file(1, 0).search_id, |_| Fate::Read), None);
    }

    #[test]
    fn repair_cycle_terminates() {
        let files = vec![repaired(file(1, 1), &[], file(2, 1)), repaired(file(2, 1), &[], file(1, 1))];
        let circle = Repairs { files, ..Repairs::default() };
        assert_eq!(circle.earlier(file(1, 1)), [file(1, 1), file(2, 1)]);
    }
}
