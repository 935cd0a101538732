//! What can happen to a search.

use crate::UploadMetadata;
use crate::manifest::{MAX_FILE_BYTES, MAX_FILES};
use crate::messages::SearchEvent;

/// One event, as the state machine sees it.
pub type Event<'a> = saga::Event<'a, SearchEvent>;

/// The most tokens that handling this event can need, whatever the state: one for the reply to each parse
/// command and one for a timeout.
///
/// Tokens are minted with the claim, while the state is still being loaded, so the number must follow from
/// the event alone. It is at most [`MAX_FILES`] + 1.
pub fn tokens_needed(event: &SearchEvent) -> usize {
    match event {
        SearchEvent::SearchUploadStarted(started) if started.manifest.faults(MAX_FILE_BYTES).is_empty() => {
            started.manifest.files.len() + 1
        }
        SearchEvent::SearchUploadSaved(saved) => match UploadMetadata::from_map(&saved.metadata) {
            Ok(Some(metadata)) => metadata.expected_files.min(MAX_FILES) + 1,
            Ok(None) => 1,
            Err(_) => 0,
        },
        SearchEvent::SearchUploadStarted(_)
        | SearchEvent::ReferenceFileParsingCompleted(_)
        | SearchEvent::ReferenceFileFaulted(_)
        | SearchEvent::StartParsingFaulted(_)
        | SearchEvent::UploadTimeout(_)
        | SearchEvent::SearchWithdrawn(_) => 0,
    }
}
