//! Arbitrary bytes after the beginning of each format, so that no format has to be found by chance: the splitter and the
//! reader of each. The first byte chooses the format.

#![no_main]

use libfuzzer_sys::fuzz_target;
use references_fuzz::check;

use pieces::STARTS;

#[allow(dead_code, reason = "only the beginnings are used here")]
#[path = "../../../tests/all/pieces.rs"]
mod pieces;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else { return };
    let start = STARTS[usize::from(*choice) % STARTS.len()];
    check(&[start.as_bytes(), bytes].concat());
});
