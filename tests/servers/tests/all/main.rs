//! Every adapter of a real server against its contract suite, and faults of the servers themselves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap is a failed test with a line number"
)]

mod dynamo;
mod mongo;
mod s3;
mod secret;
mod sqs;
