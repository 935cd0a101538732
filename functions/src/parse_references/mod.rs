//! The parser: one `StartParsing` command becomes the studies of one file, and a reply to the saga. It is the function
//! that reads the uploaded files, so it also looks for those that nobody told of (`LookForUploads`).
//!
//! It may run twice for one command: a study's id is derived from search, file and record, so the second run
//! stores the same studies again, or goes on where the first one ended. The filter pair only spares it the work. A file
//! that is refused leaves nothing behind: its fence is raised before its studies go, so whoever was reading it too stores
//! nothing more, and one that was read to its end meanwhile stays.
//!
//! A file may take longer than one invocation: an attempt whose time is nearly over remembers its place and has the
//! command come again. An attempt is noted before it begins, and again when it ends by itself; so attempts that crashed
//! are known, and are counted apart from those that failed because a store was away.
//!
//! - [`ParseReferences`] is the handler;
//! - `file` streams one file into studies, `parts` those that are inside a packed one, and `pending` is what is not stored yet;
//! - `scan_bucket` finds the files of a search in the store;
//! - `delete_studies` removes what is stored of a search that was cancelled or deleted;
//! - `export` makes an object of the studies of a search.

mod delete_studies;
mod export;
mod file;
mod parts;
mod pending;
mod scan_bucket;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use async_trait::async_trait;
use dedup::{Asked, Done, Handler, HandlerError};
use imports::messages::{ReferenceFileFaulted, ReferenceFileParsingCompleted, StartParsing};
use imports::ports::{BUCKET, EXPORTS, OBJECTS};
use imports::queues::{PARSE, QUARANTINED_RECORDS, SAGA, STUDIES};
use imports::{
    Counts, Fenced, FileId, FindObjects, KeepExports, ParseCommand, ParsedFile, Place, Ports, ReadObject,
    ReadStudies, Reading, ReportProgress, SearchEvent, SearchId, TrackReading, WriteStudies,
};
use jiff::Timestamp;
use messages::store::chain;
use messages::{Consumer, Message, Reporter, StoreError, Token};
use outbox::WriteViews;
use references::{Limits, READER_VERSION};
use saga::{Function, KeepHistory, Missing, Service, Source};
use service::marking::Duplicates;

use self::file::{Attempt, FileError, Time};

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

/// How often a file may make the parser crash, by the memory or the time that it takes.
const MOST_CRASHES: u32 = 5;

/// How often the end of an attempt is noted, at most, when the store does not confirm it.
const MOST_TRIES: u32 = 3;

/// The reply of whoever has read the file. What it says follows from the file, so every copy of it says the same.
const READ: usize = 0;
/// The reply that gives it up, apart from that and from the one of `report-faults`: the token admits one of them.
const CRASHED: usize = 2;

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
    /// Keeps exports.
    pub exports: Arc<dyn KeepExports>,
    /// What their keys begin with.
    pub key_prefix: String,
    /// Whether files that were put into the bucket by hand are admitted.
    pub admit_untokened: bool,
    /// Stores the studies.
    pub studies: Arc<dyn WriteStudies>,
    /// Marks those that are there twice.
    pub duplicates: Duplicates,
    /// Writes what readers see.
    pub views: Arc<dyn WriteViews>,
    /// What was decided about messages; none without a database.
    pub history: Option<Arc<dyn KeepHistory>>,
    /// Reads which studies are stored already.
    pub stored: Arc<dyn ReadStudies>,
    /// Records how far a file has been read.
    pub progress: Arc<dyn ReportProgress>,
    /// Keeps track of the attempts.
    pub reading: Arc<dyn TrackReading>,
    /// How many bytes are read of a file before its records are.
    pub push_bytes: usize,
    /// What a file may be at most.
    pub limits: Limits,
    /// How many unreadable records of a file are kept; the others are only counted.
    pub kept_unreadable: u64,
    /// The percentage of unreadable records tolerated; a file with more is refused.
    pub max_quarantined_percent: u8,
    /// How many records are read at the same time.
    pub threads: NonZeroUsize,
    /// The files that this process is reading: a copy of a command waits until nobody does.
    pub under_way: Arc<Mutex<BTreeSet<(SearchId, FileId)>>>,
}

/// A file that this process is reading. Copies of its command that come meanwhile wait: nobody can tell attempts under way
/// from those that have crashed, so that many at once, or one crash of them all, would look like a file that makes the parser
/// crash again and again.
struct UnderWay<'a> {
    files: &'a Mutex<BTreeSet<(SearchId, FileId)>>,
    file: (SearchId, FileId),
}

