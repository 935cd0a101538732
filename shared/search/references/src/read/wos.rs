//! Reads a record of Web of Science plain text.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    entities,
    field::{Field, FieldName, Index, Rule},
    labels, tidy,
};
use crate::split::{lines, wos::tag};

/// The tags and their fields.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["TI", "FT"] },
    Rule { field: Field::Author, names: &["AF", "BF"] },
    Rule { field: Field::ShortAuthor, names: &["AU", "BA"] },
    Rule { field: Field::Group, names: &["CA"] },
    Rule { field: Field::Editor, names: &["BE", "ED", "GP"] },
    Rule { field: Field::Date, names: &["PY", "EA", "EY"] },
    Rule { field: Field::MonthDay, names: &["PD"] },
    Rule { field: Field::Journal, names: &["SO", "JI", "J9"] },
    Rule { field: Field::Volume, names: &["VL"] },
    Rule { field: Field::Issue, names: &["IS"] },
    Rule { field: Field::Pages, names: &["PS"] },
    Rule { field: Field::FirstPage, names: &["BP", "AR"] },
    Rule { field: Field::LastPage, names: &["EP"] },
    Rule { field: Field::Doi, names: &["DI", "D2"] },
    Rule { field: Field::Pmid, names: &["PM"] },
    Rule { field: Field::Abstract, names: &["AB"] },
    Rule { field: Field::Keyword, names: &["DE", "ID", "BD", "TN", "ST", "MH", "MI"] },
    Rule { field: Field::Type, names: &["DT", "PT"] },
    Rule { field: Field::LeftOut, names: &["ER", "EF", "FN", "VR"] },
];

/// Tags without a field in which each line is a value.
const ONE_PER_LINE: [&str; 2] = ["C1", "CR"];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

/// Returns the field of a tag, which also is the name of a column in tab-delimited files.
pub(crate) fn field(tag: &str) -> Option<FieldName> {
    INDEX.find(tag)
}

/// Splits the headings of MEDLINE on Web of Science: `Animals. *Birds / physiology. Canada.`
pub(super) fn headings(text: &str) -> impl Iterator<Item = &str> {
    text.trim_end().trim_end_matches('.').split(". ")
}

/// Removes the quotation marks around lines, which a spreadsheet adds.
pub(super) fn unquoted(text: &str) -> Cow<'_, str> {
    labels::unquoted(text, |line| line.starts_with("   ") || tag(line.as_bytes()).is_some())
}

pub(super) fn read(text: &str) -> Draft<'_> {
    // A tag consists of two ASCII letters.
    let label = |line| tag(str::as_bytes(line)).map(|(_, value)| (&line[..2], value));
    let mut draft = Draft::default();
    // The range of the Zoological Record and others, for records without a first page.
    let (mut range, mut has_first) = (None, false);
    for (name, value) in labels::values(text, label) {
        has_first |= matches!(name, "BP" | "AR");
        if name == "PS" {
            range = range.or(Some(value));
        } else {
            add(&mut draft, name, value);
        }
    }
    match range {
        Some(range) if has_first => draft.extra.push("PS", range),
        Some(range) => add(&mut draft, "PS", range),
        None => {}
    }
    draft
}

fn add<'a>(draft: &mut Draft<'a>, name: &'a str, value: &'a str) {
    let lines = || lines::all(value);
    let Some(named) = INDEX.find(name) else {
        if ONE_PER_LINE.contains(&name) {
            return lines().for_each(|line| draft.extra.push(name, &entities::decode(line)));
        }
        return draft.extra.push(name, &entities::decode(value));
    };
    match named.field {
        Field::Author | Field::ShortAuthor | Field::Editor => {
            for line in lines() {
                draft.people_in(named.field, &entities::decode(line));
            }
        }
        Field::Group => {
            for name in lines().filter_map(|line| super::tidy::line(&entities::decode(line))) {
                draft.author(named.field, name);
            }
        }
        // MEDLINE on Web of Science separates its headings by full stops, and subheadings by semicolons.
        Field::Keyword if name == "MH" && value.contains('.') => {
            for keyword in headings(&tidy::on_one_line(value)) {
                draft.keyword(named.rank, keyword);
            }
        }
        Field::Keyword => {
            entities::decode(value).split(';').for_each(|keyword| draft.keyword(named.rank, keyword));
        }
        Field::Abstract => draft.add_decoded(named, tidy::on_one_line(value)),
        _ => draft.add(named, value),
    }
}
