//! The queues and their functions.

use std::time::Duration;

use messages::{Queue, QueueSpec};
use saga::System;

/// The number of concurrent batches of a function. An emulator runs one invocation after the other, so two keep it
/// busy.
const CONCURRENCY: usize = 2;

/// A queue with its function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The queue.
    pub queue: Queue,
    /// The function's name.
    pub function: &'static str,
    /// The maximum number of messages of one invocation.
    pub batch_size: usize,
    /// The maximum time to wait for a full batch.
    pub window: Duration,
    /// The number of concurrent batches of the function.
    pub concurrency: usize,
}

impl Source {
    /// Returns the sources of an application: every queue of its table with a function.
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
            QueueSpec::with_consumer(ORDERS, Queue::named("orders-dead"), 20, 30, 10, 1),
            QueueSpec::without_consumer(Queue::named("orders-dead")),
            QueueSpec::with_consumer(PARCELS, Queue::named("parcels-dead"), 20, 30, 1, 1),
        ],
        functions: &[&REQUESTS, &BATCHES, &EVENTS],
    };

    #[test]
    fn sources_come_from_the_application_table() {
        let found: Vec<_> = Source::of(&SHOP)
            .into_iter()
            .map(|source| (source.queue, source.function, source.batch_size))
            .collect();
        let expected = [(ORDERS, "run-orders", 10), (PARCELS, "notify-parcels", 1)];
        assert_eq!(found, expected);
    }
}
