//! Keys that find candidates for comparison without comparing all pairs.

use std::borrow::Cow;
use std::cmp::Reverse;

use crate::fields::{BETWEEN_WORDS, Fields, hash};
use crate::text::{east_asian_length, is_stop_word, start};

/// Titles with fewer words or letters are not significant on their own.
pub(crate) const LONG_WORDS: usize = 4;
pub(crate) const LONG_LETTERS: usize = 20;

/// The maximum number of keys of a record: four by its DOI, three by the numbers of databases, two each by
/// title, page and position in print, and one each by its PMID, first words and abstract. A title with number words has
/// three more. A record without any of these has a key of its content.
const MAX_KEYS: usize = 19;

impl Fields {
    /// Returns the keys of a record, about nine, sorted and without repetitions. Two records are compared if they
    /// share a key.
    #[must_use]
    pub fn keys(&self) -> Vec<u64> {
        let mut keys = Vec::with_capacity(MAX_KEYS);
        let mut key = |kind: &str, parts: &[&str]| keys.push(hash(kind, parts));
        let author = self.first_author().replace(BETWEEN_WORDS, "");
        let author = start(&author, 5);
        let year = self.year().map(|year| year.to_string()).unwrap_or_default();
        let year = &*year;
        let words = keyed(self.title());
        let has_unkeyed = words.len() < self.title().len();
        let letters = if has_unkeyed { Cow::from(words.concat()) } else { Cow::from(self.letters()) };
        let letters = &*letters;
        let words = &*words;
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
            key("doi", &[doi]);
        }
        if has(self.pmid()) {
            key("pmid", &[self.pmid()]);
        }
        for number in self.accessions() {
            key("number", &[number]);
        }
        title_keys(words, letters, author, year, &mut key);
        // Other databases write digits.
        if let Some(title) = self.title_in_digits() {
            let words = keyed(title);
            title_keys(&words, &words.concat(), author, year, &mut key);
        }
        if has(page) && has(author) {
            key("page", &[page, volume, author]);
            if has(year) && page.len() > 1 {
                key("page year", &[page, year, author]);
            }
        }
        if has(page) && has(volume) {
            if let [first, second, ..] = words {
                key("page words", &[page, volume, first, second]);
            }
            let is_telling = page.len() >= 3 && page.bytes().all(|byte| byte.is_ascii_digit());
            if is_telling && has(year) {
                key("place", &[page, volume, year]);
            }
        }
        if let Some(summary) = self.summary() {
            key("abstract", &[&summary.to_string()]);
        }
        // Other records are compared by their known values, and these only with their copies.
        if keys.is_empty() && self.known() >= 2 {
            keys.push(u64::from_be_bytes(self.content().as_bytes()[..8].try_into().unwrap_or_default()));
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// Returns `true` if the title is long enough to be significant on its own.
    pub(crate) fn is_long(&self) -> bool {
        self.has_length(LONG_WORDS, LONG_LETTERS)
    }

    /// Returns `true` if the title has at least this length. East Asian titles have no spaces between words, so only
    /// their letters are counted.
    pub(crate) fn has_length(&self, words: usize, letters: usize) -> bool {
        has_length(self.title().len(), self.letters(), words, letters)
    }
}

/// Creates the keys of a title.
fn title_keys(words: &[&str], letters: &str, author: &str, year: &str, key: &mut impl FnMut(&str, &[&str])) {
    if has_length(words.len(), letters, LONG_WORDS, LONG_LETTERS) {
        // An omitted or truncated subtitle is mostly beyond these letters.
        key("title", &[start(letters, 60)]);
        key("words", &[&longest(words).join(" "), author]);
    } else if !letters.is_empty() {
        key("short title", &[letters, author, year]);
    }
    if let [first, second, third, ..] = words
        && !author.is_empty()
        && !year.is_empty()
    {
        key("first words", &[author, year, first, second, third]);
    }
}

/// The words of a title that are part of its keys.
fn keyed(title: &[String]) -> Vec<&str> {
    let words = || title.iter().map(String::as_str).filter(|word| !is_unkeyed(word));
    // Stop words are labels, which another database may write in small letters, unless the title has no other words.
    let significant: Vec<&str> = words().filter(|word| !is_stop_word(word)).collect();
    if significant.is_empty() { words().collect() } else { significant }
}

fn has_length(words: usize, letters: &str, min_words: usize, min_letters: usize) -> bool {
    words >= min_words && letters.chars().count() >= min_letters || east_asian_length(letters) >= min_letters
}

/// Returns `true` for words that are compared, but omitted from keys: the keys of an earlier version are stored.
fn is_unkeyed(word: &str) -> bool {
    matches!(word, "before" | "after" | "during")
}

/// The three longest words, in alphabetical order.
fn longest<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut by_length: Vec<_> = words.iter().map(|word| (Reverse(word.chars().count()), *word)).collect();
    by_length.sort_unstable();
    by_length.dedup();
    let mut longest: Vec<_> = by_length.into_iter().take(3).map(|(_, word)| word).collect();
    longest.sort_unstable();
    longest
}
