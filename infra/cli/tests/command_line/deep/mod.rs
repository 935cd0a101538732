//! Tests that take minutes, for `make prove`.

#[cfg(target_os = "linux")]
mod disk;
