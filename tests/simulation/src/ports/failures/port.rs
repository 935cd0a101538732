//! The port of the failures.

use async_trait::async_trait;
use messages::StoreError;
use saga::KeepFailures;
use saga::failures::{
    AuditEntry, CauseGroup, Change, Failure, FailureCursor, FailureId, Operation, OperationId, Selection,
    State,
};

use crate::options::Mutant;
use crate::port::Port;
use crate::world::World;

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

    /// All failures have the same cause.
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
