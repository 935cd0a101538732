//! Tests of the simulator with a minimal saga.
//!
//! - `desk`: the saga;
//! - `accounts`: a saga that never ends;
//! - `parcels`: two sagas that exchange messages;
//! - `clean`: no invariant is violated, and every fault occurs at every point;
//! - `mutants`: planted defects are found, in the engine and in a workload;
//! - `repeat`: a seed always gives the same schedule.

mod accounts;
mod clean;
mod desk;
mod mutants;
mod parcels;
mod repeat;
