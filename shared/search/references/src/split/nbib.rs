//! Splits PubMed nbib files.
//!
//! A record begins at `PMID- ` or, in exports from PubMed Central, at `PMC - ` after a blank line. `PMC - ` also occurs
//! inside records, so it begins nothing without a blank line before it. A second `PMID- ` always begins a record,
//! because no record has two. ERIC's records have none, and begin at `OWN - `. Both lines precede the title of a record. The older form of MEDLINE, which Ovid
//! exports, begins at `UI  - `. Programs collapse the blanks of a tag: `TI - `. Other tagged exports of Ovid begin at `<12. >`, or at `VN  - ` without such a line.
//! Outside of records any tag begins one, so that nothing is lost.

use super::{
    lines::{MARK_LENGTH, unmarked},
    numbered,
    tagged::{LineRole, LineRules, OpenRecord, TaggedSplitter},
};

/// The number of bytes that determine the type of a line.
const TAG_PREFIX: usize = MARK_LENGTH + 16;

fn kind(line: &[u8]) -> LineRole {
    let line = unmarked(line);
    match tagged(line).map(|(length, _)| &line[..length]) {
        Some(b"PMID") => LineRole::Type,
        Some(b"OWN") => LineRole::Number,
        Some(b"PMC" | b"STAT" | b"UI" | b"VN") => LineRole::UntypedStart,
        Some(b"TI") => LineRole::Title(0),
        Some(_) => LineRole::Tag,
        None if numbered::is_ovid(line) => LineRole::Rule,
        None if unnumbered(line).len() < line.len() => LineRole::Type,
        None => LineRole::Other,
    }
}

/// Tags of two letters whose columns may have collapsed to one blank before the dash: `TI - `.
#[rustfmt::skip]
const COLLAPSED: [&[u8; 2]; 43] = [
    b"AB", b"AD", b"AN", b"AU", b"CI", b"CN", b"CT", b"DB", b"DE", b"DI", b"DO", b"DP", b"DT", b"ED", b"EN", b"FS",
    b"GR", b"IP", b"IR", b"IS", b"JC", b"JT", b"KW", b"LA", b"LR", b"MH", b"OT", b"PB", b"PG", b"PL", b"PM", b"PS",
    b"PT", b"RF", b"RN", b"SB", b"SI", b"SO", b"TA", b"TI", b"TT", b"UI", b"VI",
];

/// The length of a line's tag, and the offset of its value. The tag occupies the first four columns, and the fifth is a
/// dash. ERIC's `ISSN` has a blank before the dash, and so do all tags after a program collapsed the blanks.
pub(crate) fn tagged(line: &[u8]) -> Option<(usize, usize)> {
    let columns = line.first_chunk::<4>()?;
    let value = match line[4..] {
        [b'-', ..] => 5,
        [b' ', b'-', b' ', ..] if columns[3] != b' ' => 6,
        _ => {
            let is_known = columns.ends_with(b" -") && COLLAPSED.iter().any(|tag| line.starts_with(*tag));
            return (is_known && matches!(line.get(4), None | Some(b' '))).then_some((2, 4));
        }
    };
    let name = columns.trim_ascii_end();
    let known = name.len() > 1 && name.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    known.then_some((name.len(), value))
}

/// The tag of a line, and the offset of its value.
pub(crate) fn tag(line: &str) -> Option<(&str, usize)> {
    let found = tagged(line.as_bytes()).map(|(length, value)| (&line[..length], value));
    found.or_else(|| tag_behind_number(line))
}

/// The tag behind the number of a record.
fn tag_behind_number(line: &str) -> Option<(&str, usize)> {
    let number = line.len() - unnumbered(line.as_bytes()).len();
    let text = line.get(number..).filter(|_| number > 0)?;
    tagged(text.as_bytes()).map(|(length, value)| (&text[..length], number + value))
}

fn begins_with_digit(line: &[u8]) -> bool {
    matches!(line, [b'0'..=b'9', ..])
}

/// A line without the number of its record, which pages of the former PubMed have: `12: PMID- 123`, `12. PMID- 123`.
#[inline]
pub(super) fn unnumbered(line: &[u8]) -> &[u8] {
    if begins_with_digit(line) { &line[number_length(line)..] } else { line }
}

/// The length of the number before a PMID.
#[cold]
fn number_length(line: &[u8]) -> usize {
    /// The maximum number of digits, so that the determining bytes of a line contain its tag.
    const MAX_DIGITS: usize = 6;
    let digits = line.iter().take(MAX_DIGITS).take_while(|byte| byte.is_ascii_digit()).count();
    let rest = line[digits..].strip_prefix(b": ").or_else(|| line[digits..].strip_prefix(b". "));
    let rest = rest.map(|rest| rest.strip_prefix(b" ").unwrap_or(rest)).filter(|rest| is_identifier(rest));
    rest.map_or(0, |rest| line.len() - rest.len())
}

/// Returns `true` for `PMID-`, before a blank or a number.
fn is_identifier(line: &[u8]) -> bool {
    let value = line.strip_prefix(b"PMID-").or_else(|| line.strip_prefix(b"PMID -"));
    value.and_then(<[u8]>::first).is_some_and(|next| *next == b' ' || next.is_ascii_digit())
}

