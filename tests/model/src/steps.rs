//! The effects of each step: one call of a store or queue, decided by the production code.

use std::collections::BTreeSet;

use dedup::ledger::{ITEM_LIFETIME, Item};
use dedup::{Admission, Claim, Release};
use jiff::SignedDuration;
use messages::{AttemptId, Message, MessageId, PartitionKey, Payload, Token, Verdict};
use outbox::{Entry, Kind, Settlement};
use saga::plan::{self, PlanError, PlanInput, admission};
use saga::{Document, ExpectedMessage, Persist, Saga};
use serde_json::Value;
use uuid::Uuid;

use crate::actions::Action;
use crate::defects::Defect;
use crate::keyed::{Family, IncomingOf, KeyedValue, Of, PlanOf, key};
use crate::normal::minted_by;
use crate::protocol::{PermanentFailure, Protocol};
use crate::sent::NOW;
use crate::system::{
    Batch, HeldClaim, LEASE, Ledger, Phase, QueuedMessage, StoredDocument, System, TokenDemand,
};

type PhaseOf<S> = Phase<Of<S>>;

impl<S: Saga> System<S> {
    /// Applies an action. Returns `false` if it changes nothing. `out` receives its effects outside of the
    /// partition.
    pub(crate) fn apply(&mut self, action: Action, protocol: &Protocol<S>, out: &mut Outside) -> bool {
        match action {
            Action::Load(worker, batch) => {
                self.take(batch);
                self.workers[worker] = Phase::Loaded(batch, self.document.clone(), None);
            }
            Action::LoadEarlier(worker, batch) => {
                self.take(batch);
                self.left.stale -= 1;
                let earlier = self.earlier.clone().flatten();
                self.earlier = self.earlier.take().filter(|_| self.left.stale > 0);
                self.workers[worker] = Phase::Loaded(batch, earlier, None);
            }
            Action::Step(worker) => return self.step(worker, protocol, out),
            Action::GiveUp(worker, id, answered) => {
                let Phase::Stored(batch, claimed, plan) = self.workers[worker].clone() else { return false };
                self.left.failures -= 1;
                self.send(&plan.value.dispatch, Some(PermanentFailure { id, answered }), protocol, out);
                self.workers[worker] = Phase::Dispatched(batch, claimed, plan);
            }
            Action::ClearFirst(worker) => {
                let Phase::Dispatched(id, claimed, plan) = self.workers[worker].clone() else { return false };
                self.clear(plan.value.dispatch.iter().map(|entry| entry.id));
                self.workers[worker] = Phase::Cleared(id, claimed, plan);
            }
            Action::Crash(worker) => {
                self.left.crashes -= 1;
                self.workers[worker] = Phase::Idle;
            }
            Action::ExpireLease => self.expire_lease(),
            Action::FireTimer(id) => self.fire_timer(id, protocol, out),
            Action::Sweep => self.sweep(protocol, out),
            Action::SettleSweep => {
                let ids = self.sweeper.take().unwrap();
                self.clear(ids.into_iter());
            }
            Action::DelayGrant(worker) => {
                let Phase::Decided(batch, claimed, plan) = self.workers[worker].clone() else { return false };
                self.left.delayed_grants -= 1;
                self.pin(&plan.value, claimed.attempt);
                out.delayed.extend(plan.value.grants.iter().cloned());
                self.workers[worker] = Phase::Refused(batch, claimed);
            }
            Action::RepeatGrant(worker) => {
                let Phase::Decided(_, _, plan) = &self.workers[worker] else { return false };
                self.left.repeated_grants -= 1;
                out.copies.extend(plan.value.grants.iter().cloned());
                return self.step(worker, protocol, out);
            }
            Action::DeadLetter(id) => {
                self.left.failures -= 1;
                self.queued(id, |queued| {
                    queued.acknowledged = true;
                    queued.dead = true;
                    queued.copies += 1;
                });
                out.unanswered.push(self.queue.value[&id].incoming.value.message.clone());
            }
            Action::ExpireDocument => {
                self.document = None;
                self.earlier = None;
                self.expired = true;
            }
            Action::ExpireItem => {
                self.ledger.expired = true;
                if protocol.has(Defect::BegunAgain) {
                    let tokens: Vec<Token> =
                        protocol.inputs.iter().filter_map(|message| message.token.clone()).collect();
                    self.ledger = Ledger::of(Item::with_tokens(Some(self.ledger.item()), &tokens, NOW));
                }
            }
        }
        true
    }

