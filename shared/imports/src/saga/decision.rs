//! What a transition answers, and how a search ends.

use saga::Advance;

use super::event::Moment;
use super::state::{Ended, Import, State};
use crate::Outcome;
use crate::ids::TIMEOUT;
use crate::messages::{ImportEvent, ParseCommand, SearchImportEnded, TakeBackFiles};

/// What becomes of an event of a search.
pub type Decision = saga::Decision<State>;

/// Every file was read.
pub(super) fn complete(moment: &Moment<'_>, import: Import) -> Decision {
    let next = State::Completed(Ended { import, at: moment.now, reason: None });
    end(moment, next, ImportEvent::SearchImportCompleted, "last file reported; search completed".to_owned())
        .into()
}

/// Ends the search in `Error`, whatever was running.
pub(super) fn fail(moment: &Moment<'_>, import: Import, reason: String) -> Decision {
    let why = format!("search failed: {reason}");
    let next = State::Error(Ended { import, at: moment.now, reason: Some(reason) });
    end(moment, next, ImportEvent::SearchImportFailed, why).into()
}

/// Why a search ended that was cancelled while its files were being read.
pub const CANCELLED: &str = "cancelled while its files were being read";

/// Ends a search whose files are being read, and has what is stored of them taken back. A reader that is at work meets the
/// file's fence with its next batch.
pub(super) fn cancel(moment: &Moment<'_>, mut import: Import) -> Decision {
    let command = TakeBackFiles {
        project_id: import.project_id,
        files: import.files.keys().copied().collect(),
        forget: false,
    };
    for file in import.files.values_mut() {
        file.outcome = Some(Outcome::Failed { reason: CANCELLED.to_owned() });
    }
    let next = State::Error(Ended { import, at: moment.now, reason: Some(CANCELLED.to_owned()) });
    let why = format!("search failed: {CANCELLED}");
    end(moment, next, ImportEvent::SearchImportFailed, why).send(&ParseCommand::TakeBackFiles(command)).into()
}

/// Shows readers the end, cancels what is running, and tells the world.
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
