//! Exporting unreadable records to files that can be corrected and imported.

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Context;
use imports::{FileId, Job, Outcome, ParsedFile, Part, PartBytes, Ports};
use local::output;
use references::{Limits, RecordExtractor};
use serde::Serialize;
use service::{SearchRepairs, SearchService};

use crate::files::IncompleteFile;
use crate::record_numbers::RecordNumbers;
use crate::workspace::{self, Workspace};
use crate::{args, find, humanize};

/// The number of records requested at a time.
const PAGE: usize = 1_000;

/// The unreadable records of a reference file.
struct UnreadableRecords {
    /// The name that this program prints for the file.
    name: String,
    /// The number of the file in the search, counted from 1.
    number: usize,
    file: ParsedFile,
    /// The part that contains the records, if the file is an archive or a workbook.
    part: Option<Part>,
    /// The positions of the records that no repair corrects, by their numbers.
    records: BTreeMap<u64, Range<u64>>,
    /// The number of records that are omitted because a repair corrects them.
    corrected: u64,
}

/// A written file, in JSON output.
#[derive(Serialize)]
struct OutputFile {
    name: String,
    records: usize,
    /// The number of further unreadable records, which are not stored because there are too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<NonZeroU64>,
    /// The `--records` of the repair that imports these records, if other records are omitted because a repair corrects
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    numbers: Option<String>,
    out: PathBuf,
}

/// Writes the unreadable records of one reference file to a file, or the unreadable records of each reference file to a
/// folder.
pub(crate) async fn run(args: &args::Quarantine) -> anyhow::Result<bool> {
    let workspace = Workspace::open_read_only(workspace::settings(&args.output.location)?).await?;
    let job = find::search(&workspace, &args.search.project, &args.search.search).await?;
    let repairs = SearchService::over(workspace.ports(), &functions::SYSTEM)?.repairs(&job).await?;
    let (mut written, mut found) = (Vec::new(), unreadable(workspace.ports(), &job, &repairs).await?);
    let mut stored = BTreeMap::new();
    for UnreadableRecords { file, records, corrected, .. } in &found {
        *stored.entry(file.file_id).or_insert(0) += records.len() as u64 + corrected;
    }
    found.retain(|unread| !unread.records.is_empty());
    for (unread, out) in choose(found, args)? {
        export(workspace.ports(), &unread, &out).await?;
        let records = unread.records.len();
        let all = stored.get(&unread.file.file_id).copied().unwrap_or_default();
        let more = count_unreadable(&job, unread.file.file_id).saturating_sub(all);
        let more = NonZeroU64::new(more);
        let numbers = unread.records.into_keys().collect();
        let numbers = (unread.corrected > 0).then(|| RecordNumbers(numbers).to_string());
        written.push(OutputFile { name: unread.name, records, more, numbers, out });
    }
    if args.output.json {
        output::json(&written)?;
    } else if written.is_empty() {
        output::line("all records are imported; nothing was written")?;
    }
    for OutputFile { name, records, more, numbers, out } in written.iter().filter(|_| !args.output.json) {
        let more = match more {
            None => String::new(),
            Some(more) => format!(" ({more} more could not be read and are not stored)"),
        };
        let others = match numbers {
            None => String::new(),
            Some(numbers) => {
                format!("; the others are corrected, so `repair` needs the option `--records {numbers}`")
            }
        };
        let records = humanize::records(*records as u64);
        output::line(&format!("{records} of {name} written to {}{more}{others}", out.display()))?;
    }
    Ok(true)
}

/// Returns the number of records of a file that could not be read.
fn count_unreadable(job: &Job, file: FileId) -> u64 {
    let file = job.files.iter().find(|known| known.file_id == file);
    match file.and_then(|file| file.outcome.as_ref()) {
        Some(Outcome::Completed(counts)) => counts.quarantined,
        Some(Outcome::Failed { .. }) | None => 0,
    }
}

