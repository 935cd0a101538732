//! What can be asked for.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// The tools of those who develop and operate the search import.
#[derive(Debug, Parser)]
#[command(name = "dev", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the functions through schedules of faults, and check what must hold
    Simulate(Simulate),
    /// Measure the functions
    Bench(Bench),
    /// Check the deployment's template against the code that it deploys
    CheckTemplate(CheckTemplate),
    /// Draw the state machine from the code
    Diagram(Diagram),
    /// Create queues, tables and a bucket on servers of your own, and print the settings that lead there
    Provision(Provision),
    /// Deliver queues and the schedule to functions under a Lambda emulator, as Lambda's event sources do
    Pump(Pump),
    /// Make a sample event mean something in the environment of the settings, or check the answer to it
    Sample(Sample),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Provision {
    /// What everything's name begins with
    #[arg(long, default_value = "search-import", value_parser = bucket_prefix)]
    pub(crate) name: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Pump {
    /// Where the functions are invoked; that of `cargo lambda watch` unless set
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9000")]
    pub(crate) functions: String,
    /// The most messages of one batch [default: 10; for parse commands 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) batch_size: Option<u32>,
    /// How long to wait for a batch to fill
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=300))]
    pub(crate) window: u64,
    /// How long received messages stay hidden [default: what the queue says]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=43_200))]
    pub(crate) visibility: Option<u64>,
    /// How often the schedule invokes dispatch-outbox and report-faults
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) every: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sample {
    /// The event, such as tests/events/s3-put.json
    #[arg(value_name = "FILE")]
    pub(crate) event: PathBuf,
    /// Where the event is written, or was, as the function gets it
    #[arg(long, value_name = "FILE")]
    pub(crate) prepared: PathBuf,
    /// Prepare nothing, and compare the function's answer in this file with what is expected
    #[arg(long, value_name = "FILE")]
    pub(crate) answer: Option<PathBuf>,
}

