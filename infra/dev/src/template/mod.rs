//! Checks of the deployment's template against the code that it deploys: what `cfn-lint` and `checkov` cannot know.
//!
//! - [`source`]: a template as it is written;
//! - [`resolve`]: what it says for one choice of its parameters;
//! - [`environments`]: the choices that `samconfig.toml` makes;
//! - [`view`]: functions, queues and roles in it;
//! - [`checks`]: what must hold. Each is a pure function from a template to findings.
//!
//! What the functions need is not listed here: their settings come from reading the configuration
//! ([`backend::Config::names`]), their services and queues from what each says it uses ([`saga::Function`]), which the
//! adapters refuse to start without, and what is agreed about each queue from the table ([`functions::SYSTEM`]).

pub mod checks;
pub mod environments;
pub mod resolve;
pub mod source;
pub mod view;

pub use checks::{Finding, check, check_deployed};
pub use resolve::Template;
pub use source::{Source, SourceError};
