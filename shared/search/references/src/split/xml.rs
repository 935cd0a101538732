//! Splits XML documents: the `<record>` elements of EndNote XML, the articles of PubMed XML and JATS, and the results
//! of Europe PMC.
//!
//! Such a file is often a single line of many megabytes, so it is scanned from `<` to `<` with `memchr`. Comments,
//! CDATA sections and processing instructions are skipped completely. Inside a record only its own end tag counts: a
//! record whose inner elements do not match is one bad record, and does not end the file. Outside of records the
//! elements must match, and the document must be closed at its end: a truncated document has lost an unknown number of
//! records. The declaration of another document ends the one before it, which was cut off.

use memchr::{memchr, memmem};

use super::{
    PartKind, Splitter, Step,
    cut_off::CUT_OFF,
    doctype::{Doctype, doctype},
    layout::{EBSCO, ENDNOTE, EUROPE_PMC, ICTRP, ISRCTN, JATS, Layout, MEDLINE, MODS, PUBMED, ZOTERO},
    lines::trimmed_end,
    markup::{CDATA_END, Markup, markup},
    starts::{self, LOOKAHEAD},
};
use crate::{Format, detect::UNKNOWN_DOCTYPE};

/// The maximum number of elements around the records. EndNote has two, `xml` and `records`; PubMed has one.
const MAX_DEPTH: usize = 16;

const CUT_SHORT: &str = "the file ends before the document does; it may have been cut short";

/// Splits XML files.
#[derive(Debug)]
pub(crate) struct Xml {
    layout: &'static Layout,
    limit: usize,
    at: usize,
    /// `true` if an element around the records was closed.
    closed: bool,
    /// Names of the open elements around the records.
    around: Vec<Vec<u8>>,
    /// The beginning and name of the open record.
    record: Option<(usize, &'static [u8])>,
    /// The end of the comment, CDATA section or instruction that is being skipped.
    until: Option<&'static [u8]>,
    /// The document that begins at the front, because this one was cut off.
    next: Option<PartKind>,
}

impl Xml {
    pub(crate) fn endnote(limit: usize) -> Self {
        Self::new(&ENDNOTE, limit)
    }

    pub(crate) fn pubmed(limit: usize) -> Self {
        Self::new(&PUBMED, limit)
    }

    pub(crate) fn europe_pmc(limit: usize) -> Self {
        Self::new(&EUROPE_PMC, limit)
    }

    pub(crate) fn ictrp(limit: usize) -> Self {
        Self::new(&ICTRP, limit)
    }

    pub(crate) fn isrctn(limit: usize) -> Self {
        Self::new(&ISRCTN, limit)
    }

    pub(crate) fn ebsco(limit: usize) -> Self {
        Self::new(&EBSCO, limit)
    }

    pub(crate) fn mods(limit: usize) -> Self {
        Self::new(&MODS, limit)
    }

    pub(super) fn zotero(limit: usize) -> Self {
        Self::new(&ZOTERO, limit)
    }

    pub(crate) fn jats(limit: usize) -> Self {
        Self::new(&JATS, limit)
    }

    fn new(layout: &'static Layout, limit: usize) -> Self {
        Self {
            layout,
            limit,
            at: 0,
            closed: false,
            around: Vec::new(),
            record: None,
            until: None,
            next: None,
        }
    }

    /// Returns `true` inside of the outermost element.
    fn is_open(&self) -> bool {
        self.record.is_some() || self.until.is_some() || !self.around.is_empty()
    }

    /// Completes the record `start..end`; the text after it begins at `consumed`.
    fn found(
        &mut self,
        record: std::ops::Range<usize>,
        consumed: usize,
        fault: Option<&'static str>,
    ) -> Step {
        self.record = None;
        self.at = 0;
        self.closed = true;
        if record.len() > self.limit {
            return Step::TooLarge { start: record.start };
        }
        Step::Found { record, consumed, fault }
    }

    /// Handles a tail in which nothing more can be found.
    fn rest(&mut self, tail: &[u8], end: bool) -> Step {
        match self.record {
            Some((start, _)) if tail.len() - start > self.limit => Step::TooLarge { start },
            // Another file may begin in such text, so its whole lines are needed.
            None if !end && self.at <= self.limit && self.is_stray(&tail[..self.at]) => Step::More,
            None if self.at > 0 => self.text(tail),
            _ if end && self.is_open() => Step::Malformed { at: tail.len(), what: CUT_SHORT },
            _ => Step::More,
        }
    }

    /// Completes text outside of records, up to the maximum size of a record. The description of the search by the service
    /// is part of its format.
    fn text(&mut self, tail: &[u8]) -> Step {
        let text = &tail[..self.at];
        let blank = text.len() - text.trim_ascii_start().len();
        // The text that waits begins at its first word, whatever has been consumed before it.
        let consumed = if blank > 0 { blank } else { self.at.min(self.limit) };
        self.at -= consumed;
        if self.is_about() { Step::Pass { consumed } } else { Step::Skip { consumed } }
    }

