//! Reports of dead-lettered commands to the sagas that requested them.
//!
//! A command whose handler fails for days ends in the dead-letter queue, and its saga would wait for the reply. A
//! function behind the dead-letter queue sends an event to the saga instead. The same holds for a request to another
//! saga. The event carries the command's reply token, which admits either the reply or the report. If the command
//! succeeded after all and its reply has taken effect, the report is a duplicate.

use std::sync::Arc;

use async_trait::async_trait;
use dedup::{CommandMessage, Handler, HandlerError, HandlerResult};
use jiff::Timestamp;
use messages::store::chain;
use messages::{Consumer, Message, Payload, Queue, QueueSpec, Reporter};

use crate::engine::Engine;
use crate::failures::{FailureReport, Failures, Origin};
use crate::plan::REPORT;
use crate::system::{MissingSetting, System};

/// The reason if the queue reports none.
const NO_REASON: &str = "its handler never succeeded";
/// The reason why the failure needs no retry.
const REPORTED: &str = "the saga was informed that the command failed";

/// Chooses the events that report dead-lettered commands.
pub trait ReportDeadLetters: Send + Sync + 'static {
    /// The commands.
    type Command: Payload;
    /// The events of the saga that requests the commands.
    type Event: Payload;

    /// Returns the event for a command that was requested with [`Advance::ask`](crate::Advance::ask), and which failed
    /// for this reason. The reason is general if the queue reports none, such as after crashes of the handler. Commands
    /// without a reply token have no event, because the event needs it. Without an event the saga is not informed, and
    /// the failure stays open for an operator.
    fn event(&self, command: &Self::Command, reason: &str) -> Option<Self::Event>;

    /// Returns the queue of the saga that requested the command, if sagas with one form of events share the commands.
    fn queue(&self, _command: &Self::Command) -> Queue {
        Self::Event::QUEUE
    }
}

impl Engine {
    /// Returns the consumer of the dead-letter queue of these commands. Each command becomes a failure in the database
    /// and is reported to its saga. A command that cannot be read moves to the next dead-letter queue.
    ///
    /// # Errors
    /// Returns an error if a service that it uses is not configured, or the queue of the commands has no dead-letter
    /// queue.
    pub fn report_dead_letters<P, R: ReportDeadLetters>(
        &self,
        function: &'static str,
        system: &System<P>,
        reports: R,
    ) -> Result<Arc<dyn Consumer>, MissingSetting> {
        self.report_dead_letters_of(R::Command::QUEUE, function, system, reports)
    }

    /// Works like [`Engine::report_dead_letters`], for commands that are sent to a queue other than [`Payload::QUEUE`].
    ///
    /// # Errors
    /// Returns the errors of [`Engine::report_dead_letters`].
    pub fn report_dead_letters_of<P, R: ReportDeadLetters>(
        &self,
        source: Queue,
        function: &'static str,
        system: &System<P>,
        reports: R,
    ) -> Result<Arc<dyn Consumer>, MissingSetting> {
        let queue = QueueSpec::dead_letters_of(system.queues, &source).ok_or_else(|| MissingSetting {
            setting: format!("dead-letter queue of {source}").into(),
            what: "where its commands are reported from",
        })?;
        let failures = self.failures(function, system)?;
        let needs_token = !self.runner.admit_untokened;
        Ok(self.reply(function, Reports { reports, failures, queue, source, needs_token }))
    }
}

/// Returns the reason why a command was dead-lettered.
fn reason_of<C>(command: &CommandMessage<C>) -> &str {
    command.reason.as_deref().unwrap_or(NO_REASON)
}

struct Reports<R> {
    reports: R,
    failures: Failures,
    queue: Queue,
    source: Queue,
    /// `true` if the saga refuses a report without a reply token.
    needs_token: bool,
}

impl<R: ReportDeadLetters> Reports<R> {
    /// Returns `true` if the saga with these events may wait for a reply to the message. A request between sagas names
    /// the queue of its sender. Other events of a saga carry a token of their own, and are not requests. A command that
    /// was only sent has no reply token.
    fn is_awaited(&self, message: &Message) -> bool {
        match &message.reply_to {
            Some(address) => address.queue == R::Event::QUEUE,
            None => message.token.is_none() && (message.reply_token.is_some() || !self.needs_token),
        }
    }

    async fn record(&self, command: &CommandMessage<R::Command>, closed: bool) -> Result<(), HandlerError> {
        let mut report = FailureReport {
            origin: Origin::DeadLetter { queue: self.queue.clone(), source: self.source.clone() },
            body: command.message.encode()?,
            reason: reason_of(command).to_owned(),
            mark: String::new(),
            closed: closed.then(|| REPORTED.to_owned()),
        };
        // Redeliveries of a command are one failure until it is retried and dead-lettered again.
        report.mark = self.failures.retried(report.id()).await?.to_string();
        Ok(self.failures.record(&[report]).await?)
    }
}

#[async_trait]
impl<R: ReportDeadLetters> Handler for Reports<R> {
    type Command = R::Command;
    /// A newer version may succeed with the command, so an operator retries it after the upgrade.
    const AWAITS_UPGRADE: bool = false;

    async fn handle(
        &self,
        command: &CommandMessage<R::Command>,
        reporter: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError> {
        let event = self
            .reports
            .event(&command.command, reason_of(command))
            .filter(|_| self.is_awaited(&command.message));
        let Some(event) = event else {
            self.record(command, false).await?;
            return Ok(HandlerResult::completed("recorded as a failure"));
        };
        // A waiting saga is worse than a failure that is not listed.
        if let Err(error) = self.record(command, true).await {
            let (function, error) = (reporter.function, chain(&error));
            let (correlation_id, message_id) = (command.message.partition, command.message.id);
            tracing::warn!(function, %correlation_id, %message_id, error, "a failure could not be stored");
        }
        HandlerResult::completed(REPORTED).indexed_reply(REPORT, self.reports.queue(&command.command), &event)
    }
}
