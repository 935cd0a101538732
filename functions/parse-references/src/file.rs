//! Streaming one file into studies.

use contracts::message::StartParsing;
use contracts::{Message, MessageId, SearchId, StoreError};
use futures::StreamExt;
use imports::{Progress, Quarantined, Study, StudyId};
use jiff::{SignedDuration, Timestamp};
use references::{Outcome, Reader, Report};

use crate::ParseReferences;

/// How many records are stored together.
const BATCH: usize = 1_000;

/// How often progress is reported at most.
const REPORT_EVERY: SignedDuration = SignedDuration::from_secs(1);

/// Why a file was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// A store did not answer; another try may go better.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file cannot be read; no other try will.
    #[error(transparent)]
    Refused(#[from] references::Error),
    /// There is no such object any more.
    #[error("the uploaded file is gone")]
    Gone,
}

impl ParseReferences {
    pub(crate) async fn parse_file(
        &self,
        message: &Message,
        command: &StartParsing,
    ) -> Result<Report, FileError> {
        let mut stream = self.objects.open(&command.object).await?.ok_or(FileError::Gone)?;
        let mut reader = Reader::new(self.limits);
        let mut pending = Pending::new(message, command);
        while let Some(bytes) = stream.next().await {
            let outcomes = reader.push(&bytes?)?;
            pending.add(outcomes);
            self.store(&mut pending, BATCH).await?;
            self.report(&mut pending, reader.bytes_read()).await;
        }
        let (outcomes, report) = reader.finish()?;
        pending.add(outcomes);
        self.store(&mut pending, 1).await?;
        pending.reported_at = None;
        self.report(&mut pending, report.bytes).await;
        Ok(report)
    }

    /// Stores what is pending once it is at least `least` records.
    async fn store(&self, pending: &mut Pending<'_>, least: usize) -> Result<(), StoreError> {
        if pending.studies.len() + pending.quarantined.len() >= least {
            self.studies.store(&pending.studies, &pending.quarantined).await?;
            pending.studies.clear();
            pending.quarantined.clear();
        }
        Ok(())
    }

    async fn report(&self, pending: &mut Pending<'_>, bytes: u64) {
        let now = self.reporter.host.now();
        if pending.reported_at.is_some_and(|at| now.duration_since(at) < REPORT_EVERY) {
            return;
        }
        pending.reported_at = Some(now);
        let progress = Progress { records: pending.records, bytes };
        if let Err(error) = self.progress.report(pending.search_id, pending.command.file_id, progress).await {
            self.warn(pending.search_id, pending.message_id, &error, "reporting progress failed");
        }
    }
}

/// What was read and is not stored yet.
struct Pending<'a> {
    search_id: SearchId,
    message_id: MessageId,
    command: &'a StartParsing,
    studies: Vec<Study>,
    quarantined: Vec<Quarantined>,
    records: u64,
    reported_at: Option<Timestamp>,
}

impl<'a> Pending<'a> {
    fn new(message: &Message, command: &'a StartParsing) -> Self {
        Self {
            search_id: message.correlation_id,
            message_id: message.id,
            command,
            studies: Vec::new(),
            quarantined: Vec::new(),
            records: 0,
            reported_at: None,
        }
    }

    fn add(&mut self, outcomes: Vec<Outcome>) {
        let (search_id, file_id) = (self.search_id, self.command.file_id);
        for outcome in outcomes {
            self.records += 1;
            match outcome {
                Outcome::Read(record) => self.studies.push(Study {
                    id: StudyId::of(search_id, file_id, record.number),
                    project_id: self.command.project_id,
                    search_id,
                    file_id,
                    record: record.number,
                    line: record.line,
                    reference: record.reference,
                }),
                Outcome::Quarantined(record) => {
                    self.quarantined.push(Quarantined { search_id, file_id, record });
                }
            }
        }
    }
}
