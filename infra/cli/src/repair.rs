//! Repairing a search that has ended.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use imports::{FileId, Job};
use local::output;
use messages::shown::shown;
use service::{FileRepair, NewFile, NewRepair, ProjectAccess, Refusal, Repair, SearchService};

use crate::disk::Full;
use crate::report::Report;
use crate::workspace::{self, Workspace};
use crate::{args, find, import, interrupt, watch};

/// How many records are asked for at a time.
const PAGE: usize = 1_000;

/// Reads anew what of a search has failed. `true` when that completed.
pub(crate) async fn run(args: &args::Repair) -> anyhow::Result<bool> {
    let began = Instant::now();
    let workspace = Workspace::reopen(workspace::settings(&args.output.place)?).await?;
    let job = find::search(&workspace, workspace.project(args.search.project), &args.search.search).await?;
    let runner = workspace.runner(&args::Trial::default())?;
    let start = SearchService::over(&runner.ports(), &functions::SYSTEM)?;
    let (request, paths) = request(&workspace, &start, &job, args).await?;
    let announced = match start.repair(&ProjectAccess::All, job.search_id, &request, None).await? {
        Repair::Announced(announced) => announced,
        Repair::Refused(refusal) => return Err(refused(&job, &request, &refusal)),
        Repair::Unknown => {
            bail!("search {} was deleted in the meantime; nothing is left to do", job.search_id)
        }
    };
    if let Some(home) = workspace.home() {
        import::remember(&home.store, &announced, job.project_id, &paths).await?;
    }
    let search = announced.search_id;
    if !args.output.json {
        output::line(&format!("search {search} repairs search {}", job.search_id))?;
    }
    let work = async {
        let uploaded = async {
            import::upload_all(&workspace, &announced, &paths).await?;
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

/// What is asked for, and the files to upload in its order.
async fn request(
    workspace: &Workspace,
    start: &SearchService,
    job: &Job,
    args: &args::Repair,
) -> anyhow::Result<(NewRepair, Vec<PathBuf>)> {
    let (mut files, mut paths) = (Vec::new(), Vec::new());
    for again in &args.again {
        files.push(FileRepair { file_id: named(job, again)?, replacement: None, records: BTreeSet::new() });
    }
    let pairs = |given: &[String]| -> Vec<(String, PathBuf)> {
        given.chunks_exact(2).map(|pair| (pair[0].clone(), PathBuf::from(&pair[1]))).collect()
    };
    for (file, new) in pairs(&args.replace) {
        let (file_id, replacement) = (named(job, &file)?, Some(examine(&new)?));
        files.push(FileRepair { file_id, replacement, records: BTreeSet::new() });
        paths.push(new);
    }
    for (file, new) in pairs(&args.mend) {
        let (file_id, replacement) = (named(job, &file)?, Some(examine(&new)?));
        let records = unread(workspace, start, job, file_id).await?;
        if records.is_empty() {
            bail!(
                "{} has no records left that could not be read; there is nothing to repair",
                shown(&job.file_name(file_id))
            );
        }
        files.push(FileRepair { file_id, replacement, records });
        paths.push(new);
    }
    Ok((NewRepair { name: args.search_name.clone(), files }, paths))
}

fn examine(path: &Path) -> anyhow::Result<NewFile> {
    let size_bytes = import::examine_one(path)
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("{} cannot be uploaded", path.display()))?;
    Ok(NewFile { name: import::name_of(path), size_bytes })
}

/// The file that a user means: by what the program calls it, its id, or its place.
pub(crate) fn named(job: &Job, text: &str) -> anyhow::Result<FileId> {
    let names = job.file_names();
    let mut files = job.files.iter().zip(&names).zip(1..);
    let is_meant = |((file, name), place): &((&imports::JobFile, &String), usize)| {
        *name == text || file.file_id.to_string() == text || place.to_string() == text
    };
    match files.find(is_meant) {
        Some(((file, _), _)) => Ok(file.file_id),
        None => {
            let names: Vec<String> = names.iter().map(|name| shown(name).to_string()).collect();
            bail!("the search has no file {}; its files are {}", shown(text), names.join(", "))
        }
    }
}

/// The records of a file that could not be read, and that nobody has mended.
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
        records.extend(numbers.filter(|record| known.is_mended(job.search_id, file_id, *record).is_none()));
    }
}

fn refused(job: &Job, request: &NewRepair, refusal: &Refusal) -> anyhow::Error {
    let Refusal::Files(files) = refusal else {
        return anyhow::anyhow!(
            "search {} cannot be repaired: {refusal}; `search-import show` says what became of its files",
            job.search_id
        );
    };
    // Without a request, the places are those in the search.
    let file_id = |place: usize| {
        let asked = request.files.get(place).map(|file| file.file_id);
        asked.or_else(|| job.files.get(place).map(|file| file.file_id))
    };
    let one = |(place, why): &(usize, _)| {
        let name = file_id(*place).map(|file| job.file_name(file)).unwrap_or_default();
        format!("{}: {why}", shown(&name))
    };
    let files: Vec<String> = files.iter().map(one).collect();
    anyhow::anyhow!(
        "search {} cannot be repaired: {}; `search-import show` says what became of its files",
        job.search_id,
        files.join("; ")
    )
}
