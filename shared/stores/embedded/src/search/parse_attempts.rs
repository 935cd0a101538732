//! The attempts at reading files, and the fences that keep superseded attempts from storing more.

use async_trait::async_trait;
use imports::parse_attempts::{AttemptState, FileFence, ParseAttempts, ReadingStatus};
use imports::{FileId, FileRef, SearchId};
use messages::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::search::study_rows;
use crate::value::{from_json, int, json, uint};

const BEGIN: &str = "INSERT INTO reading (search_id, file_id, begun, reader) VALUES (?1, ?2, 1, ?3)
    ON CONFLICT (search_id, file_id) DO UPDATE SET begun = begun + 1, reader = excluded.reader";
const REACH: &str =
    "UPDATE reading SET place = ?4, begun = CASE WHEN place IS ?4 THEN begun ELSE min(begun, 1) END
    WHERE search_id = ?1 AND file_id = ?2 AND fence = ?3
    AND (?5 OR place IS NULL OR place ->> '$.within' IS NOT NULL)";
const PAUSE: &str = "UPDATE reading SET begun = 0 WHERE search_id = ?1 AND file_id = ?2";
const RAISE: &str = "UPDATE reading SET fence = fence + 1, place = ?4, clearing = 1
    WHERE search_id = ?1 AND file_id = ?2 AND fence = ?3 AND (place IS NULL OR place ->> '$.within' IS NOT NULL)";
// A worker that deletes a refused file continues under its fence.
const WITHDRAW: &str =
    "INSERT INTO reading (search_id, file_id, begun, place, fence, clearing) VALUES (?1, ?2, 0, ?3, 1, 0)
    ON CONFLICT (search_id, file_id) DO UPDATE
    SET fence = fence + (place ->> '$.refused' IS NULL), place = excluded.place";
const REMOVE: &str = "UPDATE reading SET clearing = 1 WHERE search_id = ?1 AND file_id = ?2 RETURNING fence";
const CLEARED: &str = "UPDATE reading SET clearing = 0 WHERE search_id = ?1 AND file_id = ?2 AND fence = ?3";

#[async_trait]
impl ParseAttempts for Store {
    async fn start(&self, search: SearchId, file: FileId, reader: u32) -> Result<AttemptState, StoreError> {
        let doing = format!("beginning to read file {file} of search {search}");
        let work = move |db: &Connection| {
            if let Some(StoredAttempts { reading, last_reader: Some(last), .. }) = stored(db, search, file)?
                && last != reader
            {
                let held = FileFence { search_id: search, file_id: file, fence: reading.fence };
                // A completely read or refused file is not read again.
                if raise(db, &held, None)?.is_some() {
                    forget_attempts(db, search, file)?;
                }
            }
            let before = stored(db, search, file)?.unwrap_or_default();
            db.prepare_cached(BEGIN)?.execute(params![search.to_string(), file.to_string(), reader])?;
            Ok((before.reading, before.is_clearing))
        };
        let (reading, is_clearing) = self.change(Call::ReadingBegin, doing.clone(), work).await?;
        if is_clearing {
            let held = FileFence { search_id: search, file_id: file, fence: reading.fence };
            self.clear(Call::ReadingBegin, &doing, held).await?;
        }
        Ok(reading)
    }

    async fn save(&self, file: &FileFence, place: &ReadingStatus) -> Result<(), StoreError> {
        let FileFence { search_id, file_id, fence } = *file;
        let doing = format!("remembering how far file {file_id} of search {search_id} is read");
        let (place, file) = (place.clone(), *file);
        let work = move |db: &Connection| {
            let (text, is_final) = (json(&place)?, place.is_final());
            let key = params![search_id.to_string(), file_id.to_string(), int(fence), text, is_final];
            db.prepare_cached(REACH)?.execute(key)?;
            holds(db, &file)
        };
        let is_held = self.change(Call::ReadingReach, doing.clone(), work).await?;
        if is_held { Ok(()) } else { Err(FileFence::overtaken(doing)) }
    }

    async fn place(&self, search: SearchId, file: FileId) -> Result<Option<ReadingStatus>, StoreError> {
        let doing = format!("looking how far file {file} of search {search} is read");
        let work = move |db: &Connection| Ok(stored(db, search, file)?.and_then(|found| found.reading.place));
        self.look(Call::ReadingPlace, doing, work).await
    }

    async fn end(&self, search: SearchId, file: FileId) -> Result<(), StoreError> {
        let doing = format!("ending an attempt at file {file} of search {search}");
        self.change(Call::ReadingPause, doing, move |db| forget_attempts(db, search, file)).await
    }
}

impl Store {
    /// Deletes the stored data of a file from before its fence was raised, in batches: other writes wait for one batch
    /// and not for all of them.
    pub(crate) async fn clear(&self, call: Call, doing: &str, file: FileFence) -> Result<(), StoreError> {
        while self.change(call, doing.to_owned(), move |db| clear_some(db, &file)).await? {}
        Ok(())
    }
}

fn forget_attempts(db: &Connection, search: SearchId, file: FileId) -> Result<(), Fault> {
    db.prepare_cached(PAUSE)?.execute(params![search.to_string(), file.to_string()])?;
    Ok(())
}

