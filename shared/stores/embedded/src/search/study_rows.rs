//! The rows of studies and unreadable records.
//!
//! Values common to all records of a file are stored once, in a row of `source`; values that follow from the position
//! of a study, such as its id, are not stored. The size of a record is therefore bounded by its text plus a few dozen
//! bytes.

use std::borrow::Cow;
use std::ops::Range;

use imports::{
    Duplicate, DuplicateCounts, FileId, FileRef, Identity, Mark, ProjectId, QuarantinedRecord, Revision,
    SearchId, StoredFile, Study, StudyId, StudyKeys, StudyRef, Tier,
};
use references::{Quarantine, Reference, SparseReference};
use rusqlite::{Connection, OptionalExtension, Row, Statement, params};
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::search::keys;
use crate::search::packed::{StoredText, Unpacker, pack};
use crate::search::words;
use crate::value::{from_json, int, json, limit, parse, uint};

/// A study or an unreadable record to be inserted.
pub(crate) struct New {
    search: SearchId,
    file: FileId,
    project: Option<ProjectId>,
    record: i64,
    text: StoredText,
    bytes: Option<Range<u64>>,
    keys: Vec<u8>,
}

/// Returns the text that a row has in a column, or compressed in another.
fn stored_text<'a>(
    unpacker: &mut Unpacker,
    row: &'a Row<'_>,
    text: usize,
    packed: usize,
) -> Result<Cow<'a, str>, Fault> {
    match row.get_ref(packed)?.as_blob_or_null().map_err(rusqlite::Error::from)? {
        Some(packed) => Ok(Cow::Owned(unpacker.unpack(packed).map_err(Fault::Packed)?)),
        None => Ok(Cow::Borrowed(row.get_ref(text)?.as_str().map_err(rusqlite::Error::from)?)),
    }
}

/// The text of a study, to be written.
#[derive(Serialize)]
struct StudyText<'a> {
    line: u64,
    reference: SparseReference<'a>,
}

/// The text of a study, as read.
#[derive(Deserialize)]
struct StoredStudy {
    line: u64,
    reference: Reference,
}

impl New {
    pub(crate) fn study(study: &Study) -> Result<Self, Fault> {
        let written = StudyText { line: study.line, reference: study.reference.sparse() };
        Ok(Self {
            search: study.search_id,
            file: study.file_id,
            project: Some(study.project_id),
            record: int(study.record),
            text: pack(json(&written)?).map_err(Fault::Pack)?,
            bytes: study.bytes.clone(),
            keys: keys::bytes(&study.reference),
        })
    }

    pub(crate) fn quarantined(quarantined: &QuarantinedRecord) -> Result<Self, Fault> {
        Ok(Self {
            search: quarantined.search_id,
            file: quarantined.file_id,
            project: None,
            record: int(quarantined.record.number),
            text: StoredText::Text(json(&quarantined.record)?),
            bytes: None,
            keys: Vec::new(),
        })
    }
}

const STUDY: &str =
    "INSERT INTO study (source, record, study, start, length, keys, packed) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT DO NOTHING";
const QUARANTINE: &str =
    "INSERT INTO quarantine (source, record, quarantined) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";

pub(crate) fn insert_studies(db: &Connection, rows: &[New]) -> Result<(), Fault> {
    insert(db, STUDY, rows, |statement, source, New { record, text, bytes, keys, .. }| {
        let start = bytes.as_ref().map(|bytes| int(bytes.start));
        let length = bytes.as_ref().map(|bytes| int(bytes.end.saturating_sub(bytes.start)));
        let (text, packed) = text.columns();
        statement.execute(params![source, record, text, start, length, keys, packed])
    })
}

pub(crate) fn insert_quarantined(db: &Connection, rows: &[New]) -> Result<(), Fault> {
    insert(db, QUARANTINE, rows, |statement, source, New { record, text, .. }| {
        statement.execute(params![source, record, text.columns().0])
    })
}

