//! Integration scenarios: the functions' libraries on the embedded stores, run step by step with a clock that moves
//! only when a test moves it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap is a failed test with a line number"
)]

mod api;
mod crashes;
mod documents;
mod endings;
mod exhausted;
mod failures;
mod faulty;
mod fixtures;
mod history;
mod hostile;
mod operations;
mod outbox;
mod packed;
mod parsing;
mod postponed;
mod repairs;
mod restores;
mod retries;
mod searches;
mod sessions;
mod traces;
mod turns;
mod world;
