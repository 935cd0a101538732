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
            Format::Csv => Some(Self { columns: PLAIN, guarded: true }),
            Format::Rayyan => Some(Self { columns: RAYYAN, guarded: false }),
            Format::Asreview => Some(Self { columns: ASREVIEW, guarded: false }),
            Format::Jsonl | Format::Ris | Format::Xlsx | Format::Bibtex | Format::Nbib | Format::CslJson => {
                None
            }
        }
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
/// The separators of other locales and import dialogs. A spreadsheet that splits at one of them takes no notice of the
/// quotes around the whole cell, so what follows begins a cell. At commas it respects the quotes.
const SEPARATORS: [char; 3] = [';', '|', '\t'];

/// Returns a cell that no spreadsheet computes, whichever separator it splits at: with an apostrophe wherever a formula
/// would begin.
fn guard(cell: String) -> String {
    let mut guarded = String::new();
    let mut rest = cell.as_str();
    if rest.starts_with(FORMULA) {
        guarded.push('\'');
    }
    while let Some(found) = rest.find(SEPARATORS) {
        // Every separator is one byte long.
        let (before, after) = rest.split_at(found + 1);
        guarded.push_str(before);
        // Quotes and white space before a formula do not make it text.
        if after.trim_start_matches(|c: char| c == '"' || c.is_whitespace()).starts_with(FORMULA) {
            guarded.push('\'');
        }
        rest = after;
    }
    if guarded.is_empty() { cell } else { guarded + rest }
}
