//! Checks that only one worker at a time holds a partition.

use dedup::{Claim, Release};
use messages::{AttemptId, PartitionKey};

use crate::describe::short;
use crate::options::Invariant;
use crate::world::World;

impl World {
    /// Checks an admitted attempt: the previous holder has left its claim, has released the partition, has lost its
    /// lease, or is the same worker under the attempt of a refused claim.
    pub(crate) fn enter(&mut self, claim: &Claim) {
        let until = claim.now.checked_add(claim.lease).unwrap_or(jiff::Timestamp::MAX);
        let before = self.checks.inside.insert(claim.partition, (claim.attempt, until));
        if let Some((attempt, until)) = before
            && attempt != claim.attempt
            && until > claim.now
            && !self.has_left(claim.partition, attempt)
            && !(claim.supersedes == Some(attempt) && self.checks.refused.contains(&attempt))
        {
            let (partition, other) = (short(&claim.partition), short(&claim.attempt));
            let detail =
                || format!("attempts {} and {other} are inside partition {partition}", short(&attempt));
            self.violate(Invariant::OneInside, detail);
        }
    }

    fn has_left(&self, partition: PartitionKey, attempt: AttemptId) -> bool {
        let stored = self.documents.get(&partition);
        stored.is_some_and(|stored| stored.document.content.finished() == Some(attempt))
    }

    /// Records that an attempt released the partition, if it held it.
    pub(crate) fn leave(&mut self, release: &Release) {
        if self.checks.inside.get(&release.partition).is_some_and(|(inside, _)| *inside == release.attempt) {
            self.checks.inside.remove(&release.partition);
        }
    }
}
