//! Splits formats of tagged lines.
//!
//! A record begins at a line with an opening tag. It ends at a line with a closing tag, before the line that begins the
//! next record, or at the end of the file. Text between records is skipped. The formats differ in the lines that begin
//! a record while another is open.

use super::{
    Splitter, Step,
    lines::{LineElements, Lines, over_limit, trimmed_end},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineRole {
    /// Begins a record. Every record should have exactly one such line.
    Type,
    /// Ends the record, and belongs to it.
    End,
    /// Begins a record if none is open: its first line is missing.
    UntypedStart,
    /// Begins a record if none is open, and has no other meaning.
    Tag,
    /// Begins a record with a number, in a variant of the format.
    Number,
    Other,
}

/// The rules by which the lines of a format are recognized.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineRules {
    pub(crate) kind: fn(&[u8]) -> LineRole,
    /// The number of bytes of a line that determine its role.
    pub(crate) prefix: usize,
    /// Returns `true` if a line of a role ends the open record and begins the next.
    pub(crate) begins_next: fn(&OpenRecord, LineRole) -> bool,
}

/// The splitter of formats whose records begin and end at tags.
#[derive(Debug)]
pub(crate) struct TaggedSplitter {
    rules: LineRules,
    limit: usize,
    lines: Lines,
    open: Option<OpenRecord>,
}

/// A record whose end has not been found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenRecord {
    start: usize,
    /// The end of its last text so far.
    last: usize,
    /// The role of its first line.
    pub(crate) began: LineRole,
    /// `true` if it has a line of [`LineRole::Type`].
    pub(crate) typed: bool,
    /// `true` if it has any other line.
    pub(crate) filled: bool,
    /// The number of blank lines directly before the current line.
    pub(crate) blanks: usize,
    /// `true` if a blank line follows its first line, and therefore probably each line.
    pub(crate) is_spaced: bool,
}

impl TaggedSplitter {
    /// Creates a splitter of a format whose records begin at each line of [`LineRole::Type`], and only there while
    /// another record is open.
    pub(crate) fn by_type(kind: fn(&[u8]) -> LineRole, prefix: usize, limit: usize) -> Self {
        let begins_next = |_: &_, kind| kind == LineRole::Type;
        Self::new(LineRules { kind, prefix, begins_next }, limit)
    }

    pub(crate) fn new(rules: LineRules, limit: usize) -> Self {
        Self { rules, limit, lines: Lines::default(), open: None }
    }

    /// Also ends lines at these elements.
    pub(crate) fn with_elements(self, elements: LineElements) -> Self {
        Self { lines: Lines::new(Some(elements)), ..self }
    }

    fn found(&mut self, open: OpenRecord, consumed: usize) -> Step {
        self.open = None;
        self.lines.consume(consumed);
        Step::Found { record: open.start..open.last, consumed, fault: None }
    }

    /// Handles a tail in which nothing more can be found.
    fn rest(&mut self, tail: &[u8], end: bool) -> Step {
        match self.open {
            Some(open) if end => self.found(open, tail.len()),
            _ => Step::More,
        }
    }

    fn begins(&self, kind: LineRole) -> bool {
        match self.open {
            // The line that opened the record, which is checked again because it is complete now.
            Some(open) if open.start == self.lines.at => false,
            Some(open) => (self.rules.begins_next)(&open, kind),
            None => !matches!(kind, LineRole::End | LineRole::Other),
        }
    }
}

impl Splitter for TaggedSplitter {
    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        loop {
            let at = self.lines.at;
            let line = self.lines.current(tail, end);
            let text = line.as_ref().map_or_else(|| self.lines.known(), |line| line.text.clone());
            // A line is classified early, by its first bytes, so that the position of a chunk's end does not matter.
            let judged = match &line {
                Some(line) => &tail[line.text.clone()],
                None if text.len() >= self.rules.prefix => &tail[at..at + self.rules.prefix],
                None => return self.rest(tail, end),
            };
            let kind = (self.rules.kind)(judged);
            if self.begins(kind) {
                if let Some(open) = self.open {
                    return self.found(open, at);
                }
                self.open = Some(OpenRecord {
                    start: at,
                    last: at,
                    began: kind,
                    typed: false,
                    filled: false,
                    blanks: 0,
                    is_spaced: false,
                });
            }
            let start = self.open.map_or(at, |open| open.start);
            if over_limit(tail, start..text.end, self.limit) {
                return Step::TooLarge { start };
            }
            // A line is processed only when it is complete; until then it is checked again.
            let Some(line) = line else { return self.rest(tail, end) };
            if let Some(open) = &mut self.open {
                let last = trimmed_end(tail, &line.text);
                open.typed |= kind == LineRole::Type;
                open.filled |= kind != LineRole::Type && last.is_some();
                open.is_spaced |= open.typed && !open.filled && last.is_none();
                open.blanks = if last.is_none() { open.blanks + 1 } else { 0 };
                open.last = last.unwrap_or(open.last);
            }
            match self.open {
                Some(open) if kind == LineRole::End => return self.found(open, line.next),
                Some(_) => self.lines.advance(line.next),
                None => {
                    self.lines.advance(0);
                    return Step::Skip { consumed: line.next };
                }
            }
        }
    }
}
