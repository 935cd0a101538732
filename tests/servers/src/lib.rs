//! Where the real servers are that the tests run on.
//!
//! `make test` starts them for the tests, `make services` for longer; `infra/services.py env` prints the variables
//! that lead to them.

pub mod amazon;
pub mod mongo;
