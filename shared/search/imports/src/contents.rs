//! The contents of an uploaded file: the file itself, the file in a gzip file, the files in a ZIP archive, or the
//! sheets of a workbook.
//!
//! Files are unpacked as their bytes arrive from the store, so nothing unpacked is kept. To resume inside a part, its
//! bytes are unpacked again from the beginning of the part ([decision
//! 26](../../../../docs/decisions/0026-resumable-parsing.md)).

use std::sync::Arc;

use ::messages::StoreError;
use archives::{
    Directory, END_RECORD_BYTES, EndRecord, Form, LOCAL_HEADER_BYTES, Limits, SheetText, Unpacker, Workbook,
};
use futures::TryStreamExt;

use crate::objects::{ObjectStream, ReadObject};
use crate::vocabulary::ObjectRef;

pub use crate::vocabulary::Part;

/// The maximum number of parts that are read from an uploaded file; the outcome of the file lists them all.
pub const MAX_PARTS: usize = 50;

/// Errors of reading the contents of a file.
#[derive(Debug, thiserror::Error)]
pub enum ContentsError {
    /// The store is unavailable; the read can be retried.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file is rejected; a retry would fail again.
    #[error(transparent)]
    Refused(#[from] archives::Error),
    /// The object no longer exists.
    #[error("the uploaded file is gone")]
    Gone,
}

/// A packed file and the list of its contents.
#[derive(Debug, Clone)]
pub struct Contents {
    object: ObjectRef,
    limits: Limits,
    packed: PackedForm,
}

#[derive(Debug, Clone)]
enum PackedForm {
    Gzip,
    Zip(Arc<(Directory, EndRecord)>),
    Workbook(Arc<Workbook>),
}

/// An entry of a packed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inside<'a> {
    /// The path of the entry in the archive, or the name of the sheet.
    pub name: &'a str,
    /// `true` if the entry is a hidden sheet, which users of the workbook do not see.
    pub is_hidden: bool,
}

impl Contents {
    /// Returns the contents of a file that begins with `start`, which has at least [`archives::MAGIC_BYTES`] bytes if
    /// the file does; `None` if the file is not packed. `max_unpacked` limits the number of unpacked bytes.
    pub async fn of(
        objects: &dyn ReadObject,
        object: &ObjectRef,
        start: &[u8],
        max_unpacked: u64,
    ) -> Result<Option<Self>, ContentsError> {
        let limits = Limits { max_unpacked, ..Limits::default() };
        let packed = match Form::detect(start) {
            Form::Plain => return Ok(None),
            Form::Gzip => PackedForm::Gzip,
            Form::Zip => zip(objects, object, limits).await?,
        };
        Ok(Some(Self { object: object.clone(), limits, packed }))
    }

