//! Detects tables by their first rows.

use crate::{
    Delimiter,
    split::{Splitter, Step, csv::Csv, fields, lines},
    table::{
        cells::cells,
        header::{Header, MAX_NAME, column, is_separator_line},
    },
};

/// The table that the first rows of a text form.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TableDetection {
    /// A table with a header, and the number of known columns.
    WithHeader(Delimiter, usize),
    /// A table whose header has no title column; the names of its columns.
    WithoutTitles(Vec<String>),
}

/// Finds the delimiter for which a header among the first rows has the most known columns.
pub(super) fn find(text: &str) -> Option<TableDetection> {
    let headed = |delimiter| Header::parse(header_row(text, delimiter)?, delimiter);
    if let Some(header) = widest(headed) {
        if header.columns.len() == 1 && has_field_lines(text) {
            return None;
        }
        return Some(TableDetection::WithHeader(header.delimiter, header.recognised()));
    }
    let first = lines::all(text).find(|line| !line.trim().is_empty())?;
    let best = widest(|delimiter| Header::parse(first, delimiter))?;
    Some(TableDetection::WithoutTitles(best.columns.into_iter().map(|column| column.name).collect()))
}

/// The header with the most known columns. If several have equally many, the first counts, so that a table with one
/// column counts as CSV.
fn widest(header: impl Fn(Delimiter) -> Option<Header>) -> Option<Header> {
    let headers = Delimiter::ALL.into_iter().filter_map(header);
    headers.reduce(|best, next| if next.recognised() > best.recognised() { next } else { best })
}

/// The number of known columns that identify a header in the first line, regardless of the lines below, whose cells may
/// contain anything.
const SURE_COLUMNS: usize = 3;

/// The delimiter of a table, if the first line identifies it.
pub(super) fn begins(text: &str) -> Option<Delimiter> {
    let first =
        lines::all(text).find(|line| !line.trim().is_empty() && !is_separator_line(line.as_bytes()))?;
    let header = widest(|delimiter| Header::parse(first, delimiter))?;
    (header.has_titles() && header.recognised() >= SURE_COLUMNS).then_some(header.delimiter)
}

/// The minimum number of rows with a field name in a table with one row per field.
const MIN_ROWS: usize = 3;
/// The maximum number of rows with unknown names among the first rows.
const MAX_UNKNOWN_ROWS: usize = 12;

/// Returns `true` if the first rows begin with names of different fields, including the title. A header would have
/// these names in one row. Databases add fields over time, so some names may be unknown.
pub(crate) fn has_field_rows(text: &str) -> bool {
    let (mut names, mut unknown) = (Vec::new(), 0);
    for row in fields::rows(text) {
        let mut known = cells(row, b',', true).map(|cell| column(&cell, 0).named.map(|named| named.name));
        let Some(Some(name)) = known.next() else {
            unknown += 1;
            if names.is_empty() || unknown > MAX_UNKNOWN_ROWS || !has_unknown_name(row) {
                break;
            }
            continue;
        };
        if names.contains(&name) {
            break;
        }
        names.push(name);
        // The header of a table may follow without a line break.
        if known.flatten().count() > 1 {
            break;
        }
    }
    names.len() >= MIN_ROWS && names.contains(&"title")
}

/// Returns `true` for a row that may begin with the name of a field: capitals and a value, `"AiP/IP ENTRY DATE","2026"`.
fn has_unknown_name(row: &str) -> bool {
    let mut cells = cells(row, b',', true);
    let (Some(name), Some(_)) = (cells.next(), cells.next()) else { return false };
    let capitals = name.chars().filter(|c| c.is_uppercase()).count();
    let small = name.chars().filter(|c| c.is_lowercase()).count();
    name.len() <= MAX_NAME && capitals > 2 && capitals > 2 * small
}

