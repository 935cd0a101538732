//! Splits a row of a table into cells.

use std::borrow::Cow;

use memchr::memchr;

use crate::{Delimiter, work::spend};

/// The cells of a row, by the same rules as in the splitter: a quote opens a quoted cell only at the start, `""` inside
/// quotes is a quote, and text after the closing quote belongs to the cell.
///
/// Without `quotes`, a quote is an ordinary character.
pub(crate) fn cells(row: &str, delimiter: u8, quotes: bool) -> Cells<'_> {
    Cells { rest: Some(row), delimiter, quotes, unclosed: UnclosedQuote::Quoted }
}

/// The meaning of a quotation mark that opens a cell and is never closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnclosedQuote {
    /// The rest of the row is a quoted cell.
    Quoted,
    /// The mark is text.
    Text,
    /// The mark is text, and at least one row contained it.
    Found,
}

/// The cells of a row that is one quoted cell, up to `max`. A spreadsheet with another delimiter writes rows with
/// quotation marks like this.
pub(crate) fn inner_cells<'a>(
    row: &str,
    delimiter: Delimiter,
    cells_of_row: &[Cow<'_, str>],
    max: usize,
) -> Option<Vec<Cow<'a, str>>> {
    let (first, others) = cells_of_row.split_first()?;
    let end = row.trim_end_matches(|c: char| c.is_whitespace() || c == char::from(delimiter.byte()));
    let is_quoted = row.starts_with('"') && end.ends_with('"');
    if !is_quoted || !first.contains(',') || !others.iter().all(|cell| cell.trim().is_empty()) {
        return None;
    }
    spend(first.len());
    Some(cells(first, b',', true).map(|cell| Cow::Owned(cell.into_owned())).take(max).collect())
}

#[derive(Clone)]
pub(crate) struct Cells<'a> {
    rest: Option<&'a str>,
    delimiter: u8,
    quotes: bool,
    unclosed: UnclosedQuote,
}

impl Cells<'_> {
    /// Counts a quotation mark that is never closed as text.
    pub(crate) fn with_unclosed_as_text(self) -> Self {
        Self { unclosed: UnclosedQuote::Text, ..self }
    }

    /// Returns `true` if a quotation mark was counted as text.
    pub(crate) fn is_unclosed(&self) -> bool {
        self.unclosed == UnclosedQuote::Found
    }
}

impl<'a> Iterator for Cells<'a> {
    type Item = Cow<'a, str>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rest.take()?;
        let quoted = row.strip_prefix('"').filter(|_| self.quotes).map(|quoted| self.quoted(quoted));
        let is_text = self.unclosed != UnclosedQuote::Quoted
            && quoted.as_ref().is_some_and(|(_, after)| after.is_none());
        if is_text {
            self.unclosed = UnclosedQuote::Found;
        }
        let (cell, after) = match quoted.filter(|_| !is_text) {
            Some((cell, after)) => (cell, after.unwrap_or_default()),
            None => {
                let end = memchr(self.delimiter, row.as_bytes()).unwrap_or(row.len());
                (Cow::Borrowed(&row[..end]), &row[end..])
            }
        };
        // The rest begins with the delimiter, or is the end of the row.
        self.rest = after.get(1..);
        Some(cell)
    }
}

impl Cells<'_> {
    /// Reads a cell after its opening quote, and returns it with the rest of the row if it is closed.
    fn quoted<'a>(&self, text: &'a str) -> (Cow<'a, str>, Option<&'a str>) {
        let mut cell = Cow::Borrowed("");
        let mut rest = text;
        while let Some(at) = memchr(b'"', rest.as_bytes()) {
            append(&mut cell, &rest[..at]);
            let after = &rest[at + 1..];
            let Some(more) = after.strip_prefix('"') else {
                let end = memchr(self.delimiter, after.as_bytes()).unwrap_or(after.len());
                append(&mut cell, &after[..end]);
                return (cell, Some(&after[end..]));
            };
            append(&mut cell, "\"");
            rest = more;
        }
        append(&mut cell, rest);
        (cell, None)
    }
}

fn append<'a>(cell: &mut Cow<'a, str>, more: &'a str) {
    if cell.is_empty() {
        *cell = Cow::Borrowed(more);
    } else if !more.is_empty() {
        cell.to_mut().push_str(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(row: &str) -> Vec<String> {
        cells(row, b',', true).map(Cow::into_owned).collect()
    }

    #[test]
    fn quotes_count_only_at_cell_start() {
        assert_eq!(of(r#"a,"b, ""c""",,5" tube,"d"e"#), ["a", "b, \"c\"", "", "5\" tube", "de"]);
        assert_eq!(of("a,\"b\r\nc\","), ["a", "b\r\nc", ""]);
        assert_eq!(of("\"open"), ["open"]);
        assert_eq!(of(r#""""#), [""]);
        assert_eq!(of(""), [""]);
        let mut text = cells("\"a,\"b,\"\"", b',', true).with_unclosed_as_text();
        assert_eq!(text.by_ref().collect::<Vec<_>>(), ["a,b", ""]);
        let mut text = cells("\"a,b,\"\"", b',', true).with_unclosed_as_text();
        assert_eq!(
            (text.by_ref().collect::<Vec<_>>(), text.is_unclosed()),
            (vec!["\"a".into(), "b".into(), "".into()], true)
        );
        let plain: Vec<_> = cells("\"a,b", b',', false).collect();
        assert_eq!(plain, ["\"a", "b"]);
    }
}
