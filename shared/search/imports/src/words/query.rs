//! Queries for words.

use references::Reference;

use super::part::{DamagedPart, EVERY, WordPart, bucket_key, texts};
use super::split::each_word;

/// A query for studies that contain words.
///
/// - A study matches if it contains all words of the text, in any order and in any of its title, authors, abstract,
///   journal and DOI.
/// - Words in quotation marks are a phrase: they have to be adjacent, in one of these fields. The parts of a word with
///   punctuation, such as `COVID-19` or a DOI, are treated in the same way.
/// - The last word also matches longer words that begin with it, unless a space or a quotation mark follows it.
/// - Case and diacritics are ignored. No other character has a meaning, so there is nothing to escape.
/// - A text without words matches no study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordQuery {
    text: String,
    phrases: Vec<Phrase>,
}

/// Adjacent words.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Phrase {
    words: Vec<String>,
    /// `true` if the last word may continue.
    is_open: bool,
}

/// A text is too long for a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("text has 1 to {} characters and up to {} words", WordQuery::MAX_CHARS, WordQuery::MAX_WORDS)]
pub struct TooManyWords;

/// Buckets of a part, to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketRange {
    /// The key of the bucket.
    pub key: String,
    /// `true` if all buckets are read whose key begins with `key`.
    pub is_open: bool,
}

impl WordQuery {
    /// The maximum length of a text, in characters.
    pub const MAX_CHARS: usize = 255;
    /// The maximum number of words of a text.
    pub const MAX_WORDS: usize = 32;

