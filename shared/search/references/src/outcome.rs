//! The results of reading a file: records, quarantined records and the final report.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{Certainty, Encoding, Format, Reference};

/// The maximum length of [`Quarantine::reason`] in characters: a sentence, not a dump of the input.
pub const REASON_CHARS: usize = 500;
/// The maximum length of [`Quarantine::excerpt`] in characters: enough to find the record in the database.
pub const EXCERPT_CHARS: usize = 200;

/// The outcome of one record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all outcomes are records, and boxing them costs more than it saves"
)]
pub enum Outcome {
    /// The record was read.
    Read(Record),
    /// The record could not be read. Reading continues with the next record.
    Quarantined(Quarantine),
}

impl Outcome {
    /// The 1-based position among the records of the file.
    #[must_use]
    pub fn number(&self) -> u64 {
        match self {
            Self::Read(record) => record.number,
            Self::Quarantined(quarantine) => quarantine.number,
        }
    }

    /// The byte range in the original file, including a byte-order mark in the offsets.
    #[must_use]
    pub fn bytes(&self) -> &Range<u64> {
        match self {
            Self::Read(record) => &record.bytes,
            Self::Quarantined(quarantine) => &quarantine.bytes,
        }
    }
}

/// A record that was read, with its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The 1-based position among the records of the file, including quarantined ones.
    pub number: u64,
    /// The 1-based line where the record begins.
    pub line: u64,
    /// The byte range in the original file, including a byte-order mark in the offsets.
    pub bytes: Range<u64>,
    /// The record's fields.
    pub reference: Reference,
}

/// A record that could not be read, with its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    /// The 1-based position among the records of the file.
    pub number: u64,
    /// The 1-based line where the record begins.
    pub line: u64,
    /// The byte range in the original file, including a byte-order mark in the offsets.
    pub bytes: Range<u64>,
    /// The reason, in up to [`REASON_CHARS`] characters.
    pub reason: String,
    /// The first [`EXCERPT_CHARS`] characters of the record.
    pub excerpt: String,
}

/// Text that belongs neither to a record nor to the format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedText {
    /// The number of lines of the record. Blank lines and lines of punctuation are not counted, nor are lines with just
    /// a number in line-based formats.
    pub lines: u64,
    /// The number of the first of these lines, from 1.
    pub line: u64,
    /// The beginning of that line, with up to [`EXCERPT_CHARS`] characters.
    pub excerpt: String,
}

/// The totals of a file that was read completely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The detected format; the format of the last part of a file with several.
    pub format: Format,
    /// The formats of earlier parts, if they differ, in the order of the parts.
    #[serde(default)]
    pub other_formats: Vec<Format>,
    /// The certainty of the format.
    #[serde(default)]
    pub format_certainty: Certainty,
    /// The detected encoding.
    pub encoding: Encoding,
    /// The certainty of the encoding.
    #[serde(default)]
    pub encoding_certainty: Certainty,
    /// The number of records, including quarantined ones.
    pub records: u64,
    /// The number of quarantined records.
    pub quarantined: u64,
    /// The number of records that were read and have no title.
    #[serde(default)]
    pub untitled: u64,
    /// The text outside of records.
    #[serde(default)]
    pub skipped: Option<SkippedText>,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The number of parts in different formats, or with joined lines. `format` is the format of the last part.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub parts: u64,
}

fn one() -> u64 {
    1
}

// The serializer passes a reference.
fn is_one(parts: &u64) -> bool {
    *parts == 1
}
