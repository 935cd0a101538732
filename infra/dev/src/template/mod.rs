//! Checks of the deployment's template against the code that it deploys, which `cfn-lint` and `checkov` cannot do.
//!
//! - [`source`]: a template as written, with its loops expanded;
//! - [`resolve`]: a template for given values of its parameters;
//! - [`environments`]: the values in `config`;
//! - [`view`]: functions, queues and roles of a template;
//! - [`checks`]: the checks. Each is a pure function from a template to findings.
//!
//! The requirements of the functions are not listed here. Their settings come from the configuration
//! ([`backend::Config::names_of`]), their services and queues from their declarations ([`saga::Function`]), without
//! which the adapters do not start, and the specification of each queue from the table ([`functions::SYSTEM`]).

pub mod checks;
pub mod environments;
pub mod resolve;
pub mod source;
pub mod view;

pub use checks::{Finding, check, check_deployed};
pub use resolve::{Limits, Template};
pub use source::{Source, SourceError};
