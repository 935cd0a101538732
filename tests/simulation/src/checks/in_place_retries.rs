//! Checks that only conflicts are retried in place.

use messages::PartitionKey;

use crate::describe::short;
use crate::options::Invariant;
use crate::world::World;

impl World {
    /// Records that a call of the current worker failed permanently for this batch.
    pub(crate) fn record_permanent_failure(&mut self, partition: PartitionKey) {
        self.checks.abandoned_by.extend(self.acting.map(|process| (process, partition)));
    }

    /// Records partitions that the current worker could not load. If the worker runs the saga, its attempt ends.
    pub(crate) fn load_failed(&mut self, partitions: &[PartitionKey]) {
        let runs_saga = self.acting.is_some_and(|process| self.runs_saga.get(process) == Some(&true));
        if runs_saga {
            partitions.iter().for_each(|partition| self.record_permanent_failure(*partition));
        }
    }

    /// Records that the current worker has received another batch.
    pub(crate) fn begin_batch(&mut self) {
        let acting = self.acting;
        acting.into_iter().for_each(|process| self.stale_reads.begin(process));
        self.checks.abandoned_by.retain(|(process, _)| Some(*process) != acting);
    }

    /// Checks that a worker does not return to an abandoned partition before its message is redelivered.
    pub(crate) fn check_scope(&mut self, partition: PartitionKey) {
        // A worker that takes the steps of an operation on failures has no message, and repeats a failed step.
        let acting = self.acting.filter(|process| !self.retriers.contains(process));
        if acting.is_some_and(|process| self.checks.abandoned_by.contains(&(process, partition))) {
            let detail =
                || format!("partition {} was tried again in place after a failure", short(&partition));
            self.violate(Invariant::RetriesAreScoped, detail);
        }
    }
}
