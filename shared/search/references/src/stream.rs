//! Combines one buffer and one splitter, and tracks positions in the original file.

use std::{num::NonZeroUsize, ops::Range};

use crate::{
    Checkpoint, Error, Format, Outcome, READER_VERSION,
    batch::{Batch, DefectCounts, RawRecord},
    detect::Detection,
    encoding::{Certainty, Encoding, Jis, Utf16, WidthCheck, decode, has_escape},
    gaps::Gaps,
    limits::ReaderSettings,
    outcome::SkippedText,
    position::Position,
    read::{self, Extent},
    split::{CUT_OFF, PartKind, SALVAGE_WINDOW, Splitter, Step, has_part, splitter, unread_splitter},
    stored_bytes::Bytes,
    work::{Stop, spend},
};

/// The reason why a stream returns no outcomes.
#[derive(Debug)]
pub(crate) enum Interruption {
    /// The file is refused.
    Refused(Error),
    /// The signal to stop was given.
    Stopped,
}

impl From<Error> for Interruption {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// The options with which outcomes are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadOptions<'a> {
    /// The size of the file in bytes, once it has ended.
    pub(crate) total: Option<u64>,
    /// The maximum number of outcomes.
    pub(crate) max: usize,
    /// The signal to stop, even within a record.
    pub(crate) stop: Option<&'a Stop>,
}

/// The records of a file with known encoding and format.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) detected: Detection,
    transcoder: Option<Transcoder>,
    /// UTF-8, or the original bytes if the encoding is ASCII-compatible.
    buffer: Vec<u8>,
    /// The number of consumed bytes in the buffer.
    front: usize,
    /// The position of the front in the original file.
    position: Position,
    splitter: Box<dyn Splitter>,
    known: Option<FileContext>,
    plan: ReaderSettings,
    /// The position and defect of a broken document, until enough bytes after it were read.
    broken: Option<(usize, &'static str)>,
    /// `true` if the splitter knows that the tail is the end of the file.
    ending: bool,
    /// The text around the records, known once the first record was found.
    pub(crate) frame: Option<Frame>,
    pub(crate) records: u64,
    /// The number of parts of the file, in different formats.
    pub(crate) parts: u64,
    /// The defects of these records.
    pub(crate) kinds: DefectCounts,
    /// The text between the records.
    gaps: Gaps,
    width: WidthCheck,
    /// `true` if files in UTF-16 and in other encodings were joined.
    is_joined: bool,
    /// The formats of earlier parts.
    formats: Vec<Format>,
}

/// Converts the bytes of a file to those of the buffer.
#[derive(Debug)]
enum Transcoder {
    Utf16(Utf16),
    Jis(Jis),
}

impl Transcoder {
    fn of(encoding: Encoding) -> Option<Self> {
        if encoding.is_utf16() {
            Some(Self::Utf16(Utf16::new(encoding)))
        } else {
            encoding.is_iso_2022_jp().then(|| Self::Jis(Jis::default()))
        }
    }
}

/// The minimum number of records in a file for a conclusion from missing titles.
const MIN_RECORDS: u64 = 10;

/// Information in the file about the records that follow, and its text.
#[derive(Debug)]
struct FileContext {
    text: String,
    context: read::Context,
}

/// The reason why no more records are found with the same format and context.
#[derive(Debug)]
enum Pause {
    /// A text that describes the records after it, and the number of bytes to consume.
    Header { row: Range<usize>, consumed: usize },
    /// Another part after the consumed bytes. If `is_cut` is set, the document before this part lacks its end.
    Part { kind: PartKind, consumed: usize, is_cut: bool },
}

impl FileContext {
    fn parse(text: String, format: Format) -> Option<(Self, Extent)> {
        let (context, taken) = read::Context::parse(&text, format)?;
        Some((Self { text, context }, taken))
    }
}

