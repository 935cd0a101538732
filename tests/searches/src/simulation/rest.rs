//! What must hold of searches when everything has come to rest.

use std::collections::BTreeMap;

use imports::saga::State;
use imports::{FileId, ImportEvent, Job, Matcher, Outcome, SearchId};
use jiff::{SignedDuration, Timestamp};
use simulation::access::short;
use simulation::{Checked, Invariant, Rest, Violation};

use super::Searches;
use super::outside::{Quality, Truth};

type AtRest<'a> = Rest<'a, Searches>;

/// A file that has been stored for this long is not one that is missing.
const LONG_STORED: SignedDuration = SignedDuration::from_mins(30);

fn broken<T>(invariant: Invariant, detail: String) -> Result<T, Violation> {
    Err(Violation { invariant, detail })
}

/// Checks everything.
pub(super) fn check(rest: &AtRest<'_>) -> Checked {
    for (search, truth) in &rest.truth {
        announced(rest, *search, truth)?;
        if let Some(state) = rest.state(*search) {
            outcome(rest, *search, state, truth)?;
            duplicates(rest, *search)?;
            told(rest, *search)?;
            shown(rest, *search, state)?;
        }
    }
    Ok(())
}

fn announced(rest: &AtRest<'_>, search: SearchId, truth: &Truth) -> Checked {
    if truth.announced && !rest.is_committed(search) {
        let detail = format!("search {search} was announced, but its session is not stored");
        return broken(Invariant::SessionIsAtomic, detail);
    }
    if rest.is_committed(search) && rest.view(search).is_none() {
        return broken(Invariant::SessionIsAtomic, format!("search {search} lost the data of its session"));
    }
    if rest.document(search).is_none() && (truth.notified > 0 || rest.is_committed(search)) {
        let detail = format!("search {search} has begun, but nothing of it is stored");
        return broken(Invariant::Quiescence, detail);
    }
    Ok(())
}

/// The search ended as its files deserve.
fn outcome(rest: &AtRest<'_>, search: SearchId, state: &State, truth: &Truth) -> Checked {
    let (State::Completed(ended) | State::Error(ended)) = state else { return Ok(()) };
    let because = |why| ended.reason.as_deref().is_some_and(|reason| reason.starts_with(why));
    if because("upload timed out") {
        return timed_out(rest, search, ended.at, truth);
    }
    if because("withdrawn") {
        return withdrawn(rest, search, truth);
    }
    for (file, known) in &ended.import.files {
        let quality = truth.files.get(file).copied();
        let key = (search, *file);
        let given_up = rest.crashed.contains(&key) || rest.given_up.contains(&key);
        let fits = match (&known.outcome, quality) {
            (Some(Outcome::Completed(_)), Some(Quality::Good | Quality::Long)) => true,
            (
                Some(Outcome::Failed { .. }),
                Some(Quality::HalfReadable | Quality::Bad | Quality::Unreadable),
            ) => true,
            (Some(Outcome::Failed { .. }), Some(Quality::Good | Quality::Long)) => given_up,
            // Its command lay among the dead letters.
            (None, Some(_)) => because("not read in time") && rest.was_given_up(search),
            _ => false,
        };
        if !fits {
            let detail = format!("file {file}, {quality:?}, of search {search} has {:?}", known.outcome);
            return broken(Invariant::EffectsTakeEffectOnce, detail);
        }
        parsed(rest, search, *file, known.outcome.as_ref())?;
    }
    Ok(())
}

/// Whoever waits in vain for a file does not wait for one that has been in the store for long.
fn timed_out(rest: &AtRest<'_>, search: SearchId, at: Timestamp, truth: &Truth) -> Checked {
    // What was stored later than that was late, however long the answer was on its way.
    let looked = rest.looked.iter().find(|(prefix, _)| prefix.contains(&search.to_string()));
    let until = looked.map_or(at, |(_, at)| *at);
    let in_time = |stored: &Timestamp| until.duration_since(*stored) >= LONG_STORED;
    let asked = !rest.looks_given_up.contains(&search) && !rest.was_given_up(search);
    if asked && truth.files.keys().all(|file| truth.stored.get(file).is_some_and(in_time)) {
        let detail = format!("search {search} timed out although every file was stored");
        return broken(Invariant::Application, detail);
    }
    Ok(())
}

/// A search that ended withdrawn was withdrawn by its client, and nothing of it was read.
fn withdrawn(rest: &AtRest<'_>, search: SearchId, truth: &Truth) -> Checked {
    let parsed = rest.parsed.keys().any(|(of, _)| *of == search);
    if !truth.withdrawn || parsed {
        let asked = truth.withdrawn;
        let detail = format!("search {search} ended withdrawn; asked for: {asked}, read: {parsed}");
        return broken(Invariant::EffectsTakeEffectOnce, detail);
    }
    Ok(())
}

fn parsed(rest: &AtRest<'_>, search: SearchId, file: FileId, outcome: Option<&Outcome>) -> Checked {
    let Some(Outcome::Completed(counts)) = outcome else { return Ok(()) };
    // Nothing in the files is unreadable, so the studies are those of the first records.
    let studies = rest.studies.get(&(search, file));
    let records = studies.into_iter().flat_map(BTreeMap::keys).copied();
    // While the reader changes, the slower of two copies may discard what the quicker one has stored.
    if records.clone().ne(1..=counts.studies) && !rest.contested.contains(&(search, file)) {
        let (file, records) = (short(&file), records.collect::<Vec<_>>());
        let detail =
            format!("file {file} of search {search} completed, but the studies stored are {records:?}");
        return broken(Invariant::Application, detail);
    }
    Ok(())
}

/// Whatever the order in which its files were read, a search has the marks that all of them together give.
fn duplicates(rest: &AtRest<'_>, search: SearchId) -> Checked {
    // A command that was given up may have got no further than to what it marks by.
    if rest.given_up.iter().chain(&rest.contested).any(|(of, _)| *of == search) {
        return Ok(());
    }
    let mut matcher = Matcher::default();
    for file in rest.files_of(search) {
        let studies = rest.studies.get(&(search, file.file_id));
        for (record, study) in studies.into_iter().flatten() {
            let expected = matcher.look(file.position, study).map(|(position, record, _)| (position, record));
            let found = rest.marks.get(&(search, file.file_id, *record)).copied();
            if found != expected {
                let detail = format!(
                    "record {record} of file {} of search {search} is marked as a duplicate of {found:?}, not of \
                     {expected:?}",
                    short(&file.file_id)
                );
                return broken(Invariant::Application, detail);
            }
        }
    }
    Ok(())
}

/// The end of a search is announced exactly once.
fn told(rest: &AtRest<'_>, search: SearchId) -> Checked {
    let told = rest.effects(search).filter(|message| message.read::<ImportEvent>().is_ok()).count();
    if told != 1 {
        let detail = format!("search {search} told of its end {told} times");
        return broken(Invariant::EffectsTakeEffectOnce, detail);
    }
    Ok(())
}

/// The reader sees the last state.
fn shown(rest: &AtRest<'_>, search: SearchId, state: &State) -> Checked {
    let version = rest.document(search).map_or(0, |document| document.version);
    let expected = state.job(search).map(|job| Job { revision: version, ..job });
    let found = rest.view(search).cloned().and_then(|view| Job::try_from(view).ok());
    if found != expected {
        let found = found.map(|job| (job.revision, job.state));
        let detail = format!("job {search} shows {found:?}, not version {version}, {}", state.name());
        return broken(Invariant::EffectsTakeEffectOnce, detail);
    }
    Ok(())
}
