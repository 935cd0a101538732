//! Defects that can be planted, each a few lines between a function and its ports. Each mutant breaks the protocol in
//! the way that its name describes. The simulation must find all of them to be trusted.

mod between;
mod planted;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use messages::{AttemptId, PartitionKey, Token};
use saga::{Document, Persist};

pub(crate) use planted::around;

/// The memory of the mutants.
#[derive(Default)]
pub(crate) struct Notes {
    /// The tokens in the answer to each attempt's claim.
    answers: BTreeMap<AttemptId, BTreeSet<Token>>,
    /// The ends of leases, according to the clocks of the holders.
    leases: BTreeMap<AttemptId, Timestamp>,
    /// The attempts that stored a change.
    persisted: BTreeSet<AttemptId>,
    /// The expected messages of a partition when a worker last loaded it.
    expected: BTreeMap<(usize, PartitionKey), BTreeSet<Token>>,
    /// The documents that each worker loaded last, for the mutant that does not read them again.
    pub(crate) loaded: BTreeMap<(usize, PartitionKey), Option<Document>>,
    /// The grants that a worker makes after it has sent the events.
    late_grants: BTreeMap<usize, Vec<(PartitionKey, Vec<Token>)>>,
    /// The writes of a worker that are in doubt.
    in_doubt: BTreeMap<(usize, PartitionKey), Persist>,
}