/// The text around the records of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The offset of the first record in the original file.
    pub(crate) first: u64,
    /// The text that closes the elements around the records.
    pub(crate) closing: Vec<u8>,
}

impl Stream {
    pub(crate) fn new(detected: Detection, plan: ReaderSettings) -> Self {
        Self {
            transcoder: Transcoder::of(detected.encoding),
            buffer: Vec::new(),
            front: 0,
            position: Position { byte: detected.mark_length as u64, line: 1, after_cr: false },
            splitter: match detected.unread {
                Some(reason) => unread_splitter(reason, detected.format, plan.limits.max_record_bytes),
                None => splitter(detected.format, plan.limits.max_record_bytes, 1),
            },
            known: None,
            plan,
            broken: None,
            ending: false,
            frame: None,
            records: 0,
            parts: 1,
            kinds: DefectCounts::default(),
            gaps: Gaps::default(),
            width: WidthCheck::new(detected.encoding.is_utf16()),
            is_joined: false,
            formats: Vec::new(),
            detected,
        }
    }

    /// Creates a stream that resumes at a checkpoint.
    pub(crate) fn resume(checkpoint: &Checkpoint, plan: ReaderSettings) -> Self {
        let mut stream = Self::new(checkpoint.detected(), plan);
        stream.position = checkpoint.place;
        stream.splitter = splitter(checkpoint.format, plan.limits.max_record_bytes, checkpoint.parts);
        stream.splitter.restore_state(checkpoint.carried.iter().map(|Bytes(bytes)| bytes.clone()).collect());
        let header = checkpoint.header.clone();
        stream.known =
            header.and_then(|text| FileContext::parse(text, checkpoint.format)).map(|(known, _)| known);
        stream.gaps = checkpoint.gaps.clone();
        let &Checkpoint { records, parts, quarantined, untitled, obscure, .. } = checkpoint;
        let formats = checkpoint.formats.clone();
        Self { records, parts, formats, kinds: DefectCounts { quarantined, untitled, obscure }, ..stream }
    }

    /// Sets the number of threads from now on.
    pub(crate) fn on_threads(&mut self, threads: NonZeroUsize) {
        self.plan.threads = threads;
    }

    /// Returns a checkpoint. Buffered bytes are read again after resuming.
    pub(crate) fn checkpoint(&self) -> Option<Checkpoint> {
        if self.broken.is_some() || self.is_in_letters() {
            return None;
        }
        Some(Checkpoint {
            reader: READER_VERSION,
            place: self.position,
            records: self.records,
            parts: self.parts,
            quarantined: self.kinds.quarantined,
            untitled: self.kinds.untitled,
            obscure: self.kinds.obscure,
            gaps: self.gaps.clone(),
            format: self.detected.format,
            formats: self.formats.clone(),
            format_certainty: self.detected.format_certainty,
            encoding: self.detected.encoding,
            certainty: self.detected.certainty,
            legacy: self.detected.legacy.state(),
            carried: self.splitter.saved_state()?.into_iter().map(Bytes).collect(),
            header: self.known.as_ref().map(|known| known.text.clone()),
        })
    }

    /// Returns `true` if the front is between two letters of ISO-2022-JP. A new reader would expect ASCII there.
    fn is_in_letters(&self) -> bool {
        match (&self.transcoder, self.buffer.get(self.front)) {
            (Some(Transcoder::Jis(jis)), None) => !jis.is_ascii(),
            (Some(Transcoder::Jis(_)), Some(next)) => !next.is_ascii() || *next == b'$' || *next == b'(',
            _ => false,
        }
    }

    /// Returns the position after text that begins at `from`.
    fn behind(&self, from: Position, text: &[u8]) -> Position {
        from.behind(text, self.detected.encoding.is_utf16())
    }

