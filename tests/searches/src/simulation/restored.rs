//! The invariants of searches at rest after a restore of the database.
//!
//! Changes after the backup are lost: searches, decisions, exports and deletions. A search that was being read is
//! cancelled, and a repair has to read its files. Therefore, the checks do not require that good files are read or that
//! exports exist. They require that each search ends, that each file is counted by at most one search, and that no
//! other studies are left.

use std::collections::{BTreeMap, BTreeSet};

use imports::saga::{CANCELLED, EndedSearch, File, Import, State};
use imports::{FileId, FileRef, Outcome, SearchEvent, SearchId};
use messages::{Message, PartitionKey};
use outbox::View;
use serde::Deserialize;
use service::{REPAIRS, Repairs};
use simulation::access::short;
use simulation::{CheckResult, Invariant, Mode};

use super::final_state::{
    AtRest, MAX_OPERATOR_DELAY, broken, check_keyed_answers, duplicates, parsed, repaired, shown, timed_out,
};
use super::outside::{Quality, Truth};
use super::situations::NO_METADATA;

/// The start of the reason of a search whose files were not read before its deadline.
const NOT_READ: &str = "not read in time";

/// Checks everything.
pub(super) fn check(rest: &AtRest<'_>) -> CheckResult {
    let deleted = deleted(rest);
    for search in rest.partitions() {
        view(rest, search, &deleted)?;
        check_keyed_answers(rest, search)?;
        if let Some(state @ (State::Completed(ended) | State::Error(ended))) = rest.state(search)
            && !deleted.contains(&search)
        {
            shown(rest, search, state)?;
            outcomes(rest, search, ended)?;
        }
    }
    counted_once(rest, &deleted)?;
    uncounted(rest, &deleted)?;
    duplicates(rest)
}

/// Returns the searches whose deletion the database records.
fn deleted(rest: &AtRest<'_>) -> BTreeSet<SearchId> {
    recorded(rest).flat_map(|repairs| repairs.deleted).collect()
}

/// Returns `true` if the database records that a search repairs another one.
fn is_recorded(rest: &AtRest<'_>, search: SearchId) -> bool {
    recorded(rest).any(|repairs| repairs.searches().contains(&search))
}

fn recorded<'a>(rest: &'a AtRest<'_>) -> impl Iterator<Item = Repairs> + 'a {
    let repairs = rest.records().filter(|(key, _)| key.kind == REPAIRS);
    repairs.filter_map(|(_, record)| Repairs::deserialize(&record.body).ok())
}

/// A search has ended, and it is removed only if the database records its deletion.
fn view(rest: &AtRest<'_>, search: PartitionKey, deleted: &BTreeSet<SearchId>) -> CheckResult {
    let Some(view) = rest.view(search) else { return Ok(()) };
    if !view.ended {
        return broken(Invariant::Quiescence, format!("search {search} waits after the restore"));
    }
    if View::is_removed(view) && !deleted.contains(&search) {
        let detail = format!("search {search} was deleted, but the restored database does not record it");
        return broken(Invariant::Application, detail);
    }
    Ok(())
}

/// The outcome of each file is true, and a completed file has exactly its studies.
fn outcomes(rest: &AtRest<'_>, search: SearchId, ended: &EndedSearch) -> CheckResult {
    if ended.reason.as_deref().is_some_and(|reason| reason.starts_with("upload timed out"))
        && let Some(truth) = rest.truth.get(&search)
        // The restore undoes the deletion of the search, but not the deletion of the uploaded files.
        && !truth.deleted
    {
        timed_out(rest, search, ended, truth)?;
    }
    if is_cancelled(ended) {
        return Ok(());
    }
    // Without a ledger, the document of a cancelled search does not stop expecting replies. The replies from before the
    // restore are purged, so a reply reports a file that was read after it, and it may arrive before the cancellation.
    let is_not_read = ended.reason.as_deref().is_some_and(|reason| reason.starts_with(NOT_READ));
    let may_be_read = rest.mode() == Mode::Optimistic && !is_not_read;
    // The deadline comes first if the cancellation waits for an operator.
    let may_be_late =
        is_not_read && rest.abandoned_messages(search, MAX_OPERATOR_DELAY).any(|message| cancels(&message));
    if rest.interrupted.contains(&search) && !may_be_read && !may_be_late {
        let detail =
            format!("search {search} was being read at the restore, and ended because of {:?}", ended.reason);
        return broken(Invariant::Application, detail);
    }
    announced_files(rest, search, ended)?;
    true_reason(rest, search, ended)?;
    for (file, known) in &ended.import.files {
        let quality = rest.truth.get(&search).and_then(|truth: &Truth| truth.files.get(file).copied());
        let quality = quality.or_else(|| repaired(rest, known.object.as_ref()?));
        let was_deleted = known.object.as_ref().is_some_and(|object| {
            let of = |search: &SearchId| object.key.contains(&search.to_string());
            rest.truth.iter().any(|(search, truth)| truth.deleted && of(search))
        });
        let is_true = match (&known.outcome, quality) {
            (Some(Outcome::Completed(_)), quality) => {
                matches!(quality, Some(Quality::Good | Quality::Long))
            }
            // The restored count of attempts may include those of the undone time. An undone deletion has removed the
            // uploaded files.
            (Some(Outcome::Failed { reason }), Some(Quality::Good | Quality::Long)) => {
                reason.contains("made the parser crash")
                    || rest.outlasted.contains(&FileRef::new(search, *file))
                    || (reason.ends_with("is gone") && was_deleted)
                    || (reason.contains("before this repair") && !is_recorded(rest, search))
            }
            (Some(Outcome::Failed { .. }) | None, _) => true,
        };
        if !is_true {
            let detail = format!("file {file}, {quality:?}, of search {search} has {:?}", known.outcome);
            return broken(Invariant::EffectsTakeEffectOnce, detail);
        }
        parsed(rest, search, *file, known.outcome.as_ref())?;
    }
    Ok(())
}

