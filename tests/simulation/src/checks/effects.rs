//! Checks of each performed effect.

use std::sync::Arc;

use jiff::Timestamp;
use messages::{DecisionRecord, Message, MessageId, Outgoing, PartitionKey, Verdict};
use outbox::session::{CONTROL, SettleSession};
use outbox::{Entry, Key, Kind, Owner, SessionRecord, View};
use saga::control::OPERATOR;

use super::{Checks, Effect, EffectKind, SentMessage};
use crate::options::Invariant;
use crate::world::World;

/// The maximum number of times that an entry may be performed before the store records it: by its worker, by workers
/// whose claim had ended before they noticed, and by repeated requests of the clients of queues.
const MAX_PERFORMED: u32 = 8;

impl World {
    /// Checks a message that is about to be sent.
    pub(crate) fn check_sent(&mut self, outgoing: &Outgoing) {
        // An operator also retries failures of other systems' messages, such as notifications of the object store.
        let said = Message::decode(&outgoing.body).ok();
        if said.is_none() || self.is_junk(&outgoing.body) {
            return;
        }
        let (id, partition) = (outgoing.id, outgoing.partition);
        let sent = self.checks.sent.entry(id).or_insert_with(|| SentMessage {
            queue: outgoing.queue.clone(),
            body: outgoing.body.clone(),
            message: said.clone(),
            otherwise: Vec::new(),
            is_purged: false,
        });
        sent.is_purged = false;
        let is_new =
            |said: &Message| sent.message.iter().chain(&sent.otherwise).all(|known| known.body != said.body);
        sent.otherwise.extend(said.filter(is_new));
        if outgoing.queue == CONTROL {
            return self.control_sent(outgoing);
        }
        self.check_separated(outgoing);
        self.check_performed_again(outgoing);
        self.check_resent(outgoing);
        if !self.needs_outbox(id) {
            return;
        }
        let is_restored = self.is_database_restored();
        let owner = self.checks.owner_of(partition, id);
        match self.checks.effects.get_mut(&(owner, id)) {
            // The message of an undone change is repeated, or the same effect was decided again.
            Some(effect) if effect.payload == outgoing.body || is_restored => {
                effect.performed += 1;
                // The timer may have fired already; other effects are never cancelled.
                if effect.cancelled && !effect.kind.is_timer() {
                    let detail =
                        || format!("partition {partition} performed effect {id}, which was cancelled");
                    self.violate(Invariant::EffectsTakeEffectOnce, detail);
                }
            }
            Some(_) => self.violate(Invariant::EffectsWithTheirChange, || {
                format!("partition {partition} sent message {id} otherwise than it was stored")
            }),
            None => self.violate(Invariant::TokensAreKept, || {
                format!(
                    "partition {partition} sent message {id}, an effect of an attempt that stored nothing"
                )
            }),
        }
    }

    /// The events of two sagas never have the same partition.
    fn check_separated(&mut self, outgoing: &Outgoing) {
        if !self.saga_queues.contains(&outgoing.queue) {
            return;
        }
        let known = self.checks.queues.entry(outgoing.partition).or_insert_with(|| outgoing.queue.clone());
        if *known != outgoing.queue {
            let detail = format!("partition {} gets events of two sagas", outgoing.partition);
            self.violate(Invariant::Application, || detail);
        }
    }

    /// Returns `true` if only an outbox may send a message. This applies to messages of the saga, and to messages of
    /// senders without a queue that redelivers failures. Handlers without state send their replies themselves.
    fn needs_outbox(&self, id: MessageId) -> bool {
        let Some(message) = self.checks.sent.get(&id).and_then(|sent| sent.message.as_ref()) else {
            return true;
        };
        let is_source = |function: &str| function == message.source;
        self.sagas.iter().any(|saga| is_source(saga))
            || !self.stations.iter().any(|station| is_source(station.function))
    }

    fn control_sent(&mut self, outgoing: &Outgoing) {
        let sent = self.checks.sent.get(&outgoing.id).and_then(|sent| sent.message.as_ref());
        let look = sent.map(|message| message.body.data.read::<SettleSession>());
        if let Some(Ok(look)) = look {
            self.checks.sessions.insert(look.session_id, outgoing.partition);
        }
    }

    /// Checks a record that is written for an instance.
    pub(crate) fn check_record(&mut self, key: &Key, revision: u64) {
        let effect = self.checks.records.get(&(key.clone(), revision)).copied();
        match effect.and_then(|effect| self.checks.effects.get_mut(&effect)) {
            Some(effect) => effect.performed += 1,
            None => self.violate(Invariant::TokensAreKept, || {
                format!("record {key} got revision {revision} from an attempt that stored nothing")
            }),
        }
    }

    /// Checks a view that is written by a saga; the first may be a session's.
    pub(crate) fn check_view(&mut self, view: &View) {
        let (partition, revision) = (view.partition, view.revision);
        let id = self.checks.views.get(&(partition, revision)).copied();
        match id.and_then(|id| self.checks.effects.get_mut(&(partition, id))) {
            Some(effect) => effect.performed += 1,
            // The application decides which views are removed.
            None if view.is_removed() => {}
            None => self.violate(Invariant::TokensAreKept, || {
                format!("view {partition} got revision {revision} from an attempt that stored nothing")
            }),
        }
    }

