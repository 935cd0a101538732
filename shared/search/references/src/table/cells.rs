//! Splits a row of a table into cells.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use crate::{Delimiter, work::spend};

/// The cells of a row, by the same rules as in the splitter: a quote opens a quoted cell only at the start, `""` inside
/// quotes is a quote, and text after the closing quote belongs to the cell.
///
/// Without `quotes`, a quote is an ordinary character.
pub(crate) fn cells(row: &str, delimiter: u8, quotes: bool) -> Cells<'_> {
    Cells { rest: Some(row), delimiter, quotes, unclosed: UnclosedQuote::Quoted, is_irregular: false }
}

/// The cells of a row in which a backslash precedes quotation marks inside quoted cells, as R, MySQL and Python write
/// them. Returns `None` if text follows the mark that closes a cell, or a cell is not closed.
pub(crate) fn escaped_cells<'a>(row: &str, delimiter: u8) -> Option<Vec<Cow<'a, str>>> {
    if memchr::memmem::find(row.as_bytes(), b"\\\"").is_none() || !spend(row.len()) {
        return None;
    }
    let (mut found, mut rest) = (Vec::new(), row);
    loop {
        let (cell, after) = match rest.strip_prefix('"') {
            Some(quoted) => escaped(quoted)?,
            None => {
                let end = memchr(delimiter, rest.as_bytes()).unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        found.push(Cow::Owned(cell));
        let after = after.trim_start_matches(' ');
        if after.is_empty() {
            return Some(found);
        }
        rest = after.strip_prefix(char::from(delimiter))?;
    }
}

/// Reads a cell after its opening quote, and returns it with the rest of the row.
fn escaped(text: &str) -> Option<(String, &str)> {
    let (mut cell, mut rest) = (String::new(), text);
    loop {
        let at = memchr2(b'"', b'\\', rest.as_bytes())?;
        cell.push_str(&rest[..at]);
        let (mark, after) = rest[at..].split_at(1);
        match after.as_bytes().first() {
            Some(b'"') => cell.push('"'),
            Some(b'\\') if mark == "\\" => cell.push('\\'),
            _ if mark == "\"" => return Some((cell, after)),
            _ => {
                cell.push('\\');
                rest = after;
                continue;
            }
        }
        rest = &after[1..];
    }
}

/// Returns `true` for a row as R writes it: all cells but numbers, missing and logical values are quoted.
pub(crate) fn is_quoted(row: &str, delimiter: u8) -> bool {
    if !spend(row.len()) {
        return false;
    }
    let is_bare = |cell: &str| matches!(cell, "" | "NA" | "TRUE" | "FALSE") || cell.parse::<f64>().is_ok();
    let mut row_cells = cells(row, delimiter, true);
    while let Some(rest) = row_cells.rest {
        let Some(cell) = row_cells.next() else { break };
        if !rest.starts_with('"') && !is_bare(cell.trim()) {
            return false;
        }
    }
    !row_cells.is_irregular
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
    is_irregular: bool,
}

impl Cells<'_> {
    /// Returns `true` if text followed the mark that closed a cell.
    pub(crate) fn is_irregular(&self) -> bool {
        self.is_irregular
    }

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
        let quoted = row.strip_prefix('"').filter(|_| self.quotes).map(|quoted| {
            let (cell, after, is_irregular) = self.quoted(quoted);
            self.is_irregular |= is_irregular;
            (cell, after)
        });
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
    /// Reads a cell after its opening quote, and returns it with the rest of the row if it is closed, and `true` if text
    /// follows the closing quote.
    fn quoted<'a>(&self, text: &'a str) -> (Cow<'a, str>, Option<&'a str>, bool) {
        let mut cell = Cow::Borrowed("");
        let mut rest = text;
        while let Some(at) = memchr(b'"', rest.as_bytes()) {
            append(&mut cell, &rest[..at]);
            let after = &rest[at + 1..];
            let Some(more) = after.strip_prefix('"') else {
                let end = memchr(self.delimiter, after.as_bytes()).unwrap_or(after.len());
                let is_irregular = !after[..end].trim().is_empty();
                // A program did not double the marks inside: `"a "b" c"`.
                if is_irregular && after[..end].trim_end().ends_with('"') {
                    let inside = text[..text.len() - after.len() + end].trim_end();
                    let inside = inside.strip_suffix('"').unwrap_or(inside);
                    return (Cow::Owned(inside.replace("\"\"", "\"")), Some(&after[end..]), true);
                }
                append(&mut cell, &after[..end]);
                return (cell, Some(&after[end..]), is_irregular);
            };
            append(&mut cell, "\"");
            rest = more;
        }
        append(&mut cell, rest);
        (cell, None, false)
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
        assert_eq!(of(r#""a "b" c",d,"e ""f" g""#), ["a \"b\" c", "d", "e \"f\" g"]);
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
        let escaped = |row| escaped_cells(row, b',').map(|cells| cells.join("|"));
        assert_eq!(escaped(r#"1,"a \"b, c\"","\\","d\e""f""#).as_deref(), Some(r#"1|a "b, c"|\|d\e"f"#));
        for row in [r#""a\"b"c,1"#, r#""a\","b""#, r#""a\""#, r#""a""b""#] {
            assert_eq!(escaped(row), None, "{row}");
        }
        assert!(is_quoted("\"1\",\"a, b\",,NA,-2.5,TRUE", b','));
        assert!(!is_quoted("\"1\",a,2", b',') && !is_quoted("\"1\",\"a\"b\",2", b','));
        let plain: Vec<_> = cells("\"a,b", b',', false).collect();
        assert_eq!(plain, ["\"a", "b"]);
    }
}