    fn step(&mut self, worker: usize, protocol: &Protocol<S>, out: &mut Outside) -> bool {
        let next = match self.workers[worker].clone() {
            Phase::Idle => return false,
            Phase::Again(batch, need) => Phase::Loaded(batch, self.document.clone(), Some(need)),
            Phase::Loaded(batch, document, _) if self.is_done_before(batch, document.as_ref(), protocol) => {
                self.acknowledge(batch)
            }
            Phase::Loaded(batch, document, need) => {
                match self.claim(batch, document.as_ref(), need, protocol) {
                    Answer::Admitted(claimed) => {
                        self.decide(batch, claimed, document.as_ref(), false, protocol)
                    }
                    Answer::Duplicate => self.acknowledge(batch),
                    Answer::Busy => self.give_back(batch),
                }
            }
            Phase::Claimed(batch, claimed) => {
                self.decide(batch, claimed, self.document.clone().as_ref(), true, protocol)
            }
            Phase::Decided(batch, claimed, plan)
                if self.grants_to_peer(&plan.value) && !protocol.has(Defect::GrantedAfterWrite) =>
            {
                self.grant_for(&plan.value, claimed.attempt, protocol, out);
                Phase::Granted(batch, claimed, plan)
            }
            Phase::Decided(batch, claimed, plan) | Phase::Granted(batch, claimed, plan) => {
                self.persist(batch, claimed, plan, protocol)
            }
            // The minted tokens stay: the worker that overtook this attempt may have used them already. In a full ledger,
            // two workers that overtake each other would write the document any number of times, and the states would
            // not be finite. There the tokens are removed.
            Phase::Conflicted(batch, claimed) if protocol.budget.room.is_none() => {
                self.release(&claimed, BTreeSet::new(), false);
                self.give_back(batch)
            }
            Phase::Conflicted(batch, claimed) | Phase::Refused(batch, claimed) => {
                self.abandon(&claimed);
                self.give_back(batch)
            }
            Phase::Short(batch, claimed, need) => {
                self.abandon(&claimed);
                Phase::Again(batch, need)
            }
            Phase::Stored(batch, claimed, plan) => {
                if protocol.has(Defect::GrantedAfterWrite) {
                    out.grants.extend(plan.value.grants.iter().cloned());
                }
                self.send(&plan.value.dispatch, None, protocol, out);
                Phase::Dispatched(batch, claimed, plan)
            }
            Phase::Dispatched(batch, claimed, plan) => {
                let released = self.leave(&claimed, &plan.value);
                Phase::Released(batch, plan, released)
            }
            Phase::Released(batch, plan, released) => {
                self.clear(plan.value.dispatch.iter().map(|entry| entry.id));
                self.finish(batch, &plan, released, protocol)
            }
            Phase::Cleared(batch, claimed, plan) => {
                let released = self.leave(&claimed, &plan.value);
                self.finish(batch, &plan, released, protocol)
            }
        };
        self.workers[worker] = next;
        true
    }

    /// Receives messages, which may be copies of messages that are acknowledged or in flight.
    fn take(&mut self, batch: Batch) {
        for id in batch.distinct() {
            let needed = self.copies_needed(batch, id);
            let own = needed.min(self.queue.value[&id].copies);
            self.left.duplicates -= needed - own;
            if own > 0 {
                self.queued(id, |queued| queued.copies -= own);
            }
        }
    }

    fn queued(&mut self, id: MessageId, change: impl FnOnce(&mut QueuedMessage<Of<S>>)) {
        self.queue.change(|queue| change(queue.get_mut(&id).unwrap()));
    }

    /// Acknowledges the messages. A crash just before this step is equivalent to a copy delivered just after it.
    fn acknowledge(&mut self, batch: Batch) -> PhaseOf<S> {
        batch.iter().for_each(|id| self.acknowledge_one(id));
        Phase::Idle
    }

    fn acknowledge_one(&mut self, id: MessageId) {
        if self.is_needed(id) {
            self.seen.change(|seen| seen.lost = true);
        }
        self.queued(id, |queued| queued.acknowledged = true);
    }

    /// Returns the messages to the queue for redelivery.
    fn give_back(&mut self, batch: Batch) -> PhaseOf<S> {
        batch.iter().for_each(|id| self.return_to_queue(id));
        Phase::Idle
    }

    fn return_to_queue(&mut self, id: MessageId) {
        self.queued(id, |queued| queued.copies += u8::from(queued.acknowledged));
    }

