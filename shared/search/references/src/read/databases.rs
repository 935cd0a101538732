//! Reads the human-readable text exports of Ovid, Cochrane and ProQuest.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    citation,
    draft::Draft,
    entities,
    field::{Field, FieldName, Index, Rule},
    identifiers, labels, names,
};
use crate::split::{
    lines::{self, unmarked},
    record_number,
};

/// The name above the full names of authors.
const FULL_NAMES: &str = "Authors Full Name";

/// The names above Ovid's values, or the tags if the export uses those.
pub(super) const OVID: &[Rule] = &[
    Rule { field: Field::Title, names: &["Title", "Chapter Title", "TI"] },
    Rule { field: Field::Book, names: &["Book Title"] },
    Rule { field: Field::Author, names: &[FULL_NAMES] },
    Rule { field: Field::ShortAuthor, names: &["Authors", "Author", "AU"] },
    Rule { field: Field::Editor, names: &["Editors", "Editor", "Book Editors"] },
    Rule {
        field: Field::Date,
        names: &["Year of Publication", "Publication Year", "Date of Publication", "YR"],
    },
    Rule { field: Field::Citation, names: &["Source", "SO"] },
    Rule { field: Field::Journal, names: &["Journal Name", "Journal Title", "Full Source"] },
    Rule { field: Field::Volume, names: &["Volume", "VO"] },
    Rule { field: Field::Issue, names: &["Issue", "Issue/Part", "IP"] },
    Rule { field: Field::Pages, names: &["Page", "Pages", "PG"] },
    Rule { field: Field::Doi, names: &["Digital Object Identifier", "DOI", "DOI Number", "DO"] },
    Rule { field: Field::Accession, names: &["Unique Identifier", "Accession Number", "UI", "AN"] },
    Rule { field: Field::Pmid, names: &["PMID", "PubMed ID", "PM"] },
    Rule { field: Field::Database, names: &["Database", "DB"] },
    Rule { field: Field::Abstract, names: &["Abstract", "AB"] },
    Rule {
        field: Field::Keyword,
        names: &[
            "Keyword Heading",
            "MeSH Subject Headings",
            "Subject Headings",
            "Key Concepts",
            "Keywords",
            "Author Keywords",
            "MH",
            "KW",
        ],
    },
    Rule { field: Field::Url, names: &["Link to the Ovid Full Text or citation", "URL", "UR"] },
    Rule { field: Field::Type, names: &["Publication Type", "PT", "Document Type"] },
];

/// The tags before Cochrane's values.
pub(super) const COCHRANE: &[Rule] = &[
    Rule { field: Field::Title, names: &["TI"] },
    Rule { field: Field::Author, names: &["AU"] },
    Rule { field: Field::Date, names: &["YR"] },
    Rule { field: Field::Journal, names: &["SO"] },
    Rule { field: Field::Volume, names: &["VL"] },
    Rule { field: Field::Issue, names: &["NO"] },
    Rule { field: Field::Pages, names: &["PG"] },
    Rule { field: Field::Doi, names: &["DOI"] },
    Rule { field: Field::Pmid, names: &["PM"] },
    Rule { field: Field::Abstract, names: &["AB"] },
    Rule { field: Field::Keyword, names: &["KY", "KW"] },
    Rule { field: Field::Url, names: &["US"] },
    Rule { field: Field::Type, names: &["PT"] },
];

