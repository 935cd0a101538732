//! Tables that fit the terminal.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle};
use console::Term;
use local::output;

/// The width of tables without a terminal.
const WITHOUT_TERMINAL: u16 = 80;
/// The padding after a column, in addition to the separating space. Vertical lines would take too much space from
/// names.
const GAP: u16 = 1;

/// A column by its heading.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    /// Text that may be broken into lines.
    Text(&'static str),
    /// Text or an id that stays on one line.
    Whole(&'static str),
    /// A right-aligned number.
    Number(&'static str),
}

impl Column {
    fn heading(self) -> &'static str {
        match self {
            Self::Text(heading) | Self::Whole(heading) | Self::Number(heading) => heading,
        }
    }
}

/// Formats a table that is as wide as the terminal.
pub(crate) fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    format(columns, rows, width())
}

/// Returns the width of the terminal on standard output.
pub(crate) fn width() -> u16 {
    Term::stdout().size_checked().map_or(WITHOUT_TERMINAL, |(_, columns)| columns)
}

fn format(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>, width: u16) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.set_header(columns.iter().map(|column| column.heading()));
    for row in rows {
        table.add_row(row.iter().map(|cell| output::cell(cell)));
    }
    for (index, (kind, column)) in columns.iter().zip(table.column_iter_mut()).enumerate() {
        column.set_padding((0, if index + 1 < columns.len() { GAP } else { 0 }));
        match kind {
            Column::Text(_) => {}
            Column::Whole(_) => {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
            Column::Number(_) => {
                column.set_constraint(ColumnConstraint::ContentWidth);
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    table.trim_fmt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_wraps_words_to_terminal_width() {
        let columns = [Column::Whole("id"), Column::Text("why"), Column::Number("times")];
        let why = "the queue has refused the message again and again for a whole day";
        let row = || vec!["0198d2a4-5f0e".to_owned(), why.to_owned(), "5".to_owned()];
        for width in [40, 80, 120] {
            let shown = format(&columns, [row()], width);
            assert!(shown.lines().all(|line| line.chars().count() <= usize::from(width)), "{shown}");
            let words: Vec<&str> = shown.split_whitespace().collect();
            assert!(why.split(' ').all(|word| words.contains(&word)), "{shown}");
            assert!(shown.contains("0198d2a4-5f0e"), "{shown}");
        }
    }

    #[test]
    fn cell_escapes_control_characters() {
        let shown = format(&[Column::Text("name")], [vec!["a\u{1b}[2Jb".to_owned()]], 80);
        assert!(!shown.contains('\u{1b}') && shown.contains("a\\u{1b}[2Jb"), "{shown}");
    }
}
