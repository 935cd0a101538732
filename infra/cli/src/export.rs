//! Exporting the studies of a search, or of all searches of a project, for other programs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use imports::{Jobs, ParsedFile, ReadStudies, SearchId, StudyFilter};
use local::output;
use serde::Serialize;
use service::exported_studies::{DuplicateMerger, FileToExport, Studies, entry};
use service::selection::StudySelection;
use service::{ProjectAccess, SearchService};
use writers::{FileLimits, Format, Source, Writer};

use crate::args;
use crate::damaged::DamagedStudies;
use crate::files::{self, CompleteFile, IncompleteFile};
use crate::find::{self, Pages};
use crate::humanize::counted;
use crate::workspace::{self, Workspace};

/// The maximum length of a file name that is derived from a source, in characters.
const MAX_NAME: usize = 80;

/// A file that was read to its end, with its source.
struct ImportedFile {
    search: SearchId,
    file: ParsedFile,
    source: Source,
}

/// A written file, in JSON output.
#[derive(Debug, Serialize)]
struct OutputFile {
    out: PathBuf,
    studies: u64,
    bytes: u64,
}

/// The selection and the format of the studies.
#[derive(Clone, Copy)]
struct Shape {
    format: Format,
    studies: StudyFilter,
    split: Option<FileLimits>,
    merged: bool,
}

/// Exports the studies of files that were read to their end, ordered by search, file and record.
pub(crate) async fn run(args: &args::Export) -> anyhow::Result<bool> {
    let workspace = Workspace::open_read_only(workspace::settings(&args.output.location)?).await?;
    let service = SearchService::over(workspace.ports(), &functions::SYSTEM)?;
    let mut files = Vec::new();
    let searches = searches(&workspace, args).await?;
    if searches.is_empty() {
        bail!("nothing was written: {}", find::no_searches(&workspace, &args.project));
    }
    for search in searches {
        files.extend(imported_files(&service, search).await?);
    }
    let shape = args.shape();
    let mut exporter = Exporter {
        studies: Arc::clone(&service.studies),
        jobs: service.jobs.clone(),
        shape,
        damaged: DamagedStudies::default(),
    };
    let written = exporter.write(files, &args.out).await?;
    let is_whole = exporter.damaged.report();
    if shape.format.is_unguarded() {
        output::remark(
            "do not open this file in a spreadsheet, which may run text that starts like a formula; --format csv and xlsx \
             are safe",
        );
    }
    if args.output.json {
        output::json(&written)?;
        return Ok(is_whole);
    }
    for OutputFile { out, studies, .. } in written {
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
        let format = self.format.or(self.tool.map(writers::Tool::format)).unwrap_or_default();
        let split = self.tool.and_then(writers::Tool::file_limits);
        Shape { format, studies, split, merged: self.merged }
    }
}

/// Returns the requested search and its repairs, or all searches of a project ordered by their ids.
async fn searches(workspace: &Workspace, args: &args::Export) -> anyhow::Result<Vec<SearchId>> {
    if let Some(text) = &args.search {
        let job = find::search(workspace, &args.project, text).await?;
        let jobs = find::with_repairs(workspace, job).await?;
        return Ok(jobs.into_iter().map(|job| job.search_id).collect());
    }
    let project = workspace.project(&args.project).await?;
    let jobs = workspace.jobs()?;
    let (mut pages, mut searches) = (Pages::of(&jobs, project), Vec::new());
    while let Some(page) = pages.next().await? {
        searches.extend(page.into_iter().map(|job| job.search_id));
    }
    searches.sort_unstable();
    Ok(searches)
}

/// Returns the files of a search that were read to their end, with their sources.
async fn imported_files(service: &SearchService, search: SearchId) -> anyhow::Result<Vec<ImportedFile>> {
    // The search may have been deleted since it was listed.
    let Some(stored) = service.stored(&ProjectAccess::All, search).await? else { return Ok(Vec::new()) };
    let mut sources = service.labels(&stored.job).await?;
    let files = stored.files.into_iter().map(|file| {
        let source = sources.remove(&file.file_id).unwrap_or_default();
        ImportedFile { search, file, source }
    });
    Ok(files.collect())
}

/// Writes studies to files.
struct Exporter {
    studies: Arc<dyn ReadStudies>,
    jobs: Jobs,
    shape: Shape,
    damaged: DamagedStudies,
}

impl Exporter {
    async fn write(&mut self, files: Vec<ImportedFile>, out: &Path) -> anyhow::Result<Vec<OutputFile>> {
        let format = self.shape.format;
        let Some(split) = self.shape.split else {
            let mut output = Output::create(out.to_owned(), format)?;
            for file in &files {
                self.copy(file, &mut output, &mut |_, _| Ok(None)).await?;
            }
            return publish(vec![output.finish()?]);
        };
        files::create_folder(out)?;
        // No file gets its final name before all are complete, because a part of them would look like all of them.
        let mut written = Vec::new();
        for (name, files) in by_source(files) {
            let mut number = 1;
            let path = |number: u32| out.join(format!("{name}-{number}.{}", format.ending()));
            let mut output = Output::create(path(number), format)?;
            let mut next = |output: &Output, more: u64| {
                let is_full = split.is_full(output.studies, output.bytes, more);
                number += u32::from(is_full);
                is_full.then(|| Output::create(path(number), format)).transpose()
            };
            for file in &files {
                written.extend(self.copy(file, &mut output, &mut next).await?);
            }
            if output.studies > 0 {
                written.push(output.finish()?);
            } else {
                output::remark(&format!("no study of {name} is selected, so it has no file"));
            }
        }
        publish(written)
    }

