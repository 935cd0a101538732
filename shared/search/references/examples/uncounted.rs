//! Searches for work that is not counted: files that take more than twice the time if their size is doubled.
//!
//! The tests count work, so they cannot find a scan that does not count itself. This program measures time instead,
//! for every fragment in every gap of the tests, and for random combinations. A finding becomes a row of the tests.
//!
//! ```sh
//! cargo run --release --package references --example uncounted -- [SECONDS]
//! ```

#![allow(clippy::print_stdout, reason = "it is the result")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use fragments::{GAPS, PIECES};
use references::{Limits, Reader};

#[path = "../tests/all/work/fragments.rs"]
mod fragments;

/// The size of the smallest file in bytes. The size is doubled twice.
const BYTES: usize = 32 * 1024;
/// The size of the chunks in which a file is read, so that the memory for its records stays small.
const CHUNK: usize = 8 * 1024;
/// The time that a file of this size needs at least before its growth is measured.
const NOTABLE: Duration = Duration::from_millis(6);
/// The maximum growth for double the size: twice the time, and an allowance for the variation of measurements.
const GROWTH: f64 = 2.6;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(60);
    let start = Instant::now();
    let mut found = 0;
    for gap in GAPS {
        found += PIECES.iter().filter(|piece| is_reported(gap, piece)).count();
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    while start.elapsed() < Duration::from_secs(seconds) {
        let fragment: String = (0..2 + random.below(2)).map(|_| PIECES[random.below(PIECES.len())]).collect();
        found += usize::from(is_reported(GAPS[random.below(GAPS.len())], &fragment));
    }
    println!("{found} found in {} s", start.elapsed().as_secs());
}

/// Reports a fragment whose repetition takes more than proportional time, twice in a row.
fn is_reported(gap: (&str, &str), fragment: &str) -> bool {
    let once = time(gap, fragment, BYTES);
    if once < NOTABLE {
        return false;
    }
    let twice = time(gap, fragment, 2 * BYTES);
    if twice.div_duration_f64(once) < GROWTH {
        return false;
    }
    let fourfold = time(gap, fragment, 4 * BYTES);
    let grows = fourfold.div_duration_f64(twice) > GROWTH;
    if grows {
        println!("{once:.1?}, {twice:.1?}, {fourfold:.1?}: {fragment:?} in {gap:?}");
    }
    grows
}

fn time((front, back): (&str, &str), fragment: &str, bytes: usize) -> Duration {
    let file = [front, &fragment.repeat(bytes.div_ceil(fragment.len())), back].concat();
    let start = Instant::now();
    let mut reader = Reader::new(Limits::default());
    // A refused file was read up to its fault.
    for chunk in file.as_bytes().chunks(CHUNK) {
        if black_box(reader.push(chunk)).is_err() {
            return start.elapsed();
        }
    }
    let _ = black_box(reader.finish());
    start.elapsed()
}

/// A generator of numbers that needs no crate.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