impl<'a> UnderWay<'a> {
    fn begin(files: &'a Mutex<BTreeSet<(SearchId, FileId)>>, file: (SearchId, FileId)) -> Option<Self> {
        // A poisoned lock means that somebody panicked between two entries, each of which is whole.
        let is_first = files.lock().unwrap_or_else(PoisonError::into_inner).insert(file);
        // Lazily: one that is made for nothing and dropped would let the next copy in.
        is_first.then(|| Self { files, file })
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.file);
    }
}

/// What a copy of a command is told whose file is being read.
#[derive(Debug, thiserror::Error)]
#[error("the file is being read here")]
struct BeingRead;

impl ParseReferences {
    /// The handler over these ports.
    ///
    /// # Errors
    /// When no database or no bucket is configured.
    pub fn over(ports: &Ports) -> Result<Self, Missing> {
        let library = ports.library()?;
        Ok(Self {
            objects: ports.objects.clone()?,
            bucket: ports.bucket.clone()?,
            exports: ports.exports.clone()?,
            key_prefix: ports.settings.key_prefix.clone(),
            admit_untokened: ports.engine.runner.admit_untokened,
            studies: Arc::clone(&library.write_studies),
            duplicates: Duplicates {
                stored: Arc::clone(&library.read_studies),
                compare: Arc::clone(&library.compare_studies),
                records: Arc::clone(&ports.engine.stores()?.records),
            },
            views: Arc::clone(&ports.engine.stores()?.write_views),
            history: ports.engine.history.clone(),
            stored: Arc::clone(&library.read_studies),
            progress: Arc::clone(&library.report_progress),
            reading: Arc::clone(&library.track_reading),
            push_bytes: ports.settings.push_bytes,
            limits: Limits {
                max_file_bytes: ports.settings.max_file_bytes,
                max_record_bytes: ports.settings.max_record_bytes,
                max_records: ports.settings.max_records,
            },
            kept_unreadable: ports.settings.kept_unreadable,
            max_quarantined_percent: ports.settings.max_quarantined_percent,
            threads: *THREADS,
            under_way: Arc::default(),
        })
    }

    /// One attempt, from a place that an earlier one has reached.
    async fn attempt(
        &self,
        message: &Message,
        command: &StartParsing,
        Reading { begun, place, .. }: &Reading,
        held: &mut Fenced,
        reporter: &Reporter,
        time: &Time<'_>,
    ) -> Result<Done, HandlerError> {
        match place {
            Some(Place::End { counts, compared, .. }) => {
                let end = (counts.clone(), *compared);
                return self.complete(message, command, held, end, reporter, time).await;
            }
            Some(Place::Refused { reason, reply, .. }) => return refused(command, reason.clone(), *reply),
            Some(Place::Within(_)) | None => {}
        }
        if *begun >= MOST_CRASHES {
            let reason = format!("reading it made the parser crash {begun} times");
            return self.refuse(command, held, reason, CRASHED).await;
        }
        let spot = self.spot(held, place.as_ref()).await?;
        let reason = match self.parse_file(message, command, reporter, (*held, spot), time).await {
            Ok(Attempt::UpTo(records)) => {
                return Ok(Done::again(format!("the time is nearly over; {records} records are stored")));
            }
            Ok(Attempt::Whole(tally)) => {
                let counts = tally.counts();
                self.reading.reach(held, &Place::end(counts.clone())).await?;
                return self.complete(message, command, held, (counts, 0), reporter, time).await;
            }
            Err(FileError::Store(error)) => return Err(error.into()),
            Err(error) => chain(&error),
        };
        self.refuse(command, held, reason, READ).await
    }

    /// Notes that an attempt has ended by itself. What made it fail may be over by the next try.
    async fn end_attempt(&self, message: &Message, file: FileId, time: &Time<'_>) {
        let mut tries = 1;
        while let Err(error) = self.reading.pause(message.partition, file).await {
            if tries == MOST_TRIES || time.is_over() {
                // Then it counts as a crash, of which there may be some.
                let (search, message_id, error) = (message.partition, message.id, error.chain());
                tracing::warn!(function = NAME, correlation_id = %search, %message_id, error, "an attempt counts as crashed");
                return;
            }
            tries += 1;
        }
    }

