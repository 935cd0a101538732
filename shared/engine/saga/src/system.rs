//! An application's queues and functions as one table. Whatever runs, provisions, checks or simulates the application
//! reads it here.

use std::collections::BTreeMap;
use std::sync::Arc;

use messages::{Consumer, Queue, QueueSpec};

/// A service that a function works on, besides queues. Applications add their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service(pub &'static str);

impl Service {
    /// The database of documents, views and sessions.
    pub const DATABASE: Self = Self("database");
    /// The ledger of partitions, which it claims or grants tokens to.
    pub const LEDGER: Self = Self("ledger");
    /// The memory of processed messages.
    pub const PROCESSED: Self = Self("processed");
    /// The ledger of partitions, in which it looks up whether a command still awaits its answer.
    pub const TOKENS: Self = Self("tokens");

    /// Whether it is that one, for constants: `==` is not for them.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{setting} is not set; it is {what}")]
pub struct Missing {
    /// The environment variable.
    pub setting: &'static str,
    /// What it should name.
    pub what: &'static str,
}

/// What has a function begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A queue.
    Queue(Queue),
    /// A queue that another service sends its notifications to.
    Notifications(Queue),
    /// Requests from outside.
    Requests,
}

impl Source {
    /// The queue that the function is behind.
    pub fn queue(&self) -> Option<&Queue> {
        match self {
            Self::Queue(queue) | Self::Notifications(queue) => Some(queue),
            Self::Requests => None,
        }
    }
}

/// Builds what stands behind a function's queue.
pub type Build<P> = fn(&P) -> Result<Arc<dyn Consumer>, Missing>;

/// One function: what it works on, and how it is built over the ports `P`. Its settings, its role and its queues follow
/// from this.
pub struct Function<P: 'static> {
    /// Its name, in logs and in the messages it sends.
    pub name: &'static str,
    /// The services that it uses. It refuses to start without them.
    pub services: &'static [Service],
    /// What has it begin. What it gives up of a queue goes to that queue's dead letters.
    pub source: Source,
    /// The queues that its messages go to.
    pub sends: &'static [Queue],
    /// The dead-letter queues that it empties on schedule, because nothing works on them; see [`crate::failures`].
    pub drains: &'static [Queue],
    /// What stands behind its queue.
    pub build: Option<Build<P>>,
}

/// An application.
pub struct System<P: 'static> {
    /// Its name, in the types and sources of its messages.
    pub name: &'static str,
    /// Its queues.
    pub queues: &'static [QueueSpec],
    /// Its functions.
    pub functions: &'static [&'static Function<P>],
}

impl<P> Function<P> {
    /// Every queue whose address it needs: those it sends to, the one it works on, that one's dead letters, and those that
    /// it empties.
    pub fn queues(&self, table: &[QueueSpec]) -> Vec<Queue> {
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
    /// The function behind a queue.
    pub fn behind(&self, queue: &Queue) -> Option<&'static Function<P>> {
        self.functions.iter().copied().find(|function| function.source.queue() == Some(queue))
    }

    /// Returns the name of the function behind each queue that has one.
    pub fn behind_queues(&self) -> BTreeMap<Queue, &'static str> {
        let named = self
            .functions
            .iter()
            .filter_map(|function| Some((function.source.queue()?.clone(), function.name)));
        named.collect()
    }

    /// The dead-letter queues that nothing works on, each with the queue that its messages were sent to: where another
    /// dead-letter queue is in between, the one before that.
    pub fn dead_letters(&self) -> Vec<(Queue, Queue)> {
        let gives_up_to = |dead: &Queue| {
            let mut specs = self.queues.iter();
            specs.find(|spec| spec.dead_letters.as_ref() == Some(dead)).map(|spec| spec.queue.clone())
        };
        let dead = self.queues.iter().filter_map(|spec| spec.dead_letters.clone());
        let kept = dead.filter(|dead| self.behind(dead).is_none());
        kept.filter_map(|dead| {
            let mut source = gives_up_to(&dead)?;
            // There are no more steps than queues, whatever a table says.
            for _ in self.queues {
                source = gives_up_to(&source).unwrap_or(source);
            }
            Some((dead, source))
        })
        .collect()
    }

    /// The function of this name.
    pub fn function(&self, name: &str) -> Option<&'static Function<P>> {
        self.functions.iter().copied().find(|function| function.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_itself_and_no_other() {
        for (one, other, is_same) in
            [("ledger", "ledger", true), ("ledger", "ledgers", false), ("", "a", false)]
        {
            assert_eq!(Service(one).is(Service(other)), is_same, "{one}, {other}");
            assert_eq!(Service(other).is(Service(one)), is_same, "{other}, {one}");
        }
    }
}
