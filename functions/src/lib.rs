//! The six functions that a search import is made of, each a struct over the ports that it works on.
//!
//! In the order in which a search meets them:
//!
//! - [`start_upload`] answers the HTTP API: it announces a search and gives out an upload for each of its files;
//! - [`notify_upload`] tells the saga of each file that was uploaded;
//! - [`run_saga`] works on the saga queue: what happens to a search next, and what has to be sent for it;
//! - [`parse_references`] reads one file into studies, and replies to the saga;
//! - [`report_faults`] tells the saga of parse commands that never succeeded;
//! - [`dispatch_outbox`] settles sessions, and performs what a crash or a failure left undone.
//!
//! Each module says in `FUNCTION` what its function works on and what stands behind its queue; [`SYSTEM`] is the table of
//! all of them. Which stores and queues stand behind the ports no function knows, so the same code runs on Lambda, in one
//! process and in the simulator.
//!
//! [`api`] is the HTTP API: a router over the use cases of the crate `service`, for Lambda and for the local server.
//!
//! `src/bin` has a program for Lambda for each function, which opens the ports and translates events. The
//! programs and what only they need come with the feature `lambda`, which is on unless a user of the library sets
//! `default-features = false`. `tests/events` feeds sample events to the library and to the built programs.

pub mod api;
pub mod dispatch_outbox;
pub mod notify_upload;
pub mod parse_references;
pub mod report_faults;
pub mod run_saga;
pub mod start_upload;

use imports::Ports;
use imports::queues::QUEUES;
use saga::System;

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
