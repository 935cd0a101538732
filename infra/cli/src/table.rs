//! Tables that fit the terminal.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle};
use console::Term;
use local::output;

/// How wide tables are where there is no terminal.
const WITHOUT_TERMINAL: u16 = 80;
/// What is beside a column, besides the space that is always there. Lines would leave too little room for names.
const GAP: u16 = 1;

/// A column by its heading.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    /// Words, which are broken into lines when there is too little room.
    Text(&'static str),
    /// Words or an id that stay on one line.
    Whole(&'static str),
    /// A number, which stays on one line.
    Number(&'static str),
}

impl Column {
    fn heading(self) -> &'static str {
        match self {
            Self::Text(heading) | Self::Whole(heading) | Self::Number(heading) => heading,
        }
    }
}

/// A table as wide as the terminal, with a row of cells for each thing.
pub(crate) fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    laid_out(columns, rows, width())
}

/// As wide as standard output.
pub(crate) fn width() -> u16 {
    Term::stdout().size_checked().map_or(WITHOUT_TERMINAL, |(_, columns)| columns)
}

fn laid_out(columns: &[Column], rows: impl IntoIterator<Item = Vec<String>>, width: u16) -> String {
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
    fn a_table_is_no_wider_than_its_terminal_and_breaks_between_words() {
        let columns = [Column::Whole("id"), Column::Text("why"), Column::Number("times")];
        let why = "the queue has refused the message again and again for a whole day";
        let row = || vec!["0198d2a4-5f0e".to_owned(), why.to_owned(), "5".to_owned()];
        for width in [40, 80, 120] {
            let shown = laid_out(&columns, [row()], width);
            assert!(shown.lines().all(|line| line.chars().count() <= usize::from(width)), "{shown}");
            let words: Vec<&str> = shown.split_whitespace().collect();
            assert!(why.split(' ').all(|word| words.contains(&word)), "{shown}");
            assert!(shown.contains("0198d2a4-5f0e"), "{shown}");
        }
    }

    #[test]
    fn a_cell_moves_nothing_on_the_terminal() {
        let shown = laid_out(&[Column::Text("name")], [vec!["a\u{1b}[2Jb".to_owned()]], 80);
        assert!(!shown.contains('\u{1b}') && shown.contains("a\\u{1b}[2Jb"), "{shown}");
    }
}
