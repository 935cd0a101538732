//! Every byte of a file belongs to a record, to text that the report names as skipped, or to the format.
//!
//! Files are composed of parts with a known role. The tests therefore know which lines must be reported, and that lines
//! of the format must not be reported.

use proptest::prelude::*;
use references::{Error, Format, Report};

use crate::{place, properties::limits, read_in_chunks};

/// A part of a file.
#[derive(Debug, Clone)]
enum Part {
    /// A record, which must be completely contained in one outcome.
    Record(String),
    /// Text outside of records: each of its lines must be reported, or be part of an outcome.
    Words(String),
    /// Text that belongs to the format between records, and must not be reported.
    Structure(String),
}

impl Part {
    fn text(&self) -> &str {
        match self {
            Self::Record(text) | Self::Words(text) | Self::Structure(text) => text,
        }
    }
}

fn parts(kind: fn(String) -> Part, texts: &[&str]) -> impl Strategy<Value = Part> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    prop::sample::select(texts).prop_map(kind)
}

/// A sequence of parts in any order.
fn any_of(records: &[&str], words: &[&str], structure: &[&str]) -> impl Strategy<Value = Vec<Part>> {
    let part = prop_oneof![
        3 => parts(Part::Record, records),
        2 => parts(Part::Words, words),
        2 => parts(Part::Structure, structure),
    ];
    prop::collection::vec(part, 0..14)
}

/// The outcomes of a file, with their byte ranges.
struct FileResult {
    outcomes: Vec<std::ops::Range<usize>>,
    report: Report,
}

fn read(file: &[u8], chunk: usize) -> Result<FileResult, Error> {
    let (outcomes, report) = read_in_chunks(file, chunk, limits())?;
    Ok(FileResult { outcomes: outcomes.iter().map(place).collect(), report })
}

/// The text of the file outside of these ranges.
fn gaps<'a>(file: &'a str, inside: &[std::ops::Range<usize>]) -> Vec<&'a str> {
    let mut last = 0;
    let gap = |range: std::ops::Range<usize>| &file[std::mem::replace(&mut last, range.end)..range.start];
    inside.iter().cloned().chain(std::iter::once(file.len()..file.len())).map(gap).collect()
}

fn line_ends(text: &str) -> u64 {
    text.matches('\n').count() as u64
}

/// Checks a file of these parts; `begin` and `end` are structure. Parts are on separate lines, or directly adjacent.
fn check(begin: &str, parts: &[Part], end: &str, chunk: usize) -> Result<(), TestCaseError> {
    let frame = |text: &str| Part::Structure(text.to_owned());
    let parts: Vec<Part> =
        [frame(begin)].into_iter().chain(parts.iter().cloned()).chain([frame(end)]).collect();
    let file: String = parts.iter().map(Part::text).collect();
    let read = match read(file.as_bytes(), chunk) {
        Ok(read) => read,
        Err(Error::NoRecords { .. }) => {
            prop_assert!(!parts.iter().any(|part| matches!(part, Part::Record(_))), "{:?}", file);
            return Ok(());
        }
        Err(error) => return Err(TestCaseError::fail(format!("{error} in {file:?}"))),
    };
    let (mut at, mut named) = (0, Vec::new());
    for part in &parts {
        let range = at..at + part.text().len();
        at = range.end;
        let inside = |range: &std::ops::Range<usize>| {
            read.outcomes.iter().any(|outcome| outcome.start <= range.start && range.end <= outcome.end)
        };
        let trimmed = |text: &str, start: usize| {
            let start = start + text.len() - text.trim_start().len();
            start..start + text.trim().len()
        };
        match part {
            Part::Record(text) => {
                let record = trimmed(text, range.start);
                prop_assert!(inside(&record), "{:?} is in no outcome of {:?}", text, file);
            }
            Part::Words(text) => {
                let mut start = range.start;
                for line in text.split_inclusive('\n') {
                    let words = trimmed(line, start);
                    start += line.len();
                    if !words.is_empty() && !inside(&words) {
                        named.push(words);
                    }
                }
            }
            Part::Structure(_) => {}
        }
    }
    // Words on one line are reported once, unless a record separates them.
    named.dedup_by(|next, before| {
        let between = before.end..next.start;
        let record =
            read.outcomes.iter().any(|outcome| between.start <= outcome.start && outcome.end <= between.end);
        !record && !file[between].contains('\n')
    });
    let skipped = read.report.skipped.as_ref();
    let found = (skipped.map_or(0, |skipped| skipped.lines), skipped.map(|skipped| skipped.line));
    let wanted = (named.len() as u64, named.first().map(|words| 1 + line_ends(&file[..words.start])));
    prop_assert_eq!(found, wanted, "{:?} for {:?} of {:?}", skipped, named, file);
    Ok(())
}

