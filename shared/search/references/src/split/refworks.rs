//! Splits RefWorks' tagged files: a record begins at `RT` and ends at the next one. Behind a blank line, other tags
//! with a title are also a record.

use memchr::memchr;

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

/// The tags. In prose, such tags would be words.
#[rustfmt::skip]
const TAGS: [&str; 65] = [
    "RT", "SR", "ID", "A1", "A2", "A3", "A4", "A5", "A6", "T1", "T2", "T3", "JF", "JO", "YR", "FD", "VO", "IS", "SP",
    "OP", "K1", "AB", "NO", "ED", "PB", "PP", "SN", "AV", "AD", "AN", "LA", "CL", "SF", "OT", "LK", "DO", "CN", "DB",
    "DS", "IP", "RD", "ST", "UL", "SL", "LL", "WT", "CR", "OL", "WP", "WV", "U1", "U2", "U3", "U4", "U5", "U6", "U7",
    "U8", "U9", "U10", "U11", "U12", "U13", "U14", "U15",
];

/// The longest tag.
const MAX_TAG: usize = "PMCID".len();

/// The tag of a line, and the offset of its value.
pub(crate) fn tag(line: &str) -> Option<(&str, usize)> {
    let front = &line.as_bytes()[..line.len().min(MAX_TAG + 1)];
    let end = memchr(b' ', front).unwrap_or(front.len());
    let (name, value) = (line.get(..end)?, line.len().min(end + 1));
    // CNKI writes this tag in lower case.
    let name = if name == "vo" { "VO" } else { name };
    let is_known = match name {
        // A wrapped line may also begin with the label of an identifier.
        "PMID" => is_number(line[value..].trim()),
        "PMCID" => is_number(line[value..].trim().trim_start_matches("PMC")),
        // In an abstract, `CR` is a complete response and `U1` a part of the spliceosome.
        "CR" | "OL" | "WP" | "WV" => !begins_in_lower_case(&line[value..]),
        "U1" | "U2" | "U4" | "U5" | "U6" => !line[value..].trim_start().starts_with("sn"),
        _ => TAGS.contains(&name),
    };
    is_known.then_some((name, value))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn begins_in_lower_case(text: &str) -> bool {
    text.trim_start().starts_with(|c: char| c.is_lowercase())
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
        assert_eq!(
            (tag("U15 b"), tag("PMID 12"), tag("PMCID PMC12")),
            (Some(("U15", 4)), Some(("PMID", 5)), Some(("PMCID", 6)))
        );
        assert_eq!(
            (tag("PMID is missing"), tag("U151 b"), tag("OL"), tag("é")),
            (None, None, Some(("OL", 2)), None)
        );
    }
}
