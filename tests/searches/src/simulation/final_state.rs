//! The invariants of searches in the final state.

use std::collections::BTreeMap;
use std::time::Duration;

use imports::duplicates::{ComparedStudy, DECISIONS, Edge, marks};
use imports::messages::ObjectRef;
use imports::saga::{CANCELLED, EndedSearch, Import, State};
use imports::{
    Decisions, ExportFolder, ExportKey, FileId, FileRef, ImportEvent, Job, ObjectKey, Outcome, ParseCommand,
    ParsedFile, SearchEvent, SearchId, StudyRef,
};
use jiff::{SignedDuration, Timestamp};
use messages::Message;
use outbox::{Key, View};
use serde::Deserialize;
use service::NewSearch;
use service::marking::MAX_CANDIDATES_PER_KEY;
use simulation::access::short;
use simulation::{CheckResult, Invariant, Rest, Violation};

use super::Searches;
use super::client::{files_of, project};
use super::outside::{KeyedAnswer, PromisedExport, Quality, StoredObject, Truth};
use super::situations::{KEY_PREFIX, NO_METADATA};

pub(super) type AtRest<'a> = Rest<'a, Searches>;

/// A file that has been stored for this time cannot be reported as missing.
const LONG_STORED: SignedDuration = SignedDuration::from_mins(30);

/// The minimum time that a search waits for its files: an hour, by clocks with an error of up to five minutes. Three
/// different clocks time the arrival of the file, the timer, and the end of the search.
const MIN_WAIT: SignedDuration = SignedDuration::from_mins(45);

/// The time that a message can wait for an operator while its search still waits for the file: a day, minus an hour for
/// other faults.
pub(super) const MAX_OPERATOR_DELAY: Duration = Duration::from_secs(23 * 3_600);

/// The maximum error of a client's clock, with a margin.
const MAX_SKEW: SignedDuration = SignedDuration::from_mins(15);

pub(super) fn broken<T>(invariant: Invariant, detail: String) -> Result<T, Violation> {
    Err(Violation { invariant, detail })
}

/// Checks all invariants.
pub(super) fn check(rest: &AtRest<'_>) -> CheckResult {
    if let Some(search) = rest.unanswered.first() {
        let detail = format!("the client that asks for search {search} under a key is never answered");
        return broken(Invariant::Quiescence, detail);
    }
    for (search, truth) in &rest.truth {
        announced(rest, *search, truth)?;
        check_keyed_answers(rest, *search)?;
        if let Some(state) = rest.state(*search) {
            outcome(rest, *search, state, truth)?;
            told(rest, *search)?;
            if deleted_at(rest, *search).is_none() {
                shown(rest, *search, state)?;
            }
        }
        forgotten(rest, *search, truth)?;
    }
    if let Some(FileRef { search_id: search, file_id: file }) = rest.left.first() {
        let detail = format!("file {file} of search {search} was never removed");
        return broken(Invariant::Quiescence, detail);
    }
    duplicates(rest)
}

/// Returns the time of a search's deletion by the clock of the client.
fn deleted_at(rest: &AtRest<'_>, search: SearchId) -> Option<Timestamp> {
    let forgets = |message: &&Message| matches!(message.read(), Ok(ParseCommand::TakeBackFiles(command)) if command.forget);
    rest.effects(search).filter(forgets).map(|message| message.time).min()
}

/// A promised export exists if the searches still have its files, unless an outage outlasted its command. The deletion of
/// another search of the project may have replaced an export of several searches by an object that says so.
fn exported(rest: &AtRest<'_>, search: SearchId) -> CheckResult {
    let promised = rest.promised.iter().filter(|(_, export)| export.search == search);
    for (export, PromisedExport { files, is_shared, .. }) in promised {
        let beginning = ExportFolder::of(project(), search, *is_shared).beginning(*export);
        let is_there = rest.exports.iter().any(|key| key.starts_with(&beginning));
        let is_due = files.iter().all(|file| rest.files.contains_key(file));
        if !is_there && !rest.unmade.contains(export) && is_due {
            let detail = format!("export {export} of search {search} was promised and never made");
            return broken(Invariant::Application, detail);
        }
    }
    Ok(())
}

