//! A record's values on their way to a [`Reference`]: the rules that all formats share.
//!
//! - Of several tags for one field the preferred one wins, and of its repetitions the first.
//! - Repeated abstracts are paragraphs, repeated types are joined by `; `; authors and keywords are lists anyway.
//! - A value that was not chosen and differs from the chosen one stays in `extra`.

use std::borrow::Cow;

use super::{
    entities,
    extra::Extra,
    field::{FIELDS, Field, Named},
    found::Found,
    tidy,
};
use crate::Reference;

/// A value and the field it belongs to.
#[derive(Debug)]
pub(super) struct Value<'a> {
    pub(super) field: Field,
    pub(super) rank: u8,
    pub(super) tag: &'a str,
    pub(super) text: Cow<'a, str>,
}

/// How many values a record usually has; more make the list grow.
const USUAL_VALUES: usize = 20;

/// The values of one record in its order.
#[derive(Debug, Default)]
pub(super) struct Draft<'a> {
    values: Vec<Value<'a>>,
    authors: Vec<String>,
    /// What each of the authors is.
    roles: Vec<Field>,
    keywords: Vec<String>,
    /// The rank of each of the keywords.
    ranks: Vec<u8>,
    pub(super) extra: Extra,
    best: Best,
}

/// The rank of the preferred tag that was there, for each field.
#[derive(Debug)]
struct Best([u8; FIELDS]);

impl Default for Best {
    fn default() -> Self {
        Self([u8::MAX; FIELDS])
    }
}

impl<'a> Draft<'a> {
    /// Takes the value of a tag that is in a table; character references in it are decoded.
    pub(super) fn take(&mut self, named: Named, text: &'a str) {
        self.take_decoded(named, entities::decode(text));
    }

    /// Takes a value that is already decoded.
    pub(super) fn take_decoded(&mut self, named: Named, text: Cow<'a, str>) {
        // An element is known by its own name, whatever its parent had to be.
        self.take_as(named, named.tag, text);
    }

    /// Takes a value under the name that it has in the file.
    pub(super) fn take_as(&mut self, named: Named, tag: &'a str, text: Cow<'a, str>) {
        let Named { field, rank, .. } = named;
        match field {
            Field::LeftOut => {}
            Field::Extra => self.extra.push(tag, &text),
            _ if tidy::is_blank(&text) => {}
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

    /// Takes an author, editor or group whose name is complete.
    pub(super) fn author(&mut self, field: Field, name: String) {
        self.authors.push(name);
        self.roles.push(field);
    }

    /// Takes several of them.
    pub(super) fn authors(&mut self, field: Field, names: Vec<String>) {
        self.roles.resize(self.roles.len() + names.len(), field);
        if self.authors.is_empty() {
            self.authors = names;
        } else {
            self.authors.extend(names);
        }
    }

    /// Takes a keyword; those of a lower rank come first.
    pub(super) fn keyword(&mut self, rank: u8, keyword: &str) {
        if let Some(keyword) = tidy::line(keyword) {
            self.keywords.push(keyword);
            self.ranks.push(rank);
        }
    }

    /// The finished record.
    pub(super) fn finish(mut self) -> Reference {
        let mut found = Found::default();
        let best = self.best.0;
        let place = |value: Value<'a>| {
            let wins = best[value.field as usize] == value.rank;
            found.place(value, wins)
        };
        let mut left: Vec<Value<'a>> = self.values.into_iter().filter_map(place).collect();
        let mut reference = found.complete(&mut left);
        for value in left.iter().filter(|value| !repeats(&reference, value)) {
            self.extra.push(value.tag, &value.text);
        }
        reference.authors = authors(self.authors, &self.roles);
        reference.keywords = tidy::unique(by_rank(self.keywords, &self.ranks));
        reference.extra = self.extra.into_values();
        reference
    }
}

/// Whether a value only repeats what its field contains.
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

/// Authors, in a shorter form where there is no other, or those who stand in for them.
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

/// Those of a lower rank first.
fn by_rank(keywords: Vec<String>, ranks: &[u8]) -> Vec<String> {
    if ranks.is_sorted() {
        return keywords;
    }
    let mut ranked: Vec<_> = ranks.iter().zip(keywords).collect();
    ranked.sort_by_key(|(rank, _)| **rank);
    ranked.into_iter().map(|(_, keyword)| keyword).collect()
}
