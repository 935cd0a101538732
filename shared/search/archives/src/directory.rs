//! The list of a ZIP archive's entries.
//!
//! It is at the archive's end ([APPNOTE.TXT](https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT), 4.3). What it says
//! is held against itself before a byte is unpacked: no two entries may share bytes, names stay within the archive, and
//! only files and folders are entries.

use crate::{Error, Limits};

/// How many bytes from the end of a file hold the end of the list: the longest comment, and the record before it.
pub const END_BYTES: usize = 22 + 65_535;
/// How many bytes of an entry's own header have a fixed meaning; name and extras follow.
pub const LOCAL_BYTES: usize = 30;

/// Longest name of an entry, in bytes: it is stored with what is read.
const MOST_NAME: usize = 255;
/// Largest list of entries, in bytes: what 1,000 entries with the longest names of file systems take.
const MOST_LIST: u64 = 1 << 20;
/// How many bytes of the list an entry takes besides its name, extras and comment.
const LISTED: usize = 46;

/// The end of a list: where the list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// Where in the file the list begins.
    pub start: u64,
    /// Its length in bytes.
    pub length: usize,
    entries: usize,
}

/// The entries of an archive, without its folders, in their order in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// The files.
    pub entries: Vec<Entry>,
}

/// One file in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path within the archive, with slashes.
    pub name: String,
    /// Where its own header begins.
    pub header: u64,
    /// Its size as packed, in bytes.
    pub packed: u64,
    /// Its size as unpacked, in bytes, as the archive says.
    pub unpacked: u64,
    /// Its checksum, as the archive says.
    pub(crate) crc: u32,
    pub(crate) is_deflated: bool,
    name_length: usize,
}

fn damaged(fault: &'static str) -> Error {
    Error::Damaged { what: "ZIP archive", fault }
}

/// Numbers at fixed places of a header; 0 behind its end, which callers rule out by its length.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> u16 {
        self.0.get(at..at + 2).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) | u32::from(self.u16(at + 2)) << 16
    }
}

impl Tail {
    /// Finds the list in the last bytes of a file of `size` bytes: in [`END_BYTES`] of them, or in the whole file.
    ///
    /// # Errors
    /// When there is no list, or none that is read.
    pub fn find(last: &[u8], size: u64) -> Result<Self, Error> {
        let fits = |at: &usize| {
            let end = Fields(&last[*at..]);
            last.len() - at >= 22 && usize::from(end.u16(20)) == last.len() - at - 22
        };
        let at = memchr::memmem::rfind_iter(last, b"PK\x05\x06").find(fits);
        let at = at.ok_or(damaged("the list of its entries is missing; it may have been cut short"))?;
        let end = Fields(&last[at..]);
        if end.u16(4) != 0 || end.u16(6) != 0 || end.u16(8) != end.u16(10) {
            return Err(Error::Unusual { what: "one of several parts" });
        }
        if end.u16(10) == u16::MAX || end.u32(12) == u32::MAX || end.u32(16) == u32::MAX {
            return Err(Error::Unusual { what: "in the form for more than 4 GiB (ZIP64)" });
        }
        let (length, start) = (u64::from(end.u32(12)), u64::from(end.u32(16)));
        let behind = size - (last.len() - at) as u64;
        // Something before the archive, as in one that unpacks itself, would shift all places.
        if start.checked_add(length) != Some(behind) {
            return Err(damaged("the list of its entries is not where it should be"));
        }
        if length > MOST_LIST {
            return Err(damaged("the list of its entries is too long"));
        }
        let length = usize::try_from(length).map_err(|_| damaged("the list of its entries is too long"))?;
        Ok(Self { start, length, entries: usize::from(end.u16(10)) })
    }
}

impl Directory {
    /// Reads the list, which is the [`Tail::length`] bytes at [`Tail::start`].
    ///
    /// # Errors
    /// When the archive is refused: it is damaged, or something else than files within bounds.
    pub fn read(list: &[u8], tail: &Tail, limits: &Limits) -> Result<Self, Error> {
        if tail.entries > limits.max_entries {
            return Err(Error::TooManyEntries { limit: limits.max_entries });
        }
        let (mut rest, mut entries) = (list, Vec::new());
        for _ in 0..tail.entries {
            let (entry, length) = listed(rest)?;
            entries.extend(entry);
            rest = rest.get(length..).ok_or(damaged("the list of its entries is cut short"))?;
        }
        if !rest.is_empty() {
            return Err(damaged("its list has more entries than it says"));
        }
        entries.sort_by_key(|entry| entry.header);
        apart(&entries, tail)?;
        let sum = |of: fn(&Entry) -> u64| entries.iter().map(of).sum();
        limits.check(sum(|entry| entry.packed), sum(|entry| entry.unpacked))?;
        for entry in &entries {
            limits.check(entry.packed, entry.unpacked)?;
        }
        Ok(Self { entries })
    }
}