    /// Returns `true` inside of the description of the search.
    fn is_about(&self) -> bool {
        self.around.iter().any(|name| self.layout.about.contains(&name.as_slice()))
    }

    /// Returns `true` for text between records that does not belong to the format.
    fn is_stray(&self, text: &[u8]) -> bool {
        !self.around.is_empty()
            && !self.is_about()
            && text.first().is_some_and(|byte| !byte.is_ascii_whitespace())
    }

    /// Ends this document before the beginning of another one: its declaration, or its outermost element. Returns `None` if
    /// none begins here, or if it has the same format and its beginning is not `sure`.
    fn other_document(&mut self, tail: &[u8], end: bool, sure: bool) -> Option<Step> {
        let rest = &tail[self.at..];
        if rest.len() < LOOKAHEAD && !end {
            return Some(Step::More);
        }
        let is_known = |kind: &PartKind| match kind {
            PartKind::Read(format) => sure || *format != self.layout.format,
            PartKind::Unread(reason) => *reason != UNKNOWN_DOCTYPE,
        };
        let kind = starts::document(rest).filter(is_known)?;
        self.around.clear();
        self.closed = true;
        let Some((start, _)) = self.record else {
            return Some(Step::Part { kind, consumed: self.at, is_cut: true });
        };
        self.next = Some(kind);
        let (at, whole) = (self.at, start..self.at);
        let stop = trimmed_end(tail, &whole).unwrap_or(at);
        Some(self.found(start..stop, at, Some(CUT_OFF)))
    }

    /// Completes the markup outside of records at the front.
    fn pass(&mut self, length: usize) -> Option<Step> {
        self.at = 0;
        Some(Step::Pass { consumed: length })
    }

    fn start_tag(&mut self, tail: &[u8], tag: StartTag<'_>, end: bool) -> Option<Step> {
        let StartTag { name, length, empty } = tag;
        let at = self.at;
        let is_repeated = self.around.iter().any(|open| open == name);
        if !self.around.is_empty()
            && (self.record.is_none() || is_repeated)
            && starts::is_root(name)
            && self.record_named(name).is_none()
            && let Some(step) = self.other_document(tail, end, self.around[0] == name)
        {
            return Some(step);
        }
        self.at += length;
        if let Some(record) = self.record_named(name) {
            if let Some((start, open)) = self.record {
                if self.layout.nests && open != record {
                    return None;
                }
                let end = trimmed_end(tail, &(start..at)).unwrap_or(at);
                return Some(self.found(start..end, at, Some(self.layout.unclosed)));
            }
            if empty {
                return Some(self.found(at..at + length, at + length, None));
            }
            self.record = Some((at, record));
        } else if self.record.is_none() {
            if !empty && self.around.len() == MAX_DEPTH {
                return Some(Step::Malformed { at, what: "elements are nested too deeply" });
            }
            if !empty {
                self.around.push(name.to_vec());
                self.adapt_layout();
            }
            return self.pass(length);
        }
        None
    }

    /// A fast path for tags inside a record that cannot end the record, as is true for nearly all tags. The first
    /// letter of such a tag differs from the first letters of records and of elements around the records. A tag cannot
    /// contain `<`, so its end does not matter.
    fn is_inner(&self, tail: &[u8]) -> bool {
        let (&[_, b'/', first, ..] | &[_, first, ..]) = tail else { return false };
        let is_of = |name: &[u8]| name.first() == Some(&first);
        self.record.is_some()
            && first.is_ascii_alphabetic()
            && !self.layout.records.iter().any(|name| is_of(name))
            && !self.around.iter().any(|name| is_of(name))
    }

    /// The name of the record, if an element at this position is one.
    fn record_named(&self, name: &[u8]) -> Option<&'static [u8]> {
        let inside = match self.around.last() {
            Some(parent) => self.layout.parents.contains(&parent.as_slice()),
            None => self.layout.alone,
        };
        self.layout.records.iter().copied().find(|record| inside && *record == name)
    }

    /// Selects the layout of the outermost element. Documents of PubMed have two.
    fn adapt_layout(&mut self) {
        if self.layout.format == Format::PubMedXml
            && let Some(root) = self.around.first()
        {
            self.layout = if MEDLINE.parents.contains(&root.as_slice()) { &MEDLINE } else { &PUBMED };
        }
    }

    /// Skips the declaration of an external document type before the document's root, and refuses every other
    /// declaration.
    fn doctype(&mut self, tail: &[u8], end: bool) -> Option<Step> {
        if self.is_open() {
            return Some(self.other_document(tail, end, true).unwrap_or(Step::Doctype));
        }
        if !self.layout.doctype {
            return Some(Step::Doctype);
        }
        match doctype(&tail[self.at..]) {
            Doctype::External(length) => self.pass(length),
            Doctype::Incomplete if !end => Some(self.rest(tail, end)),
            Doctype::Incomplete | Doctype::Refused => Some(Step::Doctype),
        }
    }

