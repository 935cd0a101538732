//! The actions that are possible in a state.

use messages::MessageId;
use outbox::Entry;
use saga::Saga;

use crate::defects::Defect;
use crate::keyed::Of;
use crate::sent::is_request;
use crate::system::{Batch, Phase, QueuedMessage, System};

/// A step of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action {
    /// A worker receives messages and loads the document.
    Load(usize, Batch),
    /// A worker receives messages and loads the version of the document before the last write.
    LoadEarlier(usize, Batch),
    /// A worker takes its next step.
    Step(usize),
    /// A worker sends, and the handler fails permanently on this request. The flag is set if the handler replied before
    /// it failed.
    GiveUp(usize, MessageId, bool),
    /// A worker clears the outbox before it releases the partition; in the engine the two run concurrently.
    ClearFirst(usize),
    /// A worker loses its memory; its messages are redelivered.
    Crash(usize),
    /// The lease of the partition's holder expires.
    ExpireLease,
    /// A timer fires.
    FireTimer(MessageId),
    /// The sweeper sends all due effects, regardless of who claimed them.
    Sweep,
    /// The sweeper settles what it sent.
    SettleSweep,
    /// A worker's grant for the other saga fails, and arrives later.
    DelayGrant(usize),
    /// A worker grants tokens to the other saga, and the call arrives once more later.
    RepeatGrant(usize),
    /// A request of the other saga is moved to the dead-letter queue and reported to that saga. It may be delivered
    /// again later.
    DeadLetter(MessageId),
    /// The retention of an ended partition has passed.
    ExpireDocument,
    /// The ledger item of an idle partition has expired.
    ExpireItem,
}

impl<S: Saga> System<S> {
    /// Returns all possible actions.
    pub(crate) fn actions(&self, defect: Option<Defect>) -> Vec<Action> {
        let mut actions = Vec::new();
        self.worker_actions(&mut actions);
        self.other_actions(&mut actions, defect);
        actions
    }

    fn worker_actions(&self, actions: &mut Vec<Action>) {
        for (worker, phase) in self.workers.iter().enumerate() {
            if *phase != Phase::Idle {
                actions.push(Action::Step(worker));
                match phase {
                    Phase::Stored(_, _, plan) if self.left.failures > 0 => {
                        let requests = plan.value.dispatch.iter().filter(|entry| self.is_command(entry));
                        let fails = |id| [false, true].map(|answered| Action::GiveUp(worker, id, answered));
                        actions.extend(requests.flat_map(|entry| fails(entry.id)));
                    }
                    Phase::Decided(_, _, plan) if self.grants_to_peer(&plan.value) => {
                        if self.left.delayed_grants > 0 {
                            actions.push(Action::DelayGrant(worker));
                        }
                        if self.left.repeated_grants > 0 {
                            actions.push(Action::RepeatGrant(worker));
                        }
                    }
                    Phase::Dispatched(_, _, plan)
                        if !plan.value.dispatch.is_empty() && plan.value.releases_claim =>
                    {
                        actions.push(Action::ClearFirst(worker));
                    }
                    _ => {}
                }
                if self.left.crashes > 0 {
                    actions.push(Action::Crash(worker));
                }
                continue;
            }
            // Idle workers are interchangeable, so only the first of them needs to be considered.
            if self.workers[..worker].contains(&Phase::Idle) {
                continue;
            }
            for batch in self.batches() {
                actions.push(Action::Load(worker, batch));
                if self.earlier.is_some() {
                    actions.push(Action::LoadEarlier(worker, batch));
                }
            }
        }
    }

    /// Returns the batches that a worker may receive: each message alone, and each pair in both orders.
    fn batches(&self) -> impl Iterator<Item = Batch> {
        let single = self.queue.value.keys().map(|id| Batch(*id, None));
        let others = self.queue.value.keys().filter(|_| self.groups);
        let pairs =
            others.flat_map(|second| self.queue.value.keys().map(|first| Batch(*first, Some(*second))));
        single.chain(pairs).filter(|batch| self.may_be_received(*batch))
    }

    fn may_be_received(&self, batch: Batch) -> bool {
        let missing = |id| self.copies_needed(batch, id).saturating_sub(self.queue.value[&id].copies);
        batch.distinct().map(missing).sum::<u8>() <= self.left.duplicates
    }

    fn other_actions(&self, actions: &mut Vec<Action>, defect: Option<Defect>) {
        // The lease of a crashed worker always expires.
        let ends = defect != Some(Defect::LeaseWithoutEnd);
        let may_expire = self.left.expiries > 0 || (ends && !self.holder_is_at_work());
        if may_expire && matches!(self.ledger.holder, Some((_, false))) {
            actions.push(Action::ExpireLease);
        }
        actions.extend(self.dead_letters());
        if self.left.timers > 0 {
            actions.extend(self.running().map(|entry| Action::FireTimer(entry.id)));
        }
        let is_due = self.due().next().is_some();
        // Time passes while all workers are idle: leases expire at no cost to the budget, and stuck claims are taken
        // over.
        if self.sweeper.is_some() {
            actions.push(Action::SettleSweep);
        } else if is_due && (self.left.sweeps > 0 || self.is_idle()) {
            actions.push(Action::Sweep);
        }
        // Both the retention and an item's lifetime exceed the retention of an unacknowledged message.
        let is_over = self.is_at_rest() && (self.has_ended() || self.expired);
        if is_over && self.document.is_some() {
            actions.push(Action::ExpireDocument);
        }
        // A wait for a timer may outlast the item's lifetime.
        let is_waiting = self.is_at_rest() && self.document.is_some();
        let may_forget =
            is_over || is_waiting || (defect == Some(Defect::ItemForgottenEarly) && self.is_idle());
        if may_forget && !self.ledger.expired {
            actions.push(Action::ExpireItem);
        }
    }

    /// Returns the requests of the other saga that may be moved to the dead-letter queue.
    pub(crate) fn dead_letters(&self) -> impl Iterator<Item = Action> {
        let is_request = |queued: &QueuedMessage<Of<S>>| {
            let address = queued.incoming.value.message.reply_to.as_ref();
            address.is_some_and(|address| Some(address.partition) == self.peer)
        };
        let waiting = self.queue.value.iter().filter(|_| self.left.failures > 0);
        let waiting = waiting.filter(move |(_, queued)| !queued.acknowledged && is_request(queued));
        waiting.map(|(id, _)| Action::DeadLetter(*id))
    }

    /// Returns `true` if an entry is a request to a handler. A request to a saga names where its reply goes.
    fn is_command(&self, entry: &Entry) -> bool {
        is_request(entry) && !self.is_for_peer(entry)
    }

    /// Returns `true` if the step happens in every fair execution while work remains. Faults, duplicates, and events
    /// that depend only on time are excluded.
    pub(crate) fn is_certain(&self, action: Action) -> bool {
        match action {
            Action::Step(_) | Action::ClearFirst(_) | Action::SettleSweep => true,
            Action::Load(_, batch) => batch.distinct().all(|id| self.copies_needed(batch, id) == 0),
            Action::ExpireLease => !self.holder_is_at_work(),
            Action::Sweep => self.is_idle(),
            Action::LoadEarlier(..)
            | Action::GiveUp(..)
            | Action::Crash(_)
            | Action::FireTimer(_)
            | Action::DelayGrant(_)
            | Action::RepeatGrant(_)
            | Action::DeadLetter(_)
            | Action::ExpireDocument
            | Action::ExpireItem => false,
        }
    }
}
