//! Detects the type of an XML document from its prolog and root element.

use crate::{Error, Format, split::doctype::external_length};

/// The name of HTML documents.
pub(super) const WEB_PAGE: &str = "a web page (HTML)";

/// The outermost elements of web pages. Some files contain only the inner ones.
const PAGES: [&str; 9] = ["html", "head", "body", "pre", "div", "p", "span", "table", "br"];

/// Reads the prolog up to the root element, whose name determines the format. A document type declaration before the
/// root is an error, except the external ones that PubMed and JATS files use.
pub(super) fn detect(text: &str) -> Result<Format, Error> {
    let mut rest = text;
    let (mut doctype, mut external) = (false, true);
    loop {
        rest = rest.trim_start();
        let skipped = if let Some(comment) = rest.strip_prefix("<!--") {
            after(comment, "-->")
        } else if let Some(instruction) = rest.strip_prefix("<?") {
            after(instruction, "?>")
        } else if is_doctype(rest) {
            doctype = true;
            let length = external_length(rest.as_bytes());
            external &= length.is_some();
            length.map_or_else(|| after_subset(rest), |length| rest.get(length..))
        } else {
            break;
        };
        rest = skipped.unwrap_or_default();
    }
    let root = root_name(rest);
    if PAGES.iter().any(|name| root.eq_ignore_ascii_case(name)) {
        return Err(Error::UnsupportedFormat { name: WEB_PAGE });
    }
    let pubmed = matches!(
        root,
        "PubmedArticleSet"
            | "PubmedBookArticleSet"
            | "PubmedArticle"
            | "PubmedBookArticle"
            | "MedlineCitationSet"
    );
    let jats = matches!(root, "article" | "pmc-articleset" | "articles");
    // PubMed and publishers declare an external document type, which has no effect because it is never fetched.
    if doctype && !((pubmed || jats) && external) {
        return Err(Error::Doctype { name: if pubmed { Some("PubMed XML") } else { known(root) } });
    }
    match (root, known(root)) {
        ("records", _) if is_ebsco(rest) => Ok(Format::EbscoXml),
        ("xml" | "records", _) => Ok(Format::EndNoteXml),
        ("Trials_downloaded_from_ICTRP" | "trials", _) => Ok(Format::IctrpXml),
        ("allTrials" | "fullTrial", _) => Ok(Format::IsrctnXml),
        ("modsCollection" | "mods", _) => Ok(Format::ModsXml),
        ("rdf:RDF", _) if is_zotero(rest) => Ok(Format::ZoteroRdf),
        ("responseWrapper", _) => Ok(Format::EuropePmcXml),
        _ if pubmed => Ok(Format::PubMedXml),
        _ if jats => Ok(Format::JatsXml),
        (_, Some(name)) => Err(Error::UnsupportedFormat { name }),
        (_, None) => Err(Error::UnknownFormat {
            start: super::start_of(text),
            closest: vec!["EndNote XML (its outermost element is <xml>)", "PubMed XML (<PubmedArticleSet>)"],
        }),
    }
}

pub(crate) fn is_doctype(markup: &str) -> bool {
    markup.get(..9).is_some_and(|start| start.eq_ignore_ascii_case("<!DOCTYPE"))
}

/// The text after a declaration with an internal subset in brackets.
fn after_subset(rest: &str) -> Option<&str> {
    after(after(rest, "]")?, ">")
}

fn after<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    text.find(end).map(|at| &text[at + end.len()..])
}

/// Returns `true` if the first element inside the root is a record of EBSCOhost.
fn is_ebsco(rest: &str) -> bool {
    let inner = after(rest, ">").map(str::trim_start).unwrap_or_default();
    inner.strip_prefix("<rec").is_some_and(|rest| rest.starts_with(|c: char| c.is_whitespace() || c == '>'))
}

