//! The keys that several studies of a project share.
//!
//! Most keys of a study are unique. Looking up each of them reads a page of a large project's key tree and finds
//! nothing. The keys of a large file are inserted in order, so the worker that inserts them finds the shared ones at the
//! same time. If its result is outdated, one ordered scan of the tree finds the shared keys before the file is marked.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use imports::{FileRef, StudyKeys};
use messages::StoreError;
use rusqlite::{Connection, OptionalExtension, params};

use crate::db_threads::DbThreads;
use crate::fault::Fault;
use crate::search::key_sort::KeyEntry;
use crate::value::uint;

/// The number of words of the filter, one bit per key: 4 MiB of memory. With a million shared keys, 3 % of the other
/// keys are looked up unnecessarily.
const WORDS: usize = 1 << 19;

/// The number of entries that may be scanned instead of one lookup. In a tree of ten million entries at least 40 are
/// scanned in the time of a lookup, since they are adjacent; so a scan takes less than half of the time that it may
/// save.
const MAX_SCAN_RATIO: u64 = 16;

/// The number of entries scanned in one call, so that other reads run in between.
const SCAN_BATCH: u64 = 500_000;

/// The minimum number of a file's keys for which shared ones are found at their insertion.
pub(crate) const MIN_KEYS: u64 = 2_000;

/// The sample from which the number of keys is estimated: one in 16,384, as keys are hashes.
const SAMPLE: u32 = 14;

pub(crate) const COUNT: &str = "SELECT count(*) FROM study_key WHERE project = ?1 AND key BETWEEN ?2 AND ?3";
pub(crate) const PASS: &str = "SELECT key FROM study_key WHERE project = ?1 AND key BETWEEN ?2 AND ?3
    GROUP BY key HAVING count(*) > 1";
pub(crate) const IN_OTHER_FILES: &str = "SELECT
    EXISTS (SELECT 1 FROM study_key WHERE project = ?1 AND key = ?2 AND source < ?3)
    OR EXISTS (SELECT 1 FROM study_key WHERE project = ?1 AND key = ?2 AND source > ?3)";
const HAS_OTHER_FILES: &str =
    "SELECT EXISTS (SELECT 1 FROM source AS own JOIN source AS other USING (project_id)
    WHERE own.seq = ?1 AND other.seq <> own.seq)";
pub(crate) const LAST: &str = "SELECT max(record) FROM study
    WHERE source = (SELECT seq FROM source WHERE search_id = ?1 AND file_id = ?2)";
/// The project of a file that was read to its end.
pub(crate) const PROJECT: &str = "SELECT project.seq FROM source JOIN parsed_file USING (search_id, file_id)
    JOIN project ON project.project_id = source.project_id WHERE source.search_id = ?1 AND source.file_id = ?2";

/// A filter of the keys that several studies of a project share, with some false positives.
///
/// It is valid until another file of the project is listed: the studies of listed files do not change. A worker that
/// lists a file reports it ([`SharedKeyCache::listed`]) and only then counts a revision, under which it compares that
/// file's studies. A worker that still used the old filter therefore works under an earlier revision, whose marks are
/// superseded.
#[derive(Debug)]
pub(crate) struct SharedKeyFilter {
    project: i64,
    /// The number of files of the project that this process had listed when the filter was begun, and the file that it
    /// was created for if that is one of them.
    listings: u64,
    /// The file that the filter was created for.
    made_for: FileRef,
    /// `true` if the filter has the shared keys of all studies of the project, `false` if it has only those of the file.
    is_of_project: bool,
    bits: Vec<u64>,
}

impl SharedKeyFilter {
    fn new(project: i64, listings: u64, made_for: FileRef) -> Self {
        Self { project, listings, made_for, is_of_project: true, bits: vec![0; WORDS] }
    }

    /// Adds the keys that several studies share.
    fn pass(&mut self, db: &Connection, keys: &RangeInclusive<i64>) -> Result<(), Fault> {
        let mut statement = db.prepare_cached(PASS)?;
        let mut rows = statement.query(params![self.project, keys.start(), keys.end()])?;
        while let Some(row) = rows.next()? {
            self.insert(row.get::<_, i64>(0)?.cast_unsigned());
        }
        Ok(())
    }

    fn place(key: u64) -> (usize, u64) {
        let word = key / 64 % WORDS as u64;
        // The remainder above is less than `WORDS`.
        (usize::try_from(word).unwrap_or_default(), 1 << (key % 64))
    }

    fn insert(&mut self, key: u64) {
        let (word, bit) = Self::place(key);
        if let Some(word) = self.bits.get_mut(word) {
            *word |= bit;
        }
    }

