//! The queues: at-least-once delivery in any order, with visibility timeouts.

mod port;

use messages::{Message, MessageId, Queue, QueueSpec};
use outbox::session::CONTROL;
use saga::SAGA;

use crate::describe::describe;
use crate::model::Station;
use crate::time::span;

/// The default visibility timeout for queues that the table does not contain, which are the engine's queues if the
/// system does not name them.
const VISIBILITY_MS: u64 = 60_000;

/// A copy of a message in a queue.
#[derive(Clone)]
pub(crate) struct Copy {
    seq: u64,
    pub(crate) body: String,
    visible_at: u64,
    /// The time from which the message can be received.
    came_at: u64,
    receive_count: u32,
    /// `true` if a newer version sent the message.
    is_later: bool,
    /// The queue that dead-lettered the message, for a dead letter.
    pub(crate) dead_lettered_by: Option<usize>,
    /// `true` if there was a reason to dead-letter the message.
    pub(crate) is_excused: bool,
    /// `true` if the saga postponed it when it was received for the last time, as often as the engine allows, or if it
    /// was received while its instance was paused.
    is_postponed: bool,
}

impl Copy {
    pub(crate) fn new(body: String) -> Self {
        Self {
            seq: 0,
            body,
            visible_at: 0,
            came_at: 0,
            receive_count: 0,
            is_later: false,
            dead_lettered_by: None,
            is_excused: false,
            is_postponed: false,
        }
    }
}

struct StoredQueue {
    spec: QueueSpec,
    visibility_ms: u64,
    /// The receive limit, after which a message is dead-lettered.
    receive_limit: Option<u32>,
    /// `true` if a function consumes the queue.
    is_worked: bool,
    /// `true` if the queue holds dead letters without a consumer.
    is_grave: bool,
    copies: Vec<Copy>,
}

pub(crate) struct Queues {
    seq: u64,
    queues: Vec<StoredQueue>,
}

impl Queues {
    /// Returns the queues of a table, and those of the engine that the table does not contain.
    pub(crate) fn new(table: &[QueueSpec], stations: &[Station]) -> Self {
        let mut specs = table.to_vec();
        for queue in [SAGA, CONTROL] {
            if QueueSpec::of(table, &queue).is_none() {
                specs.push(QueueSpec::without_consumer(queue));
            }
        }
        let is_worked = |queue: &Queue| stations.iter().any(|station| station.queue == *queue);
        let is_grave = |queue: &Queue| specs.iter().any(|spec| spec.dead_letters.as_ref() == Some(queue));
        let stored = |spec: &QueueSpec| StoredQueue {
            visibility_ms: match span(spec.visibility) {
                0 => VISIBILITY_MS,
                visibility => visibility,
            },
            receive_limit: spec.receive_limit,
            is_worked: is_worked(&spec.queue),
            is_grave: is_grave(&spec.queue) && !is_worked(&spec.queue),
            copies: Vec::new(),
            spec: spec.clone(),
        };
        Self { seq: 0, queues: specs.iter().map(stored).collect() }
    }

    /// Returns the index of a queue.
    pub(crate) fn place(&self, queue: &Queue) -> Option<usize> {
        self.queues.iter().position(|stored| stored.spec.queue == *queue)
    }

    pub(crate) fn spec(&self, place: usize) -> &QueueSpec {
        &self.queues[place].spec
    }

    /// Returns `true` if a function consumes the queue, so that a duplicate of a message can have an effect.
    pub(crate) fn is_worked(&self, queue: &Queue) -> bool {
        self.place(queue).is_some_and(|place| self.queues[place].is_worked)
    }

    /// Returns the indexes of consumed queues with dead letters.
    pub(crate) fn with_dead_letters(&self) -> Vec<usize> {
        let has_them = |stored: &StoredQueue| stored.is_worked && stored.spec.dead_letters.is_some();
        let having = self.queues.iter().enumerate().filter(|(_, stored)| has_them(stored));
        having.map(|(place, _)| place).collect()
    }

    /// Returns `true` if the queue is the dead-letter queue of another queue.
    pub(crate) fn holds_dead_letters(&self, place: usize) -> bool {
        let queue = Some(self.spec(place).queue.clone());
        self.queues.iter().any(|stored| stored.spec.dead_letters == queue)
    }

    /// Returns the visibility timeout of a queue.
    pub(crate) fn hides_ms(&self, place: Option<usize>) -> u64 {
        place.map_or(VISIBILITY_MS, |place| self.queues[place].visibility_ms)
    }

    pub(crate) fn put(&mut self, place: usize, copy: Copy, visible_at: u64) {
        self.seq += 1;
        let (seq, came_at) = (self.seq, visible_at);
        self.queues[place].copies.push(Copy { seq, visible_at, came_at, receive_count: 0, ..copy });
    }

    /// Returns a queue that is not empty in the final state, although it should be, with its number of messages.
    pub(crate) fn left(&self) -> Option<(&str, usize)> {
        let left = self.queues.iter().find(|stored| stored.is_worked && !stored.copies.is_empty());
        left.map(|stored| (stored.spec.queue.name(), stored.copies.len()))
    }

    /// Returns `true` if a queue contains a copy of this message, also a hidden one.
    pub(crate) fn contain(&self, message: MessageId) -> bool {
        let copies = self.queues.iter().flat_map(|stored| &stored.copies);
        copies.filter_map(|copy| Message::decode(&copy.body).ok()).any(|copy| copy.id == message)
    }

    /// Returns the waiting message that was received most often, or the latest of those.
    pub(crate) fn busiest(&self) -> Option<String> {
        let waiting = self.queues.iter().filter(|stored| stored.is_worked).flat_map(|stored| &stored.copies);
        let copy = waiting.max_by_key(|copy| (copy.receive_count, copy.seq))?;
        Some(format!("{}, {} times", describe(&copy.body), copy.receive_count))
    }

    /// Returns the dead letters that wait for an operator.
    pub(crate) fn dead_letters(&self) -> impl Iterator<Item = &Copy> {
        self.queues.iter().filter(|stored| stored.is_grave).flat_map(|stored| &stored.copies)
    }

    /// Returns `true` if a dead letter cannot be received yet.
    pub(crate) fn has_hidden_dead_letters(&self, now: u64) -> bool {
        self.dead_letters().any(|copy| copy.visible_at > now)
    }

    pub(crate) fn take_dead_letters(&mut self) -> Vec<Copy> {
        let graves = self.queues.iter_mut().filter(|stored| stored.is_grave);
        graves.flat_map(|stored| std::mem::take(&mut stored.copies)).collect()
    }

    /// Removes all messages of a queue.
    pub(crate) fn purge(&mut self, queue: &Queue) {
        let purged = self.queues.iter_mut().filter(|stored| stored.spec.queue == *queue);
        purged.for_each(|stored| stored.copies.clear());
    }

    pub(crate) fn has_visible(&self, place: usize, now: u64) -> bool {
        self.queues[place].copies.iter().any(|copy| copy.visible_at <= now)
    }

    pub(crate) fn next_visible(&self, place: usize) -> Option<u64> {
        self.queues[place].copies.iter().map(|copy| copy.visible_at).min()
    }
}
