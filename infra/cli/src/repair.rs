//! Repairing a search that has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use imports::{FileId, Job, Part, SearchId};
use local::output;
use messages::escape::escape_for_terminal;
use service::{FileRepair, NewFile, NewRepair, ProjectAccess, Refusal, Repair, SearchService};

use crate::record_numbers::RecordNumbers;
use crate::workspace::{self, Workspace};
use crate::{args, files, find, import, quarantine, watch};

/// The number of records requested at a time.
const PAGE: usize = 1_000;

/// Reads failed files of a search again, or reads other files instead. Returns `true` if the repair completed.
pub(crate) async fn run(args: &args::Repair) -> anyhow::Result<bool> {
    let began = Instant::now();
    let workspace = Workspace::reopen(workspace::settings(&args.output.location)?).await?;
    let job = find::search(&workspace, &args.search.project, &args.search.search).await?;
    let runner = workspace.runner(&args::FaultInjection::default())?;
    let service = SearchService::over(&runner.ports(), &functions::SYSTEM)?;
    let (request, paths) = request(&workspace, &service, &job, args).await?;
    let announced = match service.repair(&ProjectAccess::All, job.search_id, &request, None).await? {
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
    let begin = import::upload_all(&workspace, &announced, &paths);
    watch::run_to_end(&runner, &workspace, &args.output, search, began, begin).await
}

/// Returns the request, and the files to upload in the same order.
async fn request(
    workspace: &Workspace,
    service: &SearchService,
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
    let unread = if args.correct.is_empty() { Vec::new() } else { unread(workspace, service, job).await? };
    if args.records.is_some() && args.correct.len() > 2 {
        bail!("--records belongs to one --correct; correct the other files with another repair");
    }
    for (file, new) in pairs(&args.correct) {
        let (part, replacement) = (choose(job, &unread, &file)?, Some(new_file(&new)?));
        if part.is_packed && files.iter().any(|other| other.file_id == part.file_id) {
            bail!(
                "one repair corrects one part of {}; correct {} with another repair",
                escape_for_terminal(&job.file_name(part.file_id)),
                escape_for_terminal(&part.name)
            );
        }
        let records = part.announced(args.records.as_ref())?;
        files.push(FileRepair { file_id: part.file_id, replacement, records });
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

/// The unreadable records of a file, or of one part of it if it is an archive or a workbook.
struct UnreadPart {
    /// The name that `quarantine` prints.
    name: String,
    file_id: FileId,
    is_packed: bool,
    /// The records that are not corrected yet.
    records: BTreeSet<u64>,
    /// The records that are corrected, or are about to be, each with its repair.
    corrected: BTreeMap<u64, SearchId>,
}

impl UnreadPart {
    /// Returns the records that a file of corrected records contains. A file that was written before another repair
    /// also contains the records of that repair, which would then be imported twice. Therefore `given` has to name the
    /// records if there is such a repair.
    fn announced(&self, given: Option<&RecordNumbers>) -> anyhow::Result<BTreeSet<u64>> {
        let name = escape_for_terminal(&self.name);
        let not_again = |record: &u64, by: &SearchId| {
            anyhow!(
                "record {record} of {name} is corrected by import {by}, and would be imported twice; write the other \
                 records to a new file with `search-import quarantine`, and repeat the command with this file and the \
                 option `--records` that is printed"
            )
        };
        let Some(RecordNumbers(given)) = given else {
            let first = self.corrected.first_key_value();
            return first.map_or_else(|| Ok(self.records.clone()), |(record, by)| Err(not_again(record, by)));
        };
        match given.difference(&self.records).next() {
            None => Ok(given.clone()),
            Some(other) => Err(self.corrected.get(other).map_or_else(
                || anyhow!("record {other} of {name} is not among the stored unreadable records"),
                |by| not_again(other, by),
            )),
        }
    }
}

/// Returns the records that could not be read, by file and part.
async fn unread(
    workspace: &Workspace,
    service: &SearchService,
    job: &Job,
) -> anyhow::Result<Vec<UnreadPart>> {
    let studies = &workspace.study_stores()?.read_studies;
    let known = service.repairs(job).await?;
    let mut found = Vec::new();
    for file in studies.parsed(job.search_id).await? {
        let (mut parts, mut after) = (BTreeMap::new(), 0);
        loop {
            let page = studies.quarantined(job.search_id, file.file_id, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.record.number;
            for record in page.iter().map(|unread| unread.record.number) {
                let part = Part::of(&file.parts, record);
                let unread = parts.entry(part.map(|part| part.index)).or_insert_with(|| UnreadPart {
                    name: quarantine::name_of(job, file.file_id, part),
                    file_id: file.file_id,
                    is_packed: part.is_some(),
                    records: BTreeSet::new(),
                    corrected: BTreeMap::new(),
                });
                match known.corrected_by(job.search_id, file.file_id, record) {
                    None => drop(unread.records.insert(record)),
                    Some(by) => drop(unread.corrected.insert(record, by)),
                }
            }
        }
        found.extend(parts.into_values());
    }
    Ok(found)
}

/// Finds the part to correct by the name that `quarantine` prints, or by its file. If a file has unreadable records in
/// several parts, the command needs the name of one part, even if only one part is left: the corrected records must
/// belong to this part.
fn choose<'a>(job: &Job, unread: &'a [UnreadPart], text: &str) -> anyhow::Result<&'a UnreadPart> {
    let mut found: Vec<&UnreadPart> = unread.iter().filter(|part| part.name == text).collect();
    let mut name = text.to_owned();
    if found.is_empty() {
        let file_id = find::file(job, text)?;
        found = unread.iter().filter(|part| part.file_id == file_id).collect();
        name = job.file_name(file_id);
    }
    let name = escape_for_terminal(&name);
    let open: Vec<&UnreadPart> = found.iter().copied().filter(|part| !part.records.is_empty()).collect();
    match (open.as_slice(), found.len()) {
        ([], _) => bail!("all records of {name} are imported; there is nothing to correct"),
        ([part], 1) => Ok(*part),
        (several, _) => {
            let names: Vec<_> = several.iter().map(|part| escape_for_terminal(&part.name)).collect();
            bail!(
                "records of several parts of {name} were not imported; name the corrected part instead: {}",
                names.join(", ")
            )
        }
    }
}

fn refused(job: &Job, request: &NewRepair, refusal: &Refusal) -> anyhow::Error {
    let Refusal::Files(files) = refusal else {
        return anyhow::anyhow!(
            "import {} cannot be repaired: {refusal}; `search-import show` shows the outcome of each file",
            job.search_id
        );
    };
    // If the request names no files, the indices refer to the files of the search.
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
