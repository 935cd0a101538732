//! All ports of an installation, and the runners, handlers and sessions that are built from them.
//!
//! A service that is not configured is an error only for functions that use it.

use std::sync::Arc;
use std::time::Duration;

use dedup::guard::{self, Handler};
use dedup::{CheckTokens, GrantTokens, ProcessedMessages, filter};
use futures::future::{Either, select};
use futures::lock::{Mutex, MutexGuard};
use jiff::Timestamp;
use messages::{
    Backoff, Body, Consumer, DecisionSink, Host, InspectQueues, Message, MessageId, PartitionKey, Payload,
    Queue, ReceiveMessages, Reporter, SendError, SendMessages, SessionId, StoreError, Token, send_one,
};
use outbox::session::{self, CommitError, Options};
use outbox::{CommitSession, DispatchOutbox, Dispatcher, Key, Policy, Record, Session, StageError, View};
use serde_json::Value;

use crate::failures::Failures;
use crate::history::KeepHistory;
use crate::instance::{self, Instance, SAGA, by_partition, grant_all, revoke_all};
use crate::operator::Operator;
use crate::ports::{self, NoTokens, Partitions, Stores};
use crate::runner::run;
use crate::settings::Settings;
use crate::state_machine::Saga;
use crate::sweeps::SweepHeartbeat;
use crate::system::{MissingSetting, System};
use crate::views::Views;

/// The maximum number of attempts of [`EntryPoint::repeat_conflicts`].
const ATTEMPTS: u32 = 20;
/// The delays between these attempts. Without them, many requests that change one record use up their attempts.
const CONFLICT: Backoff = Backoff { first: Duration::from_millis(2), max: Duration::from_millis(200) };
/// The maximum wait for the attempts of another request. After this time, the request continues at the risk of a further
/// conflict: the other one may wait for this request.
const MAX_TURN_WAIT: Duration = Duration::from_secs(10);

/// The engine of one installation.
#[derive(Clone)]
pub struct Engine {
    /// The application's name, as [`crate::System`] has it.
    pub system: &'static str,
    /// The queue of the function that the engine belongs to; `None` if it belongs to no function.
    pub queue: Option<Queue>,
    /// The time after the deadline of a call at which its handler is stopped; `None` for no limit.
    pub overtime: Option<Duration>,
    /// The database.
    pub stores: Result<Stores, MissingSetting>,
    /// The ledger, for functions that change it.
    pub partitions: Result<Partitions, MissingSetting>,
    /// The ledger, for functions that check which tokens a partition still admits.
    pub check_tokens: Result<Arc<dyn CheckTokens>, MissingSetting>,
    /// The store of processed messages.
    pub processed: Result<Arc<dyn ProcessedMessages>, MissingSetting>,
    /// Sends messages.
    pub send: Arc<dyn SendMessages>,
    /// Receives and acknowledges messages.
    pub receive: Arc<dyn ReceiveMessages>,
    /// Counts messages.
    pub inspect: Arc<dyn InspectQueues>,
    /// The clock, timers and random numbers.
    pub host: Arc<dyn Host>,
    /// Receives every decision about a message.
    pub observer: Arc<dyn DecisionSink>,
    /// The history of decisions; `None` without a database.
    pub history: Option<Arc<dyn KeepHistory>>,
    /// The settings of the outbox.
    pub policy: Policy,
    /// The settings of sessions.
    pub session: Options,
    /// The settings of the runner.
    pub runner: Settings,
    /// Reads the views that earlier versions staged; see [`View::from_payload`].
    pub earlier_view: fn(Value) -> Option<View>,
}

impl Engine {
    /// Returns the ports to the database.
    ///
    /// # Errors
    /// Returns an error if no database is configured.
    pub fn stores(&self) -> Result<&Stores, MissingSetting> {
        self.stores.as_ref().map_err(Clone::clone)
    }

    /// Returns the ports to the ledger.
    ///
    /// # Errors
    /// Returns an error if no ledger is configured.
    pub fn partitions(&self) -> Result<&Partitions, MissingSetting> {
        self.partitions.as_ref().map_err(Clone::clone)
    }

    /// Returns a reporter of decisions for a function.
    pub fn reporter(&self, function: &'static str) -> Reporter {
        let (host, observer) = (Arc::clone(&self.host), Arc::clone(&self.observer));
        Reporter { function, host, observer, began_at: None, attempt: None, state: None }
    }

