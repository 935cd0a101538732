//! Limits hold while streaming, and a refused file stays refused.

use references::{Error, Limits, Reader};

use crate::{read_in_chunks, references};

const SMALL: Limits = Limits { max_file_bytes: 1 << 20, max_record_bytes: 1000 };

#[test]
fn a_record_over_the_limit_refuses_the_file_in_every_format() {
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
fn a_record_that_never_ends_is_refused_before_it_fills_memory() {
    let mut reader = Reader::new(Limits { max_file_bytes: u64::MAX, max_record_bytes: 100_000 });
    reader.push(b"<xml><records><record><title>").unwrap();
    let refused = (0..20).find_map(|_| reader.push(&[b'x'; 10_000]).err());
    assert_eq!(refused, Some(Error::RecordTooLarge { number: 1, line: 1, limit: 100_000 }));
}

#[test]
fn a_file_over_the_limit_is_refused_and_stays_so() {
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
fn a_file_of_exactly_the_limit_is_read() {
    let file = "TY  - JOUR\nTI  - a\nER  -\n";
    let limits = Limits { max_file_bytes: file.len() as u64, max_record_bytes: file.len() - 1 };
    assert_eq!(read_in_chunks(file.as_bytes(), 5, limits).unwrap().1.records, 1);
    assert_eq!(references(file).len(), 1);
}
