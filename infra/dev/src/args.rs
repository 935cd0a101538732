//! Command-line arguments.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use system_tools::DocumentStore;
use system_tools::simulate::ModeArg;

/// Tools for developers and operators of the search import.
#[derive(Debug, Parser)]
#[command(name = "dev", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the functions under schedules of faults, and check the invariants
    Simulate(Simulate),
    /// Run benchmarks
    Bench(Bench),
    /// Check the deployment's template against the code that it deploys
    CheckTemplate(CheckTemplate),
    /// Draw the state machine from the code
    Diagram(Diagram),
    /// Create a project with a saga, a handler, an HTTP API, tests and a simulation
    New(New),
    /// Create queues, tables and a bucket on local servers, and print their settings
    Provision(Provision),
    /// Invoke functions under a Lambda emulator for queues and the schedule, like Lambda's event sources
    Pump(system_tools::pump::Args),
    /// Prepare the environment for a sample event, or check the response to it
    Sample(Sample),
}

#[derive(Debug, clap::Args)]
pub(crate) struct New {
    /// Name of the project and of its system
    #[arg(value_parser = project_name)]
    pub(crate) name: String,
    /// Folder of the project [default: the name]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) path: Option<PathBuf>,
    /// Folder of the crate onceward [default: that of this workspace]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) onceward: Option<PathBuf>,
    /// Database of the documents on AWS
    #[arg(long, value_enum, default_value_t)]
    pub(crate) store: DocumentStore,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Provision {
    /// Prefix of all names
    #[arg(long, default_value = "search-import", value_parser = system_tools::provision::prefix)]
    pub(crate) name: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sample {
    /// The event, such as tests/events/s3-put.json
    #[arg(value_name = "FILE")]
    pub(crate) event: PathBuf,
    /// File for the event in the form that the function receives
    #[arg(long, value_name = "FILE")]
    pub(crate) prepared: PathBuf,
    /// Only compare the function's response in this file with the expected one
    #[arg(long, value_name = "FILE")]
    pub(crate) answer: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckTemplate {
    /// The templates of the deployment, that of the application first
    #[arg(value_name = "TEMPLATE", default_values = ["template.yaml", "infra/templates/monitoring.yaml", "infra/templates/page.yaml", "infra/templates/sign-in.yaml"])]
    pub(crate) templates: Vec<PathBuf>,
    /// Folder with a file for each environment to check them for; without files, they are checked with their defaults
    #[arg(long, value_name = "FOLDER", default_value = "config")]
    pub(crate) config: PathBuf,
    /// Value of a parameter in every environment
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) set: Vec<(String, String)>,
    /// The template was read back from a deployment, which does not contain everything
    #[arg(long)]
    pub(crate) deployed: bool,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Debug, clap::Args)]
pub(crate) struct Diagram {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Mermaid)]
    pub(crate) format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Format {
    /// A Mermaid state diagram
    Mermaid,
    /// A Graphviz digraph
    Dot,
    /// The full table in Markdown
    Table,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Simulate {
    /// The application to simulate
    #[arg(long, value_enum, default_value_t = WorkloadArg::Searches)]
    pub(crate) workload: WorkloadArg,
    #[command(flatten)]
    pub(crate) shared: system_tools::simulate::Args,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum WorkloadArg {
    /// The search import
    Searches,
    /// The orders of docs/your-own-saga.md
    Orders,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Count the storage calls and sends of one message, and their price
    Calls(BenchOutput),
    /// Handle the messages of many searches with duplicates and reordering, durably
    Saga(BenchSaga),
    /// Sweep the outboxes with a growing number of settled records
    Sweep(BenchSweep),
    /// Read generated files of every format
    Parse(BenchParse),
    /// Mark duplicates among generated studies
    Duplicates(BenchDuplicates),
    /// Start each built function, and measure the time until its first event and its first response
    ColdStart(BenchColdStart),
    /// Send events of small sagas to any engine over HTTP (used by infra/engines.py)
    Events(BenchEvents),
    /// Serve our engine for these events
    EventServer(BenchEventServer),
    /// Import a large file up to the last duplicate mark, and measure time, memory and disk
    Import(BenchImport),
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchImport {
    /// Number of records in the file; with SQLite, a file with a quarter of them is imported first
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(4..))]
    pub(crate) records: u32,
    /// Number of files among which the records are divided; more than one file is imported in one search, with SQLite
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) files: u32,
    /// The stores: SQLite, or a temporary database on MongoDB, for the studies only [default: $SEARCH_IMPORT_BACKEND,
    /// else embedded]
    #[arg(long, value_enum, value_name = "BACKEND")]
    pub(crate) backend: Option<BackendArg>,
    /// The built search-import [default: the one in the folder of this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchParse {
    /// Numbers of records in the smaller and the larger files
    #[arg(long, num_args = 2, value_names = ["FEWER", "MORE"], default_values_t = dev::bench::parse::RECORDS)]
    pub(crate) records: Vec<usize>,
    /// Only write the files into a folder, for a comparison with other readers
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
    /// Print JSON for scripts
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchDuplicates {
    /// Number of studies in the file
    #[arg(long, value_name = "N", default_value_t = 300_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) studies: u32,
    /// Folder for temporary stores, whose disk is measured [default: .search-import]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Print JSON for scripts
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchOutput {
    /// Print JSON for scripts
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder for temporary stores, whose disk is measured [default: .search-import]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// The events sent to an engine, and their concurrency.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchWorkload {
    /// Number of sagas, each with five events
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sagas: u32,
    /// Number of concurrent batches or clients
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) clients: u32,
    /// Percentage of events that are sent twice
    #[arg(long, value_name = "PERCENT", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) duplicates: u32,
    /// Percentage of events that are sent out of order
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) reordered: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchSaga {
    #[command(flatten)]
    pub(crate) workload: BenchWorkload,
    /// Mode in which the function recognizes duplicates
    #[arg(long, value_enum, default_value_t = ModeArg::Ledger)]
    pub(crate) mode: ModeArg,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchEvents {
    /// Address of the engine
    #[arg(long, value_name = "URL")]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) workload: BenchWorkload,
    /// Seed of the random choices
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Announce each saga before its first event
    #[arg(long)]
    pub(crate) begin: bool,
    /// Send an idempotency-key, which is the same for copies of an event
    #[arg(long)]
    pub(crate) idempotency_key: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchEventServer {
    /// The stores
    #[arg(long, value_enum, value_name = "BACKEND", default_value_t = BackendArg::Embedded)]
    pub(crate) backend: BackendArg,
    /// Respond immediately and store nothing, to measure the clients
    #[arg(long)]
    pub(crate) nothing: bool,
    /// Mode in which the engine recognizes duplicates
    #[arg(long, value_enum, default_value_t = ModeArg::Ledger)]
    pub(crate) mode: ModeArg,
    /// Announce the end of each saga with a message
    #[arg(long)]
    pub(crate) announce: bool,
    /// Time every call of the engine, for GET /hops
    #[arg(long)]
    pub(crate) hops: bool,
    /// Folder for temporary stores, whose disk is measured [default: .search-import]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchSweep {
    /// Final number of settled records; the first measurement has a thousand
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    pub(crate) settled: u32,
    /// The stores: SQLite, or a temporary database on MongoDB [default: $SEARCH_IMPORT_BACKEND, else embedded]
    #[arg(long, value_enum, value_name = "BACKEND")]
    pub(crate) backend: Option<BackendArg>,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchColdStart {
    /// Folder of the built functions [default: target/lambda, else target/release]
    #[arg(long, value_name = "DIR")]
    pub(crate) functions: Option<PathBuf>,
    /// Number of starts of each function
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum BackendArg {
    /// SQLite and files in a local folder
    Embedded,
    /// MongoDB, as configured by the settings
    Aws,
}

impl From<BackendArg> for backend::BackendKind {
    fn from(backend: BackendArg) -> Self {
        match backend {
            BackendArg::Embedded => Self::Embedded,
            BackendArg::Aws => Self::Aws,
        }
    }
}

/// Returns the mode of the settings for an argument.
pub(crate) fn mode_of(mode: ModeArg) -> backend::Mode {
    match mode {
        ModeArg::Ledger => backend::Mode::Ledger,
        ModeArg::Optimistic => backend::Mode::Optimistic,
    }
}

/// Programs and dependencies of the template, the crates of the façade, folders of Cargo, and crates of the compiler.
const OTHER_CRATES: &[&str] = &[
    "alloc",
    "anyhow",
    "archives",
    "async-trait",
    "aws",
    "axum",
    "backend",
    "build",
    "clap",
    "contracts",
    "core",
    "dedup",
    "deps",
    "duplicates",
    "dynamo",
    "embedded",
    "examples",
    "futures",
    "http-body-util",
    "imports",
    "incremental",
    "jiff",
    "lambda",
    "lambda-host",
    "lambda-http",
    "local",
    "messages",
    "model",
    "mongo",
    "onceward",
    "operate",
    "outbox",
    "proc-macro",
    "references",
    "saga",
    "serde",
    "serde-json",
    "simulation",
    "std",
    "steps",
    "system-host",
    "system-tools",
    "telemetry",
    "tempfile",
    "test",
    "thiserror",
    "tokio",
    "tools",
    "tower",
    "uuid",
    "writers",
];
/// The keywords (<https://doc.rust-lang.org/reference/keywords.html>), which cannot name a crate.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Parses the name of a project: a name that Cargo, SQS and DynamoDB accept.
fn project_name(text: &str) -> Result<String, String> {
    let is_allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if OTHER_CRATES.contains(&text) {
        return Err("this is the name of another program or crate".to_owned());
    }
    if KEYWORDS.contains(&text) {
        return Err("this is a keyword of Rust".to_owned());
    }
    let begins = text.starts_with(|letter: char| letter.is_ascii_lowercase());
    if begins && text.len() <= 40 && !text.ends_with('-') && text.chars().all(is_allowed) {
        return Ok(text.to_owned());
    }
    Err("a name has up to 40 lower-case letters, digits and hyphens, and begins with a letter".to_owned())
}
