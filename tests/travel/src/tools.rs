//! Tools for the developers of the travel booking: simulation, provisioning on local servers, event sources and a
//! diagram.

use std::process::ExitCode;

use clap::Parser;
use system_tools::{Command, finish};
use travel::workload::{ListTravellers, MachineTravellers};

#[derive(Parser)]
#[command(max_term_width = 100)]
struct Args {
    /// Use the list of steps instead of the state machine
    #[arg(long)]
    steps: bool,
    #[command(subcommand)]
    command: Command,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Args { steps, command } = Args::parse();
    let done = if steps {
        command.run(&ListTravellers::default()).await
    } else {
        command.run(&MachineTravellers::default()).await
    };
    finish(done)
}
