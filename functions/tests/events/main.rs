//! The sample events of every function's event sources, fed to the library and to the built binaries.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

mod dispatch_outbox;
mod notify_upload;
mod parse_references;
mod report_faults;
mod run_saga;
mod start_upload;
