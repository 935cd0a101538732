//! Reads all output again with the readers of this project.

// The helpers are tests too: a failed unwrap is a failed test with a line number.
#![allow(clippy::unwrap_used)]

mod fields;
mod hostile;
mod properties;
mod tables;
mod work;
mod workbooks;

use archives::Workbook;
use references::{Limits, Outcome, Reader, Reference, Report};
use uuid::Uuid;
use writers::{Format, Source, Study, Writer};

/// The key of the study at an index.
fn key(at: usize) -> Uuid {
    Uuid::from_u128(0x1000_0000_0000_4000_8000_0000_0000_0000 + at as u128)
}

fn source() -> Source {
    let text = |text: &str| Some(text.to_owned());
    Source { database: text("Embase"), platform: text("Ovid"), searched_on: text("2026-05-17") }
}

/// A file with these studies.
fn written(format: Format, references: &[Reference]) -> Vec<u8> {
    written_from(&source(), format, references)
}

/// A file with these studies from this source.
fn written_from(source: &Source, format: Format, references: &[Reference]) -> Vec<u8> {
    let (mut writer, mut file) = (Writer::new(format), Vec::new());
    for (at, reference) in references.iter().enumerate() {
        let study = Study {
            key: key(at),
            search: Uuid::nil(),
            file: "a.ris",
            record: at as u64 + 1,
            source,
            duplicate_of: (at == 1).then(|| key(0)),
            reference,
        };
        writer.push(&study, &mut file).unwrap();
    }
    writer.finish(&mut file).unwrap();
    file
}

fn text(format: Format, references: &[Reference]) -> String {
    String::from_utf8(written(format, references)).unwrap()
}

/// The first sheet of a workbook as a table.
fn table_of(workbook: &[u8]) -> Vec<u8> {
    let book = Workbook::open(workbook.to_vec(), archives::Limits::default()).unwrap();
    let mut sheet = book.text(0).unwrap().unwrap();
    let mut table = Vec::new();
    while sheet.next_piece(&mut table).unwrap() {}
    table
}

/// Reads a file with our readers; no record may be quarantined. A workbook is unpacked first.
fn read(file: &[u8]) -> (Vec<Reference>, Report) {
    let mut reader = Reader::new(Limits::default());
    let table = file.starts_with(b"PK").then(|| table_of(file));
    let mut outcomes = reader.push(table.as_deref().unwrap_or(file)).unwrap();
    let (more, report) = reader.finish().unwrap();
    outcomes.extend(more);
    let references = outcomes.into_iter().map(|outcome| match outcome {
        Outcome::Read(record) => record.reference,
        Outcome::Quarantined(quarantine) => panic!("{quarantine:?}"),
    });
    (references.collect(), report)
}