/// Returns the number of exports with studies of a search.
fn exports_of(rest: &AtRest<'_>, search: SearchId) -> usize {
    let folder = ExportFolder::Search(project(), search).to_string();
    let commands = rest.truth.keys().flat_map(|owner| rest.effects(*owner)).filter_map(|message| {
        let Ok(ParseCommand::MakeExport(command)) = message.read() else { return None };
        let is_of_search =
            message.partition == search || command.others.iter().any(|other| other.search_id == search);
        (command.is_shared() && is_of_search).then_some(command.export_id)
    });
    let shared = commands.map(|export| ExportFolder::Review(project()).beginning(export));
    let beginnings: Vec<String> = shared.chain([folder]).collect();
    let is_of_search = |key: &&String| beginnings.iter().any(|beginning| key.starts_with(beginning));
    let left = rest.exports.difference(&rest.stray).filter(is_of_search);
    left.filter(|key| ExportKey::has_studies(key)).count()
}

/// A deleted search has left nothing behind. Any other search has every promised export.
fn forgotten(rest: &AtRest<'_>, search: SearchId, truth: &Truth) -> CheckResult {
    let exports = exports_of(rest, search);
    let Some(deleted_at) = deleted_at(rest, search) else { return exported(rest, search) };
    // A form cannot be revoked, so a later upload remains stored.
    let uploads = ObjectKey::folder(KEY_PREFIX, project(), search);
    let was_there = |stored: &&StoredObject| {
        stored.object.key.starts_with(&uploads) && deleted_at.duration_since(stored.stored_at) > MAX_SKEW
    };
    let left = [
        (
            "studies",
            rest.studies.iter().filter(|(file, _)| file.search_id == search).map(|of| of.1.len()).sum(),
        ),
        ("files", rest.files_of(search).len()),
        ("exports", exports),
        ("uploads", rest.objects.iter().filter(was_there).count()),
        ("views", usize::from(!rest.view(search).is_some_and(View::is_removed))),
        ("requests for its deletion too few", usize::from(!truth.deleted)),
    ];
    match left.into_iter().find(|(_, count)| *count > 0) {
        Some((what, count)) => {
            broken(Invariant::Application, format!("search {search} was deleted, and has {count} {what}"))
        }
        None => Ok(()),
    }
}

fn announced(rest: &AtRest<'_>, search: SearchId, truth: &Truth) -> CheckResult {
    if truth.announced && !rest.is_committed(search) {
        let detail = format!("search {search} was announced, but its session is not stored");
        return broken(Invariant::SessionIsAtomic, detail);
    }
    if rest.is_committed(search) && rest.view(search).is_none() {
        return broken(Invariant::SessionIsAtomic, format!("search {search} lost the data of its session"));
    }
    // A restored ledger may lack the tokens of an announcement that was never committed. Uploads of such a search begin
    // nothing.
    let has_begun = rest.is_committed(search) || (truth.notified > 0 && rest.restored().is_none());
    if has_begun && rest.document(search).is_none() {
        let detail = format!("search {search} has begun, but nothing of it is stored");
        return broken(Invariant::Quiescence, detail);
    }
    Ok(())
}

/// Checks that the outcome of a search matches the quality of its files.
fn outcome(rest: &AtRest<'_>, search: SearchId, state: &State, truth: &Truth) -> CheckResult {
    let (State::Completed(ended) | State::Error(ended)) = state else { return Ok(()) };
    let because = |why| ended.reason.as_deref().is_some_and(|reason| reason.starts_with(why));
    if because("upload timed out") {
        return timed_out(rest, search, ended, truth);
    }
    if because("withdrawn") {
        return withdrawn(rest, search, truth);
    }
    if because(CANCELLED) {
        return cancelled(rest, search, truth);
    }
    if ended.reason.as_deref().is_some_and(|reason| reason.contains(NO_METADATA)) {
        return refused(search, truth);
    }
    let is_known = rest.is_committed(search) || truth.by_hand.len() < truth.files.len();
    if !is_known {
        let detail =
            format!("the files of search {search} were never announced, and it ended as {}", state.name());
        return broken(Invariant::Application, detail);
    }
    for (file, known) in &ended.import.files {
        let quality = truth.files.get(file).copied().or_else(|| repaired(rest, known.object.as_ref()?));
        let key = FileRef::new(search, *file);
        let fits = match (&known.outcome, quality) {
            (Some(Outcome::Completed(_)), Some(Quality::Good | Quality::Long)) => true,
            (Some(Outcome::Failed { reason }), Some(quality)) => has_failed(rest, key, reason, quality),
            (None, Some(_)) => {
                let waited = waited_for_operator(rest, search, *file);
                because("not read in time") && (waited || rest.was_outlasted(ended.import.created_at))
            }
            _ => false,
        };
        if !fits {
            let detail = format!("file {file}, {quality:?}, of search {search} has {:?}", known.outcome);
            return broken(Invariant::EffectsTakeEffectOnce, detail);
        }
        if deleted_at(rest, search).is_none() {
            parsed(rest, search, *file, known.outcome.as_ref())?;
        }
        taken_back(rest, search, *file, known.outcome.as_ref())?;
    }
    Ok(())
}