/// The names before ProQuest's values. The first paragraph is the title.
pub(super) const PROQUEST: &[Rule] = &[
    Rule { field: Field::Title, names: &["Title"] },
    Rule { field: Field::Author, names: &["Author", "Authors"] },
    Rule { field: Field::Editor, names: &["Editor"] },
    Rule { field: Field::Date, names: &["Publication year", "Publication date", "Degree date", "Year"] },
    Rule { field: Field::Citation, names: &["Publication info"] },
    Rule { field: Field::Journal, names: &["Publication title", "Source title"] },
    Rule { field: Field::Volume, names: &["Volume"] },
    Rule { field: Field::Issue, names: &["Issue"] },
    Rule { field: Field::Pages, names: &["Pages", "Pagination"] },
    Rule { field: Field::FirstPage, names: &["First page"] },
    Rule { field: Field::LastPage, names: &["Last page"] },
    Rule { field: Field::Doi, names: &["DOI", "Digital Object Identifier"] },
    Rule { field: Field::Pmid, names: &["PMID", "PubMed ID"] },
    Rule { field: Field::Abstract, names: &["Abstract", "Abstract (summary)"] },
    Rule {
        field: Field::Keyword,
        names: &["Identifier / keyword", "Subject", "MeSH subject", "Subject heading"],
    },
    Rule { field: Field::Url, names: &["Document URL", "URL", "Links"] },
    Rule { field: Field::Type, names: &["Document type", "Source type"] },
    Rule { field: Field::Accession, names: &["Accession number", "ProQuest document ID"] },
    Rule { field: Field::Database, names: &["Database"] },
    Rule {
        field: Field::Extra,
        names: &[
            "ISSN",
            "e-ISSN",
            "ISBN",
            "Publisher",
            "Place of publication",
            "Country of publication",
            "Language of publication",
            "Language",
            "Publication subject",
            "Copyright",
            "Last updated",
            "Location",
            "Company / organization",
            "Classification",
            "Number of pages",
            "Correspondence author",
            "Author affiliation",
            "Dissertation/thesis number",
            "Document feature",
            "Subfile",
            "Full text",
            "CODEN",
            "Alternate title",
            "Update",
            "Peer reviewed",
            "Number of references",
            "Author e-mail address",
            "Summary language",
            "Date created",
            "Date revised",
        ],
    },
];

static OVID_INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(OVID));
static COCHRANE_INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(COCHRANE));
static PROQUEST_INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(PROQUEST));

/// Returns `true` for the name of a field of Ovid.
pub(crate) fn is_ovid_name(name: &[u8]) -> bool {
    OVID_INDEX.find(name).is_some()
}

/// Removes the number of a record without angle brackets: `12.`, `12` or `12. Title`. Returns `None` if there is none.
pub(crate) fn after_bare_number(line: &[u8]) -> Option<&[u8]> {
    let rest = record_number::after_number(unmarked(line))?;
    let name = rest.strip_prefix(b".").unwrap_or(rest);
    // A blank separates the name from the number.
    let is_apart = name.is_empty() || name.starts_with(b" ");
    Some(name.trim_ascii()).filter(|name| is_apart && (name.is_empty() || is_ovid_name(name)))
}

/// Ovid's names are on separate lines, above indented values. The number of the record may precede its first name.
fn ovid_label(line: &str) -> Option<(&str, usize)> {
    if line.starts_with([' ', '\t']) {
        return None;
    }
    let name = line.trim_end();
    let number = after_bare_number(name.as_bytes()).map_or(0, |rest| name.len() - rest.len());
    Some((&name[number..], line.len()))
}

/// Cochrane's tags are capitals before a colon.
fn cochrane_label(line: &str) -> Option<(&str, usize)> {
    let (tag, _) = line.split_once(": ").or_else(|| line.trim_end().split_once(':'))?;
    let capitals = (2..=3).contains(&tag.len()) && tag.bytes().all(|byte| byte.is_ascii_uppercase());
    capitals.then_some((tag, tag.len() + 1))
}

/// ProQuest's names begin a paragraph and are followed by a colon. Only known names count.
fn proquest_label(line: &str) -> Option<(&str, usize)> {
    let (name, _) = line.split_once(':')?;
    PROQUEST_INDEX.find(name).map(|_| (name, name.len() + 1))
}

pub(super) fn ovid(text: &str) -> Draft<'_> {
    let mut draft = Draft::default();
    for (name, value) in labels::values(text, ovid_label) {
        match name {
            FULL_NAMES => labels::add(&mut draft, &OVID_INDEX, name, without_stop(value)),
            "Source" => citation::add_source(&mut draft, "Source", value),
            "SO" => citation::add_source(&mut draft, "SO", value),
            // The journals of Ovid write the date of a work without an issue only there.
            "Status" if value.starts_with("Publish Ahead of Print,") => {
                draft.extra.push(name, value);
                draft.add(FieldName::new(Field::Date, "Status", u8::MAX), value);
            }
            "Author" | "Authors" => {
                let value = entities::decode(value);
                for name in value.split([';', '\n', '\r']) {
                    draft.authors(Field::ShortAuthor, names::split_decoded(names::of_ovid(name)).collect());
                }
            }
            _ => labels::add(&mut draft, &OVID_INDEX, name, value),
        }
    }
    draft
}

