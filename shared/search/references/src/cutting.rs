//! Copies some records of a file into a file of their own.

use std::{collections::VecDeque, ops::Range};

use crate::{Encoding, Error, Format, Limits, Reader, detect::Detected, stream::Frame};

/// Copies records into a new file that can be corrected and read again: their bytes unchanged, in the same format and
/// encoding, with what the format has around its records (the header row of a table, the elements around the records of
/// an XML document).
#[derive(Debug)]
pub struct Cutting {
    wanted: VecDeque<Range<u64>>,
    /// The position in the file.
    at: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Until the first record is found all bytes are kept: they may belong to what is around the records.
    Opening {
        reader: Box<Reader>,
        kept: Vec<u8>,
    },
    Cutting(Around),
}

/// What is written around the records.
#[derive(Debug)]
struct Around {
    /// How many bytes at the file's beginning.
    opening: u64,
    after_each: Vec<u8>,
    closing: Vec<u8>,
}

impl Around {
    fn of(detected: &Detected, frame: &Frame) -> Self {
        let encode = |text: &[u8]| encoded(text, detected.encoding);
        let (opening, after_each) = match detected.format {
            Format::Csv { .. }
            | Format::EndNoteXml
            | Format::PubMedXml
            | Format::EuropePmcXml
            | Format::JatsXml => (frame.first, "\n"),
            // Two blank lines are between its records.
            Format::PubMedText => (detected.mark_length as u64, "\n\n\n"),
            // In the other formats, text before the records is not needed.
            _ => (detected.mark_length as u64, "\n\n"),
        };
        Self { opening, after_each: encode(after_each.as_bytes()), closing: encode(&frame.closing) }
    }
}

/// Text from a buffer in the encoding of its file.
fn encoded(text: &[u8], encoding: Encoding) -> Vec<u8> {
    let to_bytes = match encoding {
        Encoding::Utf16Le => u16::to_le_bytes,
        Encoding::Utf16Be => u16::to_be_bytes,
        _ => return text.to_vec(),
    };
    String::from_utf8_lossy(text).encode_utf16().flat_map(to_bytes).collect()
}

impl Cutting {
    /// Cuts out the records at these places, which are in order and do not overlap.
    #[must_use]
    pub fn new(limits: Limits, wanted: impl IntoIterator<Item = Range<u64>>) -> Self {
        let reader = Reader::new(limits).only_finding();
        Self {
            wanted: wanted.into_iter().collect(),
            at: 0,
            state: State::Opening { reader: Box::new(reader), kept: Vec::new() },
        }
    }

    /// Takes the file's next bytes; returns the next bytes of the new file.
    ///
    /// # Errors
    /// If the file is refused before its first record is found.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        match &mut self.state {
            State::Cutting(around) => cut(&mut self.wanted, &mut self.at, around, bytes, &mut out),
            State::Opening { reader, kept } => {
                kept.extend_from_slice(bytes);
                reader.push(bytes)?;
                self.begin(&mut out);
            }
        }
        Ok(out)
    }

    /// What is written between two records, once the file's form is known: what comes before the first one has been
    /// returned then, and [`Cutting::finish`] returns what comes after the last one.
    pub fn between(&self) -> Option<&[u8]> {
        match &self.state {
            State::Opening { .. } => None,
            State::Cutting(around) => Some(&around.after_each),
        }
    }

    /// Says that the file has no more bytes; returns the next bytes of the new file.
    ///
    /// # Errors
    /// If the file is refused, or has no records.
    pub fn end(&mut self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        if let State::Opening { reader, .. } = &mut self.state {
            reader.end();
            reader.read(usize::MAX)?;
            self.begin(&mut out);
        }
        Ok(out)
    }

    /// Ends the file; returns the last bytes of the new one.
    ///
    /// # Errors
    /// If the file is refused, or has no records.
    pub fn finish(mut self) -> Result<Vec<u8>, Error> {
        let mut out = self.end()?;
        if let State::Cutting(around) = &self.state {
            out.extend_from_slice(&around.closing);
        }
        Ok(out)
    }

    /// Begins to copy once the first record is found.
    fn begin(&mut self, out: &mut Vec<u8>) {
        let State::Opening { reader, kept } = &mut self.state else { return };
        let Some(stream) = reader.stream() else { return };
        let Some(frame) = &stream.frame else { return };
        let around = Around::of(&stream.detected, frame);
        let opening = usize::try_from(around.opening).unwrap_or(usize::MAX).min(kept.len());
        out.extend_from_slice(&kept[..opening]);
        cut(&mut self.wanted, &mut self.at, &around, kept, out);
        self.state = State::Cutting(around);
    }
}

/// Copies the wanted parts of the file's next bytes.
fn cut(wanted: &mut VecDeque<Range<u64>>, at: &mut u64, around: &Around, bytes: &[u8], out: &mut Vec<u8>) {
    let (begin, end) = (*at, *at + bytes.len() as u64);
    *at = end;
    while let Some(record) = wanted.front() {
        let here = |place: u64| usize::try_from(place.clamp(begin, end) - begin).unwrap_or(bytes.len());
        out.extend_from_slice(&bytes[here(record.start)..here(record.end)]);
        if record.end > end {
            return;
        }
        out.extend_from_slice(&around.after_each);
        wanted.pop_front();
    }
}