    /// Acknowledges or returns the messages after all steps were performed.
    fn finish(
        &mut self,
        batch: Batch,
        plan: &KeyedValue<PlanOf<Of<S>>>,
        released: bool,
        protocol: &Protocol<S>,
    ) -> PhaseOf<S> {
        match plan.value.retry_with {
            _ if !released => return self.give_back(batch),
            Some(need) => return Phase::Again(batch, need.into()),
            None => {}
        }
        for (id, decision) in batch.iter().zip(&plan.value.decisions) {
            let is_postponed = decision.verdict == Verdict::Retried;
            if is_postponed && !protocol.has(Defect::PostponedAcknowledged) {
                self.return_to_queue(id);
            } else {
                self.acknowledge_one(id);
            }
            if decision.verdict == Verdict::Rejected {
                self.queued(id, |queued| queued.dead = true);
            }
        }
        Phase::Idle
    }

    /// Returns `true` if the loaded document shows that no work is needed.
    fn is_done_before(
        &self,
        batch: Batch,
        document: Option<&StoredDocument<Of<S>>>,
        protocol: &Protocol<S>,
    ) -> bool {
        let Some(mut document) = document.map(StoredDocument::whole) else { return false };
        if protocol.has(Defect::EndBelieved) {
            document.content.ended_at = None;
        }
        plan::already_processed(&document, &self.group(batch), NOW).is_some()
    }

    fn claim(
        &mut self,
        batch: Batch,
        document: Option<&StoredDocument<Of<S>>>,
        need: Option<TokenDemand>,
        protocol: &Protocol<S>,
    ) -> Answer {
        let group = self.group(batch);
        let known = self.known_attempts();
        let mut numbers = (1..).map(|n| AttemptId::from_uuid(Uuid::from_u128(n)));
        let attempt = numbers.find(|attempt| !known.contains(attempt)).unwrap();
        let events: Vec<&S::Event> = group.iter().map(|incoming| &incoming.event).collect();
        let need = need.filter(|_| !protocol.has(Defect::NeedForgotten));
        let count = need.map_or_else(|| protocol.saga.tokens(&events), |need| need.tokens);
        let least = protocol.budget.room.map_or(usize::MAX, usize::from);
        let claim = Claim {
            partition: self.partition,
            attempt,
            now: NOW,
            lease: LEASE,
            supersedes: document.and_then(|stored| stored.document.value.content.finished()),
            requires: admission::condition(match protocol.has(Defect::FirstTokenRequired) {
                true => &group[..1],
                false => &group,
            }),
            new_tokens: admission::mint(self.partition, &attempt, count),
            max_tokens: match protocol.has(Defect::RoomIgnored) {
                true => usize::MAX,
                false => need.map_or(least, |need| need.room.max(least)),
            },
            // A rejected claim returns the fence, and the claim is repeated with it.
            fence: if self.ledger.expired { 0 } else { self.ledger.fence },
            above: document.map_or(0, |stored| stored.fence),
            until: NOW,
        };
        let (mut admission, mut item) = Item::claim(Some(self.ledger.item()), &claim);
        let whole = document.map(StoredDocument::whole);
        if admission == Admission::Duplicate
            && let Some(requires) = admission::condition_if_expected(&claim.requires, whole.as_ref(), &group)
        {
            let claim = Claim { requires, ..claim.clone() };
            (admission, item) = Item::claim(Some(self.ledger.item()), &claim);
        }
        match admission {
            Admission::Admitted(admitted) => {
                self.ledger = Ledger::of(item.unwrap());
                let (attempt, tokens) = (claim.attempt, self.ledger.tokens.clone());
                Answer::Admitted(HeldClaim {
                    attempt,
                    fence: admitted.fence,
                    tokens,
                    minted: count,
                    owns_minted: document.is_some(),
                })
            }
            Admission::Duplicate => Answer::Duplicate,
            Admission::Busy { .. } | Admission::Moved { .. } => Answer::Busy,
        }
    }

    /// Returns the messages as input of the planner.
    fn group(&self, batch: Batch) -> Vec<IncomingOf<Of<S>>> {
        batch.iter().map(|id| IncomingOf::<Of<S>>::clone(&self.queue.value[&id].incoming.value)).collect()
    }

