//! The function itself: one arm for every pair of state and event, no catch-all.

use contracts::message::SearchImportEnded;
use contracts::{Body, FileId, Outcome};
use jiff::{SignedDuration, Timestamp};

use crate::collect::{self, announced};
use crate::decision::{Decision, Effect};
use crate::event::{Event, Kind};
use crate::state::{Ended, Import, State};

/// How long the files of a search may take to arrive, counted from its first message: one hour.
pub const UPLOAD_TIMEOUT: SignedDuration = SignedDuration::from_mins(60);

/// What `event` changes in a search that is in `state`, and what is to be done about it.
#[rustfmt::skip] // one line per pair reads as the table it is
pub fn transition(state: &State, event: &Event, now: Timestamp) -> Decision {
    use State::{Completed, Error, Initial, Parsing, Uploaded, Uploading};
    match (state, &event.kind) {
        (Initial, Kind::Started(started)) => shown(event, collect::announce_new(event, started, now)),
        (Initial, Kind::Saved(saved)) => shown(event, collect::receive_first(event, saved, now)),
        (Initial, Kind::ParsingCompleted(_)) => unknown_search(),
        (Initial, Kind::Faulted(_)) => unknown_search(),
        (Initial, Kind::StartParsingFaulted(_)) => unknown_search(),
        (Initial, Kind::UploadTimeout(_)) => unknown_search(),
        (Initial, Kind::Withdrawn(withdrawn)) => withdraw(event, announced(withdrawn, now), now),

        (Uploading(import), Kind::Started(started)) => collect::announce_late(import, started, Uploading),
        (Uploading(import), Kind::Saved(saved)) => collect::receive(event, import, saved, now),
        (Uploading(_), Kind::ParsingCompleted(_)) => not_parsing_yet(),
        (Uploading(_), Kind::Faulted(_)) => not_parsing_yet(),
        (Uploading(_), Kind::StartParsingFaulted(_)) => not_parsing_yet(),
        (Uploading(import), Kind::UploadTimeout(timeout)) => timed_out(event, import, timeout.timeout_id, now),
        (Uploading(import), Kind::Withdrawn(_)) => withdraw(event, import.clone(), now),

        (Uploaded(import), Kind::Started(started)) => collect::announce_awaited(import, started),
        (Uploaded(import), Kind::Saved(saved)) => collect::receive_unannounced(import, saved),
        (Uploaded(_), Kind::ParsingCompleted(_)) => not_parsing_yet(),
        (Uploaded(_), Kind::Faulted(_)) => not_parsing_yet(),
        (Uploaded(_), Kind::StartParsingFaulted(_)) => not_parsing_yet(),
        (Uploaded(import), Kind::UploadTimeout(timeout)) => timed_out(event, import, timeout.timeout_id, now),
        (Uploaded(import), Kind::Withdrawn(_)) => withdraw(event, import.clone(), now),

        (Parsing(import), Kind::Started(started)) => collect::announce_late(import, started, Parsing),
        (Parsing(_), Kind::Saved(_)) => Decision::ignore("already Parsing"),
        (Parsing(import), Kind::ParsingCompleted(reply)) => {
            record(event, import, reply.file_id, Outcome::Completed(reply.counts.clone()), now)
        }
        (Parsing(import), Kind::Faulted(reply)) => {
            record(event, import, reply.file_id, Outcome::Failed { reason: reply.reason.clone() }, now)
        }
        (Parsing(import), Kind::StartParsingFaulted(reply)) => {
            record(event, import, reply.file_id, Outcome::Failed { reason: reply.reason.clone() }, now)
        }
        (Parsing(_), Kind::UploadTimeout(_)) => Decision::ignore("all files have arrived; already Parsing"),
        (Parsing(_), Kind::Withdrawn(_)) => Decision::ignore("too late to withdraw it; already Parsing"),

        (Completed(_), Kind::Started(_)) => already_completed(),
        (Completed(_), Kind::Saved(_)) => already_completed(),
        (Completed(_), Kind::ParsingCompleted(_)) => already_completed(),
        (Completed(_), Kind::Faulted(_)) => already_completed(),
        (Completed(_), Kind::StartParsingFaulted(_)) => already_completed(),
        (Completed(_), Kind::UploadTimeout(_)) => already_completed(),
        (Completed(_), Kind::Withdrawn(_)) => already_completed(),

        (Error(_), Kind::Started(_)) => already_failed(),
        (Error(_), Kind::Saved(_)) => already_failed(),
        (Error(_), Kind::ParsingCompleted(_)) => already_failed(),
        (Error(_), Kind::Faulted(_)) => already_failed(),
        (Error(_), Kind::StartParsingFaulted(_)) => already_failed(),
        (Error(_), Kind::UploadTimeout(_)) => already_failed(),
        (Error(_), Kind::Withdrawn(_)) => already_failed(),
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

fn timed_out(event: &Event, import: &Import, fired: contracts::TimeoutId, now: Timestamp) -> Decision {
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
fn withdraw(event: &Event, import: Import, now: Timestamp) -> Decision {
    fail(event, import, "withdrawn before its files were read".to_owned(), now)
}

fn record(event: &Event, import: &Import, file: FileId, outcome: Outcome, now: Timestamp) -> Decision {
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
        return advance(State::Parsing(import), Vec::new(), note);
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

fn complete(event: &Event, import: Import, now: Timestamp) -> Decision {
    let next = State::Completed(Ended { import, at: now, reason: None });
    end(event, next, Body::SearchImportCompleted, "last file reported; search completed".to_owned())
}

/// Ends the search in `Error`, whatever was running.
pub(crate) fn fail(event: &Event, import: Import, reason: String, now: Timestamp) -> Decision {
    let note = format!("search failed: {reason}");
    let next = State::Error(Ended { import, at: now, reason: Some(reason) });
    end(event, next, Body::SearchImportFailed, note)
}

fn end(event: &Event, mut next: State, publish: fn(SearchImportEnded) -> Body, note: String) -> Decision {
    let mut effects = Vec::new();
    if let (Some(job), State::Completed(ended) | State::Error(ended)) = (next.job(event.search_id), &mut next)
    {
        let running = ended.import.timeout.take();
        effects.extend(running.map(|timeout_id| Effect::CancelTimeout { timeout_id }));
        effects.push(Effect::Publish(Box::new(publish(SearchImportEnded {
            project_id: job.project_id,
            studies: job.studies(),
            reason: job.reason.clone(),
        }))));
    }
    shown(event, advance(next, effects, note))
}

pub(crate) fn advance(next: State, effects: Vec<Effect>, note: String) -> Decision {
    Decision::Advance { next: Box::new(next), effects, note }
}

/// A change with which the job begins or ends. What lies between is read from the state itself, as long as it is
/// stored.
fn shown(event: &Event, decision: Decision) -> Decision {
    let Decision::Advance { next, effects, note } = decision else { return decision };
    let write = next.job(event.search_id).map(|job| Effect::WriteJob(Box::new(job)));
    let effects = write.into_iter().chain(effects).collect();
    Decision::Advance { next, effects, note }
}
