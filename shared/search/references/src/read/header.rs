//! Interprets the header row of a table.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    cells::cells,
    field::{Field, Index, Named, Rule},
};
use crate::{
    Delimiter,
    split::{
        Split, Step,
        csv::{self, Csv},
        fields, lines,
    },
};

/// Column names in lower case, letters and digits only.
#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &[
        "title", "titles", "ti", "primarytitle", "titleprimary", "documenttitle", "articletitle", "itemtitle",
        "papertitle", "studytitle", "publictitle", "scientifictitle", "officialtitle", "brieftitle", "recordtitle",
        "worktitle", "displayname", "dctitle", "titel", "titre", "título", "titulo", "titolo", "tytuł", "başlık",
    ] },
    Rule { field: Field::Author, names: &[
        "authors", "author", "authornames", "firstauthors", "authorfullnames", "fullauthornames", "authorsprimary",
        "primaryauthors", "creators", "creator", "contributors", "authorlist", "authorshipsauthordisplayname",
        "authorsnames", "af", "au", "a1", "dccreator", "autoren", "autor", "autores", "auteurs", "auteur", "autori",
        "inventors", "firstauthor",
    ] },
    Rule { field: Field::Editor, names: &[
        "editors", "editor", "secondaryauthors", "authorssecondary", "bookeditors", "bookauthors",
    ] },
    Rule { field: Field::Date, names: &[
        "year", "publicationyear", "pubyear", "yearofpublication", "publishedyear", "yearpublished", "py",
        "publicationdate", "dateofpublication", "datepublished", "pubdate", "coverdate", "issuedate", "issued",
        "date", "published", "dcdate", "startdate", "y1", "da", "jahr", "erscheinungsjahr", "año", "ano", "année",
        "annee", "anno",
    ] },
    Rule { field: Field::Journal, names: &[
        "journal", "journaltitle", "sourcetitle", "secondarytitle", "publicationtitle", "publicationname",
        "journalname", "journalbook", "fulljournalname", "journalfull", "publication", "pubtitle", "periodical",
        "periodicalfull", "primarylocationsourcedisplayname", "hostvenuedisplayname", "containertitle", "venue",
        "source", "journalabbreviation", "abbreviatedsourcetitle", "journalabbrev", "isoabbreviation",
        "alternatetitle3", "alternatetitle2", "so", "jo", "jf", "t2", "zeitschrift", "revista", "revue", "rivista",
    ] },
    Rule { field: Field::Book, names: &[
        "booktitle", "conferencetitle", "proceedingstitle",
    ] },
    Rule { field: Field::Series, names: &[
        "series", "seriestitle", "bookseriestitle",
    ] },
    Rule { field: Field::Volume, names: &[
        "volume", "vol", "volumenumber", "journalvolume", "bibliovolume", "vl", "band", "jahrgang", "volumen",
    ] },
    Rule { field: Field::Issue, names: &[
        "issue", "number", "issuenumber", "journalissue", "journalnumber", "biblioissue", "no", "is", "heft",
        "número", "numero",
    ] },
    Rule { field: Field::Pages, names: &[
        "pages", "pagerange", "pagenumbers", "page", "pagination", "pageno", "seiten", "páginas", "paginas", "pagine",
    ] },
    Rule { field: Field::FirstPage, names: &[
        "startpage", "pagestart", "firstpage", "beginningpage", "bibliofirstpage", "bp", "sp", "articlenumber",
        "artno", "artnumber", "articleno", "ar",
    ] },
    Rule { field: Field::LastPage, names: &[
        "endpage", "pageend", "lastpage", "endingpage", "bibliolastpage", "ep",
    ] },
    Rule { field: Field::Doi, names: &[
        "doi", "digitalobjectidentifier", "itemdoi", "doilink", "articledoi", "doiurl", "di",
    ] },
    Rule { field: Field::Pmid, names: &[
        "pmid", "pubmedid", "medlinepmid", "pubmedidentifier", "idspmid", "pm",
    ] },
    Rule { field: Field::Abstract, names: &[
        "abstract", "abstractnote", "summary", "abstracttext", "briefsummary", "ab", "dcdescription",
        "zusammenfassung", "resumen", "résumé", "resumo", "riassunto",
    ] },
    Rule { field: Field::Keyword, names: &[
        "keywords", "keyword", "authorkeywords", "keywordsauthor", "indexkeywords", "keywordsplus", "tags",
        "meshterms", "subjects", "subjectterms", "de", "kw", "schlagwörter", "schlagworte", "palabrasclave",
        "motsclés",
    ] },
    Rule { field: Field::Url, names: &[
        "url", "link", "urls", "links", "weblink", "articleurl", "documenturl", "studyurl", "fulltextlink",
        "fulltexturl", "openurllink", "landingpageurl", "ur",
    ] },
    Rule { field: Field::Type, names: &[
        "publicationtype", "documenttype", "typeofreference", "referencetype", "itemtype", "articletype", "doctypes",
        "contenttype", "worktype", "type", "dt",
    ] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::of(RULES));