    /// Sends a message immediately, without a session, and returns it. If the program crashes before the message is
    /// sent, it is lost; a repeated call sends another message. An event of a saga needs a token and therefore a
    /// session.
    ///
    /// # Errors
    /// Returns an error if the message cannot be encoded, or the queue refuses it.
    pub async fn send_now<P: Payload>(
        &self,
        function: &'static str,
        partition: PartitionKey,
        payload: &P,
    ) -> Result<Message, SendError> {
        let id = MessageId::from_uuid(self.host.fresh_id());
        let message =
            Message::new(id, function, partition, self.host.now(), payload.body()?).in_trace_of_request();
        send_one(self.send.as_ref(), &message, P::QUEUE, Duration::ZERO).await?;
        Ok(message)
    }

    /// Returns a dispatcher of outbox entries for a function.
    ///
    /// # Errors
    /// Returns an error if no database is configured.
    pub fn dispatcher(&self, function: &'static str) -> Result<Dispatcher, MissingSetting> {
        Ok(Dispatcher {
            send: Arc::clone(&self.send),
            views: Arc::clone(&self.stores()?.write_views),
            records: Arc::clone(&self.stores()?.write_records),
            earlier_view: self.earlier_view,
            policy: self.policy,
            reporter: self.reporter(function),
        })
    }

    /// Returns the consumer of a saga's queue.
    ///
    /// # Errors
    /// Returns an error if a service that it uses is not configured, or the function is behind another queue than that
    /// of the saga's events.
    pub fn run<S: Saga>(&self, function: &'static str, saga: S) -> Result<Arc<dyn Consumer>, MissingSetting> {
        if self.queue.as_ref().is_some_and(|queue| *queue != S::Event::QUEUE) {
            return Err(MissingSetting {
                setting: format!("queue {} before {function}", S::Event::QUEUE).into(),
                what: "the queue of the saga's events, but the table has another queue before the function",
            });
        }
        let stores = self.stores()?;
        let ports = ports::Ports {
            read: Arc::clone(&stores.read_documents),
            write: Arc::clone(&stores.write_documents),
            ledger: Arc::clone(&self.partitions()?.ledger),
            tokens: Arc::clone(&self.partitions()?.tokens),
            dispatcher: self.dispatcher(function)?,
            host: Arc::clone(&self.host),
        };
        Ok(run(saga, ports, self.runner.clone()))
    }

    /// Returns the consumer of a queue with a stateless handler; see [`guard::guard`].
    ///
    /// # Errors
    /// Returns an error if no store of processed messages or no ledger is configured.
    pub fn guard<H: Handler>(
        &self,
        function: &'static str,
        handler: H,
    ) -> Result<Arc<dyn Consumer>, MissingSetting> {
        let tokens = self.check_tokens.clone()?;
        let filter = Some(filter::Stores { processed: self.processed.clone()?, tokens });
        let (send, reporter) = (Arc::clone(&self.send), self.reporter(function));
        let (queue, overtime) = (self.queue.clone(), self.overtime);
        Ok(guard::guard(guard::Ports { queue, send, filter, reporter, overtime }, handler))
    }

    /// Works like [`Engine::guard`], for a handler that only replies and may reply to every duplicate.
    pub fn reply<H: Handler>(&self, function: &'static str, handler: H) -> Arc<dyn Consumer> {
        let (send, reporter) = (Arc::clone(&self.send), self.reporter(function));
        let (queue, overtime) = (self.queue.clone(), self.overtime);
        guard::guard(guard::Ports { queue, send, filter: None, reporter, overtime }, handler)
    }

    /// Returns the sweep of sessions and outboxes.
    ///
    /// # Errors
    /// Returns an error if no database is configured.
    pub fn dispatch_outbox(&self, function: &'static str) -> Result<DispatchOutbox, MissingSetting> {
        let stores = self.stores()?;
        Ok(DispatchOutbox {
            sessions: Arc::clone(&stores.settle_sessions),
            session_outbox: stores.session_outbox.clone(),
            saga_outbox: stores.saga_outbox.clone(),
            dispatcher: self.dispatcher(function)?,
            observer: None,
            overtime: self.overtime,
        })
    }

    /// Returns the operator's actions on exhausted effects.
    ///
    /// # Errors
    /// Returns an error if a service that it uses is not configured.
    pub fn operator(&self) -> Result<Operator, MissingSetting> {
        Ok(Operator {
            stores: self.stores()?.clone(),
            partitions: self.partitions()?.clone(),
            check_tokens: self.check_tokens.clone(),
            host: Arc::clone(&self.host),
            lease: self.runner.lease,
        })
    }

