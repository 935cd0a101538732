//! The delivery protocol around a saga, checked exhaustively: every interleaving of two workers and a sweeper on one
//! partition, with duplicates, crashes after every step, leases that run out at the worst moment, old documents, handlers
//! that give up, messages that come together and ledgers that are full.
//!
//! The steps call what is shipped: [`saga::Saga::transition`] through [`saga::plan::decide`], [`saga::plan::admission`],
//! and [`dedup::ledger::Item`]. Only the stores and queues around them are modelled, each call as one atomic step.
//!
//! # Bring your saga
//! Say what happens to one partition and what handlers answer, and let [`check`] do the rest:
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
//! fn a_crash_and_a_lost_lease_break_no_invariant() {
//!     let inputs = vec![input(1, &OrderEvent::Placed {}), input(2, &OrderEvent::Paid {})];
//!     let budget = Budget { crashes: 1, expiries: 1, ..Budget::NONE };
//!     let protocol = Protocol { saga: Order, inputs, replies: warehouse, budget };
//!     let shipped = sometimes("an order ends", |_, system| system.has_ended());
//!     check("a crash and a lost lease", protocol, vec![shipped]);
//! }
//! ```
//!
//! # What holds
//! First the saga runs without faults: one worker, the messages in every order, with every timer that may fire
//! and every request that may be given up. What comes of that is all that may come of it with faults, and no bound has to
//! be given:
//!
//! - **I1** A message changes the state at most once, and of several with one token one does.
//! - **I2** Nothing is sent that was not stored.
//! - **I3** Nothing is asked for more often than without faults. Requests are compared by their content, not by their
//!   ids, so the same request by two attempts is found.
//! - **I4** No token is removed that is still needed, and no message dropped about which nothing was decided.
//! - **I5** After the retention no duplicate brings an ended partition back, whether its document or its ledger item went
//!   first.
//! - **I6** Document and ledger stay bounded, by the most that is there without faults and what failed attempts leave; where
//!   tokens need [`Budget::room`], however many attempts fail.
//! - **I7** The system comes to rest only where it does without faults; and on the way, every stored state is one that
//!   is stored without faults. It also does come to rest: from every state, whatever went wrong before, there is a way to
//!   the end on which nothing more goes wrong, nothing is delivered twice and no timer fires.
//!
//! The last is progress, and is found by looking at all states and steps together, from the ends backwards. What it proves:
//! there is neither a dead end nor a loop without a way out. What it does not: that every order of steps comes to an end.
//! A partition that is busy has its messages delivered again and again, and whoever does nothing else stays there. As there
//! are finitely many states, an order in which each possible step has some chance does come to the end.
//!
//! What the saga promises beyond that, such as that it comes to an end, is the caller's [`always`]: a saga that does
//! wrong without faults does nothing new with them. What the check has to meet, lest it become too narrow, is a
//! [`sometimes`]. [`System`] says what they can see. When a property does not hold, the panic shows the fewest steps that
//! lead there. A [`Defect`] can be planted, to see that it is found.
//!
//! # Keep it small
//! Two inputs with two requests and a [`Budget`] of two are up to 300,000 states and ten seconds; each more of anything
//! multiplies them by two to ten. A saga has to be deterministic, as [`saga::Saga::transition`] asks, and the number of
//! timers that fire is part of the budget, so one that sets its timer for ever is fine. Compile the crate that calls
//! [`check`] with `opt-level = 1` at least, because what is generic is compiled there.
//!
//! In reading order:
//! - [`Protocol`], [`Budget`], [`check`]: what is checked;
//! - [`input`], [`reply`], [`report`]: messages as entry points and handlers send them;
//! - `system`, `actions`, `steps`: the state of everything, what can happen next, and what that does;
//! - `limits`, `properties`: what must hold;
//! - `explore`: visiting every state, and looking for the way to the end;
//! - `defects`: what has to be found;
//! - `normal`, `keyed`: what keeps the states few and quick to compare.
//!
//! What the crate does not do: it has no views, which only readers ever see, no batches of more than two messages or of
//! several partitions, no lost acknowledgement of a write, no requests that are given up when the sweeper has sent them, no
//! loads of any but the last two versions, no operator, and no optimistic mode. A worker that meets a conflict or a busy
//! partition gives its messages back at once instead of trying again. All of that is the simulator's business.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap is a failed test with a line number"
)]
#![allow(clippy::print_stdout, reason = "the number of states is worth knowing")]

mod actions;
mod defects;
mod explore;
mod keyed;
mod limits;
mod normal;
mod properties;
mod protocol;
mod sent;
mod steps;
mod system;

pub use actions::Action;
pub use defects::Defect;
pub use properties::{Checked, Property, always, sometimes};
pub use protocol::{Budget, Check, Protocol, check};
pub use sent::{NOW, input, partition, reply, report};
pub use system::{Batch, System};
