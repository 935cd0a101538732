//! The simulator on a saga as small as can be, and on itself.
//!
//! - `desk`: the saga;
//! - `clean`: nothing is violated, and every point was met by every fault;
//! - `mutants`: planted defects are found, in the engine and in a workload;
//! - `repeat`: a seed means the same schedule, always.

mod clean;
mod desk;
mod mutants;
mod repeat;
