//! Arbitrary bytes: detection, and whatever follows from it.

#![no_main]

libfuzzer_sys::fuzz_target!(|file: &[u8]| references_fuzz::check(file));
