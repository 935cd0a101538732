//! What can be asked for.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use imports::{JobState, ProjectId};
use jiff::SignedDuration;
use jiff::civil::Date;
use service::sources;

/// Imports reference files of systematic searches, each study exactly once.
#[derive(Debug, Parser)]
#[command(name = "search-import", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Import reference files as one search
    Import(Import),
    /// Finish every import that was interrupted
    Resume(Resume),
    /// Run the functions until they are stopped
    Serve(Serve),
    /// List the searches of a project, the latest first
    Searches(Searches),
    /// List the searches of a project that have changed since an earlier call
    Changes(Changes),
    /// Show a search: its state, its files, and what was decided about each message
    Show(Inspect),
    /// List the studies of a search
    Studies(Inspect),
    /// Repair a search that has ended: read what of it has failed again, or other files instead
    #[command(visible_alias = "retry")]
    Repair(Repair),
    /// Cancel a search that has not ended: what was read of it is taken back
    Cancel(Inspect),
    /// Delete a search that has ended, with everything that it has stored
    Delete(Delete),
    /// Show where the files of a search come from, or say it
    Sources(Sources),
    /// List the studies of a project that repeat an earlier one, each beside that one
    Duplicates(Duplicates),
    /// Say of two studies that they are the same or are not, or which one is to be kept
    Decide(Decide),
    /// Report what was found where and what is left of it, as PRISMA 2020 wants it
    Prisma(Prisma),
    /// Export studies to a file, for reference managers, tools for screening and spreadsheets
    Export(Export),
    /// Export the unreadable records of a search to a file, which can be corrected and imported
    Quarantine(Quarantine),
    #[cfg(feature = "services")]
    /// Bring the database of the aws backend up to the indexes it should have
    Migrate(Migrate),
    /// Let the searches go on, or end, that had not ended when the database or the ledger was restored
    AfterRestore(AfterRestore),
    /// Inspect effects that are stored and not performed yet, and requeue those that were given up
    Outbox(Outbox),
    /// See what was given up, and put it back to work
    Failures(Failures),
    /// See what answers, what waits, and what somebody should do something about
    Health(Health),
    /// Print what a shell completes this program's commands with
    Completions(Completions),
    /// Print the manual page, or write the pages of all commands to a folder
    Man(Man),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// The files, - for one from standard input; format and encoding are detected from their content
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) project: Project,
    /// What to call the file from standard input [default: stdin]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The search's name [default: that of the first file]
    #[arg(long, value_name = "NAME")]
    pub(crate) search_name: Option<String>,
    #[command(flatten)]
    pub(crate) source: Source,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) trial: Trial,
}

/// Where records come from.
#[derive(Debug, clap::Args)]
pub(crate) struct Source {
    /// The database or register that was searched, such as MEDLINE [default: what each file shows]
    #[arg(long = "source", visible_alias = "database", value_name = "DATABASE")]
    database: Option<String>,
    /// What it was searched through, such as Ovid
    #[arg(long, value_name = "PLATFORM")]
    platform: Option<String>,
    /// The date of the search, such as 2026-05-17
    #[arg(long, value_name = "DATE")]
    searched_on: Option<Date>,
}