    /// Returns `false` for a key that only one study of this project has.
    pub(crate) fn may_share(&self, project: i64, key: u64) -> bool {
        self.project != project || self.may_have(key)
    }

    fn may_have(&self, key: u64) -> bool {
        let (word, bit) = Self::place(key);
        self.bits.get(word).is_some_and(|word| word & bit != 0)
    }
}

/// A filter of the keys that the studies of a file share, while these keys are inserted in order.
#[derive(Debug)]
pub(crate) struct SharedKeySearch {
    filter: SharedKeyFilter,
    /// The last key that was inserted.
    last: Option<i64>,
}

impl SharedKeySearch {
    /// Adds the shared keys among the next keys of the file, which are inserted in the same transaction.
    ///
    /// A key of a file that is inserted at the same time may be missed. One of the two files is listed first, so the
    /// filter of the other one is outdated ([`SharedKeyCache::listed`]).
    pub(crate) fn add(
        &mut self,
        db: &Connection,
        project: i64,
        source: i64,
        entries: &[KeyEntry],
    ) -> rusqlite::Result<()> {
        let has_others =
            db.prepare_cached(HAS_OTHER_FILES)?.query_row([source], |row| row.get::<_, bool>(0))?;
        self.filter.is_of_project &= !has_others;
        let mut in_others = db.prepare_cached(IN_OTHER_FILES)?;
        for KeyEntry { key, .. } in entries {
            let is_repeated = self.last.replace(*key) == Some(*key);
            if is_repeated
                || has_others && in_others.query_row(params![project, key, source], |row| row.get(0))?
            {
                self.filter.insert(key.cast_unsigned());
            }
        }
        Ok(())
    }
}

/// The last filter of this process.
#[derive(Debug, Default)]
pub(crate) struct SharedKeyCache(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The number of files of each project that this process has listed.
    listings: HashMap<i64, u64>,
    /// The listed files that are still being marked. A worker that resumes a file lists it again.
    marked: HashSet<FileRef>,
    last: Option<Arc<SharedKeyFilter>>,
    /// The number of keys looked up without the filter, because it was outdated or belonged to another project.
    missed: u64,
}

impl State {
    fn listings_of(&self, project: i64) -> u64 {
        self.listings.get(&project).copied().unwrap_or_default()
    }
}

/// Some studies of a file that is marked.
#[derive(Debug)]
pub(crate) struct KeyedPage {
    pub(crate) file: FileRef,
    /// The project of the file, if the file was read to its end.
    pub(crate) project: Option<i64>,
    pub(crate) studies: Vec<StudyKeys>,
    /// `true` if there may be more studies.
    pub(crate) more: bool,
}

impl SharedKeyCache {
    /// Begins the search for shared keys of a file, before its first key is inserted. `project` is `None` if no study of
    /// the project has a key.
    pub(crate) fn search(&self, project: Option<i64>, file: FileRef) -> SharedKeySearch {
        let listings = project.map_or(0, |project| self.locked().listings_of(project));
        // The number is assigned with the first key.
        let filter = SharedKeyFilter::new(project.unwrap_or_default(), listings, file);
        SharedKeySearch { filter, last: None }
    }

    /// Records that a file of a project is listed and about to be marked, and the shared keys that were found when all
    /// its keys were inserted. They are complete unless another file was listed in between.
    pub(crate) fn listed(&self, project: i64, file: FileRef, found: Option<SharedKeySearch>) {
        let mut state = self.locked();
        let listings = state.listings_of(project);
        if state.marked.insert(file) {
            *state.listings.entry(project).or_default() += 1;
        }
        if let Some(SharedKeySearch { filter, .. }) = found
            && filter.listings == listings
        {
            let filter = SharedKeyFilter { project, listings: state.listings_of(project), ..filter };
            (state.last, state.missed) = (Some(Arc::new(filter)), 0);
        }
    }

    /// Removes keys that no other study has; scans the tree first if that saves time.
    pub(crate) async fn leave_out(
        &self,
        engine: &DbThreads,
        page: KeyedPage,
    ) -> Result<Vec<StudyKeys>, StoreError> {
        let KeyedPage { file, project, mut studies, more } = page;
        // The keys of an unlisted file may change, and others do not wait for it.
        let Some(project) = project else { return Ok(studies) };
        if !more {
            self.locked().marked.remove(&file);
        }
        let mut known = self.known(project, file, count(&studies));
        if known.is_none() && more {
            known = self.pass(engine, project, file, &studies).await?;
        }
        let Some(known) = known else { return Ok(studies) };
        for keys in studies.iter_mut().filter_map(|study| study.keys.as_mut()) {
            keys.retain(|key| known.may_have(*key));
        }
        if !more && known.made_for == file {
            self.locked().last = None;
        }
        Ok(studies)
    }

