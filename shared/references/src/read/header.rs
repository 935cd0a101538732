//! The header row of a table: which column means what.

use std::sync::LazyLock;

use super::{
    cells::cells,
    field::{Field, Index, Named, Rule},
};
use crate::{
    Delimiter,
    split::{Split, Step, csv::Csv},
};

/// Names of columns in lower case, with everything but letters and digits as single blanks.
pub(super) const RULES: &[Rule] = &[
    Rule {
        field: Field::Title,
        names: &["title", "primary title", "document title", "article title", "study title", "titles", "ti"],
    },
    Rule {
        field: Field::Author,
        names: &[
            "authors",
            "author",
            "author names",
            "first authors",
            "author s",
            "author full names",
            "creators",
            "creator",
            "author list",
            "af",
            "au",
        ],
    },
    Rule { field: Field::Editor, names: &["editors", "editor", "secondary authors", "book editors"] },
    Rule {
        field: Field::Date,
        names: &[
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
    },
    Rule {
        field: Field::Journal,
        names: &[
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
            "so",
        ],
    },
    Rule { field: Field::Volume, names: &["volume", "vol", "volume number", "vl"] },
    Rule { field: Field::Issue, names: &["issue", "number", "issue number", "no", "is"] },
    Rule { field: Field::Pages, names: &["pages", "page range", "page numbers", "page", "pagination"] },
    Rule {
        field: Field::FirstPage,
        names: &["start page", "page start", "first page", "beginning page", "bp"],
    },
    Rule { field: Field::LastPage, names: &["end page", "page end", "last page", "ending page", "ep"] },
    Rule { field: Field::Doi, names: &["doi", "digital object identifier", "doi link", "article doi", "di"] },
    Rule {
        field: Field::Pmid,
        names: &["pmid", "pubmed id", "pubmedid", "medline pmid", "pubmed identifier", "pm"],
    },
    Rule { field: Field::Abstract, names: &["abstract", "abstract note", "summary", "abstract text", "ab"] },
    Rule {
        field: Field::Keyword,
        names: &[
            "keywords",
            "keyword",
            "author keywords",
            "index keywords",
            "keywords plus",
            "tags",
            "mesh terms",
            "subjects",
            "de",
        ],
    },
    Rule {
        field: Field::Url,
        names: &[
            "url",
            "link",
            "urls",
            "links",
            "web link",
            "article url",
            "full text link",
            "open url link",
        ],
    },
    Rule {
        field: Field::Type,
        names: &[
            "publication type",
            "document type",
            "type of reference",
            "reference type",
            "item type",
            "article type",
            "work type",
            "type",
        ],
    },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::of(RULES));

/// The columns that identify the work of a row. A table without any of them is not a list of references.
const IDENTIFYING: [Field; 5] = [Field::Title, Field::Doi, Field::Pmid, Field::Author, Field::Abstract];

/// The header of a table.
#[derive(Debug)]
pub(crate) struct Header {
    pub(super) delimiter: Delimiter,
    pub(super) columns: Vec<Column>,
}

/// A column: what it holds, if its name is known, and its name.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) named: Option<Named>,
    pub(super) name: String,
}

impl Header {
    /// The header in a table's first row.
    pub(crate) fn of_row(row: &str, delimiter: Delimiter) -> Option<Self> {
        let columns: Vec<_> =
            cells(row, delimiter.byte()).enumerate().map(|(at, name)| column(&name, at)).collect();
        let known = columns.iter().filter_map(|column| column.named);
        let recognised = known.into_iter().any(|named| IDENTIFYING.contains(&named.field));
        recognised.then_some(Self { delimiter, columns })
    }

    fn recognised(&self) -> usize {
        self.columns.iter().filter(|column| column.named.is_some()).count()
    }
}

/// The delimiter under which the first row of the text names the most columns, and how many.
pub(crate) fn find(text: &str) -> Option<(Delimiter, usize)> {
    let candidates = Delimiter::ALL.into_iter().filter_map(|delimiter| {
        let header = Header::of_row(first_row(text, delimiter)?, delimiter)?;
        Some((header.recognised(), delimiter))
    });
    // The first of equals: a table of one column counts as CSV.
    candidates
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map(|(columns, delimiter)| (delimiter, columns))
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

fn column(name: &str, at: usize) -> Column {
    let name = name.trim().trim_start_matches('\u{feff}');
    let plain: String =
        name.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = if name.is_empty() { format!("column {}", at + 1) } else { name.to_owned() };
    Column { named: INDEX.find(&plain), name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_the_one_that_names_the_most_columns() {
        let delimiter = |text: &str| find(text).map(|(delimiter, _)| delimiter);
        assert_eq!(delimiter("Title;Authors;Notes, remarks, more\n"), Some(Delimiter::Semicolon));
        assert_eq!(delimiter("sep=;\nTitle;Year\n"), Some(Delimiter::Semicolon));
        assert_eq!(delimiter("\"Article, Title\",x\tAuthors\tDOI"), Some(Delimiter::Tab));
        assert_eq!(delimiter("PMID\n123\n"), Some(Delimiter::Comma));
        assert_eq!(find("name,size\na,1\n"), None);
    }

    #[test]
    fn names_are_compared_without_case_and_punctuation() {
        let field = |name: &str| column(name, 0).named.map(|named| named.field);
        assert_eq!(field("Author(s)"), Some(Field::Author));
        assert_eq!(field("publication_year"), Some(Field::Date));
        assert_eq!(field(" \u{feff}Title"), Some(Field::Title));
        assert_eq!(field("Original Title"), None);
    }
}
