//! The queues: at-least-once delivery in any order, with visibility timeouts.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use messages::{
    Delivery, Depth, Disposition, InspectQueues, Message, Outgoing, Queue, QueueSpec, ReceiveMessages,
    Received, SendError, SendMessages, StoreError,
};
use outbox::session::CONTROL;
use saga::SAGA;

use crate::access::short;
use crate::application::{Application, Station};
use crate::coverage::{Call, Phase};
use crate::options::Invariant;
use crate::point::{Gate, Kind};
use crate::port::{Port, failed};
use crate::world::{World, span};

/// The default visibility timeout for queues that the table does not contain: the engine's own, in a system that does
/// not name them.
const VISIBILITY_MS: u64 = 60_000;

/// A copy of a message in a queue.
#[derive(Clone)]
pub(crate) struct Copy {
    seq: u64,
    pub(crate) body: String,
    visible_at: u64,
    /// When it could be received first.
    came_at: u64,
    receive_count: u32,
    /// Whether a later release has sent it.
    is_later: bool,
    /// The queue that gave it up first, of a dead letter.
    pub(crate) given_up_by: Option<usize>,
    /// `true` if there was a reason to dead-letter it.
    pub(crate) is_excused: bool,
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
            given_up_by: None,
            is_excused: false,
        }
    }
}

/// One queue.
struct Stored {
    spec: QueueSpec,
    visibility_ms: u64,
    /// After how many receipts it gives a message up.
    receive_limit: Option<u32>,
    /// Whether a function is behind it.
    is_worked: bool,
    /// Returns `true` if it holds dead letters without a consumer.
    is_grave: bool,
    copies: Vec<Copy>,
}

/// All queues.
pub(crate) struct Queues {
    seq: u64,
    queues: Vec<Stored>,
}

