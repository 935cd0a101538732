//! Checks of the deployment's templates against the code that they deploy, which `cfn-lint` and `checkov` cannot do.
//!
//! - [`system_tools::template`]: the checks of any system;
//! - [`environments`]: the values in `config`;
//! - [`checks`]: the checks of this application. Each check is a pure function from a template to findings.

pub mod checks;
pub mod environments;

pub use checks::{check, check_deployed};
pub use system_tools::template::{Finding, Limits, Source, SourceError, Template, view};
