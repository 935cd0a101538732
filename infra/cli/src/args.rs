//! Command-line arguments.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use imports::{JobState, ProjectId};
use jiff::SignedDuration;
use jiff::civil::Date;
use service::sources;

use crate::record_numbers::RecordNumbers;

/// Imports reference files of systematic reviews and stores each study exactly once.
///
/// An import is one upload of one or more files, which the commands and the API call a search. Imports belong to a
/// review, which is given as --project.
#[derive(Debug, Parser)]
#[command(name = "search-import", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Import reference files
    Import(Import),
    /// Finish all interrupted imports
    Resume(Resume),
    /// Run the HTTP API and the workers until stopped
    Serve(Serve),
    /// List the imports of a review, latest first
    Searches(Searches),
    /// List the imports of a review that changed since an earlier call
    Changes(Changes),
    /// List, create, rename, archive and delete reviews
    Reviews(Reviews),
    /// Show an import: its state, its files, the records not imported, and the decision about each message
    Show(Inspect),
    /// List the studies of an import
    Studies(Inspect),
    /// Repair an import that has ended: read failed files again, or replace or correct them
    #[command(visible_alias = "retry")]
    Repair(Repair),
    /// Cancel an import that is still running and delete its studies
    Cancel(Inspect),
    /// Delete an import that has ended, with all its data
    Delete(Delete),
    /// Show or set the database and platform of an import's files
    Sources(Sources),
    /// List the duplicates of a review, each with the earlier study that it repeats
    Duplicates(Duplicates),
    /// Mark two studies as the same or different, or choose which one to keep
    Decide(Decide),
    /// Print PRISMA 2020 flow-diagram counts
    Prisma(Prisma),
    /// Export studies to a file for reference managers, screening tools or spreadsheets
    Export(Export),
    /// Export the records not imported to a file, which can be corrected and imported
    Quarantine(Quarantine),
    #[cfg(feature = "services")]
    /// Create missing database indexes on the aws backend
    Migrate(Migrate),
    /// Resume or end unfinished imports after a database or ledger restore
    AfterRestore(AfterRestore),
    /// List stored studies that belong to no import, and delete them if requested
    Check(Check),
    /// Inspect the outbox, and requeue or delete its exhausted entries
    Outbox(Outbox),
    /// List failures and retry them
    Failures(Failures),
    /// Show service health, backlogs and open problems
    Health(Health),
    /// Generate shell completions
    Completions(Completions),
    /// Print the manual page, or write a page for each command to a folder
    Man(Man),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// Files to import, or - for standard input; format and encoding are detected from the content
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) project: Project,
    /// Name of the file from standard input [default: stdin]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Name of the import [default: name of the first file]
    #[arg(long, value_name = "NAME")]
    pub(crate) search_name: Option<String>,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) faults: FaultInjection,
}

/// The source of records.
#[derive(Debug, clap::Args)]
pub(crate) struct Source {
    /// Database or register that was searched, such as MEDLINE [default: detected for each file]
    #[arg(long = "source", visible_alias = "database", value_name = "DATABASE")]
    database: Option<String>,
    /// Platform that provided access to the database, such as Ovid
    #[arg(long, value_name = "PLATFORM")]
    platform: Option<String>,
    /// Date of the search, such as 2026-05-17
    #[arg(long, value_name = "DATE")]
    searched_on: Option<Date>,
}

impl Source {
    /// Returns the source, or `None` if no part of it is given.
    pub(crate) fn read(&self) -> Option<sources::Source> {
        let Self { database, platform, searched_on } = self;
        let (database, platform, searched_on) = (database.clone(), platform.clone(), *searched_on);
        let source = sources::Source { database, platform, searched_on };
        (source != sources::Source::default()).then_some(source)
    }
}

