//! Which queue is behind which function.

use std::time::Duration;

use messages::{Queue, QueueSpec};
use saga::System;

/// How many batches are with a function at the same time. An emulator runs one invocation after the other, so two at a
/// time keep it busy.
const CONCURRENCY: usize = 2;

/// A queue with a function behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The queue.
    pub queue: Queue,
    /// The function's name.
    pub function: &'static str,
    /// The most messages of one invocation.
    pub batch_size: usize,
    /// How long to wait for a batch to fill.
    pub window: Duration,
    /// How many batches are with the function at the same time.
    pub concurrency: usize,
}

impl Source {
    /// The sources of an application: every queue of its table that has a function behind it.
    pub fn of<P>(system: &System<P>) -> Vec<Self> {
        let source = |function: &&saga::Function<P>| {
            let queue = function.source.queue()?;
            let batch_size = QueueSpec::of(system.queues, queue)?.batch_size;
            let (queue, function) = (queue.clone(), function.name);
            let (window, concurrency) = (Duration::ZERO, CONCURRENCY);
            Some(Self { queue, function, batch_size, window, concurrency })
        };
        system.functions.iter().filter_map(source).collect()
    }
}

#[cfg(test)]
mod tests {
    use saga::Function;

    use super::*;

    const ORDERS: Queue = Queue::named("orders");
    const PARCELS: Queue = Queue::named("parcels");

    const fn function(name: &'static str, source: saga::Source) -> Function<()> {
        Function { name, services: &[], source, sends: &[], drains: &[], build: None }
    }

    static BATCHES: Function<()> = function("run-orders", saga::Source::Queue(ORDERS));
    static EVENTS: Function<()> = function("notify-parcels", saga::Source::Notifications(PARCELS));
    static REQUESTS: Function<()> = function("place-order", saga::Source::Requests);
    static SHOP: System<()> = System {
        name: "shop",
        queues: &[
            QueueSpec::worked(ORDERS, Queue::named("orders-dead"), 20, 30, 10, 1),
            QueueSpec::kept(Queue::named("orders-dead")),
            QueueSpec::worked(PARCELS, Queue::named("parcels-dead"), 20, 30, 1, 1),
        ],
        functions: &[&REQUESTS, &BATCHES, &EVENTS],
    };

    #[test]
    fn the_sources_are_read_from_the_table_of_the_application() {
        let found: Vec<_> = Source::of(&SHOP)
            .into_iter()
            .map(|source| (source.queue, source.function, source.batch_size))
            .collect();
        let expected = [(ORDERS, "run-orders", 10), (PARCELS, "notify-parcels", 1)];
        assert_eq!(found, expected);
    }
}
