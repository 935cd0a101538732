//! Reads a record of EBSCOhost's tagged lines.

use std::sync::LazyLock;

use super::{
    citation,
    draft::Draft,
    entities,
    field::{Field, FieldName, Index, Rule},
    labels, tidy,
};
use crate::split::ebsco_tagged::tag;

/// The tags and their fields.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["TI"] },
    Rule { field: Field::Author, names: &["AU"] },
    Rule { field: Field::Editor, names: &["ED"] },
    Rule { field: Field::Date, names: &["SD", "PM", "YR", "PY"] },
    Rule { field: Field::Journal, names: &["JN"] },
    Rule { field: Field::Book, names: &["BK"] },
    Rule { field: Field::Citation, names: &["SO"] },
    Rule { field: Field::Volume, names: &["VI"] },
    Rule { field: Field::Issue, names: &["IP"] },
    Rule { field: Field::Pages, names: &["PG"] },
    Rule { field: Field::FirstPage, names: &["SP"] },
    Rule { field: Field::Doi, names: &["DO"] },
    Rule { field: Field::Accession, names: &["AN"] },
    Rule { field: Field::Database, names: &["DB"] },
    Rule { field: Field::Abstract, names: &["AB"] },
    Rule { field: Field::Keyword, names: &["KP", "KW", "SU", "DE", "MJ", "MN"] },
    Rule { field: Field::Url, names: &["UR"] },
    Rule { field: Field::Type, names: &["AT", "DT"] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

pub(super) fn read(text: &str) -> Draft<'_> {
    let mut draft = Draft::default();
    for (name, value) in labels::values(text, tag) {
        if name == "SO" {
            add_source(&mut draft, value);
        } else {
            labels::add(&mut draft, &INDEX, name, value);
        }
    }
    draft
}

/// Adds a citation, or the name of the journal.
fn add_source<'a>(draft: &mut Draft<'a>, value: &'a str) {
    let text = tidy::line(&entities::decode(value)).unwrap_or_default();
    if citation::add(draft, "SO", &text) {
        return;
    }
    if text.contains(|c: char| c.is_ascii_digit()) {
        draft.extra.push("SO", &text);
    } else {
        draft.add(FieldName::new(Field::Journal, "SO", u8::MAX), value);
    }
}