/// The bucket's name is the narrowest: 3 to 63 lower-case letters, digits and hyphens
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>), of which `-upload` is ours.
fn bucket_prefix(name: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=56).contains(&name.len()) && name.chars().all(allowed) && !name.starts_with('-') {
        Ok(name.to_owned())
    } else {
        Err("must be 1 to 56 lower-case letters, digits and hyphens".to_owned())
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckTemplate {
    /// The template; a samconfig.toml beside it names the environments to check it for
    #[arg(value_name = "TEMPLATE", default_value = "template.yaml")]
    pub(crate) template: PathBuf,
    /// A parameter's value, in every environment
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) set: Vec<(String, String)>,
    /// It was read back from a deployment, which does not tell all that a template says
    #[arg(long)]
    pub(crate) deployed: bool,
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Debug, clap::Args)]
pub(crate) struct Diagram {
    /// What to print
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
    /// How many schedules to run, in each mode
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) schedules: u64,
    /// The seed of the first schedule; the others have those after it
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// How the functions tell duplicates [default: one after the other; ledger for --replay]
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeArg>,
    /// Show what happens in the schedule of this seed, step by step
    #[arg(long, value_name = "SEED", conflicts_with_all = ["schedules", "seed", "threads", "coverage"])]
    pub(crate) replay: Option<u64>,
    /// How many schedules run at the same time [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Show which calls were met by which faults
    #[arg(long)]
    pub(crate) coverage: bool,
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
    /// Count the storage calls and sends that one message costs, and what they come to
    Calls(BenchOutput),
    /// Work off many searches with duplicates and disorder, durably
    Saga(BenchSaga),
    /// Sweep the outboxes while settled records pile up
    Sweep(BenchSweep),
    /// Sweep many searches that have ended, or whose time is up, at the same moment
    Backlog(BenchBacklog),
    /// Read generated files of every format
    Parse(BenchParse),
    /// Mark the duplicates among generated studies
    Duplicates(BenchDuplicates),
    /// Start each built function, and measure the time until its first event and its first answer
    ColdStart(BenchColdStart),
    /// Hold a server with as many connections and bytes as strangers have, and measure what others notice
    Connections(BenchConnections),
    /// Import files of records of a few bytes, and measure the disk, the memory and how long a small file waits meanwhile
    SmallRecords(BenchSmallRecords),
    /// Send events of small sagas to any engine over HTTP, as infra/engines.py does
    Events(BenchEvents),
    /// Our engine, behind the requests that those are
    EventServer(BenchEventServer),
    /// Import a large file from the upload to the last mark, and measure the time, the memory and the disk
    Import(BenchImport),
    /// Announce and upload many searches while the server is killed, and count what is lost or doubled
    Load(BenchLoad),
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchConnections {
    /// The built search-import [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchSmallRecords {
    /// How many records each of the two files has
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) records: u32,
    /// The built search-import [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchImport {
    /// How many records the file has; with SQLite a file of a quarter of them is imported before
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(4..))]
    pub(crate) records: u32,
    /// The stores: SQLite, or MongoDB in a database for the while, which takes the studies alone [default:
    /// $SEARCH_IMPORT_BACKEND, else embedded]
    #[arg(long, value_enum, value_name = "BACKEND")]
    pub(crate) backend: Option<BackendArg>,
    /// The built search-import [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchLoad {
    /// How many searches, with a file of three records each
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) searches: u32,
    /// How often the server is killed and started again meanwhile
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub(crate) kills: u32,
    /// How many clients there are at the same time
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=400))]
    pub(crate) clients: u32,
    /// The built search-import [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchParse {
    /// How many records the smaller and the larger files have
    #[arg(long, num_args = 2, value_names = ["FEWER", "MORE"], default_values_t = dev::bench::parse::RECORDS)]
    pub(crate) records: Vec<usize>,
    /// Write the files into a folder instead, for other readers to be compared with
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
    /// Print JSON, for scripts
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchDuplicates {
    /// How many studies the file has
    #[arg(long, value_name = "N", default_value_t = 300_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) studies: u32,
    /// Where to put the stores for the while; the disk counts [default: .search-import]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Print JSON, for scripts
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchOutput {
    /// Print JSON, for scripts
    #[arg(long)]
    pub(crate) json: bool,
    /// Where to put the stores for the while; the disk counts [default: .search-import]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// What is sent to an engine, and by how many at the same time.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchWorkload {
    /// How many sagas, each with five events
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sagas: u32,
    /// How many batches, or clients, there are at the same time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) clients: u32,
    /// The percentage of events that are sent twice
    #[arg(long, value_name = "PERCENT", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) duplicates: u32,
    /// The percentage of events that are sent out of order
    #[arg(long, value_name = "PERCENT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) reordered: u32,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchSaga {
    #[command(flatten)]
    pub(crate) workload: BenchWorkload,
    /// How the function recognises duplicates
    #[arg(long, value_enum, default_value_t = ModeArg::Ledger)]
    pub(crate) mode: ModeArg,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchEvents {
    /// Where the engine listens
    #[arg(long, value_name = "URL")]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) workload: BenchWorkload,
    /// Where randomness begins
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Announce each saga before its first event
    #[arg(long)]
    pub(crate) begin: bool,
    /// Send an idempotency-key, the same for copies of an event
    #[arg(long)]
    pub(crate) idempotency_key: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchEventServer {
    /// The stores
    #[arg(long, value_enum, value_name = "BACKEND", default_value_t = BackendArg::Embedded)]
    pub(crate) backend: BackendArg,
    /// Answer at once and keep nothing, to see how fast clients are
    #[arg(long)]
    pub(crate) nothing: bool,
    /// How the engine recognises duplicates
    #[arg(long, value_enum, default_value_t = ModeArg::Ledger)]
    pub(crate) mode: ModeArg,
    /// Announce the end of each saga, which is a message that is sent
    #[arg(long)]
    pub(crate) announce: bool,
    /// Time every call of the engine, to be had at /hops
    #[arg(long)]
    pub(crate) hops: bool,
    /// Where to put the stores for the while; the disk counts [default: .search-import]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchBacklog {
    /// How many searches there are, once for each number
    #[arg(long, value_name = "N", num_args = 1.., default_values_t = [10_000, 100_000], value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) searches: Vec<u32>,
    /// The stores: SQLite, or MongoDB in a database for the while [default: $SEARCH_IMPORT_BACKEND, else embedded]
    #[arg(long, value_enum, value_name = "BACKEND")]
    pub(crate) backend: Option<BackendArg>,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchSweep {
    /// How many settled records there are in the end; a thousand to begin with
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    pub(crate) settled: u32,
    /// The stores: SQLite, or MongoDB in a database for the while [default: $SEARCH_IMPORT_BACKEND, else embedded]
    #[arg(long, value_enum, value_name = "BACKEND")]
    pub(crate) backend: Option<BackendArg>,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BenchColdStart {
    /// Where the built functions are [default: target/lambda, else target/release]
    #[arg(long, value_name = "DIR")]
    pub(crate) functions: Option<PathBuf>,
    /// How often each is started
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) runs: u32,
    #[command(flatten)]
    pub(crate) output: BenchOutput,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum BackendArg {
    /// SQLite and a folder, on this machine
    Embedded,
    /// MongoDB, wherever the settings say
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

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ModeArg {
    /// By tokens: duplicates of any age are dropped
    Ledger,
    /// By versions, processed ids and states alone
    Optimistic,
}

impl From<ModeArg> for simulation::Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Ledger => Self::Ledger,
            ModeArg::Optimistic => Self::Optimistic,
        }
    }
}

impl From<ModeArg> for backend::Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Ledger => Self::Ledger,
            ModeArg::Optimistic => Self::Optimistic,
        }
    }
}
