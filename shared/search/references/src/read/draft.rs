//! Collects a record's values for a [`Reference`], by rules that all formats share.
//!
//! - If several tags hold the same field, the preferred tag counts, and its first value.
//! - Repeated abstracts become paragraphs, and repeated types are joined by `; `. Authors and keywords are lists.
//! - A value that was not chosen stays in `extra` if it differs from the chosen one.

use std::borrow::Cow;

use super::{
    accession::{self, Accessions},
    entities,
    extra::Extra,
    field::{FIELDS, Field, FieldName, Value},
    identifiers, names, notation,
    placeholders::is_placeholder,
    resolve::FieldResolver,
    tidy,
};
use crate::{Reference, work::spend};

/// The usual number of values in a record; the list grows if there are more.
const USUAL_VALUES: usize = 20;

/// The values of one record, in order.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    values: Vec<Value<'a>>,
    authors: Vec<String>,
    /// The field of each author.
    roles: Vec<Field>,
    keywords: Vec<String>,
    /// Names without a comma that may have a family name in capitals.
    capitals: Vec<String>,
    /// The rank of each keyword.
    ranks: Vec<u8>,
    pub(super) extra: Extra,
    best: BestRanks,
}

/// The rank of the most preferred tag that occurred, for each field.
#[derive(Debug)]
struct BestRanks([u8; FIELDS]);

impl Default for BestRanks {
    fn default() -> Self {
        Self([u8::MAX; FIELDS])
    }
}

impl<'a> Draft<'a> {
    /// Adds the value of a known tag, and decodes character references in it.
    pub(super) fn add(&mut self, named: FieldName, text: &'a str) {
        self.add_decoded(named, entities::decode(text));
    }

    /// Adds a decoded value.
    pub(super) fn add_decoded(&mut self, named: FieldName, text: Cow<'a, str>) {
        // An element is named after its own tag, without the required parent.
        self.add_as(named, named.tag, text);
    }

    /// Adds a value under the name that the file uses.
    pub(super) fn add_as(&mut self, named: FieldName, tag: &'a str, text: Cow<'a, str>) {
        let FieldName { field, rank, .. } = named;
        let text = match field {
            Field::Abstract => tidy::without_elements(text),
            // Engineering Village marks the language of a title.
            Field::Title if text.starts_with("<div") => tidy::without_page_elements(text),
            _ => text,
        };
        match field {
            Field::LeftOut => {}
            Field::Extra => self.extra.push(tag, &text),
            _ if tidy::is_blank(&text) || is_placeholder(field, &text) => {}
            _ => {
                let best = &mut self.best.0[field as usize];
                *best = rank.min(*best);
                if self.values.capacity() == 0 {
                    self.values.reserve(USUAL_VALUES);
                }
                self.values.push(Value { field, rank, tag, text });
            }
        }
    }

    /// Adds an author, editor or group with a complete name.
    pub(super) fn author(&mut self, field: Field, name: String) {
        // CENTRAL names a trial in place of its authors.
        if let Some(name) = names::without_address(name).filter(|name| !accession::is_registration(name)) {
            self.authors.push(name);
            self.roles.push(field);
        }
    }

    /// Adds a person with a single character, which may be a part of a name.
    pub(super) fn letter(&mut self, field: Field, letter: &str) {
        self.authors.push(letter.to_owned());
        self.roles.push(field);
    }

    /// Adds a blank between such characters.
    pub(super) fn blank(&mut self, field: Field) {
        if self.authors.last().is_some_and(|name| is_character(name)) {
            self.authors.push(BLANK.to_owned());
            self.roles.push(field);
        }
    }

    /// The number of people so far.
    pub(super) fn people(&self) -> usize {
        self.authors.len()
    }

    /// Adds the people in a value of a tag that occurs once for each person.
    pub(super) fn people_in(&mut self, field: Field, value: &str) {
        let before = self.people();
        for name in names::split_decoded(value) {
            self.author(field, name);
        }
        if self.people() == before + 1 && names::may_have_capitals(value) {
            self.capitals.push(value.trim().to_owned());
        }
    }

