//! Reads a record of EndNote's text with spelled-out names.

use std::sync::LazyLock;

use super::{
    draft::Draft,
    field::{Field, Index, Rule},
    labels,
};

/// The names and their fields. Only known names begin a value, because paragraphs may begin like one.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["Title", "Translated Title", "Short Title"] },
    Rule { field: Field::Book, names: &["Book Title"] },
    Rule { field: Field::Author, names: &["Author", "Inventor", "Artist", "Reporter", "Programmer"] },
    Rule {
        field: Field::Editor,
        names: &["Editor", "Secondary Author", "Series Editor", "Tertiary Author", "Subsidiary Author"],
    },
    Rule { field: Field::Date, names: &["Year", "Year of Conference"] },
    Rule { field: Field::MonthDay, names: &["Date"] },
    Rule {
        field: Field::Journal,
        names: &[
            "Journal",
            "Periodical Title",
            "Secondary Title",
            "Conference Name",
            "Newspaper",
            "Magazine",
            "Alternate Journal",
        ],
    },
    Rule { field: Field::Series, names: &["Series Title"] },
    Rule { field: Field::Volume, names: &["Volume"] },
    Rule { field: Field::Issue, names: &["Issue", "Number"] },
    Rule { field: Field::Pages, names: &["Pages"] },
    Rule { field: Field::FirstPage, names: &["Start Page", "Article Number"] },
    Rule { field: Field::Doi, names: &["DOI", "Electronic Resource Number"] },
    Rule { field: Field::Accession, names: &["Accession Number"] },
    Rule { field: Field::Database, names: &["Name of Database", "Database Provider"] },
    Rule { field: Field::Abstract, names: &["Abstract"] },
    Rule { field: Field::Keyword, names: &["Keywords"] },
    Rule { field: Field::Url, names: &["URL", "Link to PDF"] },
    Rule { field: Field::Type, names: &["Reference Type", "Type of Article", "Type of Work"] },
    Rule { field: Field::LeftOut, names: &["Record Number"] },
    Rule {
        field: Field::Extra,
        names: &[
            "ISSN",
            "ISBN",
            "ISBN/ISSN",
            "Notes",
            "Research Notes",
            "Author Address",
            "Language",
            "Publisher",
            "Place Published",
            "City",
            "Institution",
            "University",
            "Academic Department",
            "Thesis Type",
            "Advisor",
            "Degree",
            "Edition",
            "Number of Pages",
            "Number of Volumes",
            "Series Volume",
            "Section",
            "Conference Location",
            "Epub Date",
            "Original Publication",
            "Reprint Edition",
            "Reviewed Item",
            "Legal Note",
            "PMCID",
            "NIHMSID",
            "Call Number",
            "Label",
            "Figure",
            "Caption",
            "Custom 1",
            "Custom 2",
            "Custom 3",
            "Custom 4",
            "Custom 5",
            "Custom 6",
            "Custom 7",
            "Custom 8",
            "Translated Author",
            "Access Date",
            "Added to Library",
            "Last Updated",
            "File Attachments",
        ],
    },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

/// The name at the beginning of a line, and the offset of its value.
fn tag(line: &str) -> Option<(&str, usize)> {
    let (name, _) = line.split_once(':')?;
    INDEX.find(name).map(|_| (name, name.len() + 1))
}

pub(super) fn read(text: &str) -> Draft<'_> {
    let mut draft = Draft::default();
    for (name, value) in labels::values(text, tag) {
        match INDEX.find(name) {
            // The lines of an abstract are paragraphs.
            Some(named) if named.field == Field::Abstract => draft.add(named, value),
            _ => labels::add(&mut draft, &INDEX, name, value),
        }
    }
    draft
}
