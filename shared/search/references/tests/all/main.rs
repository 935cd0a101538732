//! The crate from its callers' point of view: whole files in, outcomes out.

// The helpers are tests too: a failed unwrap is a failed test with a line number, and a skipped test prints a message.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod accounted;
mod bundled;
mod compact;
mod databases;
mod differential;
mod exports;
mod extract;
mod files;
mod formats;
mod hostile;
mod limits;
mod merged;
mod other_formats;
mod pieces;
mod programs;
mod properties;
mod samples;
mod spreadsheets;
mod stop;
mod text_formats;
mod threads;
mod variants;
mod work;

use references::{Error, Limits, Outcome, Reader, Reference, Report};

/// Reads a whole file pushed in chunks of `chunk` bytes.
fn read_in_chunks(bytes: &[u8], chunk: usize, limits: Limits) -> Result<(Vec<Outcome>, Report), Error> {
    let mut reader = Reader::new(limits);
    let mut outcomes = Vec::new();
    for chunk in bytes.chunks(chunk) {
        outcomes.extend(reader.push(chunk)?);
    }
    let (last, report) = reader.finish()?;
    outcomes.extend(last);
    Ok((outcomes, report))
}

fn read(bytes: &[u8]) -> Result<(Vec<Outcome>, Report), Error> {
    read_in_chunks(bytes, 8192, Limits::default())
}

/// The references of a file in which every record must be readable.
fn references(text: &str) -> Vec<Reference> {
    let (outcomes, _) = read(text.as_bytes()).unwrap();
    outcomes.into_iter().map(reference).collect()
}

fn reference(outcome: Outcome) -> Reference {
    match outcome {
        Outcome::Read(record) => record.reference,
        Outcome::Quarantined(quarantine) => panic!("quarantined: {quarantine:?}"),
    }
}

/// The byte range of an outcome in its file.
fn place(outcome: &Outcome) -> std::ops::Range<usize> {
    let bytes = outcome.bytes();
    usize::try_from(bytes.start).unwrap()..usize::try_from(bytes.end).unwrap()
}

/// The original bytes of an outcome.
fn original<'a>(file: &'a [u8], outcome: &Outcome) -> &'a [u8] {
    &file[place(outcome)]
}

fn line(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Read(record) => record.line,
        Outcome::Quarantined(quarantine) => quarantine.line,
    }
}
