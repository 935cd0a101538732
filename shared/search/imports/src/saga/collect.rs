//! Collecting the files of a search: the effects of its announcement and its arriving files.

use std::collections::BTreeMap;

use ::saga::Advance;
use jiff::Timestamp;

use super::deadlines::MAX_SCAN_TIME;
use super::decision::{Decision, fail};
use super::event::Moment;
use super::state::{BucketScan, File, Import, State};
use crate::ids::TIMEOUT;
use crate::manifest::{MAX_FILES, ManifestLimits, MetadataError};
use crate::messages::{
    LookForUploads, ParseCommand, ParseTimeout, SearchEvent, SearchUploadSaved, SearchUploadStarted,
    SearchWithdrawn, StartParsing, UploadTimeout, UploadsFound,
};
use crate::{FileId, Manifest, ProjectId, UploadMetadata};

/// Handles `SearchUploadStarted` of an unknown search.
pub(super) fn announce_new(moment: &Moment<'_>, started: &SearchUploadStarted) -> Decision {
    if let Some(reason) = faults(&started.manifest) {
        return Decision::reject(reason);
    }
    let mut import = new_import(started.project_id, moment.now);
    fill(&mut import, &started.manifest);
    let why = match started.manifest.files.len() {
        1 => "announced; waiting for 1 file".to_owned(),
        files => format!("announced; waiting for {files} files"),
    };
    wait(moment, import, why).show().into()
}

/// Returns the data of a search whose cancellation has overtaken its announcement.
pub(super) fn announced(withdrawn: &SearchWithdrawn, now: Timestamp) -> Import {
    let mut import = new_import(withdrawn.project_id, now);
    fill(&mut import, &withdrawn.manifest);
    import
}

/// Handles a late or repeated `SearchUploadStarted`. It may fill gaps; an invalid one only causes a warning, because
/// the search is already in progress.
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
    Decision::to(same(filled), "late announcement adds missing data").into()
}

/// Handles `SearchUploadStarted` of a search whose files have arrived first.
pub(super) fn announce_awaited(
    moment: &Moment<'_>,
    import: &Import,
    started: &SearchUploadStarted,
) -> Decision {
    if let Some(warning) = contradiction(import, started) {
        return Decision::ignore(format!("warning, bad manifest: {warning}"));
    }
    let mut filled = import.clone();
    fill(&mut filled, &started.manifest);
    wait_or_parse(moment, filled)
}

/// Handles a stored file that is the first message of a search.
pub(super) fn receive_first(moment: &Moment<'_>, saved: &SearchUploadSaved) -> Decision {
    let metadata = match UploadMetadata::from_map(&saved.metadata) {
        Err(error) => return Decision::reject(error.to_string()),
        Ok(metadata) => metadata,
    };
    let mut import = new_import(saved.project_id, moment.now);
    add(&mut import, saved);
    let Some(metadata) = metadata else {
        let why = "file stored, but its search was not announced yet";
        return wait(moment, import, why.to_owned()).show().into();
    };
    describe(&mut import, &metadata);
    if import.is_complete() {
        return parse(moment, import).show().into();
    }
    let why = format!("1 of {} files stored; waiting for the rest", metadata.expected_files);
    wait(moment, import, why).show().into()
}

/// Handles a stored file of an announced search.
pub(super) fn receive(moment: &Moment<'_>, import: &Import, saved: &SearchUploadSaved) -> Decision {
    if is_received(import, saved) {
        return Decision::ignore("the file is already known");
    }
    let mut joined = import.clone();
    match join(&mut joined, saved) {
        Ok(()) => wait_or_parse(moment, joined),
        Err(misfit) if misfit.is_of_another_request => Decision::ignore(format!("warning: {}", misfit.why)),
        Err(misfit) => fail(moment, import.clone(), format!("{}: {}", saved.file_name, misfit.why)),
    }
}

/// Handles a stored file of a search that is not announced yet.
pub(super) fn receive_unannounced(
    moment: &Moment<'_>,
    import: &Import,
    saved: &SearchUploadSaved,
) -> Decision {
    if is_received(import, saved) {
        return Decision::ignore("the file is already known");
    }
    let mut joined = import.clone();
    match join(&mut joined, saved) {
        Ok(()) => wait_or_parse(moment, joined),
        Err(misfit) => Decision::ignore(format!("warning: {}", misfit.why)),
    }
}

