//! The consumer of a saga's queue: it decodes one batch of deliveries, groups them by partition, and attempts each
//! group until it is done or better left to a redelivery.
//!
//! Messages of one partition are handled together and in order, different partitions concurrently. A bad delivery
//! affects only itself: if a group fails because of one of its messages, each message is attempted alone. A message
//! that fails alone is retried and then dead-lettered.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use jiff::Timestamp;
use messages::panics::contain;
use messages::{Backoff, Consumer, DEADLINE_NEAR, Delivery, Disposition, Message, Reporter, Verdict};

use crate::plan::{IncomingEvent, MessageDecision};
use crate::ports::Ports;
use crate::round::{AttemptOutcome, BatchPlace, Group, Runner};
use crate::settings::Settings;
use crate::state_machine::Saga;

/// The delivery at which a postponed event is dead-lettered. It equals the usual receive limit of a queue, so that the dead
/// letter has a reason: an SQS queue that exceeds its receive limit records none.
pub const LAST_POSTPONED_DELIVERY: u32 = 20;

/// The delays of a postponed event: 5 s to 5 h, so that no event waits much longer than the event that it depends on. That
/// event may itself wait for hours, for a service or for an upgrade. The delays add up to at least 40 hours.
const POSTPONED: Backoff = Backoff { first: Duration::from_secs(5), max: Duration::from_secs(5 * 3_600) };

/// Returns the consumer of a saga's queue.
pub fn run<S: Saga>(saga: S, ports: Ports, settings: Settings) -> Arc<dyn Consumer> {
    Arc::new(Runner { saga, ports, settings })
}

/// The outcome for one message of a group.
enum Outcome {
    /// The attempt has decided about the message.
    Decided(MessageDecision),
    /// The message is left to a redelivery.
    Deferred(Deferral),
    /// The message fails when attempted alone, for this reason.
    Faulty(String),
}

/// The delay and the reason for leaving a message to a redelivery.
#[derive(Clone)]
struct Deferral {
    backoff: Backoff,
    why: String,
}

#[async_trait]
impl<S: Saga> Consumer for Runner<S> {
    async fn consume(&self, batch: &[Delivery], deadline: Option<Timestamp>) -> Vec<Disposition> {
        let reporter = self.ports.dispatcher.reporter.started_now();
        let mut answers: Vec<Option<Disposition>> = vec![None; batch.len()];
        let mut groups: Vec<Group<S::Event>> = Vec::new();
        for (index, delivery) in batch.iter().enumerate() {
            match self.read_contained(delivery, &reporter) {
                Ok(incoming) => {
                    let place = BatchPlace { index, receive_count: delivery.receive_count };
                    add(&mut groups, incoming, place);
                }
                Err(refused) => answers[index] = Some(refused),
            }
        }
        for part in groups.chunks_mut(self.settings.concurrency.max(1)) {
            // All groups are attempted together once. The few groups with a conflict or a busy partition are then
            // retried separately, so that they do not delay the others.
            let ended = if self.ports.host.is_past(deadline) {
                part.iter().map(|_| Err(out_of_time())).collect()
            } else {
                self.round(&part.iter().collect::<Vec<_>>()).await.into_iter().map(Ok).collect::<Vec<_>>()
            };
            let finished = part.iter_mut().zip(ended).map(async |(group, ended)| match ended {
                Ok(ended) => self.finish(group, ended, deadline).await,
                Err(later) => all_deferred(group, &later),
            });
            let finished = join_all(finished).await;
            for (group, outcomes) in part.iter().zip(finished) {
                answer(&reporter, group, outcomes, &mut answers);
            }
        }
        // Every delivery is either refused or in a group, so every index is filled.
        answers.into_iter().flatten().collect()
    }
}

impl<S: Saga> Runner<S> {
    /// Decodes the event of a delivery. Returns the disposition of a delivery without a usable event.
    fn read(&self, delivery: &Delivery, reporter: &Reporter) -> Result<IncomingEvent<S::Event>, Disposition> {
        let (message, event) = reporter.read(delivery, Message::read)?;
        if message.token.is_none() && !self.settings.admit_untokened {
            let why = "it carries no token, and such messages are refused: an instance sends an event to another one with \
                       notify, request or reply, and an entry point sends it in a session"
                .to_owned();
            return Err(reporter.with_receive_count(delivery.receive_count).reject(Some(&message), why));
        }
        Ok(IncomingEvent { message, event })
    }

    /// Works like [`Runner::read`], but also contains panics of the application's deserializer.
    fn read_contained(
        &self,
        delivery: &Delivery,
        reporter: &Reporter,
    ) -> Result<IncomingEvent<S::Event>, Disposition> {
        contain(|| self.read(delivery, reporter)).unwrap_or_else(|panicked| {
            let message = Message::decode(&delivery.body).ok();
            Err(reporter.faulty(message.as_ref(), delivery.receive_count, panicked.to_string()))
        })
    }

    /// Retries a group until it is done or has to be left to a redelivery. Returns one outcome for each message, in
    /// order.
    async fn finish(
        &self,
        group: &mut Group<S::Event>,
        first: AttemptOutcome,
        deadline: Option<Timestamp>,
    ) -> Vec<Outcome> {
        match self.attempt(group, first, deadline).await {
            Ok(Ok(decisions)) => decisions.into_iter().map(Outcome::Decided).collect(),
            Ok(Err(why)) if group.messages.len() < 2 => {
                self.warn(group, &why, "a message fails by itself");
                vec![Outcome::Faulty(why)]
            }
            Ok(Err(why)) => {
                self.warn(group, &why, "a message of several fails; each is attempted alone");
                self.finish_each(group, deadline).await
            }
            Err(later) => all_deferred(group, &later),
        }
    }

