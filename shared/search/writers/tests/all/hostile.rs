//! Texts that would break a format if they were written unchanged.

use references::Reference;
use writers::Format;

use crate::fields::READ;
use crate::{read, text, written};

/// A study with this text in every field.
pub(crate) fn all_of(text: &str) -> Reference {
    let some = || Some(text.to_owned());
    Reference {
        title: text.to_owned(),
        authors: vec![text.to_owned(), "Doe, Jane".to_owned()],
        year: Some(2020),
        journal: some(),
        volume: some(),
        issue: some(),
        pages: some(),
        r#abstract: some(),
        keywords: vec![text.to_owned(), "other".to_owned()],
        url: some(),
        r#type: some(),
        ..Reference::default()
    }
}

pub(crate) const HOSTILE: [&str; 17] = [
    "One.\r\nER  - \r\nTY  - JOUR\r\nTI  - Two",
    "One.\nPMID- 7\nTI  - Two",
    "One.\n\nPMID- 7\n\n",
    "One},\n author = {Two}\n}\n@article{x, title={Two}",
    "a { b",
    "a } b",
    "a \\ b \\{ c \\",
    "Quotes \"a\" and 'b', \"unclosed",
    "\"],\n{\"title\": \"Two\"}",
    "a,b\n\"c\",\"d\"\n",
    "% comment $x^2$ #1 & ~ _ \\alpha",
    "\u{0}\u{1}\u{8}\u{b}\u{c}\u{1b}a\u{7f}\u{85}b\u{2028}c\u{2029}d\u{1d}e\u{1e}f",
    "שלום עולם \u{202e}gnp.exe\u{202c} العربية",
    "</t></is></c></row></sheetData>]]><![CDATA[",
    "Smith; John and Doe, Jane and others",
    "=cmd|' /C calc'!A0",
    "\u{feff}a\u{fffe}\u{ffff}😀",
];

#[test]
fn hostile_text_never_ends_its_study() {
    for hostile in HOSTILE {
        for (format, name) in READ {
            let studies = [all_of("Before"), all_of(hostile), all_of("After")];
            let (found, report) = read(&written(format, &studies));
            assert_eq!((found.len(), report.format.to_string().as_str()), (3, name), "{format}: {hostile:?}");
            assert_eq!(found[2].title, "After", "{format}: {hostile:?}");
            for study in &found {
                assert!(!study.extra.contains_key("repaired"), "{format}: {hostile:?}: {study:?}");
                assert_eq!(study.year, Some(2020), "{format}: {hostile:?}");
                assert_eq!(study.keywords.len(), 2, "{format}: {hostile:?}: {:?}", study.keywords);
            }
        }
        let lines = text(Format::Jsonl, &[all_of(hostile), all_of("After")]);
        let first: Reference = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
        assert_eq!((lines.lines().count(), first), (2, all_of(hostile)));
    }
}

/// BibTeX counts braces by its own rule, in which a backslash does not protect a brace.
#[test]
fn bibtex_braces_always_match() {
    for hostile in HOSTILE {
        let file = text(Format::Bibtex, &[all_of(hostile)]);
        let mut depth = 0_i32;
        for c in file.chars() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            assert!(depth >= 0, "{file}");
        }
        assert_eq!((depth, file.matches("\n}\n").count()), (0, 1), "{file}");
    }
}

/// The comparison ignores characters that are not text, and collapses white space.
#[test]
fn titles_survive_hostile_text() {
    for hostile in HOSTILE {
        let without_controls: String = hostile
            .chars()
            .filter(|c| c.is_whitespace() || !c.is_control() && !"\u{feff}\u{fffe}\u{ffff}".contains(*c))
            .collect();
        let tidy = without_controls.split_whitespace().collect::<Vec<_>>().join(" ");
        for (format, _) in READ {
            let (found, _) = read(&written(format, &[all_of(hostile)]));
            let guard = if format == Format::Csv && hostile.starts_with('=') { "'" } else { "" };
            assert_eq!(found[0].title, format!("{guard}{tidy}"), "{format}");
        }
    }
}

#[test]
fn long_abstract_is_complete_in_text_formats() {
    let long = "wörd ".repeat(8_000);
    let reference =
        Reference { title: "T".into(), r#abstract: Some(long.trim().to_owned()), ..Reference::default() };
    // Cells of workbooks hold less (see `workbooks`).
    for (format, _) in READ.into_iter().filter(|(format, _)| *format != Format::Xlsx) {
        let (found, _) = read(&written(format, std::slice::from_ref(&reference)));
        assert_eq!(found[0].r#abstract, reference.r#abstract, "{format}");
    }
}

/// Studies with a single field are still studies.
#[test]
fn single_field_study_survives() {
    let empty = Reference::default;
    let some = |text: &str| Some(text.to_owned());
    for reference in [
        Reference { title: "T".into(), ..empty() },
        Reference { title: "T".into(), authors: vec!["A, B".into()], ..empty() },
        Reference { title: "T".into(), keywords: vec!["one, two".into()], ..empty() },
        Reference { title: "T".into(), pages: some("e123"), ..empty() },
        Reference { title: "T".into(), pages: some("S21-1"), ..empty() },
        Reference { title: "T".into(), pages: some("12 - 14, 16"), ..empty() },
        Reference { title: "T".into(), pmid: some("7"), ..empty() },
        Reference { title: "T".into(), year: Some(1999), date: some("1999-12"), ..empty() },
    ] {
        for (format, _) in READ {
            let (found, _) = read(&written(format, std::slice::from_ref(&reference)));
            let same = |get: fn(&Reference) -> &Option<String>| {
                assert_eq!(get(&found[0]), get(&reference), "{format}: {reference:?}");
            };
            if format != Format::Asreview {
                same(|reference| &reference.pages);
            }
            same(|reference| &reference.pmid);
            assert_eq!(found[0].keywords, reference.keywords, "{format}");
            assert_eq!(found[0].authors, reference.authors, "{format}");
            assert_eq!(found[0].year, reference.year, "{format}");
        }
    }
}
