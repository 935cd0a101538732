//! The elements around the records of XML documents.

use crate::Format;

/// The elements of one format.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) format: Format,
    /// Elements that may contain records.
    pub(super) parents: &'static [&'static [u8]],
    pub(super) records: &'static [&'static [u8]],
    /// Elements outside of records that describe the search, and not its results.
    pub(super) about: &'static [&'static [u8]],
    /// The reason given for a record without an end tag.
    pub(super) unclosed: &'static str,
    /// `true` if the document may declare an external document type, which is skipped and never fetched.
    pub(super) doctype: bool,
    /// `true` if a record may be the whole document.
    pub(super) alone: bool,
    /// `true` if records may contain elements with the names of other records.
    pub(super) nests: bool,
}

pub(super) const ENDNOTE: Layout = Layout {
    format: Format::EndNoteXml,
    parents: &[b"records"],
    records: &[b"record"],
    about: &[],
    unclosed: "it is not closed by </record>",
    doctype: false,
    alone: false,
    nests: false,
};

pub(super) const PUBMED: Layout = Layout {
    format: Format::PubMedXml,
    parents: &[b"PubmedArticleSet", b"PubmedBookArticleSet"],
    records: &[b"PubmedArticle", b"PubmedBookArticle"],
    about: &[],
    unclosed: "its element is not closed",
    doctype: true,
    alone: true,
    nests: false,
};

/// The older document of MEDLINE, in which no article surrounds the citation.
pub(super) const MEDLINE: Layout =
    Layout { parents: &[b"MedlineCitationSet"], records: &[b"MedlineCitation"], alone: false, ..PUBMED };

pub(super) const EUROPE_PMC: Layout = Layout {
    format: Format::EuropePmcXml,
    parents: &[b"resultList"],
    records: &[b"result"],
    about: &[b"version", b"hitCount", b"nextCursorMark", b"nextPageUrl", b"request"],
    unclosed: "it is not closed by </result>",
    doctype: false,
    alone: false,
    nests: false,
};

pub(super) const ICTRP: Layout = Layout {
    format: Format::IctrpXml,
    parents: &[b"Trials_downloaded_from_ICTRP", b"trials"],
    records: &[b"Trial", b"trial"],
    about: &[],
    unclosed: "it is not closed by </Trial>",
    doctype: false,
    alone: false,
    nests: false,
};

pub(super) const ISRCTN: Layout = Layout {
    format: Format::IsrctnXml,
    parents: &[b"allTrials"],
    records: &[b"fullTrial"],
    about: &[],
    unclosed: "it is not closed by </fullTrial>",
    doctype: false,
    alone: true,
    nests: false,
};

pub(super) const EBSCO: Layout = Layout {
    format: Format::EbscoXml,
    parents: &[b"records"],
    records: &[b"rec"],
    about: &[],
    unclosed: "it is not closed by </rec>",
    doctype: false,
    alone: false,
    nests: false,
};

pub(super) const MODS: Layout = Layout {
    format: Format::ModsXml,
    parents: &[b"modsCollection"],
    records: &[b"mods"],
    about: &[],
    unclosed: "it is not closed by </mods>",
    doctype: false,
    alone: true,
    nests: false,
};

pub(super) const JATS: Layout = Layout {
    format: Format::JatsXml,
    parents: &[b"pmc-articleset", b"articles"],
    records: &[b"article"],
    about: &[],
    unclosed: "it is not closed by </article>",
    doctype: true,
    alone: true,
    nests: false,
};

pub(super) const ZOTERO: Layout = Layout {
    format: Format::ZoteroRdf,
    parents: &[b"rdf:RDF"],
    records: &[
        b"bib:Article",
        b"bib:Book",
        b"bib:BookSection",
        b"bib:ConferenceProceedings",
        b"bib:Data",
        b"bib:Document",
        b"bib:Illustration",
        b"bib:Image",
        b"bib:Interview",
        b"bib:Legislation",
        b"bib:Letter",
        b"bib:Manuscript",
        b"bib:MotionPicture",
        b"bib:Patent",
        b"bib:Recording",
        b"bib:Report",
        b"bib:Thesis",
        b"rdf:Description",
        // Journals and other works that contain the item before them.
        b"bib:Journal",
        b"bib:Periodical",
        b"bib:Newspaper",
        b"bib:CourtReporter",
        b"z:Website",
        b"z:Blog",
        b"z:Forum",
    ],
    about: &[b"z:Attachment", b"bib:Memo", b"z:Collection", b"z:UserItem"],
    unclosed: "its element is not closed",
    doctype: false,
    alone: false,
    nests: true,
};
