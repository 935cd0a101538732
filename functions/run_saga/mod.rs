//! The function behind the saga queue: one batch of deliveries, decoded one by one, grouped by search.
//!
//! Messages of one search are worked on together and in order, different searches at the same time. A bad
//! delivery costs only itself. What happens to a group is the `worker` crate's business.

use std::sync::Arc;

use backend::{Backend, Missing, Service, Uses};
use config::Mode;
use contracts::store::chain;
use contracts::{Delivery, Disposition, Message, Reporter, Verdict};
use jiff::Timestamp;
use outbox::Queue;
use saga::Event;
use worker::{Group, Incoming, Judgement, Later, Worker};

/// The function's name, in logs and in the messages it sends.
pub const FUNCTION: &str = "run-saga";

/// What the function works on.
pub const USES: Uses = Uses {
    function: FUNCTION,
    services: &[Service::Database, Service::Ledger],
    receives: Some(Queue::Saga),
    sends: &[Queue::Saga, Queue::Parse, Queue::Events],
};

/// The function's settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Whether messages from outside without a token are admitted, such as that of a file which somebody dropped
    /// into the bucket. Then only states, not tokens, tell their duplicates. Optimistic mode needs it.
    pub admit_untokened: bool,
}

/// The function.
#[derive(Clone)]
pub struct RunSaga {
    /// Works on the groups.
    pub worker: Worker,
    /// Time, and who wants to know.
    pub reporter: Reporter,
    /// Its settings.
    pub settings: Settings,
}

/// The messages of a batch by search, each with its place in the batch.
#[derive(Default)]
struct Groups {
    groups: Vec<Group>,
    places: Vec<Vec<usize>>,
}

impl RunSaga {
    /// The function on a backend.
    ///
    /// # Errors
    /// When a service that it uses is not configured.
    pub fn over(backend: &Backend) -> Result<Self, Missing> {
        let (documents, partitions) = (backend.documents()?, backend.partitions()?);
        let ports = worker::Ports {
            read: Arc::clone(&documents.read_sagas),
            write: Arc::clone(&documents.write_sagas),
            ledger: Arc::clone(&partitions.ledger),
            dispatcher: backend.dispatcher(FUNCTION)?,
            host: Arc::clone(&backend.host),
        };
        let config = &backend.config;
        let settings = worker::Settings { concurrency: config.concurrency, ..worker::Settings::default() };
        let admit_untokened = config.admit_untokened || config.mode == Mode::Optimistic;
        Ok(Self {
            worker: Worker::new(ports, settings),
            reporter: backend.reporter(FUNCTION),
            settings: Settings { admit_untokened },
        })
    }

    /// Works on a batch; one answer for each delivery, in order. Nothing is begun after `deadline`: what is left is
    /// to be delivered again at once.
    pub async fn handle(&self, batch: &[Delivery], deadline: Option<Timestamp>) -> Vec<Disposition> {
        let this = Self { reporter: self.reporter.beginning(), ..self.clone() };
        let mut answers: Vec<Option<Disposition>> = vec![None; batch.len()];
        let mut by_search = Groups::default();
        for (place, delivery) in batch.iter().enumerate() {
            match this.read(&delivery.body) {
                Ok(incoming) => by_search.add(place, incoming),
                Err(reason) => answers[place] = Some(this.reporter.reject(None, reason)),
            }
        }
        let done = this.worker.work_on(&by_search.groups, deadline).await;
        for ((group, places), done) in by_search.groups.iter().zip(by_search.places).zip(done) {
            let counts = places.iter().map(|place| batch[*place].receive_count);
            let answered = this.answer(group, counts, done);
            for (place, answer) in places.into_iter().zip(answered) {
                answers[place] = Some(answer);
            }
        }
        // Every delivery is either unreadable or in a group, so every place is filled.
        answers.into_iter().flatten().collect()
    }

    fn read(&self, body: &str) -> Result<Incoming, String> {
        let message = Message::decode(body).map_err(|error| chain(&error))?;
        if message.token.is_none() && !self.settings.admit_untokened {
            return Err("it carries no token, and such messages are refused".to_owned());
        }
        let event = Event::from_message(&message)
            .ok_or_else(|| format!("{} is not an event of a search", message.body.name()))?;
        Ok(Incoming { message, event })
    }

    fn answer(
        &self,
        group: &Group,
        receive_counts: impl Iterator<Item = u32>,
        done: Result<Vec<Judgement>, Later>,
    ) -> Vec<Disposition> {
        let messages = group.messages.iter().map(|incoming| &incoming.message);
        match done {
            Ok(judgements) => {
                messages.zip(judgements).map(|(message, judgement)| self.judged(message, judgement)).collect()
            }
            Err(later) => {
                let retry = |(message, receive_count)| {
                    self.reporter.retry(message, later.backoff.after(receive_count), later.reason.clone())
                };
                messages.zip(receive_counts).map(retry).collect()
            }
        }
    }

    fn judged(&self, message: &Message, judgement: Judgement) -> Disposition {
        if judgement.verdict == Verdict::Rejected {
            return self.reporter.reject(Some(message), judgement.why);
        }
        self.reporter.note(Some(message), judgement.verdict, &judgement.why);
        Disposition::Acknowledge
    }
}

impl Groups {
    fn add(&mut self, place: usize, incoming: Incoming) {
        let search_id = incoming.message.correlation_id;
        match self.groups.iter().position(|group| group.search_id == search_id) {
            Some(known) => {
                self.groups[known].messages.push(incoming);
                self.places[known].push(place);
            }
            None => {
                self.groups.push(Group { search_id, messages: vec![incoming] });
                self.places.push(vec![place]);
            }
        }
    }
}