    /// Returns the last filter if it is valid for all studies of its project.
    pub(crate) fn current(&self) -> Option<Arc<SharedKeyFilter>> {
        let state = self.locked();
        let is_good = |last: &&Arc<SharedKeyFilter>| {
            last.is_of_project && last.listings == state.listings_of(last.project)
        };
        state.last.as_ref().filter(is_good).cloned()
    }

    /// Returns the last filter if it is valid for a file of a project. If the filter is not valid, the function adds
    /// `keys` to the number of keys looked up without a filter.
    fn known(&self, project: i64, file: FileRef, keys: u64) -> Option<Arc<SharedKeyFilter>> {
        let mut state = self.locked();
        let listings = state.listings_of(project);
        let is_good = |last: &&Arc<SharedKeyFilter>| {
            last.project == project
                && last.listings == listings
                && (last.is_of_project || last.made_for == file)
        };
        let known = state.last.as_ref().filter(is_good).cloned();
        if known.is_none() {
            state.missed = state.missed.saturating_add(keys);
        }
        known
    }

    /// Scans all keys of a project, if that takes less time than looking up the keys of a file's remaining studies. If
    /// files arrive continuously, a filter is soon outdated. A new filter is therefore created only after lookups have
    /// taken as much time as its creation needs.
    async fn pass(
        &self,
        engine: &DbThreads,
        project: i64,
        file: FileRef,
        studies: &[StudyKeys],
    ) -> Result<Option<Arc<SharedKeyFilter>>, StoreError> {
        let FileRef { search_id, file_id } = file;
        let doing = || format!("passing over the keys that file {file_id} of search {search_id} may share");
        let (mut repeated, max) = {
            let state = self.locked();
            let max = if state.last.is_some() { state.missed } else { u64::MAX };
            (SharedKeyFilter::new(project, state.listings_of(project), file), max)
        };
        let (entries, last) = engine.read(doing(), move |db| survey(db, project, file)).await?;
        let first = studies.first().map_or(0, |study| study.record);
        let each = count(studies).div_ceil(studies.len().max(1) as u64);
        let left = last.saturating_sub(first).saturating_mul(each);
        if entries > left.min(max).saturating_mul(MAX_SCAN_RATIO) {
            return Ok(None);
        }
        for keys in parts(entries / SCAN_BATCH + 1) {
            let pass = move |db: &Connection| {
                repeated.pass(db, &keys)?;
                Ok(repeated)
            };
            repeated = engine.read(doing(), pass).await?;
        }
        let repeated = Arc::new(repeated);
        let mut state = self.locked();
        (state.last, state.missed) = (Some(Arc::clone(&repeated)), 0);
        Ok(Some(repeated))
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(studies: &[StudyKeys]) -> u64 {
    studies.iter().filter_map(|study| study.keys.as_ref()).map(|keys| keys.len() as u64).sum()
}

/// Returns all keys in a number of ranges, in the order of storage.
fn parts(count: u64) -> impl Iterator<Item = RangeInclusive<i64>> {
    let width = u64::MAX / count;
    // The smallest key is stored as the smallest signed number.
    let stored = |key: u64| (key ^ (1 << 63)).cast_signed();
    (0..count).map(move |part| {
        let from = part * width;
        let to = if part + 1 == count { u64::MAX } else { from + width - 1 };
        stored(from)..=stored(to)
    })
}

/// Returns the approximate number of keys of a project, and the last study of a file.
fn survey(db: &Connection, project: i64, file: FileRef) -> Result<(u64, u64), Fault> {
    let sample = (u64::MAX >> SAMPLE).cast_signed();
    let found: i64 = db.prepare_cached(COUNT)?.query_row(params![project, 0, sample], |row| row.get(0))?;
    let file = params![file.search_id.to_string(), file.file_id.to_string()];
    let last: Option<i64> = db.prepare_cached(LAST)?.query_row(file, |row| row.get(0))?;
    Ok((uint(found) << SAMPLE, uint(last.unwrap_or_default())))
}

/// Returns the project of a file that was read to its end.
pub(crate) fn project(db: &Connection, file: FileRef) -> rusqlite::Result<Option<i64>> {
    let file = params![file.search_id.to_string(), file.file_id.to_string()];
    db.prepare_cached(PROJECT)?.query_row(file, |row| row.get(0)).optional()
}

#[cfg(test)]
mod tests {
    use imports::{FileId, SearchId};
    use uuid::Uuid;

    use super::*;
    use crate::search::keys::{self, tests::with_a_file};

    #[test]
    fn parts_cover_all_keys_in_order() {
        for count in [1, 2, 3, 7, 1_000] {
            let parts: Vec<_> = parts(count).collect();
            assert_eq!(parts.len() as u64, count);
            assert_eq!((*parts[0].start(), *parts[parts.len() - 1].end()), (i64::MIN, i64::MAX));
            assert!(parts.windows(2).all(|two| two[0].end() + 1 == *two[1].start()), "{parts:?}");
        }
    }

    /// Inserts the keys of studies of a file in parts, and returns which keys may be shared.
    fn found_while_inserting(db: &Connection, source: i64, keys: &[i64], part: usize) -> SharedKeyFilter {
        let file = FileRef::new(SearchId::from_uuid(Uuid::nil()), FileId::from_uuid(Uuid::nil()));
        let mut search = SharedKeyCache::default().search(None, file);
        let mut entries: Vec<_> =
            (1..).zip(keys).map(|(record, key)| KeyEntry { key: *key, record }).collect();
        entries.sort_unstable();
        for part in entries.chunks(part) {
            keys::insert(db, source, part, Some(&mut search)).unwrap();
        }
        search.filter
    }

    #[test]
    fn shared_keys_are_found_while_inserting() {
        for part in [1, 2, 100] {
            let (db, ..) = with_a_file();
            for name in ["b", "c"] {
                let sql = "INSERT INTO source (search_id, file_id, project_id) VALUES (?1, 's', 'p')";
                db.execute(sql, [name]).unwrap();
            }
            let may_have = |filter: &SharedKeyFilter, keys: &[i64]| {
                keys.iter().map(|key| filter.may_have(key.cast_unsigned())).collect::<Vec<_>>()
            };
            // Keys of a file with a lower number, of one with a higher number, and of both.
            found_while_inserting(&db, 1, &[-5, 5, 7], part);
            found_while_inserting(&db, 3, &[5, 9], part);
            let keys = [-5, -5, 2, 3, 3, 3, 5, 7, 8, 9, i64::MAX];
            let found = found_while_inserting(&db, 2, &keys, part);
            assert!(!found.is_of_project);
            let expected = [true, true, false, true, true, true, true, true, false, true, false];
            assert_eq!(may_have(&found, &keys), expected, "{part}");
            // A worker that resumes the file inserts the same keys again.
            let again = found_while_inserting(&db, 2, &keys, part);
            assert_eq!(may_have(&again, &keys), expected, "{part}");
        }
    }

    #[test]
    fn files_listed_during_search_outdate_it() {
        let file = |n| FileRef::new(SearchId::from_uuid(Uuid::nil()), FileId::from_uuid(Uuid::from_u128(n)));
        let cache = SharedKeyCache::default();
        let listed = |n, search| {
            cache.listed(1, file(n), Some(search));
            cache.current().map(|filter| filter.made_for)
        };
        assert_eq!(listed(1, cache.search(None, file(1))), Some(file(1)));
        let (second, third) = (cache.search(Some(1), file(2)), cache.search(Some(1), file(3)));
        assert_eq!(listed(2, second), Some(file(2)));
        assert_eq!(listed(3, third), None);
        // The project had no number when its search began.
        assert_eq!(listed(4, cache.search(None, file(4))), None);
        // Files of other projects do not matter.
        let fifth = cache.search(Some(1), file(5));
        cache.listed(2, file(6), None);
        assert_eq!(listed(5, fifth), Some(file(5)));
    }

    #[test]
    fn shared_keys_are_found_in_any_parts() {
        let (db, search, file) = with_a_file();
        db.execute("INSERT INTO project (seq, project_id) VALUES (1, 'p')", []).unwrap();
        let keys = [i64::MIN, -7, 0, 1, i64::MAX];
        for (place, key) in keys.iter().enumerate() {
            // The first, the third and the last key have one study, also in another project.
            for (project, source) in [(1, 1), (2, 1)].into_iter().chain((place % 2 == 1).then_some((1, 2))) {
                let sql = "INSERT INTO study_key VALUES (?1, ?2, ?3, 1)";
                db.execute(sql, params![project, key, source]).unwrap();
            }
        }
        for count in [1, 2, 5, 64] {
            let mut repeated = SharedKeyFilter::new(1, 0, FileRef::new(search, file));
            parts(count).for_each(|part| repeated.pass(&db, &part).unwrap());
            let found = keys.map(|key| repeated.may_have(key.cast_unsigned()));
            assert_eq!(found, [false, true, false, true, false], "{count} parts");
        }
    }
}
