//! What a transition answers.

use jiff::Timestamp;
use messages::store::chain;
use messages::{Body, Payload, Queue};

/// What is to become of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision<S> {
    /// The state changes, and the effects are stored with it in one write.
    Advance(Advance<S>),
    /// Nothing changes. Not an error: duplicates and latecomers are expected.
    Ignore {
        /// Why, for the decision log.
        why: String,
    },
    /// The message is wrong in itself. It is never tried again but kept in the dead-letter queue.
    Reject {
        /// Why, for the decision log and the operator.
        why: String,
    },
}

/// A change of state with its effects, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Advance<S> {
    /// The state from now on.
    pub next: Box<S>,
    /// What is to be done.
    pub effects: Vec<Effect>,
    /// Why, for the decision log.
    pub why: String,
}

/// What a transition wants done, as data.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Send a message that nobody here waits for an answer to.
    Send {
        /// Where to.
        to: Queue,
        /// What it says.
        body: Body,
    },
    /// Send a message with the right to answer it once.
    Ask {
        /// Where to.
        to: Queue,
        /// What it says.
        body: Body,
    },
    /// Send an event at a later time, unless its timer is cancelled or set again before.
    Schedule {
        /// The timer's name.
        timer: String,
        /// When it is due.
        due_at: Timestamp,
        /// Where to.
        to: Queue,
        /// The event.
        body: Body,
    },
    /// Forget a timer.
    Cancel {
        /// Its name.
        timer: String,
    },
    /// Show readers the state.
    Show,
    /// A message that cannot be written as JSON; it fails the attempt.
    Broken(String),
}

impl<S> Decision<S> {
    /// Changes the state; effects are added to the answer.
    pub fn to(next: S, why: impl Into<String>) -> Advance<S> {
        Advance { next: Box::new(next), effects: Vec::new(), why: why.into() }
    }

    /// Changes nothing.
    pub fn ignore(why: impl Into<String>) -> Self {
        Self::Ignore { why: why.into() }
    }

    /// Refuses the message for good.
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

    /// Sends a message that is to be answered.
    #[must_use]
    pub fn ask<P: Payload>(self, message: &P) -> Self {
        self.with(message, |to, body| Effect::Ask { to, body })
    }

    /// Sets a timer that sends an event. A timer of this name that runs already is cancelled.
    #[must_use]
    pub fn schedule<P: Payload>(self, timer: &str, due_at: Timestamp, event: &P) -> Self {
        let timer = timer.to_owned();
        self.with(event, |to, body| Effect::Schedule { timer, due_at, to, body })
    }

    /// Cancels a timer, if it runs.
    #[must_use]
    pub fn cancel(mut self, timer: &str) -> Self {
        self.effects.push(Effect::Cancel { timer: timer.to_owned() });
        self
    }

    /// Shows readers the new state.
    #[must_use]
    pub fn show(mut self) -> Self {
        self.effects.push(Effect::Show);
        self
    }

    fn with<P: Payload>(mut self, message: &P, effect: impl FnOnce(Queue, Body) -> Effect) -> Self {
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
