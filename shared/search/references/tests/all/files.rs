//! Whole files: encodings, positions and refusals.

use references::{Encoding, Error, Format, Limits, Outcome, Reader};

use crate::{line, original, read, reference, references};

const RIS: &str = "1.\nTY  - JOUR\nTI  - Café 𝛼\nER  - \n\nTY  - JOUR\nTI  - b\nER  - \n";

#[test]
fn utf16_ranges_refer_to_original_bytes() {
    for (mark, encoding) in [(true, Encoding::Utf16Le), (false, Encoding::Utf16Be)] {
        let bytes_of =
            |unit: u16| if encoding == Encoding::Utf16Le { unit.to_le_bytes() } else { unit.to_be_bytes() };
        let encode = |text: &str| text.encode_utf16().flat_map(bytes_of).collect::<Vec<u8>>();
        let text = if mark { format!("\u{feff}{RIS}") } else { RIS.to_owned() };
        let bytes = encode(&text);
        let (outcomes, report) = read(&bytes).unwrap();
        assert_eq!((report.encoding, report.records, report.bytes), (encoding, 2, bytes.len() as u64));
        assert_eq!(original(&bytes, &outcomes[0]), encode("TY  - JOUR\nTI  - Café 𝛼\nER  -"));
        assert_eq!(original(&bytes, &outcomes[1]), encode("TY  - JOUR\nTI  - b\nER  -"));
        assert_eq!(outcomes.iter().map(line).collect::<Vec<_>>(), [2, 6]);
    }
}

#[test]
fn byte_order_mark_counts_in_ranges() {
    let bytes = format!("\u{feff}{RIS}").into_bytes();
    let (outcomes, report) = read(&bytes).unwrap();
    assert_eq!(report.encoding, Encoding::Utf8Bom);
    assert_eq!(original(&bytes, &outcomes[0]), "TY  - JOUR\nTI  - Café 𝛼\nER  -".as_bytes());
}

#[test]
fn mark_encoded_twice_is_not_text() {
    for text in [
        "TY  - JOUR\nTI  - A trial\nER  - \n",
        "@article{a, title={A trial}, year=2015}\n",
        "PMID- 30000009\nTI  - A trial\n",
        "\"Title\",\"Authors\"\nA trial,\"Roe, A\"\n",
    ] {
        for mark in ["ï»¿", "\u{feff}ï»¿"] {
            let (mut outcomes, report) = read(format!("{mark}{text}").as_bytes()).unwrap();
            assert_eq!(reference(outcomes.remove(0)).title, "A trial");
            assert_eq!(report.skipped, None, "{text}");
        }
    }
}

#[test]
fn windows_1252_record_in_utf8_file_is_read() {
    let mut bytes = RIS.as_bytes().to_vec();
    bytes.extend_from_slice(b"TY  - JOUR\nTI  - M\xFCller\nER  - \n");
    let (mut outcomes, _) = read(&bytes).unwrap();
    assert_eq!(reference(outcomes.remove(2)).title, "Müller");
    assert_eq!(reference(outcomes.remove(0)).title, "Café 𝛼");
}

#[test]
fn binary_record_is_quarantined() {
    let mut bytes = RIS.as_bytes().to_vec();
    bytes.extend_from_slice(b"TY  - JOUR\nTI  - \x01\x02\x03\x04\x05\nER  - \n");
    let (outcomes, _) = read(&bytes).unwrap();
    assert!(
        matches!(&outcomes[2], Outcome::Quarantined(bad) if bad.reason.contains("not text")),
        "{outcomes:?}"
    );
}

#[test]
fn control_characters_are_dropped_and_noted() {
    let (outcomes, _) = read(b"TY  - JOUR\nTI  - 300\x0F to 900\x0FC\nER  - \n").unwrap();
    let found = reference(outcomes.into_iter().next().unwrap());
    assert_eq!(found.title, "300 to 900C");
    assert_eq!(found.extra["repaired"], ["control characters were dropped: 2"]);
}

#[test]
fn few_nuls_are_dropped() {
    let ris = "TY  - JOUR\nTI  - A trial of \0tests\nAU  - Roe, Ann\nPY  - 2015\nER  - \n";
    let found = references(ris).remove(0);
    assert_eq!(found.title, "A trial of tests");
    assert_eq!(found.extra["repaired"], ["control characters were dropped: 1"]);
    for text in [
        "TY  - JOUR\nTI  - A trial\nAU  - Roe, Ann\nER  - \n",
        "PMID- 30000009\nTI  - A trial\nAU  - Roe A\n",
        "Title,Authors,Year\nA trial,\"Roe, Ann\",2015\n",
        "@article{a, author={Roe, Ann}, title={A trial}}\n",
        "[{\"title\": \"A trial\", \"authors\": [\"Roe, Ann\"]}]",
    ] {
        let padded = format!("{text}{}", "\0".repeat(500));
        let (outcomes, report) = read(padded.as_bytes()).unwrap();
        assert_eq!((outcomes.len(), report.skipped), (1, None), "{text}");
        assert_eq!(reference(outcomes.into_iter().next().unwrap()).title, "A trial");
    }
    for binary in
        ["A trial \0 of tests in a hospital, which is no reference", "TY  - JOUR\0\0\0\0\0\nTI  - A"]
    {
        assert_eq!(read(binary.as_bytes()).unwrap_err(), Error::Binary { what: "binary data" });
    }
}

