//! The transition function: one arm for every pair of state and event, without a catch-all.

use super::collect::{self, announced};
use super::decision::{Decision, WITHDRAWN, cancel, complete, fail, taking_back};
use super::event::Moment;
use super::state::{Import, State};
use crate::messages::SearchEvent;
use crate::{FileId, Outcome, TimeoutId};

/// Returns the change and the effects of an event in `state`.
#[rustfmt::skip] // one line per pair reads as the table it is
pub fn transition(state: &State, moment: &Moment<'_>) -> Decision {
    use SearchEvent::{
        ParseTimeout, ReferenceFileFaulted, ReferenceFileParsingCompleted, SearchUploadSaved, SearchUploadStarted,
        SearchWithdrawn, StartParsingFaulted, UploadTimeout, UploadsFound,
    };
    use State::{Completed, Error, Initial, Parsing, Uploaded, Uploading};
    match (state, moment.event.body) {
        (Initial, SearchUploadStarted(started)) => collect::announce_new(moment, started),
        (Initial, SearchUploadSaved(saved)) => collect::receive_first(moment, saved),
        (Initial, ReferenceFileParsingCompleted(_)) => unknown_search(),
        (Initial, ReferenceFileFaulted(_)) => unknown_search(),
        (Initial, StartParsingFaulted(_)) => unknown_search(),
        (Initial, UploadTimeout(_)) => unknown_search(),
        (Initial, UploadsFound(_)) => unknown_search(),
        (Initial, ParseTimeout(_)) => unknown_search(),
        (Initial, SearchWithdrawn(withdrawn)) => withdraw(moment, announced(withdrawn, moment.now)),

        (Uploading(import), SearchUploadStarted(started)) => collect::announce_late(import, started, Uploading),
        (Uploading(import), SearchUploadSaved(saved)) => collect::receive(moment, import, saved),
        (Uploading(_), ReferenceFileParsingCompleted(_)) => not_parsing_yet(),
        (Uploading(_), ReferenceFileFaulted(_)) => not_parsing_yet(),
        (Uploading(_), StartParsingFaulted(_)) => not_parsing_yet(),
        (Uploading(import), UploadTimeout(timeout)) => collect::timed_out(moment, import, timeout),
        (Uploading(import), UploadsFound(found)) => collect::found(moment, import, found),
        (Uploading(_), ParseTimeout(_)) => not_parsing_yet(),
        (Uploading(import), SearchWithdrawn(_)) => withdraw(moment, import.clone()),

        (Uploaded(import), SearchUploadStarted(started)) => collect::announce_awaited(moment, import, started),
        (Uploaded(import), SearchUploadSaved(saved)) => collect::receive_unannounced(moment, import, saved),
        (Uploaded(_), ReferenceFileParsingCompleted(_)) => not_parsing_yet(),
        (Uploaded(_), ReferenceFileFaulted(_)) => not_parsing_yet(),
        (Uploaded(_), StartParsingFaulted(_)) => not_parsing_yet(),
        (Uploaded(import), UploadTimeout(timeout)) => collect::timed_out(moment, import, timeout),
        (Uploaded(import), UploadsFound(found)) => collect::found(moment, import, found),
        (Uploaded(_), ParseTimeout(_)) => not_parsing_yet(),
        (Uploaded(import), SearchWithdrawn(_)) => withdraw(moment, import.clone()),

        (Parsing(import), SearchUploadStarted(started)) => collect::announce_late(import, started, Parsing),
        (Parsing(_), SearchUploadSaved(_)) => Decision::ignore("already Parsing"),
        (Parsing(import), ReferenceFileParsingCompleted(reply)) => {
            record(moment, import, reply.file_id, Outcome::Completed(reply.counts.clone()))
        }
        (Parsing(import), ReferenceFileFaulted(reply)) => {
            record(moment, import, reply.file_id, Outcome::Failed { reason: reply.reason.clone() })
        }
        (Parsing(import), StartParsingFaulted(reply)) => {
            let recorded = record(moment, import, reply.file_id, Outcome::Failed { reason: reply.reason.clone() });
            taking_back(recorded, import.project_id, [reply.file_id].into())
        }
        (Parsing(_), UploadTimeout(_)) => Decision::ignore("all files have arrived; already Parsing"),
        (Parsing(import), UploadsFound(found)) => collect::late_uploads_found(import, found),
        (Parsing(import), ParseTimeout(timeout)) => parse_timed_out(moment, import, timeout.timeout_id),
        (Parsing(import), SearchWithdrawn(_)) => cancel(moment, import.clone()),

        (Completed(_), SearchUploadStarted(_)) => already_completed(),
        (Completed(_), SearchUploadSaved(_)) => already_completed(),
        (Completed(_), ReferenceFileParsingCompleted(_)) => already_completed(),
        (Completed(_), ReferenceFileFaulted(_)) => already_completed(),
        (Completed(_), StartParsingFaulted(_)) => already_completed(),
        (Completed(_), UploadTimeout(_)) => already_completed(),
        (Completed(_), UploadsFound(_)) => already_completed(),
        (Completed(_), ParseTimeout(_)) => already_completed(),
        (Completed(_), SearchWithdrawn(_)) => already_completed(),

        (Error(_), SearchUploadStarted(_)) => already_failed(),
        (Error(_), SearchUploadSaved(_)) => already_failed(),
        (Error(_), ReferenceFileParsingCompleted(_)) => already_failed(),
        (Error(_), ReferenceFileFaulted(_)) => already_failed(),
        (Error(_), StartParsingFaulted(_)) => already_failed(),
        (Error(_), UploadTimeout(_)) => already_failed(),
        (Error(_), UploadsFound(_)) => already_failed(),
        (Error(_), ParseTimeout(_)) => already_failed(),
        (Error(_), SearchWithdrawn(_)) => already_failed(),
    }
}

