//! What a record is compared by.

use std::collections::BTreeSet;

use references::Reference;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::place;
use crate::text::{fold, start, words};
use crate::title::{Title, numbers};

/// How fields are read. It grows when the same record gives others: what is stored of an earlier version is then made
/// anew.
pub const VERSION: u32 = 1;

/// Most authors that are compared: a large collaboration is recognised by the first of them.
const MOST_AUTHORS: usize = 100;
/// Most letters of a family name, or of a group's.
const MOST_LETTERS: usize = 80;
/// Most ISSNs: those of print and of the web, each perhaps twice.
const MOST_ISSNS: usize = 4;

/// What is left out of a family name: databases write it before, behind and not at all.
const PARTICLES: [&str; 21] = [
    "jr", "sr", "van", "von", "der", "den", "de", "la", "le", "di", "da", "del", "el", "al", "bin", "ten",
    "ter", "dos", "du", "dr", "ibn",
];
/// Names that are none.
const NOBODY: [&str; 4] = ["anonymous", "anon", "noauthor", "noauthors"];
/// Under which tags the formats give the ISSN of what the work appeared in.
const ISSN_TAGS: [&str; 7] = ["SN", "IS", "EI", "isbn", "issn", "ISSN", "electronic-issn"];

/// What a record is compared by: a few hundred bytes of it, folded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Fields {
    said: Stored,
    /// The words of the title, joined: what one database writes as two words, another one writes as one.
    letters: String,
    /// The numbers of the title, sorted.
    numbers: Vec<String>,
}

/// What is stored of them. What a record does not say takes no room.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Stored {
    #[serde(rename = "t", skip_serializing_if = "Vec::is_empty")]
    title: Vec<String>,
    #[serde(rename = "n", skip_serializing_if = "is_false")]
    is_notice: bool,
    #[serde(rename = "r", skip_serializing_if = "is_false")]
    is_reply: bool,
    /// The first author's, then the others in the order of the alphabet.
    #[serde(rename = "f", skip_serializing_if = "Vec::is_empty")]
    families: Vec<String>,
    #[serde(rename = "y", skip_serializing_if = "Option::is_none")]
    year: Option<i32>,
    #[serde(rename = "j", skip_serializing_if = "Vec::is_empty")]
    journal: Vec<String>,
    #[serde(rename = "s", skip_serializing_if = "Vec::is_empty")]
    issns: Vec<String>,
    #[serde(rename = "v", skip_serializing_if = "String::is_empty")]
    volume: String,
    #[serde(rename = "i", skip_serializing_if = "String::is_empty")]
    issue: String,
    #[serde(rename = "p", skip_serializing_if = "String::is_empty")]
    page: String,
    #[serde(rename = "e", skip_serializing_if = "String::is_empty")]
    last_page: String,
    #[serde(rename = "d", skip_serializing_if = "String::is_empty")]
    doi: String,
    #[serde(rename = "m", skip_serializing_if = "String::is_empty")]
    pmid: String,
    /// A hash of the abstract's beginning.
    #[serde(rename = "a", skip_serializing_if = "Option::is_none")]
    summary: Option<i64>,
}

// The shape that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !value
}

impl From<Stored> for Fields {
    fn from(said: Stored) -> Self {
        Self { letters: said.title.concat(), numbers: numbers(&said.title), said }
    }
}

impl From<Fields> for Stored {
    fn from(fields: Fields) -> Self {
        fields.said
    }
}

/// What a record says, as far as it is compared: records with the same content are copies of each other, wherever they came
/// from. It does not depend on when they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Content([u8; 16]);

