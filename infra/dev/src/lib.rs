//! What the `dev` program is made of, for its tests and for those of `search-import`.
//!
//! - [`mod@bench`]: measures the shipped functions, and the readers by themselves;
//! - [`template`]: checks of the deployment's template against the code that it deploys;
//! - [`provision`]: queues, tables and a bucket on servers of your own, for trying things out and for tests.

pub mod bench;
pub mod provision;
pub mod template;
