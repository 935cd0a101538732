//! Reads a record of EndNote's tagged format.

use std::sync::LazyLock;

use super::{
    draft::Draft,
    field::{Field, Index, Rule},
    labels,
};
use crate::split::refer::tag;

/// The tags and their fields.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["%T", "%!"] },
    Rule { field: Field::Book, names: &["%B"] },
    Rule { field: Field::Author, names: &["%A"] },
    Rule { field: Field::Editor, names: &["%E", "%Y", "%H", "%?"] },
    Rule { field: Field::Date, names: &["%D"] },
    Rule { field: Field::MonthDay, names: &["%8"] },
    Rule { field: Field::Journal, names: &["%J"] },
    Rule { field: Field::Series, names: &["%S"] },
    Rule { field: Field::Volume, names: &["%V"] },
    Rule { field: Field::Issue, names: &["%N"] },
    Rule { field: Field::Pages, names: &["%P"] },
    Rule { field: Field::Doi, names: &["%R"] },
    Rule { field: Field::Accession, names: &["%M"] },
    Rule { field: Field::Database, names: &["%W", "%~"] },
    Rule { field: Field::Abstract, names: &["%X"] },
    Rule { field: Field::Keyword, names: &["%K"] },
    Rule { field: Field::Url, names: &["%U"] },
    Rule { field: Field::Type, names: &["%0", "%9"] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

pub(super) fn read(text: &str) -> Draft<'_> {
    let mut draft = Draft::default();
    for (name, value) in labels::values(text, tag) {
        let is_list = matches!(name, "%A" | "%E" | "%K") && memchr::memchr(b'%', value.as_bytes()).is_some();
        if is_list {
            // CNKI repeats the tag on the same line.
            for value in value.split(name) {
                labels::add(&mut draft, &INDEX, name, value);
            }
        } else if name == "%K" && !value.is_ascii() {
            for keyword in labels::east_asian_keywords(value) {
                labels::add(&mut draft, &INDEX, name, keyword);
            }
        } else {
            labels::add(&mut draft, &INDEX, name, value);
        }
    }
    draft
}
