//! Memory that a reader allocates for records. This is a separate test program with a single test, because its
//! allocator counts for all threads.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use peak_alloc::PeakAlloc;
use references::{Limits, Reader};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;
/// The default record limits of the programs.
const LIMITS: Limits = Limits { max_file_bytes: 1 << 30, max_record_bytes: 4 << 20, max_records: 2_000_000 };
/// The bound for a reader. It keeps the whole worker below 64 MiB.
const BOUND: usize = 48 * MIB;
/// The number of records that the parser retrieves at a time.
const BATCH: usize = 1_024;

/// Files of one record each, of nearly the maximum size and with as many values as possible.
fn files() -> Vec<(&'static str, String)> {
    let many = |value: &str| value.repeat((3 * MIB + MIB / 2) / value.len());
    let columns =
        (0..400_000).fold(String::from("Title"), |header, number| header + "," + &(number % 9).to_string());
    vec![
        ("RIS authors", format!("TY  - JOUR\nTI  - a\n{}ER  - \n", many("AU  - x\n"))),
        ("RIS abstracts", format!("TY  - JOUR\nTI  - a\n{}ER  - \n", many("AB  - x\n"))),
        ("RIS unknown tags", format!("TY  - JOUR\nTI  - a\n{}ER  - \n", many("ZZ  - x\n"))),
        ("nbib authors", format!("PMID- 1\nTI  - a\n{}\n", many("FAU - x\n"))),
        ("Web of Science authors", format!("FN x\nVR 1.0\nPT J\nTI a\n{}ER\n\nEF\n", many("AU x\n"))),
        ("BibTeX authors", format!("@article{{a,\n title = {{a}},\n author = {{{}b}}}}\n", many("a and "))),
        ("BibTeX fields", format!("@article{{a,\n title = {{a}},\n {}}}\n", many("a=1,"))),
        ("BibTeX keywords", format!("@article{{a,\n title = {{a}},\n keywords = {{{}}}}}\n", many("a,"))),
        ("CSV authors", format!("Title,Authors\na,\"{}\"\n", many("x;"))),
        ("CSV cells", format!("Title,Authors\na,{}\n", many("x,"))),
        ("CSV columns", format!("{columns}\na\n")),
        ("TSV cells", format!("Title\tAuthors\na\t{}\n", many("x\t"))),
        ("JSON values", format!("[{{\"title\": \"a\", \"type\": \"article\", \"x\": [{}1]}}]", many("1,"))),
        ("JSON names", {
            let names = (0..250_000).fold(String::new(), |all, number| all + &format!("\"{number:x}\":1,"));
            format!("[{{\"title\": \"a\", \"type\": \"article\", {names} \"y\": 1}}]")
        }),
        (
            "XML authors",
            format!(
                "<xml><records><record><titles><title>a</title></titles><contributors><authors>{}</authors>\
                 </contributors></record></records></xml>",
                many("<author>x</author>")
            ),
        ),
        (
            "XML keywords",
            format!(
                "<xml><records><record><titles><title>a</title></titles><keywords>{}</keywords></record></records>\
                 </xml>",
                many("<keyword>x</keyword>")
            ),
        ),
        (
            "XML attributes",
            format!(
                "<xml><records><record><titles><title>a</title></titles>{}</record></records></xml>",
                many(&format!("<a {}>x</a>", "b=\"1\" ".repeat(9_000)))
            ),
        ),
    ]
}

/// Returns the number of records and of quarantined ones, or the reason why the file is refused.
fn read(file: &str) -> Result<(u64, u64), references::Error> {
    let mut reader = Reader::new(LIMITS);
    for chunk in file.as_bytes().chunks(MIB) {
        reader.feed(chunk);
        while !reader.read(BATCH)?.is_empty() {}
    }
    reader.end();
    while !reader.read(BATCH)?.is_empty() {}
    let report = reader.report()?;
    Ok((report.records, report.quarantined))
}

#[test]
fn any_record_stays_within_memory_bound() {
    // Allocates the tables that all files share.
    read("TY  - JOUR\nTI  - a\nER  - \n").unwrap();
    let mut over = Vec::new();
    for (name, file) in files() {
        let before = PeakAlloc.current_usage();
        PeakAlloc.reset_peak_usage();
        let read = read(&file);
        let peak = PeakAlloc.peak_usage() - before;
        if peak > BOUND || read.is_err() {
            over.push(format!("{name}: {} MiB, {read:?}", peak / MIB));
        }
    }
    assert!(over.is_empty(), "{over:#?}");
}
