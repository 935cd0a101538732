//! Every field of a typical study, and the losses of each format.

use std::collections::BTreeMap;

use references::{Format as Read, Reference};
use writers::{Format, Source};

use crate::{key, read, text, written, written_from};

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// A study with a value in every field.
pub(crate) fn full() -> Reference {
    Reference {
        title: "Exercise & rest: 5 % of $10 {and} more".to_owned(),
        authors: vec![
            "van der Berg, Anna B.".into(),
            "Smith, John, Jr.".into(),
            "World Health Organization".into(),
        ],
        year: Some(2018),
        date: some("2018-05-17"),
        journal: some("Journal of Tests"),
        volume: some("12"),
        issue: some("3 Suppl 1"),
        pages: some("123-9"),
        pages_normalized: some("123-129"),
        doi: some("10.5555/abc_def(1)"),
        pmid: some("29700001"),
        pmcid: some("PMC7012345"),
        embase_id: some("L373791783"),
        wos_id: some("WOS:000478028100004"),
        accession: some("2019-65183-001"),
        trial_ids: vec!["NCT00000001".into(), "ISRCTN12345678".into()],
        r#abstract: some("BACKGROUND: One.\nRESULTS: Two < three."),
        keywords: vec!["Diabetes Mellitus, Type 2".into(), "rest".into()],
        url: some("https://example.org/~a?b=1&c=%20#d"),
        r#type: some("Journal Article"),
        extra: BTreeMap::from([
            ("SN".to_owned(), vec!["1234-5678".to_owned()]),
            ("LA".to_owned(), vec!["eng".to_owned()]),
            ("PB".to_owned(), vec!["Press".to_owned()]),
        ]),
    }
}

/// The expected result of reading a study again, without `extra`.
pub(crate) fn expected(format: Format, mut reference: Reference) -> Reference {
    let no_semicolons =
        |items: &mut Vec<String>| items.iter_mut().for_each(|item| *item = item.replace(';', ","));
    if format != Format::Nbib {
        no_semicolons(&mut reference.keywords);
        if !matches!(format, Format::Bibtex | Format::CslJson) {
            no_semicolons(&mut reference.authors);
        }
    }
    // Our reader drops the only full stop of a cell with one name, because lists of names end in one.
    if let ([one], Format::Csv | Format::Xlsx | Format::Asreview) = (reference.authors.as_mut_slice(), format)
        && one.matches('.').count() == 1
        && one.ends_with('.')
    {
        one.pop();
    }
    // Text on one line.
    if !matches!(format, Format::Jsonl | Format::CslJson | Format::Xlsx | Format::EndnoteXml) {
        reference.r#abstract = reference.r#abstract.map(|text| text.replace('\n', " "));
    }
    match format {
        Format::Ris | Format::EndnoteXml => reference.r#type = some("Journal Article"),
        Format::Bibtex => reference.r#type = some("article"),
        Format::CslJson => reference.r#type = some("article-journal"),
        Format::Nbib => reference.url = None,
        Format::Rayyan => reference.r#type = None,
        Format::Asreview => {
            reference = Reference {
                title: reference.title,
                authors: reference.authors,
                year: reference.year,
                journal: reference.journal,
                doi: reference.doi,
                pmid: reference.pmid,
                pmcid: reference.pmcid,
                embase_id: reference.embase_id,
                wos_id: reference.wos_id,
                accession: reference.accession,
                trial_ids: reference.trial_ids,
                r#abstract: reference.r#abstract,
                keywords: reference.keywords,
                url: reference.url,
                ..Reference::default()
            }
        }
        Format::Jsonl | Format::Csv | Format::Xlsx => {}
    }
    reference.extra.clear();
    reference
}

/// The formats that are read again, and the name under which the reader reports each.
pub(crate) const READ: [(Format, &str); 9] = [
    (Format::Ris, "RIS"),
    (Format::EndnoteXml, "EndNote XML"),
    (Format::Csv, "CSV"),
    (Format::Xlsx, "CSV"),
    (Format::Rayyan, "CSV"),
    (Format::Asreview, "CSV"),
    (Format::Bibtex, "BibTeX"),
    (Format::Nbib, "PubMed nbib"),
    (Format::CslJson, "CSL-JSON"),
];

