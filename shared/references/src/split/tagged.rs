//! Where records begin and end in formats of tagged lines.
//!
//! A record begins at a line that says so and ends at the line that ends it, before the next that begins one, or with
//! the file. Between records anything may stand and is skipped.

use super::{
    Split, Step,
    lines::{Lines, over_limit, trimmed_end},
};

/// What a line does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Begins a record wherever it stands.
    Type,
    /// Ends the record; it belongs to it.
    End,
    /// Begins a record where none is open.
    UntypedStart,
    Other,
}

/// The splitter of formats whose records begin and end at tags.
#[derive(Debug)]
pub(crate) struct Tagged {
    kind: fn(&[u8]) -> Kind,
    /// As many bytes of a line as decide whether it begins a record.
    prefix: usize,
    limit: usize,
    lines: Lines,
    open: Option<Open>,
}

/// A record whose end is not known yet.
#[derive(Debug, Clone, Copy)]
struct Open {
    start: usize,
    /// End of its last text so far.
    last: usize,
}

impl Tagged {
    pub(crate) fn new(kind: fn(&[u8]) -> Kind, prefix: usize, limit: usize) -> Self {
        Self { kind, prefix, limit, lines: Lines::default(), open: None }
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

    fn begins(&self, kind: &Kind) -> bool {
        match self.open {
            // The line that opened the record, seen again now that it is complete.
            Some(open) if open.start == self.lines.at => false,
            Some(_) => matches!(kind, Kind::Type),
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
                None if text.len() >= self.prefix => &tail[at..at + self.prefix],
                None => return self.rest(tail, end),
            };
            let kind = (self.kind)(judged);
            if self.begins(&kind) {
                if let Some(open) = self.open {
                    return self.found(open, at);
                }
                self.open = Some(Open { start: at, last: at });
            }
            let start = self.open.map_or(at, |open| open.start);
            if over_limit(tail, start..text.end, self.limit) {
                return Step::TooLarge { start };
            }
            let Some(line) = line else { return self.rest(tail, end) };
            if let Some(open) = &mut self.open {
                open.last = trimmed_end(tail, &line.text).unwrap_or(open.last);
            }
            match self.open {
                Some(open) if matches!(kind, Kind::End) => return self.found(open, line.next),
                Some(_) => self.lines.advance(line.next),
                None => {
                    self.lines = Lines::default();
                    return Step::Skip { consumed: line.next };
                }
            }
        }
    }
}
