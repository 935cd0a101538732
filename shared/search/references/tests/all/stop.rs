//! A signal to stop interrupts the reading of a record. Another reader can then resume at the beginning of the
//! interrupted record.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use references::work::{self, Stop};
use references::{Checkpoint, Error, Limits, Outcome, Reader};

/// The bytes that are passed at a time.
const CHUNK: usize = 64 * 1024;

/// Short records around two that need several million steps each.
fn file() -> String {
    let short = |n: usize| format!("@book{{b{n}, title = {{Book {n}}}}}\n");
    let slow = |n: usize| format!("@book{{slow{n}, title = {{{}}}}}\n", "\\emph{".repeat(100_000));
    [(0..40).map(short).collect(), slow(1), slow(2), (40..80).map(short).collect()].concat()
}

/// A signal that is given after this number of checks.
fn after(checks: u32) -> Stop {
    let left = AtomicU32::new(checks);
    Stop::when(move || {
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    })
}

/// Reads a file from a checkpoint on. Returns the outcomes before the call that was stopped, with the checkpoint before
/// that call, or `None` at the end.
fn read(
    file: &[u8],
    from: Option<&Checkpoint>,
    threads: usize,
    stop: &Stop,
) -> (Vec<Outcome>, Option<Option<Checkpoint>>) {
    let reader = from.map_or_else(
        || Reader::new(Limits::default()),
        |from| Reader::resume(Limits::default(), from).unwrap(),
    );
    let mut reader = reader.with_threads(NonZeroUsize::new(threads).unwrap());
    let start = from.map_or(0, |from| usize::try_from(from.byte()).unwrap());
    let chunks: Vec<&[u8]> = file[start..].chunks(CHUNK).collect();
    let mut outcomes = Vec::new();
    for (index, chunk) in chunks.iter().enumerate() {
        reader.feed(chunk);
        if index + 1 == chunks.len() {
            reader.end();
        }
        loop {
            let before = reader.checkpoint();
            match reader.read_until(16, &|outcome| outcome, stop).unwrap() {
                Some(read) if read.is_empty() => break,
                Some(read) => outcomes.extend(read),
                None => {
                    assert_eq!(reader.read(16), Err(Error::Stopped));
                    assert!(reader.checkpoint().is_none());
                    return (outcomes, Some(before));
                }
            }
        }
    }
    (outcomes, None)
}

#[test]
fn stopped_file_is_resumed_before_the_interrupted_record() {
    let file = file();
    let (all, end) = read(file.as_bytes(), None, 1, &Stop::when(|| false));
    assert!(end.is_none() && all.len() == 82);
    for threads in [1, 3] {
        let mut counts = Vec::new();
        for checks in [0, 3, 6] {
            let (mut outcomes, end) = read(file.as_bytes(), None, threads, &after(checks));
            let Some(checkpoint) = end else { panic!("{checks} checks on {threads} threads") };
            counts.push(outcomes.len());
            let resumed = read(file.as_bytes(), checkpoint.as_ref(), threads, &Stop::when(|| false));
            outcomes.extend(resumed.0);
            assert!(outcomes == all, "{checks} checks on {threads} threads");
        }
        assert_eq!(counts, [0, 40, 40], "the records before the interrupted call, on {threads} threads");
    }
}

/// The signal is checked in proportion to the counted work.
#[test]
fn signal_is_checked_within_slow_records() {
    let (file, checks) = (file(), Arc::new(AtomicU32::new(0)));
    let counter = Arc::clone(&checks);
    let stop = Stop::when(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        false
    });
    let (_, spent) = work::counted(|| read(file.as_bytes(), None, 1, &stop));
    let checks = u64::from(checks.load(Ordering::Relaxed));
    // A pass over a record counts its length at once, which exceeds a period.
    assert!(checks >= 8 && checks >= spent / work::PERIOD / 8, "{checks} checks for {spent} bytes");
}