#[test]
fn fields_survive_except_documented_losses() {
    for (format, name) in READ {
        let (mut found, report) = read(&written(format, &[full(), full()]));
        assert_eq!(report.format.to_string(), name);
        assert_eq!(found.len(), 2, "{format}");
        for reference in &mut found {
            reference.extra.clear();
            let wanted = expected(format, full());
            if format == Format::Rayyan {
                // Names with suffixes cannot be separated at "and".
                reference.authors.clone_from(&wanted.authors);
            }
            assert_eq!(*reference, wanted, "{format}");
        }
    }
}

/// Fields that have their own tag or column in other formats, and the sources.
#[test]
fn extra_fields_have_their_own_tags() {
    for (format, name, wanted) in [
        (Format::Ris, "SN", "1234-5678"),
        (Format::Ris, "LA", "eng"),
        (Format::Ris, "PB", "Press"),
        (Format::Ris, "DB", "Embase"),
        (Format::Ris, "DP", "Ovid"),
        (Format::EndnoteXml, "isbn", "1234-5678"),
        (Format::EndnoteXml, "language", "eng"),
        (Format::EndnoteXml, "publisher", "Press"),
        (Format::EndnoteXml, "remote-database-name", "Embase"),
        (Format::EndnoteXml, "remote-database-provider", "Ovid"),
        (Format::Csv, "issn", "1234-5678"),
        (Format::Csv, "database", "Embase"),
        (Format::Csv, "platform", "Ovid"),
        (Format::Csv, "searched_on", "2026-05-17"),
        (Format::Xlsx, "issn", "1234-5678"),
        (Format::Xlsx, "searched_on", "2026-05-17"),
        (Format::Asreview, "database", "Embase"),
        (
            Format::Rayyan,
            "notes",
            "Database: Embase; Platform: Ovid; Searched: 2026-05-17; Embase ID: L373791783; \
             Web of Science ID: WOS:000478028100004; Accession number: 2019-65183-001; \
             Trial registration: NCT00000001, ISRCTN12345678",
        ),
        (Format::Bibtex, "issn", "1234-5678"),
        (Format::Bibtex, "database", "Embase"),
        (Format::Bibtex, "searched_on", "2026-05-17"),
        (Format::Nbib, "DB", "Embase"),
        (Format::CslJson, "source", "Embase"),
    ] {
        let (found, _) = read(&written(format, &[full()]));
        assert_eq!(
            found[0].extra.get(name),
            Some(&vec![wanted.to_owned()]),
            "{format}: {:?}",
            found[0].extra
        );
    }
}

#[test]
fn every_study_is_written_with_its_key() {
    for format in Format::ALL {
        if format != Format::Xlsx {
            let file = text(format, &[full(), full()]);
            assert!(file.contains(&key(0).to_string()) && file.contains(&key(1).to_string()), "{format}");
        }
    }
}

#[test]
fn json_lines_contain_all_stored_fields() {
    let file = text(Format::Jsonl, &[full(), Reference::default()]);
    let lines: Vec<serde_json::Value> =
        file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(serde_json::from_value::<Reference>(lines[0].clone()).unwrap(), full());
    assert_eq!(lines[0]["database"], "Embase");
    assert_eq!(lines[0]["searched_on"], "2026-05-17");
    assert_eq!(lines[1]["duplicate_of"], key(0).to_string());
}

/// The names of other formats depend on rules that an exported line has passed already.
#[test]
fn json_lines_restore_every_study() {
    let some = |value: &str| Some(value.to_owned());
    let names = ["Liu, R.", "WHO; Group", "Smith and Sons, J."].map(str::to_owned).to_vec();
    let sparse = [
        Reference { title: "T".into(), year: Some(2020), journal: some("BMJ"), ..Reference::default() },
        Reference { doi: some("10.1136/x"), pages: some("1-9"), ..Reference::default() },
        Reference { authors: names, date: some("2018-05-17"), year: Some(2018), ..Reference::default() },
        Reference { title: "K".into(), keywords: vec!["a; b".into(), "c".into()], ..Reference::default() },
    ];
    for study in sparse.into_iter().chain([full()]) {
        let (found, _) = read(&written(Format::Jsonl, &[study.clone(), full()]));
        let database = study.extra.clone().into_iter().chain([("DB".to_owned(), vec!["Embase".to_owned()])]);
        assert_eq!(found[0], Reference { extra: database.collect(), ..study });
    }
}

