//! Splits Web of Science plain text.
//!
//! A record begins at `PT` and ends at `ER`, at the next `PT`, or at the end of the file. `FN` and `VR` precede the
//! records, and `EF` follows them. Tags occupy the first two columns, and continuation lines are indented.

use super::{
    lines::{MARK_LENGTH, unmarked},
    tagged::{LineRole, TaggedSplitter},
};

/// The number of bytes that determine whether a line begins a record.
const TAG_PREFIX: usize = MARK_LENGTH + 8;
/// Tags that begin a record without `PT`, because skipping it would lose a study.
const UNTYPED_STARTS: [&[u8; 2]; 3] = [b"AU", b"AF", b"DI"];
/// The tag of the title, which also begins such a record.
const TITLE: &[u8; 2] = b"TI";

/// The tag of a line, and the offset of its value.
pub(crate) fn tag(line: &[u8]) -> Option<([u8; 2], usize)> {
    let &[first, second, ref rest @ ..] = line else { return None };
    let ends = rest.first().is_none_or(|byte| matches!(byte, b' ' | b'\t'));
    let named = first.is_ascii_uppercase() && (second.is_ascii_uppercase() || second.is_ascii_digit());
    (ends && named).then_some(([first, second], line.len().min(3)))
}

/// Returns `true` for a line such as `PT J`, which names the publication type in one letter.
pub(crate) fn is_type_line(line: &[u8]) -> bool {
    // Only these bytes count: a line may be classified before its end has arrived.
    let line = unmarked(&line[..line.len().min(TAG_PREFIX)]);
    let line = &line[..line.len().min(TAG_PREFIX - MARK_LENGTH)];
    matches!(line.strip_prefix(b"PT ").map(<[u8]>::trim_ascii), Some([kind]) if kind.is_ascii_uppercase())
}

/// Returns `true` for lines before or after the records.
pub(crate) fn is_around(line: &[u8]) -> bool {
    line == b"EF" || line.starts_with(b"FN ") || line.starts_with(b"VR ")
}

fn kind(line: &[u8]) -> LineRole {
    if is_type_line(line) {
        return LineRole::Type;
    }
    let line = unmarked(line);
    match tag(line) {
        Some((name, value)) if &name == b"ER" && line[value..].trim_ascii().is_empty() => LineRole::End,
        Some((name, _)) if &name == TITLE => LineRole::Title(0),
        Some((name, _)) if UNTYPED_STARTS.contains(&&name) => LineRole::UntypedStart,
        _ => LineRole::Other,
    }
}

/// Splits Web of Science files.
pub(crate) fn splitter(limit: usize) -> TaggedSplitter {
    TaggedSplitter::by_type(kind, TAG_PREFIX, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    fn records(text: &str) -> Vec<String> {
        cut(&mut splitter(1000), text)
    }

    #[test]
    fn wos_header_and_footer_are_not_records() {
        let text = "FN Clarivate\nVR 1.0\nPT J\nTI a\nER\n\nPT B\nTI b\nER\n\nEF";
        assert_eq!(records(text), ["PT J\nTI a\nER", "PT B\nTI b\nER"]);
    }

    #[test]
    fn wos_record_without_end_or_beginning_is_found() {
        assert_eq!(records("PT J\nTI a\nPT J\nTI b"), ["PT J\nTI a", "PT J\nTI b"]);
        assert_eq!(records("PT J\nER\nTI b\nER\n"), ["PT J\nER", "TI b\nER"]);
        assert_eq!(records("PT J\nTI a\n\nAU b\nTI c\nER\n"), ["PT J\nTI a", "AU b\nTI c\nER"]);
    }

    #[test]
    fn indented_tags_and_sentences_are_ignored() {
        assert_eq!(records("PT J\nAB a\n   ER\n   PT J\nPT was measured\nER positive\nER\n").len(), 1);
    }
}
