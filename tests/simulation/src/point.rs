//! The points at which the scheduler takes over: a future that is pending until it is granted.
//!
//! Each point has a ticket and its own waker, so that one of several concurrent calls of a worker can continue while
//! the others wait.

use std::task::Waker;

use crate::coverage::{Call, Phase};

/// The condition that a point waits for, in addition to its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A side of a call.
    Call(Call, Phase),
    /// A message that is visible in the queue with this index.
    Receive(usize),
    /// An effect that is overdue.
    Sweep,
    /// An exhausted effect.
    Operate,
    /// Failures that an operator has decided to retry.
    Retry,
}

/// The continuation of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// The call continues without a fault.
    Go,
    /// The call returns an error.
    Fail,
    /// The call returns an error and is performed later.
    Late,
    /// The request is sent and performed twice.
    Twice,
    /// The call returns earlier data.
    Stale,
}

/// A waiting worker.
pub(crate) struct Point {
    ticket: u64,
    pub(crate) process: usize,
    pub(crate) kind: Kind,
    pub(crate) not_before: u64,
    waker: Waker,
    granted: Option<Grant>,
}

/// All waiting workers.
#[derive(Default)]
pub(crate) struct Points {
    waiting: Vec<Point>,
    tickets: u64,
}

impl Points {
    pub(crate) fn add(&mut self, process: usize, kind: Kind, not_before: u64, waker: Waker) -> u64 {
        self.tickets += 1;
        let point = Point { ticket: self.tickets, process, kind, not_before, waker, granted: None };
        self.waiting.push(point);
        self.tickets
    }

    pub(crate) fn take(&mut self, ticket: u64, waker: &Waker) -> Option<Grant> {
        let index = self.waiting.iter().position(|point| point.ticket == ticket)?;
        let point = &mut self.waiting[index];
        match point.granted {
            Some(_) => self.waiting.remove(index).granted,
            None => {
                point.waker.clone_from(waker);
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, ticket: u64) {
        self.waiting.retain(|point| point.ticket != ticket);
    }

    /// Returns the points that were not granted yet, with their indexes.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (usize, &Point)> {
        self.waiting.iter().enumerate().filter(|(_, point)| point.granted.is_none())
    }

    /// Resumes a point. The waker must be woken after the borrow of the world has ended.
    pub(crate) fn grant(&mut self, index: usize, grant: Grant) -> Waker {
        let point = &mut self.waiting[index];
        point.granted = Some(grant);
        point.waker.clone()
    }

    /// Delays a point.
    pub(crate) fn hold(&mut self, index: usize, until: u64) {
        self.waiting[index].not_before = until;
    }

    pub(crate) fn at(&self, index: usize) -> &Point {
        &self.waiting[index]
    }
}