    /// Rereads the people if the family names of all are in capitals: two letters alone may be initials.
    fn settle_capitals(&mut self) {
        if self.capitals.len() < 2 || self.capitals.len() != self.people() {
            return;
        }
        let names: Vec<&str> = self.capitals.iter().map(String::as_str).collect();
        if let Some(names) = names::in_capitals(&names).filter(|names| names.len() == self.people()) {
            self.authors = names;
        }
    }

    /// Adds several names.
    pub(super) fn authors(&mut self, field: Field, names: Vec<String>) {
        for name in names {
            self.author(field, name);
        }
    }

    /// Adds a keyword; keywords of a lower rank come first.
    pub(super) fn keyword(&mut self, rank: u8, keyword: &str) {
        if let Some(keyword) = tidy::line(keyword).filter(|keyword| !is_placeholder(Field::Keyword, keyword))
        {
            self.extra.inspect_keyword(&keyword);
            self.keywords.push(keyword);
            self.ranks.push(rank);
        }
    }

    /// Builds the reference.
    pub(super) fn finish(mut self) -> Reference {
        self.settle_capitals();
        let mut found = FieldResolver::default();
        let best = self.best.0;
        let place = |value: Value<'a>| {
            let wins = best[value.field as usize] == value.rank;
            found.assign(value, wins)
        };
        let mut left: Vec<Value<'a>> = self.values.into_iter().filter_map(place).collect();
        let mut reference = found.complete(&mut left);
        for value in left.iter().filter(|value| !repeats(&reference, value)) {
            self.extra.push(value.tag, &value.text);
        }
        let spelled = take_letters(&mut self.authors, &mut self.roles);
        spelled.iter().for_each(|name| self.extra.push("authors", name));
        reference.authors = authors(self.authors, &self.roles);
        reference.keywords = tidy::unique(by_rank(self.keywords, &self.ranks));
        let (extra, found) = self.extra.into_parts();
        reference.extra = extra;
        complete_identifiers(&mut reference, found);
        reference
    }
}

/// The tags under which programs write notes, with identifiers after labels.
const NOTES: [&str; 16] = [
    "N1",
    "M1",
    "note",
    "Note",
    "notes",
    "Notes",
    "research-notes",
    "extra",
    "Extra",
    "annote",
    "annotation",
    "comment",
    "NO",
    "%Z",
    "OP",
    "Custom Metadata",
];

/// Completes the identifiers with identifiers from links and notes. Registers of trials take the place of a journal in
/// CENTRAL.
fn complete_identifiers(reference: &mut Reference, mut found: Accessions) {
    for link in reference.url.iter().chain(&reference.journal) {
        found.link(link);
    }
    if let Some(text) = &reference.r#abstract {
        found.abstract_text(text);
    }
    // Most records have no notes.
    if reference.extra.keys().any(|tag| NOTES.contains(&tag.as_str())) {
        complete_from_notes(reference, &mut found);
    }
    found.complete(reference);
}

/// Reads identifiers in notes, such as `PMID: 42` if the record has none.
fn complete_from_notes(reference: &mut Reference, found: &mut Accessions) {
    let extra = &reference.extra;
    let notes = || NOTES.iter().filter_map(|tag| extra.get(*tag)).filter(|notes| !are_cited(notes)).flatten();
    if reference.pmid.is_none() || reference.doi.is_none() {
        let pmid = notes().find_map(|note| identifiers::labelled_pmid(note));
        let doi = notes().find_map(|note| identifiers::labelled_doi(note));
        reference.pmid = reference.pmid.take().or(pmid);
        reference.doi = reference.doi.take().or(doi);
    }
    notes().for_each(|note| found.note(note));
}

/// Returns `true` for the works that a work cites: several notes with a year in brackets.
fn are_cited(notes: &[String]) -> bool {
    /// The number of bytes within which the authors of a cited work end.
    const MAX_AUTHORS: usize = 512;
    let is_year = |inner: &str| {
        let year = inner.split(')').next().unwrap_or_default();
        year.len() == 4 && year.starts_with(['1', '2']) && year.bytes().all(|byte| byte.is_ascii_digit())
    };
    let has_year =
        |note: &&String| note[..note.floor_char_boundary(MAX_AUTHORS)].split('(').skip(1).any(is_year);
    notes.len() > 1 && spend(MAX_AUTHORS * notes.len()) && notes.iter().filter(has_year).count() > 1
}

