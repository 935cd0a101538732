//! Reads reference files.