fn insert(
    db: &Connection,
    sql: &str,
    rows: &[New],
    put: impl Fn(&mut Statement<'_>, i64, &New) -> rusqlite::Result<usize>,
) -> Result<(), Fault> {
    let mut statement = db.prepare_cached(sql)?;
    for of_file in rows.chunk_by(|one, next| (one.search, one.file) == (next.search, next.file)) {
        let Some(first) = of_file.first() else { continue };
        let source = source(db, first.search, first.file, first.project)?;
        for row in of_file {
            put(&mut statement, source, row)?;
        }
    }
    Ok(())
}

/// Returns the number of a file, and assigns one if it has none. All studies of a file belong to the project of the
/// first one.
fn source(db: &Connection, search: SearchId, file: FileId, project: Option<ProjectId>) -> Result<i64, Fault> {
    let (search, file) = (search.to_string(), file.to_string());
    let project = project.map(|project| project.to_string());
    let known =
        "SELECT seq, project_id IS NULL AND ?3 IS NOT NULL FROM source WHERE search_id = ?1 AND file_id = ?2";
    let known: Option<(i64, bool)> = db
        .prepare_cached(known)?
        .query_row(params![search, file, project], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    if let Some((seq, false)) = known {
        return Ok(seq);
    }
    let sql = "INSERT INTO source (search_id, file_id, project_id) VALUES (?1, ?2, ?3)
        ON CONFLICT (search_id, file_id) DO UPDATE SET project_id = excluded.project_id RETURNING seq";
    Ok(db.prepare_cached(sql)?.query_row(params![search, file, project], |row| row.get(0))?)
}

/// The maximum number of records that one transaction deletes, since other writes wait for it.
const DISCARD_BATCH: usize = 10_000;
/// The maximum number of buckets of words, each of a few kilobytes, that one transaction deletes.
const DISCARDED_WORDS: usize = 2_000;

/// Deletes a batch of the stored data of a file. Returns `true` if there may be more.
pub(crate) fn discard_some(db: &Connection, search: SearchId, file: FileId) -> Result<bool, Fault> {
    let mut is_more = false;
    keys::remove(db, search, file, DISCARD_BATCH)?;
    for table in ["study", "quarantine", "mark"] {
        let sql = format!(
            "DELETE FROM {table} WHERE source = ({SOURCE})
             AND record IN (SELECT record FROM {table} WHERE source = ({SOURCE}) ORDER BY record LIMIT ?3)"
        );
        let key = params![search.to_string(), file.to_string(), limit(DISCARD_BATCH)];
        is_more |= db.prepare_cached(&sql)?.execute(key)? >= DISCARD_BATCH;
    }
    let file = params![search.to_string(), file.to_string()];
    let source: Option<i64> = db.prepare_cached(SOURCE)?.query_row(file, |row| row.get(0)).optional()?;
    if let Some(source) = source {
        is_more |= words::discard_some(db, source, DISCARDED_WORDS)? >= DISCARDED_WORDS;
    }
    Ok(is_more)
}

/// Selects the number of the file that the first two parameters name.
const SOURCE: &str = "SELECT seq FROM source WHERE search_id = ?1 AND file_id = ?2";

/// A mark of a later revision is kept.
const MARK: &str =
    "INSERT INTO mark (source, record, original, position, original_record, reason, tier, revision)
    SELECT source, record, ?3, ?4, ?5, ?6, ?7, ?8 FROM study WHERE source = ?1 AND record = ?2
    ON CONFLICT DO UPDATE SET original = excluded.original, position = excluded.position,
      original_record = excluded.original_record, reason = excluded.reason, tier = excluded.tier,
      revision = excluded.revision
    WHERE mark.revision <= excluded.revision";

/// The tier of a study that repeats no other study.
const NONE: u8 = 0;

/// A tier as a number, the surest last.
fn number(tier: Tier) -> u8 {
    match tier {
        Tier::Possible => 1,
        Tier::Likely => 2,
        Tier::Certain => 3,
    }
}

pub(crate) fn mark(db: &Connection, revision: Revision, marks: &[Mark]) -> Result<(), Fault> {
    let mut statement = db.prepare_cached(MARK)?;
    for Mark { at, duplicate } in marks {
        let of = source(db, at.search_id, at.file_id, None)?;
        let (original, position, earlier, reason, tier) = match duplicate {
            None => (of, 0, at.record, String::new(), NONE),
            Some(Duplicate { search_id, file_id, position, record, tier, reason }) => {
                let original = source(db, *search_id, *file_id, None)?;
                (original, *position, *record, json(reason)?, number(*tier))
            }
        };
        let (record, earlier, revision) = (int(at.record), int(earlier), int(revision));
        statement.execute(params![of, record, original, position, earlier, reason, tier, revision])?;
    }
    Ok(())
}

/// Reads studies of a file, and their marks.
macro_rules! studies {
    ($which:literal) => {
        concat!(
            "SELECT study.record, study.study, source.project_id,
      mark.position, mark.original_record, mark.reason, original.file_id, study.start, study.length, mark.tier,
      original.search_id, study.packed
    FROM source
    JOIN study ON study.source = source.seq
    LEFT JOIN mark ON mark.source = study.source AND mark.record = study.record AND mark.tier > 0
    LEFT JOIN source AS original ON original.seq = mark.original
    WHERE source.search_id = ?1 AND source.file_id = ?2 AND study.record ",
            $which
        )
    };
}
pub(crate) const STUDIES: &str = studies!("> ?3 ORDER BY study.record LIMIT ?4");
pub(crate) const STUDY_AT: &str = studies!("= ?3");
/// The order of the tables is given, as SQLite cannot know that marks are rare.
pub(crate) const MARKED: &str = "SELECT study.record, study.study, source.project_id,
      mark.position, mark.original_record, mark.reason, original.file_id, study.start, study.length, mark.tier,
      original.search_id, study.packed
    FROM source
    CROSS JOIN mark ON mark.source = source.seq
    CROSS JOIN study ON study.source = mark.source AND study.record = mark.record
    JOIN source AS original ON original.seq = mark.original
    WHERE source.search_id = ?1 AND source.file_id = ?2 AND mark.record > ?3 AND mark.tier >= ?5
    ORDER BY mark.record LIMIT ?4";
/// Reads some columns of studies of a file, and their marks.
macro_rules! of_file {
    ($columns:literal, $which:literal) => {
        concat!(
            "SELECT record, EXISTS (SELECT 1 FROM mark
               WHERE mark.source = study.source AND mark.record = study.record AND mark.tier > 0), ",
            $columns,
            " FROM study WHERE source = (SELECT seq FROM source WHERE search_id = ?1 AND file_id = ?2) AND ",
            $which
        )
    };
}
pub(crate) const KEYED: &str = of_file!("keys", "record > ?3 ORDER BY record LIMIT ?4");
pub(crate) const IDENTITY: &str = "SELECT record, EXISTS (SELECT 1 FROM mark
      WHERE mark.source = study.source AND mark.record = study.record AND mark.tier > 0), study, packed
    FROM study WHERE source = ?1 AND record = ?2";
