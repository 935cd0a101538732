//! Exports unreadable records as files that can be corrected and imported.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Context;
use imports::{FileId, Job, Outcome, ParsedFile, Part, PartBytes, Ports};
use local::output;
use references::{Limits, RecordExtractor};
use serde::Serialize;

use crate::workspace::{self, Workspace};
use crate::{args, files, find, words};

/// How many records are asked for at a time.
const PAGE: usize = 1_000;

/// A reference file with records that could not be read.
struct Unread {
    /// What it is called, and its place among the files of the search, from 1.
    name: String,
    number: usize,
    file: ParsedFile,
    /// The part that the records are in, where the file is packed.
    part: Option<Part>,
    records: Vec<Range<u64>>,
}

/// A file that was written.
#[derive(Serialize)]
struct Written {
    name: String,
    records: usize,
    /// How many more could not be read: only the first ones are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<NonZeroU64>,
    out: PathBuf,
}

/// Writes the unreadable records of one reference file to a file, or those of each to a folder.
pub(crate) async fn run(args: &args::Quarantine) -> anyhow::Result<bool> {
    let workspace = Workspace::look_into(workspace::settings(&args.output.place)?).await?;
    let job = find::search(&workspace, workspace.project(args.search.project), &args.search.search).await?;
    let (mut written, found) = (Vec::new(), unread(workspace.ports(), &job).await?);
    let mut kept = BTreeMap::new();
    found
        .iter()
        .for_each(|unread| *kept.entry(unread.file.file_id).or_insert(0) += unread.records.len() as u64);
    for (unread, out) in choose(found, args)? {
        export(workspace.ports(), &unread, &out).await?;
        let records = unread.records.len();
        let all = kept.get(&unread.file.file_id).copied().unwrap_or_default();
        let more = unreadable(&job, unread.file.file_id).saturating_sub(all);
        let more = NonZeroU64::new(more);
        written.push(Written { name: unread.name, records, more, out });
    }
    if args.output.json {
        output::json(&written)?;
    } else if written.is_empty() {
        output::line("every record was read; nothing was written")?;
    }
    for Written { name, records, more, out } in written.iter().filter(|_| !args.output.json) {
        let more = match more {
            None => String::new(),
            Some(more) => format!(" ({more} more could not be read, and are not kept)"),
        };
        let records = words::records(*records as u64);
        output::line(&format!("{records} of {name} written to {}{more}", out.display()))?;
    }
    Ok(true)
}

/// How many records of a file could not be read.
fn unreadable(job: &Job, file: FileId) -> u64 {
    let file = job.files.iter().find(|known| known.file_id == file);
    match file.and_then(|file| file.outcome.as_ref()) {
        Some(Outcome::Completed(counts)) => counts.quarantined,
        Some(Outcome::Failed { .. }) | None => 0,
    }
}

