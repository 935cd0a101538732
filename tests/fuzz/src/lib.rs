//! Properties of every file; the targets differ in how they generate one.

use references::{Error, Limits, Reader};

/// Reads the bytes in one piece, and in two pieces cut at an offset that the bytes determine, and compares the results.
///
/// # Panics
/// Panics if a property does not hold.
pub fn check(file: &[u8]) {
    let limits = Limits { max_file_bytes: 1 << 20, max_record_bytes: 1 << 16, ..Limits::default() };
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
    let sum: usize = file.iter().map(|&byte| usize::from(byte)).sum();
    let (front, back) = file.split_at(sum % (file.len() + 1));
    let whole = read(&[file]);
    assert_eq!(read(&[front, back]), whole);
    let Ok((outcomes, report)) = whole else { return };
    assert_eq!(report.records, outcomes.len() as u64);
    let mut last = 0;
    for outcome in outcomes {
        let range = outcome.bytes();
        assert!(last <= range.start && range.start < range.end && range.end <= file.len() as u64);
        last = range.end;
    }
}
