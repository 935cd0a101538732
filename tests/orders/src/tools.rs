//! Tools for the developers and operators of orders: simulation, provisioning on local servers, event sources, a diagram,
//! and operation.

use std::process::ExitCode;

use clap::Parser;
use orders::workload::Customers;
use system_tools::{Command, finish};

#[derive(Parser)]
#[command(max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[tokio::main]
async fn main() -> ExitCode {
    finish(Args::parse().command.run(&Customers).await)
}
