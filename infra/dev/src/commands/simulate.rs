//! Simulation of an application's functions under faults: random schedules, and the trace of a failing one.

use orders::workload::Customers;
use searches::simulation::Searches;
use system_tools::simulate;

use crate::args::{Simulate, WorkloadArg};

/// Runs schedules, or shows a single schedule. Returns `true` if no invariant was violated.
pub(crate) fn run(args: &Simulate) -> anyhow::Result<bool> {
    match args.workload {
        WorkloadArg::Searches => simulate::run(&Searches, &args.shared, "dev simulate"),
        WorkloadArg::Orders => simulate::run(&Customers, &args.shared, "dev simulate --workload orders"),
    }
}
