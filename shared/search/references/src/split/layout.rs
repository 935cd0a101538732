//! Which elements of XML documents are records.

/// The elements of one format.
#[derive(Debug)]
pub(super) struct Layout {
    /// The elements that may be around the records.
    pub(super) parents: &'static [&'static [u8]],
    pub(super) records: &'static [&'static [u8]],
    /// Elements outside of records that say something of the search and nothing of its results.
    pub(super) about: &'static [&'static [u8]],
    /// The reason given for a record without its end tag.
    pub(super) unclosed: &'static str,
    /// Whether the document may name an external document type, which is stepped over and never fetched.
    pub(super) doctype: bool,
    /// Whether a record may be the whole document.
    pub(super) alone: bool,
}

pub(super) const ENDNOTE: Layout = Layout {
    parents: &[b"records"],
    records: &[b"record"],
    about: &[],
    unclosed: "it is not closed by </record>",
    doctype: false,
    alone: false,
};

pub(super) const PUBMED: Layout = Layout {
    parents: &[b"PubmedArticleSet", b"PubmedBookArticleSet"],
    records: &[b"PubmedArticle", b"PubmedBookArticle"],
    about: &[],
    unclosed: "its element is not closed",
    doctype: true,
    alone: true,
};

pub(super) const EUROPE_PMC: Layout = Layout {
    parents: &[b"resultList"],
    records: &[b"result"],
    about: &[b"version", b"hitCount", b"nextCursorMark", b"nextPageUrl", b"request"],
    unclosed: "it is not closed by </result>",
    doctype: false,
    alone: false,
};

pub(super) const JATS: Layout = Layout {
    parents: &[b"pmc-articleset", b"articles"],
    records: &[b"article"],
    about: &[],
    unclosed: "it is not closed by </article>",
    doctype: true,
    alone: true,
};
