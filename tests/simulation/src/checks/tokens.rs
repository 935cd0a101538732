//! The ledger after each change, and the size of what is stored.

use contracts::SearchId;
use dedup::{Claim, Release};

use crate::options::{Invariant, Mode};
use crate::world::{World, short};

impl World {
    /// An entry point granted tokens.
    pub(crate) fn granted(&mut self, search: SearchId, count: usize) {
        *self.checks.granted.entry(search).or_default() += count;
    }

    /// A claim was granted.
    pub(crate) fn claimed(&mut self, claim: &Claim) {
        *self.checks.unreleased.entry(claim.partition).or_default() += 1;
    }

    /// A claim was given back.
    pub(crate) fn released(&mut self, release: &Release) {
        let unreleased = self.checks.unreleased.entry(release.partition).or_default();
        *unreleased = unreleased.saturating_sub(1);
    }

    /// Every token that a search under way waits for is in the ledger, and little else is.
    pub(crate) fn check_tokens(&mut self, search: SearchId) {
        if self.config.mode == Mode::Optimistic {
            return;
        }
        let Some(item) = self.items.get(&search) else { return };
        let lost = self.documents.get(&search).and_then(|stored| {
            let content = &stored.document.content;
            let mut expected = content.expected.iter().filter(|_| content.state.completed_at().is_none());
            expected.find(|expected| !item.tokens.contains(&expected.token)).cloned()
        });
        if let Some(lost) = lost {
            self.violate(Invariant::TokensAreKept, || {
                format!("search {search} waits for token {}, which is not in the ledger", lost.token)
            });
            return;
        }
        // Each claim that was not given back leaves at most what it minted: one for each file, two more.
        let granted = self.checks.granted.get(&search).copied().unwrap_or(0);
        let unreleased = self.checks.unreleased.get(&search).copied().unwrap_or(0);
        let files = granted.saturating_sub(1);
        let bound = granted + (files + 1) + unreleased * (files + 2);
        let count = item.tokens.len();
        if count > bound {
            let detail = || format!("search {} has {count} tokens, more than {bound}", short(&search));
            self.violate(Invariant::Bounded, detail);
        }
    }

    /// Checks a document just stored.
    pub(crate) fn check_stored(&mut self, search: SearchId) {
        self.check_tokens(search);
        let Some(truth) = self.checks.truth.get(&search) else { return };
        let (files, withdrawals) = (truth.files.len(), usize::from(truth.withdrawn));
        let Some(stored) = self.documents.get(&search) else { return };
        let (content, outbox) = (&stored.document.content, &stored.document.outbox);
        // Started and the timeout; the upload and the outcome of each file; the withdrawal.
        let messages = 2 + 2 * files + withdrawals;
        let sizes = [
            ("processed messages", content.processed.len(), messages),
            ("expected messages", content.expected.len(), 1 + files),
            // A job for each message, a command for each file, the timeout and the end.
            ("outbox entries", outbox.len(), messages + files + 2),
        ];
        if let Some((what, count, bound)) = sizes.into_iter().find(|(_, count, bound)| count > bound) {
            let detail = || format!("search {} has {count} {what}, more than {bound}", short(&search));
            self.violate(Invariant::Bounded, detail);
        }
    }
}
