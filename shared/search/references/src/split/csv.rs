//! Splits tables into rows.
//!
//! The rules are those of RFC 4180, and the same as for reading a row (module `read`): a quote opens a quoted cell only
//! at the start, `""` inside quotes is a quote, and quoted cells may contain line breaks. `\"` before text is a quote, too,
//! as R and MySQL write it. Blank rows, which spreadsheets leave at the end, are not records, and neither are rows above
//! the header. A row whose only cell with text is the first one is skipped if it is a remark, such as `Total records: 2`
//! or a line of a search strategy. Web of Science does not quote: its titles may begin with a quote.
//!
//! Rows that an unclosed quote joins are separated (module `unclosed`). Such a quote is text.

use memchr::{memchr, memchr_iter, memchr2, memchr3};

use super::{Splitter, Step, lines::unmarked, unclosed::Shape};
use crate::{
    Delimiter,
    table::{
        header::{has_quotes, is_header, is_separator_line, known_columns},
        joined,
    },
};

/// The first words of remarks, in lower case, before a colon.
#[rustfmt::skip]
const REMARKS: [&[u8]; 25] = [
    b"total", b"records", b"results", b"hits", b"search", b"query", b"strategy", b"database", b"databases", b"source",
    b"provider", b"content", b"exported", b"export", b"downloaded", b"date", b"note", b"notes", b"from", b"to", b"subject",
    b"sent", b"copyright", b"limits", b"about",
];
/// The first cells of rows with the number of records, in lower case.
#[rustfmt::skip]
const TOTALS: [&[u8]; 9] = [
    b"total", b"totals", b"grand total", b"total records", b"total results", b"total studies", b"sum", b"count", b"gesamt",
];
/// The maximum number of words before the colon of a remark.
const MAX_NAME_WORDS: usize = 3;
/// The maximum length of a remark that is inspected.
const MAX_REMARK: usize = 400;
/// The minimum number of columns of a table with remarks.
const MIN_COLUMNS: usize = 3;

const UNCLOSED: &str = "a quotation mark opened in this row is never closed";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    CellStart,
    Plain,
    Quoted,
    /// After a quote inside quotes: either the end of the cell, or the first half of `""`.
    QuoteInQuotes,
}

/// Splits tables.
#[derive(Debug)]
pub(crate) struct Csv {
    delimiter: Delimiter,
    limit: usize,
    at: usize,
    state: State,
    /// `true` if a quote at the start of a cell opens a quoted cell.
    quotes: bool,
    header: HeaderState,
    /// The number of delimiters in the header.
    header_delimiters: usize,
    /// The number of delimiters in the row so far, outside of quotes.
    delimiters: usize,
    /// `true` if text follows a closing quote in the row.
    is_irregular: bool,
    /// `true` if a backslash precedes a quotation mark in the open cell.
    has_escapes: bool,
    /// The end of the lines at the front that are a row each, whatever quotes they contain.
    rows_end: usize,
    /// `true` if the quotation mark of the last row may have been closed by one of another file.
    lacks_end: bool,
}

/// The state of the header row.
#[derive(Debug)]
enum HeaderState {
    /// The header has not been found yet. The first row with content may be a header with fewer known columns than
    /// others need.
    Header {
        is_first: bool,
    },
    Found(Vec<u8>),
    /// The table has no header: all rows are alike.
    None,
}

impl Csv {
    pub(crate) fn new(delimiter: Delimiter, limit: usize) -> Self {
        let header = HeaderState::Header { is_first: true };
        Self {
            delimiter,
            limit,
            at: 0,
            state: State::CellStart,
            quotes: true,
            header,
            header_delimiters: 0,
            delimiters: 0,
            is_irregular: false,
            has_escapes: false,
            rows_end: 0,
            lacks_end: false,
        }
    }

    /// Creates a splitter that returns all rows, regardless of content.
    pub(super) fn rows_only(delimiter: Delimiter, limit: usize) -> Self {
        Self { header: HeaderState::None, ..Self::new(delimiter, limit) }
    }

