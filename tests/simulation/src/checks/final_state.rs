//! The invariants of the final state.

use std::sync::Arc;

use messages::{Message, PartitionKey, Token};
use outbox::View;
use outbox::session::SessionStatus;

use super::Checks;
use crate::describe::describe;
use crate::options::{Invariant, Violation};
use crate::ports::queues::Copy;
use crate::time::timestamp;
use crate::workload::CheckResult;
use crate::world::World;

fn broken<T>(invariant: Invariant, detail: String) -> Result<T, Violation> {
    Err(Violation { invariant, detail })
}

impl World {
    /// Checks all invariants of the final state.
    pub(crate) fn check_rest(&mut self) {
        let checked = self.at_rest();
        self.hold(checked);
    }

    /// No effect is exhausted early without a reason.
    pub(crate) fn check_dead_letters(&mut self) {
        let unexcused = |copy: &&Copy| !copy.is_excused && !self.stays_dead(&copy.body);
        let found = self.queues.dead_letters().find(unexcused).map(|copy| describe(&copy.body));
        if let Some(message) = found {
            self.violate(Invariant::Quiescence, || format!("{message} was dead-lettered"));
        }
    }

    fn at_rest(&self) -> CheckResult {
        if let Some((queue, left)) = self.queues.left() {
            return broken(Invariant::Quiescence, format!("{left} messages are left in {queue}"));
        }
        if let Some(copy) = self.queues.dead_letters().find(|copy| !self.stays_dead(&copy.body)) {
            let detail = format!("{} stays a dead letter", describe(&copy.body));
            return broken(Invariant::Quiescence, detail);
        }
        if let Some(body) = self.failures.open().find(|body| !self.stays_dead(body)) {
            return broken(Invariant::Quiescence, format!("{} stays a failure", describe(body)));
        }
        // A restore of the database loses the failures that were recorded after the backup.
        if let Some(junk) = self.lost_junk().filter(|_| !self.is_database_restored()) {
            return broken(Invariant::BadRecordsStayAlone, format!("{junk:?} was not kept"));
        }
        self.sessions_at_rest()?;
        self.effects_at_rest()?;
        self.records_at_rest()?;
        for partition in self.documents.keys() {
            self.partition_at_rest(*partition)?;
        }
        if let Some(partition) = self.changed_after_restore() {
            let detail = format!("partition {partition} had ended before the restore, and has changed");
            return broken(Invariant::DuplicatesChangeNothing, detail);
        }
        let application = Arc::clone(&self.application);
        application.check(self)
    }

    fn partition_at_rest(&self, partition: PartitionKey) -> CheckResult {
        let Some(stored) = self.documents.get(&partition) else { return Ok(()) };
        let document = &stored.document;
        let has_ended = document.content.ended_at.is_some();
        if !has_ended && !self.application.may_stay_open(&stored.state) {
            return broken(Invariant::Quiescence, format!("partition {partition} never ends"));
        }
        if !self.is_done_with(&document.outbox) {
            let count = document.outbox.len();
            let detail = format!("partition {partition} keeps {count} outbox entries");
            return broken(Invariant::Quiescence, detail);
        }
        self.view_at_rest(partition)?;
        // A restored ledger may contain tokens that were used.
        if !has_ended || self.restored().is_some() { Ok(()) } else { self.tokens_at_rest(partition) }
    }

    /// Readers see the last view of the saga.
    fn view_at_rest(&self, partition: PartitionKey) -> CheckResult {
        let Some(shown) = self.checks.shown.get(&partition) else { return Ok(()) };
        if self.views.get(&partition).is_some_and(View::is_removed) {
            return Ok(());
        }
        if self.views.get(&partition) != Some(shown) {
            let found = self.views.get(&partition).map(|view| view.body.to_string());
            let detail = format!("view {partition} is {found:?}, and not {}", shown.body);
            return broken(Invariant::EffectsTakeEffectOnce, detail);
        }
        Ok(())
    }

    /// Readers see the last version of each record of an instance.
    fn records_at_rest(&self) -> CheckResult {
        for (key, record) in &self.checks.kept {
            let (found, wanted) = (self.stored_record(key), record.stored());
            let is_forgotten = found.is_none() && wanted.body.is_none();
            if !is_forgotten && found != Some(&wanted) {
                let detail = format!("record {key} is {found:?}, and not {wanted:?}");
                return broken(Invariant::EffectsTakeEffectOnce, detail);
            }
        }
        Ok(())
    }

