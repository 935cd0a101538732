//! The function that leaves nothing unsent.
//!
//! - [`DispatchOutbox::handle`], on the control queue: finds out what became of a transactional session and sends
//!   its messages, or gives it up for good;
//! - [`DispatchOutbox::sweep`], every minute: performs outbox entries whose worker crashed or whose last attempt
//!   failed, and timeouts that are due.

use std::sync::Arc;

use backend::{Backend, Missing, Service, Uses};
use contracts::message::SettleSession;
use contracts::store::chain;
use contracts::{Backoff, Body, Delivery, Disposition, Measure, Message, Reporter, StoreError, Verdict};
use outbox::session::{Found, control_message, next_look};
use outbox::{Owner, Queue, SendError, SendMessages, SettleSessions, SweepOutbox, send_one};
use worker::Dispatcher;

/// The function's name, in logs and in the messages it sends.
pub const FUNCTION: &str = "dispatch-outbox";

/// What the function works on.
pub const USES: Uses = Uses {
    function: FUNCTION,
    services: &[Service::Database],
    receives: Some(Queue::Control),
    sends: &[Queue::Control, Queue::Saga, Queue::Parse, Queue::Events],
};

/// The function.
#[derive(Clone)]
pub struct DispatchOutbox {
    /// Finds sessions.
    pub sessions: Arc<dyn SettleSessions>,
    /// The entries of sessions.
    pub session_outbox: Arc<dyn SweepOutbox>,
    /// The entries of sagas.
    pub saga_outbox: Arc<dyn SweepOutbox>,
    /// Takes control messages.
    pub queue: Arc<dyn SendMessages>,
    /// Performs entries.
    pub dispatcher: Dispatcher,
    /// Time, and who wants to know.
    pub reporter: Reporter,
}

/// Why a control message has to come again.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("sending the control message again failed")]
    Send(#[from] SendError),
}

impl DispatchOutbox {
    /// The function on a backend.
    ///
    /// # Errors
    /// When a service that it uses is not configured.
    pub fn over(backend: &Backend) -> Result<Self, Missing> {
        let documents = backend.documents()?;
        Ok(Self {
            sessions: Arc::clone(&documents.settle_sessions),
            session_outbox: documents.session_outbox.clone(),
            saga_outbox: documents.saga_outbox.clone(),
            queue: Arc::clone(&backend.queue),
            dispatcher: backend.dispatcher(FUNCTION)?,
            reporter: backend.reporter(FUNCTION),
        })
    }

    /// Works on a batch of control messages; one answer for each, in order.
    pub async fn handle(&self, batch: &[Delivery]) -> Vec<Disposition> {
        let mut answers = Vec::with_capacity(batch.len());
        for delivery in batch {
            answers.push(self.beginning().handle_one(delivery).await);
        }
        answers
    }

    /// Performs everything that is due. Returns how many entries that was.
    ///
    /// # Errors
    /// When a store does not answer; the next sweep goes on from there.
    pub async fn sweep(&self) -> Result<usize, StoreError> {
        // Also when nothing is due, so that an alarm has something to look at.
        self.reporter.measure(Measure::OutboxAge, 0);
        let stores = [Arc::clone(&self.session_outbox), Arc::clone(&self.saga_outbox)];
        worker::sweep(&stores, &self.dispatcher).await
    }

    /// The function as it works on what begins now.
    fn beginning(&self) -> Self {
        Self { reporter: self.reporter.beginning(), ..self.clone() }
    }

    async fn handle_one(&self, delivery: &Delivery) -> Disposition {
        let message = match Message::decode(&delivery.body) {
            Ok(message) => message,
            Err(error) => return self.reporter.reject(None, chain(&error)),
        };
        let Body::SettleSession(look) = &message.body else {
            let reason = format!("{} is not a control message", message.body.name());
            return self.reporter.reject(Some(&message), reason);
        };
        match self.settle(&message, look).await {
            Ok(why) => {
                self.reporter.note(Some(&message), Verdict::Handled, why);
                Disposition::Acknowledge
            }
            Err(error) => {
                self.reporter.retry(&message, Backoff::FAILURE.after(delivery.receive_count), chain(&error))
            }
        }
    }

    async fn settle(&self, message: &Message, look: &SettleSession) -> Result<&'static str, Error> {
        match self.sessions.find(look.session_id).await? {
            Found::Committed => self.dispatch(look).await,
            Found::Tombstone => Ok("the session was given up before"),
            Found::Nothing => match next_look(look) {
                Some((delay, next)) => {
                    let now = self.reporter.host.now();
                    let control = control_message(look.session_id, message.correlation_id, next, now);
                    send_one(self.queue.as_ref(), &control, delay).await?;
                    Ok("the session is not committed yet; looking again later")
                }
                None => self.give_up(look).await,
            },
        }
    }

    async fn give_up(&self, look: &SettleSession) -> Result<&'static str, Error> {
        match self.sessions.bury(look.session_id, self.reporter.host.now()).await? {
            // It was committed at the last moment.
            Found::Committed => self.dispatch(look).await,
            Found::Tombstone | Found::Nothing => Ok("the session took too long to commit and is given up"),
        }
    }

    async fn dispatch(&self, look: &SettleSession) -> Result<&'static str, Error> {
        let owner = Owner::Session(look.session_id);
        self.dispatcher.dispatch_record(self.session_outbox.as_ref(), owner).await?;
        Ok("the session is committed; its messages are sent")
    }
}
