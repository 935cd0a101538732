//! Runs all functions of an application in one process. The runner replaces Lambda's event sources.
//!
//! - [`runner`]: delivers messages from the queues to the functions;
//! - `workers`: the tasks and threads of the runner;
//! - [`http`]: the HTTP API and the uploads;
//! - [`fault_injection`]: duplicates, reordering and crashes on purpose;
//! - [`output`], [`mod@stop`], [`user`]: terminal output, shutdown and user of the program.
//!
//! # Guarantees
//!
//! - Every message is delivered as on AWS: at least once, with visibility timeouts, receive limits and dead-letter queues.
//! - The runner may be killed at any time. Its next start continues the work.
//! - A function can only use the queues and services that its table declares.
//!
//! # Example
//!
//! A customer sends an event, while all functions run and every message is delivered three times:
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use local::{FaultInjection, Runner};
//! use messages::{Host, PartitionKey, messages};
//! use saga::{Engine, SAGA, System};
//!
//! messages! { pub enum Change of "invoices" to SAGA { Paid {} = 1 } }
//!
//! # type Failure = Box<dyn std::error::Error>;
//! # async fn pay(system: &'static System<Engine>, dir: &Path, host: Arc<dyn Host>) -> Result<(), Failure> {
//! let faults = FaultInjection { copies: 3, ..FaultInjection::default() };
//! let runner = Runner::open(system, dir, host, faults).await?;
//! let entry = runner.ports().entry_point("shop")?;
//! let customer = async {
//!     let mut session = entry.session(PartitionKey::named("invoices", "17"));
//!     session.send(&Change::Paid {})?;
//!     session.commit().await?;
//!     runner.settled().await?;
//!     Ok::<(), Failure>(())
//! };
//! runner.run_until(customer).await?
//! # }
//! ```

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