    /// Returns the type of the packed file with an article, such as `a ZIP archive`.
    pub fn kind(&self) -> &'static str {
        match self.packed {
            PackedForm::Gzip => "a gzip file",
            PackedForm::Zip(_) => "a ZIP archive",
            PackedForm::Workbook(_) => "an Excel workbook",
        }
    }

    /// Returns the type of an archive that is a document of an office program, with its article; `None` for others.
    pub fn document(&self) -> Option<&'static str> {
        let PackedForm::Zip(list) = &self.packed else { return None };
        let has = |name: &str| list.0.entries.iter().any(|entry| entry.name == name);
        if has("word/document.xml") {
            Some("a Word document")
        } else if has("ppt/presentation.xml") {
            Some("a presentation")
        } else if has("mimetype") && has("content.xml") {
            Some("an OpenDocument file")
        } else if has("Index/Document.iwa") {
            Some("a document of Numbers, Pages or Keynote")
        } else {
            None
        }
    }

    /// Returns `true` for a workbook, whose parts are sheets.
    pub fn is_workbook(&self) -> bool {
        matches!(self.packed, PackedForm::Workbook(_))
    }

    /// Returns all entries, in their order.
    pub fn inside(&self) -> Vec<Inside<'_>> {
        let file = |name| Inside { name, is_hidden: false };
        match &self.packed {
            PackedForm::Gzip => vec![file("")],
            PackedForm::Zip(list) => list.0.entries.iter().map(|entry| file(&entry.name)).collect(),
            PackedForm::Workbook(book) => {
                let sheets = book.sheets().iter();
                sheets.map(|sheet| Inside { name: &sheet.name, is_hidden: !sheet.is_visible }).collect()
            }
        }
    }

    /// Returns the unpacked bytes of the entry at this index of [`Contents::inside`], from byte `from` on; `None` if
    /// the entry has no bytes, such as a chart.
    pub async fn open(
        &self,
        objects: &dyn ReadObject,
        index: usize,
        from: u64,
    ) -> Result<Option<UnpackedPart>, ContentsError> {
        let source = match &self.packed {
            PackedForm::Gzip => {
                let stream = objects.open(&self.object, 0).await?.ok_or(ContentsError::Gone)?;
                let unpack = Box::new(Unpacker::gzip(self.limits));
                Source::Packed {
                    stream,
                    piece: Vec::new(),
                    taken: 0,
                    left: self.object.size_bytes,
                    unpack,
                    begin: 0,
                }
            }
            PackedForm::Zip(list) => {
                let (directory, tail) = &**list;
                let Some(entry) = directory.entries.get(index) else { return Ok(None) };
                let mut stream =
                    objects.open(&self.object, entry.header).await?.ok_or(ContentsError::Gone)?;
                let mut piece = Vec::new();
                fill(&mut stream, &mut piece, LOCAL_HEADER_BYTES).await?;
                let before = archives::local_header(&piece, entry, directory.next_offset(index, tail))?;
                let taken = usize::try_from(before).unwrap_or(usize::MAX);
                fill(&mut stream, &mut piece, taken).await?;
                let unpack = Box::new(Unpacker::entry(entry.clone(), self.limits));
                Source::Packed { stream, piece, taken, left: entry.packed, unpack, begin: entry.header }
            }
            PackedForm::Workbook(book) => match book.text(index)? {
                Some(text) => Source::Sheet(Box::new(text)),
                None => return Ok(None),
            },
        };
        Ok(Some(UnpackedPart { source, skip: from, ended: false }))
    }
}

/// Reads the directory at the end of a ZIP archive, or a whole workbook.
async fn zip(
    objects: &dyn ReadObject,
    object: &ObjectRef,
    limits: Limits,
) -> Result<PackedForm, ContentsError> {
    let size = object.size_bytes;
    let last = bytes(objects, object, size.saturating_sub(END_RECORD_BYTES as u64), END_RECORD_BYTES).await?;
    let tail = EndRecord::find(&last, size)?;
    let list = bytes(objects, object, tail.start, tail.length).await?;
    let directory = Directory::read(&list, &tail, &limits)?;
    if !Workbook::is_workbook(&directory) {
        return Ok(PackedForm::Zip(Arc::new((directory, tail))));
    }
    if size > archives::MAX_WORKBOOK_BYTES {
        return Err(archives::Error::WorkbookTooLarge { what: "bytes" }.into());
    }
    let all = usize::try_from(size).unwrap_or(usize::MAX);
    let file = bytes(objects, object, 0, all).await?;
    Ok(PackedForm::Workbook(Arc::new(Workbook::open(file, limits)?)))
}

/// Reads up to `max` bytes of an object, from byte `from` on.
async fn bytes(
    objects: &dyn ReadObject,
    object: &ObjectRef,
    from: u64,
    max: usize,
) -> Result<Vec<u8>, ContentsError> {
    let mut stream = objects.open(object, from).await?.ok_or(ContentsError::Gone)?;
    let mut found = Vec::with_capacity(max);
    while found.len() < max
        && let Some(piece) = stream.try_next().await?
    {
        // Stay within the capacity: a growing buffer would take three times the memory.
        found.extend_from_slice(&piece[..piece.len().min(max - found.len())]);
    }
    Ok(found)
}

/// Reads until `found` has at least `least` bytes, or the stream ends.
async fn fill(stream: &mut ObjectStream, found: &mut Vec<u8>, least: usize) -> Result<(), StoreError> {
    while found.len() < least
        && let Some(piece) = stream.try_next().await?
    {
        found.extend(piece);
    }
    Ok(())
}

