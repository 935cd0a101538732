//! Runs any saga, with everything that an application builds around it, through schedules derived from seeds, and
//! checks their invariants.
//!
//! A [`Workload`] names the system, whose table lists the function behind each queue, and a client that acts as the
//! outside world. The simulation runs the shipped functions, because it is built from that table.
//!
//! A schedule is a small world: one or two clients, several workers for each function, the engine's stores and queues
//! in memory, and a clock that advances only if no event is possible. Each port call stops twice: before it is
//! performed, and after it was performed but before its caller receives the result. At each stop the scheduler chooses
//! which worker continues and which fault occurs: a crash, a failure, a failure although the call succeeded, a call
//! that arrives after its caller stopped waiting, or a delay after which leases and visibility timeouts have expired.
//! Messages are duplicated, delayed and delivered in any order. When the faults stop, the system must reach a final
//! state and keep it, even if duplicates arrive days or months later.
//!
//! # Guarantees
//!
//! - A seed repeats its schedule exactly, on every machine, as long as the code and the workload are unchanged.
//! - Every port call is a point at which a worker can stop, fail or crash. A port of the application is covered too.
//! - The invariants of the engine are checked without code of the workload. Planted defects ([`Mutant`]) show that they
//!   are found.
//!
//! # Example
//!
//! ```no_run
//! use simulation::{Config, Mode, Range, Workload, assert_invariants};
//!
//! fn invariants_hold_under_faults<W: Workload>(workload: &W) {
//!     let range = Range { first_seed: 1, count: 2_000, threads: 2, stop_at_first: true };
//!     let summary = assert_invariants(workload, &Config::new(Mode::Ledger), &range);
//!     assert!(summary.stats.completed > 0);
//! }
//! ```
//!
//! In reading order:
//! - [`workload`]: the interface that an application implements; [`access`]: the interface of the simulation for it;
//! - [`options`]: options, invariants and results;
//! - [`runner`]: the entry point: one schedule, and many schedules;
//! - [`known_seeds`]: every planted defect at the seed that is known to find it;
//! - `schedule`, `choice`: the executor, and the choice of the next event;
//! - `time`, `describe`, `model`: the simulated time, texts for traces, and shared types;
//! - `point`, `gate`, `universe`, `port`: the points at which a worker stops, and its ports;
//! - `fault`, `clocks`, `stale_reads`: the faults, clock errors and stale reads of a schedule;
//! - `damage`, `operator`: unreadable records, and the operator who redrives dead letters;
//! - `control`: the operator who pauses, resumes and terminates instances, and sends events;
//! - [`restore`]: restores of the stores to an earlier time;
//! - `world`, `ports`: the state that outlives a worker;
//! - `application`, `sagas`, `actors`: the workload and its sagas without their types, and its workers;
//! - `checks`: the invariants;
//! - `mutants`: defects that can be planted, to prove that they are found;
//! - [`coverage`]: the faults that occurred at each point.
//!
//! A schedule does not depend on threads or on the machine's clock and randomness, so its seed reproduces it. The crate
//! does not try every order; the model checker does.

pub mod access;
mod actors;
mod application;
mod checks;
mod choice;
mod clocks;
mod control;
pub mod coverage;
mod damage;
mod describe;
mod fault;
mod gate;
pub mod known_seeds;
mod model;
mod mutants;
mod operator;
pub mod options;
mod point;
mod port;
mod ports;
pub mod restore;
pub mod rng;
pub mod runner;
mod sagas;
mod schedule;
mod stale_reads;
mod time;
mod trace;
mod universe;
pub mod workload;
mod world;

pub use access::{Access, Scene};
pub use coverage::{Call, Coverage, Fault, Phase};
pub use known_seeds::{Hunt, hunt_all};
pub use options::{Config, Invariant, Mode, Mutant, Outcome, Stats, Violation};
pub use restore::RestoredStores;
pub use rng::Rng;
pub use runner::{Range, Summary, assert_invariants, hunt, planted, run_many, simulate};
pub use sagas::OtherSaga;
pub use workload::{Bounds, Change, CheckResult, Rest, Workload};
