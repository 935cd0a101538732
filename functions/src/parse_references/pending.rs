//! What was read of a file and is not stored yet.

use std::collections::VecDeque;

use futures::future::BoxFuture;
use futures::stream::{FuturesOrdered, StreamExt};
use imports::messages::StartParsing;
use imports::{Fenced, FileId, ProjectId, Quarantined, ReadyStudy, SearchId, Study, WriteStudies};
use jiff::{SignedDuration, Timestamp};
use messages::{Message, MessageId, Reporter, StoreError};
use references::{Checkpoint, Outcome};

use super::file::{AT_ONCE, Attempt, FileError, READ_FOR};
use super::parts::{InPart, Spot};

/// How often progress is reported at most.
const REPORT_EVERY: SignedDuration = SignedDuration::from_millis(500);

/// The most bytes of a file whose records are stored together, however few they are, and the most on their way at a time.
pub(super) const BATCH_BYTES: u64 = 4 << 20;

/// Where records are from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    project_id: ProjectId,
    search_id: SearchId,
    file_id: FileId,
    /// Records are numbered through all parts of a file: how many were before this one.
    before: u64,
}

/// A record as it is stored.
pub(super) struct Item {
    /// How many bytes of its file it has.
    size: u64,
    made: Made,
}

enum Made {
    Study(ReadyStudy),
    Quarantined(Quarantined),
}

impl Origin {
    /// What a record is stored as. Whoever has read it makes that, as each of the threads that read can do it at the same time.
    pub(super) fn item(self, studies: &dyn WriteStudies, outcome: Outcome) -> Result<Item, StoreError> {
        let Self { project_id, search_id, file_id, before } = self;
        let size = outcome.bytes().end - outcome.bytes().start;
        let made = match outcome {
            Outcome::Read(mut record) => {
                record.number += before;
                Made::Study(studies.make_ready(Study::of(project_id, search_id, file_id, record))?)
            }
            Outcome::Quarantined(mut record) => {
                record.number += before;
                Made::Quarantined(Quarantined { search_id, file_id, record })
            }
        };
        Ok(Item { size, made })
    }
}

/// What was read and is not stored yet.
pub(super) struct Pending<'a> {
    pub(super) search_id: SearchId,
    pub(super) message_id: MessageId,
    pub(super) command: &'a StartParsing,
    pub(super) held: Fenced,
    pub(super) items: VecDeque<Item>,
    /// How many bytes of the file those are.
    pub(super) bytes: u64,
    /// The batches before these, while they are being stored; each comes to how many bytes it was.
    pub(super) storing: FuturesOrdered<BoxFuture<'static, Result<u64, StoreError>>>,
    /// How many bytes these are.
    pub(super) storing_bytes: u64,
    /// The records of the file so far, and how many of them could not be read.
    pub(super) records: u64,
    pub(super) unreadable: u64,
    /// The number of records that are read between two checks of the deadline.
    pub(super) at_once: usize,
    /// How many of those are kept.
    pub(super) kept_unreadable: u64,
    /// The part that is read, where the file is packed, and how many records were before it.
    pub(super) part: Option<InPart>,
    before: u64,
    /// The part, and the byte of it, that this attempt began at.
    begun_at: (usize, u64),
    pub(super) reported_at: Option<Timestamp>,
    /// The number of records before the place that this attempt has reached.
    pub(super) reached: Option<u64>,
}

impl<'a> Pending<'a> {
    pub(super) fn new(
        message: &Message,
        command: &'a StartParsing,
        held: Fenced,
        spot: Option<&Spot>,
        kept_unreadable: u64,
    ) -> Self {
        let part = spot.and_then(|spot| spot.packed.clone());
        let (records, unreadable) = spot.map_or((0, 0), |spot| {
            let before = part.as_ref().map_or((0, 0), |part| (part.read.records, part.read.quarantined));
            (before.0 + spot.within.records(), before.1 + spot.within.quarantined())
        });
        let byte = spot.map_or(0, |spot| spot.within.byte());
        Self {
            search_id: message.partition,
            message_id: message.id,
            command,
            held,
            items: VecDeque::new(),
            bytes: 0,
            storing: FuturesOrdered::new(),
            storing_bytes: 0,
            records,
            unreadable,
            at_once: AT_ONCE,
            kept_unreadable,
            begun_at: (part.as_ref().map_or(0, |part| part.index), byte),
            before: part.as_ref().map_or(0, |part| part.read.records),
            part,
            reported_at: None,
            reached: None,
        }
    }

