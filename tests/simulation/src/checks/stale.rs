//! Duplicates that come after the end, by a moment or by months.

use std::collections::BTreeMap;

use contracts::{FileId, Job, SearchId, Token};
use outbox::Queue;

use crate::options::{Invariant, Mode};
use crate::world::World;

/// A day in milliseconds.
const DAY_MS: u64 = 86_400_000;

/// How long after the end duplicates come: at once; when the documents have expired; when the ledger's items have.
/// Optimistic mode promises nothing once a document has expired.
pub(crate) fn ages(mode: Mode) -> &'static [u64] {
    match mode {
        Mode::Ledger => &[0, 8 * DAY_MS, 40 * DAY_MS],
        Mode::Optimistic => &[0, 2 * DAY_MS],
    }
}

/// What a duplicate may not change.
#[derive(PartialEq)]
pub(crate) struct Snapshot {
    versions: BTreeMap<SearchId, u64>,
    jobs: BTreeMap<SearchId, Job>,
    effects: usize,
    changed: usize,
    parsed: usize,
    studies: BTreeMap<(SearchId, FileId), usize>,
}

impl World {
    /// What is there now. What is parsed counts only for files that were not given up: of those nobody sees any
    /// studies, and a late copy of the command may well succeed.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let versions = self.documents.iter().map(|(id, stored)| (*id, stored.document.version));
        let parsed = self.checks.parsed.iter().filter(|(key, _)| !self.checks.given_up.contains(key));
        let kept = self.studies.iter().filter(|(key, _)| !self.checks.given_up.contains(key));
        Snapshot {
            versions: versions.collect(),
            jobs: self.jobs.clone(),
            effects: self.checks.effects.len(),
            changed: self.checks.changed.len(),
            parsed: parsed.map(|(_, commands)| commands.len()).sum(),
            studies: kept.map(|(key, count)| (*key, *count)).collect(),
        }
    }

    /// Sends copies of some of the messages that were ever sent.
    pub(crate) fn send_stale(&mut self) {
        let all: Vec<(Queue, String)> = self.checks.sent.values().cloned().collect();
        for _ in 0..self.rng.between(1, 6) {
            if all.is_empty() {
                return;
            }
            let (queue, body) = &all[self.rng.index(all.len())];
            self.stats.stale += 1;
            self.replay(*queue, body);
        }
    }

    /// Sends a copy of one message that was sent before.
    pub(crate) fn send_any_again(&mut self) {
        let count = self.checks.sent.len();
        let chosen = self.rng.index(count);
        if let Some((queue, body)) = self.checks.sent.values().nth(chosen).cloned() {
            self.replay(queue, &body);
        }
    }

    fn replay(&mut self, queue: Queue, body: &str) {
        if queue == Queue::Events {
            return;
        }
        self.note(|| format!("a copy of {} comes again", crate::ports::queues::describe(body)));
        self.post(queue, body, std::time::Duration::ZERO);
    }

    /// Checks that nothing is otherwise than before.
    pub(crate) fn check_unchanged(&mut self, before: &Snapshot, tokens: &BTreeMap<SearchId, Vec<Token>>) {
        let after = self.snapshot();
        let differs = [
            ("a document", after.versions != before.versions),
            ("a job", after.jobs != before.jobs),
            ("an outbox", after.effects != before.effects),
            ("what was processed", after.changed != before.changed),
            ("what was parsed", after.parsed != before.parsed),
            ("the studies", after.studies != before.studies),
            ("the ledger", self.more_tokens(tokens)),
        ];
        if let Some((what, _)) = differs.iter().find(|(_, differs)| *differs) {
            self.violate(Invariant::DuplicatesChangeNothing, || format!("stale duplicates changed {what}"));
        }
    }

    /// The tokens of each search.
    pub(crate) fn tokens(&self) -> BTreeMap<SearchId, Vec<Token>> {
        self.items.iter().map(|(id, item)| (*id, item.tokens.iter().cloned().collect())).collect()
    }

    fn more_tokens(&self, before: &BTreeMap<SearchId, Vec<Token>>) -> bool {
        self.items.iter().any(|(id, item)| {
            let known = before.get(id);
            item.tokens.iter().any(|token| !known.is_some_and(|known| known.contains(token)))
        })
    }
}
