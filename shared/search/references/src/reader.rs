//! The public push parser.

use std::num::NonZeroUsize;

use crate::{
    Checkpoint, Encoding, Error, Format, Limits, Outcome, READER_VERSION, Report,
    detect::{DETECTION_WINDOW, detect},
    limits::ReaderSettings,
    stream::{Interruption, ReadOptions, Stream},
    work::Stop,
};

/// Reads one file, pushed in chunks of any size.
///
/// [`Reader::push`] and [`Reader::finish`] return all available outcomes. Records of a few bytes yield outcomes of a
/// few hundred bytes, so callers with little memory retrieve them in portions: [`Reader::feed`] and [`Reader::end`]
/// pass bytes, and [`Reader::read`] returns a limited number of outcomes.
///
/// After an error the file is refused: every later call returns the same error, and outcomes returned earlier belong to
/// a file that should not be kept.
#[derive(Debug)]
pub struct Reader {
    plan: ReaderSettings,
    state: State,
    bytes: u64,
    /// `true` if more bytes were pushed than a file may have. The bytes up to the limit are read before the file is
    /// refused, so the reported error does not depend on the chunking.
    too_large: bool,
    ended: bool,
    refused: Option<Error>,
}

#[derive(Debug)]
enum State {
    /// The first bytes, until they suffice to detect the format.
    Detecting(Vec<u8>),
    Reading(Box<Stream>),
}

