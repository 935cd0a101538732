//! Checks that a command whose work continues later is sent again once per record of its queue, although the record may
//! be redelivered while its acknowledgement fails. Otherwise each redelivery adds a copy of the command.

use std::collections::BTreeMap;

use messages::{Message, MessageId, Outgoing, ReceivedMessage};

use crate::options::Invariant;
use crate::world::World;

/// The time for which a record must be recognised: half of the time for which the engine remembers it, because the clocks
/// of the workers differ.
const RECOGNISED_FOR_MS: u64 = 12 * 3_600_000;

/// A record of a queue: the index of the queue and the number of the record.
type RecordKey = (usize, String);

/// The memory of this check.
#[derive(Default)]
pub(super) struct Resent {
    /// The current batch of each worker.
    batches: BTreeMap<usize, Vec<BatchRecord>>,
    /// The time at which a worker acknowledged each record that it had sent again.
    acknowledged: BTreeMap<RecordKey, u64>,
}

struct BatchRecord {
    key: RecordKey,
    id: MessageId,
    /// `true` if a worker had sent it again and acknowledged it before this batch was received.
    was_acknowledged: bool,
    is_resent: bool,
}

impl Resent {
    /// Forgets everything: a restore has undone what the workers remember.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

impl World {
    /// Records the batch that the current worker has received.
    pub(crate) fn record_batch(&mut self, queue: usize, batch: &[ReceivedMessage]) {
        let Some(process) = self.acting else { return };
        let (now, resent) = (self.now, &mut self.checks.resent);
        let received = batch.iter().filter_map(|received| {
            let id = Message::decode(&received.delivery.body).ok()?.id;
            let key = (queue, received.delivery.record_id.clone());
            let at = resent.acknowledged.get(&key);
            let was_acknowledged = at.is_some_and(|at| now < at.saturating_add(RECOGNISED_FOR_MS));
            Some(BatchRecord { key, id, was_acknowledged, is_resent: false })
        });
        let received = received.collect();
        resent.batches.insert(process, received);
    }

    /// Checks a message that the current worker sends. A batch with several records of the message is not checked, because
    /// the sent message does not name its record.
    pub(super) fn check_resent(&mut self, outgoing: &Outgoing) {
        // A saga may repeat an effect that another worker left, even if the effect's message is in the same batch.
        if self.saga_queues.contains(&outgoing.queue) {
            return;
        }
        let Some(queue) = self.queues.place(&outgoing.queue) else { return };
        let id = outgoing.id;
        let batch = self.acting.and_then(|process| self.checks.resent.batches.get_mut(&process));
        let mut received = batch.into_iter().flatten().filter(|one| one.key.0 == queue && one.id == id);
        let (Some(one), None) = (received.next(), received.next()) else { return };
        one.is_resent = true;
        if one.was_acknowledged {
            let detail = format!("record {} was sent again although it was acknowledged before", one.key.1);
            self.violate(Invariant::EffectsTakeEffectOnce, || detail);
        }
    }

    /// Records that the current worker acknowledges a record, before the request arrives.
    pub(crate) fn record_acknowledgement(&mut self, queue: usize, record: &str) {
        let (now, resent) = (self.now, &mut self.checks.resent);
        let batch = self.acting.and_then(|process| resent.batches.get(&process));
        let key = (queue, record.to_owned());
        if batch.into_iter().flatten().any(|one| one.is_resent && one.key == key) {
            resent.acknowledged.insert(key, now);
        }
    }

    /// Records that the current worker could not remember a message, so it may send the messages of its batch once more.
    pub(crate) fn record_forgotten(&mut self) {
        let batch = self.acting.and_then(|process| self.checks.resent.batches.get_mut(&process));
        batch.into_iter().flatten().for_each(|one| one.is_resent = false);
    }
}
