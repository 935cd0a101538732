//! The parser: a `StartParsing` command turns one file into studies, and a reply to the saga. Because this function can
//! read the bucket, it also scans the bucket for files without a notification (`LookForUploads`).
//!
//! It may run twice for one command. A study's id is derived from search, file and record, so the second run stores the
//! same studies again, or resumes where the first one ended; the filter of processed messages only saves work. A
//! rejected file leaves nothing behind: its fence is raised before its studies are deleted, so concurrent attempts
//! cannot store more of them. A file that was completed concurrently stays.
//!
//! A file may take longer than one invocation. An attempt whose deadline is near saves a checkpoint and has the command
//! redelivered. Each attempt is recorded before it starts, and again when it ends without a crash. Crashed attempts are
//! therefore known, and are counted separately from attempts that failed because a store was unavailable.
//!
//! - [`ParseReferences`] is the handler;
//! - `file` streams one file into studies, `parts` the parts of a packed one, and `pending` holds records to be stored;
//! - `attempt` and `stats` are the data of one attempt;
//! - `stale_commands` checks commands against the state of their search;
//! - `scan_bucket` finds the files of a search in the bucket;
//! - `delete_studies` deletes the stored records of a search that was cancelled or deleted;
//! - `export` writes the studies of a search to an object.

mod attempt;
mod delete_studies;
mod export;
mod file;
mod parts;
mod pending;
mod scan_bucket;
mod stale_commands;
mod stats;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use async_trait::async_trait;
use dedup::{CommandMessage, Handler, HandlerError, HandlerResult};
use imports::messages::{ReferenceFileFaulted, ReferenceFileParsingCompleted, StartParsing};
use imports::ports::{BUCKET, EXPORTS, OBJECTS};
use imports::queues::{PARSE, QUARANTINED_RECORDS, SAGA, STUDIES};
use imports::{
    AttemptState, Counts, FileFence, FileId, FileRef, FindObjects, Jobs, KeepExports, ParseAttempts,
    ParseCommand, ParsedFile, Ports, ReadObject, ReadStudies, ReadingStatus, ReportProgress, SearchEvent,
    WriteStudies,
};
use jiff::Timestamp;
use messages::store::chain;
use messages::{Consumer, Message, Reporter, StoreError, Token};
use outbox::WriteViews;
use references::{Limits, READER_VERSION};
use saga::{Function, KeepHistory, MissingSetting, Service, Source};
use service::marking::DuplicateMarking;

pub use self::pending::{MAX_READ_BATCH, next_batch_size};

use self::attempt::{AttemptOutcome, Deadline, FileError, FileRead};

/// The function's name, in logs and in the messages it sends.
pub const NAME: &str = "parse-references";

/// The function.
pub static FUNCTION: Function<Ports> = Function {
    name: NAME,
    services: &[Service::DATABASE, Service::PROCESSED, Service::TOKENS, OBJECTS, BUCKET, EXPORTS],
    source: Source::Queue(PARSE),
    sends: &[SAGA, PARSE],
    drains: &[],
    build: Some(build),
};

/// The maximum number of crashed attempts between two checkpoints of a file, which may need too much memory or time.
const MAX_CRASHES: u32 = 5;

/// The maximum number of attempts to record the end of an attempt.
const MAX_TRIES: u32 = 3;

/// The index of the reply of an attempt that has read the file. The content of the reply follows from the file, so
/// redeliveries repeat the same reply.
const READ: usize = 0;
/// The index of the reply after too many crashes. It differs from [`READ`] and from the index of `report-faults`. The
/// token admits one of these replies.
const CRASHED: usize = 2;

/// The number of reading threads. On Lambda it depends on the function's memory. The query reads system files, so it is
/// made once.
static THREADS: LazyLock<NonZeroUsize> =
    LazyLock::new(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));

fn build(ports: &Ports) -> Result<Arc<dyn Consumer>, MissingSetting> {
    ports.engine.guard(NAME, ParseReferences::over(ports)?)
}

