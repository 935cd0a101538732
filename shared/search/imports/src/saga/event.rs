//! What can happen to a search.

use jiff::{SignedDuration, Timestamp};

use super::deadlines::Deadlines;
use crate::manifest::{MAX_FILES, ManifestLimits};
use crate::messages::{SearchEvent, SearchUploadSaved};
use crate::{Manifest, TimeoutId, UploadMetadata};

/// One event, as the state machine sees it.
pub type Event<'a> = saga::Event<'a, SearchEvent>;

/// An event at the time of its handling.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// What happened.
    pub event: &'a Event<'a>,
    /// The time.
    pub now: Timestamp,
    /// How long a search waits for what.
    pub deadlines: Deadlines,
}

impl Moment<'_> {
    /// The timeout that is scheduled now.
    pub(super) fn timeout_id(&self) -> TimeoutId {
        TimeoutId::caused_by(&self.event.id)
    }

    /// The end of a time that begins now.
    pub(super) fn after(&self, wait: SignedDuration) -> Timestamp {
        // Saturates at the end of representable time, some eight thousand years from now.
        self.now.checked_add(wait).unwrap_or(Timestamp::MAX)
    }
}

/// The most tokens that handling this event can need, whatever the state: one for the reply to each command and one
/// for a timeout.
///
/// Tokens are minted with the claim, while the state is still being loaded, so the number must follow from
/// the event alone. It is at most [`MAX_FILES`] + 1.
pub fn tokens_needed(event: &SearchEvent) -> usize {
    match event {
        SearchEvent::SearchUploadStarted(started) if is_valid(&started.manifest) => {
            started.manifest.files.len() + 1
        }
        SearchEvent::SearchUploadSaved(saved) => tokens_for(saved),
        SearchEvent::UploadsFound(found) => found.files.iter().map(tokens_for).max().unwrap_or(0),
        SearchEvent::UploadTimeout(_) => 2,
        SearchEvent::SearchUploadStarted(_)
        | SearchEvent::ReferenceFileParsingCompleted(_)
        | SearchEvent::ReferenceFileFaulted(_)
        | SearchEvent::StartParsingFaulted(_)
        | SearchEvent::ParseTimeout(_)
        | SearchEvent::SearchWithdrawn(_) => 0,
    }
}

fn is_valid(manifest: &Manifest) -> bool {
    manifest.faults(&ManifestLimits::ACCEPTED).is_empty()
}

fn tokens_for(saved: &SearchUploadSaved) -> usize {
    match UploadMetadata::from_map(&saved.metadata) {
        Ok(Some(metadata)) => metadata.expected_files.min(MAX_FILES) + 1,
        Ok(None) => 1,
        Err(_) => 0,
    }
}
