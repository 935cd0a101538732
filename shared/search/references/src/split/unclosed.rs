//! Separates rows of a table that an unclosed quotation mark joins.
//!
//! The mark opens a cell that ends at the next quotation mark, in a later row. The rows are separated only if the lines
//! after the first row show that they are rows themselves: they have as many cells as the header if a mark that is not
//! closed in them is text. Quoted prose with quotation marks in it is similar, but a blank follows the commas of prose.

use crate::work::spend;

/// The cells of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) delimiter: u8,
    /// The number of delimiters in the header.
    pub(super) delimiters: usize,
}

/// The rows that were joined.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rows {
    /// The end of the first row.
    pub(super) stop: usize,
    /// The beginning of the second row.
    pub(super) next: usize,
    /// The end of the lines that are a row each.
    pub(super) until: usize,
    /// `true` if the first row has as many cells as the header.
    pub(super) is_whole: bool,
}

/// The delimiters of a text outside of quoted cells. A quotation mark that is not closed is text.
#[derive(Debug, Default)]
struct Delimiters {
    all: usize,
    /// The number of delimiters before a blank.
    blanks: usize,
    /// The number of delimiters before the cell with the unclosed mark, and the number of these that precede a blank.
    before_open: Option<(usize, usize)>,
}

impl Shape {
    fn count(self, text: &[u8]) -> Delimiters {
        let (mut found, mut at) = (Delimiters::default(), 0);
        loop {
            if text.get(at) == Some(&b'"') {
                match closing(&text[at + 1..]) {
                    Some(end) => at += end + 2,
                    None => found.before_open = found.before_open.or(Some((found.all, found.blanks))),
                }
            }
            let rest = text.get(at..).unwrap_or_default();
            let Some(end) = memchr::memchr(self.delimiter, rest) else { return found };
            at += end + 1;
            found.all += 1;
            found.blanks += usize::from(text.get(at) == Some(&b' '));
        }
    }

    /// Returns `true` if the number of delimiters fits a row.
    fn fits(self, found: &Delimiters) -> bool {
        found.all == self.delimiters && found.blanks * 2 < found.all
    }

    /// Returns `true` if a row may begin here whose last cell on this line continues on the next one.
    fn begins(self, found: &Delimiters) -> bool {
        found.before_open.is_some_and(|(all, blanks)| all > 0 && all <= self.delimiters && blanks * 2 < all)
    }

    /// Separates a row that has line breaks. `is_closed` is `false` if its mark is never closed.
    pub(super) fn separate(
        self,
        row: &[u8],
        is_closed: bool,
        is_header: impl Fn(&[u8]) -> bool,
    ) -> Option<Rows> {
        spend(2 * row.len());
        let (mut at, mut second, mut until) = (0, None, row.len());
        while at < row.len() {
            let stop = memchr::memchr2(b'\n', b'\r', &row[at..]).map_or(row.len(), |stop| at + stop);
            let line = &row[at..stop];
            let found = self.count(line);
            let is_open = is_closed && stop == row.len() && found.before_open.is_some();
            if at > 0 && is_header(line) {
                return None;
            }
            if self.fits(&found) || (is_open && self.begins(&found)) {
                second = second.or(Some(at).filter(|at| *at > 0));
                until = if is_open { at } else { row.len() };
            } else if !line.trim_ascii().is_empty() {
                second = None;
            }
            at = stop + 1;
        }
        let next = second?;
        let breaks = row[..next].iter().rev().take_while(|byte| matches!(byte, b'\n' | b'\r')).count();
        let stop = next - breaks;
        let is_whole = self.fits(&self.count(&row[..stop]));
        (is_whole || !is_closed).then_some(Rows { stop, next, until, is_whole })
    }
}

/// The position of the mark that closes a quoted cell.
fn closing(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr(b'"', &text[at..])?;
        if text.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records that the rows become, for a header with five cells.
    fn separated(row: &str, is_closed: bool) -> Option<(&str, &str, &str)> {
        let shape = Shape { delimiter: b',', delimiters: 4 };
        let rows = shape.separate(row.as_bytes(), is_closed, |line| line.starts_with(b"Title"))?;
        assert_eq!(rows.is_whole, shape.fits(&shape.count(&row.as_bytes()[..rows.stop])));
        Some((
            &row[..rows.stop],
            &row[rows.next..rows.until.max(rows.next)],
            &row[rows.until.max(rows.next)..],
        ))
    }

    #[test]
    fn joined_rows_are_separated() {
        for (row, is_closed, rows) in [
            ("1,a,\"b,c,d\r\n2,a,\"b\",c,d", true, ("1,a,\"b,c,d", "2,a,\"b\",c,d", "")),
            (
                "1,a,\"b,c,d\n\n2,a,b,c,d\n3,a,\"b\"b,c,d",
                true,
                ("1,a,\"b,c,d", "2,a,b,c,d\n3,a,\"b\"b,c,d", ""),
            ),
            // The last row continues.
            ("1,a,\"b\nb,c,d\n2,a,\"b", true, ("1,a,\"b\nb,c,d", "", "2,a,\"b")),
            ("1,a,\"b,c,d\n2,a,\"b,c,d", true, ("1,a,\"b,c,d", "", "2,a,\"b,c,d")),
            ("1,a,\"b,c,d\n2,a,b,c,d", false, ("1,a,\"b,c,d", "2,a,b,c,d", "")),
            ("1,a,\"b\n2,a,b,c,d", false, ("1,a,\"b", "2,a,b,c,d", "")),
        ] {
            assert_eq!(separated(row, is_closed), Some(rows), "{row}");
        }
    }

    #[test]
    fn quoted_lines_are_not_separated() {
        for (row, is_closed) in [
            // Prose with quotation marks.
            ("1,a,\"b\nb \"c\" b,c,d", true),
            ("1,a,b,c,\"d\none, two, three, \"four\", five", true),
            ("1,a,b,c,\"d\none, \"two\" three", true),
            // A row is incomplete.
            ("1,a,\"b\n2,a,\"b\",c,d", true),
            ("1,a,\"b,c,d\n2,a,b,c,d\n3,a,b", false),
            ("1,a,\"b,c,d\n2,a,b,c,d,e", false),
            // Another table follows.
            ("1,a,\"b,c,d\nTitle,a,b,c,d\n2,a,\"b\",c,d", true),
        ] {
            assert_eq!(separated(row, is_closed), None, "{row}");
        }
    }
}