/// The bytes of an uploaded file, or of a part of a packed file.
pub enum PartBytes {
    /// The bytes of the file as they are stored.
    Plain(ObjectStream),
    /// Unpacked.
    Packed(Box<UnpackedPart>),
}

impl PartBytes {
    /// Opens a file that was read before, or a part of it, at byte `from`; returns `None` if the file no longer exists.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable or the file has been replaced.
    pub async fn open(
        objects: &dyn ReadObject,
        object: &ObjectRef,
        part: Option<&Part>,
        from: u64,
    ) -> Result<Option<Self>, ContentsError> {
        let at = if part.is_some() { 0 } else { from };
        let Some(mut stream) = objects.open(object, at).await? else { return Ok(None) };
        let Some(part) = part else { return Ok(Some(Self::Plain(stream))) };
        let mut start = Vec::new();
        fill(&mut stream, &mut start, archives::MAGIC_BYTES).await?;
        // The file was within the limits when it was first read, whatever the limits are now.
        let Some(contents) = Contents::of(objects, object, &start, u64::MAX).await? else { return Ok(None) };
        let unpacked = contents.open(objects, part.index, from).await?;
        Ok(unpacked.map(|unpacked| Self::Packed(Box::new(unpacked))))
    }

    /// Returns the next bytes, or `None` at the end. Like [`UnpackedPart::next`], it may return no bytes even if more
    /// follow.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ContentsError> {
        match self {
            Self::Plain(stream) => Ok(stream.try_next().await?),
            Self::Packed(unpacked) => unpacked.next().await,
        }
    }
}

/// The unpacked bytes of one part.
#[derive(Debug)]
pub struct UnpackedPart {
    source: Source,
    /// The number of bytes to skip before the requested ones.
    skip: u64,
    ended: bool,
}

enum Source {
    Packed {
        stream: ObjectStream,
        /// The last chunk from the store, and the number of its bytes that are unpacked.
        piece: Vec<u8>,
        taken: usize,
        /// The number of remaining packed bytes, and the offset at which the packed bytes begin in the uploaded file.
        left: u64,
        begin: u64,
        unpack: Box<Unpacker>,
    },
    Sheet(Box<SheetText>),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Packed { .. } => "Packed",
            Self::Sheet(_) => "Sheet",
        })
    }
}

impl UnpackedPart {
    /// Returns the next bytes, or `None` at the end. It may return no bytes even if more follow: the work of one call
    /// is bounded, so that the caller can check its deadline, also while the bytes before the requested ones are
    /// unpacked.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ContentsError> {
        let Some(mut bytes) = self.unpack().await? else { return Ok(None) };
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
        self.skip -= skipped as u64;
        bytes.drain(..skipped);
        Ok(Some(bytes))
    }

    /// Returns the approximate position in the uploaded file, in its own bytes.
    pub fn place(&self) -> u64 {
        match &self.source {
            Source::Packed { begin, unpack, .. } => begin + unpack.packed(),
            Source::Sheet(_) => 0,
        }
    }

    /// Returns the number of formulas in a sheet whose result was missing when the workbook was saved.
    pub fn unsaved(&self) -> u64 {
        match &self.source {
            Source::Packed { .. } => 0,
            Source::Sheet(text) => text.unsaved(),
        }
    }

    async fn unpack(&mut self) -> Result<Option<Vec<u8>>, ContentsError> {
        if self.ended {
            return Ok(None);
        }
        let mut out = Vec::new();
        match &mut self.source {
            Source::Sheet(text) => self.ended = !text.next_piece(&mut out)?,
            Source::Packed { stream, piece, taken, left, unpack, .. } => {
                if *taken >= piece.len() && *left > 0 {
                    (*piece, *taken) = (stream.try_next().await?.unwrap_or_default(), 0);
                    // If the store returns fewer bytes than it reported, the object was overwritten concurrently.
                    if piece.is_empty() {
                        *left = 0;
                    }
                }
                let here = usize::try_from(*left).unwrap_or(usize::MAX).min(piece.len() - *taken);
                if here == 0 {
                    unpack.finish(&mut out)?;
                    self.ended = true;
                } else {
                    let read = unpack.push(&piece[*taken..*taken + here], &mut out)?;
                    *taken += read;
                    *left -= read as u64;
                }
            }
        }
        Ok(Some(out))
    }
}
