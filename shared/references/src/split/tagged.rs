//! Where records begin and end in formats of tagged lines.
//!
//! A record begins at a line that says so and ends at the line that ends it, before the next that begins one, or with
//! the file. Between records anything may stand and is skipped. Which lines begin a record while another is open is
//! what the formats differ in.

use super::{
    Split, Step,
    lines::{Lines, over_limit, trimmed_end},
};

/// What a line does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What every record should have once, at its beginning.
    Type,
    /// Ends the record; it belongs to it.
    End,
    /// Begins a record where none is open: one that lost its beginning.
    UntypedStart,
    Other,
}

/// How the lines of a format are told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) kind: fn(&[u8]) -> Kind,
    /// As many bytes of a line as decide its kind.
    pub(crate) prefix: usize,
    /// Whether a line of a kind ends the open record and begins the next.
    pub(crate) begins_next: fn(&Open, Kind) -> bool,
}

/// The splitter of formats whose records begin and end at tags.
#[derive(Debug)]
pub(crate) struct Tagged {
    rules: Rules,
    limit: usize,
    lines: Lines,
    open: Option<Open>,
}

/// A record whose end is not known yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    start: usize,
    /// End of its last text so far.
    last: usize,
    /// It has a line of [`Kind::Type`].
    pub(crate) typed: bool,
    /// The line before was blank.
    pub(crate) after_blank: bool,
}

impl Tagged {
    pub(crate) fn new(rules: Rules, limit: usize) -> Self {
        Self { rules, limit, lines: Lines::default(), open: None }
    }

    fn found(&mut self, open: Open, consumed: usize) -> Step {
        self.open = None;
        self.lines.consume(consumed);
        Step::Found { record: open.start..open.last, consumed, fault: None }
    }

    /// Nothing more can be told from the tail as it is.
    fn rest(&mut self, tail: &[u8], end: bool) -> Step {
        match self.open {
            Some(open) if end => self.found(open, tail.len()),
            _ => Step::More,
        }
    }

    fn begins(&self, kind: Kind) -> bool {
        match self.open {
            // The line that opened the record, seen again now that it is complete.
            Some(open) if open.start == self.lines.at => false,
            Some(open) => (self.rules.begins_next)(&open, kind),
            None => matches!(kind, Kind::Type | Kind::UntypedStart),
        }
    }
}

impl Split for Tagged {
    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        loop {
            let at = self.lines.at;
            let line = self.lines.current(tail, end);
            let text = line.as_ref().map_or(at..tail.len(), |line| line.text.clone());
            // A line is judged early, by its first bytes, so that a chunk's end changes nothing.
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
                self.open = Some(Open { start: at, last: at, typed: false, after_blank: false });
            }
            let start = self.open.map_or(at, |open| open.start);
            if over_limit(tail, start..text.end, self.limit) {
                return Step::TooLarge { start };
            }
            // The record learns from a line only once it is complete: until then the line is seen again.
            let Some(line) = line else { return self.rest(tail, end) };
            if let Some(open) = &mut self.open {
                let last = trimmed_end(tail, &line.text);
                open.typed |= kind == Kind::Type;
                open.after_blank = last.is_none();
                open.last = last.unwrap_or(open.last);
            }
            match self.open {
                Some(open) if kind == Kind::End => return self.found(open, line.next),
                Some(_) => self.lines.advance(line.next),
                None => {
                    self.lines = Lines::default();
                    return Step::Skip { consumed: line.next };
                }
            }
        }
    }
}
