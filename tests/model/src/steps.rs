//! What each step does to the system: one call of a store or queue each, decided by the shipped code.

use std::collections::BTreeSet;

use dedup::ledger::Item;
use dedup::{Admission, Claim, Release, Tokens};
use jiff::SignedDuration;
use messages::{AttemptId, Message, MessageId, Payload, Token};
use outbox::{Entry, Kind};
use saga::plan::{self, Known, PlanError, admission};
use saga::{Document, Persist, Saga};
use serde_json::Value;
use uuid::Uuid;

use crate::actions::Action;
use crate::keyed::{Keyed, Of, PlanOf, key};
use crate::protocol::Protocol;
use crate::sent::{NOW, partition};
use crate::system::{Claimed, LEASE, Ledger, Phase, Queued, Stored, System};

type PhaseOf<S> = Phase<Of<S>>;

impl<S: Saga> System<S> {
    /// Does it; `false` when it changes nothing.
    pub(crate) fn apply(&mut self, action: Action, protocol: &Protocol<S>) -> bool {
        match action {
            Action::Load(worker, id) => {
                self.take(id);
                self.workers[worker] = Phase::Loaded(id, self.document.clone(), None);
            }
            Action::LoadEarlier(worker, id) => {
                self.take(id);
                self.stale -= 1;
                let earlier = self.earlier.clone().flatten();
                self.earlier = self.earlier.take().filter(|_| self.stale > 0);
                self.workers[worker] = Phase::Loaded(id, earlier, None);
            }
            Action::Claim(worker, id) => {
                self.take(id);
                return self.claim_first(worker, id, None, protocol);
            }
            Action::ClaimAgain(worker) => {
                let Phase::Again(id, needed) = self.workers[worker] else { return false };
                return self.claim_first(worker, id, Some(needed), protocol);
            }
            Action::Step(worker) => return self.step(worker, protocol),
            Action::ClearFirst(worker) => {
                let Phase::Dispatched(id, claimed, plan) = self.workers[worker].clone() else { return false };
                self.clear(plan.value.dispatch.iter().map(|entry| entry.id));
                self.workers[worker] = Phase::Cleared(id, claimed, plan);
            }
            Action::Crash(worker) => {
                self.crashes -= 1;
                self.workers[worker] = Phase::Idle;
            }
            Action::ExpireLease => self.expire_lease(),
            Action::FireTimer(id) => self.fire_timer(id, protocol),
            Action::Sweep => self.sweep(protocol),
            Action::SettleSweep => {
                let ids = self.sweeper.take().unwrap();
                self.clear(ids.into_iter());
            }
            Action::ExpireDocument => {
                self.document = None;
                self.earlier = None;
                self.expired = true;
            }
        }
        true
    }

    fn step(&mut self, worker: usize, protocol: &Protocol<S>) -> bool {
        let next = match self.workers[worker].clone() {
            Phase::Idle => return false,
            Phase::Again(id, needed) => Phase::Loaded(id, self.document.clone(), Some(needed)),
            Phase::Loaded(id, document, needed) => match self.claim(id, needed, protocol) {
                Answer::Admitted(claimed) => self.decide(id, claimed, document.as_ref(), false, protocol),
                Answer::Duplicate => self.acknowledge(id),
                Answer::Busy => self.give_back(id),
            },
            Phase::Claimed(id, claimed) => {
                self.decide(id, claimed, self.document.clone().as_ref(), true, protocol)
            }
            Phase::Decided(id, claimed, plan) => self.persist(id, claimed, plan),
            Phase::Conflicted(id, claimed) => {
                self.abandon(&claimed);
                self.give_back(id)
            }
            Phase::Short(id, claimed, needed) => {
                self.abandon(&claimed);
                Phase::Again(id, needed)
            }
            Phase::Stored(id, claimed, plan) => {
                self.send(&plan.value.dispatch, protocol);
                Phase::Dispatched(id, claimed, plan)
            }
            Phase::Dispatched(id, claimed, plan) => {
                let released = self.release(&claimed, plan.value.remove.clone(), plan.value.ended);
                Phase::Released(id, plan, released)
            }
            Phase::Released(id, plan, released) => {
                self.clear(plan.value.dispatch.iter().map(|entry| entry.id));
                if released { self.acknowledge(id) } else { self.give_back(id) }
            }
            Phase::Cleared(id, claimed, plan) => {
                let released = self.release(&claimed, plan.value.remove.clone(), plan.value.ended);
                if released { self.acknowledge(id) } else { self.give_back(id) }
            }
        };
        self.workers[worker] = next;
        true
    }