    /// Waits until there is room for one more batch, of so many bytes, beside those that are being stored.
    pub(super) async fn room_for(&mut self, bytes: u64, calls: usize) -> Result<(), StoreError> {
        while (self.storing.len() >= calls || self.storing_bytes + bytes > BATCH_BYTES)
            && let Some(stored) = self.storing.next().await
        {
            self.storing_bytes -= stored?;
        }
        Ok(())
    }

    /// Waits until all batches that are being stored are.
    pub(super) async fn stored(&mut self) -> Result<(), StoreError> {
        while let Some(stored) = self.storing.next().await {
            self.storing_bytes -= stored?;
        }
        Ok(())
    }

    /// Goes on with another part.
    pub(super) fn begin(&mut self, part: InPart) {
        self.before = part.read.records;
        self.part = Some(part);
    }

    /// Whether a place is a later one than that at which this attempt began.
    pub(super) fn is_new(&self, checkpoint: &Checkpoint) -> bool {
        (self.part.as_ref().map_or(0, |part| part.index), checkpoint.byte()) > self.begun_at
    }

    /// Where the records of the part are from that is read.
    pub(super) fn origin(&self) -> Origin {
        let &StartParsing { project_id, file_id, .. } = self.command;
        Origin { project_id, search_id: self.search_id, file_id, before: self.before }
    }

    pub(super) fn add(&mut self, items: Vec<Result<Item, StoreError>>) -> Result<(), StoreError> {
        self.records += items.len() as u64;
        for item in items {
            let item = item?;
            if matches!(item.made, Made::Quarantined(_)) {
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

    /// Reads fewer records at a time after some took too long: their cost depends on their content.
    pub(super) fn pace(&mut self, took: SignedDuration) {
        self.at_once = paced(self.at_once, took);
    }

    /// Whether it is time to say how far the file is, which is not worth doing more often.
    pub(super) fn is_due(&self, reporter: &Reporter) -> bool {
        let now = reporter.host.now();
        self.reported_at.is_none_or(|at| now.duration_since(at) >= REPORT_EVERY)
    }

    /// An attempt that has reached no place is one that failed: the next one would do the same again.
    pub(super) fn paused(&self) -> Result<Attempt, FileError> {
        match self.reached {
            Some(records) => Ok(Attempt::UpTo(records)),
            None => {
                Err(StoreError::unavailable("reading a file", "no record ended before the time was over")
                    .into())
            }
        }
    }

    /// The next records, and how many bytes of their file those are.
    pub(super) fn next_batch(&mut self, most: usize) -> (Vec<ReadyStudy>, Vec<Quarantined>, u64) {
        let (mut studies, mut quarantined, mut bytes) = (Vec::new(), Vec::new(), 0);
        while bytes < BATCH_BYTES
            && studies.len() + quarantined.len() < most
            && let Some(Item { size, made }) = self.items.pop_front()
        {
            bytes += size;
            match made {
                Made::Study(study) => studies.push(study),
                Made::Quarantined(record) => quarantined.push(record),
            }
        }
        self.bytes -= bytes;
        (studies, quarantined, bytes)
    }
}

/// Returns the number of records to read next, after `at_once` records took this long.
fn paced(at_once: usize, took: SignedDuration) -> usize {
    if took > READ_FOR { (at_once / 4).max(1) } else { at_once }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_records_are_read_few_at_a_time() {
        let paces = [0, 500, 501, 501, 100, 9_000, 9_000, 9_000, 9_000].map(SignedDuration::from_millis);
        let read = paces.into_iter().scan(AT_ONCE, |at_once, took| {
            *at_once = paced(*at_once, took);
            Some(*at_once)
        });
        assert_eq!(read.collect::<Vec<_>>(), [1_024, 1_024, 256, 64, 64, 16, 4, 1, 1]);
    }
}
