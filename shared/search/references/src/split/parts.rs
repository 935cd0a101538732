//! Splits files that were merged from files of several formats.
//!
//! [`Parts`] passes the text to the splitter of the current format up to the next line that begins a file of another
//! format ([`starts`]). There the current record ends, unless the line is in the middle of a quoted cell, an entry or
//! an element.

use super::{
    PartKind, Splitter, Step, splitter_of,
    starts::{self, LOOKAHEAD, Start},
    unread::Unread,
};
use crate::{Format, detect::WEB_PAGE, work::spend};

/// The maximum length of a line that is searched for the beginning of a file, and the maximum number of bytes held back
/// for it.
pub(super) const MAX_LINE: usize = 64 * 1024;

/// The maximum number of documents on a line after which another format is searched for. Without this limit, each end
/// of a document would inspect the rest of the line.
const MAX_DOCUMENTS: u8 = 8;

/// The maximum number of apparent beginnings of files in a line, inside of values.
const MAX_APPARENT: u8 = 4;

/// Splits files of one or more formats.
#[derive(Debug)]
pub(crate) struct Parts {
    format: Format,
    inner: Box<dyn Splitter>,
    /// `true` if the front of the tail is in the middle of a line. The text after the outermost element of a document
    /// counts as the beginning of a line.
    cut: bool,
    /// `true` for documents, whose outermost element or list has an end.
    is_document: bool,
    /// `true` if the splitter was inside of the outermost element.
    inside: bool,
    /// The number of documents that ended in the line at the front.
    documents: u8,
    /// The beginning of the first line that has not been inspected.
    line: usize,
    /// `true` if this is the rest of a line.
    rest: bool,
    /// `true` if this line is too long to be inspected.
    long: bool,
    /// The number of apparent beginnings of files in the line.
    apparent: u8,
    /// The position up to which the end of the part has been searched for.
    searched: usize,
    /// The beginning of the next part.
    next: Option<Start>,
    /// `true` if the current part ends there.
    ending: bool,
    /// The progress in a part that is not read.
    unread: Option<Page>,
}

/// The position in a web page or another document that is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    /// Scripts may contain JSON.
    Inside,
    /// Behind the end tag of HTML, or in another document.
    Behind,
}

/// The result of inspecting a line.
enum Look {
    /// More bytes are needed.
    More,
    /// The line was inspected, and the next one begins here.
    Line(usize),
    Start(Start),
}

impl Parts {
    pub(crate) fn new(format: Format, limit: usize) -> Self {
        let inner = splitter_of(format, limit);
        let is_document = !inner.may_be_followed();
        Self {
            format,
            inner,
            cut: false,
            is_document,
            inside: false,
            documents: 0,
            apparent: 0,
            line: 0,
            rest: false,
            long: false,
            searched: 0,
            next: None,
            ending: false,
            unread: None,
        }
    }

    /// Configures the splitter not to inspect the first line. Many parts may share this line, and each part would
    /// inspect the rest of the line.
    pub(super) fn behind_many(mut self) -> Self {
        (self.long, self.documents) = (true, MAX_DOCUMENTS);
        self
    }

    /// Creates the splitter of a document that is not read.
    pub(crate) fn unread(reason: &'static str, format: Format, limit: usize) -> Self {
        let inner = Box::new(Unread::new(reason, limit));
        let page = if reason == WEB_PAGE { Page::Inside } else { Page::Behind };
        Self { inner, is_document: false, unread: Some(page), ..Self::new(format, limit) }
    }

    /// Returns `true` if the last step was inside of the outermost element.
    pub(super) fn is_inside(&self) -> bool {
        self.inside
    }

    /// Returns `true` if the next part may begin here.
    fn may_begin(&self, start: Start, line: &[u8]) -> bool {
        match (self.unread, start.kind) {
            (Some(_), PartKind::Unread(_)) => false,
            (Some(Page::Inside), PartKind::Read(format)) => !is_of_page(format, &line[start.at..]),
            (Some(Page::Behind), _) => true,
            // A record of the same format at the beginning of a line is found by the splitter of that format.
            // The splitter of a table finds the header behind a row with the same delimiter.
            (None, PartKind::Read(format @ Format::Csv { .. })) => format != self.format,
            (None, PartKind::Read(format)) => {
                let is_same = is_same(format, self.format)
                    || (self.format == Format::LooseRis && format == Format::Ris);
                start.at > 0 || !is_same || restarts(format)
            }
            (None, PartKind::Unread(_)) => true,
        }
    }

