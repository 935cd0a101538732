//! One sheet as a table of comma-separated values.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    numbers::Formats,
    strings::{Item, Strings},
    xml::{Node, Xml, attribute, name, push_text},
};
use crate::{Error, Limits};

/// The maximum number of columns; databases export up to 100.
const MAX_COLUMNS: usize = 1_024;
/// The maximum number of rows that a sheet can have.
const MAX_ROWS: u32 = 1_048_576;
/// The maximum number of merged ranges that are filled.
const MAX_MERGED: usize = 10_000;
/// The maximum size of the text that merged cells hold for the rows below, in bytes.
const MAX_HELD: usize = 1 << 20;
/// The maximum size of the text in a row, in bytes: many cells may reference the same long string.
const MAX_ROW: usize = 2 << 20;
/// The maximum length of a cell type, in bytes: `inlineStr`.
const MAX_CELL_TYPE: usize = 9;
/// The approximate size of the text that one call produces, in bytes.
const PIECE: usize = 64 * 1024;
/// The approximate number of bytes of XML that one call reads: markup may contain no text at all.
const STEP: u64 = 1 << 20;

/// Cells merged over several rows: the position of the first cell, and the last row. Cells merged over columns need no
/// entry, because their text is in the first column.
type MergedRanges = BTreeMap<(u32, usize), u32>;

