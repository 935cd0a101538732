//! `dev`: the program of those who develop and operate the search import.
//!
//! - `simulate`: the functions under faults, from seeds;
//! - `bench`: what the functions cost and how fast they are;
//! - `check-template`: the deployment against the code;
//! - `diagram`: the state machine, drawn from the code;
//! - `provision`: an environment on servers of your own;
//! - `pump`: event sources for functions under a Lambda emulator;
//! - `sample`: sample events for them, that mean something in their environment.

mod args;
mod commands;

use std::process::ExitCode;

use clap::Parser;
use local::output;
use messages::store::chain;
use mimalloc::MiMalloc;

use crate::args::{Args, Command};
use crate::commands::{bench, check_template, diagram, provision, pump, sample, simulate};

/// As in the programs that are measured.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The exit code when something does not hold, or the command failed.
const FAILED: u8 = 1;

#[tokio::main]
async fn main() -> ExitCode {
    telemetry::start(telemetry::Audience::Person);
    let args = Args::parse();
    let done = match args.command {
        Command::Simulate(args) => simulate::run(&args),
        Command::Bench(args) => bench::run(&args).await,
        Command::CheckTemplate(args) => check_template::run(&args),
        Command::Diagram(args) => diagram::run(&args),
        Command::Provision(args) => provision::run(&args).await,
        Command::Pump(args) => pump::run(&args).await,
        Command::Sample(args) => sample::run(&args).await,
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(error) => {
            output::complain(&chain(error.as_ref()));
            ExitCode::from(FAILED)
        }
    }
}