    /// Inspects the next line.
    fn look(&mut self, tail: &[u8], end: bool) -> Look {
        let stop = memchr::memchr2(b'\n', b'\r', tail.get(self.searched..).unwrap_or_default());
        let stop = match stop {
            Some(at) => self.searched + at,
            None if end && self.line < tail.len() => tail.len(),
            None => {
                self.searched = tail.len();
                if !self.long && tail.len().saturating_sub(self.line) > MAX_LINE {
                    self.long = true;
                    return self.look_in_long(tail).map_or(Look::More, Look::Start);
                }
                return Look::More;
            }
        };
        let next = if tail[stop..].starts_with(b"\r\n") { stop + 2 } else { (stop + 1).min(tail.len()) };
        if self.long || stop - self.line > MAX_LINE {
            let start = if self.long { None } else { self.look_in_long(tail) };
            return start.map_or(Look::Line(next), Look::Start);
        }
        if tail.len() - next < LOOKAHEAD && !end {
            self.searched = stop;
            return Look::More;
        }
        spend(stop - self.line);
        let line = &tail[self.line..stop];
        let in_page = if self.unread == Some(Page::Inside) { starts::in_page(line) } else { None };
        if self.unread.is_some() && memchr::memmem::find(line, b"</html>").is_some() {
            self.unread = Some(Page::Behind);
        }
        let mut found = starts::find(line, !self.rest, &tail[next..], self.format);
        // A record on one line, or the first line of a web page, may end with the first line of the next file.
        let is_header =
            |start: Start| matches!(start.kind, PartKind::Read(Format::Csv { .. } | Format::FieldRows));
        if found.is_some_and(|start| start.at == 0 && !is_header(start) && !self.may_begin(start, line)) {
            found = starts::find(line, false, &tail[next..], self.format);
        }
        let found = found.filter(|start| self.may_begin(*start, line));
        let found = found.into_iter().chain(in_page).min_by_key(|start| start.at);
        match found {
            Some(start) => Look::Start(Start { at: self.line + start.at, ..start }),
            None => Look::Line(next),
        }
    }

    /// Inspects the beginning of a line that is too long otherwise: all records of a web page or of a document may be on
    /// one line.
    fn look_in_long(&self, tail: &[u8]) -> Option<Start> {
        let line = &tail[self.line..self.line + MAX_LINE];
        let start = match self.unread {
            Some(Page::Inside) => {
                spend(MAX_LINE);
                starts::in_page(line)
            }
            Some(Page::Behind) => None,
            None => {
                spend(MAX_LINE);
                let page = starts::page_line(line).filter(|_| !self.rest && self.format != Format::Ris);
                let found = |whole| {
                    let start = starts::find_in_long(line, whole, self.format);
                    start.filter(|start| self.may_begin(*start, line))
                };
                page.or_else(|| found(!self.rest)).or_else(|| found(false))
            }
        }?;
        Some(Start { at: self.line + start.at, ..start })
    }

    /// Continues with the line that begins here, or with the rest of a line.
    fn go_to(&mut self, line: usize, rest: bool) {
        (self.line, self.searched, self.rest, self.long) = (line, line, rest, false);
    }

    /// Inspects lines until one line begins a part. After a document, inspects a single line, because another document
    /// may follow. Returns the number of bytes that the splitter may see, and `true` if more lines can be inspected.
    fn visible(&mut self, tail: &[u8], end: bool) -> (usize, bool) {
        let was_inside = self.inside;
        self.inside = !self.ending && !self.inner.may_be_followed();
        if was_inside && !self.inside {
            self.documents = self.documents.saturating_add(1);
            self.long |= self.documents > MAX_DOCUMENTS;
        }
        if self.inside {
            self.next = None;
            self.go_to(0, false);
            return (tail.len(), false);
        }
        while self.next.is_none() {
            match self.look(tail, end) {
                Look::More if self.long || end => return (tail.len(), false),
                Look::More => return (self.line.min(tail.len()), false),
                Look::Line(next) => {
                    self.go_to(next, false);
                    self.apparent = 0;
                    if self.is_document && next < tail.len() {
                        return (next, true);
                    }
                }
                Look::Start(start) => self.next = Some(start),
            }
        }
        (self.next.map_or(tail.len(), |next| next.at), false)
    }

