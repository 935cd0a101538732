//! Our own small samples: invented records in the form of real exports.

use std::collections::BTreeMap;

use references::{Encoding, Outcome, Reference};

use crate::{read, reference};

pub(crate) fn bundled(name: &str) -> Vec<u8> {
    let path = format!("{}/../../../tests/samples/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn bundled_samples_have_expected_counts() {
    for (name, records, quarantined, format, encoding) in [
        ("psycinfo.ris", 3, 0, "RIS", Encoding::Utf8),
        ("pubmed.nbib", 3, 0, "PubMed nbib", Encoding::Utf8),
        ("endnote.xml", 3, 0, "EndNote XML", Encoding::Utf8),
        ("embase.csv", 3, 0, "CSV", Encoding::Utf8),
        ("scopus-semicolon.csv", 2, 0, "CSV (semicolon)", Encoding::Utf8Bom),
        ("library.tsv", 2, 0, "TSV", Encoding::Utf8),
        ("windows-1252.ris", 2, 0, "RIS", Encoding::Windows1252),
        ("utf-16.ris", 1, 0, "RIS", Encoding::Utf16Le),
        ("broken.ris", 3, 1, "RIS", Encoding::Utf8),
    ] {
        let (outcomes, report) = read(&bundled(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((report.records, report.quarantined), (records, quarantined), "{name}: {outcomes:#?}");
        assert_eq!((report.format.to_string().as_str(), report.encoding), (format, encoding), "{name}");
    }
}

#[test]
fn bundled_records_have_expected_fields() {
    for name in [
        "psycinfo.ris",
        "pubmed.nbib",
        "endnote.xml",
        "embase.csv",
        "scopus-semicolon.csv",
        "library.tsv",
        "windows-1252.ris",
        "utf-16.ris",
    ] {
        for outcome in read(&bundled(name)).unwrap().0 {
            let found = reference(outcome);
            let whole = !found.title.is_empty()
                && !found.authors.is_empty()
                && found.authors.iter().all(|author| author.contains(", "))
                && found.year.is_some()
                && found.journal.is_some()
                && found.doi.as_deref().is_some_and(|doi| doi.starts_with("10.5555/"));
            assert!(whole, "{name}: {found:#?}");
        }
    }
}

#[test]
fn broken_record_is_quarantined_with_reason() {
    let outcomes = read(&bundled("broken.ris")).unwrap().0;
    let Outcome::Quarantined(bad) = &outcomes[1] else { panic!("{outcomes:#?}") };
    assert_eq!(bad.number, 2);
    assert!(bad.reason.starts_with("it has no title"), "{}", bad.reason);
    assert!(bad.excerpt.starts_with("TY  - JOUR"), "{}", bad.excerpt);
}

#[test]
fn windows_1252_accents_are_read() {
    let first = reference(read(&bundled("windows-1252.ris")).unwrap().0.remove(0));
    assert_eq!(first.authors[0], "Müller, Jürgen");
}

/// The records of a sample without the values that only its format has: other tags, and the name of the type.
fn common(name: &str) -> Vec<Reference> {
    let outcomes = read(&bundled(name)).unwrap_or_else(|error| panic!("{name}: {error}")).0;
    let bare = |found: Reference| Reference { r#type: None, extra: BTreeMap::new(), ..found };
    outcomes.into_iter().map(reference).map(bare).collect()
}

#[test]
fn library_is_equal_in_every_format() {
    let first = common("same-library/library.ris");
    assert_eq!(first.len(), 4);
    for name in ["library.csv", "library.xml", "library.bib", "library.ciw"] {
        let mut found = common(&format!("same-library/{name}"));
        if name == "library.ciw" {
            // The format has no tag for links.
            found[0].url.clone_from(&first[0].url);
        }
        assert_eq!(found, first, "{name}");
    }
}

#[test]
fn pubmed_search_is_equal_in_both_formats() {
    let first = common("same-library/pubmed.nbib");
    assert_eq!(first.len(), 2);
    assert_eq!(common("same-library/pubmed.xml"), first);
}