async fn unread(ports: &Ports, job: &Job) -> anyhow::Result<Vec<Unread>> {
    let studies = &ports.study_stores()?.read_studies;
    let (search, mut found) = (job.search_id, Vec::new());
    for file in studies.parsed(search).await? {
        let (mut records, mut after) = (BTreeMap::<_, (Option<Part>, Vec<Range<u64>>)>::new(), 0);
        loop {
            let page = studies.quarantined(search, file.file_id, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.record.number;
            for quarantined in page {
                let part = Part::of(&file.parts, quarantined.record.number).cloned();
                let found = records.entry(part.as_ref().map(|part| part.index)).or_insert((part, Vec::new()));
                found.1.push(quarantined.record.bytes);
            }
        }
        for (part, records) in records.into_values() {
            let place = job.files.iter().position(|known| known.file_id == file.file_id);
            let within = part.as_ref().filter(|part| !part.name.is_empty());
            let within = within.map(|part| format!(" ({})", part.name.replace('/', "_"))).unwrap_or_default();
            let name = job.file_name(file.file_id) + &within;
            let (number, file) = (place.map_or(0, |place| place + 1), file.clone());
            found.push(Unread { name, number, file, part, records });
        }
    }
    found.sort_by_key(|unread| unread.number);
    Ok(found)
}

/// Which of them are wanted, and where to.
fn choose(found: Vec<Unread>, args: &args::Quarantine) -> anyhow::Result<Vec<(Unread, PathBuf)>> {
    let names = found.iter().map(|unread| unread.name.as_str()).collect::<Vec<_>>().join(", ");
    let wanted: Vec<Unread> = match &args.file {
        None => found,
        Some(file) => {
            let wanted = named(found, file);
            if wanted.is_empty() && names.is_empty() {
                anyhow::bail!("every record of the search was read; there is nothing to export");
            }
            if wanted.is_empty() {
                anyhow::bail!("{file} has no records that could not be read; those that have: {names}");
            }
            if wanted.len() > 1 {
                let names = wanted.iter().map(|unread| unread.name.as_str()).collect::<Vec<_>>().join(", ");
                anyhow::bail!("there are {} files called {file}: {names}; choose one of these", wanted.len());
            }
            wanted
        }
    };
    if args.out.is_dir() {
        let within = |unread: Unread| {
            let out = args.out.join(unread.file_name());
            (unread, out)
        };
        return Ok(wanted.into_iter().map(within).collect());
    }
    if wanted.len() > 1 {
        anyhow::bail!(
            "several files have records that could not be read ({names}); choose one with --file, or let --out be a \
             folder that is there"
        );
    }
    Ok(wanted.into_iter().map(|unread| (unread, args.out.clone())).collect())
}

/// Those that a user calls like this: by what the program calls them, else by their id, by their own name, or by their
/// number.
fn named(mut found: Vec<Unread>, text: &str) -> Vec<Unread> {
    let ways: [&dyn Fn(&Unread) -> bool; 4] = [
        &|unread| unread.name == text,
        &|unread| unread.file.file_id.to_string() == text,
        &|unread| unread.file.name == text,
        &|unread| unread.number.to_string() == text,
    ];
    match ways.into_iter().find(|is_meant| found.iter().any(is_meant)) {
        Some(is_meant) => {
            found.retain(is_meant);
            found
        }
        None => Vec::new(),
    }
}

impl Unread {
    /// The name of a file for its records, with what tells it apart before the ending: `x (2).ris`. Names of reference
    /// files have no folder in them.
    fn file_name(&self) -> PathBuf {
        let own = Path::new(&self.file.name);
        let apart = self.name.strip_prefix(&self.file.name).unwrap_or_default();
        match (own.file_stem().and_then(|stem| stem.to_str()), own.extension().and_then(|end| end.to_str())) {
            (Some(stem), Some(end)) => PathBuf::from(format!("{stem}{apart}.{end}")),
            _ => PathBuf::from(&self.name),
        }
    }
}

/// Writes a file that was not there before; one that cannot be finished is not left behind.
async fn export(ports: &Ports, unread: &Unread, out: &Path) -> anyhow::Result<()> {
    let name = &unread.name;
    let mut file = files::create(out)?;
    let copied = copy(ports, unread, &mut file).await;
    if copied.is_err() {
        // The error is reported below; an incomplete file would only add to the confusion.
        let _ = fs::remove_file(out);
    }
    copied.with_context(|| format!("writing the records of {name} to {} failed", out.display()))
}

async fn copy(ports: &Ports, unread: &Unread, out: &mut impl Write) -> anyhow::Result<()> {
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
    // It was within the limits when it was read, whatever they are now.
    let limits = Limits { max_file_bytes: u64::MAX, max_records: u64::MAX, ..Limits::default() };
    let mut cutting = RecordExtractor::new(limits, unread.records.iter().cloned());
    while let Some(bytes) = stream.next().await? {
        out.write_all(&cutting.push(&bytes)?)?;
    }
    out.write_all(&cutting.finish()?)?;
    Ok(out.flush()?)
}
