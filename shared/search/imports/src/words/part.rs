//! Parts of an index: which records of a file contain each word.

use std::collections::HashMap;

use references::Reference;

use super::split::each_word;

/// The last record of the last part of a file.
pub const END: u64 = i64::MAX.cast_unsigned();

/// The maximum number of records of a part.
const MAX_RECORDS: usize = 10_000;
/// The approximate memory of a part at which it is complete, in bytes.
const MAX_BYTES: usize = 6 << 20;
/// The size of the studies' texts in bytes at which a part is complete: a few seconds of work for a small function.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// The approximate memory of a word in bytes, without its characters.
const WORD_BYTES: usize = 80;
/// The maximum number of words that one record adds to a part. A longer record is a candidate for every query.
const MAX_NEW_WORDS: usize = 20_000;

/// The bucket, and the word, of records that are candidates for every query.
pub(super) const EVERY: &str = "";

/// A part of the index of a file: the words of the records after `after`, up to and including `last`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordPart {
    /// The last record of the previous part; 0 for the first part.
    pub after: u64,
    /// The last record; [`END`] if no part follows.
    pub last: u64,
    /// The words of the part. A part that is read from a store has only the requested buckets.
    pub buckets: Vec<WordBucket>,
}

/// The words of a part with the same first two characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordBucket {
    /// The characters; one or none for shorter words.
    pub key: String,
    /// Each word and its records, encoded.
    pub words: Vec<u8>,
}

/// The stored words of a part cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a part of the index of words is damaged")]
pub struct DamagedPart;

pub(super) fn bucket_key(word: &str) -> &str {
    let end = word.char_indices().nth(2).map_or(word.len(), |(end, _)| end);
    &word[..end]
}

/// Returns the texts of a study that are searched.
pub(super) fn texts(reference: &Reference) -> impl Iterator<Item = &str> {
    let others = [&reference.r#abstract, &reference.journal, &reference.doi].into_iter().flatten();
    std::iter::once(&reference.title).chain(&reference.authors).chain(others).map(String::as_str)
}

/// The records of a word, each stored as the difference to the previous record. The first record is stored as the
/// difference to the end of the previous part.
struct Records {
    last: u64,
    bytes: Vec<u8>,
}

impl Records {
    /// Adds a record that is not before the last one. Returns the number of added bytes.
    fn add(&mut self, record: u64) -> usize {
        if self.last == record {
            return 0;
        }
        let before = self.bytes.len();
        write(record.saturating_sub(self.last), &mut self.bytes);
        self.last = record;
        self.bytes.len() - before
    }
}

/// Collects the words of consecutive records of a file, in bounded memory.
pub struct PartBuilder {
    after: u64,
    last: u64,
    count: usize,
    bytes: usize,
    text_bytes: usize,
    words: HashMap<Box<str>, Records>,
}

impl PartBuilder {
    /// Returns a builder of the part after a record.
    pub fn new(after: u64) -> Self {
        Self { after, last: after, count: 0, bytes: 0, text_bytes: 0, words: HashMap::new() }
    }

    /// Adds a study. The record of the study follows the records that were added earlier.
    pub fn add(&mut self, record: u64, reference: &Reference) {
        let (mut buffer, mut new) = (String::new(), 0);
        for text in texts(reference) {
            self.text_bytes += text.len();
            each_word(text, &mut buffer, |word| {
                if new < MAX_NEW_WORDS || self.words.contains_key(word) {
                    new += usize::from(self.insert(word, record));
                }
            });
        }
        if new == MAX_NEW_WORDS {
            self.insert(EVERY, record);
        }
        self.count(record);
    }

    /// Adds a study that cannot be read, as a candidate for every query.
    pub fn add_unreadable(&mut self, record: u64) {
        self.insert(EVERY, record);
        self.count(record);
    }

    fn count(&mut self, record: u64) {
        self.last = record;
        self.count += 1;
    }

    /// Adds a record to a word. Returns `true` if the part did not have the word.
    fn insert(&mut self, word: &str, record: u64) -> bool {
        if let Some(records) = self.words.get_mut(word) {
            self.bytes += records.add(record);
            return false;
        }
        let mut records = Records { last: self.after, bytes: Vec::new() };
        self.bytes += records.add(record) + word.len() + WORD_BYTES;
        self.words.insert(word.into(), records);
        true
    }

    /// Returns the last added record.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns `true` if the part has reached the maximum number of records, of bytes, or of bytes of text.
    pub fn is_full(&self) -> bool {
        self.count >= MAX_RECORDS || self.bytes >= MAX_BYTES || self.text_bytes >= MAX_TEXT_BYTES
    }

    /// Returns the part. `is_last` states that the file has no more records.
    pub fn finish(self, is_last: bool) -> WordPart {
        let mut words: Vec<_> = self.words.into_iter().collect();
        words.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        // Every part has this bucket, so a store has at least one row for it.
        let mut buckets = vec![WordBucket { key: EVERY.to_owned(), words: Vec::new() }];
        let mut previous: Box<str> = EVERY.into();
        for (word, Records { bytes, .. }) in words {
            let key = bucket_key(&word);
            if buckets.last().is_none_or(|bucket| bucket.key != key) {
                buckets.push(WordBucket { key: key.to_owned(), words: Vec::new() });
                previous = EVERY.into();
            }
            if let Some(bucket) = buckets.last_mut() {
                let shared = shared_bytes(&previous, &word);
                write(shared as u64, &mut bucket.words);
                write((word.len() - shared) as u64, &mut bucket.words);
                bucket.words.extend_from_slice(&word.as_bytes()[shared..]);
                write(bytes.len() as u64, &mut bucket.words);
                bucket.words.extend_from_slice(&bytes);
            }
            previous = word;
        }
        WordPart { after: self.after, last: if is_last { END } else { self.last }, buckets }
    }
}

impl WordPart {
    /// Adds to `found` the records of the words of a bucket that `wanted` accepts, not necessarily in order.
    pub(super) fn records(
        &self,
        bucket: &WordBucket,
        wanted: impl Fn(&[u8]) -> bool,
        found: &mut Vec<u64>,
    ) -> Result<(), DamagedPart> {
        let (mut rest, mut word) = (bucket.words.as_slice(), Vec::new());
        while !rest.is_empty() {
            let (shared, more) = (read(&mut rest)?, read(&mut rest)?);
            if shared > word.len() {
                return Err(DamagedPart);
            }
            word.truncate(shared);
            word.extend_from_slice(take(&mut rest, more)?);
            let length = read(&mut rest)?;
            let mut records = take(&mut rest, length)?;
            if wanted(&word) {
                let mut record = self.after;
                while !records.is_empty() {
                    record = record.saturating_add(read(&mut records)? as u64);
                    found.push(record);
                }
            }
        }
        Ok(())
    }
}

/// Returns the length of the common beginning of two words, in bytes.
fn shared_bytes(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
}

/// Writes a number in groups of seven bits, the lowest first. All groups but the last have the eighth bit set.
fn write(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    to.push((number & 0x7f) as u8);
}

fn read(from: &mut &[u8]) -> Result<usize, DamagedPart> {
    let mut number = 0_u64;
    for shift in (0..63).step_by(7) {
        let (first, rest) = from.split_first().ok_or(DamagedPart)?;
        *from = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return usize::try_from(number).map_err(|_| DamagedPart);
        }
    }
    Err(DamagedPart)
}

