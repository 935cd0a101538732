//! Splits texts of CNKI with names of fields in two languages: lines `Title-题名: …`.
//!
//! A record begins at `SrcDatabase-来源库`, and ends at the next one.

use super::{
    lines::{MARK_LENGTH, unmarked},
    tagged::{LineRole, TaggedSplitter},
};

const FIRST: &[u8] = "SrcDatabase-来源库".as_bytes();
/// The number of bytes that determine whether a line begins a record.
const TAG_PREFIX: usize = MARK_LENGTH + FIRST.len();
/// Longest name of a field.
const MAX_NAME: usize = 60;

/// The name of a field, an English word, a hyphen and a Chinese word before a colon, and the offset of its value.
pub(crate) fn tag(line: &str) -> Option<(&str, usize)> {
    let end = line.find([':', '：'])?;
    let (name, rest) = line.split_at(end);
    let (english, chinese) = name.split_once('-')?;
    let is_name = !english.is_empty()
        && english.bytes().all(|byte| byte.is_ascii_alphabetic())
        && chinese.chars().next().is_some_and(|first| !first.is_ascii() || chinese == "DOI");
    let colon = rest.chars().next().map_or(0, char::len_utf8);
    (is_name && name.len() <= MAX_NAME).then_some((name, end + colon))
}

/// Returns `true` if a line begins a record.
pub(crate) fn is_type_line(line: &[u8]) -> bool {
    let line = unmarked(line);
    // A table has the same names in one row.
    line.starts_with(FIRST)
        && line.get(FIRST.len()).is_none_or(|next| !matches!(next, b',' | b';' | b'\t' | b'"'))
}

fn kind(line: &[u8]) -> LineRole {
    if unmarked(line).starts_with(FIRST) { LineRole::Type } else { LineRole::Other }
}

/// Splits texts of CNKI.
pub(crate) fn splitter(limit: usize) -> TaggedSplitter {
    TaggedSplitter::by_type(kind, TAG_PREFIX, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    #[test]
    fn cnki_records_begin_at_their_database() {
        let text = "SrcDatabase-来源库: 期刊\nTitle-题名: 一\n\nSrcDatabase-来源库: 期刊\nTitle-题名: 二\n";
        assert_eq!(cut(&mut splitter(1000), text).len(), 2);
        assert_eq!(tag("DOI-DOI: 10.5555/a"), Some(("DOI-DOI", 8)));
        assert_eq!(tag("x-y: z"), None);
        assert!(!is_type_line("SrcDatabase-来源库,Title-题名".as_bytes()));
    }
}
