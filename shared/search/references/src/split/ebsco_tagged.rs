//! Splits the files that EBSCOhost exports for other reference managers: lines `TI- …`, and a blank line after each
//! record.
//!
//! Some databases write no blank line, so a title also begins a record if the open one has several fields. A translated
//! title directly follows the original one.

use super::{
    lines::{MARK_LENGTH, not_blank, unmarked},
    tagged::{LineRole, LineRules, OpenRecord, TaggedSplitter},
};

/// The number of bytes that determine the role of a line.
const PREFIX: usize = MARK_LENGTH + 4;
/// The number of fields of a record that has more than a title and its translation.
const MIN_FIELDS: usize = 2;
/// The minimum number of lines with a tag behind the first title of a file.
const MIN_TAGS: usize = 2;
/// The maximum number of such lines before one with a tag that RIS lacks.
const MAX_SHARED: usize = 200;
/// Tags that RIS lacks.
const OWN: [&[u8; 2]; 10] = [b"SO", b"PS", b"AF", b"VI", b"IP", b"PG", b"SU", b"KP", b"MJ", b"PM"];

/// The tag of a line, and the offset of its value.
pub(crate) fn tag(line: &str) -> Option<(&str, usize)> {
    is_tagged(line.as_bytes()).then(|| (&line[..2], line.len().min(4)))
}

/// Returns `true` for `AU- Roe, Ann`.
fn is_tagged(line: &[u8]) -> bool {
    match line {
        [first, second, b'-', rest @ ..] => {
            first.is_ascii_uppercase()
                && (second.is_ascii_uppercase() || second.is_ascii_digit())
                && rest.first().is_none_or(|next| *next == b' ')
        }
        _ => false,
    }
}

/// Returns `true` for a title with which a file begins, if other fields of EBSCOhost follow in `after`.
pub(crate) fn begins(line: &[u8], after: &[u8]) -> bool {
    let fields = || not_blank(after).take_while(|line| is_tagged(line)).take(MAX_SHARED);
    let is_own = |line: &[u8]| OWN.iter().any(|tag| line.starts_with(*tag));
    line.starts_with(b"TI- ") && fields().nth(MIN_TAGS - 1).is_some() && fields().any(is_own)
}

fn kind(line: &[u8]) -> LineRole {
    match unmarked(&line[..line.len().min(PREFIX)]) {
        line if !is_tagged(line) => LineRole::Other,
        [b'T', b'I', ..] => LineRole::Title(0),
        _ => LineRole::Tag,
    }
}

fn begins_next(open: &OpenRecord, kind: LineRole) -> bool {
    match kind {
        LineRole::Title(_) => open.blanks > 0 || (open.title.is_some() && open.fields >= MIN_FIELDS),
        LineRole::Tag => open.blanks > 0 && open.title.is_some(),
        _ => false,
    }
}

/// Splits files of tagged lines of EBSCOhost.
pub(crate) fn splitter(limit: usize) -> TaggedSplitter {
    TaggedSplitter::new(LineRules { kind, prefix: PREFIX, begins_next }, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    #[test]
    fn records_begin_behind_blank_lines_or_at_titles() {
        let text = "TI- a\nTI- b\nAU- c\nAB- d\n\nnot a tag\n\nTI- e\nAU- f\n\nAU- g\nTI- h\n";
        let records = ["TI- a\nTI- b\nAU- c\nAB- d\n\nnot a tag", "TI- e\nAU- f", "AU- g\nTI- h"];
        assert_eq!(cut(&mut splitter(1000), text), records);
        let text = "TI- a\nAU- b\nSU- c\nTI- d\nAU- e\n";
        assert_eq!(cut(&mut splitter(1000), text), ["TI- a\nAU- b\nSU- c", "TI- d\nAU- e"]);
        assert!(begins(b"TI- a", b"AU- b\nSO- c\n") && !begins(b"TI- a", b"AU- b\nPY- 2020\n"));
        assert_eq!(
            (tag("AU- a"), tag("AB-"), tag("AB-c"), tag("Ti- a")),
            (Some(("AU", 4)), Some(("AB", 3)), None, None)
        );
    }
}
