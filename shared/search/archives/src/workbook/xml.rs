//! Reads the XML files of a workbook event by event, with a bound on each event.

use std::{
    io::{self, BufRead, Read},
    sync::Arc,
};

use quick_xml::{
    Reader,
    escape::{resolve_predefined_entity, unescape},
    events::{BytesStart, Event},
};

use crate::{Entry, Error, Limits, Unpacker};

/// The maximum size of one event, in bytes: a cell holds 32,767 characters, and each may be a character reference.
const MAX_EVENT: usize = 1 << 20;
/// Deepest nesting; a cell with formatted text has nine levels.
const MAX_DEPTH: usize = 64;
/// The maximum length of a name of an element, in bytes: the names of all open elements are held in memory.
const MAX_NAME: usize = 1_000;
/// The number of packed bytes that are unpacked at a time.
const PIECE: usize = 4 * 1024;

/// One XML file of a workbook.
pub(super) struct Xml {
    reader: Reader<EntryReader>,
    buffer: Vec<u8>,
    depth: usize,
}

/// The XML nodes that matter to workbooks.
pub(super) enum Node<'a> {
    Start(BytesStart<'a>),
    /// An element without content; an end does not follow.
    Empty(BytesStart<'a>),
    /// The name of the element, without its prefix.
    End(String),
    Text(String),
    Eof,
}

impl Xml {
    pub(super) fn new(inside: EntryReader) -> Self {
        let mut reader = Reader::from_reader(inside);
        reader.config_mut().allow_dangling_amp = true;
        Self { reader, buffer: Vec::new(), depth: 0 }
    }

    /// The number of bytes of XML read so far.
    pub(super) fn read(&self) -> u64 {
        self.reader.get_ref().read
    }

    pub(super) fn next(&mut self) -> Result<Node<'_>, Error> {
        const BROKEN: Error = Error::Workbook { fault: "its XML is broken" };
        self.buffer.clear();
        self.reader.get_mut().budget = MAX_EVENT;
        let event = match self.reader.read_event_into(&mut self.buffer) {
            Ok(event) => event,
            Err(_) => return Err(self.reader.get_mut().fault.take().unwrap_or(BROKEN)),
        };
        Ok(match event {
            Event::Start(start) => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(Error::Workbook { fault: "its elements are nested too deeply" });
                }
                if start.name().as_ref().len() > MAX_NAME {
                    return Err(Error::Workbook { fault: "its elements have too long names" });
                }
                Node::Start(start)
            }
            Event::Empty(start) => Node::Empty(start),
            Event::End(end) => {
                self.depth = self.depth.saturating_sub(1);
                Node::End(end.local_name().into_inner().to_owned())
            }
            Event::Text(text) => Node::Text(text.xml10_content().into_owned()),
            Event::CData(text) => Node::Text(text.xml10_content().into_owned()),
            Event::GeneralRef(reference) => {
                let known = || Some(resolve_predefined_entity(&reference.xml10_content())?.to_owned());
                let char_ref = reference.resolve_char_ref().ok().flatten();
                Node::Text(char_ref.map(String::from).or_else(known).ok_or(BROKEN)?)
            }
            // A DOCTYPE may define entities.
            Event::DocType(_) => return Err(Error::Workbook { fault: "its XML declares a DOCTYPE" }),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => Node::Text(String::new()),
            Event::Eof if self.depth > 0 => return Err(BROKEN),
            Event::Eof => Node::Eof,
        })
    }
}

/// Appends to a cell's text, unless the text becomes longer than a cell can hold. Text may arrive in any number of
/// pieces, so [`MAX_EVENT`] alone does not bound it.
pub(super) fn push_text(text: &mut String, piece: &str) -> Result<(), Error> {
    if text.len() + piece.len() > MAX_EVENT {
        return Err(Error::WorkbookTooLarge { what: "characters in a cell" });
    }
    text.push_str(piece);
    Ok(())
}

/// The name of an element, without its prefix.
pub(super) fn name<'a>(start: &'a BytesStart<'_>) -> &'a str {
    start.local_name().into_inner()
}

/// The value of an attribute, by its name without a prefix.
pub(super) fn attribute(start: &BytesStart<'_>, wanted: &str) -> Option<String> {
    let mut all = start.attributes();
    let found = all.with_checks(false).flatten();
    let found = found.into_iter().find(|attribute| attribute.key.local_name().into_inner() == wanted)?;
    unescape(&found.value).ok().map(std::borrow::Cow::into_owned)
}

/// An entry of a workbook in memory, unpacked while it is read.
pub(super) struct EntryReader {
    file: Arc<Vec<u8>>,
    at: usize,
    end: usize,
    unpack: Unpacker,
    ready: Vec<u8>,
    front: usize,
    finished: bool,
    /// The number of unpacked bytes that were read.
    read: u64,
    /// The number of bytes that may be read before the budget is reset.
    budget: usize,
    fault: Option<Error>,
}

impl EntryReader {
    /// Opens an entry whose packed bytes begin `before` bytes after its header.
    pub(super) fn new(file: Arc<Vec<u8>>, entry: &Entry, before: u64, limits: Limits) -> Self {
        let parse_position = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(file.len());
        let (at, end) =
            (parse_position(entry.header + before), parse_position(entry.header + before + entry.packed));
        let unpack = Unpacker::entry(entry.clone(), limits);
        let (ready, front, finished, fault) = (Vec::new(), 0, false, None);
        Self { file, at, end, unpack, ready, front, finished, read: 0, budget: MAX_EVENT, fault }
    }

    fn more(&mut self) -> Result<(), Error> {
        self.ready.clear();
        self.front = 0;
        while self.ready.is_empty() && !self.finished {
            let piece = &self.file[self.at..self.end.min(self.at + PIECE)];
            if piece.is_empty() {
                self.finished = true;
                self.unpack.finish(&mut self.ready)?;
            } else {
                self.at += self.unpack.push(piece, &mut self.ready)?;
            }
        }
        Ok(())
    }
}

impl Read for EntryReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let taken = ready.len().min(out.len());
        out[..taken].copy_from_slice(&ready[..taken]);
        self.consume(taken);
        Ok(taken)
    }
}

impl BufRead for EntryReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let refused = if self.budget == 0 {
            Err(Error::WorkbookTooLarge { what: "characters in a cell" })
        } else if self.front == self.ready.len() {
            self.more()
        } else {
            Ok(())
        };
        if let Err(error) = refused {
            self.fault = Some(error);
            return Err(io::Error::other("the workbook is refused"));
        }
        let ready = &self.ready[self.front..];
        Ok(&ready[..ready.len().min(self.budget)])
    }

    fn consume(&mut self, taken: usize) {
        self.front += taken;
        self.read += taken as u64;
        self.budget = self.budget.saturating_sub(taken);
    }
}