pub(crate) const QUARANTINED: &str = "SELECT record, quarantined, NULL FROM quarantine
    WHERE source = (SELECT seq FROM source WHERE search_id = ?1 AND file_id = ?2) AND record > ?3
    ORDER BY record LIMIT ?4";
pub(crate) const STORED_FILES: &str = "SELECT search_id, file_id, project_id,
      (SELECT count(*) FROM study WHERE study.source = source.seq)
    FROM source WHERE (search_id, file_id) > (?1, ?2)
      AND EXISTS (SELECT 1 FROM study WHERE study.source = source.seq)
    ORDER BY search_id, file_id LIMIT ?3";
pub(crate) const MARKS: &str = "SELECT tier, reason = '\"said\"', count(*) FROM mark
    WHERE source = (SELECT seq FROM source WHERE search_id = ?1 AND file_id = ?2) AND tier > 0 GROUP BY 1, 2";

/// A range of records of a file: a number of records after a record.
#[derive(Clone, Copy)]
pub(crate) struct Page {
    pub(crate) search: SearchId,
    pub(crate) file: FileId,
    pub(crate) after: u64,
    pub(crate) limit: usize,
}

/// A query of records and its columns: the number of the record in the first one, the text in the second.
struct Query {
    sql: &'static str,
    /// The column of the compressed text.
    packed: usize,
}

