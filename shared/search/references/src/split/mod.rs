//! Finds where records begin and end.
//!
//! A splitter is called with the unconsumed tail of the stream, repeatedly while the tail grows, and returns the next
//! step for its front. It remembers the position up to which it has searched, so each byte is searched once. All its
//! positions are relative to the front of the tail, and decrease when bytes are consumed. The steps depend on the bytes
//! alone, never on the chunking.

pub(crate) mod bibtex;
pub(crate) mod cnki;
mod crossref;
pub(crate) mod csv;
mod cut_off;
pub(crate) mod doctype;
pub(crate) mod ebsco_tagged;
pub(crate) mod endnote_text;
pub(crate) mod engineering_village;
pub(crate) mod entries;
pub(crate) mod eu_ctr;
pub(crate) mod fields;
mod json;
mod layout;
pub(crate) mod lines;
pub(crate) mod markup;
pub(crate) mod nbib;
pub(crate) mod noteexpress;
pub(crate) mod numbered;
mod parts;
pub(crate) mod record_number;
pub(crate) mod refer;
pub(crate) mod refworks;
pub(crate) mod ris;
mod starts;
mod tagged;
mod unclosed;
mod unread;
pub(crate) mod wos;
pub(crate) mod xml;
mod zotero;

use std::{fmt, ops::Range};

use crate::Format;
pub(crate) use cut_off::CUT_OFF;

