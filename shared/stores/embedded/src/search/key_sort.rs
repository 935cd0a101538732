//! Sorting the keys of a file, on the disk if they are many.
//!
//! Sorted keys fill the pages of their table in sequence. If the keys were inserted study by study, each key would be
//! written to a different page, and most pages would be written repeatedly. The keys of a large file would take too
//! much memory. Therefore they are sorted in parts, which wait in a temporary file and are merged when they are
//! inserted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fs::File;
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::ops::Range;
use std::vec::IntoIter;

/// The number of keys that are sorted in memory, 1 MiB.
const PART: usize = 1 << 16;

/// The size of a key in the temporary file.
const ENTRY_BYTES: usize = 16;

/// The number of keys of each part that are read from the temporary file at a time, 4 KiB.
const READ_ENTRIES: usize = 256;

/// A key of a study, in the order of their table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyEntry {
    pub(crate) key: i64,
    pub(crate) record: i64,
}

impl KeyEntry {
    fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        let (key, record) = bytes.split_at_mut(ENTRY_BYTES / 2);
        key.copy_from_slice(&self.key.to_le_bytes());
        record.copy_from_slice(&self.record.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; ENTRY_BYTES]) -> Self {
        let mut halves = bytes.as_chunks().0.iter().map(|half| i64::from_le_bytes(*half));
        Self { key: halves.next().unwrap_or_default(), record: halves.next().unwrap_or_default() }
    }
}

/// Takes keys in any order.
#[derive(Debug)]
pub(crate) struct KeySorter {
    part: usize,
    entries: Vec<KeyEntry>,
    /// The temporary file, and the sorted parts in it.
    spilled: Option<(File, Vec<Range<u64>>)>,
}

impl Default for KeySorter {
    fn default() -> Self {
        Self::of_parts(PART)
    }
}

impl KeySorter {
    fn of_parts(part: usize) -> Self {
        Self { part, entries: Vec::new(), spilled: None }
    }

    pub(crate) fn push(&mut self, entry: KeyEntry) {
        self.entries.push(entry);
    }

    /// Returns `true` if the keys in memory have to be written to the temporary file.
    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() >= self.part
    }

    /// Returns the number of keys.
    pub(crate) fn len(&self) -> u64 {
        let spilled = self.spilled.as_ref().and_then(|(_, parts)| parts.last()).map_or(0, |part| part.end);
        spilled / ENTRY_BYTES as u64 + self.entries.len() as u64
    }

    /// Writes the keys in memory to the temporary file. `create` creates it.
    pub(crate) fn spill(&mut self, create: impl FnOnce() -> Result<File>) -> Result<()> {
        let (file, parts) = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert((create()?, Vec::new())),
        };
        self.entries.sort_unstable();
        let start = parts.last().map_or(0, |part| part.end);
        let mut end = start;
        for entries in self.entries.chunks(READ_ENTRIES) {
            let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_bytes()).collect();
            file.write_all(&bytes)?;
            end += bytes.len() as u64;
        }
        parts.push(start..end);
        self.entries.clear();
        Ok(())
    }

    /// Returns all keys in order.
    pub(crate) fn merge(mut self) -> Result<SortedKeys> {
        self.entries.sort_unstable();
        let (file, parts) = self.spilled.map_or((None, Vec::new()), |(file, parts)| (Some(file), parts));
        let spilled = parts.into_iter().map(|unread| Part { read: Vec::new().into_iter(), unread });
        let parts = spilled.chain([Part { read: self.entries.into_iter(), unread: 0..0 }]).collect();
        let mut sorted = SortedKeys { file, parts, heads: BinaryHeap::new() };
        for part in 0..sorted.parts.len() {
            let first = sorted.next_of(part)?;
            sorted.heads.extend(first);
        }
        Ok(sorted)
    }
}

/// A sorted part: the keys that were read from the file, and the position of the remaining keys.
#[derive(Debug)]
struct Part {
    read: IntoIter<KeyEntry>,
    unread: Range<u64>,
}

