//! The fields by which records are compared.

use std::collections::BTreeSet;

use references::Reference;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::kind::Kind;
use crate::place::{self, Months};
use crate::text::{fold, start, words};
use crate::title::{Title, in_digits, numbers};
use crate::trials::{is_register, is_registration, registration};

/// The version of the extracted fields. It increases when the same record yields different fields; stored fields of
/// earlier versions are then extracted again.
pub const VERSION: u32 = 9;

/// The maximum number of authors that are compared: a large collaboration is recognized by the first of them.
const MAX_AUTHORS: usize = 100;
/// The maximum number of letters of a family name or group name.
const MAX_LETTERS: usize = 80;
/// The maximum number of letters of the number of a record in a database.
const MAX_NUMBER: usize = 40;
/// The maximum number of ISSNs: print and online, each possibly twice.
const MAX_ISSNS: usize = 4;

/// Author names that mean an unknown author.
const UNKNOWN_AUTHORS: [&str; 4] = ["anonymous", "anon", "noauthor", "noauthors"];
/// The tags of the input formats that hold ISSNs.
const ISSN_TAGS: [&str; 7] = ["SN", "IS", "EI", "isbn", "issn", "ISSN", "electronic-issn"];

/// The fields by which a record is compared: a few hundred normalized bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredFields", into = "StoredFields")]
pub struct Fields {
    stored: StoredFields,
    /// The words of the title, joined: some databases write one word where others write two.
    letters: String,
    /// The numbers in the title, sorted.
    numbers: Vec<String>,
    /// The words of the title with digits in place of number words. The value is empty if it has none.
    in_digits: Vec<String>,
}

/// The stored form of [`Fields`]. Empty values are omitted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct StoredFields {
    #[serde(rename = "t", skip_serializing_if = "Vec::is_empty")]
    title: Vec<String>,
    #[serde(rename = "n", skip_serializing_if = "is_false")]
    is_notice: bool,
    #[serde(rename = "r", skip_serializing_if = "is_false")]
    is_reply: bool,
    #[serde(rename = "l", skip_serializing_if = "is_false")]
    is_foreign: bool,
    /// The first author first, then the others in alphabetical order. The words of a name whose family name may be the
    /// first or the last one are separated by [`BETWEEN_WORDS`].
    #[serde(rename = "f", skip_serializing_if = "Vec::is_empty")]
    families: Vec<String>,
    /// The complete given name of the first author, which some databases write as the family name.
    #[serde(rename = "g", skip_serializing_if = "String::is_empty")]
    given: String,
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
    /// The season, month, part, supplement or letter of the issue.
    #[serde(rename = "q", skip_serializing_if = "Vec::is_empty")]
    issue_parts: Vec<String>,
    #[serde(rename = "b", skip_serializing_if = "is_false")]
    is_meeting_abstract: bool,
    #[serde(rename = "p", skip_serializing_if = "String::is_empty")]
    page: String,
    #[serde(rename = "e", skip_serializing_if = "String::is_empty")]
    last_page: String,
    #[serde(rename = "d", skip_serializing_if = "String::is_empty")]
    doi: String,
    #[serde(rename = "m", skip_serializing_if = "String::is_empty")]
    pmid: String,
    /// The numbers in PubMed Central, Embase and Web of Science.
    #[serde(rename = "x", skip_serializing_if = "Vec::is_empty")]
    accessions: Vec<String>,
    #[serde(rename = "k", skip_serializing_if = "Kind::is_other")]
    kind: Kind,
    /// A hash of the abstract's beginning.
    #[serde(rename = "a", skip_serializing_if = "Option::is_none")]
    summary: Option<i64>,
}

// The signature that serde requires.
fn is_false(value: &bool) -> bool {
    !value
}

impl From<StoredFields> for Fields {
    fn from(stored: StoredFields) -> Self {
        Self {
            letters: stored.title.concat(),
            numbers: numbers(&stored.title),
            in_digits: in_digits(&stored.title),
            stored,
        }
    }
}

impl From<Fields> for StoredFields {
    fn from(fields: Fields) -> Self {
        fields.stored
    }
}

