//! The index of the words of studies.

use async_trait::async_trait;
use imports::words::{BucketRange, END, UnindexedFile, WordBucket, WordPart};
use imports::{FileId, FileRef, IndexWords, SearchId};
use messages::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::value::{int, limit, parse, uint};

pub(crate) const UNINDEXED: &str = "SELECT search_id, file_id, words FROM parsed_file
    WHERE words < 9223372036854775807 AND (search_id, file_id) > (?1, ?2) ORDER BY search_id, file_id LIMIT ?3";
/// The limits of the part with the records after a number: the end of the previous part, and its own.
pub(crate) const PART: &str = "SELECT source.seq,
      ifnull((SELECT max(last) FROM word WHERE word.source = source.seq AND last <= ?3), 0),
      (SELECT min(last) FROM word WHERE word.source = source.seq AND last > ?3)
    FROM source WHERE search_id = ?1 AND file_id = ?2";
pub(crate) const BUCKET: &str =
    "SELECT bucket, words FROM word WHERE source = ?1 AND last = ?2 AND bucket = ?3";
pub(crate) const BUCKETS: &str = "SELECT bucket, words FROM word
    WHERE source = ?1 AND last = ?2 AND bucket >= ?3 AND bucket < ?3 || char(0x10ffff) ORDER BY bucket";
const STEP: &str = "UPDATE parsed_file SET words = ?4 WHERE search_id = ?1 AND file_id = ?2 AND words = ?3";
const INSERT: &str = "INSERT INTO word (source, last, bucket, words)
    SELECT seq, ?3, ?4, ?5 FROM source WHERE search_id = ?1 AND file_id = ?2";
const DISCARD: &str = "DELETE FROM word WHERE source = ?1 AND (last, bucket) IN (
      SELECT last, bucket FROM word WHERE source = ?1 ORDER BY last, bucket LIMIT ?2
    )";

#[async_trait]
impl IndexWords for Store {
    async fn unindexed(&self, after: Option<FileRef>, max: usize) -> Result<Vec<UnindexedFile>, StoreError> {
        let work = move |db: &Connection| {
            let after = after.map(|file| (file.search_id.to_string(), file.file_id.to_string()));
            let (search, file) = after.unwrap_or_default();
            let mut statement = db.prepare_cached(UNINDEXED)?;
            let mut rows = statement.query(params![search, file, limit(max)])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(unindexed(row)?);
            }
            Ok(found)
        };
        self.look(Call::WordsUnindexed, "finding files whose words are not indexed".to_owned(), work).await
    }

    async fn store_words(&self, search: SearchId, file: FileId, part: WordPart) -> Result<bool, StoreError> {
        let doing = format!("storing words of file {file} of search {search}");
        let work = move |db: &Connection| store(db, search, file, &part);
        self.change_in_passing(Call::WordsStore, doing, work).await
    }
}

fn unindexed(row: &Row<'_>) -> Result<UnindexedFile, Fault> {
    Ok(UnindexedFile {
        search_id: SearchId::from_uuid(parse("search id", &row.get::<_, String>(0)?)?),
        file_id: FileId::from_uuid(parse("file id", &row.get::<_, String>(1)?)?),
        after: uint(row.get(2)?),
    })
}

/// A file that was withdrawn, or has this part, has no row to be updated.
fn store(db: &Connection, search: SearchId, file: FileId, part: &WordPart) -> Result<bool, Fault> {
    let (search, file, last) = (search.to_string(), file.to_string(), int(part.last));
    if db.prepare_cached(STEP)?.execute(params![search, file, int(part.after), last])? == 0 {
        return Ok(false);
    }
    let mut insert = db.prepare_cached(INSERT)?;
    for WordBucket { key, words } in &part.buckets {
        insert.execute(params![search, file, last, key, words])?;
    }
    Ok(true)
}

pub(crate) fn words(
    db: &Connection,
    search: SearchId,
    file: FileId,
    after: u64,
    ranges: &[BucketRange],
) -> Result<Option<WordPart>, Fault> {
    let found = db
        .prepare_cached(PART)?
        .query_row(params![search.to_string(), file.to_string(), int(after)], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, Option<i64>>(2)?))
        })
        .optional()?;
    let Some((source, before, Some(last))) = found else {
        return Ok(None);
    };
    let mut part = WordPart { after: uint(before), last: uint(last).min(END), buckets: Vec::new() };
    for BucketRange { key, is_open } in ranges {
        let mut statement = db.prepare_cached(if *is_open { BUCKETS } else { BUCKET })?;
        let mut rows = statement.query(params![source, last, key])?;
        while let Some(row) = rows.next()? {
            part.buckets.push(WordBucket { key: row.get(0)?, words: row.get(1)? });
        }
    }
    Ok(Some(part))
}

/// Deletes a batch of the words of a file. Returns the number of deleted rows.
pub(crate) fn discard_some(db: &Connection, source: i64, max: usize) -> Result<usize, Fault> {
    Ok(db.prepare_cached(DISCARD)?.execute(params![source, limit(max)])?)
}
