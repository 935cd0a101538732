//! The events of a search.

use jiff::{SignedDuration, Timestamp};

use super::deadlines::Deadlines;
use crate::manifest::{MAX_FILES, ManifestLimits};
use crate::messages::{SearchEvent, SearchUploadSaved};
use crate::{Manifest, TimeoutId, UploadMetadata};

/// An event as the state machine receives it.
pub type Event<'a> = saga::Event<'a, SearchEvent>;

/// An event with the time and the limits for its handling.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The event.
    pub event: &'a Event<'a>,
    /// The current time.
    pub now: Timestamp,
    /// The time limits of a search.
    pub deadlines: Deadlines,
}

impl Moment<'_> {
    /// Returns the id of the timeout that this event schedules.
    pub(super) fn timeout_id(&self) -> TimeoutId {
        TimeoutId::caused_by(&self.event.id)
    }

    /// Returns the time after `wait`.
    pub(super) fn after(&self, wait: SignedDuration) -> Timestamp {
        // Saturates at the maximum representable time, some eight thousand years from now.
        self.now.checked_add(wait).unwrap_or(Timestamp::MAX)
    }
}

/// Returns the maximum number of tokens that handling this event can need in any state: one for the reply to each
/// command and one for a timeout.
///
/// Tokens are created with the claim, while the state is still being loaded, so the number has to follow from the event
/// alone. The number is at most [`MAX_FILES`] + 1.
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