/// Returns `true` for lines that are reported in formats where each line can be classified on its own.
fn is_named(format: Format, line: &str) -> bool {
    let line = line.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let number = line.trim_matches(|c: char| !c.is_alphanumeric());
    let expected: &[&str] = match format {
        Format::WebOfScience => &["FN ", "VR "],
        Format::BibTex => &["%"],
        Format::Ris => &["Record #1 of 2"],
        _ => &[],
    };
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let is_expected = expected.iter().any(|start| line.starts_with(start))
        || (format == Format::WebOfScience && line == "EF")
        || (format == Format::EuCtrText && line == "Summary");
    let says_nothing = if matches!(format, Format::CslJson | Format::Json | Format::BibTex) {
        number.is_empty()
    } else {
        is_number
    };
    !says_nothing && !is_expected
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn table_bytes_are_accounted_for(
        above in any_of(&["About: all\n"], &["Downloaded, 2023\n", "12\n", "\"a\n\nb, c\"\n"], &["\n", ",,\n"]),
        rows in any_of(
            &["a,1\n", "\"b, \"\"c\"\"\r\nd\",2\r\n", "e 5\" tube,3\r", "f,\n", "g,1,more\n", "\"\u{feff}h\",4\n", "Total: 5\n"],
            &["Records: 7\n", "  in all, 8\r\n"],
            &["\n", "\r\n", " ,\"\"\n", ",,\n", "Title,Year\n", "\u{feff}Title,Year\r\n"],
        ),
        separator in any::<bool>(),
        chunk in 1_usize..40,
    ) {
        // Rows above the header are not records; every row with words below it is one.
        let words = above.into_iter().map(|part| match part {
            Part::Record(text) => Part::Words(text),
            other => other,
        });
        let parts: Vec<Part> = words.chain([Part::Structure("Title,Year\n".to_owned())]).chain(rows).collect();
        check(if separator { "sep=,\n" } else { "" }, &parts, "", chunk)?;
    }

    #[test]
    fn field_rows_bytes_are_accounted_for(
        rows in any_of(
            &["\"TITLE\",\"b\"\n\"DOI\",\"c\nd\"\n", "\"TITLE\",\"a \"\"b\"\"\"\r\n"],
            &["Downloaded\n", "12\n", "\"more, \n\n of it\"\n"],
            &["\n", "\r\n", ",\"\"\n"],
        ),
        chunk in 1_usize..40,
    ) {
        let first = [Part::Record("\"TITLE\",a\n\"DOI\",b\n\"YEAR\",c\n".to_owned())];
        let parts: Vec<Part> = first.into_iter().chain(rows).collect();
        check("", &parts, "", chunk)?;
    }

    #[test]
    fn csl_json_bytes_are_accounted_for(
        parts in any_of(
            &["{\"title\": \"a\"}", "{\"type\": \"book\",\n\"note\": \"} \\\" {\", \"author\": [{}]}", "{broken}"],
            &["\n5\n", "\n\"lost\"\n", "\nnull,\n", "\n// é\n"],
            &[",", "\n", " [", "] ", "\t"],
        ),
        chunk in 1_usize..40,
    ) {
        let first = [Part::Record("{\"type\": \"book\", \"title\": \"a\"}".to_owned())];
        let parts: Vec<Part> = first.into_iter().chain(parts).collect();
        check("[", &parts, "]\n", chunk)?;
    }

    #[test]
    fn bibtex_bytes_are_accounted_for(
        parts in any_of(
            &["@article{a, title = {A {b}}}", "@book(b, title = \"(B)\")", "@x{{c}}", "@misc{d,\n note = {e@f{g}}}"],
            &["\nlost\n", "\n12 %\n", "\n@comment{jabref-meta: x}\n", "\n@preamble{\"x\"}\n", "\n@ home\n", "\na@b.example\n"],
            &["\n", " ", "\n% said @article{nothing}\n", "@string{s = {t}}", "@STRING(u = s # \"v\")\n", ",", "}"],
        ),
        chunk in 1_usize..40,
    ) {
        // A percent sign does not hide an entry; only the text around it is a comment.
        let parts: Vec<Part> = parts.into_iter().map(|part| match part {
            Part::Structure(text) if text.contains("@article") => Part::Structure(text.replace("@article{nothing}", "nothing")),
            other => other,
        }).collect();
        let first = [Part::Record("@article{z, title = {Z}}".to_owned())];
        let parts: Vec<Part> = first.into_iter().chain(parts).collect();
        check("", &parts, "\n", chunk)?;
    }

    #[test]
    fn xml_bytes_are_accounted_for(
        layout in prop::sample::select(LAYOUTS.as_slice()),
        shape in prop::collection::vec(0_usize..SHAPES.len(), 0..14),
        chunk in 1_usize..60,
    ) {
        let [begin, record, end] = layout;
        let parts: Vec<Part> = shape.iter().map(|&at| {
            let (kind, text) = SHAPES[at];
            kind(text.replace("RECORD", record))
        }).collect();
        check(begin, &parts, end, chunk)?;
    }

    /// A truncated document is refused, including the records that were already read.
    #[test]
    fn truncated_xml_is_refused(
        layout in prop::sample::select(LAYOUTS.as_slice()),
        shape in prop::collection::vec(0_usize..SHAPES.len(), 0..6),
        at in any::<prop::sample::Index>(),
        chunk in 1_usize..60,
    ) {
        let [begin, record, end] = layout;
        let texts: String = shape.iter().map(|&at| SHAPES[at].1.replace("RECORD", record)).collect();
        let file = format!("{begin}<{record}>a</{record}>{texts}{end}");
        let cut = begin.len() + at.index(file.len() - begin.len());
        let cut = (0..=cut).rev().find(|&at| file.is_char_boundary(at)).unwrap_or_default();
        let root_end = file.rfind("</").and_then(|at| Some(at + file[at..].find('>')?)).unwrap_or_default();
        let whole = cut > root_end;
        let read = read(&file.as_bytes()[..cut], chunk).map(|read| read.outcomes.len());
        let refused = matches!(read, Err(Error::MalformedXml { .. }));
        prop_assert!(whole || refused, "{:?} of {:?}", read, &file[..cut]);
    }

    /// Line-based formats, composed of arbitrary pieces.
    #[test]
    fn line_format_bytes_are_accounted_for(file in crate::properties::text(), chunk in 1_usize..50) {
        let Ok(read) = read(file.as_bytes(), chunk) else { return Ok(()) };
        let format = read.report.format;
        // The lines of a merged file belong to several formats.
        if read.report.parts > 1 {
            return Ok(());
        }
        let by_lines = match format {
            Format::Csv { .. } | Format::FieldRows | Format::EndNoteXml | Format::PubMedXml | Format::EuropePmcXml
            | Format::IctrpXml | Format::IsrctnXml | Format::EbscoXml | Format::ModsXml | Format::ZoteroRdf
            | Format::JatsXml => false,
            // The objects around a list are part of the format.
            Format::CslJson | Format::Json => !["\"items\"", "\"data\"", "\"uids\""].iter().any(|list| file.contains(list)),
            Format::BibTex => !file.contains("@string"),
            _ => true,
        };
        // A line of symbols in ISO-2022-JP says nothing, but its bytes look like letters.
        if by_lines && !file.contains('\u{1b}') {
            let gaps = gaps(&file, &read.outcomes);
            let lines = gaps.iter().flat_map(|gap| gap.split(['\n', '\r']));
            let named = lines.filter(|line| is_named(format, line)).count();
            let lines = read.report.skipped.as_ref().map_or(0, |skipped| skipped.lines);
            prop_assert_eq!(lines, named as u64, "{:?} in {:?}", gaps, file);
        }
    }
}

