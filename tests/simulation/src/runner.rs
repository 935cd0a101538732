//! Runs one schedule, or many.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use saga::Control;
use tracing::subscriber::NoSubscriber;

use crate::application::{self, Application};
use crate::coverage::{Call, Coverage};
use crate::options::{Config, Invariant, Mode, Mutant, Outcome, Stats, Violation};
use crate::schedule::Schedule;
use crate::workload::Workload;

/// Runs the schedule of one seed. The same workload, configuration and seed always give the same outcome.
pub fn simulate<W: Workload>(workload: &W, config: &Config, seed: u64) -> Outcome {
    run_one(&application::of(workload), config, seed)
}

fn run_one(application: &Arc<dyn Application>, config: &Config, seed: u64) -> Outcome {
    // The log of simulated failures is discarded.
    tracing::subscriber::with_default(NoSubscriber::new(), || Schedule::new(application, config, seed).run())
}

/// The result of many schedules.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// The number of schedules.
    pub schedules: u64,
    /// The number of schedules with a violation.
    pub violations: u64,
    /// The smallest seed with a violation, and the violation.
    pub first: Option<(u64, Violation)>,
    /// The violated invariants with their counts and smallest seeds.
    pub found: BTreeMap<Invariant, (u64, u64)>,
    /// The coverage.
    pub coverage: Coverage,
    /// The totals.
    pub stats: Stats,
    /// The duration.
    pub elapsed: Duration,
}

impl Summary {
    /// Returns the number of schedules per second.
    pub fn per_second(&self) -> f64 {
        self.schedules as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    fn add(&mut self, seed: u64, outcome: Outcome) {
        self.schedules += 1;
        self.coverage.add(&outcome.coverage);
        self.stats.add(&outcome.stats);
        if let Some(violation) = outcome.violation {
            self.violations += 1;
            self.note(violation.invariant, 1, seed);
            if self.first.as_ref().is_none_or(|(first, _)| seed < *first) {
                self.first = Some((seed, violation));
            }
        }
    }

    fn note(&mut self, invariant: Invariant, count: u64, seed: u64) {
        let (known, first) = self.found.entry(invariant).or_insert((0, seed));
        *known += count;
        *first = seed.min(*first);
    }

    fn merge(&mut self, other: Self) {
        self.schedules += other.schedules;
        self.violations += other.violations;
        self.coverage.add(&other.coverage);
        self.stats.add(&other.stats);
        for (invariant, (count, seed)) in other.found {
            self.note(invariant, count, seed);
        }
        let firsts = [self.first.take(), other.first];
        self.first = firsts.into_iter().flatten().min_by_key(|(seed, _)| *seed);
    }
}

/// The schedules to run.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    /// The first seed.
    pub first_seed: u64,
    /// The number of seeds.
    pub count: u64,
    /// The number of threads, at least 1. A schedule stays on one thread.
    pub threads: usize,
    /// `true` to stop after the first violation.
    pub stop_at_first: bool,
}

/// Runs schedules with successive seeds. `progress` is called from any thread with the number of finished schedules.
pub fn run_many<W: Workload>(
    workload: &W,
    config: &Config,
    range: &Range,
    progress: &(dyn Fn(u64) + Sync),
) -> Summary {
    run_all(&application::of(workload), config, range, progress)
}

/// Runs schedules for a test, and checks that none violates an invariant.
///
/// # Panics
/// Panics with the trace of the first schedule that violates an invariant.
pub fn assert_invariants<W: Workload>(workload: &W, config: &Config, range: &Range) -> Summary {
    let summary = run_many(workload, config, range, &|_| ());
    if let Some((seed, violation)) = &summary.first {
        let outcome = simulate(workload, &Config { trace: true, ..config.clone() }, *seed);
        panic!("seed {seed} in {:?} mode violates {violation}\n{}", config.mode, outcome.trace.join("\n"));
    }
    summary
}

/// Returns every defect of the engine and of the workload that schedules can find, with each mode in which it is one.
pub fn planted<W: Workload>(workload: &W) -> Vec<(Mutant, Mode)> {
    let own = workload.defects().iter().map(|(name, modes)| (Mutant::Own(name), *modes));
    let has_others = !workload.others().is_empty();
    let between = Mutant::BETWEEN_SAGAS.into_iter().filter(|_| has_others);
    let may = |control| workload.controls().contains(&control);
    let paused = Mutant::PAUSED.into_iter().filter(|_| may(Control::Pause));
    let terminated = Mutant::TERMINATED.into_iter().filter(|_| may(Control::Terminate));
    let has_records = !workload.unused().contains(&Call::RECORDS_ADVANCE);
    let records = Mutant::OF_RECORDS.into_iter().filter(|_| has_records);
    let engine = Mutant::ENGINE.into_iter().chain(between).chain(paused).chain(terminated).chain(records);
    let visible = engine.filter(|mutant| !workload.hidden_defects().contains(mutant));
    let all = visible.map(|mutant| (mutant, mutant.modes())).chain(own);
    all.flat_map(|(mutant, modes)| modes.iter().map(move |mode| (mutant, *mode))).collect()
}

/// Plants one defect, and returns the smallest seed of the range that finds it, with the violation. A schedule that
/// violates an invariant without the defect does not find it.
pub fn hunt<W: Workload>(
    workload: &W,
    mutant: Mutant,
    mode: Mode,
    range: &Range,
) -> Option<(u64, Violation)> {
    let config = Config { mutant: Some(mutant), ..Config::new(mode) };
    let end = range.first_seed.saturating_add(range.count);
    let mut range = *range;
    loop {
        let (seed, violation) = run_many(workload, &config, &range, &|_| ()).first?;
        if simulate(workload, &Config::new(mode), seed).violation.is_none() {
            return Some((seed, violation));
        }
        range.first_seed = seed.saturating_add(1);
        range.count = end.saturating_sub(range.first_seed);
    }
}

fn run_all(
    application: &Arc<dyn Application>,
    config: &Config,
    range: &Range,
    progress: &(dyn Fn(u64) + Sync),
) -> Summary {
    let began = Instant::now();
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let total = Mutex::new(Summary::default());
    thread::scope(|scope| {
        for _ in 0..range.threads.max(1) {
            scope.spawn(|| {
                let mut mine = Summary::default();
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= range.count {
                        break;
                    }
                    let seed = range.first_seed.wrapping_add(index);
                    let outcome = run_one(application, config, seed);
                    stop.fetch_or(range.stop_at_first && outcome.violation.is_some(), Ordering::Relaxed);
                    mine.add(seed, outcome);
                    if index % 64 == 63 {
                        progress(index + 1);
                    }
                }
                total.lock().unwrap_or_else(PoisonError::into_inner).merge(mine);
            });
        }
    });
    let mut summary = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary.elapsed = began.elapsed();
    summary
}
