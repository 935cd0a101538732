//! Reads records on several threads while more records are found.

use std::{
    borrow::Cow,
    num::NonZeroUsize,
    ops::Range,
    sync::{
        LazyLock, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{
    Format, Outcome, Quarantine, Record, Reference,
    encoding::{Decoder, EncodedTwice, decode, decode_cut, encoded_twice, printable_utf8, without_c1},
    outcome::{EXCERPT_CHARS, REASON_CHARS},
    read,
    work::{self, Stop},
};

/// With fewer bytes of text, waking a thread takes longer than it saves.
const MIN_PARALLEL_BYTES: usize = 32 * 1024;
/// The number of bytes of text that a thread takes at a time. Blocks are small so that the threads finish together.
const BLOCK_BYTES: usize = 16 * 1024;

/// A record that has been found but not read.
#[derive(Debug)]
pub(crate) struct RawRecord<'a> {
    pub(crate) number: u64,
    pub(crate) line: u64,
    /// The byte range in the original file.
    pub(crate) bytes: Range<u64>,
    /// The text, or the bytes if they are not UTF-8.
    pub(crate) text: Result<&'a str, &'a [u8]>,
    /// The records from which this record inherits fields.
    pub(crate) parents: Vec<Vec<u8>>,
    pub(crate) fault: Option<&'static str>,
    /// The encoding to decode it from if it is not UTF-8.
    pub(crate) legacy: Decoder,
}

impl<'a> RawRecord<'a> {
    fn raw(&self) -> &'a [u8] {
        self.text.map_or_else(|raw| raw, str::as_bytes)
    }
}

/// The settings for reading records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) format: Format,
    pub(crate) context: Option<&'a read::Context>,
    pub(crate) threads: NonZeroUsize,
    /// The size of the file in bytes, once it has ended: a trailing odd byte of UTF-16 counted as a whole unit.
    pub(crate) total: Option<u64>,
    /// The signal to stop, even within a record.
    pub(crate) stop: Option<&'a Stop>,
}

/// The number of records with each defect.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DefectCounts {
    /// Records that could not be read.
    pub(crate) quarantined: u64,
    /// Records that were read and have no title.
    pub(crate) untitled: u64,
    /// Untitled records without any evidence that they were understood.
    pub(crate) obscure: u64,
}

impl DefectCounts {
    fn count(&mut self, outcome: &Outcome, format: Format) {
        match outcome {
            Outcome::Quarantined(_) => self.quarantined += 1,
            Outcome::Read(record) if record.reference.title.is_empty() => {
                self.untitled += 1;
                self.obscure += u64::from(is_obscure(&record.reference, format));
            }
            Outcome::Read(_) => {}
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.quarantined += other.quarantined;
        self.untitled += other.untitled;
        self.obscure += other.obscure;
    }
}

/// Returns `true` if a record without a title may have been misinterpreted. If a format has its own field names and
/// authors were found, the record was understood and only lacks a title. The column names of a table can mean anything.
fn is_obscure(reference: &Reference, format: Format) -> bool {
    reference.authors.is_empty() || matches!(format, Format::Csv { .. } | Format::FieldRows)
}

/// Consecutive records, and the number of blocks before them.
type Block<'a> = (usize, Vec<RawRecord<'a>>);
/// A block whose records have been read, with the results.
type ReadBlock<T> = (usize, Vec<T>, DefectCounts);

/// The helper threads of all readers, one fewer than there are cores. The threads stay alive, because a new thread for
/// each piece would have to allocate its memory again. `None` if the system refuses to start them.
static HELPERS: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let name = |number| format!("references-{number}");
    ThreadPoolBuilder::new().num_threads((cores - 1).max(1)).thread_name(name).build().ok()
});

