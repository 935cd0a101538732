//! Reads a record of RefWorks' tagged format.

use std::sync::LazyLock;

use super::{
    draft::Draft,
    entities,
    field::{Field, Index, Rule},
    labels, names,
};
use crate::split::refworks::tag;

/// The tags and their fields.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["T1", "ST"] },
    Rule { field: Field::Author, names: &["A1"] },
    Rule { field: Field::Editor, names: &["A2", "A3", "A4", "A5", "A6"] },
    Rule { field: Field::Date, names: &["YR"] },
    Rule { field: Field::MonthDay, names: &["FD"] },
    Rule { field: Field::Journal, names: &["JF", "JO"] },
    Rule { field: Field::Book, names: &["T2"] },
    Rule { field: Field::Series, names: &["T3"] },
    Rule { field: Field::Volume, names: &["VO"] },
    Rule { field: Field::Issue, names: &["IS"] },
    Rule { field: Field::FirstPage, names: &["SP"] },
    Rule { field: Field::LastPage, names: &["OP"] },
    Rule { field: Field::Doi, names: &["DO"] },
    Rule { field: Field::Pmid, names: &["PMID"] },
    Rule { field: Field::Accession, names: &["AN"] },
    Rule { field: Field::Database, names: &["DB", "DS"] },
    Rule { field: Field::Abstract, names: &["AB"] },
    Rule { field: Field::Keyword, names: &["K1"] },
    Rule { field: Field::Url, names: &["UL", "LK"] },
    Rule { field: Field::Type, names: &["RT"] },
    Rule { field: Field::LeftOut, names: &["SR", "ID", "RD"] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

pub(super) fn read(text: &str) -> Draft<'_> {
    let mut draft = Draft::default();
    for (name, value) in labels::values(text, tag) {
        if name == "K1" && value.contains(names::is_ideographic) {
            let value = entities::decode(value);
            value
                .split([';', '；', '\n', '\r'])
                .for_each(|keyword| draft.keyword(0, without_weight(keyword.trim())));
        } else {
            labels::add(&mut draft, &INDEX, name, value);
        }
    }
    draft
}

/// Removes the weight that CNKI writes behind a keyword: `黄芪:7`.
fn without_weight(keyword: &str) -> &str {
    let is_weight =
        |weight: &str| (1..=2).contains(&weight.len()) && weight.bytes().all(|byte| byte.is_ascii_digit());
    match keyword.rsplit_once(':') {
        Some((word, weight)) if is_weight(weight) && word.ends_with(names::is_ideographic) => word,
        _ => keyword,
    }
}
