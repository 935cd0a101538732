//! What each step does to the system: one call of a store or queue each, decided by the shipped code.

use contracts::{AttemptId, Body, Message, MessageId, SearchId};
use dedup::ledger::Item;
use dedup::{Admission, Claim, Release, Tokens};
use jiff::SignedDuration;
use outbox::Entry;
use saga::Event;
use uuid::Uuid;
use worker::plan::{self, Incoming, Known, Plan, PlanError};
use worker::{Document, Persist};

use crate::inputs::{self, NOW};
use crate::system::{Action, Budget, Claimed, Keyed, Ledger, Phase, Stored, System, queued};

impl System {
    /// Does it; `false` when it changes nothing.
    pub(crate) fn apply(&mut self, action: Action, budget: &Budget) -> bool {
        match action {
            Action::Load(worker, id) => {
                self.take(id);
                self.workers[worker] = Phase::Loaded(id, self.document.clone());
            }
            Action::Claim(worker, id) => {
                self.take(id);
                self.workers[worker] = match self.claim(id) {
                    Answer::Admitted(claimed) => Phase::Claimed(id, claimed),
                    Answer::Duplicate => self.acknowledge(id),
                    Answer::Busy => return false,
                };
            }
            Action::Step(worker) => return self.step(worker, budget),
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
            Action::FireTimeout => self.fire_timeout(budget),
            Action::Sweep => self.sweep(budget),
            Action::SettleSweep => {
                let ids = self.sweeper.take().unwrap();
                self.clear(ids.into_iter());
            }
            Action::ExpireDocument => {
                self.document = None;
                self.expired = true;
            }
        }
        true
    }