/// Returns `true` if a value repeats the content of its field.
fn repeats(reference: &Reference, value: &Value<'_>) -> bool {
    let known = match value.field {
        Field::Title | Field::Book => Some(&reference.title),
        Field::Journal | Field::Series => reference.journal.as_ref(),
        Field::Volume => reference.volume.as_ref(),
        Field::Issue => reference.issue.as_ref(),
        Field::Abstract => reference.r#abstract.as_ref(),
        Field::Url => reference.url.as_ref(),
        Field::Type => reference.r#type.as_ref(),
        _ => None,
    };
    known.is_some_and(|known| tidy::trim(&value.text) == known)
}

/// A blank between the letters of names.
const BLANK: &str = " ";

/// Removes the letters of names that a program wrote as a person each, and returns those names, unless they are a list in
/// the notation of Python or R. Single letters are people if there are at most two next to each other, in capitals.
/// Punctuation is none.
fn take_letters(names: &mut Vec<String>, roles: &mut Vec<Field>) -> Vec<String> {
    /// The number of people in capitals that nearly all names have as letters.
    const MIN_LETTERS: usize = 3;
    // Most records have no such names.
    if !names.iter().any(|name| is_character(name)) {
        return Vec::new();
    }
    let (mut spelled, mut kept) = (Vec::new(), Vec::with_capacity(names.len()));
    let people: Vec<_> = std::mem::take(names).into_iter().zip(std::mem::take(roles)).collect();
    for group in people.chunk_by(|(one, _), (other, _)| is_character(one) && is_character(other)) {
        let letters = || group.iter().flat_map(|(name, _)| name.chars()).filter(|c| c.is_alphabetic());
        let length = group.iter().filter(|(name, _)| name != BLANK).count();
        let is_spelled = group.iter().all(|(name, _)| is_character(name))
            && (letters().count() >= MIN_LETTERS || length > 1 && letters().any(char::is_lowercase));
        if !is_spelled {
            kept.extend(group.iter().filter(|(name, _)| name.contains(char::is_alphanumeric)).cloned());
            continue;
        }
        let text: String = group.iter().map(|(name, _)| name.as_str()).collect();
        match (people_in_list(text.trim()), group) {
            (Some(names), [(_, role), ..]) => kept.extend(names.into_iter().map(|name| (name, *role))),
            _ => spelled.push(text.replace(BLANK, "")),
        }
    }
    (*names, *roles) = kept.into_iter().unzip();
    spelled
}

/// The people in a list such as `['Roe, Ann', 'Doe, Bob']`, also without its brackets.
fn people_in_list(text: &str) -> Option<Vec<String>> {
    let list =
        if text.starts_with(['\'', '"']) { Cow::Owned(format!("[{text}]")) } else { Cow::Borrowed(text) };
    let is_list = notation::list(&list).is_some_and(|items| !items.is_empty());
    let names = is_list.then(|| names::split_cell(&list))?;
    Some(names.into_iter().filter_map(names::without_address).collect())
}

/// Returns `true` for a single character, unless it may be a whole name.
fn is_character(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|c| !names::is_ideographic(c)) && characters.next().is_none()
}

/// Selects the authors: short forms only if full names are missing, and editors only if authors are missing.
fn authors(mut names: Vec<String>, roles: &[Field]) -> Vec<String> {
    let (full, any) = (
        roles.contains(&Field::Author),
        roles.contains(&Field::ShortAuthor) || roles.contains(&Field::Group),
    );
    let wanted = |field: &Field| match field {
        Field::Author | Field::Group => true,
        Field::ShortAuthor => !full,
        _ => !full && !any,
    };
    let mut roles = roles.iter();
    names.retain(|_| roles.next().is_some_and(wanted));
    names
}

/// Sorts keywords by rank.
fn by_rank(keywords: Vec<String>, ranks: &[u8]) -> Vec<String> {
    if ranks.is_sorted() {
        return keywords;
    }
    let mut ranked: Vec<_> = ranks.iter().zip(keywords).collect();
    ranked.sort_by_key(|(rank, _)| **rank);
    ranked.into_iter().map(|(_, keyword)| keyword).collect()
}
