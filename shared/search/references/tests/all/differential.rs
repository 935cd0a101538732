//! Compares our readers with independent libraries on valid files: `csv` for tables, `quick-xml` for XML, and
//! `biblatex` for BibTeX.
//!
//! The comparison covers the values in a file with collapsed white space, not their interpretation. The tests name
//! intentional differences.

use biblatex::{Bibliography, ChunksExt};
use proptest::prelude::*;
use quick_xml::{Reader, escape::resolve_predefined_entity, events::Event};
use references::Reference;

use crate::{properties::limits, read_in_chunks, reference};

/// Reads a file with our reader; every record must be readable.
fn ours(file: &[u8], chunk: usize) -> Vec<Reference> {
    let (outcomes, report) = read_in_chunks(file, chunk, limits()).unwrap();
    assert_eq!(report.skipped, None, "{}", String::from_utf8_lossy(file));
    outcomes.into_iter().map(reference).collect()
}

fn collapsed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The title, and the values under these names.
fn field_texts(reference: &Reference, names: &[&str]) -> Vec<String> {
    let value = |name: &&str| reference.extra.get(*name).map(|values| values.join("|")).unwrap_or_default();
    std::iter::once(reference.title.clone()).chain(names.iter().map(value)).collect()
}

fn concat_of(pieces: &'static [&'static str], max: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(pieces), 0..max).prop_map(|pieces| pieces.concat())
}

const CELL: &[&str] = &[
    "a", "b ", " ", "\"", "\"\"", ",", ";", "\t", "\n", "\r\n", "\r", "é", "'", "=1", "x\"y", "sep=", "Title",
];

/// Columns without a meaning for the reader, whose cells stay unchanged.
const COLUMNS: [&str; 2] = ["Remark", "Shelf"];

fn rows() -> impl Strategy<Value = Vec<[String; 3]>> {
    let title = concat_of(CELL, 6).prop_map(|text| format!("a{text}"));
    let cell = || concat_of(CELL, 6);
    prop::collection::vec((title, cell(), cell()).prop_map(|(title, a, b)| [title, a, b]), 1..6)
}

const TEXT: &[&str] = &[
    "a",
    " b",
    "\n",
    "&amp;",
    "&lt;i&gt;",
    "&#233;",
    "&#x1D6FC;",
    "é",
    "<![CDATA[ <b> &amp; ]]>",
    "<!-- </record> -->",
    "<?words > b?>",
    ">",
    "]]",
    "'\"",
];

/// Text that may occur between records.
const BETWEEN: &[&str] = &["\n", " ", "<!-- <record> -->", "<?a b?>", "<others a='>'/>", "<others></others>"];

/// The elements of a record: its title, possibly formatted, and one without its own field.
fn record() -> impl Strategy<Value = String> {
    let text = || concat_of(TEXT, 6);
    (text(), text(), text(), concat_of(BETWEEN, 3)).prop_map(|(title, dressed, other, between)| {
        format!(
            "<record a=\">\"\n><titles>\n<title >a{title}<style face='>'>{dressed}</style></title></titles>\
             <custom1>{other}</custom1><number/></record>{between}"
        )
    })
}

/// The title and `custom1` of each record, as read by quick-xml.
fn by_quick_xml(file: &str) -> Vec<Vec<String>> {
    let mut reader = Reader::from_str(file);
    let (mut records, mut open) = (Vec::new(), None);
    loop {
        let text = match reader.read_event().unwrap() {
            Event::Start(start) => {
                match start.local_name().into_inner() {
                    "record" => records.push(vec![String::new(), String::new()]),
                    "title" => open = Some(0),
                    "custom1" => open = Some(1),
                    _ => {}
                }
                continue;
            }
            Event::End(end) => {
                if matches!(end.local_name().into_inner(), "title" | "custom1") {
                    open = None;
                }
                continue;
            }
            Event::Text(text) => text.xml10_content().into_owned(),
            Event::CData(text) => text.xml10_content().into_owned(),
            Event::GeneralRef(name) => match name.resolve_char_ref().unwrap() {
                Some(char) => char.to_string(),
                None => resolve_predefined_entity(&name.xml10_content()).unwrap().to_owned(),
            },
            Event::Eof => return records,
            _ => continue,
        };
        if let (Some(open), Some(record)) = (open, records.last_mut()) {
            let record: &mut Vec<String> = record;
            record[open].push_str(&text);
        }
    }
}