    fn step(&mut self, worker: usize, budget: &Budget) -> bool {
        let next = match self.workers[worker].clone() {
            Phase::Idle => return false,
            Phase::Loaded(id, document) => match self.claim(id) {
                Answer::Admitted(claimed) => self.decide(id, claimed, document.as_ref()),
                Answer::Duplicate => self.acknowledge(id),
                Answer::Busy => self.give_back(id),
            },
            Phase::Claimed(id, claimed) => self.decide(id, claimed, self.document.clone().as_ref()),
            Phase::Decided(id, claimed, plan) => self.persist(id, claimed, plan),
            Phase::Conflicted(id, claimed) => {
                self.release(&claimed, claimed.minted.iter().cloned().collect(), false);
                self.give_back(id)
            }
            Phase::Stored(id, claimed, plan) => {
                self.send(&plan.value.dispatch, budget);
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
    fn acknowledge(&mut self, id: MessageId) -> Phase {
        self.queue.get_mut(&id).unwrap().acknowledged = true;
        Phase::Idle
    }

    /// The message goes back to the queue, to be delivered again.
    fn give_back(&mut self, id: MessageId) -> Phase {
        let queued = self.queue.get_mut(&id).unwrap();
        if queued.acknowledged {
            queued.copies += 1;
        }
        Phase::Idle
    }

    fn group(&self, id: MessageId) -> [Incoming; 1] {
        let message = Message::clone(&self.queue[&id].message.value);
        let event = Event::from_message(&message).unwrap();
        [Incoming { message, event }]
    }

    fn claim(&mut self, id: MessageId) -> Answer {
        let group = self.group(id);
        let known = self.known_attempts();
        let mut numbers = (1..).map(|n| AttemptId::from_uuid(Uuid::from_u128(n)));
        let attempt = numbers.find(|attempt| !known.contains(&attempt.to_string())).unwrap();
        let minted = plan::mint(&group, &attempt);
        let claim = Claim {
            partition: search(),
            attempt,
            now: NOW,
            lease: SignedDuration::from_secs(30),
            requires: plan::requirement(&group),
            mint: minted.clone(),
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

    /// Whether dropping a message would lose something: nothing was decided about it, and the search still waits
    /// for it. A timeout is waited for until it is cancelled.
    fn is_needed(&self, id: MessageId) -> bool {
        let message = &self.queue[&id].message.value;
        let cancelled = matches!(message.body, Body::UploadTimeout(_))
            && !self.content().is_some_and(|content| {
                content.expected.iter().any(|expected| Some(&expected.token) == message.token.as_ref())
            });
        !(self.seen.decided.contains(&id) || self.has_ended() || self.expired || cancelled)
    }

    fn decide(&mut self, id: MessageId, claimed: Claimed, stored: Option<&Stored>) -> Phase {
        let group = self.group(id);
        let (tokens, document) = (claimed.tokens(), stored.map(Stored::whole));
        let known = Known {
            search_id: search(),
            document: document.as_ref(),
            tokens: &tokens,
            fence: claimed.fence,
            attempt: claimed.attempt,
            minted: &claimed.minted,
            now: NOW,
            claim_until: NOW + SignedDuration::from_secs(300),
        };
        let plan = match plan::decide(&known, &group) {
            Ok(plan) => plan,
            Err(PlanError::Overtaken) => return Phase::Conflicted(id, claimed),
            Err(error) => panic!("{error}"),
        };
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

    fn persist(&mut self, id: MessageId, claimed: Claimed, plan: Keyed<Plan>) -> Phase {
        let persist = plan.value.persist.as_ref().unwrap();
        if self.document.as_ref().map(|stored| stored.document.value.version) != persist.loaded {
            return Phase::Conflicted(id, claimed);
        }
        let outbox =
            self.document.as_ref().map_or_else(Vec::new, |stored| stored.document.value.outbox.clone());
        self.document = Some(Stored::new(written(persist, outbox), claimed.fence));
        *self.seen.changes.entry(id).or_default() += 1;
        self.seen.decided.insert(id);
        self.seen.stored.extend(persist.add.iter().map(|entry| entry.id));
        Phase::Stored(id, claimed, plan)
    }

    fn send(&mut self, entries: &[Entry], budget: &Budget) {
        for entry in entries {
            self.seen.unstored |= !self.seen.stored.contains(&entry.id);
            let message = Message::decode(&entry.payload).unwrap();
            let arrived = match &message.body {
                Body::StartParsing(command) => {
                    self.seen.commands.entry(command.file_id).or_default().insert(message.id);
                    inputs::reply(&message, command)
                }
                Body::UploadTimeout(_) => message,
                _ => continue,
            };
            self.queue.entry(arrived.id).or_insert_with(|| queued(arrived, budget.copies));
        }
    }

    fn release(
        &mut self,
        claimed: &Claimed,
        remove: std::collections::BTreeSet<contracts::Token>,
        ended: bool,
    ) -> bool {
        let release = Release {
            partition: search(),
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
        self.document = Some(Stored::new(document, stored.fence));
    }

    fn expire_lease(&mut self) {
        if self.holder_is_at_work() {
            self.expiries -= 1;
        }
        if let Some((_, expired)) = &mut self.ledger.holder {
            *expired = true;
        }
    }

    fn fire_timeout(&mut self, budget: &Budget) {
        let timeout: Vec<Entry> = self.timeout().into_iter().cloned().collect();
        self.timeouts -= 1;
        self.send(&timeout, budget);
        self.clear(timeout.iter().map(|entry| entry.id));
    }

    fn sweep(&mut self, budget: &Budget) {
        let due: Vec<Entry> = self.due().into_iter().cloned().collect();
        self.sweeps = self.sweeps.saturating_sub(1);
        self.send(&due, budget);
        self.sweeper = Some(due.into_iter().map(|entry| entry.id).collect());
    }

    /// Whether the partition's holder still works on something.
    pub(crate) fn holder_is_at_work(&self) -> bool {
        let Some((holder, _)) = self.ledger.holder else { return false };
        self.workers.iter().any(|phase| phase.attempt() == Some(holder))
    }
}

enum Answer {
    Admitted(Claimed),
    Duplicate,
    Busy,
}

fn search() -> SearchId {
    inputs::search()
}

/// What a store makes of a write. Jobs are left out: nobody but a reader ever sees them.
fn written(persist: &Persist, mut outbox: Vec<Entry>) -> Document {
    outbox.retain(|entry| !persist.cancel.contains(&entry.id));
    outbox.extend(persist.add.iter().filter(|entry| entry.kind != outbox::Kind::Job).cloned());
    Document {
        search_id: persist.search_id,
        version: persist.loaded.unwrap_or(0) + 1,
        content: persist.content.clone(),
        outbox,
    }
}