const TEXT: usize = 1;

/// Returns the position of a study in its file, unless an earlier version stored it.
fn bytes(row: &Row<'_>) -> Result<Option<Range<u64>>, Fault> {
    let Some((start, length)) = row.get::<_, Option<i64>>(7)?.zip(row.get::<_, Option<i64>>(8)?) else {
        return Ok(None);
    };
    Ok(Some(uint(start)..uint(start).saturating_add(uint(length))))
}

impl Page {
    /// Returns the rows of a query until their texts take the maximum number of bytes. An unreadable row is reported
    /// with its record.
    fn rows<T>(
        self,
        db: &Connection,
        query: &Query,
        least: Option<Tier>,
        max_bytes: usize,
        decode: impl Fn(&Row<'_>, Result<Cow<'_, str>, Fault>) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let Self { search, file, after, limit: count } = self;
        let mut statement = db.prepare_cached(query.sql)?;
        let (search, file) = (search.to_string(), file.to_string());
        let mut rows = match least {
            None => statement.query(params![search, file, int(after), limit(count)])?,
            Some(least) => statement.query(params![search, file, int(after), limit(count), number(least)])?,
        };
        let (mut found, mut bytes, mut unpacker) = (Vec::new(), 0_usize, Unpacker::default());
        while bytes < max_bytes
            && let Some(row) = rows.next()?
        {
            let text = stored_text(&mut unpacker, row, TEXT, query.packed);
            bytes = bytes.saturating_add(text.as_ref().map_or(0, |text| text.len()));
            found.push(decode(row, text).map_err(|fault| named(row, found.len(), fault))?);
        }
        Ok(found)
    }

    /// Returns studies until they reach a number of bytes. If a tier is given, returns only studies with a mark of at
    /// least this certainty.
    pub(crate) fn studies(
        self,
        db: &Connection,
        marked: Option<Tier>,
        bytes: usize,
    ) -> Result<Vec<Study>, Fault> {
        let query = Query { sql: if marked.is_some() { MARKED } else { STUDIES }, packed: 11 };
        self.rows(db, &query, marked, bytes, |row, text| self.study(row, &text?))
    }

    pub(crate) fn keyed(self, db: &Connection) -> Result<Vec<StudyKeys>, Fault> {
        let Self { search, file, after, limit: count } = self;
        let mut statement = db.prepare_cached(KEYED)?;
        let mut rows =
            statement.query(params![search.to_string(), file.to_string(), int(after), limit(count)])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let keys = row.get_ref(2)?.as_blob_or_null().map_err(rusqlite::Error::from)?;
            let keys = keys.map(|keys| keys::stored(keys).map(i64::cast_unsigned).collect());
            found.push(StudyKeys { record: uint(row.get(0)?), keys, is_marked: row.get(1)? });
        }
        Ok(found)
    }

    pub(crate) fn quarantined(self, db: &Connection) -> Result<Vec<QuarantinedRecord>, Fault> {
        let query = Query { sql: QUARANTINED, packed: 2 };
        self.rows(db, &query, None, usize::MAX, |_, text| {
            let record: Quarantine = from_json(&text?)?;
            Ok(QuarantinedRecord { search_id: self.search, file_id: self.file, record })
        })
    }

    fn study(self, row: &Row<'_>, text: &str) -> Result<Study, Fault> {
        let record = uint(row.get(0)?);
        let StoredStudy { line, reference } = from_json(text)?;
        let project_id = ProjectId::from_uuid(parse("project id", &row.get::<_, String>(2)?)?);
        Ok(Study {
            id: StudyId::of(self.search, self.file, record),
            project_id,
            search_id: self.search,
            file_id: self.file,
            record,
            line,
            bytes: bytes(row)?,
            reference,
            duplicate: self.duplicate(row)?,
        })
    }

    fn duplicate(self, row: &Row<'_>) -> Result<Option<Duplicate>, Fault> {
        let Some(file) = row.get::<_, Option<String>>(6)? else { return Ok(None) };
        let (file_id, record) = (FileId::from_uuid(parse("file id", &file)?), uint(row.get(4)?));
        let reason = row.get_ref(5)?.as_str().map_err(rusqlite::Error::from)?;
        let (position, reason) = (row.get(3)?, from_json(reason)?);
        let tiers = [Tier::Possible, Tier::Likely, Tier::Certain];
        let stored: u8 = row.get(9)?;
        let tier = tiers.into_iter().find(|tier| number(*tier) == stored).unwrap_or(Tier::Certain);
        let search_id = SearchId::from_uuid(parse("search id", &row.get::<_, String>(10)?)?);
        Ok(Some(Duplicate { search_id, file_id, position, record, tier, reason }))
    }
}

