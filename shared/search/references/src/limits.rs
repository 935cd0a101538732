//! The limits and settings of a reader.

use std::num::NonZeroUsize;

/// Limits on the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of a file in bytes. The default is 1 GiB: about half a million records with abstracts.
    pub max_file_bytes: u64,
    /// The maximum size of a record in bytes, as UTF-8 if the file is UTF-16. The default is 16 MiB: the largest
    /// document that MongoDB stores.
    pub max_record_bytes: usize,
    /// The maximum number of records in a file, including quarantined ones: every outcome occupies memory, however few
    /// bytes its record has. The default is two million.
    pub max_records: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_file_bytes: 1 << 30, max_record_bytes: 16 << 20, max_records: 2_000_000 }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ReaderSettings {
    pub(crate) limits: Limits,
    pub(crate) threads: NonZeroUsize,
    /// `true` if records are only found, and not read.
    pub(crate) finds_only: bool,
}
