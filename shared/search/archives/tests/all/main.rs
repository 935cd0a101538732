//! Archives and workbooks from outside: what is in good ones, and what becomes of bad ones.

// The helpers are tests too: a failed unwrap is a failed test with a line number.
#![allow(clippy::unwrap_used)]

mod pack;
mod sheets;
mod streams;
mod zips;