/// Reads files into studies.
#[derive(Clone)]
pub struct ParseReferences {
    /// Reads uploaded files.
    pub objects: Arc<dyn ReadObject>,
    /// Lists and removes objects.
    pub bucket: Arc<dyn FindObjects>,
    /// Stores exports.
    pub exports: Arc<dyn KeepExports>,
    /// The key prefix of uploads.
    pub key_prefix: String,
    /// `true` if files without a token are admitted, which were placed in the bucket by other means.
    pub admit_untokened: bool,
    /// Stores studies.
    pub studies: Arc<dyn WriteStudies>,
    /// Marks duplicates.
    pub duplicates: DuplicateMarking,
    /// Reads the jobs of searches.
    pub jobs: Jobs,
    /// Updates the views that clients read.
    pub views: Arc<dyn WriteViews>,
    /// Deletes the history of a search; `None` without a database.
    pub history: Option<Arc<dyn KeepHistory>>,
    /// Reads stored studies.
    pub stored: Arc<dyn ReadStudies>,
    /// Reports the progress of files.
    pub progress: Arc<dyn ReportProgress>,
    /// Records the attempts.
    pub attempts: Arc<dyn ParseAttempts>,
    /// The number of bytes that are fed to a reader before its records are taken.
    pub push_bytes: usize,
    /// The limits of a file.
    pub limits: Limits,
    /// The maximum number of unreadable records of a file that are stored; further ones are only counted.
    pub kept_unreadable: u64,
    /// The maximum percentage of unreadable records; a file with more is rejected.
    pub max_quarantined_percent: u8,
    /// The number of reading threads.
    pub threads: NonZeroUsize,
    /// The files that this process is reading. A redelivered command waits until the first delivery is done.
    pub in_flight: Arc<Mutex<BTreeSet<FileRef>>>,
}

/// A file that this process is reading, until it is dropped. Concurrent redeliveries of its command wait: attempts in
/// progress cannot be distinguished from crashed ones, so several at once, or one crash of all of them, would look like
/// a file that repeatedly crashes the parser.
struct InFlightGuard<'a> {
    files: &'a Mutex<BTreeSet<FileRef>>,
    file: FileRef,
}

impl<'a> InFlightGuard<'a> {
    fn begin(files: &'a Mutex<BTreeSet<FileRef>>, file: FileRef) -> Option<Self> {
        // A panic cannot leave an entry half changed, so a poisoned lock is used as it is.
        let is_first = files.lock().unwrap_or_else(PoisonError::into_inner).insert(file);
        // The guard is created lazily, because dropping an unused guard would remove the entry of the other delivery.
        is_first.then(|| Self { files, file })
    }
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.file);
    }
}

/// The error of a redelivered command whose file is being read.
#[derive(Debug, thiserror::Error)]
#[error("the file is already being read by this process")]
struct AlreadyInFlight;

impl ParseReferences {
    /// Returns the handler over these ports.
    pub fn over(ports: &Ports) -> Result<Self, MissingSetting> {
        let study_stores = ports.study_stores()?;
        Ok(Self {
            objects: ports.objects.clone()?,
            bucket: ports.bucket.clone()?,
            exports: ports.exports.clone()?,
            key_prefix: ports.settings.key_prefix.clone(),
            admit_untokened: ports.engine.runner.admit_untokened,
            studies: Arc::clone(&study_stores.write_studies),
            duplicates: DuplicateMarking::over(ports)?,
            jobs: ports.jobs()?,
            views: Arc::clone(&ports.engine.stores()?.write_views),
            history: ports.engine.history.clone(),
            stored: Arc::clone(&study_stores.read_studies),
            progress: Arc::clone(&study_stores.report_progress),
            attempts: Arc::clone(&study_stores.parse_attempts),
            push_bytes: ports.settings.push_bytes,
            limits: Limits {
                max_file_bytes: ports.settings.max_file_bytes,
                max_record_bytes: ports.settings.max_record_bytes,
                max_records: ports.settings.max_records,
            },
            kept_unreadable: ports.settings.kept_unreadable,
            max_quarantined_percent: ports.settings.max_quarantined_percent,
            threads: *THREADS,
            in_flight: Arc::default(),
        })
    }

