//! The text of a record as it is in the uploaded file.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::future::{Either, select};
use futures::lock::OwnedMutexGuard;
use imports::{ContentsError, ParsedFile, Part, PartBytes};
use jiff::{SignedDuration, Timestamp};
use messages::StoreError;
use references::{Encoding, Limits, RecordExtractor};

use crate::SearchService;

/// The maximum length of a record's text, in bytes of its file.
pub const MAX_RAW_BYTES: usize = 256 * 1024;

/// The maximum duration of unpacking for one request. Finding a record in a packed file requires unpacking everything
/// before it.
const MAX_UNPACK_TIME: SignedDuration = SignedDuration::from_secs(5);
/// The maximum time that a request waits for others, because a process unpacks for one request at a time.
const MAX_WAIT: Duration = Duration::from_secs(5);

const TOO_FAR: &str =
    "the record is too far inside a packed file to be shown in time; unpack the file to see it";
const BUSY: &str = "texts of other packed files are being read; try again in a few seconds";
const CHANGED: &str = "the uploaded file has changed since it was read";

/// The text of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Raw {
    /// The text, possibly truncated.
    Text {
        /// The text, decoded.
        text: String,
        /// `true` if the text is truncated to [`MAX_RAW_BYTES`].
        truncated: bool,
    },
    /// The text is not available, for this reason.
    Missing(&'static str),
}

/// A record and its bytes in the file, or in the part that contains it.
#[derive(Debug, Clone)]
pub struct RecordBytes {
    /// The number of the record in the file, from 1.
    pub record: u64,
    /// The byte range; `None` for studies that an earlier version stored.
    pub bytes: Option<Range<u64>>,
}

/// The text around a file's records, from which a readable file with some of them can be built.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Around {
    /// The text before the first record: the header row of a table, or the elements around the records of XML.
    pub before: String,
    /// The text between two records.
    pub between: String,
    /// The text after the last record.
    pub after: String,
}

/// The maximum number of bytes that are read to find the text before the first record.
const MAX_BEFORE: usize = 1 << 20;

/// A request's turn to read the text of a record; it ends when this is dropped.
pub struct Turn {
    /// `None` if nothing has to be unpacked.
    unpacking: Option<(OwnedMutexGuard<()>, Timestamp)>,
}