/// Removes the full stop after a list of full names, but not after an initial.
fn without_stop(list: &str) -> &str {
    list.strip_suffix('.').filter(|list| list.ends_with(char::is_lowercase)).unwrap_or(list)
}

pub(super) fn cochrane(text: &str) -> Draft<'_> {
    labels::read(text, cochrane_label, &COCHRANE_INDEX)
}

/// Separates the addresses that follow the number behind the last name: `Roe, Ann1; Doe, Bob11 School of Tests, Town`.
fn split_addresses(names: &str) -> (&str, &str) {
    let mut start = 0;
    for name in names.split(';') {
        if let Some(end) = name.find(',').and_then(|given| number_behind_name(name.as_bytes(), given + 1)) {
            return names.split_at(start + end);
        }
        start += name.len() + 1;
    }
    (names, "")
}

/// Finds the number that directly follows a name from `given` on, if a word follows the number.
fn number_behind_name(text: &[u8], given: usize) -> Option<usize> {
    let is_name = |byte: u8| byte.is_ascii_alphabetic() || byte == b'.' || !byte.is_ascii();
    let is_before_word = |at: usize| {
        let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        digits > 0 && matches!(text[at + digits..], [b' ', b'A'..=b'Z' | b'"' | b'0'..=b'9', ..])
    };
    (given..text.len()).find(|at| is_name(text[at - 1]) && is_before_word(*at))
}

/// Removes the numbers of addresses behind names: `Roe, A1; Doe, Bob2`.
fn without_numbers(names: &str) -> String {
    let bare = |name: &'_ str| name.trim_end().trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    names.split(';').map(bare).collect::<Vec<_>>().join(";")
}

/// Adds subjects without the asterisk of the main ones: `*Welfare State; United Kingdom`.
fn add_subjects(draft: &mut Draft<'_>, name: &str, value: &str) {
    let Some(named) = PROQUEST_INDEX.find(name) else { return };
    for subject in entities::decode(value).split([';', '\n', '\r']) {
        draft.keyword(named.rank, subject.trim().trim_start_matches('*'));
    }
}

pub(super) fn proquest(text: &str) -> Draft<'_> {
    let text = text.trim_matches(|c: char| c == '_' || c.is_whitespace());
    let (first, rest) = text.split_once(['\n', '\r']).unwrap_or((text, ""));
    let body = if record_number::is_proquest(first.as_bytes()) { rest.trim_start() } else { text };
    let end =
        ["\n\n", "\r\n\r\n", "\r\r"].iter().filter_map(|gap| body.find(gap)).min().unwrap_or(body.len());
    // A title may begin like a field that is only copied: `Location: a study`.
    let is_untitled = proquest_label(body)
        .and_then(|(name, _)| PROQUEST_INDEX.find(name))
        .is_some_and(|named| named.field != Field::Extra);
    let (title, rest) = if is_untitled { ("", body) } else { body.split_at(end) };
    let mut draft = Draft::default();
    draft.add(FieldName::new(Field::Title, "Title", 0), title);
    let mut has_authors = false;
    for (name, value) in labels::values(rest, proquest_label) {
        match name {
            // The index of the record repeats its authors.
            "Author" | "Authors" if std::mem::replace(&mut has_authors, true) => {
                draft.extra.push(name, value);
            }
            "Author" | "Authors" => {
                let (names, addresses) = split_addresses(value);
                if addresses.is_empty() {
                    labels::add(&mut draft, &PROQUEST_INDEX, name, names);
                    continue;
                }
                draft.people_in(Field::Author, &without_numbers(&entities::decode(names)));
                // The link to the record follows in a paragraph of its own.
                draft.extra.push("Author affiliation", lines::all(addresses).next().unwrap_or_default());
            }
            "Subject" | "MeSH subject" | "Subject heading" => add_subjects(&mut draft, name, value),
            "Publication title" | "Source title" => {
                labels::add(&mut draft, &PROQUEST_INDEX, name, citation::without_city(value));
            }
            _ => labels::add(&mut draft, &PROQUEST_INDEX, name, value),
        }
        if name == "Publication info"
            && let Some(doi) = identifiers::labelled_doi(value)
        {
            draft.add_decoded(FieldName::new(Field::Doi, "DOI", u8::MAX), Cow::Owned(doi));
        }
    }
    draft
}
