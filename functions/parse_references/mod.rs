//! The parser: one `StartParsing` command becomes the studies of one file, and a reply to the saga.
//!
//! It may run twice for one command: a study's id is derived from search, file and record, so the second run
//! stores the same studies again, or goes on where the first one ended. The filter pair only spares it the work. A file
//! that is refused leaves nothing behind; no other failure takes anything back, since another copy of the command may
//! have succeeded.
//!
//! - [`ParseReferences::handle`] is the function;
//! - `file` streams one file into studies;
//! - `duplicates` marks the studies that are there twice.

mod duplicates;
mod file;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use backend::{Backend, Missing, Service, Uses};
use contracts::job::Counts;
use contracts::message::{ReferenceFileFaulted, ReferenceFileParsingCompleted, StartParsing};
use contracts::store::chain;
use contracts::{
    Backoff, Body, Delivery, Disposition, Measure, Message, MessageId, Reporter, SearchId, StoreError,
    Verdict as Decision,
};
use dedup::{Filter, ProcessedFilter, Verdict};
use imports::{ReadObject, ReadStudies, ReportProgress, WriteStudies};
use outbox::{Queue, SendError, SendMessages, send_one};
use references::Limits;

use self::file::FileError;

/// The function's name, in logs and in the messages it sends.
pub const FUNCTION: &str = "parse-references";

/// What the function works on.
pub const USES: Uses = Uses {
    function: FUNCTION,
    services: &[Service::Database, Service::Processed, Service::Objects],
    receives: Some(Queue::Parse),
    sends: &[Queue::Saga],
};

/// The function.
#[derive(Clone)]
pub struct ParseReferences {
    /// Reads the files.
    pub objects: Arc<dyn ReadObject>,
    /// Stores the studies.
    pub studies: Arc<dyn WriteStudies>,
    /// Tells what is stored.
    pub stored: Arc<dyn ReadStudies>,
    /// Is told how far a file is.
    pub progress: Arc<dyn ReportProgress>,
    /// Takes the replies.
    pub queue: Arc<dyn SendMessages>,
    /// The guard before and the note after.
    pub filter: Arc<dyn Filter>,
    /// Time, and who wants to know.
    pub reporter: Reporter,
    /// What a file may be at most.
    pub limits: Limits,
    /// Of a hundred records so many may be unreadable; a file with more is refused.
    pub max_quarantined_percent: u8,
    /// How many records are read at the same time.
    pub threads: NonZeroUsize,
}

/// Why a command has to come again.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("sending the reply failed")]
    Send(#[from] SendError),
}

impl ParseReferences {
    /// The function on a backend.
    ///
    /// # Errors
    /// When a service that it uses is not configured.
    pub fn over(backend: &Backend) -> Result<Self, Missing> {
        let documents = backend.documents()?;
        let filter = ProcessedFilter::new(FUNCTION, backend.processed.clone()?, Arc::clone(&backend.host));
        Ok(Self {
            objects: Arc::clone(&backend.objects),
            studies: Arc::clone(&documents.write_studies),
            stored: Arc::clone(&documents.read_studies),
            progress: Arc::clone(&documents.progress),
            queue: Arc::clone(&backend.queue),
            filter: Arc::new(filter),
            reporter: backend.reporter(FUNCTION),
            limits: Limits {
                max_file_bytes: backend.config.max_file_bytes,
                max_record_bytes: backend.config.max_record_bytes,
            },
            max_quarantined_percent: backend.config.max_quarantined_percent,
            // On Lambda that follows from the memory that the function has.
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        })
    }

    /// Works on a batch of commands, one after the other; one answer for each, in order.
    pub async fn handle(&self, batch: &[Delivery]) -> Vec<Disposition> {
        let mut answers = Vec::with_capacity(batch.len());
        for delivery in batch {
            answers.push(self.beginning().handle_one(delivery).await);
        }
        answers
    }

