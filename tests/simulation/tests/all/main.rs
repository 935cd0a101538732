//! The simulator on the shipped functions, and on itself.
//!
//! - `shipped`: nothing is violated, and every point was met by every fault;
//! - `mutants`: planted defects are found;
//! - `repeat`: a seed means the same schedule, always.

mod mutants;
mod repeat;
mod shipped;
