//! Checks of the ledger after each change, the stored size, and the deadline.

use std::sync::Arc;

use dedup::Claim;
use messages::{Message, MessageId, PartitionKey, Token};
use outbox::Entry;

use crate::clocks;
use crate::describe::short;
use crate::options::{Invariant, Mode};
use crate::time::{millis, span, timestamp};
use crate::workload::Bounds;
use crate::world::World;

impl World {
    /// Records tokens granted by an entry point.
    pub(crate) fn granted(&mut self, partition: PartitionKey, tokens: &[Token]) {
        *self.checks.granted.entry(partition).or_default() += tokens.len();
        let stored = self.documents.get(&partition);
        if stored.is_some_and(|stored| stored.document.content.ended_at.is_some()) {
            self.checks.granted_late.extend(tokens.iter().cloned());
        }
    }

    /// Records the number of tokens that an entry point revoked.
    pub(crate) fn revoked(&mut self, partition: PartitionKey, count: usize) {
        let granted = self.checks.granted.entry(partition).or_default();
        *granted = granted.saturating_sub(count);
    }

    /// Records a granted claim.
    pub(crate) fn claimed(&mut self, claim: &Claim) {
        let minted = self.checks.minted.entry(claim.partition).or_default();
        *minted = claim.new_tokens.len().max(*minted);
    }

    /// Checks that the ledger contains every token that an active partition expects, and few others.
    pub(crate) fn check_tokens(&mut self, partition: PartitionKey) {
        // After a restore, tokens and documents agree only once they have been aligned.
        if self.config.mode == Mode::Optimistic || self.restored().is_some() {
            return;
        }
        // An expired item admits no worker, even if it has not been deleted yet.
        let now = timestamp(self.now);
        let item = self.items.get(&partition).filter(|item| item.expires_at > now);
        let lost = self.documents.get(&partition).and_then(|stored| {
            let content = &stored.document.content;
            let mut expected = content.expected.iter().filter(|_| content.ended_at.is_none());
            expected.find(|expected| !item.is_some_and(|item| item.tokens.contains(&expected.token))).cloned()
        });
        if let Some(lost) = lost {
            self.violate(Invariant::TokensAreKept, || {
                format!("partition {partition} waits for token {}, which is not in the ledger", lost.token)
            });
            return;
        }
        let Some(item) = item else { return };
        // The bound holds for any number of unreleased claims, since the last of them was within it.
        let granted = self.checks.granted.get(&partition).copied().unwrap_or(0);
        let minted = self.checks.minted.get(&partition).copied().unwrap_or(0);
        let Bounds { awaited, granted: max, .. } = self.bounds(partition);
        let bound = awaited.saturating_add(granted.min(max)).max(self.room).saturating_add(minted);
        let entered = item.tokens.iter().filter(|token| !token.is_from_attempt()).count();
        if entered > max {
            let detail = || {
                format!("entry points left partition {} {entered} tokens, more than {max}", short(&partition))
            };
            return self.violate(Invariant::Bounded, detail);
        }
        let count = item.tokens.len();
        if count > bound {
            let detail = || format!("partition {} has {count} tokens, more than {bound}", short(&partition));
            self.violate(Invariant::Bounded, detail);
        }
    }

    /// Checks that an acknowledged message of the saga is no longer admitted, unless the document remembers it.
    pub(crate) fn check_done_with(&mut self, queue: usize, body: &str) {
        let is_restored = self.restored().is_some();
        let is_of_saga = self.saga_queues.contains(&self.queues.spec(queue).queue);
        if self.config.mode == Mode::Optimistic || is_restored || !is_of_saga {
            return;
        }
        let Ok(message) = Message::decode(body) else { return };
        let (Some(token), now) = (message.token, timestamp(self.now)) else { return };
        let item = self.items.get(&message.partition).filter(|item| item.expires_at > now);
        if !item.is_some_and(|item| item.tokens.contains(&token)) || self.checks.granted_late.contains(&token)
        {
            return;
        }
        let stored = self.documents.get(&message.partition);
        let is_known = stored.is_some_and(|stored| {
            let mut processed = stored.document.content.processed.iter();
            processed.any(|processed| processed.token.as_ref() == Some(&token))
        });
        if !is_known {
            let (id, partition) = (short(&message.id), short(&message.partition));
            let detail =
                || format!("message {id} was acknowledged, and partition {partition} admits it still");
            self.violate(Invariant::Bounded, detail);
        }
    }

    /// Returns `true` if a partition has ended, or has a timer that is in its outbox and due in time, or already sent.
    fn has_deadline(&self, partition: PartitionKey) -> bool {
        let Some(stored) = self.documents.get(&partition) else { return true };
        let (content, outbox) = (&stored.document.content, &stored.document.outbox);
        let patience = self.application.patience();
        let latest =
            patience.map_or(u64::MAX, |patience| self.now.saturating_add(span(patience) + clocks::MAX_MS));
        let is_in_time = |id: &MessageId| match outbox.iter().find(|entry| entry.id == *id) {
            Some(entry) => millis(entry.due_at) <= latest,
            None => self.checks.sent.contains_key(id),
        };
        let waits = content.ended_at.is_none() && !self.application.may_wait(&stored.state);
        !waits || content.timers.values().any(is_in_time)
    }

    fn bounds(&self, partition: PartitionKey) -> Bounds {
        let application = Arc::clone(&self.application);
        application.bounds(self, partition)
    }

    /// Checks a stored document.
    pub(crate) fn check_stored(&mut self, partition: PartitionKey) {
        self.check_tokens(partition);
        if !self.has_deadline(partition) {
            let detail = || format!("partition {} waits without a deadline", short(&partition));
            self.violate(Invariant::WaitsHaveDeadlines, detail);
        }
        // An operator repeats events after a restore, in addition to the messages of the undone time.
        let is_restored = self.restored().is_some();
        let bounds = if is_restored { Bounds::NONE } else { self.bounds(partition) };
        let Some(stored) = self.documents.get(&partition) else { return };
        let (content, outbox) = (&stored.document.content, &stored.document.outbox);
        let readable = |entry: &&Entry| !self.unreadable.contains(&entry.id);
        let was_processed = |entry: &&Entry| content.processed.iter().any(|known| known.id == entry.id);
        if let Some(sent) = outbox.iter().filter(readable).find(was_processed) {
            let detail = format!(
                "partition {} keeps {}, which was sent: it was processed",
                short(&partition),
                sent.id
            );
            return self.violate(Invariant::Bounded, || detail);
        }
        let sizes = [
            ("processed messages", content.processed.len(), bounds.messages),
            ("expected messages", content.expected.len(), bounds.awaited),
            ("outbox entries", outbox.iter().filter(readable).count(), bounds.outbox),
        ];
        if let Some((what, count, bound)) = sizes.into_iter().find(|(_, count, bound)| count > bound) {
            let detail = || format!("partition {} has {count} {what}, more than {bound}", short(&partition));
            self.violate(Invariant::Bounded, detail);
        }
    }
}
