//! The studies of a search in any export format.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::stream::{self, Stream};
use imports::{
    DamagedRecord, Duplicate, FileId, FileRef, Jobs, ParsedFile, ReadStudies, Readable, SearchId, Study,
    StudyRef, readable,
};
use messages::StoreError;
use messages::store::{cause, chain};
use writers::{Format, Source, Writer};

use crate::selection::{ReadLimit, StudySelection, select};
use crate::study_view::study_line;

pub use crate::merged::DuplicateMerger;

/// The number of studies that are read at a time, and their maximum size in bytes, plus up to one study.
const READ_STUDIES: usize = 500;
const READ_BYTES: usize = 1 << 20;

/// The options of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// The format.
    pub format: Format,
    /// The selected studies.
    pub studies: StudySelection,
    /// `true` to complete each study that is not a duplicate with the values of its duplicates; see
    /// [`DuplicateMerger`].
    pub merged: bool,
}

/// A completed file of a search.
#[derive(Debug, Clone)]
pub struct FileToExport {
    /// The search.
    pub search: SearchId,
    /// The file.
    pub file: ParsedFile,
}

/// The studies of completed files, read in batches.
pub struct Studies {
    stored: Arc<dyn ReadStudies>,
    selection: StudySelection,
    /// The remaining files, in reverse order.
    files: Vec<FileToExport>,
    /// The record after which the next batch starts.
    after: u64,
    /// The studies that could not be read; `None` if the first one is an error.
    skipped: Option<Vec<SkippedStudy>>,
    merging: Option<DuplicateMerger>,
}

/// The error of an export that a damaged study ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {} of {file:?} is damaged; restore a backup, or delete its import and upload its files again", study.record)]
pub struct DamagedStudy {
    /// The study.
    pub study: StudyRef,
    /// The name of the study's file.
    pub file: String,
}

impl DamagedStudy {
    /// Returns the damaged study that an error is about, or `None` for another error.
    pub fn of(error: &StoreError) -> Option<&Self> {
        cause(error)
    }
}

/// A study that is not part of an export, because it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedStudy {
    /// The name of the study's file.
    pub file: String,
    /// The number of its record.
    pub record: u64,
    /// The damage.
    pub why: String,
}

impl Studies {
    /// Returns the studies of these files, in this order.
    pub fn of(stored: Arc<dyn ReadStudies>, mut files: Vec<FileToExport>, selection: StudySelection) -> Self {
        files.reverse();
        Self { stored, selection, files, after: 0, skipped: None, merging: None }
    }

    /// Skips studies that cannot be read, for callers that name them at the end.
    #[must_use]
    pub fn skipping(self) -> Self {
        Self { skipped: Some(Vec::new()), ..self }
    }

    /// Completes each study that is not a duplicate with the values of its duplicates.
    #[must_use]
    pub fn merging(self, merging: Option<DuplicateMerger>) -> Self {
        Self { merging, ..self }
    }

    /// Returns the studies that were skipped.
    pub fn skipped(self) -> Vec<SkippedStudy> {
        self.skipped.unwrap_or_default()
    }

    /// Returns the next batch and its file, or `None` at the end. A batch may be empty even if more follow.
    pub async fn next(&mut self) -> Result<Option<(ParsedFile, Vec<Study>)>, StoreError> {
        while let Some(FileToExport { search, file }) = self.files.last() {
            let (stored, file_of) = (&*self.stored, FileRef::new(*search, file.file_id));
            let read = |after, limit| {
                select(stored, file_of, &self.selection, ReadLimit { after, limit, bytes: READ_BYTES })
            };
            let Readable { items: mut studies, damaged, last } = match &self.skipped {
                Some(_) => readable(self.after, READ_STUDIES, |study: &Study| study.record, read).await?,
                None => {
                    let items =
                        read(self.after, READ_STUDIES).await.map_err(|error| named(error, file_of, file))?;
                    let last = items.last().map(|study| study.record);
                    Readable { items, damaged: None, last }
                }
            };
            let Some(last) = last else {
                self.after = 0;
                self.files.pop();
                continue;
            };
            let file = file.clone();
            studies.retain(|study| self.selection.includes(study));
            let count = studies.len();
            if let Some(merging) = &mut self.merging {
                merging.complete(&*self.stored, &mut studies).await?;
            }
            match studies.last() {
                // The remaining studies follow in the next batch.
                Some(study) if studies.len() < count => self.after = study.record,
                _ => {
                    self.after = last;
                    if let (Some((record, why)), Some(skipped)) = (damaged, &mut self.skipped) {
                        skipped.push(SkippedStudy { file: file.name.clone(), record, why });
                    }
                }
            }
            return Ok(Some((file, studies)));
        }
        Ok(None)
    }
}