/// The entry at the front of the list, none for a folder, and how many bytes of the list it takes.
fn listed(list: &[u8]) -> Result<(Option<Entry>, usize), Error> {
    let fields = Fields(list);
    if list.len() < LISTED || !list.starts_with(b"PK\x01\x02") {
        return Err(damaged("the list of its entries is cut short"));
    }
    let (name_length, extra, comment) =
        (usize::from(fields.u16(28)), usize::from(fields.u16(30)), usize::from(fields.u16(32)));
    let name =
        list.get(LISTED..LISTED + name_length).ok_or(damaged("the list of its entries is cut short"))?;
    let length = LISTED + name_length + extra + comment;
    let name = checked_name(name)?;
    // The upper half of the attributes is the mode of Unix, whatever the archive was made by: nobody else sets it.
    let kind = fields.u32(38) >> 28;
    if !matches!(kind, 0 | 0o4 | 0o10) {
        return Err(Error::Link { name });
    }
    if fields.u16(8) & 0x2041 != 0 {
        return Err(Error::Encrypted { name });
    }
    let (packed, unpacked, header) = (fields.u32(20), fields.u32(24), fields.u32(42));
    if [packed, unpacked, header].contains(&u32::MAX) {
        return Err(Error::Unusual { what: "in the form for more than 4 GiB (ZIP64)" });
    }
    if name.ends_with('/') && unpacked == 0 {
        return Ok((None, length));
    }
    let is_deflated = match fields.u16(10) {
        0 if packed == unpacked => false,
        0 => return Err(damaged("an entry that is not packed has two sizes")),
        8 => true,
        method => return Err(Error::Method { name, method }),
    };
    let entry = Entry {
        name,
        header: header.into(),
        packed: packed.into(),
        unpacked: unpacked.into(),
        crc: fields.u32(16),
        is_deflated,
        name_length,
    };
    Ok((Some(entry), length))
}

/// A name that stays within the archive, and can be shown.
fn checked_name(name: &[u8]) -> Result<String, Error> {
    let name = String::from_utf8_lossy(name);
    let leaves = name.starts_with('/')
        || name.contains(['\\', ':'])
        || name.contains(char::is_control)
        || name.split('/').any(|part| part == "..");
    let shortened = || name.chars().take(100).collect();
    if leaves || name.is_empty() {
        return Err(Error::Escapes { name: shortened() });
    }
    if name.len() > MOST_NAME {
        return Err(Error::LongName { name: shortened(), limit: MOST_NAME });
    }
    Ok(name.into_owned())
}

/// Refuses entries that share bytes with each other or with the list, and names that stand for two.
fn apart(entries: &[Entry], tail: &Tail) -> Result<(), Error> {
    let mut names = std::collections::BTreeSet::new();
    let mut next = 0;
    for entry in entries {
        let overlaps = entry.header < next;
        next = entry.header + (LOCAL_BYTES + entry.name_length) as u64 + entry.packed;
        if overlaps || next > tail.start || !names.insert(&entry.name) {
            return Err(Error::Overlap { name: entry.name.clone() });
        }
    }
    Ok(())
}

/// How many bytes of an archive are before the packed bytes of an entry, counted from [`Entry::header`], by the
/// [`LOCAL_BYTES`] that are there.
///
/// # Errors
/// When no header of this entry is there, or its packed bytes would reach into what begins at `next`.
pub fn local_header(local: &[u8], entry: &Entry, next: u64) -> Result<u64, Error> {
    let fields = Fields(local);
    let agrees = local.len() >= LOCAL_BYTES
        && local.starts_with(b"PK\x03\x04")
        && usize::from(fields.u16(26)) == entry.name_length
        && (fields.u16(8) == 8) == entry.is_deflated;
    if !agrees {
        return Err(damaged("an entry is not where the list says"));
    }
    let before = LOCAL_BYTES as u64 + u64::from(fields.u16(26)) + u64::from(fields.u16(28));
    if entry.header + before + entry.packed > next {
        return Err(Error::Overlap { name: entry.name.clone() });
    }
    Ok(before)
}

impl Directory {
    /// Where what follows an entry begins: the next entry, or the list.
    #[must_use]
    pub fn behind(&self, entry: usize, tail: &Tail) -> u64 {
        self.entries.get(entry + 1).map_or(tail.start, |next| next.header)
    }
}
