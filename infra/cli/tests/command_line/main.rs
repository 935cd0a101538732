//! The program as users and scripts run it: the built binary, its output and its exit code.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap is a failed test with a line number"
)]
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod bad_input;
mod data_folder;
mod deep;
mod endings;
mod export;
mod failures;
mod faults;
mod fixtures;
#[cfg(target_os = "linux")]
mod full_disk;
mod health;
mod hostile_text;
mod inspect;
mod interrupt;
mod manual;
mod outbox;
mod packed;
mod program;
mod quarantine;
mod repair;
mod reviews;
mod samples;
mod searches;
#[cfg(feature = "services")]
mod secrets;
mod serve;
mod serve_attacks;
#[cfg(target_os = "linux")]
mod serve_hostile_files;
mod serve_killed;
mod serve_logs;
#[cfg(feature = "services")]
mod services;
mod sources;
mod stdin;
