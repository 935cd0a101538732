//! The header row of a table: which column means what.

use biblib::csv::{CsvConfig, CsvParser};

use crate::{
    Delimiter, Format,
    encoding::decode,
    split::{Split, Step, csv::Csv},
};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Title,
    Authors,
    Year,
    Journal,
    Volume,
    Issue,
    Pages,
    FirstPage,
    LastPage,
    Doi,
    Pmid,
    Abstract,
    Keywords,
    Url,
    Type,
}

/// Names of columns in lower case, with everything but letters and digits as single blanks.
const NAMES: [(Column, &[&str]); 15] = [
    (
        Column::Title,
        &["title", "primary title", "document title", "article title", "study title", "titles", "ti"],
    ),
    (
        Column::Authors,
        &[
            "authors",
            "author",
            "author names",
            "first authors",
            "author s",
            "author full names",
            "creators",
            "creator",
            "author list",
            "au",
        ],
    ),
    (
        Column::Year,
        &[
            "year",
            "publication year",
            "pub year",
            "year of publication",
            "published year",
            "py",
            "publication date",
            "date of publication",
            "date published",
            "cover date",
            "date",
        ],
    ),
    (
        Column::Journal,
        &[
            "journal",
            "journal title",
            "source title",
            "secondary title",
            "publication title",
            "journal name",
            "journal book",
            "full journal name",
            "publication",
            "source",
            "periodical",
            "journal abbreviation",
            "abbreviated source title",
            "alternate title3",
            "alternate title2",
        ],
    ),
    (Column::Volume, &["volume", "vol", "volume number"]),
    (Column::Issue, &["issue", "number", "issue number", "no"]),
    (Column::Pages, &["pages", "page range", "page numbers", "page", "pagination"]),
    (Column::FirstPage, &["start page", "page start", "first page", "beginning page"]),
    (Column::LastPage, &["end page", "page end", "last page", "ending page"]),
    (Column::Doi, &["doi", "digital object identifier", "doi link", "article doi"]),
    (Column::Pmid, &["pmid", "pubmed id", "pubmedid", "medline pmid", "pubmed identifier"]),
    (Column::Abstract, &["abstract", "abstract note", "summary", "abstract text"]),
    (
        Column::Keywords,
        &[
            "keywords",
            "keyword",
            "author keywords",
            "index keywords",
            "keywords plus",
            "tags",
            "mesh terms",
            "subjects",
        ],
    ),
    (
        Column::Url,
        &["url", "link", "urls", "links", "web link", "article url", "full text link", "open url link"],
    ),
    (
        Column::Type,
        &[
            "publication type",
            "document type",
            "type of reference",
            "reference type",
            "item type",
            "article type",
            "work type",
            "type",
        ],
    ),
];

/// The columns that say which work a row is about. A table without any of them is not a list of references.
const IDENTIFYING: [Column; 5] =
    [Column::Title, Column::Doi, Column::Pmid, Column::Authors, Column::Abstract];

/// The columns of a table.
#[derive(Debug)]
pub(crate) struct Header {
    pub(super) delimiter: Delimiter,
    /// What each column holds, and how early its name stands among the names for that.
    pub(super) columns: Vec<Option<(Column, usize)>>,
    pub(super) parser: CsvParser,
}

impl Header {
    /// The header in the bytes of a table's first row.
    pub(crate) fn of_row(row: &[u8], format: Format) -> Option<Self> {
        let Format::Csv { delimiter } = format else { return None };
        Self::of_text(&decode(row).ok()?, delimiter)
    }

    fn of_text(row: &str, delimiter: Delimiter) -> Option<Self> {
        let columns: Vec<_> = cells(row, delimiter)?.iter().map(column).collect();
        let recognised = columns.iter().flatten().any(|(column, _)| IDENTIFYING.contains(column));
        // Rows reach biblib in its own words, and any column may be missing.
        let mut config = CsvConfig::new();
        config.set_flexible(true);
        recognised.then(|| Self { delimiter, columns, parser: CsvParser::with_config(config) })
    }

    fn recognised(&self) -> usize {
        self.columns.iter().flatten().count()
    }
}

/// The delimiter under which the first row of the text names the most columns.
pub(crate) fn find(text: &str) -> Option<Delimiter> {
    let candidates = Delimiter::ALL.into_iter().filter_map(|delimiter| {
        let header = Header::of_text(first_row(text, delimiter)?, delimiter)?;
        Some((header.recognised(), delimiter))
    });
    // The first of equals: a single column is a CSV.
    candidates.reduce(|best, next| if next.0 > best.0 { next } else { best }).map(|(_, delimiter)| delimiter)
}

fn first_row(text: &str, delimiter: Delimiter) -> Option<&str> {
    let mut splitter = Csv::new(delimiter, usize::MAX);
    let mut rest = text;
    loop {
        match splitter.step(rest.as_bytes(), true) {
            Step::Skip { consumed } => rest = rest.get(consumed..)?,
            Step::Header { row, .. } => return rest.get(row),
            _ => return None,
        }
    }
}

/// The cells of one row.
pub(super) fn cells(row: &str, delimiter: Delimiter) -> Option<csv::StringRecord> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter.byte())
        .from_reader(row.as_bytes());
    let mut record = csv::StringRecord::new();
    reader.read_record(&mut record).ok()?.then_some(record)
}

fn column(name: &str) -> Option<(Column, usize)> {
    let name: String =
        name.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    NAMES
        .iter()
        .find_map(|(column, names)| names.iter().position(|known| *known == name).map(|rank| (*column, rank)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_the_one_that_names_the_most_columns() {
        assert_eq!(find("Title;Authors;Notes, remarks, more\n"), Some(Delimiter::Semicolon));
        assert_eq!(find("sep=;\nTitle;Year\n"), Some(Delimiter::Semicolon));
        assert_eq!(find("\"Article, Title\",x\tAuthors\tDOI"), Some(Delimiter::Tab));
        assert_eq!(find("PMID\n123\n"), Some(Delimiter::Comma));
        assert_eq!(find("name,size\na,1\n"), None);
    }

    #[test]
    fn names_are_compared_without_case_and_punctuation() {
        assert_eq!(column("Author(s)").map(|(column, _)| column), Some(Column::Authors));
        assert_eq!(column("publication_year").map(|(column, _)| column), Some(Column::Year));
        assert_eq!(column(" \u{feff}Title").map(|(column, _)| column), Some(Column::Title));
        assert_eq!(column("Original Title"), None);
    }
}
