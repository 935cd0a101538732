//! One sheet, as a table of comma-separated values.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    numbers::Formats,
    strings::{Item, Strings},
    xml::{Node, Xml, attribute, name, push_text},
};
use crate::{Error, Limits};

/// Most columns of a sheet; databases export up to 100.
const MOST_COLUMNS: usize = 1_024;
/// Most rows that a sheet can have.
const MOST_ROWS: u32 = 1_048_576;
/// Most merged cells that are filled.
const MOST_MERGED: usize = 10_000;
/// Most bytes of text that merged cells hold for the rows below, all together.
const MOST_HELD: usize = 1 << 20;
/// Most bytes of text in the cells of a row: many cells may name one long text.
const MOST_ROW: usize = 2 << 20;
/// Longest kind of a cell, in bytes: `inlineStr`.
const MOST_KIND: usize = 9;
/// How much text is made at a time, in bytes, about.
const PIECE: usize = 64 * 1024;
/// The approximate number of bytes of XML that one call reads: markup may contain no text at all.
const STEP: u64 = 1 << 20;

/// Cells that are one and go over several rows: the place of the first cell, and the last row. A cell that goes over several
/// columns needs nothing: it is in the first of them.
type Merged = BTreeMap<(u32, usize), u32>;

/// Finds the next merged cells; returns `true` when all are found.
fn find_merged(xml: &mut Xml, found: &mut Merged) -> Result<bool, Error> {
    let begun = xml.read();
    while xml.read() - begun < STEP {
        match xml.next()? {
            Node::Start(start) | Node::Empty(start) if name(&start) == "mergeCell" => {
                let span = attribute(&start, "ref");
                let span = span.as_deref().and_then(|span| span.split_once(':'));
                if let Some((Some(first), Some(last))) = span.map(|(a, b)| (place(a), place(b)))
                    && last.0 > first.0
                {
                    if found.len() == MOST_MERGED {
                        return Err(Error::WorkbookTooLarge { what: "merged cells" });
                    }
                    found.insert(first, last.0);
                }
            }
            Node::Eof => return Ok(true),
            _ => {}
        }
    }
    Ok(false)
}

/// Row and column, from 1 and 0, of a cell called like `AB12`.
fn place(cell: &str) -> Option<(u32, usize)> {
    let letters = cell.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (letters, row) = cell.split_at_checked(letters).filter(|(letters, _)| letters.len() <= 3)?;
    let column =
        letters.bytes().fold(0, |sum, letter| sum * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1);
    Some((row.parse().ok().filter(|row| (1..=MOST_ROWS).contains(row))?, column.checked_sub(1)?))
}

/// The text of a sheet, made as it is asked for: a line for each row, empty ones for rows that are not there.
///
/// Formulas are what they came to when the workbook was saved, dates are in the form of ISO 8601, and of cells that are one
/// over several rows each row has the text.
pub struct SheetText {
    xml: Xml,
    /// The same sheet until its merged cells are found: they are listed behind the cells.
    ahead: Option<Xml>,
    strings: Arc<Strings>,
    formats: Arc<Formats>,
    merged: Merged,
    limits: Limits,
    /// The size of the workbook, and of all text so far, in bytes.
    packed: u64,
    made: u64,
    /// The rows that are written.
    rows: u32,
    /// The cells of the row that is open, and its number.
    row: BTreeMap<usize, String>,
    /// The bytes of text that were put into its cells.
    row_bytes: usize,
    number: u32,
    cell: Option<Cell>,
    /// What merged cells put into the rows below: text and last row, by column.
    held: BTreeMap<usize, (String, u32)>,
    unsaved: u64,
    ended: bool,
}

impl std::fmt::Debug for SheetText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SheetText").field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// A cell that is open.
#[derive(Debug, Default)]
struct Cell {
    column: usize,
    kind: String,
    format: Option<usize>,
    value: String,
    inline: Item,
    in_value: bool,
    has_formula: bool,
}

impl SheetText {
    pub(super) fn new(
        (xml, ahead): (Xml, Xml),
        strings: Arc<Strings>,
        formats: Arc<Formats>,
        (limits, packed): (Limits, u64),
    ) -> Self {
        Self {
            xml,
            ahead: Some(ahead),
            strings,
            formats,
            merged: Merged::new(),
            limits,
            packed,
            made: 0,
            rows: 0,
            row: BTreeMap::new(),
            row_bytes: 0,
            number: 0,
            cell: None,
            held: BTreeMap::new(),
            unsaved: 0,
            ended: false,
        }
    }

