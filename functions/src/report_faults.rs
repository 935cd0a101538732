//! The function for failures.
//!
//! Behind the dead-letter queue of the parse queue, it reports each command that never succeeded to the saga
//! (`StartParsingFaulted`), so that no saga waits indefinitely. On schedule, it moves the messages of the other
//! dead-letter queues to the database, where failures outlive the retention of a queue, and runs the steps of
//! operations on them ([`saga::failures`]).
//!
//! It does not change studies. The command may have succeeded while only its acknowledgements were lost. The saga then
//! knows the file as read, this report carries a used token, and the studies must stay. If the saga continues without
//! the file, the saga itself requests the deletion of the stored records.

use std::sync::Arc;

use async_trait::async_trait;
use dedup::{CommandMessage, Handler, HandlerError, HandlerResult};
use imports::messages::StartParsingFaulted;
use imports::queues::{
    CONTROL, CONTROL_DEAD, PARSE, PARSE_DEAD, PARSE_UNREADABLE, SAGA, SAGA_DEAD, UNREAD_FILES, UPLOADS,
    UPLOADS_DEAD,
};
use imports::{ParseCommand, Ports, SearchEvent};
use jiff::Timestamp;
use messages::store::chain;
use messages::{Consumer, Reporter, Token};
use saga::failures::{FailureReport, Origin};
use saga::{Failures, Function, MissingSetting, Service, Source};

/// The function's name, in logs and in the messages it sends.
pub const NAME: &str = "report-faults";

/// The function's entry in the table of the application.
pub static FUNCTION: Function<Ports> = Function {
    name: NAME,
    // A retry grants tokens, and looks for those of old events.
    services: &[Service::DATABASE, Service::LEDGER, Service::TOKENS],
    source: Source::Queue(PARSE_DEAD),
    sends: &[UPLOADS, SAGA, PARSE, CONTROL],
    drains: &[SAGA_DEAD, CONTROL_DEAD, PARSE_UNREADABLE, UPLOADS_DEAD],
    build: Some(build),
};

/// The index of this reply. The parser's own reply has index 0; the token admits one of the two.
const REPLY: usize = 1;

fn build(ports: &Ports) -> Result<Arc<dyn Consumer>, MissingSetting> {
    let failures = ports.engine.failures(NAME, &crate::SYSTEM)?;
    Ok(ports.engine.reply(NAME, ReportFaults { failures }))
}

/// Reports each dead-lettered command to the saga. Other messages move unchanged to the next dead-letter queue, for
/// an operator.
struct ReportFaults {
    failures: Failures,
}

impl ReportFaults {
    /// Stores a command as a failure. If nothing remains to be done, `closed` is the reason.
    async fn record(
        &self,
        asked: &CommandMessage<ParseCommand>,
        closed: Option<&str>,
    ) -> Result<(), HandlerError> {
        let body = asked.message.encode()?;
        let mut sighting = FailureReport {
            origin: Origin::DeadLetter { queue: PARSE_DEAD, source: PARSE },
            body,
            reason: "the parser never succeeded with it".to_owned(),
            mark: String::new(),
            closed: closed.map(str::to_owned),
        };
        // Redeliveries of a command are one failure until it is retried and dead-lettered again.
        sighting.mark = self.failures.retried(sighting.id()).await?.to_string();
        Ok(self.failures.record(&[sighting]).await?)
    }
}

#[async_trait]
impl Handler for ReportFaults {
    type Command = ParseCommand;
    /// The parser could not read the command either, so the file was never tried. If the command waited here, this
    /// function would report it after the upgrade; from the next dead-letter queue, an operator retries it at the
    /// parser instead.
    const AWAITS_UPGRADE: bool = false;

    async fn handle(
        &self,
        asked: &CommandMessage<ParseCommand>,
        reporter: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError> {
        let command = match &asked.command {
            ParseCommand::StartParsing(command) => command,
            ParseCommand::LookForUploads(_) => {
                let closed = "the search ends without the scan of the bucket";
                self.record(asked, Some(closed)).await?;
                return Ok(HandlerResult::completed(closed));
            }
            // No saga waits for it, so an operator has to retry it.
            ParseCommand::TakeBackFiles(_) => {
                self.record(asked, None).await?;
                return Ok(HandlerResult::completed("the records of the files are still stored"));
            }
            ParseCommand::CompareStudies(_) => {
                self.record(asked, None).await?;
                return Ok(HandlerResult::completed("the marks of the studies are unchanged"));
            }
            ParseCommand::MakeExport(_) => {
                let closed = "the client repeats the request for the export";
                self.record(asked, Some(closed)).await?;
                return Ok(HandlerResult::completed("the export is not created"));
            }
        };
        // The saga is informed even if the failure cannot be stored: a waiting search is worse than a failure that is
        // not listed.
        let closed =
            "the search was informed that the file could not be read; a repair of the search reads it again";
        if let Err(error) = self.record(asked, Some(closed)).await {
            let (function, correlation_id, error) = (NAME, asked.message.partition, chain(&error));
            tracing::warn!(function, %correlation_id, message_id = %asked.message.id, error, "a failure could not be stored");
        }
        reporter.measure(UNREAD_FILES, 1);
        let reason = "the file could not be read after several attempts".to_owned();
        let report = StartParsingFaulted { file_id: command.file_id, reason };
        HandlerResult::completed("reported the unread file to the saga")
            .reply_as(REPLY, &SearchEvent::StartParsingFaulted(report))
    }

    fn reply_token(&self, command: &ParseCommand) -> Option<Token> {
        command.earlier_reply_token()
    }
}