/// Parses the path of an output file. A failed command leaves no incomplete file, which standard output cannot offer.
fn output_path(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("the output is a file with a name; standard output is not supported".to_owned()),
        path => Ok(PathBuf::from(path)),
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sources {
    #[command(flatten)]
    pub(crate) search: Search,
    /// File to set the source of: its name, id or number, counted from 1; may be repeated [default: all files]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Vec<String>,
    #[command(flatten)]
    pub(crate) source: Source,
    /// Remove the source that was set
    #[arg(long, conflicts_with_all = ["database", "platform", "searched_on"])]
    pub(crate) forget: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Duplicates {
    #[command(flatten)]
    pub(crate) project: Project,
    /// Lowest certainty of the duplicates to list
    #[arg(long, alias = "least", value_enum, value_name = "CERTAINTY", default_value_t = Certainty::Likely)]
    pub(crate) min_certainty: Certainty,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The certainty that two studies are the same work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Certainty {
    /// Wrong for about one pair in several thousand
    Certain,
    /// Wrong for about one pair in several hundred
    Likely,
    /// A reviewer has to decide
    Possible,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Decide {
    /// The decision
    #[arg(value_enum)]
    pub(crate) decision: Decision,
    /// Two studies, or the one to keep, as printed by `duplicates`
    #[arg(value_name = "STUDY", required = true, num_args = 1..=2)]
    pub(crate) studies: Vec<String>,
    #[command(flatten)]
    pub(crate) project: Project,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A decision about studies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Decision {
    /// The two studies are the same work
    Same,
    /// The two studies are different works
    Different,
    /// Undo the decision on this pair
    Undo,
    /// Keep this study instead of its duplicates
    Keep,
    /// Undo the decision to keep this study
    Unkeep,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Prisma {
    #[command(flatten)]
    pub(crate) project: Project,
    /// Print the flow diagram as SVG
    #[arg(long, conflicts_with = "json")]
    pub(crate) svg: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Health {
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The review that imports belong to.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Project {
    /// The review: its id, or its name in upper or lower case [default: $SEARCH_IMPORT_PROJECT, else one review for
    /// everything]
    #[arg(long, value_name = "PROJECT", value_parser = project)]
    pub(crate) project: Option<ReviewName>,
}

/// A review as named on the command line.
#[derive(Debug, Clone)]
pub(crate) struct ReviewName {
    /// The name; `None` if an id was given.
    pub(crate) name: Option<String>,
    /// The given id, or the one that is derived from the name.
    pub(crate) id: ProjectId,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Reviews {
    #[command(subcommand)]
    pub(crate) command: ReviewsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReviewsCommand {
    /// List the reviews by name
    List(ReviewsList),
    /// Create a review
    Create(ReviewsCreate),
    /// Rename a review, or name one that only has an id
    Rename(ReviewsRename),
    /// Archive a review; its data stays
    Archive(ReviewsChange),
    /// Restore an archived review
    Restore(ReviewsChange),
    /// Delete a review with all its imports and decisions
    Delete(ReviewsDelete),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReviewsList {
    /// Include archived reviews
    #[arg(long)]
    pub(crate) archived: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReviewsCreate {
    /// Name of the review, which no other review has
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReviewsChange {
    /// The review: its id or its name
    #[arg(value_name = "REVIEW", value_parser = project)]
    pub(crate) review: ReviewName,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReviewsRename {
    #[command(flatten)]
    pub(crate) change: ReviewsChange,
    /// The new name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReviewsDelete {
    #[command(flatten)]
    pub(crate) change: ReviewsChange,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

fn age(text: &str) -> Result<SignedDuration, &'static str> {
    service::age(text).ok_or("it must be a number of seconds, or a duration such as 2h or 1d12h")
}

fn project(text: &str) -> Result<ReviewName, String> {
    let id = ProjectId::meant_by(text).map_err(|error| format!("the review's name {error}"))?;
    let name = text.parse::<ProjectId>().is_err().then(|| text.to_owned());
    Ok(ReviewName { name, id })
}

/// One import of a review.
#[derive(Debug, clap::Args)]
pub(crate) struct Search {
    /// The import: its id, the start of the id (at least 4 digits), or its name
    #[arg(value_name = "SEARCH")]
    pub(crate) search: String,
    #[command(flatten)]
    pub(crate) project: Project,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Searches {
    #[command(flatten)]
    pub(crate) project: Project,
    /// List the imports of all reviews: first those still running, oldest first, then the others, latest first
    #[arg(long, conflicts_with = "project")]
    pub(crate) all: bool,
    /// Only imports that were started at least this long ago: seconds, or a duration such as 2h or 1d12h
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<SignedDuration>,
    /// Only imports in this state
    #[arg(long, value_enum)]
    pub(crate) state: Option<State>,
    /// Only imports whose name contains this text, ignoring case
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// Maximum number of imports to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Changes {
    #[command(flatten)]
    pub(crate) project: Project,
    /// Cursor printed by the previous call [default: now]
    #[arg(long, value_name = "NEXT")]
    pub(crate) since: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// Files have not arrived yet
    Uploading,
    /// Files have arrived before the import was announced
    Uploaded,
    /// Files are being read
    Parsing,
    /// All files were read
    Completed,
    /// At least one file could not be read, or the import was cancelled or timed out
    Error,
}

impl From<State> for JobState {
    fn from(state: State) -> Self {
        match state {
            State::Uploading => Self::Uploading,
            State::Uploaded => Self::Uploaded,
            State::Parsing => Self::Parsing,
            State::Completed => Self::Completed,
            State::Error => Self::Error,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) search: Search,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(crate) inspect: Inspect,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

/// The consent to delete data permanently.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Consent {
    /// Do not ask for confirmation (only asked at a terminal)
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Repair {
    #[command(flatten)]
    pub(crate) search: Search,
    /// Read NEW instead of FILE, given by its name as printed by `show`, its id or its number, counted from 1 [default:
    /// read all failed files again]
    #[arg(long, num_args = 2, value_names = ["FILE", "NEW"], action = clap::ArgAction::Append)]
    pub(crate) replace: Vec<String>,
    /// Read FILE again as it was uploaded
    #[arg(long, value_name = "FILE")]
    pub(crate) again: Vec<String>,
    /// Import corrected records of FILE from NEW, an edited copy of the file that `quarantine` wrote; a part of a packed
    /// file is given by its name as printed by `quarantine`
    #[arg(
        long,
        alias = "mend",
        num_args = 2,
        value_names = ["FILE", "NEW"],
        action = clap::ArgAction::Append
    )]
    pub(crate) correct: Vec<String>,
    /// Records that NEW of a single --correct contains, as printed by `quarantine` [default: all records of FILE that
    /// were not imported, if none of them is corrected yet]
    #[arg(long, value_name = "NUMBERS", requires = "correct")]
    pub(crate) records: Option<RecordNumbers>,
    /// Name of the import that performs the repair [default: name of the repaired import]
    #[arg(long, value_name = "NAME")]
    pub(crate) search_name: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
#[group(id = "shape", required = true, multiple = false, args = ["format", "tool"])]
pub(crate) struct Export {
    /// The import: its id, the start of the id (at least 4 digits), or its name [default: all imports of the review]
    #[arg(value_name = "SEARCH")]
    pub(crate) search: Option<String>,
    #[command(flatten)]
    pub(crate) project: Project,
    /// Output format. Do not open tables for rayyan and asreview in a spreadsheet, which may run their cells as
    /// formulas
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) format: Option<writers::Format>,
    /// Program that will read the output, which selects the format. For covidence, each source gets its own files of up
    /// to 15,000 studies and 50 MB
    #[arg(long = "for", value_name = "PROGRAM", value_parser = tools())]
    pub(crate) tool: Option<writers::Tool>,
    /// Omit studies that repeat an earlier one of their review
    #[arg(long, conflicts_with = "duplicates")]
    pub(crate) unique: bool,
    /// Only studies that repeat an earlier one of their review
    #[arg(long)]
    pub(crate) duplicates: bool,
    /// Complete each study with the most complete values of its duplicates; corrected values take precedence
    #[arg(long, conflicts_with = "duplicates")]
    pub(crate) merged: bool,
    /// Output file, which must not exist yet; for covidence, a folder
    #[arg(long, value_name = "FILE", value_parser = output_path)]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) output: Output,
}

fn formats() -> impl TypedValueParser<Value = writers::Format> {
    PossibleValuesParser::new(writers::Format::ALL.map(writers::Format::name)).try_map(|name| name.parse())
}

fn tools() -> impl TypedValueParser<Value = writers::Tool> {
    PossibleValuesParser::new(writers::Tool::ALL.map(writers::Tool::name)).try_map(|name| name.parse())
}

#[derive(Debug, clap::Args)]
pub(crate) struct Quarantine {
    #[command(flatten)]
    pub(crate) search: Search,
    /// Output file, which must not exist yet, or an existing folder, which gets a file for each reference file
    #[arg(long, value_name = "FILE", value_parser = output_path)]
    pub(crate) out: PathBuf,
    /// Reference file to export the records of: its name as printed by `show`, its id or its number, counted from 1
    /// [default: the only file with such records]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The location of the data that a command works on.
#[derive(Debug, clap::Args)]
pub(crate) struct Location {
    /// Storage backend [default: $SEARCH_IMPORT_BACKEND, else embedded]
    #[arg(long, value_enum, value_name = "BACKEND")]
    pub(crate) backend: Option<BackendArg>,
    /// Data directory of the embedded backend [default: $SEARCH_IMPORT_DATA_DIR, else .search-import]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    #[command(flatten)]
    pub(crate) location: Location,
    /// Print JSON for scripts
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum BackendArg {
    /// SQLite and files in a local folder
    Embedded,
    /// MongoDB, DynamoDB, SQS and S3, as configured by the settings
    Aws,
}

impl From<BackendArg> for backend::config::BackendKind {
    fn from(backend: BackendArg) -> Self {
        match backend {
            BackendArg::Embedded => Self::Embedded,
            BackendArg::Aws => Self::Aws,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Address of the HTTP API. Unless it is a loopback address, requests need the token that is printed
    /// [default: 127.0.0.1:8080 for the embedded backend, none for aws]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// Host name or address that clients use for the HTTP API, for example behind a proxy or a container's port; may be
    /// repeated. Requests then need the token on every address [default: localhost and the address itself]
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    pub(crate) host: Vec<String>,
    #[command(flatten)]
    pub(crate) location: Location,
    #[command(flatten)]
    pub(crate) faults: FaultInjection,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Outbox {
    #[command(subcommand)]
    pub(crate) command: OutboxCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OutboxCommand {
    /// List entries
    List(OutboxList),
    /// Show one entry with its message
    Show(OutboxShow),
    /// Requeue exhausted entries; the next sweep performs them
    Requeue(OutboxRequeue),
    /// Delete exhausted entries; their effects are lost
    Delete(OutboxDelete),
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutboxList {
    /// Only entries in this state
    #[arg(long, value_enum)]
    pub(crate) state: Option<EntryState>,
    /// Only entries that have been due for at least this long: seconds, or a duration such as 2h or 1d12h
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<SignedDuration>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EntryState {
    /// Will be performed when it is due
    Waiting,
    /// Is being performed
    Claimed,
    /// Used up its retries or cannot be read
    #[value(name = "exhausted", alias = "poisoned")]
    Poisoned,
    /// Was deleted
    #[value(skip)]
    Deleted,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutboxShow {
    /// Id of the entry, as printed by `list`
    #[arg(value_name = "ENTRY_ID")]
    pub(crate) entry: String,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutboxChange {
    /// Ids of the entries, as printed by `list`
    #[arg(value_name = "ENTRY_ID", required_unless_present = "all")]
    pub(crate) entries: Vec<String>,
    /// All exhausted entries
    #[arg(long, conflicts_with = "entries")]
    pub(crate) all: bool,
    /// Only entries that have been due for at least this long: seconds, or a duration such as 2h or 1d12h
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<SignedDuration>,
    /// Show what would be done without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutboxDelete {
    #[command(flatten)]
    pub(crate) change: OutboxChange,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutboxRequeue {
    #[command(flatten)]
    pub(crate) change: OutboxChange,
    /// Maximum number of entries to requeue per second
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) per_second: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AfterRestore {
    /// Only the ledger was restored, not the database: resume imports whose files are being read instead of ending them
    #[arg(long)]
    pub(crate) ledger_alone: bool,
    /// Show which imports have not ended without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// Delete the studies; without this option nothing changes
    #[arg(long)]
    pub(crate) delete: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// Write a page for each command to this folder, which is created if necessary
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[cfg(feature = "services")]
#[derive(Debug, clap::Args)]
pub(crate) struct Migrate {
    /// Rebuild indexes that exist with different options
    #[arg(long)]
    pub(crate) rebuild: bool,
}

/// Faults to inject.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Fault injection")]
pub(crate) struct FaultInjection {
    /// Deliver each notification and each message N times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) duplicate: u32,
    /// Deliver messages in a random order generated from this seed
    #[arg(long, value_name = "SEED")]
    pub(crate) shuffle: Option<u64>,
    /// Crash and restart the workers at random steps generated from this seed
    #[arg(long, value_name = "SEED")]
    pub(crate) crash: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Failures {
    #[command(subcommand)]
    pub(crate) command: FailuresCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FailuresCommand {
    /// List failures, most recently seen first
    List(FailuresList),
    /// Count failures by cause, most frequent first
    Groups(FailuresGroups),
    /// Show one failure with its message
    Show(FailuresShow),
    /// Retry failures
    Retry(FailuresRetry),
    /// Archive failures that need no retry
    Archive(FailuresEnd),
    /// Delete failures permanently; their effects are lost
    Delete(FailuresDelete),
    /// List retries, latest first
    Operations(FailuresOperations),
    /// Stop a running retry
    Stop(FailuresStop),
    /// List operator actions, latest first
    Audit(FailuresOperations),
}

/// The failures to select.
#[derive(Debug, clap::Args)]
pub(crate) struct FailureFilter {
    /// Only failures with this cause, as printed by `groups`
    #[arg(long, value_name = "CAUSE")]
    pub(crate) cause: Option<String>,
    /// Only failures from this dead-letter queue, such as saga-dead, or from the outbox
    #[arg(long, value_name = "QUEUE")]
    pub(crate) from: Option<String>,
    /// Only failures of this import, given by its full id
    #[arg(long, alias = "of-search", value_name = "SEARCH_ID")]
    pub(crate) search: Option<imports::SearchId>,
    /// Only failures last seen at or before this time, such as 2026-01-08T16:53:06Z
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<jiff::Timestamp>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailuresList {
    #[command(flatten)]
    pub(crate) filter: FailureFilter,
    /// Only failures in this state
    #[arg(long, value_enum, default_value = "open")]
    pub(crate) state: FailureState,
    /// Maximum number of failures to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailuresGroups {
    #[command(flatten)]
    pub(crate) filter: FailureFilter,
    /// Only failures in this state
    #[arg(long, value_enum, default_value = "open")]
    pub(crate) state: FailureState,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailureState {
    /// Not handled yet
    Open,
    /// Being retried
    Retrying,
    /// Retried, and has not failed again
    Retried,
    /// Cannot be retried here
    Closed,
    /// Archived by an operator
    Archived,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailuresShow {
    /// The failure: its id or the start of the id (at least 4 digits)
    #[arg(value_name = "FAILURE")]
    pub(crate) failure: String,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailuresRetry {
    /// The failures: their ids or the starts of the ids
    #[arg(value_name = "FAILURE", required_unless_present_any = ["all", "cause", "from", "search"])]
    pub(crate) failures: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: FailureFilter,
    /// All open failures
    #[arg(long, conflicts_with_all = ["failures", "cause", "from", "search"])]
    pub(crate) all: bool,
    /// Maximum number of failures to retry
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// Maximum number of failures to retry per second
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) per_second: u32,
    /// Retry N failures first, and stop if any of them fails within a minute (five minutes if a worker is still
    /// processing them)
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10))]
    pub(crate) canary: u32,
    /// Show what would be retried without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Start the retry and return; running workers carry it out
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailuresEnd {
    /// The failures: their ids or the starts of the ids
    #[arg(value_name = "FAILURE", required = true)]
    pub(crate) failures: Vec<String>,
    /// Reason, which the audit log records
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailuresDelete {
    #[command(flatten)]
    pub(crate) end: FailuresEnd,
    #[command(flatten)]
    pub(crate) consent: Consent,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailuresOperations {
    /// Maximum number of items to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailuresStop {
    /// Id of the retry, as printed by `operations` [default: the running retry]
    #[arg(value_name = "OPERATION_ID")]
    pub(crate) operation: Option<saga::failures::OperationId>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Parses the name or the address of a host, as the header `Host` has it without a port.
fn host_name(text: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_name = (1..=253).contains(&text.len()) && text.bytes().all(is_allowed);
    match is_name || text.parse::<IpAddr>().is_ok() {
        true => Ok(text.to_owned()),
        false => {
            Err("a host name has letters, digits, dots and hyphens, and neither a port nor a path".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn host_is_a_name_or_an_address() {
        for host in ["imports.example", "localhost", "my_host-2", "192.0.2.7", "2001:db8::7"] {
            assert_eq!(host_name(host).as_deref(), Ok(host));
        }
        for host in ["", "bad host", "imports.example:8080", "https://imports.example", "imports.example/"] {
            assert!(host_name(host).is_err(), "{host}");
        }
    }

    #[test]
    fn previous_option_names_are_accepted() {
        let search = "00000000-0000-4000-8000-000000000009";
        for args in [
            &["duplicates", "--least", "certain"] as &[&str],
            &["repair", "one", "--mend", "a.ris", "b.ris"],
            &["failures", "retry", "--of-search", search],
        ] {
            let args = std::iter::once(&"search-import").chain(args);
            assert!(Args::try_parse_from(args.clone()).is_ok(), "{:?}", args.collect::<Vec<_>>());
        }
    }
}
