//! Duplicates that arrive moments or months after the end.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use messages::{DecisionRecord, PartitionKey, Queue, Token, Verdict};
use outbox::View;

use crate::checks::SentMessage;
use crate::describe::describe;
use crate::describe::short;
use crate::model::Station;
use crate::options::{Invariant, Mode};
use crate::world::World;

/// A day in milliseconds.
const DAY_MS: u64 = 86_400_000;

/// Returns the delays of duplicates after the end: no delay, until the documents have expired, and until the ledger
/// items have expired. Optimistic mode guarantees nothing after a document has expired.
pub(crate) fn ages(mode: Mode) -> &'static [u64] {
    match mode {
        Mode::Ledger => &[0, 8 * DAY_MS, 40 * DAY_MS],
        Mode::Optimistic => &[0, 2 * DAY_MS],
    }
}

/// The state that a duplicate must not change.
pub(crate) struct Snapshot {
    versions: BTreeMap<PartitionKey, u64>,
    views: BTreeMap<PartitionKey, View>,
    effects: usize,
    changed: usize,
    tokens: BTreeMap<PartitionKey, Vec<Token>>,
    outside: Box<dyn Any + Send>,
}

impl World {
    /// Returns the current state, for a comparison.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let versions = self.documents.iter().map(|(id, stored)| (*id, stored.document.version));
        let tokens = self.items.iter().map(|(id, item)| (*id, item.tokens.iter().cloned().collect()));
        Snapshot {
            versions: versions.collect(),
            views: self.views.clone(),
            effects: self.checks.effects.len(),
            changed: self.checks.changed.len(),
            tokens: tokens.collect(),
            outside: self.application.world_of(self),
        }
    }

    /// Sends duplicates of some sent messages.
    pub(crate) fn send_stale(&mut self) {
        for _ in 0..self.rng.between(1, 6) {
            if self.checks.sent.is_empty() {
                return;
            }
            self.stats.stale += 1;
            self.send_any_again();
        }
    }

    /// Purges a queue: it delivers no copy of its messages any more.
    pub(crate) fn purge(&mut self, queue: &Queue) {
        self.queues.purge(queue);
        let purged = self.checks.sent.values_mut().filter(|sent| sent.queue == *queue);
        purged.for_each(|sent| sent.is_purged = true);
    }

    /// Sends a duplicate of one sent message, if a copy of the message may still exist.
    pub(crate) fn send_any_again(&mut self) {
        let chosen = self.rng.index(self.checks.sent.len());
        if let Some(sent) = self.checks.sent.values().nth(chosen).filter(|sent| !sent.is_purged) {
            let (queue, body) = (sent.queue.clone(), sent.body.clone());
            self.replay(&queue, &body);
        }
    }

    fn replay(&mut self, queue: &Queue, body: &str) {
        let Some(place) = self.queues.place(queue).filter(|_| self.queues.is_worked(queue)) else { return };
        self.note(|| format!("a copy of {} comes again", describe(body)));
        self.post(place, body, Duration::ZERO);
    }

    /// Checks that a redelivery or a repeated action of an operator changed nothing.
    pub(crate) fn check_unchanged(&mut self, before: &Snapshot, redriven: bool) {
        let after = self.snapshot();
        let differs = [
            ("a document", after.versions != before.versions),
            ("a view", after.views != before.views),
            ("an outbox", after.effects != before.effects),
            ("what was processed", after.changed != before.changed),
            ("the ledger", self.has_more_tokens(&before.tokens)),
        ];
        let differs = differs.iter().find(|(_, differs)| *differs).map(|(what, _)| (*what).to_owned());
        let application = Arc::clone(&self.application);
        let differs = differs.or_else(|| application.unchanged(before.outside.as_ref(), self).err());
        if let Some(what) = differs {
            let (invariant, who) = match redriven {
                true => (Invariant::RepeatsDoNoHarm, "dead letters that were redriven again"),
                false => (Invariant::DuplicatesChangeNothing, "stale duplicates"),
            };
            self.violate(invariant, || format!("{who} changed {what}"));
        }
    }

    /// Checks that a command is not executed after its reply has taken effect or is no longer expected.
    pub(crate) fn check_repeated(&mut self, observation: &DecisionRecord) {
        let DecisionRecord { verdict: Verdict::Handled, message_id: Some(id), .. } = observation else {
            return;
        };
        if !self.only_repeats || self.config.mode == Mode::Optimistic {
            return;
        }
        let Some(SentMessage { queue, message: Some(message), .. }) = self.checks.sent.get(id) else {
            return;
        };
        let is_of_queue =
            |station: &Station| station.function == observation.function && station.queue == *queue;
        if message.reply_token.is_some() && self.stations.iter().any(is_of_queue) {
            let what = format!("{} {} was answered, and is carried out again", message.body.name, short(id));
            self.violate(Invariant::DuplicatesChangeNothing, || what);
        }
    }

    fn has_more_tokens(&self, before: &BTreeMap<PartitionKey, Vec<Token>>) -> bool {
        self.items.iter().any(|(id, item)| {
            let known = before.get(id);
            let is_new = |token: &Token| !known.is_some_and(|known| known.contains(token));
            item.tokens.iter().any(|token| is_new(token) && self.checks.is_usable(*id, token))
        })
    }
}
