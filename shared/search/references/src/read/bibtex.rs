//! One BibTeX entry.

mod abbreviations;
mod astronomy;
mod closed;
mod definitions;
mod entry;
mod parents;
mod people;

use std::{borrow::Cow, sync::LazyLock};

use abbreviations::Abbreviations;
pub(crate) use definitions::{Definitions, Extent};
pub(crate) use parents::Parents;

use super::{
    REPAIRED,
    draft::Draft,
    entities,
    field::{Field, FieldName, Index, Rule},
    identifiers, latex, tidy,
};
use crate::work::spend;

/// The fields of BibTeX and of references. The entry type is available under the name `@`.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["title", "chapter", "shorttitle"] },
    Rule { field: Field::Book, names: &["booktitle"] },
    Rule { field: Field::Author, names: &["author"] },
    Rule { field: Field::Editor, names: &["editor", "translator"] },
    Rule { field: Field::Date, names: &["date", "year", "early-access-date", "earlyaccessdate"] },
    Rule { field: Field::MonthDay, names: &["month", "day"] },
    Rule { field: Field::Journal, names: &["journal", "journaltitle", "shortjournal", "fjournal"] },
    Rule { field: Field::Series, names: &["series"] },
    Rule { field: Field::Volume, names: &["volume"] },
    Rule { field: Field::Issue, names: &["number", "issue"] },
    Rule { field: Field::Pages, names: &["pages", "eid", "article-number", "art_number", "articleno"] },
    Rule { field: Field::Doi, names: &["doi"] },
    Rule { field: Field::Pmid, names: &["pmid", "pubmed_id", "pubmed-id"] },
    Rule { field: Field::Abstract, names: &["abstract"] },
    Rule {
        field: Field::Keyword,
        names: &["keywords", "keyword", "author_keywords", "mesh_terms", "keywords-plus"],
    },
    Rule { field: Field::Url, names: &["url", "link"] },
    Rule { field: Field::Type, names: &["@", "type"] },
    Rule { field: Field::LeftOut, names: &["file"] },
];

const UNSIGNED: &str = "its @ is missing";

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

/// Fields that are appended to another field after a colon.
const SUBTITLES: [(&str, &str); 2] = [("subtitle", "title"), ("booksubtitle", "booktitle")];

pub(super) fn read<'a>(
    text: &'a str,
    abbreviations: Option<&Abbreviations>,
    parents: Parents<'_>,
) -> Result<Draft<'a>, String> {
    let is_field = |name: &str| find(name).is_some();
    let mut entry = entry::parse(text, abbreviations, is_field).ok_or("it has no opening brace")?;
    let mut draft = Draft::default();
    if let Some(named) = INDEX.find("@") {
        draft.add(named, entry.kind);
    }
    draft.extra.push("key", entry.key);
    let inherited = parents::inherited(&entry, parents, abbreviations);
    entry.fields.extend(inherited);
    join_subtitles(&mut entry.fields);
    let has_fields = !entry.fields.is_empty();
    if !text.trim_start().starts_with('@') {
        draft.extra.push(REPAIRED, UNSIGNED);
    }
    let mut noted_pmid = eprint_pmid(&entry.fields);
    for (name, value) in entry.fields {
        noted_pmid = add(&mut draft, &name, value).or(noted_pmid);
    }
    // After all other fields, because the first of several PMIDs counts.
    if let Some(pmid) = noted_pmid {
        draft.add_decoded(FieldName::new(Field::Pmid, "note", 1), Cow::Owned(pmid));
    }
    for rest in entry.rest {
        draft.extra.push("text", rest);
    }
    if let Some(fault) = entry.fault {
        if !has_fields {
            return Err(fault.to_owned());
        }
        draft.extra.push(REPAIRED, fault);
    }
    Ok(draft)
}

/// The PMID in `eprint` if `eprinttype` is PubMed.
fn eprint_pmid(fields: &[(Cow<'_, str>, Cow<'_, str>)]) -> Option<String> {
    let field = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim());
    let is_pubmed =
        |kind: &&str| ["pubmed", "pmid", "medline"].iter().any(|name| kind.eq_ignore_ascii_case(name));
    field("eprinttype").or_else(|| field("archiveprefix")).filter(is_pubmed)?;
    identifiers::pmid(field("eprint")?)
}