    /// How many formulas had no result when the workbook was saved, as far as it is read: their cells are empty.
    #[must_use]
    pub fn unsaved(&self) -> u64 {
        self.unsaved
    }

    /// Adds the next text, which may be none although more follows; false when there is none any more. The work of one
    /// call is bounded.
    ///
    /// # Errors
    /// When the workbook is damaged, or has more than it may.
    pub fn next_piece(&mut self, out: &mut Vec<u8>) -> Result<bool, Error> {
        if let Some(ahead) = &mut self.ahead {
            if find_merged(ahead, &mut self.merged)? {
                self.ahead = None;
            }
            return Ok(true);
        }
        let (mut text, begun) = (String::new(), self.xml.read());
        while text.len() < PIECE && self.xml.read() - begun < STEP && !self.ended {
            let node = match self.xml.next()? {
                Node::Start(start) | Node::Empty(start) if name(&start) == "row" => {
                    Seen::Row(attribute(&start, "r"))
                }
                Node::Start(start) if name(&start) == "c" => Seen::Cell(Self::opened(&start), false),
                Node::Empty(start) if name(&start) == "c" => Seen::Cell(Self::opened(&start), true),
                Node::Start(start) => Seen::Start(name(&start).to_owned()),
                Node::Empty(start) if name(&start) == "f" => Seen::Formula,
                Node::Empty(_) => Seen::Nothing,
                Node::End(name) => Seen::End(name),
                Node::Text(text) => Seen::Text(text),
                Node::Eof => Seen::Eof,
            };
            self.see(node, &mut text)?;
        }
        self.made += text.len() as u64;
        self.limits.check(self.packed, self.made)?;
        let has_text = !text.is_empty();
        if out.is_empty() {
            *out = text.into_bytes();
        } else {
            out.extend_from_slice(text.as_bytes());
        }
        Ok(!self.ended || has_text)
    }

    fn opened(start: &quick_xml::events::BytesStart<'_>) -> (Option<(u32, usize)>, Cell) {
        let at = attribute(start, "r").as_deref().and_then(place);
        let kind = attribute(start, "t").filter(|kind| kind.len() <= MOST_KIND).unwrap_or_default();
        let format = attribute(start, "s").and_then(|format| format.parse().ok());
        (at, Cell { kind, format, ..Cell::default() })
    }

    fn see(&mut self, seen: Seen, out: &mut String) -> Result<(), Error> {
        match seen {
            Seen::Row(number) => {
                self.write_row(out)?;
                let next = self.number + 1;
                let number = number.and_then(|number| number.parse().ok()).unwrap_or(next);
                if number < next || number > MOST_ROWS {
                    return Err(Error::Workbook { fault: "its rows are not in order" });
                }
                self.number = number;
            }
            Seen::Cell((at, cell), is_empty) => {
                let next = self.row.last_key_value().map_or(0, |(column, _)| column + 1);
                let column = at.map_or(next, |(_, column)| column);
                if column >= MOST_COLUMNS {
                    return Err(Error::WorkbookTooLarge { what: "columns" });
                }
                if is_empty {
                    self.row.insert(column, String::new());
                } else {
                    self.cell = Some(Cell { column, ..cell });
                }
            }
            Seen::Start(name) => self.open(&name),
            Seen::Formula => self.open("f"),
            Seen::End(name) if name == "c" => self.close_cell()?,
            Seen::End(name) if name == "row" || name == "sheetData" => self.write_row(out)?,
            Seen::End(name) => {
                if let Some(cell) = &mut self.cell {
                    cell.in_value &= name != "v";
                    cell.inline.close(&name);
                }
            }
            Seen::Text(text) => {
                if let Some(cell) = &mut self.cell {
                    if cell.in_value {
                        push_text(&mut cell.value, &text)?;
                    }
                    cell.inline.add(&text)?;
                }
            }
            Seen::Eof => {
                self.write_row(out)?;
                self.ended = true;
            }
            Seen::Nothing => {}
        }
        Ok(())
    }