fn take<'a>(from: &mut &'a [u8], length: usize) -> Result<&'a [u8], DamagedPart> {
    let (taken, rest) = from.split_at_checked(length).ok_or(DamagedPart)?;
    *from = rest;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titled(title: &str) -> Reference {
        Reference { title: title.to_owned(), ..Reference::default() }
    }

    fn records(part: &WordPart, word: &str) -> Vec<u64> {
        let mut found = Vec::new();
        for bucket in part.buckets.iter().filter(|bucket| bucket.key == bucket_key(word)) {
            part.records(bucket, |known| known == word.as_bytes(), &mut found).unwrap();
        }
        found
    }

    #[test]
    fn part_has_the_records_of_each_word() {
        let mut builder = PartBuilder::new(40);
        for (record, title) in [(41, "Acute asthma, acute care"), (300, "Astigmatism"), (70_000, "asthma é")]
        {
            builder.add(record, &titled(title));
        }
        builder.add_unreadable(70_001);
        let part = builder.finish(false);
        assert_eq!((part.after, part.last), (40, 70_001));
        assert_eq!(records(&part, "asthma"), [41, 70_000]);
        assert_eq!(records(&part, "acute"), [41]);
        assert_eq!(records(&part, "e"), [70_000]);
        assert_eq!(records(&part, EVERY), [70_001]);
        assert!(records(&part, "ast").is_empty());
        assert!(part.buckets.is_sorted_by(|one, next| one.key < next.key), "{part:?}");
    }

    #[test]
    fn part_without_records_has_one_bucket() {
        let part = PartBuilder::new(7).finish(true);
        assert_eq!((part.after, part.last, part.buckets.len()), (7, END, 1));
    }

    /// Otherwise, indexing one part of such records would take minutes.
    #[test]
    fn long_records_of_few_words_fill_a_part() {
        let mut builder = PartBuilder::new(0);
        let long = titled(&"sleep ".repeat(200_000));
        let records = (1..).find(|record| {
            builder.add(*record, &long);
            builder.is_full()
        });
        assert_eq!(records, Some(14));
    }

    /// Such records are generated to exhaust the memory.
    #[test]
    fn wordy_record_is_candidate_for_every_query() {
        let mut builder = PartBuilder::new(0);
        builder.add(1, &titled("common"));
        let many = (0..2 * MAX_NEW_WORDS).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" ");
        builder.add(2, &titled(&format!("{many} common")));
        assert!(builder.words.len() <= MAX_NEW_WORDS + 2);
        let part = builder.finish(true);
        assert_eq!(records(&part, EVERY), [2]);
        assert_eq!(records(&part, "common"), [1, 2]);
    }

    #[test]
    fn damaged_bucket_is_detected() {
        let mut builder = PartBuilder::new(0);
        builder.add(1, &titled("asthma astigmatism"));
        let part = builder.finish(true);
        let bucket = part.buckets.iter().find(|bucket| bucket.key == "as").unwrap();
        let all = |words: &[u8]| {
            let cut = WordBucket { key: String::new(), words: words.to_vec() };
            part.records(&cut, |_| true, &mut Vec::new())
        };
        assert_eq!(all(&bucket.words), Ok(()));
        assert_eq!(all(&bucket.words[..bucket.words.len() - 1]), Err(DamagedPart));
        assert_eq!(all(&[9, 1, b'a', 0]), Err(DamagedPart), "more shared bytes than the previous word has");
        assert_eq!(all(&[0xff; 12]), Err(DamagedPart), "a number without end");
        assert_eq!(
            all(&[0, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            Err(DamagedPart),
            "a word longer than the bucket"
        );
    }
}
