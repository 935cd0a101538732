//! The function behind the dead-letter queue of the parse queue: a command that never succeeded becomes a
//! `StartParsingFaulted`, so that no saga waits for ever.
//!
//! It touches no studies. The command may have succeeded after all, and only its acknowledgements were lost: then the
//! saga knows the file as read, this report meets a used token, and the studies must stay. What a broken-off parse has
//! stored belongs to a file that is not known as read, and is not shown.

use std::sync::Arc;

use async_trait::async_trait;
use dedup::{Asked, Done, Handler, HandlerError};
use imports::messages::StartParsingFaulted;
use imports::queues::{PARSE_DEAD, SAGA};
use imports::{ParseCommand, Ports, SearchEvent};
use jiff::Timestamp;
use messages::{Consumer, Reporter, Token};
use saga::{Function, Missing, Source};

/// The function's name, in logs and in the messages it sends.
pub const NAME: &str = "report-faults";

/// The function.
pub static FUNCTION: Function<Ports> = Function {
    name: NAME,
    services: &[],
    source: Source::Queue(PARSE_DEAD),
    sends: &[SAGA],
    build: Some(build),
};

/// Apart from the parser's own reply, which has index 0; the token admits one of the two.
const REPLY: usize = 1;

fn build(ports: &Ports) -> Result<Arc<dyn Consumer>, Missing> {
    Ok(ports.engine.reply(NAME, ReportFaults))
}

/// Reports each command that was given up to the saga. Anything else goes on to the next dead-letter queue,
/// unchanged, for an operator to look at.
struct ReportFaults;

#[async_trait]
impl Handler for ReportFaults {
    type Command = ParseCommand;
    /// The parser could not read it either, so the file was never tried. If the command waited here, this function would
    /// report it after the upgrade; from where it goes instead, an operator puts it back before the parser.
    const AWAITS_UPGRADE: bool = false;

    async fn handle(
        &self,
        asked: &Asked<ParseCommand>,
        _: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<Done, HandlerError> {
        let ParseCommand::StartParsing(command) = &asked.command else {
            return Ok(Done::because("its search ends without the look that nobody could take"));
        };
        let reason = "the file could not be read after several attempts".to_owned();
        let report = StartParsingFaulted { file_id: command.file_id, reason };
        Done::because("told the saga that the file was never read")
            .reply_as(REPLY, &SearchEvent::StartParsingFaulted(report))
    }

    fn reply_token(&self, command: &ParseCommand) -> Option<Token> {
        command.earlier_reply_token()
    }
}
