//! `dev`, the program for developers and operators of the search import.
//!
//! - `simulate`: runs the functions under random faults;
//! - `bench`: runs the benchmarks;
//! - `check-template`: checks the deployment's template against the code;
//! - `diagram`: prints the state machine;
//! - `new`: creates a project on the engine;
//! - `provision`: creates an environment on local servers;
//! - `pump`: event sources for functions under a Lambda emulator;
//! - `sample`: prepares sample events for them.

mod args;
mod commands;

use std::process::ExitCode;

use clap::Parser;
use local::output;
use messages::store::chain;
use mimalloc::MiMalloc;

use crate::args::{Args, Command};
use crate::commands::{bench, check_template, diagram, new, provision, sample, simulate};

/// The allocator of the measured programs.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The exit code for a failed check or command.
const FAILED: u8 = 1;

#[tokio::main]
async fn main() -> ExitCode {
    telemetry::start(telemetry::LogFormat::Human);
    let args = Args::parse();
    let done = match args.command {
        Command::Simulate(args) => simulate::run(&args),
        Command::Bench(args) => bench::run(&args).await,
        Command::CheckTemplate(args) => check_template::run(&args),
        Command::Diagram(args) => diagram::run(&args),
        Command::New(args) => new::run(&args),
        Command::Provision(args) => provision::run(&args).await,
        Command::Pump(args) => system_tools::pump::run(&functions::SYSTEM, &args).await,
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