    /// Adds the next bytes of the file, without its byte-order mark.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.front);
        self.front = 0;
        self.is_joined |= self.width.is_joined(bytes);
        match &mut self.transcoder {
            Some(Transcoder::Utf16(utf16)) => utf16.push(bytes, &mut self.buffer),
            Some(Transcoder::Jis(jis)) => jis.push(bytes, &mut self.buffer),
            None => self.buffer.extend_from_slice(bytes),
        }
    }

    /// Returns the results of `make` for some outcomes. After a signal to stop, the stream must not be used again.
    pub(crate) fn read<T: Send>(
        &mut self,
        options: ReadOptions<'_>,
        make: &(impl Fn(Outcome) -> T + Sync),
    ) -> Result<Vec<T>, Interruption> {
        if self.is_joined {
            return Err(Error::JoinedEncodings.into());
        }
        let mut out = Vec::new();
        if !self.ending {
            self.split(ReadOptions { total: None, ..options }, &mut out, make)?;
        }
        if options.total.is_none() || out.len() >= options.max {
            return Ok(out);
        }
        if !self.ending {
            self.ending = true;
            if let Some(Transcoder::Utf16(utf16)) = &mut self.transcoder {
                utf16.finish(&mut self.buffer);
            }
        }
        self.split(options, &mut out, make)?;
        Ok(out)
    }

    /// Reads until enough outcomes exist, or nothing more is found.
    fn split<T: Send>(
        &mut self,
        options: ReadOptions<'_>,
        out: &mut Vec<T>,
        make: &(impl Fn(Outcome) -> T + Sync),
    ) -> Result<(), Interruption> {
        let buffer = std::mem::take(&mut self.buffer);
        while let Some(pause) = self.read_found(&buffer, options, out, make)? {
            let tail = &buffer[self.front..];
            let (row, consumed) = match pause {
                Pause::Header { row, consumed } => (row, consumed),
                Pause::Part { kind, consumed, is_cut } => {
                    self.gaps.add(&tail[..consumed], self.position, &self.detected);
                    self.gaps.end(&self.detected);
                    self.consume(&tail[..consumed]);
                    if is_cut {
                        self.gaps.note(self.position.line, CUT_OFF);
                    }
                    self.begin_part(kind);
                    continue;
                }
            };
            self.gaps.add(&tail[..row.start], self.position, &self.detected);
            self.gaps.end(&self.detected);
            let start = self.behind(self.position, &tail[..row.start]);
            let text = &tail[row.clone()];
            if !self.learn(text) {
                self.gaps.add(text, start, &self.detected);
            }
            self.gaps.add(&tail[row.end..consumed], self.behind(start, text), &self.detected);
            self.consume(&tail[..consumed]);
        }
        self.buffer = buffer;
        Ok(())
    }

    /// Returns the formats of earlier parts that differ from the current one.
    pub(crate) fn other_formats(&self) -> Vec<Format> {
        let formats = self.formats.iter().copied();
        formats.filter(|format| *format != self.detected.format).collect()
    }

    /// Continues with another part of the file.
    fn begin_part(&mut self, kind: PartKind) {
        self.parts += 1;
        self.known = None;
        let limit = self.plan.limits.max_record_bytes;
        self.splitter = match kind {
            PartKind::Read(format) => {
                if !self.formats.contains(&self.detected.format) {
                    self.formats.push(self.detected.format);
                }
                self.detected.format = format;
                splitter(format, limit, self.parts)
            }
            PartKind::Unread(reason) => unread_splitter(reason, self.detected.format, limit),
        };
    }

    /// Reads records up to the next text that describes the following records, or up to the next part. Returns `None`
    /// if nothing more is found, or enough outcomes exist.
    fn read_found<T: Send>(
        &mut self,
        buffer: &[u8],
        options: ReadOptions<'_>,
        out: &mut Vec<T>,
        make: &(impl Fn(Outcome) -> T + Sync),
    ) -> Result<Option<Pause>, Interruption> {
        let known = self.known.take();
        let ReadOptions { total, max, stop } = options;
        let batch = Batch {
            format: self.detected.format,
            context: known.as_ref().map(|known| &known.context),
            threads: self.plan.threads,
            total,
            stop,
        };
        let max = max - out.len();
        let read = batch.read(out, make, |take| self.find(buffer, total.is_some(), max, take));
        self.known = known;
        let (header, kinds) = read.ok_or(Interruption::Stopped)?;
        self.kinds.add(kinds);
        Ok(header?)
    }

    /// Finds up to `most` records, with the same result as [`Stream::read_found`].
    fn find<'a>(
        &mut self,
        buffer: &'a [u8],
        end: bool,
        max: usize,
        take: &mut dyn FnMut(RawRecord<'a>),
    ) -> Result<Option<Pause>, Error> {
        let mut taken = 0;
        while taken < max {
            let tail = &buffer[self.front..];
            let step = match self.broken.take() {
                Some((at, what)) => Step::Malformed { at, what },
                None => self.splitter.step(tail, end),
            };
            match step {
                Step::More => break,
                Step::Skip { consumed } => {
                    self.gaps.add(&tail[..consumed], self.position, &self.detected);
                    self.consume(&tail[..consumed]);
                }
                Step::Pass { consumed } => self.consume(&tail[..consumed]),
                Step::Header { row, consumed } => return Ok(Some(Pause::Header { row, consumed })),
                Step::Part { kind, consumed, is_cut } => {
                    return Ok(Some(Pause::Part { kind, consumed, is_cut }));
                }
                Step::Found { .. } if self.records >= self.plan.limits.max_records => {
                    return Err(Error::TooManyRecords { limit: self.plan.limits.max_records });
                }
                Step::Found { record, consumed, fault } => {
                    let found = self.found(tail, record.clone(), fault);
                    if !self.plan.finds_only {
                        take(found);
                        taken += 1;
                    }
                    // The position is already at the end of the record.
                    let rest = &tail[record.end..consumed];
                    self.gaps.add(rest, self.position, &self.detected);
                    self.front += record.end;
                    self.consume(rest);
                }
                Step::Malformed { at, what } => match self.is_merged(&tail[at..], end) {
                    None => {
                        self.broken = Some((at, what));
                        break;
                    }
                    Some(false) => return Err(self.refusal(tail, &step)),
                    Some(true) => {
                        self.quarantine_part(tail, at, what, take);
                        let kind = PartKind::Read(Format::Ris);
                        return Ok(Some(Pause::Part { kind, consumed: 0, is_cut: false }));
                    }
                },
                refused => return Err(self.refusal(tail, &refused)),
            }
        }
        Ok(None)
    }

    /// Returns `true` if a broken document, which is cut off before this text, is a part of a merged file. The
    /// remaining parts are then read. Returns `None` if more bytes are needed.
    fn is_merged(&self, rest: &[u8], end: bool) -> Option<bool> {
        let is_enough = end || rest.len() >= SALVAGE_WINDOW;
        if self.parts > 1 {
            let has_line = memchr::memchr2(b'\n', b'\r', rest).is_some();
            return (is_enough || has_line).then_some(true);
        }
        is_enough.then(|| {
            spend(rest.len().min(SALVAGE_WINDOW));
            has_part(rest, self.detected.format)
        })
    }

    /// Quarantines the front of a broken document up to the end of the line with its defect.
    fn quarantine_part<'a>(
        &mut self,
        tail: &'a [u8],
        at: usize,
        what: &'static str,
        take: &mut dyn FnMut(RawRecord<'a>),
    ) {
        let rest = &tail[at..tail.len().min(at + SALVAGE_WINDOW)];
        let stop = at + memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let blank = tail[..stop].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if blank == stop {
            // The records before the missing end of the document were read.
            return self.gaps.note(self.position.line, what);
        }
        let found = self.found(tail, blank..stop, Some(what));
        if !self.plan.finds_only {
            take(found);
        }
        self.front += stop;
    }

    /// Moves the current position past this text, with which the unread bytes begin.
    fn consume(&mut self, text: &[u8]) {
        spend(text.len());
        self.position = self.behind(self.position, text);
        self.front += text.len();
    }

    /// Interprets text about the records that follow. Returns `true` if all of it was understood.
    fn learn(&mut self, text: &[u8]) -> bool {
        self.detected.legacy.learn(text);
        let Ok((text, _)) = decode(text, self.detected.legacy.decoder()) else { return false };
        match &mut self.known {
            Some(known @ FileContext { context: read::Context::Definitions(_), .. }) => {
                let taken = known.context.add(&text);
                if taken != Extent::Nothing {
                    known.text.push('\n');
                    known.text.push_str(&text);
                }
                taken == Extent::All
            }
            known => {
                let new = FileContext::parse(text.into_owned(), self.detected.format);
                let understood = new.as_ref().is_some_and(|(_, taken)| *taken == Extent::All);
                *known = new.map(|(known, _)| known);
                understood
            }
        }
    }

    /// Handles a record, and advances the position to its end.
    fn found<'a>(
        &mut self,
        tail: &'a [u8],
        record: Range<usize>,
        fault: Option<&'static str>,
    ) -> RawRecord<'a> {
        let before = &tail[..record.start];
        self.gaps.add(before, self.position, &self.detected);
        self.gaps.end(&self.detected);
        let start = self.behind(self.position, before);
        let raw = &tail[record];
        spend(raw.len());
        self.position = self.behind(start, raw);
        self.records += 1;
        if self.frame.is_none() {
            self.frame = Some(Frame { first: start.byte, closing: self.splitter.closing() });
        }
        let has_letters = matches!(self.transcoder, Some(Transcoder::Jis(_))) && has_escape(raw);
        let text = std::str::from_utf8(raw).ok().filter(|_| !has_letters).ok_or(raw);
        let legacy = match text {
            Err(raw) if fault.is_none() => self.detected.legacy.learn(raw),
            _ => self.detected.legacy.decoder(),
        };
        let (line, bytes) = (start.line, start.byte..self.position.byte);
        let parents = self.splitter.parents();
        RawRecord { number: self.records, line, bytes, text, parents, fault, legacy }
    }

    fn refusal(&self, tail: &[u8], step: &Step) -> Error {
        let line_at = |at: usize| self.behind(self.position, &tail[..at.min(tail.len())]).line;
        match *step {
            Step::Malformed { at, what } => Error::MalformedXml { line: line_at(at), what },
            Step::TooLarge { start } => Error::RecordTooLarge {
                number: self.records + 1,
                line: line_at(start),
                limit: self.plan.limits.max_record_bytes as u64,
            },
            _ => Error::Doctype { name: None },
        }
    }

    /// The encoding and its certainty. The first bytes may not reveal that a file is not UTF-8.
    pub(crate) fn encoding(&self) -> (Encoding, Certainty) {
        match self.detected.encoding {
            Encoding::Utf8 if self.detected.legacy.is_needed() => self.detected.legacy.found(),
            encoding => (encoding, self.detected.certainty),
        }
    }

    /// Refuses a file, once it is read, in which most records have no title and may have been misinterpreted: such
    /// studies cannot be screened.
    pub(crate) fn check_titles(&self) -> Result<(), Error> {
        let (DefectCounts { untitled, obscure, .. }, records) = (self.kinds, self.records);
        if records >= MIN_RECORDS && obscure > records / 2 {
            return Err(Error::UntitledRecords { untitled, records, format: self.format() });
        }
        Ok(())
    }

    /// The text outside of records.
    pub(crate) fn skipped(&self) -> Option<SkippedText> {
        let mut gaps = self.gaps.clone();
        gaps.add(&self.buffer[self.front..], self.position, &self.detected);
        gaps.end(&self.detected);
        gaps.found()
    }

    pub(crate) fn format(&self) -> Format {
        self.detected.format
    }
}
