//! Checkpoints: the state with which another reader resumes a file.

use serde::{Deserialize, Serialize};

use crate::{
    Format,
    detect::Detection,
    encoding::{Certainty, Encoding, LegacyEncoding, LegacyState},
    gaps::Gaps,
    position::Position,
    stored_bytes::Bytes,
};

/// The version of the results of this crate. The version increases with every change by which the same bytes yield
/// different records. A reader does not resume from a checkpoint of another version, because that version would have
/// counted records differently.
pub const READER_VERSION: u32 = 33;

/// A position between two records, and the state that a reader needs to resume there. It can be stored.
///
/// The outcomes so far must be stored before the checkpoint: the records before it are not read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The [`READER_VERSION`] of the reader.
    pub(crate) reader: u32,
    /// The position of the first byte that has not been read.
    pub(crate) place: Position,
    /// The number of records before the position.
    pub(crate) records: u64,
    /// The number of parts of the file so far.
    pub(crate) parts: u64,
    /// The number of quarantined records among them.
    pub(crate) quarantined: u64,
    /// The number of untitled records among them. Readers before version 2 did not count them.
    #[serde(default)]
    pub(crate) untitled: u64,
    /// The number of possibly misinterpreted records, and the text between records. Readers before version 3 did not
    /// record them.
    #[serde(default)]
    pub(crate) obscure: u64,
    #[serde(default)]
    pub(crate) gaps: Gaps,
    pub(crate) format: Format,
    /// The formats of the parts so far.
    #[serde(default)]
    pub(crate) formats: Vec<Format>,
    pub(crate) format_certainty: Certainty,
    pub(crate) encoding: Encoding,
    pub(crate) certainty: Certainty,
    pub(crate) legacy: LegacyState,
    /// The state of the splitter: the header row, the elements around the records, or entries that later records may
    /// refer to.
    pub(crate) carried: Vec<Bytes>,
    /// The header row, or the definitions of abbreviations, decoded.
    pub(crate) header: Option<String>,
}

impl Checkpoint {
    /// The offset of the first byte that must be read again.
    #[must_use]
    pub fn byte(&self) -> u64 {
        self.place.byte
    }

    /// The number of records before the checkpoint, readable or not.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The number of quarantined records before the checkpoint.
    #[must_use]
    pub fn quarantined(&self) -> u64 {
        self.quarantined
    }

    pub(crate) fn detected(&self) -> Detection {
        Detection {
            encoding: self.encoding,
            certainty: self.certainty,
            legacy: LegacyEncoding::from(&self.legacy),
            mark_length: 0,
            format: self.format,
            format_certainty: self.format_certainty,
            unread: None,
        }
    }
}
