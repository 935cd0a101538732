//! Reads the records that are found, on as many threads as allowed.

use std::{
    num::NonZeroUsize,
    ops::Range,
    sync::{LazyLock, Mutex, PoisonError, mpsc},
    thread,
};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{
    Format, Outcome, Quarantine, Record, Reference,
    encoding::{decode, decode_cut, printable},
    outcome::{EXCERPT_CHARS, REASON_CHARS},
    read, work,
};

/// Below this many bytes of text, waking a thread takes longer than it saves.
const WORTH_HELP: usize = 32 * 1024;
/// How much text the threads take at a time: so little that they come to the end together.
const BLOCK: usize = 16 * 1024;

/// A record that was found and is not read yet.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) number: u64,
    pub(crate) line: u64,
    /// Where it is in the original file.
    pub(crate) bytes: Range<u64>,
    /// What it says, or its bytes if they are not UTF-8.
    pub(crate) text: Result<&'a str, &'a [u8]>,
    /// The records from which it inherits fields.
    pub(crate) parents: Vec<Vec<u8>>,
    pub(crate) fault: Option<&'static str>,
    /// The encoding to decode it from if it is not UTF-8.
    pub(crate) legacy: &'static encoding_rs::Encoding,
}

impl<'a> Found<'a> {
    fn raw(&self) -> &'a [u8] {
        self.text.map_or_else(|raw| raw, str::as_bytes)
    }
}

/// What is needed to read records, besides the records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) format: Format,
    pub(crate) context: Option<&'a read::Context>,
    pub(crate) threads: NonZeroUsize,
    /// How many bytes the file has, once it has ended: a last odd byte of UTF-16 was counted as a whole unit.
    pub(crate) total: Option<u64>,
}

/// How many records are of which kind.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kinds {
    /// Those that could not be read.
    pub(crate) quarantined: u64,
    /// Those that were read and have no title.
    pub(crate) untitled: u64,
    /// Those of them that have nothing either that says that they were understood.
    pub(crate) obscure: u64,
}

impl Kinds {
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

/// Whether a record without a title may mean something else by what was read. Where a format has names of its own for
/// its fields, whoever named the authors was understood, and has only left the title out; the columns of a table are
/// called as anybody likes.
fn is_obscure(reference: &Reference, format: Format) -> bool {
    reference.authors.is_empty() || matches!(format, Format::Csv { .. } | Format::FieldRows)
}

/// Records that follow each other, and how many such blocks are before them.
type Block<'a> = (usize, Vec<Found<'a>>);
/// The same once they are read: what was made of them.
type ReadBlock<T> = (usize, Vec<T>, Kinds);

/// The threads that help whoever reads, one fewer than there are cores. They stay: one that begins anew for each piece has
/// to fetch its memory anew. None where the system refuses them.
static HELPERS: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let name = |number| format!("references-{number}");
    ThreadPoolBuilder::new().num_threads((cores - 1).max(1)).thread_name(name).build().ok()
});

impl Batch<'_> {
    /// Adds what `make` makes of the records that `find` finds, in their order, each on the thread that has read it. On
    /// several threads they are read while more are found.
    pub(crate) fn read<'a, R, T: Send>(
        &self,
        out: &mut Vec<T>,
        make: &(impl Fn(Outcome) -> T + Sync),
        find: impl FnOnce(&mut dyn FnMut(Found<'a>)) -> R,
    ) -> (R, Kinds) {
        if self.threads == NonZeroUsize::MIN {
            return self.on_one(out, make, find);
        }
        let Some(helpers) = &*HELPERS else {
            return self.on_one(out, make, find);
        };
        let (sender, receiver) = mpsc::channel::<Block<'a>>();
        let (receiver, read) = (Mutex::new(receiver), Mutex::new(Vec::new()));
        let result = helpers.in_place_scope(|scope| {
            let (mut block, mut bytes, mut blocks, mut helping) = (Vec::new(), 0, 0, 0);
            // The receiver is there until all have ended.
            let hand_over = |records| drop(sender.send(records));
            let result = find(&mut |found| {
                bytes += found.raw().len();
                block.push(found);
                if bytes < BLOCK {
                    return;
                }
                hand_over((blocks, std::mem::take(&mut block)));
                (blocks, bytes) = (blocks + 1, 0);
                if helping + 1 < self.threads.get() && blocks * BLOCK >= WORTH_HELP {
                    helping += 1;
                    scope.spawn(|_| self.work(&receiver, &read, make));
                }
            });
            hand_over((blocks, block));
            drop(sender);
            self.work(&receiver, &read, make);
            result
        });
        let mut read = read.into_inner().unwrap_or_else(PoisonError::into_inner);
        read.sort_unstable_by_key(|(block, ..)| *block);
        out.reserve(read.iter().map(|(_, made, _)| made.len()).sum());
        let mut kinds = Kinds::default();
        for (_, made, of_block) in read {
            out.extend(made);
            kinds.add(of_block);
        }
        (result, kinds)
    }

    fn on_one<'a, R, T>(
        &self,
        out: &mut Vec<T>,
        make: &impl Fn(Outcome) -> T,
        find: impl FnOnce(&mut dyn FnMut(Found<'a>)) -> R,
    ) -> (R, Kinds) {
        let (mut all, mut kinds) = (Vec::new(), Kinds::default());
        let result = find(&mut |found| all.push(found));
        out.extend(all.iter().map(|found| make(self.counted(found, &mut kinds))));
        (result, kinds)
    }

    /// Reads blocks until there are no more.
    fn work<T>(
        &self,
        blocks: &Mutex<mpsc::Receiver<Block<'_>>>,
        read: &Mutex<Vec<ReadBlock<T>>>,
        make: &impl Fn(Outcome) -> T,
    ) {
        let next = || blocks.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
        while let Some((block, found)) = next() {
            let mut kinds = Kinds::default();
            let made = found.iter().map(|found| make(self.counted(found, &mut kinds))).collect();
            read.lock().unwrap_or_else(PoisonError::into_inner).push((block, made, kinds));
        }
    }

    fn counted(&self, found: &Found<'_>, kinds: &mut Kinds) -> Outcome {
        let outcome = self.outcome(found);
        kinds.count(&outcome, self.format);
        outcome
    }

    /// Reads a record from whose text so many control characters were dropped.
    fn reference(&self, text: &str, dropped: usize, parents: read::Parents<'_>) -> Result<Reference, String> {
        let read = || read::read(self.format, self.context, text, parents);
        let bytes = text.len() + parents.bytes();
        let mut reference = work::within(work::budget(bytes), read).map_err(|error| error.to_string())??;
        if dropped > 0 {
            let said = format!("control characters were dropped: {dropped}");
            reference.extra.entry(read::REPAIRED.to_owned()).or_default().push(said);
        }
        Ok(reference)
    }

    fn outcome(&self, found: &Found<'_>) -> Outcome {
        let &Found { number, line, fault, legacy, .. } = found;
        let end = self.total.map_or(found.bytes.end, |total| found.bytes.end.min(total));
        let bytes = found.bytes.start..end;
        let parents = read::Parents { records: &found.parents, legacy };
        let text = match (fault, found.text) {
            (Some(fault), _) => Err(fault),
            (None, Ok(text)) => printable(text.into()),
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

/// The beginning of a record's text. Only as many bytes are decoded as its characters can take.
fn excerpt(text: &[u8], legacy: &'static encoding_rs::Encoding) -> String {
    let start = &text[..text.len().min(4 * EXCERPT_CHARS)];
    decode_cut(start, legacy).chars().take(EXCERPT_CHARS).collect()
}
