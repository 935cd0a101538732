//! The queues: at least once, in any order, hidden while somebody works on them.

use std::time::Duration;

use async_trait::async_trait;
use contracts::{Delivery, Disposition};
use outbox::{Outgoing, Queue, Received, SendError, SendMessages};

use crate::coverage::{Call, Phase};
use crate::point::{Gate, Kind};
use crate::port::{Port, failed};
use crate::world::World;

/// How long a received message stays hidden.
const VISIBILITY_MS: u64 = 60_000;

/// After how many receipts a parse command goes to the dead letters, where a function reads it.
const PARSE_RECEIVES: u32 = 3;

/// A copy of a message in a queue.
#[derive(Clone)]
struct Copy {
    seq: u64,
    body: String,
    visible_at: u64,
    receive_count: u32,
}

/// All queues.
#[derive(Default)]
pub(crate) struct Queues {
    seq: u64,
    queues: [Vec<Copy>; Queue::ALL.len()],
}

impl Queues {
    /// Puts a copy into a queue.
    pub(crate) fn put(&mut self, queue: Queue, body: String, visible_at: u64) {
        self.seq += 1;
        let copy = Copy { seq: self.seq, body, visible_at, receive_count: 0 };
        self.queues[queue as usize].push(copy);
    }

    pub(crate) fn len(&self, queue: Queue) -> usize {
        self.queues[queue as usize].len()
    }

    pub(crate) fn has_visible(&self, queue: Queue, now: u64) -> bool {
        self.queues[queue as usize].iter().any(|copy| copy.visible_at <= now)
    }

    pub(crate) fn next_visible(&self, queue: Queue) -> Option<u64> {
        self.queues[queue as usize].iter().map(|copy| copy.visible_at).min()
    }
}

impl Port {
    /// Waits for up to `max` messages.
    pub(crate) async fn receive(&self, queue: Queue, max: usize) -> Vec<Received> {
        loop {
            Gate::new(self, Kind::Receive(queue), 0).await;
            let received = self.perform(|world| {
                world.begin_anew();
                world.receive(queue, max)
            });
            if !received.is_empty() {
                // Hidden from the others, and nobody may ever work on them.
                self.gate(Call::QueueReceive, Phase::After).await;
                return received;
            }
        }
    }

    /// Does with a message what its handler decided.
    pub(crate) async fn answer(&self, queue: Queue, received: &Received, disposition: Disposition) {
        let receipt = received.receipt.clone();
        let act = move |world: &mut World| world.answer(queue, &receipt, &disposition);
        // When this fails the message becomes visible again by itself.
        let _ = self.call(Call::QueueSettle, act).await;
    }
}

impl World {
    fn receive(&mut self, queue: Queue, max: usize) -> Vec<Received> {
        let now = self.now;
        let mut visible: Vec<usize> = self.queues.queues[queue as usize]
            .iter()
            .enumerate()
            .filter(|(_, copy)| copy.visible_at <= now)
            .map(|(index, _)| index)
            .collect();
        let wanted = 1 + self.rng.index(max.min(visible.len()));
        let mut taken = Vec::new();
        for _ in 0..wanted.min(visible.len()) {
            let index = visible.swap_remove(self.rng.index(visible.len()));
            taken.push(self.queues.queues[queue as usize][index].seq);
        }
        taken.into_iter().filter_map(|seq| self.take(queue, seq)).collect()
    }

    fn take(&mut self, queue: Queue, seq: u64) -> Option<Received> {
        let (now, again) = (self.now, self.copies() > 1);
        let again_at = now + if again { self.rng.below(70_000) } else { 0 };
        let limit = self.receive_limit(queue);
        let index = self.queues.queues[queue as usize].iter().position(|copy| copy.seq == seq)?;
        let copy = &mut self.queues.queues[queue as usize][index];
        if limit.is_some_and(|limit| copy.receive_count >= limit) {
            let copy = self.queues.queues[queue as usize].remove(index);
            self.bury(queue, copy.body, "received too often");
            return None;
        }
        copy.receive_count += 1;
        copy.visible_at = now + VISIBILITY_MS;
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

    /// What the other queues give up would wait for an operator, so as a rule they never do.
    fn receive_limit(&self, queue: Queue) -> Option<u32> {
        match queue {
            Queue::Parse => Some(PARSE_RECEIVES),
            Queue::Saga => self.config.saga_receives,
            _ => None,
        }
    }

    fn answer(&mut self, queue: Queue, receipt: &str, disposition: &Disposition) {
        let now = self.now;
        let current =
            |copy: &Copy| copy.visible_at > now && format!("{}:{}", copy.seq, copy.receive_count) == receipt;
        let Some(index) = self.queues.queues[queue as usize].iter().position(current) else { return };
        match disposition {
            Disposition::Acknowledge => drop(self.queues.queues[queue as usize].swap_remove(index)),
            Disposition::Retry { after, .. } => {
                let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                self.queues.queues[queue as usize][index].visible_at = now.saturating_add(after);
            }
            Disposition::DeadLetter { reason } => {
                let copy = self.queues.queues[queue as usize].swap_remove(index);
                self.bury(queue, copy.body, reason);
            }
        }
    }

    fn bury(&mut self, queue: Queue, body: String, reason: &str) {
        if let Some(dead) = queue.dead_letters() {
            self.note(|| format!("to {}: {reason}", dead.name()));
            self.buried(queue, &body);
            let now = self.now;
            self.queues.put(dead, body, now);
        }
    }

    /// Puts a message into its queue, perhaps twice, each copy after a time of its own.
    pub(crate) fn post(&mut self, queue: Queue, body: &str, delay: Duration) {
        let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        for _ in 0..self.copies() {
            let visible_at = self.now.saturating_add(delay) + self.transit_ms();
            self.queues.put(queue, body.to_owned(), visible_at);
            self.stats.sent += 1;
        }
    }

    pub(crate) fn send(&mut self, message: &Outgoing) {
        self.note(|| {
            format!("queue.send       {} to {}", describe(&message.body), message.destination.name())
        });
        self.check_sent(message);
        self.post(message.destination.into(), &message.body, message.delay);
    }
}

#[async_trait]
impl SendMessages for Port {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        self.clear_early(messages).await;
        let messages = &self.renamed(messages)[..];
        let refused = || Err(SendError::Store(failed(Call::QueueSend)));
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
        match self.call_or(Call::QueueSend, perform, &mut some).await {
            Ok(()) => messages.iter().map(|_| Ok(())).collect(),
            Err(_) if accepted.is_empty() => messages.iter().map(|_| refused()).collect(),
            Err(_) => accepted.iter().map(|accepted| if *accepted { Ok(()) } else { refused() }).collect(),
        }
    }
}

/// A message's name and the end of its id, for traces.
pub(crate) fn describe(body: &str) -> String {
    contracts::Message::decode(body).map_or_else(
        |_| "something unreadable".to_owned(),
        |message| format!("{} {}", message.body.name(), crate::world::short(&message.id)),
    )
}