/// Joins titles and subtitles as `Title: Subtitle`, like library catalogs.
fn join_subtitles(fields: &mut Vec<(Cow<'_, str>, Cow<'_, str>)>) {
    for (subtitle, title) in SUBTITLES {
        let place = |wanted: &str| fields.iter().position(|(name, _)| name == wanted);
        let Some(at) = place(subtitle) else { continue };
        let Some(title) = place(title) else { continue };
        let (_, more) = fields[at].clone();
        let whole = fields[title].1.to_mut();
        if more.trim().is_empty() || whole.trim().is_empty() {
            continue;
        }
        let ended = whole.trim_end().ends_with([':', '?', '!', '.']);
        whole.truncate(whole.trim_end().len());
        whole.push_str(if ended { " " } else { ": " });
        whole.push_str(&more);
        fields.remove(at);
    }
}

/// Adds a field to the draft, and returns a PMID noted in it.
fn add<'a>(draft: &mut Draft<'a>, name: &str, text: Cow<'a, str>) -> Option<String> {
    let text = map_text(text, without_conditionals);
    let is_title = |named: &FieldName| named.name != "chapter" || is_title_of_chapter(&text);
    let Some(named) = find(name).filter(is_title) else {
        let text = plain(&text);
        draft.extra.push(name, &text);
        return if name == "note" { noted_pmid(&text) } else { None };
    };
    match named.field {
        Field::Author | Field::Editor => draft.authors(named.field, people::split_names(&text)),
        Field::Keyword => {
            let keywords = plain(&text);
            let separator =
                [';', '\n'].into_iter().find(|separator| keywords.contains(*separator)).unwrap_or(',');
            keywords.split(separator).for_each(|keyword| draft.keyword(named.rank, keyword));
        }
        Field::Journal if let Some(name) = astronomy::journal(&text) => {
            draft.add_decoded(named, Cow::Borrowed(name));
        }
        // Tildes and dashes in links are literal.
        Field::Url | Field::Doi => {
            draft.add_decoded(
                named,
                map_text(map_text(map_text(text, entities::decode), without_signs), latex::literal),
            );
        }
        Field::Abstract => {
            let text = map_text(text, plain);
            draft.add_decoded(named, Cow::Owned(tidy::line_of(text).unwrap_or_default()));
        }
        _ => draft.add_decoded(named, map_text(text, plain)),
    }
    None
}

/// Returns `true` for a chapter with words. Most entries have its number: `12`, `Chapter XII`.
fn is_title_of_chapter(text: &str) -> bool {
    let is_word = |word: &&str| word.contains(char::is_lowercase) && word.chars().count() > 1;
    let mut words = text.split(|c: char| !c.is_alphabetic()).filter(is_word);
    let (first, others) = (words.next().unwrap_or_default(), words.count());
    let is_label = ["chapter", "chap", "ch"].iter().any(|label| first.eq_ignore_ascii_case(label));
    others > usize::from(is_label)
}

/// Finds the rule of a field. Some programs write its name with a blank: `key words`.
fn find(name: &str) -> Option<FieldName> {
    let joined = || name.contains(' ').then(|| INDEX.find(name.replace(' ', ""))).flatten();
    INDEX.find(name).or_else(joined)
}

/// Keeps only the text outside of formulas of the conditionals that the American Physical Society writes:
/// `\ifmmode \acute{n}\else \'{n}\fi{}`.
fn without_conditionals(text: &str) -> Cow<'_, str> {
    const BEGIN: &str = "\\ifmmode";
    if !text.contains(BEGIN) || !spend(3 * text.len()) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, conditional)) = rest.split_once(BEGIN)
        && let Some((_, other)) = conditional.split_once("\\else")
        && let Some((other, after)) = other.split_once("\\fi")
    {
        out.push_str(before);
        out.push_str(other.trim_start());
        rest = after;
    }
    Cow::Owned(out + rest)
}

/// Replaces the signs of formulas in a link or DOI: `$<$`.
fn without_signs(text: &str) -> Cow<'_, str> {
    if !text.contains("$<$") && !text.contains("$>$") {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("$<$", "<").replace("$>$", ">"))
}

/// Finds a PMID in a note. Zotero has no field for it, and writes `PMID: 123` on a line of the note.
fn noted_pmid(note: &str) -> Option<String> {
    note.lines().filter(|line| line.trim_start().starts_with("PMID")).find_map(identifiers::pmid)
}

fn plain(text: &str) -> Cow<'_, str> {
    map_text(entities::decode(text), latex::decode)
}

/// Applies a conversion without copying unchanged text.
fn map_text<'a>(text: Cow<'a, str>, make: fn(&str) -> Cow<'_, str>) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => make(text),
        Cow::Owned(text) => match make(&text) {
            Cow::Borrowed(same) if same.len() == text.len() => Cow::Owned(text),
            made => Cow::Owned(made.into_owned()),
        },
    }
}
