//! Importing files: runs the whole pipeline in this process, through the same functions as on Lambda.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use embedded::{LocalUpload, PendingUpload, Store, UploadError};
use imports::manifest::ManifestFault;
use imports::{JobFile, ProjectId, SearchId};
use local::output;
use service::sources::NewSource;
use service::{AnnouncedSearch, Error, NewFile, NewSearch, SearchService};
use tempfile::TempPath;

use crate::report::{FileReport, Report};
use crate::reviews;
use crate::workspace::{self, Workspace};
use crate::{args, files, interrupt, sources, stdin, watch};

/// A file to import.
struct InputFile {
    name: String,
    /// `None` for standard input until it is spooled to the disk.
    path: Option<PathBuf>,
}

/// Imports files as one search. Returns `true` if the import completed.
pub(crate) async fn run(args: args::Import) -> anyhow::Result<bool> {
    let began = Instant::now();
    let config = workspace::settings(&args.output.location)?;
    stdin::check(&args.files, args.name.as_deref())?;
    if let Some(fault) = args.source.read().and_then(|source| source.fault()) {
        return Err(fault.into());
    }
    let inputs: Vec<InputFile> = args.files.iter().map(|path| InputFile::of(path, &args)).collect();
    let mut files = match examine(&inputs) {
        Ok(files) => files,
        Err(errors) => return refuse(&args, &inputs, errors, None, began),
    };
    let workspace = Workspace::open(config).await?;
    let (paths, spooled) = spool(&workspace, &inputs, &mut files).await?;
    let runner = workspace.runner(&args.faults)?;
    let service = SearchService::over(&runner.ports(), &functions::SYSTEM)?;
    let project = match args.project.project.as_ref().and_then(|review| review.name.as_deref()) {
        Some(name) => reviews::create(&service, name).await?.review.project_id,
        None => workspace.project(&args.project).await?,
    };
    if service.review(project).await?.is_some_and(|review| review.archived_at.is_some()) {
        output::remark("the review is archived; `search-import reviews restore` lists it again");
    }
    let request = NewSearch { name: search_name(&args, &files), files };
    let prepared = match service.prepare(project, &request).await {
        Ok(prepared) => prepared,
        Err(Error::Invalid(faults)) => {
            let (errors, general) = by_file(&faults);
            return refuse(&args, &inputs, errors, general, began);
        }
        Err(error) => return Err(error.into()),
    };
    let search = prepared.announced.search_id;
    if let Some(home) = workspace.home() {
        // Store the paths before the search is announced, so that `resume` can finish an interrupted upload.
        remember(&home.store, &prepared.announced, project, &paths).await?;
    }
    // A data directory keeps the spooled file for `resume`. Services cannot resume the upload, so the file is deleted
    // when this value is dropped.
    let _spooled = match (workspace.home(), spooled) {
        (Some(_), Some(path)) => path.keep().map(|_| None)?,
        (_, spooled) => spooled,
    };
    let begin = async {
        service.announce(&prepared).await?;
        set_source(&service, &workspace, search, &args).await?;
        upload_all(&workspace, &prepared.announced, &paths).await
    };
    watch::run_to_end(&runner, &workspace, &args.output, search, began, begin).await
}

impl InputFile {
    fn of(path: &Path, args: &args::Import) -> Self {
        if stdin::is_stdin(path) {
            let name = args.name.clone().unwrap_or_else(|| stdin::NAME.to_owned());
            Self { name, path: None }
        } else {
            Self { name: files::name_of(path), path: Some(path.to_owned()) }
        }
    }
}

/// Returns the paths of the files, after spooling standard input to the disk and storing its size in `files`. The
/// spooled file is deleted when the second value is dropped.
async fn spool(
    workspace: &Workspace,
    inputs: &[InputFile],
    files: &mut [NewFile],
) -> anyhow::Result<(Vec<PathBuf>, Option<TempPath>)> {
    let (mut paths, mut temporary) = (Vec::new(), None);
    for (input, file) in inputs.iter().zip(files) {
        if let Some(path) = &input.path {
            paths.push(path.clone());
            continue;
        }
        let config = &workspace.backend.config;
        let dir = workspace.home().map(|_| config.data_dir.as_path());
        let spooled = stdin::spool(dir, config.search.max_file_bytes);
        let spooled = interrupt::unless_interrupted(spooled, || "nothing was imported".to_owned()).await?;
        file.size_bytes = spooled.size_bytes;
        paths.push(spooled.path.to_path_buf());
        temporary = Some(spooled.path);
    }
    Ok((paths, temporary))
}

