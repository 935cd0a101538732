//! Reasons to refuse a packed file.

/// The reason why a packed file is refused.
///
/// Each message is a fragment about the file, written for the reviewer who uploaded it. Retrying never helps: the same
/// bytes are refused again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The content does not match the magic number, or the file is truncated.
    #[error("the {what} is damaged: {fault}")]
    Damaged {
        /// `"ZIP archive"`.
        what: &'static str,
        /// A description of the damage.
        fault: &'static str,
    },
    /// The unpacked content has more bytes than [`crate::Limits::max_unpacked`].
    #[error("it unpacks to more than the limit of {} MiB; split it", limit >> 20)]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The content is almost entirely repetition.
    #[error("it unpacks to more than {ratio} times its size, as no reference file does")]
    Bomb {
        /// [`crate::Limits::max_ratio`].
        ratio: u64,
    },
    /// The archive has more entries than [`crate::Limits::max_entries`].
    #[error("the archive has more than {limit} entries; upload the reference files alone")]
    TooManyEntries {
        /// The limit.
        limit: usize,
    },
    /// A password-protected entry.
    #[error("{name:?} in the archive is protected by a password; pack it without one")]
    Encrypted {
        /// The entry.
        name: String,
    },
    /// An entry whose name leads out of the archive.
    #[error("{name:?} in the archive has a name that leads elsewhere")]
    Escapes {
        /// The entry's name, shortened.
        name: String,
    },
    /// An entry whose name is too long to store.
    #[error("{name:?} … in the archive has a name of more than {limit} bytes")]
    LongName {
        /// The entry's name, shortened.
        name: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// An entry that is a link or a device.
    #[error("{name:?} in the archive is a link, not a file; pack the file itself")]
    Link {
        /// The entry.
        name: String,
    },
    /// Two entries that share bytes, or a name.
    #[error("{name:?} in the archive overlaps another entry")]
    Overlap {
        /// The entry.
        name: String,
    },
    /// An entry with an unsupported compression method.
    #[error(
        "{name:?} in the archive uses the unsupported compression method {method}; pack it with the default method"
    )]
    Method {
        /// The entry.
        name: String,
        /// The number of the method.
        method: u16,
    },
    /// An archive of several disks, or of more than 4 GiB.
    #[error("the ZIP archive is {what}, which is not supported; create a plain ZIP archive")]
    Unusual {
        /// The end of the message's first clause, such as `"one of several parts"`.
        what: &'static str,
    },
    /// A workbook that is too large to be held in memory.
    #[error("the workbook has more {what} than can be read; save it as CSV and upload that")]
    WorkbookTooLarge {
        /// `"text"`.
        what: &'static str,
    },
    /// A damaged workbook.
    #[error("the workbook is damaged: {fault}")]
    Workbook {
        /// A description of the damage.
        fault: &'static str,
    },
}
