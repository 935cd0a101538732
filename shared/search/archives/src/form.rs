//! Recognizes packed files.

/// The number of bytes at the beginning of a file that identify its form.
pub const MAGIC_BYTES: usize = 4;

/// The compression or container format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Not packed, or in an unsupported format.
    Plain,
    /// gzip: a single file.
    Gzip,
    /// A ZIP archive, possibly a workbook.
    Zip,
}

impl Form {
    /// Detects the form from the first [`MAGIC_BYTES`], or from the whole file if it is shorter.
    #[must_use]
    pub fn detect(start: &[u8]) -> Self {
        if start.starts_with(b"\x1F\x8B") {
            Self::Gzip
        } else if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
            Self::Zip
        } else {
            Self::Plain
        }
    }
}
