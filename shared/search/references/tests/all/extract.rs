//! Unreadable records, exported to files that can be corrected and read again.

use references::{Encoding, Format, Limits, Outcome, RecordExtractor};

use crate::{bundled::bundled, pieces::BUNDLED, read};

/// Extracts the records that `wanted` selects.
fn cut(file: &[u8], chunk: usize, wanted: impl Fn(&Outcome) -> bool) -> Vec<u8> {
    let (outcomes, _) = read(file).unwrap();
    let places = outcomes.iter().filter(|outcome| wanted(outcome)).map(|outcome| outcome.bytes().clone());
    let mut cutting = RecordExtractor::new(Limits::default(), places);
    let mut out = Vec::new();
    for chunk in file.chunks(chunk) {
        out.extend(cutting.push(chunk).unwrap());
    }
    out.extend(cutting.finish().unwrap());
    out
}

fn quarantined(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Quarantined(_))
}

/// The contents of outcomes without their positions.
fn contents(file: &[u8]) -> (Format, Encoding, Vec<String>) {
    let (outcomes, report) = read(file).unwrap();
    let said = outcomes.into_iter().map(|outcome| match outcome {
        Outcome::Read(record) => format!("{:?}", record.reference),
        Outcome::Quarantined(quarantine) => quarantine.reason,
    });
    (report.format, report.encoding, said.collect())
}

#[test]
fn extracting_all_records_reproduces_the_file() {
    for name in BUNDLED {
        let file = bundled(name);
        let again = cut(&file, usize::MAX, |_| true);
        assert_eq!(contents(&again), contents(&file), "{name}");
        assert_eq!(cut(&file, 7, |_| true), again, "{name}");
    }
}

#[test]
fn extracted_text_records_stay_separate() {
    for file in [
        "1. J. 2020;1:2.\n\nA.\n\nPMID: 7\n\n\n2. J. 2021.\n\nB.\n\nPMID: 8\n",
        "%0 Book\n%T a\n\n%A Roe, R\n%T b\n",
        "<1>\nTitle\n  a\n\n<2>\nTitle\n  b\n",
        "Record #1 of 2\nTI: a\n\n\nRecord #2 of 2\nTI: b\n",
        "[{\"type\": \"book\", \"title\": \"a\"}, {\"title\": \"b\"}]",
        "\"TITLE\",a\n\"DOI\",b\n\"YEAR\",1999\n\n\"TITLE\",c\n",
    ] {
        let again = cut(file.as_bytes(), 5, |_| true);
        assert_eq!(contents(file.as_bytes()).2.len(), 2, "{file}");
        assert_eq!(contents(&again), contents(file.as_bytes()), "{file}");
    }
}

#[test]
fn extracted_table_keeps_its_header() {
    let file = b"sep=;\nTitle;Year\na;2001\nb;2002;too;many\nc;2003\n";
    assert_eq!(cut(file, 3, quarantined), b"sep=;\nTitle;Year\nb;2002;too;many\n");
}

#[test]
fn extracted_xml_keeps_surrounding_elements() {
    let file = "<?xml version=\"1.0\"?><xml><records><record><title>a</title></record><record><title>b</record>\
                <record><title>c</title></record></records></xml>";
    let broken = "<?xml version=\"1.0\"?><xml><records><record><title>b</record>\n</records></xml>";
    assert_eq!(String::from_utf8(cut(file.as_bytes(), 10, quarantined)).unwrap(), broken);
    assert_eq!(contents(broken.as_bytes()).2.len(), 1);
}

#[test]
fn corrected_file_is_read() {
    let file = "TY  - JOUR\nTI  - a\nER  - \n\nTY  - JOUR\nER  - \n\nTY  - JOUR\nTI  - c\nER  - \n";
    let export = String::from_utf8(cut(file.as_bytes(), 100, quarantined)).unwrap();
    assert_eq!(export, "TY  - JOUR\nER  -\n\n");
    let corrected = export.replace("ER  -", "TI  - b\nER  -");
    let (outcomes, report) = read(corrected.as_bytes()).unwrap();
    assert_eq!((outcomes.len(), report.quarantined), (1, 0));
}

#[test]
fn extraction_preserves_the_encoding() {
    let text = "\u{feff}Title\tYear\nä\t2001\nö\t2002\t\tü\n";
    let file: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let wanted: Vec<u8> =
        "\u{feff}Title\tYear\nö\t2002\t\tü\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(cut(&file, 5, quarantined), wanted);
}

#[test]
fn extraction_without_records_is_refused() {
    assert!(RecordExtractor::new(Limits::default(), []).finish().is_err());
}
