//! Finds the entries of a BibTeX file that others refer to with `crossref` or `xdata`.
//!
//! A file is read from beginning to end, so there are two places for a parent. [`EarlierEntries`] keeps the entries
//! before the one that refers to them, up to a fixed size. The entries after it are in the buffer. Both are found by an
//! [`KeyIndex`] of keys, so that no text is searched for a key.

use std::{
    collections::{HashMap, VecDeque},
    sync::LazyLock,
};

use memchr::{memchr, memmem::Finder};

use crate::work::spend;

/// The maximum size of the kept entries in bytes. Proceedings have about 300 bytes each.
const MAX_KEPT: usize = 64 * 1024;
/// The maximum length of an entry from which fields are inherited.
pub(super) const MAX_ENTRY: usize = 16 * 1024;
/// The maximum length of a key that is looked up, including white space.
const MAX_KEY: usize = 256;
/// The maximum length of a list of alternative keys of an entry.
const MAX_ALIASES: usize = 1024;
/// Entry types that are never parents. Databases write hardly anything else.
const PARTS: [&[u8]; 9] = [
    b"article",
    b"inproceedings",
    b"conference",
    b"incollection",
    b"phdthesis",
    b"mastersthesis",
    b"thesis",
    b"techreport",
    b"unpublished",
];

/// The numbers of entries by their keys, in the order of the file. Keys are case-insensitive.
#[derive(Debug, Default)]
pub(super) struct KeyIndex {
    keys: HashMap<Vec<u8>, VecDeque<u64>>,
    aliases: HashMap<Vec<u8>, VecDeque<u64>>,
}

/// The keys of an entry that are searched: its own key, or the keys in its field `ids`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyType {
    Key,
    Alias,
}

impl KeyIndex {
    /// Adds an entry, whose number must exceed those of earlier entries.
    pub(super) fn add(&mut self, number: u64, entry: &[u8]) {
        if let Some(key) = key(entry) {
            self.keys.entry(key.to_ascii_lowercase()).or_default().push_back(number);
        }
        each_alias(entry, |alias| {
            let numbers = self.aliases.entry(alias.to_ascii_lowercase()).or_default();
            if numbers.back() != Some(&number) {
                numbers.push_back(number);
            }
        });
    }

    /// Removes the entry with the smallest number.
    pub(super) fn remove_first(&mut self, number: u64, entry: &[u8]) {
        if let Some(key) = key(entry) {
            remove(&mut self.keys, key, number);
        }
        each_alias(entry, |alias| remove(&mut self.aliases, alias, number));
    }

    /// The numbers of the entries with a key.
    pub(super) fn find(&self, by: KeyType, key: &[u8]) -> impl DoubleEndedIterator<Item = u64> {
        let keys = if by == KeyType::Key { &self.keys } else { &self.aliases };
        keys.get(&key.to_ascii_lowercase()).into_iter().flatten().copied()
    }
}

fn remove(keys: &mut HashMap<Vec<u8>, VecDeque<u64>>, key: &[u8], number: u64) {
    let key = key.to_ascii_lowercase();
    let Some(numbers) = keys.get_mut(&key) else { return };
    numbers.pop_front_if(|first| *first == number);
    if numbers.is_empty() {
        keys.remove(&key);
    }
}

/// The most recent entries that may be parents. The selection depends on the entries alone, not on chunks or
/// checkpoints.
#[derive(Debug, Default)]
pub(super) struct EarlierEntries {
    entries: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The number of the oldest entry.
    first: u64,
    /// The number of the first entry that is not in the index yet. Most files contain no references, so they need no
    /// index.
    indexed: u64,
    index: KeyIndex,
}

impl EarlierEntries {
    /// Keeps an entry if it may be a parent.
    pub(super) fn keep(&mut self, entry: &[u8]) {
        let kind = kind(entry);
        if entry.len() > MAX_ENTRY || PARTS.iter().any(|part| part.eq_ignore_ascii_case(kind)) {
            return;
        }
        self.bytes += entry.len();
        self.entries.push_back(entry.to_vec());
        while self.bytes > MAX_KEPT {
            let Some(oldest) = self.entries.pop_front() else { break };
            self.bytes -= oldest.len();
            if self.first < self.indexed {
                self.index.remove_first(self.first, &oldest);
            }
            self.first += 1;
        }
        self.indexed = self.indexed.max(self.first);
    }

