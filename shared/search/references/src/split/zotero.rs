//! Splits RDF of Zotero into its items.
//!
//! The journal of an article is an element of its own after the article if it has an ISSN, and holds the volume, the
//! issue and the DOI. Such an element belongs to the record of the item before it.

use std::ops::Range;

use super::{Splitter, Step, xml::Xml};

/// The elements of journals and other works that contain items.
const CONTAINERS: [&[u8]; 8] = [
    b"bib:Journal",
    b"bib:Periodical",
    b"bib:Newspaper",
    b"bib:Book",
    b"bib:CourtReporter",
    b"z:Website",
    b"z:Blog",
    b"z:Forum",
];

/// Splits RDF of Zotero.
#[derive(Debug)]
pub(crate) struct Zotero {
    elements: Xml,
    limit: usize,
    /// The number of bytes at the front that the elements have consumed.
    at: usize,
    /// An item whose journal may follow.
    open: Option<Range<usize>>,
    /// The step after the item at the front, which is returned first.
    held: Option<Step>,
}

impl Zotero {
    pub(crate) fn new(limit: usize) -> Self {
        Self { elements: Xml::zotero(limit), limit, at: 0, open: None, held: None }
    }

    fn found(&mut self, record: Range<usize>) -> Step {
        let consumed = std::mem::take(&mut self.at);
        self.open = None;
        if record.len() > self.limit {
            return Step::TooLarge { start: record.start };
        }
        Step::Found { record, consumed, fault: None }
    }
}

/// Returns `true` for an element that contains an item, with the ISSN as its identifier.
fn is_container(element: &[u8]) -> bool {
    let tag = &element[..memchr::memchr(b'>', element).unwrap_or(element.len())];
    let name = tag.get(1..).unwrap_or_default();
    let end = name.iter().position(u8::is_ascii_whitespace).unwrap_or(name.len());
    CONTAINERS.contains(&&name[..end]) && memchr::memmem::find(tag, b"urn:issn:").is_some()
}

impl Splitter for Zotero {
    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        if self.open.is_none()
            && let Some(step) = self.held.take()
        {
            return step;
        }
        loop {
            let rest = &tail[self.at..];
            let step = self.elements.step(rest, end);
            match (step, self.open.clone()) {
                (Step::Found { record, consumed, fault: None }, None) => {
                    if is_container(&rest[record.clone()]) {
                        return Step::Pass { consumed };
                    }
                    self.open = Some(record);
                    self.at = consumed;
                }
                (Step::Found { record, consumed, fault: None }, Some(open))
                    if is_container(&rest[record.clone()]) =>
                {
                    let record = open.start..self.at + record.end;
                    self.at += consumed;
                    return self.found(record);
                }
                (Step::Pass { consumed } | Step::Skip { consumed }, Some(_))
                    if rest[..consumed].iter().all(u8::is_ascii_whitespace) =>
                {
                    self.at += consumed;
                }
                (Step::More, Some(open)) if end => return self.found(open),
                (Step::More, Some(_)) => return Step::More,
                (step, Some(open)) => {
                    self.held = Some(step);
                    return self.found(open);
                }
                (step, None) => return step,
            }
        }
    }

    fn saved_state(&self) -> Option<Vec<Vec<u8>>> {
        if self.held.is_some() { None } else { self.elements.saved_state() }
    }

    fn restore_state(&mut self, state: Vec<Vec<u8>>) {
        self.elements.restore_state(state);
    }

    fn may_end(&mut self, _: &[u8]) -> bool {
        self.may_be_followed()
    }

    fn may_be_followed(&self) -> bool {
        self.open.is_none() && self.held.is_none() && self.elements.may_be_followed()
    }

    fn closing(&self) -> Vec<u8> {
        b"</rdf:RDF>".to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    const ARTICLE: &str = "<bib:Article rdf:about=\"#1\"><dc:title>a</dc:title></bib:Article>";
    const JOURNAL: &str = "<bib:Journal rdf:about=\"urn:issn:1\"><dc:title>b</dc:title></bib:Journal>";

    fn records(inner: &str) -> Vec<String> {
        cut(&mut Zotero::new(1000), &format!("<rdf:RDF xmlns:z=\"a\">\n{inner}\n</rdf:RDF>"))
    }

    #[test]
    fn journal_belongs_to_preceding_article() {
        let both = format!("{ARTICLE}\n  {JOURNAL}");
        assert_eq!(records(&format!("{both}\n{ARTICLE}{ARTICLE}")), [both.as_str(), ARTICLE, ARTICLE]);
        assert_eq!(records(JOURNAL), [""; 0]);
    }

    #[test]
    fn books_are_items_and_parts_of_chapters() {
        let book = "<bib:Book rdf:about=\"urn:isbn:1\"><dc:title>a</dc:title></bib:Book>";
        let chapter = format!("<bib:BookSection>{book}</bib:BookSection>");
        assert_eq!(records(&format!("{chapter}{book}")), [&chapter, book]);
    }

    #[test]
    fn notes_and_attachments_are_not_records() {
        let others = "<z:Attachment><dc:title>PDF</dc:title></z:Attachment><bib:Memo><rdf:value>a</rdf:value></bib:Memo>";
        assert_eq!(records(&format!("{ARTICLE}{others}{ARTICLE}")), [ARTICLE, ARTICLE]);
    }
}
