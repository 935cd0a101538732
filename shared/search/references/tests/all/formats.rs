//! The special cases of each format.

use references::Outcome;

use crate::{line, original, read, references};

#[test]
fn ris_fields_are_read() {
    let text = "TY  - JOUR\nTI  - A title\n  that goes on\nAU  - Doe, Jane\nA1  - Roe, R.\nA2  - Editor, E\n\
        PY  - 2020/03//\nJF  - Journal of Tests\nJA  - J Tests\nVL  - 5\nIS  - 2\nSP  - 10\nEP  - 9\nKW  - one; two\n\
        KW  - one\nDO  - https://doi.org/10.5555/ABC\nAN  - 123\nDB  - PubMed\nUR  - https://example.org\n\
        AB  - First.\nContent: second.\nER  - \n";
    let found = &references(text)[0];
    assert_eq!(found.title, "A title that goes on");
    assert_eq!(found.authors, ["Doe, Jane", "Roe, R."]);
    assert_eq!((found.year, found.journal.as_deref()), (Some(2020), Some("Journal of Tests")));
    assert_eq!((found.volume.as_deref(), found.issue.as_deref()), (Some("5"), Some("2")));
    assert_eq!(found.pages.as_deref(), Some("10-9"));
    assert_eq!(found.keywords, ["one", "two"]);
    assert_eq!((found.doi.as_deref(), found.pmid.as_deref()), (Some("10.5555/abc"), Some("123")));
    assert_eq!(found.r#abstract.as_deref(), Some("First. Content: second."));
    assert_eq!(found.url.as_deref(), Some("https://example.org"));
    assert_eq!(found.r#type.as_deref(), Some("Journal Article"));
}

#[test]
fn missing_er_ends_record_at_next_ty() {
    let found = references("TY  - JOUR\nTI  - a\n\nTY  - JOUR\nTI  - b");
    assert_eq!(found.iter().map(|found| found.title.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn ris_lines_may_end_in_cr() {
    assert_eq!(references("TY  - JOUR\rTI  - a\rER  - \rTY  - JOUR\rTI  - b\rER  - \r").len(), 2);
}

#[test]
fn editors_replace_missing_authors() {
    assert_eq!(references("TY  - BOOK\nTI  - a\nA2  - Roe, R\nER  -\n")[0].authors, ["Roe, R"]);
}

#[test]
fn stray_line_between_records_is_not_a_record() {
    assert_eq!(references("TY  - JOUR\nTI  - a\nER  -\nC1  - x\nTY  - JOUR\nTI  - b\nER  -\n").len(), 2);
}

#[test]
fn empty_record_is_quarantined_with_position() {
    let text = "TY  - JOUR\nTI  - a\nER  -\n\nTY  - JOUR\n???\nER  -\n";
    let (outcomes, report) = read(text.as_bytes()).unwrap();
    assert_eq!((report.records, report.quarantined), (2, 1));
    let Outcome::Quarantined(bad) = &outcomes[1] else { panic!("{outcomes:?}") };
    assert_eq!((bad.number, bad.line, bad.excerpt.as_str()), (2, 5, "TY  - JOUR\n???\nER  -"));
    assert!(bad.reason.starts_with("it has no title"), "{}", bad.reason);
}

#[test]
fn nbib_fields_are_read() {
    let text = "PMID- 1\nTI  - A title\n      that goes on\nDP  - 2018 Apr\nPG  - 283-98\nAID - 10.5555/X [doi]\n\
        FAU - van der Berg, Anna B\nAU  - van der Berg AB\nCN  - The Study Group\nAB  - One.\n      Two.\n\
        MH  - Adult\nOT  - stroke\nPT  - Journal Article\nPT  - Review\nTA  - J Tests\nVI  - 1\nVI  - 2\n";
    let found = &references(text)[0];
    assert_eq!(found.title, "A title that goes on");
    assert_eq!(found.authors, ["van der Berg, Anna B", "The Study Group"]);
    assert_eq!((found.year, found.pages.as_deref()), (Some(2018), Some("283-98")));
    assert_eq!((found.doi.as_deref(), found.pmid.as_deref()), (Some("10.5555/x"), Some("1")));
    assert_eq!(found.r#abstract.as_deref(), Some("One. Two."));
    assert_eq!(found.keywords, ["stroke", "Adult"]);
    assert_eq!((found.journal.as_deref(), found.volume.as_deref()), (Some("J Tests"), Some("1")));
    assert_eq!(found.r#type.as_deref(), Some("Journal Article; Review"));
}

#[test]
fn date_without_year_keeps_the_record() {
    let found = &references("PMID- 1\nTI  - a\nDP  - in press\n")[0];
    assert_eq!((found.title.as_str(), found.year), ("a", None));
}

fn xml(record: &str) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><xml><records>{record}</records></xml>")
}

#[test]
fn endnote_fields_are_read() {
    let text = xml("<record><ref-type name=\"Journal Article\">17</ref-type><contributors><authors>\
        <author><style face=\"normal\">Doe, Jane</style></author></authors><secondary-authors><author>Ed, I</author>\
        </secondary-authors></contributors><titles><secondary-title>J Tests</secondary-title><title>\
        <style>A </style><style face=\"italic\">styled</style><style> title &amp; more</style></title></titles>\
        <dates><year>May 2022</year></dates><pages>10-9</pages><number>3</number><accession-num>77</accession-num>\
        <remote-database-provider>NLM</remote-database-provider><electronic-resource-num>doi:10.5555/Y\
        </electronic-resource-num><keywords><keyword>a&#xD;b</keyword></keywords></record>");
    let found = &references(&text)[0];
    assert_eq!(found.title, "A styled title & more");
    assert_eq!(found.authors, ["Doe, Jane"]);
    assert_eq!((found.journal.as_deref(), found.year), (Some("J Tests"), Some(2022)));
    assert_eq!((found.pages.as_deref(), found.issue.as_deref()), (Some("10-9"), Some("3")));
    assert_eq!((found.doi.as_deref(), found.pmid.as_deref()), (Some("10.5555/y"), Some("77")));
    assert_eq!(found.keywords, ["a", "b"]);
    assert_eq!(found.r#type.as_deref(), Some("Journal Article"));
}

#[test]
fn entities_are_decoded_once_unknown_kept() {
    let text = xml("<record><title>caf&eacute; &#233; &#0; &lt;b&gt; &amp;lt; &x;</title></record>");
    assert_eq!(references(&text)[0].title, "café é &#0; <b> &lt; &x;");
}

#[test]
fn untitled_endnote_record_keeps_journal() {
    let text = xml("<record><titles><secondary-title>J Tests</secondary-title></titles></record>");
    assert_eq!(
        (references(&text)[0].title.as_str(), references(&text)[0].journal.as_deref()),
        ("", Some("J Tests"))
    );
}

#[test]
fn broken_endnote_record_is_quarantined_alone() {
    let text = xml("<record><title>a</record><record><title>b</title></record>\n<record/>");
    let (outcomes, report) = read(text.as_bytes()).unwrap();
    assert_eq!((report.records, report.quarantined), (3, 2));
    assert!(matches!(&outcomes[0], Outcome::Quarantined(bad) if bad.reason.starts_with("its XML is broken")));
    assert_eq!((line(&outcomes[2]), original(text.as_bytes(), &outcomes[2])), (2, b"<record/>".as_slice()));
}

#[test]
fn excessive_nesting_is_quarantined() {
    let text = xml(&format!("<record>{}</record>", "<a>".repeat(50_000)));
    assert_eq!(read(text.as_bytes()).unwrap().1.quarantined, 1);
}

#[test]
fn table_row_with_excess_cells_is_quarantined() {
    let (outcomes, _) = read(b"Title,Year\na,1999\nb, c,2000\nd\n").unwrap();
    assert!(
        matches!(&outcomes[1], Outcome::Quarantined(bad) if bad.reason.contains("3 cells")),
        "{outcomes:?}"
    );
    assert!(matches!(&outcomes[2], Outcome::Read(_)));
}

#[test]
fn lines_inside_cells_are_counted() {
    let (outcomes, _) = read(b"Title,Abstract\r\na,\"x\r\n\r\ny\"\r\n\r\nb,z\r\n").unwrap();
    assert_eq!(outcomes.iter().map(line).collect::<Vec<_>>(), [2, 6]);
}

#[test]
fn table_keywords_links_and_pages_are_read() {
    let text = "Document Title\tAuthor(s)\tStart page\tEnd page\tAuthor Keywords\tLink\tPubMed ID\n\
        A\tDoe, Jane; Roe, R\t1\t9\tx; y\thttps://doi.org/10.5555/Z\t42\n";
    let found = &references(text)[0];
    assert_eq!((found.title.as_str(), found.pages.as_deref()), ("A", Some("1-9")));
    assert_eq!(found.keywords, ["x", "y"]);
    assert_eq!((found.doi.as_deref(), found.pmid.as_deref()), (Some("10.5555/z"), Some("42")));
    assert_eq!(found.r#type, None);
}

#[test]
fn day_of_another_year_is_ignored() {
    let dated = |date: &str| {
        let text = xml(&format!(
            "<record><title>a</title><dates><year>2020</year><pub-dates><date>{date}</date></pub-dates></dates></record>"
        ));
        references(&text).remove(0)
    };
    assert_eq!(dated("Apr 5").date.as_deref(), Some("2020-04-05"));
    assert_eq!(dated("2020-04-05").date.as_deref(), Some("2020-04-05"));
    assert_eq!((dated("2020").date, dated("2020").extra.len()), (None, 0));
    let other = dated("2019-12-30");
    assert_eq!(
        (other.year, other.date, other.extra["date"].as_slice()),
        (Some(2020), None, ["2019-12-30".to_owned()].as_slice())
    );
}

#[test]
fn unknown_tags_and_unchosen_values_are_kept() {
    let text = "TY  - JOUR\nTI  - a\nT1  - a\nST  - short\nJO  - J Tests\nT2  - J Tests\nVL  - 1\nVL  - 2\nSN  - 0000-0019\n\
        ZZ  - x &amp; y\nsn  - 0000-0027\nDO  - 10.5555/a\nDO  - see the publisher\nER  -\n";
    let extra: Vec<(String, Vec<String>)> = references(text).remove(0).extra.into_iter().collect();
    let expected = [
        ("DO", vec!["see the publisher"]),
        ("SN", vec!["0000-0019", "0000-0027"]),
        ("ST", vec!["short"]),
        ("VL", vec!["2"]),
        ("ZZ", vec!["x & y"]),
    ];
    let expected =
        expected.map(|(tag, values)| (tag.to_owned(), values.into_iter().map(str::to_owned).collect()));
    assert_eq!(extra, expected);
}

#[test]
fn unusual_tag_notations_are_recognized() {
    let text = "  ty  - jour\n  ti\t-\ta\n\tau  - Doe, J\n\nER - \nTY - BOOK\nBT - b\nER - \n";
    let found = references(text);
    assert_eq!(
        (found[0].title.as_str(), found[0].authors.as_slice()),
        ("a", ["Doe, J".to_owned()].as_slice())
    );
    assert_eq!(found[0].r#type.as_deref(), Some("Journal Article"));
    assert_eq!((found[1].title.as_str(), found[1].r#type.as_deref()), ("b", Some("Book")));
}