/// Adds the record to the error of an unreadable study.
fn named(row: &Row<'_>, before: usize, fault: Fault) -> Fault {
    match row.get(0) {
        Ok(record) if fault.is_of_value() => {
            Fault::Study { record: uint(record), before, source: Box::new(fault) }
        }
        _ => fault,
    }
}

/// The stored form of the identity of a study.
pub(crate) struct StoredIdentity {
    record: u64,
    is_marked: bool,
    text: Result<StoredText, Fault>,
}

impl StoredIdentity {
    fn of(row: &Row<'_>) -> Result<Self, Fault> {
        let text = match row.get(3) {
            Ok(Some(packed)) => Ok(StoredText::Packed(packed)),
            Ok(None) => row.get(2).map(StoredText::Text),
            Err(error) => Err(error),
        };
        Ok(Self { record: uint(row.get(0)?), is_marked: row.get(1)?, text: text.map_err(Fault::from) })
    }

    fn bytes(&self) -> usize {
        match &self.text {
            Ok(StoredText::Text(text)) => text.len(),
            Ok(StoredText::Packed(packed)) => packed.len(),
            Err(_) => 0,
        }
    }

    /// Returns the identity. An unreadable study matches no other; reading it reports the cause.
    pub(crate) fn read(self, unpacker: &mut Unpacker) -> Result<Identity, Fault> {
        let Self { record, is_marked, text } = self;
        let text = text.and_then(|text| match text {
            StoredText::Text(text) => Ok(text),
            StoredText::Packed(packed) => unpacker.unpack(&packed).map_err(Fault::Packed),
        });
        let identity = match text.and_then(|text| from_json(&text)) {
            Ok(StoredStudy { reference, .. }) => Identity::of(record, &reference),
            Err(fault) if fault.is_of_value() => {
                tracing::warn!(record, error = %fault, "a study that cannot be read is compared with no other");
                Identity { record, ..Identity::default() }
            }
            Err(fault) => return Err(fault),
        };
        Ok(Identity { is_marked, ..identity })
    }
}

/// A page of stored identities.
pub(crate) struct IdentityPage {
    pub(crate) found: Vec<StoredIdentity>,
    /// The number of given records that were looked up.
    pub(crate) looked_up: usize,
}

/// Returns the stored identities of some studies of a file until their texts take the maximum number of bytes.
pub(crate) fn identities_of(
    db: &Connection,
    search: SearchId,
    file: FileId,
    records: &[u64],
    max_bytes: usize,
) -> Result<IdentityPage, Fault> {
    let mut page = IdentityPage { found: Vec::new(), looked_up: records.len() };
    let file = params![search.to_string(), file.to_string()];
    let source = db.prepare_cached(SOURCE)?.query_row(file, |row| row.get(0)).optional()?;
    let Some(source): Option<i64> = source else { return Ok(page) };
    let mut statement = db.prepare_cached(IDENTITY)?;
    let mut bytes = 0_usize;
    for (place, record) in records.iter().enumerate() {
        if bytes >= max_bytes {
            page.looked_up = place;
            break;
        }
        let mut rows = statement.query(params![source, int(*record)])?;
        if let Some(row) = rows.next()? {
            let identity = StoredIdentity::of(row)?;
            bytes = bytes.saturating_add(identity.bytes());
            page.found.push(identity);
        }
    }
    Ok(page)
}