/// Adds the damaged study that an error is about.
fn named(error: StoreError, of: FileRef, file: &ParsedFile) -> StoreError {
    let Some(damaged) = DamagedRecord::of(&error) else { return error };
    tracing::error!(error = chain(&error), "a stored study is damaged");
    let FileRef { search_id, file_id } = of;
    let study = StudyRef { search_id, file_id, record: damaged.record };
    StoreError::unusable(
        format!("exporting file {}", file.file_id),
        DamagedStudy { study, file: file.name.clone() },
    )
}

/// Returns a study in the form that the writers take.
pub fn entry<'a>(file: &'a ParsedFile, source: &'a Source, study: &'a Study) -> writers::Study<'a> {
    writers::Study {
        key: study.id.as_uuid(),
        search: study.search_id.as_uuid(),
        file: &file.name,
        record: study.record,
        source,
        duplicate_of: study
            .duplicate
            .filter(Duplicate::is_same)
            .map(|duplicate| duplicate.of().id().as_uuid()),
        reference: &study.reference,
    }
}

/// An export. The next chunk is produced once the previous one is sent, so its memory does not grow with the number
/// of studies.
pub struct Export(State);

enum State {
    /// JSON Lines, as in API responses.
    Lines(Studies),
    Written {
        studies: Studies,
        sources: BTreeMap<FileId, Source>,
        writer: Writer,
    },
    Ended,
}

impl Export {
    /// Returns an export of these completed files with these sources. `jobs` are the jobs of the studies' searches.
    pub fn of(
        studies: Arc<dyn ReadStudies>,
        files: Vec<FileToExport>,
        wanted: &ExportOptions,
        sources: BTreeMap<FileId, Source>,
        jobs: &Jobs,
    ) -> Self {
        let merging = wanted.merged.then(|| DuplicateMerger::new(jobs.clone()));
        let studies = Studies::of(studies, files, wanted.studies.clone()).merging(merging);
        Self(match wanted.format {
            Format::Jsonl => State::Lines(studies),
            format => State::Written { studies, sources, writer: Writer::new(format) },
        })
    }

    /// Returns the next chunk, from one read of the store, or `None` at the end. A chunk may be empty even if more
    /// follow.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        match std::mem::replace(&mut self.0, State::Ended) {
            State::Ended => Ok(None),
            State::Lines(mut studies) => {
                let Some((file, some)) = studies.next().await? else { return Ok(None) };
                let mut out = Vec::new();
                for study in some {
                    out.extend_from_slice(study_line(&file, study)?.get().as_bytes());
                    out.push(b'\n');
                }
                self.0 = State::Lines(studies);
                Ok(Some(out))
            }
            State::Written { mut studies, sources, mut writer } => {
                let (mut out, unknown) = (Vec::new(), Source::default());
                let Some((file, some)) = studies.next().await? else {
                    writer.finish(&mut out).map_err(unwritten)?;
                    return Ok(Some(out));
                };
                let source = sources.get(&file.file_id).unwrap_or(&unknown);
                for study in &some {
                    writer.push(&entry(&file, source, study), &mut out).map_err(unwritten)?;
                }
                self.0 = State::Written { studies, sources, writer };
                Ok(Some(out))
            }
        }
    }

    /// Returns all chunks. If a store becomes unavailable, the stream ends early with an error.
    pub fn pieces(self) -> impl Stream<Item = Result<Vec<u8>, StoreError>> {
        stream::try_unfold(self, async |mut export| {
            let piece = export.next().await.inspect_err(|error| {
                tracing::error!(error = chain(error), "an export ended with an error");
            })?;
            Ok(piece.map(|piece| (piece, export)))
        })
    }
}

fn unwritten(error: writers::Error) -> StoreError {
    StoreError::unusable("writing an export", error)
}
