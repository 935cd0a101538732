//! Reads a record of NoteExpress.

use std::sync::LazyLock;

use super::{
    draft::Draft,
    field::{Field, Index, Rule},
    labels,
};
use crate::split::{lines, noteexpress::tag};

/// The names in braces and their fields.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["Title", "Translated Title", "Short Title"] },
    Rule { field: Field::Author, names: &["Author"] },
    Rule {
        field: Field::Editor,
        names: &["Secondary Author", "Editor", "Tertiary Author", "Subsidiary Author"],
    },
    Rule { field: Field::Date, names: &["Year", "Date"] },
    Rule {
        field: Field::Journal,
        names: &["Journal", "Secondary Title", "Translated Journal", "Tertiary Title"],
    },
    Rule { field: Field::Volume, names: &["Volume"] },
    Rule { field: Field::Issue, names: &["Issue"] },
    Rule { field: Field::Pages, names: &["Pages"] },
    Rule { field: Field::Doi, names: &["DOI"] },
    Rule { field: Field::Pmid, names: &["PMID"] },
    Rule { field: Field::Database, names: &["Database Provider", "Database"] },
    Rule { field: Field::Abstract, names: &["Abstract", "Translated Abstract"] },
    Rule { field: Field::Keyword, names: &["Keywords", "Translated Keywords"] },
    Rule { field: Field::Url, names: &["URL", "Link"] },
    Rule { field: Field::Type, names: &["Reference Type"] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

pub(super) fn read(text: &str) -> Draft<'_> {
    let mut draft = Draft::default();
    for (name, value) in labels::values(text, tag) {
        if matches!(name, "Keywords" | "Translated Keywords") && !value.is_ascii() {
            for keyword in lines::all(value).flat_map(labels::east_asian_keywords) {
                labels::add(&mut draft, &INDEX, name, keyword);
            }
        } else {
            labels::add(&mut draft, &INDEX, name, value);
        }
    }
    draft
}