    /// Returns the collection and retry of failures.
    ///
    /// # Errors
    /// Returns an error if a service that it uses is not configured.
    pub fn failures<P>(
        &self,
        function: &'static str,
        system: &System<P>,
    ) -> Result<Failures, MissingSetting> {
        Ok(Failures {
            store: Arc::clone(&self.stores()?.failures),
            operator: self.operator()?,
            send: Arc::clone(&self.send),
            receive: Arc::clone(&self.receive),
            drains: system.dead_letters(),
            inspect: Arc::clone(&self.inspect),
            functions: system.behind_queues(),
            history: self.history.clone(),
            reporter: self.reporter(function),
        })
    }

    /// Returns the record of completed sweeps.
    ///
    /// # Errors
    /// Returns an error if no database is configured.
    pub fn sweeps(&self) -> Result<SweepHeartbeat, MissingSetting> {
        let stores = self.stores()?;
        Ok(SweepHeartbeat {
            records: Arc::clone(&stores.records),
            write: Arc::clone(&stores.write_records),
            host: Arc::clone(&self.host),
        })
    }

    /// Returns the entry point for code outside a message handler. Without a ledger, its sessions cannot send events of
    /// sagas.
    ///
    /// # Errors
    /// Returns an error if no database is configured.
    pub fn entry_point(&self, function: &'static str) -> Result<EntryPoint, MissingSetting> {
        let stores = self.stores()?;
        Ok(EntryPoint {
            system: self.system,
            sessions: session::Ports {
                sessions: Arc::clone(&stores.commit_sessions),
                outbox: stores.session_outbox.clone(),
                records: Arc::clone(&stores.records),
                dispatcher: self.dispatcher(function)?,
            },
            tokens: match &self.partitions {
                Ok(partitions) => Arc::clone(&partitions.tokens),
                Err(missing) => Arc::new(NoTokens(missing.clone())),
            },
            options: self.session.clone(),
            turn: Arc::default(),
        })
    }

    /// Returns the views of a saga.
    ///
    /// # Errors
    /// Returns an error if no database is configured.
    pub fn views<S: Saga>(&self, saga: S) -> Result<Views<S>, MissingSetting> {
        let stores = self.stores()?;
        Ok(Views {
            saga,
            written: Arc::clone(&stores.read_views),
            documents: Arc::clone(&stores.read_documents),
            host: Arc::clone(&self.host),
        })
    }
}

impl AsRef<Self> for Engine {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsMut<Self> for Engine {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// The entry point for code outside a message handler: sessions whose events carry tokens.
#[derive(Clone)]
pub struct EntryPoint {
    /// The application's name.
    pub system: &'static str,
    /// The ports of sessions.
    pub sessions: session::Ports,
    /// Grants tokens to partitions.
    pub tokens: Arc<dyn GrantTokens>,
    /// The settings of sessions.
    pub options: Options,
    /// Held by the request that repeats its attempts.
    turn: Arc<Mutex<()>>,
}

impl EntryPoint {
    /// Opens a session on behalf of a partition, with a random id.
    ///
    /// The caller cannot choose the id. The ids and tokens of the events are derived from it, and the record of a
    /// committed session is removed after a time. Repeating a session after that would grant used tokens again, and its
    /// events would take effect twice. To make a repeated request take effect once, read and write a record in the
    /// session: [`OpenSession::read`].
    pub fn session(&self, partition: PartitionKey) -> OpenSession<'_> {
        self.session_with(partition, &self.options)
    }

    /// Works like [`EntryPoint::session`], with its own duration and metadata.
    pub fn session_with(&self, partition: PartitionKey, options: &Options) -> OpenSession<'_> {
        let id = SessionId::from_uuid(self.sessions.dispatcher.reporter.host.fresh_id());
        let session = Session::open(&self.sessions, self.system, id, partition, options);
        OpenSession { entry: self, partition, session, tokens: Vec::new(), work: None, is_granted: false }
    }

