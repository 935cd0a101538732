//! Streaming one file into studies.

use std::collections::VecDeque;

use futures::StreamExt;
use imports::messages::StartParsing;
use imports::{Progress, Quarantined, SearchId, Study, StudyId};
use jiff::{SignedDuration, Timestamp};
use messages::{Message, MessageId, Reporter, StoreError};
use references::{Known, Outcome, Reader, Report};

use super::ParseReferences;

/// How many records are stored together.
const BATCH: usize = 1_000;

/// How much is read of a file before its records are: enough to keep several processors busy with, and little enough
/// that what comes of it stays small.
const PUSH_BYTES: usize = 512 * 1024;

/// How often progress is reported at most.
const REPORT_EVERY: SignedDuration = SignedDuration::from_secs(1);

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

impl ParseReferences {
    /// Reads a file into studies, from after what of it is stored.
    pub(crate) async fn parse_file(
        &self,
        message: &Message,
        command: &StartParsing,
        reporter: &Reporter,
    ) -> Result<Report, FileError> {
        let known = self.stored.stored(message.partition, command.file_id).await?;
        let mut stream = self.objects.open(&command.object).await?.ok_or(FileError::Gone)?;
        let mut reader = Reader::new(self.limits).with_threads(self.threads).after(known);
        let mut pending = Pending::new(message, command, known);
        let mut bytes = Vec::with_capacity(PUSH_BYTES);
        while let Some(piece) = stream.next().await {
            bytes.extend(piece?);
            if bytes.len() < PUSH_BYTES {
                continue;
            }
            pending.add(reader.push(&bytes)?);
            bytes.clear();
            self.store(&mut pending, BATCH).await?;
            self.report(&mut pending, reader.bytes_read(), reporter).await;
        }
        pending.add(reader.push(&bytes)?);
        let (outcomes, report) = reader.finish()?;
        pending.add(outcomes);
        self.store(&mut pending, 1).await?;
        pending.reported_at = None;
        self.report(&mut pending, report.bytes, reporter).await;
        self.check(message.partition, command, &report).await?;
        Ok(report)
    }

    /// Stores what is pending, batch by batch, as long as it is at least `least` records.
    async fn store(&self, pending: &mut Pending<'_>, least: usize) -> Result<(), StoreError> {
        while pending.outcomes.len() >= least {
            let (studies, quarantined) = pending.next_batch();
            self.studies.store(&studies, &quarantined).await?;
        }
        Ok(())
    }

    async fn report(&self, pending: &mut Pending<'_>, bytes: u64, reporter: &Reporter) {
        let now = reporter.host.now();
        if pending.reported_at.is_some_and(|at| now.duration_since(at) < REPORT_EVERY) {
            return;
        }
        pending.reported_at = Some(now);
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
    outcomes: VecDeque<Outcome>,
    records: u64,
    reported_at: Option<Timestamp>,
}

impl<'a> Pending<'a> {
    fn new(message: &Message, command: &'a StartParsing, known: Known) -> Self {
        Self {
            search_id: message.partition,
            message_id: message.id,
            command,
            outcomes: VecDeque::new(),
            records: known.records,
            reported_at: None,
        }
    }

    fn add(&mut self, outcomes: Vec<Outcome>) {
        self.records += outcomes.len() as u64;
        self.outcomes.extend(outcomes);
    }

    /// The next records, as what they are to be stored as.
    fn next_batch(&mut self) -> (Vec<Study>, Vec<Quarantined>) {
        let (search_id, file_id) = (self.search_id, self.command.file_id);
        let (mut studies, mut quarantined) = (Vec::new(), Vec::new());
        for outcome in self.outcomes.drain(..BATCH.min(self.outcomes.len())) {
            match outcome {
                Outcome::Read(record) => studies.push(Study {
                    id: StudyId::of(search_id, file_id, record.number),
                    project_id: self.command.project_id,
                    search_id,
                    file_id,
                    record: record.number,
                    line: record.line,
                    reference: record.reference,
                    duplicate: None,
                }),
                Outcome::Quarantined(record) => {
                    quarantined.push(Quarantined { search_id, file_id, record });
                }
            }
        }
        (studies, quarantined)
    }
}
