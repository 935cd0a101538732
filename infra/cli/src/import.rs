//! Importing files: the whole pipeline in this process, through the same functions that run in the cloud.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use embedded::{LocalUpload, PendingUpload, Store, UploadError};
use functions::start_upload::{Error, NewFile, NewSearch, Prepared, StartUpload};
use imports::ProjectId;
use imports::manifest::ManifestFault;
use local::output;
use uuid::Uuid;

use crate::args;
use crate::report::{FileReport, Report};
use crate::watch;
use crate::workspace::{self, Workspace};

/// The project of imports that name none.
const DEFAULT_PROJECT: ProjectId = ProjectId::from_uuid(Uuid::nil());

/// Imports files as one search. `true` when the search completed.
pub(crate) async fn run(args: args::Import) -> anyhow::Result<bool> {
    let began = Instant::now();
    let config = workspace::settings(&args.output.place)?;
    let files = match examine(&args.files) {
        Ok(files) => files,
        Err(errors) => return refuse(&args, errors, None, began),
    };
    let workspace = Workspace::open(config).await?;
    let runner = workspace.runner(&args.trial)?;
    let start = StartUpload::over(&runner.ports())?;
    let request = NewSearch { name: search_name(&args, &files), files };
    let prepared = match start.prepare(args.project.unwrap_or(DEFAULT_PROJECT), &request).await {
        Ok(prepared) => prepared,
        Err(Error::Invalid(faults)) => {
            let (errors, general) = by_file(&faults);
            return refuse(&args, errors, general, began);
        }
        Err(error) => return Err(error.into()),
    };
    let search = prepared.announced.search_id;
    if let Some(home) = workspace.home() {
        // Before the search is announced: from here on `resume` finishes what is interrupted.
        remember(&home.store, &prepared, &args).await?;
    }
    let work = async {
        announce_and_upload(&start, &workspace, &prepared, &args.files).await?;
        watch::until_ended(&runner, &workspace.jobs()?, search, !args.output.json).await
    };
    let ended = tokio::select! {
        ended = runner.run_until(work) => ended??,
        _ = tokio::signal::ctrl_c() => {
            anyhow::bail!("interrupted; `search-import resume` finishes search {search}");
        }
    };
    if !ended {
        output::remark("the search waits for something that is not here");
    }
    let report = Report::of(&workspace, search, began.elapsed()).await?;
    report.print(args.output.json)?;
    Ok(report.is_completed())
}

#[cfg_attr(
    not(feature = "services"),
    allow(unused_variables, reason = "a data directory remembers the paths by itself")
)]
async fn announce_and_upload(
    start: &StartUpload,
    workspace: &Workspace,
    prepared: &Prepared,
    paths: &[PathBuf],
) -> anyhow::Result<()> {
    start.announce(prepared).await?;
    let announced = &prepared.announced;
    if let Some(home) = workspace.home() {
        let pending = home.store.pending_uploads().await?;
        for pending in pending.into_iter().filter(|pending| pending.search_id == announced.search_id) {
            upload(&home.store, &pending).await?;
        }
        return Ok(());
    }
    #[cfg(feature = "services")]
    for (file, path) in announced.files.iter().zip(paths) {
        crate::upload::post(workspace.host(), &file.upload, path).await?;
    }
    Ok(())
}

/// Uploads one file and forgets it. One that is stored already is forgotten too: a crash came in between. So is one
/// whose form has expired: its search has timed out.
pub(crate) async fn upload(store: &Store, pending: &PendingUpload) -> anyhow::Result<()> {
    match store.upload_file(&pending.upload.form, &pending.upload.path).await {
        Ok(_) | Err(UploadError::Used) => {}
        Err(error @ UploadError::Expired { .. }) => output::complain(&error.to_string()),
        Err(error) => {
            let path = pending.upload.path.display();
            return Err(anyhow::Error::new(error).context(format!("{path}: uploading failed")));
        }
    }
    Ok(store.upload_done(pending.search_id, pending.upload.file_id).await?)
}

async fn remember(store: &Store, prepared: &Prepared, args: &args::Import) -> anyhow::Result<()> {
    let announced = &prepared.announced;
    let uploads = announced
        .files
        .iter()
        .zip(&args.files)
        .map(|(file, path)| {
            let path = fs::canonicalize(path)?;
            Ok(LocalUpload { file_id: file.file_id, path, form: file.upload.clone() })
        })
        .collect::<std::io::Result<Vec<_>>>()?;
    store.remember_uploads(announced.search_id, args.project.unwrap_or(DEFAULT_PROJECT), uploads).await?;
    Ok(())
}

fn search_name(args: &args::Import, files: &[NewFile]) -> String {
    let first = || files.first().map_or_else(String::new, |file| file.name.clone());
    args.search_name.clone().unwrap_or_else(first)
}

/// What is wrong with some of the files, by their place on the command line.
type FileErrors = BTreeMap<usize, String>;

/// Looks at the files without reading them.
fn examine(paths: &[PathBuf]) -> Result<Vec<NewFile>, FileErrors> {
    let mut errors = FileErrors::new();
    let mut files = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        match examine_one(path) {
            Ok(file) => files.push(file),
            Err(error) => {
                errors.insert(index, error);
            }
        }
    }
    if errors.is_empty() { Ok(files) } else { Err(errors) }
}

fn examine_one(path: &Path) -> Result<NewFile, String> {
    let file = fs::File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => format!("the file cannot be opened: {error}"),
    })?;
    let facts = file.metadata().map_err(|error| format!("the file cannot be examined: {error}"))?;
    if facts.is_dir() {
        return Err("it is a directory, not a file".to_owned());
    }
    if !facts.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    Ok(NewFile { name: name_of(path), size_bytes: facts.len() })
}

fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn by_file(faults: &[ManifestFault]) -> (FileErrors, Option<String>) {
    let mut errors = FileErrors::new();
    let mut general = None;
    for fault in faults {
        match fault.file_index() {
            Some(index) => {
                errors.entry(index).or_insert_with(|| fault.to_string());
            }
            None => general = general.or(Some(fault.to_string())),
        }
    }
    (errors, general)
}

fn refuse(
    args: &args::Import,
    mut errors: FileErrors,
    general: Option<String>,
    began: Instant,
) -> anyhow::Result<bool> {
    let files = args.files.iter().enumerate().map(|(index, path)| match errors.remove(&index) {
        Some(error) => FileReport::without_counts(name_of(path), "refused", Some(error)),
        None => FileReport::without_counts(name_of(path), "not imported", None),
    });
    Report::refused(files.collect(), general, began.elapsed()).print(args.output.json)?;
    Ok(false)
}
