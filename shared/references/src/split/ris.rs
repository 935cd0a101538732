//! Where RIS records begin and end.
//!
//! A record begins at `TY  -` and ends at `ER  -`, at the next `TY  -`, or with the file. Between records
//! anything may stand (the `1.` of Ovid, the preamble of Cochrane) and is skipped; only a title, author, DOI
//! or abstract there begins a record too, one that lost its `TY`, because skipping it would lose a study.

use super::{
    Split, Step,
    lines::{Lines, over_limit, trimmed_end},
};

/// Blanks allowed before a tag. Beyond that it is indented text.
const MOST_INDENT: usize = 16;
/// As many bytes as decide whether a line is a tag line.
const TAG_PREFIX: usize = MOST_INDENT + 8;
/// Tags that begin a record without `TY`.
const UNTYPED_STARTS: [&[u8; 2]; 7] = [b"TI", b"T1", b"AU", b"A1", b"DO", b"AB", b"N2"];
/// Tags that may be written with one blank before the dash. In prose, two letters and a dash are not rare,
/// so only known tags count.
const SINGLE_BLANK: [&[u8; 2]; 40] = [
    b"TY", b"ER", b"TI", b"T1", b"T2", b"T3", b"BT", b"ST", b"AU", b"A1", b"A2", b"A3", b"A4", b"ED", b"AB",
    b"N1", b"N2", b"PY", b"Y1", b"Y2", b"DA", b"DO", b"JO", b"JF", b"JA", b"J2", b"VL", b"IS", b"SP", b"EP",
    b"SN", b"UR", b"KW", b"PB", b"CY", b"ID", b"AN", b"M3", b"L1", b"LA",
];

/// The tag of a line in upper case, and where its value begins.
///
/// Two blanks and a dash follow a tag; one is tolerated after the usual tags in upper case.
pub(crate) fn tag(line: &[u8]) -> Option<([u8; 2], usize)> {
    let indent = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let rest = line.get(indent..)?;
    let &[first, second, b' ', third, ..] = rest else { return None };
    if indent > MOST_INDENT || !first.is_ascii_alphabetic() || !second.is_ascii_alphanumeric() {
        return None;
    }
    let width = match (third, rest.get(4)) {
        (b' ', Some(b'-')) => 5,
        (b'-', None | Some(b' ' | b'\t' | b'\r' | b'\n')) if SINGLE_BLANK.contains(&&[first, second]) => 4,
        _ => return None,
    };
    Some(([first.to_ascii_uppercase(), second.to_ascii_uppercase()], indent + width))
}

/// Whether a line begins a record.
pub(crate) fn is_type_line(line: &[u8]) -> bool {
    matches!(tag(line), Some((name, _)) if &name == b"TY")
}

enum Kind {
    Type,
    End,
    UntypedStart,
    Other,
}

fn kind(line: &[u8]) -> Kind {
    match tag(line) {
        Some((name, _)) if &name == b"TY" => Kind::Type,
        // `ER  - positive tumours` is a wrapped abstract.
        Some((name, value)) if &name == b"ER" && line[value..].trim_ascii().is_empty() => Kind::End,
        Some((name, _)) if UNTYPED_STARTS.contains(&&name) => Kind::UntypedStart,
        _ => Kind::Other,
    }
}

/// The splitter of RIS files.
#[derive(Debug)]
pub(crate) struct Ris {
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

impl Ris {
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

    fn begins(&self, kind: &Kind) -> bool {
        match self.open {
            // The line that opened the record, seen again now that it is complete.
            Some(open) if open.start == self.lines.at => false,
            Some(_) => matches!(kind, Kind::Type),
            None => matches!(kind, Kind::Type | Kind::UntypedStart),
        }
    }
}

impl Split for Ris {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    fn records(text: &str) -> Vec<String> {
        cut(&mut Ris::new(1000), text)
    }

    #[test]
    fn text_between_records_is_skipped() {
        let text = "Record #1 of 2\n1.\nTY  - JOUR\nER  - \n\n2.\nTY  - BOOK\nER  -";
        assert_eq!(records(text), ["TY  - JOUR\nER  -", "TY  - BOOK\nER  -"]);
    }

    #[test]
    fn a_type_line_ends_a_record_that_has_no_end_line() {
        assert_eq!(records("TY  - A\nTI  - a\n\nTY  - B\n"), ["TY  - A\nTI  - a", "TY  - B"]);
    }

    #[test]
    fn tags_inside_values_do_not_split() {
        let text = "TY  - A\nAB  - see TY  - B\nER-positive\nER  - positive\nER  -\n";
        assert_eq!(records(text).len(), 1);
    }

    #[test]
    fn a_record_without_a_type_line_is_not_lost() {
        assert_eq!(records("TY  - A\nER  -\nTI  - b\nER  -\n"), ["TY  - A\nER  -", "TI  - b\nER  -"]);
    }

    #[test]
    fn tags_may_be_indented_lower_case_or_narrow() {
        assert_eq!(tag(b"  ty  - jour"), Some((*b"TY", 7)));
        assert_eq!(tag(b"TI - a"), Some((*b"TI", 4)));
        assert_eq!(tag(b"DB  -"), Some((*b"DB", 5)));
        assert_eq!(tag(b"of - a"), None);
        assert_eq!(tag(b"II - a trial"), None);
        assert_eq!(tag(b"ER-positive"), None);
    }
}