pub(crate) const REPEATING: &str = "SELECT source.search_id, source.file_id, mark.record FROM mark
    JOIN source ON source.seq = mark.source
    WHERE mark.original = ?1 AND mark.original_record = ?2 AND mark.tier > 1
    ORDER BY mark.source, mark.record LIMIT ?3";

/// Returns the duplicates of some studies of a file, for each study in the order of insertion.
pub(crate) fn repeating(
    db: &Connection,
    search: SearchId,
    file: FileId,
    records: &[u64],
    max: usize,
) -> Result<Vec<(u64, StudyRef)>, Fault> {
    let file = params![search.to_string(), file.to_string()];
    let source = db.prepare_cached(SOURCE)?.query_row(file, |row| row.get(0)).optional()?;
    let Some(source): Option<i64> = source else { return Ok(Vec::new()) };
    let mut statement = db.prepare_cached(REPEATING)?;
    let mut found = Vec::new();
    for original in records {
        let mut rows = statement.query(params![source, int(*original), limit(max)])?;
        while let Some(row) = rows.next()? {
            let search_id = SearchId::from_uuid(parse("search id", &row.get::<_, String>(0)?)?);
            let file_id = FileId::from_uuid(parse("file id", &row.get::<_, String>(1)?)?);
            found.push((*original, StudyRef { search_id, file_id, record: uint(row.get(2)?) }));
        }
    }
    Ok(found)
}

/// Returns some studies of a file until their texts take the maximum number of bytes.
pub(crate) fn studies_at(
    db: &Connection,
    search: SearchId,
    file: FileId,
    records: &[u64],
    max_bytes: usize,
) -> Result<Vec<Study>, Fault> {
    const PACKED: usize = 11;
    let page = Page { search, file, after: 0, limit: records.len() };
    let (search, file) = (search.to_string(), file.to_string());
    let mut statement = db.prepare_cached(STUDY_AT)?;
    let (mut found, mut bytes, mut unpacker) = (Vec::new(), 0_usize, Unpacker::default());
    for record in records {
        if bytes >= max_bytes {
            break;
        }
        let mut rows = statement.query(params![search, file, int(*record)])?;
        if let Some(row) = rows.next()? {
            let text = stored_text(&mut unpacker, row, TEXT, PACKED);
            bytes = bytes.saturating_add(text.as_ref().map_or(0, |text| text.len()));
            let study = text.and_then(|text| page.study(row, &text));
            found.push(study.map_err(|fault| named(row, found.len(), fault))?);
        }
    }
    Ok(found)
}

pub(crate) fn stored_files(
    db: &Connection,
    after: Option<FileRef>,
    count: usize,
) -> Result<Vec<StoredFile>, Fault> {
    let after = after.map(|file| (file.search_id.to_string(), file.file_id.to_string()));
    let (search, file) = after.unwrap_or_default();
    let mut statement = db.prepare_cached(STORED_FILES)?;
    let mut rows = statement.query(params![search, file, limit(count)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(StoredFile {
            search_id: SearchId::from_uuid(parse("search id", &row.get::<_, String>(0)?)?),
            file_id: FileId::from_uuid(parse("file id", &row.get::<_, String>(1)?)?),
            project_id: ProjectId::from_uuid(parse("project id", &row.get::<_, String>(2)?)?),
            studies: uint(row.get(3)?),
        });
    }
    Ok(found)
}

pub(crate) fn marked(db: &Connection, search: SearchId, file: FileId) -> Result<DuplicateCounts, Fault> {
    let mut statement = db.prepare_cached(MARKS)?;
    let mut rows = statement.query(params![search.to_string(), file.to_string()])?;
    let mut marked = DuplicateCounts::default();
    while let Some(row) = rows.next()? {
        let count = match (row.get(0)?, row.get(1)?) {
            (_, true) => &mut marked.said,
            (1_u8, false) => &mut marked.possible,
            (2, false) => &mut marked.likely,
            (_, false) => &mut marked.certain,
        };
        *count += uint(row.get(2)?);
    }
    Ok(marked)
}
