//! Reads a PubMed nbib record.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    citation,
    draft::Draft,
    entities,
    field::{Field, FieldName, Index, Rule},
    identifiers, labels, names, tidy,
};
use crate::split::nbib::tag;

/// The tags and their fields.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["TI", "TT"] },
    Rule { field: Field::Book, names: &["BTI"] },
    Rule { field: Field::Author, names: &["FAU"] },
    Rule { field: Field::ShortAuthor, names: &["AU"] },
    Rule { field: Field::Group, names: &["CN"] },
    Rule { field: Field::Editor, names: &["FED"] },
    Rule { field: Field::Date, names: &["DP", "YR"] },
    Rule { field: Field::Journal, names: &["JT", "TA"] },
    Rule { field: Field::Volume, names: &["VI"] },
    Rule { field: Field::Issue, names: &["IP"] },
    Rule { field: Field::Pages, names: &["PG"] },
    Rule { field: Field::Doi, names: &["LID", "AID", "DO", "DI"] },
    Rule { field: Field::Pmid, names: &["PMID", "PM"] },
    Rule { field: Field::Citation, names: &["SO"] },
    Rule { field: Field::Accession, names: &["UI", "AN"] },
    Rule { field: Field::Database, names: &["DB"] },
    Rule { field: Field::Abstract, names: &["AB"] },
    Rule { field: Field::Keyword, names: &["OT", "MH", "KW", "DE"] },
    Rule { field: Field::Url, names: &["XL"] },
    Rule { field: Field::Type, names: &["PT", "DT"] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

/// Returns the field of a tag, which programs also use as the name of a column.
pub(crate) fn field(tag: &str) -> Option<FieldName> {
    INDEX.find(tag)
}

/// Removes the quotation marks around lines, which a spreadsheet adds.
pub(super) fn unquoted(text: &str) -> Cow<'_, str> {
    labels::unquoted(text, |line| line.starts_with("   ") || tag(line).is_some())
}

pub(super) fn read(text: &str) -> Draft<'_> {
    let mut draft = Draft::default();
    let (mut source, mut has_journal, mut is_ovid) = (None, false, false);
    for (name, value) in labels::values(without_next_number(text), tag) {
        has_journal |= matches!(name, "JT" | "TA");
        // PubMed has no tag for the program or the database.
        is_ovid |= matches!(name, "VN" | "DB");
        match name {
            "SO" if source.is_none() => source = Some(value),
            _ => add(&mut draft, name, value, is_ovid),
        }
    }
    // PubMed repeats the other tags there; Ovid writes nothing else about the journal.
    match source {
        Some(source) if has_journal => draft.extra.push("SO", &entities::decode(source)),
        Some(source) => citation::add_source(&mut draft, "SO", source),
        None => {}
    }
    draft
}

/// Removes the number of the next record, which programs write between blank lines: `2.`, `[2]`
fn without_next_number(text: &str) -> &str {
    let whole = text.trim_end();
    let Some((front, last)) = whole.rsplit_once(['\n', '\r']) else { return text };
    let bare = last.strip_prefix('[').and_then(|last| last.strip_suffix(']')).unwrap_or(last);
    let number = bare.trim_end_matches('.');
    let is_number = (1..=6).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let before = front.strip_suffix('\r').unwrap_or(front);
    if is_number && before.trim_end_matches([' ', '\t']).ends_with(['\n', '\r']) { before } else { text }
}

fn add<'a>(draft: &mut Draft<'a>, name: &'a str, value: &'a str, is_ovid: bool) {
    let Some(named) = INDEX.find(name) else { return draft.extra.push(name, &entities::decode(value)) };
    match named.field {
        Field::Author | Field::ShortAuthor | Field::Editor => {
            let name = entities::decode(value);
            // `Werner, S. M. [Author, Reprint Author; E-mail: name@test.org]` of BIOSIS on Ovid.
            let roles = [" [Author", " [Inventor", " [Reprint Author", " [Editor"];
            let name = roles.iter().find_map(|role| name.split_once(role)).map_or(&*name, |(name, _)| name);
            let name = if is_ovid { names::of_ovid(name) } else { name };
            if let Some(name) = names::one(name) {
                draft.author(named.field, names::with_suffix(name));
            }
        }
        Field::Group => {
            if let Some(name) = super::tidy::line(&entities::decode(value)) {
                draft.author(named.field, name);
            }
        }
        // Databases on Ovid list keywords under one tag.
        Field::Keyword if matches!(name, "KW" | "DE") => {
            let value = entities::decode(value);
            let separator = if value.contains(';') { ";" } else { " , " };
            value.split(separator).for_each(|keyword| draft.keyword(named.rank, keyword));
        }
        Field::Keyword => draft.keyword(named.rank, &entities::decode(value)),
        // Other identifiers of the publisher use the same tags.
        Field::Doi
            if !matches!(name, "DO" | "DI")
                && !value.ends_with("[doi]")
                && identifiers::doi_in_url(value).is_none() =>
        {
            match name {
                // ERIC links to the record.
                "LID" if value.starts_with("http") && !value.contains(' ') => {
                    draft.add(FieldName::new(Field::Url, "LID", 1), value);
                }
                _ => draft.extra.push(name, value),
            }
        }
        Field::Abstract => draft.add_decoded(named, tidy::on_one_line(value)),
        _ => draft.add(named, value),
    }
}
