//! Measures the shipped functions.
//!
//! - [`calls`]: how many storage calls and sends one message costs, and what that comes to;
//! - [`cold_start`]: how long a function takes until its first event and its first answer;
//! - [`prices`]: what a call costs;
//! - [`saga`]: how many messages a second `run-saga` works off, durably;
//! - [`searches`]: the searches that are measured, message by message.

pub mod calls;
pub mod cold_start;
pub mod prices;
pub mod saga;
pub mod searches;
