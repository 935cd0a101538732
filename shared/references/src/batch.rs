//! Reads the records that were found, on as many threads as allowed.

use std::{num::NonZeroUsize, ops::Range, panic, thread};

use crate::{
    Format, Outcome, Quarantine, Record, Reference,
    encoding::{decode, decode_cut},
    outcome::{EXCERPT_CHARS, REASON_CHARS},
    read,
};

/// Below this many bytes of text, starting threads takes longer than they save.
const WORTH_THREADS: usize = 128 * 1024;

/// A record that was found and is not read yet.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) number: u64,
    pub(crate) line: u64,
    /// Where it is in the original file.
    pub(crate) bytes: Range<u64>,
    /// Where it is in the buffer.
    pub(crate) text: Range<usize>,
    /// What follows it in the buffer, as far as that may matter.
    pub(crate) ahead: Range<usize>,
    pub(crate) fault: Option<&'static str>,
    /// The encoding to decode it from if it is not UTF-8.
    pub(crate) legacy: &'static encoding_rs::Encoding,
}

/// What is needed to read records, besides the records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) format: Format,
    pub(crate) context: Option<&'a read::Context>,
    pub(crate) buffer: &'a [u8],
    pub(crate) threads: NonZeroUsize,
}

impl Batch<'_> {
    /// Adds the outcomes of the records in their order.
    pub(crate) fn read(&self, found: &[Found], out: &mut Vec<Outcome>) {
        let bytes: usize = found.iter().map(|found| found.text.len()).sum();
        let part = found.len().div_ceil(self.threads.get()).max(1);
        let (mine, others) = found.split_at(part.min(found.len()));
        if others.is_empty() || bytes < WORTH_THREADS {
            return out.extend(self.outcomes(found));
        }
        thread::scope(|scope| {
            let started = others.chunks(part).map(|part| {
                let read = move || self.outcomes(part).collect::<Vec<_>>();
                (part, thread::Builder::new().spawn_scoped(scope, read))
            });
            let started: Vec<_> = started.collect();
            out.extend(self.outcomes(mine));
            for (part, thread) in started {
                match thread.map(thread::ScopedJoinHandle::join) {
                    Ok(Ok(outcomes)) => out.extend(outcomes),
                    Ok(Err(panicked)) => panic::resume_unwind(panicked),
                    // The system refuses more threads; this one can do the work.
                    Err(_) => out.extend(self.outcomes(part)),
                }
            }
        });
    }

    fn outcomes<'b>(&'b self, found: &'b [Found]) -> impl Iterator<Item = Outcome> + 'b {
        found.iter().map(|found| self.outcome(found))
    }

    /// Reads a record from whose text so many control characters were dropped.
    fn reference(&self, text: &str, dropped: usize, ahead: read::Ahead<'_>) -> Result<Reference, String> {
        let mut reference = read::read(self.format, self.context, text, ahead)?;
        if dropped > 0 {
            let said = format!("control characters were dropped: {dropped}");
            reference.extra.entry(read::REPAIRED.to_owned()).or_default().push(said);
        }
        Ok(reference)
    }

    fn outcome(&self, found: &Found) -> Outcome {
        let &Found { number, line, fault, legacy, .. } = found;
        let (text, bytes) = (&self.buffer[found.text.clone()], found.bytes.clone());
        let ahead = read::Ahead { bytes: &self.buffer[found.ahead.clone()], legacy };
        let read = match fault {
            Some(fault) => Err(fault.to_owned()),
            None => decode(text, legacy)
                .map_err(str::to_owned)
                .and_then(|(text, dropped)| self.reference(&text, dropped, ahead)),
        };
        match read {
            Ok(reference) => Outcome::Read(Record { number, line, bytes, reference }),
            Err(reason) => {
                let reason = reason.chars().take(REASON_CHARS).collect();
                Outcome::Quarantined(Quarantine {
                    number,
                    line,
                    bytes,
                    reason,
                    excerpt: excerpt(text, legacy),
                })
            }
        }
    }
}

/// The beginning of a record's text. Only as many bytes are decoded as its characters can take.
fn excerpt(text: &[u8], legacy: &'static encoding_rs::Encoding) -> String {
    let start = &text[..text.len().min(4 * EXCERPT_CHARS)];
    decode_cut(start, legacy).chars().take(EXCERPT_CHARS).collect()
}