/// The result of a splitter for the front of the tail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// No step until more bytes arrive.
    More,
    /// The first `consumed` bytes belong to no record. They are reported as skipped if they contain words.
    Skip { consumed: usize },
    /// The first `consumed` bytes belong to the format between records, such as markup or blank rows.
    Pass { consumed: usize },
    /// Text that describes the records after it: the header row of a table, or definitions.
    Header { row: Range<usize>, consumed: usize },
    /// A record. If it cannot be read, `fault` is the reason.
    Found { record: Range<usize>, consumed: usize, fault: Option<&'static str> },
    /// The first `consumed` bytes belong to no record, and another file begins after them. If `is_cut` is set, the
    /// document before this file lacks its end.
    Part { kind: PartKind, consumed: usize, is_cut: bool },
    /// The record that begins at `start` exceeds the size limit.
    TooLarge { start: usize },
    /// A document type declaration.
    Doctype,
    /// The structure around the records is malformed.
    Malformed { at: usize, what: &'static str },
}

impl Step {
    /// The number of bytes that the step consumes, unless it refuses the file or needs more bytes.
    pub(crate) fn consumed(&self) -> Option<usize> {
        match *self {
            Self::Skip { consumed }
            | Self::Pass { consumed }
            | Self::Header { consumed, .. }
            | Self::Found { consumed, .. }
            | Self::Part { consumed, .. } => Some(consumed),
            Self::More | Self::TooLarge { .. } | Self::Doctype | Self::Malformed { .. } => None,
        }
    }
}

/// The kind of a part of a merged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// A file of this format.
    Read(Format),
    /// A document that is not read, for this reason.
    Unread(&'static str),
}

/// Finds the records of one format.
pub(crate) trait Splitter: fmt::Debug + Send {
    /// Processes the tail, which is the end of the file if `end`. Called until it returns [`Step::More`].
    fn step(&mut self, tail: &[u8], end: bool) -> Step;

    /// The records from which the latest record inherits fields, the nearest one first.
    fn parents(&mut self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    /// The state between two records that a new splitter needs, or `None` in the middle of a record or other text.
    fn saved_state(&self) -> Option<Vec<Vec<u8>>> {
        Some(Vec::new())
    }

    /// Restores the state of another splitter in a new one.
    fn restore_state(&mut self, _: Vec<Vec<u8>>) {}

    /// Returns `true` if the text may end after this tail, which was processed completely: no quotation mark, entry or
    /// element is open. A record of tagged lines may end anywhere.
    fn may_end(&mut self, _tail: &[u8]) -> bool {
        true
    }

    /// Returns `true` if another file may begin before the next record: no element or list around the records is open.
    fn may_be_followed(&self) -> bool {
        true
    }

    /// Returns `true` if the record that was found last, without a fault, lacks its end. It may contain another file.
    fn lacks_end(&self) -> bool {
        false
    }

    /// The text that closes the elements open around the records.
    fn closing(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// The maximum number of parts of a file after which the part after a record without an end is searched for. Up to the
/// maximum size of a record may be read again for each of them.
const MAX_CUT_OFF: u64 = 20;

/// Creates the splitter of a part of a file that begins in this format. `parts` is the number of parts so far.
pub(crate) fn splitter(format: Format, limit: usize, parts: u64) -> Box<dyn Splitter> {
    let splitter = parts::Parts::new(format, limit);
    if parts > MAX_CUT_OFF {
        return Box::new(splitter.behind_many());
    }
    Box::new(cut_off::CutOff::new(splitter, format, limit))
}

/// Creates the splitter of a part that is not read. `format` is the format of the part before it.
pub(crate) fn unread_splitter(reason: &'static str, format: Format, limit: usize) -> Box<dyn Splitter> {
    Box::new(parts::Parts::unread(reason, format, limit))
}

/// The number of bytes after a broken document that are searched for a part in another format.
pub(crate) const SALVAGE_WINDOW: usize = 64 * 1024;

/// Returns `true` if a line after the first one begins a file of another format.
pub(crate) fn has_part(text: &[u8], current: Format) -> bool {
    let text = &text[..text.len().min(SALVAGE_WINDOW)];
    let mut lines = memchr::memchr2_iter(b'\n', b'\r', text);
    let Some(mut start) = lines.next() else { return false };
    for stop in lines.chain([text.len()]) {
        let (line, after) = (&text[start + 1..stop.max(start + 1)], &text[(stop + 1).min(text.len())..]);
        let found = starts::find(line, true, &after[..after.len().min(starts::LOOKAHEAD)], current);
        if found.is_some_and(|found| found.kind != PartKind::Read(current)) {
            return true;
        }
        start = stop;
    }
    false
}

/// Finds the file that begins within the first `most` lines after the first line of a text. The text may be a web page
/// (`is_page`). The first line of the file may then be at the end of the page's first line.
pub(crate) fn format_behind(text: &[u8], most: usize, is_page: bool) -> Option<Format> {
    let mut rest = Some(text);
    let lines = std::iter::from_fn(move || {
        let text = rest.take()?;
        let stop = memchr::memchr2(b'\n', b'\r', text);
        rest = stop.map(|stop| &text[stop + 1..]);
        Some((&text[..stop.unwrap_or(text.len())], rest.unwrap_or_default()))
    });
    lines.take(most.saturating_add(1)).enumerate().find_map(|(number, (line, after))| {
        let found = match number {
            0 if !is_page => None,
            0 => starts::find(line, false, after, Format::Ris),
            _ => starts::find(line, true, after, Format::Ris),
        };
        let in_page = if is_page { starts::in_page(line) } else { None };
        let start = found.into_iter().chain(in_page).min_by_key(|start| start.at)?;
        let PartKind::Read(format) = start.kind else { return None };
        (!is_page || !parts::is_of_page(format, &line[start.at..])).then_some(format)
    })
}

/// Creates the splitter of a single format.
fn splitter_of(format: Format, limit: usize) -> Box<dyn Splitter> {
    match format {
        Format::Ris => Box::new(ris::splitter(limit)),
        Format::LooseRis => Box::new(ris::loose_splitter(limit)),
        Format::Nbib => Box::new(nbib::splitter(limit)),
        Format::EndNoteXml => Box::new(xml::Xml::endnote(limit)),
        Format::PubMedXml => Box::new(xml::Xml::pubmed(limit)),
        Format::BibTex => Box::new(bibtex::BibTex::new(limit)),
        Format::WebOfScience => Box::new(wos::splitter(limit)),
        Format::Csv { delimiter } => Box::new(csv::Csv::new(delimiter, limit)),
        Format::FieldRows => Box::new(fields::Fields::new(limit)),
        Format::Refer => Box::new(refer::splitter(limit)),
        Format::EndNoteText => Box::new(endnote_text::splitter(limit)),
        Format::RefWorks => Box::new(refworks::splitter(limit)),
        Format::Ovid => Box::new(numbered::ovid(limit)),
        Format::Cochrane => Box::new(numbered::cochrane(limit)),
        Format::ProQuest => Box::new(numbered::proquest(limit)),
        Format::EngineeringVillage => Box::new(engineering_village::splitter(limit)),
        Format::PubMedText => Box::new(numbered::pubmed(limit)),
        Format::CslJson | Format::Json => Box::new(json::Json::new(limit)),
        Format::CnkiText => Box::new(cnki::splitter(limit)),
        Format::NoteExpress => Box::new(noteexpress::splitter(limit)),
        Format::IctrpXml => Box::new(xml::Xml::ictrp(limit)),
        Format::IsrctnXml => Box::new(xml::Xml::isrctn(limit)),
        Format::EuCtrText => Box::new(eu_ctr::splitter(limit)),
        Format::EbscoXml => Box::new(xml::Xml::ebsco(limit)),
        Format::EbscoTagged => Box::new(ebsco_tagged::splitter(limit)),
        Format::ModsXml => Box::new(xml::Xml::mods(limit)),
        Format::ZoteroRdf => Box::new(zotero::Zotero::new(limit)),
        Format::EuropePmcXml => Box::new(xml::Xml::europe_pmc(limit)),
        Format::JatsXml => Box::new(xml::Xml::jats(limit)),
    }
}

/// Splits a whole text, for the tests of the splitters.
#[cfg(test)]
pub(crate) fn cut(splitter: &mut dyn Splitter, text: &str) -> Vec<String> {
    let (mut tail, mut records) = (text.as_bytes(), Vec::new());
    loop {
        match splitter.step(tail, true) {
            Step::More => return records,
            Step::Skip { consumed }
            | Step::Pass { consumed }
            | Step::Header { consumed, .. }
            | Step::Part { consumed, .. } => tail = &tail[consumed..],
            Step::Found { record, consumed, fault, .. } => {
                let text = String::from_utf8_lossy(&tail[record]).into_owned();
                records.push(fault.map_or(text, |fault| format!("!{fault}")));
                tail = &tail[consumed..];
            }
            refused => return vec![format!("{refused:?}")],
        }
    }
}