/// Returns the quality of a file that was uploaded for the repaired search.
pub(super) fn repaired(rest: &AtRest<'_>, object: &ObjectRef) -> Option<Quality> {
    let key = ObjectKey::parse(KEY_PREFIX, &object.key).ok()?;
    rest.truth.get(&key.search)?.files.get(&key.file).copied()
}

/// `true` if the stated reason for the failure of a file is correct. A good file may fail only after repeated crashes
/// of the parser, or after an outage that is longer than the queues outlast.
fn has_failed(rest: &AtRest<'_>, file: FileRef, reason: &str, quality: Quality) -> bool {
    if reason.contains("made the parser crash") {
        rest.crashed.contains(&file)
    } else if reason.contains("could not be read after several attempts") {
        quality == Quality::Unreadable || rest.outlasted.contains(&file)
    } else {
        matches!(quality, Quality::HalfReadable | Quality::Bad)
    }
}

/// Returns `true` if the command to read a file, or its reply, was dead-lettered until an operator redrove it.
fn waited_for_operator(rest: &AtRest<'_>, search: SearchId, file: FileId) -> bool {
    let tells = |message: Message| match (message.read(), message.read()) {
        (Ok(ParseCommand::StartParsing(command)), _) => command.file_id == file,
        (_, Ok(SearchEvent::ReferenceFileParsingCompleted(reply))) => reply.file_id == file,
        (_, Ok(SearchEvent::ReferenceFileFaulted(reply))) => reply.file_id == file,
        (_, Ok(SearchEvent::StartParsingFaulted(reply))) => reply.file_id == file,
        _ => false,
    };
    rest.abandoned_messages(search, MAX_OPERATOR_DELAY).any(tells)
}

/// A search that ends without a file has waited long enough and has scanned the bucket, and the file was not stored
/// long before its last scan.
pub(super) fn timed_out(
    rest: &AtRest<'_>,
    search: SearchId,
    ended: &EndedSearch,
    truth: &Truth,
) -> CheckResult {
    let arrived = ended.import.files.iter().filter(|(_, file)| file.object.is_some());
    let arrived = arrived.filter_map(|(file, _)| truth.first_stored(*file));
    let waits_since = arrived.chain([ended.import.created_at]).max().unwrap_or(ended.at);
    if ended.at.duration_since(waits_since) < MIN_WAIT {
        let detail = format!("search {search} timed out at {}, and has waited since {waits_since}", ended.at);
        return broken(Invariant::Application, detail);
    }
    let looks = |message: &&Message| matches!(message.read(), Ok(ParseCommand::LookForUploads(_)));
    let Some(looked_at) = rest.effects(search).filter(looks).map(|message| message.time).max() else {
        return broken(Invariant::Application, format!("search {search} timed out without a look"));
    };
    let reason = ended.reason.as_deref().unwrap_or_default();
    if reason.ends_with("the bucket could not be scanned for more files") {
        return match rest.looks_outlasted.contains(&search) || scan_waited_for_operator(rest, search) {
            true => Ok(()),
            false => {
                broken(Invariant::Application, format!("the files of search {search} were never scanned for"))
            }
        };
    }
    // A file stored by hand does not describe its search, and does not join an announced one.
    if truth.files.is_empty() || !truth.by_hand.is_empty() {
        return Ok(());
    }
    let long_before = looked_at.checked_sub(LONG_STORED).unwrap_or(looked_at);
    let Import { expected_files, announced, files, .. } = &ended.import;
    let files: Vec<FileId> = match expected_files {
        _ if *announced => files.keys().copied().collect(),
        // A file of an undone request may have begun the search.
        Some(expected) if truth.is_keyed => files_of(search, *expected).collect(),
        _ => truth.files.keys().copied().collect(),
    };
    let is_stored = |file: &FileId| truth.is_stored_for(*file, *expected_files, long_before, ended.at);
    if files.iter().all(is_stored) {
        let detail = format!("search {search} timed out although every file was stored");
        return broken(Invariant::Application, detail);
    }
    Ok(())
}

