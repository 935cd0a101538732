//! Splits files of NoteExpress, which Chinese databases export: lines `{Reference Type}: Journal Article`. The colon may
//! be a full-width one.
//!
//! A record begins at `{Reference Type}`, and ends at the next one. Behind a blank line, other fields with a title are
//! also a record.

use super::{
    lines::{MARK_LENGTH, unmarked},
    tagged::{LineRole, TaggedSplitter},
};

const FIRST: &[u8] = b"{Reference Type}";
const TITLE: &[u8] = b"{Title}";
/// The colons after a name, in UTF-8 and in GBK.
const COLONS: [&[u8]; 3] = [b":", FULL_WIDTH.as_bytes(), b"\xA3\xBA"];
const FULL_WIDTH: &str = "：";
/// The number of bytes that determine whether a line begins a record.
const TAG_PREFIX: usize = MARK_LENGTH + FIRST.len() + FULL_WIDTH.len();
/// The maximum length of a name of a field.
const MAX_NAME: usize = 40;

/// The name of a field in braces, and the offset of its value.
pub(crate) fn tag(line: &str) -> Option<(&str, usize)> {
    let (name, rest) = line.strip_prefix('{')?.split_once('}')?;
    let colon = [":", FULL_WIDTH].into_iter().find(|colon| rest.starts_with(colon))?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '/' | '-' | '_');
    (name.len() <= MAX_NAME && name.chars().all(is_name)).then(|| (name, name.len() + 2 + colon.len()))
}

/// Returns `true` if a line begins with this name and a colon.
fn has_name(line: &[u8], name: &[u8]) -> bool {
    line.strip_prefix(name).is_some_and(|rest| COLONS.iter().any(|colon| rest.starts_with(colon)))
}

/// Returns `true` if a line begins a record.
pub(crate) fn is_type_line(line: &[u8]) -> bool {
    has_name(unmarked(line), FIRST)
}

fn kind(line: &[u8]) -> LineRole {
    match unmarked(line) {
        line if has_name(line, FIRST) => LineRole::Type,
        line if has_name(line, TITLE) => LineRole::Title(0),
        [b'{', b'A'..=b'Z', ..] => LineRole::Field,
        _ => LineRole::Other,
    }
}

/// Splits files of NoteExpress.
pub(crate) fn splitter(limit: usize) -> TaggedSplitter {
    TaggedSplitter::by_type(kind, TAG_PREFIX, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    #[test]
    fn noteexpress_records_begin_at_their_type() {
        let text = "{Reference Type}: Book\n{Title}: a\n\n{Reference Type}: Book\n{Title}: b\n";
        let records = ["{Reference Type}: Book\n{Title}: a", "{Reference Type}: Book\n{Title}: b"];
        assert_eq!(cut(&mut splitter(1000), text), records);
        let text = "{Reference Type}: Book\n{Title}: a\n\n{Author}: b\n{Title}: c\n";
        let records = ["{Reference Type}: Book\n{Title}: a", "{Author}: b\n{Title}: c"];
        assert_eq!(cut(&mut splitter(1000), text), records);
        let text = "{Reference Type}：Book\n{Title}：a\n\n{Reference Type}：Book\n{Title}: b\n";
        let records = ["{Reference Type}：Book\n{Title}：a", "{Reference Type}：Book\n{Title}: b"];
        assert_eq!(cut(&mut splitter(1000), text), records);
        assert!(is_type_line(b"{Reference Type}\xA3\xBABook") && !is_type_line(b"{Reference Type} Book"));
        assert_eq!(tag("{ISBN/ISSN}: 1"), Some(("ISBN/ISSN", 12)));
        assert_eq!(tag("{Title}：1"), Some(("Title", 10)));
        assert_eq!(tag("{\"a\": 1}"), None);
    }
}