/// Reads the next merged ranges; returns `true` when all have been read.
fn find_merged(xml: &mut Xml, found: &mut MergedRanges) -> Result<bool, Error> {
    let begun = xml.read();
    while xml.read() - begun < STEP {
        match xml.next()? {
            Node::Start(start) | Node::Empty(start) if name(&start) == "mergeCell" => {
                let span = attribute(&start, "ref");
                let span = span.as_deref().and_then(|span| span.split_once(':'));
                if let Some((Some(first), Some(last))) =
                    span.map(|(a, b)| (parse_position(a), parse_position(b)))
                    && last.0 > first.0
                {
                    if found.len() == MAX_MERGED {
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

/// Parses a cell reference such as `AB12` into row (from 1) and column (from 0).
fn parse_position(cell: &str) -> Option<(u32, usize)> {
    let letters = cell.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (letters, row) = cell.split_at_checked(letters).filter(|(letters, _)| letters.len() <= 3)?;
    let column =
        letters.bytes().fold(0, |sum, letter| sum * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1);
    Some((row.parse().ok().filter(|row| (1..=MAX_ROWS).contains(row))?, column.checked_sub(1)?))
}

/// The text of a sheet, produced on demand: one line per row, and an empty line for each missing row.
///
/// Formulas have the results that were saved with the workbook, and dates are in ISO 8601. The text of cells merged
/// over several rows appears in each row.
pub struct SheetText {
    xml: Xml,
    /// A second reader that collects the merged ranges, because they are listed after the cells.
    ahead: Option<Xml>,
    strings: Arc<Strings>,
    formats: Arc<Formats>,
    merged: MergedRanges,
    limits: Limits,
    /// The packed size of the workbook, and the size of all text so far, in bytes.
    packed: u64,
    made: u64,
    /// The number of rows written.
    rows: u32,
    /// The cells of the current row, and its number.
    row: BTreeMap<usize, String>,
    /// The size of the text in the current row, in bytes.
    row_bytes: usize,
    number: u32,
    cell: Option<Cell>,
    /// The text that merged cells repeat in the rows below, and the last row, by column.
    held: BTreeMap<usize, (String, u32)>,
    unsaved: u64,
    ended: bool,
}

impl std::fmt::Debug for SheetText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SheetText").field("rows", &self.rows).finish_non_exhaustive()
    }
}

/// The cell that is being read.
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
        xml: Xml,
        ahead: Xml,
        strings: Arc<Strings>,
        formats: Arc<Formats>,
        limits: Limits,
        packed: u64,
    ) -> Self {
        Self {
            xml,
            ahead: Some(ahead),
            strings,
            formats,
            merged: MergedRanges::new(),
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

    /// The number of formulas without a saved result so far. The cells of such formulas are empty.
    #[must_use]
    pub fn unsaved(&self) -> u64 {
        self.unsaved
    }

    /// Appends the next text, possibly none, and returns `false` at the end of the sheet. The work of one call is
    /// bounded.
    ///
    /// # Errors
    /// Returns an error if the workbook is damaged or exceeds a limit.
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
                    SheetEvent::Row(attribute(&start, "r"))
                }
                Node::Start(start) if name(&start) == "c" => SheetEvent::Cell(Self::opened(&start), false),
                Node::Empty(start) if name(&start) == "c" => SheetEvent::Cell(Self::opened(&start), true),
                Node::Start(start) => SheetEvent::Start(name(&start).to_owned()),
                Node::Empty(start) if name(&start) == "f" => SheetEvent::Formula,
                Node::Empty(_) => SheetEvent::Nothing,
                Node::End(name) => SheetEvent::End(name),
                Node::Text(text) => SheetEvent::Text(text),
                Node::Eof => SheetEvent::Eof,
            };
            self.handle(node, &mut text)?;
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
        let at = attribute(start, "r").as_deref().and_then(parse_position);
        let kind = attribute(start, "t").filter(|kind| kind.len() <= MAX_CELL_TYPE).unwrap_or_default();
        let format = attribute(start, "s").and_then(|format| format.parse().ok());
        (at, Cell { kind, format, ..Cell::default() })
    }

    fn handle(&mut self, event: SheetEvent, out: &mut String) -> Result<(), Error> {
        match event {
            SheetEvent::Row(number) => {
                self.write_row(out)?;
                let next = self.number + 1;
                let number = number.and_then(|number| number.parse().ok()).unwrap_or(next);
                if number < next || number > MAX_ROWS {
                    return Err(Error::Workbook { fault: "its rows are not in order" });
                }
                self.number = number;
            }
            SheetEvent::Cell((at, cell), is_empty) => {
                let next = self.row.last_key_value().map_or(0, |(column, _)| column + 1);
                let column = at.map_or(next, |(_, column)| column);
                if column >= MAX_COLUMNS {
                    return Err(Error::WorkbookTooLarge { what: "columns" });
                }
                if is_empty {
                    self.row.insert(column, String::new());
                } else {
                    self.cell = Some(Cell { column, ..cell });
                }
            }
            SheetEvent::Start(name) => self.open(&name),
            SheetEvent::Formula => self.open("f"),
            SheetEvent::End(name) if name == "c" => self.close_cell()?,
            SheetEvent::End(name) if name == "row" || name == "sheetData" => self.write_row(out)?,
            SheetEvent::End(name) => {
                if let Some(cell) = &mut self.cell {
                    cell.in_value &= name != "v";
                    cell.inline.close(&name);
                }
            }
            SheetEvent::Text(text) => {
                if let Some(cell) = &mut self.cell {
                    if cell.in_value {
                        push_text(&mut cell.value, &text)?;
                    }
                    cell.inline.add(&text)?;
                }
            }
            SheetEvent::Eof => {
                self.write_row(out)?;
                self.ended = true;
            }
            SheetEvent::Nothing => {}
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

    /// Writes the current row, if any, preceded by empty lines for missing rows.
    fn write_row(&mut self, out: &mut String) -> Result<(), Error> {
        if self.number <= self.rows {
            return Ok(());
        }
        // Missing rows have no cells, and therefore no text of merged cells.
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

    /// Fills in the text of cells merged with those above, and remembers the text of ranges that begin in this row.
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
                if held_bytes > MAX_HELD {
                    return Err(Error::WorkbookTooLarge { what: "text in merged cells" });
                }
                self.held.insert(*column, (text.clone(), *last));
            }
        }
        Ok(())
    }
}

/// The content of the next XML node, independent of the read buffer.
enum SheetEvent {
    Row(Option<String>),
    Cell((Option<(u32, usize)>, Cell), bool),
    Start(String),
    Formula,
    End(String),
    Text(String),
    Nothing,
    Eof,
}

/// Adds the size of a text to the size of its row before the text is copied. A row that is too long is therefore
/// refused early.
fn count(row_bytes: &mut usize, text: &str) -> Result<(), Error> {
    *row_bytes = row_bytes.saturating_add(text.len());
    if *row_bytes > MAX_ROW {
        return Err(Error::WorkbookTooLarge { what: "text in a row" });
    }
    Ok(())
}

/// Writes a cell, in quotes if necessary.
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
    fn cell_references_are_parsed() {
        assert_eq!(parse_position("A1"), Some((1, 0)));
        assert_eq!(parse_position("AB12"), Some((12, 27)));
        assert_eq!(parse_position("XFD1048576"), Some((1_048_576, 16_383)));
        for wrong in ["", "A", "1", "A0", "A1048577", "ABCD1", "A-1", "Ä1"] {
            assert_eq!(parse_position(wrong), None, "{wrong}");
        }
    }
}
