//! One row of a table.

use super::{
    citation, from_citation,
    header::{Column, Header, cells},
    names, values,
};
use crate::Reference;

pub(super) fn read(header: &Header, text: &str) -> Result<Reference, String> {
    let row = Row::of(header, text)?;
    let canonical = canonical(&row)?;
    let mut reference = from_citation(&citation(&header.parser, &canonical)?);
    reference.authors = row.first(Column::Authors).map(names::of_cell).unwrap_or_default();
    reference.pages = row
        .first(Column::Pages)
        .and_then(values::line)
        .or_else(|| values::pages(row.first(Column::FirstPage), row.first(Column::LastPage)));
    // biblib assumes an article where the table says nothing.
    reference.r#type = row.first(Column::Type).and_then(values::line);
    reference.doi = reference.doi.or_else(|| row.all(Column::Url).find_map(values::doi_in_url));
    complete_from_source(&mut reference);
    Ok(reference)
}

/// The cells of a row by what they hold.
struct Row {
    /// Ordered by column name, the most telling name first.
    cells: Vec<(Column, usize, String)>,
}

impl Row {
    fn of(header: &Header, text: &str) -> Result<Self, String> {
        let record = cells(text, header.delimiter).ok_or("its cells cannot be told apart")?;
        let width = header.columns.len();
        if record.iter().skip(width).any(|cell| !cell.trim().is_empty()) {
            let found = record.len();
            return Err(format!(
                "it has {found} cells where the header has {width}; a cell may lack its quotation marks"
            ));
        }
        let mut cells: Vec<_> = header
            .columns
            .iter()
            .zip(&record)
            .filter(|(_, cell)| !cell.trim().is_empty())
            .filter_map(|(column, cell)| column.map(|(column, rank)| (column, rank, cell.trim().to_owned())))
            .collect();
        cells.sort_by_key(|(_, rank, _)| *rank);
        Ok(Self { cells })
    }

    fn all(&self, wanted: Column) -> impl Iterator<Item = &str> {
        self.cells.iter().filter(move |(column, ..)| *column == wanted).map(|(.., cell)| cell.as_str())
    }

    fn first(&self, wanted: Column) -> Option<&str> {
        self.all(wanted).next()
    }
}

/// The row as a table of its own, under the names that `biblib` knows.
fn canonical(row: &Row) -> Result<String, String> {
    let keywords = row.all(Column::Keywords).flat_map(list).collect::<Vec<_>>().join(";");
    let doi = row.all(Column::Doi).find_map(values::doi);
    let fields = [
        ("title", row.first(Column::Title)),
        ("year", row.first(Column::Year)),
        ("journal", row.first(Column::Journal)),
        ("volume", row.first(Column::Volume)),
        ("issue", row.first(Column::Issue)),
        ("doi", doi.as_deref()),
        ("pmid", row.first(Column::Pmid)),
        ("abstract", row.first(Column::Abstract)),
        ("url", row.first(Column::Url)),
        ("keywords", Some(keywords.as_str())),
    ];
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(fields.iter().map(|(name, _)| name)).map_err(|error| error.to_string())?;
    writer
        .write_record(fields.iter().map(|(_, value)| value.unwrap_or_default()))
        .map_err(|error| error.to_string())?;
    let table = writer.into_inner().map_err(|error| error.to_string())?;
    String::from_utf8(table).map_err(|error| error.to_string())
}

/// The items of a cell with several: quoted, or separated by semicolons, bars, line breaks, or by commas that
/// are not inside brackets, as in "cyst (diagnosis, surgery), stomach".
fn list(cell: &str) -> Vec<String> {
    if let Some(items) = names::quoted_list(cell) {
        return items;
    }
    if let Some(separator) = [';', '|', '\n'].into_iter().find(|separator| cell.contains(*separator)) {
        return cell.split(separator).map(str::to_owned).collect();
    }
    let mut depth = 0_usize;
    cell.split(|c: char| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .map(str::to_owned)
    .collect()
}

/// Embase writes "Cancer (2004) 102:4 (253-258). Date of Publication: 25 Aug 2004" where others have columns.
fn complete_from_source(reference: &mut Reference) {
    let Some(source) = reference.journal.as_deref() else { return };
    let Some((journal, year, rest)) = source_parts(values::front(source)) else { return };
    let (numbers, pages) = rest.split_once('(').unwrap_or((rest, ""));
    let numbers = numbers.split('.').next().unwrap_or_default();
    let (volume, issue) = numbers.split_once(':').unwrap_or((numbers, ""));
    let pages = pages.split_once(')').and_then(|(pages, _)| values::line(pages));
    let (volume, issue) = (values::line(volume), values::line(issue));
    let journal = journal.to_owned();
    reference.year = reference.year.or(Some(year));
    reference.volume = reference.volume.take().or(volume);
    reference.issue = reference.issue.take().or(issue);
    reference.pages = reference.pages.take().or(pages);
    reference.journal = Some(journal);
}

/// The journal, the year in brackets after it, and the rest.
fn source_parts(source: &str) -> Option<(&str, i32, &str)> {
    source.match_indices(" (").find_map(|(at, opening)| {
        let (year, rest) = source[at + opening.len()..].split_once(')')?;
        let year = (year.len() == 4).then(|| values::year(year)).flatten()?;
        // A journal's name may end in a year; the numbers after it make the citation.
        let cited = rest.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '(' || c == ':');
        cited.then_some((source[..at].trim_end(), year, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_in_the_source_column_is_taken_apart() {
        let mut reference = Reference {
            journal: Some("Cancer (2004) 102:4 (253-258). Date of Publication: 25 Aug 2004".into()),
            ..Reference::default()
        };
        complete_from_source(&mut reference);
        assert_eq!(reference.journal.as_deref(), Some("Cancer"));
        assert_eq!(reference.year, Some(2004));
        assert_eq!(reference.volume.as_deref(), Some("102"));
        assert_eq!(reference.issue.as_deref(), Some("4"));
        assert_eq!(reference.pages.as_deref(), Some("253-258"));
    }

    #[test]
    fn a_plain_journal_is_left_alone() {
        let mut reference =
            Reference { journal: Some("Heart (British Cardiac Society)".into()), ..Reference::default() };
        let before = reference.clone();
        complete_from_source(&mut reference);
        assert_eq!(reference, before);
    }

    #[test]
    fn commas_in_brackets_do_not_separate() {
        assert_eq!(list("cyst (diagnosis, surgery),stomach"), ["cyst (diagnosis, surgery)", "stomach"]);
    }
}