fn begins_next(open: &OpenRecord, kind: LineRole) -> bool {
    match kind {
        LineRole::Rule => true,
        // The line above the identifier may have the number of the record.
        LineRole::Type if open.began == LineRole::Rule && !open.filled => open.typed,
        LineRole::Type => open.typed || open.blanks > 0 || open.title.is_some(),
        LineRole::Number if open.title.is_some() => true,
        LineRole::Number | LineRole::UntypedStart => open.blanks > usize::from(open.is_spaced),
        _ => false,
    }
}

/// Returns `true` if a line begins a record. The blank after the dash may be missing before a number.
pub(crate) fn is_first_line(line: &[u8]) -> bool {
    let line = unnumbered(line);
    if is_identifier(line) {
        return true;
    }
    let starts: [&[u8]; 5] = [b"PMC -", b"PMCR-", b"OWN -", b"UI  -", b"VN  -"];
    let value = starts.iter().find_map(|start| line.strip_prefix(*start));
    value.and_then(|value| value.first()).is_some_and(|next| *next == b' ' || next.is_ascii_digit())
}

/// Splits nbib files.
pub(crate) fn splitter(limit: usize) -> TaggedSplitter {
    TaggedSplitter::new(LineRules { kind, prefix: TAG_PREFIX, begins_next }, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::{Splitter, Step, cut};

    fn records(text: &str) -> Vec<String> {
        cut(&mut splitter(1000), text)
    }

    #[test]
    fn nbib_records_begin_at_either_identifier() {
        let text = "\nPMC - PMC1\nPMID- 1\nTI  - a\n\nPMC - PMC2\nTI  - b\n";
        assert_eq!(records(text), ["PMC - PMC1\nPMID- 1\nTI  - a", "PMC - PMC2\nTI  - b"]);
    }

    #[test]
    fn pmc_identifier_inside_record_begins_nothing() {
        assert_eq!(records("PMID- 1\nPMC - PMC1\nTI  - a\n").len(), 1);
    }

    #[test]
    fn second_pmid_begins_a_record() {
        assert_eq!(records("PMID- 1\nTI  - a\nPMID- 2\nTI  - b\n").len(), 2);
    }

    #[test]
    fn record_without_identifier_is_found() {
        assert_eq!(records("\nOWN - ERIC\nTI  - a\n\n\nOWN - ERIC\nTI  - b\n").len(), 2);
        let joined = ["OWN - ERIC\nTI  - a", "PMID- 1\nOWN - NLM\nTI  - b", "OWN - ERIC\nTI  - c"];
        assert_eq!(records(&joined.join("\n")), joined);
        assert_eq!(records("page 1\nTI  - a\nAU  - b\n\nPMID- 2\n"), ["TI  - a\nAU  - b", "PMID- 2"]);
    }

    #[test]
    fn tags_with_collapsed_columns_are_found() {
        let text = "PMID - 1\nOWN - NLM\nTI - a\n b\nAB - in\nIT - or\n\nPMID - 2\nTI - c\n";
        let found = ["PMID - 1\nOWN - NLM\nTI - a\n b\nAB - in\nIT - or", "PMID - 2\nTI - c"];
        assert_eq!(records(text), found);
        let text = text.replace("PMID -", "PMID-");
        assert_eq!(records(&text).len(), 2);
        assert_eq!(
            ["TI - a", "IT - or", "PMID - 1", "TI-a"].map(|line| tag(line)),
            [Some(("TI", 4)), None, Some(("PMID", 6)), None]
        );
    }

    #[test]
    fn numbered_records_of_ovid_are_found() {
        let text = "<3001. >\nVN  - Ovid\nUI  - 1\nTI  - a\n\n<3002. >\nVN  - Ovid\nTI  - b\n";
        let found = ["<3001. >\nVN  - Ovid\nUI  - 1\nTI  - a", "<3002. >\nVN  - Ovid\nTI  - b"];
        assert_eq!(records(text), found);
        let text = text.replace("<3001. >\n", "").replace("<3002. >\n", "");
        assert_eq!(records(&text), ["VN  - Ovid\nUI  - 1\nTI  - a", "VN  - Ovid\nTI  - b"]);
    }

    #[test]
    fn partially_received_line_is_one_line() {
        let mut nbib = splitter(1000);
        assert_eq!(nbib.step(b"OWN - NLM\nPMID- 1", false), Step::More);
        let found = Step::Found { record: 0..17, consumed: 17, fault: None };
        assert_eq!(nbib.step(b"OWN - NLM\nPMID- 1", true), found);
    }

    #[test]
    fn second_title_behind_blank_line_begins_record() {
        assert_eq!(
            records("PMID- 1\nTI  - a\n\nAU  - b\nTI  - c\n"),
            ["PMID- 1\nTI  - a", "AU  - b\nTI  - c"]
        );
    }

    #[test]
    fn blank_line_inside_record_does_not_split() {
        assert_eq!(records("PMID- 1\nAB  - a\n\n      b\nTI  - c\n").len(), 1);
    }
}