    /// Finds the most recent entry with a key.
    pub(super) fn find(&mut self, by: KeyType, key: &[u8]) -> Option<&[u8]> {
        let added = usize::try_from(self.indexed - self.first).unwrap_or(usize::MAX);
        for entry in self.entries.iter().skip(added) {
            self.index.add(self.indexed, entry);
            self.indexed += 1;
        }
        let number = self.index.find(by, key).next_back()?;
        self.entries.get(usize::try_from(number - self.first).ok()?).map(Vec::as_slice)
    }

    /// All entries, for a checkpoint.
    pub(super) fn all(&self) -> impl Iterator<Item = Vec<u8>> {
        self.entries.iter().cloned()
    }

    /// Restores the entries of a checkpoint.
    pub(super) fn restore(entries: Vec<Vec<u8>>) -> Self {
        Self { bytes: entries.iter().map(Vec::len).sum(), entries: entries.into(), ..Self::default() }
    }
}

/// The word after the `@`, which some entries lack.
fn kind(entry: &[u8]) -> &[u8] {
    let word = entry.strip_prefix(b"@").unwrap_or(entry);
    let named = |byte: &&u8| !matches!(byte, b'{' | b'(') && !byte.is_ascii_whitespace();
    &word[..word.iter().take_while(named).count()]
}

/// The entry's own key.
fn key(entry: &[u8]) -> Option<&[u8]> {
    // A short word and white space precede it.
    let open = entry.iter().take(2 * MAX_KEY).position(|byte| matches!(byte, b'{' | b'('))?;
    let rest = &entry[open + 1..];
    let front = &rest[..rest.len().min(MAX_KEY)];
    Some(front[..memchr(b',', front)?].trim_ascii())
}

/// Calls a function with each alternative key, from the field `ids`.
fn each_alias(entry: &[u8], mut take: impl FnMut(&[u8])) {
    static IDS: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| [Finder::new("ids"), Finder::new("IDS")]);
    spend(entry.len());
    for ids in &*IDS {
        let mut at = 0;
        while let Some(found) = ids.find(&entry[at..]) {
            let start = at + found;
            at = start + b"ids".len();
            let Some(keys) = field(entry, start, at, MAX_ALIASES) else { continue };
            keys.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).for_each(&mut take);
            at += keys.len();
        }
    }
}

/// The fields that name other entries.
const NAMES: [&[u8]; 2] = [b"crossref", b"xdata"];

/// The keys that `crossref` and then `xdata` name in an entry, in the order of the file.
fn crossrefs(entry: &[u8]) -> impl Iterator<Item = &[u8]> {
    places(entry).filter_map(|(start, name)| field(entry, start, start + name.len(), MAX_KEY))
}

/// The offsets of these names in an entry, in upper or lower case. Every entry of a file is searched.
fn places(entry: &[u8]) -> impl Iterator<Item = (usize, &'static [u8])> {
    /// A part of each name, and the number of letters before it. Only these differ in case from the others.
    static PARTS: LazyLock<[(Finder<'static>, usize, &'static [u8]); 4]> = LazyLock::new(|| {
        let [crossref, xdata] = NAMES;
        [("ross", 1, crossref), ("ROSS", 1, crossref), ("ata", 2, xdata), ("ATA", 2, xdata)]
            .map(|(part, before, name)| (Finder::new(part), before, name))
    });
    spend(2 * entry.len());
    PARTS.iter().flat_map(move |(part, before, name)| {
        part.find_iter(entry).filter_map(move |found| {
            let start = found.checked_sub(*before)?;
            let whole = entry.get(start..start + name.len())?;
            whole.eq_ignore_ascii_case(name).then_some((start, *name))
        })
    })
}

/// Returns `true` for an entry that only holds fields of others.
pub(super) fn is_data(entry: &[u8]) -> bool {
    kind(entry).eq_ignore_ascii_case(b"xdata")
}

