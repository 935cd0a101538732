//! The parser: one `StartParsing` command becomes the studies of one file, and a reply to the saga. It is the function
//! that reads the uploaded files, so it also looks for those that nobody told of (`LookForUploads`).
//!
//! It may run twice for one command: a study's id is derived from search, file and record, so the second run
//! stores the same studies again, or goes on where the first one ended. The filter pair only spares it the work. A file
//! that is refused leaves nothing behind; no other failure takes anything back, since another copy of the command may
//! have succeeded.
//!
//! - [`ParseReferences`] is the handler;
//! - `file` streams one file into studies;
//! - `duplicates` marks the studies that are there twice;
//! - `look` finds the files of a search in the store.

mod duplicates;
mod file;
mod look;

use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use dedup::{Asked, Done, Handler, HandlerError};
use imports::messages::{ReferenceFileFaulted, ReferenceFileParsingCompleted, StartParsing};
use imports::ports::{BUCKET, OBJECTS};
use imports::queues::{PARSE, QUARANTINED_RECORDS, SAGA, STUDIES};
use imports::{
    Counts, FindObjects, ParseCommand, Ports, ReadObject, ReadStudies, ReportProgress, SearchEvent,
    WriteStudies,
};
use jiff::Timestamp;
use messages::store::chain;
use messages::{Consumer, Message, Reporter, Token};
use references::{Limits, Report};
use saga::{Function, Missing, Service, Source};

use self::file::FileError;

/// The function's name, in logs and in the messages it sends.
pub const NAME: &str = "parse-references";

/// The function.
pub static FUNCTION: Function<Ports> = Function {
    name: NAME,
    services: &[Service::DATABASE, Service::PROCESSED, OBJECTS, BUCKET],
    source: Source::Queue(PARSE),
    sends: &[SAGA],
    build: Some(build),
};

/// On Lambda that follows from the memory that the function has. Asking reads files of the system, so it is asked once.
static THREADS: LazyLock<NonZeroUsize> =
    LazyLock::new(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));

fn build(ports: &Ports) -> Result<Arc<dyn Consumer>, Missing> {
    ports.engine.guard(NAME, ParseReferences::over(ports)?)
}

/// Reads files into studies.
#[derive(Clone)]
pub struct ParseReferences {
    /// Reads the files.
    pub objects: Arc<dyn ReadObject>,
    /// Looks through them.
    pub bucket: Arc<dyn FindObjects>,
    /// What their keys begin with.
    pub key_prefix: String,
    /// Whether files that were put into the bucket by hand are admitted.
    pub admit_untokened: bool,
    /// Stores the studies.
    pub studies: Arc<dyn WriteStudies>,
    /// Reads which studies are stored already.
    pub stored: Arc<dyn ReadStudies>,
    /// Records how far a file has been read.
    pub progress: Arc<dyn ReportProgress>,
    /// What a file may be at most.
    pub limits: Limits,
    /// The percentage of unreadable records tolerated; a file with more is refused.
    pub max_quarantined_percent: u8,
    /// How many records are read at the same time.
    pub threads: NonZeroUsize,
}

impl ParseReferences {
    /// The handler over these ports.
    ///
    /// # Errors
    /// When no database or no bucket is configured.
    pub fn over(ports: &Ports) -> Result<Self, Missing> {
        let library = ports.library()?;
        Ok(Self {
            objects: Arc::clone(&ports.objects),
            bucket: ports.bucket.clone()?,
            key_prefix: ports.settings.key_prefix.clone(),
            admit_untokened: ports.engine.runner.admit_untokened,
            studies: Arc::clone(&library.write_studies),
            stored: Arc::clone(&library.read_studies),
            progress: Arc::clone(&library.report_progress),
            limits: Limits {
                max_file_bytes: ports.settings.max_file_bytes,
                max_record_bytes: ports.settings.max_record_bytes,
            },
            max_quarantined_percent: ports.settings.max_quarantined_percent,
            threads: *THREADS,
        })
    }

    async fn completed(
        &self,
        message: &Message,
        command: &StartParsing,
        report: &Report,
        reporter: &Reporter,
    ) -> Result<Done, HandlerError> {
        self.finish(message.partition, command).await?;
        let counts = Counts {
            format: report.format.to_string(),
            format_certainty: report.format_certainty.to_string(),
            encoding: report.encoding.to_string(),
            encoding_certainty: report.encoding_certainty.to_string(),
            records: report.records,
            studies: report.records - report.quarantined,
            quarantined: report.quarantined,
        };
        reporter.measure(STUDIES, counts.studies);
        reporter.measure(QUARANTINED_RECORDS, counts.quarantined);
        let why = format!("{} studies from {} records", counts.studies, counts.records);
        let completed = ReferenceFileParsingCompleted { file_id: command.file_id, counts };
        Done::because(why).reply(&SearchEvent::ReferenceFileParsingCompleted(completed))
    }
}

#[async_trait]
impl Handler for ParseReferences {
    type Command = ParseCommand;

    /// Reads the file and tells the saga. Whatever the outcome, a file is answered once: both kinds of reply have the
    /// same id.
    async fn handle(
        &self,
        asked: &Asked<ParseCommand>,
        reporter: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<Done, HandlerError> {
        let (message, command) = match (&asked.message, &asked.command) {
            (message, ParseCommand::StartParsing(command)) => (message, command),
            (message, ParseCommand::LookForUploads(command)) => {
                return self.look(message.partition, command).await;
            }
        };
        let reason = match self.parse_file(message, command, reporter).await {
            Ok(report) => return self.completed(message, command, &report, reporter).await,
            Err(FileError::Store(error)) => return Err(error.into()),
            // What it is made of does not change, so no other copy of the command can have read it.
            Err(error @ (FileError::Refused(_) | FileError::Unreadable { .. })) => {
                self.studies.discard(message.partition, command.file_id).await?;
                chain(&error)
            }
            // Another copy may have read it while it was there; then its studies must stay.
            Err(error @ FileError::Gone) => error.to_string(),
        };
        let why = format!("the file was refused: {reason}");
        let faulted = ReferenceFileFaulted { file_id: command.file_id, reason };
        Done::because(why).reply(&SearchEvent::ReferenceFileFaulted(faulted))
    }

    fn reply_token(&self, command: &ParseCommand) -> Option<Token> {
        command.earlier_reply_token()
    }
}
