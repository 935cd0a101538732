//! Collecting the files of a search: what its announcement and its arriving files change.

use std::collections::BTreeMap;

use jiff::Timestamp;
use saga::Advance;

use super::decision::{Decision, UPLOAD_TIMEOUT, fail};
use super::event::Event;
use super::state::{File, Import, State};
use crate::ids::TIMEOUT;
use crate::manifest::{MAX_FILE_BYTES, MAX_FILES, MetadataError};
use crate::messages::{
    ParseCommand, SearchEvent, SearchUploadSaved, SearchUploadStarted, SearchWithdrawn, StartParsing,
    UploadTimeout,
};
use crate::{FileId, Manifest, ProjectId, TimeoutId, UploadMetadata};

/// `SearchUploadStarted` of a search nobody has heard of.
pub(super) fn announce_new(event: &Event<'_>, started: &SearchUploadStarted, now: Timestamp) -> Decision {
    if let Some(reason) = faults(&started.manifest) {
        return Decision::reject(reason);
    }
    let mut import = new_import(started.project_id, now);
    fill(&mut import, &started.manifest);
    let why = format!("announced; waiting for {} files", started.manifest.files.len());
    wait(event, import, now, why)
}

/// What is known of a search whose withdrawal has overtaken its announcement.
pub(super) fn announced(withdrawn: &SearchWithdrawn, now: Timestamp) -> Import {
    let mut import = new_import(withdrawn.project_id, now);
    fill(&mut import, &withdrawn.manifest);
    import
}

/// `SearchUploadStarted` that comes late or again. It may fill gaps; a bad one is no more than a warning,
/// because the search is under way without it.
pub(super) fn announce_late(
    import: &Import,
    started: &SearchUploadStarted,
    same: fn(Import) -> State,
) -> Decision {
    if let Some(warning) = contradiction(import, started) {
        return Decision::ignore(format!("warning, bad manifest: {warning}"));
    }
    let mut filled = import.clone();
    fill(&mut filled, &started.manifest);
    if filled == *import {
        return Decision::ignore("already announced");
    }
    Decision::to(same(filled), "late announcement fills in what was not known").into()
}

/// `SearchUploadStarted` that files are waiting for.
pub(super) fn announce_awaited(import: &Import, started: &SearchUploadStarted) -> Decision {
    if let Some(warning) = contradiction(import, started) {
        return Decision::ignore(format!("warning, bad manifest: {warning}"));
    }
    let mut filled = import.clone();
    fill(&mut filled, &started.manifest);
    wait_or_parse(filled)
}

/// The first message of a search is a stored file.
pub(super) fn receive_first(event: &Event<'_>, saved: &SearchUploadSaved, now: Timestamp) -> Decision {
    let metadata = match UploadMetadata::from_map(&saved.metadata) {
        Err(error) => return Decision::reject(error.to_string()),
        Ok(metadata) => metadata,
    };
    let mut import = new_import(saved.project_id, now);
    add(&mut import, saved);
    let Some(metadata) = metadata else {
        let why = "file stored, but its search was not announced yet";
        return begin(event, import, State::Uploaded, now, why.to_owned());
    };
    describe(&mut import, &metadata);
    if import.is_complete() {
        return parse(import, Advance::show);
    }
    let why = format!("1 of {} files stored; waiting for the rest", metadata.expected_files);
    wait(event, import, now, why)
}

/// A file of an announced search was stored.
pub(super) fn receive(
    event: &Event<'_>,
    import: &Import,
    saved: &SearchUploadSaved,
    now: Timestamp,
) -> Decision {
    if is_received(import, saved) {
        return Decision::ignore("the file is known already");
    }
    if let Err(reason) = fits(import, saved) {
        return fail(event, import.clone(), format!("{}: {reason}", saved.file_name), now);
    }
    let mut import = import.clone();
    add(&mut import, saved);
    wait_or_parse(import)
}

/// A file was stored while the announcement of its search is still awaited.
pub(super) fn receive_unannounced(import: &Import, saved: &SearchUploadSaved) -> Decision {
    if is_received(import, saved) {
        return Decision::ignore("the file is known already");
    }
    if saved.project_id != import.project_id {
        return Decision::ignore("warning: the file is of another project");
    }
    if import.files.len() >= MAX_FILES {
        return Decision::ignore(format!("warning: a search has at most {MAX_FILES} files"));
    }
    let mut import = import.clone();
    add(&mut import, saved);
    match UploadMetadata::from_map(&saved.metadata) {
        Err(warning) => Decision::ignore(format!("warning: {warning}")),
        Ok(None) => {
            let why = "another file stored; its search was not announced yet";
            Decision::to(State::Uploaded(import), why).into()
        }
        Ok(Some(metadata)) if metadata.expected_files < import.received() => {
            Decision::ignore("warning: more files are here than this one's upload announces")
        }
        Ok(Some(metadata)) => {
            describe(&mut import, &metadata);
            wait_or_parse(import)
        }
    }
}

