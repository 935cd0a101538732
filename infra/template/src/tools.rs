//! Tools for developers: the template of the deployment, queues and tables on local servers, and a diagram.

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
