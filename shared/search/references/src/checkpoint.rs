//! Where a reader is in its file, so that another one goes on from there.

use serde::{Deserialize, Serialize};

use crate::{
    Format,
    detect::Detected,
    encoding::{Certainty, Encoding, Legacy, LegacyState},
    gaps::Gaps,
    stream::Place,
};

/// The version of what this crate makes of a file. It grows with every change by which the same bytes give other records:
/// a reader of another version does not go on where one of this version was, since its records would be counted
/// otherwise.
pub const READER_VERSION: u32 = 5;

/// A place between two records, and what a reader has to know to go on from there. It can be stored.
///
/// What it was made from is to be stored first: the records before it are not read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// [`READER_VERSION`] of the reader.
    pub(crate) reader: u32,
    /// Where the text that was not read yet begins.
    pub(crate) place: Place,
    /// The records before it.
    pub(crate) records: u64,
    /// How many of them were quarantined.
    pub(crate) quarantined: u64,
    /// How many of them have no title. Readers before version 2 did not count them.
    #[serde(default)]
    pub(crate) untitled: u64,
    /// How many of these may mean something else by what was read, and what was between the records. Readers before
    /// version 3 did not note it.
    #[serde(default)]
    pub(crate) obscure: u64,
    #[serde(default)]
    pub(crate) gaps: Gaps,
    pub(crate) format: Format,
    pub(crate) format_certainty: Certainty,
    pub(crate) encoding: Encoding,
    pub(crate) certainty: Certainty,
    pub(crate) legacy: LegacyState,
    /// What the splitter knows besides the text that follows: the header row, the elements around the records, or what later
    /// records may refer to.
    pub(crate) carried: Vec<Bytes>,
    /// The header row, or the definitions of abbreviations, as decoded.
    pub(crate) header: Option<String>,
}

impl Checkpoint {
    /// The first byte of the file that has to be read again.
    #[must_use]
    pub fn byte(&self) -> u64 {
        self.place.byte
    }

    /// How many records are before it, readable or not.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// How many of them could not be read.
    #[must_use]
    pub fn quarantined(&self) -> u64 {
        self.quarantined
    }

    pub(crate) fn detected(&self) -> Detected {
        Detected {
            encoding: self.encoding,
            certainty: self.certainty,
            legacy: Legacy::from(&self.legacy),
            mark_length: 0,
            format: self.format,
            format_certainty: self.format_certainty,
        }
    }
}

/// Bytes that are text as a rule: each is written as the character of its number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl From<String> for Bytes {
    fn from(text: String) -> Self {
        Self(text.chars().filter_map(|c| u8::try_from(c).ok()).collect())
    }
}

impl From<Bytes> for String {
    fn from(bytes: Bytes) -> Self {
        bytes.0.into_iter().map(char::from).collect()
    }
}