/// The columns that identify a work. A table without any of them is not a list of references.
const IDENTIFYING: [Field; 5] = [Field::Title, Field::Doi, Field::Pmid, Field::Author, Field::Abstract];

/// The minimum number of known columns in a header that is not the first row: a line above it may be the name of one
/// column.
const ENOUGH_COLUMNS: usize = 2;

/// The maximum number of columns. A row with more cells is quarantined; databases export up to 100 columns.
const MAX_COLUMNS: usize = 4_096;

/// The header of a table.
#[derive(Debug)]
pub(crate) struct Header {
    pub(super) delimiter: Delimiter,
    /// `true` if a quote at the start of a cell opens a quoted cell.
    pub(super) quotes: bool,
    pub(super) columns: Vec<Column>,
}

/// A column: its field, if its name is known, and its name.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) named: Option<Named>,
    pub(super) name: String,
}

/// The table that the first rows of a text form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// A table with a header, and the number of known columns.
    Headed(Delimiter, usize),
    /// A table whose header has no title column; the names of its columns.
    Untitled(Vec<String>),
}

impl Header {
    /// Parses the header in this row, if it is one.
    pub(crate) fn of_row(row: &str, delimiter: Delimiter) -> Option<Self> {
        let quotes = csv::has_quotes(row.as_bytes(), delimiter);
        let cells = cells(row, delimiter.byte(), quotes).take(MAX_COLUMNS);
        let columns: Vec<_> = cells.enumerate().map(|(at, name)| column(&name, at)).collect();
        let known = columns.iter().filter_map(|column| column.named);
        let recognised = known.into_iter().any(|named| IDENTIFYING.contains(&named.field));
        recognised.then_some(Self { delimiter, quotes, columns })
    }

    fn recognised(&self) -> usize {
        self.columns.iter().filter(|column| column.named.is_some()).count()
    }

    fn has_titles(&self) -> bool {
        let titles = |column: &Column| column.named.is_some_and(|named| named.field == Field::Title);
        self.columns.iter().any(titles)
    }
}

/// Returns `true` if this row is the header of a table of references. Lines about the export may precede it.
pub(crate) fn is_header(row: &[u8], delimiter: Delimiter, is_first: bool) -> bool {
    let row = match std::str::from_utf8(row) {
        Ok(row) => Cow::Borrowed(row),
        Err(_) => encoding_rs::WINDOWS_1252.decode_without_bom_handling(row).0,
    };
    Header::of_row(&row, delimiter)
        .is_some_and(|header| header.has_titles() && (is_first || header.recognised() >= ENOUGH_COLUMNS))
}

