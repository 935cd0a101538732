//! The parts that ensure that every effect is sent:
//!
//! - [`DispatchOutbox`] consumes the control queue. It determines the outcome of a transactional session, and sends its
//!   messages or abandons it;
//! - [`DispatchOutbox::sweep`], every minute, performs outbox entries whose worker crashed or whose last attempt
//!   failed, and due timers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::host::stop_late;
use messages::store::chain;
use messages::{
    Backoff, Body, Consumer, DEADLINE_NEAR, Delivery, Disposition, Message, Metric, PartitionKey, ReadError,
    SendError, SessionId, StoreError, Verdict, send_one,
};

use crate::dispatch::{self, Dispatcher, SweepOutcome};
use crate::session::{
    CONTROL, SETTLE_SESSION, SETTLE_SESSION_VERSION, SessionStatus, SettleSession, SettleSessions,
    control_message, next_check,
};
use crate::sweep::{Owner, SweepOutbox};

/// Settles sessions, and sweeps outboxes.
#[derive(Clone)]
pub struct DispatchOutbox {
    /// Reads and settles sessions.
    pub sessions: Arc<dyn SettleSessions>,
    /// The entries of sessions.
    pub session_outbox: Arc<dyn SweepOutbox>,
    /// The entries of sagas.
    pub saga_outbox: Arc<dyn SweepOutbox>,
    /// Performs entries, and sends control messages again.
    pub dispatcher: Dispatcher,
    /// Learns the outcome of each session; none by default.
    pub observer: Option<Arc<dyn ObserveSessions>>,
    /// The time after the deadline of an invocation at which the work on a control message is stopped; `None` for no
    /// limit.
    pub overtime: Option<Duration>,
}

/// The outcome of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionOutcome {
    /// The session is committed, and its messages are sent, except those that the next sweep sends.
    Committed,
    /// The session took too long to commit, and can no longer be committed.
    Abandoned,
}

/// A session whose outcome is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettledSession<'a> {
    /// The session.
    pub id: SessionId,
    /// The partition for which the session was opened.
    pub partition: PartitionKey,
    /// The outcome.
    pub outcome: SessionOutcome,
    /// The metadata with which the session was opened, see [`crate::session::Options::metadata`].
    pub metadata: &'a BTreeMap<String, String>,
}

/// Learns the outcomes of sessions with messages, for example to notify the client of an abandoned request. A session
/// that only writes records has no control message. The outcome of its commit is the outcome of the session.
#[async_trait]
pub trait ObserveSessions: Send + Sync {
    /// Receives a session at least once after its outcome is known. If its control message is processed only after the
    /// retention of sessions, the outcome may be unknown, and the session is not received.
    ///
    /// # Errors
    /// Returns an error if the call has to be repeated. The queue redelivers the control message until it dead-letters
    /// it.
    async fn settled(&self, session: SettledSession<'_>) -> Result<(), StoreError>;
}

/// The reason why a control message has to be redelivered.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("sending the control message again failed")]
    Send(#[from] SendError),
}

impl DispatchOutbox {
    /// Performs everything that is due, until the deadline has passed.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable. The next sweep continues from there.
    pub async fn sweep(&self, deadline: Option<Timestamp>) -> Result<SweepOutcome, StoreError> {
        // Recorded even if nothing is due, so that an alarm has data.
        self.dispatcher.reporter.measure(Metric::OUTBOX_AGE, 0);
        let stores = [Arc::clone(&self.session_outbox), Arc::clone(&self.saga_outbox)];
        dispatch::sweep(&stores, &self.dispatcher, deadline).await
    }

    async fn consume_one(&self, delivery: &Delivery, deadline: Option<Timestamp>) -> Disposition {
        let reporter = self.dispatcher.reporter.started_now().with_receive_count(delivery.receive_count);
        let (message, look) = match reporter.read(delivery, read) {
            Ok(read) => read,
            Err(refused) => return refused,
        };
        let again =
            |reason: String| reporter.retry(&message, Backoff::FAILURE, delivery.receive_count, reason);
        // An unavailable store makes the rest of a batch late. Without a delay, its receives would be used up soon.
        if reporter.host.is_past(deadline) {
            return again(DEADLINE_NEAR.to_owned());
        }
        let work = self.settle(&message, &look, deadline);
        match stop_late(&*reporter.host, deadline, self.overtime, work).await {
            None => again("a store did not answer in time".to_owned()),
            Some(Ok(why)) => {
                reporter.note(Some(&message), Verdict::Handled, why);
                Disposition::Acknowledge
            }
            Some(Err(error)) => again(chain(&error)),
        }
    }