    /// Appends the studies of a file. Before each study, `next` may return a new output to continue with. Returns the
    /// outputs that were finished.
    async fn copy(
        &mut self,
        file: &ImportedFile,
        to: &mut Output,
        next: &mut (dyn FnMut(&Output, u64) -> anyhow::Result<Option<Output>> + Send),
    ) -> anyhow::Result<Vec<(OutputFile, CompleteFile)>> {
        let mut finished = Vec::new();
        let selection = StudySelection { which: self.shape.studies, text: None };
        let parsed = vec![FileToExport { search: file.search, file: file.file.clone() }];
        let merging = self.shape.merged.then(|| DuplicateMerger::new(self.jobs.clone()));
        let mut pages = Studies::of(Arc::clone(&self.studies), parsed, selection).skipping().merging(merging);
        while let Some((parsed, page)) = pages.next().await? {
            for study in &page {
                let mut bytes = Vec::new();
                to.writer.push(&entry(&parsed, &file.source, study), &mut bytes)?;
                if let Some(other) = next(to, bytes.len() as u64)? {
                    finished.push(std::mem::replace(to, other).finish()?);
                }
                to.append(&bytes)?;
            }
        }
        for one in pages.skipped() {
            self.damaged.add(&format!("{} of import {}", one.file, file.search), one.record, &one.why);
        }
        Ok(finished)
    }
}

/// Groups the files by source, with a file name derived from each source. A number distinguishes sources that would
/// have the same file name.
fn by_source(files: Vec<ImportedFile>) -> Vec<(String, Vec<ImportedFile>)> {
    let mut sources: BTreeMap<Source, Vec<ImportedFile>> = BTreeMap::new();
    for file in files {
        sources.entry(file.source.clone()).or_default().push(file);
    }
    let mut taken = BTreeSet::new();
    let named = sources.into_iter().map(|(source, files)| {
        let name = name(&source);
        let others = (2..).map(|number| format!("{name} ({number})"));
        let free = std::iter::once(name.clone()).chain(others).find(|name| taken.insert(name.clone()));
        (free.unwrap_or(name), files)
    });
    named.collect()
}

/// Returns a file name such as `medline-ovid-2026-05-17`, without characters that are special in file systems.
fn name(source: &Source) -> String {
    let parts = [&source.database, &source.platform, &source.searched_on];
    let text = parts.into_iter().flatten().map(|text| text.to_lowercase()).collect::<Vec<_>>().join(" ");
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.collect::<Vec<_>>().join("-").chars().take(MAX_NAME).collect();
    if name.is_empty() { "unknown-source".to_owned() } else { name }
}

/// A new file that is being written.
struct Output {
    writer: Writer,
    file: IncompleteFile,
    path: PathBuf,
    studies: u64,
    bytes: u64,
}

impl Output {
    fn create(path: PathBuf, format: Format) -> anyhow::Result<Self> {
        let file = IncompleteFile::create(&path)?;
        Ok(Self { writer: Writer::new(format), file, path, studies: 0, bytes: 0 })
    }

    fn append(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.studies += 1;
        self.write(bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes).with_context(|| format!("writing to {} failed", self.path.display()))
    }

    fn finish(mut self) -> anyhow::Result<(OutputFile, CompleteFile)> {
        let mut end = Vec::new();
        std::mem::replace(&mut self.writer, Writer::new(Format::Jsonl)).finish(&mut end)?;
        self.write(&end)?;
        let file = self.file.complete()?;
        Ok((OutputFile { out: self.path, studies: self.studies, bytes: self.bytes }, file))
    }
}

/// Gives the complete files their final names.
fn publish(complete: Vec<(OutputFile, CompleteFile)>) -> anyhow::Result<Vec<OutputFile>> {
    let publish = |(written, file): (OutputFile, CompleteFile)| file.publish().map(|()| written);
    complete.into_iter().map(publish).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_of_source_is_portable() {
        let source = |database: &str, platform: &str| Source {
            database: Some(database.to_owned()),
            platform: Some(platform.to_owned()),
            searched_on: Some("2026-05-17".to_owned()),
        };
        assert_eq!(name(&source("MEDLINE", "Ovid")), "medline-ovid-2026-05-17");
        assert_eq!(name(&source("../../etc", "C:\\x\0")), "etc-c-x-2026-05-17");
        assert_eq!(name(&Source::default()), "unknown-source");
        assert!(name(&source(&"é".repeat(300), "x")).chars().count() <= MAX_NAME);
    }
}
