//! What leaves nothing unsent.
//!
//! - [`DispatchOutbox`] behind the control queue finds out what became of a transactional session and sends its messages,
//!   or gives it up for good;
//! - [`DispatchOutbox::sweep`], every minute, performs outbox entries whose worker crashed or whose last attempt failed,
//!   and timers that are due.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::store::chain;
use messages::{
    Backoff, Consumer, Delivery, Disposition, Measure, Message, Reporter, SendError, StoreError, Verdict,
    send_one,
};

use crate::dispatch::{self, Dispatcher};
use crate::session::{
    CONTROL, Found, SETTLE_SESSION, SETTLE_SESSION_VERSION, SettleSession, SettleSessions, control_message,
    next_look,
};
use crate::sweep::{Owner, SweepOutbox};

/// Settles sessions, and sweeps.
#[derive(Clone)]
pub struct DispatchOutbox {
    /// Finds sessions.
    pub sessions: Arc<dyn SettleSessions>,
    /// The entries of sessions.
    pub session_outbox: Arc<dyn SweepOutbox>,
    /// The entries of sagas.
    pub saga_outbox: Arc<dyn SweepOutbox>,
    /// Performs entries, and sends control messages again.
    pub dispatcher: Dispatcher,
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
    /// Performs everything that is due. Returns how many entries that was.
    ///
    /// # Errors
    /// When a store does not answer; the next sweep goes on from there.
    pub async fn sweep(&self) -> Result<usize, StoreError> {
        // Also when nothing is due, so that an alarm has something to look at.
        self.dispatcher.reporter.measure(Measure::OUTBOX_AGE, 0);
        let stores = [Arc::clone(&self.session_outbox), Arc::clone(&self.saga_outbox)];
        dispatch::sweep(&stores, &self.dispatcher).await
    }

    async fn consume_one(&self, delivery: &Delivery) -> Disposition {
        let reporter = self.dispatcher.reporter.beginning();
        let message = match Message::decode(&delivery.body) {
            Ok(message) => message,
            Err(error) => return reporter.reject(None, chain(&error)),
        };
        let look = match read(&message, &reporter, delivery.receive_count) {
            Ok(look) => look,
            Err(refused) => return refused,
        };
        match self.settle(&message, &look).await {
            Ok(why) => {
                reporter.note(Some(&message), Verdict::Handled, why);
                Disposition::Acknowledge
            }
            Err(error) => {
                reporter.retry(&message, Backoff::FAILURE.after(delivery.receive_count), chain(&error))
            }
        }
    }

    async fn settle(&self, message: &Message, look: &SettleSession) -> Result<&'static str, Error> {
        match self.sessions.find(look.session_id).await? {
            Found::Committed => self.dispatch(look).await,
            Found::Tombstone => Ok("the session was given up before"),
            Found::Nothing => match next_look(look) {
                Some((delay, next)) => {
                    let now = self.dispatcher.reporter.host.now();
                    let control = control_message(&message.body.system, message.partition, &next, now);
                    send_one(self.dispatcher.send.as_ref(), &control, CONTROL, delay).await?;
                    Ok("the session is not committed yet; looking again later")
                }
                None => self.give_up(look).await,
            },
        }
    }

    async fn give_up(&self, look: &SettleSession) -> Result<&'static str, Error> {
        match self.sessions.bury(look.session_id, self.dispatcher.reporter.host.now()).await? {
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

#[async_trait]
impl Consumer for DispatchOutbox {
    async fn consume(&self, batch: &[Delivery], _: Option<Timestamp>) -> Vec<Disposition> {
        let mut answers = Vec::with_capacity(batch.len());
        for delivery in batch {
            answers.push(self.consume_one(delivery).await);
        }
        answers
    }
}

/// Reads a control message; for any other message, how to answer its delivery.
fn read(message: &Message, reporter: &Reporter, receive_count: u32) -> Result<SettleSession, Disposition> {
    let body = &message.body;
    if body.name != SETTLE_SESSION {
        let reason = format!("{} is not a control message", body.name);
        return Err(reporter.reject(Some(message), reason));
    }
    if body.version > SETTLE_SESSION_VERSION {
        let reason = format!("{} has version {}, which this release does not know", body.name, body.version);
        return Err(reporter.retry(message, Backoff::UPGRADE.after(receive_count), reason));
    }
    body.data.read().map_err(|error| {
        reporter.reject(Some(message), format!("the data of {} is malformed: {error}", body.name))
    })
}