    /// Returns `true` if dropping the message would lose it: no decision was made about it or about another message
    /// with its token, and the partition still expects it. A timer's event is expected until the timer is cancelled.
    fn is_needed(&self, id: MessageId) -> bool {
        let token = |id: &MessageId| self.queue.value[id].incoming.value.message.token.as_ref();
        if self.has_ended()
            || self.expired
            || self.seen.value.decided.iter().any(|other| token(other) == token(&id))
        {
            return false;
        }
        let is_expected = self.content().is_some_and(|content| {
            content.expected.iter().any(|expected| Some(&expected.token) == token(&id))
        });
        self.queue.value[&id].incoming.value.message.timer.is_none() || is_expected
    }

    fn decide(
        &mut self,
        batch: Batch,
        claimed: HeldClaim,
        stored: Option<&StoredDocument<Of<S>>>,
        is_latest: bool,
        protocol: &Protocol<S>,
    ) -> PhaseOf<S> {
        let (tokens, minted, document) =
            (claimed.tokens(), claimed.minted(self.partition), stored.map(StoredDocument::whole));
        let input = PlanInput {
            function: "model",
            partition: self.partition,
            document: document.as_ref(),
            tokens: &tokens,
            fence: if protocol.has(Defect::FenceIgnored) { u64::MAX } else { claimed.fence },
            attempt: claimed.attempt,
            minted: &minted,
            now: NOW,
            claim_until: NOW + SignedDuration::from_secs(300),
            max_leftover: protocol.budget.keep.into(),
            expires_at: NOW + ITEM_LIFETIME,
        };
        let plan = match plan::decide(&protocol.saga, &input, &self.group(batch)) {
            Ok(plan) => plan,
            Err(PlanError::Overtaken) => return Phase::Conflicted(batch, claimed),
            Err(PlanError::TooFewTokens(need)) => return Phase::Short(batch, claimed, need.into()),
            Err(
                error @ (PlanError::Stage(_)
                | PlanError::Broken(_)
                | PlanError::Unawaited(_)
                | PlanError::TooManyLists(_)),
            ) => {
                panic!("{error}")
            }
        };
        let believes = is_latest || input.is_latest() || protocol.has(Defect::StaleDropBelieved);
        if plan.needs_reread() && !believes {
            return Phase::Claimed(batch, claimed);
        }
        // The plan is a function of these values, so their hash serves as its key.
        let document = stored.map(|stored| &stored.document);
        let plan = KeyedValue::new(plan, &(batch, document, claimed.attempt, &claimed.tokens));
        if plan.value.persist.is_some() {
            return Phase::Decided(batch, claimed, plan);
        }
        self.note(batch, &plan.value);
        self.take_over(&plan.value);
        stored_or_sent(batch, claimed, plan)
    }

    fn persist(
        &mut self,
        batch: Batch,
        claimed: HeldClaim,
        plan: KeyedValue<PlanOf<Of<S>>>,
        protocol: &Protocol<S>,
    ) -> PhaseOf<S> {
        let persist = plan.value.persist.as_ref().unwrap();
        if self.document.as_ref().map(|stored| stored.document.value.version) != persist.loaded {
            return Phase::Conflicted(batch, claimed);
        }
        let outbox =
            self.document.as_ref().map_or_else(Vec::new, |stored| stored.document.value.outbox.clone());
        self.earlier = (self.left.stale > 0).then(|| self.document.take());
        let mut document = written(persist, outbox);
        if protocol.has(Defect::ForgottenWhileAdmitted) {
            document.content.processed.retain(|processed| batch.contains(processed.id));
        }
        self.document = Some(StoredDocument::new(document, claimed.fence));
        self.note(batch, &plan.value);
        self.seen.change(|seen| seen.stored.extend(persist.add.iter().map(|entry| entry.id)));
        self.take_over(&plan.value);
        stored_or_sent(batch, claimed, plan)
    }

    /// Stores the takeovers of entries. A crash before this step is equivalent to one before the decision.
    fn take_over(&mut self, plan: &PlanOf<Of<S>>) {
        let Some(stored) = self.document.as_ref().filter(|_| !plan.takeovers.is_empty()) else { return };
        let mut document = stored.whole();
        for Settlement { id, claim, keep } in &plan.takeovers {
            let holds = |entry: &&mut Entry| entry.id == *id && entry.claimed_until == *claim;
            let (Some(entry), Some(keep)) = (document.outbox.iter_mut().find(holds), keep) else { continue };
            entry.clone_from(keep);
        }
        self.document = Some(StoredDocument::of_state(document, stored.fence, stored.state));
    }

