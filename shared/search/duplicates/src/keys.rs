//! Keys by which the records that may be the same are found without comparing all with all.

use std::cmp::Reverse;

use crate::fields::{Fields, hash};
use crate::text::start;

/// A title of fewer words or letters says too little by itself.
pub(crate) const LONG_WORDS: usize = 4;
pub(crate) const LONG_LETTERS: usize = 20;

/// Most keys of a record: three by its DOI, two each by title, page and place, and one each by its PMID, first words and abstract.
const MOST: usize = 12;

impl Fields {
    /// The keys of a record, about eight: two records are compared when they share one. Sorted, each once.
    #[must_use]
    pub fn keys(&self) -> Vec<u64> {
        let mut keys = Vec::with_capacity(MOST);
        let mut key = |kind: &str, parts: &[&str]| keys.push(hash(kind, parts));
        let author = start(self.first_author(), 5);
        let year = self.year().map(|year| year.to_string()).unwrap_or_default();
        let (letters, words) = (self.letters(), self.title());
        let (doi, page, volume) = (self.doi(), self.page(), self.volume());
        let has = |value: &str| !value.is_empty();
        if has(doi) {
            if has(author) {
                key("doi author", &[doi, author]);
            }
            if has(page) {
                key("doi page", &[doi, page]);
            }
            if has(letters) {
                key("doi title", &[doi, start(letters, 12)]);
            }
            if !has(letters) || !has(author) {
                key("doi", &[doi]);
            }
        }
        if has(self.pmid()) {
            key("pmid", &[self.pmid()]);
        }
        if self.is_long() {
            // A subtitle that is left out or cut off is mostly beyond it.
            key("title", &[start(letters, 60)]);
            key("words", &[&longest(words).join(" "), author]);
        } else if has(letters) {
            key("short title", &[letters, author, &year]);
        }
        if has(page) && has(author) {
            key("page", &[page, volume, author]);
            if has(&year) && page.len() > 1 {
                key("page year", &[page, &year, author]);
            }
        }
        if has(page) && has(volume) {
            if let [first, second, ..] = words {
                key("page words", &[page, volume, first, second]);
            }
            let is_telling = page.len() >= 3 && page.bytes().all(|byte| byte.is_ascii_digit());
            if is_telling && has(&year) {
                key("place", &[page, volume, &year]);
            }
        }
        if let [first, second, third, ..] = words
            && has(author)
            && has(&year)
        {
            key("first words", &[author, &year, first, second, third]);
        }
        if let Some(summary) = self.summary() {
            key("abstract", &[&summary.to_string()]);
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Whether the title is long enough to say something by itself.
    pub(crate) fn is_long(&self) -> bool {
        self.title().len() >= LONG_WORDS && self.letters().chars().count() >= LONG_LETTERS
    }
}

/// The three longest words, in the order of the alphabet.
fn longest(words: &[String]) -> Vec<&str> {
    let mut by_length: Vec<_> =
        words.iter().map(|word| (Reverse(word.chars().count()), word.as_str())).collect();
    by_length.sort_unstable();
    by_length.dedup();
    let mut longest: Vec<_> = by_length.into_iter().take(3).map(|(_, word)| word).collect();
    longest.sort_unstable();
    longest
}
