//! The program as people and scripts meet it: the built binary, its output and its exit code.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap is a failed test with a line number"
)]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod bad_input;
mod bench;
mod check_template;
mod faults;
mod fixtures;
mod inspect;
mod outbox;
mod program;
mod quarantine;
mod readme;
mod samples;
mod serve;
mod services;