/// What speaks against a file joining an announced search.
fn fits(import: &Import, saved: &SearchUploadSaved) -> Result<(), String> {
    let metadata = UploadMetadata::from_map(&saved.metadata).and_then(|found| {
        // Whoever uploads by our form sends it, so its absence means that something else wrote the object.
        found.ok_or(MetadataError::Missing("search-name"))
    });
    match metadata {
        Err(error) => Err(error.to_string()),
        Ok(_) if saved.project_id != import.project_id => Err("the file is of another project".into()),
        Ok(metadata) if Some(metadata.expected_files) != import.expected_files => {
            Err("the upload's number of files is not that of the search".into())
        }
        Ok(_) if import.announced && !import.files.contains_key(&saved.file_id) => {
            Err("the file is not in the manifest".into())
        }
        Ok(_) => Ok(()),
    }
}

/// What speaks against a manifest that comes after files have arrived.
fn contradiction(import: &Import, started: &SearchUploadStarted) -> Option<String> {
    let manifest = &started.manifest;
    if let Some(reason) = faults(manifest) {
        return Some(reason);
    }
    if started.project_id != import.project_id {
        return Some("it is of another project".into());
    }
    if import.expected_files.is_some_and(|expected| expected != manifest.files.len()) {
        return Some("it has another number of files than the uploads say".into());
    }
    let unlisted = |id: &FileId| !manifest.files.iter().any(|file| file.file_id == *id);
    import.files.keys().any(unlisted).then(|| "a file that has arrived is not in it".into())
}

fn faults(manifest: &Manifest) -> Option<String> {
    let faults = manifest.faults(MAX_FILE_BYTES);
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn new_import(project_id: ProjectId, now: Timestamp) -> Import {
    Import {
        project_id,
        name: None,
        expected_files: None,
        announced: false,
        files: BTreeMap::new(),
        timeout: None,
        created_at: now,
    }
}

/// Adds what the manifest knows, without touching what has been learned from the files themselves.
fn fill(import: &mut Import, manifest: &Manifest) {
    import.name.get_or_insert_with(|| manifest.name.clone());
    import.expected_files = Some(manifest.files.len());
    import.announced = true;
    for announced in &manifest.files {
        let file = import.files.entry(announced.file_id).or_insert(File {
            name: None,
            announced_bytes: None,
            object: None,
            outcome: None,
        });
        file.name.get_or_insert_with(|| announced.name.clone());
        file.announced_bytes.get_or_insert(announced.size_bytes);
    }
}

fn describe(import: &mut Import, metadata: &UploadMetadata) {
    import.name.get_or_insert_with(|| metadata.search_name.clone());
    import.expected_files.get_or_insert(metadata.expected_files);
}

fn add(import: &mut Import, saved: &SearchUploadSaved) {
    let file = import.files.entry(saved.file_id).or_insert(File {
        name: None,
        announced_bytes: None,
        object: None,
        outcome: None,
    });
    file.name.get_or_insert_with(|| saved.file_name.clone());
    file.object = Some(saved.object.clone());
}

fn is_received(import: &Import, saved: &SearchUploadSaved) -> bool {
    import.files.get(&saved.file_id).is_some_and(|file| file.object.is_some())
}

/// Waits for (more) files of a search that nobody has heard of before.
fn wait(event: &Event<'_>, import: Import, now: Timestamp, why: String) -> Decision {
    begin(event, import, State::Uploading, now, why)
}

/// Begins a search, with the timeout started.
fn begin(
    event: &Event<'_>,
    mut import: Import,
    state: fn(Import) -> State,
    now: Timestamp,
    why: String,
) -> Decision {
    let timeout_id = TimeoutId::caused_by(&event.id);
    import.timeout = Some(timeout_id);
    // Saturates at the end of representable time, some eight thousand years from now.
    let due_at = now.checked_add(UPLOAD_TIMEOUT).unwrap_or(Timestamp::MAX);
    let fired = SearchEvent::UploadTimeout(UploadTimeout { timeout_id });
    Decision::to(state(import), why).show().schedule(TIMEOUT, due_at, &fired).into()
}

/// Goes on waiting under the timeout that is running, or starts parsing when nothing is missing.
fn wait_or_parse(import: Import) -> Decision {
    if import.is_complete() {
        return parse(import, |advance| advance);
    }
    let expected = import.expected_files.unwrap_or_default();
    let why = format!("{} of {expected} files stored; waiting for the rest", import.received());
    Decision::to(State::Uploading(import), why).into()
}

/// Has every file read. `first` adds what comes before that.
fn parse(mut import: Import, first: fn(Advance<State>) -> Advance<State>) -> Decision {
    let running = import.timeout.take();
    let commands = import.files.iter().zip(0..).filter_map(|((file_id, file), position)| {
        Some(ParseCommand::StartParsing(StartParsing {
            project_id: import.project_id,
            file_id: *file_id,
            file_name: file.name.clone().unwrap_or_else(|| file_id.to_string()),
            position,
            object: file.object.clone()?,
            reply_token: None,
        }))
    });
    let commands: Vec<ParseCommand> = commands.collect();
    let why = format!("all files are here; parsing {}", import.files.len());
    let mut advance = first(Decision::to(State::Parsing(import), why));
    if running.is_some() {
        advance = advance.cancel(TIMEOUT);
    }
    commands.iter().fold(advance, Advance::ask).into()
}
