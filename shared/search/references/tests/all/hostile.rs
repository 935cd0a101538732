//! Hostile and damaged files.

use references::{Error, Format, Limits, Outcome};

use crate::{read, read_in_chunks, references};

const SMALL: Limits = Limits { max_file_bytes: 1 << 20, max_record_bytes: 1000, max_records: 1 << 20 };

/// A document in each XML format, with text before its records and text in the first of them.
fn documents(prolog: &str, inner: &str) -> [String; 2] {
    [
        format!("{prolog}<xml><records><record><title>a{inner}</title></record></records></xml>"),
        format!(
            "{prolog}<PubmedArticleSet><PubmedArticle><ArticleTitle>a{inner}</ArticleTitle></PubmedArticle></PubmedArticleSet>"
        ),
    ]
}

#[test]
fn entity_bombs_are_refused() {
    let bomb = "<!DOCTYPE lolz [<!ENTITY a \"lol\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>";
    let fetched = "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>";
    for prolog in [bomb, fetched, "<!DOCTYPE a [", "<?xml version=\"1.0\"?><!-- x -->\n<!doctype a [\n]>"] {
        for document in documents(prolog, "&b;&x;") {
            for chunk in [1, 100_000] {
                let refused = read_in_chunks(document.as_bytes(), chunk, Limits::default()).unwrap_err();
                assert!(matches!(refused, Error::Doctype { .. }), "{refused}");
            }
        }
    }
}

#[test]
fn undefined_entity_is_kept() {
    for document in documents("", "&b;&x;") {
        assert_eq!(references(&document)[0].title, "a&b;&x;");
    }
}

#[test]
fn deep_nesting_never_overflows_the_stack() {
    for inner in ["<b>".repeat(10_000), format!("{}{}", "<b>".repeat(10_000), "</b>".repeat(10_000))] {
        for document in documents("", &inner) {
            let (outcomes, report) = read(document.as_bytes()).unwrap();
            assert_eq!((report.records, report.quarantined), (1, 1));
            assert!(matches!(&outcomes[0], Outcome::Quarantined(bad) if bad.reason.contains("nested")));
        }
    }
    let around = format!("<xml>{}", "<records>".repeat(10_000));
    assert!(matches!(read(around.as_bytes()).unwrap_err(), Error::MalformedXml { .. }));
    let braces = format!("@article{{a, title = {}{}, year = 2020}}", "{".repeat(10_000), "}".repeat(10_000));
    assert_eq!(references(&braces)[0].year, Some(2020));
}

#[test]
fn endless_line_is_refused_in_every_format() {
    let long = "x".repeat(200_000);
    for file in [
        format!("TY  - JOUR\nTI  - {long}"),
        format!("PMID- 1\nTI  - {long}"),
        format!("PT J\nTI {long}"),
        format!("@article{{a, title = {{{long}"),
        format!("Title,Year\n\"{long}"),
        format!("<xml><records><record><title>{long}"),
        format!("<PubmedArticleSet><PubmedArticle><ArticleTitle>{long}"),
    ] {
        for chunk in [1000, 300_000] {
            let refused = read_in_chunks(file.as_bytes(), chunk, SMALL).unwrap_err();
            assert!(matches!(refused, Error::RecordTooLarge { number: 1, limit: 1000, .. }), "{refused}");
        }
    }
}

#[test]
fn zero_bytes_affect_one_record_or_file() {
    assert_eq!(read(b"TY  - JOUR\nTI  - a\0b\nER  -\n").unwrap_err(), Error::Binary { what: "binary data" });
    let mut late = "TY  - JOUR\nTI  - a\nER  -\n".repeat(5000).into_bytes();
    late.extend_from_slice(b"TY  - JOUR\nTI  - a\0b\nER  -\n");
    let (outcomes, report) = read(&late).unwrap();
    assert_eq!((report.records, report.quarantined), (5001, 1));
    assert!(matches!(&outcomes[5000], Outcome::Quarantined(bad) if bad.reason.contains("not text")));
}

