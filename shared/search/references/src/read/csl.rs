//! Reads an item of CSL-JSON, the format of citation processors and reference managers.

use std::{borrow::Cow, sync::LazyLock};

use serde_json::{Map, Value};

use super::{
    draft::Draft,
    entities,
    field::{Field, FieldName, Index, Rule},
    names, tidy,
};
use crate::{table::header::column, work::spend};

/// The variables and their fields.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["title", "title-short", "shortTitle"] },
    Rule { field: Field::Author, names: &["author", "creators"] },
    Rule { field: Field::Editor, names: &["editor", "collection-editor", "translator"] },
    Rule {
        field: Field::Date,
        names: &[
            "issued",
            "published",
            "published-print",
            "published-online",
            "year",
            "publication_year",
            "pub_year",
            "date",
            "publication_date",
        ],
    },
    Rule {
        field: Field::Journal,
        names: &[
            "container-title",
            "container-title-short",
            "short-container-title",
            "journalAbbreviation",
            "journal",
            "venue",
        ],
    },
    Rule { field: Field::Series, names: &["collection-title", "event-title"] },
    Rule { field: Field::Volume, names: &["volume"] },
    Rule { field: Field::Issue, names: &["issue", "number"] },
    Rule { field: Field::Pages, names: &["page", "article-number", "pages"] },
    Rule { field: Field::Doi, names: &["DOI", "doi"] },
    Rule { field: Field::Pmid, names: &["PMID", "pmid"] },
    Rule { field: Field::Abstract, names: &["abstract"] },
    Rule { field: Field::Keyword, names: &["keyword", "subject", "keywords"] },
    Rule { field: Field::Url, names: &["URL", "url"] },
    Rule { field: Field::Type, names: &["type"] },
    Rule { field: Field::LeftOut, names: &["reference"] },
];

/// The names above that CSL-JSON lacks. They count only in objects with a title.
const OTHER_NAMES: [&str; 13] = [
    "creators",
    "year",
    "publication_year",
    "pub_year",
    "date",
    "publication_date",
    "journal",
    "venue",
    "pages",
    "doi",
    "pmid",
    "keywords",
    "url",
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

pub(super) fn read(text: &str) -> Result<Draft<'static>, String> {
    spend(text.len());
    let parsed = serde_json::from_str(text).or_else(|error| match without_constants(text) {
        Some(text) => serde_json::from_str(&text),
        None => Err(error),
    });
    let item: Map<String, Value> = parsed.map_err(|error| format!("its JSON is broken: {error}"))?;
    if has_columns(&item) {
        let reason =
            "it holds the columns of a table, not records; write a list with an object for each record";
        return Err(reason.to_owned());
    }
    if let Some(draft) = super::json::read(&item) {
        return Ok(draft);
    }
    if !item.contains_key("title") && item.keys().any(|name| is_title_of_table(name)) {
        return Ok(row_of_table(&item));
    }
    let mut draft = Draft::default();
    let subtitle = item.get("subtitle").map(first_text).unwrap_or_default();
    for (name, value) in &item {
        match INDEX.find(name) {
            // Crossref separates subtitles.
            Some(named) if name == "title" && !subtitle.is_empty() => {
                let title = first_text(value);
                let title = if title.contains(&subtitle) { title } else { format!("{title}: {subtitle}") };
                draft.add_decoded(named, Cow::Owned(entities::decode(&title).into_owned()));
            }
            // CSL-JSON writes the number of a report there, BibJSON the issue.
            Some(_)
                if (name == "number" && !item.contains_key("journal"))
                    || (OTHER_NAMES.contains(&name.as_str()) && !item.contains_key("title")) =>
            {
                each(value, |value| draft.extra.push(name, &shown(value)));
            }
            Some(_) if name == "creators" && item.contains_key("author") => {}
            Some(named) if named.field == Field::Journal && value.is_object() => {
                journal_in_parts(&mut draft, named, value);
            }
            Some(named) => add(&mut draft, named, value),
            None => each(value, |value| draft.extra.push(name, &shown(value))),
        }
    }
    super::json::numbers(&mut draft, &item);
    Ok(draft)
}

/// Returns `true` for a table that pandas wrote by its columns: `{"title": {"0": "Tests", "1": "More"}, …}`, also with lists.
fn has_columns(item: &Map<String, Value>) -> bool {
    let is_number = |name: &String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    match item.get("title").or_else(|| item.get("Title")) {
        Some(Value::Object(rows)) => !rows.is_empty() && rows.keys().all(is_number),
        Some(Value::Array(titles)) if titles.len() > 1 => {
            let is_column = |value: &Value| value.as_array().is_some_and(|rows| rows.len() == titles.len());
            ["year", "abstract", "doi"].iter().filter_map(|name| item.get(*name)).any(is_column)
        }
        _ => false,
    }
}

/// Returns `true` for a name of the title that tables have as the name of a column.
fn is_title_of_table(name: &str) -> bool {
    column(name, 1).named.is_some_and(|named| named.field == Field::Title)
}

