//! The decisions of the state machine, and the end of a search.

use std::collections::BTreeSet;

use ::saga::Advance;

use super::event::Moment;
use super::state::{EndedSearch, Import, State};
use crate::ids::TIMEOUT;
use crate::messages::{ImportEvent, ParseCommand, SearchImportEnded, TakeBackFiles};
use crate::{FileId, Outcome, ProjectId};

/// The decision about an event of a search.
pub type Decision = saga::Decision<State>;

/// Completes the search after every file was read.
pub(super) fn complete(moment: &Moment<'_>, import: Import) -> Decision {
    let next = State::Completed(EndedSearch { import, at: moment.now, reason: None });
    end(moment, next, ImportEvent::SearchImportCompleted, "last file reported; import completed".to_owned())
        .into()
}

/// Ends the search in `Error` and cancels a running timeout.
pub(super) fn fail(moment: &Moment<'_>, import: Import, reason: String) -> Decision {
    let why = format!("search failed: {reason}");
    let next = State::Error(EndedSearch { import, at: moment.now, reason: Some(reason) });
    end(moment, next, ImportEvent::SearchImportFailed, why).into()
}

/// The reason of a search that was cancelled before its files were read.
pub const WITHDRAWN: &str = "withdrawn before its files were read";

/// The reason of a search that was cancelled while its files were being read.
pub const CANCELLED: &str = "cancelled while its files were being read";

/// Ends a search whose files are being read, and deletes their stored records. A running attempt fails at the file's
/// fence with its next batch.
pub(super) fn cancel(moment: &Moment<'_>, mut import: Import) -> Decision {
    let files = import.files.keys().copied().collect();
    for file in import.files.values_mut() {
        file.outcome = Some(Outcome::Failed { reason: CANCELLED.to_owned() });
    }
    let project_id = import.project_id;
    let next = State::Error(EndedSearch { import, at: moment.now, reason: Some(CANCELLED.to_owned()) });
    let why = format!("search failed: {CANCELLED}");
    taking_back(end(moment, next, ImportEvent::SearchImportFailed, why).into(), project_id, files)
}

/// Adds a command that deletes the stored records of files which the search ends or continues without. These files
/// may have been completed, or may still be; their studies must neither be visible nor be referenced as originals.
pub(super) fn taking_back(decision: Decision, project_id: ProjectId, files: BTreeSet<FileId>) -> Decision {
    let command = TakeBackFiles { project_id, files, forget: false };
    match decision {
        Decision::Advance(advance) => advance.send(&ParseCommand::TakeBackFiles(command)).into(),
        unchanged @ (Decision::Ignore { .. } | Decision::Postpone { .. } | Decision::Reject { .. }) => {
            unchanged
        }
    }
}

/// Updates the view, cancels the running timeout, and publishes the end.
fn end(
    moment: &Moment<'_>,
    mut next: State,
    publish: fn(SearchImportEnded) -> ImportEvent,
    why: String,
) -> Advance<State> {
    let job = next.job(moment.event.partition);
    let running = match &mut next {
        State::Completed(ended) | State::Error(ended) => ended.import.timeout.take(),
        State::Initial | State::Uploading(_) | State::Uploaded(_) | State::Parsing(_) => None,
    };
    let mut advance = Decision::to(next, why).show();
    if running.is_some() {
        advance = advance.cancel(TIMEOUT);
    }
    let Some(job) = job else { return advance };
    let (project_id, studies) = (job.project_id, job.studies());
    advance.send(&publish(SearchImportEnded { project_id, studies, reason: job.reason }))
}