#[test]
fn characters_read_as_another_encoding_are_restored() {
    let twice = "it was encoded in UTF-8 twice";
    let ris = |title: &str, author: &str| format!("TY  - JOUR\nTI  - {title}\nAU  - {author}\nER  - \n");
    for (text, title, author, note) in [
        (ris("Use of â€œrestâ€\u{9d}", "Ã\u{81}lvarez, A"), "Use of “rest”", "Álvarez, A", Some(twice)),
        (ris("L'â\u{80}\u{98}Ã\u{8d}ndiceâ\u{80}\u{99}", "Roe, A"), "L'‘Índice’", "Roe, A", Some(twice)),
        ("Title,Authors\nÃ\u{8d}ndice,\"Roe, A\"\n".to_owned(), "Índice", "Roe, A", Some(twice)),
        (ris("Patient\u{92}s view", "O\u{92}Roe, A"), "Patient’s view", "O’Roe, A", None),
        (
            ris("Tests a\u{9d}", "Müller, A"),
            "Tests a",
            "Müller, A",
            Some("control characters were dropped: 1"),
        ),
    ] {
        let found = references(&text).remove(0);
        assert_eq!((found.title.as_str(), found.authors[0].as_str()), (title, author));
        assert_eq!(found.extra.get("repaired").map(|notes| notes[0].as_str()), note, "{title}");
    }
}

#[test]
fn binary_files_are_named() {
    for (bytes, what) in [
        (b"%PDF-1.7 ...".as_slice(), "a PDF document"),
        (b"PK\x03\x04 xl/workbook.xml", "an Excel workbook"),
        (b"PK\x03\x04 a.ris", "a ZIP archive"),
        (b"\x1F\x8B\x08\x00", "a gzip file"),
        (b"ab\0\0\0cd\0", "binary data"),
        (b"\x00\x01\x02\xff\xfe\x00binary\x00", "binary data"),
    ] {
        assert_eq!(read(bytes).unwrap_err(), Error::Binary { what });
    }
}

#[test]
fn error_without_records_names_the_format() {
    assert_eq!(read(b"Title,Year\n").unwrap_err().to_string(), "it contains no records (read as CSV)");
    let xml = b"<xml><records></records></xml>";
    assert_eq!(read(xml).unwrap_err(), Error::NoRecords { format: Format::EndNoteXml });
}

#[test]
fn empty_file_is_refused() {
    assert_eq!(read(b"").unwrap_err(), Error::Empty);
    assert_eq!(read(b" \r\n\t").unwrap_err(), Error::Empty);
}

#[test]
fn truncated_xml_file_is_refused() {
    let error = read(b"<xml><records><record><title>a</title></record>\n<record>").unwrap_err();
    assert!(matches!(error, Error::MalformedXml { line: 2, .. }), "{error}");
}

#[test]
fn utf16_doctype_is_refused() {
    let text = "<?xml version=\"1.0\"?><!-- x --><!DOCTYPE xml [<!ENTITY a \"b\">]><xml><records/></xml>";
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(read(&bytes).unwrap_err(), Error::Doctype { name: None });
}

#[test]
fn format_and_encoding_are_known_after_window() {
    let mut reader = Reader::new(Limits::default());
    reader.push(RIS.as_bytes()).unwrap();
    assert_eq!((reader.format(), reader.encoding()), (None, None));
    reader.push(" \n".repeat(40_000).as_bytes()).unwrap();
    assert_eq!((reader.format(), reader.encoding()), (Some(Format::Ris), Some(Encoding::Utf8)));
    assert_eq!(reader.bytes_read(), RIS.len() as u64 + 80_000);
}

#[test]
fn concatenated_files_keep_all_records() {
    let mark = "\u{feff}";
    for (first, second) in [
        ("TY  - JOUR\nTI  - a\n", "TY  - JOUR\nTI  - b\nER  -\n"),
        ("PMID- 1\nTI  - a\n", "PMID- 2\nTI  - b\n"),
        ("PT J\nTI a\nER\nEF\n", "PT J\nTI b\nER\n"),
        ("Title,Year\na,1999\n", "Title,Year\nb,1999\n"),
        ("@misc{a, title = {a}}\n", "@misc{b, title = {b}}\n"),
        (
            "<xml><records><record><title>a</title></record></records></xml>\n",
            "<xml><records><record><title>b</title></record></records></xml>",
        ),
    ] {
        for second in [second.to_owned(), format!("{mark}{second}")] {
            let file = format!("{mark}{first}{second}");
            let (outcomes, _) = read(file.as_bytes()).unwrap();
            let titles: Vec<_> = outcomes.into_iter().map(|outcome| reference(outcome).title).collect();
            assert_eq!(titles, ["a", "b"], "{second}");
        }
    }
}

#[test]
fn utf16_position_never_splits_a_character() {
    let text = "\u{feff}TY  - JOUR\nTI  - a\nER  -\n<PubmedArticleSet><!-- é𝛼";
    let file: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let (outcomes, _) = read(&file).unwrap();
    let last = outcomes.last().unwrap().bytes();
    assert!(!last.is_empty() && last.end <= file.len() as u64, "{last:?}");
}
