//! Iterates over lines that end in LF, CRLF or CR, in a tail that grows.

use std::ops::Range;

/// One line of the tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The line without its line break.
    pub(crate) text: Range<usize>,
    /// The beginning of the next line.
    pub(crate) next: usize,
}

/// The elements that separate lines on a web page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineElements {
    /// Returns the length of the elements at the beginning of a text, if a line ends there.
    pub(crate) length: fn(&[u8]) -> Option<usize>,
    /// The number of bytes that determine the result.
    pub(crate) lookahead: usize,
}

/// Iterates over the lines of a tail.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The beginning of the current line.
    pub(crate) at: usize,
    /// The position up to which the end of the line has been searched for.
    searched: usize,
    /// The elements that also end a line. These elements mark the end of the line's text.
    elements: Option<LineElements>,
}

impl Lines {
    pub(crate) fn new(elements: Option<LineElements>) -> Self {
        Self { elements, ..Self::default() }
    }

    /// Returns the current line if its end is known. A CR at the end of the tail may be half of a CRLF.
    pub(crate) fn current(&mut self, tail: &[u8], end: bool) -> Option<Line> {
        self.searched = self.searched.max(self.at);
        let stop = loop {
            let rest = tail.get(self.searched..).unwrap_or_default();
            let found = match self.elements {
                None => memchr::memchr2(b'\n', b'\r', rest),
                Some(_) => memchr::memchr3(b'\n', b'\r', b'<', rest),
            };
            let Some(found) = found else {
                self.searched = tail.len();
                let last = end && self.at < tail.len();
                return last.then_some(Line { text: self.at..tail.len(), next: tail.len() });
            };
            self.searched += found;
            let Some(elements) = self.elements.filter(|_| rest[found] == b'<') else { break self.searched };
            if rest.len() - found < elements.lookahead && !end {
                return None;
            }
            let window = &rest[found..rest.len().min(found + elements.lookahead)];
            if let Some(length) = (elements.length)(window) {
                let next = self.searched + length;
                return Some(Line { text: self.at..next, next });
            }
            self.searched += 1;
        };
        let next = match (tail[stop], tail.get(stop + 1)) {
            (b'\r', None) if !end => return None,
            (b'\r', Some(b'\n')) => stop + 2,
            _ => stop + 1,
        };
        Some(Line { text: self.at..stop, next })
    }

    /// The known part of the current line, if the end of the line is not known.
    pub(crate) fn known(&self) -> Range<usize> {
        self.at..self.searched.max(self.at)
    }

    /// Advances to the line that begins at `next`.
    pub(crate) fn advance(&mut self, next: usize) {
        self.at = next;
        self.searched = next;
    }
}

/// The lines of a complete text.
pub(crate) fn all(text: &str) -> impl Iterator<Item = &str> {
    // An empty line results between the halves of a CRLF, which does not matter to any caller.
    spans_of(text).map(|line| &text[line])
}

/// The lines of bytes that are not blank.
pub(crate) fn not_blank(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.trim_ascii().is_empty())
}

/// The ranges of the nonblank lines of a complete text, without line breaks.
pub(crate) fn spans(text: &str) -> impl Iterator<Item = Range<usize>> {
    spans_of(text).filter(|line| !line.is_empty())
}

fn spans_of(text: &str) -> impl Iterator<Item = Range<usize>> {
    between(memchr::memchr2_iter(b'\n', b'\r', text.as_bytes()), text.len())
}

/// The ranges between separators at these positions, in a text of this length.
pub(crate) fn between(
    places: impl Iterator<Item = usize>,
    length: usize,
) -> impl Iterator<Item = Range<usize>> {
    let mut ends = places.chain([length]);
    let mut start = 0;
    std::iter::from_fn(move || {
        let end = ends.next()?;
        let span = start..end;
        start = end + 1;
        Some(span)
    })
}

/// The UTF-8 byte-order mark.
const MARK: &[u8] = b"\xEF\xBB\xBF";
/// The length of the mark in bytes.
pub(super) const MARK_LENGTH: usize = MARK.len();

/// Removes a byte-order mark, which may occur inside a file that was concatenated from others.
pub(crate) fn unmarked(line: &[u8]) -> &[u8] {
    line.strip_prefix(MARK).unwrap_or(line)
}

/// The end of the text within `range` without trailing white space, or `None` if only white space is left.
pub(crate) fn trimmed_end(tail: &[u8], range: &Range<usize>) -> Option<usize> {
    let length = tail[range.clone()].trim_ascii_end().len();
    (length > 0).then_some(range.start + length)
}

/// Returns `true` if the text in `range` exceeds the maximum size of a record. Blank lines count, because they are held
/// in memory too. A CR at the end is half of a line break.
pub(crate) fn over_limit(tail: &[u8], range: Range<usize>, limit: usize) -> bool {
    range.len() > limit && tail[range].strip_suffix(b"\r").is_none_or(|text| text.len() > limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        while let Some(line) = lines.current(text.as_bytes(), true) {
            found.push(&text[line.text]);
            lines.advance(line.next);
        }
        found
    }

    #[test]
    fn every_line_break_ends_a_line() {
        assert_eq!(split("a\nb\r\nc\rd\n\ne"), ["a", "b", "c", "d", "", "e"]);
    }

    #[test]
    fn trailing_cr_waits_for_lf() {
        let mut lines = Lines::default();
        assert_eq!(lines.current(b"a\r", false), None);
        assert_eq!(lines.current(b"a\r\n", false), Some(Line { text: 0..1, next: 3 }));
    }
}
