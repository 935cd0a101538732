//! All functions in one process: what Lambda's event sources do in the cloud, a runner does here.
//!
//! - [`runner`]: delivers the queues to them until everything is done;
//! - `workers`: the tasks and threads that it delivers on;
//! - [`http`]: the API and the uploads on a port of this machine;
//! - [`trial`]: what can be made to go wrong on purpose;
//! - [`output`], [`mod@stop`]: the terminal of a program that runs them, and its end.

pub mod http;
pub mod output;
pub mod runner;
pub mod stop;
pub mod trial;
mod workers;

pub use runner::{Home, Runner};
pub use trial::{Copying, Trial};
