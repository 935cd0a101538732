//! Stand-ins for Lambda, so that built functions can be run without it.
//!
//! - [`RuntimeApi`]: the four calls that a function's runtime makes
//!   (<https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>);
//! - [`Function`]: a program that runs against it, with its log;
//! - [`pump`]: event sources for functions that run under a Lambda emulator.
//!
//! The Runtime API hands out one event at a time, as Lambda does to one instance of a function. There are no
//! extensions, no time-outs and no streamed answers.

mod function;
pub mod pump;
mod server;

pub use function::{Error, Function};
pub use server::{Outcome, RuntimeApi};
