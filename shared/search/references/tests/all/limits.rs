//! Limits hold while streaming, and a refused file stays refused.

use references::{Error, Limits, Outcome, Reader};

use crate::{read, read_in_chunks, references};

const SMALL: Limits = Limits { max_file_bytes: 1 << 20, max_record_bytes: 1000, max_records: 1 << 20 };

#[test]
fn oversized_record_refuses_file_in_every_format() {
    let long = "x".repeat(2000);
    let files = [
        format!("TY  - JOUR\nTI  - a\nER  -\nTY  - JOUR\nTI  - {long}\nER  -\n"),
        format!("PMID- 1\nTI  - a\n\nPMID- 2\nTI  - {long}\n"),
        format!(
            "<xml><records><record><title>a</title></record><record><title>{long}</title></record></records></xml>"
        ),
        format!("Title\na\n{long}\n"),
    ];
    for file in files {
        for chunk in [1, 7, 100_000] {
            let error = read_in_chunks(file.as_bytes(), chunk, SMALL).unwrap_err();
            assert!(
                matches!(error, Error::RecordTooLarge { number: 2, limit: 1000, .. }),
                "{chunk}: {error}"
            );
        }
    }
}

#[test]
fn endless_record_is_refused_in_bounded_memory() {
    let mut reader = Reader::new(Limits { max_file_bytes: u64::MAX, max_record_bytes: 100_000, ..SMALL });
    reader.push(b"<xml><records><record><title>").unwrap();
    let refused = (0..20).find_map(|_| reader.push(&[b'x'; 10_000]).err());
    assert_eq!(refused, Some(Error::RecordTooLarge { number: 1, line: 1, limit: 100_000 }));
}

#[test]
fn oversized_file_stays_refused() {
    let file = "TY  - JOUR\nTI  - a\nER  -\n".repeat(10);
    let limits = Limits { max_file_bytes: 100, ..SMALL };
    for chunk in [1, 30, 1000] {
        assert_eq!(
            read_in_chunks(file.as_bytes(), chunk, limits).unwrap_err(),
            Error::TooLarge { limit: 100 }
        );
    }
    let mut reader = Reader::new(limits);
    reader.push(file.as_bytes()).unwrap_err();
    assert_eq!(reader.push(b"").unwrap_err(), Error::TooLarge { limit: 100 });
    assert_eq!(reader.finish().unwrap_err(), Error::TooLarge { limit: 100 });
}

#[test]
fn excess_records_refuse_file_in_any_chunking() {
    let file = "Title\na\n\"b\nc\"\nd\n";
    let limits = |max_records| Limits { max_records, ..SMALL };
    for chunk in [1, 3, 1000] {
        let refused = read_in_chunks(file.as_bytes(), chunk, limits(2)).unwrap_err();
        assert_eq!(refused, Error::TooManyRecords { limit: 2 });
        assert_eq!(read_in_chunks(file.as_bytes(), chunk, limits(3)).unwrap().1.records, 3);
    }
    let mut reader = Reader::new(limits(2));
    reader.feed(file.as_bytes());
    reader.end();
    assert_eq!(reader.read(2).unwrap().len(), 2);
    assert_eq!(reader.read(2).unwrap_err(), Error::TooManyRecords { limit: 2 });
    assert_eq!(reader.read(2).unwrap_err(), Error::TooManyRecords { limit: 2 });
}

/// Regardless of the defect: junk files consist of such records.
#[test]
fn unreadable_records_count_towards_limit() {
    let limits = Limits { max_records: 2, ..SMALL };
    let refused = read_in_chunks(b"Title\na,b\na,b\na,b\n", 1000, limits).unwrap_err();
    assert_eq!(refused, Error::TooManyRecords { limit: 2 });
}

#[test]
fn read_returns_at_most_requested_outcomes() {
    let file = format!("Title\n{}", "a\n".repeat(50_000));
    let mut reader = Reader::new(Limits::default());
    let mut numbers = Vec::new();
    for piece in file.as_bytes().chunks(70_000) {
        reader.feed(piece);
        loop {
            let outcomes = reader.read(1_000).unwrap();
            assert!(outcomes.len() <= 1_000);
            numbers.extend(outcomes.iter().map(references::Outcome::number));
            if outcomes.is_empty() {
                break;
            }
        }
    }
    reader.end();
    loop {
        let outcomes = reader.read(1_000).unwrap();
        assert!(outcomes.len() <= 1_000);
        numbers.extend(outcomes.iter().map(references::Outcome::number));
        if outcomes.is_empty() {
            break;
        }
    }
    assert!(numbers.into_iter().eq(1..=50_000));
    assert_eq!(reader.report().unwrap().records, 50_000);
}

