//! Memory that a reader allocates for workbooks. This is a separate test program with a single test, because its
//! allocator counts for all threads.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

#[path = "all/pack.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod pack;

use std::fmt::Write;

use archives::{Error, Limits, Workbook};
use peak_alloc::PeakAlloc;

use crate::pack::{File, file, stored, zip};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The bound for a workbook, including its packed bytes. It keeps the whole worker below 64 MiB.
const BOUND: usize = 44 << 20;

const MIB: usize = 1 << 20;

/// A workbook with these parts, and minimal other parts.
fn workbook(parts: Vec<File>) -> Vec<u8> {
    let list = "<workbook><sheets><sheet name=\"a\" r:id=\"r1\"/></sheets></workbook>";
    let relations =
        "<Relationships><Relationship Id=\"r1\" Target=\"worksheets/sheet1.xml\"/></Relationships>";
    let rest = [
        stored("xl/workbook.xml", list.as_bytes()),
        stored("xl/_rels/workbook.xml.rels", relations.as_bytes()),
        stored("xl/worksheets/sheet1.xml", b"<worksheet/>"),
    ];
    let is_given = |name: &[u8]| parts.iter().any(|part| part.name == name);
    let rest: Vec<File> = rest.into_iter().filter(|part| !is_given(&part.name)).collect();
    zip(&[rest, parts].concat())
}

fn sheet(rows: &str) -> File {
    stored(
        "xl/worksheets/sheet1.xml",
        format!("<worksheet><sheetData>{rows}</sheetData></worksheet>").as_bytes(),
    )
}

fn strings(items: &str) -> File {
    stored("xl/sharedStrings.xml", format!("<sst>{items}</sst>").as_bytes())
}

/// Returns the size of a workbook's text in bytes, or the reason why it is refused.
fn read(bytes: Vec<u8>) -> Result<usize, Error> {
    let book = Workbook::open(bytes, Limits::default())?;
    let mut read = 0;
    for index in 0..book.sheets().len() {
        let Some(mut text) = book.text(index)? else { continue };
        loop {
            let mut piece = Vec::new();
            let goes_on = text.next_piece(&mut piece)?;
            read += piece.len();
            if !goes_on {
                break;
            }
        }
    }
    Ok(read)
}

fn numbered(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut all, number| {
        all.push_str(&item(number));
        all
    })
}

