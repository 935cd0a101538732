//! Splits texts of Engineering Village: records `<RECORD 1>`, and lines `Accession number:…`.
//!
//! Behind a blank line, other fields with a title are also a record, because the first line of a record may be missing.

use super::{
    lines::{MARK_LENGTH, not_blank, unmarked},
    record_number::after_number,
    tagged::{LineRole, TaggedSplitter},
};

const FIRST: &[u8] = b"<RECORD ";
const TITLE: &[u8] = b"Title:";
const ACCESSION: &[u8] = b"Accession number:";
/// The number of bytes that determine whether a line begins a record.
const PREFIX: usize = MARK_LENGTH + 24;
/// The number of lines after the first one within which the names of fields follow.
const MAX_LINES: usize = 12;

/// Returns `true` for `<RECORD 12>`, the beginning of a record.
pub(crate) fn is_first_line(line: &[u8]) -> bool {
    let line = unmarked(&line[..line.len().min(PREFIX)]);
    line.strip_prefix(FIRST).and_then(after_number).is_some_and(|rest| rest.trim_ascii() == b">")
}

/// Returns `true` for the first line of a record that was cut off: `<RECO`.
pub(crate) fn is_cut_off(line: &str) -> bool {
    let line = line.trim();
    line.len() > 1 && (FIRST.starts_with(line.as_bytes()) || line.as_bytes().starts_with(FIRST))
}

/// Returns `true` for a line that begins a record, if a title with its name follows in `after`. Exports of citations have
/// no names.
pub(crate) fn begins(line: &[u8], after: &[u8]) -> bool {
    is_first_line(line) && not_blank(after).take(MAX_LINES).any(|line| line.starts_with(TITLE))
}

fn kind(line: &[u8]) -> LineRole {
    match unmarked(&line[..line.len().min(PREFIX)]) {
        line if is_first_line(line) => LineRole::Type,
        line if line.starts_with(TITLE) => LineRole::Title(0),
        line if line.starts_with(ACCESSION) => LineRole::UntypedStart,
        _ => LineRole::Other,
    }
}

/// Splits texts of Engineering Village.
pub(crate) fn splitter(limit: usize) -> TaggedSplitter {
    TaggedSplitter::by_type(kind, PREFIX, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    #[test]
    fn records_begin_at_their_numbers() {
        let text = "<RECORD 1>\n\nAccession number:1\n\nTitle:a\n\n<RECORD 2>\n\nTitle:b\n";
        let records = ["<RECORD 1>\n\nAccession number:1\n\nTitle:a", "<RECORD 2>\n\nTitle:b"];
        assert_eq!(cut(&mut splitter(1000), text), records);
        let text = "<RECORD 1>\nTitle:a\nVolume:1\n\nAccession number:2\nTitle:b\n";
        assert_eq!(cut(&mut splitter(1000), text).len(), 2);
        assert!(!is_first_line(b"<RECORD one>") && !is_first_line(b"<RECORD 1>a"));
        assert!(
            begins(b"<RECORD 1>", b"\nAccession number:1\n\nTitle:a") && !begins(b"<RECORD 1>", b"\nA title")
        );
    }
}
