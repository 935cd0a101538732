//! Reasons to refuse a file.

use std::fmt::{self, Write};

use crate::Format;

/// The reason why a whole file is refused.
///
/// Each message is a fragment about the file, written for the reviewer who uploaded it. Retrying never helps: the same
/// bytes are refused again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file has no bytes, or only white space.
    #[error("the file is empty")]
    Empty,
    /// The file has more bytes than [`crate::Limits::max_file_bytes`].
    #[error("the file is larger than the limit of {}", Size(*limit))]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The file has more records than [`crate::Limits::max_records`], including quarantined ones.
    #[error("the file has more than {} records, the limit", GroupedDigits(*limit))]
    TooManyRecords {
        /// The limit.
        limit: u64,
    },
    /// The file is not text.
    #[error("it is {what}, not a reference file{}", Advice(what))]
    Binary {
        /// The type of file with an article, such as `"a PDF document"`.
        what: &'static str,
    },
    /// Files in UTF-16 and files in other encodings were joined to one file.
    #[error(
        "it consists of files in UTF-16 and in other encodings, which cannot be read together; upload them one by one"
    )]
    JoinedEncodings,
    /// A known text format that is not supported.
    #[error("it is {name}, which is not supported yet{}; expected {EXPECTED}", OtherExport(name))]
    UnsupportedFormat {
        /// `"Web of Science plain text"`.
        name: &'static str,
    },
    /// An unknown text format.
    #[error(
        "no known reference format: it starts with {start:?}; {}expected {EXPECTED}",
        ClosestFormats(closest)
    )]
    UnknownFormat {
        /// The first characters of the file.
        start: String,
        /// The formats that resemble the file most, in this order, each with the missing evidence: `"RIS (no line
        /// begins a record with TY)"`.
        closest: Vec<&'static str>,
    },
    /// A table without a column for titles.
    #[error("the table has no column for titles; call one \"Title\" (its columns are {})", Columns(columns))]
    Untitled {
        /// The names of the table's columns.
        columns: Vec<String>,
    },
    /// An XML document with a document type declaration.
    #[error("the XML declares a DOCTYPE, which is refused because it can define entities{}", Hint(*.name))]
    Doctype {
        /// The document type, if the root element shows it: `"PubMed XML"`.
        name: Option<&'static str>,
    },
    /// A record has more bytes than [`crate::Limits::max_record_bytes`].
    #[error("record {number} (line {line}) is larger than the limit of {}", Size(*limit))]
    RecordTooLarge {
        /// The record's position in the file, from 1.
        number: u64,
        /// The line on which the record begins, from 1.
        line: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// An XML document whose outer structure is broken, so that records may be missing.
    #[error("the XML is broken at line {line}: {what}")]
    MalformedXml {
        /// The line in which the error was detected, from 1.
        line: u64,
        /// The defect, in words.
        what: &'static str,
    },
    /// A file in which most records have no title.
    #[error(
        "{} of its {} records have no title (read as {format}); export them with their titles, or in another format",
        GroupedDigits(*untitled), GroupedDigits(*records)
    )]
    UntitledRecords {
        /// The number of records without a title.
        untitled: u64,
        /// The number of records in the file.
        records: u64,
        /// The format that the file was read as.
        format: Format,
    },
    /// A file of a known format without records.
    #[error("it contains no records (read as {format})")]
    NoRecords {
        /// The format that the file was read as.
        format: Format,
    },
    /// A reader that was stopped cannot continue; another one resumes at its last checkpoint. The file is not refused.
    #[error("reading was stopped before its end")]
    Stopped,
}

impl Error {
    /// Returns `true` if the file is not a reference file. Archives may contain such files in addition to reference
    /// files.
    #[must_use]
    pub fn is_of_another_kind(&self) -> bool {
        match self {
            Self::Empty
            | Self::UnsupportedFormat { .. }
            | Self::UnknownFormat { .. }
            | Self::Untitled { .. }
            | Self::NoRecords { .. } => true,
            Self::Binary { .. } => !self.is_packed(),
            Self::TooLarge { .. }
            | Self::TooManyRecords { .. }
            | Self::Doctype { .. }
            | Self::RecordTooLarge { .. }
            | Self::JoinedEncodings
            | Self::MalformedXml { .. }
            | Self::UntitledRecords { .. }
            | Self::Stopped => false,
        }
    }

    /// Returns `true` if the file may contain reference files.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        const PACKED: [&str; 6] = ["archive", "gzip", "bzip2", "xz file", "Zstandard", "Excel workbook"];
        matches!(self, Self::Binary { what } if PACKED.iter().any(|kind| what.contains(kind)))
    }
}

/// The formats that most databases export.
const EXPECTED: &str = "RIS, PubMed .nbib or XML, EndNote XML, Web of Science .ciw, BibTeX, CSV or TSV";

