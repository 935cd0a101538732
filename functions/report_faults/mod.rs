//! The function behind the dead-letter queue of the parse queue: a command that never succeeded becomes a
//! `StartParsingFaulted`, so that no saga waits for ever.
//!
//! It touches no studies. The command may have succeeded after all, and only its acknowledgements were lost: then the
//! saga knows the file as read, this report meets a used token, and the studies must stay. What a broken-off parse has
//! stored belongs to a file that is not known as read, and is shown to nobody.

use std::sync::Arc;
use std::time::Duration;

use backend::{Backend, Uses};
use contracts::message::{StartParsing, StartParsingFaulted};
use contracts::store::chain;
use contracts::{Backoff, Body, Delivery, Disposition, Message, Reporter, Verdict};
use outbox::{Queue, SendError, SendMessages, send_one};

/// The function's name, in logs and in the messages it sends.
pub const FUNCTION: &str = "report-faults";

/// What the function works on.
pub const USES: Uses =
    Uses { function: FUNCTION, services: &[], receives: Some(Queue::ParseDead), sends: &[Queue::Saga] };

/// The function.
#[derive(Clone)]
pub struct ReportFaults {
    /// Takes the reports.
    pub queue: Arc<dyn SendMessages>,
    /// Time, and who wants to know.
    pub reporter: Reporter,
}

impl ReportFaults {
    /// The function on a backend.
    pub fn over(backend: &Backend) -> Self {
        Self { queue: Arc::clone(&backend.queue), reporter: backend.reporter(FUNCTION) }
    }

    /// Works on a batch of given-up commands; one answer for each, in order. What is no command goes on to the
    /// next dead-letter queue, unchanged, for an operator to look at.
    pub async fn handle(&self, batch: &[Delivery]) -> Vec<Disposition> {
        let mut answers = Vec::with_capacity(batch.len());
        for delivery in batch {
            answers.push(self.beginning().handle_one(delivery).await);
        }
        answers
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
        let Body::StartParsing(command) = &message.body else {
            let reason = format!("{} is not a command to parse a file", message.body.name());
            return self.reporter.reject(Some(&message), reason);
        };
        match self.report(&message, command).await {
            Ok(()) => {
                self.reporter.note(
                    Some(&message),
                    Verdict::Handled,
                    "told the saga that the file was never read",
                );
                Disposition::Acknowledge
            }
            Err(error) => {
                self.reporter.retry(&message, Backoff::FAILURE.after(delivery.receive_count), chain(&error))
            }
        }
    }

    async fn report(&self, message: &Message, command: &StartParsing) -> Result<(), SendError> {
        let reason = "the file could not be read after several attempts".to_owned();
        let report = Message {
            // Apart from the parser's own reply, which has index 0; the token admits one of the two.
            id: message.id.derive(1),
            source: FUNCTION.into(),
            time: self.reporter.host.now(),
            correlation_id: message.correlation_id,
            causation_id: Some(message.id),
            token: command.reply_token.clone(),
            traceparent: Some(message.traceparent_of_effects().to_string()),
            body: Body::StartParsingFaulted(StartParsingFaulted { file_id: command.file_id, reason }),
        };
        send_one(self.queue.as_ref(), &report, Duration::ZERO).await
    }
}