    /// Runs one attempt, from the status that an earlier one has saved.
    async fn attempt(
        &self,
        read: &mut FileRead<'_>,
        reading: &AttemptState,
    ) -> Result<HandlerResult, HandlerError> {
        let AttemptState { begun, place, .. } = reading;
        match place {
            Some(ReadingStatus::End { counts, compared, .. }) => {
                return self.complete(read, counts.clone(), *compared).await;
            }
            Some(ReadingStatus::Refused { reason, reply, .. }) => {
                return refused(read.command, reason.clone(), *reply);
            }
            Some(ReadingStatus::Within(_)) | None => {}
        }
        if *begun >= MAX_CRASHES {
            let reason = format!("reading it made the parser crash {begun} times");
            return self.refuse(read, reason, CRASHED).await;
        }
        let (search, now) = (read.message.partition, read.deadline.host.now());
        if let Some(other) = self.other_reader(search, read.command, now).await? {
            let reason = format!(
                "the database was restored to a time before this repair, and import {other} reads the file"
            );
            return self.refuse(read, reason, READ).await;
        }
        let resume = self.resume_point(read, place.as_ref()).await?;
        let reason = match self.parse_file(read, resume).await {
            Ok(AttemptOutcome::Paused(records)) => {
                return Ok(HandlerResult::continue_later(format!(
                    "the deadline is near; {records} records are stored"
                )));
            }
            Ok(AttemptOutcome::Completed(stats)) => {
                let counts = stats.counts();
                self.attempts.save(&read.fence, &ReadingStatus::end(counts.clone())).await?;
                return self.complete(read, counts, 0).await;
            }
            Err(FileError::Store(error)) => return Err(error.into()),
            Err(error) => chain(&error),
        };
        self.refuse(read, reason, READ).await
    }

    /// Records that an attempt ended without a crash. It is retried, because the cause of the failure may be temporary.
    async fn end_attempt(&self, message: &Message, file: FileId, deadline: &Deadline<'_>) {
        let (search, message_id) = (message.partition, message.id);
        let mut tries = 1;
        while let Err(error) = self.attempts.end(search, file).await {
            if tries == MAX_TRIES || deadline.has_passed() {
                // The attempt then counts as a crash, and a few of them are tolerated.
                let error = error.chain();
                tracing::warn!(function = NAME, correlation_id = %search, %message_id, error, "an attempt counts as crashed");
                return;
            }
            tries += 1;
        }
    }

    /// Deletes the stored records of a file and replies that it is rejected. If a concurrent attempt has completed the
    /// file, for example with other settings, or has rejected it, this fails, and the next attempt repeats that reply.
    async fn refuse(
        &self,
        read: &mut FileRead<'_>,
        reason: String,
        reply: usize,
    ) -> Result<HandlerResult, HandlerError> {
        let then = ReadingStatus::refused(reason.clone(), reply);
        read.fence = self.studies.discard(&read.fence, Some(&then)).await?;
        refused(read.command, reason, reply)
    }

    /// Lists a file as complete, marks the duplicates among its studies after record `compared`, and replies.
    async fn complete(
        &self,
        read: &FileRead<'_>,
        counts: Counts,
        compared: u64,
    ) -> Result<HandlerResult, HandlerError> {
        let StartParsing { project_id, file_id, position, .. } = *read.command;
        let search_id = read.message.partition;
        let file = ParsedFile {
            search_id,
            file_id,
            position,
            name: read.command.file_name.clone(),
            object: read.command.object.clone(),
            parts: counts.parts.clone(),
            announced_at: read.command.announced_at,
        };
        // List the file before marking: see `service::marking`.
        self.studies.finish(&file).await?;
        let has_passed = || read.deadline.has_passed();
        let marked = self
            .duplicates
            .file_added(project_id, FileRef { search_id, file_id }, compared, has_passed)
            .await?;
        if let Some(compared) = marked {
            self.attempts.save(&read.fence, &ReadingStatus::compared(counts, compared)).await?;
            return Ok(HandlerResult::continue_later("the deadline is near; not all duplicates are marked"));
        }
        read.reporter.measure(STUDIES, counts.studies);
        read.reporter.measure(QUARANTINED_RECORDS, counts.quarantined);
        let why = format!("{} studies from {} records", counts.studies, counts.records);
        let completed = ReferenceFileParsingCompleted { file_id, counts };
        HandlerResult::completed(why).reply(&SearchEvent::ReferenceFileParsingCompleted(completed))
    }
}