impl Content {
    /// Its bytes, as they are stored and ordered.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Of bytes that [`Content::as_bytes`] has returned.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl Fields {
    /// Those of a record.
    #[must_use]
    pub fn of(reference: &Reference) -> Self {
        fn text(value: &Option<String>) -> &str {
            value.as_deref().unwrap_or_default()
        }
        let title = Title::read(&reference.title);
        let pages = text(&reference.pages);
        let tagged = reference.extra.iter().filter(|(tag, _)| ISSN_TAGS.contains(&tag.as_str()));
        let issns: BTreeSet<String> =
            tagged.flat_map(|(_, values)| values).flat_map(|value| place::issns(value)).collect();
        let summary = reference.r#abstract.as_deref().and_then(place::beginning);
        Self::from(Stored {
            title: title.words,
            is_notice: title.is_notice,
            is_reply: title.is_reply,
            families: families(&reference.authors),
            year: reference.year,
            journal: place::journal(text(&reference.journal)),
            issns: issns.into_iter().take(MOST_ISSNS).collect(),
            volume: place::number(text(&reference.volume)),
            issue: place::number(text(&reference.issue)),
            page: place::first_page(pages),
            last_page: place::last_page(pages),
            doi: place::doi(text(&reference.doi)),
            pmid: place::number(text(&reference.pmid)),
            // Databases keep signed numbers.
            summary: summary.map(|beginning| hash("abstract", &[&beginning]).cast_signed()),
        })
    }

    /// What of a record is compared, as one value.
    #[must_use]
    pub fn content(&self) -> Content {
        let said = &self.said;
        let number = |value: Option<String>| value.unwrap_or_default();
        let parts = [
            VERSION.to_string(),
            said.title.join(" "),
            format!("{} {}", said.is_notice, said.is_reply),
            said.families.join(" "),
            number(said.year.map(|year| year.to_string())),
            said.journal.join(" "),
            said.issns.join(" "),
            [&said.volume, &said.issue, &said.page, &said.last_page].map(String::as_str).join(" "),
            said.doi.clone(),
            said.pmid.clone(),
            number(said.summary.map(|summary| summary.to_string())),
        ];
        let digest = Sha256::digest(parts.join("\0"));
        let mut first = [0; 16];
        first.copy_from_slice(&digest[..16]);
        Content(first)
    }

    pub(crate) fn letters(&self) -> &str {
        &self.letters
    }

    pub(crate) fn numbers(&self) -> &[String] {
        &self.numbers
    }

    pub(crate) fn title(&self) -> &[String] {
        &self.said.title
    }

    pub(crate) fn is_notice(&self) -> bool {
        self.said.is_notice
    }

    pub(crate) fn is_reply(&self) -> bool {
        self.said.is_reply
    }

    /// The first author's family name; empty when nobody is named.
    pub(crate) fn first_author(&self) -> &str {
        self.said.families.first().map_or("", String::as_str)
    }

    pub(crate) fn families(&self) -> &[String] {
        &self.said.families
    }

    pub(crate) fn year(&self) -> Option<i32> {
        self.said.year
    }

    pub(crate) fn journal(&self) -> &[String] {
        &self.said.journal
    }

    pub(crate) fn issns(&self) -> &[String] {
        &self.said.issns
    }

    pub(crate) fn volume(&self) -> &str {
        &self.said.volume
    }

    pub(crate) fn issue(&self) -> &str {
        &self.said.issue
    }

    pub(crate) fn page(&self) -> &str {
        &self.said.page
    }

    pub(crate) fn last_page(&self) -> &str {
        &self.said.last_page
    }

    pub(crate) fn doi(&self) -> &str {
        &self.said.doi
    }

    pub(crate) fn pmid(&self) -> &str {
        &self.said.pmid
    }

    pub(crate) fn summary(&self) -> Option<i64> {
        self.said.summary
    }
}

/// A hash that is the same wherever and whenever it is made, since it is stored. None of the parts holds what is between
/// them.
pub(crate) fn hash(kind: &str, parts: &[&str]) -> u64 {
    let mut hasher = Sha256::new_with_prefix(kind);
    for part in parts {
        hasher.update([0]);
        hasher.update(part);
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize()[..8]);
    u64::from_be_bytes(first)
}

/// The family names, folded: the first author's, then the others, each once.
fn families(authors: &[String]) -> Vec<String> {
    let named = authors.iter().map(|author| family(author));
    let mut named =
        named.filter(|name| !name.is_empty() && !NOBODY.contains(&name.as_str())).take(MOST_AUTHORS);
    let Some(first) = named.next() else { return Vec::new() };
    let others: BTreeSet<String> = named.filter(|name| *name != first).collect();
    std::iter::once(first).chain(others).collect()
}