    fn end_tag(&mut self, tail: &[u8], name: &[u8], length: usize) -> Option<Step> {
        let at = self.at;
        if let Some((start, record)) = self.record {
            if name == record {
                return Some(self.found(start..at + length, at + length, None));
            }
            if self.around.iter().any(|around| around == name) {
                let end = trimmed_end(tail, &(start..at)).unwrap_or(at);
                return Some(self.found(start..end, at, Some(self.layout.unclosed)));
            }
        } else if self.around.pop().is_none_or(|open| open != name) {
            return Some(Step::Malformed { at, what: "an end tag matches no open element" });
        } else {
            self.closed = true;
            return self.pass(length);
        }
        self.at += length;
        None
    }

    /// Skips the section that `until` ends.
    fn section(&mut self, tail: &[u8], until: &'static [u8], end: bool) -> Option<Step> {
        let Some(found) = memmem::find(&tail[self.at..], until) else {
            // The end marker may have arrived partially.
            let mut searched = (tail.len() + 1).saturating_sub(until.len());
            // Positions in UTF-16 count whole characters, which have up to four bytes here.
            for _ in 0..3 {
                if searched > 0 && tail.get(searched).is_some_and(|byte| matches!(byte, 0x80..=0xBF)) {
                    searched -= 1;
                }
            }
            self.at = self.at.max(searched);
            return Some(match self.record {
                None if self.at > 0 => self.inner(tail, until),
                _ => self.rest(tail, end),
            });
        };
        self.at += found;
        if self.record.is_none() && found > 0 {
            return Some(self.inner(tail, until));
        }
        self.until = None;
        if self.record.is_none() {
            return self.pass(until.len());
        }
        self.at += until.len();
        None
    }

    /// Completes the content of a section outside of records. The text of a CDATA section counts like any other text.
    fn inner(&mut self, tail: &[u8], until: &'static [u8]) -> Step {
        if until == CDATA_END {
            self.text(tail)
        } else {
            Step::Pass { consumed: std::mem::take(&mut self.at) }
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct StartTag<'a> {
    name: &'a [u8],
    length: usize,
    empty: bool,
}

/// Returns `true` for an XML declaration, or for its beginning if the rest has not arrived.
fn is_declaration(text: &[u8]) -> bool {
    const DECLARATION: &[u8] = b"<?xml ";
    text.starts_with(DECLARATION) || DECLARATION.starts_with(text)
}

impl Splitter for Xml {
    /// A comment between two records is passed in pieces, so a reader cannot resume at its front.
    fn saved_state(&self) -> Option<Vec<Vec<u8>>> {
        let is_between = self.next.is_none() && (self.record.is_some() || self.until.is_none());
        is_between.then(|| {
            let mut state = self.around.clone();
            state.extend(self.closed.then(Vec::new));
            state
        })
    }

    fn restore_state(&mut self, mut carried: Vec<Vec<u8>>) {
        // No element has an empty name.
        self.closed = carried.pop_if(|last| last.is_empty()).is_some();
        self.around = carried;
        self.adapt_layout();
    }

    fn may_end(&mut self, _: &[u8]) -> bool {
        self.may_be_followed()
    }

    fn may_be_followed(&self) -> bool {
        self.closed && self.around.is_empty() && self.record.is_none() && self.until.is_none()
    }

    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        if let Some(kind) = self.next.take() {
            return Step::Part { kind, consumed: 0, is_cut: false };
        }
        loop {
            if let Some(until) = self.until {
                match self.section(tail, until, end) {
                    Some(step) => return step,
                    None => continue,
                }
            }
            let Some(found) = memchr(b'<', &tail[self.at..]) else {
                self.at = tail.len();
                return self.rest(tail, end);
            };
            self.at += found;
            if self.is_inner(&tail[self.at..]) {
                self.at += 1;
                continue;
            }
            let step = match markup(&tail[self.at..]) {
                // Text before markup is completed first, so that the list of open elements describes the front.
                found if self.record.is_none() && self.at > 0 && found != Markup::Text => {
                    Some(self.text(tail))
                }
                Markup::Incomplete if end && !self.is_open() => {
                    self.at = tail.len();
                    Some(self.rest(tail, end))
                }
                Markup::Incomplete => Some(self.rest(tail, end)),
                Markup::Doctype => self.doctype(tail, end),
                Markup::Text => {
                    self.at += 1;
                    None
                }
                Markup::Section(opening, until) => {
                    if self.is_open()
                        && is_declaration(&tail[self.at..])
                        && let Some(step) = self.other_document(tail, end, true)
                    {
                        return step;
                    }
                    self.until = Some(until);
                    if self.record.is_none() {
                        return Step::Pass { consumed: opening };
                    }
                    self.at += opening;
                    None
                }
                Markup::Start { name, length, empty } => {
                    self.start_tag(tail, StartTag { name, length, empty }, end)
                }
                Markup::End { name, length } => self.end_tag(tail, name, length),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn closing(&self) -> Vec<u8> {
        self.around.iter().rev().flat_map(|name| [b"</".as_slice(), name, b">"].concat()).collect()
    }
}

#[cfg(test)]
mod tests;
