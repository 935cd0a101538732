//! Simulation of an application's functions under faults: random schedules, and the trace of a failing one.

use std::num::NonZero;
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use local::output;
use simulation::{Config, Mode, Range, Summary, Workload, run_many, simulate};

/// The options of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of schedules to run in each mode
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub schedules: u64,
    /// Seed of the first schedule; the others have the following seeds
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Mode in which the functions recognize duplicates [default: each mode in turn; ledger for --replay]
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// Show the schedule of this seed step by step
    #[arg(long, value_name = "SEED", conflicts_with_all = ["schedules", "seed", "threads", "coverage"])]
    pub replay: Option<u64>,
    /// Number of concurrent schedules [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: Option<u32>,
    /// Show which faults were injected into which calls
    #[arg(long)]
    pub coverage: bool,
}

/// The mode of a simulation, as an argument.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub enum ModeArg {
    /// By tokens: duplicates of any age are dropped
    Ledger,
    /// By versions, processed ids and states only
    Optimistic,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Ledger => Self::Ledger,
            ModeArg::Optimistic => Self::Optimistic,
        }
    }
}

/// Runs schedules of a workload, or shows one. `command` is the command line that repeats a schedule. Returns `true` if
/// no invariant was violated.
pub fn run<W: Workload>(workload: &W, args: &Args, command: &str) -> anyhow::Result<bool> {
    if let Some(seed) = args.replay {
        return replay(workload, args.mode.unwrap_or(ModeArg::Ledger).into(), seed);
    }
    let modes = match args.mode {
        Some(chosen) => vec![chosen.into()],
        None => vec![Mode::Ledger, Mode::Optimistic],
    };
    for mode in modes {
        if !find_violation(workload, args, mode, command)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn name(mode: Mode) -> &'static str {
    match mode {
        Mode::Ledger => "ledger",
        Mode::Optimistic => "optimistic",
    }
}

/// Shows the steps of one schedule.
fn replay<W: Workload>(workload: &W, mode: Mode, seed: u64) -> anyhow::Result<bool> {
    let outcome = simulate(workload, &Config { trace: true, ..Config::new(mode) }, seed);
    for line in &outcome.trace {
        output::line(line)?;
    }
    match outcome.violation {
        Some(violation) => {
            output::complain(&format!("seed {seed} in {} mode violates {violation}", name(mode)));
            Ok(false)
        }
        None => Ok(true),
    }
}

/// Runs schedules until one violates an invariant.
fn find_violation<W: Workload>(workload: &W, args: &Args, mode: Mode, command: &str) -> anyhow::Result<bool> {
    let threads = match args.threads {
        Some(threads) => usize::try_from(threads)?,
        None => thread::available_parallelism().map_or(1, NonZero::get),
    };
    let range = Range { first_seed: args.seed, count: args.schedules, threads, stop_at_first: true };
    let bar = bar(args.schedules, mode);
    let summary = run_many(workload, &Config::new(mode), &range, &|done| bar.set_position(done));
    bar.finish_and_clear();
    report(args, mode, command, &summary)?;
    match &summary.first {
        Some((seed, _)) => replay(workload, mode, *seed),
        None => Ok(true),
    }
}

fn report(args: &Args, mode: Mode, command: &str, summary: &Summary) -> anyhow::Result<()> {
    let Summary { schedules, stats, .. } = summary;
    output::line(&format!(
        "{} mode: {schedules} schedules from seed {} on, {:.0} per second, {} violations",
        name(mode),
        args.seed,
        summary.per_second(),
        summary.violations
    ))?;
    output::line(&format!(
        "  {} partitions, {} completed and {} failed; {} steps, {} messages received, {} faults, {} stale duplicates; \
         {} calls while a service was away, {} unreadable entries, {} requeued",
        stats.partitions,
        stats.completed,
        stats.failed,
        stats.steps,
        stats.received,
        stats.faults,
        stats.stale,
        stats.outages,
        stats.unreadable,
        stats.requeued
    ))?;
    if args.coverage {
        output::block(&summary.coverage.to_string())?;
    }
    if let Some((seed, _)) = &summary.first {
        let mode = name(mode);
        output::line(&format!("seed {seed}; to see it again: {command} --mode {mode} --replay {seed}"))?;
    }
    Ok(())
}

/// Returns a progress bar on standard error if it is a terminal.
fn bar(schedules: u64, mode: Mode) -> ProgressBar {
    let template = "{prefix:>10} {wide_bar} {pos}/{len}, {per_sec}, {eta} left";
    // The template is a valid constant. Without it, the bar would only be plainer.
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(schedules).with_style(style).with_prefix(name(mode))
}
