//! Real exports, if available: we may not distribute them.

use std::path::PathBuf;

use references::Outcome;

use crate::{original, read, reference};

/// The number of records in each file, as counted by hand, and the format.
const COUNTS: [(&str, u64, &str); 22] = [
    ("bom.ris", 1, "RIS"),
    ("cochrane_extraneous.ris", 2, "RIS"),
    ("embase.csv", 6, "CSV"),
    ("embase.ris", 6, "RIS"),
    ("generic.csv", 2, "CSV"),
    ("generic_semicolon.csv", 2, "CSV (semicolon)"),
    ("generic_tab.tsv", 2, "TSV"),
    ("multiline.ris", 3, "RIS"),
    ("ovid_psycinfo.ris", 6, "RIS"),
    ("pmc_medlars.nbib", 5, "PubMed nbib"),
    ("psycinfo_124.ris", 124, "RIS"),
    ("pubmed-29768149.xml", 1, "PubMed XML"),
    ("pubmed_176.ris", 176, "RIS"),
    ("pubmed_endnote.txt", 6, "RIS"),
    ("pubmed_single.nbib", 1, "PubMed nbib"),
    ("pubmed_zotero.ris", 6, "RIS"),
    ("ris_issue_992.ris", 19, "RIS"),
    ("scopus.ris", 6, "RIS"),
    ("utf_chars.ris", 1, "RIS"),
    ("web_of_science.ciw.txt", 10, "RIS"),
    ("wos.ris", 2, "Web of Science plain text"),
    ("zotero_export.xml", 1233, "EndNote XML"),
];

fn folder() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/samples");
    let folder = std::env::var_os("SHARED_SAMPLES").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no sample exports in {} (set SHARED_SAMPLES to the folder)", folder.display());
    None
}

fn sample(name: &str) -> Option<Vec<u8>> {
    Some(std::fs::read(folder()?.join(name)).unwrap())
}

#[test]
fn samples_have_expected_counts() {
    for (name, count, format) in COUNTS {
        let Some(bytes) = sample(name) else { return };
        let (outcomes, report) = read(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((report.records, report.format.to_string().as_str()), (count, format), "{name}");
        assert_eq!(outcomes.len() as u64, count, "{name}");
        let quarantined: Vec<_> =
            outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Quarantined(_))).collect();
        assert!(quarantined.is_empty(), "{name}: {quarantined:?}");
    }
}

#[test]
fn every_sample_is_listed() {
    let Some(folder) = folder() else { return };
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(COUNTS.iter().any(|(counted, ..)| *counted == name), "{name} is not counted");
    }
}

#[test]
fn misnamed_web_of_science_export_is_read() {
    let Some(bytes) = sample("wos.ris") else { return };
    let first = reference(read(&bytes).unwrap().0.remove(0));
    assert_eq!(first.authors, ["Parkes-Loach, PS", "Majeed, AP", "Law, CJ", "Loach, PA"]);
    assert_eq!((first.date.as_deref(), first.pages.as_deref()), (Some("2004-06-08"), Some("7003-7016")));
    assert_eq!((first.doi.as_deref(), first.pmid.as_deref()), (Some("10.1021/bi049798f"), Some("15170338")));
}

#[test]
fn pubmed_sample_is_mapped_to_fields() {
    let Some(bytes) = sample("pubmed-29768149.xml") else { return };
    let only = reference(read(&bytes).unwrap().0.remove(0));
    assert_eq!(only.title, "Inhaled Combined Budesonide-Formoterol as Needed in Mild Asthma.");
    assert_eq!((only.authors.len(), only.authors[0].as_str()), (10, "O'Byrne, Paul M"));
    assert_eq!((only.date.as_deref(), only.pages.as_deref()), (Some("2018-05-17"), Some("1865-1876")));
    assert_eq!(
        (only.doi.as_deref(), only.pmid.as_deref()),
        (Some("10.1056/nejmoa1715274"), Some("29768149"))
    );
    assert!(only.r#abstract.unwrap().starts_with("BACKGROUND: In patients with mild asthma"));
}

#[test]
fn sample_byte_ranges_contain_whole_records() {
    for (name, starts, ends) in [
        ("psycinfo_124.ris", "TY  -", "ER  -"),
        ("embase.ris", "TY  -", "ER  -"),
        ("zotero_export.xml", "<record>", "</record>"),
        ("pubmed_single.nbib", "PMID-", "Jul 28."),
    ] {
        let Some(bytes) = sample(name) else { return };
        for outcome in read(&bytes).unwrap().0 {
            let text = String::from_utf8_lossy(original(&bytes, &outcome)).into_owned();
            assert!(text.starts_with(starts) && text.trim_end().ends_with(ends), "{name}: {text}");
        }
    }
}

#[test]
fn embase_table_is_mapped_to_fields() {
    let Some(bytes) = sample("embase.csv") else { return };
    let first = reference(read(&bytes).unwrap().0.remove(0));
    assert_eq!(first.authors, ["Liu, R.", "Adler, D.G."]);
    assert_eq!(first.journal.as_deref(), Some("Endoscopic Ultrasound"));
    assert_eq!(
        (first.year, first.volume.as_deref(), first.issue.as_deref()),
        (Some(2014), Some("3"), Some("3"))
    );
    assert_eq!(first.pages.as_deref(), Some("152-160"));
    assert_eq!(first.doi.as_deref(), Some("10.4103/2303-9027.138783"));
    assert!(first.keywords.contains(&"bronchogenic duplication cyst (diagnosis, surgery)".to_owned()));
}

#[test]
fn generic_table_is_mapped_with_every_delimiter() {
    for name in ["generic.csv", "generic_semicolon.csv", "generic_tab.tsv"] {
        let Some(bytes) = sample(name) else { return };
        let first = reference(read(&bytes).unwrap().0.remove(0));
        assert_eq!(first.title, "Title of reference", "{name}");
        assert_eq!(first.authors, ["Marx, Karl", "Lindgren, Astrid"], "{name}");
        assert_eq!(first.keywords, ["Pippi", "Nordwind", "Piraten"], "{name}");
        assert_eq!((first.year, first.pages.as_deref()), (Some(2014), Some("e0815")), "{name}");
        assert_eq!(first.journal.as_deref(), Some("Lorem"), "{name}");
    }
}

#[test]
fn record_with_only_a_doi_is_kept() {
    let Some(bytes) = sample("bom.ris") else { return };
    let only = reference(read(&bytes).unwrap().0.remove(0));
    assert_eq!((only.title.as_str(), only.doi.as_deref()), ("", Some("10.1186/s40981-020-0316-0")));
}

#[test]
fn keywords_on_separate_lines_are_read() {
    let Some(bytes) = sample("ris_issue_992.ris") else { return };
    let first = reference(read(&bytes).unwrap().0.remove(0));
    assert_eq!(&first.keywords[..2], ["Health Facility Administration", "Joint Commission"]);
}