#[test]
fn equal_studies_give_equal_bytes() {
    for format in Format::ALL {
        assert_eq!(written(format, &[full(), full()]), written(format, &[full(), full()]), "{format}");
    }
}

/// A table keeps its header, and a list its brackets.
#[test]
fn file_without_studies_is_complete() {
    for format in Format::ALL {
        let file = written(format, &[]);
        match format {
            Format::Jsonl | Format::Ris | Format::Bibtex | Format::Nbib => {
                assert!(file.is_empty(), "{format}");
            }
            Format::CslJson => assert_eq!(file, b"[]\n"),
            Format::EndnoteXml => {
                assert!(file.starts_with(b"<?xml") && file.ends_with(b"</records></xml>\n"));
            }
            Format::Xlsx => assert!(file.starts_with(b"PK")),
            Format::Csv | Format::Rayyan | Format::Asreview => {
                assert_eq!(file.iter().filter(|byte| **byte == b'\n').count(), 1, "{format}");
            }
        }
    }
}

#[test]
fn ris_has_one_line_per_value_without_bom() {
    let file = text(Format::Ris, &[full()]);
    assert!(file.starts_with("TY  - JOUR\r\n") && file.ends_with("ER  - \r\n\r\n"));
    let is_line = |line: &str| line.is_empty() || line.as_bytes().get(2..6) == Some(b"  - ");
    assert!(file.split("\r\n").all(is_line), "{file}");
    assert_eq!(file.matches('\n').count(), file.matches("\r\n").count());
    assert_eq!(file.matches("AU  - ").count(), 3);
    assert_eq!(read(file.as_bytes()).1.format, Read::Ris);
}

#[test]
fn names_follow_each_formats_convention() {
    let authors =
        ["Smith and Sons, J.", "Doe, Jane, Jr.", "Health and Safety Group"].map(str::to_owned).to_vec();
    let study = [Reference { title: "T".into(), authors, ..Reference::default() }];
    let bibtex = text(Format::Bibtex, &study);
    let names = "  author = {{Smith and Sons}, J. and Doe, Jr., Jane and {Health and Safety Group}}";
    assert!(bibtex.contains(names), "{bibtex}");
    let nbib = text(Format::Nbib, &study);
    for line in
        ["FAU - Smith and Sons, J.\r\n", "FAU - Doe, Jane, Jr.\r\n", "CN  - Health and Safety Group\r\n"]
    {
        assert!(nbib.contains(line), "{nbib}");
    }
    let csl: serde_json::Value =
        serde_json::from_str(&text(Format::CslJson, &[study[0].clone(), full()])).unwrap();
    assert_eq!(csl.as_array().unwrap().len(), 2);
    assert_eq!(csl[0]["author"][1], serde_json::json!({ "family": "Doe", "given": "Jane", "suffix": "Jr." }));
    assert_eq!(csl[0]["author"][2], serde_json::json!({ "literal": "Health and Safety Group" }));
    assert_eq!(csl[1]["issued"], serde_json::json!({ "date-parts": [[2018, 5, 17]] }));
}

/// The accession number of a study in PubMed is its PMID. In another database, the number is not a PMID.
#[test]
fn pmid_is_accession_number_for_pubmed_only() {
    for (database, tag) in [("PubMed", "AN"), ("Ovid MEDLINE(R)", "AN"), ("Embase", "C2"), ("", "C2")] {
        let source = Source { database: Some(database.to_owned()), ..Source::default() };
        let file = written_from(&source, Format::Ris, &[full()]);
        let line = format!("\r\n{tag}  - 29700001\r\n");
        let xml = written_from(&source, Format::EndnoteXml, &[full()]);
        assert_eq!(read(&xml).0[0].pmid, full().pmid, "{database}");
        assert!(String::from_utf8_lossy(&file).contains(&line), "{database}");
        assert_eq!(read(&file).0[0].pmid, full().pmid, "{database}");
    }
}