    /// Handles the text that ends at `stop`, which is a row unless a quotation mark in it is not closed.
    fn rows(&mut self, tail: &[u8], stop: usize, next: usize, is_closed: bool) -> Step {
        let fault = (!is_closed).then_some(UNCLOSED);
        let row = &tail[..stop];
        let is_broken = !is_closed || (self.is_irregular && memchr2(b'\n', b'\r', row).is_some());
        let has_columns =
            matches!(self.header, HeaderState::Found(_)) && self.header_delimiters + 1 >= MIN_COLUMNS;
        if !is_broken || !has_columns || stop > self.limit {
            return self.row(tail, stop, next, fault);
        }
        let is_header = |line: &[u8]| known_columns(unmarked(line), self.delimiter) > 0;
        match self.shape().separate(row, is_closed, is_header) {
            Some(rows) => {
                self.is_irregular = false;
                self.rows_end = rows.until;
                self.row(tail, rows.stop, rows.next, fault.filter(|_| !rows.is_whole))
            }
            None => self.row(tail, stop, next, fault),
        }
    }

    fn shape(&self) -> Shape {
        Shape { delimiter: self.delimiter.byte(), delimiters: self.header_delimiters }
    }

    /// Handles the complete row that ends at `stop`.
    fn row(&mut self, tail: &[u8], stop: usize, next: usize, fault: Option<&'static str>) -> Step {
        self.rows_end = self.rows_end.saturating_sub(next);
        self.at = 0;
        self.state = State::CellStart;
        if stop > self.limit {
            return Step::TooLarge { start: 0 };
        }
        let row = &tail[..stop];
        let delimiters = std::mem::take(&mut self.delimiters);
        let is_irregular = std::mem::take(&mut self.is_irregular);
        self.lacks_end = fault.is_some() || (is_irregular && memchr(b'\n', row).is_some());
        // Markdown has a line `|---|:--|` below the header, and ends a block of code with backquotes.
        let is_ruled = self.delimiter == Delimiter::Bar;
        let empty = |&byte: &u8| {
            byte.is_ascii_whitespace()
                || matches!(byte, b'"' | b'`' | 0)
                || byte == self.delimiter.byte()
                || (is_ruled && matches!(byte, b'-' | b':'))
        };
        if row.iter().all(empty) {
            return Step::Pass { consumed: next };
        }
        match &self.header {
            HeaderState::Header { is_first } => {
                if !is_header(unmarked(row), self.delimiter, *is_first) {
                    let is_separator = *is_first && is_separator_line(unmarked(row));
                    self.header = HeaderState::Header { is_first: is_separator };
                    return if is_separator {
                        Step::Pass { consumed: next }
                    } else {
                        Step::Skip { consumed: next }
                    };
                }
                self.set_header(row.to_vec());
                return Step::Header { row: 0..stop, consumed: next };
            }
            // Concatenated tables repeat the header.
            HeaderState::Found(header) if header.as_slice() == unmarked(row) => {
                return Step::Header { row: 0..stop, consumed: next };
            }
            // A table with other columns begins, possibly behind the last row on its line.
            HeaderState::Found(_) if known_columns(unmarked(row), self.delimiter) > 0 => {
                if let Some(step) = self.row_before_header(row, delimiters, true) {
                    return step;
                }
                self.set_header(unmarked(row).to_vec());
                return Step::Header { row: 0..stop, consumed: next };
            }
            HeaderState::Found(_) if is_separator_line(unmarked(row)) => {
                return Step::Pass { consumed: next };
            }
            HeaderState::Found(_) | HeaderState::None => {}
        }
        if fault.is_none()
            && let Some(step) = self.row_before_header(row, delimiters, false)
        {
            return step;
        }
        let is_remark = || self.is_remark(row, delimiters) || self.is_total(row, delimiters);
        if fault.is_none() && self.header_delimiters + 1 >= MIN_COLUMNS && is_remark() {
            return Step::Skip { consumed: next };
        }
        Step::Found { record: 0..stop, consumed: next, fault }
    }

    /// Returns the row before the header of another table on its line. `is_header` is `true` if the line is a header too.
    fn row_before_header(&mut self, row: &[u8], delimiters: usize, is_header: bool) -> Option<Step> {
        let HeaderState::Found(_) = self.header else { return None };
        if delimiters <= self.header_delimiters {
            return None;
        }
        let at = self.joined_header(row)?;
        if is_header && !joined::has_only_values(&row[..at], self.delimiter) {
            return None;
        }
        self.lacks_end = false;
        Some(Step::Found { record: 0..at, consumed: at, fault: None })
    }

    /// Finds the header of another table that begins in the last cell of the row, as the row had no line break.
    fn joined_header(&self, row: &[u8]) -> Option<usize> {
        let (mut left, mut start) = (self.header_delimiters, 0);
        loop {
            let cell = &row[start..];
            let quoted = if self.quotes && cell.first() == Some(&b'"') { quoted_length(cell)? } else { 0 };
            let stop = start + quoted + memchr(self.delimiter.byte(), &cell[quoted..])?;
            if left == 0 {
                return joined::header_in_row(row, start..stop, self.delimiter).filter(|at| *at > 0);
            }
            left -= 1;
            start = stop + 1;
        }
    }

