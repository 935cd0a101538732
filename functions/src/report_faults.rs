//! The function of what was given up.
//!
//! Behind the dead-letter queue of the parse queue it tells the saga of each command that never succeeded
//! (`StartParsingFaulted`), so that no saga waits for ever. On schedule it empties the other dead-letter queues into the
//! database, where failures outlive the retention of a queue, and takes the steps of operations on them
//! ([`saga::failures`]).
//!
//! It touches no studies. The command may have succeeded after all, and only its acknowledgements were lost: then the
//! saga knows the file as read, this report meets a used token, and the studies must stay. Where the saga goes on without the
//! file, it has what is stored of it taken back.

use std::sync::Arc;

use async_trait::async_trait;
use dedup::{Asked, Done, Handler, HandlerError};
use imports::messages::StartParsingFaulted;
use imports::queues::{
    CONTROL, CONTROL_DEAD, PARSE, PARSE_DEAD, PARSE_UNREADABLE, SAGA, SAGA_DEAD, UNREAD_FILES, UPLOADS,
    UPLOADS_DEAD,
};
use imports::{ParseCommand, Ports, SearchEvent};
use jiff::Timestamp;
use messages::store::chain;
use messages::{Consumer, Reporter, Token};
use saga::failures::{Origin, Sighting};
use saga::{Failures, Function, Missing, Service, Source};

/// The function's name, in logs and in the messages it sends.
pub const NAME: &str = "report-faults";

/// The function.
pub static FUNCTION: Function<Ports> = Function {
    name: NAME,
    // What is put back to work has its tokens granted.
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(PARSE_DEAD),
    sends: &[UPLOADS, SAGA, PARSE, CONTROL],
    drains: &[SAGA_DEAD, CONTROL_DEAD, PARSE_UNREADABLE, UPLOADS_DEAD],
    build: Some(build),
};

/// Apart from the parser's own reply, which has index 0; the token admits one of the two.
const REPLY: usize = 1;

fn build(ports: &Ports) -> Result<Arc<dyn Consumer>, Missing> {
    Ok(ports.engine.reply(NAME, ReportFaults { failures: over(ports)? }))
}

/// What gathers everything that was given up, and puts it back to work.
///
/// # Errors
/// When a service that it uses is not configured.
pub fn over(ports: &Ports) -> Result<Failures, Missing> {
    ports.engine.failures(NAME, &crate::SYSTEM)
}

/// Reports each command that was given up to the saga. Anything else goes on to the next dead-letter queue,
/// unchanged, for an operator to look at.
struct ReportFaults {
    failures: Failures,
}

impl ReportFaults {
    /// Writes down that a command was given up; `closed` says why nothing is left to do about it, if nothing is.
    async fn record(&self, asked: &Asked<ParseCommand>, closed: Option<&str>) -> Result<(), HandlerError> {
        let body = asked.message.encode()?;
        let mut sighting = Sighting {
            origin: Origin::DeadLetter { queue: PARSE_DEAD, source: PARSE },
            body,
            reason: "the parser never succeeded with it".to_owned(),
            mark: String::new(),
            closed: closed.map(str::to_owned),
        };
        // A copy of the command is the same one until it has been put back and given up again.
        sighting.mark = self.failures.retried(sighting.id()).await?.to_string();
        Ok(self.failures.record(&[sighting]).await?)
    }
}

#[async_trait]
impl Handler for ReportFaults {
    type Command = ParseCommand;
    /// The parser could not read it either, so the file was never tried. If the command waited here, this function would
    /// report it after the upgrade; from where it goes instead, an operator puts it back before the parser.
    const AWAITS_UPGRADE: bool = false;

    async fn handle(
        &self,
        asked: &Asked<ParseCommand>,
        reporter: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<Done, HandlerError> {
        let command = match &asked.command {
            ParseCommand::StartParsing(command) => command,
            ParseCommand::LookForUploads(_) => {
                let closed = "its search ends without the look that nobody could take";
                self.record(asked, Some(closed)).await?;
                return Ok(Done::because(closed));
            }
            // Nobody waits for it, so it is for an operator to put it back to work.
            ParseCommand::TakeBackFiles(_) => {
                self.record(asked, None).await?;
                return Ok(Done::because("what was to be taken back is still there"));
            }
            ParseCommand::CompareStudies(_) => {
                self.record(asked, None).await?;
                return Ok(Done::because("the studies are marked as they were before"));
            }
            ParseCommand::MakeExport(_) => {
                let closed = "whoever has asked for the export asks again";
                self.record(asked, Some(closed)).await?;
                return Ok(Done::because("the export is not made"));
            }
        };
        // The saga is told whether or not this can be written down: a search that waits is worse than a failure that
        // nobody sees here.
        let closed =
            "its search was told that the file could not be read; a repair of the search reads it again";
        if let Err(error) = self.record(asked, Some(closed)).await {
            let (function, correlation_id, error) = (NAME, asked.message.partition, chain(&error));
            tracing::warn!(function, %correlation_id, message_id = %asked.message.id, error, "a failure is not written down");
        }
        reporter.measure(UNREAD_FILES, 1);
        let reason = "the file could not be read after several attempts".to_owned();
        let report = StartParsingFaulted { file_id: command.file_id, reason };
        Done::because("told the saga that the file was never read")
            .reply_as(REPLY, &SearchEvent::StartParsingFaulted(report))
    }

    fn reply_token(&self, command: &ParseCommand) -> Option<Token> {
        command.earlier_reply_token()
    }
}
