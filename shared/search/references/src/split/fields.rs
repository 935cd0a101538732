//! Splits tables with one row per field, as exported by Embase.
//!
//! The first cell of a row is the name of a field, and the other cells are its values. A record ends at a blank row,
//! and where the name of its first field appears again.

use super::{Splitter, Step, csv::Csv};
use crate::Delimiter;

/// Splits tables with one row per field.
#[derive(Debug)]
pub(crate) struct Fields {
    rows: Csv,
    limit: usize,
    /// The beginning of the current row.
    at: usize,
    open: Option<OpenRecord>,
    /// `true` if a row of the open or last record lacks its end.
    lacks_end: bool,
}

/// A record whose end has not been found.
#[derive(Debug, Clone, Copy)]
struct OpenRecord {
    /// The beginning of the record, and the end of its first field name.
    start: usize,
    name: usize,
    last: usize,
    fault: Option<&'static str>,
}

impl Fields {
    pub(crate) fn new(limit: usize) -> Self {
        Self { rows: Csv::rows_only(Delimiter::Comma, limit), limit, at: 0, open: None, lacks_end: false }
    }

    fn found(&mut self, open: OpenRecord) -> Step {
        let consumed = std::mem::take(&mut self.at);
        self.open = None;
        Step::Found { record: open.start..open.last, consumed, fault: open.fault }
    }
}

/// The end of the first cell.
fn name_end(row: &[u8]) -> usize {
    memchr::memchr(b',', row).unwrap_or(row.len())
}

/// The rows of a record.
pub(crate) fn rows(text: &str) -> impl Iterator<Item = &str> {
    let mut splitter = Csv::rows_only(Delimiter::Comma, usize::MAX);
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            match splitter.step(rest.as_bytes(), true) {
                Step::Pass { consumed } => rest = rest.get(consumed..)?,
                Step::Found { record, consumed, .. } => {
                    let row = rest.get(record)?;
                    rest = rest.get(consumed..)?;
                    return Some(row);
                }
                _ => return None,
            }
        }
    })
}

impl Splitter for Fields {
    fn may_end(&mut self, tail: &[u8]) -> bool {
        self.rows.may_end(tail)
    }

    fn lacks_end(&self) -> bool {
        self.lacks_end
    }

    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        loop {
            if let Some(open) = self.open.filter(|open| self.at - open.start > self.limit) {
                return Step::TooLarge { start: open.start };
            }
            let row = self.rows.step(&tail[self.at..], end);
            match (row, self.open) {
                (Step::Found { record, consumed, fault, .. }, Some(mut open)) => {
                    let row = &tail[self.at..self.at + record.end];
                    if row[..name_end(row)] == tail[open.start..open.name] {
                        return self.found(open);
                    }
                    open.last = self.at + record.end;
                    open.fault = open.fault.or(fault);
                    self.lacks_end |= self.rows.lacks_end();
                    self.open = Some(open);
                    self.at += consumed;
                }
                (Step::Found { record, consumed, fault, .. }, None) => {
                    let start = self.at;
                    let name = start + name_end(&tail[start..start + record.end]);
                    self.open = Some(OpenRecord { start, name, last: start + record.end, fault });
                    self.lacks_end = self.rows.lacks_end();
                    self.at += consumed;
                }
                (Step::Pass { consumed }, Some(open)) => {
                    self.at += consumed;
                    return self.found(open);
                }
                (Step::Pass { consumed }, None) => {
                    self.at += consumed;
                    return Step::Pass { consumed: std::mem::take(&mut self.at) };
                }
                (Step::More, Some(open)) if end => return self.found(open),
                (Step::TooLarge { start }, _) => return Step::TooLarge { start: self.at + start },
                _ => return Step::More,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    #[test]
    fn field_rows_record_ends_at_blank_or_repetition() {
        let text = "\"TITLE\",\"a\nb\"\n\"DOI\",1\n\n\n\"TITLE\",c\n\"TITLE\",d\nYEAR,2\n";
        let records = ["\"TITLE\",\"a\nb\"\n\"DOI\",1", "\"TITLE\",c", "\"TITLE\",d\nYEAR,2"];
        assert_eq!(cut(&mut Fields::new(1000), text), records);
        assert_eq!(rows(records[0]).collect::<Vec<_>>(), ["\"TITLE\",\"a\nb\"", "\"DOI\",1"]);
    }
}