impl Source {
    /// None where nothing is said.
    pub(crate) fn read(&self) -> Option<sources::Source> {
        let Self { database, platform, searched_on } = self;
        let (database, platform, searched_on) = (database.clone(), platform.clone(), *searched_on);
        let source = sources::Source { database, platform, searched_on };
        (source != sources::Source::default()).then_some(source)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sources {
    #[command(flatten)]
    pub(crate) search: Search,
    /// Say it of this file: its name, id or place; may be repeated [default: all files of the search]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Vec<String>,
    #[command(flatten)]
    pub(crate) source: Source,
    /// Take back what was said
    #[arg(long, conflicts_with_all = ["database", "platform", "searched_on"])]
    pub(crate) forget: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Duplicates {
    #[command(flatten)]
    pub(crate) project: Project,
    /// Only those that are at least as sure
    #[arg(long, value_enum, default_value_t = Least::Likely)]
    pub(crate) least: Least,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// How sure it is that two studies are the same work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Least {
    /// One in some thousand is not
    Certain,
    /// One in some hundred is not
    Likely,
    /// Somebody has to say it
    Possible,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Decide {
    /// What to say
    #[arg(value_enum)]
    pub(crate) decision: Decision,
    /// The studies, as `duplicates` names them: two, or the one to keep
    #[arg(value_name = "STUDY", required = true, num_args = 1..=2)]
    pub(crate) studies: Vec<String>,
    #[command(flatten)]
    pub(crate) project: Project,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What can be said of studies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Decision {
    /// The two are the same work
    Same,
    /// The two are not the same work
    Different,
    /// Take back what was said of the two
    Undo,
    /// Keep this one of all that are the same work
    Keep,
    /// Take back that this one is to be kept
    Unkeep,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Prisma {
    #[command(flatten)]
    pub(crate) project: Project,
    /// Draw the flow diagram
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

/// The review that searches are for.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Project {
    /// The review: its id, or a name, which always stands for the same project [default: $SEARCH_IMPORT_PROJECT, else one
    /// project for everything]
    #[arg(long, value_name = "PROJECT", value_parser = project)]
    pub(crate) project: Option<ProjectId>,
}

fn age(text: &str) -> Result<SignedDuration, &'static str> {
    service::age(text).ok_or("it is a number of seconds, or such as 2h or 1d12h")
}

fn project(text: &str) -> Result<ProjectId, String> {
    ProjectId::meant_by(text).map_err(|error| format!("the project's name {error}"))
}

/// One search of a project.
#[derive(Debug, clap::Args)]
pub(crate) struct Search {
    /// The search: its id, the beginning of it (4 digits at least), or its name
    #[arg(value_name = "SEARCH")]
    pub(crate) search: String,
    #[command(flatten)]
    pub(crate) project: Project,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Searches {
    #[command(flatten)]
    pub(crate) project: Project,
    /// The searches of all projects: first those that have not ended, the oldest first, then the others, the latest first
    #[arg(long, conflicts_with = "project")]
    pub(crate) all: bool,
    /// Only searches that were announced so long ago: seconds, or such as 2h or 1d12h
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<SignedDuration>,
    /// Only searches in this state
    #[arg(long, value_enum)]
    pub(crate) state: Option<State>,
    /// Only searches with this text in their name, in capitals or not
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: Option<String>,
    /// The most searches to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Changes {
    #[command(flatten)]
    pub(crate) project: Project,
    /// What the call before has printed to go on from [default: now]
    #[arg(long, value_name = "NEXT")]
    pub(crate) since: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// Files are expected
    Uploading,
    /// Files are here, the announcement is not
    Uploaded,
    /// The files are being read
    Parsing,
    /// Every file was read
    Completed,
    /// Something failed for good
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

/// Whether to ask before something is deleted for good.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Consent {
    /// Delete without asking, which is done at a terminal only
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Repair {
    #[command(flatten)]
    pub(crate) search: Search,
    /// Read NEW instead of FILE: its name as `show` has it, its id, or its place, counted from 1 [default: all files that
    /// have failed are read again]
    #[arg(long, num_args = 2, value_names = ["FILE", "NEW"], action = clap::ArgAction::Append)]
    pub(crate) replace: Vec<String>,
    /// Read FILE again as it was uploaded
    #[arg(long, value_name = "FILE")]
    pub(crate) again: Vec<String>,
    /// Read from NEW those records of FILE that could not be read, as `quarantine` exports them, corrected
    #[arg(long, num_args = 2, value_names = ["FILE", "NEW"], action = clap::ArgAction::Append)]
    pub(crate) mend: Vec<String>,
    /// The name of the search that does it [default: that of the search]
    #[arg(long, value_name = "NAME")]
    pub(crate) search_name: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
#[group(id = "shape", required = true, multiple = false, args = ["format", "tool"])]
pub(crate) struct Export {
    /// The search: its id, the beginning of it (4 digits at least), or its name [default: all searches of --project]
    #[arg(value_name = "SEARCH")]
    pub(crate) search: Option<String>,
    #[command(flatten)]
    pub(crate) project: Project,
    /// The format. Tables for rayyan and asreview are not safe to open in a spreadsheet, which may compute their cells
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub(crate) format: Option<writers::Format>,
    /// The program to write for: its format, and for covidence a file for each source, of 15,000 studies and 50 MB at most
    #[arg(long = "for", value_name = "PROGRAM", value_parser = tools())]
    pub(crate) tool: Option<writers::Tool>,
    /// Leave out studies that repeat an earlier one of their project
    #[arg(long, conflicts_with = "duplicates")]
    pub(crate) unique: bool,
    /// Only studies that repeat an earlier one of their project
    #[arg(long)]
    pub(crate) duplicates: bool,
    /// Where to write them: a file that is not there yet; for covidence a folder
    #[arg(long, value_name = "FILE")]
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
    /// Where to write them; with several files to choose from, a folder that is there takes one for each
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// The reference file whose records are wanted: its name as `show` has it, its id, or its place, counted from 1
    /// [default: the only one that has any]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What a command works on.
#[derive(Debug, clap::Args)]
pub(crate) struct Place {
    /// The stores: SQLite and a folder, or MongoDB, DynamoDB, SQS and S3 [default: $SEARCH_IMPORT_BACKEND, else
    /// embedded]
    #[arg(long, value_enum, value_name = "BACKEND")]
    pub(crate) backend: Option<BackendArg>,
    /// Where the embedded stores are [default: $SEARCH_IMPORT_DATA_DIR, else .search-import]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Output {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Print JSON, for scripts
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum BackendArg {
    /// SQLite and a folder, on this machine
    Embedded,
    /// MongoDB, DynamoDB, SQS and S3, wherever the settings say
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
    /// Address of the HTTP API. On any address except a loopback one, requests need the token that is printed
    /// [default: 127.0.0.1:8080 on the embedded backend, else nowhere]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// A name by which clients reach the HTTP API, for example behind a proxy. Requests then need the token on every
    /// address. May be repeated [default: localhost and the address itself, without a token on loopback]
    #[arg(long, value_name = "NAME")]
    pub(crate) host: Vec<String>,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(flatten)]
    pub(crate) trial: Trial,
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
    /// Requeue entries that were given up; the next sweep performs them
    Requeue(OutboxRequeue),
    /// Delete entries that were given up: what they should have done is never done
    Delete(OutboxDelete),
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutboxList {
    /// Only entries in this state
    #[arg(long, value_enum)]
    pub(crate) state: Option<EntryState>,
    /// Only entries that were due so long ago: seconds, or such as 2h or 1d12h
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<SignedDuration>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EntryState {
    /// To be performed when its time has come
    Waiting,
    /// Being performed
    Claimed,
    /// Given up
    Poisoned,
    /// Not there any more
    #[value(skip)]
    Deleted,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutboxShow {
    /// The entry, as `list` names it
    #[arg(value_name = "ENTRY_ID")]
    pub(crate) entry: String,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutboxChange {
    /// The entries, as `list` names them
    #[arg(value_name = "ENTRY_ID", required_unless_present = "all")]
    pub(crate) entries: Vec<String>,
    /// All that were given up
    #[arg(long, conflicts_with = "entries")]
    pub(crate) all: bool,
    /// Only entries that were due so long ago: seconds, or such as 2h or 1d12h
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<SignedDuration>,
    /// Show what would be done, and change nothing
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
    /// The most entries to put back in a second
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) per_second: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AfterRestore {
    /// Let searches go on that are being read: the ledger was restored, and the database was not
    #[arg(long)]
    pub(crate) ledger_alone: bool,
    /// Show which searches have not ended, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
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
    /// Write a page for each command to this folder, which is made if need be
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[cfg(feature = "services")]
#[derive(Debug, clap::Args)]
pub(crate) struct Migrate {
    /// Build indexes anew that exist with other options
    #[arg(long)]
    pub(crate) rebuild: bool,
}

/// Faults to try out.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Faults to try out")]
pub(crate) struct Trial {
    /// Deliver each notification and each message N times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) duplicate: u32,
    /// Deliver in an order drawn from this seed
    #[arg(long, value_name = "SEED")]
    pub(crate) shuffle: Option<u64>,
    /// Tear the workers down at steps drawn from this seed, and start them again
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
    /// List failures, those seen last first
    List(FailuresList),
    /// Count failures by their cause, the most frequent first
    Groups(FailuresGroups),
    /// Show one failure with its message
    Show(FailuresShow),
    /// Put failures back to work
    Retry(FailuresRetry),
    /// Put failures aside
    Archive(FailuresEnd),
    /// Delete failures for good
    Delete(FailuresDelete),
    /// List retries, the latest first
    Operations(FailuresOperations),
    /// Stop a retry
    Stop(FailuresStop),
    /// List who did what, the latest first
    Audit(FailuresOperations),
}

/// Which failures are meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Selected {
    /// Only those of this cause, as `groups` names it
    #[arg(long, value_name = "CAUSE")]
    pub(crate) cause: Option<String>,
    /// Only those from this dead-letter queue, such as saga-dead, or from the outbox
    #[arg(long, value_name = "QUEUE")]
    pub(crate) from: Option<String>,
    /// Only those of this search, by its whole id
    #[arg(long, value_name = "SEARCH_ID")]
    pub(crate) of_search: Option<imports::SearchId>,
    /// Only those that were seen last before this, such as 2026-01-08T16:53:06Z
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<jiff::Timestamp>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailuresList {
    #[command(flatten)]
    pub(crate) selected: Selected,
    /// Only those in this state
    #[arg(long, value_enum, default_value = "open")]
    pub(crate) state: FailureState,
    /// The most failures to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailuresGroups {
    #[command(flatten)]
    pub(crate) selected: Selected,
    /// Only those in this state
    #[arg(long, value_enum, default_value = "open")]
    pub(crate) state: FailureState,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailureState {
    /// Nobody has done anything about it
    Open,
    /// A retry is putting it back to work
    Retrying,
    /// It was put back to work, and has not failed since
    Retried,
    /// There is nothing to be done about it here
    Closed,
    /// Somebody has put it aside
    Archived,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailuresShow {
    /// The failure: its id, or the beginning of it (4 digits at least)
    #[arg(value_name = "FAILURE")]
    pub(crate) failure: String,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailuresRetry {
    /// The failures: their ids, or the beginnings of them
    #[arg(value_name = "FAILURE", required_unless_present_any = ["all", "cause", "from", "of_search"])]
    pub(crate) failures: Vec<String>,
    #[command(flatten)]
    pub(crate) selected: Selected,
    /// All that are open
    #[arg(long, conflicts_with_all = ["failures", "cause", "from", "of_search"])]
    pub(crate) all: bool,
    /// The most failures to put back
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// The most failures to put back in a second
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) per_second: u32,
    /// N failures go ahead, and the others follow once workers have processed them: they are watched for one minute, and for
    /// five if a worker is still on them
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10))]
    pub(crate) canary: u32,
    /// Show what would be put back, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Begin, and leave the steps to whoever runs the functions
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailuresEnd {
    /// The failures: their ids, or the beginnings of them
    #[arg(value_name = "FAILURE", required = true)]
    pub(crate) failures: Vec<String>,
    /// Why, for whoever looks later
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
    /// The most to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FailuresStop {
    /// The retry, as `operations` names it [default: the one that is running]
    #[arg(value_name = "OPERATION_ID")]
    pub(crate) operation: Option<saga::failures::OperationId>,
    #[command(flatten)]
    pub(crate) output: Output,
}
