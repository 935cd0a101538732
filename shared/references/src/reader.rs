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
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_file_bytes: 1 << 30, max_record_bytes: 16 << 20 }
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
/// Once an error was returned the file is refused: every later call returns the same error, and outcomes
/// returned before it belong to a file that should not be kept.
#[derive(Debug)]
pub struct Reader {
    plan: Plan,
    state: State,
    bytes: u64,
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
        Self { plan, state: State::Detecting(Vec::new()), bytes: 0, refused: None }
    }

    /// Reads the records of each push on this number of threads, the caller's included. The outcomes and their order
    /// stay the same. More than one thread helps only with pushes of some hundred KiB.
    #[must_use]
    pub fn with_threads(mut self, threads: NonZeroUsize) -> Self {
        self.plan.threads = threads;
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
    /// The outcomes of a chunk are all in memory at once, and take about a hundred times its size where records are
    /// tiny. Chunks of a megabyte or less keep that small.
    ///
    /// # Errors
    /// If the file is refused. Pushing more of it, or the same file again, is refused too.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Outcome>, Error> {
        if let Some(error) = &self.refused {
            return Err(error.clone());
        }
        let mut out = Vec::new();
        match self.push_within_limit(bytes, &mut out) {
            Ok(()) => Ok(out),
            Err(error) => {
                self.refused = Some(error.clone());
                Err(error)
            }
        }
    }

    /// Ends the file; returns the last outcomes and the report.
    ///
    /// # Errors
    /// If the file is refused, for example because it was empty or contained no records.
    pub fn finish(mut self) -> Result<(Vec<Outcome>, Report), Error> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        let (mut out, bytes) = (Vec::new(), self.bytes);
        let stream = self.end(&mut out)?;
        let (encoding, encoding_certainty) = stream.encoding();
        let report = Report {
            format: stream.format(),
            format_certainty: stream.detected.format_certainty,
            encoding,
            encoding_certainty,
            records: stream.records,
            quarantined: stream.quarantined,
            bytes,
        };
        Ok((out, report))
    }

    /// Reads what is left in the buffer.
    pub(crate) fn end(&mut self, out: &mut Vec<Outcome>) -> Result<&Stream, Error> {
        if let State::Detecting(window) = &mut self.state {
            let window = std::mem::take(window);
            self.start(&window, true, out)?;
        }
        let State::Reading(stream) = &mut self.state else { return Err(Error::Empty) };
        stream.finish(self.bytes, out)?;
        if stream.records == 0 {
            return Err(Error::NoRecords { format: stream.format() });
        }
        Ok(stream)
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

    /// The bytes up to the limit are read before the excess is refused, so the fault that is reported does not
    /// depend on the chunking.
    fn push_within_limit(&mut self, bytes: &[u8], out: &mut Vec<Outcome>) -> Result<(), Error> {
        let left = self.plan.limits.max_file_bytes - self.bytes;
        let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        self.bytes += taken as u64;
        self.take(&bytes[..taken], out)?;
        if taken < bytes.len() {
            return Err(Error::TooLarge { limit: self.plan.limits.max_file_bytes });
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<Outcome>) -> Result<(), Error> {
        let (window, rest) = match &mut self.state {
            State::Reading(stream) => return stream.push(bytes, out),
            State::Detecting(window) => {
                let (now, rest) = bytes.split_at(bytes.len().min(DETECTION_WINDOW - window.len()));
                window.extend_from_slice(now);
                if window.len() < DETECTION_WINDOW {
                    return Ok(());
                }
                (std::mem::take(window), rest)
            }
        };
        self.start(&window, false, out)?;
        match &mut self.state {
            State::Reading(stream) => stream.push(rest, out),
            State::Detecting(_) => Ok(()),
        }
    }

    /// Detects the format, and reads the bytes that were held back for it.
    fn start(&mut self, window: &[u8], end: bool, out: &mut Vec<Outcome>) -> Result<(), Error> {
        let detected = detect(window, end)?;
        let mark_length = detected.mark_length;
        let mut stream = Box::new(Stream::new(detected, self.plan));
        let pushed = stream.push(&window[mark_length..], out);
        self.state = State::Reading(stream);
        pushed
    }
}
