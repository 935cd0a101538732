//! The six functions of the search import, each a struct over the ports that it uses.
//!
//! In the order in which a search passes through them:
//!
//! - [`start_upload`] serves the HTTP API: it announces a search and grants an upload for each of its files;
//! - [`notify_upload`] reports each uploaded file to the saga;
//! - [`run_saga`] consumes the saga queue: it advances the search and sends the effects;
//! - [`parse_references`] reads one file into studies, and replies to the saga;
//! - [`report_faults`] reports parse commands that never succeeded to the saga;
//! - [`dispatch_outbox`] settles sessions, and performs effects that a crash or a failure has left.
//!
//! The constant `FUNCTION` of each module declares the function's queue and services; [`SYSTEM`] is the table of all
//! of them. No function knows the stores and queues behind its ports, so the same code runs on Lambda, in one process
//! and in the simulator.
//!
//! The HTTP API is the crate `http-api`: a router over the use cases of the crate `service`, for Lambda and for the
//! local server.
//!
//! `src/bin` has a Lambda program for each function, which opens the ports and translates events. The programs and
//! their dependencies belong to the feature `lambda`, which is enabled unless a user of the library sets
//! `default-features = false`. `tests/events` feeds sample events to the library and to the built programs.

pub mod dispatch_outbox;
pub mod notify_upload;
pub mod parse_references;
#[cfg(feature = "lambda")]
mod program;
pub mod report_faults;
pub mod run_saga;
pub mod start_upload;

use imports::Ports;
use imports::queues::QUEUES;
use saga::System;

#[cfg(feature = "lambda")]
pub use program::{OpenUpkeep, run};

/// The search import: its queues, and the functions behind them.
pub static SYSTEM: System<Ports> = System {
    name: imports::SYSTEM,
    queues: &QUEUES,
    functions: &[
        &start_upload::FUNCTION,
        &notify_upload::FUNCTION,
        &run_saga::FUNCTION,
        &parse_references::FUNCTION,
        &dispatch_outbox::FUNCTION,
        &report_faults::FUNCTION,
    ],
};
