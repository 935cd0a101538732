//! The parts of a packed file, which are read one after the other.

use futures::stream::{StreamExt, TryStreamExt};
use imports::objects::ObjectStream;
use imports::{Contents, MAX_PARTS, Part, PartBytes};
use references::{Checkpoint, Limits, Reader};

use super::ParseReferences;
use super::attempt::{FileError, FileRead, PartProgress, ResumePoint};
use super::pending::PendingRecords;
use super::stats::{FileStats, formats};

/// The maximum number of reasons that are listed if a packed file contains nothing to read.
const MAX_REASONS_LISTED: usize = 3;

/// An uploaded file, opened for reading.
pub(super) enum OpenedFile {
    /// A plain file, from the position at which reading starts.
    Plain(ObjectStream),
    Packed(Contents),
}

/// Returns the number of bytes of the uploaded file that have been read.
pub(super) fn bytes_read(bytes: &PartBytes, reader: &Reader) -> u64 {
    match bytes {
        PartBytes::Plain(_) => reader.bytes_read(),
        PartBytes::Packed(unpacked) => unpacked.place(),
    }
}

impl ParseReferences {
    /// Opens a file at the resume point, and detects whether it is packed. Skips the archive check when resuming a
    /// plain file.
    pub(super) async fn open(
        &self,
        read: &FileRead<'_>,
        resume: Option<&ResumePoint>,
    ) -> Result<OpenedFile, FileError> {
        let (objects, object) = (&*self.objects, &read.command.object);
        let plain = resume.filter(|resume| resume.packed.is_none()).map(|resume| resume.within.byte());
        let mut stream = objects.open(object, plain.unwrap_or(0)).await?.ok_or(FileError::Gone)?;
        if plain.is_some() {
            return Ok(OpenedFile::Plain(stream));
        }
        let mut start = Vec::new();
        while start.len() < archives::MAGIC_BYTES
            && let Some(piece) = stream.try_next().await?
        {
            start.extend(piece);
        }
        match Contents::of(objects, object, &start, self.limits.max_file_bytes).await? {
            Some(contents) => Ok(OpenedFile::Packed(contents)),
            None => Ok(OpenedFile::Plain(futures::stream::iter([Ok(start)]).chain(stream).boxed())),
        }
    }

    /// Reads all parts of a packed file; returns `None` if the deadline has passed before the end.
    pub(super) async fn parse_parts(
        &self,
        contents: &Contents,
        resume: Option<ResumePoint>,
        pending: &mut PendingRecords<'_>,
    ) -> Result<Option<FileStats>, FileError> {
        if let Some(kind) = contents.document() {
            return Err(FileError::Document { kind });
        }
        let (mut within, packed) = resume.map(|resume| (resume.within, resume.packed)).unzip();
        let (first, mut stats) =
            packed.flatten().map_or_else(Default::default, |part| (part.index, part.read));
        for (index, inside) in contents.inside().into_iter().enumerate().skip(first) {
            let name = inside.name;
            if inside.is_hidden {
                stats.note(&format!("the sheet {name:?} is hidden, and was not read"));
                continue;
            }
            // Only the part in which the earlier attempt stopped is resumed. Later parts are read from their beginning.
            let within = within.take();
            let from = within.as_ref().map_or(0, Checkpoint::byte);
            let Some(stream) = contents.open(&*self.objects, index, from).await? else {
                stats.note(&format!("the sheet {name:?} has no cells"));
                continue;
            };
            pending.begin(PartProgress { index, read: stats.clone() });
            // The setting may have been lowered since an earlier invocation read its parts.
            let limits =
                Limits { max_records: self.limits.max_records.saturating_sub(stats.records), ..self.limits };
            let mut bytes = PartBytes::Packed(Box::new(stream));
            let reader = self.reader_at(within.as_ref(), limits);
            match self.read_part(&mut bytes, reader, pending).await {
                Ok(None) => return Ok(None),
                Ok(Some(_)) if stats.parts.len() == MAX_PARTS => {
                    return Err(FileError::TooManyParts { limit: MAX_PARTS });
                }
                Ok(Some(report)) => {
                    let formats = match contents.is_workbook() {
                        true => vec!["Excel workbook".to_owned()],
                        false => formats(&report),
                    };
                    stats.parts.push(Part {
                        name: name.to_owned(),
                        index,
                        first: stats.records + 1,
                        records: report.records,
                        format: formats.join(", "),
                        encoding: report.encoding.to_string(),
                    });
                    stats.add(name, &report, &formats);
                    if let PartBytes::Packed(unpacked) = &bytes
                        && unpacked.unsaved() > 0
                    {
                        let cells = unpacked.unsaved();
                        stats.note(&format!(
                            "{cells} formulas of the sheet {name:?} have no result: save it in Excel"
                        ));
                    }
                }
                Err(FileError::Refused(error)) => {
                    let error = self.in_part(name, error);
                    // A part that is not a reference file is skipped. Any other refusal refuses the whole file, because
                    // the records of a single part cannot be deleted.
                    match error {
                        FileError::Inside { name, error } if error.is_of_another_kind() => {
                            stats.note(&format!("{name:?} was skipped: {error}"));
                        }
                        error => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        if stats.parts.is_empty() {
            let reasons = stats.notes.iter().take(MAX_REASONS_LISTED).cloned().collect::<Vec<_>>().join("; ");
            let reasons = if reasons.is_empty() { reasons } else { format!(": {reasons}") };
            return Err(FileError::NothingInside { kind: contents.kind(), reasons });
        }
        Ok(Some(stats))
    }

    /// Returns the error of a file for the error of one of its parts.
    fn in_part(&self, name: &str, error: references::Error) -> FileError {
        let name = name.to_owned();
        match error {
            references::Error::TooManyRecords { .. } => {
                FileError::Refused(references::Error::TooManyRecords { limit: self.limits.max_records })
            }
            // The archive in a gzip file, such as `.tar.gz`, has no name.
            references::Error::Binary { what } if error.is_packed() && name.is_empty() => {
                FileError::Nested { what: format!("{what}, which is inside,") }
            }
            error if error.is_packed() => FileError::Nested { what: format!("{name:?}, which is inside,") },
            // A gzip file has only one part, without a name.
            error if name.is_empty() => FileError::Refused(error),
            error => FileError::Inside { name, error },
        }
    }
}