    /// Repeats an attempt at a request, with growing delays, as long as it returns a conflict: another session changed a
    /// record that its session has read. Each attempt opens a new session. Requests of this entry point repeat their
    /// attempts one after the other, so that many requests that change one record all succeed.
    ///
    /// # Errors
    /// Returns the errors of the attempt, and the conflict after the twentieth attempt.
    pub async fn repeat_conflicts<T, E, F: Future<Output = Result<T, E>>>(
        &self,
        attempt: impl Fn() -> F,
        is_conflict: impl Fn(&E) -> bool,
    ) -> Result<T, E> {
        let host = &self.sessions.dispatcher.reporter.host;
        let mut turn = None;
        for number in 1..ATTEMPTS {
            match attempt().await {
                Err(error) if is_conflict(&error) => {
                    if turn.is_none() {
                        turn = self.turn().await;
                    }
                    host.sleep(CONFLICT.after(number, host.unit_random())).await;
                }
                done => return done,
            }
        }
        attempt().await
    }

    /// Waits until no other request of this entry point repeats its attempts; `None` if that takes too long.
    async fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        let host = &self.sessions.dispatcher.reporter.host;
        match select(self.turn.lock(), host.sleep(MAX_TURN_WAIT)).await {
            Either::Left((turn, _)) => Some(turn),
            Either::Right(_) => None,
        }
    }

    /// Returns a token with its own name, for a caller that grants it together with others in one call and sends its
    /// event with [`OpenSession::send_granted`]. The same name yields the same token, so grant it with
    /// [`GrantTokens::begin`], which does not restore a used token.
    pub fn named_token(&self, name: SessionId, partition: PartitionKey) -> Token {
        entry_token(partition, session::message_id(name, 0))
    }
}

fn entry_token(partition: PartitionKey, message: MessageId) -> Token {
    instance::entry_token(partition, message, b"token")
}

/// An open session. Dropping it without a commit leaves nothing.
pub struct OpenSession<'a> {
    entry: &'a EntryPoint,
    partition: PartitionKey,
    session: Session<'a>,
    /// The tokens of its messages.
    tokens: Vec<(PartitionKey, Token)>,
    /// The transaction of the commit, if the application's work takes part in it.
    work: Option<Arc<dyn CommitSession>>,
    is_granted: bool,
}

