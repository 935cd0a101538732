//! Reads a record of the EU Clinical Trials Register.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    entities,
    field::{Field, FieldName, Index, Rule},
    labels, tidy,
};
use crate::split::{
    eu_ctr::{HEADING, code, tag},
    lines,
};

/// The codes and names of values.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["A.3", "Full Title", "A.3.1"] },
    Rule {
        field: Field::Date,
        names: &[
            "Date on which this record was first entered in the EudraCT database",
            "Start Date",
            "Start Date*",
        ],
    },
    Rule { field: Field::Abstract, names: &["E.2.1"] },
    Rule { field: Field::Keyword, names: &["E.1.1", "Medical condition"] },
    Rule { field: Field::Url, names: &["Link"] },
    Rule { field: Field::LeftOut, names: &["Index", HEADING] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

pub(super) fn read(text: &str) -> Draft<'_> {
    let mut draft = Draft::default();
    for (name, value) in labels::values(text, tag) {
        let named = INDEX.find(code(name).unwrap_or(name));
        match named {
            Some(named) if named.field == Field::Keyword => labels::keywords(&mut draft, named, value),
            // A list of sections follows the link.
            Some(named) if named.field == Field::Url => {
                draft.add(named, lines::all(value).next().unwrap_or_default());
            }
            Some(named) => draft.add_as(named, name, tidy::on_one_line(value)),
            None => draft.extra.push(name, &entities::decode(value)),
        }
    }
    let register = FieldName::new(Field::Database, "DB", 0);
    draft.add_decoded(register, Cow::Borrowed("EU Clinical Trials Register"));
    draft
}
