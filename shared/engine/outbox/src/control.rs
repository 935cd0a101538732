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
    Backoff, Body, Consumer, Delivery, Disposition, Measure, Message, ReadError, SendError, StoreError,
    Verdict, send_one,
};

use crate::dispatch::{self, Dispatcher, Swept};
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
    /// Performs everything that is due, until the deadline has come.
    ///
    /// # Errors
    /// When a store does not answer; the next sweep goes on from there.
    pub async fn sweep(&self, deadline: Option<Timestamp>) -> Result<Swept, StoreError> {
        // Also when nothing is due, so that an alarm has something to look at.
        self.dispatcher.reporter.measure(Measure::OUTBOX_AGE, 0);
        let stores = [Arc::clone(&self.session_outbox), Arc::clone(&self.saga_outbox)];
        dispatch::sweep(&stores, &self.dispatcher, deadline).await
    }

    async fn consume_one(&self, delivery: &Delivery) -> Disposition {
        let reporter = self.dispatcher.reporter.beginning().received(delivery.receive_count);
        let (message, look) = match reporter.read(delivery, read) {
            Ok(read) => read,
            Err(refused) => return refused,
        };
        match self.settle(&message, &look).await {
            Ok(why) => {
                reporter.note(Some(&message), Verdict::Handled, why);
                Disposition::Acknowledge
            }
            Err(error) => reporter.retry(&message, Backoff::FAILURE, delivery.receive_count, chain(&error)),
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
        let taken = self.dispatcher.dispatch_records(self.session_outbox.as_ref(), &[owner]).await?;
        taken.error.map_or(Ok(()), Err)?;
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

/// What a control message says.
fn read(message: &Message) -> Result<SettleSession, ReadError> {
    let Body { name, version, data, .. } = &message.body;
    let malformed = |why: String| ReadError::Data { name: name.clone(), why };
    if name != SETTLE_SESSION {
        return Err(malformed("it is not a control message".to_owned()));
    }
    if *version > SETTLE_SESSION_VERSION {
        return Err(ReadError::Newer { name: name.clone(), found: *version, known: SETTLE_SESSION_VERSION });
    }
    data.read().map_err(|error| malformed(error.to_string()))
}
