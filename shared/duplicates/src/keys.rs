//! Keys by which the records that may be the same are found without comparing all with all.

use std::collections::BTreeSet;

use crate::fields::{Fields, hash};

/// A title of fewer words or letters says too little by itself.
pub(crate) const LONG_WORDS: usize = 4;
pub(crate) const LONG_LETTERS: usize = 20;

impl Fields {
    /// The keys of a record, about eight: two records are compared when they share one. Sorted, each once.
    #[must_use]
    pub fn keys(&self) -> Vec<u64> {
        let mut keys = BTreeSet::new();
        let mut key = |kind: &str, parts: &[&str]| {
            keys.insert(hash(kind, parts));
        };
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
            let mut longest: Vec<&str> = words.iter().map(String::as_str).collect();
            longest.sort_unstable_by_key(|word| (std::cmp::Reverse(word.chars().count()), *word));
            longest.dedup();
            longest.truncate(3);
            longest.sort_unstable();
            key("words", &[&longest.join(" "), author]);
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
        keys.into_iter().collect()
    }

    /// Whether the title is long enough to say something by itself.
    pub(crate) fn is_long(&self) -> bool {
        self.title().len() >= LONG_WORDS && self.letters().chars().count() >= LONG_LETTERS
    }
}

/// The first characters of a text.
fn start(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(at, _)| &text[..at])
}
