//! The port of the failures.

use async_trait::async_trait;
use messages::StoreError;
use saga::KeepFailures;
use saga::failures::{
    AuditEntry, CauseGroup, Causes, Change, Failure, FailureCursor, FailureId, Operation, OperationId,
    Selection, State,
};

use crate::options::Mutant;
use crate::port::Port;
use crate::ports::failures::FailureTables;
use crate::world::{EARLIER_FAILURES, World};

impl World {
    fn change_failure(&mut self, change: &Change) -> bool {
        let mut change = change.clone();
        if let Some(next) = change.next.as_mut().filter(|_| self.has(Mutant::RetriedBeforeSent))
            && let State::Retrying { since, .. } = next.state
        {
            next.state = State::Retried { at: since };
        }
        self.stale_reads.keep_failures(self.acting, &self.failures);
        self.failures.change(&change)
    }

    /// The failures as a call finds them.
    fn failures_found(&mut self) -> &FailureTables {
        match self.stale_reads.failures(self.acting) {
            Some(earlier) => {
                self.coverage.meet(EARLIER_FAILURES);
                earlier
            }
            None => &self.failures,
        }
    }
}

#[async_trait]
impl KeepFailures for Port {
    async fn failures(&self, ids: &[FailureId]) -> Result<Vec<Option<Failure>>, StoreError> {
        Ok(self.perform(|world| {
            let found = world.failures_found();
            ids.iter().map(|id| found.failures.get(id).cloned()).collect()
        }))
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
            let selected = world.failures_found().of(selection).filter(follows);
            let mut selected: Vec<Failure> = selected.cloned().collect();
            selected.sort_by_key(|failure| std::cmp::Reverse(place(failure)));
            selected.truncate(limit);
            selected
        }))
    }

    /// All failures have the same cause.
    async fn causes(&self, selection: &Selection) -> Result<Causes, StoreError> {
        Ok(self.perform(|world| {
            let found = world.failures_found();
            let Some(first) = found.of(selection).next() else { return Causes::default() };
            let group = CauseGroup {
                fingerprint: first.fingerprint.clone(),
                reason: first.reason.clone(),
                messages: found.of(selection).map(|failure| failure.message.clone()).collect(),
                count: found.of(selection).count() as u64,
                first_seen: found.of(selection).map(|failure| failure.first_seen).min().unwrap_or_default(),
                last_seen: found.of(selection).map(|failure| failure.last_seen).max().unwrap_or_default(),
            };
            Causes { count: group.count, last_seen: Some(group.last_seen), groups: vec![group] }
        }))
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        Ok(self.perform(|world| world.failures_found().operations.get(&id).cloned()))
    }

    async fn operations(&self, limit: usize) -> Result<Vec<Operation>, StoreError> {
        Ok(self.perform(|world| world.failures.operations.values().rev().take(limit).cloned().collect()))
    }

    async fn running(&self) -> Result<Option<Operation>, StoreError> {
        Ok(self.perform(|world| world.failures_found().running().cloned()))
    }

    async fn advance(&self, revision: u64, operation: &Operation) -> Result<bool, StoreError> {
        Ok(self.perform(|world| {
            world.stale_reads.keep_failures(world.acting, &world.failures);
            world.failures.advance(revision, operation)
        }))
    }

    async fn note(&self, _: &AuditEntry) -> Result<(), StoreError> {
        Ok(())
    }

    async fn audit_entries(&self, _: usize) -> Result<Vec<AuditEntry>, StoreError> {
        Ok(Vec::new())
    }
}