/// Yields to the other tasks of the thread once.
async fn pause() {
    let mut is_over = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The file was replaced: it was read before and is refused now.
struct FileReplaced;

/// Separates store errors from errors that show that the file was replaced.
fn still<T>(found: Result<T, ContentsError>) -> Result<Result<T, FileReplaced>, StoreError> {
    match found {
        Ok(found) => Ok(Ok(found)),
        Err(ContentsError::Store(error)) => Err(error),
        Err(ContentsError::Refused(_) | ContentsError::Gone) => Ok(Err(FileReplaced)),
    }
}

impl SearchService {
    /// Waits for the turn of a request that reads the text of a record of a file; returns `None` if others take too
    /// long.
    pub async fn turn(&self, file: &ParsedFile, record: u64) -> Option<Turn> {
        if Part::of(&file.parts, record).is_none() {
            return Some(Turn { unpacking: None });
        }
        match select(Arc::clone(&self.unpacking).lock_owned(), self.host().sleep(MAX_WAIT)).await {
            Either::Left((guard, _)) => {
                let until = self.host().now().saturating_add(MAX_UNPACK_TIME).unwrap_or(Timestamp::MAX);
                Some(Turn { unpacking: Some((guard, until)) })
            }
            Either::Right(_) => None,
        }
    }

    /// Returns `true` if a request may continue unpacking. Yields to other tasks first.
    async fn may_continue(&self, turn: &Turn) -> bool {
        let Some((_, until)) = &turn.unpacking else { return true };
        pause().await;
        !self.host().is_past(Some(*until))
    }

    /// Returns the bytes of a file or of a part of it from an offset on, or `None` if the file no longer exists.
    async fn open_part(
        &self,
        file: &ParsedFile,
        part: Option<&Part>,
        from: u64,
    ) -> Result<Option<PartBytes>, StoreError> {
        let opened = PartBytes::open(&*self.objects, &file.object, part, from).await;
        Ok(still(opened)?.unwrap_or(None))
    }

    /// Returns the text around the records of a file, or of the part that contains this record. `turn` comes from
    /// [`SearchService::turn`]. Returns `None` without a turn, if the file no longer exists, or if more precedes its
    /// first record than can be shown.
    pub async fn around(
        &self,
        file: &ParsedFile,
        encoding: &str,
        record: u64,
        turn: Option<Turn>,
    ) -> Result<Option<Around>, StoreError> {
        let part = Part::of(&file.parts, record);
        let encoding = part.map_or(encoding, |part| &part.encoding);
        let Some(turn) = turn else { return Ok(None) };
        let Some(mut pieces) = self.open_part(file, part, 0).await? else { return Ok(None) };
        let limits = Limits { max_file_bytes: u64::MAX, max_records: u64::MAX, ..Limits::default() };
        let (mut cutting, mut before, mut read) = (RecordExtractor::new(limits, []), Vec::new(), 0);
        while cutting.between().is_none() && read < MAX_BEFORE {
            if !self.may_continue(&turn).await {
                return Ok(None);
            }
            let Ok(piece) = still(pieces.next().await)? else { return Ok(None) };
            read += piece.as_ref().map_or(MAX_BEFORE, Vec::len);
            // The file was read before, so an error means that it was replaced.
            let opening = match piece {
                Some(piece) => cutting.push(&piece),
                None => cutting.end(),
            };
            let Ok(opening) = opening else { return Ok(None) };
            before.extend(opening);
        }
        let Some(between) = cutting.between().map(<[u8]>::to_vec) else { return Ok(None) };
        let Ok(after) = cutting.finish() else { return Ok(None) };
        let encoding = Encoding::named(encoding).unwrap_or(Encoding::Utf8);
        let [before, between, after] = [before, between, after].map(|bytes| encoding.text(&bytes, false));
        // Clients send the text back as UTF-8, which may contradict the declaration.
        let before = match before.split_once("?>") {
            Some((declaration, rest)) if declaration.starts_with("<?xml") => rest.trim_start().to_owned(),
            _ => before,
        };
        Ok(Some(Around { before, between, after }))
    }

    /// Returns the text of a record, decoded with the encoding in which it was read. `turn` comes from
    /// [`SearchService::turn`].
    pub async fn raw(
        &self,
        file: &ParsedFile,
        encoding: &str,
        RecordBytes { record, bytes }: RecordBytes,
        turn: Option<Turn>,
    ) -> Result<Raw, StoreError> {
        let Some(Range { start, end }) = bytes else {
            return Ok(Raw::Missing("an earlier version stored the study without its position in the file"));
        };
        let part = Part::of(&file.parts, record);
        let encoding = part.map_or(encoding, |part| &part.encoding);
        // Positions in a part refer to its unpacked bytes, so only those in a plain file can be compared with its size.
        if part.is_none() && end > file.object.size_bytes {
            return Ok(Raw::Missing(CHANGED));
        }
        if start == end {
            return Ok(Raw::Text { text: String::new(), truncated: false });
        }
        let Some(turn) = turn else { return Ok(Raw::Missing(BUSY)) };
        let Some(mut pieces) = self.open_part(file, part, start).await? else {
            return Ok(Raw::Missing("the uploaded file is gone"));
        };
        let wanted = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
        let max = wanted.min(MAX_RAW_BYTES);
        let mut record = Vec::new();
        while record.len() < max {
            if !self.may_continue(&turn).await {
                return Ok(Raw::Missing(TOO_FAR));
            }
            let Ok(Some(piece)) = still(pieces.next().await)? else { break };
            record.extend_from_slice(piece.get(..max - record.len()).unwrap_or(&piece));
        }
        if record.len() < max {
            return Ok(Raw::Missing(CHANGED));
        }
        let truncated = max < wanted;
        let encoding = Encoding::named(encoding).unwrap_or(Encoding::Utf8);
        Ok(Raw::Text { text: encoding.text(&record, truncated), truncated })
    }
}
