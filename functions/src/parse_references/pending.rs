//! Records that were read and are not stored yet.

use std::collections::VecDeque;

use futures::future::BoxFuture;
use futures::stream::{FuturesOrdered, StreamExt};
use imports::messages::StartParsing;
use imports::{FileId, PreparedStudy, ProjectId, QuarantinedRecord, SearchId, Study, WriteStudies};
use jiff::{SignedDuration, Timestamp};
use messages::StoreError;
use references::{Checkpoint, Outcome};

use super::attempt::{AttemptOutcome, FileError, FileRead, PartProgress, ResumePoint};

/// The maximum duration between two checks of the deadline while records are read. A function has five seconds after
/// its deadline to store the records that it has read.
const READ_FOR: SignedDuration = SignedDuration::from_millis(500);

/// The maximum number of records that are read at a time. An attempt begins with a batch of one record. If a slow
/// record is interrupted, the next attempt has to read only few other records again. A chunk of a file may hold some
/// hundred thousand records of a few bytes, and the outcome of each takes half a kilobyte of memory.
pub const MAX_READ_BATCH: usize = 1_024;

/// The minimum interval between progress reports.
const REPORT_EVERY: SignedDuration = SignedDuration::from_millis(500);

/// The maximum number of bytes of a file whose records are stored in one batch, and the maximum in progress at a time.
pub(super) const BATCH_BYTES: u64 = 4 << 20;

/// The origin of records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    project_id: ProjectId,
    search_id: SearchId,
    file_id: FileId,
    /// The number of records in earlier parts, because records are numbered across all parts.
    before: u64,
}

/// A record in the form in which it is stored.
pub(super) struct Item {
    /// The number of bytes of the file that the record occupies.
    size: u64,
    content: Content,
}

enum Content {
    Study(PreparedStudy),
    Quarantined(QuarantinedRecord),
}

impl Origin {
    /// Prepares a record for storing. It runs on the reading threads, so that records are prepared in parallel.
    pub(super) fn item(self, studies: &dyn WriteStudies, outcome: Outcome) -> Result<Item, StoreError> {
        let Self { project_id, search_id, file_id, before } = self;
        let size = outcome.bytes().end - outcome.bytes().start;
        let content = match outcome {
            Outcome::Read(mut record) => {
                record.number += before;
                Content::Study(studies.prepare(Study::of(project_id, search_id, file_id, record))?)
            }
            Outcome::Quarantined(mut record) => {
                record.number += before;
                Content::Quarantined(QuarantinedRecord { search_id, file_id, record })
            }
        };
        Ok(Item { size, content })
    }
}

/// Records that were read and are not stored yet.
pub(super) struct PendingRecords<'a> {
    pub(super) read: &'a FileRead<'a>,
    pub(super) items: VecDeque<Item>,
    /// The number of bytes of the file that these records take.
    pub(super) bytes: u64,
    /// Earlier batches that are being stored; each returns its size in bytes of the file.
    pub(super) storing: FuturesOrdered<BoxFuture<'static, Result<u64, StoreError>>>,
    /// The total size of these batches.
    pub(super) storing_bytes: u64,
    /// The number of records so far, and of unreadable ones among them.
    pub(super) records: u64,
    pub(super) unreadable: u64,
    /// The number of records that are read between two checks of the deadline.
    pub(super) read_batch: usize,
    /// The maximum number of unreadable records that are stored.
    pub(super) kept_unreadable: u64,
    /// The part that is being read if the file is packed, and the number of records before it.
    pub(super) part: Option<PartProgress>,
    before: u64,
    /// The part and the byte in it at which this attempt started, and the number of records before it.
    started_at: (usize, u64),
    started_with: u64,
    began_at: Timestamp,
    pub(super) reported_at: Option<Timestamp>,
    /// The number of records before the last checkpoint that this attempt has saved.
    pub(super) records_checkpointed: Option<u64>,
}

impl<'a> PendingRecords<'a> {
    pub(super) fn new(read: &'a FileRead<'a>, resume: Option<&ResumePoint>, kept_unreadable: u64) -> Self {
        let part = resume.and_then(|resume| resume.packed.clone());
        let (records, unreadable) = resume.map_or((0, 0), |resume| {
            let before = part.as_ref().map_or((0, 0), |part| (part.read.records, part.read.quarantined));
            (before.0 + resume.within.records(), before.1 + resume.within.quarantined())
        });
        let byte = resume.map_or(0, |resume| resume.within.byte());
        Self {
            read,
            items: VecDeque::new(),
            bytes: 0,
            storing: FuturesOrdered::new(),
            storing_bytes: 0,
            records,
            unreadable,
            read_batch: 1,
            kept_unreadable,
            started_with: records,
            began_at: read.deadline.host.now(),
            started_at: (part.as_ref().map_or(0, |part| part.index), byte),
            before: part.as_ref().map_or(0, |part| part.read.records),
            part,
            reported_at: None,
            records_checkpointed: None,
        }
    }