/// A completed search has the announced files, even if it was announced again under its key with other files.
///
/// A file of an undone request may begin the search before the announcement arrives, which then contradicts it. All
/// files of this search belong to the undone request.
fn announced_files(rest: &AtRest<'_>, search: SearchId, ended: &EndedSearch) -> CheckResult {
    let announced = rest.effects(search).find_map(|message| match message.read() {
        Ok(SearchEvent::SearchUploadStarted(started)) => Some(started.manifest),
        _ => None,
    });
    let Some(manifest) = announced.filter(|_| ended.reason.is_none()) else { return Ok(()) };
    let Import { announced, expected_files, files, .. } = &ended.import;
    let files: BTreeSet<FileId> = files.keys().copied().collect();
    let truth = rest.truth.get(&search);
    let is_stored = |file: &FileId| {
        truth.is_some_and(|truth| truth.is_keyed && truth.was_stored_for(*file, *expected_files))
    };
    let is_of_undone_request =
        !announced && *expected_files == Some(files.len()) && files.iter().all(is_stored);
    let is_true = is_of_undone_request || files == manifest.files.iter().map(|file| file.file_id).collect();
    if !is_true {
        let announced = manifest.files.len();
        let detail = format!("search {search} was announced with {announced} files, and completed {files:?}");
        return broken(Invariant::EffectsTakeEffectOnce, detail);
    }
    Ok(())
}

/// A search ends without success only because of its files, its client, or a deadline.
fn true_reason(rest: &AtRest<'_>, search: SearchId, ended: &EndedSearch) -> CheckResult {
    let truth = rest.truth.get(&search);
    let has_failed =
        ended.import.files.values().any(|file| matches!(file.outcome, Some(Outcome::Failed { .. })));
    let is_true = match ended.reason.as_deref() {
        None => true,
        Some(reason) if reason.starts_with("withdrawn") => truth.is_some_and(|truth| truth.withdrawn),
        Some(reason) if reason.contains(NO_METADATA) => truth.is_some_and(|truth| !truth.by_hand.is_empty()),
        Some(reason) => has_failed || reason.starts_with("upload timed out") || reason.starts_with(NOT_READ),
    };
    if !is_true {
        return broken(
            Invariant::Application,
            format!("search {search} ended because of {:?}", ended.reason),
        );
    }
    Ok(())
}

/// Returns `true` if a search was cancelled, by its client or by `after-restore`. Such a search counts no studies.
fn is_cancelled(ended: &EndedSearch) -> bool {
    ended.reason.as_deref().is_some_and(|reason| reason.starts_with(CANCELLED))
}

fn cancels(message: &Message) -> bool {
    matches!(message.read(), Ok(SearchEvent::SearchWithdrawn(_)))
}

/// No uploaded file is counted by two searches, such as a search and its repair.
fn counted_once(rest: &AtRest<'_>, deleted: &BTreeSet<SearchId>) -> CheckResult {
    let mut counted: BTreeMap<&str, SearchId> = BTreeMap::new();
    for search in rest.partitions().into_iter().filter(|search| !deleted.contains(search)) {
        let Some(State::Completed(ended) | State::Error(ended)) = rest.state(search) else { continue };
        let is_completed = |file: &&File| matches!(file.outcome, Some(Outcome::Completed(_)));
        for object in ended.import.files.values().filter(is_completed).filter_map(|file| file.object.as_ref())
        {
            if let Some(other) = counted.insert(&object.key, search) {
                let detail =
                    format!("searches {other} and {search} both count the studies of {}", object.key);
                return broken(Invariant::EffectsTakeEffectOnce, detail);
            }
        }
    }
    Ok(())
}

/// The check has reported and deleted all studies that no search counts.
fn uncounted(rest: &AtRest<'_>, deleted: &BTreeSet<SearchId>) -> CheckResult {
    let is_counted = |search: SearchId, file: &FileId| match rest.state(search) {
        Some(State::Completed(ended) | State::Error(ended))
            if !deleted.contains(&search) && !is_cancelled(ended) =>
        {
            let outcome = ended.import.files.get(file).and_then(|file| file.outcome.as_ref());
            matches!(outcome, Some(Outcome::Completed(_)))
        }
        _ => false,
    };
    let left = rest
        .studies
        .iter()
        .find(|(file, studies)| !studies.is_empty() && !is_counted(file.search_id, &file.file_id));
    if let Some((FileRef { search_id: search, file_id: file }, studies)) = left {
        let (count, file) = (studies.len(), short(file));
        let detail = format!(
            "no search counts {count} studies of file {file} of search {search}, and the check missed them"
        );
        return broken(Invariant::Application, detail);
    }
    Ok(())
}