    /// Returns `true` for a row whose delimiters are all at its end, behind a remark.
    fn is_remark(&self, row: &[u8], delimiters: usize) -> bool {
        let delimiter = self.delimiter.byte();
        let is_end = |byte: &&u8| **byte == delimiter || byte.is_ascii_whitespace();
        let end = row.iter().rev().take_while(is_end).count();
        let at_end = memchr_iter(delimiter, &row[row.len() - end..]).count();
        at_end == delimiters && is_remark(&row[..row.len() - end])
    }

    /// Returns `true` for `Total,2,`: the word and numbers that are not years.
    fn is_total(&self, row: &[u8], delimiters: usize) -> bool {
        if row.len() > MAX_REMARK || delimiters > self.header_delimiters {
            return false;
        }
        let mut cells = row.split(|byte| *byte == self.delimiter.byte()).map(unquoted);
        let first = cells.next().unwrap_or_default().to_ascii_lowercase();
        if !TOTALS.contains(&first.strip_suffix(b":").unwrap_or(&first)) {
            return false;
        }
        let mut filled = cells.filter(|cell| !cell.is_empty()).peekable();
        let is_number = |cell: &[u8]| cell.len() != 4 && cell.iter().all(u8::is_ascii_digit);
        filled.peek().is_some() && filled.all(is_number)
    }

    fn set_header(&mut self, header: Vec<u8>) {
        self.quotes = has_quotes(&header, self.delimiter);
        self.header_delimiters = memchr_iter(self.delimiter.byte(), &header).count();
        self.header = HeaderState::Found(header);
    }

    /// Returns `true` if a backslash precedes the quotation mark at the current position, and text follows it: a mark that
    /// ends a cell has no text behind it. All such marks after the first in a cell are escaped. Returns `None` if the next
    /// byte is not known yet.
    fn is_escaped(&self, tail: &[u8]) -> Option<bool> {
        let backslashes = tail[..self.at].iter().rev().take_while(|byte| **byte == b'\\').count();
        if backslashes % 2 == 0 || self.has_escapes {
            return Some(backslashes % 2 == 1);
        }
        let next = *tail.get(self.at + 1)?;
        Some(next != self.delimiter.byte() && !matches!(next, b'"' | b' ' | b'\n' | b'\r'))
    }

    /// Handles a tail in which nothing more can be found.
    fn rest(&mut self, tail: &[u8], end: bool) -> Step {
        // The bytes before `at` belong to the row, but a line break after `at` may not.
        if self.at > self.limit {
            return Step::TooLarge { start: 0 };
        }
        if !end || tail.is_empty() {
            return Step::More;
        }
        self.rows(tail, tail.len(), tail.len(), self.state != State::Quoted)
    }
}

/// The length of a quoted cell up to the quotation mark that closes it.
fn quoted_length(cell: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr(b'"', cell.get(at..)?)? + 1;
        if cell.get(at) != Some(&b'"') {
            return Some(at);
        }
        at += 1;
    }
}

/// The text of a cell without blanks and quotation marks around it.
fn unquoted(cell: &[u8]) -> &[u8] {
    let cell = cell.trim_ascii();
    cell.strip_prefix(b"\"").map_or(cell, |rest| rest.strip_suffix(b"\"").unwrap_or(rest)).trim_ascii()
}

/// Returns `true` for `Total records: 2`, `12     zinc.mp. (345)`, a line without letters and digits, and the like. Any
/// other text may be a title.
fn is_remark(text: &[u8]) -> bool {
    let text = unquoted(text);
    if text.len() > MAX_REMARK {
        return false;
    }
    let is_rule = !text.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    // JabRef writes `% Encoding: UTF-8` above its entries.
    let is_comment = text.starts_with(b"% Encoding:");
    is_rule
        || is_comment
        || is_named_remark(text)
        || is_search_line(text)
        || is_export_note(text)
        || is_copyright(text)
}

/// Returns `true` for `© 2020 Test Press` and `Copyright (c) 2020 Test Press. All rights reserved.`
fn is_copyright(text: &[u8]) -> bool {
    const MARKS: [&str; 4] = ["©", "(c) 20", "copyright ©", "copyright (c)"];
    let begins =
        |mark: &&str| text.get(..mark.len()).is_some_and(|front| front.eq_ignore_ascii_case(mark.as_bytes()));
    MARKS.iter().any(begins)
}

