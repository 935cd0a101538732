//! Files that programs numbered, merged or saved, and values that they write under the names of other fields.

use references::Reference;

use crate::{read, references};

/// The reference of a RIS record with these lines.
fn with(lines: &[&str]) -> Reference {
    let text = format!("TY  - JOUR\nTI  - A trial of tests\n{}\nER  - \n", lines.join("\n"));
    references(&text).remove(0)
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn numbers_above_records_are_no_records() {
    for (front, back) in [("<", ">"), ("", "."), ("", ". "), ("[", "]")] {
        let number = |at: usize| format!("{front}{at}{back}");
        for (format, record) in [
            ("RIS", "TY  - JOUR\nTI  - Tests\nER  - \n"),
            ("nbib", "PMID- 30000001\nOWN - NLM\nTI  - Tests\n"),
        ] {
            let file = format!("{}\n{record}\n\n{}\n{record}", number(1), number(2));
            let (outcomes, report) = read(file.as_bytes()).unwrap();
            assert_eq!((outcomes.len(), report.quarantined), (2, 0), "{format}, {}", number(1));
            for found in references(&file) {
                assert_eq!(found.title, "Tests", "{format}, {}", number(1));
            }
        }
    }
    // Records of a PMID alone need no title.
    let file = "<1>\nPMID- 30000001\nPMID- 30000002\n\n<3>\nPMID- 30000003\n";
    assert_eq!(references(file).len(), 3);
    let joined = "PMID- 30000001\nTI  - First<1>\nTY  - JOUR\nTI  - Second\nER  - \n";
    assert_eq!(references(joined).iter().map(|found| &*found.title).collect::<Vec<_>>(), ["First", "Second"]);
}

#[test]
fn tags_of_ris_may_have_columns_of_nbib() {
    let found = with(&["DOI - 10.5555/a", "ISSN- 1234-5678", "PMC - PMC6400001", "PMID- 30000001"]);
    assert_eq!((found.title.as_str(), found.doi), ("A trial of tests", text("10.5555/a")));
    assert_eq!((found.pmid, found.pmcid), (text("30000001"), text("PMC6400001")));
    assert_eq!(with(&["PMID- 30000001", "VL  - 12"]).volume, text("12"));
    // A record of PubMed after one of RIS without its end.
    let joined = "TY  - JOUR\nTI  - First\nPMID- 30000001\nOWN - NLM\nTI  - Second\n";
    assert_eq!(references(joined).len(), 2);
}

#[test]
fn lines_that_a_spreadsheet_quoted_are_read() {
    let ris = "TY  - JOUR\n\"AU  - Roe, Ann\"\n\"TI  - Tests \"\"in vitro\"\", and more\"\nPY  - 2020\n\"AB  - First, a.\"\nER  - \n";
    let nbib = "PMID- 30000001\nDP  - 2020\n\"TI  - Tests \"\"in vitro\"\",\"\n\"      and more\"\n\"FAU - Roe, Ann\"\n\"AB  - First, a.\"\n\n";
    let wos =
        "PT J\n\"AU Roe, Ann\"\n\"TI Tests \"\"in vitro\"\", and more\"\nPY 2020\n\"AB First, a.\"\nER\n\n";
    for record in [ris, nbib, wos] {
        for file in [record.repeat(2), record.repeat(2).replace('\n', "\r\n")] {
            for found in references(&file) {
                assert_eq!(found.title, "Tests \"in vitro\", and more", "{file}");
                assert_eq!((found.authors, found.year), (vec!["Roe, Ann".to_owned()], Some(2020)), "{file}");
                assert_eq!(found.r#abstract, text("First, a."));
            }
        }
    }
    // Quoted text of an abstract stays.
    let found = with(&["AB  - They said", "\"it works\"", "\"KW  - tests\" and more"]);
    assert_eq!(found.r#abstract, text("They said \"it works\" \"KW - tests\" and more"));
}
