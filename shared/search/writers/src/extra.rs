//! Fields that many programs know, but that a study keeps among its extra tags.

use std::borrow::Cow;

use references::Reference;

use crate::clean::line;

/// The tags that hold the ISSN or ISBN in the input formats.
const ISSN: &[&str] = &["SN", "ISSN", "issn", "isbn", "ISBN", "ISSNLinking"];
const LANGUAGE: &[&str] = &["LA", "language", "Language", "langid", "Language of Original Document"];
const PUBLISHER: &[&str] = &["PB", "PU", "publisher", "Publisher", "%I"];

/// Returns the first value under one of these tags.
fn first<'a>(reference: &'a Reference, tags: &[&str]) -> Option<Cow<'a, str>> {
    let value = tags.iter().find_map(|tag| reference.extra.get(*tag)?.first())?;
    Some(line(value)).filter(|value| !value.is_empty())
}

/// The ISSN or ISBN, unchanged.
pub(crate) fn issn(reference: &Reference) -> Option<Cow<'_, str>> {
    first(reference, ISSN)
}

/// The language, unchanged.
pub(crate) fn language(reference: &Reference) -> Option<Cow<'_, str>> {
    first(reference, LANGUAGE)
}

pub(crate) fn publisher(reference: &Reference) -> Option<Cow<'_, str>> {
    first(reference, PUBLISHER)
}
