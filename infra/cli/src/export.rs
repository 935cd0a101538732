//! Exporting the studies of a search, or of all searches of a project, for other programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use imports::{ParsedFile, ReadStudies, SearchId, StudyFilter};
use local::output;
use serde::Serialize;
use service::exported_studies::{Studies, entry};
use service::{ProjectAccess, SearchService};
use writers::{FileLimits, Format, Source, Writer};

use crate::damaged::Skipped;
use crate::find::{self, Pages};
use crate::words::counted;
use crate::workspace::{self, Workspace};
use crate::{args, files};

/// The longest name that a source gives its files, in characters.
const MOST_NAME: usize = 80;

/// A file that was read to its end.
struct Read {
    search: SearchId,
    file: ParsedFile,
    source: Source,
}

/// A file that was written.
#[derive(Debug, Serialize)]
struct Written {
    out: PathBuf,
    studies: u64,
    bytes: u64,
}

/// What it is written as.
#[derive(Clone, Copy)]
struct Shape {
    format: Format,
    studies: StudyFilter,
    split: Option<FileLimits>,
}

/// Writes the studies of files that were read to their end, in the order of searches, files and records.
pub(crate) async fn run(args: &args::Export) -> anyhow::Result<bool> {
    let workspace = Workspace::look_into(workspace::settings(&args.output.place)?).await?;
    let start = SearchService::over(workspace.ports(), &functions::SYSTEM)?;
    let mut reads = Vec::new();
    let searches = searches(&workspace, args).await?;
    if searches.is_empty() {
        bail!("nothing was written: {}", find::no_searches(&workspace, workspace.project(args.project)));
    }
    for search in searches {
        reads.extend(read(&start, search).await?);
    }
    let shape = args.shape();
    let mut skipped = Skipped::default();
    let written = write(&start.studies, reads, shape, (&args.out, &mut skipped)).await?;
    let is_whole = skipped.tell();
    if shape.format.is_unguarded() {
        output::remark(
            "do not open this file in a spreadsheet: it may run a text that begins like a formula (--format csv and xlsx are \
             safe)",
        );
    }
    if args.output.json {
        output::json(&written)?;
        return Ok(is_whole);
    }
    for Written { out, studies, .. } in written {
        output::line(&format!("{} written to {}", counted(studies, "study", "studies"), out.display()))?;
    }
    Ok(is_whole)
}

impl args::Export {
    fn shape(&self) -> Shape {
        let studies = match (self.unique, self.duplicates) {
            (true, _) => StudyFilter::Unique,
            (_, true) => StudyFilter::Duplicates,
            _ => StudyFilter::All,
        };
        let asked = self.format.or(self.tool.map(writers::Tool::format));
        let split = self.tool.and_then(writers::Tool::file_limits);
        Shape { format: asked.unwrap_or_default(), studies, split }
    }
}

/// The search that is meant, or all of a project in the order of their ids.
async fn searches(workspace: &Workspace, args: &args::Export) -> anyhow::Result<Vec<SearchId>> {
    let project = workspace.project(args.project);
    if let Some(text) = &args.search {
        return Ok(vec![find::search(workspace, project, text).await?.search_id]);
    }
    let jobs = workspace.jobs()?;
    let (mut pages, mut searches) = (Pages::of(&jobs, project), Vec::new());
    while let Some(page) = pages.next().await? {
        searches.extend(page.into_iter().map(|job| job.search_id));
    }
    searches.sort_unstable();
    Ok(searches)
}

/// The files of a search that were read to their end, and where they come from.
async fn read(start: &SearchService, search: SearchId) -> anyhow::Result<Vec<Read>> {
    // One that was deleted meanwhile has none.
    let Some(stored) = start.stored(&ProjectAccess::All, search).await? else { return Ok(Vec::new()) };
    let mut sources = start.labels(&stored.job).await?;
    let reads = stored.files.into_iter().map(|file| {
        let source = sources.remove(&file.file_id).unwrap_or_default();
        Read { search, file, source }
    });
    Ok(reads.collect())
}

async fn write(
    studies: &Arc<dyn ReadStudies>,
    reads: Vec<Read>,
    shape: Shape,
    (out, skipped): (&Path, &mut Skipped),
) -> anyhow::Result<Vec<Written>> {
    let Some(split) = shape.split else {
        let mut file = Output::create(out.to_owned(), shape.format)?;
        for read in &reads {
            copy((studies, skipped), read, shape, &mut file, &mut |_, _| Ok(None)).await?;
        }
        return Ok(vec![file.finish()?]);
    };
    files::make_folder(out)?;
    let mut written = Vec::new();
    for (name, reads) in by_source(reads) {
        let mut number = 1;
        let place = |number: u32| out.join(format!("{name}-{number}.{}", shape.format.ending()));
        let mut file = Output::create(place(number), shape.format)?;
        let mut next = |file: &Output, more: u64| {
            let is_full = split.is_full(file.studies, file.bytes, more);
            number += u32::from(is_full);
            is_full.then(|| Output::create(place(number), shape.format)).transpose()
        };
        for read in &reads {
            written.extend(copy((studies, skipped), read, shape, &mut file, &mut next).await?);
        }
        written.push(file.finish()?);
    }
    Ok(written)
}

