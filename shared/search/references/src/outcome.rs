//! What reading a file yields: records, quarantined records and the closing report.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{Certainty, Encoding, Format, Reference, Skipped};

/// Longest [`Quarantine::reason`] in characters: a sentence for a person, not a dump of the input.
pub const REASON_CHARS: usize = 500;
/// Longest [`Quarantine::excerpt`] in characters: enough to find the record in the exporting database.
pub const EXCERPT_CHARS: usize = 200;

/// What became of one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
// Nearly all outcomes are records: boxing each of them would cost more than it saves for the others.
#[allow(clippy::large_enum_variant)]
pub enum Outcome {
    /// The record was read.
    Read(Record),
    /// The record could not be read; the rest of the file goes on.
    Quarantined(Quarantine),
}

impl Outcome {
    /// 1-based position among the records of the file.
    #[must_use]
    pub fn number(&self) -> u64 {
        match self {
            Self::Read(record) => record.number,
            Self::Quarantined(quarantine) => quarantine.number,
        }
    }

    /// Where its bytes are in the original file, a byte-order mark counted.
    #[must_use]
    pub fn bytes(&self) -> &Range<u64> {
        match self {
            Self::Read(record) => &record.bytes,
            Self::Quarantined(quarantine) => &quarantine.bytes,
        }
    }
}

/// A record that was read, and where it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// 1-based position among the records of the file; quarantined ones count too.
    pub number: u64,
    /// 1-based line on which the record begins.
    pub line: u64,
    /// Where the record's bytes are in the original file, a byte-order mark counted.
    pub bytes: Range<u64>,
    /// Its fields.
    pub reference: Reference,
}

/// A record that could not be read, and where it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    /// 1-based position among the records of the file.
    pub number: u64,
    /// 1-based line on which the record begins.
    pub line: u64,
    /// Where the record's bytes are in the original file, a byte-order mark counted.
    pub bytes: Range<u64>,
    /// Why it could not be read, in at most [`REASON_CHARS`] characters.
    pub reason: String,
    /// The first [`EXCERPT_CHARS`] characters of the record.
    pub excerpt: String,
}

/// Totals of a file that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The detected format.
    pub format: Format,
    /// How certain the format is.
    #[serde(default)]
    pub format_certainty: Certainty,
    /// The detected encoding.
    pub encoding: Encoding,
    /// How certain the encoding is.
    #[serde(default)]
    pub encoding_certainty: Certainty,
    /// Records in the file: read and quarantined.
    pub records: u64,
    /// How many of the records were quarantined.
    pub quarantined: u64,
    /// How many of the records were read and have no title.
    #[serde(default)]
    pub untitled: u64,
    /// Text that belongs to no record.
    #[serde(default)]
    pub skipped: Option<Skipped>,
    /// The size of the file in bytes.
    pub bytes: u64,
}
