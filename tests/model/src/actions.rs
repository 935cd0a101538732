//! What can happen next.

use messages::MessageId;
use saga::Saga;

use crate::system::{Phase, System};

/// One step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action {
    /// A worker receives a message and loads the document first.
    Load(usize, MessageId),
    /// A worker receives a message and is answered with the document before the last write.
    LoadEarlier(usize, MessageId),
    /// A worker receives a message and claims first.
    Claim(usize, MessageId),
    /// A worker that had too few tokens claims first; its next step would be to load first.
    ClaimAgain(usize),
    /// A worker takes its next step.
    Step(usize),
    /// A worker clears the outbox before it gives the partition back: the two run side by side.
    ClearFirst(usize),
    /// A worker forgets everything; its message is delivered again.
    Crash(usize),
    /// The lease of whoever holds the partition runs out.
    ExpireLease,
    /// A timer fires.
    FireTimer(MessageId),
    /// The sweeper sends what is due, whoever claimed it.
    Sweep,
    /// The sweeper settles what it sent.
    SettleSweep,
    /// The retention of an ended partition has passed.
    ExpireDocument,
}

impl<S: Saga> System<S> {
    pub(crate) fn worker_actions(&self, actions: &mut Vec<Action>) {
        for (worker, phase) in self.workers.iter().enumerate() {
            if *phase != Phase::Idle {
                actions.push(Action::Step(worker));
                match phase {
                    Phase::Dispatched(..) => actions.push(Action::ClearFirst(worker)),
                    Phase::Again(..) => actions.push(Action::ClaimAgain(worker)),
                    _ => {}
                }
                if self.crashes > 0 {
                    actions.push(Action::Crash(worker));
                }
                continue;
            }
            // Idle workers are alike: only the first of them needs to be looked at.
            if self.workers[..worker].contains(&Phase::Idle) {
                continue;
            }
            for (id, queued) in &self.queue {
                // One copy at a time is in flight, unless it is a duplicate.
                let in_flight = self.workers.iter().filter(|phase| phase.message() == Some(*id)).count();
                let available = usize::from(!queued.acknowledged) + usize::from(queued.copies);
                if in_flight < available {
                    actions.push(Action::Load(worker, *id));
                    if self.earlier.is_some() {
                        actions.push(Action::LoadEarlier(worker, *id));
                    }
                    actions.push(Action::Claim(worker, *id));
                }
            }
        }
    }

    pub(crate) fn other_actions(&self, actions: &mut Vec<Action>) {
        // The lease of a crashed worker runs out for certain.
        let may_expire = self.expiries > 0 || !self.holder_is_at_work();
        if may_expire && matches!(self.ledger.holder, Some((_, false))) {
            actions.push(Action::ExpireLease);
        }
        if self.timers > 0 {
            actions.extend(self.running().map(|entry| Action::FireTimer(entry.id)));
        }
        let is_due = self.due().next().is_some();
        // When nobody works, time passes: leases run out for free, and stuck claims are taken over.
        if self.sweeper.is_some() {
            actions.push(Action::SettleSweep);
        } else if is_due && (self.sweeps > 0 || self.is_idle()) {
            actions.push(Action::Sweep);
        }
        // The retention is longer than the time a message that was not acknowledged is kept.
        if self.has_ended() && self.is_at_rest() {
            actions.push(Action::ExpireDocument);
        }
    }
}
