//! All functions in one process: what Lambda's event sources do in the cloud, a runner does here.
//!
//! - [`runner`]: delivers the queues to them until everything is done;
//! - [`http`]: the API and the uploads on a port of this machine;
//! - [`provision`]: queues, tables and a bucket on servers of one's own, for trying things out;
//! - [`trial`]: what can be made to go wrong on purpose.

pub mod http;
pub mod provision;
pub mod runner;
pub mod trial;

pub use runner::{Home, Runner};
pub use trial::{Copying, Trial};
