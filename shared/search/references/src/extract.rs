//! Extracts records of a file into a new file.

use std::{collections::VecDeque, ops::Range};

use crate::{Encoding, Error, Format, Limits, Reader, detect::Detection, stream::Frame};

/// Extracts records into a new file that can be corrected and read again. Their bytes are unchanged, in the same format
/// and encoding, together with whatever surrounds the records in the format: the header row of a table, or the elements
/// around the records of an XML document.
#[derive(Debug)]
pub struct RecordExtractor {
    wanted: VecDeque<Range<u64>>,
    /// The offset in the file.
    at: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Until the first record is found all bytes are kept, because they may precede the records in the new file.
    Opening {
        reader: Box<Reader>,
        kept: Vec<u8>,
    },
    Copying(Surroundings),
}

/// The text around the records in the new file.
#[derive(Debug)]
struct Surroundings {
    /// The number of bytes copied from the beginning of the file.
    opening: u64,
    after_each: Vec<u8>,
    closing: Vec<u8>,
}

impl Surroundings {
    fn new(detected: &Detection, frame: &Frame) -> Self {
        let encode = |text: &[u8]| encoded(text, detected.encoding);
        let (opening, after_each) = match detected.format {
            Format::Csv { .. } => (frame.first, "\n"),
            format if format.is_xml() => (frame.first, "\n"),
            // PubMed separates records with two blank lines.
            Format::PubMedText => (detected.mark_length as u64, "\n\n\n"),
            // Other formats need no text before the records.
            _ => (detected.mark_length as u64, "\n\n"),
        };
        Self { opening, after_each: encode(after_each.as_bytes()), closing: encode(&frame.closing) }
    }
}

/// Encodes text from a buffer in the encoding of its file.
fn encoded(text: &[u8], encoding: Encoding) -> Vec<u8> {
    let to_bytes = match encoding {
        Encoding::Utf16Le => u16::to_le_bytes,
        Encoding::Utf16Be => u16::to_be_bytes,
        _ => return text.to_vec(),
    };
    String::from_utf8_lossy(text).encode_utf16().flat_map(to_bytes).collect()
}

impl RecordExtractor {
    /// Extracts the records in these byte ranges, which must be in order and must not overlap.
    #[must_use]
    pub fn new(limits: Limits, wanted: impl IntoIterator<Item = Range<u64>>) -> Self {
        let reader = Reader::new(limits).finding_only();
        Self {
            wanted: wanted.into_iter().collect(),
            at: 0,
            state: State::Opening { reader: Box::new(reader), kept: Vec::new() },
        }
    }

    /// Processes the next bytes of the file, and returns the next bytes of the new file.
    ///
    /// # Errors
    /// Returns an error if the file is refused before its first record is found.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        match &mut self.state {
            State::Copying(surroundings) => {
                cut(&mut self.wanted, &mut self.at, surroundings, bytes, &mut out);
            }
            State::Opening { reader, kept } => {
                kept.extend_from_slice(bytes);
                reader.push(bytes)?;
                self.begin(&mut out);
            }
        }
        Ok(out)
    }

    /// The separator between two records, once the format is known. By then the text before the first record has been
    /// returned; [`RecordExtractor::finish`] returns the text after the last one.
    pub fn between(&self) -> Option<&[u8]> {
        match &self.state {
            State::Opening { .. } => None,
            State::Copying(surroundings) => Some(&surroundings.after_each),
        }
    }

    /// Marks the end of the file, and returns the next bytes of the new file.
    ///
    /// # Errors
    /// Returns an error if the file is refused, or has no records.
    pub fn end(&mut self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        if let State::Opening { reader, .. } = &mut self.state {
            reader.end();
            reader.read(usize::MAX)?;
            self.begin(&mut out);
        }
        Ok(out)
    }

    /// Ends the file, and returns the last bytes of the new file.
    ///
    /// # Errors
    /// Returns an error if the file is refused, or has no records.
    pub fn finish(mut self) -> Result<Vec<u8>, Error> {
        let mut out = self.end()?;
        if let State::Copying(surroundings) = &self.state {
            out.extend_from_slice(&surroundings.closing);
        }
        Ok(out)
    }

    /// Starts copying once the first record is found.
    fn begin(&mut self, out: &mut Vec<u8>) {
        let State::Opening { reader, kept } = &mut self.state else { return };
        let Some(stream) = reader.stream() else { return };
        let Some(frame) = &stream.frame else { return };
        let surroundings = Surroundings::new(&stream.detected, frame);
        let opening = usize::try_from(surroundings.opening).unwrap_or(usize::MAX).min(kept.len());
        out.extend_from_slice(&kept[..opening]);
        cut(&mut self.wanted, &mut self.at, &surroundings, kept, out);
        self.state = State::Copying(surroundings);
    }
}

/// Copies the selected ranges of the file's next bytes.
fn cut(
    wanted: &mut VecDeque<Range<u64>>,
    at: &mut u64,
    surroundings: &Surroundings,
    bytes: &[u8],
    out: &mut Vec<u8>,
) {
    let (begin, end) = (*at, *at + bytes.len() as u64);
    *at = end;
    while let Some(record) = wanted.front() {
        let here = |place: u64| usize::try_from(place.clamp(begin, end) - begin).unwrap_or(bytes.len());
        out.extend_from_slice(&bytes[here(record.start)..here(record.end)]);
        if record.end > end {
            return;
        }
        out.extend_from_slice(&surroundings.after_each);
        wanted.pop_front();
    }
}
