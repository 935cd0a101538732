//! What can happen to a search.

use contracts::manifest::{MAX_FILE_BYTES, MAX_FILES};
use contracts::message::{
    ReferenceFileFaulted, ReferenceFileParsingCompleted, SearchUploadSaved, SearchUploadStarted,
    SearchWithdrawn, StartParsingFaulted, UploadTimeout,
};
use contracts::{Body, Message, MessageId, SearchId, UploadMetadata};

/// One message, as the state machine sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The message's id; ids of effects and timeouts are derived from it.
    pub message_id: MessageId,
    /// The search it belongs to.
    pub search_id: SearchId,
    /// What happened.
    pub kind: Kind,
}

/// The seven events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// The search was announced.
    Started(SearchUploadStarted),
    /// One of its files was stored.
    Saved(SearchUploadSaved),
    /// One of its files was read to its end.
    ParsingCompleted(ReferenceFileParsingCompleted),
    /// One of its files was refused or could not be read.
    Faulted(ReferenceFileFaulted),
    /// The parse command of one of its files never succeeded.
    StartParsingFaulted(StartParsingFaulted),
    /// Its files did not arrive in time.
    UploadTimeout(UploadTimeout),
    /// Whoever announced it does not want it any more.
    Withdrawn(SearchWithdrawn),
}

impl Kind {
    /// The name of the message that brings it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Started(_) => "SearchUploadStarted",
            Self::Saved(_) => "SearchUploadSaved",
            Self::ParsingCompleted(_) => "ReferenceFileParsingCompleted",
            Self::Faulted(_) => "ReferenceFileFaulted",
            Self::StartParsingFaulted(_) => "StartParsingFaulted",
            Self::UploadTimeout(_) => "UploadTimeout",
            Self::Withdrawn(_) => "SearchWithdrawn",
        }
    }
}

impl Event {
    /// The event that a message brings; none when it is no event of a search but a command, say.
    pub fn from_message(message: &Message) -> Option<Self> {
        let kind = match &message.body {
            Body::SearchUploadStarted(body) => Kind::Started(body.clone()),
            Body::SearchUploadSaved(body) => Kind::Saved(body.clone()),
            Body::ReferenceFileParsingCompleted(body) => Kind::ParsingCompleted(body.clone()),
            Body::ReferenceFileFaulted(body) => Kind::Faulted(body.clone()),
            Body::StartParsingFaulted(body) => Kind::StartParsingFaulted(body.clone()),
            Body::UploadTimeout(body) => Kind::UploadTimeout(body.clone()),
            Body::SearchWithdrawn(body) => Kind::Withdrawn(body.clone()),
            Body::StartParsing(_)
            | Body::SettleSession(_)
            | Body::SearchImportCompleted(_)
            | Body::SearchImportFailed(_) => return None,
        };
        Some(Self { message_id: message.id, search_id: message.correlation_id, kind })
    }

    /// The most tokens that handling this event can need, whatever the state: one for the reply to each parse
    /// command and one for a timeout.
    ///
    /// Tokens are minted with the claim, while the state is still being loaded, so the number must follow from
    /// the event alone. It is at most [`MAX_FILES`] + 1.
    pub fn tokens_needed(&self) -> usize {
        match &self.kind {
            Kind::Started(started) if started.manifest.faults(MAX_FILE_BYTES).is_empty() => {
                started.manifest.files.len() + 1
            }
            Kind::Saved(saved) => match UploadMetadata::from_map(&saved.metadata) {
                Ok(Some(metadata)) => metadata.expected_files.min(MAX_FILES) + 1,
                Ok(None) => 1,
                Err(_) => 0,
            },
            Kind::Started(_)
            | Kind::ParsingCompleted(_)
            | Kind::Faulted(_)
            | Kind::StartParsingFaulted(_)
            | Kind::UploadTimeout(_)
            | Kind::Withdrawn(_) => 0,
        }
    }
}
