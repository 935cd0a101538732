//! Streaming one file into studies.

use std::collections::VecDeque;

use futures::StreamExt;
use imports::messages::StartParsing;
use imports::{Fenced, Place, Progress, Quarantined, SearchId, Study, StudyId};
use jiff::{SignedDuration, Timestamp};
use messages::{Host, Message, MessageId, Reporter, StoreError};
use references::{Checkpoint, Outcome, Reader, Report};
use serde::Deserialize;

use super::ParseReferences;

/// How often progress is reported at most.
const REPORT_EVERY: SignedDuration = SignedDuration::from_millis(500);

/// How many outcomes are taken at a time. A piece of a file that is read at once may hold some hundred thousand records of
/// a few bytes, and what is made of each takes half a kilobyte of memory.
const AT_ONCE: usize = 2_048;

/// The most bytes of a file whose records are stored together, however few they are.
const BATCH_BYTES: u64 = 4 << 20;

/// How many unreadable records the error of a refused file lists.
const TOLD: usize = 3;

/// Why a file was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// A store did not answer; another try may go better.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file cannot be read; no other try will.
    #[error(transparent)]
    Refused(#[from] references::Error),
    /// Hardly anything of it can be read, so it is probably of another format than the detected one.
    #[error(
        "{quarantined} of {records} records cannot be read, more than the {percent} % tolerated: {first}"
    )]
    Unreadable {
        quarantined: u64,
        records: u64,
        /// The percentage of unreadable records tolerated.
        percent: u8,
        /// The first of them, with their reasons.
        first: String,
    },
    /// There is no such object any more.
    #[error("the uploaded file is gone")]
    Gone,
}

/// What an attempt came to.
pub(crate) enum Attempt {
    /// The file was read to its end.
    Whole(Report),
    /// The time was over after this many records, all of them stored, and so is the place.
    UpTo(u64),
}

/// What is left of the bytes that a reader has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Nothing that can be read.
    None,
    /// Some: the time was over before.
    Left,
}

/// The time that there is.
pub(crate) struct Time<'a> {
    pub(crate) host: &'a dyn Host,
    /// After it nothing is to be begun.
    pub(crate) deadline: Option<Timestamp>,
}

impl Time<'_> {
    pub(crate) fn is_over(&self) -> bool {
        self.host.is_past(self.deadline)
    }
}

impl ParseReferences {
    /// Reads a file into studies, from where the reader is.
    pub(crate) async fn parse_file(
        &self,
        message: &Message,
        command: &StartParsing,
        reporter: &Reporter,
        (held, mut reader): (Fenced, Reader),
        time: &Time<'_>,
    ) -> Result<Attempt, FileError> {
        let begun_at = reader.bytes_read();
        let mut stream = self.objects.open(&command.object, begun_at).await?.ok_or(FileError::Gone)?;
        let mut pending = Pending::new(message, command, held, &reader, self.kept_unreadable);
        let mut bytes = Vec::with_capacity(self.push_bytes);
        while let Some(piece) = stream.next().await {
            bytes.extend(piece?);
            if bytes.len() < self.push_bytes {
                continue;
            }
            reader.feed(&bytes);
            bytes.clear();
            if self.read_on(&mut reader, &mut pending, reporter, time).await? == Rest::Left || time.is_over()
            {
                return pending.paused();
            }
        }
        reader.feed(&bytes);
        reader.end();
        if self.read_on(&mut reader, &mut pending, reporter, time).await? == Rest::Left {
            return pending.paused();
        }
        let report = reader.report()?;
        self.store(&mut pending, 1).await?;
        self.report(&mut pending, report.bytes, reporter).await;
        self.check(message.partition, command, &report).await?;
        Ok(Attempt::Whole(report))
    }

    /// Stores what can be read of the bytes that the reader has, or a part of it when the time is over and a place was
    /// reached. So the time that a piece of the file takes is bounded, whatever the number of its records.
    async fn read_on(
        &self,
        reader: &mut Reader,
        pending: &mut Pending<'_>,
        reporter: &Reporter,
        time: &Time<'_>,
    ) -> Result<Rest, FileError> {
        loop {
            let outcomes = reader.read(AT_ONCE)?;
            // Fewer than were asked for are all there are.
            let is_all = outcomes.len() < AT_ONCE;
            pending.add(outcomes);
            self.store(pending, self.batch).await?;
            let over = time.is_over();
            if over || pending.is_due(reporter) {
                self.reach(pending, reader.checkpoint()).await?;
                self.report(pending, reader.bytes_read(), reporter).await;
            }
            if is_all {
                return Ok(Rest::None);
            }
            if over && pending.reached.is_some() {
                return Ok(Rest::Left);
            }
        }
    }

    /// A reader that goes on at a place. One that cannot be understood is none: then what is stored of the file goes, and
    /// it is begun anew.
    pub(crate) async fn reader(
        &self,
        held: &mut Fenced,
        place: Option<&Place>,
    ) -> Result<Reader, StoreError> {
        let reader = match place {
            None | Some(Place::End { .. } | Place::Refused { .. }) => Reader::new(self.limits),
            Some(Place::Within(checkpoint)) => {
                let checkpoint = Checkpoint::deserialize(checkpoint).ok();
                match checkpoint.and_then(|checkpoint| Reader::resume(self.limits, &checkpoint)) {
                    Some(reader) => reader,
                    None => {
                        *held = self.studies.discard(held, None).await?;
                        Reader::new(self.limits)
                    }
                }
            }
        };
        Ok(reader.with_threads(self.threads))
    }