/// Workbooks that are refused while they are read, each with the limit that it exceeds.
fn refused() -> Vec<(Vec<u8>, &'static str)> {
    let long = "x".repeat(MIB - 100);
    let pieces = |piece: &str| piece.repeat(6 * MIB / piece.len());
    let named = numbered(1_000, |_| "<c t=\"s\"><v>0</v></c>".to_owned());
    let held = numbered(1_000, |column| {
        let (first, second) = (column / 26, column % 26);
        let letter = |at: usize| char::from(b'A' + u8::try_from(at).unwrap());
        format!("<mergeCell ref=\"{0}{1}1:{0}{1}9\"/>", letter(first.min(25)), letter(second))
    });
    let merged = format!(
        "<worksheet><sheetData><row r=\"1\">{}</row></sheetData><mergeCells>{held}</mergeCells></worksheet>",
        numbered(400, |_| format!("<c t=\"str\"><v>{}</v></c>", "x".repeat(4_000)))
    );
    let list = numbered(200, |_| format!("<sheet name=\"{}\" r:id=\"r1\"/>", "x".repeat(30_000)));
    let relations = numbered(60_000, |number| {
        format!("<Relationship Id=\"r{number}\" Target=\"worksheets/sheet1.xml\"/>")
    });
    vec![
        (
            workbook(vec![
                strings(&format!("<si><t>{long}</t></si>")),
                sheet(&format!("<row>{named}</row>")),
            ]),
            "more text in a row",
        ),
        (
            workbook(vec![strings(&format!("<si>{}</si>", pieces("<t>some text</t>")))]),
            "characters in a cell",
        ),
        (
            workbook(vec![strings(&format!("<si><t>{}</t></si>", pieces("text<!-- -->")))]),
            "characters in a cell",
        ),
        (
            workbook(vec![sheet(&format!("<row><c t=\"str\"><v>{}</v></c></row>", pieces("text<!-- -->")))]),
            "characters in a cell",
        ),
        (
            workbook(vec![sheet(&format!(
                "<row><c t=\"inlineStr\"><is>{}</is></c></row>",
                pieces("<t>some text</t>")
            ))]),
            "characters in a cell",
        ),
        // Cells outside of rows are kept for the next row.
        (
            workbook(vec![sheet(&numbered(1_000, |column| {
                let cell = char::from(b'A' + u8::try_from(column % 26).unwrap());
                format!("<c r=\"{cell}1\" t=\"str\"><v>{}</v></c>", "x".repeat(6_000))
            }))]),
            "more text in a row",
        ),
        (workbook(vec![stored("xl/worksheets/sheet1.xml", merged.as_bytes())]), "text in merged cells"),
        (
            workbook(vec![stored(
                "xl/workbook.xml",
                format!("<workbook><sheets>{list}</sheets></workbook>").as_bytes(),
            )]),
            "characters in the name of a sheet",
        ),
        (
            workbook(vec![stored(
                "xl/_rels/workbook.xml.rels",
                format!("<Relationships>{relations}</Relationships>").as_bytes(),
            )]),
            "more relationships",
        ),
        (
            workbook(vec![sheet(&format!("<{0}>", format!("<{}>", "x".repeat(100_000)).repeat(60)))]),
            "too long names",
        ),
        (workbook(vec![strings(&"<si/>".repeat(1_100_000))]), "more text"),
    ]
}

/// Workbooks that are accepted, at the largest size of their type.
fn accepted() -> Vec<Vec<u8>> {
    // Twelve bytes of text per byte of markup, hardly any of it repeated.
    let text = |number: usize| format!("{:x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15)).repeat(64);
    let texts = numbered(11_000, |number| format!("<si><t>{}</t></si>", text(number)));
    let cells = numbered(11_000, |number| format!("<row><c t=\"s\"><v>{number}</v></c></row>"));
    let quoted = format!("<row><c t=\"str\"><v>{}</v></c></row>", "\"".repeat(MIB - 100)).repeat(3);
    let mut formats = String::from("<styleSheet><numFmts>");
    for id in 200..60_200 {
        write!(formats, "<numFmt numFmtId=\"{id}\" formatCode=\"y\"/>").unwrap();
    }
    formats.push_str("</numFmts><cellXfs>");
    for id in (200..60_200).rev() {
        write!(formats, "<xf numFmtId=\"{id}\"/>").unwrap();
    }
    formats.push_str("</cellXfs></styleSheet>");
    vec![
        workbook(vec![file("xl/sharedStrings.xml", format!("<sst>{texts}</sst>").as_bytes()), sheet(&cells)]),
        workbook(vec![sheet(&quoted)]),
        workbook(vec![stored("xl/styles.xml", formats.as_bytes())]),
        workbook(vec![strings(&"<si/>".repeat(900_000))]),
    ]
}

#[test]
fn any_workbook_stays_within_memory_bound() {
    let measured = |bytes: Vec<u8>| {
        let before = PeakAlloc.current_usage() - bytes.len();
        PeakAlloc.reset_peak_usage();
        let read = read(bytes);
        (read, PeakAlloc.peak_usage() - before)
    };
    for (bytes, limit) in refused() {
        let (read, peak) = measured(bytes);
        let error = read.expect_err(limit).to_string();
        assert!(error.contains(limit), "{error:?} instead of {limit:?}");
        assert!(peak < BOUND, "{limit}: {} MiB", peak / MIB);
    }
    for (index, bytes) in accepted().into_iter().enumerate() {
        let (read, peak) = measured(bytes);
        assert!(read.is_ok(), "workbook {index}: {read:?}");
        assert!(peak < BOUND, "workbook {index}: {} MiB", peak / MIB);
    }
}
