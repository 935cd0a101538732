//! Several threads only change the time, not the results.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use references::{Limits, Outcome, Reader, Report};

use crate::{bundled::bundled, read};

/// A file that is large enough for threads to start.
fn large(name: &str) -> Vec<u8> {
    let file = bundled(name);
    file.repeat(1 + (600 << 10) / file.len())
}

fn read_on(threads: usize, file: &[u8]) -> (Vec<Outcome>, Report) {
    let mut reader = Reader::new(Limits::default()).with_threads(NonZeroUsize::new(threads).unwrap());
    let mut outcomes = Vec::new();
    for chunk in file.chunks(300 << 10) {
        outcomes.extend(reader.push(chunk).unwrap());
    }
    let (last, report) = reader.finish().unwrap();
    outcomes.extend(last);
    (outcomes, report)
}

#[test]
fn outcomes_are_independent_of_threads() {
    for name in ["psycinfo.ris", "pubmed.nbib", "embase.csv", "windows-1252.ris"] {
        let file = large(name);
        let one = read(&file).unwrap();
        assert!(one.1.records > 100, "{name}");
        for threads in [1, 2, 7] {
            assert!(read_on(threads, &file) == one, "{name} on {threads} threads");
        }
    }
}

/// A point at which threads wait for each other once.
#[derive(Default)]
struct Meeting {
    here: Mutex<HashSet<ThreadId>>,
    came: Condvar,
}

impl Meeting {
    /// A time in which any machine wakes a thread; it passes only if a test fails.
    const TIMEOUT: Duration = Duration::from_secs(60);

    /// Returns `true` once two threads have called this function; the first thread waits for the second.
    fn attend(&self) -> bool {
        let mut here = self.here.lock().unwrap();
        if here.insert(thread::current().id()) {
            self.came.notify_all();
            here = self.came.wait_timeout_while(here, Self::TIMEOUT, |here| here.len() < 2).unwrap().0;
        }
        here.len() == 2
    }
}

#[test]
fn results_are_made_on_all_reading_threads() {
    let file = large("psycinfo.ris");
    let (one, _) = read(&file).unwrap();
    let meeting = Meeting::default();
    let mut reader = Reader::new(Limits::default()).with_threads(NonZeroUsize::new(2).unwrap());
    reader.feed(&file);
    reader.end();
    let make = |outcome: Outcome| (outcome.number(), outcome.bytes().clone(), meeting.attend());
    let made = reader.read_as(usize::MAX, &make).unwrap();
    assert_eq!(made.len(), one.len());
    for ((number, bytes, met), outcome) in made.iter().zip(&one) {
        assert_eq!((*number, bytes, *met), (outcome.number(), outcome.bytes(), true));
    }
}

#[test]
fn resumed_reader_uses_several_threads() {
    let file = large("psycinfo.ris");
    let (start, rest) = file.split_at(100 << 10);
    let mut before = Reader::new(Limits::default());
    before.push(start).unwrap();
    let checkpoint = before.checkpoint().unwrap();
    let again = usize::try_from(checkpoint.byte()).unwrap();

    let meeting = Meeting::default();
    let after = Reader::resume(Limits::default(), &checkpoint).unwrap();
    let mut after = after.with_threads(NonZeroUsize::new(2).unwrap());
    after.feed(&start[again..]);
    after.feed(rest);
    assert!(after.read_as(usize::MAX, &|_| meeting.attend()).unwrap().into_iter().all(|met| met));
}
