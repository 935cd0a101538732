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
    pub(super) tag: Cow<'a, str>,
    pub(super) text: Cow<'a, str>,
}

/// How many values a record usually has; more make the list grow.
const USUAL_VALUES: usize = 20;

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
    /// Takes the value of a tag that is in a table; character references in it are decoded.
    pub(super) fn take(&mut self, named: Named, text: &'a str) {
        self.take_decoded(named, entities::decode(text));
    }

    /// Takes a value that is already decoded.
    pub(super) fn take_decoded(&mut self, named: Named, text: Cow<'a, str>) {
        // An element is known by its own name, whatever its parent had to be.
        let name = named.name.rsplit('/').next().unwrap_or(named.name);
        self.take_as(named, Cow::Borrowed(name), text);
    }

    /// Takes a value under the name that it has in the file.
    pub(super) fn take_as(&mut self, named: Named, tag: Cow<'a, str>, text: Cow<'a, str>) {
        let Named { field, rank, .. } = named;
        match field {
            Field::LeftOut => {}
            Field::Extra => self.extra.push(&tag, &text),
            _ if text.trim().is_empty() => {}
            _ => {
                let best = &mut self.best[field as usize];
                *best = Some(best.map_or(rank, |best| best.min(rank)));
                if self.values.capacity() == 0 {
                    self.values.reserve(USUAL_VALUES);
                }
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

    /// The finished record.
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
