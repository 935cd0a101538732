//! The result of a transition.

use jiff::Timestamp;
use messages::store::chain;
use messages::{Body, PartitionKey, Payload, Queue, Token};
use outbox::{Key, unsupported_record};
use serde::Serialize;
use serde_json::Value;

use crate::recurrence::Recurrence;
use crate::requester::Requester;

/// The result of a transition for one event.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision<S> {
    /// Changes the state. The effects are stored with it in one write.
    Advance(Advance<S>),
    /// Changes nothing. This decision is not an error: duplicates and late messages are expected.
    Ignore {
        /// The reason, for the decision log.
        why: String,
    },
    /// Leaves an early event in its queue, because it can only be decided after another one. Changes nothing. The event is
    /// delivered again with growing delays of up to 5 to 10 hours. After 40 hours or more, at delivery
    /// [`LAST_POSTPONED_DELIVERY`](crate::runner::LAST_POSTPONED_DELIVERY), it is dead-lettered with its reason. If the
    /// partition ends before, the next delivery is a duplicate.
    Postpone {
        /// The reason, for the decision log.
        why: String,
    },
    /// Refuses an invalid message. It is not retried but moved to the dead-letter queue.
    Reject {
        /// The reason, for the decision log and the operator.
        why: String,
    },
}

/// A change of state with its effects, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Advance<S> {
    /// The new state.
    pub next: Box<S>,
    /// The effects.
    pub effects: Vec<Effect>,
    /// The reason, for the decision log.
    pub why: String,
}

/// An effect of a transition, as data.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Sends a message without waiting for a reply.
    Send {
        /// The destination.
        to: Queue,
        /// The message.
        body: Body,
    },
    /// Sends a request, which carries the right to reply once.
    Request {
        /// The destination.
        to: Queue,
        /// The message.
        body: Body,
    },
    /// Sends an event to a partition of any saga.
    Notify {
        /// The queue of the saga.
        to: Queue,
        /// The partition.
        partition: PartitionKey,
        /// The event.
        body: Body,
        /// `true` for a request, which carries the right to reply once.
        is_request: bool,
    },
    /// Replies to the request of another partition.
    Reply {
        /// The queue of the saga that sent the request.
        to: Queue,
        /// The partition that sent the request.
        partition: PartitionKey,
        /// The token of the reply; `None` without a ledger.
        token: Option<Token>,
        /// The reply, an event of that saga.
        body: Body,
    },
    /// Sends an event at a later time, unless its timer is cancelled or set again before.
    Schedule {
        /// The timer's name.
        timer: String,
        /// The due time.
        due_at: Timestamp,
        /// The destination.
        to: Queue,
        /// The event.
        body: Body,
    },
    /// Cancels a timer.
    Cancel {
        /// The timer's name.
        timer: String,
    },
    /// Updates the view for readers.
    UpdateView,
    /// Writes or removes a record that belongs to the instance.
    Write {
        /// The record.
        key: Key,
        /// The new content; `None` to remove the record.
        body: Option<Value>,
    },
    /// A message or record that cannot be serialized as JSON; it fails the attempt.
    Broken(String),
}

impl<S> Decision<S> {
    /// Changes the state; effects can be added to the result.
    pub fn to(next: S, why: impl Into<String>) -> Advance<S> {
        Advance { next: Box::new(next), effects: Vec::new(), why: why.into() }
    }

    /// Changes nothing.
    pub fn ignore(why: impl Into<String>) -> Self {
        Self::Ignore { why: why.into() }
    }

    /// Leaves an early event in its queue for a while.
    pub fn postpone(why: impl Into<String>) -> Self {
        Self::Postpone { why: why.into() }
    }

    /// Refuses the message permanently.
    pub fn reject(why: impl Into<String>) -> Self {
        Self::Reject { why: why.into() }
    }
}

impl<S> Advance<S> {
    /// Sends a message.
    #[must_use]
    pub fn send<P: Payload>(self, message: &P) -> Self {
        self.with(message, |to, body| Effect::Send { to, body })
    }