/// Returns `true` if lines consist of the names of different fields, as in the text of Embase: `TITLE`, `AUTHOR NAMES`. A
/// table with one column has titles there.
fn has_field_lines(text: &str) -> bool {
    /// The number of lines that are inspected.
    const MAX_LINES: usize = 60;
    let mut names = Vec::new();
    let known = |line: &str| if line.len() <= MAX_NAME { column(line, 1).named } else { None };
    for named in lines::all(text).take(MAX_LINES).map(str::trim).filter_map(known) {
        if !names.contains(&named.name) {
            names.push(named.name);
        }
        if names.len() >= MIN_ROWS {
            return true;
        }
    }
    false
}

fn header_row(text: &str, delimiter: Delimiter) -> Option<&str> {
    let mut splitter = Csv::new(delimiter, usize::MAX);
    let mut rest = text;
    loop {
        match splitter.step(rest.as_bytes(), true) {
            Step::Skip { consumed } | Step::Pass { consumed } => rest = rest.get(consumed..)?,
            Step::Header { row, .. } => return rest.get(row),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiter_with_most_known_columns_wins() {
        let delimiter = |text: &str| match find(text) {
            Some(TableDetection::WithHeader(delimiter, _)) => Some(delimiter),
            _ => None,
        };
        assert_eq!(delimiter("Title;Authors;Notes, remarks, more\n"), Some(Delimiter::Semicolon));
        assert_eq!(delimiter("sep=;\nTitle;Year\n"), Some(Delimiter::Semicolon));
        assert_eq!(delimiter("\"Article, Title\",x\tTitle\tDOI"), Some(Delimiter::Tab));
        assert_eq!(delimiter("Title\n123\n"), Some(Delimiter::Comma));
        assert_eq!(find("name,size\na,1\n"), None);
        // Text with names of fields.
        assert_eq!(find("TITLE\n  a\nSOURCE\n  b\nAUTHOR NAMES\n  c\n"), None);
        assert_eq!(delimiter("Title\nAbstract\na\nTitle\nAbstract\n"), Some(Delimiter::Comma));
    }

    #[test]
    fn three_known_columns_identify_a_table() {
        assert_eq!(begins("\nsep=;\nTitle;Year;DOI\n"), Some(Delimiter::Semicolon));
        assert_eq!(begins("Title,Year\nTitle,Year,DOI"), None);
        assert_eq!(begins("Year,DOI,Authors\n"), None);
    }

    #[test]
    fn header_may_follow_other_lines() {
        let text = "\"About: exported, 2023\"\n\nRank,DOI,Title\n1,10.5555/a,A\n";
        assert_eq!(find(text), Some(TableDetection::WithHeader(Delimiter::Comma, 2)));
        assert_eq!(find("Dear all,\nTitle\nof something\n"), None);
    }

    #[test]
    fn table_without_titles_reports_its_columns() {
        let columns = |names: &[&str]| {
            Some(TableDetection::WithoutTitles(names.iter().map(|name| (*name).to_owned()).collect()))
        };
        assert_eq!(
            find("Überschrift;Authors;Year\na;b;1999\n"),
            columns(&["Überschrift", "Authors", "Year"])
        );
        assert_eq!(find("PMID\n123\n"), columns(&["PMID"]));
    }

    #[test]
    fn field_rows_are_not_a_header() {
        assert!(has_field_rows("\"TITLE\",\"Source\"\n\"AUTHOR NAMES\",a,b\n\"DOI\",c\n\n\"TITLE\",d\n"));
        assert!(has_field_rows("TITLE,a\n\"AiP/IP ENTRY DATE\",2026\nAUTHOR NAMES,b\nDOI,c\n"));
        assert!(!has_field_rows("Title\n\"A test, of words\",2026\nAUTHOR NAMES,b\nDOI,c\n"));
        assert!(!has_field_rows("Title,Authors,DOI\nTitle,Authors,DOI\n"));
        assert!(!has_field_rows("Title\na\nDOI\n"));
    }
}
