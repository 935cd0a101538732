//! What was given up. These calls never fail and are not the scheduler's: an operator's own redriving is what is simulated,
//! and the crashes of this keeper are tried in the scenarios.

use std::collections::BTreeMap;

use async_trait::async_trait;
use messages::StoreError;
use saga::KeepFailures;
use saga::failures::{Act, Change, Failure, FailureId, Group, Operation, OperationId, Place, Selection};

use crate::port::Port;

/// What was given up in a world.
#[derive(Default)]
pub(crate) struct Kept(BTreeMap<FailureId, Failure>);

impl Kept {
    fn change(&mut self, Change { id, revision, next }: &Change) -> bool {
        if self.0.get(id).map_or(0, |failure| failure.revision) != *revision {
            return false;
        }
        match next {
            Some(next) => {
                self.0.insert(*id, Failure { revision: revision + 1, ..next.clone() });
            }
            None => {
                self.0.remove(id);
            }
        }
        true
    }
}

#[async_trait]
impl KeepFailures for Port {
    async fn failures(&self, ids: &[FailureId]) -> Result<Vec<Option<Failure>>, StoreError> {
        Ok(self.perform(|world| ids.iter().map(|id| world.failures.0.get(id).cloned()).collect()))
    }

    async fn change(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError> {
        Ok(self.perform(|world| changes.iter().map(|change| world.failures.change(change)).collect()))
    }

    async fn select(
        &self,
        selection: &Selection,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<Failure>, StoreError> {
        let place = |failure: &Failure| (failure.last_seen, failure.id);
        let follows =
            |failure: &&Failure| after.is_none_or(|after| place(failure) < (after.last_seen, after.id));
        Ok(self.perform(|world| {
            let selected = world.failures.0.values().filter(|failure| selection.has(failure)).filter(follows);
            let mut selected: Vec<Failure> = selected.cloned().collect();
            selected.sort_by_key(|failure| std::cmp::Reverse(place(failure)));
            selected.truncate(limit);
            selected
        }))
    }

    async fn groups(&self, _: &Selection) -> Result<Vec<Group>, StoreError> {
        Ok(Vec::new())
    }

    async fn operation(&self, _: OperationId) -> Result<Option<Operation>, StoreError> {
        Ok(None)
    }

    async fn operations(&self, _: usize) -> Result<Vec<Operation>, StoreError> {
        Ok(Vec::new())
    }

    async fn running(&self) -> Result<Option<Operation>, StoreError> {
        Ok(None)
    }

    async fn advance(&self, _: u64, _: &Operation) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn note(&self, _: &Act) -> Result<(), StoreError> {
        Ok(())
    }

    async fn acts(&self, _: usize) -> Result<Vec<Act>, StoreError> {
        Ok(Vec::new())
    }
}