    /// Waits until one more batch of this size may be stored concurrently with the others.
    pub(super) async fn wait_for_capacity(&mut self, bytes: u64, calls: usize) -> Result<(), StoreError> {
        while (self.storing.len() >= calls || self.storing_bytes + bytes > BATCH_BYTES)
            && let Some(stored) = self.storing.next().await
        {
            self.storing_bytes -= stored?;
        }
        Ok(())
    }

    /// Waits until all batches in progress are stored.
    pub(super) async fn stored(&mut self) -> Result<(), StoreError> {
        while let Some(stored) = self.storing.next().await {
            self.storing_bytes -= stored?;
        }
        Ok(())
    }

    /// Continues with another part.
    pub(super) fn begin(&mut self, part: PartProgress) {
        self.before = part.read.records;
        self.part = Some(part);
    }

    /// Returns `true` if a checkpoint is behind the position at which this attempt started.
    pub(super) fn is_new(&self, checkpoint: &Checkpoint) -> bool {
        (self.part.as_ref().map_or(0, |part| part.index), checkpoint.byte()) > self.started_at
    }

    /// Returns the origin of the records in the current part.
    pub(super) fn origin(&self) -> Origin {
        let &StartParsing { project_id, file_id, .. } = self.read.command;
        Origin { project_id, search_id: self.read.message.partition, file_id, before: self.before }
    }

    pub(super) fn add(&mut self, items: Vec<Result<Item, StoreError>>) -> Result<(), StoreError> {
        self.records += items.len() as u64;
        for item in items {
            let item = item?;
            if matches!(item.content, Content::Quarantined(_)) {
                self.unreadable += 1;
                if self.unreadable > self.kept_unreadable {
                    continue;
                }
            }
            self.bytes += item.size;
            self.items.push_back(item);
        }
        Ok(())
    }

    /// Reads fewer records at a time after some took too long, and otherwise more: their cost depends on their content.
    pub(super) fn adapt_batch(&mut self, took: SignedDuration) {
        self.read_batch = next_batch_size(self.read_batch, took);
    }

    /// Returns `true` if the progress should be reported. The first report is due after the first records, all of them
    /// if `is_all`.
    pub(super) fn is_report_due(&self, is_all: bool) -> bool {
        let has_begun = is_all || self.records - self.started_with >= MAX_READ_BATCH as u64;
        let before = self.reported_at.unwrap_or(self.began_at);
        self.reported_at.is_none() && has_begun
            || self.read.deadline.host.now().duration_since(before) >= REPORT_EVERY
    }

    /// Returns the outcome of a paused attempt. Without a checkpoint the attempt fails, because the next one would
    /// repeat it.
    pub(super) fn paused(&self) -> Result<AttemptOutcome, FileError> {
        match self.records_checkpointed {
            Some(records) => Ok(AttemptOutcome::Paused(records)),
            None => {
                Err(StoreError::unavailable("reading a file", "no record ended before the deadline").into())
            }
        }
    }

    /// Returns the next records, and their size in bytes of the file.
    pub(super) fn next_batch(&mut self, max: usize) -> (Vec<PreparedStudy>, Vec<QuarantinedRecord>, u64) {
        let (mut studies, mut quarantined, mut bytes) = (Vec::new(), Vec::new(), 0);
        while bytes < BATCH_BYTES
            && studies.len() + quarantined.len() < max
            && let Some(Item { size, content }) = self.items.pop_front()
        {
            bytes += size;
            match content {
                Content::Study(study) => studies.push(study),
                Content::Quarantined(record) => quarantined.push(record),
            }
        }
        self.bytes -= bytes;
        (studies, quarantined, bytes)
    }
}

/// Returns the number of records to read next, after `read_batch` records took this long.
#[must_use]
pub fn next_batch_size(read_batch: usize, took: SignedDuration) -> usize {
    if took > READ_FOR { (read_batch / 4).max(1) } else { (read_batch * 2).min(MAX_READ_BATCH) }
}