    /// Returns the query of a text.
    ///
    /// # Errors
    /// Returns an error if the text is empty, or has too many characters or words.
    pub fn new(text: &str) -> Result<Self, TooManyWords> {
        if !(1..=Self::MAX_CHARS).contains(&text.chars().count()) {
            return Err(TooManyWords);
        }
        let mut phrases = Vec::new();
        let mut begin = 0;
        let mut is_quoted = false;
        for (at, mark) in text.match_indices(is_quotation_mark) {
            phrases_of(&text[begin..at], is_quoted, &mut phrases);
            begin = at + mark.len();
            is_quoted = !is_quoted;
        }
        let rest = &text[begin..];
        let before = phrases.len();
        phrases_of(rest, is_quoted, &mut phrases);
        if phrases.len() > before
            && !rest.ends_with(char::is_whitespace)
            && let Some(last) = phrases.last_mut()
        {
            last.is_open = true;
        }
        if phrases.iter().map(|phrase| phrase.words.len()).sum::<usize>() > Self::MAX_WORDS {
            return Err(TooManyWords);
        }
        Ok(Self { text: text.to_owned(), phrases })
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns `true` if every candidate matches, since no words have to be adjacent.
    pub fn is_exact(&self) -> bool {
        self.phrases.iter().all(|phrase| phrase.words.len() == 1)
    }

    /// Returns `true` if a study matches.
    pub fn matches(&self, reference: &Reference) -> bool {
        let mut missing: Vec<&Phrase> = self.phrases.iter().collect();
        let mut buffer = String::new();
        for text in texts(reference) {
            if missing.is_empty() {
                break;
            }
            let mut progress = vec![0_u32; missing.len()];
            each_word(text, &mut buffer, |word| {
                for (phrase, progress) in missing.iter().zip(&mut progress) {
                    *progress = phrase.advance(*progress, word);
                }
            });
            let mut progress = progress.into_iter();
            missing.retain(|phrase| !progress.next().is_some_and(|progress| phrase.is_found(progress)));
        }
        missing.is_empty() && !self.phrases.is_empty()
    }

    /// Returns the buckets that [`WordQuery::candidates`] needs, each once.
    pub fn buckets(&self) -> Vec<BucketRange> {
        let mut buckets = vec![BucketRange { key: EVERY.to_owned(), is_open: false }];
        for (word, is_open) in self.words() {
            let key = bucket_key(word).to_owned();
            // The words that begin with a single character are in many buckets.
            let is_open = is_open && word.chars().nth(1).is_none();
            match buckets.iter_mut().find(|bucket| bucket.key == key) {
                Some(bucket) => bucket.is_open |= is_open,
                None => buckets.push(BucketRange { key, is_open }),
            }
        }
        buckets
    }

    /// Returns the records of a part that may match, in order. `part` may contain only the buckets that
    /// [`WordQuery::buckets`] returns.
    pub fn candidates(&self, part: &WordPart) -> Result<Vec<u64>, DamagedPart> {
        if self.phrases.is_empty() {
            return Ok(Vec::new());
        }
        let mut every = Vec::new();
        for bucket in part.buckets.iter().filter(|bucket| bucket.key == EVERY) {
            part.records(bucket, |_| true, &mut every)?;
        }
        let mut common: Option<Vec<u64>> = None;
        for (word, is_open) in self.words() {
            if common.as_ref().is_some_and(Vec::is_empty) {
                break;
            }
            let records = records(part, word, is_open)?;
            common = Some(match common {
                None => records,
                Some(mut common) => {
                    common.retain(|record| records.binary_search(record).is_ok());
                    common
                }
            });
        }
        let mut found = common.unwrap_or_default();
        found.extend(every);
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Returns each word, and whether it may continue.
    fn words(&self) -> impl Iterator<Item = (&str, bool)> {
        self.phrases.iter().flat_map(|phrase| {
            let last = phrase.words.len() - 1;
            phrase
                .words
                .iter()
                .enumerate()
                .map(move |(at, word)| (word.as_str(), phrase.is_open && at == last))
        })
    }
}

impl Phrase {
    /// Returns the progress in a text after its next word. The bit of a position is set if the words up to this
    /// position have just been read.
    fn advance(&self, progress: u32, word: &str) -> u32 {
        let last = self.words.len() - 1;
        let mut equal = 0;
        for (at, known) in self.words.iter().enumerate() {
            let is_equal = known == word || (self.is_open && at == last && word.starts_with(known.as_str()));
            equal |= u32::from(is_equal) << at;
        }
        let next = (progress << 1 | 1) & equal;
        // A phrase that was found once stays found.
        next | progress & 1 << last
    }

    fn is_found(&self, progress: u32) -> bool {
        progress >> (self.words.len() - 1) & 1 == 1
    }
}

/// Returns the records of a word in order, or of all words that begin with it.
fn records(part: &WordPart, word: &str, is_open: bool) -> Result<Vec<u64>, DamagedPart> {
    let key = bucket_key(word);
    let mut found = Vec::new();
    for bucket in &part.buckets {
        if bucket.key == key || (is_open && bucket.key.starts_with(word)) {
            let is_wanted =
                |known: &[u8]| known == word.as_bytes() || (is_open && known.starts_with(word.as_bytes()));
            part.records(bucket, is_wanted, &mut found)?;
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Adds the phrases of a text: one if it is quoted, else one for each word between spaces.
fn phrases_of(text: &str, is_quoted: bool, phrases: &mut Vec<Phrase>) {
    let mut add = |text: &str| {
        let mut words = Vec::new();
        each_word(text, &mut String::new(), |word| words.push(word.to_owned()));
        if !words.is_empty() {
            phrases.push(Phrase { words, is_open: false });
        }
    };
    if is_quoted {
        add(text);
    } else {
        text.split_whitespace().for_each(add);
    }
}

fn is_quotation_mark(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '«' | '»' | '＂')
}

#[cfg(test)]
mod tests {
    use super::super::part::PartBuilder;
    use super::*;

    fn study() -> Reference {
        Reference {
            title: "Wirksamkeit der Ernährungstherapie bei Zöliakie".to_owned(),
            authors: vec!["Müller, Ann".to_owned(), "World Health Organization".to_owned()],
            r#abstract: Some("Heart failure is common.\n\nWe studied COVID-19 in 12 hearts.".to_owned()),
            journal: Some("J Tests".to_owned()),
            doi: Some("10.5555/abc.12-3".to_owned()),
            ..Reference::default()
        }
    }

    fn matches(text: &str) -> bool {
        let query = WordQuery::new(text).unwrap();
        let found = query.matches(&study());
        // The index has the same result, except that it does not know which words are adjacent.
        let mut builder = PartBuilder::new(0);
        builder.add(5, &study());
        let mut part = builder.finish(true);
        let is_read = |key: &str| {
            query
                .buckets()
                .iter()
                .any(|range| range.key == key || (range.is_open && key.starts_with(&range.key)))
        };
        part.buckets.retain(|bucket| is_read(&bucket.key));
        let candidates = query.candidates(&part).unwrap();
        assert!(!found || candidates == [5], "{text}");
        assert!(found || candidates.is_empty() || !query.is_exact(), "{text}");
        found
    }

    #[test]
    fn all_words_match_in_any_order_and_field() {
        for text in
            ["zöliakie", "ZOLIAKIE muller", "common wirksamkeit", "covid-19", "10.5555/abc.12-3", "abc"]
        {
            assert!(matches(text), "{text}");
        }
        for text in ["asthma", "zöliakie asthma", "ähr", "10.5555/abc.12-4", "19-covid"] {
            assert!(!matches(text), "{text}");
        }
    }

    #[test]
    fn last_word_may_continue() {
        for text in ["ernähr", "w", "wirksamkeit e", "covid-1", "\"heart fail", "heart fail"] {
            assert!(matches(text), "{text}");
        }
        for text in ["ernähr ", "ernähr bei", "\"heart fail\"", "covi-19"] {
            assert!(!matches(text), "{text}");
        }
    }

    #[test]
    fn quoted_words_are_adjacent_in_one_field() {
        for text in
            ["\"heart failure\"", "“Health Organization”", "\"common we studied\"", "«world health» zöliakie"]
        {
            assert!(matches(text), "{text}");
        }
        for text in ["\"failure heart\"", "\"zöliakie müller\"", "\"heart common\"", "\"ann world\""] {
            assert!(!matches(text), "{text}");
        }
    }

    /// The syntax of other search engines has no meaning.
    #[test]
    fn operators_are_words_or_ignored() {
        for text in ["heart NEAR(failure)", "title:heart", "heart AND hearts", "heart NOT common"] {
            assert!(!matches(text), "{text}");
        }
        for text in ["heart*", "-heart", "(heart", "{heart} ^failure", "heart' ;--", "\"\"heart\"\" \""] {
            assert!(matches(text), "{text}");
        }
        for text in ["*", "\"", "\"\"", " ", "+-"] {
            assert!(!matches(text), "{text}");
        }
    }

    #[test]
    fn long_queries_are_refused() {
        assert_eq!(WordQuery::new(""), Err(TooManyWords));
        assert_eq!(WordQuery::new(&"a".repeat(256)), Err(TooManyWords));
        assert_eq!(WordQuery::new(&"a ".repeat(33)), Err(TooManyWords));
        assert_eq!(WordQuery::new(&"a-".repeat(33)), Err(TooManyWords));
        assert!(WordQuery::new(&"a ".repeat(32)).is_ok());
        assert!(
            WordQuery::new(&format!("\"{}\"", "a ".repeat(32))).is_ok_and(|query| !query.matches(&study()))
        );
    }

    #[test]
    fn repeated_beginnings_of_a_phrase_are_found() {
        let query = WordQuery::new("\"a a b\"").unwrap();
        for (title, is_match) in [("a a a b", true), ("a b a b", false), ("a a", false)] {
            let study = Reference { title: title.to_owned(), ..Reference::default() };
            assert_eq!(query.matches(&study), is_match, "{title}");
        }
    }
}
