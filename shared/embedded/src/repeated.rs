//! Which keys several studies of a project have.
//!
//! Most keys of a study are its own. To look each of them up costs a page of a large project's tree of keys, and finds nothing. One
//! pass over that tree, in its order, tells which keys are worth it, so whoever marks a large file makes one first.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use imports::{FileId, Keyed, SearchId};
use messages::StoreError;
use rusqlite::{Connection, OptionalExtension, params};

use crate::engine::Engine;
use crate::fault::Fault;
use crate::value::{parse, uint};

/// A file, and its search.
type FileKey = (SearchId, FileId);

/// How many words there are to remember keys by, a bit each: 4 MiB of memory. Where a million keys are of several studies, three in
/// a hundred of the others are looked up in vain.
const WORDS: usize = 1 << 19;

/// How many entries may be passed instead of one key's being looked up. In a tree of ten million entries 40 are passed in that time
/// and more, as they lie beside each other; so a pass takes less than half of the time that it may save.
const PASSED_IN_A_LOOK: u64 = 16;

/// How many entries are passed in one call. Others read in between.
const PASSED_AT_ONCE: u64 = 500_000;

/// A part of all keys, to tell by it how many there are: one in 16,384, as keys are hashes.
const SAMPLE: u32 = 14;

pub(crate) const COUNT: &str = "SELECT count(*) FROM study_key WHERE project = ?1 AND key BETWEEN ?2 AND ?3";
pub(crate) const PASS: &str = "SELECT key FROM study_key WHERE project = ?1 AND key BETWEEN ?2 AND ?3
    GROUP BY key HAVING count(*) > 1";
pub(crate) const LAST: &str = "SELECT max(record) FROM study
    WHERE source = (SELECT seq FROM source WHERE search_id = ?1 AND file_id = ?2)";
const PROJECT: &str = "SELECT project.seq FROM source JOIN project USING (project_id)
    WHERE search_id = ?1 AND file_id = ?2";
const LISTED: &str = "SELECT search_id, file_id FROM source JOIN parsed_file USING (search_id, file_id)
    WHERE project_id = (SELECT project_id FROM source WHERE search_id = ?1 AND file_id = ?2)";

/// The keys that several studies of a project have, and some more.
///
/// That is true as long as all files of the project that were read to their end are among those that were so when the pass began: the
/// studies of such a file do not change any more.
#[derive(Debug)]
struct Repeated {
    listed: HashSet<FileKey>,
    /// The file that it was made for.
    made_for: FileKey,
    bits: Vec<u64>,
}

impl Repeated {
    fn new(listed: HashSet<FileKey>, made_for: FileKey) -> Self {
        Self { listed, made_for, bits: vec![0; WORDS] }
    }

    /// Remembers those of some keys that several studies have.
    fn pass(&mut self, db: &Connection, project: i64, keys: &RangeInclusive<i64>) -> Result<(), Fault> {
        let mut statement = db.prepare_cached(PASS)?;
        let mut rows = statement.query(params![project, keys.start(), keys.end()])?;
        while let Some(row) = rows.next()? {
            self.insert(row.get::<_, i64>(0)?.cast_unsigned());
        }
        Ok(())
    }

    fn place(key: u64) -> (usize, u64) {
        let word = key / 64 % WORDS as u64;
        // Less than `WORDS`.
        (usize::try_from(word).unwrap_or_default(), 1 << (key % 64))
    }

    fn insert(&mut self, key: u64) {
        let (word, bit) = Self::place(key);
        if let Some(word) = self.bits.get_mut(word) {
            *word |= bit;
        }
    }

    fn may_have(&self, key: u64) -> bool {
        let (word, bit) = Self::place(key);
        self.bits.get(word).is_some_and(|word| word & bit != 0)
    }
}

/// The last pass of this process.
#[derive(Debug, Default)]
pub(crate) struct LastPass(Mutex<Option<Last>>);

#[derive(Debug)]
struct Last {
    found: Arc<Repeated>,
    /// How many keys were told without it because it was of other files.
    missed: u64,
}

/// Of a file that is marked: some of its studies' keys, and what was listed when they were read.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) file: FileKey,
    pub(crate) studies: Vec<Keyed>,
    /// The files of its project that were read to their end.
    pub(crate) listed: HashSet<FileKey>,
    /// Whether there may be more studies.
    pub(crate) more: bool,
}

impl LastPass {
    /// Leaves out keys of which it is known that no other study has them; makes a pass first if that is worth the time.
    pub(crate) async fn leave_out(&self, engine: &Engine, told: Told) -> Result<Vec<Keyed>, StoreError> {
        let Told { file, mut studies, listed, more } = told;
        if !listed.contains(&file) {
            // It may get others, and its own may change.
            return Ok(studies);
        }
        let known = match self.known(&listed, count(&studies)) {
            Ok(known) => Some(known),
            Err(missed) if more => {
                let found = pass(engine, file, listed, &studies, missed).await?.map(Arc::new);
                if let Some(found) = &found {
                    *self.locked() = Some(Last { found: Arc::clone(found), missed: 0 });
                }
                found
            }
            Err(_) => None,
        };
        if let Some(known) = known {
            for keys in studies.iter_mut().filter_map(|study| study.keys.as_mut()) {
                keys.retain(|key| known.may_have(*key));
            }
            if !more && known.made_for == file {
                *self.locked() = None;
            }
        }
        Ok(studies)
    }