impl Queues {
    /// Those of a table, and the engine's own where the table does not have them.
    pub(crate) fn new(application: &dyn Application, stations: &[Station]) -> Self {
        let table = application.queues();
        let mut specs = table.to_vec();
        for queue in [SAGA, CONTROL] {
            if QueueSpec::of(table, &queue).is_none() {
                specs.push(QueueSpec::without_consumer(queue));
            }
        }
        let is_worked = |queue: &Queue| stations.iter().any(|station| station.queue == *queue);
        let is_grave = |queue: &Queue| specs.iter().any(|spec| spec.dead_letters.as_ref() == Some(queue));
        let stored = |spec: &QueueSpec| Stored {
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

    /// The place of a queue.
    pub(crate) fn place(&self, queue: &Queue) -> Option<usize> {
        self.queues.iter().position(|stored| stored.spec.queue == *queue)
    }

    pub(crate) fn spec(&self, place: usize) -> &QueueSpec {
        &self.queues[place].spec
    }

    /// Whether a function is behind it, so that a copy of a message makes a difference.
    pub(crate) fn is_worked(&self, queue: &Queue) -> bool {
        self.place(queue).is_some_and(|place| self.queues[place].is_worked)
    }

    /// The places of the queues that a function is behind, and that have dead letters.
    pub(crate) fn with_dead_letters(&self) -> Vec<usize> {
        let has_them = |stored: &Stored| stored.is_worked && stored.spec.dead_letters.is_some();
        let having = self.queues.iter().enumerate().filter(|(_, stored)| has_them(stored));
        having.map(|(place, _)| place).collect()
    }

    /// Returns `true` if it is the dead-letter queue of another queue.
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

    /// A queue that should be empty at rest and is not, and how many messages are in it.
    pub(crate) fn left(&self) -> Option<(&str, usize)> {
        let left = self.queues.iter().find(|stored| stored.is_worked && !stored.copies.is_empty());
        left.map(|stored| (stored.spec.queue.name(), stored.copies.len()))
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

    pub(crate) fn has_visible(&self, place: usize, now: u64) -> bool {
        self.queues[place].copies.iter().any(|copy| copy.visible_at <= now)
    }

    pub(crate) fn next_visible(&self, place: usize) -> Option<u64> {
        self.queues[place].copies.iter().map(|copy| copy.visible_at).min()
    }
}

impl Port {
    /// Waits for up to `max` messages.
    pub(crate) async fn receive_some(&self, queue: usize, max: usize) -> Vec<Received> {
        loop {
            Gate::new(self, Kind::Receive(queue), 0).await;
            let received = self.perform(|world| {
                world.begin_anew();
                world.receive(queue, max)
            });
            if !received.is_empty() {
                // Hidden from other workers, and perhaps never handled.
                self.gate(Call::QUEUE_RECEIVE, Phase::After).await;
                return received;
            }
        }
    }

    /// Does with a message what its handler decided. When this fails the message becomes visible again by itself.
    pub(crate) async fn answer_one(&self, queue: usize, receipt: &str, disposition: &Disposition) {
        let (receipt, disposition) = (receipt.to_owned(), disposition.clone());
        let act = move |world: &mut World| world.answer(queue, &receipt, &disposition);
        let _ = self.call(Call::QUEUE_ANSWER, act).await;
    }
}

impl World {
    fn receive(&mut self, queue: usize, max: usize) -> Vec<Received> {
        let now = self.now;
        let copies = self.queues.queues[queue].copies.iter().enumerate();
        let mut visible: Vec<usize> =
            copies.filter(|(_, copy)| copy.visible_at <= now).map(|(index, _)| index).collect();
        let wanted = 1 + self.rng.index(max.min(visible.len()));
        let mut taken = Vec::new();
        for _ in 0..wanted.min(visible.len()) {
            let index = visible.swap_remove(self.rng.index(visible.len()));
            taken.push(self.queues.queues[queue].copies[index].seq);
        }
        taken.into_iter().filter_map(|seq| self.take(queue, seq)).collect()
    }

    fn take(&mut self, queue: usize, seq: u64) -> Option<Received> {
        let (now, again) = (self.now, self.copies() > 1);
        let again_at = now + if again { self.rng.below(70_000) } else { 0 };
        let stored = &mut self.queues.queues[queue];
        let index = stored.copies.iter().position(|copy| copy.seq == seq)?;
        let copy = &mut stored.copies[index];
        if stored.receive_limit.is_some_and(|limit| copy.receive_count >= limit) {
            let copy = stored.copies.remove(index);
            self.bury(queue, copy, "received too often");
            return None;
        }
        copy.receive_count += 1;
        copy.visible_at = now + stored.visibility_ms;
        let receive_count = copy.receive_count;
        let copy = copy.clone();
        self.stats.received += 1;
        if again {
            // Standard queues deliver a message twice now and then.
            self.queues.put(queue, copy.clone(), again_at);
        }
        let body = self.delivered(&copy.body, copy.is_later);
        let delivery = Delivery { record_id: seq.to_string(), body, receive_count };
        Some(Received { receipt: format!("{seq}:{receive_count}"), delivery, reason: None })
    }

    fn answer(&mut self, queue: usize, receipt: &str, disposition: &Disposition) {
        let now = self.now;
        let current =
            |copy: &Copy| copy.visible_at > now && format!("{}:{}", copy.seq, copy.receive_count) == receipt;
        let copies = &mut self.queues.queues[queue].copies;
        let Some(index) = copies.iter().position(current) else { return };
        match disposition {
            Disposition::Acknowledge => {
                let copy = copies.swap_remove(index);
                self.check_done_with(queue, &copy.body);
            }
            Disposition::Retry { after, .. } => {
                copies[index].visible_at = now.saturating_add(span(*after));
            }
            Disposition::DeadLetter { reason } => {
                let copy = copies.swap_remove(index);
                self.bury(queue, copy, reason);
            }
        }
    }

    fn bury(&mut self, place: usize, copy: Copy, reason: &str) {
        let QueueSpec { queue, dead_letters, .. } = self.queues.spec(place).clone();
        let Some(dead) = dead_letters.and_then(|dead| self.queues.place(&dead)) else { return };
        self.note(|| format!("{queue} dead-letters it: {reason}"));
        let is_damaged = self.is_damaged(&copy.body, copy.is_later, copy.came_at);
        let is_outlasted = is_damaged || self.plan.outlasts_queues(copy.came_at, self.now);
        // Messages that wait for the upgrade were never tried.
        let was_tried = self.reads(&copy.body, copy.is_later);
        if let (true, Ok(message)) = (was_tried, Message::decode(&copy.body)) {
            let application = std::sync::Arc::clone(&self.application);
            application.given_up(self, &queue, &message, is_outlasted);
        }
        let is_excused = copy.is_excused || is_outlasted;
        let given_up_by = copy.given_up_by.or(Some(place));
        self.queues.put(dead, Copy { given_up_by, is_excused, ..copy }, self.now);
    }

    /// Puts a message into its queue, perhaps twice, each copy after a time of its own.
    pub(crate) fn post(&mut self, queue: usize, body: &str, delay: Duration) {
        self.post_copy(queue, &Copy::new(body.to_owned()), delay);
    }

    fn post_copy(&mut self, queue: usize, copy: &Copy, delay: Duration) {
        for _ in 0..self.copies() {
            let visible_at = self.now.saturating_add(span(delay)) + self.transit_ms();
            self.queues.put(queue, copy.clone(), visible_at);
            self.stats.sent += 1;
        }
    }

    /// Puts something into a queue that none of the functions has sent.
    pub(crate) fn post_from_outside(&mut self, queue: &Queue, body: &str) {
        match self.queues.place(queue) {
            Some(place) => self.post(place, body, Duration::ZERO),
            None => self.violate(Invariant::Application, || format!("there is no queue {queue}")),
        }
    }

    pub(crate) fn send(&mut self, message: &Outgoing) {
        let Some(place) = self.queues.place(&message.queue) else { return };
        self.note(|| format!("queue.send       {} to {}", describe(&message.body), message.queue));
        self.check_sent(message);
        let is_later = self.queues.queues[place].is_worked && self.sends_later_version();
        let copy = Copy { is_later, ..Copy::new(message.body.clone()) };
        self.post_copy(place, &copy, message.delay);
    }
}

#[async_trait]
impl SendMessages for Port {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        self.clear_early(messages).await;
        let messages = &self.renamed(messages)[..];
        let known: Vec<bool> = self.universe.with(|world| {
            messages.iter().map(|message| world.queues.place(&message.queue).is_some()).collect()
        });
        let refused = || Err(SendError::Store(failed(Call::QUEUE_SEND)));
        // Some messages of a batch may be refused, and the answer names them.
        let mut accepted = Vec::with_capacity(messages.len());
        let mut some = |world: &mut World| {
            for message in messages {
                let accept = world.rng.one_in(2) && messages.len() > 1;
                if accept {
                    world.send(message);
                }
                accepted.push(accept);
            }
        };
        let all = messages.to_vec();
        let perform = move |world: &mut World| all.iter().for_each(|message| world.send(message));
        let sent = self.call_or(Call::QUEUE_SEND, perform, &mut some).await;
        let answer = |(index, message): (usize, &Outgoing)| match sent {
            _ if !known[index] => Err(SendError::UnknownQueue(message.queue.clone())),
            Ok(()) => Ok(()),
            Err(_) if accepted.get(index).copied().unwrap_or(false) => Ok(()),
            Err(_) => refused(),
        };
        messages.iter().enumerate().map(answer).collect()
    }
}

/// For functions that receive by themselves; those behind a queue are given what the queue has.
#[async_trait]
impl ReceiveMessages for Port {
    async fn receive(&self, queue: &Queue, max: usize, _: Duration) -> Result<Vec<Received>, StoreError> {
        let queue = queue.clone();
        let receive = move |world: &mut World| {
            let place = world.queues.place(&queue);
            place.map_or_else(Vec::new, |place| world.receive(place, max))
        };
        self.universe.with(|world| Ok(receive(world)))
    }

    async fn answer(
        &self,
        queue: &Queue,
        receipt: &str,
        disposition: &Disposition,
    ) -> Result<(), StoreError> {
        self.universe.with(|world| {
            if let Some(place) = world.queues.place(queue) {
                world.answer(place, receipt, disposition);
            }
        });
        Ok(())
    }
}

/// Never called here: the world knows the content of the queues.
#[async_trait]
impl InspectQueues for Port {
    async fn depths(&self) -> BTreeMap<Queue, Result<Depth, StoreError>> {
        BTreeMap::new()
    }
}

/// A message's name and the end of its id, for traces.
pub(crate) fn describe(body: &str) -> String {
    Message::decode(body).map_or_else(
        |_| "something unreadable".to_owned(),
        |message| format!("{} {}", message.body.name, short(&message.id)),
    )
}
