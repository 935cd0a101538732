//! The program as developers and scripts run it: the built binary, its output and its exit code.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap is a failed test with a line number"
)]

mod bench;
mod check_template;
mod diagram;
mod environments;
mod figures;
mod new;
mod new_project;
mod program;
mod provision;
mod pump;
mod sample;
mod shipped;
mod tally;