    /// Records the committed decision about each message.
    fn note(&mut self, batch: Batch, plan: &PlanOf<Of<S>>) {
        self.seen.change(|seen| {
            for (id, decision) in batch.iter().zip(&plan.decisions) {
                if decision.verdict == Verdict::Handled {
                    *seen.changes.entry(id).or_default() += 1;
                }
                if !matches!(decision.verdict, Verdict::Duplicate | Verdict::Retried) {
                    seen.decided.insert(id);
                }
            }
        });
    }

    /// Sends entries. A handler replies immediately; its other work is not modelled.
    fn send(
        &mut self,
        entries: &[Entry],
        failing: Option<PermanentFailure>,
        protocol: &Protocol<S>,
        out: &mut Outside,
    ) {
        for entry in entries {
            if !self.seen.value.stored.contains(&entry.id) {
                self.seen.change(|seen| seen.unstored = true);
            }
            let Kind::Message(queue) = &entry.kind else { continue };
            let message = Message::decode(&entry.payload).unwrap();
            if protocol.has(Defect::GrantedWhenSent) && self.is_for_peer(entry) && message.reply_to.is_some()
            {
                out.grants.extend(message.token.clone().map(|token| (message.partition, token)));
            }
            let arrived = if *queue == S::Event::QUEUE && message.partition == self.partition {
                vec![message]
            } else {
                if let Some(token) = &message.reply_token {
                    let said =
                        (queue, &message.body.name, without(token, message.body.data.value()).to_string());
                    self.seen.change(|seen| {
                        seen.asked.entry(key(&said)).or_default().insert(message.id);
                    });
                }
                if self.peer == Some(message.partition) {
                    out.messages.push(match protocol.has(Defect::AttemptsShareTokens) {
                        true => with_shared_token(message),
                        false => message,
                    });
                    continue;
                }
                protocol.answers(&message, failing.filter(|failing| failing.id == entry.id))
            };
            self.receive(arrived, protocol);
        }
    }

    /// Adds messages to the queue. A message that was sent earlier is not changed.
    pub(crate) fn receive(&mut self, arrived: Vec<Message>, protocol: &Protocol<S>) {
        let (copies, partition) = (protocol.budget.copies, self.partition);
        self.queue.change(|queue| {
            for message in arrived {
                queue.entry(message.id).or_insert_with(|| QueuedMessage::new(message, partition, copies));
            }
        });
    }

    /// Adds tokens of the other saga's events.
    pub(crate) fn receive_grant(&mut self, token: Token) {
        self.ledger = Ledger::of(Item::with_tokens(Some(self.ledger.item()), &[token], NOW));
    }

    /// Returns `true` if a plan grants tokens to the other saga.
    pub(crate) fn grants_to_peer(&self, plan: &PlanOf<Of<S>>) -> bool {
        plan.grants.iter().any(|(partition, _)| Some(*partition) == self.peer)
    }

    /// Returns `true` if an entry is a message for the other saga.
    pub(crate) fn is_for_peer(&self, entry: &Entry) -> bool {
        let is_message = matches!(entry.kind, Kind::Message(_)) && self.peer.is_some();
        is_message && self.peer == Some(Message::decode(&entry.payload).unwrap().partition)
    }

    /// Grants the tokens of the plan's events to the other saga.
    fn grant_for(
        &mut self,
        plan: &PlanOf<Of<S>>,
        attempt: AttemptId,
        protocol: &Protocol<S>,
        out: &mut Outside,
    ) {
        self.pin(plan, attempt);
        if protocol.has(Defect::GrantedToSender) {
            plan.grants.iter().for_each(|(_, token)| self.receive_grant(token.clone()));
            return;
        }
        if protocol.has(Defect::AttemptsShareTokens) {
            let entries = plan.persist.iter().flat_map(|persist| &persist.add);
            let messages = entries.filter(|entry| self.is_for_peer(entry));
            let messages = messages.map(|entry| with_shared_token(Message::decode(&entry.payload).unwrap()));
            out.grants.extend(messages.filter_map(|message| Some((message.partition, message.token?))));
            return;
        }
        if let (Some(Defect::ReplyTokenMoved), Some(peer)) = (protocol.budget.defect, self.peer) {
            let expected = plan.persist.iter().flat_map(|persist| &persist.content.expected);
            let replies = expected.filter(|expected| matches!(expected.by, ExpectedMessage::Reply(_)));
            let replies: Vec<Token> = replies.map(|expected| expected.token.clone()).collect();
            self.ledger.tokens.change(|tokens| tokens.retain(|token| !replies.contains(token)));
            out.grants.extend(replies.into_iter().map(|token| (peer, token)));
        }
        out.grants.extend(plan.grants.iter().cloned());
    }