/// Returns `true` if the root element declares the vocabulary of Zotero.
fn is_zotero(rest: &str) -> bool {
    let tag = rest.split('>').next().unwrap_or_default();
    tag.contains("zotero.org/namespaces/export") || tag.contains("purl.org/net/biblio")
}

fn root_name(rest: &str) -> &str {
    let Some(name) = rest.strip_prefix('<') else { return "" };
    name.split(|c: char| c.is_whitespace() || matches!(c, '>' | '/')).next().unwrap_or_default()
}

/// Recognizes related XML formats that are not supported.
fn known(root: &str) -> Option<&'static str> {
    match root {
        "pmc-articleset" | "article" | "articles" => Some("JATS XML"),
        "mods:modsCollection" | "mods:mods" => Some("MODS XML with a prefix"),
        "citations" => Some("JSTOR XML"),
        "clinical_study" | "search_results" => Some("ClinicalTrials.gov XML"),
        "rdf:RDF" => Some("RDF"),
        "items" => Some("XML of eLIBRARY.RU"),
        "refworks" => Some("XML of RefWorks"),
        "feed" => Some("an Atom feed"),
        "collection" | "marc:collection" | "marc:record" => Some("MARC XML"),
        "OAI-PMH" | "oai_dc:dc" => Some("XML of OAI-PMH"),
        "eSummaryResult" => Some("XML of PubMed's summaries"),
        "XML" => Some("XML of EndNote 7 or earlier"),
        "COCHRANE_REVIEW" => Some("a review of RevMan"),
        "b:Sources" | "Sources" => Some("XML of Word's list of sources"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doctype_after_comments_is_refused() {
        let text = "<?xml version=\"1.0\"?><!-- a > b --><!-- c -->\n<!DOCTYPE xml [<!ENTITY a \"b\">]><xml>";
        assert_eq!(detect(text), Err(Error::Doctype { name: None }));
    }

    #[test]
    fn doctype_inside_comment_is_ignored() {
        assert_eq!(detect("<!-- <!DOCTYPE xml> --><xml><records>"), Ok(Format::EndNoteXml));
    }

    #[test]
    fn pubmed_xml_accepts_external_doctype() {
        let text = "<!DOCTYPE PubmedArticleSet PUBLIC \"-//NLM//DTD\" \"https://example.org/a.dtd\"><PubmedArticleSet>";
        assert_eq!(detect(text), Ok(Format::PubMedXml));
        let text = "<!DOCTYPE PubmedArticleSet [<!ENTITY a \"b\">]><PubmedArticleSet>";
        assert_eq!(detect(text), Err(Error::Doctype { name: Some("PubMed XML") }));
    }

    #[test]
    fn other_documents_are_named() {
        for (text, name) in [
            ("<?xml version=\"1.0\"?><items><item id=\"1\"><linkurl>", "XML of eLIBRARY.RU"),
            ("<refworks xmlns:refworks=\"a\">", "XML of RefWorks"),
            ("<feed xmlns=\"http://www.w3.org/2005/Atom\"><entry>", "an Atom feed"),
            ("<collection xmlns=\"http://www.loc.gov/MARC21/slim\">", "MARC XML"),
            ("<XML><RECORDS><RECORD><AUTHORS>", "XML of EndNote 7 or earlier"),
            ("<COCHRANE_REVIEW TYPE=\"INTERVENTION\">", "a review of RevMan"),
            ("<b:Sources xmlns:b=\"a\">", "XML of Word's list of sources"),
        ] {
            assert_eq!(detect(text), Err(Error::UnsupportedFormat { name }));
        }
    }

    #[test]
    fn web_page_is_named_before_its_doctype() {
        let error = detect("<!doctype html><html><body>Log in").unwrap_err();
        assert_eq!(error, Error::UnsupportedFormat { name: WEB_PAGE });
        assert_eq!(detect("<pre>PMID- 1"), Err(Error::UnsupportedFormat { name: WEB_PAGE }));
    }
}