    fn open(&mut self, name: &str) {
        if let Some(cell) = &mut self.cell {
            cell.in_value |= name == "v";
            cell.has_formula |= name == "f";
            cell.inline.open(name);
        }
    }

    fn close_cell(&mut self) -> Result<(), Error> {
        let Some(mut cell) = self.cell.take() else { return Ok(()) };
        let inline = cell.inline.take();
        let text = match cell.kind.as_str() {
            "s" => {
                let shared = cell.value.trim().parse().ok().and_then(|at| self.strings.get(at));
                let shared = shared.unwrap_or_default();
                count(&mut self.row_bytes, shared)?;
                shared.to_owned()
            }
            "inlineStr" => inline,
            "b" => if cell.value.trim() == "1" { "TRUE" } else { "FALSE" }.to_owned(),
            "str" | "e" | "d" => cell.value,
            _ => self.formats.text(&cell.value, cell.format),
        };
        if cell.kind != "s" {
            count(&mut self.row_bytes, &text)?;
        }
        self.unsaved += u64::from(cell.has_formula && text.is_empty());
        self.row.insert(cell.column, text);
        Ok(())
    }

    /// Writes the row that is open, if there is one, behind empty lines for those that are not there.
    fn write_row(&mut self, out: &mut String) -> Result<(), Error> {
        if self.number <= self.rows {
            return Ok(());
        }
        // Rows that are not there have no cells, and so nothing of cells that go over them.
        (self.rows + 1..self.number).for_each(|_| out.push('\n'));
        self.rows = self.number;
        self.fill()?;
        let row = std::mem::take(&mut self.row);
        self.row_bytes = 0;
        let last = row.iter().rev().find(|(_, text)| !text.is_empty()).map_or(0, |(column, _)| *column);
        for column in 0..=last {
            if column > 0 {
                out.push(',');
            }
            write_cell(row.get(&column).map_or("", String::as_str), out);
        }
        out.push('\n');
        Ok(())
    }

    /// Puts the text of merged cells above into the row, and keeps that of those which begin in it.
    fn fill(&mut self) -> Result<(), Error> {
        let number = self.number;
        self.held.retain(|_, (_, last)| *last >= number);
        for (column, (text, _)) in &self.held {
            let cell = self.row.entry(*column).or_default();
            if cell.is_empty() {
                count(&mut self.row_bytes, text)?;
                cell.clone_from(text);
            }
        }
        let mut held_bytes: usize = self.held.values().map(|(text, _)| text.len()).sum();
        for ((_, column), last) in self.merged.range((number, 0)..(number + 1, 0)) {
            if let Some(text) = self.row.get(column) {
                held_bytes += text.len();
                if held_bytes > MOST_HELD {
                    return Err(Error::WorkbookTooLarge { what: "text in merged cells" });
                }
                self.held.insert(*column, (text.clone(), *last));
            }
        }
        Ok(())
    }
}

/// What was found next, free of the buffer that it was found in.
enum Seen {
    Row(Option<String>),
    Cell((Option<(u32, usize)>, Cell), bool),
    Start(String),
    Formula,
    End(String),
    Text(String),
    Nothing,
    Eof,
}

/// Counts a text that is about to be put into the row, so that a row is refused before it takes the memory.
fn count(row_bytes: &mut usize, text: &str) -> Result<(), Error> {
    *row_bytes = row_bytes.saturating_add(text.len());
    if *row_bytes > MOST_ROW {
        return Err(Error::WorkbookTooLarge { what: "text in a row" });
    }
    Ok(())
}

/// Writes a cell, in quotes where it needs them.
fn write_cell(text: &str, out: &mut String) {
    let text = text.trim_end_matches('\0');
    if text.contains([',', '"', '\n', '\r', ';', '\t']) || text.starts_with(char::is_whitespace) {
        out.push('"');
        for (number, piece) in text.split('"').enumerate() {
            if number > 0 {
                out.push_str("\"\"");
            }
            out.push_str(piece);
        }
        out.push('"');
    } else {
        out.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        assert_eq!(place("A1"), Some((1, 0)));
        assert_eq!(place("AB12"), Some((12, 27)));
        assert_eq!(place("XFD1048576"), Some((1_048_576, 16_383)));
        for wrong in ["", "A", "1", "A0", "A1048577", "ABCD1", "A-1", "Ä1"] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }
}
