//! The operator, who redrives dead letters to their source queues after the end of the fault, and again after its
//! record has expired.

use messages::{Message, MessageId, PartitionKey};
use outbox::Entry;

use crate::clocks;
use crate::coverage::Call;
use crate::describe::describe;
use crate::options::Mutant;
use crate::ports::queues::Copy;
use crate::world::{Occasion, RETRIED, World};

/// The delay of an operator after the system has become idle.
const HOURS_MS: [u64; 3] = [0, 3_600_000, 72_000_000];

/// The time until the operator retries the remaining failures of an earlier operation. After this time, every dead
/// letter can be received, and no recorded failure is newer than the operation by any worker's clock.
const AGAIN_MS: u64 = 3 * clocks::MAX_MS;

impl World {
    /// Returns `true` if there are no dead letters and none will arrive.
    pub(crate) fn has_no_dead_letters(&self) -> bool {
        self.queues.dead_letters().next().is_none() && !self.plan.outlasts_queues(0, self.now)
    }

    /// Redrives every dead letter, by hand or by an operation on failures. Returns `false` if no dead letter remains,
    /// except for permanent dead letters.
    pub(crate) fn redrive(&mut self) -> bool {
        let has_dead_letters = self.queues.dead_letters().any(|copy| !self.stays_dead(&copy.body));
        let has_failures = self.failures.open().any(|body| !self.stays_dead(body));
        if !has_dead_letters && !has_failures {
            return false;
        }
        let waits = self.rng.pick(&HOURS_MS);
        let is_again = has_failures || self.queues.has_hidden_dead_letters(self.now);
        self.now += if is_again { waits.max(AGAIN_MS) } else { waits };
        if has_failures || self.gathers_dead_letters {
            self.note(|| "the operator retries all failures".to_owned());
            self.coverage.meet(RETRIED);
            self.is_retrying = true;
        }
        if self.gathers_dead_letters {
            return true;
        }
        for copy in self.queues.take_dead_letters() {
            self.stats.redriven += 1;
            self.redrive_copy(&copy);
            self.redriven.push(copy);
        }
        true
    }

    /// Records that an outbox entry is requeued.
    pub(crate) fn requeues(&mut self, entry: &Entry) {
        self.stats.requeued += 1;
        let waited = self.exhausted_at.get(&entry.id).map_or(0, |at| self.now.saturating_sub(*at));
        self.requeued.extend(Message::decode(&entry.payload).ok().map(|message| (message, waited)));
    }

    /// Returns the messages of a partition that an operator redrove or retried, and those requeued after a longer wait
    /// than this.
    pub(crate) fn redriven_messages(
        &self,
        partition: PartitionKey,
        longer_than_ms: u64,
    ) -> impl Iterator<Item = Message> {
        let redriven = self.redriven.iter().map(|copy| copy.body.as_str()).chain(self.failures.retried());
        let redriven = redriven.filter_map(|body| Message::decode(body).ok());
        let waited = self.requeued.iter().filter(move |(_, waited)| *waited > longer_than_ms);
        redriven
            .chain(waited.map(|(message, _)| message.clone()))
            .filter(move |message| message.partition == partition)
    }

    /// Redrives all messages that were redriven before.
    pub(crate) fn redrive_again(&mut self) {
        for copy in self.redriven.clone() {
            self.redrive_copy(&copy);
        }
    }

    fn redrive_copy(&mut self, copy: &Copy) {
        let Some(place) = copy.dead_lettered_by else { return };
        let queue = self.queues.spec(place).queue.clone();
        self.note(|| format!("the operator puts {} back into {queue}", describe(&copy.body)));
        let mut copy = copy.clone();
        copy.body = self.redriven_body(&copy.body);
        self.queues.put(place, copy, self.now);
    }

    fn redriven_body(&mut self, body: &str) -> String {
        let message = Message::decode(body).ok().filter(|_| self.has(Mutant::RedrivenAsNew));
        let renamed = message.map(|message| Message { id: MessageId::from_uuid(self.fresh_id()), ..message });
        renamed.and_then(|message| message.encode().ok()).unwrap_or_else(|| body.to_owned())
    }

    /// Returns `true` if a dead letter is permanent.
    pub(crate) fn stays_dead(&self, body: &str) -> bool {
        let is_refused = |message: Message| self.application.refuses(self, &message);
        self.is_junk(body) || Message::decode(body).is_ok_and(is_refused)
    }

    /// Replaces all functions at the start of a database outage, in some schedules. None of the new workers has
    /// connected yet.
    pub(crate) fn replace_during_outage(&mut self) {
        let outage = self.plan.service_outage(Call::SAGA_LOAD).filter(|_| self.more.one_in(2));
        let Some((from, lasts)) = outage else { return };
        let at = from + self.more.below(lasts.min(10_000));
        for (worker, name) in self.names.clone().iter().enumerate() {
            if self.stations.iter().any(|station| name.starts_with(station.function)) {
                self.at(at, Occasion::Replace(worker));
            }
        }
    }
}
