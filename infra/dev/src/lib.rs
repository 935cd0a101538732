//! The library of the `dev` program, for its tests and those of `search-import`.
//!
//! - [`mod@bench`]: benchmarks of the functions and of the readers;
//! - [`template`]: checks of the deployment's template against the code that it deploys;
//! - [`provision`]: queues, tables and a bucket on local servers, for development and tests.

pub mod bench;
pub mod provision;
pub mod template;