    /// A worker receives a message: a copy, if it was acknowledged or is being worked on.
    fn take(&mut self, id: MessageId) {
        let in_flight = self.workers.iter().any(|phase| phase.message() == Some(id));
        let queued = self.queue.get_mut(&id).unwrap();
        if queued.acknowledged || in_flight {
            queued.copies -= 1;
        }
    }

    /// Done with. A crash just before this is a copy that comes just after it.
    fn acknowledge(&mut self, id: MessageId) -> PhaseOf<S> {
        self.queue.get_mut(&id).unwrap().acknowledged = true;
        Phase::Idle
    }

    /// The message goes back to the queue, to be delivered again.
    fn give_back(&mut self, id: MessageId) -> PhaseOf<S> {
        let queued = self.queue.get_mut(&id).unwrap();
        if queued.acknowledged {
            queued.copies += 1;
        }
        Phase::Idle
    }

    /// Claims before it loads; a busy partition is no step, because one that loads first meets it as well.
    fn claim_first(
        &mut self,
        worker: usize,
        id: MessageId,
        needed: Option<usize>,
        protocol: &Protocol<S>,
    ) -> bool {
        self.workers[worker] = match self.claim(id, needed, protocol) {
            Answer::Admitted(claimed) => Phase::Claimed(id, claimed),
            Answer::Duplicate => self.acknowledge(id),
            Answer::Busy => return false,
        };
        true
    }

    fn claim(&mut self, id: MessageId, needed: Option<usize>, protocol: &Protocol<S>) -> Answer {
        let incoming = &*self.queue[&id].incoming.value;
        let known = self.known_attempts();
        let mut numbers = (1..).map(|n| AttemptId::from_uuid(Uuid::from_u128(n)));
        let attempt = numbers.find(|attempt| !known.contains(&attempt.to_string())).unwrap();
        let count = needed.unwrap_or_else(|| protocol.saga.tokens(&[&incoming.event]));
        let minted = admission::mint(partition(), &attempt, count);
        let claim = Claim {
            partition: partition(),
            attempt,
            now: NOW,
            lease: LEASE,
            requires: admission::requirement(std::slice::from_ref(incoming)),
            mint: minted.clone(),
            room: usize::MAX,
        };
        let (admission, item) = Item::claim(Some(self.ledger.item()), &claim);
        match admission {
            Admission::Admitted(admitted) => {
                let Tokens::Listed(tokens) = admitted.tokens else { unreachable!("there is a ledger") };
                self.ledger = Ledger::of(item.unwrap());
                Answer::Admitted(Claimed { attempt, fence: admitted.fence, tokens, minted })
            }
            Admission::Duplicate => {
                self.seen.lost |= self.is_needed(id);
                Answer::Duplicate
            }
            Admission::Busy { .. } => Answer::Busy,
        }
    }

    /// Whether dropping a message would lose something: nothing was decided about it, and the partition still waits
    /// for it. A timer's event is waited for until the timer is cancelled.
    fn is_needed(&self, id: MessageId) -> bool {
        let message = &self.queue[&id].incoming.value.message;
        let cancelled = message.timer.is_some()
            && !self.content().is_some_and(|content| {
                content.expected.iter().any(|expected| Some(&expected.token) == message.token.as_ref())
            });
        !(self.seen.decided.contains(&id) || self.has_ended() || self.expired || cancelled)
    }

    fn decide(
        &mut self,
        id: MessageId,
        claimed: Claimed,
        stored: Option<&Stored<Of<S>>>,
        is_latest: bool,
        protocol: &Protocol<S>,
    ) -> PhaseOf<S> {
        let incoming = &*self.queue[&id].incoming.value;
        let (tokens, document) = (claimed.tokens(), stored.map(Stored::whole));
        let known = Known {
            function: "model",
            partition: partition(),
            document: document.as_ref(),
            tokens: &tokens,
            fence: claimed.fence,
            attempt: claimed.attempt,
            minted: &claimed.minted,
            now: NOW,
            claim_until: NOW + SignedDuration::from_secs(300),
        };
        let plan = match plan::decide(&protocol.saga, &known, std::slice::from_ref(incoming)) {
            Ok(plan) => plan,
            Err(PlanError::Overtaken) => return Phase::Conflicted(id, claimed),
            Err(PlanError::TooFewTokens(need)) => return Phase::Short(id, claimed, need.tokens),
            Err(error @ (PlanError::Stage(_) | PlanError::Broken(_))) => panic!("{error}"),
        };
        if plan.trusts_what_was_loaded() && !is_latest {
            return Phase::Claimed(id, claimed);
        }
        // The plan follows from these, so they stand for it.
        let document = stored.map(|stored| &stored.document);
        let plan = Keyed::new(plan, &(id, document, claimed.attempt, &claimed.tokens));
        if plan.value.persist.is_some() {
            Phase::Decided(id, claimed, plan)
        } else {
            self.seen.decided.insert(id);
            Phase::Stored(id, claimed, plan)
        }
    }

