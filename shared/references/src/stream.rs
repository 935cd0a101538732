//! One buffer, one splitter, and positions in the original file.

use std::ops::Range;

use memchr::{memchr, memchr2_iter};

use crate::{
    Error, Format, Limits, Outcome, Quarantine, Record,
    detect::Detected,
    encoding::{Certainty, Encoding, Utf16, decode, decode_for_display, utf16_units},
    outcome::{EXCERPT_CHARS, REASON_CHARS},
    read,
    split::{Split, Step, splitter},
};

/// A place in the original file, moved forward over the text as it is consumed.
#[derive(Debug, Clone, Copy)]
struct Position {
    byte: u64,
    line: u64,
    /// The last character was a CR, so an LF would be the rest of the same line end.
    after_cr: bool,
    /// The original is UTF-16: two bytes per unit.
    utf16: bool,
}

impl Position {
    fn advanced(mut self, text: &[u8]) -> Self {
        let Some(&last) = text.last() else { return self };
        self.byte += if self.utf16 { 2 * utf16_units(text) } else { text.len() as u64 };
        if !self.after_cr && memchr(b'\r', text).is_none() {
            self.line += line_feeds(text);
            return self;
        }
        for at in memchr2_iter(b'\n', b'\r', text) {
            let after_cr = if at == 0 { self.after_cr } else { text[at - 1] == b'\r' };
            self.line += u64::from(text[at] == b'\r' || !after_cr);
        }
        self.after_cr = last == b'\r';
        self
    }
}

/// How many LF there are. Sums of at most 255 fit a byte, and bytes are added many at a time.
fn line_feeds(text: &[u8]) -> u64 {
    text.chunks(255)
        .map(|chunk| u64::from(chunk.iter().map(|&byte| u8::from(byte == b'\n')).sum::<u8>()))
        .sum()
}

/// The records of a file whose encoding and format are known.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) detected: Detected,
    transcoder: Option<Utf16>,
    /// UTF-8, or the file's own bytes where the encoding contains ASCII.
    buffer: Vec<u8>,
    /// Where the buffer's front is.
    position: Position,
    splitter: Box<dyn Split>,
    header: Option<read::Header>,
    limits: Limits,
    pub(crate) records: u64,
    pub(crate) quarantined: u64,
}

impl Stream {
    pub(crate) fn new(detected: Detected, limits: Limits) -> Self {
        let utf16 = detected.encoding.is_utf16();
        Self {
            transcoder: utf16.then(|| Utf16::new(detected.encoding)),
            buffer: Vec::new(),
            position: Position { byte: detected.mark_length as u64, line: 1, after_cr: false, utf16 },
            splitter: splitter(detected.format, limits.max_record_bytes),
            header: None,
            limits,
            records: 0,
            quarantined: 0,
            detected,
        }
    }

    /// Takes the file's next bytes, without its byte-order mark.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<Outcome>) -> Result<(), Error> {
        match &mut self.transcoder {
            Some(utf16) => utf16.push(bytes, &mut self.buffer),
            None => self.buffer.extend_from_slice(bytes),
        }
        self.split(false, out)
    }

    /// The file has ended after `total` bytes.
    pub(crate) fn finish(&mut self, total: u64, out: &mut Vec<Outcome>) -> Result<(), Error> {
        if let Some(utf16) = &mut self.transcoder {
            utf16.finish(&mut self.buffer);
        }
        let before = out.len();
        self.split(true, out)?;
        // A last odd byte of UTF-16 was counted as a whole unit.
        for outcome in &mut out[before..] {
            let bytes = match outcome {
                Outcome::Read(record) => &mut record.bytes,
                Outcome::Quarantined(quarantine) => &mut quarantine.bytes,
            };
            bytes.end = bytes.end.min(total);
        }
        Ok(())
    }

    fn split(&mut self, end: bool, out: &mut Vec<Outcome>) -> Result<(), Error> {
        let buffer = std::mem::take(&mut self.buffer);
        let mut front = 0;
        loop {
            let tail = &buffer[front..];
            // How far the position has moved on already, and how far it has to.
            let (known, consumed) = match self.splitter.step(tail, end) {
                Step::More => break,
                Step::Skip { consumed } => (0, consumed),
                Step::Header { row, consumed } => {
                    self.header = self.header(&tail[row]);
                    (0, consumed)
                }
                Step::Found { record, consumed, fault } => {
                    out.push(self.outcome(tail, record.clone(), fault));
                    (record.end, consumed)
                }
                refused => return Err(self.refusal(tail, &refused)),
            };
            self.position = self.position.advanced(&tail[known..consumed]);
            front += consumed;
        }
        self.buffer = buffer;
        self.buffer.drain(..front);
        Ok(())
    }

    fn header(&mut self, row: &[u8]) -> Option<read::Header> {
        let Format::Csv { delimiter } = self.detected.format else { return None };
        self.detected.legacy.learn(row);
        read::Header::of_row(&decode(row, self.detected.legacy.decoder()).ok()?, delimiter)
    }

    /// The outcome of a record; the position moves to its end.
    fn outcome(&mut self, tail: &[u8], record: Range<usize>, fault: Option<&'static str>) -> Outcome {
        let start = self.position.advanced(&tail[..record.start]);
        let stop = start.advanced(&tail[record.clone()]);
        self.position = stop;
        let text = &tail[record];
        self.records += 1;
        let (number, line, bytes) = (self.records, start.line, start.byte..stop.byte);
        let read = match fault {
            Some(fault) => Err(fault.to_owned()),
            None => decode(text, self.detected.legacy.learn(text))
                .map_err(str::to_owned)
                .and_then(|text| read::read(self.detected.format, self.header.as_ref(), &text)),
        };
        match read {
            Ok(reference) => Outcome::Read(Record { number, line, bytes, reference }),
            Err(reason) => {
                self.quarantined += 1;
                let reason = reason.chars().take(REASON_CHARS).collect();
                let excerpt = excerpt(text, self.detected.legacy.decoder());
                Outcome::Quarantined(Quarantine { number, line, bytes, reason, excerpt })
            }
        }
    }

    fn refusal(&self, tail: &[u8], step: &Step) -> Error {
        let line_at = |at: usize| self.position.advanced(&tail[..at.min(tail.len())]).line;
        match *step {
            Step::Malformed { at, what } => Error::MalformedXml { line: line_at(at), what },
            Step::TooLarge { start } => Error::RecordTooLarge {
                number: self.records + 1,
                line: line_at(start),
                limit: self.limits.max_record_bytes as u64,
            },
            _ => Error::Doctype { name: None },
        }
    }

    /// The encoding and how sure it is. A file may turn out not to be UTF-8 only after its first bytes.
    pub(crate) fn encoding(&self) -> (Encoding, Certainty) {
        match self.detected.encoding {
            Encoding::Utf8 if self.detected.legacy.is_needed() => self.detected.legacy.found(),
            encoding => (encoding, self.detected.certainty),
        }
    }

    pub(crate) fn format(&self) -> Format {
        self.detected.format
    }
}

/// The beginning of a record's text. Only as many bytes are decoded as its characters can take.
fn excerpt(text: &[u8], legacy: &'static encoding_rs::Encoding) -> String {
    let start = &text[..text.len().min(4 * EXCERPT_CHARS)];
    // A character cut in half at that point would make the whole look like another encoding.
    let start = match std::str::from_utf8(start) {
        Err(error) if error.error_len().is_none() => &start[..error.valid_up_to()],
        _ => start,
    };
    decode_for_display(start, legacy).chars().take(EXCERPT_CHARS).collect()
}
