//! The push parser.

use std::num::NonZeroUsize;

use crate::{
    Checkpoint, Encoding, Error, Format, Outcome, READER_VERSION, Report,
    detect::{DETECTION_WINDOW, detect},
    stream::Stream,
};

/// Limits on what is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes in a file. The default is 1 GiB: about half a million records with abstracts.
    pub max_file_bytes: u64,
    /// Most bytes in one record, as UTF-8 where the file is UTF-16. The default is 16 MiB: the largest
    /// document MongoDB stores.
    pub max_record_bytes: usize,
    /// Most records in a file, quarantined ones counted: what is made of a record takes room of its own, however few
    /// bytes it has. The default is two million.
    pub max_records: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_file_bytes: 1 << 30, max_record_bytes: 16 << 20, max_records: 2_000_000 }
    }
}

/// Settings of a reader.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) limits: Limits,
    pub(crate) threads: NonZeroUsize,
    /// Whether records are only found, and not read.
    pub(crate) only_finds: bool,
}

/// Reads one file, pushed in chunks of any size.
///
/// [`Reader::push`] and [`Reader::finish`] return all there is. Records of a few bytes make outcomes of some hundred, so
/// whoever has little memory takes them a few at a time: [`Reader::feed`] and [`Reader::end`] hand bytes over, and
/// [`Reader::read`] returns no more outcomes than it is asked for.
///
/// Once an error was returned the file is refused: every later call returns the same error, and outcomes
/// returned before it belong to a file that should not be kept.
#[derive(Debug)]
pub struct Reader {
    plan: Plan,
    state: State,
    bytes: u64,
    /// Whether more bytes were pushed than a file may have; those up to the limit are read before it is refused, so the
    /// fault that is reported does not depend on the chunking.
    too_large: bool,
    ended: bool,
    refused: Option<Error>,
}

#[derive(Debug)]
enum State {
    /// The first bytes, until there are enough to detect the format.
    Detecting(Vec<u8>),
    Reading(Box<Stream>),
}