    /// An entry is not performed again and again before the store has recorded an attempt or a takeover. Otherwise
    /// redeliveries repeat it without a limit while settling fails.
    fn check_performed_again(&mut self, outgoing: &Outgoing) {
        let by_operator = self.acting.is_some_and(|process| self.retriers.contains(&process));
        if by_operator || self.is_database_restored() {
            return;
        }
        let owner = Owner::Saga(self.checks.owner_of(outgoing.partition, outgoing.id));
        let stored =
            self.outbox(owner).and_then(|outbox| outbox.iter().find(|entry| entry.id == outgoing.id));
        let Some(stored) = stored.cloned() else { return };
        let known = self.checks.performed_as.get(&(owner, stored.id)).filter(|(known, _)| *known == stored);
        let times = known.map_or(0, |(_, times)| *times) + 1;
        if times > MAX_PERFORMED {
            self.violate(Invariant::EffectsTakeEffectOnce, || {
                format!("entry {} of {owner} was performed {times} times without a stored attempt", stored.id)
            });
        }
        self.checks.performed_as.insert((owner, stored.id), (stored, times));
    }

    /// Records a committed session.
    pub(crate) fn check_commit(&mut self, session: &SessionRecord) {
        let application = Arc::clone(&self.application);
        // After a restore, an operator repeats events without their data, which is stored.
        if !self.is_settling() {
            self.hold(application.committed(session));
        }
        if session.entries.is_empty() {
            self.checks.shown_by_data.extend(session.views.iter().map(|view| view.partition));
            return;
        }
        if !self.checks.sessions.contains_key(&session.id) {
            let detail =
                || format!("session {} was committed before its control message was sent", session.id);
            self.violate(Invariant::SessionIsAtomic, detail);
        }
        for entry in &session.entries {
            let Ok(message) = Message::decode(&entry.payload) else {
                let detail = || format!("session {}: message {} cannot be read", session.id, entry.id);
                return self.violate(Invariant::SessionIsAtomic, detail);
            };
            if message.source == OPERATOR {
                self.check_operator_event(session.id);
            }
            let own = self.checks.sessions.get(&session.id);
            let is_event =
                matches!(&entry.kind, Kind::Message(queue) if application.saga_queues().contains(queue));
            if is_event && own == Some(&message.partition) {
                self.checks.beginning.insert(session.id);
            }
            let (partition, kind) = (message.partition, EffectKind::Message(Box::new(message)));
            self.checks.add_effect(partition, entry, kind);
        }
    }

    /// No two workers hold one entry while a claim is valid.
    pub(crate) fn check_claimed(&mut self, owner: Owner, taken: &[Entry], now: Timestamp, until: Timestamp) {
        for entry in taken {
            let before = self.checks.held.insert((owner, entry.id), until);
            if before.is_some_and(|before| before > now) {
                self.violate(Invariant::EffectsTakeEffectOnce, || {
                    format!("entry {} of {owner} was claimed by two at once", entry.id)
                });
            }
        }
    }

    /// Records that an entry was settled.
    pub(crate) fn check_unclaimed(&mut self, owner: Owner, id: MessageId) {
        self.checks.held.remove(&(owner, id));
    }

    /// Records that an entry was set aside, which ends its claim, so an operator may requeue it immediately.
    pub(crate) fn check_set_aside(&mut self, place: &str) {
        self.checks.held.retain(|(_, id), _| id.to_string() != place);
    }

    /// Checks a handled request of the saga, which must have been stored.
    pub(crate) fn check_handled(&mut self, observation: &DecisionRecord) {
        let DecisionRecord { function, source, verdict, .. } = observation;
        let is_saga = |function: &str| self.sagas.contains(&function);
        let (Some(partition), Some(id)) = (observation.partition, observation.message_id) else { return };
        let is_request = is_saga(source) && !is_saga(function) && *verdict == Verdict::Handled;
        let owner = self.checks.owner_of(partition, id);
        if is_request && !self.checks.effects.contains_key(&(owner, id)) {
            let detail =
                || format!("{function} handled {id} for partition {partition}, which never stored it");
            self.violate(Invariant::TokensAreKept, detail);
        }
    }
}

impl Checks {
    /// Takes note of a stored effect. An effect that was undone and decided again may have been performed already.
    pub(super) fn add_effect(&mut self, partition: PartitionKey, entry: &Entry, kind: EffectKind) {
        let undone = self.effects.get(&(partition, entry.id)).filter(|effect| effect.undone);
        let performed = undone.map_or(0, |effect| effect.performed);
        let payload = entry.payload.clone();
        let effect = Effect { kind, payload, performed, cancelled: false, undone: false };
        self.effects.insert((partition, entry.id), effect);
    }
}
