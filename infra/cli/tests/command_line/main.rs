//! The program as people and scripts meet it: the built binary, its output and its exit code.

mod bad_input;
mod faults;
mod inspect;
mod program;
mod readme;
mod samples;
