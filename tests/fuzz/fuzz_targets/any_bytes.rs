//! Arbitrary bytes: the detection of the format, and everything after it.

#![no_main]

libfuzzer_sys::fuzz_target!(|file: &[u8]| fuzz::check(file));