impl OpenSession<'_> {
    /// Sends a message to the partition of the session, with the commit. An event of the saga behind [`SAGA`] gets a
    /// token, which is derived from the session like its id. An event of another saga needs [`OpenSession::notify`].
    ///
    /// # Errors
    /// Returns an error if the message cannot be encoded.
    pub fn send<P: Payload>(&mut self, payload: &P) -> Result<(), StageError> {
        let id = self.session.next_id();
        let token = (P::QUEUE == SAGA).then(|| entry_token(self.partition, id));
        self.tokens.extend(token.clone().map(|token| (self.partition, token)));
        self.stage(id, self.partition, payload, token)
    }

    /// Sends an event to an instance of any saga with the commit. An instance that does not exist begins with it.
    ///
    /// # Errors
    /// Returns an error if the event cannot be encoded.
    pub fn notify<S: Saga>(&mut self, to: &Instance<S>, event: &S::Event) -> Result<(), StageError> {
        let (id, partition) = (self.session.next_id(), to.partition());
        let token = entry_token(partition, id);
        self.tokens.push((partition, token.clone()));
        self.stage(id, partition, event, Some(token))
    }

    /// Sends an event of a saga that is given as data to the partition of the session, with the commit. Returns its
    /// message.
    ///
    /// # Errors
    /// Returns an error if the event cannot be encoded.
    pub(crate) fn send_body(&mut self, queue: Queue, body: Body) -> Result<Message, StageError> {
        let id = self.session.next_id();
        let token = entry_token(self.partition, id);
        self.tokens.push((self.partition, token.clone()));
        let message = self.message(id, self.partition, body, Some(token));
        self.session.stage(message.clone(), queue)?;
        Ok(message)
    }

    /// Works like [`OpenSession::send`], with a token that was granted before; see [`EntryPoint::named_token`].
    ///
    /// # Errors
    /// Returns an error if the message cannot be encoded.
    pub fn send_granted<P: Payload>(&mut self, payload: &P, token: Token) -> Result<(), StageError> {
        self.stage(self.session.next_id(), self.partition, payload, Some(token))
    }

    fn stage<P: Payload>(
        &mut self,
        id: MessageId,
        partition: PartitionKey,
        payload: &P,
        token: Option<Token>,
    ) -> Result<(), StageError> {
        let body = payload.body().map_err(|error| StageError::new(payload.kind().name, error))?;
        self.session.stage(self.message(id, partition, body, token), P::QUEUE)
    }

    fn message(&self, id: MessageId, partition: PartitionKey, body: Body, token: Option<Token>) -> Message {
        let reporter = &self.entry.sessions.dispatcher.reporter;
        let message = Message::new(id, reporter.function, partition, reporter.host.now(), body);
        Message { token, ..message.in_trace_of_request() }
    }

    /// Writes the view of a saga that is about to begin, with the commit.
    pub fn show(&mut self, view: View) {
        self.session.show(view);
    }

    /// Reads a record, with the body that the session has written itself, if any. The commit fails if another session
    /// changes the record in between.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    pub async fn read(&mut self, key: Key) -> Result<Option<Record>, StoreError> {
        self.session.read(key).await
    }

    /// Writes a record with the commit. The record does not expire.
    pub fn write(&mut self, key: Key, body: Value) {
        self.session.write(key, body);
    }

    /// Writes a record with the commit. From `expires_at` on, rounded up to a second, the record counts as absent, and its
    /// store deletes it some days later.
    pub fn write_until(&mut self, key: Key, body: Value, expires_at: Timestamp) {
        self.session.write_until(key, body, expires_at);
    }

    /// Removes a record with the commit.
    pub fn remove(&mut self, key: Key) {
        self.session.remove(key);
    }

    /// Sets the work of the application that the commit performs in the same transaction. Later work replaces it. The
    /// adapter of a store creates it, for example `sqlite::Store::with_work`.
    ///
    /// A request whose response is stored ([`EntryPoint::respond_once`]) writes the application's own tables in this way.
    pub fn set_work(&mut self, work: impl CommitSession + 'static) {
        self.work = Some(Arc::new(work));
    }

    /// Grants the tokens, announces the session, stores everything in one transaction, and sends the messages. Returns
    /// the messages.
    ///
    /// # Errors
    /// Returns the errors of [`Session::commit`], and [`CommitError::Refused`] if the application's work refuses the
    /// commit.
    pub async fn commit(&mut self) -> Result<Vec<Message>, CommitError> {
        if let Some(work) = self.work.clone() {
            return self.commit_with(work.as_ref()).await;
        }
        self.grant().await?;
        let committed = self.session.commit().await;
        self.settle_tokens(committed).await
    }

    /// Works like [`OpenSession::commit`], with this work of the application in the same transaction; see
    /// [`Session::commit_with`].
    ///
    /// # Errors
    /// Returns the errors of [`Session::commit_with`].
    pub async fn commit_with(&mut self, sessions: &dyn CommitSession) -> Result<Vec<Message>, CommitError> {
        self.grant().await?;
        let committed = self.session.commit_with(sessions).await;
        self.settle_tokens(committed).await
    }

    /// Grants the tokens before the messages that carry them are sent, because a message may be received immediately. A
    /// repeated commit does not grant them again: they may have been used in the meantime.
    async fn grant(&mut self) -> Result<(), CommitError> {
        if self.is_granted || self.tokens.is_empty() {
            return Ok(());
        }
        // A session that will be refused gets no tokens.
        self.session.check()?;
        let now = self.entry.sessions.dispatcher.reporter.host.now();
        // If this fails, all tokens are granted again. No message is sent yet, so none of them can be used.
        grant_all(self.entry.tokens.as_ref(), &by_partition(&self.tokens), now)
            .await
            .map_err(CommitError::Tokens)?;
        self.is_granted = true;
        Ok(())
    }

    /// Revokes the tokens of a session that is refused for good. Its messages are not sent, so the tokens would fill the
    /// items of partitions that do not end. Other commits may be repeated, and a late copy of the revocation would take
    /// the tokens away from a repetition that was stored.
    async fn settle_tokens(
        &mut self,
        committed: Result<Vec<Message>, CommitError>,
    ) -> Result<Vec<Message>, CommitError> {
        if self.is_granted && committed.as_ref().is_err_and(CommitError::is_refused) {
            self.is_granted = false;
            let reporter = &self.entry.sessions.dispatcher.reporter;
            let (tokens, now) = (by_partition(&self.tokens), reporter.host.now());
            if let Err(error) = revoke_all(self.entry.tokens.as_ref(), &tokens, now).await {
                let (function, correlation_id, error) = (reporter.function, self.partition, error.chain());
                tracing::warn!(function, %correlation_id, error, "tokens of a refused session remain");
            }
        }
        committed
    }
}
