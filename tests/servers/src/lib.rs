//! Where the real servers are that the tests run on.

pub mod mongo;
