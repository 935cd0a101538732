//! The formats that can be written.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A format that can be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// JSON Lines: one object per study.
    #[default]
    Jsonl,
    /// RIS, for reference managers and tools for screening.
    Ris,
    /// EndNote XML.
    EndnoteXml,
    /// A table according to RFC 4180, in UTF-8.
    Csv,
    /// A table with the columns of Rayyan.
    Rayyan,
    /// A table with the columns of ASReview.
    Asreview,
    /// A workbook of Excel.
    Xlsx,
    /// BibTeX.
    Bibtex,
    /// PubMed's MEDLINE display format.
    Nbib,
    /// CSL-JSON, for citation processors.
    CslJson,
}

/// The error for an unknown format name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the format is one of jsonl, ris, endnote-xml, csv, rayyan, asreview, xlsx, bibtex, nbib and csl-json"
)]
pub struct UnknownFormat;

impl Format {
    /// All formats.
    pub const ALL: [Self; 10] = [
        Self::Jsonl,
        Self::Ris,
        Self::EndnoteXml,
        Self::Csv,
        Self::Rayyan,
        Self::Asreview,
        Self::Xlsx,
        Self::Bibtex,
        Self::Nbib,
        Self::CslJson,
    ];

    /// The name by which users and the API select the format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Ris => "ris",
            Self::EndnoteXml => "endnote-xml",
            Self::Csv => "csv",
            Self::Rayyan => "rayyan",
            Self::Asreview => "asreview",
            Self::Xlsx => "xlsx",
            Self::Bibtex => "bibtex",
            Self::Nbib => "nbib",
            Self::CslJson => "csl-json",
        }
    }

    /// The file name extension, unique to each format.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Ris => "ris",
            Self::EndnoteXml => "xml",
            Self::Csv => "csv",
            Self::Rayyan => "rayyan.csv",
            Self::Asreview => "asreview.csv",
            Self::Xlsx => "xlsx",
            Self::Bibtex => "bib",
            Self::Nbib => "nbib",
            Self::CslJson => "csl.json",
        }
    }

    /// Returns `true` for tables whose cells are written unchanged although a spreadsheet would evaluate them: they are
    /// meant for programs that never do.
    pub const fn is_unguarded(self) -> bool {
        match self {
            Self::Rayyan | Self::Asreview => true,
            Self::Jsonl
            | Self::Ris
            | Self::EndnoteXml
            | Self::Csv
            | Self::Xlsx
            | Self::Bibtex
            | Self::Nbib
            | Self::CslJson => false,
        }
    }

    /// The media type, as registered with IANA or as documented by the format's authors.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Jsonl => "application/jsonl",
            Self::Ris => "application/x-research-info-systems",
            Self::EndnoteXml => "application/xml",
            Self::Csv | Self::Rayyan | Self::Asreview => "text/csv; charset=utf-8; header=present",
            Self::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            Self::Bibtex => "application/x-bibtex; charset=utf-8",
            Self::Nbib => "application/nbib",
            Self::CslJson => "application/vnd.citationstyles.csl+json",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or(UnknownFormat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are stored in messages, and file endings in object keys.
    #[test]
    fn format_names_and_endings_are_unique() {
        for (at, format) in Format::ALL.into_iter().enumerate() {
            assert_eq!(format.name().parse(), Ok(format));
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
            let others = &Format::ALL[at + 1..];
            assert!(others.iter().all(|other| other.ending() != format.ending()), "{format}");
        }
        assert_eq!("JSONL".parse::<Format>(), Err(UnknownFormat));
        let listed = UnknownFormat.to_string();
        assert!(Format::ALL.iter().all(|format| listed.contains(format.name())));
    }
}