/// Replies the reason, which may quote the file and is therefore not logged.
fn refused(command: &StartParsing, reason: String, index: usize) -> Result<HandlerResult, HandlerError> {
    let why = "the file was rejected; the state of the import has the reason";
    let faulted = ReferenceFileFaulted { file_id: command.file_id, reason };
    HandlerResult::completed(why).reply_as(index, &SearchEvent::ReferenceFileFaulted(faulted))
}

#[async_trait]
impl Handler for ParseReferences {
    type Command = ParseCommand;

    /// Reads the file and replies to the saga. The id of the reply does not depend on the outcome.
    async fn handle(
        &self,
        asked: &CommandMessage<ParseCommand>,
        reporter: &Reporter,
        deadline: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError> {
        let deadline = Deadline { host: &*reporter.host, at: deadline };
        let (message, command) = match (&asked.message, &asked.command) {
            (message, ParseCommand::StartParsing(command)) => (message, command),
            (message, ParseCommand::LookForUploads(command)) => {
                let now = reporter.host.now();
                if !self.is_scan_pending(message.partition, command, now).await? {
                    return Ok(HandlerResult::dropped("the search does not wait for this bucket scan"));
                }
                return self.scan_bucket(message.partition, command).await;
            }
            (message, ParseCommand::TakeBackFiles(command)) => {
                return self.delete_files(message.partition, command, &deadline).await;
            }
            (message, ParseCommand::MakeExport(command)) => {
                return self.export(message.partition, command, &deadline).await;
            }
            (_, ParseCommand::CompareStudies(command)) => {
                self.duplicates.decisions_changed(command.project_id, &command.studies).await?;
                return Ok(HandlerResult::completed(format!("compared {} studies", command.studies.len())));
            }
        };
        let (search_id, file_id) = (message.partition, command.file_id);
        if !self.is_reply_expected(message, command, reporter.host.now()).await? {
            return Ok(HandlerResult::dropped("the search does not expect this file to be read"));
        }
        let Some(_in_flight) = InFlightGuard::begin(&self.in_flight, FileRef { search_id, file_id }) else {
            let doing = format!("reading file {file_id} of search {search_id}");
            return Err(StoreError::unavailable(doing, AlreadyInFlight).into());
        };
        let done = match self.attempts.start(search_id, file_id, READER_VERSION).await {
            Ok(reading) => {
                let fence = FileFence { search_id, file_id, fence: reading.fence };
                let mut read = FileRead { message, command, reporter, deadline, fence };
                self.attempt(&mut read, &reading).await
            }
            // The start may have been recorded despite the error.
            Err(error) => Err(error.into()),
        };
        self.end_attempt(message, file_id, &deadline).await;
        done
    }

    /// Deletions and comparisons change only the database, so a restore may undo them.
    fn is_remembered(&self, command: &ParseCommand) -> bool {
        match command {
            ParseCommand::StartParsing(_) | ParseCommand::LookForUploads(_) | ParseCommand::MakeExport(_) => {
                true
            }
            ParseCommand::TakeBackFiles(_) | ParseCommand::CompareStudies(_) => false,
        }
    }

    fn reply_token(&self, command: &ParseCommand) -> Option<Token> {
        command.earlier_reply_token()
    }
}