impl Reader {
    /// Creates a reader for the beginning of a file.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let plan = ReaderSettings { limits, threads: NonZeroUsize::MIN, finds_only: false };
        let state = State::Detecting(Vec::new());
        Self { plan, state, bytes: 0, too_large: false, ended: false, refused: None }
    }

    /// Reads the records of each push on this number of threads, including the caller's. The outcomes and their order
    /// stay the same. Several threads only help with pushes of some hundred KiB.
    #[must_use]
    pub fn with_threads(mut self, threads: NonZeroUsize) -> Self {
        self.plan.threads = threads;
        if let State::Reading(stream) = &mut self.state {
            stream.on_threads(threads);
        }
        self
    }

    /// Only finds records, without returning outcomes. Must be called before the first push.
    #[must_use]
    pub(crate) fn finding_only(mut self) -> Self {
        self.plan.finds_only = true;
        self
    }

    /// Resumes from another reader's checkpoint, at [`Checkpoint::byte`] of the same file. Returns `None` if the
    /// checkpoint is of another version.
    #[must_use]
    pub fn resume(limits: Limits, checkpoint: &Checkpoint) -> Option<Self> {
        let new = Self::new(limits);
        let stream = Box::new(Stream::resume(checkpoint, new.plan));
        let bytes = checkpoint.byte();
        (checkpoint.reader == READER_VERSION).then_some(Self { state: State::Reading(stream), bytes, ..new })
    }

    /// Returns a checkpoint from which another reader can resume, once all outcomes so far are stored. Returns `None`
    /// before the first record, and at some positions between records.
    #[must_use]
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        self.stream().filter(|_| self.refused.is_none())?.checkpoint()
    }

    /// Passes the next bytes, and returns the completed outcomes in the order of the file.
    ///
    /// All outcomes of a chunk are in memory together. For tiny records they occupy some hundred times the size of the
    /// chunk; [`Reader::read`] returns them in portions.
    ///
    /// # Errors
    /// Returns an error if the file is refused. Pushing more bytes, or the same file again, fails with the same error.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Outcome>, Error> {
        self.feed(bytes);
        self.read(usize::MAX)
    }

    /// Ends the file, and returns the last outcomes and the report.
    ///
    /// # Errors
    /// Returns an error if the file is refused, for example because it is empty or contains no records.
    pub fn finish(mut self) -> Result<(Vec<Outcome>, Report), Error> {
        self.end();
        let out = self.read(usize::MAX)?;
        Ok((out, self.report()?))
    }

    /// Passes the next bytes. [`Reader::read`] returns the outcomes, and should be called until none are left before
    /// more bytes are passed, because unread bytes stay in memory.
    pub fn feed(&mut self, bytes: &[u8]) {
        let left = self.plan.limits.max_file_bytes - self.bytes;
        let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        self.bytes += taken as u64;
        self.too_large |= taken < bytes.len();
        match &mut self.state {
            State::Reading(stream) => stream.feed(&bytes[..taken]),
            State::Detecting(window) => window.extend_from_slice(&bytes[..taken]),
        }
    }

    /// Marks the end of the file. [`Reader::read`] returns the remaining outcomes.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Returns up to `most` outcomes, in the order of the file. An empty result means that none are left until more
    /// bytes are passed, or that the file has ended.
    ///
    /// # Errors
    /// Returns an error if the file is refused. Further reading, and reading the same file again, fails with the same
    /// error.
    pub fn read(&mut self, max: usize) -> Result<Vec<Outcome>, Error> {
        self.read_as(max, &|outcome| outcome)
    }

    /// Works like [`Reader::read`], but returns the result of `make` for each outcome. `make` runs on the thread that
    /// read the record, so per-record work is distributed over all reading threads while the text is still cached.
    ///
    /// # Errors
    /// See [`Reader::read`].
    pub fn read_as<T: Send>(
        &mut self,
        max: usize,
        make: &(impl Fn(Outcome) -> T + Sync),
    ) -> Result<Vec<T>, Error> {
        Ok(self.read_with(max, make, None)?.unwrap_or_default())
    }

    /// Works like [`Reader::read_as`], but stops once the signal is given, even within a record, and then returns
    /// `None`. This reader cannot continue: its later calls fail with [`Error::Stopped`]. Another reader resumes from a
    /// checkpoint that was taken before this call.
    ///
    /// # Errors
    /// See [`Reader::read`].
    pub fn read_until<T: Send>(
        &mut self,
        max: usize,
        make: &(impl Fn(Outcome) -> T + Sync),
        stop: &Stop,
    ) -> Result<Option<Vec<T>>, Error> {
        self.read_with(max, make, Some(stop))
    }

    fn read_with<T: Send>(
        &mut self,
        max: usize,
        make: &(impl Fn(Outcome) -> T + Sync),
        stop: Option<&Stop>,
    ) -> Result<Option<Vec<T>>, Error> {
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        let (error, made) = match self.read_next(max.max(1), make, stop) {
            Ok(made) => return Ok(Some(made)),
            Err(Interruption::Refused(error)) => (error.clone(), Err(error)),
            Err(Interruption::Stopped) => (Error::Stopped, Ok(None)),
        };
        self.refused = Some(error);
        made
    }

    /// Returns the report, once the file has ended and all outcomes have been read.
    ///
    /// # Errors
    /// Returns an error if the file is refused, for example because it is empty, contains no records, or most records
    /// lack titles.
    pub fn report(self) -> Result<Report, Error> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        let State::Reading(stream) = self.state else { return Err(Error::Empty) };
        stream.check_titles()?;
        let (encoding, encoding_certainty) = stream.encoding();
        Ok(Report {
            format: stream.format(),
            other_formats: stream.other_formats(),
            format_certainty: stream.detected.format_certainty,
            encoding,
            encoding_certainty,
            records: stream.records,
            quarantined: stream.kinds.quarantined,
            untitled: stream.kinds.untitled,
            skipped: stream.skipped(),
            bytes: self.bytes,
            parts: stream.parts,
        })
    }

    /// The format, once it has been detected.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        self.stream().map(Stream::format)
    }

    /// The encoding, once it has been detected.
    #[must_use]
    pub fn encoding(&self) -> Option<Encoding> {
        self.stream().map(|stream| stream.encoding().0)
    }

    /// The number of bytes pushed so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn stream(&self) -> Option<&Stream> {
        match &self.state {
            State::Detecting(_) => None,
            State::Reading(stream) => Some(stream),
        }
    }

    fn read_next<T: Send>(
        &mut self,
        max: usize,
        make: &(impl Fn(Outcome) -> T + Sync),
        stop: Option<&Stop>,
    ) -> Result<Vec<T>, Interruption> {
        let too_large = Error::TooLarge { limit: self.plan.limits.max_file_bytes };
        if let State::Detecting(window) = &mut self.state {
            if window.len() < DETECTION_WINDOW && (self.too_large || !self.ended) {
                return if self.too_large { Err(too_large.into()) } else { Ok(Vec::new()) };
            }
            let held = std::mem::take(window);
            self.state = State::Reading(self.detected(&held)?);
        }
        let State::Reading(stream) = &mut self.state else { return Ok(Vec::new()) };
        let total = (self.ended && !self.too_large).then_some(self.bytes);
        let out = stream.read(ReadOptions { total, max, stop }, make)?;
        if !out.is_empty() {
            return Ok(out);
        }
        if self.too_large {
            return Err(too_large.into());
        }
        if self.ended && stream.records == 0 {
            return Err(Error::NoRecords { format: stream.format() }.into());
        }
        Ok(out)
    }

    /// Creates the stream of a file from the bytes that were held back for detection.
    fn detected(&self, held: &[u8]) -> Result<Box<Stream>, Error> {
        // The result must not depend on the chunking, so bytes after the window are ignored.
        let window = &held[..held.len().min(DETECTION_WINDOW)];
        let detected = detect(window, held.len() < DETECTION_WINDOW)?;
        let mark_length = detected.mark_length;
        let mut stream = Box::new(Stream::new(detected, self.plan));
        stream.feed(&held[mark_length..]);
        Ok(stream)
    }
}