/// A fingerprint of the compared fields: records with equal content are copies of each other, regardless of their
/// source. It does not depend on the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Content([u8; 16]);

impl Content {
    /// The bytes, in their stored form and order.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// Restores a value from the bytes that [`Content::as_bytes`] returned.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl Fields {
    /// Extracts the fields of a record.
    #[must_use]
    pub fn new(reference: &Reference) -> Self {
        fn text(value: &Option<String>) -> &str {
            value.as_deref().unwrap_or_default()
        }
        let title = Title::read(&reference.title);
        let pages = text(&reference.pages);
        let page = place::first_page(pages);
        let tagged = reference.extra.iter().filter(|(tag, _)| ISSN_TAGS.contains(&tag.as_str()));
        let issns: BTreeSet<String> =
            tagged.flat_map(|(_, values)| values).flat_map(|value| place::issns(value)).collect();
        // Registrations of trials have no DOI, and their number identifies them in the same way.
        let (doi, kind) = match place::doi(text(&reference.doi)) {
            doi if doi.is_empty() => match registration(reference) {
                number if number.is_empty() => (number, Kind::of(reference, "")),
                number => (number, Kind::Registration),
            },
            doi if is_registration(&doi) => (doi, Kind::Registration),
            doi => (doi.clone(), Kind::of(reference, &doi)),
        };
        let mut families = families(&reference.authors);
        if kind == Kind::Registration {
            families.retain(|family| !is_register(family));
        }
        let summary = reference.r#abstract.as_deref().and_then(place::beginning);
        Self::from(StoredFields {
            title: title.words,
            is_notice: title.is_notice,
            is_reply: title.is_reply,
            is_foreign: title.is_foreign,
            given: if families.is_empty() { String::new() } else { given(&reference.authors) },
            families,
            year: reference.year,
            journal: place::journal(text(&reference.journal)),
            issns: issns.into_iter().take(MAX_ISSNS).collect(),
            volume: place::number(text(&reference.volume)),
            issue: place::issue(text(&reference.issue)),
            issue_parts: place::issue_parts(text(&reference.issue)),
            is_meeting_abstract: place::is_meeting_abstract(reference, &page),
            page,
            last_page: place::last_page(pages),
            doi,
            kind,
            pmid: place::number(text(&reference.pmid)),
            accessions: [&reference.pmcid, &reference.embase_id, &reference.wos_id]
                .into_iter()
                .flatten()
                .map(|number| start(&number.to_ascii_lowercase(), MAX_NUMBER).to_owned())
                .collect(),
            // Databases store signed integers.
            summary: summary.map(|beginning| hash("abstract", &[&beginning]).cast_signed()),
        })
    }