fn unknown_search() -> Decision {
    Decision::ignore("the search is unknown")
}

fn not_parsing_yet() -> Decision {
    Decision::ignore("no parse command was sent yet")
}

fn already_completed() -> Decision {
    Decision::ignore("already Completed")
}

fn already_failed() -> Decision {
    Decision::ignore("already in Error")
}

/// The maximum number of files that the reason of a failure names.
const MAX_FILES_NAMED: usize = 5;

fn parse_timed_out(moment: &Moment<'_>, import: &Import, fired: TimeoutId) -> Decision {
    if import.timeout != Some(fired) {
        return Decision::ignore("an outdated timeout");
    }
    // Clear the timeout, because a timeout that has fired must not be cancelled.
    let import = Import { timeout: None, ..import.clone() };
    let silent = || import.files.iter().filter(|(_, file)| file.outcome.is_none());
    let files = silent().map(|(id, _)| *id).collect();
    let names = silent().map(|(id, file)| file.name.clone().unwrap_or_else(|| id.to_string()));
    let mut names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(MAX_FILES_NAMED);
    names.truncate(MAX_FILES_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let project_id = import.project_id;
    let ended = fail(moment, import, format!("not read in time: {}{more}", names.join(", ")));
    taking_back(ended, project_id, files)
}

/// Ends a search before any of its files was read. The document is kept as for any ended search, so a late announcement
/// or file cannot start the search.
fn withdraw(moment: &Moment<'_>, import: Import) -> Decision {
    fail(moment, import, WITHDRAWN.to_owned())
}

fn record(moment: &Moment<'_>, import: &Import, file: FileId, outcome: Outcome) -> Decision {
    let mut import = import.clone();
    let Some(entry) = import.files.get_mut(&file) else {
        return Decision::ignore("the file does not belong to this search");
    };
    if entry.outcome.is_some() {
        return Decision::ignore("the file has already reported");
    }
    entry.outcome = Some(outcome);
    let waiting = import.files.values().filter(|file| file.outcome.is_none()).count();
    if waiting > 0 {
        let note = format!("file reported; waiting for {waiting} more");
        return collect::parsing(moment, import, note).into();
    }
    let failures =
        import.files.values().filter(|file| matches!(file.outcome, Some(Outcome::Failed { .. }))).count();
    if failures == 0 {
        complete(moment, import)
    } else {
        let reason = format!("{failures} of {} files could not be read", import.files.len());
        fail(moment, import, reason)
    }
}
