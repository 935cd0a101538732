//! Exports in layouts of former versions and of less common programs.

use references::{Format, Reference};

use crate::{read, references};

/// The titles and the PMIDs of references.
fn titles(found: &[Reference]) -> Vec<(&str, Option<&str>)> {
    found.iter().map(|reference| (reference.title.as_str(), reference.pmid.as_deref())).collect()
}

#[test]
fn numbers_before_pmids_begin_records() {
    for number in [": ", ". ", ":  "] {
        let record = |at: usize, pmid: &str, title: &str| {
            format!(
                "{at}{number}PMID- {pmid}\nOWN - NLM\nTI  - {title}\nCIN - A. PMID: 9\nJT  - J\nSO  - J 2007;3:1.\n\n"
            )
        };
        let text = [record(1, "12345678", "Tests"), record(12, "12345679", "More tests")].concat();
        let found = references(&text);
        assert_eq!(titles(&found), [("Tests", Some("12345678")), ("More tests", Some("12345679"))]);
        assert_eq!(found[0].extra["SO"], ["J 2007;3:1."]);
        // The same page after a file of another format.
        let joined = format!("TY  - JOUR\nTI  - First\nER  - \n{text}");
        assert_eq!(references(&joined).len(), 3);
    }
    // A number in a text begins nothing.
    let text = "PMID- 1\nTI  - Tests\nAB  - a\n1: PMID is a number\n2. PMID-\nFAU - Roe, Ann\n";
    assert_eq!(references(text)[0].r#abstract.as_deref(), Some("a 1: PMID is a number 2. PMID-"));
}

#[test]
fn citations_of_former_medline_documents_are_records() {
    let citation = |pmid: &str| {
        format!(
            "<MedlineCitation Owner=\"NLM\"><PMID>{pmid}</PMID><DateCreated><Year>1999</Year></DateCreated><Article>\
             <ArticleTitle>Tests</ArticleTitle></Article></MedlineCitation>\n"
        )
    };
    let text = format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE MedlineCitationSet PUBLIC \"-//NLM//DTD\" \"http://a.example/b.dtd\">\n\
         <MedlineCitationSet>\n{}{}</MedlineCitationSet>\n",
        citation("10540283"),
        citation("10540284")
    );
    assert_eq!(read(text.as_bytes()).unwrap().1.format, Format::PubMedXml);
    let found = references(&text);
    assert_eq!(titles(&found), [("Tests", Some("10540283")), ("Tests", Some("10540284"))]);
    assert!(found[0].extra.is_empty(), "{:?}", found[0].extra);
    // A later document in the usual layout, and text before it.
    let usual =
        format!("<PubmedArticleSet><PubmedArticle>{}</PubmedArticle></PubmedArticleSet>", citation("3"));
    assert_eq!(references(&format!("{text}{usual}")).len(), 3);
    assert_eq!(references(&format!("{usual}\n{text}")).len(), 3);
    assert_eq!(references(&format!("TY  - JOUR\nTI  - a\nER  - \n{text}")).len(), 3);
}