/// The first remaining key of a part, the least one first.
type Head = Reverse<(KeyEntry, usize)>;

/// All keys in order.
#[derive(Debug)]
pub(crate) struct SortedKeys {
    file: Option<File>,
    parts: Vec<Part>,
    heads: BinaryHeap<Head>,
}

impl SortedKeys {
    pub(crate) fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Removes and returns the next keys.
    pub(crate) fn take(&mut self, max: usize) -> Result<Vec<KeyEntry>> {
        let mut taken = Vec::new();
        while taken.len() < max
            && let Some(Reverse((entry, part))) = self.heads.peek().copied()
        {
            taken.push(entry);
            let next = self.next_of(part)?;
            if let Some(mut head) = self.heads.peek_mut() {
                match next {
                    Some(next) => *head = next,
                    None => drop(PeekMut::pop(head)),
                }
            }
        }
        Ok(taken)
    }

    fn next_of(&mut self, number: usize) -> Result<Option<Head>> {
        let Some(part) = self.parts.get_mut(number) else { return Ok(None) };
        let mut next = part.read.next();
        if next.is_none()
            && let Some(file) = &mut self.file
            && !part.unread.is_empty()
        {
            let end = part.unread.end.min(part.unread.start + (READ_ENTRIES * ENTRY_BYTES) as u64);
            let mut bytes = [0; READ_ENTRIES * ENTRY_BYTES];
            // At most the length of the buffer.
            let length = usize::try_from(end - part.unread.start).unwrap_or_default();
            let bytes = bytes.split_at_mut(length).0;
            file.seek(SeekFrom::Start(part.unread.start))?;
            file.read_exact(bytes)?;
            let entries: Vec<_> = bytes.as_chunks().0.iter().copied().map(KeyEntry::from_bytes).collect();
            part.unread.start = end;
            part.read = entries.into_iter();
            next = part.read.next();
        }
        Ok(next.map(|entry| Reverse((entry, number))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(sorter: KeySorter) -> Vec<KeyEntry> {
        let (mut keys, mut all) = (sorter.merge().unwrap(), Vec::new());
        while !keys.is_empty() {
            let some = keys.take(7).unwrap();
            assert!(!some.is_empty());
            all.extend(some);
        }
        all
    }

    #[test]
    fn keys_of_any_number_of_parts_are_sorted() {
        for count in [0_i64, 1, 9, 10, 11, 5_000] {
            let entries = (0..count).map(|n| KeyEntry { key: (n * 7_919) % 1_009 - 500, record: n });
            for part in [10, 2_500, 10_000] {
                let (mut sorter, mut files) = (KeySorter::of_parts(part), 0);
                for entry in entries.clone() {
                    sorter.push(entry);
                    if sorter.is_full() {
                        let create = || {
                            files += 1;
                            tempfile::tempfile()
                        };
                        sorter.spill(create).unwrap();
                    }
                }
                let mut expected: Vec<_> = entries.clone().collect();
                expected.sort_unstable();
                assert_eq!(sorted(sorter), expected, "{count} keys in parts of {part}");
                assert_eq!(files, i32::from(usize::try_from(count).unwrap() >= part));
            }
        }
    }

    #[test]
    fn missing_end_of_file_is_error() {
        let mut sorter = KeySorter::of_parts(1);
        sorter.push(KeyEntry { key: 1, record: 1 });
        let file = tempfile::tempfile().unwrap();
        let same = file.try_clone().unwrap();
        sorter.spill(|| Ok(file)).unwrap();
        same.set_len(ENTRY_BYTES as u64 - 1).unwrap();
        sorter.merge().unwrap_err();
    }

    #[test]
    fn extreme_keys_are_read_as_written() {
        for key in [i64::MIN, -1, 0, i64::MAX] {
            let entry = KeyEntry { key, record: i64::MAX - 1 };
            assert_eq!(KeyEntry::from_bytes(entry.to_bytes()), entry);
        }
    }
}