/// Returns `true` for `Downloaded from X on 5 May 2024`: the date at the end distinguishes it from a title.
fn is_export_note(text: &[u8]) -> bool {
    /// The months, abbreviated.
    const MONTHS: [&[u8]; 12] =
        [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"];
    let text = text.strip_suffix(b".").unwrap_or(text).to_ascii_lowercase();
    let words: Vec<&[u8]> = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    let [first, second, middle @ .., last] = words.as_slice() else { return false };
    let is_exported = matches!(*first, b"downloaded" | b"exported" | b"retrieved" | b"printed")
        && matches!(*second, b"from" | b"on" | b"at");
    let has_digits =
        |word: &[u8], count: usize| word.iter().filter(|byte| byte.is_ascii_digit()).count() == count;
    let has_month =
        middle.iter().rev().take(2).any(|word| MONTHS.iter().any(|month| word.starts_with(month)));
    let is_year = last.len() == 4 && has_digits(last, 4);
    // `2024-05-05`, `5/05/2024`
    let is_date = last.iter().filter(|byte| matches!(byte, b'-' | b'/' | b'.')).count() == 2
        && last.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_punctuation())
        && (6..=8).any(|count| has_digits(last, count));
    is_exported && (is_date || (is_year && has_month))
}

/// Returns `true` for `Total records: 2`.
fn is_named_remark(text: &[u8]) -> bool {
    let Some(colon) = memchr(b':', text) else { return false };
    let mut words = text[..colon].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let first = words.next().map(<[u8]>::to_ascii_lowercase).unwrap_or_default();
    REMARKS.contains(&first.as_slice()) && words.count() < MAX_NAME_WORDS
}

/// Returns `true` for a line of a search strategy with the number of its results: `12     zinc.mp. (345)`.
fn is_search_line(text: &[u8]) -> bool {
    let begins = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let results = text.strip_suffix(b")").and_then(|text| Some(&text[memchr::memrchr(b'(', text)? + 1..]));
    begins > 0
        && text.get(begins).is_some_and(|next| matches!(next, b' ' | b'.' | b'\t'))
        && results.is_some_and(|results| !results.is_empty() && results.iter().all(u8::is_ascii_digit))
}

impl Splitter for Csv {
    fn saved_state(&self) -> Option<Vec<Vec<u8>>> {
        match &self.header {
            HeaderState::Header { .. } => None,
            _ if self.rows_end > 0 => None,
            HeaderState::Found(header) => Some(vec![header.clone()]),
            HeaderState::None => Some(Vec::new()),
        }
    }

    fn may_end(&mut self, _: &[u8]) -> bool {
        self.state != State::Quoted
    }

    fn lacks_end(&self) -> bool {
        self.lacks_end
    }