/// Appends the studies of a file. Before a study, `next` may begin another output, which it is written to; those that were
/// finished are returned.
async fn copy(
    (studies, skipped): (&Arc<dyn ReadStudies>, &mut Skipped),
    read: &Read,
    shape: Shape,
    to: &mut Output,
    next: &mut (dyn FnMut(&Output, u64) -> anyhow::Result<Option<Output>> + Send),
) -> anyhow::Result<Vec<Written>> {
    let mut finished = Vec::new();
    let files = vec![read.file.clone()];
    let mut pages = Studies::of(Arc::clone(studies), read.search, files, shape.studies).skipping();
    while let Some((file, page)) = pages.next().await? {
        for study in &page {
            let mut bytes = Vec::new();
            to.writer.push(&entry(&file, &read.source, study), &mut bytes)?;
            if let Some(other) = next(to, bytes.len() as u64)? {
                finished.push(std::mem::replace(to, other).finish()?);
            }
            to.append(&bytes)?;
        }
    }
    for one in pages.skipped() {
        skipped.add(&format!("{} of search {}", one.file, read.search), one.record, &one.why);
    }
    Ok(finished)
}

/// The files by the names that their sources give: files of one source are in one place. A source that gives the name of
/// another one has a number added to it.
fn by_source(reads: Vec<Read>) -> Vec<(String, Vec<Read>)> {
    let mut sources: BTreeMap<Source, Vec<Read>> = BTreeMap::new();
    for read in reads {
        sources.entry(read.source.clone()).or_default().push(read);
    }
    let mut taken = BTreeSet::new();
    let named = sources.into_iter().map(|(source, reads)| {
        let name = name(&source);
        let others = (2..).map(|number| format!("{name} ({number})"));
        let free = std::iter::once(name.clone()).chain(others).find(|name| taken.insert(name.clone()));
        (free.unwrap_or(name), reads)
    });
    named.collect()
}

/// `medline-ovid-2026-05-17`: nothing that a file system gives a meaning.
fn name(source: &Source) -> String {
    let said = [&source.database, &source.platform, &source.searched_on];
    let said = said.into_iter().flatten().map(|text| text.to_lowercase()).collect::<Vec<_>>().join(" ");
    let words = said.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.collect::<Vec<_>>().join("-").chars().take(MOST_NAME).collect();
    if name.is_empty() { "unknown-source".to_owned() } else { name }
}

/// A file that is being written, and was not there before. One that is not finished is not left behind.
struct Output {
    writer: Writer,
    file: Option<BufWriter<fs::File>>,
    path: PathBuf,
    studies: u64,
    bytes: u64,
}

impl Output {
    fn create(path: PathBuf, format: Format) -> anyhow::Result<Self> {
        let file = Some(BufWriter::new(files::create(&path)?));
        Ok(Self { writer: Writer::new(format), file, path, studies: 0, bytes: 0 })
    }

    fn append(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.studies += 1;
        self.write(bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.bytes += bytes.len() as u64;
        let done = self.file.as_mut().map_or(Ok(()), |file| file.write_all(bytes));
        done.with_context(|| format!("writing to {} failed", self.path.display()))
    }

    fn finish(mut self) -> anyhow::Result<Written> {
        let mut end = Vec::new();
        std::mem::replace(&mut self.writer, Writer::new(Format::Jsonl)).finish(&mut end)?;
        self.write(&end)?;
        let done = self.file.as_mut().map_or(Ok(()), BufWriter::flush);
        done.with_context(|| format!("writing to {} failed", self.path.display()))?;
        self.file = None;
        Ok(Written { out: self.path.clone(), studies: self.studies, bytes: self.bytes })
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // The error is reported by whoever has it; an incomplete file would only add to the confusion.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_gives_a_name_that_every_file_system_takes() {
        let source = |database: &str, platform: &str| Source {
            database: Some(database.to_owned()),
            platform: Some(platform.to_owned()),
            searched_on: Some("2026-05-17".to_owned()),
        };
        assert_eq!(name(&source("MEDLINE", "Ovid")), "medline-ovid-2026-05-17");
        assert_eq!(name(&source("../../etc", "C:\\x\0")), "etc-c-x-2026-05-17");
        assert_eq!(name(&Source::default()), "unknown-source");
        assert!(name(&source(&"é".repeat(300), "x")).chars().count() <= MOST_NAME);
    }
}
