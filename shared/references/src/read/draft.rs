//! A record's values on their way to a [`Reference`]: the rules that all formats share.
//!
//! - Of several tags for one field the preferred one wins, and of its repetitions the first.
//! - Repeated abstracts are paragraphs, repeated types are joined by `; `; authors and keywords are lists anyway.
//! - A value that did not win and says something else stays in `extra`.

use std::borrow::Cow;

use super::{
    dates::{self, Date},
    entities,
    extra::Extra,
    field::{FIELDS, Field, Named},
    identifiers, pages, tidy,
};
use crate::Reference;

#[derive(Debug)]
struct Value<'a> {
    field: Field,
    rank: u8,
    tag: Cow<'a, str>,
    text: Cow<'a, str>,
}

/// The values of one record in its order.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    values: Vec<Value<'a>>,
    authors: Vec<(Field, String)>,
    keywords: Vec<(u8, String)>,
    pub(super) extra: Extra,
    best: [Option<u8>; FIELDS],
}

impl<'a> Draft<'a> {
    /// Takes the value of a tag that a table names; references in it are decoded.
    pub(super) fn take(&mut self, named: Named, text: &'a str) {
        self.take_decoded(named, entities::decode(text));
    }

    /// Takes a value in which nothing is to be decoded any more.
    pub(super) fn take_decoded(&mut self, named: Named, text: Cow<'a, str>) {
        self.take_as(named, Cow::Borrowed(named.name), text);
    }

    /// Takes a value under the name that the file itself gives it.
    pub(super) fn take_as(&mut self, named: Named, tag: Cow<'a, str>, text: Cow<'a, str>) {
        let Named { field, rank, .. } = named;
        match field {
            Field::LeftOut => {}
            Field::Extra => self.extra.push(&tag, &text),
            _ if text.trim().is_empty() => {}
            _ => {
                let best = &mut self.best[field as usize];
                *best = Some(best.map_or(rank, |best| best.min(rank)));
                self.values.push(Value { field, rank, tag, text });
            }
        }
    }

    /// Takes an author, editor or group whose name is complete.
    pub(super) fn author(&mut self, field: Field, name: String) {
        self.authors.push((field, name));
    }

    /// Takes a keyword; those of a lower rank come first.
    pub(super) fn keyword(&mut self, rank: u8, keyword: &str) {
        self.keywords.extend(tidy::line(keyword).map(|keyword| (rank, keyword)));
    }

    /// The record as read.
    pub(super) fn finish(mut self) -> Reference {
        let mut found = Found::default();
        let mut left = Vec::new();
        for value in std::mem::take(&mut self.values) {
            let wins = self.best[value.field as usize] == Some(value.rank);
            left.extend(found.place(value, wins));
        }
        let mut reference = found.complete(&mut left);
        for value in left.iter().filter(|value| !repeats(&reference, value)) {
            self.extra.push(&value.tag, &value.text);
        }
        reference.authors = authors(self.authors);
        self.keywords.sort_by_key(|(rank, _)| *rank);
        reference.keywords = tidy::unique(self.keywords.into_iter().map(|(_, keyword)| keyword).collect());
        reference.extra = self.extra.into_values();
        reference
    }
}

/// Whether a value only says again what its field says.
fn repeats(reference: &Reference, value: &Value<'_>) -> bool {
    let known = match value.field {
        Field::Title | Field::Book => Some(&reference.title),
        Field::Journal => reference.journal.as_ref(),
        Field::Volume => reference.volume.as_ref(),
        Field::Issue => reference.issue.as_ref(),
        Field::Abstract => reference.r#abstract.as_ref(),
        Field::Url => reference.url.as_ref(),
        Field::Type => reference.r#type.as_ref(),
        _ => None,
    };
    known.is_some_and(|known| value.text.trim() == known)
}

/// Authors, in a shorter form where there is no other, or those who stand in for them.
fn authors(names: Vec<(Field, String)>) -> Vec<String> {
    let has = |wanted: Field| names.iter().any(|(field, _)| *field == wanted);
    let (full, any) = (has(Field::Author), has(Field::ShortAuthor) || has(Field::Group));
    let wanted = |field: &Field| match field {
        Field::Author => true,
        Field::Group => true,
        Field::ShortAuthor => !full,
        _ => !full && !any,
    };
    names.into_iter().filter(|(field, _)| wanted(field)).map(|(_, name)| name).collect()
}

/// Values that have found their place, and those that wait until the others have.
#[derive(Default)]
struct Found<'a> {
    reference: Reference,
    dates: Vec<Value<'a>>,
    month_day: Option<Date>,
    book: Option<Value<'a>>,
    first_page: Option<Value<'a>>,
    last_page: Option<Value<'a>>,
    accession: Option<Value<'a>>,
    pubmed: bool,
    types: Vec<String>,
    doi_in_link: Option<String>,
}

