//! Where the rows of a table begin and end.
//!
//! The rules are those of RFC 4180, and reading a row (module `read`) has the same: a quote opens only at the start
//! of a cell, `""` inside quotes is a quote, and quoted cells may contain line breaks. Rows without any content, as
//! spreadsheets leave at the end, are not records.

use memchr::{memchr, memchr3};

use super::{Split, Step, lines::unmarked};
use crate::Delimiter;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    CellStart,
    Plain,
    Quoted,
    /// After a quote inside quotes: the end of the cell, or the first half of `""`.
    QuoteInQuotes,
}

/// Splits tables.
#[derive(Debug)]
pub(crate) struct Csv {
    delimiter: u8,
    limit: usize,
    at: usize,
    state: State,
    /// The header row, once it has been found.
    header: Option<Vec<u8>>,
}

impl Csv {
    pub(crate) fn new(delimiter: Delimiter, limit: usize) -> Self {
        Self { delimiter: delimiter.byte(), limit, at: 0, state: State::CellStart, header: None }
    }

    /// The row that ends at `stop` is complete.
    fn row(&mut self, tail: &[u8], stop: usize, next: usize, fault: Option<&'static str>) -> Step {
        self.at = 0;
        self.state = State::CellStart;
        if stop > self.limit {
            return Step::TooLarge { start: 0 };
        }
        let row = &tail[..stop];
        let blank = row
            .iter()
            .all(|&byte| byte.is_ascii_whitespace() || matches!(byte, b'"') || byte == self.delimiter);
        if blank || (self.header.is_none() && is_separator_line(row)) {
            return Step::Skip { consumed: next };
        }
        match &self.header {
            None => {
                self.header = Some(row.to_vec());
                return Step::Header { row: 0..stop, consumed: next };
            }
            // Concatenated tables repeat it.
            Some(header) if header == unmarked(row) => return Step::Skip { consumed: next },
            Some(_) => {}
        }
        Step::Found { record: 0..stop, consumed: next, fault }
    }

    /// Nothing more can be found in the tail as it is.
    fn rest(&mut self, tail: &[u8], end: bool) -> Step {
        // What precedes `at` certainly belongs to the row; a line break after it may not.
        if self.at > self.limit {
            return Step::TooLarge { start: 0 };
        }
        if !end || tail.is_empty() {
            return Step::More;
        }
        let unclosed =
            (self.state == State::Quoted).then_some("a quotation mark opened in this row is never closed");
        self.row(tail, tail.len(), tail.len(), unclosed)
    }
}

/// The line `sep=;` that spreadsheets put before the header.
pub(crate) fn is_separator_line(row: &[u8]) -> bool {
    row.len() == 5 && row[..4].eq_ignore_ascii_case(b"sep=")
}

impl Split for Csv {
    fn carried(&self) -> Option<Vec<Vec<u8>>> {
        Some(self.header.iter().cloned().collect())
    }

    fn carry(&mut self, carried: Vec<Vec<u8>>) {
        self.header = carried.into_iter().next();
    }

    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        while let Some(&byte) = tail.get(self.at) {
            match self.state {
                State::CellStart if byte == b'"' => {
                    self.state = State::Quoted;
                    self.at += 1;
                }
                State::QuoteInQuotes if byte == b'"' => {
                    self.state = State::Quoted;
                    self.at += 1;
                }
                State::CellStart | State::QuoteInQuotes => self.state = State::Plain,
                State::Quoted => match memchr(b'"', &tail[self.at..]) {
                    Some(found) => {
                        self.state = State::QuoteInQuotes;
                        self.at += found + 1;
                    }
                    None => self.at = tail.len(),
                },
                State::Plain => {
                    let Some(found) = memchr3(self.delimiter, b'\n', b'\r', &tail[self.at..]) else {
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
                            self.at += 1;
                            continue;
                        }
                    };
                    return self.row(tail, stop, next, None);
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
    fn quoted_line_breaks_and_quotes_stay_in_the_row() {
        let text = "title,year\r\n\"a\r\nb \"\"c\"\", d\",1999\r\ne,2000";
        assert_eq!(rows(text), ["\"a\r\nb \"\"c\"\", d\",1999", "e,2000"]);
    }

    #[test]
    fn a_quote_inside_a_plain_cell_opens_nothing() {
        assert_eq!(rows("title\na 5\" tube,1\nb,2\n"), ["a 5\" tube,1", "b,2"]);
    }

    #[test]
    fn rows_without_content_are_not_records() {
        assert_eq!(rows("sep=,\ntitle,year\n\na,1\n,,\n  ,\"\"\n"), ["a,1"]);
    }

    #[test]
    fn a_header_in_the_middle_is_no_record() {
        assert_eq!(rows("title,year\na,1\n\u{feff}title,year\nb,2\n"), ["a,1", "b,2"]);
    }

    #[test]
    fn a_quote_that_is_never_closed_is_a_fault() {
        assert_eq!(rows("title\n\"a,1\nb,2\n"), ["!a quotation mark opened in this row is never closed"]);
    }
}