/// Handles the end of the time for uploads. Before the search ends, the bucket is scanned, since a notification may
/// be late or lost. If the scan is never answered, the search ends too.
pub(super) fn timed_out(moment: &Moment<'_>, import: &Import, fired: &UploadTimeout) -> Decision {
    if import.timeout != Some(fired.timeout_id) {
        return Decision::ignore("an outdated timeout");
    }
    if import.look.is_some() && !fired.repeats_scan {
        // Clear the timeout, because a timeout that has fired must not be cancelled.
        let import = Import { timeout: None, ..import.clone() };
        return fail_upload(moment, import, ", and the bucket could not be scanned for more files");
    }
    let timeout_id = moment.timeout_id();
    let look = BucketScan { id: timeout_id, decides: true };
    let import = Import { timeout: Some(timeout_id), look: Some(look), ..import.clone() };
    let received = import.files.iter().filter(|(_, file)| file.object.is_some()).map(|(id, _)| *id);
    let (look_id, project_id) = (timeout_id, import.project_id);
    let look = LookForUploads { look_id, project_id, known: received.collect() };
    Decision::to(waiting(import), "the time for uploads is up; looking whether more of them are stored")
        .schedule(
            TIMEOUT,
            moment.after(MAX_SCAN_TIME),
            &SearchEvent::UploadTimeout(UploadTimeout::of_timer(timeout_id)),
        )
        .ask(&ParseCommand::LookForUploads(look))
        .into()
}

/// Handles the result of a scan. Files that do not belong to the search are ignored.
pub(super) fn found(moment: &Moment<'_>, import: &Import, found: &UploadsFound) -> Decision {
    let Some(look) = answered(import, found) else { return Decision::ignore(NO_SCAN) };
    let mut joined = Import { look: None, ..import.clone() };
    for saved in &found.files {
        let mut more = joined.clone();
        if !is_received(&joined, saved) && join(&mut more, saved).is_ok() {
            joined = more;
        }
    }
    if joined.received() > import.received() {
        wait_or_parse(moment, joined)
    } else if look.decides {
        fail_upload(moment, joined, "")
    } else {
        Decision::to(waiting(joined), "nothing is stored that is not known").into()
    }
}

const NO_SCAN: &str = "this bucket scan is not pending";

/// Returns the scan that this result answers, if it is in progress.
fn answered(import: &Import, found: &UploadsFound) -> Option<BucketScan> {
    import.look.filter(|look| look.id == found.look_id)
}

/// Handles the result of a scan after all files have arrived.
pub(super) fn late_uploads_found(import: &Import, found: &UploadsFound) -> Decision {
    if answered(import, found).is_none() {
        return Decision::ignore(NO_SCAN);
    }
    let import = Import { look: None, ..import.clone() };
    Decision::to(State::Parsing(import), "all files have arrived; already Parsing").into()
}

fn outdated(look: BucketScan) -> BucketScan {
    BucketScan { decides: false, ..look }
}

fn fail_upload(moment: &Moment<'_>, import: Import, besides: &str) -> Decision {
    let missing = import.expected_files.map_or_else(
        || "the search was never announced".to_owned(),
        |expected| format!("{} of {expected} files arrived", import.received()),
    );
    fail(moment, import, format!("upload timed out: {missing}{besides}"))
}

/// The reason why a stored file cannot join a search.
struct Misfit {
    why: String,
    /// `true` if the file was uploaded for another request under the idempotency key of the search. A restore of the
    /// database has undone that request, but not its uploads.
    is_of_another_request: bool,
}

impl From<String> for Misfit {
    fn from(why: String) -> Self {
        Self { why, is_of_another_request: false }
    }
}

/// Adds a file to a search that waits for files, unless it contradicts the search.
fn join(import: &mut Import, saved: &SearchUploadSaved) -> Result<(), Misfit> {
    if import.expected_files.is_some() {
        fits(import, saved)?;
    } else if let Some(metadata) = fits_unannounced(import, saved)? {
        describe(import, &metadata);
    }
    add(import, saved);
    Ok(())
}

/// Returns the file's metadata, or the reason why the file cannot join an unannounced search.
fn fits_unannounced(import: &Import, saved: &SearchUploadSaved) -> Result<Option<UploadMetadata>, String> {
    if saved.project_id != import.project_id {
        return Err("the file is of another project".into());
    }
    if import.files.len() >= MAX_FILES {
        return Err(format!("a search has at most {MAX_FILES} files"));
    }
    let metadata = UploadMetadata::from_map(&saved.metadata).map_err(|error| error.to_string())?;
    match metadata {
        Some(metadata) if metadata.expected_files <= import.received() => {
            Err("more files are here than this one's upload announces".into())
        }
        metadata => Ok(metadata),
    }
}

