//! The function itself: one arm for every pair of state and event, no catch-all.

use jiff::Timestamp;

use super::collect::{self, announced};
use super::decision::{Decision, complete, fail};
use super::event::Event;
use super::state::{Import, State};
use crate::messages::SearchEvent;
use crate::{FileId, Outcome, TimeoutId};

/// What `event` changes in a search that is in `state`, and what is to be done about it.
#[rustfmt::skip] // one line per pair reads as the table it is
pub fn transition(state: &State, event: &Event<'_>, now: Timestamp) -> Decision {
    use SearchEvent::{
        ReferenceFileFaulted, ReferenceFileParsingCompleted, SearchUploadSaved, SearchUploadStarted, SearchWithdrawn,
        StartParsingFaulted, UploadTimeout,
    };
    use State::{Completed, Error, Initial, Parsing, Uploaded, Uploading};
    match (state, event.body) {
        (Initial, SearchUploadStarted(started)) => collect::announce_new(event, started, now),
        (Initial, SearchUploadSaved(saved)) => collect::receive_first(event, saved, now),
        (Initial, ReferenceFileParsingCompleted(_)) => unknown_search(),
        (Initial, ReferenceFileFaulted(_)) => unknown_search(),
        (Initial, StartParsingFaulted(_)) => unknown_search(),
        (Initial, UploadTimeout(_)) => unknown_search(),
        (Initial, SearchWithdrawn(withdrawn)) => withdraw(event, announced(withdrawn, now), now),

        (Uploading(import), SearchUploadStarted(started)) => collect::announce_late(import, started, Uploading),
        (Uploading(import), SearchUploadSaved(saved)) => collect::receive(event, import, saved, now),
        (Uploading(_), ReferenceFileParsingCompleted(_)) => not_parsing_yet(),
        (Uploading(_), ReferenceFileFaulted(_)) => not_parsing_yet(),
        (Uploading(_), StartParsingFaulted(_)) => not_parsing_yet(),
        (Uploading(import), UploadTimeout(timeout)) => timed_out(event, import, timeout.timeout_id, now),
        (Uploading(import), SearchWithdrawn(_)) => withdraw(event, import.clone(), now),

        (Uploaded(import), SearchUploadStarted(started)) => collect::announce_awaited(import, started),
        (Uploaded(import), SearchUploadSaved(saved)) => collect::receive_unannounced(import, saved),
        (Uploaded(_), ReferenceFileParsingCompleted(_)) => not_parsing_yet(),
        (Uploaded(_), ReferenceFileFaulted(_)) => not_parsing_yet(),
        (Uploaded(_), StartParsingFaulted(_)) => not_parsing_yet(),
        (Uploaded(import), UploadTimeout(timeout)) => timed_out(event, import, timeout.timeout_id, now),
        (Uploaded(import), SearchWithdrawn(_)) => withdraw(event, import.clone(), now),

        (Parsing(import), SearchUploadStarted(started)) => collect::announce_late(import, started, Parsing),
        (Parsing(_), SearchUploadSaved(_)) => Decision::ignore("already Parsing"),
        (Parsing(import), ReferenceFileParsingCompleted(reply)) => {
            record(event, import, reply.file_id, Outcome::Completed(reply.counts.clone()), now)
        }
        (Parsing(import), ReferenceFileFaulted(reply)) => {
            record(event, import, reply.file_id, Outcome::Failed { reason: reply.reason.clone() }, now)
        }
        (Parsing(import), StartParsingFaulted(reply)) => {
            record(event, import, reply.file_id, Outcome::Failed { reason: reply.reason.clone() }, now)
        }
        (Parsing(_), UploadTimeout(_)) => Decision::ignore("all files have arrived; already Parsing"),
        (Parsing(_), SearchWithdrawn(_)) => Decision::ignore("too late to withdraw it; already Parsing"),

        (Completed(_), SearchUploadStarted(_)) => already_completed(),
        (Completed(_), SearchUploadSaved(_)) => already_completed(),
        (Completed(_), ReferenceFileParsingCompleted(_)) => already_completed(),
        (Completed(_), ReferenceFileFaulted(_)) => already_completed(),
        (Completed(_), StartParsingFaulted(_)) => already_completed(),
        (Completed(_), UploadTimeout(_)) => already_completed(),
        (Completed(_), SearchWithdrawn(_)) => already_completed(),

        (Error(_), SearchUploadStarted(_)) => already_failed(),
        (Error(_), SearchUploadSaved(_)) => already_failed(),
        (Error(_), ReferenceFileParsingCompleted(_)) => already_failed(),
        (Error(_), ReferenceFileFaulted(_)) => already_failed(),
        (Error(_), StartParsingFaulted(_)) => already_failed(),
        (Error(_), UploadTimeout(_)) => already_failed(),
        (Error(_), SearchWithdrawn(_)) => already_failed(),
    }
}

fn unknown_search() -> Decision {
    Decision::ignore("nothing is known of this search")
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

fn timed_out(event: &Event<'_>, import: &Import, fired: TimeoutId, now: Timestamp) -> Decision {
    if import.timeout != Some(fired) {
        return Decision::ignore("an old timeout; not the one that is running");
    }
    let missing = import.expected_files.map_or_else(
        || "the search was never announced".to_owned(),
        |expected| format!("{} of {expected} files arrived", import.received()),
    );
    // The timeout that fired has nothing left to cancel.
    let import = Import { timeout: None, ..import.clone() };
    fail(event, import, format!("upload timed out: {missing}"), now)
}

/// Ends a search of which nothing has been read. The document stays like that of any search that has ended, so an
/// announcement or a file that comes after this cannot bring the search about.
fn withdraw(event: &Event<'_>, import: Import, now: Timestamp) -> Decision {
    fail(event, import, "withdrawn before its files were read".to_owned(), now)
}

fn record(event: &Event<'_>, import: &Import, file: FileId, outcome: Outcome, now: Timestamp) -> Decision {
    let mut import = import.clone();
    let Some(entry) = import.files.get_mut(&file) else {
        return Decision::ignore("the file is not one of this search");
    };
    if entry.outcome.is_some() {
        return Decision::ignore("the file has reported already");
    }
    entry.outcome = Some(outcome);
    let waiting = import.files.values().filter(|file| file.outcome.is_none()).count();
    if waiting > 0 {
        let note = format!("file reported; waiting for {waiting} more");
        return Decision::to(State::Parsing(import), note).into();
    }
    let failures =
        import.files.values().filter(|file| matches!(file.outcome, Some(Outcome::Failed { .. }))).count();
    if failures == 0 {
        complete(event, import, now)
    } else {
        let reason = format!("{failures} of {} files could not be read", import.files.len());
        fail(event, import, reason, now)
    }
}