    /// Stores what is pending, batch by batch, as long as it is at least `least` records, or much of a file.
    async fn store(&self, pending: &mut Pending<'_>, least: usize) -> Result<(), StoreError> {
        while pending.outcomes.len() >= least.max(1) || pending.bytes >= BATCH_BYTES {
            let (studies, quarantined) = pending.next_batch(self.batch);
            self.studies.store(&pending.held, &studies, &quarantined).await?;
        }
        Ok(())
    }

    /// Remembers a place, if it is one, once everything before it is stored.
    async fn reach(
        &self,
        pending: &mut Pending<'_>,
        checkpoint: Option<Checkpoint>,
    ) -> Result<(), StoreError> {
        let is_new = |checkpoint: &Checkpoint| checkpoint.byte() > pending.begun_at;
        let Some(checkpoint) = checkpoint.filter(is_new) else { return Ok(()) };
        self.store(pending, 1).await?;
        let place = serde_json::to_value(&checkpoint).map(Place::Within);
        let place = place.map_err(|error| StoreError::unusable("writing a place in a file down", error))?;
        self.reading.reach(&pending.held, &place).await?;
        pending.reached = Some(checkpoint.records());
        Ok(())
    }

    async fn report(&self, pending: &mut Pending<'_>, bytes: u64, reporter: &Reporter) {
        pending.reported_at = Some(reporter.host.now());
        let progress = Progress { records: pending.records, bytes };
        if let Err(error) = self.progress.report(pending.search_id, pending.command.file_id, progress).await {
            let (function, correlation_id) = (reporter.function, pending.search_id);
            let (message_id, error) = (pending.message_id, error.chain());
            tracing::warn!(function, %correlation_id, %message_id, error, "reporting progress failed");
        }
    }

    /// Refuses a file with too many unreadable records.
    async fn check(
        &self,
        search_id: SearchId,
        command: &StartParsing,
        report: &Report,
    ) -> Result<(), FileError> {
        let &Report { records, quarantined, .. } = report;
        let percent = self.max_quarantined_percent;
        if u128::from(quarantined) * 100 <= u128::from(records) * u128::from(percent) {
            return Ok(());
        }
        let first = self.stored.quarantined(search_id, command.file_id, 0, TOLD).await?;
        let first = first.iter().map(|Quarantined { record, .. }| {
            format!("record {} (line {}): {}", record.number, record.line, record.reason)
        });
        let first = first.collect::<Vec<_>>().join("; ");
        Err(FileError::Unreadable { quarantined, records, percent, first })
    }
}

/// What was read and is not stored yet.
struct Pending<'a> {
    search_id: SearchId,
    message_id: MessageId,
    command: &'a StartParsing,
    held: Fenced,
    outcomes: VecDeque<Outcome>,
    /// How many bytes of the file those are.
    bytes: u64,
    /// The records of the file so far, and how many of them could not be read.
    records: u64,
    unreadable: u64,
    /// How many of those are kept.
    kept_unreadable: u64,
    /// The byte of the file that this attempt began at.
    begun_at: u64,
    reported_at: Option<Timestamp>,
    /// The number of records before the place that this attempt has reached.
    reached: Option<u64>,
}

impl<'a> Pending<'a> {
    fn new(
        message: &Message,
        command: &'a StartParsing,
        held: Fenced,
        reader: &Reader,
        kept_unreadable: u64,
    ) -> Self {
        let begins = reader.checkpoint();
        let before = |count: fn(&Checkpoint) -> u64| begins.as_ref().map_or(0, count);
        Self {
            search_id: message.partition,
            message_id: message.id,
            command,
            held,
            outcomes: VecDeque::new(),
            bytes: 0,
            records: before(Checkpoint::records),
            unreadable: before(Checkpoint::quarantined),
            kept_unreadable,
            begun_at: reader.bytes_read(),
            reported_at: None,
            reached: None,
        }
    }

    fn add(&mut self, outcomes: Vec<Outcome>) {
        self.records += outcomes.len() as u64;
        for outcome in outcomes {
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
    fn is_due(&self, reporter: &Reporter) -> bool {
        let now = reporter.host.now();
        self.reported_at.is_none_or(|at| now.duration_since(at) >= REPORT_EVERY)
    }

    /// An attempt that has reached no place is one that failed: the next one would do the same again.
    fn paused(&self) -> Result<Attempt, FileError> {
        match self.reached {
            Some(records) => Ok(Attempt::UpTo(records)),
            None => {
                Err(StoreError::unavailable("reading a file", "no record ended before the time was over")
                    .into())
            }
        }
    }

    /// The next records, as what they are to be stored as.
    fn next_batch(&mut self, most: usize) -> (Vec<Study>, Vec<Quarantined>) {
        let (search_id, file_id) = (self.search_id, self.command.file_id);
        let (mut studies, mut quarantined) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        while bytes < BATCH_BYTES
            && studies.len() + quarantined.len() < most
            && let Some(outcome) = self.outcomes.pop_front()
        {
            bytes += size(&outcome);
            match outcome {
                Outcome::Read(record) => studies.push(Study {
                    id: StudyId::of(search_id, file_id, record.number),
                    project_id: self.command.project_id,
                    search_id,
                    file_id,
                    record: record.number,
                    line: record.line,
                    bytes: Some(record.bytes),
                    reference: record.reference,
                    duplicate: None,
                }),
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
    let bytes = match outcome {
        Outcome::Read(record) => &record.bytes,
        Outcome::Quarantined(record) => &record.bytes,
    };
    bytes.end - bytes.start
}
