//! Why a file is refused.

use std::fmt;

use crate::Format;

/// Why a whole file is refused.
///
/// Each message is a fragment about the file, written for the reviewer who uploaded it. None of them is worth
/// retrying: the same bytes are refused again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No bytes, or white space alone.
    #[error("the file is empty")]
    Empty,
    /// More bytes than [`crate::Limits::max_file_bytes`].
    #[error("the file is larger than the limit of {}", Size(*limit))]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// Not text.
    #[error("it is {what}, not a reference file")]
    Binary {
        /// With its article: `"a PDF document"`.
        what: &'static str,
    },
    /// Text in a format that is known but not read.
    #[error("it is {name}, which is not read yet; expected {EXPECTED}")]
    UnsupportedFormat {
        /// `"Web of Science plain text"`.
        name: &'static str,
    },
    /// Text in no format known here.
    #[error("no known reference format: it starts with {start:?}; expected {EXPECTED}")]
    UnknownFormat {
        /// The first characters of the file.
        start: String,
    },
    /// An XML document with a document type declaration.
    #[error("the XML declares a DOCTYPE, which is refused because it can define entities{}", Hint(*.name))]
    Doctype {
        /// What the document is, when its root element tells: `"PubMed XML"`.
        name: Option<&'static str>,
    },
    /// One record with more bytes than [`crate::Limits::max_record_bytes`].
    #[error("record {number} (line {line}) is larger than the limit of {}", Size(*limit))]
    RecordTooLarge {
        /// Which record.
        number: u64,
        /// The line on which it begins.
        line: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// An XML document whose outer structure is broken, so that records may be missing.
    #[error("the XML is broken at line {line}: {what}")]
    MalformedXml {
        /// Where.
        line: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// The right format, and nothing in it.
    #[error("it contains no records (read as {format})")]
    NoRecords {
        /// The format it was read as.
        format: Format,
    },
}

/// The formats a reviewer can export instead, for messages.
const EXPECTED: &str = "RIS, PubMed .nbib, EndNote XML, CSV or TSV";

/// A number of bytes as people write it: exact multiples of a binary unit in that unit.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match UNITS.iter().find(|(size, _)| self.0 >= *size && self.0.is_multiple_of(*size)) {
            Some((size, unit)) => write!(f, "{} {unit}", self.0 / size),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

/// What the document seems to be, when that is known.
struct Hint(Option<&'static str>);

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(name) => write!(f, "; it looks like {name}, expected {EXPECTED}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_well_after_the_name_of_a_file() {
        let said = |error: Error| error.to_string();
        assert_eq!(said(Error::Empty), "the file is empty");
        assert_eq!(
            said(Error::Binary { what: "a PDF document" }),
            "it is a PDF document, not a reference file"
        );
        assert_eq!(said(Error::TooLarge { limit: 1 << 30 }), "the file is larger than the limit of 1 GiB");
        assert_eq!(said(Error::NoRecords { format: Format::Ris }), "it contains no records (read as RIS)");
        assert_eq!(
            said(Error::RecordTooLarge { number: 3, line: 41, limit: 1500 }),
            "record 3 (line 41) is larger than the limit of 1500 bytes"
        );
        assert_eq!(
            said(Error::UnknownFormat { start: "Dear all,".into() }),
            "no known reference format: it starts with \"Dear all,\"; expected RIS, PubMed .nbib, EndNote XML, \
             CSV or TSV"
        );
    }
}
