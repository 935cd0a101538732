//! Failures, and the operations on them. These calls never fail and are not the scheduler's. A worker that takes the steps
//! of an operation dies between them, at its calls of other ports.

use std::collections::BTreeMap;

use async_trait::async_trait;
use messages::StoreError;
use saga::KeepFailures;
use saga::failures::{
    AuditEntry, CauseGroup, Change, Failure, FailureCursor, FailureId, FailureStatus, Operation, OperationId,
    Origin, Selection, State,
};

use crate::options::Mutant;
use crate::port::Port;
use crate::world::World;

/// The failures of a world, and the operations on them.
#[derive(Default)]
pub(crate) struct Kept {
    failures: BTreeMap<FailureId, Failure>,
    operations: BTreeMap<OperationId, Operation>,
}

impl Kept {
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

    fn running(&self) -> Option<&Operation> {
        self.operations.values().find(|operation| !operation.phase.has_ended())
    }

    fn of<'a>(&'a self, selection: &'a Selection) -> impl Iterator<Item = &'a Failure> {
        self.failures.values().filter(|failure| selection.has(failure))
    }

    /// Dead letters that are failures now.
    fn dead_letters(&self) -> impl Iterator<Item = &Failure> {
        self.failures.values().filter(|failure| matches!(failure.origin, Origin::DeadLetter { .. }))
    }

    /// The messages of all dead letters, in whichever state.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &str> {
        self.dead_letters().map(|failure| failure.body.as_str())
    }

    /// The messages of dead letters that an operator has retried.
    pub(crate) fn retried(&self) -> impl Iterator<Item = &str> {
        self.dead_letters().filter(|failure| failure.retried > 0).map(|failure| failure.body.as_str())
    }

    /// The messages of dead letters that an operator has not dealt with yet.
    pub(crate) fn open(&self) -> impl Iterator<Item = &str> {
        let is_open = |failure: &&Failure| {
            matches!(failure.state.standing(), FailureStatus::Open | FailureStatus::Retrying)
        };
        self.dead_letters().filter(is_open).map(|failure| failure.body.as_str())
    }
}

impl World {
    fn change_failure(&mut self, change: &Change) -> bool {
        let mut change = change.clone();
        if let Some(next) = change.next.as_mut().filter(|_| self.has(Mutant::RetriedBeforeSent))
            && let State::Retrying { since, .. } = next.state
        {
            next.state = State::Retried { at: since };
        }
        self.failures.change(&change)
    }
}

#[async_trait]
impl KeepFailures for Port {
    async fn failures(&self, ids: &[FailureId]) -> Result<Vec<Option<Failure>>, StoreError> {
        Ok(self.perform(|world| ids.iter().map(|id| world.failures.failures.get(id).cloned()).collect()))
    }

    async fn change(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError> {
        Ok(self.perform(|world| changes.iter().map(|change| world.change_failure(change)).collect()))
    }

    async fn select(
        &self,
        selection: &Selection,
        after: Option<FailureCursor>,
        limit: usize,
    ) -> Result<Vec<Failure>, StoreError> {
        let place = |failure: &Failure| (failure.last_seen, failure.id);
        let follows =
            |failure: &&Failure| after.is_none_or(|after| place(failure) < (after.last_seen, after.id));
        Ok(self.perform(|world| {
            let selected = world.failures.of(selection).filter(follows);
            let mut selected: Vec<Failure> = selected.cloned().collect();
            selected.sort_by_key(|failure| std::cmp::Reverse(place(failure)));
            selected.truncate(limit);
            selected
        }))
    }

    /// All failures count as of one cause.
    async fn groups(&self, selection: &Selection) -> Result<Vec<CauseGroup>, StoreError> {
        Ok(self.perform(|world| {
            let Some(first) = world.failures.of(selection).next() else { return Vec::new() };
            vec![CauseGroup {
                fingerprint: first.fingerprint.clone(),
                reason: first.reason.clone(),
                messages: world.failures.of(selection).map(|failure| failure.message.clone()).collect(),
                count: world.failures.of(selection).count() as u64,
                first_seen: first.first_seen,
                last_seen: first.last_seen,
            }]
        }))
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        Ok(self.perform(|world| world.failures.operations.get(&id).cloned()))
    }

    async fn operations(&self, limit: usize) -> Result<Vec<Operation>, StoreError> {
        Ok(self.perform(|world| world.failures.operations.values().rev().take(limit).cloned().collect()))
    }

    async fn running(&self) -> Result<Option<Operation>, StoreError> {
        Ok(self.perform(|world| world.failures.running().cloned()))
    }

    async fn advance(&self, revision: u64, operation: &Operation) -> Result<bool, StoreError> {
        Ok(self.perform(|world| world.failures.advance(revision, operation)))
    }

    async fn note(&self, _: &AuditEntry) -> Result<(), StoreError> {
        Ok(())
    }

    async fn acts(&self, _: usize) -> Result<Vec<AuditEntry>, StoreError> {
        Ok(Vec::new())
    }
}
