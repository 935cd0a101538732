//! Defects that can be planted, each a few lines between a function and its ports. A protocol that has one of them is
//! broken in the way its name says; the simulation is worth something only because it finds every one of them.

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
    /// The ends of leases, by the clocks of those who took them.
    leases: BTreeMap<AttemptId, Timestamp>,
    /// The attempts that stored something.
    persisted: BTreeSet<AttemptId>,
    /// The expected messages of a partition when a worker last loaded it.
    expected: BTreeMap<(usize, PartitionKey), BTreeSet<Token>>,
    /// The documents that each worker loaded last, for the mutant that trusts them.
    pub(crate) loaded: BTreeMap<(usize, PartitionKey), Option<Document>>,
    /// The writes of a worker that are in doubt.
    in_doubt: BTreeMap<(usize, PartitionKey), Persist>,
}
