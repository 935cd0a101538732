//! What is inside gzip files, ZIP archives and Excel workbooks.
//!
//! All of it is untrusted: sizes that an archive states are checked and not believed, and whatever is unpacked is bounded
//! in size, in ratio and in number by [`Limits`]. Nothing here performs input or output; whoever has the bytes hands them
//! over, in any pieces.
//!
//! # Modules, in reading order
//!
//! - `form`: which of them a file is, by its first bytes.
//! - `error`: why one is refused.
//! - `directory`: the list of a ZIP archive's entries, read from its end, and all that is refused because of it.
//! - `unpack`: packed bytes to unpacked ones, piece by piece.
//! - `workbook`: the sheets of a workbook as tables of text.

mod directory;
mod error;
mod form;
mod unpack;
mod workbook;

pub use directory::{Directory, END_BYTES, Entry, LOCAL_BYTES, Tail, local_header};
pub use error::Error;
pub use form::{Form, MAGIC_BYTES};
pub use unpack::{MOST_AT_ONCE, Unpack};
pub use workbook::{MOST_WORKBOOK_BYTES, Sheet, SheetText, Workbook};

/// Limits on what is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes that a file may have once it is unpacked, all that is inside counted together.
    pub max_unpacked: u64,
    /// Most entries of an archive.
    pub max_entries: usize,
    /// Most unpacked bytes for one packed byte. Text comes to 20, tables of blanks to 100; zeros come to 1,000.
    pub max_ratio: u64,
}

/// What is unpacked before ratios count, in bytes: little of anything may be packed well.
pub(crate) const RATIO_COUNTS_FROM: u64 = 4 << 20;

impl Default for Limits {
    fn default() -> Self {
        Self { max_unpacked: 1 << 30, max_entries: 1_000, max_ratio: 250 }
    }
}

impl Limits {
    /// Refuses what unpacks to too much.
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
