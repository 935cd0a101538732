//! Bytes behind the beginning of each format, so that none of them has to be found by chance.

#![no_main]

use libfuzzer_sys::fuzz_target;
use references::{Error, Limits, Outcome, Reader};

const STARTS: [&str; 8] = [
    "TY  - JOUR\n",
    "PMID- 1\n",
    "<xml><records><record>",
    "<PubmedArticleSet><PubmedArticle>",
    "@article{a, title = {A}, ",
    "PT J\n",
    "Title,Authors,DOI\n",
    "Title\tYear\r\n",
];

fuzz_target!(|input: (u8, u16, Vec<u8>)| {
    let (start, at, bytes) = input;
    let start = STARTS[usize::from(start) % STARTS.len()];
    check(&[start.as_bytes(), &bytes].concat(), usize::from(at));
});

/// Reads the bytes whole and cut in two, and checks what has to hold for any file.
fn check(file: &[u8], at: usize) {
    let limits = Limits { max_file_bytes: 1 << 20, max_record_bytes: 1 << 16 };
    let read = |chunks: &[&[u8]]| {
        let mut reader = Reader::new(limits);
        let mut outcomes = Vec::new();
        for chunk in chunks {
            outcomes.extend(reader.push(chunk)?);
        }
        let (last, report) = reader.finish()?;
        outcomes.extend(last);
        Ok::<_, Error>((outcomes, report))
    };
    let (front, back) = file.split_at(at % (file.len() + 1));
    let whole = read(&[file]);
    assert_eq!(read(&[front, back]), whole);
    let Ok((outcomes, report)) = whole else { return };
    assert_eq!(report.records, outcomes.len() as u64);
    let mut last = 0;
    for outcome in outcomes {
        let range = match outcome {
            Outcome::Read(record) => record.bytes,
            Outcome::Quarantined(quarantine) => quarantine.bytes,
        };
        assert!(last <= range.start && range.start < range.end && range.end <= file.len() as u64);
        last = range.end;
    }
}
