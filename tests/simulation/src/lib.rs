//! Runs any saga, with everything that an application builds around it, through schedules drawn from seeds, and checks
//! what must hold.
//!
//! Bring your saga: a [`Workload`] names the system, whose table says what stands behind which queue, and a client that
//! does what happens outside. The simulation runs the shipped functions, because it is built from that table.
//!
//! One schedule is one small world: a client or two, the functions as several workers each, the engine's stores and
//! queues in memory, and a clock that moves only when nothing can happen without it. Each call of a port stops twice,
//! before it is performed and after it was performed but before its caller knows, and at each stop the scheduler decides
//! who goes on and what befalls them: a crash, a failure, a failure that is a lie, a call that arrives after its caller
//! has given up, or a delay so long that leases and visibility timeouts run out. Messages are copied, delayed and
//! delivered in any order. When the faults stop, everything must come to rest and stay there, even if duplicates arrive
//! days or months later.
//!
//! In reading order:
//! - [`workload`]: what an application writes; [`access`]: what it is given for that;
//! - [`options`]: what is asked for, what must hold, what is answered;
//! - [`many`]: one schedule, and many of them; the entrance;
//! - [`known`]: every planted defect at the seed that is known to find it;
//! - `schedule`, `choice`: the executor, and the choice of what happens next;
//! - `point`, `port`: where a worker stops, and what it holds in its hands;
//! - `fault`, `clocks`: which faults befall a schedule, and how far its clocks are off;
//! - `damage`, `operator`: records that cannot be read, and whoever puts dead letters back;
//! - `world`, `ports`: everything that outlives a worker;
//! - `application`, `actors`: the workload without its types, and the workers that are built of it;
//! - `checks`: what must hold;
//! - `mutants`: defects that can be planted, for proving that they are found;
//! - [`coverage`]: which points were met by which faults.
//!
//! Nothing in a schedule depends on a thread, the machine's clock or its randomness, so a seed is all it takes to see
//! one again. The crate does not try every order. That is the model checker's business.

pub mod access;
mod actors;
mod application;
mod checks;
mod choice;
mod clocks;
pub mod coverage;
mod damage;
mod fault;
pub mod known;
pub mod many;
mod mutants;
mod operator;
pub mod options;
mod point;
mod port;
mod ports;
pub mod rng;
mod schedule;
mod trace;
pub mod workload;
mod world;

pub use access::{Access, Scene};
pub use coverage::{Call, Coverage, Fault, Phase};
pub use known::{Hunt, hunt_all};
pub use many::{Range, Summary, hunt, planted, run_many, simulate};
pub use options::{Config, Invariant, Mode, Mutant, Outcome, Stats, Violation};
pub use rng::Rng;
pub use workload::{Bounds, Change, Checked, Rest, Workload};
