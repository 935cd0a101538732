//! Repairing a search that has ended.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use imports::{FileId, Job};
use local::output;
use messages::escape::escape_for_terminal;
use service::{FileRepair, NewFile, NewRepair, ProjectAccess, Refusal, Repair, SearchService};

use crate::disk::DiskFull;
use crate::report::Report;
use crate::workspace::{self, Workspace};
use crate::{args, files, find, import, interrupt, watch};

/// The number of records requested at a time.
const PAGE: usize = 1_000;

/// Reads failed files of a search again, or reads other files instead. Returns `true` if the repair completed.
pub(crate) async fn run(args: &args::Repair) -> anyhow::Result<bool> {
    let began = Instant::now();
    let workspace = Workspace::reopen(workspace::settings(&args.output.location)?).await?;
    let job =
        find::search(&workspace, workspace.project(&args.search.project).await?, &args.search.search).await?;
    let runner = workspace.runner(&args::FaultInjection::default())?;
    let start = SearchService::over(&runner.ports(), &functions::SYSTEM)?;
    let (request, paths) = request(&workspace, &start, &job, args).await?;
    let announced = match start.repair(&ProjectAccess::All, job.search_id, &request, None).await? {
        Repair::Announced(announced) => announced,
        Repair::Refused(refusal) => return Err(refused(&job, &request, &refusal)),
        Repair::Unknown => {
            bail!("import {} was deleted in the meantime; there is nothing left to do", job.search_id)
        }
    };
    if let Some(home) = workspace.home() {
        import::remember(&home.store, &announced, job.project_id, &paths).await?;
    }
    let search = announced.search_id;
    if !args.output.json {
        output::line(&format!("import {search} repairs import {}", job.search_id))?;
    }
    let work = async {
        let uploaded = async {
            import::upload_all(&workspace, &announced, &paths).await?;
            watch::until_ended(&runner, &workspace, search, !args.output.json).await
        };
        runner.run_until(uploaded).await?
    };
    let resume =
        || format!("`{}` finishes import {search}", interrupt::resume_command(&args.output.location));
    let outcome = interrupt::unless_interrupted(work, resume).await;
    let location = &args.output.location;
    let outcome = outcome.map_err(|error| DiskFull::explain(error, &workspace, location))?;
    let report = Report::of(&workspace, search, began.elapsed()).await?;
    report.print(args.output.json)?;
    watch::report(outcome, &workspace, location, search).await?;
    Ok(report.is_completed())
}

/// Returns the request, and the files to upload in the same order.
async fn request(
    workspace: &Workspace,
    start: &SearchService,
    job: &Job,
    args: &args::Repair,
) -> anyhow::Result<(NewRepair, Vec<PathBuf>)> {
    let (mut files, mut paths) = (Vec::new(), Vec::new());
    for again in &args.again {
        files.push(FileRepair {
            file_id: find::file(job, again)?,
            replacement: None,
            records: BTreeSet::new(),
        });
    }
    let pairs = |given: &[String]| -> Vec<(String, PathBuf)> {
        given.chunks_exact(2).map(|pair| (pair[0].clone(), PathBuf::from(&pair[1]))).collect()
    };
    for (file, new) in pairs(&args.replace) {
        let (file_id, replacement) = (find::file(job, &file)?, Some(new_file(&new)?));
        files.push(FileRepair { file_id, replacement, records: BTreeSet::new() });
        paths.push(new);
    }
    for (file, new) in pairs(&args.correct) {
        let (file_id, replacement) = (find::file(job, &file)?, Some(new_file(&new)?));
        let records = unread(workspace, start, job, file_id).await?;
        if records.is_empty() {
            bail!(
                "all records of {} are imported; there is nothing to correct",
                escape_for_terminal(&job.file_name(file_id))
            );
        }
        files.push(FileRepair { file_id, replacement, records });
        paths.push(new);
    }
    Ok((NewRepair { name: args.search_name.clone(), files }, paths))
}

fn new_file(path: &Path) -> anyhow::Result<NewFile> {
    let size_bytes = files::size(path)
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("{} cannot be uploaded", path.display()))?;
    Ok(NewFile { name: files::name_of(path), size_bytes })
}

/// Returns the records of a file that could not be read and are not corrected yet.
async fn unread(
    workspace: &Workspace,
    start: &SearchService,
    job: &Job,
    file_id: FileId,
) -> anyhow::Result<BTreeSet<u64>> {
    let studies = &workspace.study_stores()?.read_studies;
    let known = start.repairs(job).await?;
    let (mut records, mut after) = (BTreeSet::new(), 0);
    loop {
        let page = studies.quarantined(job.search_id, file_id, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(records) };
        after = last.record.number;
        let numbers = page.iter().map(|unread| unread.record.number);
        records
            .extend(numbers.filter(|record| known.corrected_by(job.search_id, file_id, *record).is_none()));
    }
}

fn refused(job: &Job, request: &NewRepair, refusal: &Refusal) -> anyhow::Error {
    let Refusal::Files(files) = refusal else {
        return anyhow::anyhow!(
            "import {} cannot be repaired: {refusal}; `search-import show` shows the outcome of each file",
            job.search_id
        );
    };
    // If the request names no files, the indices are those of the search's files.
    let file_id = |index: usize| {
        let requested = request.files.get(index).map(|file| file.file_id);
        requested.or_else(|| job.files.get(index).map(|file| file.file_id))
    };
    let one = |(index, why): &(usize, _)| {
        let name = file_id(*index).map(|file| job.file_name(file)).unwrap_or_default();
        format!("{}: {why}", escape_for_terminal(&name))
    };
    let files: Vec<String> = files.iter().map(one).collect();
    anyhow::anyhow!(
        "import {} cannot be repaired: {}; `search-import show` shows the outcome of each file",
        job.search_id,
        files.join("; ")
    )
}
