//! The supported formats.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A supported format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// RIS: lines `TY  - JOUR` … `ER  -`.
    Ris,
    /// RIS with other blanks and dashes: lines `TY-JOUR` or `TY: JOUR`.
    LooseRis,
    /// PubMed's MEDLINE display format: lines `PMID- 123`.
    Nbib,
    /// EndNote XML: `<xml><records><record>…`.
    #[serde(rename = "endnote_xml")]
    EndNoteXml,
    /// PubMed's XML: `<PubmedArticleSet><PubmedArticle>…`.
    #[serde(rename = "pubmed_xml")]
    PubMedXml,
    /// BibTeX: entries `@article{key, title = {…}, …}`.
    #[serde(rename = "bibtex")]
    BibTex,
    /// Web of Science plain text (`.ciw`): lines `PT J` … `ER`.
    WebOfScience,
    /// A table with a header row.
    Csv {
        /// The separator between cells.
        delimiter: Delimiter,
    },
    /// A table with one row per field and a blank row after each record, as exported by Embase.
    FieldRows,
    /// EndNote's tagged format (`.enw`), also known as refer: lines `%0 Journal Article`.
    Refer,
    /// EndNote's text with spelled-out names: lines `Reference Type:  Journal Article`.
    #[serde(rename = "endnote_text")]
    EndNoteText,
    /// The tagged format of RefWorks: lines `RT Journal Article`.
    #[serde(rename = "refworks")]
    RefWorks,
    /// Ovid's text: records `<1>`, and field names on separate lines.
    Ovid,
    /// Cochrane's text: records `Record #1 of 20`, and lines `TI: …`.
    Cochrane,
    /// ProQuest's text: records `Document 1 of 20`, and paragraphs `Author: …`.
    #[serde(rename = "proquest")]
    ProQuest,
    /// Text of Engineering Village: records `<RECORD 1>`, and lines `Accession number:…`.
    EngineeringVillage,
    /// PubMed's summaries or abstracts as text: records `1: …` or `1. …`.
    #[serde(rename = "pubmed_text")]
    PubMedText,
    /// CSL-JSON: objects with `"title"` and `"type"`.
    CslJson,
    /// JSON of databases and other programs: OpenAlex, Crossref, Semantic Scholar, Europe PMC and others.
    Json,
    /// The format of NoteExpress, which Chinese databases export: lines `{Title}: …`.
    #[serde(rename = "noteexpress")]
    NoteExpress,
    /// Texts of CNKI: lines `Title-题名: …`.
    CnkiText,
    /// The XML of the WHO's trial register portal: `<Trials_downloaded_from_ICTRP><Trial>…`.
    IctrpXml,
    /// The XML of the ISRCTN registry: `<allTrials><fullTrial>…`.
    IsrctnXml,
    /// Texts of the EU Clinical Trials Register: lines `EudraCT Number: …`.
    EuCtrText,
    /// EBSCOhost's XML: `<records><rec>…`.
    EbscoXml,
    /// EBSCOhost's tagged lines for other programs: `TI- …`.
    EbscoTagged,
    /// MODS, the XML of catalogues and reference managers: `<modsCollection><mods>…`.
    ModsXml,
    /// RDF of Zotero: `<rdf:RDF><bib:Article>…`.
    ZoteroRdf,
    /// Europe PMC's XML: `<responseWrapper><resultList><result>…`.
    EuropePmcXml,
    /// JATS, the XML format of PubMed Central and publishers: `<article>…`.
    #[serde(rename = "jats_xml")]
    JatsXml,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 33] = [
        Self::Ris,
        Self::LooseRis,
        Self::Nbib,
        Self::EndNoteXml,
        Self::PubMedXml,
        Self::BibTex,
        Self::WebOfScience,
        Self::Csv { delimiter: Delimiter::Comma },
        Self::Csv { delimiter: Delimiter::Semicolon },
        Self::Csv { delimiter: Delimiter::Tab },
        Self::Csv { delimiter: Delimiter::Bar },
        Self::FieldRows,
        Self::Refer,
        Self::EndNoteText,
        Self::RefWorks,
        Self::Ovid,
        Self::Cochrane,
        Self::ProQuest,
        Self::EngineeringVillage,
        Self::PubMedText,
        Self::CslJson,
        Self::Json,
        Self::NoteExpress,
        Self::CnkiText,
        Self::IctrpXml,
        Self::IsrctnXml,
        Self::EuCtrText,
        Self::EbscoXml,
        Self::EbscoTagged,
        Self::ModsXml,
        Self::ZoteroRdf,
        Self::EuropePmcXml,
        Self::JatsXml,
    ];

    /// Returns `true` for a format of XML documents.
    pub(crate) fn is_xml(self) -> bool {
        matches!(
            self,
            Self::EndNoteXml
                | Self::PubMedXml
                | Self::EuropePmcXml
                | Self::JatsXml
                | Self::IctrpXml
                | Self::IsrctnXml
                | Self::EbscoXml
                | Self::ModsXml
                | Self::ZoteroRdf
        )
    }
}

/// The separator between the cells of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delimiter {
    /// A comma.
    Comma,
    /// `;`, which spreadsheets use in countries with a decimal comma.
    Semicolon,
    /// A tab.
    Tab,
    /// A vertical bar, which registers of trials use.
    Bar,
}

impl Delimiter {
    /// All delimiters, the most common first.
    pub const ALL: [Self; 4] = [Self::Comma, Self::Semicolon, Self::Tab, Self::Bar];

    /// The byte that separates cells.
    #[must_use]
    pub fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
            Self::Bar => b'|',
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ris => "RIS",
            Self::LooseRis => "RIS (other dashes)",
            Self::Nbib => "PubMed nbib",
            Self::EndNoteXml => "EndNote XML",
            Self::PubMedXml => "PubMed XML",
            Self::BibTex => "BibTeX",
            Self::WebOfScience => "Web of Science plain text",
            Self::Csv { delimiter: Delimiter::Comma } => "CSV",
            Self::Csv { delimiter: Delimiter::Semicolon } => "CSV (semicolon)",
            Self::Csv { delimiter: Delimiter::Tab } => "TSV",
            Self::Csv { delimiter: Delimiter::Bar } => "CSV (vertical bar)",
            Self::FieldRows => "CSV (a row for each field)",
            Self::Refer => "EndNote tagged",
            Self::EndNoteText => "EndNote text",
            Self::RefWorks => "RefWorks tagged",
            Self::Ovid => "Ovid text",
            Self::Cochrane => "Cochrane text",
            Self::ProQuest => "ProQuest text",
            Self::EngineeringVillage => "Engineering Village text",
            Self::PubMedText => "PubMed text",
            Self::CslJson => "CSL-JSON",
            Self::Json => "JSON of a database",
            Self::NoteExpress => "NoteExpress",
            Self::CnkiText => "CNKI text",
            Self::IctrpXml => "WHO ICTRP XML",
            Self::IsrctnXml => "ISRCTN XML",
            Self::EuCtrText => "EU Clinical Trials Register text",
            Self::EbscoXml => "EBSCO XML",
            Self::EbscoTagged => "EBSCO tagged",
            Self::ModsXml => "MODS XML",
            Self::ZoteroRdf => "Zotero RDF",
            Self::EuropePmcXml => "Europe PMC XML",
            Self::JatsXml => "JATS XML",
        })
    }
}