/// Returns `true` if the file still has this fence, and no data from before it.
pub(crate) fn holds(db: &Connection, file: &FileFence) -> Result<bool, Fault> {
    let found = stored(db, file.search_id, file.file_id)?;
    Ok(found.is_some_and(|found| found.reading.fence == file.fence && !found.is_clearing))
}

/// The state of the studies of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StudiesState {
    /// The studies from before this fence were deleted. A file that was never read has fence 0.
    Stored {
        /// The fence of the file.
        fence: u64,
    },
    /// The studies from before this fence are being deleted.
    Clearing,
    /// The file is refused, and its studies are or will be deleted.
    Refused,
}

pub(crate) fn studies_state(db: &Connection, file: FileRef) -> Result<StudiesState, Fault> {
    let Some(found) = stored(db, file.search_id, file.file_id)? else {
        return Ok(StudiesState::Stored { fence: 0 });
    };
    let is_refused = found.reading.place.is_some_and(|place| matches!(place, ReadingStatus::Refused { .. }));
    Ok(match (is_refused, found.is_clearing) {
        (true, _) => StudiesState::Refused,
        (false, true) => StudiesState::Clearing,
        (false, false) => StudiesState::Stored { fence: found.reading.fence },
    })
}

/// Raises a file's fence. Returns `None` if the file has another fence, was read to its end, or was refused.
pub(crate) fn raise(
    db: &Connection,
    file: &FileFence,
    then: Option<&ReadingStatus>,
) -> Result<Option<FileFence>, Fault> {
    let then = then.map(json).transpose()?;
    let key = params![file.search_id.to_string(), file.file_id.to_string(), int(file.fence), then];
    let is_raised = db.prepare_cached(RAISE)?.execute(key)? > 0;
    Ok(is_raised.then_some(FileFence { fence: file.fence + 1, ..*file }))
}

/// Refuses a file in any state. Raises its fence unless the file was refused before, and removes the file from the list
/// of read files. The stored studies of the file stay, because marks of other studies may name them.
pub(crate) fn withdraw(
    db: &Connection,
    search: SearchId,
    file: FileId,
    refused: &ReadingStatus,
) -> Result<(), Fault> {
    let key = params![search.to_string(), file.to_string(), json(refused)?];
    db.prepare_cached(WITHDRAW)?.execute(key)?;
    let reported = "DELETE FROM progress WHERE search_id = ?1 AND file_id = ?2";
    db.prepare_cached(reported)?.execute(params![search.to_string(), file.to_string()])?;
    let read = "DELETE FROM parsed_file WHERE search_id = ?1 AND file_id = ?2";
    db.prepare_cached(read)?.execute(params![search.to_string(), file.to_string()])?;
    Ok(())
}

/// Withdraws a file, and deletes its stored data.
pub(crate) fn remove(
    db: &Connection,
    search: SearchId,
    file: FileId,
    refused: &ReadingStatus,
) -> Result<FileFence, Fault> {
    withdraw(db, search, file, refused)?;
    let key = params![search.to_string(), file.to_string()];
    let fence: i64 = db.prepare_cached(REMOVE)?.query_row(key, |row| row.get(0))?;
    Ok(FileFence { search_id: search, file_id: file, fence: uint(fence) })
}

/// Deletes a batch of data from before the fence was raised. Returns `true` if there may be more.
pub(crate) fn clear_some(db: &Connection, file: &FileFence) -> Result<bool, Fault> {
    let FileFence { search_id, file_id, fence } = *file;
    let found = stored(db, search_id, file_id)?;
    if !found.is_some_and(|found| found.reading.fence == fence && found.is_clearing) {
        // Another worker has cleared the file.
        return Ok(false);
    }
    if study_rows::discard_some(db, search_id, file_id)? {
        return Ok(true);
    }
    let key = params![search_id.to_string(), file_id.to_string(), int(fence)];
    db.prepare_cached(CLEARED)?.execute(key)?;
    Ok(false)
}

/// The stored state of the attempts at a file.
#[derive(Default)]
struct StoredAttempts {
    reading: AttemptState,
    /// `true` if there is data from before the fence was raised.
    is_clearing: bool,
    /// The version of the last reader; `None` in rows that versions without fences wrote.
    last_reader: Option<u32>,
}

fn stored(db: &Connection, search: SearchId, file: FileId) -> Result<Option<StoredAttempts>, Fault> {
    let sql =
        "SELECT begun, place, fence, clearing, reader FROM reading WHERE search_id = ?1 AND file_id = ?2";
    let mut statement = db.prepare_cached(sql)?;
    let row = |row: &Row<'_>| {
        let place: Option<String> = row.get(1)?;
        Ok((row.get(0)?, place, row.get(2)?, row.get(3)?, row.get(4)?))
    };
    let found = statement.query_row(params![search.to_string(), file.to_string()], row).optional()?;
    let Some((begun, place, fence, is_clearing, last_reader)) = found else { return Ok(None) };
    let place = place.as_deref().map(from_json).transpose()?;
    Ok(Some(StoredAttempts {
        reading: AttemptState { begun, place, fence: uint(fence) },
        is_clearing,
        last_reader,
    }))
}
