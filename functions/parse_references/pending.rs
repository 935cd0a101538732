//! What was read of a file and is not stored yet.

use std::collections::VecDeque;

use futures::future::BoxFuture;
use futures::stream::{FuturesOrdered, StreamExt};
use imports::messages::StartParsing;
use imports::{Fenced, Quarantined, SearchId, Study};
use jiff::{SignedDuration, Timestamp};
use messages::{Message, MessageId, Reporter, StoreError};
use references::{Checkpoint, Outcome};

use super::file::{Attempt, FileError};
use super::parts::{InPart, Spot};

/// How often progress is reported at most.
const REPORT_EVERY: SignedDuration = SignedDuration::from_millis(500);

/// The most bytes of a file whose records are stored together, however few they are.
pub(super) const BATCH_BYTES: u64 = 4 << 20;

/// What was read and is not stored yet.
pub(super) struct Pending<'a> {
    pub(super) search_id: SearchId,
    pub(super) message_id: MessageId,
    pub(super) command: &'a StartParsing,
    pub(super) held: Fenced,
    pub(super) outcomes: VecDeque<Outcome>,
    /// The batches before these, while they are being stored.
    pub(super) storing: FuturesOrdered<BoxFuture<'static, Result<(), StoreError>>>,
    /// How many bytes of the file those are.
    pub(super) bytes: u64,
    /// The records of the file so far, and how many of them could not be read.
    pub(super) records: u64,
    pub(super) unreadable: u64,
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
            outcomes: VecDeque::new(),
            storing: FuturesOrdered::new(),
            bytes: 0,
            records,
            unreadable,
            kept_unreadable,
            begun_at: (part.as_ref().map_or(0, |part| part.index), byte),
            before: part.as_ref().map_or(0, |part| part.read.records),
            part,
            reported_at: None,
            reached: None,
        }
    }

    /// Waits until so many batches at most are still being stored.
    pub(super) async fn stored_but(&mut self, most: usize) -> Result<(), StoreError> {
        while self.storing.len() > most
            && let Some(stored) = self.storing.next().await
        {
            stored?;
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

    pub(super) fn add(&mut self, outcomes: Vec<Outcome>) {
        self.records += outcomes.len() as u64;
        for mut outcome in outcomes {
            // Records are numbered through all parts of a file.
            match &mut outcome {
                Outcome::Read(record) => record.number += self.before,
                Outcome::Quarantined(record) => record.number += self.before,
            }
            if matches!(outcome, Outcome::Quarantined(_)) {
                self.unreadable += 1;
                if self.unreadable > self.kept_unreadable {
                    continue;
                }
            }
            self.bytes += size(&outcome);
            self.outcomes.push_back(outcome);
        }
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

    /// The next records, as what they are to be stored as.
    pub(super) fn next_batch(&mut self, most: usize) -> (Vec<Study>, Vec<Quarantined>) {
        let (search_id, file_id) = (self.search_id, self.command.file_id);
        let (mut studies, mut quarantined) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        while bytes < BATCH_BYTES
            && studies.len() + quarantined.len() < most
            && let Some(outcome) = self.outcomes.pop_front()
        {
            bytes += size(&outcome);
            match outcome {
                Outcome::Read(record) => {
                    studies.push(Study::of(self.command.project_id, search_id, file_id, record));
                }
                Outcome::Quarantined(record) => {
                    quarantined.push(Quarantined { search_id, file_id, record });
                }
            }
        }
        self.bytes -= bytes;
        (studies, quarantined)
    }
}

/// How many bytes of its file a record has.
fn size(outcome: &Outcome) -> u64 {
    let bytes = outcome.bytes();
    bytes.end - bytes.start
}
