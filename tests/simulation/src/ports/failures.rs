//! Failures, and the operations on them. These calls never fail, and the scheduler does not interleave them. Some are
//! answered with earlier data. A worker that runs the steps of an operation crashes between them, at its calls of other
//! ports.

mod port;

use std::collections::BTreeMap;

use saga::failures::{Change, Failure, FailureId, FailureStatus, Operation, OperationId, Origin, Selection};

/// The failures of a world, and the operations on them.
#[derive(Clone, Default)]
pub(crate) struct FailureTables {
    failures: BTreeMap<FailureId, Failure>,
    operations: BTreeMap<OperationId, Operation>,
}

impl FailureTables {
    fn change(&mut self, Change { id, revision, next }: &Change) -> bool {
        if self.failures.get(id).map_or(0, |failure| failure.revision) != *revision {
            return false;
        }
        match next {
            Some(next) => {
                self.failures.insert(*id, Failure { revision: revision + 1, ..next.clone() });
            }
            None => {
                self.failures.remove(id);
            }
        }
        true
    }

    fn advance(&mut self, revision: u64, operation: &Operation) -> bool {
        let stored = self.operations.get(&operation.id).map_or(0, |stored| stored.revision);
        let is_another = |running: &Operation| running.id != operation.id;
        let is_refused = !operation.phase.has_ended() && self.running().is_some_and(is_another);
        if stored != revision || is_refused {
            return false;
        }
        let next = Operation { revision: revision + 1, ..operation.clone() };
        self.operations.insert(operation.id, next);
        true
    }

    /// Returns the operation that has not ended.
    pub(crate) fn running(&self) -> Option<&Operation> {
        self.operations.values().find(|operation| !operation.phase.has_ended())
    }

    fn of<'a>(&'a self, selection: &'a Selection) -> impl Iterator<Item = &'a Failure> {
        self.failures.values().filter(|failure| selection.has(failure))
    }

    /// Returns the dead letters that are recorded as failures.
    fn dead_letters(&self) -> impl Iterator<Item = &Failure> {
        self.failures.values().filter(|failure| matches!(failure.origin, Origin::DeadLetter { .. }))
    }

    /// Returns the messages of all dead letters, in any state.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &str> {
        self.dead_letters().map(|failure| failure.body.as_str())
    }

    /// Returns the messages of dead letters that an operator has retried.
    pub(crate) fn retried(&self) -> impl Iterator<Item = &str> {
        self.dead_letters().filter(|failure| failure.retried > 0).map(|failure| failure.body.as_str())
    }

    /// Returns the messages of dead letters that an operator has not handled yet.
    pub(crate) fn open(&self) -> impl Iterator<Item = &str> {
        let is_open = |failure: &&Failure| {
            matches!(failure.state.standing(), FailureStatus::Open | FailureStatus::Retrying)
        };
        self.dead_letters().filter(is_open).map(|failure| failure.body.as_str())
    }
}