/// Returns `true` if a bucket scan, or its reply, was dead-lettered until an operator redrove it.
fn scan_waited_for_operator(rest: &AtRest<'_>, search: SearchId) -> bool {
    rest.abandoned_messages(search, Duration::ZERO).any(|message| {
        let asks = matches!(message.read(), Ok(ParseCommand::LookForUploads(_)));
        asks || matches!(message.read(), Ok(SearchEvent::UploadsFound(_)))
    })
}

/// A search fails for a file without metadata only if a file was put into the bucket by hand.
fn refused(search: SearchId, truth: &Truth) -> CheckResult {
    if truth.by_hand.is_empty() {
        return broken(Invariant::Application, format!("search {search} failed for a file without metadata"));
    }
    Ok(())
}

/// A keyed request receives the search of its key if and only if its content equals that of the announced request.
pub(super) fn check_keyed_answers(rest: &AtRest<'_>, search: SearchId) -> CheckResult {
    let Some(answers) = rest.told.get(&search) else { return Ok(()) };
    let announced = rest.effects(search).find_map(|message| match message.read() {
        Ok(SearchEvent::SearchUploadStarted(started)) => Some(started.manifest),
        _ => None,
    });
    let announced: Option<(_, Vec<_>)> = announced.map(|manifest| {
        let files = manifest.files.into_iter().map(|file| (Some(file.name), Some(file.size_bytes)));
        (Some(manifest.name), files.collect())
    });
    // A restore may undo an announcement whose message was sent and takes effect.
    let announced = announced.or_else(|| {
        let (State::Completed(ended) | State::Error(ended)) = rest.state(search)? else { return None };
        let Import { name, files, announced, .. } = &ended.import;
        let files = files.values().map(|file| (file.name.clone(), file.announced_bytes));
        announced.then(|| (name.clone(), files.collect()))
    });
    let is_of = |request: &NewSearch| {
        announced.as_ref().is_some_and(|(name, files)| {
            let wanted = request.files.iter().map(|file| (Some(file.name.clone()), Some(file.size_bytes)));
            name.as_ref() == Some(&request.name) && wanted.eq(files.iter().cloned())
        })
    };
    for (request, told) in answers {
        let fits = match told {
            KeyedAnswer::Announced(id) | KeyedAnswer::Ended(id) => *id == search && is_of(request),
            KeyedAnswer::Differs => !is_of(request),
            // The message of an announcement that a restore has undone may still arrive.
            KeyedAnswer::Unknown => rest.restored().is_some() || !is_of(request),
        };
        if !fits {
            let detail = format!(
                "a request for {:?} under the key of search {search} was answered {told:?}",
                request.files
            );
            return broken(Invariant::Application, detail);
        }
    }
    Ok(())
}

/// A search ends as withdrawn only if its client withdrew it, and its files were not read.
fn withdrawn(rest: &AtRest<'_>, search: SearchId, truth: &Truth) -> CheckResult {
    let parsed = rest.parsed.keys().any(|file| file.search_id == search);
    if !truth.withdrawn || parsed {
        let asked = truth.withdrawn;
        let detail = format!("search {search} ended withdrawn; asked for: {asked}, read: {parsed}");
        return broken(Invariant::EffectsTakeEffectOnce, detail);
    }
    Ok(())
}

/// A search ends as cancelled only if its client withdrew it, and it has no stored studies.
fn cancelled(rest: &AtRest<'_>, search: SearchId, truth: &Truth) -> CheckResult {
    let of_it = rest.studies.iter().filter(|(file, _)| file.search_id == search);
    let studies: usize = of_it.map(|(_, studies)| studies.len()).sum();
    if !truth.withdrawn || studies > 0 {
        let asked = truth.withdrawn;
        let detail = format!("search {search} ended cancelled; asked for: {asked}, studies left: {studies}");
        return broken(Invariant::Application, detail);
    }
    Ok(())
}