    fn persist(&mut self, id: MessageId, claimed: Claimed, plan: Keyed<PlanOf<Of<S>>>) -> PhaseOf<S> {
        let persist = plan.value.persist.as_ref().unwrap();
        if self.document.as_ref().map(|stored| stored.document.value.version) != persist.loaded {
            return Phase::Conflicted(id, claimed);
        }
        let outbox =
            self.document.as_ref().map_or_else(Vec::new, |stored| stored.document.value.outbox.clone());
        self.earlier = (self.stale > 0).then(|| self.document.take());
        self.document = Some(Stored::new(written(persist, outbox), claimed.fence));
        *self.seen.changes.entry(id).or_default() += 1;
        self.seen.decided.insert(id);
        self.seen.stored.extend(persist.add.iter().map(|entry| entry.id));
        Phase::Stored(id, claimed, plan)
    }

    /// Sends entries. A handler answers at once; what it does meanwhile is its own business.
    fn send(&mut self, entries: &[Entry], protocol: &Protocol<S>) {
        for entry in entries {
            self.seen.unstored |= !self.seen.stored.contains(&entry.id);
            let Kind::Message(queue) = &entry.kind else { continue };
            let message = Message::decode(&entry.payload).unwrap();
            let arrived = if *queue == S::Event::QUEUE {
                vec![message]
            } else {
                if let Some(token) = &message.reply_token {
                    let said =
                        (queue, &message.body.name, without(token, message.body.data.value()).to_string());
                    self.seen.asked.entry(key(&said)).or_default().insert(message.id);
                }
                (protocol.replies)(&message)
            };
            for message in arrived {
                let copies = protocol.budget.copies;
                self.queue.entry(message.id).or_insert_with(|| Queued::new(message, copies));
            }
        }
    }

    /// Gives the partition back after an attempt that stored nothing.
    fn abandon(&mut self, claimed: &Claimed) {
        self.release(claimed, claimed.minted.iter().cloned().collect(), false);
    }

    fn release(&mut self, claimed: &Claimed, remove: BTreeSet<Token>, ended: bool) -> bool {
        let release = Release {
            partition: partition(),
            attempt: claimed.attempt,
            fence: claimed.fence,
            remove,
            ended,
            now: NOW,
        };
        let item = self.ledger.item().release(&release);
        let released = item.is_some();
        if let Some(item) = item {
            self.ledger = Ledger::of(item);
        }
        released
    }

    fn clear(&mut self, ids: impl Iterator<Item = MessageId>) {
        let Some(stored) = &self.document else { return };
        let ids: Vec<MessageId> = ids.collect();
        let mut document = stored.whole();
        document.outbox.retain(|entry| !ids.contains(&entry.id));
        self.document = Some(Stored::of_state(document, stored.fence, stored.state));
    }

    fn expire_lease(&mut self) {
        if self.holder_is_at_work() {
            self.expiries -= 1;
        }
        if let Some((_, expired)) = &mut self.ledger.holder {
            *expired = true;
        }
    }

    fn fire_timer(&mut self, id: MessageId, protocol: &Protocol<S>) {
        let timer: Vec<Entry> = self.running().filter(|entry| entry.id == id).cloned().collect();
        self.timers -= 1;
        self.send(&timer, protocol);
        self.clear(std::iter::once(id));
    }

    fn sweep(&mut self, protocol: &Protocol<S>) {
        let due: Vec<Entry> = self.due().cloned().collect();
        self.sweeps = self.sweeps.saturating_sub(1);
        self.send(&due, protocol);
        self.sweeper = Some(due.into_iter().map(|entry| entry.id).collect());
    }
}

enum Answer {
    Admitted(Claimed),
    Duplicate,
    Busy,
}

/// What a store makes of a write. Views are left out: nobody but a reader ever sees them.
fn written<T: Clone>(persist: &Persist<T>, mut outbox: Vec<Entry>) -> Document<T> {
    outbox.retain(|entry| !persist.cancel.contains(&entry.id));
    outbox.extend(persist.add.iter().filter(|entry| entry.kind != Kind::View).cloned());
    Document {
        partition: persist.partition,
        version: persist.loaded.unwrap_or(0) + 1,
        content: persist.content.clone(),
        outbox,
    }
}

/// Data without a token that a saga has put into it: the same request by another attempt has another one.
fn without(token: &Token, data: Value) -> Value {
    match data {
        Value::String(text) if text == token.as_str() => Value::Null,
        Value::Array(items) => items.into_iter().map(|item| without(token, item)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, without(token, field))).collect()
        }
        other => other,
    }
}