/// The advice how to obtain a file that can be read.
struct OtherExport(&'static str);

impl fmt::Display for OtherExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = match self.0 {
            name if name.contains("HTML") => {
                "if a database exported a table under this name, open it in a spreadsheet and save it as .xlsx"
            }
            name if name.contains("Zotero") => "export RIS or BibTeX from Zotero",
            name if name.contains("MODS") => {
                "remove the prefix \"mods:\" of its elements, or export RIS or BibTeX"
            }
            "RDF" | "an Atom feed" | "XML of OAI-PMH" => "export RIS or BibTeX",
            "MARC XML" => "export MODS XML, RIS or BibTeX from the catalogue",
            "XML of PubMed's summaries" => "export nbib or PubMed XML from PubMed",
            "XML of EndNote 7 or earlier" => "export XML with a later version of EndNote, or RIS",
            "a review of RevMan" => "export the references of its studies as RIS from RevMan",
            "text of EBSCOhost or APA PsycNet" => "export RIS from the same page",
            "the history of searches in PubMed" => "send the results to Citation manager (.nbib)",
            "a list of numbers, such as PMIDs" => {
                "export the records, from PubMed as Citation manager (.nbib)"
            }
            "a formatted list of references" => "export RIS or BibTeX from the program that wrote it",
            "YAML of a citation processor" => "save it as CSL-JSON, or export RIS or BibTeX",
            "XML of eLIBRARY.RU" => "export BibTeX or a table (Excel or CSV) from eLIBRARY.RU",
            "XML of RefWorks" => "export RIS or the RefWorks Tagged Format from RefWorks",
            "XML of Word's list of sources" => {
                "export RIS from the program that the sources come from, or save them as BibTeX"
            }
            "text of Embase" => "export RIS or CSV from Embase",
            "text of Engineering Village" => "export RIS or CSV from Engineering Village",
            "text of Scopus" | "text of ScienceDirect" => "export RIS or BibTeX from the same page",
            name if name.contains("JSTOR") => "export RIS or BibTeX from JSTOR",
            name if name.contains("ClinicalTrials") => "export RIS, JSON or CSV from ClinicalTrials.gov",
            name if name.contains("GB/T") => "export NoteExpress or EndNote from the database",
            _ => return Ok(()),
        };
        write!(f, "; {advice}")
    }
}

/// Formats a number of bytes; exact multiples of a binary unit are displayed in that unit.
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

/// Formats a number with a comma for each thousand.
struct GroupedDigits(u64);

impl fmt::Display for GroupedDigits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_char(',')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}

/// Advice for files that contain references in an unsupported form.
struct Advice<'a>(&'a str);

impl fmt::Display for Advice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fix = |kinds: &[&str]| kinds.iter().any(|kind| self.0.contains(kind));
        if fix(&["gzip", "bzip2", "xz file", "Zstandard"]) {
            f.write_str("; decompress it and upload the file inside")
        } else if fix(&["archive"]) {
            f.write_str("; unpack it and upload the files inside")
        } else if fix(&[".xls", "spreadsheet"]) {
            f.write_str("; save it as .xlsx and upload that")
        } else if fix(&["workbook"]) {
            f.write_str("; save it as CSV and upload that")
        } else if fix(&["PDF", "Word", "image"]) {
            f.write_str("; export the references from the database or the reference manager instead")
        } else if fix(&["library"]) {
            f.write_str("; export the references from it as RIS or XML and upload that")
        } else {
            Ok(())
        }
    }
}

/// Formats the closest formats.
struct ClosestFormats<'a>(&'a [&'static str]);

impl fmt::Display for ClosestFormats<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "closest to {}; ", self.0.join(" and ")) }
    }
}

/// Formats the first columns of a table.
struct Columns<'a>(&'a [String]);

impl fmt::Display for Columns<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MAX_COLUMNS: usize = 6;
        const MAX_CHARS: usize = 30;
        for (at, column) in self.0.iter().take(MAX_COLUMNS).enumerate() {
            let name: String = column.chars().take(MAX_CHARS).collect();
            write!(f, "{}{name:?}", if at > 0 { ", " } else { "" })?;
        }
        if self.0.len() > MAX_COLUMNS { f.write_str(" …") } else { Ok(()) }
    }
}

/// Formats the probable type of the document, if it is known.
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
    fn messages_complete_a_sentence_about_a_file() {
        let said = |error: Error| error.to_string();
        assert_eq!(said(Error::Empty), "the file is empty");
        for (what, message) in [
            (
                "a gzip file",
                "it is a gzip file, not a reference file; decompress it and upload the file inside",
            ),
            (
                "a ZIP archive",
                "it is a ZIP archive, not a reference file; unpack it and upload the files inside",
            ),
            (
                "an Excel workbook",
                "it is an Excel workbook, not a reference file; save it as CSV and upload that",
            ),
            (
                "an EndNote library (.enl)",
                "it is an EndNote library (.enl), not a reference file; export the references from it as RIS or XML and \
                 upload that",
            ),
            ("binary data", "it is binary data, not a reference file"),
        ] {
            assert_eq!(said(Error::Binary { what }), message);
        }
        assert_eq!(said(Error::TooLarge { limit: 1 << 30 }), "the file is larger than the limit of 1 GiB");
        for (limit, shown) in [(2_000_000, "2,000,000"), (999, "999"), (1_000, "1,000")] {
            let message = format!("the file has more than {shown} records, the limit");
            assert_eq!(said(Error::TooManyRecords { limit }), message);
        }
        assert_eq!(said(Error::NoRecords { format: Format::Ris }), "it contains no records (read as RIS)");
        assert_eq!(
            said(Error::RecordTooLarge { number: 3, line: 41, limit: 1500 }),
            "record 3 (line 41) is larger than the limit of 1500 bytes"
        );
        let columns = ["Überschrift", "b", "c", "d", "e", "f", "g"].map(str::to_owned).to_vec();
        assert_eq!(
            said(Error::Untitled { columns }),
            "the table has no column for titles; call one \"Title\" (its columns are \"Überschrift\", \"b\", \"c\", \
             \"d\", \"e\", \"f\" …)"
        );
        let unknown = |closest| said(Error::UnknownFormat { start: "Dear all,".into(), closest });
        assert_eq!(
            unknown(Vec::new()),
            format!("no known reference format: it starts with \"Dear all,\"; expected {EXPECTED}")
        );
        assert_eq!(
            unknown(vec!["RIS (no line begins a record with TY)", "CSV (no title)"]),
            format!(
                "no known reference format: it starts with \"Dear all,\"; closest to RIS (no line begins a record with \
                 TY) and CSV (no title); expected {EXPECTED}"
            )
        );
    }
}
