//! The state machine of one search import.
//!
//! [`transition`] says what a message changes and what is to be done about it, and does nothing itself: no I/O,
//! no clock, no randomness, no async. It is the only place where a state changes; live runs and checkers call
//! the same function.
//!
//! In reading order:
//! - [`state`]: the six states and what is remembered in each;
//! - [`event`]: the seven events, and the tokens that handling one may need;
//! - [`decision`]: what a transition answers: advance with effects, ignore, or reject;
//! - [`transition()`]: one arm for every pair of state and event;
//! - [`table`]: the table and the diagram of all this, drawn by running it.
//!
//! What the crate does not do: it does not deduplicate by message id and it does not order messages. Whoever
//! calls it may call it twice with the same event; the second answer is then [`Decision::Ignore`].

mod collect;
pub mod decision;
pub mod event;
pub mod state;
pub mod table;
mod transition;

pub use decision::{Decision, Effect};
pub use event::{Event, Kind};
pub use state::{Ended, File, Import, State};
pub use transition::{UPLOAD_TIMEOUT, transition};