    /// The fingerprint of the compared fields.
    #[must_use]
    pub fn content(&self) -> Content {
        let stored = &self.stored;
        let number = |value: Option<String>| value.unwrap_or_default();
        let parts = [
            VERSION.to_string(),
            stored.title.join(" "),
            format!("{} {} {}", stored.is_notice, stored.is_reply, stored.is_foreign),
            format!("{} {}", stored.families.join(" "), stored.given),
            number(stored.year.map(|year| year.to_string())),
            stored.journal.join(" "),
            stored.issns.join(" "),
            [&stored.volume, &stored.issue, &stored.page, &stored.last_page].map(String::as_str).join(" "),
            format!("{} {:?} {}", stored.doi, stored.kind, stored.is_meeting_abstract),
            stored.issue_parts.join(","),
            stored.pmid.clone(),
            stored.accessions.join(" "),
            number(stored.summary.map(|summary| summary.to_string())),
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

    /// The words of the title with digits in place of number words, unless it has none.
    pub(crate) fn title_in_digits(&self) -> Option<&[String]> {
        Some(self.in_digits.as_slice()).filter(|words| !words.is_empty())
    }

    pub(crate) fn title(&self) -> &[String] {
        &self.stored.title
    }

    pub(crate) fn is_notice(&self) -> bool {
        self.stored.is_notice
    }

    pub(crate) fn is_reply(&self) -> bool {
        self.stored.is_reply
    }

    /// Returns `true` if the title is in another language than English, as far as its words show.
    pub(crate) fn is_foreign(&self) -> bool {
        self.stored.is_foreign
    }

    /// The family name of the first author, or an empty string if no author is known.
    pub(crate) fn first_author(&self) -> &str {
        self.stored.families.first().map_or("", String::as_str)
    }

    /// The given name of the first author, or an empty string for initials.
    pub(crate) fn given(&self) -> &str {
        &self.stored.given
    }

    /// Returns `true` if the first author is a group of people.
    pub(crate) fn is_by_group(&self) -> bool {
        const GROUPS: [&str; 12] = [
            "group",
            "collaboration",
            "collaborative",
            "collaborators",
            "committee",
            "consortium",
            "investigators",
            "network",
            "society",
            "association",
            "organization",
            "team",
        ];
        self.first_author().split(BETWEEN_WORDS).any(|word| GROUPS.contains(&word))
    }

    /// The number of known fields.
    pub(crate) fn known(&self) -> usize {
        let stored = &self.stored;
        let texts = [&stored.volume, &stored.issue, &stored.page, &stored.doi, &stored.pmid];
        let others = [
            !self.letters.is_empty(),
            !stored.families.is_empty(),
            stored.year.is_some(),
            !stored.journal.is_empty(),
            stored.summary.is_some(),
        ];
        let known = texts.into_iter().filter(|text| !text.is_empty()).count();
        known + others.into_iter().filter(|is_known| *is_known).count()
    }

    pub(crate) fn families(&self) -> &[String] {
        &self.stored.families
    }

    pub(crate) fn year(&self) -> Option<i32> {
        self.stored.year
    }

    pub(crate) fn journal(&self) -> &[String] {
        &self.stored.journal
    }

    pub(crate) fn issns(&self) -> &[String] {
        &self.stored.issns
    }

    pub(crate) fn volume(&self) -> &str {
        &self.stored.volume
    }

    pub(crate) fn issue(&self) -> &str {
        &self.stored.issue
    }

    pub(crate) fn issue_parts(&self) -> &[String] {
        &self.stored.issue_parts
    }

    /// The months of the issue.
    pub(crate) fn months(&self) -> Option<Months> {
        Months::among(self.issue_parts())
    }

    /// Returns `true` if both records are in the same issue, or lack one.
    pub(crate) fn has_issue_of(&self, other: &Self) -> bool {
        fn parts(record: &Fields) -> impl Iterator<Item = &String> {
            record.issue_parts().iter().filter(|part| !place::is_month(part))
        }
        let months = self.months().zip(other.months());
        let is_same_number = match (self.issue(), other.issue()) {
            ("", "") => self.months() == other.months(),
            ("", number) => self.months().is_some_and(|months| months.have_number(number)),
            (number, "") => other.months().is_some_and(|months| months.have_number(number)),
            (one, other) => one == other && months.is_none_or(|(one, other)| one.overlap(other)),
        };
        is_same_number && parts(self).eq(parts(other))
    }

    pub(crate) fn is_meeting_abstract(&self) -> bool {
        self.stored.is_meeting_abstract
    }

    /// Returns `true` if the work is known to extend over more than two pages.
    pub(crate) fn has_several_pages(&self) -> bool {
        let number =
            |page: &str| page.trim_start_matches(|c: char| c.is_ascii_lowercase()).parse::<u64>().ok();
        let range = number(self.page()).zip(number(self.last_page()));
        range.is_some_and(|(first, last)| last >= first.saturating_add(2))
    }

    pub(crate) fn page(&self) -> &str {
        &self.stored.page
    }

    pub(crate) fn last_page(&self) -> &str {
        &self.stored.last_page
    }

    pub(crate) fn doi(&self) -> &str {
        &self.stored.doi
    }

    pub(crate) fn kind(&self) -> Kind {
        self.stored.kind
    }

    /// The PubMed identifier, without the 0 that programs write for a missing one.
    pub(crate) fn pmid(&self) -> &str {
        if self.stored.pmid == "0" { "" } else { &self.stored.pmid }
    }

    /// Returns `true` if the journal or the DOI belongs to a server for preprints.
    pub(crate) fn is_preprint(&self) -> bool {
        place::is_preprint_server(self.journal()) || place::is_preprint_doi(self.doi())
    }

    /// Returns `true` if the position in print is known at least in part.
    pub(crate) fn has_place(&self) -> bool {
        [self.volume(), self.issue(), self.page()].iter().any(|value| !value.is_empty())
    }

    /// Returns `true` if the work is known to begin and end on different pages.
    pub(crate) fn has_page_range(&self) -> bool {
        !self.last_page().is_empty() && self.last_page() != self.page()
    }

    /// Returns `true` if both records have the same DOI.
    pub fn has_doi_of(&self, other: &Self) -> bool {
        !self.doi().is_empty() && self.doi() == other.doi()
    }

    /// Returns `true` if both records have the same PubMed identifier and the same letters in the title.
    pub fn has_pmid_and_title_of(&self, other: &Self) -> bool {
        let has_both = !self.pmid().is_empty() && !self.letters.is_empty();
        has_both && self.pmid() == other.pmid() && self.letters == other.letters
    }

    /// The numbers in PubMed Central, Embase and Web of Science, whose forms differ.
    pub(crate) fn accessions(&self) -> &[String] {
        &self.stored.accessions
    }

    pub(crate) fn summary(&self) -> Option<i64> {
        self.stored.summary
    }
}

/// A hash that is stable across machines and versions, because it is stored. No part may contain the separator between
/// parts.
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

/// The normalized family names: the first author's, then the others, without repetitions.
fn families(authors: &[String]) -> Vec<String> {
    let named = authors.iter().map(|author| family(author));
    let mut named =
        named.filter(|name| !name.is_empty() && !UNKNOWN_AUTHORS.contains(&name.as_str())).take(MAX_AUTHORS);
    let Some(first) = named.next() else { return Vec::new() };
    let others: BTreeSet<String> = named.filter(|name| *name != first).collect();
    std::iter::once(first).chain(others).collect()
}

/// The words of the first author's given name, joined. The value is empty for initials, or if its family name is
/// unknown.
fn given(authors: &[String]) -> String {
    let Some((_, given)) = authors.first().and_then(|author| author.split_once(',')) else {
        return String::new();
    };
    let mut parts = given.split(|c: char| !c.is_alphanumeric());
    if !given.contains(char::is_lowercase) || !parts.any(|part| part.chars().nth(1).is_some()) {
        return String::new();
    }
    words(&fold(start(given, MAX_LETTERS))).collect()
}

/// The separator in names such as `Wei Li`. Names do not contain it.
pub(crate) const BETWEEN_WORDS: &str = "-";

/// Extracts the family name from `Family, Given` or `Family GM`: the words before the comma or the initials, joined.
/// All words of `Given Family` are kept, separated by [`BETWEEN_WORDS`].
fn family(author: &str) -> String {
    let (family, separator) = match author.split_once(',') {
        Some((family, _)) => (family, ""),
        None => match without_initials(author) {
            family if family.len() < author.trim_end().len() => (family, ""),
            whole => (whole, BETWEEN_WORDS),
        },
    };
    let folded = fold(family);
    let mut named: Vec<&str> = words(&folded).filter(|word| !is_particle(word)).collect();
    if named.is_empty() {
        named = words(&folded).collect();
    }
    let mut joined = named.join(separator);
    joined.truncate(start(&joined, MAX_LETTERS).len());
    joined
}

/// Returns `true` for particles that are omitted from family names: databases write them before the name, after it, or not
/// at all.
#[rustfmt::skip]
fn is_particle(word: &str) -> bool {
    matches!(
        word,
        "jr" | "sr" | "van" | "von" | "der" | "den" | "de" | "la" | "le" | "di" | "da" | "del" | "el" | "al" | "bin"
            | "ten" | "ter" | "dos" | "du" | "dr" | "ibn"
    )
}

/// Removes trailing initials, as PubMed writes given names: `Smith JA`, `Smith J. A.`
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
    fn family_names_are_extracted_from_any_notation() {
        for name in
            ["Müller, Jürgen", "MULLER J", "von Müller, J.", "Müller J. A.", "Muller JA", "Müller, jr"]
        {
            assert_eq!(family(name), "muller", "{name}");
        }
        assert_eq!(family("World Health Organization"), "world-health-organization");
        assert_eq!([family("Li J"), family("Wei Li"), family("Li, Wei")], ["li", "wei-li", "li"]);
        assert_eq!(family("de la, A"), "dela");
        assert_eq!(
            families(&["Anonymous".into(), "B, X".into(), "C, Y".into(), "A, Z".into()]),
            ["b", "a", "c"]
        );
        assert_eq!(families(&["Anonymous".into()]), [""; 0]);
    }

    #[test]
    fn only_complete_given_names_are_kept() {
        for (author, expected) in
            [("Zhang, Wei", "wei"), ("Zhang, W", ""), ("Zhang, WJ", ""), ("Zhang W", ""), ("Wei Zhang", "")]
        {
            assert_eq!(given(&[author.to_owned()]), expected, "{author}");
        }
    }

    #[test]
    fn fields_survive_serialization() {
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
        let fields = Fields::new(&reference);
        let stored = serde_json::to_string(&fields).unwrap();
        assert_eq!(serde_json::from_str::<Fields>(&stored).unwrap(), fields);
        assert_eq!(fields.stored.issns, ["12345678"]);
        let nothing = Fields::new(&Reference::default());
        assert_eq!(serde_json::to_string(&nothing).unwrap(), "{}");
    }

    #[test]
    fn registrations_are_identified_by_their_number() {
        let tagged = |tag: &str, number: &str| Reference {
            title: "A trial".into(),
            extra: [(tag.to_owned(), vec![number.to_owned()])].into(),
            ..Reference::default()
        };
        let linked = |url: &str| Reference { url: Some(url.into()), ..Reference::default() };
        for (reference, number) in [
            (tagged("TrialID", "CTRI/2020/01/000001"), "ctri202001000001"),
            (tagged("NCT Number", "NCT00000001"), "nct00000001"),
            (tagged("AN", "NCT00000001"), "nct00000001"),
            (tagged("AN", "2007000001"), ""),
            (tagged("Trial ID", "Not reported"), ""),
            (tagged("Trial ID", "Trial 1"), ""),
            (tagged("Trial number", "NTR1234"), "ntr1234"),
            (tagged("TrialID", "RBR-6wzt9q"), "rbr6wzt9q"),
            (Reference { authors: vec!["Roe, A.".into()], ..tagged("NCT Number", "NCT00000001") }, ""),
            (tagged("TrialID", "EUCTR2004-001234-12-GB"), "euctr200400123412"),
            (tagged("EudraCT Number", "2004-001234-12"), "euctr200400123412"),
            (tagged("ctNumber", "2024-501234-12-00"), "euctr202450123412"),
            (tagged("ISRCTN", "ISRCTN10000001"), "isrctn10000001"),
            (
                Reference { doi: Some("10.1186/ISRCTN10000001".into()), ..Reference::default() },
                "isrctn10000001",
            ),
            (linked("https://clinicaltrials.gov/study/NCT00000001"), "nct00000001"),
            (linked("https://example.org/NCT00000001"), ""),
            (Reference { doi: Some("10.5555/a".into()), ..tagged("AN", "NCT00000001") }, "10.5555/a"),
        ] {
            assert_eq!(Fields::new(&reference).doi(), number);
        }
    }

    /// Only compared fields affect the content.
    #[test]
    fn content_depends_on_compared_fields_only() {
        let reference =
            Reference { title: "Zinc in adults".into(), year: Some(2001), ..Reference::default() };
        let content = |change: fn(&mut Reference)| {
            let mut changed = reference.clone();
            change(&mut changed);
            Fields::new(&changed).content()
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

    /// Stored values depend on the hash: a different hash function requires a new [`VERSION`].
    #[test]
    fn hashes_are_stable() {
        assert_eq!(hash("doi", &["10.1/a"]), 15_553_684_114_112_178_386);
    }
}