impl Batch<'_> {
    /// Appends the result of `make` for each record that `find` finds, in the order of the file. `make` runs on the
    /// thread that read the record. With several threads, records are read while more are found.
    ///
    /// Returns `None` if the signal to stop was given. Some results are then missing.
    pub(crate) fn read<'a, R, T: Send>(
        &self,
        out: &mut Vec<T>,
        make: &(impl Fn(Outcome) -> T + Sync),
        find: impl FnOnce(&mut dyn FnMut(RawRecord<'a>)) -> R,
    ) -> Option<(R, DefectCounts)> {
        if self.threads == NonZeroUsize::MIN {
            return self.read_on_one_thread(out, make, find);
        }
        let Some(helpers) = &*HELPERS else {
            return self.read_on_one_thread(out, make, find);
        };
        let (sender, receiver) = mpsc::channel::<Block<'a>>();
        let (receiver, read) = (Mutex::new(receiver), Mutex::new(Vec::new()));
        let is_stopped = AtomicBool::new(false);
        let result = helpers.in_place_scope(|scope| {
            let (mut block, mut bytes, mut blocks, mut helping) = (Vec::new(), 0, 0, 0);
            // The receiver outlives all senders.
            let send_block = |records| drop(sender.send(records));
            let result = find(&mut |found| {
                bytes += found.raw().len();
                block.push(found);
                if bytes < BLOCK_BYTES {
                    return;
                }
                send_block((blocks, std::mem::take(&mut block)));
                (blocks, bytes) = (blocks + 1, 0);
                if helping + 1 < self.threads.get() && blocks * BLOCK_BYTES >= MIN_PARALLEL_BYTES {
                    helping += 1;
                    scope.spawn(|_| self.read_blocks(&receiver, &read, &is_stopped, make));
                }
            });
            send_block((blocks, block));
            drop(sender);
            self.read_blocks(&receiver, &read, &is_stopped, make);
            result
        });
        if is_stopped.into_inner() {
            return None;
        }
        let mut read = read.into_inner().unwrap_or_else(PoisonError::into_inner);
        read.sort_unstable_by_key(|(block, ..)| *block);
        out.reserve(read.iter().map(|(_, made, _)| made.len()).sum());
        let mut kinds = DefectCounts::default();
        for (_, made, of_block) in read {
            out.extend(made);
            kinds.add(of_block);
        }
        Some((result, kinds))
    }

    fn read_on_one_thread<'a, R, T>(
        &self,
        out: &mut Vec<T>,
        make: &impl Fn(Outcome) -> T,
        find: impl FnOnce(&mut dyn FnMut(RawRecord<'a>)) -> R,
    ) -> Option<(R, DefectCounts)> {
        let mut all = Vec::new();
        let result = find(&mut |found| all.push(found));
        let (made, kinds) = self.read_all(&all, make)?;
        out.extend(made);
        Some((result, kinds))
    }

    /// Reads blocks until none are left, or the signal to stop was given.
    fn read_blocks<T>(
        &self,
        blocks: &Mutex<mpsc::Receiver<Block<'_>>>,
        read: &Mutex<Vec<ReadBlock<T>>>,
        is_stopped: &AtomicBool,
        make: &impl Fn(Outcome) -> T,
    ) {
        let next = || blocks.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
        while let Some((block, found)) = next().filter(|_| !is_stopped.load(Ordering::Relaxed)) {
            match self.read_all(&found, make) {
                Some((made, kinds)) => {
                    read.lock().unwrap_or_else(PoisonError::into_inner).push((block, made, kinds));
                }
                None => is_stopped.store(true, Ordering::Relaxed),
            }
        }
    }

    /// Reads records on this thread. Returns `None` if the signal to stop was given.
    fn read_all<T>(
        &self,
        found: &[RawRecord<'_>],
        make: &impl Fn(Outcome) -> T,
    ) -> Option<(Vec<T>, DefectCounts)> {
        let mut kinds = DefectCounts::default();
        let mut read = || {
            let records = found.iter().take_while(|_| !work::is_stopped());
            records.map(|found| make(self.counted(found, &mut kinds))).collect()
        };
        let made = match self.stop {
            Some(stop) => work::until(stop, read)?,
            None => read(),
        };
        Some((made, kinds))
    }

    fn counted(&self, found: &RawRecord<'_>, kinds: &mut DefectCounts) -> Outcome {
        let outcome = self.outcome(found);
        kinds.count(&outcome, self.format);
        outcome
    }

    /// Reads a record; `dropped` control characters were removed from its text.
    fn reference(&self, text: &str, dropped: usize, parents: read::Parents<'_>) -> Result<Reference, String> {
        let (mut twice, mut dropped) = (None, dropped);
        let read = || {
            let decoded = encoded_twice(text).map(|decoded| {
                let (text, note) = match decoded {
                    EncodedTwice::Whole(text) => (text, "it was encoded in UTF-8 twice"),
                    EncodedTwice::Partly(text) => (text, "parts of it were encoded in UTF-8 twice"),
                };
                twice = Some(note.to_owned());
                text
            });
            let (text, undefined) = without_c1(decoded.map_or(Cow::Borrowed(text), Cow::Owned));
            dropped += undefined;
            read::read(self.format, self.context, &text, parents)
        };
        let bytes = text.len() + parents.bytes();
        let mut reference = work::within(work::budget(bytes), read).map_err(|error| error.to_string())??;
        let dropped = (dropped > 0).then(|| format!("control characters were dropped: {dropped}"));
        for note in dropped.into_iter().chain(twice) {
            reference.extra.entry(read::REPAIRED.to_owned()).or_default().push(note);
        }
        Ok(reference)
    }

    fn outcome(&self, found: &RawRecord<'_>) -> Outcome {
        let &RawRecord { number, line, fault, legacy, .. } = found;
        let end = self.total.map_or(found.bytes.end, |total| found.bytes.end.min(total));
        let bytes = found.bytes.start..end;
        let parents = read::Parents { records: &found.parents, legacy };
        let text = match (fault, found.text) {
            (Some(fault), _) => Err(fault),
            (None, Ok(text)) => printable_utf8(text.into()),
            (None, Err(raw)) => decode(raw, legacy),
        };
        let read =
            text.map_err(str::to_owned).and_then(|(text, dropped)| self.reference(&text, dropped, parents));
        match read {
            Ok(reference) => Outcome::Read(Record { number, line, bytes, reference }),
            Err(reason) => {
                let reason = reason.chars().take(REASON_CHARS).collect();
                let excerpt = excerpt(found.raw(), legacy);
                Outcome::Quarantined(Quarantine { number, line, bytes, reason, excerpt })
            }
        }
    }
}

/// The beginning of a record's text. Only as many bytes are decoded as its characters can occupy.
fn excerpt(text: &[u8], legacy: Decoder) -> String {
    let start = &text[..text.len().min(4 * EXCERPT_CHARS)];
    decode_cut(start, legacy).chars().take(EXCERPT_CHARS).collect()
}
