//! The central directory of a ZIP archive.
//!
//! It is at the end of the archive ([APPNOTE.TXT](https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT), 4.3).
//! Before any byte is unpacked it is checked for consistency: entries must not share bytes, names must stay within the
//! archive, and every entry must be a file or a folder.

use crate::{Error, Limits};

/// The number of bytes at the end of a file that contain the end record: its fixed part and the longest comment.
pub const END_RECORD_BYTES: usize = 22 + 65_535;
/// The length of the fixed part of a local header; the name and extra fields follow.
pub const LOCAL_HEADER_BYTES: usize = 30;

/// The maximum length of a name of an entry, in bytes. Names are stored with the records.
const MAX_NAME: usize = 255;
/// Largest central directory, in bytes: 1,000 entries with the longest names that file systems allow.
const MAX_LIST: u64 = 1 << 20;
/// The length of the fixed part of a directory entry, without name, extra fields and comment.
const ENTRY_HEADER_BYTES: usize = 46;

/// The end record, which locates the central directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndRecord {
    /// The offset of the central directory in the file.
    pub start: u64,
    /// The length of the end record in bytes.
    pub length: usize,
    entries: usize,
}

/// The files of an archive, in the order of their offsets. Folders are omitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// The files.
    pub entries: Vec<Entry>,
}

/// One file in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path within the archive, with slashes.
    pub name: String,
    /// The offset of the local header.
    pub header: u64,
    /// The packed size in bytes.
    pub packed: u64,
    /// The unpacked size in bytes, as declared by the archive.
    pub unpacked: u64,
    /// The checksum, as declared by the archive.
    pub(crate) crc: u32,
    pub(crate) is_deflated: bool,
    name_length: usize,
}

fn damaged(fault: &'static str) -> Error {
    Error::Damaged { what: "ZIP archive", fault }
}

/// Numbers at fixed offsets of a header. Offsets past the end read as 0; callers check the length.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> u16 {
        self.0.get(at..at + 2).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) | u32::from(self.u16(at + 2)) << 16
    }
}

impl EndRecord {
    /// Finds the end record in the last bytes of a file of `size` bytes: the last [`END_RECORD_BYTES`], or the whole
    /// file.
    ///
    /// # Errors
    /// Returns an error if the record is missing, or describes an unsupported archive.
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
        // Data before the archive, as in a self-extracting one, would shift all offsets.
        if start.checked_add(length) != Some(behind) {
            return Err(damaged("the list of its entries is not where it should be"));
        }
        if length > MAX_LIST {
            return Err(damaged("the list of its entries is too long"));
        }
        let length = usize::try_from(length).map_err(|_| damaged("the list of its entries is too long"))?;
        Ok(Self { start, length, entries: usize::from(end.u16(10)) })
    }
}

impl Directory {
    /// Parses the central directory: the [`EndRecord::length`] bytes at [`EndRecord::start`].
    ///
    /// # Errors
    /// Returns an error if the archive is damaged, exceeds a limit, or contains anything but files and folders.
    pub fn read(list: &[u8], tail: &EndRecord, limits: &Limits) -> Result<Self, Error> {
        if tail.entries > limits.max_entries {
            return Err(Error::TooManyEntries { limit: limits.max_entries });
        }
        let (mut rest, mut entries) = (list, Vec::new());
        for _ in 0..tail.entries {
            let (entry, length) = parse_entry(rest)?;
            entries.extend(entry);
            rest = rest.get(length..).ok_or(damaged("the list of its entries is cut short"))?;
        }
        if !rest.is_empty() {
            return Err(damaged("its directory has more entries than declared"));
        }
        entries.sort_by_key(|entry| entry.header);
        check_overlaps(&entries, tail)?;
        let sum = |of: fn(&Entry) -> u64| entries.iter().map(of).sum();
        limits.check(sum(|entry| entry.packed), sum(|entry| entry.unpacked))?;
        for entry in &entries {
            limits.check(entry.packed, entry.unpacked)?;
        }
        Ok(Self { entries })
    }
}

/// Parses the first entry of the list and returns it with its length in bytes. The entry is `None` for a folder.
fn parse_entry(list: &[u8]) -> Result<(Option<Entry>, usize), Error> {
    let fields = Fields(list);
    if list.len() < ENTRY_HEADER_BYTES || !list.starts_with(b"PK\x01\x02") {
        return Err(damaged("the list of its entries is cut short"));
    }
    let (name_length, extra, comment) =
        (usize::from(fields.u16(28)), usize::from(fields.u16(30)), usize::from(fields.u16(32)));
    let name = list
        .get(ENTRY_HEADER_BYTES..ENTRY_HEADER_BYTES + name_length)
        .ok_or(damaged("the list of its entries is cut short"))?;
    let length = ENTRY_HEADER_BYTES + name_length + extra + comment;
    let name = checked_name(name)?;
    // The upper half of the attributes is the Unix mode, regardless of the system that the archive names, because other
    // systems do not set it.
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

/// Returns a name that stays within the archive and is safe to display.
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
    if name.len() > MAX_NAME {
        return Err(Error::LongName { name: shortened(), limit: MAX_NAME });
    }
    Ok(name.into_owned())
}

/// Rejects entries that share bytes with each other or with the directory, and duplicate names.
fn check_overlaps(entries: &[Entry], tail: &EndRecord) -> Result<(), Error> {
    let mut names = std::collections::BTreeSet::new();
    let mut next = 0;
    for entry in entries {
        let overlaps = entry.header < next;
        next = entry.header + (LOCAL_HEADER_BYTES + entry.name_length) as u64 + entry.packed;
        if overlaps || next > tail.start || !names.insert(&entry.name) {
            return Err(Error::Overlap { name: entry.name.clone() });
        }
    }
    Ok(())
}

/// Returns the distance from [`Entry::header`] to the packed bytes of an entry, read from the [`LOCAL_HEADER_BYTES`] at
/// the header.
///
/// # Errors
/// Returns an error if the header does not belong to this entry, or the packed bytes would extend past `next`.
pub fn local_header(local: &[u8], entry: &Entry, next: u64) -> Result<u64, Error> {
    let fields = Fields(local);
    let agrees = local.len() >= LOCAL_HEADER_BYTES
        && local.starts_with(b"PK\x03\x04")
        && usize::from(fields.u16(26)) == entry.name_length
        && (fields.u16(8) == 8) == entry.is_deflated;
    if !agrees {
        return Err(damaged("an entry is not at its position in the directory"));
    }
    let before = LOCAL_HEADER_BYTES as u64 + u64::from(fields.u16(26)) + u64::from(fields.u16(28));
    if entry.header + before + entry.packed > next {
        return Err(Error::Overlap { name: entry.name.clone() });
    }
    Ok(before)
}

impl Directory {
    /// Returns the offset of whatever follows an entry: the next entry, or the directory.
    #[must_use]
    pub fn next_offset(&self, entry: usize, tail: &EndRecord) -> u64 {
        self.entries.get(entry + 1).map_or(tail.start, |next| next.header)
    }
}