#[test]
fn file_of_exactly_maximum_size_is_read() {
    let file = "TY  - JOUR\nTI  - a\nER  -\n";
    let limits =
        Limits { max_file_bytes: file.len() as u64, max_record_bytes: file.len() - 1, max_records: 1 };
    assert_eq!(read_in_chunks(file.as_bytes(), 5, limits).unwrap().1.records, 1);
    assert_eq!(references(file).len(), 1);
}

#[test]
fn mostly_untitled_file_is_refused() {
    let file = |titled: usize, untitled: usize| {
        "TY  - JOUR\nTI  - a\nER  -\n".repeat(titled)
            + &"TY  - JOUR\nDO  - 10.5555/a\nER  -\n".repeat(untitled)
    };
    for chunk in [7, 10_000] {
        let refused = read_in_chunks(file(4, 6).as_bytes(), chunk, Limits::default()).unwrap_err();
        assert!(matches!(refused, Error::UntitledRecords { untitled: 6, records: 10, .. }), "{refused}");
    }
    assert!(refused_not(&file(5, 5)) && refused_not(&file(0, 9)));
}

/// Formats with named fields are understood if authors were found; columns of a table may mean anything.
#[test]
fn records_with_authors_only_are_kept_outside_tables() {
    let entries = "@book{a, author = {Roe, Jane}, note = {x}}\n".repeat(12);
    let (outcomes, report) = read_in_chunks(entries.as_bytes(), 100, Limits::default()).unwrap();
    assert_eq!((outcomes.len(), report.untitled), (12, 12));
    let rows = format!("Title,Authors,Heading\n{}", ",\"Roe, Jane\",a\n".repeat(12));
    let refused = read_in_chunks(rows.as_bytes(), 100, Limits::default()).unwrap_err();
    assert!(matches!(refused, Error::UntitledRecords { untitled: 12, records: 12, .. }), "{refused}");
}

#[test]
fn skipped_text_is_reported() {
    let skipped = |file: &str| {
        let named = [1, 7, 10_000]
            .map(|chunk| read_in_chunks(file.as_bytes(), chunk, Limits::default()).unwrap().1.skipped);
        assert!(named.iter().all(|one| *one == named[0]), "{named:?}");
        named[0].clone().map(|skipped| (skipped.lines, skipped.line, skipped.excerpt))
    };
    let is = |lines, line, text: &str| Some((lines, line, text.to_owned()));
    assert_eq!(skipped("TY  - JOUR\nTI  - a\nER  -\n\nZZ  - lost\nmore\n"), is(2, 5, "ZZ  - lost"));
    assert_eq!(skipped("About: all\n\nTitle,Year\na,1\n\nTitle,Year\nb,2\n"), is(1, 1, "About: all"));
    assert_eq!(skipped("@article{a, title = {A}}\nlost, \n@article{b, title = {B}}"), is(1, 2, "lost,"));
    assert_eq!(
        skipped("<xml><records><record><title>a</title></record>lost</records></xml>"),
        is(1, 1, "lost")
    );
    assert_eq!(skipped("[{\"type\": \"book\", \"title\": \"a\"},\n\"lost\"]"), is(1, 2, "\"lost\"]"));
    assert_eq!(skipped("1.\nTY  - JOUR\nTI  - a\nER  -\n\n\n2.\n"), None);
}

fn refused_not(file: &str) -> bool {
    read_in_chunks(file.as_bytes(), 100, Limits::default()).is_ok()
}

#[test]
fn row_exceeding_column_limit_is_quarantined() {
    let row = |cells: usize| ["a"].repeat(cells).join(",");
    let header = format!("Title,Authors,{}", row(4_998));
    let file = format!("{header}\n{}\n{}\n", row(4_096), row(4_097));
    let (outcomes, report) = read(file.as_bytes()).unwrap();
    assert_eq!((report.records, report.quarantined), (2, 1));
    assert!(matches!(outcomes.last(), Some(Outcome::Quarantined(_))), "{:?}", outcomes.last());
}