    /// Attempts each message of a group alone, in order.
    async fn finish_each(&self, group: &mut Group<S::Event>, deadline: Option<Timestamp>) -> Vec<Outcome> {
        let mut outcomes = Vec::new();
        for incoming in std::mem::take(&mut group.messages) {
            let messages = vec![incoming];
            let mut alone = Group { partition: group.partition, messages, demand: None, places: Vec::new() };
            outcomes.extend(if self.ports.host.is_past(deadline) {
                all_deferred(&alone, &out_of_time())
            } else {
                let first = self.round(&[&alone]).await.pop().unwrap_or(AttemptOutcome::Busy);
                // The recursion ends here: a group of one message is not divided.
                Box::pin(self.finish(&mut alone, first, deadline)).await
            });
            group.messages.append(&mut alone.messages);
        }
        outcomes
    }

    /// Repeats the attempt at a group: after a conflict once for each configured delay, for a busy partition a few
    /// times. Everything else returns to the queue at once, except failures that the messages themselves cause.
    async fn attempt(
        &self,
        group: &mut Group<S::Event>,
        first: AttemptOutcome,
        deadline: Option<Timestamp>,
    ) -> Result<Result<Vec<MessageDecision>, String>, Deferral> {
        let mut conflicts = self.settings.conflict_delays.iter();
        let mut busy = 0;
        let mut ended = first;
        loop {
            let wait = match ended {
                AttemptOutcome::Done(decisions) => return Ok(Ok(decisions)),
                AttemptOutcome::Faulty(why) => return Ok(Err(why)),
                AttemptOutcome::BrokenOff(why) => {
                    self.warn(group, &why, "an attempt was broken off");
                    return Err(self.failed(why));
                }
                AttemptOutcome::Unreadable(why) => {
                    self.warn(group, &why, "a document cannot be read");
                    return Err(Deferral { backoff: Backoff::UPGRADE, why });
                }
                AttemptOutcome::Conflict => match conflicts.next() {
                    Some(delay) => *delay,
                    None => return Err(self.failed("other workers kept changing the partition".to_owned())),
                },
                // A saga that repeatedly needs more tokens is left to a redelivery, like a saga that repeatedly loses
                // conflicts.
                AttemptOutcome::TooFewTokens(demand) => match conflicts.next() {
                    Some(_) => {
                        group.demand = Some(demand);
                        Duration::ZERO
                    }
                    None => return Err(self.failed("an event kept needing more tokens".to_owned())),
                },
                AttemptOutcome::Busy if busy < self.settings.busy_tries => {
                    busy += 1;
                    self.settings.busy_wait.mul_f64(0.5 + self.ports.host.unit_random() / 2.0)
                }
                AttemptOutcome::Busy => {
                    let why = "another worker holds the partition".to_owned();
                    return Err(Deferral { backoff: self.settings.busy_visibility, why });
                }
            };
            if !wait.is_zero() {
                self.ports.host.sleep(wait).await;
            }
            if self.ports.host.is_past(deadline) {
                return Err(out_of_time());
            }
            ended = self.round(&[&*group]).await.pop().unwrap_or(AttemptOutcome::Busy);
        }
    }

    fn failed(&self, why: String) -> Deferral {
        Deferral { backoff: self.settings.failure_visibility, why }
    }
}

fn out_of_time() -> Deferral {
    Deferral { backoff: Backoff::NONE, why: DEADLINE_NEAR.to_owned() }
}

fn add<E>(groups: &mut Vec<Group<E>>, incoming: IncomingEvent<E>, place: BatchPlace) {
    let partition = incoming.message.partition;
    match groups.iter_mut().find(|group| group.partition == partition) {
        Some(input) => {
            input.messages.push(incoming);
            input.places.push(place);
        }
        None => groups.push(Group { partition, messages: vec![incoming], demand: None, places: vec![place] }),
    }
}

fn all_deferred<E>(group: &Group<E>, later: &Deferral) -> Vec<Outcome> {
    group.messages.iter().map(|_| Outcome::Deferred(later.clone())).collect()
}

/// Stores the disposition of each message of a group at its index.
fn answer<E>(
    reporter: &Reporter,
    group: &Group<E>,
    outcomes: Vec<Outcome>,
    answers: &mut [Option<Disposition>],
) {
    let messages = group.messages.iter().map(|incoming| &incoming.message).zip(&group.places);
    for ((message, BatchPlace { index, receive_count }), outcome) in messages.zip(outcomes) {
        answers[*index] = Some(match outcome {
            Outcome::Decided(MessageDecision { verdict: Verdict::Retried, why, state }) => {
                postponed(&reporter.in_state(state), message, *receive_count, why)
            }
            Outcome::Decided(decision) => {
                disposition(&reporter.with_receive_count(*receive_count), message, decision)
            }
            Outcome::Deferred(Deferral { backoff, why }) => {
                reporter.retry(message, backoff, *receive_count, why)
            }
            Outcome::Faulty(why) => reporter.faulty(Some(message), *receive_count, why),
        });
    }
}

fn postponed(reporter: &Reporter, message: &Message, receive_count: u32, why: String) -> Disposition {
    if receive_count < LAST_POSTPONED_DELIVERY {
        return reporter.retry(message, POSTPONED, receive_count, why);
    }
    let why = format!("still too early at delivery {receive_count}: {why}");
    reporter.with_receive_count(receive_count).reject(Some(message), why)
}

fn disposition(reporter: &Reporter, message: &Message, decision: MessageDecision) -> Disposition {
    let reporter = reporter.in_state(decision.state);
    if decision.verdict == Verdict::Rejected {
        return reporter.reject(Some(message), decision.why);
    }
    reporter.note(Some(message), decision.verdict, &decision.why);
    Disposition::Acknowledge
}