    /// The function as it works on what begins now.
    fn beginning(&self) -> Self {
        Self { reporter: self.reporter.beginning(), ..self.clone() }
    }

    async fn handle_one(&self, delivery: &Delivery) -> Disposition {
        let message = match Message::decode(&delivery.body) {
            Ok(message) => message,
            Err(error) => return self.reporter.reject(None, chain(&error)),
        };
        let Body::StartParsing(command) = &message.body else {
            let reason = format!("{} is not a command to parse a file", message.body.name());
            return self.reporter.reject(Some(&message), reason);
        };
        match self.guarded(&message, command).await {
            Ok(()) => Disposition::Acknowledge,
            Err(error) => {
                self.reporter.retry(&message, Backoff::FAILURE.after(delivery.receive_count), chain(&error))
            }
        }
    }

    async fn guarded(&self, message: &Message, command: &StartParsing) -> Result<(), Error> {
        if self.filter.before(message).await? == Verdict::Stop {
            self.reporter.note(Some(message), Decision::Duplicate, "the file was parsed before");
            return Ok(());
        }
        let reply = self.parse(message, command).await?;
        self.reply(message, command, reply).await?;
        if let Err(error) = self.filter.on_success(message).await {
            // A copy will parse the file again, which changes nothing.
            self.warn(message.correlation_id, message.id, &error, "remembering a command failed");
        }
        Ok(())
    }

    fn warn(&self, search: SearchId, message: MessageId, error: &StoreError, what: &'static str) {
        let function = self.reporter.function;
        tracing::warn!(function, correlation_id = %search, message_id = %message, error = error.chain(), "{what}");
    }

    /// Reads the file and says what to tell the saga.
    async fn parse(&self, message: &Message, command: &StartParsing) -> Result<Body, Error> {
        let search_id = message.correlation_id;
        let reason = match self.parse_file(message, command).await {
            Ok(report) => {
                self.finish(search_id, command).await?;
                let counts = Counts {
                    format: report.format.to_string(),
                    format_certainty: report.format_certainty.to_string(),
                    encoding: report.encoding.to_string(),
                    encoding_certainty: report.encoding_certainty.to_string(),
                    records: report.records,
                    studies: report.records - report.quarantined,
                    quarantined: report.quarantined,
                };
                self.reporter.measure(Measure::Studies, counts.studies);
                self.reporter.measure(Measure::QuarantinedRecords, counts.quarantined);
                let why = format!("{} studies from {} records", counts.studies, counts.records);
                self.reporter.note(Some(message), Decision::Handled, &why);
                let body = ReferenceFileParsingCompleted { file_id: command.file_id, counts };
                return Ok(Body::ReferenceFileParsingCompleted(body));
            }
            Err(FileError::Store(error)) => return Err(error.into()),
            // What it is made of does not change, so no other copy of the command can have read it.
            Err(error @ (FileError::Refused(_) | FileError::Unreadable { .. })) => {
                self.studies.discard(search_id, command.file_id).await?;
                chain(&error)
            }
            // Another copy may have read it while it was there; then its studies must stay.
            Err(error @ FileError::Gone) => error.to_string(),
        };
        self.reporter.note(Some(message), Decision::Handled, &format!("the file was refused: {reason}"));
        Ok(Body::ReferenceFileFaulted(ReferenceFileFaulted { file_id: command.file_id, reason }))
    }

    async fn reply(&self, message: &Message, command: &StartParsing, body: Body) -> Result<(), Error> {
        let reply = Message {
            // Whatever the outcome, a file is answered once: both kinds of reply have the same id.
            id: message.id.derive(0),
            source: FUNCTION.into(),
            time: self.reporter.host.now(),
            correlation_id: message.correlation_id,
            causation_id: Some(message.id),
            token: command.reply_token.clone(),
            traceparent: Some(message.traceparent_of_effects().to_string()),
            body,
        };
        Ok(send_one(self.queue.as_ref(), &reply, Duration::ZERO).await?)
    }
}
