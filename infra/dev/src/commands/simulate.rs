//! Simulation of an application's functions under faults: random schedules, and the trace of a failing one.

use std::num::NonZero;
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use local::output;
use orders::workload::Customers;
use searches::simulation::Searches;
use simulation::{Config, Mode, Range, Summary, Workload, run_many, simulate};

use crate::args::{ModeArg, Simulate, WorkloadArg};

/// Runs schedules, or shows one. Returns `true` if no invariant was violated.
pub(crate) fn run(args: &Simulate) -> anyhow::Result<bool> {
    match args.workload {
        WorkloadArg::Searches => run_on(&Searches, args),
        WorkloadArg::Orders => run_on(&Customers, args),
    }
}

fn run_on<W: Workload>(workload: &W, args: &Simulate) -> anyhow::Result<bool> {
    if let Some(seed) = args.replay {
        return replay(workload, args.mode.unwrap_or(ModeArg::Ledger).into(), seed);
    }
    let modes = match args.mode {
        Some(chosen) => vec![chosen.into()],
        None => vec![Mode::Ledger, Mode::Optimistic],
    };
    for mode in modes {
        if !look_for_violation(workload, args, mode)? {
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
fn look_for_violation<W: Workload>(workload: &W, args: &Simulate, mode: Mode) -> anyhow::Result<bool> {
    let threads = match args.threads {
        Some(threads) => usize::try_from(threads)?,
        None => thread::available_parallelism().map_or(1, NonZero::get),
    };
    let range = Range { first_seed: args.seed, count: args.schedules, threads, stop_at_first: true };
    let bar = bar(args.schedules, mode);
    let summary = run_many(workload, &Config::new(mode), &range, &|done| bar.set_position(done));
    bar.finish_and_clear();
    report(args, mode, &summary)?;
    match &summary.first {
        Some((seed, _)) => replay(workload, mode, *seed),
        None => Ok(true),
    }
}

fn report(args: &Simulate, mode: Mode, summary: &Summary) -> anyhow::Result<()> {
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
        let workload = match args.workload {
            WorkloadArg::Searches => "",
            WorkloadArg::Orders => " --workload orders",
        };
        let again =
            format!("seed {seed}; to see it again: dev simulate{workload} --mode {mode} --replay {seed}");
        output::line(&again)?;
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
