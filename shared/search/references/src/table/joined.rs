//! Headers that are joined to other text without a line end.

use super::header::{self, known_columns};
use crate::Delimiter;

/// The maximum length of a header row that is recognized.
pub(crate) const MAX_HEADER: usize = 8 * 1024;

/// Returns `true` for the name of a known column at this place, possibly in quotation marks.
fn is_known(cell: &[u8], place: usize) -> bool {
    let name = std::str::from_utf8(cell).unwrap_or_default();
    header::column(name.trim_matches('"'), place).named.is_some()
}

/// Finds the header of another table that is joined to the last cell of a row, by the place of the cell that holds both.
pub(crate) fn header_in_row(row: &[u8], cell: std::ops::Range<usize>, delimiter: Delimiter) -> Option<usize> {
    let text = &row[cell.clone()];
    let quoted = || {
        let front = text.strip_suffix(b"\"")?;
        memchr::memrchr(b'"', front)
    };
    let behind_quote = || memchr::memrchr(b'"', text).map(|at| at + 1).filter(|at| *at < text.len());
    let unclear = || unclear_name(text).map(|length| text.len() - length);
    // The last cell of the row may be empty.
    let name = std::str::from_utf8(text).unwrap_or_default().trim_matches('"');
    let is_name =
        is_known(text, 0) || FIRST_NAMES.iter().any(|first| name.as_bytes().eq_ignore_ascii_case(first));
    let whole = Some(0).filter(|_| is_name && !text.starts_with(b"\"\""));
    let places = [whole, quoted(), behind_quote(), unclear(), Some(0)];
    let is_header = |at: &usize| row.len() - at <= MAX_HEADER && known_columns(&row[*at..], delimiter) > 0;
    places.into_iter().flatten().map(|at| cell.start + at).find(is_header)
}

/// Returns `true` for the front of a row whose cells before the last one are values. One in four may also be the name of
/// a column, such as `NO`.
pub(crate) fn has_only_values(front: &[u8], delimiter: Delimiter) -> bool {
    let end = memchr::memrchr(delimiter.byte(), front).unwrap_or_default();
    let is_name = |cell: &&[u8]| is_known(cell, 1);
    let cells = || front[..end].split(|byte| *byte == delimiter.byte());
    cells().any(|cell| has_values(cell) || cell.len() > header::MAX_NAME)
        && cells().filter(is_name).count() * 4 <= cells().count()
}

/// Names of first columns that are not fields, in lower case.
const FIRST_NAMES: [&[u8]; 12] = [
    b"trialid",
    b"key",
    b"rank",
    b"cites",
    b"lens id",
    b"publication id",
    b"covidence #",
    b"record_id",
    b"eid",
    b"nct number",
    b"study id",
    b"id",
];

/// Returns `true` for a cell with several digits, or with delimiters of another table. The names of columns have neither.
pub(crate) fn has_values(cell: &[u8]) -> bool {
    cell.iter().filter(|byte| byte.is_ascii_digit()).count() > 1
        || cell.iter().any(|byte| matches!(byte, b',' | b';' | b'\t' | b'|'))
}

/// The length of the name of a column at the end of a cell with other text, if nothing separates the two: `nursespmid`.
/// The name may be unknown, so it begins at a capital letter or behind the last punctuation.
pub(crate) fn unclear_name(cell: &[u8]) -> Option<usize> {
    /// The minimum length of a name in the middle of a word.
    const MIN_NAME: usize = 3;
    let from = cell.len().saturating_sub(header::MAX_NAME).max(1);
    // The name may be quoted: `2020."Key"`.
    if let Some(front) = cell.strip_suffix(b"\"") {
        let at = memchr::memrchr(b'"', front).filter(|at| *at > 0 && !cell[at - 1].is_ascii_whitespace())?;
        return Some(cell.len() - at);
    }
    let is_known = |at: &usize| {
        let name = std::str::from_utf8(&cell[*at..]).ok().filter(|name| !name.contains(':'));
        name.is_some_and(|name| header::column(name, 0).named.is_some())
    };
    let is_first = |at: &usize| FIRST_NAMES.iter().any(|name| cell[*at..].eq_ignore_ascii_case(name));
    let is_border = |at: &usize| match (cell[*at - 1], cell[*at]) {
        (b' ' | b'_' | b'-', _) => false,
        (before, first) => {
            (first.is_ascii_uppercase() && !before.is_ascii_uppercase())
                || (first.is_ascii_alphanumeric() && !before.is_ascii_alphanumeric())
        }
    };
    let known = (from..cell.len().saturating_sub(MIN_NAME - 1))
        .find(|at| !cell[*at].is_ascii_whitespace() && is_known(at));
    let first = || (from..cell.len()).find(is_first);
    let border = || (from..cell.len()).rev().find(is_border);
    // A blank shows that it is part of a text or of the name.
    let is_joined = |at: &usize| !cell[at - 1].is_ascii_whitespace();
    match known {
        Some(at) => Some(at).filter(is_joined),
        None => first().filter(is_joined).or_else(|| border().filter(is_joined)),
    }
    .map(|at| cell.len() - at)
}

/// The length of the name of a column that a cell ends with, after other text.
pub(crate) fn joined_name(cell: &[u8]) -> Option<usize> {
    let from = cell.len().saturating_sub(header::MAX_NAME);
    let is_quoted = cell.ends_with(b"\"");
    // OpenAlex names its columns by paths: `primary_location.source.display_name`.
    if cell.iter().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'.' | b'_'))
        && cell.contains(&b'.')
    {
        return None;
    }
    // `journalTitle` and `journalTitle_s`
    if cell.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') && is_known(cell, 0) {
        return None;
    }
    let begins = |at: &usize| match (cell[*at - 1], cell[*at]) {
        // Part of another name: `Original Title`.
        (b' ' | b'_' | b'-', _) => false,
        (_, b'"') => is_quoted,
        (before, first) => !is_quoted && (first.is_ascii_uppercase() || !before.is_ascii_alphanumeric()),
    };
    (from.max(1)..cell.len()).filter(begins).find(|at| is_known(&cell[*at..], 0)).map(|at| cell.len() - at)
}
