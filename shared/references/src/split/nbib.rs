//! Where PubMed nbib records begin and end.
//!
//! A record begins at `PMID- ` or, in exports from PubMed Central, at `PMC - ` after a blank line. `PMC - `
//! also stands inside records, so without a blank line before it, it begins nothing. A second `PMID- `
//! always begins a record: no record has two.

use super::{
    Split, Step,
    lines::{Lines, MARK_LENGTH, over_limit, trimmed_end, unmarked},
};

/// As many bytes as decide what a line is.
const TAG_PREFIX: usize = MARK_LENGTH + 6;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pmid,
    /// A tag that begins a record only after a blank line.
    Leading,
    Other,
}

fn kind(line: &[u8]) -> Kind {
    match unmarked(line).get(..5) {
        Some(b"PMID-") => Kind::Pmid,
        Some(b"PMC -" | b"OWN -" | b"STAT-") => Kind::Leading,
        _ => Kind::Other,
    }
}

/// Whether a line begins a record. `OWN - ` alone does not make a file nbib.
pub(crate) fn is_first_line(line: &[u8]) -> bool {
    line.starts_with(b"PMID- ") || line.starts_with(b"PMC - ")
}

/// The splitter of nbib files.
#[derive(Debug)]
pub(crate) struct Nbib {
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
    has_pmid: bool,
    after_blank: bool,
}

impl Nbib {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, lines: Lines::default(), open: None }
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
        match (self.open, kind) {
            // The line that opened the record, seen again now that it is complete.
            (Some(open), _) if open.start == self.lines.at => false,
            (_, Kind::Other) => false,
            (None, _) => true,
            (Some(open), Kind::Pmid) => open.has_pmid || open.after_blank,
            (Some(open), Kind::Leading) => open.after_blank,
        }
    }
}

impl Split for Nbib {
    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        loop {
            let at = self.lines.at;
            let line = self.lines.current(tail, end);
            let text = line.as_ref().map_or(at..tail.len(), |line| line.text.clone());
            // A line is judged early, by its first bytes, so that a chunk's end changes nothing.
            let judged = match &line {
                Some(line) => &tail[line.text.clone()],
                None if text.len() >= TAG_PREFIX => &tail[at..at + TAG_PREFIX],
                None => return self.rest(tail, end),
            };
            let kind = kind(judged);
            if self.begins(kind) {
                if let Some(open) = self.open {
                    return self.found(open, at);
                }
                self.open = Some(Open { start: at, last: at, has_pmid: false, after_blank: false });
            }
            let start = self.open.map_or(at, |open| open.start);
            if over_limit(tail, start..text.end, self.limit) {
                return Step::TooLarge { start };
            }
            // The record learns from a line only once it is complete: until then the line is seen again.
            let Some(line) = line else { return self.rest(tail, end) };
            if let Some(open) = &mut self.open {
                let last = trimmed_end(tail, &line.text);
                open.has_pmid |= kind == Kind::Pmid;
                open.after_blank = last.is_none();
                open.last = last.unwrap_or(open.last);
                self.lines.advance(line.next);
            } else {
                self.lines = Lines::default();
                return Step::Skip { consumed: line.next };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    fn records(text: &str) -> Vec<String> {
        cut(&mut Nbib::new(1000), text)
    }

    #[test]
    fn records_begin_at_either_identifier_after_a_blank_line() {
        let text = "\nPMC - PMC1\nPMID- 1\nTI  - a\n\nPMC - PMC2\nTI  - b\n";
        assert_eq!(records(text), ["PMC - PMC1\nPMID- 1\nTI  - a", "PMC - PMC2\nTI  - b"]);
    }

    #[test]
    fn a_pmc_identifier_inside_a_record_begins_nothing() {
        assert_eq!(records("PMID- 1\nPMC - PMC1\nTI  - a\n").len(), 1);
    }

    #[test]
    fn a_second_pmid_begins_a_record_without_a_blank_line() {
        assert_eq!(records("PMID- 1\nTI  - a\nPMID- 2\nTI  - b\n").len(), 2);
    }

    #[test]
    fn a_line_seen_in_parts_is_one_line() {
        let mut nbib = Nbib::new(1000);
        assert_eq!(nbib.step(b"OWN - NLM\nPMID- 1", false), Step::More);
        let found = Step::Found { record: 0..17, consumed: 17, fault: None };
        assert_eq!(nbib.step(b"OWN - NLM\nPMID- 1", true), found);
    }

    #[test]
    fn a_blank_line_inside_a_record_does_not_split_it() {
        assert_eq!(records("PMID- 1\nAB  - a\n\n      b\nTI  - c\n").len(), 1);
    }
}