impl Reader {
    /// A reader at the start of a file.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let plan = Plan { limits, threads: NonZeroUsize::MIN, only_finds: false };
        let state = State::Detecting(Vec::new());
        Self { plan, state, bytes: 0, too_large: false, ended: false, refused: None }
    }

    /// Reads the records of each push on this number of threads, the caller's included. The outcomes and their order
    /// stay the same. More than one thread helps only with pushes of some hundred KiB.
    #[must_use]
    pub fn with_threads(mut self, threads: NonZeroUsize) -> Self {
        self.plan.threads = threads;
        if let State::Reading(stream) = &mut self.state {
            stream.on_threads(threads);
        }
        self
    }

    /// Only finds records: they have no outcomes. To be called before the first push.
    #[must_use]
    pub(crate) fn only_finding(mut self) -> Self {
        self.plan.only_finds = true;
        self
    }

    /// Goes on where another reader was, at [`Checkpoint::byte`] of the same file; none when that one was of another
    /// version.
    #[must_use]
    pub fn resume(limits: Limits, checkpoint: &Checkpoint) -> Option<Self> {
        let new = Self::new(limits);
        let stream = Box::new(Stream::resume(checkpoint, new.plan));
        let bytes = checkpoint.byte();
        (checkpoint.reader == READER_VERSION).then_some(Self { state: State::Reading(stream), bytes, ..new })
    }

    /// Where another reader can go on, once all outcomes so far are stored; none before the first records, and between
    /// two records now and then.
    #[must_use]
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        self.stream().filter(|_| self.refused.is_none())?.checkpoint()
    }

    /// Takes the next bytes and returns what became complete, in the order of the file.
    ///
    /// The outcomes of a chunk are all in memory at once, and take some hundred times its size where records are tiny;
    /// [`Reader::read`] returns them a few at a time.
    ///
    /// # Errors
    /// If the file is refused. Pushing more of it, or the same file again, is refused too.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Outcome>, Error> {
        self.feed(bytes);
        self.read(usize::MAX)
    }

    /// Ends the file; returns the last outcomes and the report.
    ///
    /// # Errors
    /// If the file is refused, for example because it was empty or contained no records.
    pub fn finish(mut self) -> Result<(Vec<Outcome>, Report), Error> {
        self.end();
        let out = self.read(usize::MAX)?;
        Ok((out, self.report()?))
    }

    /// Hands the next bytes over. What they complete is for [`Reader::read`] to return, which is to be done before more
    /// bytes are handed over: until then they are kept.
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

    /// Says that there are no more bytes. What they complete is for [`Reader::read`] to return.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Returns the next outcomes, at most so many, in the order of the file. None are left when there are none: until
    /// more bytes are handed over, or for good once the file has ended.
    ///
    /// # Errors
    /// If the file is refused. Reading on, or the same file again, is refused too.
    pub fn read(&mut self, most: usize) -> Result<Vec<Outcome>, Error> {
        self.read_as(most, &|outcome| outcome)
    }

    /// As [`Reader::read`], and returns what `make` makes of each outcome, on the thread that has read it. So what is to be
    /// done with each record anyway is done on all of the threads that read, while its text is at hand.
    ///
    /// # Errors
    /// As [`Reader::read`].
    pub fn read_as<T: Send>(
        &mut self,
        most: usize,
        make: &(impl Fn(Outcome) -> T + Sync),
    ) -> Result<Vec<T>, Error> {
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        let made = self.read_next(most.max(1), make);
        if let Err(error) = &made {
            self.refused = Some(error.clone());
        }
        made
    }

    /// What there is to say of the file, once it has ended and all outcomes are read.
    ///
    /// # Errors
    /// If the file is refused, for example because it was empty, contained no records, or few of them have titles.
    pub fn report(self) -> Result<Report, Error> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        let State::Reading(stream) = self.state else { return Err(Error::Empty) };
        stream.check_titles()?;
        let (encoding, encoding_certainty) = stream.encoding();
        Ok(Report {
            format: stream.format(),
            format_certainty: stream.detected.format_certainty,
            encoding,
            encoding_certainty,
            records: stream.records,
            quarantined: stream.kinds.quarantined,
            untitled: stream.kinds.untitled,
            skipped: stream.skipped(),
            bytes: self.bytes,
        })
    }

    /// The format, once it is known.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        self.stream().map(Stream::format)
    }

    /// The encoding, once it is known.
    #[must_use]
    pub fn encoding(&self) -> Option<Encoding> {
        self.stream().map(|stream| stream.encoding().0)
    }

    /// How many bytes have been pushed so far.
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
        most: usize,
        make: &(impl Fn(Outcome) -> T + Sync),
    ) -> Result<Vec<T>, Error> {
        let too_large = Error::TooLarge { limit: self.plan.limits.max_file_bytes };
        if let State::Detecting(window) = &mut self.state {
            if window.len() < DETECTION_WINDOW && (self.too_large || !self.ended) {
                return if self.too_large { Err(too_large) } else { Ok(Vec::new()) };
            }
            let held = std::mem::take(window);
            self.state = State::Reading(self.detected(&held)?);
        }
        let State::Reading(stream) = &mut self.state else { return Ok(Vec::new()) };
        let out = stream.read((self.ended && !self.too_large).then_some(self.bytes), most, make)?;
        if !out.is_empty() {
            return Ok(out);
        }
        if self.too_large {
            return Err(too_large);
        }
        if self.ended && stream.records == 0 {
            return Err(Error::NoRecords { format: stream.format() });
        }
        Ok(out)
    }

    /// The stream of a file, with the bytes that were held back to detect what it is.
    fn detected(&self, held: &[u8]) -> Result<Box<Stream>, Error> {
        // What the window shows does not depend on the chunking, so what is behind it must not count.
        let window = &held[..held.len().min(DETECTION_WINDOW)];
        let detected = detect(window, held.len() < DETECTION_WINDOW)?;
        let mark_length = detected.mark_length;
        let mut stream = Box::new(Stream::new(detected, self.plan));
        stream.feed(&held[mark_length..]);
        Ok(stream)
    }
}
