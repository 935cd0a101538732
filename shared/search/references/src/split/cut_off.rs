//! Finds the file after a record or document that was cut off.
//!
//! A record without its end continues in the file after it, up to the end of the whole file or up to text of that file
//! that ends it by chance. [`CutOff`] therefore searches each record that lacks its end, and text between the records of a
//! document, for a line that begins another file. The record is quarantined up to that line, where the next part begins.

use std::ops::Range;

use super::{
    PartKind, Splitter, Step,
    lines::trimmed_end,
    parts::{MAX_LINE, Parts, is_same},
    starts::{self, LOOKAHEAD, Start},
};
use crate::{Format, work::spend};

/// The reason for a record that ends where another file begins.
pub(crate) const CUT_OFF: &str = "it is cut off here, and another file follows";

/// The number of bytes after a text that may be needed to recognize a line that begins in it.
const SURE: usize = 2 * LOOKAHEAD;

/// Splits a part of a merged file, and finds the next part even if this one is cut off.
#[derive(Debug)]
pub(crate) struct CutOff {
    parts: Parts,
    format: Format,
    limit: usize,
    /// A step that is kept until the bytes after it have arrived.
    held: Option<Step>,
    /// The next part, which begins at the front.
    next: Option<PartKind>,
}

impl CutOff {
    pub(crate) fn new(parts: Parts, format: Format, limit: usize) -> Self {
        Self { parts, format, limit, held: None, next: None }
    }

    /// The text of a step that may contain the beginning of another file, and `true` if the file may begin with it.
    fn searched(&self, tail: &[u8], step: &Step) -> Option<(Range<usize>, bool)> {
        match *step {
            // BibTeX has other faults.
            Step::Found { ref record, fault: Some(_), .. } if self.format != Format::BibTex => {
                Some((record.clone(), false))
            }
            Step::Found { ref record, .. } if self.parts.lacks_end() => Some((record.clone(), false)),
            Step::Header { ref row, .. } if self.parts.lacks_end() => Some((row.clone(), false)),
            Step::Skip { consumed } if self.parts.lacks_end() => Some((0..consumed, false)),
            Step::Skip { consumed } if self.parts.is_inside() && has_words(&tail[..consumed]) => {
                Some((0..consumed, true))
            }
            Step::TooLarge { start } => Some((start..tail.len().min(start + self.limit), false)),
            Step::Malformed { at, .. } if at > 0 => Some((0..at, false)),
            _ => None,
        }
    }

    /// Finds the first file that begins in `text[..length]`.
    fn find(&self, text: &[u8], length: usize, may_begin: bool) -> Option<Start> {
        spend(length);
        let mut at = 0;
        while at < length {
            let stop = memchr::memchr2(b'\n', b'\r', &text[at..]).map_or(text.len(), |stop| at + stop);
            let next = (stop + 1).min(text.len());
            let line = &text[at..stop];
            let found = match line.get(..=MAX_LINE) {
                None => starts::find(line, at > 0 || may_begin, &text[next..], self.format),
                Some(front) => starts::find_in_long(front, at > 0 || may_begin, self.format),
            };
            if let Some(start) = found.filter(|start| self.begins_file(*start, &line[start.at..])) {
                return Some(Start { at: at + start.at, ..start }).filter(|start| start.at < length);
            }
            at = next;
        }
        None
    }

    /// Returns `true` unless this is text of a record of the same format.
    fn begins_file(&self, start: Start, line: &[u8]) -> bool {
        let PartKind::Read(format) = start.kind else { return true };
        if !is_same(format, self.format) {
            return true;
        }
        match format {
            Format::Csv { .. } | Format::FieldRows => true,
            // A record may be written on several lines.
            Format::Json => line.starts_with(b"[") || line.starts_with(b"{\""),
            _ => line.starts_with(b"<?xml") || line.starts_with(b"<!"),
        }
    }

    /// Ends the record or document of a step where the next file begins.
    fn cut(&mut self, tail: &[u8], step: &Step, next: Start) -> Step {
        let Start { at, kind } = next;
        let start = match step {
            Step::Found { record, .. } => record.start,
            Step::TooLarge { start } => *start,
            _ => tail[..at].len() - tail[..at].trim_ascii_start().len(),
        };
        match trimmed_end(tail, &(start..at)) {
            Some(stop) if !matches!(step, Step::Skip { .. } | Step::Header { .. }) => {
                self.next = Some(kind);
                Step::Found { record: start..stop, consumed: at, fault: Some(CUT_OFF) }
            }
            _ => Step::Part { kind, consumed: at, is_cut: true },
        }
    }
}

/// Returns `true` for text that is not only punctuation.
fn has_words(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'<' | b'%' | b'@' | 0x80..))
}

impl Splitter for CutOff {
    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        if let Some(kind) = self.next.take() {
            return Step::Part { kind, consumed: 0, is_cut: false };
        }
        let step = match self.held.take() {
            Some(step) => step,
            None => self.parts.step(tail, end),
        };
        let Some((text, may_begin)) = self.searched(tail, &step) else { return step };
        if tail.len() < text.end + SURE && !end {
            self.held = Some(step);
            return Step::More;
        }
        let sure = &tail[text.start..tail.len().min(text.end + SURE)];
        match self.find(sure, text.len(), may_begin) {
            Some(next) => self.cut(tail, &step, Start { at: text.start + next.at, ..next }),
            None => step,
        }
    }

    fn parents(&mut self) -> Vec<Vec<u8>> {
        self.parts.parents()
    }

    fn saved_state(&self) -> Option<Vec<Vec<u8>>> {
        if self.held.is_some() || self.next.is_some() { None } else { self.parts.saved_state() }
    }

    fn restore_state(&mut self, state: Vec<Vec<u8>>) {
        self.parts.restore_state(state);
    }

    fn closing(&self) -> Vec<u8> {
        self.parts.closing()
    }
}