/// The beginning of a document in each format, the name of its records, and the end.
const LAYOUTS: [[&str; 3]; 4] = [
    ["<?xml version=\"1.0\"?><!-- by a > b --><xml>\n<records>", "record", "</records></xml>\n"],
    [
        "<!DOCTYPE PubmedArticleSet PUBLIC \"a>b\" \"c\"><PubmedArticleSet>",
        "PubmedArticle",
        "</PubmedArticleSet>",
    ],
    [
        "<responseWrapper><version>6.9</version><hitCount>2</hitCount><request><queryString>x</queryString></request><resultList>",
        "result",
        "</resultList></responseWrapper>",
    ],
    ["<pmc-articleset>", "article", "</pmc-articleset><!-- end\n -->"],
];

type Kind = fn(String) -> Part;

/// Parts of a document. `RECORD` stands for the name of its records.
const SHAPES: [(Kind, &str); 21] = [
    (Part::Record, "<RECORD><title>a</title></RECORD>"),
    (
        Part::Record,
        "<RECORD id='>'>\n<title>p < 0.05 <![CDATA[</RECORD>]]></title><!-- </RECORD> --></RECORD>",
    ),
    (Part::Record, "<RECORD/>"),
    (Part::Record, "<RECORD>words alone</RECORD>"),
    (Part::Words, "lost"),
    (Part::Words, "\n 12 \n"),
    (Part::Words, "\np < 0.05 and > 0.01\nmore\n"),
    (Part::Words, "\nn<5, b <<c\n"),
    (Part::Words, "&amp; é"),
    (Part::Words, "<![CDATA[ lost > ]]>"),
    (Part::Structure, "<!-- <RECORD>a</RECORD> > words\n -->"),
    (Part::Structure, "<?words > b?>"),
    (Part::Structure, "\n\t "),
    (Part::Structure, "<other title='a > b'/>"),
    (Part::Structure, "<other\n></other>"),
    (Part::Structure, "."),
    (Part::Structure, "<![CDATA[ ]] > ]]>"),
    (Part::Structure, "<other><RECORD-like/></other>"),
    (Part::Structure, "<other><!----></other>"),
    (Part::Structure, "\u{feff}"),
    (Part::Structure, "<![CDATA[]]>"),
];