/// Reads the row of a table that a program wrote as an object, with the names of the columns.
fn row_of_table(item: &Map<String, Value>) -> Draft<'static> {
    let mut draft = Draft::default();
    for (name, value) in item {
        let Some(named) = column(name, 1).named else {
            each(value, |value| draft.extra.push(name, &shown(value)));
            continue;
        };
        match (named.field, value) {
            (Field::Author | Field::Editor | Field::ShortAuthor, Value::String(cell)) => {
                draft.authors(named.field, names::split_cell(cell));
            }
            (Field::ShortAuthor, _) => add(&mut draft, FieldName { field: Field::Author, ..named }, value),
            (Field::Citation, _) => each(value, |value| draft.extra.push(name, &shown(value))),
            _ => add(&mut draft, named, value),
        }
    }
    draft
}

/// Adds the journal of BibJSON: `{"name": "J Tests", "volume": "5", "pages": "1-9"}`.
fn journal_in_parts(draft: &mut Draft<'_>, named: FieldName, journal: &Value) {
    const PARTS: [(&str, Field); 7] = [
        ("name", Field::Journal),
        ("title", Field::Journal),
        ("volume", Field::Volume),
        ("issue", Field::Issue),
        ("number", Field::Issue),
        ("pages", Field::Pages),
        ("year", Field::Date),
    ];
    for (name, field) in PARTS {
        if let Some(value) = journal.get(name).filter(|value| value.is_string() || value.is_number()) {
            add(draft, FieldName { field, ..named }, value);
        }
    }
}

/// The text with `null` in place of the constants that Python writes for numbers without a value. Returns `None` if it
/// has none.
fn without_constants(text: &str) -> Option<String> {
    const CONSTANTS: [&str; 3] = ["-Infinity", "Infinity", "NaN"];
    if !CONSTANTS.iter().any(|name| text.contains(name)) || !spend(2 * text.len()) {
        return None;
    }
    let (mut out, mut rest, mut is_quoted) = (String::with_capacity(text.len()), text, false);
    while let Some(at) = rest.find(|c: char| match c {
        '"' => true,
        '\\' => is_quoted,
        _ => !is_quoted && matches!(c, '-' | 'I' | 'N'),
    }) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(name) = CONSTANTS.iter().find(|name| !is_quoted && rest.starts_with(**name)) {
            out.push_str("null");
            rest = &rest[name.len()..];
            continue;
        }
        is_quoted ^= rest.starts_with('"');
        // An escaped character may be a quotation mark.
        let taken = if rest.starts_with('\\') { 2 } else { 1 };
        let taken = if rest.is_char_boundary(taken) { taken } else { 1 };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out.push_str(rest);
    Some(out)
}

/// The value, or the first one of a list, as text.
fn first_text(value: &Value) -> String {
    let value = value.get(0).unwrap_or(value);
    value.as_str().unwrap_or_default().trim().to_owned()
}

/// Calls a function with the value, or with each value of a list.
fn each(value: &Value, mut take: impl FnMut(&Value)) {
    match value {
        Value::Array(values) => values.iter().for_each(take),
        Value::Null => {}
        value => take(value),
    }
}

fn add(draft: &mut Draft<'_>, named: FieldName, value: &Value) {
    match (named.field, value) {
        // Other programs write all names as one text.
        (field @ (Field::Author | Field::Editor), Value::String(names)) => {
            draft.authors(field, names::split_cell(&entities::decode(names)));
        }
        (Field::Author | Field::Editor, _) => each(value, |value| {
            let is_author = value.get("creatorType").is_none_or(|role| role == "author");
            let field = if is_author { named.field } else { Field::Editor };
            if let Some(name) = person(value) {
                draft.author(field, name);
            }
        }),
        (Field::Keyword, _) => each(value, |value| {
            let keywords = decoded(value);
            let separator = if keywords.contains(';') { ';' } else { ',' };
            keywords.split(separator).for_each(|keyword| draft.keyword(named.rank, keyword));
        }),
        (Field::Date, _) => draft.add_decoded(named, Cow::Owned(date(value))),
        _ => each(value, |value| {
            draft.add_decoded(named, Cow::Owned(decoded(value)));
        }),
    }
}

/// The value as text.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string(),
    }
}

/// The value as text without character references.
fn decoded(value: &Value) -> String {
    entities::decode(&shown(value)).into_owned()
}

/// The date in `{"date-parts": [[2020, 3, 5]]}`, or a date in words.
fn date(value: &Value) -> String {
    let parts = value.get("date-parts").and_then(|parts| parts.get(0)).and_then(Value::as_array);
    if let Some(parts) = parts {
        return parts.iter().map(shown).collect::<Vec<_>>().join("-");
    }
    let words = ["raw", "literal"].iter().find_map(|name| value.get(*name));
    shown(words.unwrap_or(value))
}

/// The name of a person in parts, or of a group.
fn person(value: &Value) -> Option<String> {
    if let Value::String(name) = value {
        return names::one(&entities::decode(name));
    }
    let part = |name: &str| value.get(name).map(decoded).and_then(|part| tidy::line(&part));
    if let Some(whole) = part("literal").or_else(|| part("name")) {
        return Some(whole);
    }
    let beside = |first: Option<String>, second: Option<String>| match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first} {second}")),
        (first, second) => first.or(second),
    };
    let family = beside(part("non-dropping-particle"), part("family")).unwrap_or_default();
    let given = beside(part("given"), part("dropping-particle")).unwrap_or_default();
    let given = part("suffix").map_or(given.clone(), |suffix| format!("{given}, {suffix}"));
    names::joined(&family, &given).or_else(|| super::json::person(value))
}
