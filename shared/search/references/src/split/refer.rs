//! Splits EndNote's tagged files (`.enw`, also known as refer).
//!
//! A tagged line begins with `%` and one character. A record begins at `%0`, or at any tag after a blank line: blank
//! lines separate records, and some programs omit `%0` or write it behind the title. The program of many journals (OJS)
//! writes it behind the abstract. Blank lines in a record that begins at `%0` separate only records with a title each.

use super::{
    lines::{MARK_LENGTH, unmarked},
    tagged::{LineRole, LineRules, OpenRecord, TaggedSplitter},
};

/// The number of bytes that determine whether a line begins a record.
const TAG_PREFIX: usize = MARK_LENGTH + 3;

/// The tag of a line with its percent sign, and the offset of its value.
pub(crate) fn tag(line: &str) -> Option<(&str, usize)> {
    let &[b'%', name, ref rest @ ..] = line.as_bytes() else { return None };
    let ends = rest.first().is_none_or(|byte| matches!(byte, b' ' | b'\t'));
    (name.is_ascii_graphic() && name != b'%' && ends).then(|| (&line[..2], line.len().min(3)))
}

fn kind(line: &[u8]) -> LineRole {
    let line = unmarked(line);
    match std::str::from_utf8(line.get(..3).unwrap_or(line)).ok().and_then(tag) {
        Some(("%0", _)) => LineRole::Type,
        Some(("%T", _)) => LineRole::Title(b'T'),
        Some(_) => LineRole::UntypedStart,
        None => LineRole::Other,
    }
}

fn begins_next(open: &OpenRecord, kind: LineRole) -> bool {
    match kind {
        // The type of an open record may follow its title, or be given twice.
        LineRole::Type => open.blanks > 0 || (open.filled && open.typed),
        // An abstract may end in a blank line. A second title begins another record.
        LineRole::Title(_) | LineRole::UntypedStart if open.began == LineRole::Type => false,
        LineRole::Title(_) | LineRole::UntypedStart => open.blanks > usize::from(open.is_spaced),
        _ => false,
    }
}

/// Returns `true` if a line begins a record.
pub(crate) fn is_type_line(line: &[u8]) -> bool {
    kind(line) == LineRole::Type
}

/// Splits EndNote's tagged files.
pub(crate) fn splitter(limit: usize) -> TaggedSplitter {
    TaggedSplitter::new(LineRules { kind, prefix: TAG_PREFIX, begins_next }, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    #[test]
    fn refer_records_begin_at_type_or_blank_line() {
        let text = "%0 Book\n%T a\nmore\n%0 Book\n%T b\n\n%A c\n%T d\n% no tag\n\n 50% of e\n";
        let records = ["%0 Book\n%T a\nmore", "%0 Book\n%T b", "%A c\n%T d\n% no tag\n\n 50% of e"];
        assert_eq!(cut(&mut splitter(1000), text), records);
    }

    #[test]
    fn late_refer_type_belongs_to_open_record() {
        let text =
            "%T a\n%0 Book\n%A b\n%0 Book\n%T c\n\n\n%T d\n%0 Book\n%D 2020\n\n%0 Serial\n%0 Audio\n%T e\n";
        let records =
            ["%T a\n%0 Book\n%A b", "%0 Book\n%T c", "%T d\n%0 Book\n%D 2020", "%0 Serial\n%0 Audio\n%T e"];
        assert_eq!(cut(&mut splitter(1000), text), records);
        let records = ["%A a\n%T b\n%U c\n%0 Book\n%J d", "%A e\n%T f", "%0 Book\n%T g"];
        let text = [records[0], "\n\n", records[1], "\n", records[2]].concat();
        assert_eq!(cut(&mut splitter(1000), &text), records);
    }
}
