//! Archives and workbooks of any origin: the content of valid ones, and the refusal of others.

// The helpers are tests too: a failed unwrap is a failed test with a line number.
#![allow(clippy::unwrap_used)]

mod pack;
mod sheets;
mod streams;
mod zips;
