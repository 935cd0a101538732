//! Importing files: the whole pipeline in this process, through the same functions that run in the cloud.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use embedded::{LocalUpload, PendingUpload, Store, UploadError};
use imports::manifest::ManifestFault;
use imports::{ProjectId, SearchId};
use local::output;
use service::{AnnouncedSearch, Error, NewFile, NewSearch, SearchService};
use tempfile::TempPath;

use crate::disk::Full;
use crate::report::{FileReport, Report};
use crate::workspace::{self, Workspace};
use crate::{args, interrupt, sources, stdin, watch};

/// A file to import.
struct Given {
    name: String,
    /// None until what comes from standard input is on the disk.
    path: Option<PathBuf>,
}

/// Imports files as one search. `true` when the search completed.
pub(crate) async fn run(args: args::Import) -> anyhow::Result<bool> {
    let began = Instant::now();
    let config = workspace::settings(&args.output.place)?;
    stdin::check(&args.files, args.name.as_deref())?;
    if let Some(fault) = args.source.read().and_then(|source| source.fault()) {
        return Err(fault.into());
    }
    let given: Vec<Given> = args.files.iter().map(|path| Given::of(path, &args)).collect();
    let mut files = match examine(&given) {
        Ok(files) => files,
        Err(errors) => return refuse(&args, &given, errors, None, began),
    };
    let workspace = Workspace::open(config).await?;
    let (paths, spooled) = spool(&workspace, &given, &mut files).await?;
    let runner = workspace.runner(&args.trial)?;
    let start = SearchService::over(&runner.ports(), &functions::SYSTEM)?;
    let project = workspace.project(args.project);
    let request = NewSearch { name: search_name(&args, &files), files };
    let prepared = match start.prepare(project, &request).await {
        Ok(prepared) => prepared,
        Err(Error::Invalid(faults)) => {
            let (errors, general) = by_file(&faults);
            return refuse(&args, &given, errors, general, began);
        }
        Err(error) => return Err(error.into()),
    };
    let search = prepared.announced.search_id;
    if let Some(home) = workspace.home() {
        // Before the search is announced: from here on `resume` finishes what is interrupted.
        remember(&home.store, &prepared.announced, project, &paths).await?;
    }
    // Elsewhere nobody could resume the upload, and the file goes when this value ends.
    let _spooled = match (workspace.home(), spooled) {
        (Some(_), Some(path)) => path.keep().map(|_| None)?,
        (_, spooled) => spooled,
    };
    let work = async {
        let uploaded = async {
            start.announce(&prepared).await?;
            say_source(&start, &workspace, search, &args).await?;
            upload_all(&workspace, &prepared.announced, &paths).await?;
            watch::until_ended(&runner, &workspace, search, !args.output.json).await
        };
        runner.run_until(uploaded).await?
    };
    let resume = || format!("`{}` finishes search {search}", interrupt::resume_command(&args.output.place));
    let over = interrupt::unless_interrupted(work, resume).await;
    let place = &args.output.place;
    let over = over.map_err(|error| Full::explain(error, &workspace, place))?;
    let report = Report::of(&workspace, search, began.elapsed()).await?;
    report.print(args.output.json)?;
    watch::tell(over, (&workspace, place), search).await?;
    Ok(report.is_completed())
}

impl Given {
    fn of(path: &Path, args: &args::Import) -> Self {
        if stdin::is_meant(path) {
            let name = args.name.clone().unwrap_or_else(|| stdin::NAME.to_owned());
            Self { name, path: None }
        } else {
            Self { name: name_of(path), path: Some(path.to_owned()) }
        }
    }
}

/// Where the files are, once what comes from standard input is on the disk too, with its size from then on. It goes with
/// the second value.
async fn spool(
    workspace: &Workspace,
    given: &[Given],
    files: &mut [NewFile],
) -> anyhow::Result<(Vec<PathBuf>, Option<TempPath>)> {
    let (mut paths, mut temporary) = (Vec::new(), None);
    for (given, file) in given.iter().zip(files) {
        if let Some(path) = &given.path {
            paths.push(path.clone());
            continue;
        }
        let config = &workspace.backend.config;
        let dir = workspace.home().map(|_| config.data_dir.as_path());
        let spooled = stdin::spool(dir, config.max_file_bytes);
        let spooled = interrupt::unless_interrupted(spooled, || "nothing was imported".to_owned()).await?;
        file.size_bytes = spooled.size_bytes;
        paths.push(spooled.path.to_path_buf());
        temporary = Some(spooled.path);
    }
    Ok((paths, temporary))
}

/// Writes down where the files come from, if somebody has said it.
async fn say_source(
    start: &SearchService,
    workspace: &Workspace,
    search: SearchId,
    args: &args::Import,
) -> anyhow::Result<()> {
    let Some(source) = args.source.read() else { return Ok(()) };
    let Some(job) = workspace.jobs()?.job(search).await? else { return Ok(()) };
    let files: Vec<_> = job.files.iter().map(|file| file.file_id).collect();
    sources::say(start, &job, files, Some(source)).await
}

/// Uploads the files of an announced search.
#[cfg_attr(
    not(feature = "services"),
    allow(unused_variables, reason = "a data directory remembers the paths by itself")
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

/// Notes the uploads of a search, so that `resume` finishes them.
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

/// What is wrong with some of the files, by their place on the command line.
type FileErrors = BTreeMap<usize, String>;

/// Looks at the files without reading them.
fn examine(given: &[Given]) -> Result<Vec<NewFile>, FileErrors> {
    let mut errors = FileErrors::new();
    let mut files = Vec::new();
    for (index, Given { name, path }) in given.iter().enumerate() {
        match path.as_deref().map_or(Ok(0), examine_one) {
            Ok(size_bytes) => files.push(NewFile { name: name.clone(), size_bytes }),
            Err(error) => {
                errors.insert(index, error);
            }
        }
    }
    if errors.is_empty() { Ok(files) } else { Err(errors) }
}

/// The file's size.
pub(crate) fn examine_one(path: &Path) -> Result<u64, String> {
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
    Ok(facts.len())
}

pub(crate) fn name_of(path: &Path) -> String {
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
    given: &[Given],
    mut errors: FileErrors,
    general: Option<String>,
    began: Instant,
) -> anyhow::Result<bool> {
    let files = given.iter().enumerate().map(|(index, file)| match errors.remove(&index) {
        Some(error) => FileReport::without_counts(file.name.clone(), "refused", Some(error)),
        None => FileReport::without_counts(file.name.clone(), "not imported", None),
    });
    Report::refused(files.collect(), general, began.elapsed()).print(args.output.json)?;
    Ok(false)
}
