//! Which kind of packed file a file is.

/// How many of a file's first bytes show it.
pub const MAGIC_BYTES: usize = 4;

/// What a file is packed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Not at all, or in a way that is not read here.
    Plain,
    /// gzip: one file.
    Gzip,
    /// A ZIP archive, which workbooks are as well.
    Zip,
}

impl Form {
    /// Tells it from the first [`MAGIC_BYTES`], or from all of a file that has fewer.
    #[must_use]
    pub fn of(start: &[u8]) -> Self {
        if start.starts_with(b"\x1F\x8B") {
            Self::Gzip
        } else if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
            Self::Zip
        } else {
            Self::Plain
        }
    }
}
