//! RFC 4180 tables: UTF-8, comma-separated, cells quoted if necessary, lines that end in CRLF. A byte-order mark is not
//! written: it would become part of the first column's name. Each cell is on one line, so each line is one study, and
//! no line of an abstract makes the file look like another format.
//!
//! A spreadsheet evaluates cells that begin like a formula, as any title may. In tables that people open, such a cell
//! is prefixed with an apostrophe. Programs that never evaluate cells get the text unchanged.

use std::io;

use ::csv::{Terminator, WriterBuilder};

use crate::clean::line;
use crate::table::{ASREVIEW, Column, PLAIN, RAYYAN};
use crate::{Format, Study};

/// The columns of a table, and whether its cells are guarded against formula evaluation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    columns: &'static [Column],
    guarded: bool,
}

impl Columns {
    /// Returns `None` if the format is not a text table.
    pub(crate) const fn for_format(format: Format) -> Option<Self> {
        match format {
            Format::Csv => Some(Self::new(format, PLAIN)),
            Format::Rayyan => Some(Self::new(format, RAYYAN)),
            Format::Asreview => Some(Self::new(format, ASREVIEW)),
            Format::Jsonl
            | Format::Ris
            | Format::EndnoteXml
            | Format::Xlsx
            | Format::Bibtex
            | Format::Nbib
            | Format::CslJson => None,
        }
    }

    const fn new(format: Format, columns: &'static [Column]) -> Self {
        Self { columns, guarded: !format.is_unguarded() }
    }

    pub(crate) fn header(self, out: &mut Vec<u8>) -> io::Result<()> {
        row(self.columns.iter().map(|(name, _)| (*name).to_owned()), out)
    }

    pub(crate) fn push(self, study: &Study<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        let cells = self.columns.iter().map(|(_, cell)| line(&cell(study)).into_owned());
        row(cells.map(|cell| if self.guarded { guard(cell) } else { cell }), out)
    }
}

fn row(cells: impl Iterator<Item = String>, out: &mut Vec<u8>) -> io::Result<()> {
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(out);
    writer.write_record(cells.map(String::into_bytes))?;
    writer.flush()
}

/// Characters that begin a formula (<https://owasp.org/www-community/attacks/CSV_Injection>), including their
/// full-width forms.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
/// Separators of other locales and import dialogs, with their full-width forms. A spreadsheet that splits at one of
/// them ignores the quotes around the whole cell, so the text after the separator begins a new cell. At commas the
/// quotes are respected.
const SEPARATORS: [char; 8] = [';', '|', '\t', '\n', '\r', '；', '｜', '؛'];

/// Prefixes each possible beginning of a formula with an apostrophe, so that no spreadsheet evaluates the cell,
/// whichever separator it splits at.
fn guard(cell: String) -> String {
    let parts = || cell.split_inclusive(SEPARATORS);
    if !parts().any(begins_formula) {
        return cell;
    }
    parts().flat_map(|part| [if begins_formula(part) { "'" } else { "" }, part]).collect()
}

/// Returns `true` if the text begins like a formula. Leading quotes, white space and invisible characters are ignored.
fn begins_formula(text: &str) -> bool {
    text.trim_start_matches(is_skipped).starts_with(FORMULA)
}

fn is_skipped(c: char) -> bool {
    let is_invisible = matches!(
        c,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    );
    c.is_whitespace() || c.is_control() || is_invisible || matches!(c, '"' | '＂')
}
