//! Tools for developers and operators: the template of the deployment, queues and tables on local servers, a diagram, and
//! operation.

use std::process::ExitCode;

use clap::Parser;
use onceward::tools::{SystemCommand, finish};
use {{crate_name}}::SYSTEM;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: SystemCommand,
}

#[tokio::main]
async fn main() -> ExitCode {
    finish(Args::parse().command.run(&SYSTEM).await)
}
