//! The queues: at least once, in any order, hidden while somebody works on them.

use std::time::Duration;

use async_trait::async_trait;
use messages::{
    Delivery, Disposition, Message, Outgoing, Queue, QueueSpec, ReceiveMessages, Received, SendError,
    SendMessages, StoreError,
};
use outbox::session::CONTROL;
use saga::SAGA;

use crate::access::short;
use crate::application::Station;
use crate::coverage::{Call, Phase};
use crate::options::Invariant;
use crate::point::{Gate, Kind};
use crate::port::{Port, failed};
use crate::world::{World, span};

/// The longest time that a received message stays hidden, whatever its queue says: shorter than many a delay, so that a
/// message is worked on by two at once.
const VISIBILITY_MS: u64 = 60_000;

/// The most receipts of a message whose dead letters a function reads, so that it comes to that.
const RECEIVES: u32 = 3;

/// A copy of a message in a queue.
#[derive(Clone)]
struct Copy {
    seq: u64,
    body: String,
    visible_at: u64,
    receive_count: u32,
}

/// One queue.
struct Stored {
    spec: QueueSpec,
    visibility_ms: u64,
    /// After how many receipts it gives a message up; never, when an operator would have to look after it.
    receive_limit: Option<u32>,
    /// Whether a function is behind it.
    is_worked: bool,
    /// Whether nothing may be left in it.
    is_drained: bool,
    copies: Vec<Copy>,
}

/// All queues.
pub(crate) struct Queues {
    seq: u64,
    queues: Vec<Stored>,
}

impl Queues {
    /// Those of a table, and the engine's own where the table does not have them.
    pub(crate) fn new(table: &[QueueSpec], stations: &[Station]) -> Self {
        let mut specs = table.to_vec();
        for queue in [SAGA, CONTROL] {
            if QueueSpec::of(table, &queue).is_none() {
                specs.push(QueueSpec::kept(queue));
            }
        }
        let is_worked = |queue: &Queue| stations.iter().any(|station| station.queue == *queue);
        let is_grave = |queue: &Queue| specs.iter().any(|spec| spec.dead_letters.as_ref() == Some(queue));
        let stored = |spec: &QueueSpec| Stored {
            visibility_ms: match span(spec.visibility) {
                0 => VISIBILITY_MS,
                visibility => visibility.min(VISIBILITY_MS),
            },
            receive_limit: spec
                .receive_limit
                .filter(|_| spec.dead_letters.as_ref().is_some_and(is_worked))
                .map(|limit| limit.min(RECEIVES)),
            is_worked: is_worked(&spec.queue),
            is_drained: is_worked(&spec.queue) || is_grave(&spec.queue),
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

    /// Limits the receipts of a queue.
    pub(crate) fn limit(&mut self, queue: &Queue, receives: Option<u32>) {
        if let Some(place) = self.place(queue) {
            self.queues[place].receive_limit = receives;
        }
    }

    fn put(&mut self, place: usize, body: String, visible_at: u64) {
        self.seq += 1;
        let copy = Copy { seq: self.seq, body, visible_at, receive_count: 0 };
        self.queues[place].copies.push(copy);
    }

    /// A queue that should be empty at rest and is not, and how many messages are in it.
    pub(crate) fn left(&self) -> Option<(&str, usize)> {
        let left = self.queues.iter().find(|stored| stored.is_drained && !stored.copies.is_empty());
        left.map(|stored| (stored.spec.queue.name(), stored.copies.len()))
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
                // Hidden from the others, and nobody may ever work on them.
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
            self.bury(queue, copy.body, "received too often");
            return None;
        }
        copy.receive_count += 1;
        copy.visible_at = now + stored.visibility_ms;
        let receive_count = copy.receive_count;
        let received = Received {
            receipt: format!("{seq}:{receive_count}"),
            delivery: Delivery { record_id: seq.to_string(), body: copy.body.clone(), receive_count },
        };
        self.stats.received += 1;
        if again {
            // Standard queues deliver a message twice now and then.
            self.queues.put(queue, received.delivery.body.clone(), again_at);
        }
        Some(received)
    }

    fn answer(&mut self, queue: usize, receipt: &str, disposition: &Disposition) {
        let now = self.now;
        let current =
            |copy: &Copy| copy.visible_at > now && format!("{}:{}", copy.seq, copy.receive_count) == receipt;
        let copies = &mut self.queues.queues[queue].copies;
        let Some(index) = copies.iter().position(current) else { return };
        match disposition {
            Disposition::Acknowledge => drop(copies.swap_remove(index)),
            Disposition::Retry { after, .. } => {
                copies[index].visible_at = now.saturating_add(span(*after));
            }
            Disposition::DeadLetter { reason } => {
                let copy = copies.swap_remove(index);
                self.bury(queue, copy.body, reason);
            }
        }
    }

    fn bury(&mut self, queue: usize, body: String, reason: &str) {
        let QueueSpec { queue, dead_letters, .. } = self.queues.spec(queue).clone();
        let Some(dead) = dead_letters.and_then(|dead| self.queues.place(&dead)) else { return };
        self.note(|| format!("{queue} gives it up: {reason}"));
        if let Ok(message) = Message::decode(&body) {
            let application = std::sync::Arc::clone(&self.application);
            application.given_up(self, &queue, &message);
        }
        let now = self.now;
        self.queues.put(dead, body, now);
    }

    /// Puts a message into its queue, perhaps twice, each copy after a time of its own.
    pub(crate) fn post(&mut self, queue: usize, body: &str, delay: Duration) {
        for _ in 0..self.copies() {
            let visible_at = self.now.saturating_add(span(delay)) + self.transit_ms();
            self.queues.put(queue, body.to_owned(), visible_at);
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
        self.post(place, &message.body, message.delay);
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
        // Of a batch some may be refused, and the answer says which.
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

/// A message's name and the end of its id, for traces.
pub(crate) fn describe(body: &str) -> String {
    Message::decode(body).map_or_else(
        |_| "something unreadable".to_owned(),
        |message| format!("{} {}", message.body.name, short(&message.id)),
    )
}