/// Finds the delimiter for which a header among the first rows has the most known columns.
pub(crate) fn find(text: &str) -> Option<Table> {
    let headed = |delimiter| Header::of_row(header_row(text, delimiter)?, delimiter);
    if let Some(header) = widest(headed) {
        return Some(Table::Headed(header.delimiter, header.recognised()));
    }
    let first = lines::all(text).find(|line| !line.trim().is_empty())?;
    let best = widest(|delimiter| Header::of_row(first, delimiter))?;
    Some(Table::Untitled(best.columns.into_iter().map(|column| column.name).collect()))
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
pub(crate) fn begins(text: &str) -> Option<Delimiter> {
    let first =
        lines::all(text).find(|line| !line.trim().is_empty() && !csv::is_separator_line(line.as_bytes()))?;
    let header = widest(|delimiter| Header::of_row(first, delimiter))?;
    (header.has_titles() && header.recognised() >= SURE_COLUMNS).then_some(header.delimiter)
}

/// The minimum number of rows with a field name in a table with one row per field.
const ENOUGH_ROWS: usize = 3;

/// Returns `true` if the first rows begin with names of different fields, including the title. A header would have
/// these names in one row.
pub(crate) fn has_field_rows(text: &str) -> bool {
    let mut names = Vec::new();
    for row in fields::rows(text) {
        let mut known = cells(row, b',', true).map(|cell| column(&cell, 0).named.map(|named| named.name));
        let Some(Some(name)) = known.next() else { break };
        if names.contains(&name) || known.flatten().count() > 1 {
            break;
        }
        names.push(name);
    }
    names.len() >= ENOUGH_ROWS && names.contains(&"title")
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

/// Interprets the name of a column.
pub(super) fn column(name: &str, at: usize) -> Column {
    let name = name.trim().trim_start_matches('\u{feff}');
    let plain: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let name = if name.is_empty() { format!("column {}", at + 1) } else { name.to_owned() };
    Column { named: INDEX.find(&plain), name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_the_one_that_names_the_most_columns() {
        let delimiter = |text: &str| match find(text) {
            Some(Table::Headed(delimiter, _)) => Some(delimiter),
            _ => None,
        };
        assert_eq!(delimiter("Title;Authors;Notes, remarks, more\n"), Some(Delimiter::Semicolon));
        assert_eq!(delimiter("sep=;\nTitle;Year\n"), Some(Delimiter::Semicolon));
        assert_eq!(delimiter("\"Article, Title\",x\tTitle\tDOI"), Some(Delimiter::Tab));
        assert_eq!(delimiter("Title\n123\n"), Some(Delimiter::Comma));
        assert_eq!(find("name,size\na,1\n"), None);
    }

    #[test]
    fn three_columns_in_the_first_line_are_a_table() {
        assert_eq!(begins("\nsep=;\nTitle;Year;DOI\n"), Some(Delimiter::Semicolon));
        assert_eq!(begins("Title,Year\nTitle,Year,DOI"), None);
        assert_eq!(begins("Year,DOI,Authors\n"), None);
    }

    #[test]
    fn a_header_may_have_lines_above_it() {
        let text = "\"About: exported, 2023\"\n\nRank,DOI,Title\n1,10.5555/a,A\n";
        assert_eq!(find(text), Some(Table::Headed(Delimiter::Comma, 2)));
        assert_eq!(find("Dear all,\nTitle\nof something\n"), None);
    }

    #[test]
    fn a_table_without_titles_is_told_with_its_columns() {
        let columns =
            |names: &[&str]| Some(Table::Untitled(names.iter().map(|name| (*name).to_owned()).collect()));
        assert_eq!(
            find("Überschrift;Authors;Year\na;b;1999\n"),
            columns(&["Überschrift", "Authors", "Year"])
        );
        assert_eq!(find("PMID\n123\n"), columns(&["PMID"]));
    }

    #[test]
    fn rows_of_fields_are_no_header() {
        assert!(has_field_rows("\"TITLE\",\"Source\"\n\"AUTHOR NAMES\",a,b\n\"DOI\",c\n\n\"TITLE\",d\n"));
        assert!(!has_field_rows("Title,Authors,DOI\nTitle,Authors,DOI\n"));
        assert!(!has_field_rows("Title\na\nDOI\n"));
    }

    #[test]
    fn names_are_compared_without_case_blanks_and_punctuation() {
        let field = |name: &str| column(name, 0).named.map(|named| named.field);
        assert_eq!(field("Author(s)"), Some(Field::Author));
        assert_eq!(field("publication_year"), Some(Field::Date));
        assert_eq!(field(" \u{feff}Title"), Some(Field::Title));
        assert_eq!(field("StartPage"), Some(Field::FirstPage));
        assert_eq!(field("primary_location.source.display_name"), Some(Field::Journal));
        assert_eq!(field("Original Title"), None);
    }
}