    /// Returns `true` for the beginning of a file of tagged lines in an open BibTeX entry, which then lacks its brace.
    fn is_unclosed(&self, start: Start) -> bool {
        self.format == Format::BibTex
            && start.at == self.line
            && matches!(
                start.kind,
                PartKind::Read(Format::Ris | Format::Nbib | Format::WebOfScience | Format::Refer)
            )
    }

    /// Shifts all positions after the front of the tail was consumed.
    fn consume(&mut self, tail: &[u8], consumed: usize) {
        if consumed > 0 {
            self.cut = !self.inside && !matches!(tail[consumed - 1], b'\n' | b'\r');
        }
        if self.documents > 0 && memchr::memchr2(b'\n', b'\r', &tail[..consumed]).is_some() {
            self.documents = 0;
        }
        self.rest = if consumed > self.line || self.inside { self.cut } else { self.rest };
        self.line = self.line.saturating_sub(consumed);
        self.searched = self.searched.saturating_sub(consumed).max(self.line);
        self.next = self.next.map(|next| Start { at: next.at - consumed, ..next });
    }
}

/// Returns `true` if the apparent beginning of a file is part of a web page: an element, or JSON in a script.
pub(super) fn is_of_page(format: Format, line: &[u8]) -> bool {
    match line.first() {
        Some(b'<') => {
            !matches!(format, Format::Ovid | Format::EngineeringVillage) && !line.starts_with(b"<?xml ")
        }
        _ => format == Format::Json,
    }
}

/// Returns `true` for a format whose first record also begins after an open one, unlike the others.
fn restarts(format: Format) -> bool {
    format == Format::PubMedText
}

/// Returns `true` if one splitter finds the records of both formats.
pub(super) fn is_same(one: Format, other: Format) -> bool {
    let is_json = |format| matches!(format, Format::CslJson | Format::Json);
    one == other || (is_json(one) && is_json(other))
}

impl Splitter for Parts {
    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        loop {
            let (visible, more) = self.visible(tail, end);
            let last = self.ending || (end && visible == tail.len() && self.next.is_none());
            let step = self.inner.step(&tail[..visible], last);
            match (&step, self.next) {
                (Step::More, None) if more => {}
                (Step::More, Some(Start { at, kind })) if self.ending => {
                    return Step::Part { kind, consumed: at, is_cut: false };
                }
                (Step::More, Some(start)) => {
                    let is_record = start.at == 0
                        && self.unread.is_none()
                        && matches!(start.kind, PartKind::Read(format) if is_same(format, self.format));
                    self.ending =
                        !is_record && (self.inner.may_end(&tail[..start.at]) || self.is_unclosed(start));
                    if !self.ending {
                        self.next = None;
                        self.go_to(start.at + 1, true);
                        self.apparent = self.apparent.saturating_add(1);
                        self.long = self.apparent >= MAX_APPARENT;
                    }
                }
                _ => {
                    if let Some(consumed) = step.consumed() {
                        self.consume(tail, consumed);
                    }
                    return step;
                }
            }
        }
    }

    fn parents(&mut self) -> Vec<Vec<u8>> {
        self.inner.parents()
    }

    fn saved_state(&self) -> Option<Vec<Vec<u8>>> {
        let mut state = self.inner.saved_state().filter(|_| !self.ending)?;
        let is_front = self.line == 0;
        let apparent = if is_front { self.apparent } else { 0 };
        state.push(vec![u8::from(self.cut), u8::from(self.long && is_front), self.documents, apparent]);
        Some(state)
    }

    fn restore_state(&mut self, mut state: Vec<Vec<u8>>) {
        let flags = state.pop().unwrap_or_default();
        self.inner.restore_state(state);
        self.cut = flags.first() == Some(&1);
        self.rest = self.cut;
        self.long = flags.get(1) == Some(&1);
        self.documents = flags.get(2).copied().unwrap_or_default();
        self.apparent = flags.get(3).copied().unwrap_or_default();
        self.inside = !self.inner.may_be_followed();
    }

    fn lacks_end(&self) -> bool {
        self.inner.lacks_end()
    }

    fn closing(&self) -> Vec<u8> {
        self.inner.closing()
    }
}
