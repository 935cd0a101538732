//! Any bytes at all: detection, and whatever it leads to.

#![no_main]

libfuzzer_sys::fuzz_target!(|file: &[u8]| references_fuzz::check(file));
