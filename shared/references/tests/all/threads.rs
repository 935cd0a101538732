//! Several threads change nothing but the time it takes.

use std::num::NonZeroUsize;

use references::{Limits, Outcome, Reader, Report};

use crate::{bundled::bundled, read};

/// Large enough for threads to be started at all.
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
fn outcomes_and_their_order_stay_the_same() {
    for name in ["psycinfo.ris", "pubmed.nbib", "embase.csv", "windows-1252.ris"] {
        let file = large(name);
        let one = read(&file).unwrap();
        assert!(one.1.records > 100, "{name}");
        for threads in [1, 2, 7] {
            assert!(read_on(threads, &file) == one, "{name} on {threads} threads");
        }
    }
}
