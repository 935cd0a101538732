//! Splits texts with numbered records: exports of Ovid, Cochrane, ProQuest and PubMed.
//!
//! In exports of Ovid and Cochrane, fields with a title behind a blank line are also a record. The numbers of Ovid's
//! records may lack their angle brackets.

use super::{
    lines::{MARK_LENGTH, not_blank},
    record_number::{PREFIX, after_number, front, is_proquest},
    tagged::{LineRole, LineRules, OpenRecord, TaggedSplitter},
};
use crate::read::{after_bare_number, is_ovid_name};

/// The names of fields with which a record of Ovid certainly begins if no other is open.
const OVID_STARTS: [&[u8]; 6] =
    [b"Unique Identifier", b"Accession Number", b"Source", b"Authors", b"Authors Full Name", b"Abstract"];
/// The line of underscores between ProQuest's records.
const RULE: &[u8] = b"__________";
/// The names of fields that each record has.
const PROQUEST_FIELDS: [&[u8]; 4] = [b"Author:", b"Title:", b"Publication title:", PROQUEST_ID];
/// The name of the field with ProQuest's number.
pub(crate) const PROQUEST_ID: &[u8] = b"ProQuest document ID:";

/// Returns `true` for `<12>` or `<12. >`, the beginning of an Ovid record.
pub(crate) fn is_ovid(line: &[u8]) -> bool {
    let rest = front(line).strip_prefix(b"<").and_then(after_number);
    let rest =
        rest.map(|rest| rest.strip_prefix(b". ").unwrap_or(rest)).and_then(|rest| rest.strip_prefix(b">"));
    rest.is_some_and(|rest| rest.trim_ascii().is_empty())
}

/// Returns `true` for the number of an Ovid record without angle brackets, if the name of a field and an indented value
/// follow in `after`.
pub(crate) fn begins_bare_ovid(line: &[u8], after: &[u8]) -> bool {
    let Some(name) = after_bare_number(line) else { return false };
    let mut lines = not_blank(after);
    let has_name = !name.is_empty() || lines.next().is_some_and(|line| is_ovid_name(line.trim_ascii_end()));
    has_name && lines.next().is_some_and(is_indented)
}

/// Returns `true` for the line of a value in Ovid's exports.
pub(crate) fn is_indented(line: &[u8]) -> bool {
    line.first().is_some_and(|first| matches!(first, b' ' | b'\t'))
}

/// Returns `true` for `Record #1 of 20`, the beginning of a Cochrane record.
pub(crate) fn is_cochrane(line: &[u8]) -> bool {
    front(line).strip_prefix(b"Record #").and_then(after_number).is_some_and(|rest| rest.starts_with(b" of "))
}

/// Returns `true` for `1: ` or `1. `, which may begin a PubMed record.
pub(crate) fn is_pubmed(line: &[u8]) -> bool {
    after_number(front(line)).is_some_and(|rest| rest.starts_with(b": ") || rest.starts_with(b". "))
}

/// Returns `true` for the first record of PubMed's text: `1. J Asthma. 2020 Jan;1(2):3.`
pub(crate) fn is_pubmed_text(line: &[u8], after: &[u8]) -> bool {
    let is_first =
        line.strip_prefix(b"1").is_some_and(|rest| rest.starts_with(b". ") || rest.starts_with(b": "));
    let year = |word: &[u8]| {
        let word = word.strip_suffix(b".").or_else(|| word.strip_suffix(b";")).unwrap_or(word);
        word.len() >= 4
            && matches!(word[..2], [b'1', b'9'] | [b'2', b'0'])
            && word[..4].iter().all(u8::is_ascii_digit)
    };
    is_first
        && is_pubmed(line)
        && line.split(|byte| *byte == b' ').any(year)
        && (memchr::memmem::find(line, b"PMID: ").is_some()
            || memchr::memmem::find(after, b"PMID: ").is_some())
}

fn splitter(
    kind: fn(&[u8]) -> LineRole,
    begins_next: fn(&OpenRecord, LineRole) -> bool,
    limit: usize,
) -> TaggedSplitter {
    TaggedSplitter::new(LineRules { kind, prefix: PREFIX, begins_next }, limit)
}

fn typed(is_type: bool) -> LineRole {
    if is_type { LineRole::Type } else { LineRole::Other }
}

/// The role of a line of Ovid's text exports. The names of fields are on lines of their own.
fn ovid_kind(line: &[u8]) -> LineRole {
    if is_ovid(line) {
        return LineRole::Type;
    }
    let is_name = |line: &[u8]| {
        line.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'/' | b'(' | b')'))
    };
    match front(line) {
        line if line.len() + MARK_LENGTH >= PREFIX => LineRole::Other,
        line if matches!(line.trim_ascii_end(), b"Title" | b"TI") => LineRole::Title(0),
        line @ [b'A'..=b'Z', ..] if OVID_STARTS.contains(&line.trim_ascii_end()) => LineRole::UntypedStart,
        line @ [b'A'..=b'Z', ..] if is_name(line.trim_ascii_end()) => LineRole::Field,
        line => match after_bare_number(line) {
            Some(b"") => LineRole::Rule,
            Some(_) => LineRole::Number,
            None => LineRole::Other,
        },
    }
}