/// Returns the value of the field whose name spans these offsets, without braces or quotes. Returns `None` if the name
/// is part of a word, or if the value has more than `most` bytes or contains braces or quotes.
fn field(entry: &[u8], start: usize, end: usize, max: usize) -> Option<&[u8]> {
    if start.checked_sub(1).is_some_and(|before| entry[before].is_ascii_alphanumeric()) {
        return None;
    }
    let front = &entry[end..entry.len().min(end + max)];
    let value = front.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let quoted = value.strip_prefix(b"{").or_else(|| value.strip_prefix(b"\""));
    let is_end = |byte: &u8| match quoted {
        Some(_) => matches!(byte, b'{' | b'}' | b'"'),
        None => matches!(byte, b'{' | b'}' | b'"' | b',' | b')' | b'\n'),
    };
    let value = quoted.unwrap_or(value);
    let end = value.iter().position(is_end)?;
    spend(end);
    (value[end] != b'{').then(|| value[..end].trim_ascii())
}

/// Returns `true` if an entry may refer to another one.
pub(super) fn may_refer(entry: &[u8]) -> bool {
    places(entry).next().is_some()
}

/// Returns the key that an entry refers to. The first of several keys of `xdata` counts.
pub(super) fn crossref(entry: &[u8]) -> Option<&[u8]> {
    let first = |keys: &'_ [u8]| memchr(b',', keys).unwrap_or(keys.len());
    crossrefs(entry).map(|keys| keys[..first(keys)].trim_ascii()).find(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(kept: &mut EarlierEntries, by: KeyType, key: &str) -> String {
        String::from_utf8(kept.find(by, key.as_bytes()).unwrap_or_default().to_vec()).unwrap()
    }

    #[test]
    fn entries_are_found_by_key_ignoring_case() {
        let mut kept = EarlierEntries::default();
        let acids = "@book{u, title={Of acids}, ids = {r, P\n, T}}";
        let parts = "@Proceedings( p , CrossRef = \"S\" )";
        for entry in [acids, "@book{s, title={S}}", parts, "@article{p, title={A}}"] {
            kept.keep(entry.as_bytes());
        }
        assert_eq!(find(&mut kept, KeyType::Key, "P"), parts);
        assert_eq!(find(&mut kept, KeyType::Alias, "t"), acids);
        assert_eq!(find(&mut kept, KeyType::Alias, "acids"), "");
        assert_eq!(find(&mut kept, KeyType::Key, "q"), "");
        kept.keep(b"@book{S, title={T}}");
        assert_eq!(find(&mut kept, KeyType::Key, "s"), "@book{S, title={T}}", "the latest counts");
    }

    #[test]
    fn crossref_key_is_found() {
        let key =
            |entry: &str| crossref(entry.as_bytes()).map(|key| String::from_utf8(key.to_vec()).unwrap());
        assert_eq!(key("@a{x, note={my crossref}, CROSSREF = {P}}").as_deref(), Some("P"));
        assert_eq!(key("@a{x, crossref = q}").as_deref(), Some("q"));
        assert_eq!(key("@a{x, title={The Rosser effect}}"), None);
        assert_eq!(key("@a{x, XData = {P, q}}").as_deref(), Some("P"));
        assert_eq!(key("@a{x, xdata={p}, crossref={q}}").as_deref(), Some("q"));
        assert_eq!(key("@a{x, title={Open data}, metadata={p}}"), None);
        assert_eq!(key("@a{x, crossref = {a {b}}}"), None);
    }

    #[test]
    fn oldest_entries_are_forgotten() {
        let mut kept = EarlierEntries::default();
        let entry = |number: usize| format!("@book{{{number}, note={{{}}}}}", "x".repeat(1000));
        for number in 0..100 {
            kept.keep(entry(number).as_bytes());
            assert_eq!(find(&mut kept, KeyType::Key, &number.to_string()), entry(number));
        }
        kept.keep("x".repeat(MAX_ENTRY + 1).as_bytes());
        assert!(kept.bytes <= MAX_KEPT && kept.bytes > MAX_KEPT - 2000);
        assert_eq!(find(&mut kept, KeyType::Key, "9"), "");
        assert_eq!(kept.index.keys.len(), kept.entries.len());
        let mut restore = EarlierEntries::restore(kept.all().collect());
        assert_eq!(find(&mut restore, KeyType::Key, "99"), entry(99));
    }
}
