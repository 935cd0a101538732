//! Unpacks gzip files, ZIP archives and Excel workbooks.
//!
//! All input is untrusted: sizes that an archive declares are verified, and [`Limits`] bound the size, the compression
//! ratio and the number of unpacked files. The crate performs no input or output; callers pass bytes in pieces of any
//! size.
//!
//! # Modules, in reading order
//!
//! - `form`: recognizes gzip and ZIP files by their first bytes.
//! - `error`: reasons to refuse a file.
//! - `directory`: the list of a ZIP archive's entries, read from its end, and its checks.
//! - `unpack`: decompresses a stream piece by piece.
//! - `workbook`: the sheets of a workbook as text tables.

#![warn(clippy::missing_errors_doc)]

mod directory;
mod error;
mod form;
mod unpack;
mod workbook;

pub use directory::{Directory, END_RECORD_BYTES, EndRecord, Entry, LOCAL_HEADER_BYTES, local_header};
pub use error::Error;
pub use form::{Form, MAGIC_BYTES};
pub use unpack::{MAX_OUTPUT, Unpacker};
pub use workbook::{MAX_WORKBOOK_BYTES, Sheet, SheetText, Workbook};

/// Limits on unpacking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum unpacked size of a file in bytes, with all its entries together.
    pub max_unpacked: u64,
    /// The maximum number of entries in an archive.
    pub max_entries: usize,
    /// The maximum number of unpacked bytes per packed byte. Text reaches a ratio of 20, tables of blanks reach 100,
    /// and zeros reach 1,000.
    pub max_ratio: u64,
}

/// The number of unpacked bytes below which the ratio is not checked: small content may compress very well.
pub(crate) const RATIO_COUNTS_FROM: u64 = 4 << 20;

impl Default for Limits {
    fn default() -> Self {
        Self { max_unpacked: 1 << 30, max_entries: 1_000, max_ratio: 250 }
    }
}

impl Limits {
    /// Refuses sizes that exceed the limits.
    pub(crate) fn check(&self, packed: u64, unpacked: u64) -> Result<(), Error> {
        if unpacked > self.max_unpacked {
            return Err(Error::TooLarge { limit: self.max_unpacked });
        }
        if unpacked > RATIO_COUNTS_FROM && unpacked / self.max_ratio > packed {
            return Err(Error::Bomb { ratio: self.max_ratio });
        }
        Ok(())
    }
}
