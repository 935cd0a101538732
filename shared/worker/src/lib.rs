//! The shell of the saga: it carries out what the pure crates decide.
//!
//! One message goes this way: *claim* the partition while *loading* its document, *decide*, *persist* state and
//! outbox in one write, *dispatch* the outbox, *release* the partition while *clearing* the outbox.
//!
//! In reading order:
//! - [`group`]: the messages of some searches, and when they are attempted again; the entrance;
//! - [`plan`]: what one attempt at one group is going to do, as a pure function;
//! - `round`: one attempt at each of several groups, step by step and side by side;
//! - [`dispatch`]: performing outbox entries, fresh ones and overdue ones;
//! - [`document`]: what is stored of a search, and the ports to it;
//! - [`settings`]: the numbers;
//! - [`system`]: the real clock, sleep and randomness.
//!
//! What the crate does not do: it does not retry what a queue retries better. Only a concurrency conflict is
//! tried again in place, because the reason for it is gone the moment it is noticed.

pub mod dispatch;
pub mod document;
pub mod group;
pub mod plan;
mod round;
pub mod settings;
pub mod system;

pub use dispatch::{Dispatcher, sweep};
pub use document::{
    Awaited, Content, Document, Expected, Persist, Persisted, Processed, ReadSaga, WriteSaga,
};
pub use group::{Group, Later, Ports, Worker};
pub use plan::{Incoming, Judgement};
pub use settings::Settings;
pub use system::SystemHost;
