//! Tables as RFC 4180 has them: UTF-8, commas, cells in quotes where they have to be, lines that end with a carriage return
//! and a line feed. No byte-order mark: it would become part of the first column's name. A cell is one line, so that a line
//! is a study, and no line in an abstract makes a file look like one of another format.
//!
//! A spreadsheet computes cells that begin like a formula, which a title from anywhere may do. In tables for people such a
//! cell begins with an apostrophe; programs that never compute get it as it is.

use std::io;

use ::csv::{Terminator, WriterBuilder};

use crate::clean::line;
use crate::table::{ASREVIEW, Column, PLAIN, RAYYAN};
use crate::{Format, Study};

/// What a table has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    columns: &'static [Column],
    guarded: bool,
}

impl Columns {
    /// None where the format is none of a table in text.
    pub(crate) const fn of(format: Format) -> Option<Self> {
        match format {
            Format::Csv => Some(Self::new(format, PLAIN)),
            Format::Rayyan => Some(Self::new(format, RAYYAN)),
            Format::Asreview => Some(Self::new(format, ASREVIEW)),
            Format::Jsonl | Format::Ris | Format::Xlsx | Format::Bibtex | Format::Nbib | Format::CslJson => {
                None
            }
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

/// The characters that begin a formula (<https://owasp.org/www-community/attacks/CSV_Injection>), in full width too.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
/// The separators of other locales and import dialogs, with their full-width forms. A spreadsheet that splits at one of
/// them takes no notice of the quotes around the whole cell, so what follows begins a cell. At commas it respects the
/// quotes.
const SEPARATORS: [char; 8] = [';', '|', '\t', '\n', '\r', '；', '｜', '؛'];

/// Returns a cell that no spreadsheet computes, whichever separator it splits at: with an apostrophe wherever a formula
/// would begin.
fn guard(cell: String) -> String {
    let parts = || cell.split_inclusive(SEPARATORS);
    if !parts().any(begins_formula) {
        return cell;
    }
    parts().flat_map(|part| [if begins_formula(part) { "'" } else { "" }, part]).collect()
}

/// Whether a text begins like a formula. Quotes, white space and invisible characters before a formula do not make it text.
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
