//! Checks that the effects of each change of a search match the change.

use std::collections::BTreeSet;

use imports::saga::{CANCELLED, Import, State};
use imports::{FileId, ImportEvent, Outcome, ParseCommand, SearchEvent, SearchImport};
use messages::MessageId;
use simulation::Change;
use simulation::access::short;

/// The additions of a change to the outbox, by meaning.
#[derive(Default)]
struct OutboxAdditions {
    parse: BTreeSet<FileId>,
    looks: usize,
    taken_back: BTreeSet<FileId>,
    ended: Vec<&'static str>,
    timeouts: Vec<MessageId>,
}

/// Checks that the effects match the change.
pub(super) fn check(change: &Change<'_, SearchImport>) -> Result<(), String> {
    let added = added(change)?;
    let (before, after) = (change.before, change.after);
    let is_over = before.is_some_and(|state| state.completed_at().is_some());
    // A search that starts reading and is cancelled in the same change has requested both.
    let cancelled = cancelled(after).filter(|_| !is_over);
    let mut files = BTreeSet::new();
    if let (State::Parsing(import), _) | (_, Some(import)) = (after, cancelled)
        && !matches!(before, Some(State::Parsing(_)))
    {
        files.extend(import.files.iter().filter(|(_, file)| file.object.is_some()).map(|(id, _)| *id));
    }
    taken_back(change, &added, cancelled)?;
    if added.parse != files {
        return Err(format!("{} parse commands for {} files", added.parse.len(), files.len()));
    }
    let looking =
        |state: &State| import(state).is_some_and(|import| import.look.is_some_and(|look| look.decides));
    let looks = usize::from(looking(after) && !before.is_some_and(looking));
    // A search that advances within the same change has requested nothing.
    if added.looks < looks {
        return Err(format!("{} looks for uploads, not {looks}", added.looks));
    }
    let ended = match after {
        _ if is_over => None,
        State::Completed(_) => Some("SearchImportCompleted"),
        State::Error(_) => Some("SearchImportFailed"),
        State::Initial | State::Uploading(_) | State::Uploaded(_) | State::Parsing(_) => None,
    };
    if added.ended.iter().copied().ne(ended) {
        return Err(format!("{} is announced by {:?}", after.name(), added.ended));
    }
    let shown = before.is_none() || ended.is_some();
    let version = change.write.version;
    let revisions = shown.then_some(version);
    if change.views.iter().map(|view| view.revision).ne(revisions) {
        return Err(format!("{} views are written with version {version}", change.views.len()));
    }
    timeouts(change, &added)
}

/// Checks that the studies of abandoned files are deleted, and no others.
fn taken_back(
    change: &Change<'_, SearchImport>,
    added: &OutboxAdditions,
    cancelled: Option<&Import>,
) -> Result<(), String> {
    let outcome = |state: &State, id: &FileId| import(state)?.files.get(id)?.outcome.clone();
    let is_over = change.before.is_some_and(|state| state.completed_at().is_some());
    let without = match (cancelled, change.after) {
        (Some(import), _) => import.files.keys().copied().collect(),
        (None, State::Error(ended))
            if !is_over && ended.reason.as_deref().is_some_and(|why| why.starts_with("not read")) =>
        {
            let silent = ended.import.files.iter().filter(|(_, file)| file.outcome.is_none());
            silent.map(|(id, _)| *id).collect()
        }
        _ => BTreeSet::new(),
    };
    let mut others = added.taken_back.difference(&without);
    let has_failed = |id: &FileId| {
        let before = change.before.and_then(|state| outcome(state, id));
        before.is_none() && matches!(outcome(change.after, id), Some(Outcome::Failed { .. }))
    };
    if added.taken_back.is_superset(&without) && others.all(has_failed) {
        return Ok(());
    }
    Err(format!("{:?} are deleted instead of {without:?}", added.taken_back))
}

fn added(change: &Change<'_, SearchImport>) -> Result<OutboxAdditions, String> {
    let mut added = OutboxAdditions::default();
    for message in change.messages {
        if let Ok(ParseCommand::StartParsing(command)) = message.read() {
            added.parse.insert(command.file_id);
        } else if let Ok(ParseCommand::LookForUploads(_)) = message.read() {
            added.looks += 1;
        } else if let Ok(ParseCommand::TakeBackFiles(command)) = message.read() {
            added.taken_back.extend(command.files);
        } else if let Ok(SearchEvent::UploadTimeout(_) | SearchEvent::ParseTimeout(_)) = message.read() {
            added.timeouts.push(message.id);
        } else if let Ok(event) = message.read::<ImportEvent>() {
            added.ended.push(messages::Payload::kind(&event).name);
        } else {
            return Err(format!("{} is no effect of a search", message.body.name));
        }
    }
    Ok(added)
}

/// Checks that the running timeout is scheduled, and that an earlier one is cancelled.
fn timeouts(change: &Change<'_, SearchImport>, added: &OutboxAdditions) -> Result<(), String> {
    let timeout = |state: &State| {
        let id = import(state)?.timeout?;
        Some(MessageId::from_uuid(id.as_uuid()))
    };
    let (ran, runs) = (change.before.and_then(timeout), timeout(change.after));
    let scheduled = runs.filter(|id| ran != Some(*id));
    if added.timeouts.iter().copied().ne(scheduled) {
        return Err(format!("timeouts {:?} are scheduled, not {scheduled:?}", added.timeouts));
    }
    if let Some(id) = ran.filter(|id| runs != Some(*id)) {
        let fired = change.write.content.processed.iter().any(|processed| processed.id == id);
        if !fired && !change.write.cancel.contains(&id) {
            return Err(format!("timeout {} is not cancelled", short(&id)));
        }
    }
    Ok(())
}

/// The known state of a cancelled search.
fn cancelled(state: &State) -> Option<&Import> {
    match state {
        State::Error(ended) if ended.reason.as_deref() == Some(CANCELLED) => Some(&ended.import),
        _ => None,
    }
}

fn import(state: &State) -> Option<&Import> {
    match state {
        State::Initial => None,
        State::Uploading(import) | State::Uploaded(import) | State::Parsing(import) => Some(import),
        State::Completed(ended) | State::Error(ended) => Some(&ended.import),
    }
}
