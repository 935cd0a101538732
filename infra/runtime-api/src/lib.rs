//! Lambda's Runtime API for one function at a time, so that a built binary can be run without Lambda.
//!
//! - [`RuntimeApi`]: the four calls that a runtime makes
//!   (<https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>);
//! - [`Function`]: a program that runs against it, with its log.
//!
//! It hands out one event at a time, as Lambda does to one instance of a function. There are no extensions, no
//! time-outs and no streamed answers.

mod function;
mod server;

pub use function::{Error, Function};
pub use server::{Outcome, RuntimeApi};