/// `Family, Given` or `Given Family` or `Family GM`: the words before the comma, or without initials at the end.
fn family(author: &str) -> String {
    let family = match author.split_once(',') {
        Some((family, _)) => family,
        None => without_initials(author),
    };
    let folded = fold(family);
    let mut joined: String = words(&folded).filter(|word| !PARTICLES.contains(word)).collect();
    if joined.is_empty() {
        joined = words(&folded).collect();
    }
    joined.truncate(start(&joined, MOST_LETTERS).len());
    joined
}

/// Without capitals at the end, as PubMed writes given names: `Smith JA`, `Smith J. A.`
fn without_initials(author: &str) -> &str {
    let mut name = author.trim_end();
    while let Some((before, last)) = name.rsplit_once(char::is_whitespace) {
        let letters = last.chars().filter(|c| !matches!(c, '.' | '-'));
        let are_initials = letters.clone().count() <= 3 && letters.clone().all(char::is_uppercase);
        let is_one = letters.count() <= 1;
        if !(are_initials || is_one) || before.trim().is_empty() {
            break;
        }
        name = before.trim_end();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_recognised_however_names_are_written() {
        for name in
            ["Müller, Jürgen", "MULLER J", "von Müller, J.", "Müller J. A.", "Muller JA", "Müller, jr"]
        {
            assert_eq!(family(name), "muller", "{name}");
        }
        assert_eq!(family("World Health Organization"), "worldhealthorganization");
        assert_eq!(family("Li J"), "li");
        assert_eq!(family("de la, A"), "dela");
        assert_eq!(
            families(&["Anonymous".into(), "B, X".into(), "C, Y".into(), "A, Z".into()]),
            ["b", "a", "c"]
        );
        assert_eq!(families(&["Anonymous".into()]), [""; 0]);
    }

    #[test]
    fn fields_come_back_as_they_were_stored() {
        let reference = Reference {
            title: "Erratum: zinc, part 2".into(),
            authors: vec!["A, B".into()],
            year: Some(2001),
            journal: Some("J Zinc".into()),
            volume: Some("1".into()),
            issue: Some("2".into()),
            pages: Some("3-4".into()),
            doi: Some("10.5555/a".into()),
            pmid: Some("7".into()),
            r#abstract: Some("zinc ".repeat(99)),
            extra: [("SN".to_owned(), vec!["1234-5678".to_owned()])].into(),
            ..Reference::default()
        };
        let fields = Fields::of(&reference);
        let stored = serde_json::to_string(&fields).unwrap();
        assert_eq!(serde_json::from_str::<Fields>(&stored).unwrap(), fields);
        assert_eq!(fields.said.issns, ["12345678"]);
        let nothing = Fields::of(&Reference::default());
        assert_eq!(serde_json::to_string(&nothing).unwrap(), "{}");
    }

    /// What is compared decides, and nothing else.
    #[test]
    fn the_content_is_what_is_compared() {
        let reference =
            Reference { title: "Zinc in adults".into(), year: Some(2001), ..Reference::default() };
        let content = |change: fn(&mut Reference)| {
            let mut changed = reference.clone();
            change(&mut changed);
            Fields::of(&changed).content()
        };
        let same = content(|_| {});
        assert_eq!(content(|reference| reference.title = "ZINC in the adults.".into()), same);
        assert_eq!(content(|reference| reference.keywords = vec!["K".into()]), same);
        for change in [
            (|reference| reference.title = "Zinc in men".into()) as fn(&mut Reference),
            |reference| reference.year = None,
            |reference| reference.volume = Some("1".into()),
            |reference| reference.issue = Some("1".into()),
            |reference| reference.pages = Some("1-2".into()),
            |reference| reference.doi = Some("10.5555/a".into()),
            |reference| reference.pmid = Some("1".into()),
            |reference| reference.authors = vec!["A".into()],
            |reference| reference.journal = Some("A B".into()),
            |reference| reference.r#abstract = Some("zinc ".repeat(99)),
        ] {
            assert_ne!(content(change), same);
        }
    }

    /// Stored values depend on it: another way of making hashes needs another [`VERSION`].
    #[test]
    fn hashes_are_the_same_wherever_they_are_made() {
        assert_eq!(hash("doi", &["10.1/a"]), 15_553_684_114_112_178_386);
    }
}
