//! The effects of unreadable records on the world.

use messages::{Disposition, Message, MessageId, PartitionKey, ReceivedMessage, StoreError};
use saga::{Document, LoadResult};

use super::{
    JUNK_MS, LATER, UPGRADES_MS, WAITS_MS, foreign, is_of_later_release, names_later_release,
    of_later_release,
};
use crate::describe::{describe, short};
use crate::options::Invariant;
use crate::ports::queues::Copy;
use crate::world::{Occasion, World};

impl World {
    /// Chooses the unreadable records of this schedule; most schedules have none.
    pub(crate) fn choose_damage(&mut self) {
        if self.rng.one_in(4) {
            self.damage.is_rolled_back = true;
            self.damage.messages = self.rng.below(4);
            self.damage.documents = self.rng.below(2);
            let at = self.rng.pick(&UPGRADES_MS);
            self.damage.upgrades_at = at;
            if at > UPGRADES_MS[0] {
                self.plan.leave_few();
            }
            self.at(at, Occasion::Act(Box::new(Self::upgrade)));
        }
        if self.rng.one_in(8) {
            for _ in 0..self.rng.between(1, 3) {
                let at = self.rng.below(JUNK_MS);
                self.at(at, Occasion::Act(Box::new(Self::post_junk)));
            }
        }
    }

    fn upgrade(&mut self) {
        self.note(|| "the upgrade is here".to_owned());
        self.damage.is_rolled_back = false;
    }

    /// Sends junk, or a message of another system, to any of the functions.
    fn post_junk(&mut self) {
        let places = self.queues.with_dead_letters();
        let place = self.rng.pick(&places);
        let id = self.fresh_id();
        let body = match self.rng.one_in(2) {
            true => format!("junk {id}"),
            false => foreign(MessageId::from_uuid(id)),
        };
        let queue = self.queues.spec(place).queue.clone();
        self.note(|| format!("junk comes to {queue}"));
        self.damage.junk.push(body.clone());
        self.queues.put(place, Copy::new(body), self.now);
    }

    /// Returns `true` if the current message is sent by a newer version.
    pub(crate) fn sends_later_version(&mut self) -> bool {
        let sends = self.damage.is_rolled_back && self.damage.messages > 0 && self.rng.one_in(4);
        self.damage.messages -= u64::from(sends);
        sends
    }

    /// Returns the current form of a message.
    pub(crate) fn delivered(&self, body: &str, is_later: bool) -> String {
        let later = is_later.then(|| of_later_release(body)).flatten();
        later.filter(|_| self.damage.is_rolled_back).unwrap_or_else(|| body.to_owned())
    }

    /// Returns `true` if this version can read a message.
    pub(crate) fn reads(&self, body: &str, is_later: bool) -> bool {
        (!is_later || !self.damage.is_rolled_back) && !self.is_junk(body)
    }

    /// Records a written document, which a newer version may have written.
    pub(crate) fn wrote(&mut self, partition: PartitionKey) {
        if self.damage.is_rolled_back && self.damage.documents > 0 && self.rng.one_in(4) {
            self.damage.documents -= 1;
            self.damage.unreadable.insert(partition);
            self.note(|| format!("a newer version wrote {}", short(&partition)));
        }
    }

    /// Returns a document as loaded now; a document of a newer version is unreadable for the store or for the saga.
    pub(crate) fn found(&mut self, found: Option<Document>) -> LoadResult {
        let is_unreadable = |document: &Document| self.damage.unreadable.contains(&document.partition);
        if !self.damage.is_rolled_back || !found.as_ref().is_some_and(is_unreadable) {
            return Ok(found);
        }
        if self.rng.one_in(2) {
            return Err(StoreError::unusable("reading a document", format!("it has version {LATER}")));
        }
        Ok(found.map(|mut document| {
            document.content.state_version = u32::from(LATER);
            document
        }))
    }

    /// Returns `true` if a message may be dead-lettered because it is junk, or because the upgrade comes after its
    /// retention in a queue.
    pub(crate) fn is_damaged(&self, body: &str, is_later: bool, came_at: u64) -> bool {
        self.is_junk(body) || self.awaits_upgrade(came_at) && (is_later || self.is_of_unreadable(body))
    }

    /// Returns `true` if a message from that time that only a newer version can read waited longer than its queue keeps
    /// it.
    pub(crate) fn awaits_upgrade(&self, came_at: u64) -> bool {
        self.damage.upgrades_at.saturating_sub(came_at) >= WAITS_MS
    }

    pub(crate) fn is_junk(&self, body: &str) -> bool {
        self.damage.junk.iter().any(|junk| junk == body)
    }

    fn is_of_unreadable(&self, body: &str) -> bool {
        let known = || Message::decode(body).is_ok_and(|m| self.damage.unreadable.contains(&m.partition));
        !self.damage.unreadable.is_empty() && known()
    }

    /// An unreadable record waits or is set aside without affecting records in the same delivery.
    pub(crate) fn check_neighbours(
        &mut self,
        queue: usize,
        batch: &[ReceivedMessage],
        answers: &[Disposition],
    ) {
        for (received, answer) in batch.iter().zip(answers) {
            let body = &received.delivery.body;
            let wrong = match answer {
                Disposition::Retry { reason, .. } => {
                    let is_sound = !self.is_junk(body) && !is_of_later_release(body);
                    is_sound && names_later_release(reason) && !self.is_of_unreadable(body)
                }
                Disposition::Acknowledge => self.is_junk(body) || is_of_later_release(body),
                // The function that reads dead letters leaves the decision to an operator.
                Disposition::DeadLetter { .. } => {
                    is_of_later_release(body) && !self.queues.holds_dead_letters(queue)
                }
            };
            if wrong {
                let name = describe(body);
                let detail =
                    || format!("{name} was answered with {answer:?}, because of what cannot be read");
                self.violate(Invariant::BadRecordsStayAlone, detail);
            }
        }
    }

    /// Returns an injected junk message that is neither in a dead-letter queue nor recorded as a failure.
    pub(crate) fn lost_junk(&self) -> Option<&String> {
        let is_kept = |junk: &&String| {
            let mut bodies = self.queues.dead_letters().map(|copy| copy.body.as_str());
            bodies.any(|body| body == **junk) || self.failures.bodies().any(|body| body == **junk)
        };
        self.damage.junk.iter().find(|junk| !is_kept(junk))
    }
}
