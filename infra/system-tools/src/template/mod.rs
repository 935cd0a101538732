//! The SAM template of a system. This module generates a template from the table of the system, and checks any template
//! against the table, which `cfn-lint` and `checkov` cannot do.
//!
//! - [`mod@generate`]: a template from the table;
//! - [`source`]: a template as written, with its loops expanded;
//! - [`resolve`]: a template for given values of its parameters;
//! - [`view`]: functions, queues and roles of a template;
//! - [`checks`]: the checks. Each check is a pure function from a template to findings.
//!
//! The requirements of the functions are not listed here. Their settings come from the configuration
//! ([`backend::Config::names_of`]), their services and queues from their declarations ([`saga::Function`]), without
//! which the adapters do not start, and the specification of each queue from the table.

pub mod checks;
pub mod generate;
pub mod resolve;
pub mod source;
pub mod view;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use local::output;
use saga::System;

use crate::DocumentStore;

pub use checks::{Finding, Rules, check};
pub use generate::generate;
pub use resolve::{Limits, Template};
pub use source::{Source, SourceError};

/// The options of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Compare this template with the functions instead of printing one
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    pub check: Option<PathBuf>,
    /// Database of the documents
    #[arg(long, value_enum, default_value_t)]
    pub store: DocumentStore,
}

/// Prints a template for the functions of a system, or the findings about an existing one. Returns `false` if there are
/// findings.
pub fn run<P>(system: &System<P>, args: &Args) -> anyhow::Result<bool> {
    let Some(path) = &args.check else {
        output::block(&generate(system, args.store))?;
        return Ok(true);
    };
    let reading = || format!("reading {}", path.display());
    let text = std::fs::read_to_string(path).with_context(reading)?;
    let template = Template::new(&Source::read(&text).with_context(reading)?, &BTreeMap::new());
    let findings = check(system, &Rules::default(), &template);
    for finding in &findings {
        output::line(&finding.to_string())?;
    }
    if findings.is_empty() {
        output::line(&format!("{}: nothing is wrong", path.display()))?;
    }
    Ok(findings.is_empty())
}