pub(super) fn parsed(
    rest: &AtRest<'_>,
    search: SearchId,
    file: FileId,
    outcome: Option<&Outcome>,
) -> CheckResult {
    let Some(Outcome::Completed(counts)) = outcome else { return Ok(()) };
    // The files have no unreadable records, so the studies come from the first records.
    let studies = rest.studies.get(&FileRef::new(search, file));
    let records = studies.into_iter().flat_map(BTreeMap::keys).copied();
    if records.clone().ne(1..=counts.studies) {
        let (file, records) = (short(&file), records.collect::<Vec<_>>());
        let detail =
            format!("file {file} of search {search} completed, but the studies stored are {records:?}");
        return broken(Invariant::Application, detail);
    }
    Ok(())
}

/// A refused or abandoned file has no stored studies, even after a late duplicate of its command.
fn taken_back(rest: &AtRest<'_>, search: SearchId, file: FileId, outcome: Option<&Outcome>) -> CheckResult {
    if let Some(Outcome::Completed(_)) = outcome {
        return Ok(());
    }
    let left = rest.studies.get(&FileRef::new(search, file)).map_or(0, BTreeMap::len);
    if left > 0 {
        let file = short(&file);
        let detail =
            format!("file {file} of search {search} was refused, but {left} of its studies are stored");
        return broken(Invariant::Application, detail);
    }
    Ok(())
}

/// The studies have the marks that follow from their final set, regardless of the order of reading and deleting files.
pub(super) fn duplicates(rest: &AtRest<'_>) -> CheckResult {
    let is_there = |at: &StudyRef| rest.files.contains_key(&at.file()) && rest.study(*at).is_some();
    let keyed = rest.keyed.iter().filter(|(_, at)| is_there(at));
    let mut having: BTreeMap<u64, usize> = BTreeMap::new();
    keyed.for_each(|(key, _)| *having.entry(*key).or_default() += 1);
    if having.values().any(|having| *having > MAX_CANDIDATES_PER_KEY) {
        // Beyond this number, some studies are not compared.
        return Ok(());
    }
    let of_file = |file: &ParsedFile| {
        rest.studies.get(&FileRef::new(file.search_id, file.file_id)).into_iter().flatten()
    };
    let studies = rest
        .files
        .values()
        .flat_map(|file| of_file(file).map(move |(_, study)| ComparedStudy::of(file, study)));
    let studies: Vec<_> = studies.collect();
    let contents: BTreeMap<_, _> =
        studies.iter().map(|study| (study.content, &study.identity.fields)).collect();
    let mut edges = Vec::new();
    for (one, fields) in &contents {
        for (other, others) in contents.range(*one..).skip(1) {
            let shares = fields.keys().iter().any(|key| others.keys().contains(key));
            edges.extend(Edge::between(*one, fields, *other, others).filter(|_| shares));
        }
    }
    let decisions = rest.record(&Key::new(DECISIONS, project().to_string()));
    let decisions =
        decisions.and_then(|record| Decisions::deserialize(&record.body).ok()).unwrap_or_default();
    for (at, expected) in marks(&studies, &edges, &decisions) {
        let found = rest.marks.get(&at).and_then(|(_, mark)| *mark);
        if found != expected {
            let StudyRef { search_id, file_id, record } = at;
            let detail = format!(
                "record {record} of file {} of search {search_id} is marked as a duplicate of {found:?}, not of {expected:?}",
                short(&file_id)
            );
            return broken(Invariant::Application, detail);
        }
    }
    Ok(())
}

/// The end of a search is announced exactly once.
fn told(rest: &AtRest<'_>, search: SearchId) -> CheckResult {
    let told = rest.effects(search).filter(|message| message.read::<ImportEvent>().is_ok()).count();
    if told != 1 {
        let detail = format!("search {search} announced its end {told} times");
        return broken(Invariant::EffectsTakeEffectOnce, detail);
    }
    Ok(())
}

/// The reader sees the last state.
pub(super) fn shown(rest: &AtRest<'_>, search: SearchId, state: &State) -> CheckResult {
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