impl<'a> Found<'a> {
    /// Puts a value in its place; gives it back when it has none and says something of its own.
    fn place(&mut self, value: Value<'a>, wins: bool) -> Option<Value<'a>> {
        let reference = &mut self.reference;
        let slot = match value.field {
            Field::Title => {
                let title = wins.then(|| tidy::line(&value.text)).flatten();
                return match title {
                    Some(title) if reference.title.is_empty() => {
                        reference.title = title;
                        None
                    }
                    _ => Some(value),
                };
            }
            Field::Journal => &mut reference.journal,
            Field::Volume => &mut reference.volume,
            Field::Issue => &mut reference.issue,
            Field::Pages => &mut reference.pages,
            Field::Book => return put(&mut self.book, value, wins),
            Field::FirstPage => return put(&mut self.first_page, value, wins),
            Field::LastPage => return put(&mut self.last_page, value, wins),
            Field::Accession => return put(&mut self.accession, value, wins),
            Field::Doi => return identify(&mut reference.doi, identifiers::doi(&value.text), value),
            Field::Pmid => return identify(&mut reference.pmid, identifiers::pmid(&value.text), value),
            Field::Abstract => return self.paragraph(value, wins),
            Field::Date => {
                self.dates.push(value);
                return None;
            }
            Field::MonthDay => {
                let date = dates::date(&value.text);
                self.month_day = self.month_day.or(Some(date));
                return date.month.is_none().then_some(value);
            }
            Field::Url => return self.link(value, wins),
            Field::Type => {
                if wins {
                    self.types.extend(tidy::line(&value.text));
                    return None;
                }
                return Some(value);
            }
            Field::Database => {
                self.pubmed |= is_pubmed(&value.text);
                return Some(value);
            }
            _ => return Some(value),
        };
        if !wins || slot.is_some() {
            return Some(value);
        }
        *slot = tidy::line(&value.text);
        None
    }

    fn paragraph(&mut self, value: Value<'a>, wins: bool) -> Option<Value<'a>> {
        if !wins {
            return Some(value);
        }
        let text = tidy::text(&value.text)?;
        match &mut self.reference.r#abstract {
            Some(before) => {
                before.push('\n');
                before.push_str(&text);
            }
            None => self.reference.r#abstract = Some(text),
        }
        None
    }

    fn link(&mut self, value: Value<'a>, wins: bool) -> Option<Value<'a>> {
        self.doi_in_link = self.doi_in_link.take().or_else(|| identifiers::doi_in_url(&value.text));
        if !wins || self.reference.url.is_some() {
            return Some(value);
        }
        self.reference.url = tidy::line(&value.text);
        None
    }

    /// Settles what depends on several values; adds those that found no place to `left`.
    fn complete(mut self, left: &mut Vec<Value<'a>>) -> Reference {
        let mut reference = std::mem::take(&mut self.reference);
        if let Some(book) = self.book {
            if reference.title.is_empty() {
                reference.title = tidy::line(&book.text).unwrap_or_default();
            } else if reference.journal.is_none() {
                reference.journal = tidy::line(&book.text);
            } else {
                left.push(book);
            }
        }
        match self.accession {
            Some(accession) if self.pubmed && reference.pmid.is_none() => {
                reference.pmid = identifiers::pmid(&accession.text);
                left.extend(reference.pmid.is_none().then_some(accession));
            }
            accession => left.extend(accession),
        }
        let pages = self.first_page.into_iter().chain(self.last_page);
        match reference.pages.as_deref() {
            // Some databases give the range and its ends.
            Some(range) => left.extend(pages.filter(|page| !range.contains(page.text.trim()))),
            None => reference.pages = joined(pages),
        }
        reference.pages_normalized = reference.pages.as_deref().and_then(pages::normalized);
        reference.doi = reference.doi.or(self.doi_in_link);
        let mut date = settle(self.dates, left);
        if let (None, Some(Date { month, day, .. })) = (date.month, self.month_day) {
            (date.month, date.day) = (month, day);
        }
        (reference.year, reference.date) = (date.year, date.iso());
        reference.r#type = (!self.types.is_empty()).then(|| tidy::unique(self.types).join("; "));
        reference
    }
}

/// First and last page as a range.
fn joined<'a>(values: impl Iterator<Item = Value<'a>>) -> Option<String> {
    let (mut first, mut last) = (None, None);
    for value in values {
        let page = if value.field == Field::FirstPage { &mut first } else { &mut last };
        *page = Some(value.text);
    }
    pages::joined(first.as_deref(), last.as_deref())
}

/// The preferred value with a year says the year, and others that agree on it may say the day.
fn settle<'a>(mut values: Vec<Value<'a>>, left: &mut Vec<Value<'a>>) -> Date {
    values.sort_by_key(|value| value.rank);
    let mut settled = Date::default();
    for value in values {
        let date = dates::date(&value.text);
        let more = (settled.month, settled.day) < (date.month.or(settled.month), date.day.or(settled.day));
        match (settled.year, date.year) {
            (None, Some(_)) => settled = date,
            (Some(known), Some(year)) if known == year => {
                if settled.month.is_none() || (more && settled.month == date.month) {
                    settled = date;
                }
            }
            _ => left.push(value),
        }
    }
    settled
}

/// Keeps the first value of the preferred tag.
fn put<'a>(slot: &mut Option<Value<'a>>, value: Value<'a>, wins: bool) -> Option<Value<'a>> {
    if slot.is_some() || !wins {
        return Some(value);
    }
    *slot = Some(value);
    None
}

/// Keeps the first identifier; the same one again says nothing new.
fn identify<'a>(slot: &mut Option<String>, found: Option<String>, value: Value<'a>) -> Option<Value<'a>> {
    match (found, slot.as_deref()) {
        (Some(found), Some(known)) if found == known => None,
        (Some(found), None) => {
            *slot = Some(found);
            None
        }
        _ => Some(value),
    }
}

/// Whether the numbers of a database are PMIDs.
fn is_pubmed(database: &str) -> bool {
    let database = database.trim().to_ascii_lowercase();
    database == "nlm" || database.contains("pubmed") || database.contains("medline")
}
