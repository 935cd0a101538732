//! The formats that can be read.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// RIS: lines `TY  - JOUR` … `ER  -`.
    Ris,
    /// PubMed's MEDLINE display format: lines `PMID- 123`.
    Nbib,
    /// EndNote XML: `<xml><records><record>…`.
    #[serde(rename = "endnote_xml")]
    EndNoteXml,
    /// PubMed's own XML: `<PubmedArticleSet><PubmedArticle>…`.
    #[serde(rename = "pubmed_xml")]
    PubMedXml,
    /// BibTeX: entries `@article{key, title = {…}, …}`.
    #[serde(rename = "bibtex")]
    BibTex,
    /// Web of Science plain text (`.ciw`): lines `PT J` … `ER`.
    WebOfScience,
    /// A table with a header row.
    Csv {
        /// The separator of its cells.
        delimiter: Delimiter,
    },
}

/// The separator of the cells of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delimiter {
    /// A comma.
    Comma,
    /// `;`, as spreadsheets write in countries with a decimal comma.
    Semicolon,
    /// A tab.
    Tab,
}

impl Delimiter {
    /// All delimiters, the likeliest first.
    pub const ALL: [Self; 3] = [Self::Comma, Self::Semicolon, Self::Tab];

    /// The byte that separates cells.
    #[must_use]
    pub fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ris => "RIS",
            Self::Nbib => "PubMed nbib",
            Self::EndNoteXml => "EndNote XML",
            Self::PubMedXml => "PubMed XML",
            Self::BibTex => "BibTeX",
            Self::WebOfScience => "Web of Science plain text",
            Self::Csv { delimiter: Delimiter::Comma } => "CSV",
            Self::Csv { delimiter: Delimiter::Semicolon } => "CSV (semicolon)",
            Self::Csv { delimiter: Delimiter::Tab } => "TSV",
        })
    }
}