    fn restore_state(&mut self, carried: Vec<Vec<u8>>) {
        if let Some(header) = carried.into_iter().next() {
            self.set_header(header);
        }
    }

    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        while let Some(&byte) = tail.get(self.at) {
            match self.state {
                State::CellStart if byte == b'"' && self.quotes && self.rows_end == 0 => {
                    (self.state, self.has_escapes) = (State::Quoted, false);
                    self.at += 1;
                }
                State::QuoteInQuotes if byte == b'"' => {
                    self.state = State::Quoted;
                    self.at += 1;
                }
                State::CellStart => self.state = State::Plain,
                State::QuoteInQuotes => {
                    self.state = State::Plain;
                    self.is_irregular |=
                        byte != self.delimiter.byte() && !matches!(byte, b'\n' | b'\r' | b' ');
                }
                State::Quoted => {
                    let Some(found) = memchr(b'"', &tail[self.at..]) else {
                        self.at = tail.len();
                        continue;
                    };
                    self.at += found;
                    match self.is_escaped(tail) {
                        Some(true) => self.has_escapes = true,
                        None if !end => return self.rest(tail, end),
                        _ => self.state = State::QuoteInQuotes,
                    }
                    self.at += 1;
                }
                State::Plain => {
                    let Some(found) = memchr3(self.delimiter.byte(), b'\n', b'\r', &tail[self.at..]) else {
                        self.at = tail.len();
                        continue;
                    };
                    let stop = self.at + found;
                    self.at = stop;
                    let next = match (tail[stop], tail.get(stop + 1)) {
                        (b'\n', _) => stop + 1,
                        (b'\r', Some(b'\n')) => stop + 2,
                        (b'\r', None) if !end => return self.rest(tail, end),
                        (b'\r', _) => stop + 1,
                        _ => {
                            self.state = State::CellStart;
                            self.delimiters += 1;
                            self.at += 1;
                            continue;
                        }
                    };
                    return self.rows(tail, stop, next, true);
                }
            }
        }
        self.rest(tail, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    fn rows(text: &str) -> Vec<String> {
        cut(&mut Csv::new(Delimiter::Comma, 1000), text)
    }

    #[test]
    fn quoted_line_breaks_stay_in_their_row() {
        let text = "title,year\r\n\"a\r\nb \"\"c\"\", d\",1999\r\ne,2000";
        assert_eq!(rows(text), ["\"a\r\nb \"\"c\"\", d\",1999", "e,2000"]);
    }

    #[test]
    fn backslash_before_quote_continues_the_cell() {
        for row in [
            r#""a \"b\" c","\"d\"",1"#,
            "\"a \\\"b\\\" c\nd \\\"e\\\".\",\"f\",1",
            "\"a \\\"b, c\\\"\",\"f\ng\",1",
        ] {
            assert_eq!(rows(&format!("title,author,year\n{row}\nx,y,2\n")), [row, "x,y,2"]);
        }
        assert_eq!(rows("title,path,year\n\"a\",\"C:\\\",1\nx,y,2\n"), ["\"a\",\"C:\\\",1", "x,y,2"]);
    }

    #[test]
    fn quote_inside_plain_cell_is_literal() {
        assert_eq!(rows("title\na 5\" tube,1\nb,2\n"), ["a 5\" tube,1", "b,2"]);
    }

    #[test]
    fn blank_rows_are_not_records() {
        assert_eq!(rows("sep=,\ntitle,year\n\na,1\n,,\n  ,\"\"\n"), ["a,1"]);
    }

    #[test]
    fn rules_of_markdown_are_not_records() {
        let text = "| Title | Year |\n|---|:--|\n| a | 1999 |\n";
        assert_eq!(cut(&mut Csv::new(Delimiter::Bar, 1000), text), ["| a | 1999 |"]);
    }

    #[test]
    fn rows_above_the_header_are_not_records() {
        assert_eq!(rows("\"About, all\"\n\nDOI,title\n1,a\n2,b\n"), ["1,a", "2,b"]);
    }

    #[test]
    fn remarks_are_not_records() {
        let found = |row: &str| rows(&format!("title,year,doi\n{row}\n")).concat();
        for row in [
            "Total records: 2",
            "\"Source: a, b, c d\"",
            "Search strategy:,,",
            "1     zinc.mp. (123)",
            "\"2  1 or (3, 4) (1234)\",,",
            "-----",
            "Total,2,",
            "\"Total:\",\"12\"",
            "Downloaded from X on 5 May 2024,,",
            "\"Exported from X, on May 5, 2024\",,",
            "Exported on 2024-05-05",
            "\"Copyright (c) 2020 Test Press, Inc. All rights reserved.\"",
        ] {
            assert_eq!(found(row), "", "{row}");
        }
        for row in [
            "a,1999",
            "a,,",
            ",1999",
            "Zinc: a trial",
            "Total hip replacement",
            "Total,1999,",
            "Total,2,10.5555/a",
            "Sum,Roe A,",
            "Retrieved from the archive: letters of 1999,,",
            "Exported from farms in May 1999: a study,,",
            "32000001",
            "Search: 1,1999",
            "1 case (of many)",
            "Copyright in the age of tests",
        ] {
            assert_eq!(found(row), row);
        }
        assert_eq!(rows("title,year\nNote: a\n"), ["Note: a"]);
    }

    #[test]
    fn web_of_science_quotes_are_literal() {
        let mut tabs = Csv::new(Delimiter::Tab, 1000);
        let text = "PT\tAU\tTI\tSO\nJ\ta\t\"b\tc\nJ\td\te\tf\n";
        assert_eq!(cut(&mut tabs, text), ["J\ta\t\"b\tc", "J\td\te\tf"]);
    }

    #[test]
    fn repeated_header_is_not_a_record() {
        assert_eq!(rows("title,year\na,1\n\u{feff}title,year\nb,2\n"), ["a,1", "b,2"]);
    }

    #[test]
    fn unclosed_quote_is_reported() {
        assert_eq!(rows("title\n\"a,1\nb,2\n"), ["!a quotation mark opened in this row is never closed"]);
    }
}