    /// The last pass, if it is good for these files. Otherwise how many keys were told without it, with these.
    fn known(&self, listed: &HashSet<FileKey>, keys: u64) -> Result<Arc<Repeated>, u64> {
        let mut last = self.locked();
        let Some(last) = last.as_mut() else { return Err(u64::MAX) };
        if listed.is_subset(&last.found.listed) {
            return Ok(Arc::clone(&last.found));
        }
        last.missed = last.missed.saturating_add(keys);
        Err(last.missed)
    }

    fn locked(&self) -> MutexGuard<'_, Option<Last>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(studies: &[Keyed]) -> u64 {
    studies.iter().filter_map(|study| study.keys.as_ref()).map(|keys| keys.len() as u64).sum()
}

/// Passes over all keys of a file's project, if that takes less time than to look up those of its studies from these on. When files come
/// all the time a pass is soon good for nothing; so it is not made before as much time was spent without, on `missed` keys.
async fn pass(
    engine: &Engine,
    file: FileKey,
    listed: HashSet<FileKey>,
    studies: &[Keyed],
    missed: u64,
) -> Result<Option<Repeated>, StoreError> {
    let doing = || format!("passing over the keys that file {} of search {} may share", file.1, file.0);
    let Some(survey) = engine.read(doing(), move |db| survey(db, file)).await? else { return Ok(None) };
    let first = studies.first().map_or(0, |study| study.record);
    let each = count(studies).div_ceil(studies.len().max(1) as u64);
    let left = survey.last.saturating_sub(first).saturating_mul(each);
    if survey.entries > left.min(missed).saturating_mul(PASSED_IN_A_LOOK) {
        return Ok(None);
    }
    let project = survey.project;
    let mut repeated = Repeated::new(listed, file);
    for keys in parts(survey.entries / PASSED_AT_ONCE + 1) {
        let pass = move |db: &Connection| {
            repeated.pass(db, project, &keys)?;
            Ok(repeated)
        };
        repeated = engine.read(doing(), pass).await?;
    }
    Ok(Some(repeated))
}

/// All keys in so many parts, in the order in which they are stored.
fn parts(count: u64) -> impl Iterator<Item = RangeInclusive<i64>> {
    let width = u64::MAX / count;
    // The least of them is stored as the least of signed numbers.
    let stored = |key: u64| (key ^ (1 << 63)).cast_signed();
    (0..count).map(move |part| {
        let from = part * width;
        let to = if part + 1 == count { u64::MAX } else { from + width - 1 };
        stored(from)..=stored(to)
    })
}

/// What has to be known of a file to decide whether to pass over the keys of its project.
#[derive(Debug)]
struct Survey {
    project: i64,
    /// About how many entries the project has.
    entries: u64,
    /// The last study of the file.
    last: u64,
}

fn survey(db: &Connection, (search, file): FileKey) -> Result<Option<Survey>, Fault> {
    let (search, file) = (search.to_string(), file.to_string());
    let project =
        db.prepare_cached(PROJECT)?.query_row(params![search, file], |row| row.get(0)).optional()?;
    let Some(project): Option<i64> = project else { return Ok(None) };
    let sample = (u64::MAX >> SAMPLE).cast_signed();
    let found: i64 = db.prepare_cached(COUNT)?.query_row(params![project, 0, sample], |row| row.get(0))?;
    let last: Option<i64> = db.prepare_cached(LAST)?.query_row(params![search, file], |row| row.get(0))?;
    Ok(Some(Survey { project, entries: uint(found) << SAMPLE, last: uint(last.unwrap_or_default()) }))
}

/// The files of a file's project that were read to their end.
pub(crate) fn listed(db: &Connection, (search, file): FileKey) -> Result<HashSet<FileKey>, Fault> {
    let mut statement = db.prepare_cached(LISTED)?;
    let mut rows = statement.query(params![search.to_string(), file.to_string()])?;
    let mut listed = HashSet::new();
    while let Some(row) = rows.next()? {
        let (search, file): (String, String) = (row.get(0)?, row.get(1)?);
        let search = SearchId::from_uuid(parse("search id", &search)?);
        listed.insert((search, FileId::from_uuid(parse("file id", &file)?)));
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::with_a_file;

    #[test]
    fn the_parts_are_all_keys_once_and_in_order() {
        for count in [1, 2, 3, 7, 1_000] {
            let parts: Vec<_> = parts(count).collect();
            assert_eq!(parts.len() as u64, count);
            assert_eq!((*parts[0].start(), *parts[parts.len() - 1].end()), (i64::MIN, i64::MAX));
            assert!(parts.windows(2).all(|two| two[0].end() + 1 == *two[1].start()), "{parts:?}");
        }
    }

    #[test]
    fn what_several_have_is_found_in_however_many_parts() {
        let (db, search, file) = with_a_file();
        db.execute("INSERT INTO project (seq, project_id) VALUES (1, 'p')", []).unwrap();
        let keys = [i64::MIN, -7, 0, 1, i64::MAX];
        for (place, key) in keys.iter().enumerate() {
            // The first, the third and the last are of one study; another project has them too.
            for (project, source) in [(1, 1), (2, 1)].into_iter().chain((place % 2 == 1).then_some((1, 2))) {
                let sql = "INSERT INTO study_key VALUES (?1, ?2, ?3, 1)";
                db.execute(sql, params![project, key, source]).unwrap();
            }
        }
        for count in [1, 2, 5, 64] {
            let mut repeated = Repeated::new(HashSet::new(), (search, file));
            parts(count).for_each(|part| repeated.pass(&db, 1, &part).unwrap());
            let found = keys.map(|key| repeated.may_have(key.cast_unsigned()));
            assert_eq!(found, [false, true, false, true, false], "{count} parts");
        }
    }
}
