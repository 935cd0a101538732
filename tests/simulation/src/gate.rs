//! The future of a point, which is pending until the scheduler grants it.

use std::pin::Pin;
use std::task::{Context, Poll};

use crate::point::{Grant, Kind, Points};
use crate::universe::Universe;

/// Future of a point. Dropping it removes the point.
pub(crate) struct Gate<'a> {
    universe: &'a Universe,
    process: usize,
    kind: Kind,
    not_before: u64,
    ticket: Option<u64>,
}

impl<'a> Gate<'a> {
    pub(crate) fn new(universe: &'a Universe, process: usize, kind: Kind, not_before: u64) -> Self {
        Self { universe, process, kind, not_before, ticket: None }
    }
}

impl Future for Gate<'_> {
    type Output = Grant;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Grant> {
        let (process, kind, not_before) = (self.process, self.kind, self.not_before);
        let waker = context.waker();
        match self.ticket {
            None => {
                let add = |points: &mut Points| points.add(process, kind, not_before, waker.clone());
                self.ticket = Some(self.universe.with(|world| add(&mut world.points)));
                Poll::Pending
            }
            Some(ticket) => match self.universe.with(|world| world.points.take(ticket, waker)) {
                Some(grant) => {
                    self.ticket = None;
                    Poll::Ready(grant)
                }
                None => Poll::Pending,
            },
        }
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.universe.with(|world| world.points.remove(ticket));
        }
    }
}
