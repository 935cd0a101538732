//! The time from the start of a function's process to its first event and its first response, and its memory.
//!
//! Each start is a new process that uses the Runtime API of `lambda-host`. Files come from the page cache, and nothing
//! is downloaded or unpacked, so Lambda's own part of a cold start is not measured.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use lambda_host::{Function, Outcome};
use serde::Serialize;
use serde_json::Value;
use tokio::process::Command;

/// The options of the measurement.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of the functions, as `<name>/bootstrap` or `<name>`; by default the folder into which they are
    /// usually built.
    pub dir: Option<PathBuf>,
    /// The number of starts of each function.
    pub runs: usize,
    /// `true` to start them on the configured services instead of the embedded stores, which deployed functions do not
    /// include.
    pub services: bool,
}

/// The measurement of one program. Times are medians.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The function, or a program for comparison.
    pub program: String,
    /// The stores that the program opens before its first event.
    pub stores: &'static str,
    /// The time from the start of the process to the first request for an event, in milliseconds.
    pub first_poll_ms: f64,
    /// The time from the start of the process to the first response, in milliseconds.
    pub first_answer_ms: f64,
    /// The peak memory until then, in MiB; `None` if the system does not report it.
    pub peak_mib: Option<f64>,
    /// The program's size, in MiB; `None` for a script.
    pub size_mib: Option<f64>,
    /// The maximum time until the first poll, in milliseconds; `None` for comparisons.
    pub bound_ms: Option<f64>,
}

impl Row {
    /// Returns `true` if the bound holds.
    pub fn holds(&self) -> bool {
        self.bound_ms.is_none_or(|bound| self.first_poll_ms <= bound)
    }
}

/// The functions, each with a first event.
const FUNCTIONS: [(&str, &str); 6] = [
    ("start-upload", include_str!("../../../../tests/events/http-bad-manifest.json")),
    ("notify-upload", include_str!("../../../../tests/events/s3-test-event.json")),
    ("run-saga", HOSTILE),
    ("parse-references", HOSTILE),
    ("dispatch-outbox", include_str!("../../../../tests/events/schedule.json")),
    ("report-faults", HOSTILE),
];
/// Ten invalid messages: all of them are read, and nothing is stored.
const HOSTILE: &str = include_str!("../../../../tests/events/sqs-saga-hostile.json");
/// Interpreters, with the command that prints the path of each (so that no wrapper is measured), and the script.
const COMPARED: [(&str, [&str; 2], &str); 2] = [
    ("node", ["-p", "process.execPath"], "tests/compare/handler.mjs"),
    ("python3", ["-c", "import sys; print(sys.executable)"], "tests/compare/handler.py"),
];
/// The folders of functions built by `cargo lambda build` and by `cargo build --release`.
const BUILT: [&str; 2] = ["target/lambda", "target/release"];

/// The bounds for the first poll: with embedded stores, and with the clients of all services.
const EMBEDDED_BOUND_MS: f64 = 20.0;
const SERVICES_BOUND_MS: f64 = 60.0;

/// Starts every program repeatedly in a temporary folder below `dir`.
///
/// # Errors
/// Returns an error if a function is not built, does not start, or fails.
pub async fn measure(dir: &Path, options: &Options) -> anyhow::Result<Vec<Row>> {
    let data = tempfile::tempdir_in(dir)?;
    let (stores, backend, bound_ms) = if options.services {
        ("services", "aws", SERVICES_BOUND_MS)
    } else {
        ("embedded", "embedded", EMBEDDED_BOUND_MS)
    };
    let mut rows = Vec::new();
    for (name, event) in FUNCTIONS {
        let program = built(name, options.dir.as_deref())?;
        let size = std::fs::metadata(&program)?.len();
        let command = || {
            let mut command = Command::new(&program);
            command.env("SEARCH_IMPORT_BACKEND", backend);
            command.env("SEARCH_IMPORT_DATA_DIR", data.path());
            command
        };
        let row = repeat(name, command, event, options.runs).await?;
        rows.push(Row { stores, size_mib: Some(mib(size)), bound_ms: Some(bound_ms), ..row });
    }
    for (name, question, script) in COMPARED {
        let Some(interpreter) = installed(name, question).await.filter(|_| Path::new(script).exists()) else {
            continue;
        };
        let command = || {
            let mut command = Command::new(&interpreter);
            command.arg(script);
            command
        };
        rows.push(repeat(name, command, HOSTILE, options.runs).await?);
    }
    Ok(rows)
}

/// Returns the path of a built function.
///
/// # Errors
/// Returns an error if the program is not built.
pub fn built(name: &str, dir: Option<&Path>) -> anyhow::Result<PathBuf> {
    let folders = dir.map_or_else(|| BUILT.map(PathBuf::from).to_vec(), |dir| vec![dir.to_owned()]);
    let places = folders.iter().flat_map(|folder| [folder.join(name).join("bootstrap"), folder.join(name)]);
    let found = places.into_iter().find(|place| place.is_file());
    found.with_context(|| {
        format!("{name} is not built: build it with `cargo build --release`, and name its folder with --dir")
    })
}

/// Returns the path of an interpreter; `None` if it is not installed.
async fn installed(name: &str, question: [&str; 2]) -> Option<PathBuf> {
    let output = Command::new(name).args(question).output().await.ok()?;
    let place = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(place.trim()))
}

/// The measurement of one start.
struct Start {
    polled: Duration,
    answered: Duration,
    peak_kib: Option<u64>,
}

async fn repeat(
    program: &str,
    command: impl Fn() -> Command,
    event: &str,
    runs: usize,
) -> anyhow::Result<Row> {
    let event: Value = serde_json::from_str(event)?;
    // The first start fills the page cache and creates the stores.
    start(command(), &event).await.with_context(|| format!("{program} was started"))?;
    let mut starts = Vec::new();
    for _ in 0..runs.max(1) {
        starts.push(start(command(), &event).await.with_context(|| format!("{program} was started"))?);
    }
    let millis =
        |time: fn(&Start) -> Duration| median(starts.iter().map(|start| time(start).as_secs_f64() * 1_000.0));
    Ok(Row {
        program: program.to_owned(),
        stores: "none",
        first_poll_ms: millis(|start| start.polled),
        first_answer_ms: millis(|start| start.answered),
        peak_mib: starts.iter().filter_map(|start| start.peak_kib).max().map(|kib| mib(kib * 1024)),
        size_mib: None,
        bound_ms: None,
    })
}

async fn start(command: Command, event: &Value) -> anyhow::Result<Start> {
    let began = Instant::now();
    let mut function = Function::start(command).await?;
    function.polled().await?;
    let polled = began.elapsed();
    let outcome = function.invoke(event).await?;
    let answered = began.elapsed();
    if let Outcome::Failure(error) = outcome {
        anyhow::bail!("its first event failed: {error}");
    }
    let peak_kib = function.process_id().and_then(peak_kib);
    function.stop().await;
    Ok(Start { polled, answered, peak_kib })
}

/// Returns the peak resident memory of a process.
fn peak_kib(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").trim().parse().ok()
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

/// Returns the median, or the higher of the two middle values.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
