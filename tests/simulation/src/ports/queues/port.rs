//! The ports of the queues.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use messages::{
    Delivery, Depth, Disposition, InspectQueues, Message, Outgoing, Queue, QueueSpec, ReceiveMessages,
    ReceivedMessage, SendError, SendMessages, StoreError,
};
use saga::runner::LAST_POSTPONED_DELIVERY;

use super::Copy;
use crate::coverage::{Call, Phase};
use crate::describe::describe;
use crate::options::Invariant;
use crate::point::Kind;
use crate::port::{Port, failed};
use crate::time::{span, timestamp};
use crate::world::World;

impl Port {
    /// Waits for up to `max` messages.
    pub(crate) async fn receive_some(&self, queue: usize, max: usize) -> Vec<ReceivedMessage> {
        loop {
            self.stop_at(Kind::Receive(queue), 0).await;
            let received = self.perform(|world| {
                world.begin_batch();
                let received = world.receive(queue, max);
                world.record_batch(queue, &received);
                received
            });
            if !received.is_empty() {
                // Hidden from other workers, and perhaps never handled.
                self.gate(Call::QUEUE_RECEIVE, Phase::After).await;
                return received;
            }
        }
    }

    /// Applies the handler's decision to a message. If this fails, the message becomes visible again after its timeout.
    pub(crate) async fn answer_one(
        &self,
        queue: usize,
        received: &ReceivedMessage,
        disposition: &Disposition,
    ) {
        if *disposition == Disposition::Acknowledge {
            self.perform(|world| world.record_acknowledgement(queue, &received.delivery.record_id));
        }
        let (receipt, disposition) = (received.receipt.clone(), disposition.clone());
        let act = move |world: &mut World| world.answer(queue, &receipt, &disposition);
        let _ = self.call(Call::QUEUE_ANSWER, act).await;
    }
}

impl World {
    fn receive(&mut self, queue: usize, max: usize) -> Vec<ReceivedMessage> {
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

    fn take(&mut self, queue: usize, seq: u64) -> Option<ReceivedMessage> {
        let (now, again) = (self.now, self.copies() > 1);
        let again_at = now + if again { self.rng.below(70_000) } else { 0 };
        let is_postponed = self.postpones_for_the_last_time(queue, seq) || self.is_for_paused(queue, seq);
        let stored = &mut self.queues.queues[queue];
        let index = stored.copies.iter().position(|copy| copy.seq == seq)?;
        let copy = &mut stored.copies[index];
        if stored.receive_limit.is_some_and(|limit| copy.receive_count >= limit) {
            let copy = stored.copies.remove(index);
            self.dead_letter(queue, copy, "received too often");
            return None;
        }
        copy.receive_count += 1;
        copy.is_postponed |= is_postponed;
        copy.visible_at = now + stored.visibility_ms;
        let receive_count = copy.receive_count;
        let copy = copy.clone();
        self.stats.received += 1;
        if again {
            // Standard queues sometimes deliver a message twice.
            self.queues.put(queue, copy.clone(), again_at);
        }
        let body = self.delivered(&copy.body, copy.is_later);
        let delivery = Delivery { record_id: seq.to_string(), body, receive_count, reason: None };
        Some(ReceivedMessage { receipt: format!("{seq}:{receive_count}"), delivery })
    }

    /// Returns `true` if the next receipt of a copy is the last one at which the engine postpones it, and the saga still
    /// does.
    fn postpones_for_the_last_time(&self, queue: usize, seq: u64) -> bool {
        let stored = &self.queues.queues[queue];
        let copy = stored.copies.iter().find(|copy| copy.seq == seq);
        let last = copy.filter(|copy| copy.receive_count + 1 == LAST_POSTPONED_DELIVERY);
        let Some(message) = last.and_then(|copy| Message::decode(&copy.body).ok()) else { return false };
        let state = self.documents.get(&message.partition).map(|stored| &stored.state);
        self.application.postpones(&stored.spec.queue, state, &message, timestamp(self.now))
    }

    /// Returns `true` if a copy is a message for a paused instance. Deliveries during the pause count as receives.
    fn is_for_paused(&self, queue: usize, seq: u64) -> bool {
        let mut copies = self.queues.queues[queue].copies.iter();
        let message = copies.find(|copy| copy.seq == seq).and_then(|copy| Message::decode(&copy.body).ok());
        message.is_some_and(|message| self.is_paused(message.partition))
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
                self.dead_letter(queue, copy, reason);
            }
        }
    }

    fn dead_letter(&mut self, place: usize, copy: Copy, reason: &str) {
        let QueueSpec { queue, dead_letters, .. } = self.queues.spec(place).clone();
        let Some(dead) = dead_letters.and_then(|dead| self.queues.place(&dead)) else { return };
        self.note(|| format!("{queue} dead-letters it: {reason}"));
        let is_damaged = self.is_damaged(&copy.body, copy.is_later, copy.came_at);
        let is_outlasted = is_damaged || self.plan.outlasts_queues(copy.came_at, self.now);
        // Messages that wait for the upgrade were never tried.
        let was_tried = self.reads(&copy.body, copy.is_later);
        if let (true, Ok(message)) = (was_tried, Message::decode(&copy.body)) {
            let application = std::sync::Arc::clone(&self.application);
            application.dead_lettered(self, &queue, &message, is_outlasted);
        }
        let is_excused = copy.is_excused || is_outlasted || copy.is_postponed;
        let dead_lettered_by = copy.dead_lettered_by.or(Some(place));
        self.queues.put(dead, Copy { dead_lettered_by, is_excused, ..copy }, self.now);
    }

    /// Puts a message into its queue, possibly twice, with a different delay for each copy.
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

    /// Puts a message that no function has sent into a queue.
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
        let messages = &self.between_sagas(messages)[..];
        let known: Vec<bool> = self.universe.with(|world| {
            messages.iter().map(|message| world.queues.place(&message.queue).is_some()).collect()
        });
        let refused = || Err(SendError::Store(failed(Call::QUEUE_SEND)));
        // Some messages of a batch may be refused, and the response names them.
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
        self.grant_late().await;
        let answer = |(index, message): (usize, &Outgoing)| match sent {
            _ if !known[index] => Err(SendError::UnknownQueue(message.queue.clone())),
            Ok(()) => Ok(()),
            Err(_) if accepted.get(index).copied().unwrap_or(false) => Ok(()),
            Err(_) => refused(),
        };
        messages.iter().enumerate().map(answer).collect()
    }
}

/// The port for functions that receive messages themselves. Functions with an event source receive batches from that
/// source.
#[async_trait]
impl ReceiveMessages for Port {
    async fn receive(
        &self,
        queue: &Queue,
        max: usize,
        _: Duration,
    ) -> Result<Vec<ReceivedMessage>, StoreError> {
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

/// This port is not used, because the world knows the content of the queues.
#[async_trait]
impl InspectQueues for Port {
    async fn depths(&self) -> BTreeMap<Queue, Result<Depth, StoreError>> {
        BTreeMap::new()
    }
}