/// Stores the source of the files, if the command line has one.
async fn set_source(
    service: &SearchService,
    workspace: &Workspace,
    search: SearchId,
    args: &args::Import,
) -> anyhow::Result<()> {
    let Some(source) = args.source.read() else { return Ok(()) };
    let Some(job) = workspace.jobs()?.job(search).await? else { return Ok(()) };
    let new = |file: &JobFile| NewSource { file_id: file.file_id, source: Some(source.clone()) };
    sources::store(service, &job, job.files.iter().map(new).collect()).await
}

/// Uploads the files of an announced search.
#[cfg_attr(
    not(feature = "services"),
    allow(unused_variables, reason = "a data directory stores the paths itself")
)]
pub(crate) async fn upload_all(
    workspace: &Workspace,
    announced: &AnnouncedSearch,
    paths: &[PathBuf],
) -> anyhow::Result<()> {
    if let Some(home) = workspace.home() {
        let pending = home.store.pending_uploads().await?;
        for pending in pending.into_iter().filter(|pending| pending.search_id == announced.search_id) {
            upload(&home.store, &pending).await?;
        }
        return stdin::tidy(&home.store, &workspace.backend.config.data_dir).await;
    }
    #[cfg(feature = "services")]
    for (file, path) in announced.files.iter().zip(paths) {
        crate::upload::post(workspace.host(), &file.upload, path).await?;
    }
    Ok(())
}

/// Uploads one file and removes its pending upload. Also removes it if the file is stored already, because an earlier
/// attempt crashed in between, and if its form has expired, because the search has timed out.
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

/// Stores the pending uploads of a search, so that `resume` can finish them.
pub(crate) async fn remember(
    store: &Store,
    announced: &AnnouncedSearch,
    project: ProjectId,
    paths: &[PathBuf],
) -> anyhow::Result<()> {
    let uploads = announced
        .files
        .iter()
        .zip(paths)
        .map(|(file, path)| {
            let path = fs::canonicalize(path)?;
            Ok(LocalUpload { file_id: file.file_id, path, form: file.upload.clone() })
        })
        .collect::<std::io::Result<Vec<_>>>()?;
    Ok(store.remember_uploads(announced.search_id, project, uploads).await?)
}

fn search_name(args: &args::Import, files: &[NewFile]) -> String {
    let first = || files.first().map_or_else(String::new, |file| file.name.clone());
    args.search_name.clone().unwrap_or_else(first)
}

/// Errors of files, by their index on the command line.
type FileErrors = BTreeMap<usize, String>;

/// Checks the files without reading them.
fn examine(inputs: &[InputFile]) -> Result<Vec<NewFile>, FileErrors> {
    let mut errors = FileErrors::new();
    let mut files = Vec::new();
    for (index, InputFile { name, path }) in inputs.iter().enumerate() {
        let size = match path.as_deref() {
            None => Ok(0),
            Some(path) if path.to_str().is_none() => Err("its path is not in Unicode; rename it".to_owned()),
            Some(path) => files::size(path),
        };
        match size {
            Ok(size_bytes) => files.push(NewFile { name: name.clone(), size_bytes }),
            Err(error) => {
                errors.insert(index, error);
            }
        }
    }
    if errors.is_empty() { Ok(files) } else { Err(errors) }
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
    inputs: &[InputFile],
    mut errors: FileErrors,
    general: Option<String>,
    began: Instant,
) -> anyhow::Result<bool> {
    let files = inputs.iter().enumerate().map(|(index, file)| match errors.remove(&index) {
        Some(error) => FileReport::without_counts(file.name.clone(), "refused", Some(error)),
        None => FileReport::without_counts(file.name.clone(), "not imported", None),
    });
    Report::refused(files.collect(), general, began.elapsed()).print(args.output.json)?;
    Ok(false)
}