const VALUE: &[&str] = &[
    "a", " b", "\n  ", "é", "{DNA}", "{\\\"u}", "\\'{e}", "\\&", "\\%", "1--2 ", "\\v{c}", "\\\"o", "1---2 ",
    "{a {b}}", "\\L{}", "{\\AA}", ",", "=", "@", "(", ")", "{\\ss}", "{\\o}", "\\c{c}", "#",
];

/// A value in one of its notations: in braces or quotes, or of several parts.
fn value() -> impl Strategy<Value = String> {
    let part = (concat_of(VALUE, 6), 0..3_u8).prop_map(|(text, form)| match form {
        0 => format!("{{{text}}}"),
        1 => format!("\"{text}\""),
        _ => "abbreviated".to_owned(),
    });
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.join(" # "))
}

/// An entry with a title and a field without a meaning. The number becomes its key.
fn entry() -> impl Strategy<Value = (bool, String, String)> {
    (any::<bool>(), value(), value())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Rows of nothing but quotes, delimiters and white space are records for `csv`, but not for our reader.
    #[test]
    fn tables_are_read_like_csv_crate(
        rows in rows(),
        delimiter in prop::sample::select(b",;\t".as_slice()),
        quoted in any::<bool>(),
        crlf in any::<bool>(),
        chunk in 1_usize..40,
    ) {
        let mut writer = csv::WriterBuilder::new();
        writer.delimiter(delimiter);
        writer.quote_style(if quoted { csv::QuoteStyle::Always } else { csv::QuoteStyle::Necessary });
        writer.terminator(if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') });
        let mut writer = writer.from_writer(Vec::new());
        // Enough columns with known names to exclude any other delimiter.
        writer.write_record(["Title", COLUMNS[0], COLUMNS[1], "DOI", "PMID", "Volume"]).unwrap();
        for row in &rows {
            writer.write_record(row.iter().map(String::as_str).chain(["", "", "7"])).unwrap();
        }
        let file = writer.into_inner().unwrap();
        let mut reader = csv::ReaderBuilder::new();
        let mut reader = reader.delimiter(delimiter).from_reader(file.as_slice());
        let theirs: Vec<Vec<String>> =
            reader.records().map(|row| row.unwrap().iter().take(3).map(collapsed).collect()).collect();
        let ours: Vec<_> = ours(&file, chunk).iter().map(|row| field_texts(row, &COLUMNS)).collect();
        prop_assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(&file));
    }

    /// The documents are valid XML: our reader accepts `<` in text and unclosed elements, which `quick-xml` refuses.
    #[test]
    fn xml_is_read_like_quick_xml(records in prop::collection::vec(record(), 1..5), chunk in 1_usize..60) {
        let file = format!("<?xml version=\"1.0\"?><xml><records>{}</records></xml>", records.concat());
        let theirs: Vec<Vec<String>> = by_quick_xml(&file)
            .iter()
            .map(|values| values.iter().map(|value| collapsed(value)).collect())
            .collect();
        let ours: Vec<_> = ours(file.as_bytes(), chunk).iter().map(|record| field_texts(record, &["custom1"])).collect();
        prop_assert_eq!(ours, theirs, "{}", file);
    }

    /// `biblatex` keeps commands around words, such as `\emph`, and separates dashes that are joined at a `#`.
    #[test]
    fn bibtex_is_read_like_biblatex(entries in prop::collection::vec(entry(), 1..5), chunk in 1_usize..60) {
        let mut file = "@string{abbreviated = \"An {Abbreviation}\"}\n".to_owned();
        for (at, (quoted, title, remark)) in entries.iter().enumerate() {
            let end = if *quoted { ",\n" } else { "\n" };
            file.push_str(&format!("@article{{k{at},\n  Title = {{a}} # {title},\n  remark= {remark}{end}}}\n"));
        }
        // A line of a value that begins like an entry ends the one before it, whose brace may be missing.
        let begins_entry = |line: &str| line.trim_start().starts_with('@');
        let has_entry = |text: &String| text.lines().any(begins_entry);
        prop_assume!(!entries.iter().any(|(_, title, remark)| has_entry(title) || has_entry(remark)));
        let theirs: Vec<_> = Bibliography::parse(&file)
            .unwrap()
            .iter()
            .map(|entry| {
                let text = |name: &str| collapsed(&entry.get(name).unwrap().format_verbatim());
                vec![text("title"), text("remark"), entry.key.clone()]
            })
            .collect();
        let ours: Vec<_> =
            ours(file.as_bytes(), chunk).iter().map(|entry| field_texts(entry, &["remark", "key"])).collect();
        prop_assert_eq!(ours, theirs, "{}", file);
    }
}