    /// Takes back what is stored of a file, and answers that it is refused. Unless another copy has read it to its end,
    /// while it was there or by other settings, or has refused it: then this fails, and the next attempt answers that.
    async fn refuse(
        &self,
        command: &StartParsing,
        held: &mut Fenced,
        reason: String,
        reply: usize,
    ) -> Result<Done, HandlerError> {
        let then = Place::refused(reason.clone(), reply);
        *held = self.studies.discard(held, Some(&then)).await?;
        refused(command, reason, reply)
    }

    /// Remembers that a file was read to its end, marks the duplicates among its studies, after those that were compared
    /// before, and answers.
    async fn complete(
        &self,
        message: &Message,
        command: &StartParsing,
        held: &Fenced,
        (counts, compared): (Counts, u64),
        reporter: &Reporter,
        time: &Time<'_>,
    ) -> Result<Done, HandlerError> {
        let StartParsing { project_id, file_id, position, .. } = *command;
        let search_id = message.partition;
        let file = ParsedFile {
            search_id,
            file_id,
            position,
            name: command.file_name.clone(),
            object: command.object.clone(),
            parts: counts.parts.clone(),
            announced_at: command.announced_at,
        };
        self.studies.finish(&file).await?;
        let is_over = || time.is_over();
        let reached = self.duplicates.grown(project_id, (search_id, file_id), compared, is_over).await?;
        if let Some(compared) = reached {
            self.reading.reach(held, &Place::compared(counts, compared)).await?;
            return Ok(Done::again("the time is nearly over; not all duplicates are marked"));
        }
        reporter.measure(STUDIES, counts.studies);
        reporter.measure(QUARANTINED_RECORDS, counts.quarantined);
        let why = format!("{} studies from {} records", counts.studies, counts.records);
        let completed = ReferenceFileParsingCompleted { file_id: command.file_id, counts };
        Done::because(why).reply(&SearchEvent::ReferenceFileParsingCompleted(completed))
    }
}

fn refused(command: &StartParsing, reason: String, index: usize) -> Result<Done, HandlerError> {
    let why = format!("the file was refused: {reason}");
    let faulted = ReferenceFileFaulted { file_id: command.file_id, reason };
    Done::because(why).reply_as(index, &SearchEvent::ReferenceFileFaulted(faulted))
}

#[async_trait]
impl Handler for ParseReferences {
    type Command = ParseCommand;

    /// Reads the file and tells the saga. Whatever is found in it, the reply has the same id.
    async fn handle(
        &self,
        asked: &Asked<ParseCommand>,
        reporter: &Reporter,
        deadline: Option<Timestamp>,
    ) -> Result<Done, HandlerError> {
        let (message, command) = match (&asked.message, &asked.command) {
            (message, ParseCommand::StartParsing(command)) => (message, command),
            (message, ParseCommand::LookForUploads(command)) => {
                return self.look(message.partition, command).await;
            }
            (message, ParseCommand::TakeBackFiles(command)) => {
                let time = Time { host: &*reporter.host, deadline };
                return self.take_back(message.partition, command, &time).await;
            }
            (message, ParseCommand::MakeExport(command)) => {
                let time = Time { host: &*reporter.host, deadline };
                return self.export(message.partition, command, &time).await;
            }
            (_, ParseCommand::CompareStudies(command)) => {
                self.duplicates.decided(command.project_id, &command.studies).await?;
                return Ok(Done::because(format!("compared {} studies", command.studies.len())));
            }
        };
        let (search_id, file_id) = (message.partition, command.file_id);
        let Some(_under_way) = UnderWay::begin(&self.under_way, (search_id, file_id)) else {
            let doing = format!("reading file {file_id} of search {search_id}");
            return Err(StoreError::unavailable(doing, BeingRead).into());
        };
        let time = Time { host: &*reporter.host, deadline };
        let done = match self.reading.begin(search_id, file_id, READER_VERSION).await {
            Ok(reading) => {
                let mut held = Fenced { search_id, file_id, fence: reading.fence };
                self.attempt(message, command, &reading, &mut held, reporter, &time).await
            }
            // It may have been noted all the same.
            Err(error) => Err(error.into()),
        };
        self.end_attempt(message, file_id, &time).await;
        done
    }

    fn reply_token(&self, command: &ParseCommand) -> Option<Token> {
        command.earlier_reply_token()
    }
}
