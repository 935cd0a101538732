//! Arbitrary bytes after the beginning of each format, so that every splitter and reader is reached without guessing a
//! format. The first byte selects the format.

#![no_main]

use fuzz::check;
use libfuzzer_sys::fuzz_target;

use pieces::STARTS;

#[allow(dead_code, reason = "only the beginnings are used here")]
#[path = "../../../shared/search/references/tests/all/pieces.rs"]
mod pieces;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else { return };
    let start = STARTS[usize::from(*choice) % STARTS.len()];
    check(&[start.as_bytes(), bytes].concat());
});
