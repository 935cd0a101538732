//! All functions in one process, on the embedded stores: what Lambda's event sources do in the cloud, a runner
//! does here.
//!
//! - [`functions`]: each function, with the ports it uses and no others;
//! - [`runner`]: delivers the queues to them until everything is done;
//! - [`trial`]: what can be made to go wrong on purpose.

pub mod functions;
pub mod runner;
pub mod trial;

pub use functions::Functions;
pub use runner::Runner;
pub use trial::Trial;