/// Returns the reason why a file cannot join a search with a known number of files, if any.
fn fits(import: &Import, saved: &SearchUploadSaved) -> Result<(), Misfit> {
    let metadata = UploadMetadata::from_map(&saved.metadata).and_then(|found| {
        // Our upload forms always send it, so its absence means that another program wrote the object.
        found.ok_or(MetadataError::Missing("search-name"))
    });
    let metadata = metadata.map_err(|error| error.to_string())?;
    if saved.project_id != import.project_id {
        return Err("the file is of another project".to_owned().into());
    }
    let of_another = |why: &str| Misfit { why: why.to_owned(), is_of_another_request: import.announced };
    if Some(metadata.expected_files) != import.expected_files {
        return Err(of_another("the upload's number of files is not that of the search"));
    }
    let known = import.files.get(&saved.file_id).filter(|_| import.announced);
    match known {
        Some(file) if file.name.as_ref().is_some_and(|name| *name != saved.file_name) => {
            Err(of_another("the name of the file is not the announced one"))
        }
        None if import.announced => Err("the file is not in the manifest".to_owned().into()),
        Some(_) | None => Ok(()),
    }
}

/// Returns the contradiction between a manifest and files that have arrived before it, if any.
fn contradiction(import: &Import, started: &SearchUploadStarted) -> Option<String> {
    let manifest = &started.manifest;
    if let Some(reason) = faults(manifest) {
        return Some(reason);
    }
    if started.project_id != import.project_id {
        return Some("it is of another project".into());
    }
    if import.expected_files.is_some_and(|expected| expected != manifest.files.len()) {
        return Some("its number of files differs from that of the uploads".into());
    }
    let unlisted = |id: &FileId| !manifest.files.iter().any(|file| file.file_id == *id);
    import.files.keys().any(unlisted).then(|| "a file that has arrived is not in it".into())
}

fn faults(manifest: &Manifest) -> Option<String> {
    let faults = manifest.faults(&ManifestLimits::ACCEPTED);
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
        look: None,
        repairs: None,
        created_at: now,
    }
}

/// Adds the data of the manifest without changing data from the files themselves.
fn fill(import: &mut Import, manifest: &Manifest) {
    import.name.get_or_insert_with(|| manifest.name.clone());
    import.expected_files = Some(manifest.files.len());
    import.announced = true;
    import.repairs = manifest.repairs;
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

/// Returns the state of a search that waits for files.
fn waiting(import: Import) -> State {
    if import.expected_files.is_some() { State::Uploading(import) } else { State::Uploaded(import) }
}

/// Waits for more files and restarts the time limit.
fn wait(moment: &Moment<'_>, mut import: Import, why: String) -> Advance<State> {
    let timeout_id = moment.timeout_id();
    import.timeout = Some(timeout_id);
    import.look = import.look.map(outdated);
    let fired = SearchEvent::UploadTimeout(UploadTimeout::of_timer(timeout_id));
    // The scan keeps the time limit that it would have had.
    let wait = import.look.map_or(moment.deadlines.upload, |_| moment.deadlines.upload.max(MAX_SCAN_TIME));
    Decision::to(waiting(import), why).schedule(TIMEOUT, moment.after(wait), &fired)
}

/// Continues to wait, or starts parsing if all files have arrived.
fn wait_or_parse(moment: &Moment<'_>, import: Import) -> Decision {
    if import.is_complete() {
        return parse(moment, import).into();
    }
    let why = match import.expected_files {
        Some(expected) => format!("{} of {expected} files stored; waiting for the rest", import.received()),
        None => "another file stored; its search was not announced yet".to_owned(),
    };
    wait(moment, import, why).into()
}

/// Sends a parse command for every file.
fn parse(moment: &Moment<'_>, import: Import) -> Advance<State> {
    let commands = import.files.iter().zip(0..).filter_map(|((file_id, file), position)| {
        Some(ParseCommand::StartParsing(StartParsing {
            project_id: import.project_id,
            file_id: *file_id,
            file_name: file.name.clone().unwrap_or_else(|| file_id.to_string()),
            position,
            object: file.object.clone()?,
            announced_at: Some(import.created_at),
            reply_token: None,
        }))
    });
    let commands: Vec<ParseCommand> = commands.collect();
    let why = format!("all files are here; parsing {}", import.files.len());
    let import = Import { timeout: None, look: import.look.map(outdated), ..import };
    commands.iter().fold(parsing(moment, import, why), Advance::ask)
}

/// Waits for the results of the files. A search that an earlier version brought into this state has no deadline yet.
pub(super) fn parsing(moment: &Moment<'_>, mut import: Import, why: String) -> Advance<State> {
    if import.timeout.is_some() {
        return Decision::to(State::Parsing(import), why);
    }
    let timeout_id = moment.timeout_id();
    import.timeout = Some(timeout_id);
    let fired = SearchEvent::ParseTimeout(ParseTimeout { timeout_id });
    Decision::to(State::Parsing(import), why).schedule(TIMEOUT, moment.after(moment.deadlines.parse), &fired)
}
