//! Runs all functions of an application in one process. The runner replaces Lambda's event sources.
//!
//! - [`runner`]: delivers messages from the queues to the functions;
//! - `workers`: the tasks and threads of the runner;
//! - [`http`]: the HTTP API and the uploads;
//! - [`fault_injection`]: duplicates, reordering and crashes on purpose;
//! - [`output`], [`mod@stop`], [`user`]: terminal output, shutdown and user of the program.

pub mod fault_injection;
pub mod http;
pub mod output;
pub mod runner;
pub mod stop;
pub mod user;
mod workers;

pub use fault_injection::{DuplicatingSender, FaultInjection};
pub use runner::{Home, OpenRunnerError, Runner};
pub use user::user_name;