/// The role of a line of Cochrane's text exports, whose tags are two or three capitals before a colon.
fn cochrane_kind(line: &[u8]) -> LineRole {
    match front(line) {
        line if is_cochrane(line) => LineRole::Type,
        [b'T', b'I', b':', ..] => LineRole::Title(0),
        [b'A'..=b'Z', b'A'..=b'Z', b':', ..] | [b'A'..=b'Z', b'A'..=b'Z', b'A'..=b'Z', b':', ..] => {
            LineRole::Field
        }
        _ => LineRole::Other,
    }
}

/// Splits Ovid's text exports.
pub(crate) fn ovid(limit: usize) -> TaggedSplitter {
    // Values are indented, so a number in the first column begins a record, unless numbers have angle brackets.
    let begins_next = |open: &OpenRecord, kind| match kind {
        LineRole::Type => true,
        LineRole::Rule | LineRole::Number => !open.typed,
        _ => false,
    };
    splitter(ovid_kind, begins_next, limit)
}

/// Splits Cochrane's text exports.
pub(crate) fn cochrane(limit: usize) -> TaggedSplitter {
    splitter(cochrane_kind, |_, kind| kind == LineRole::Type, limit)
}

/// Returns `true` for a line of underscores, as ProQuest writes before each record.
pub(crate) fn is_rule(line: &[u8]) -> bool {
    front(line).starts_with(RULE)
}

/// Splits ProQuest's text exports. A line of underscores separates records, the head of the report and its end. Records
/// are the parts with a number or with the names of certain fields.
pub(crate) fn proquest(limit: usize) -> TaggedSplitter {
    let kind = |line: &[u8]| match front(line) {
        line if is_rule(line) => LineRole::Rule,
        line if PROQUEST_FIELDS.iter().any(|name| line.starts_with(name)) => LineRole::UntypedStart,
        line => typed(is_proquest(line)),
    };
    let begins_next = |open: &OpenRecord, kind| match kind {
        LineRole::Rule => true,
        LineRole::Type => open.typed || open.filled,
        _ => false,
    };
    splitter(kind, begins_next, limit)
}

/// Splits PubMed's text exports. Two blank lines separate records, because paragraphs of an abstract may also begin
/// with a number. Summaries have no paragraphs, so one blank line suffices.
pub(crate) fn pubmed(limit: usize) -> TaggedSplitter {
    let kind = |line: &[u8]| {
        let is_summary = after_number(front(line)).is_some_and(|rest| rest.starts_with(b": "));
        if is_summary { LineRole::Tag } else { typed(is_pubmed(line)) }
    };
    let begins_next = |open: &OpenRecord, kind| match kind {
        LineRole::Type => open.blanks > 1,
        LineRole::Tag => open.blanks > usize::from(open.typed),
        _ => false,
    };
    splitter(kind, begins_next, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    #[test]
    fn numbered_records_begin_at_their_numbers() {
        assert_eq!(cut(&mut ovid(100), "<1>\nTitle\n  a <2> b\n<2>\nTitle\n  <c>\n").len(), 2);
        assert_eq!(cut(&mut cochrane(100), "\nRecord #1 of 2\nTI: a\n\nRecord #2 of 2\nTI: b\n").len(), 2);
        let text = "<1>\nTitle\n  a\n\nUnique Identifier\n  1\nTitle\n  b\n\n<3>\nTitle\n  c\n";
        assert_eq!(cut(&mut ovid(100), text).len(), 3);
        let text = "3     zinc.mp. (12)\n\n1.\nTitle\n  a\nVolume\n  12\n\n2. Authors\n  b\n3\nTitle\n  c\n";
        let records = ["1.\nTitle\n  a\nVolume\n  12", "2. Authors\n  b", "3\nTitle\n  c"];
        assert_eq!(cut(&mut ovid(100), text), records);
        let text = "Record #1 of 2\nTI: a\n\nID: CN-2\nTI: b\n\nRecord #3 of 3\nTI: c\n";
        assert_eq!(cut(&mut cochrane(100), text).len(), 3);
        let text = "____________\nReport\n____________\nDocument 1 of 2\na\n____________\nDocument 2 of 2\nb\n\
            ____________\nBibliography\n";
        assert_eq!(
            cut(&mut proquest(100), text),
            ["____________\nDocument 1 of 2\na", "____________\nDocument 2 of 2\nb"]
        );
        let text = "____________\n\nReport\n____________\n\na\n\nAuthor: b\n\n____________\n\nc\n\nTitle: c\n\
            Document 3 of 3\nd\n____________\n\nBibliography\n";
        let records =
            ["____________\n\na\n\nAuthor: b", "____________\n\nc\n\nTitle: c", "Document 3 of 3\nd"];
        assert_eq!(cut(&mut proquest(100), text), records);
        assert_eq!(cut(&mut pubmed(100), "1. J. 2020.\n\nT\n\n2. is no record\n\n\n2. J. 2021.\n").len(), 2);
        assert_eq!(cut(&mut pubmed(100), "1: a\nb\n\n\n2: c\n"), ["1: a\nb", "2: c"]);
        assert_eq!(cut(&mut pubmed(100), "1: a\nb\n\n2: c\n"), ["1: a\nb", "2: c"]);
        assert_eq!(cut(&mut pubmed(100), "1. J. 2020.\n\n2: is no record\n\n\n2. J. 2021.\n").len(), 2);
    }
}
