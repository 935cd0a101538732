//! Exhaustive model checking of the delivery protocol around a saga: every interleaving of two workers and a sweeper on
//! one partition, with duplicates, crashes after every step, leases that expire at the worst time, stale documents,
//! handlers that fail permanently, batches of messages and full ledgers.
//!
//! The steps call the production code: [`saga::Saga::transition`] through [`saga::plan::decide`],
//! [`saga::plan::admission`], and [`dedup::ledger::Item`]. Only the stores and queues around it are modelled, with each
//! call as one atomic step.
//!
//! # Bring your saga
//! Describe the messages of one partition and the replies of the handlers, and call [`check()`]:
//!
//! ```no_run
//! # use jiff::Timestamp;
//! # use messages::{Message, Queue, messages};
//! # use model::{Budget, Protocol, check, input, reply, sometimes};
//! # use saga::{Decision, Event, SAGA, Saga};
//! # const WAREHOUSE: Queue = Queue::named("warehouse");
//! # messages! { pub enum OrderEvent of "shop" to SAGA { Placed {} = 1, Paid {} = 1, Shipped {} = 1 } }
//! # messages! { pub enum Command of "shop" to WAREHOUSE { Ship {} = 1 } }
//! # struct Order;
//! # impl Saga for Order {
//! #     const NAME: &'static str = "order";
//! #     type State = Option<Timestamp>;
//! #     type Event = OrderEvent;
//! #     fn transition(&self, _: &Self::State, _: &Event<'_, OrderEvent>, _: Timestamp) -> Decision<Self::State> {
//! #         Decision::ignore("")
//! #     }
//! #     fn ended_at(&self, state: &Self::State) -> Option<Timestamp> { *state }
//! # }
//! fn warehouse(command: &Message) -> Vec<Message> {
//!     match command.read() {
//!         Ok(Command::Ship {}) => vec![reply(command, &OrderEvent::Shipped {})],
//!         Err(_) => Vec::new(), // news for the world outside
//!     }
//! }
//!
//! // a test
//! fn crash_and_lost_lease_keep_invariants() {
//!     let inputs = vec![input(1, &OrderEvent::Placed {}), input(2, &OrderEvent::Paid {})];
//!     let budget = Budget { crashes: 1, expiries: 1, ..Budget::NONE };
//!     let protocol = Protocol { saga: Order, inputs, replies: warehouse, budget };
//!     let shipped = sometimes("an order ends", |_, system| system.has_ended());
//!     check("a crash and a lost lease", protocol, vec![shipped]);
//! }
//! ```
//!
//! # What holds
//! The saga first runs without faults: one worker, the messages in every order, with every timer that may fire and
//! every request that may fail permanently. The results are the only ones allowed with faults, so no bounds have to be
//! given:
//!
//! - **I1** A message changes the state at most once, and only one of the messages that share a token does.
//! - **I2** Nothing is sent that was not stored.
//! - **I3** No request is made more often than without faults. Requests are compared by content rather than by id, so
//!   that equal requests by two attempts are detected.
//! - **I4** No token is removed that is still needed, and no message is dropped without a decision about it.
//! - **I5** After the retention no duplicate restores an ended partition, whether its document or its ledger item was
//!   deleted first.
//! - **I6** Document and ledger stay bounded by their maximum sizes without faults plus the remains of failed attempts.
//!   If tokens need [`Budget::room`], the bound does not depend on the number of failed attempts.
//! - **I7** The system rests only in states in which it rests without faults, and every stored state is also stored
//!   without faults. It always reaches rest: from every state, regardless of earlier faults, a path leads to the end
//!   without further faults, duplicates or timers.
//!
//! The last property is progress. It is checked on the graph of all states and steps, backwards from the end states. It
//! proves that there are neither dead ends nor inescapable loops. It does not prove that every order of steps ends: the
//! messages of a busy partition may be redelivered indefinitely. Since the number of states is finite, an order in
//! which each possible step has a positive probability reaches the end.
//!
//! Further guarantees of a saga, such as that it ends, are checked with the caller's [`always`] properties: a saga that
//! violates them without faults would not be noticed otherwise. A [`sometimes`] property requires that a situation
//! occurs, so that the check cannot silently become too narrow. [`System`] lists the values that properties can
//! inspect. If a property does not hold, the panic message contains a shortest path to the state: the messages of each
//! action, and the state and the phases of the workers after it. A [`Defect`] can be injected to verify that the check
//! finds it.
//!
//! **I8** A saga that waits has a deadline. Only the application knows in which states it may wait for others, so it
//! adds this property itself: [`deadlines`].
//!
//! # Two sagas
//! [`pair::check()`] checks two sagas that exchange messages. Each has its own document, ledger item, queue and workers, and
//! the steps of both interleave. Three faults exist only there: a grant of tokens to the other saga is delayed, it
//! arrives twice, and a request between the sagas is dead-lettered and reported.
//!
//! # Keep it small
//! Two inputs with two requests and a [`Budget`] of two have up to 300,000 states and take ten seconds.
//! Each further element multiplies them by two to ten. The number of states is printed every few seconds, and
//! [`check_within`] limits it. A saga must be deterministic, as [`saga::Saga::transition`] requires. The number of
//! timers that fire is part of the budget, so a saga may set its timer again indefinitely. Compile the crate that calls
//! [`check()`] with at least `opt-level = 1`, because generic code is compiled there.
//!
//! In reading order:
//! - [`Protocol`], [`Budget`], [`check()`]: the checked protocol;
//! - [`input`], [`reply`], [`report`]: messages as entry points and handlers send them;
//! - `system`, `actions`, `steps`: the state of the system, its possible actions, and their effects;
//! - `property`, `check`, `limits`, `properties`: the invariants;
//! - `describe`: the texts of counterexamples;
//! - [`pair`]: two sagas;
//! - `explore`: the visit of every state, and the search for paths to the end;
//! - `defects`: the defects that have to be found;
//! - `normal`, `keyed`: reductions that keep the number of states small and comparisons fast.
//!
//! The model has no views, because only readers see them; no more than two sagas with one instance each; no batches of more
//! than two messages or of several partitions; no lost acknowledgement of a write; no permanent failures of requests that
//! the sweeper has sent; no loads of versions before the last two; no operator; and no optimistic mode. A worker that
//! encounters a conflict or a busy partition returns its messages immediately instead of retrying. With
//! [`Budget::room`], an attempt removes its tokens after a conflict, unlike in the engine. The simulator covers all of
//! these.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap is a failed test with a line number"
)]
#![allow(clippy::print_stdout, reason = "the number of states is worth knowing")]

mod actions;
mod check;
mod defects;
mod describe;
mod explore;
mod keyed;
mod limits;
mod normal;
pub mod pair;
mod properties;
mod property;
mod protocol;
mod run;
mod sent;
mod steps;
mod system;

pub use actions::Action;
pub use check::{Check, always, deadlines, sometimes};
pub use defects::Defect;
pub use property::{Property, StateSpace};
pub use protocol::{Budget, Protocol};
pub use run::{MAX_STATES, check, check_within};
pub use sent::{NOW, input, input_of, partition, reply, report};
pub use system::{Batch, System};