    /// Sends a request, which is to be answered. The event fails if the next state has ended, because the reply would then
    /// not be admitted. If another event ends the instance first, the receiver drops the request: nothing waits for it.
    #[must_use]
    pub fn ask<P: Payload>(self, message: &P) -> Self {
        self.with(message, |to, body| Effect::Request { to, body })
    }

    /// Replies to a request of another instance. Only the first reply to a request takes effect.
    #[must_use]
    pub fn reply<E: Payload>(self, requester: &Requester<E>, reply: &E) -> Self {
        let (partition, token) = (requester.partition(), requester.token().cloned());
        self.with(reply, |to, body| Effect::Reply { to, partition, token, body })
    }

    /// Sets a timer that sends an event. A running timer of the same name is cancelled.
    #[must_use]
    pub fn schedule<P: Payload>(self, timer: &str, due_at: Timestamp, event: &P) -> Self {
        let timer = timer.to_owned();
        self.with(event, |to, body| Effect::Schedule { timer, due_at, to, body })
    }

    /// Sets a timer for the next one of recurring times, after both `now` and `last`. `event` receives this time and should
    /// contain it: the transition for that event sets the timer again, with the contained time as `last`. The first time,
    /// `last` is `None`.
    #[must_use]
    pub fn repeat<P: Payload>(
        self,
        timer: &str,
        times: &Recurrence,
        now: Timestamp,
        last: Option<Timestamp>,
        event: impl FnOnce(Timestamp) -> P,
    ) -> Self {
        let due_at = times.next(now, last);
        self.schedule(timer, due_at, &event(due_at))
    }

    /// Cancels a timer if the timer is running.
    #[must_use]
    pub fn cancel(mut self, timer: &str) -> Self {
        self.effects.push(Effect::Cancel { timer: timer.to_owned() });
        self
    }

    /// Updates the view for readers to the new state.
    #[must_use]
    pub fn show(mut self) -> Self {
        self.effects.push(Effect::UpdateView);
        self
    }

    /// Writes a record of the application, which belongs to this instance. No session and no other instance may write it:
    /// a write whose revision the record has already reached is dropped, and each instance counts its own revisions. The
    /// simulator reports such a record. Sessions read it with [`outbox::Session::read`], and are refused if it changes
    /// before they commit. The record is written after the change of the state, like a message. Readers may therefore see
    /// the previous content for a moment, but never an earlier one again. The record stays when the instance ends, unless
    /// a transition [removes](Advance::remove) it.
    #[must_use]
    pub fn write(mut self, key: Key, content: &impl Serialize) -> Self {
        self.effects.push(match serde_json::to_value(content) {
            Ok(body) => match unsupported_record(&key, &body) {
                Some(why) => Effect::Broken(format!("record {key} cannot be stored: {why}")),
                None => Effect::Write { key, body: Some(body) },
            },
            Err(error) => Effect::Broken(format!("record {key} cannot be encoded: {error}")),
        });
        self
    }

    /// Removes a record of this instance. Writes of the record that were staged before are not performed any more.
    #[must_use]
    pub fn remove(mut self, key: Key) -> Self {
        self.effects.push(match unsupported_record(&key, &Value::Null) {
            Some(why) => Effect::Broken(format!("record {key} cannot be removed: {why}")),
            None => Effect::Write { key, body: None },
        });
        self
    }

    pub(crate) fn with<P: Payload>(
        mut self,
        message: &P,
        effect: impl FnOnce(Queue, Body) -> Effect,
    ) -> Self {
        let effect = match message.body() {
            Ok(body) => effect(P::QUEUE, body),
            Err(error) => Effect::Broken(chain(&error)),
        };
        self.effects.push(effect);
        self
    }
}

impl<S> From<Advance<S>> for Decision<S> {
    fn from(advance: Advance<S>) -> Self {
        Self::Advance(advance)
    }
}
