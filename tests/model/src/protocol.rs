//! The checked protocol, and its budget of faults.

use messages::{Message, MessageId};
use saga::Saga;

use crate::defects::Defect;
use crate::sent::is_report;

/// A saga, the messages of one partition, and a budget of faults.
#[derive(Debug, Clone)]
pub struct Protocol<S: Saga> {
    /// The saga.
    pub saga: S,
    /// Messages from entry points, all of one partition and each with its token, as created by [`crate::input`]. Use at
    /// least two; otherwise two workers rarely compete.
    pub inputs: Vec<Message>,
    /// The replies of handlers to a message of the saga, as created by [`crate::reply`], followed by the report of a
    /// permanent failure, as created by [`crate::report`]. A message for external recipients has no replies.
    pub replies: fn(&Message) -> Vec<Message>,
    /// The budget of faults.
    pub budget: Budget,
}

/// A budget of faults, which may occur at any step. Each further fault multiplies the number of states by about ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// Crashes of a worker.
    pub crashes: u8,
    /// Leases that expire while their holder still works. The lease of a crashed worker always expires, at no cost to
    /// the budget.
    pub expiries: u8,
    /// Duplicate deliveries of each message, after its acknowledgement or concurrent with another delivery.
    pub copies: u8,
    /// Duplicate deliveries of all messages together.
    pub duplicates: u8,
    /// Concurrent sweeps of the outbox, which take over entries that workers have claimed.
    pub sweeps: u8,
    /// Timers that fire.
    pub timers: u8,
    /// Loads that return the version before the latest, or nothing instead of the first.
    pub stale: u8,
    /// `true` if a worker may receive two messages in one batch, in either order, or two copies of one message.
    pub groups: bool,
    /// Requests that fail permanently, before or after a reply. Requests sent by the sweeper never fail.
    pub failures: u8,
    /// The maximum number of tokens in the item at which a claim may add more; `None` for unlimited capacity.
    pub room: Option<u8>,
    /// The maximum number of tokens that an attempt leaves for a later one to remove. If 0, every attempt releases the
    /// partition.
    pub keep: u8,
    /// Grants of tokens to the other saga that fail for their worker, and arrive at any later time. Only in a
    /// [`Pair`](crate::pair::Pair).
    pub delayed_grants: u8,
    /// Grants of tokens to the other saga that arrive a second time, at any later time. Only in a
    /// [`Pair`](crate::pair::Pair).
    pub repeated_grants: u8,
    /// A defect injected into the system around the saga, to verify that the check finds it.
    pub defect: Option<Defect>,
}

impl Budget {
    /// A budget without faults.
    pub const NONE: Self = Self {
        crashes: 0,
        expiries: 0,
        copies: 0,
        duplicates: 0,
        sweeps: 0,
        timers: 0,
        stale: 0,
        groups: false,
        failures: 0,
        room: None,
        keep: 0,
        delayed_grants: 0,
        repeated_grants: 0,
        defect: None,
    };

    /// Returns the number of faults after which another attempt follows.
    pub(crate) fn faults(&self) -> u8 {
        let attempts = [self.crashes, self.expiries, self.copies, self.duplicates, self.stale, self.failures];
        attempts.into_iter().chain([self.delayed_grants, self.repeated_grants]).sum()
    }
}

/// A request that fails permanently.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PermanentFailure {
    pub(crate) id: MessageId,
    /// `true` if the handler replied before it failed.
    pub(crate) answered: bool,
}

impl<S: Saga> Protocol<S> {
    pub(crate) fn has(&self, defect: Defect) -> bool {
        self.budget.defect == Some(defect)
    }

    /// Returns the report of a message that has failed permanently.
    pub(crate) fn report(&self, message: &Message) -> Option<Message> {
        (self.replies)(message).into_iter().find(|answer| is_report(message, answer))
    }

    /// Returns the replies of the handler that receives a message.
    pub(crate) fn answers(&self, message: &Message, failing: Option<PermanentFailure>) -> Vec<Message> {
        let wanted = |is_report: bool| match failing {
            None => !is_report,
            Some(PermanentFailure { answered, .. }) => is_report || answered,
        };
        let mut answers = (self.replies)(message);
        answers.retain(|answer| wanted(is_report(message, answer)));
        answers
    }
}
