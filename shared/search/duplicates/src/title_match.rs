//! Compares the titles of two records.

use std::borrow::Cow;

use rapidfuzz::distance::indel;
use references::work::spend;

use crate::fields::Fields;
use crate::text::has_other_script;

/// The similarity of two titles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TitleMatch {
    Missing,
    Same,
    /// One title is the beginning of the other, which adds a subtitle.
    Begins,
    /// One title is the end of the other.
    Ends,
    /// The proportion of letters that the titles share, in order.
    Similar(f64),
}

impl TitleMatch {
    /// Returns the similarity from 0 to 1, or a negative number if a title is missing.
    pub(crate) fn similarity(self) -> f64 {
        match self {
            Self::Missing => -1.0,
            Self::Same => 1.0,
            Self::Begins => 0.97,
            Self::Ends => 0.95,
            Self::Similar(similarity) => similarity,
        }
    }
}

/// The proportion of letters that two texts share, in order: 1 for equal texts.
pub(crate) fn similarity(a: &str, b: &str) -> f64 {
    // Each letter of one text is compared with 64 letters of the other at a time.
    spend(a.len() * (1 + b.len() / 64));
    if a.is_ascii() && b.is_ascii() {
        indel::normalized_similarity(a.bytes(), b.bytes())
    } else {
        indel::normalized_similarity(a.chars(), b.chars())
    }
}

/// The letters of a title, with digits in place of number words if the other title differs.
fn letters<'a>(one: &'a Fields, other: &Fields) -> Cow<'a, str> {
    match one.title_in_digits().filter(|_| one.letters() != other.letters()) {
        Some(words) => Cow::Owned(words.concat()),
        None => Cow::Borrowed(one.letters()),
    }
}

/// Compares two titles.
pub(crate) fn titles(a: &Fields, b: &Fields) -> TitleMatch {
    let (one, other) = (letters(a, b), letters(b, a));
    let (one, other) = (&*one, &*other);
    if one.is_empty() || other.is_empty() {
        return TitleMatch::Missing;
    }
    if one == other {
        return TitleMatch::Same;
    }
    // A translation says as little as a missing title.
    if has_other_script(one, other) {
        return TitleMatch::Missing;
    }
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    // `XII` begins like `XI`. East Asian titles have no spaces before a subtitle.
    let has_more_words = a.title().len() != b.title().len() || !long.is_ascii();
    let have_length =
        |words, letters| has_more_words && a.has_length(words, letters) && b.has_length(words, letters);
    if long.starts_with(short) && have_length(4, 25) {
        return TitleMatch::Begins;
    }
    if long.ends_with(short) && have_length(5, 35) {
        return TitleMatch::Ends;
    }
    TitleMatch::Similar(similarity(one, other))
}
