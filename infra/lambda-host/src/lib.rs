//! Replacements for Lambda that run built functions locally.
//!
//! - [`RuntimeApi`]: the four calls of a function's runtime
//!   (<https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>);
//! - [`Function`]: a program that uses it, with its log;
//! - [`pump`]: event sources for functions that run under a Lambda emulator.
//!
//! The Runtime API returns one event at a time, as Lambda does for one instance of a function. Extensions, timeouts and
//! streamed responses are not supported.

mod function;
pub mod pump;
mod server;

pub use function::{Error, Function};
pub use server::{Outcome, RuntimeApi};
