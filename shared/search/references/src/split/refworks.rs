//! Splits RefWorks' tagged files: a record begins at `RT` and ends at the next one. Behind a blank line, other tags
//! with a title are also a record.

use super::{
    lines::{MARK_LENGTH, unmarked},
    tagged::{LineRole, TaggedSplitter},
};

/// The number of bytes that determine whether a line begins a record: the tag and the first word of the longest work
/// type.
const TAG_PREFIX: usize = MARK_LENGTH + 16;

/// The beginnings of the work types, which distinguish the format from prose.
const KINDS: [&[u8]; 26] = [
    b"Abstract",
    b"Artwork",
    b"Bill",
    b"Book",
    b"Case",
    b"Computer",
    b"Conference",
    b"Dissertation",
    b"Generic",
    b"Grant",
    b"Hearing",
    b"Journal",
    b"Laws",
    b"Magazine",
    b"Map",
    b"Monograph",
    b"Motion",
    b"Music",
    b"Newspaper",
    b"Online",
    b"Patent",
    b"Personal",
    b"Report",
    b"Thesis",
    b"Unpublished",
    b"Web",
];

/// The tags, with two characters each. In prose they would be words.
#[rustfmt::skip]
const TAGS: [&str; 46] = [
    "RT", "SR", "ID", "A1", "A2", "A3", "A4", "A5", "A6", "T1", "T2", "T3", "JF", "JO", "YR", "FD", "VO", "IS", "SP",
    "OP", "K1", "AB", "NO", "ED", "PB", "PP", "SN", "AV", "AD", "AN", "LA", "CL", "SF", "OT", "LK", "DO", "CN", "DB",
    "DS", "IP", "RD", "ST", "UL", "SL", "LL", "WT",
];

/// The tag of a line, and the offset of its value.
pub(crate) fn tag(line: &str) -> Option<(&str, usize)> {
    let name = line.get(..2)?;
    // CNKI writes this tag in lower case.
    let name = if name == "vo" { "VO" } else { name };
    if !TAGS.contains(&name) {
        return None;
    }
    matches!(line.as_bytes().get(2), None | Some(b' ')).then(|| (name, line.len().min(3)))
}

fn kind(line: &[u8]) -> LineRole {
    let line = &line[..line.len().min(TAG_PREFIX)];
    let line = unmarked(line);
    let Some((name, value)) = line.split_first_chunk::<3>() else { return LineRole::Other };
    let value = value.trim_ascii_start();
    match name {
        b"RT " if KINDS.iter().any(|kind| value.starts_with(kind)) => LineRole::Type,
        b"RT " => LineRole::Other,
        // A line may begin with `T1 weighted`, a paragraph also with `T1 N0 M0`.
        b"T1 " if value.starts_with(b"weighted") => LineRole::Other,
        b"T1 " => LineRole::Title(0),
        &[first, second, b' '] if TAGS.iter().any(|tag| tag.as_bytes() == [first, second]) => LineRole::Field,
        _ => LineRole::Other,
    }
}

/// Returns `true` if a line begins a record.
pub(crate) fn is_type_line(line: &[u8]) -> bool {
    kind(line) == LineRole::Type
}

/// Splits RefWorks' tagged files.
pub(crate) fn splitter(limit: usize) -> TaggedSplitter {
    TaggedSplitter::by_type(kind, TAG_PREFIX, limit).with_similar_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    #[test]
    fn refworks_record_begins_at_work_type() {
        let text = "RT Journal Article\nT1 a\nAB b\n\nRT was measured\n\nRT Dissertation/Thesis\nT1 c\n";
        let records = ["RT Journal Article\nT1 a\nAB b\n\nRT was measured", "RT Dissertation/Thesis\nT1 c"];
        assert_eq!(cut(&mut splitter(1000), text), records);
        let text = "RT Book\nT1 First\nAB b\n\nT1 N0 M0\n\nA1 Roe\nT1 Second\n";
        let records = ["RT Book\nT1 First\nAB b\n\nT1 N0 M0", "A1 Roe\nT1 Second"];
        assert_eq!(cut(&mut splitter(1000), text), records);
        assert_eq!(tag("T1 a"), Some(("T1", 3)));
        assert_eq!(tag("vo 5"), Some(("VO", 3)));
        assert_eq!(tag("In vivo"), None);
    }
}