    /// Keeps the numbers of the attempts whose tokens leave the partition.
    fn pin(&mut self, plan: &PlanOf<Of<S>>, attempt: AttemptId) {
        let expected = plan.persist.iter().flat_map(|persist| &persist.content.expected);
        let of_tokens: Vec<AttemptId> =
            expected.filter_map(|expected| minted_by(&expected.token)).chain([attempt]).collect();
        self.pinned.change(|pinned| pinned.extend(of_tokens));
    }

    /// Releases the partition after an attempt that stored nothing. Without a document, the tokens of the attempt
    /// remain available to other attempts.
    fn abandon(&mut self, claimed: &HeldClaim) {
        let own = if claimed.owns_minted { claimed.minted(self.partition) } else { Vec::new() };
        self.release(claimed, own.into_iter().collect(), false);
    }

    /// Releases the partition if the plan requires it.
    fn leave(&mut self, claimed: &HeldClaim, plan: &PlanOf<Of<S>>) -> bool {
        !plan.releases_claim || self.release(claimed, plan.remove.clone(), plan.ended)
    }

    fn release(&mut self, claimed: &HeldClaim, remove: BTreeSet<Token>, ended: bool) -> bool {
        let release = Release {
            partition: self.partition,
            attempt: claimed.attempt,
            fence: claimed.fence,
            remove,
            ended,
            until: None,
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
        self.document = Some(StoredDocument::of_state(document, stored.fence, stored.state));
    }

    fn expire_lease(&mut self) {
        if self.holder_is_at_work() {
            self.left.expiries -= 1;
        }
        if let Some((_, expired)) = &mut self.ledger.holder {
            *expired = true;
        }
    }

    fn fire_timer(&mut self, id: MessageId, protocol: &Protocol<S>, out: &mut Outside) {
        let timer: Vec<Entry> = self.running().filter(|entry| entry.id == id).cloned().collect();
        self.left.timers -= 1;
        self.send(&timer, None, protocol, out);
        self.clear(std::iter::once(id));
    }

    fn sweep(&mut self, protocol: &Protocol<S>, out: &mut Outside) {
        let due: Vec<Entry> = self.due().cloned().collect();
        self.left.sweeps = self.left.sweeps.saturating_sub(1);
        self.send(&due, None, protocol, out);
        self.sweeper = Some(due.into_iter().map(|entry| entry.id).collect());
    }
}

/// The effects of an action outside of its partition.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// Messages for the other saga.
    pub(crate) messages: Vec<Message>,
    /// Tokens that are granted.
    pub(crate) grants: Vec<(PartitionKey, Token)>,
    /// Tokens that are granted later.
    pub(crate) delayed: Vec<(PartitionKey, Token)>,
    /// The tokens whose grant will arrive a second time.
    pub(crate) copies: Vec<(PartitionKey, Token)>,
    /// Requests of the other saga that are dead-lettered.
    pub(crate) unanswered: Vec<Message>,
}

enum Answer {
    Admitted(HeldClaim),
    Duplicate,
    Busy,
}

/// Returns the phase after the write. If there is nothing to send, the sending step is skipped.
fn stored_or_sent<F: Family>(batch: Batch, claimed: HeldClaim, plan: KeyedValue<PlanOf<F>>) -> Phase<F> {
    match plan.value.dispatch.is_empty() {
        true => Phase::Dispatched(batch, claimed, plan),
        false => Phase::Stored(batch, claimed, plan),
    }
}

/// Returns the document that results from a write. Views and records are omitted, because only readers see them.
fn written<T: Clone>(persist: &Persist<T>, mut outbox: Vec<Entry>) -> Document<T> {
    outbox.retain(|entry| !persist.cancel.contains(&entry.id));
    outbox.extend(persist.add.iter().filter(|entry| entry.is_message()).cloned());
    Document {
        partition: persist.partition,
        version: persist.version,
        content: persist.content.clone(),
        outbox,
    }
}

/// Replaces the token of an event for another saga with a token that does not depend on the attempt. A reply keeps its
/// token.
fn with_shared_token(message: Message) -> Message {
    if message.token.as_ref().is_some_and(Token::is_from_attempt) {
        return message;
    }
    let token = Token::minted_at_entry(message.partition, message.id.as_uuid());
    Message { token: Some(token), ..message }
}

/// Removes the saga's token from the data: another attempt at the same request has another token.
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
