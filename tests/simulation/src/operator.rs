//! The operator, who puts dead letters back into the queues that gave them up: when whatever was wrong is over, and once
//! more when nobody remembers that it was done.

use messages::{Message, MessageId, PartitionKey};
use outbox::Entry;

use crate::options::Mutant;
use crate::ports::queues::{Copy, describe};
use crate::world::World;

/// How long after everything has come to rest an operator looks.
const HOURS_MS: [u64; 3] = [0, 3_600_000, 72_000_000];

impl World {
    /// Whether there are no dead letters, and none are to come.
    pub(crate) fn gives_nothing_up(&self) -> bool {
        self.queues.dead_letters().next().is_none() && !self.plan.outlasts_queues(0, self.now)
    }

    /// Puts every dead letter back. `false` when there is none, besides those that stay dead letters.
    pub(crate) fn redrive(&mut self) -> bool {
        if !self.queues.dead_letters().any(|copy| !self.stays_dead(copy)) {
            return false;
        }
        self.now += self.rng.pick(&HOURS_MS);
        for copy in self.queues.take_dead_letters() {
            self.stats.redriven += 1;
            self.put_back(&copy);
            self.redriven.push(copy);
        }
        true
    }

    /// Takes note that an entry of an outbox is put back to work.
    pub(crate) fn requeues(&mut self, entry: &Entry) {
        self.stats.requeued += 1;
        self.requeued.extend(Message::decode(&entry.payload).ok());
    }

    /// The messages of a partition that were put back, into a queue or in an outbox.
    pub(crate) fn put_back_of(&self, partition: PartitionKey) -> impl Iterator<Item = Message> {
        let redriven = self.redriven.iter().filter_map(|copy| Message::decode(&copy.body).ok());
        redriven.chain(self.requeued.iter().cloned()).filter(move |message| message.partition == partition)
    }

    /// Puts everything back that was put back before.
    pub(crate) fn redrive_again(&mut self) {
        for copy in self.redriven.clone() {
            self.put_back(&copy);
        }
    }

    fn put_back(&mut self, copy: &Copy) {
        let Some(place) = copy.given_up_by else { return };
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

    /// Whether a dead letter is one for good.
    pub(crate) fn stays_dead(&self, copy: &Copy) -> bool {
        let is_refused = |message: Message| self.application.refuses(self, &message);
        self.is_junk(&copy.body) || Message::decode(&copy.body).is_ok_and(is_refused)
    }
}
