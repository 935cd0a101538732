//! Splits texts of EndNote with spelled-out names, as its style *Show All Fields* writes them: lines `Author: …`.
//!
//! A record begins at `Reference Type:`, and ends at the next one. Its values may have blank lines. Behind a blank line,
//! other fields with a title are also a record.

use super::{
    lines::{self, MARK_LENGTH, unmarked},
    tagged::{LineRole, TaggedSplitter},
};

const FIRST: &[u8] = b"Reference Type:";
const TITLE: &[u8] = b"Title:";
/// The number of bytes that determine whether a line begins a record.
const TAG_PREFIX: usize = MARK_LENGTH + FIRST.len();
/// The names that may follow the type of a record.
const SECOND: [&str; 8] =
    ["Record Number:", "Author:", "Editor:", "Year:", "Title:", "Journal:", "Inventor:", "Artist:"];

/// Returns `true` if a line begins a record.
pub(crate) fn is_first_line(line: &[u8]) -> bool {
    unmarked(line).starts_with(FIRST)
}

/// Returns `true` for a line that begins a record, if another name follows it in `after`. The words also begin a line
/// of other texts.
pub(crate) fn begins(line: &[u8], after: &str) -> bool {
    let next = || lines::all(after).map(str::trim).find(|line| !line.is_empty());
    is_first_line(line) && next().is_some_and(|next| SECOND.iter().any(|name| next.starts_with(name)))
}

fn kind(line: &[u8]) -> LineRole {
    match unmarked(line) {
        line if line.starts_with(FIRST) => LineRole::Type,
        line if line.starts_with(TITLE) => LineRole::Title(0),
        line if SECOND.iter().any(|name| line.starts_with(name.as_bytes())) => LineRole::Field,
        _ => LineRole::Other,
    }
}

/// Splits texts of EndNote.
pub(crate) fn splitter(limit: usize) -> TaggedSplitter {
    TaggedSplitter::by_type(kind, TAG_PREFIX, limit).with_similar_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    #[test]
    fn records_begin_at_their_type() {
        let text = "Reference Type:  Book\nTitle: a\n\nmore\n\nReference Type:  Book\nTitle: b\n";
        assert_eq!(
            cut(&mut splitter(1000), text),
            ["Reference Type:  Book\nTitle: a\n\nmore", "Reference Type:  Book\nTitle: b"]
        );
        let text =
            "Reference Type: Book\nTitle: a\nAbstract: b\n\nTitle: c\n\n\nRecord Number: 2\nTitle: b\n";
        let records =
            ["Reference Type: Book\nTitle: a\nAbstract: b\n\nTitle: c", "Record Number: 2\nTitle: b"];
        assert_eq!(cut(&mut splitter(1000), text), records);
        assert!(begins(b"Reference Type: Book", "\r\nAuthor: a"));
        assert!(!begins(b"Reference Type: Book", "\nis a heading") && !begins(b"Type: Book", "\nAuthor: a"));
    }
}