    async fn settle(
        &self,
        message: &Message,
        look: &SettleSession,
        deadline: Option<Timestamp>,
    ) -> Result<&'static str, Error> {
        match self.sessions.find(look.session_id).await? {
            SessionStatus::Committed => self.dispatch(message, look, deadline).await,
            SessionStatus::Tombstone => {
                self.observe_abandoned(message, look).await?;
                Ok("the session was abandoned before")
            }
            SessionStatus::Nothing => match next_check(look) {
                Some((delay, next)) => {
                    // The message keeps the time of the session, because the age of the session determines the meaning
                    // of an absent record.
                    let (system, partition) = (&message.body.system, message.partition);
                    let control = control_message(system, partition, &next, message.time);
                    send_one(self.dispatcher.send.as_ref(), &control, CONTROL, delay).await?;
                    Ok("the session is not committed yet; looking again later")
                }
                None => self.abandon(message, look, deadline).await,
            },
        }
    }

    async fn observe(
        &self,
        message: &Message,
        look: &SettleSession,
        outcome: SessionOutcome,
    ) -> Result<(), StoreError> {
        let Some(observer) = &self.observer else { return Ok(()) };
        let (id, partition, metadata) = (look.session_id, message.partition, &look.metadata);
        observer.settled(SettledSession { id, partition, outcome, metadata }).await
    }

    /// Reports an abandoned session, unless a record of its commit may have expired. An operator may retry a control
    /// message weeks after the commit, and then the session only looks abandoned.
    async fn observe_abandoned(&self, message: &Message, look: &SettleSession) -> Result<(), StoreError> {
        let Dispatcher { reporter, policy, .. } = &self.dispatcher;
        if reporter.host.now().duration_since(message.time) < policy.retention {
            return self.observe(message, look, SessionOutcome::Abandoned).await;
        }
        let (function, correlation_id) = (reporter.function, message.partition);
        tracing::warn!(function, %correlation_id, "the record of a session may have expired, so its outcome is unknown");
        Ok(())
    }

    async fn abandon(
        &self,
        message: &Message,
        look: &SettleSession,
        deadline: Option<Timestamp>,
    ) -> Result<&'static str, Error> {
        match self.sessions.abandon(look.session_id, self.dispatcher.reporter.host.now()).await? {
            // The session was committed just before this attempt to abandon it.
            SessionStatus::Committed => self.dispatch(message, look, deadline).await,
            SessionStatus::Tombstone | SessionStatus::Nothing => {
                self.observe_abandoned(message, look).await?;
                Ok("the session took too long to commit and is abandoned")
            }
        }
    }

    async fn dispatch(
        &self,
        message: &Message,
        look: &SettleSession,
        deadline: Option<Timestamp>,
    ) -> Result<&'static str, Error> {
        let (owner, store) = (Owner::Session(look.session_id), self.session_outbox.as_ref());
        let taken = self.dispatcher.dispatch_records(store, &[owner], deadline).await?;
        taken.error.map_or(Ok(()), Err)?;
        self.observe(message, look, SessionOutcome::Committed).await?;
        Ok(match (taken.given_back, taken.idle.is_empty()) {
            (0, true) => "the session is committed; its messages are sent",
            (0, false) => "the session is committed; its messages were sent, or are sent by another worker",
            _ => "the session is committed; the next sweep sends the rest of its messages",
        })
    }
}

#[async_trait]
impl Consumer for DispatchOutbox {
    async fn consume(&self, batch: &[Delivery], deadline: Option<Timestamp>) -> Vec<Disposition> {
        let mut answers = Vec::with_capacity(batch.len());
        for delivery in batch {
            answers.push(self.consume_one(delivery, deadline).await);
        }
        answers
    }
}

/// Reads the content of a control message.
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