#[test]
fn truncated_character_affects_only_last_record() {
    let text = "TY  - JOUR\nTI  - a\nER  -\nTY  - JOUR\nTI  - 中";
    for cut in 1..=2 {
        let (mut outcomes, report) = read(&text.as_bytes()[..text.len() - cut]).unwrap();
        assert_eq!((report.records, report.format), (2, Format::Ris));
        assert!(matches!(outcomes.remove(0), Outcome::Read(record) if record.reference.title == "a"));
    }
}

#[test]
fn less_than_sign_loses_nothing_else() {
    for inner in [" p<0.05", " n < 5 and <", " <b and c", " <five or more", " a<b>c"] {
        for document in documents("", inner) {
            let title = &references(&document)[0].title;
            assert!(title.starts_with('a') && !title.contains("title"), "{inner}: {title}");
        }
    }
    assert_eq!(references(&documents("", " p<0.05 & n < 5")[0])[0].title, "a p<0.05 & n < 5");
}

#[test]
fn packed_files_are_refused_with_advice() {
    for (bytes, what) in [
        (b"\x1F\x8B\x08\x00rest".as_slice(), "a gzip file, not a reference file; decompress it"),
        (b"PK\x03\x04..xl/workbook.xml", "an Excel workbook, not a reference file; save it as CSV"),
        (b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1W\0o\0r\0k\0b\0o\0o\0k\0", "an old Excel workbook (.xls), not"),
        (b"PK\x03\x04..a.ris", "a ZIP archive, not a reference file; unpack it"),
        (b"%PDF-1.7", "a PDF document, not a reference file; export the references"),
    ] {
        let refused = read(bytes).unwrap_err().to_string();
        assert!(refused.contains(what), "{refused}");
    }
}

#[test]
fn huge_value_is_read_in_linear_time() {
    // Each of these once took quadratic work in some reader; half a megabyte would take minutes.
    let long = |piece: &str| piece.repeat(500_000 / piece.len());
    for value in [
        long("10.1/"),
        long(")"),
        long("& "),
        long("and "),
        long("\\\""),
        long("{}"),
        long("a;"),
        long("\"\""),
    ] {
        for file in [
            format!(
                "TY  - JOUR\nTI  - a\nDO  - {value}\nUR  - {value}\nKW  - {value}\nAU  - {value}\nPY  - {value}\nER  -\n"
            ),
            format!("@article{{a, title = {{a}}, author = \"{value}\", note = {{{value}}}}}"),
            format!("Title,Authors\na,\"{value}\"\n"),
        ] {
            assert!(read(file.as_bytes()).is_ok());
        }
    }
}

#[test]
fn encodings_are_reported_with_certainty() {
    use references::{Certainty, Encoding};
    let text = "TY  - JOUR\rAU  - Müller, Jürgen\rTI  - Größe, Ernährung und l’éducation\rER  - \r";
    for (encoder, encoding) in
        [(encoding_rs::MACINTOSH, Encoding::MacRoman), (encoding_rs::WINDOWS_1252, Encoding::Windows1252)]
    {
        let bytes = encoder.encode(text).0;
        let (outcomes, report) = read(&bytes).unwrap();
        assert_eq!((report.encoding, report.encoding_certainty), (encoding, Certainty::Likely));
        let Outcome::Read(record) = &outcomes[0] else { panic!("{outcomes:?}") };
        assert_eq!(record.reference.title, "Größe, Ernährung und l’éducation");
    }
    let marked = format!("\u{feff}{text}");
    assert_eq!(read(marked.as_bytes()).unwrap().1.encoding_certainty, Certainty::Certain);
}

#[test]
fn legacy_encoding_after_first_window_is_reported() {
    use references::Encoding;
    let mut file = "TY  - JOUR\nTI  - plain\nER  -\n".repeat(5000).into_bytes();
    file.extend_from_slice(
        &encoding_rs::MACINTOSH.encode("TY  - JOUR\nTI  - Größe und Ernährung\nER  -\n").0,
    );
    let (outcomes, report) = read(&file).unwrap();
    assert_eq!(report.encoding, Encoding::MacRoman);
    assert!(
        matches!(&outcomes[5000], Outcome::Read(record) if record.reference.title == "Größe und Ernährung")
    );
}
