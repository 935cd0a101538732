//! A seed always gives the same schedule.

use simulation::{Config, Invariant, Mode, Mutant, Outcome, Range, Summary};

use crate::desk::Questions;

fn simulate(config: &Config, seed: u64) -> Outcome {
    simulation::simulate(&Questions::default(), config, seed)
}

fn run_many(config: &Config, range: &Range) -> Summary {
    simulation::run_many(&Questions::default(), config, range, &|_| ())
}

fn traced(mode: Mode) -> Config {
    Config { trace: true, ..Config::new(mode) }
}

#[test]
fn seed_reproduces_its_schedule() {
    for (seed, mode) in (0..20).flat_map(|seed| [(seed, Mode::Ledger), (seed, Mode::Optimistic)]) {
        let (first, second) = (simulate(&traced(mode), seed), simulate(&traced(mode), seed));
        assert_eq!(first.trace, second.trace);
        assert_eq!((first.stats, first.coverage), (second.stats, second.coverage));
    }
}

#[test]
fn tracing_does_not_change_schedule() {
    for seed in 0..20 {
        let silent = simulate(&Config::new(Mode::Ledger), seed);
        assert!(silent.trace.is_empty());
        assert_eq!(silent.stats, simulate(&traced(Mode::Ledger), seed).stats);
    }
}

#[test]
fn seeds_differ() {
    assert_ne!(simulate(&traced(Mode::Ledger), 1).trace, simulate(&traced(Mode::Ledger), 2).trace);
}

#[test]
fn result_is_independent_of_thread_count() {
    let config = Config::new(Mode::Ledger);
    let run = |threads| {
        let range = Range { first_seed: 7, count: 40, threads, stop_at_first: false };
        run_many(&config, &range)
    };
    let (one, three) = (run(1), run(3));
    assert_eq!((one.schedules, one.stats, one.coverage), (three.schedules, three.stats, three.coverage));
}

#[test]
fn violation_ends_the_trace() {
    let config = Config { mutant: Some(Mutant::ReadThenMarkClaim), ..Config::new(Mode::Ledger) };
    let range = Range { first_seed: 0, count: 10_000, threads: 2, stop_at_first: true };
    let (seed, violation) = run_many(&config, &range).first.expect("the defect is found");
    let outcome = simulate(&Config { trace: true, ..config }, seed);
    assert_eq!(outcome.violation.as_ref(), Some(&violation));
    let violates = |line: &String| line.contains(&format!("VIOLATION of {violation}"));
    assert!(outcome.trace.iter().rev().take(3).any(violates), "{:?}", outcome.trace.last());
}

#[test]
fn unending_schedule_is_a_violation() {
    let config = Config { max_steps: 20, ..Config::new(Mode::Ledger) };
    let range = Range { first_seed: 0, count: 10, threads: 1, stop_at_first: false };
    let summary = run_many(&config, &range);
    // A client that crashes immediately leaves no work, which takes fewer than 20 steps.
    assert!(summary.violations > 5, "{summary:?}");
    assert!(summary.found.keys().all(|invariant| *invariant == Invariant::Quiescence));
}