async fn unreadable(
    ports: &Ports,
    job: &Job,
    repairs: &SearchRepairs,
) -> anyhow::Result<Vec<UnreadableRecords>> {
    let studies = &ports.study_stores()?.read_studies;
    let (search, mut found) = (job.search_id, Vec::new());
    for file in studies.parsed(search).await? {
        let index = job.files.iter().position(|known| known.file_id == file.file_id);
        let number = index.map_or(0, |index| index + 1);
        let (mut parts, mut after) = (BTreeMap::new(), 0);
        loop {
            let page = studies.quarantined(search, file.file_id, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.record.number;
            for record in page.into_iter().map(|quarantined| quarantined.record) {
                let part = Part::of(&file.parts, record.number);
                let unread = parts.entry(part.map(|part| part.index)).or_insert_with(|| UnreadableRecords {
                    name: name_of(job, file.file_id, part),
                    number,
                    file: file.clone(),
                    part: part.cloned(),
                    records: BTreeMap::new(),
                    corrected: 0,
                });
                match repairs.corrected_by(search, file.file_id, record.number) {
                    None => drop(unread.records.insert(record.number, record.bytes)),
                    Some(_) => unread.corrected += 1,
                }
            }
        }
        found.extend(parts.into_values());
    }
    found.sort_by_key(|unread| unread.number);
    Ok(found)
}

/// Returns the name that this program prints for a file, or for a part of an archive or a workbook.
pub(crate) fn name_of(job: &Job, file: FileId, part: Option<&Part>) -> String {
    let within = part.filter(|part| !part.name.is_empty());
    let within = within.map(|part| format!(" ({})", part.name.replace('/', "_"))).unwrap_or_default();
    job.file_name(file) + &within
}

/// Selects the requested files, each with its output file.
fn choose(
    found: Vec<UnreadableRecords>,
    args: &args::Quarantine,
) -> anyhow::Result<Vec<(UnreadableRecords, PathBuf)>> {
    let names = found.iter().map(|unread| unread.name.as_str()).collect::<Vec<_>>().join(", ");
    let wanted: Vec<UnreadableRecords> = match &args.file {
        None => found,
        Some(file) => {
            let wanted = named(found, file);
            if wanted.is_empty() && names.is_empty() {
                anyhow::bail!("all records are imported; there is nothing to export");
            }
            if wanted.is_empty() {
                anyhow::bail!("all records of {file} are imported; files with records not imported: {names}");
            }
            if wanted.len() > 1 {
                let names = wanted.iter().map(|unread| unread.name.as_str()).collect::<Vec<_>>().join(", ");
                anyhow::bail!("there are {} files called {file}: {names}; choose one of them", wanted.len());
            }
            wanted
        }
    };
    if args.out.is_dir() {
        let within = |unread: UnreadableRecords| {
            let out = args.out.join(unread.file_name());
            (unread, out)
        };
        return Ok(wanted.into_iter().map(within).collect());
    }
    if wanted.len() > 1 {
        anyhow::bail!(
            "several files have records not imported ({names}); choose one with --file, or name an existing folder with \
             --out"
        );
    }
    Ok(wanted.into_iter().map(|unread| (unread, args.out.clone())).collect())
}

/// Selects files by the name that this program prints, else by their id, by their own name, or by their number.
fn named(mut found: Vec<UnreadableRecords>, text: &str) -> Vec<UnreadableRecords> {
    let criteria: [&dyn Fn(&UnreadableRecords) -> bool; 4] = [
        &|unread| unread.name == text,
        &|unread| unread.file.file_id.to_string() == text,
        &|unread| unread.file.name == text,
        &|unread| unread.number.to_string() == text,
    ];
    match criteria.into_iter().find(|is_match| found.iter().any(is_match)) {
        Some(is_match) => {
            found.retain(is_match);
            found
        }
        None => Vec::new(),
    }
}

impl UnreadableRecords {
    /// Returns the name of the output file, which has its distinguishing suffix before the extension: `x (2).ris`.
    /// Names of reference files contain no folder.
    fn file_name(&self) -> PathBuf {
        let own = Path::new(&self.file.name);
        let suffix = self.name.strip_prefix(&self.file.name).unwrap_or_default();
        match (own.file_stem().and_then(|stem| stem.to_str()), own.extension().and_then(|end| end.to_str())) {
            (Some(stem), Some(end)) => PathBuf::from(format!("{stem}{suffix}.{end}")),
            _ => PathBuf::from(&self.name),
        }
    }
}

/// Writes a new file.
async fn export(ports: &Ports, unread: &UnreadableRecords, out: &Path) -> anyhow::Result<()> {
    let name = &unread.name;
    let mut file = IncompleteFile::create(out)?;
    let copied = copy(ports, unread, &mut file).await;
    copied.with_context(|| format!("writing the records of {name} to {} failed", out.display()))?;
    file.complete()?.publish()
}

async fn copy(ports: &Ports, unread: &UnreadableRecords, out: &mut impl Write) -> anyhow::Result<()> {
    let object = &unread.file.object;
    let objects = ports.objects.clone()?;
    let facts = objects.head(&object.bucket, &object.key, object.version.as_deref()).await?;
    match facts.map(|facts| facts.size_bytes) {
        None => anyhow::bail!("the uploaded file is gone"),
        Some(size) if size != object.size_bytes => anyhow::bail!("the uploaded file was replaced"),
        Some(_) => {}
    }
    let stream = PartBytes::open(&*objects, object, unread.part.as_ref(), 0).await?;
    let mut stream = stream.context("the uploaded file is gone")?;
    // The file was within the limits when it was imported, and they may have been lowered since.
    let limits = Limits { max_file_bytes: u64::MAX, max_records: u64::MAX, ..Limits::default() };
    let mut cutting = RecordExtractor::new(limits, unread.records.values().cloned());
    while let Some(bytes) = stream.next().await? {
        out.write_all(&cutting.push(&bytes)?)?;
    }
    out.write_all(&cutting.finish()?)?;
    Ok(())
}
