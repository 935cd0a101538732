//! Tools for the developers and operators of any system. A program with [`SystemCommand`] needs the system's table. A
//! program with [`Command`] also simulates the system, and needs its workload:
//!
//! ```ignore
//! #[derive(clap::Parser)]
//! struct Args {
//!     #[command(subcommand)]
//!     command: system_tools::Command,
//! }
//!
//! #[tokio::main]
//! async fn main() -> std::process::ExitCode {
//!     system_tools::finish(Args::parse().command.run(&Customers).await)
//! }
//! ```
//!
//! - [`simulate`]: runs the functions under random faults;
//! - [`provision`]: creates queues and tables on local servers;
//! - [`pump`]: event sources for functions under a Lambda emulator;
//! - [`diagram`]: draws queues and functions;
//! - [`mod@operate`]: shows and changes instances, failures, outboxes and health, also as an HTTP API with a page;
//! - [`template`]: writes a SAM template of queues, functions and roles, or checks one.

pub mod diagram;
pub mod operate;
pub mod provision;
pub mod pump;
pub mod simulate;
pub mod template;

use std::process::ExitCode;

use local::output;
use messages::store::chain;
use saga::System;
use simulation::Workload;

pub use provision::Provision;

/// The database of a system's documents on AWS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DocumentStore {
    /// A MongoDB replica set
    #[default]
    Mongodb,
    /// A DynamoDB table
    Dynamodb,
}

/// The commands for a system with a workload.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Run the functions under schedules of faults, and check the invariants
    Simulate(simulate::Args),
    /// The commands that need no workload
    #[command(flatten)]
    System(SystemCommand),
}

/// The commands for a system.
#[derive(Debug, clap::Subcommand)]
pub enum SystemCommand {
    /// Create queues and tables on local servers, and print their settings
    Provision(provision::Args),
    /// Invoke functions under a Lambda emulator for queues and the schedule, like Lambda's event sources
    Pump(pump::Args),
    /// Draw the queues and the functions behind them
    Diagram,
    /// Show and change instances, failures, outboxes and health, as an operator
    Operate(operate::Args),
    /// Print a SAM template that deploys the functions, or check one
    Template(template::Args),
}

impl Command {
    /// Performs the command for the system of a workload. Returns `true` on success.
    ///
    /// # Errors
    /// Returns an error if the table of the system is wrong, or as the command.
    pub async fn run<W: Workload>(&self, workload: &W) -> anyhow::Result<bool> {
        match self {
            Self::Simulate(args) => {
                workload.system().check()?;
                simulate::run(workload, args, "simulate")
            }
            Self::System(command) => command.run(workload.system()).await,
        }
    }
}

impl SystemCommand {
    /// Performs the command for a system. Returns `true` on success.
    ///
    /// # Errors
    /// Returns an error if the table of the system is wrong, or as the command.
    pub async fn run<P>(&self, system: &'static System<P>) -> anyhow::Result<bool> {
        system.check()?;
        match self {
            Self::Provision(args) => provision::run(system, args).await,
            Self::Pump(args) => pump::run(system, args).await,
            Self::Diagram => {
                output::block(&diagram::mermaid(system))?;
                Ok(true)
            }
            Self::Operate(args) => operate::run(system, args).await,
            Self::Template(args) => template::run(system, args),
        }
    }
}

/// Returns the exit code of a program for the result of a command, and prints its error.
pub fn finish(result: anyhow::Result<bool>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            output::complain(&chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}