    /// An ended partition expects no more messages.
    fn tokens_at_rest(&self, partition: PartitionKey) -> CheckResult {
        // An expired item admits no message, whether or not the store has deleted it.
        let now = timestamp(self.now);
        let item = self.items.get(&partition).filter(|item| item.expires_at > now);
        let mut left = item.into_iter().flat_map(|item| &item.tokens);
        match left.find(|token| self.checks.is_usable(partition, token)) {
            Some(token) => {
                let detail = format!("partition {partition} has ended, but token {token} is still there");
                broken(Invariant::Bounded, detail)
            }
            None => Ok(()),
        }
    }

    /// Returns `true` if an event of a partition remains a dead letter, because its saga refuses it.
    fn is_refused(&self, partition: PartitionKey) -> bool {
        let of_it = |body: &str| Message::decode(body).is_ok_and(|message| message.partition == partition);
        let dead = self.queues.dead_letters().map(|copy| copy.body.as_ref());
        dead.chain(self.failures.open()).any(|body| of_it(body) && self.stays_dead(body))
    }

    fn sessions_at_rest(&self) -> CheckResult {
        for (id, partition) in &self.checks.sessions {
            let Some(stored) = self.sessions.get(id) else {
                return broken(Invariant::Quiescence, format!("session {id} was never settled"));
            };
            if !self.is_done_with(&stored.outbox) {
                return broken(Invariant::Quiescence, format!("session {id} keeps its messages"));
            }
            debug_assert!(stored.found != SessionStatus::Nothing);
            let begins = self.checks.beginning.contains(id) && stored.found == SessionStatus::Committed;
            if begins && !self.documents.contains_key(partition) && !self.is_refused(*partition) {
                let detail = format!("session {id} was committed, and partition {partition} never began");
                return broken(Invariant::Quiescence, detail);
            }
        }
        for partition in self.views.keys() {
            let is_orphan = !self.documents.contains_key(partition) && !self.is_committed(*partition);
            if is_orphan && !self.checks.shown_by_data.contains(partition) {
                let detail = format!("view {partition} exists without its session");
                return broken(Invariant::SessionIsAtomic, detail);
            }
        }
        Ok(())
    }

    fn effects_at_rest(&self) -> CheckResult {
        for ((partition, id), effect) in &self.checks.effects {
            if effect.performed == 0 && !effect.cancelled && !effect.undone {
                let detail = format!("effect {id} of partition {partition} was stored and never performed");
                return broken(Invariant::EffectsTakeEffectOnce, detail);
            }
        }
        Ok(())
    }

    /// Adds the outcomes of the partitions to the totals.
    pub(crate) fn count_partitions(&mut self) {
        for stored in self.documents.values() {
            self.stats.partitions += 1;
            if stored.document.content.ended_at.is_some() {
                match self.application.succeeded(&stored.state) {
                    true => self.stats.completed += 1,
                    false => self.stats.failed += 1,
                }
            }
        }
    }
}

impl Checks {
    /// Returns `true` if a message with this token may arrive. Tokens that no message contains may remain: those minted
    /// by a worker that crashed or lost its lease, and those granted for a client that did not use them.
    pub(crate) fn is_usable(&self, partition: PartitionKey, token: &Token) -> bool {
        match token.is_from_attempt() {
            true => self.was_expected(partition, token),
            false => !self.granted_late.contains(token) || self.is_carried(token),
        }
    }

    /// Returns `true` if a stored document has expected this token.
    fn was_expected(&self, partition: PartitionKey, token: &Token) -> bool {
        let contents = self.history.get(&partition).into_iter().flatten();
        contents.flat_map(|stored| &stored.content.expected).any(|expected| expected.token == *token)
    }

    /// Returns `true` if a message was sent with this token.
    fn is_carried(&self, token: &Token) -> bool {
        let messages = self.sent.values().filter_map(|sent| sent.message.as_ref());
        messages.filter_map(|message| message.token.as_ref()).any(|carried| carried == token)
    }
}
