//! Who is inside a partition: one worker at a time.

use dedup::{Claim, Release};

use crate::access::short;
use crate::options::Invariant;
use crate::world::World;

impl World {
    /// An attempt was admitted. Whoever was inside before has given the partition back, or has lost its lease.
    pub(crate) fn enter(&mut self, claim: &Claim) {
        let until = claim.now.checked_add(claim.lease).unwrap_or(jiff::Timestamp::MAX);
        let before = self.checks.inside.insert(claim.partition, (claim.attempt, until));
        if let Some((attempt, until)) = before
            && attempt != claim.attempt
            && until > claim.now
        {
            let (partition, other) = (short(&claim.partition), short(&claim.attempt));
            let detail =
                || format!("attempts {} and {other} are inside partition {partition}", short(&attempt));
            self.violate(Invariant::OneInside, detail);
        }
    }

    /// An attempt gave the partition back, if it was inside.
    pub(crate) fn leave(&mut self, release: &Release) {
        if self.checks.inside.get(&release.partition).is_some_and(|(inside, _)| *inside == release.attempt) {
            self.checks.inside.remove(&release.partition);
        }
    }
}
