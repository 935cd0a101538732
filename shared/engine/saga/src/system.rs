//! An application's queues and functions as one table. The programs that run, provision, check and simulate the
//! application read it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use messages::{Consumer, Queue, QueueSpec, StoreError};
use outbox::session::CONTROL;

/// A service that a function uses in addition to queues. Applications define their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service(pub &'static str);

impl Service {
    /// The database of documents, views and sessions.
    pub const DATABASE: Self = Self("database");
    /// The ledger of partitions, for functions that claim partitions or grant tokens.
    pub const LEDGER: Self = Self("ledger");
    /// The store of processed messages.
    pub const PROCESSED: Self = Self("processed");
    /// The ledger of partitions, for functions that check whether a command still awaits its reply.
    pub const TOKENS: Self = Self("tokens");
    /// The number of messages in every queue of the system, for functions that report its health.
    pub const DEPTHS: Self = Self("depths");

    /// Returns whether an adapter of the engine provides the service. The other services belong to the application.
    pub const fn is_of_engine(self) -> bool {
        self.is(Self::DATABASE)
            || self.is(Self::LEDGER)
            || self.is(Self::PROCESSED)
            || self.is(Self::TOKENS)
            || self.is(Self::DEPTHS)
    }

    /// Compares two services in constants, where `==` is not available.
    pub const fn is(self, other: Self) -> bool {
        let (mut own, mut others) = (self.0.as_bytes(), other.0.as_bytes());
        while let ([first, rest @ ..], [other_first, other_rest @ ..]) = (own, others) {
            if *first != *other_first {
                return false;
            }
            (own, others) = (rest, other_rest);
        }
        own.is_empty() && others.is_empty()
    }
}

/// A service that is not configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} is not set; it is {what}")]
pub struct MissingSetting {
    /// The environment variable.
    pub setting: Cow<'static, str>,
    /// A description of the setting's value.
    pub what: &'static str,
}

impl MissingSetting {
    /// Returns the error for a variable that has the same name in every system.
    pub const fn of(setting: &'static str, what: &'static str) -> Self {
        Self { setting: Cow::Borrowed(setting), what }
    }
}

/// The reason why a call failed that accesses a configured service.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The service is not configured.
    #[error(transparent)]
    Missing(#[from] MissingSetting),
    /// A store is unavailable, or holds a value that cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The trigger of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Messages of a queue.
    Queue(Queue),
    /// Notifications that another service sends to a queue.
    Notifications(Queue),
    /// Requests from clients.
    Requests,
}

impl Source {
    /// The queue that triggers the function.
    pub fn queue(&self) -> Option<&Queue> {
        match self {
            Self::Queue(queue) | Self::Notifications(queue) => Some(queue),
            Self::Requests => None,
        }
    }
}

/// Builds the consumer of a function's queue.
pub type Build<P> = fn(&P) -> Result<Arc<dyn Consumer>, MissingSetting>;

/// A function: its trigger, its services and its constructor for the ports `P`. Its settings, its role and its queues
/// follow from this.
pub struct Function<P: 'static> {
    /// The name of the function, in logs and in the messages it sends.
    pub name: &'static str,
    /// The services that the function uses. The function refuses to start without them.
    pub services: &'static [Service],
    /// The trigger. Messages of its queue that exhaust their receives move to that queue's dead-letter queue.
    pub source: Source,
    /// The queues that the function sends messages to.
    pub sends: &'static [Queue],
    /// The dead-letter queues that it drains on a schedule, because they have no consumer; see [`crate::failures`].
    pub drains: &'static [Queue],
    /// Builds the consumer of the function's queue.
    pub build: Option<Build<P>>,
}

/// An application.
pub struct System<P: 'static> {
    /// The name of the system, in the types and sources of its messages.
    pub name: &'static str,
    /// The queues of the system.
    pub queues: &'static [QueueSpec],
    /// The functions of the system.
    pub functions: &'static [&'static Function<P>],
}

impl<P> Function<P> {
    /// Returns `true` if a schedule has to start the function. Such a function sweeps the outboxes, which also sends
    /// the events of due timers, or drains dead-letter queues.
    pub fn has_scheduled_work(&self) -> bool {
        self.dispatches_outbox() || !self.drains.is_empty()
    }

    /// Returns `true` if the function consumes the control queue, and therefore sends the entries that other functions
    /// left in the outboxes.
    pub fn dispatches_outbox(&self) -> bool {
        self.source.queue() == Some(&CONTROL)
    }

    /// Returns every queue whose address the function needs: its own queue with its dead-letter queue, the queues that
    /// it sends to, and the queues that it drains. A function that [reports depths](Service::DEPTHS) needs all queues.
    pub fn queues(&self, table: &[QueueSpec]) -> Vec<Queue> {
        if self.services.contains(&Service::DEPTHS) {
            return table.iter().map(|spec| spec.queue.clone()).collect();
        }
        let own = self.source.queue();
        let dead = own.and_then(|queue| QueueSpec::dead_letters_of(table, queue));
        let others = self.sends.iter().filter(|queue| Some(*queue) != own);
        own.into_iter()
            .cloned()
            .chain(dead)
            .chain(others.cloned())
            .chain(self.drains.iter().cloned())
            .collect()
    }
}

impl<P> System<P> {
    /// Returns the function that consumes a queue.
    pub fn behind(&self, queue: &Queue) -> Option<&'static Function<P>> {
        self.functions.iter().copied().find(|function| function.source.queue() == Some(queue))
    }

    /// Returns the name of the function that consumes each queue; queues without a consumer are omitted.
    pub fn behind_queues(&self) -> BTreeMap<Queue, &'static str> {
        let named = self
            .functions
            .iter()
            .filter_map(|function| Some((function.source.queue()?.clone(), function.name)));
        named.collect()
    }

    /// Returns the dead-letter queues without a consumer, each with the queue that its messages were sent to. Chains of
    /// dead-letter queues are followed to their beginning.
    pub fn dead_letters(&self) -> Vec<(Queue, Queue)> {
        let gives_up_to = |dead: &Queue| {
            let mut specs = self.queues.iter();
            specs.find(|spec| spec.dead_letters.as_ref() == Some(dead)).map(|spec| spec.queue.clone())
        };
        let dead = self.queues.iter().filter_map(|spec| spec.dead_letters.clone());
        let kept = dead.filter(|dead| self.behind(dead).is_none());
        kept.filter_map(|dead| {
            let mut source = gives_up_to(&dead)?;
            // Bounds the loop in case the table has a cycle: a chain has no more steps than queues.
            for _ in self.queues {
                source = gives_up_to(&source).unwrap_or(source);
            }
            Some((dead, source))
        })
        .collect()
    }

    /// Returns the function with this name.
    pub fn function(&self, name: &str) -> Option<&'static Function<P>> {
        self.functions.iter().copied().find(|function| function.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_equals_only_itself() {
        for (one, other, is_same) in
            [("ledger", "ledger", true), ("ledger", "ledgers", false), ("", "a", false)]
        {
            assert_eq!(Service(one).is(Service(other)), is_same, "{one}, {other}");
            assert_eq!(Service(other).is(Service(one)), is_same, "{other}, {one}");
        }
    }
}
