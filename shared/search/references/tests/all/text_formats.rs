//! The text formats that databases write.

use references::{Format, Reference};

use crate::{read, reference, references};

/// Checks the two records that all formats contain.
fn check(text: &str, format: Format, says_all: bool) -> Vec<Reference> {
    let (_, report) = read(text.as_bytes()).unwrap();
    assert_eq!((report.format, report.quarantined), (format, 0));
    let found = references(text);
    assert_eq!(found.len(), 2, "{found:#?}");
    let first = &found[0];
    assert_eq!(first.title.trim_end_matches('.'), "Tests of readers: a trial");
    assert_eq!(found[1].title.trim_end_matches('.'), "Second");
    assert_eq!((first.journal.as_deref(), first.year), (Some("J Tests"), Some(2020)));
    assert_eq!((first.volume.as_deref(), first.issue.as_deref()), (Some("12"), Some("3")));
    assert_eq!(first.pages.as_deref(), Some("123-129"));
    let families: Vec<&str> = first.authors.iter().filter_map(|name| name.split(',').next()).collect();
    assert_eq!(families, ["Roe", "van der Doe"]);
    if says_all {
        assert_eq!(first.doi.as_deref(), Some("10.5555/t.1"));
        assert_eq!(first.r#abstract.as_deref(), Some("AIM: To test. RESULT: It works."));
    }
    found
}

#[test]
fn endnote_tagged_files_are_read() {
    let text = "%0 Journal Article\n%A Roe, R A\n%A van der Doe, Jane\n%D 2020\n%T Tests of readers: a trial\n%J J Tests\n\
        %V 12\n%N 3\n%P 123-129\n%R 10.5555/T.1\n%M 42\n%W NLM\n%K one\ntwo\n%X AIM: To test.\nRESULT: It works.\n%@ 0000-0019\n\n\
        %A Poe, E\n%T Second\n%B Book\n%E Ed, I\n";
    let found = check(text, Format::Refer, true);
    assert_eq!(
        (found[0].pmid.as_deref(), found[0].keywords.as_slice()),
        (Some("42"), ["one", "two"].map(String::from).as_slice())
    );
    assert_eq!(
        (found[0].r#type.as_deref(), found[0].extra["%@"].as_slice()),
        (Some("Journal Article"), ["0000-0019".to_owned()].as_slice())
    );
    assert_eq!(
        (found[1].journal.as_deref(), found[1].authors.as_slice()),
        (Some("Book"), ["Poe, E".to_owned()].as_slice())
    );
}

#[test]
fn refworks_files_are_read() {
    let text = "RT Journal Article\nSR Electronic(1)\nID 7\nA1 Roe,R. A.\nA1 van der Doe,Jane\nT1 Tests of readers: a trial\nJF J Tests\n\
        YR 2020\nFD Mar 5\nVO 12\nIS 3\nSP 123\nOP 129\nK1 one\nK1 two\nDO 10.5555/t.1\nAB AIM: To test. RESULT: It works.\n\n\
        RT Book, Whole\nA1 Poe,E.\nT1 Second\n";
    let found = check(text, Format::RefWorks, true);
    assert_eq!((found[0].date.as_deref(), found[0].authors[0].as_str()), (Some("2020-03-05"), "Roe, R. A."));
    assert_eq!(found[1].r#type.as_deref(), Some("Book, Whole"));
}

#[test]
fn refworks_tags_of_users_and_identifiers_end_values() {
    let text = "RT Journal Article\nA1 Roe,Ann\nT1 Tests\nAB We test.\nCR was seen.\nU1 snRNP too.\nU1 Included\nU15 last\nLK http://example.org/a\n\
        OL English (30)\nPMID 12345678\nPMCID PMC1234567\n";
    let found = &references(text)[0];
    assert_eq!(
        (found.r#abstract.as_deref(), found.url.as_deref()),
        (Some("We test. CR was seen. U1 snRNP too."), Some("http://example.org/a"))
    );
    assert_eq!((found.pmid.as_deref(), found.pmcid.as_deref()), (Some("12345678"), Some("PMC1234567")));
    assert_eq!((found.extra["U15"].as_slice(), found.extra["OL"].len()), (["last".to_owned()].as_slice(), 1));
}

#[test]
fn endnote_type_behind_title_begins_no_record() {
    let text = "%T First\n%0 Journal Article\n%A Roe, Ann\n%D 2020\n\n\n%T Second\n%0 Book\n%D 2021\n";
    let found = references(text);
    let [first, second] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((first.title.as_str(), first.year, second.year), ("First", Some(2020), Some(2021)));
    let text = "%T First\n%A Roe, Ann\n%D 2020\n%0 Journal Article\n%T Second\n%D 2021\n";
    assert_eq!(references(text).len(), 2, "the type begins the second record");
}

#[test]
fn ovid_texts_are_read() {
    let text = "<1>\nUnique Identifier\n  42\nTitle\n  Tests of readers:\n  a trial.\nSource\n  J Tests. 12(3):123-129, 2020 Mar.\nAuthors\n  \
        Roe RA\n  van der Doe J\nAbstract\n  AIM: To test.\n  RESULT: It works.\nDigital Object Identifier\n  https://dx.doi.org/10.5555/t.1\n\n\
        <2>\nTitle\n  Second\nSource\n  Unheard of 12\n";
    let found = check(text, Format::Ovid, true);
    assert_eq!(found[0].extra["Unique Identifier"], ["42"]);
    assert_eq!(found[1].extra["Source"], ["Unheard of 12"]);
}

#[test]
fn medlars_format_is_read() {
    let text = "UI  - 42\nAU  - Roe RA\nAU  - van der Doe J\nTI  - Tests of readers: a trial\nTA  - J Tests\nYR  - 2020\nVI  - 12\nIP  - 3\n\
        PG  - 123-129\nDO  - 10.5555/t.1\nDB  - Ovid MEDLINE(R)\nAB  - AIM: To test. RESULT:\n      It works.\n\nUI  - 43\nTI  - Second\n";
    let found = check(text, Format::Nbib, true);
    assert_eq!((found[0].pmid.as_deref(), found[1].pmid.as_deref()), (Some("42"), None));
}

#[test]
fn cochrane_texts_are_read() {
    let text = "Search Name: tests\n\nRecord #1 of 2\nID: CN-1\nAU: Roe, RA\nAU: van der Doe, J\nTI: Tests of readers: a trial\nSO: J Tests\n\
        YR: 2020\nVL: 12\nNO: 3\nPG: 123-129\nPM: PUBMED 42\nDOI: 10.5555/t.1\nAB: AIM: To test.\nRESULT: It works.\nUS: https://example.org\n\n\n\
        Record #2 of 2\nID: CN-2\nTI: Second\n";
    let found = check(text, Format::Cochrane, true);
    assert_eq!((found[0].pmid.as_deref(), found[0].extra["ID"][0].as_str()), (Some("42"), "CN-1"));
}

#[test]
fn proquest_texts_are_read() {
    let text = "____________________\n\nReport Information from ProQuest\n____________________\n\nDocument 1 of 2\n\nTests of readers: \
        a trial\n\nAuthor: Roe, R A; van der Doe, Jane\n\nPublication info: J Tests 12.3 (Mar 2020): 123-129.\n\nAbstract: AIM: To \
        test. RESULT: It works.\n\nDOI: 10.5555/t.1\n\nLanguage of publication: English\n____________________\n\nDocument 2 of 2\n\nSecond\n\n\
        Author: Poe, E\n____________________\n\nBibliography\n";
    check(text, Format::ProQuest, true);
}

#[test]
fn pubmed_summaries_are_read() {
    let text = "1: Roe RA, van der Doe J. Tests of readers: a trial. J Tests. 2020\nMar;12(3):123-129. doi: 10.5555/t.1. Epub 2019 \
        Dec 1. PMID: 42; PMCID: PMC7.\n\n\n2: Second. J Tests. 2021. PMID: 43.\n";
    let found = check(text, Format::PubMedText, false);
    assert_eq!((found[0].pmid.as_deref(), found[0].doi.as_deref()), (Some("42"), Some("10.5555/t.1")));
    assert_eq!((found[0].date.as_deref(), found[1].pmid.as_deref()), (Some("2020-03"), Some("43")));
}

#[test]
fn pubmed_abstracts_are_read() {
    let text = "1. J Tests. 2020 Mar 5;12(3):123-129. doi: 10.5555/t.1. Epub 2019 Dec 1.\n\nTests of readers:\na trial.\n\nRoe RA(1)(2), van \
        der Doe J(1).\n\nAuthor information:\n(1)Somewhere.\n(2)Elsewhere.\n\nAIM: To test. RESULT: It\nworks.\n\nCopyright 2020.\n\nDOI: 10.5555/t.1\n\
        PMID: 42 [Indexed for MEDLINE]\n\n\n2. J Tests. 2021;1:2.\n\nSecond.\n\nPoe E.\n\nPMID: 43\n";
    let found = check(text, Format::PubMedText, true);
    assert_eq!((found[0].pmid.as_deref(), found[0].date.as_deref()), (Some("42"), Some("2020-03-05")));
    assert_eq!(
        (found[1].pmid.as_deref(), found[1].authors.as_slice()),
        (Some("43"), ["Poe, E".to_owned()].as_slice())
    );
}

#[test]
fn endnote_tab_delimited_files_are_tables() {
    let text = "*Journal Article\nAuthor\tYear\tTitle\tSecondary Title\tDOI\nRoe, R A//van der Doe, Jane\t2020\tTests\tJ Tests\t10.5555/t.1\n";
    let found = &references(text)[0];
    assert_eq!(found.authors, ["Roe, R A", "van der Doe, Jane"]);
    assert_eq!((found.journal.as_deref(), found.doi.as_deref()), (Some("J Tests"), Some("10.5555/t.1")));
}

#[test]
fn csl_json_is_read() {
    let text = r#"[{"id": "a", "type": "article-journal", "title": "Tests of readers: a trial", "container-title": ["J Tests"],
        "author": [{"family": "Roe", "given": "R A", "suffix": "Jr"}, {"family": "Doe", "non-dropping-particle": "van der", "given": "Jane"}],
        "issued": {"date-parts": [["2020", 3, 5]]}, "volume": 12, "issue": "3", "page": "123-129", "DOI": "10.5555/T.1", "PMID": "42",
        "abstract": "AIM: To test. RESULT: It works.", "keyword": "one, two", "ISSN": ["0000-0019"], "custom": {"a": 1}},
        {"title": "Second", "author": [{"literal": "The Group"}], "issued": {"raw": "2019"}}, {"title": }]"#;
    let (outcomes, report) = read(text.as_bytes()).unwrap();
    assert_eq!((report.records, report.quarantined), (3, 1));
    assert!(
        matches!(&outcomes[2], references::Outcome::Quarantined(bad) if bad.reason.starts_with("its JSON is broken"))
    );
    let found = check(&text.replace(", {\"title\": }", ""), Format::CslJson, true);
    assert_eq!(
        (found[0].authors[0].as_str(), found[0].date.as_deref()),
        ("Roe, R A, Jr", Some("2020-03-05"))
    );
    assert_eq!((found[0].pmid.as_deref(), found[0].keywords.len()), (Some("42"), 2));
    assert_eq!(
        (found[0].extra["ISSN"][0].as_str(), found[0].extra["custom"][0].as_str()),
        ("0000-0019", "{\"a\":1}")
    );
    assert_eq!((found[1].year, found[1].authors[0].as_str()), (Some(2019), "The Group"));
}

#[test]
fn europe_pmc_results_are_read() {
    let text = "<?xml version=\"1.0\"?><responseWrapper><hitCount>2</hitCount><resultList><result><id>42</id><pmid>42</pmid>\
        <doi>10.5555/t.1</doi><title>Tests of readers: a trial.</title><authorString>Roe RA, van der Doe J.</authorString><authorList>\
        <author><fullName>Roe RA</fullName><firstName>R A</firstName><lastName>Roe</lastName></author><author><fullName>van der Doe \
        J</fullName><lastName>van der Doe</lastName><initials>J</initials></author></authorList><journalInfo><issue>3</issue><volume>12\
        </volume><journal><title>J Tests</title></journal></journalInfo><pubYear>2020</pubYear><pageInfo>123-129</pageInfo>\
        <abstractText>AIM: To test. RESULT: It works.</abstractText><pubTypeList><pubType>research-article</pubType></pubTypeList></result>\
        <result><title>Second</title><authorString>Poe E, Roe R.</authorString><journalTitle>J</journalTitle></result></resultList>\
        </responseWrapper>";
    let found = check(text, Format::EuropePmcXml, true);
    assert_eq!((found[0].pmid.as_deref(), found[0].authors[1].as_str()), (Some("42"), "van der Doe, J"));
    assert_eq!(found[1].authors, ["Poe, E", "Roe, R"]);
}

#[test]
fn jats_articles_are_read_without_their_text() {
    let article = |inner: &str| {
        format!(
            "<article article-type=\"research-article\"><front>{inner}</front><body><p>Text</p></body></article>"
        )
    };
    let first = article(
        "<journal-meta><journal-title-group><journal-title>J Tests</journal-title></journal-title-group></journal-meta><article-meta>\
        <article-id pub-id-type=\"pmid\">42</article-id><article-id pub-id-type=\"doi\">10.5555/t.1</article-id><title-group>\
        <article-title>Tests of <italic>readers</italic>: a trial</article-title></title-group><contrib-group><contrib \
        contrib-type=\"author\"><name><surname>Roe</surname><given-names>R A</given-names></name></contrib><contrib \
        contrib-type=\"author\"><name><surname>van der Doe</surname><given-names>Jane</given-names></name></contrib><contrib \
        contrib-type=\"editor\"><name><surname>Ed</surname></name></contrib></contrib-group><pub-date><day>5</day><month>3</month>\
        <year>2020</year></pub-date><volume>12</volume><issue>3</issue><fpage>123</fpage><lpage>129</lpage><abstract><p>AIM: To \
        test. RESULT: It works.</p></abstract><abstract abstract-type=\"teaser\"><p>New!</p></abstract></article-meta>",
    );
    let second = article(
        "<article-meta><title-group><article-title>Second</article-title></title-group></article-meta>",
    );
    let found = check(&format!("<pmc-articleset>{first}{second}</pmc-articleset>"), Format::JatsXml, true);
    assert_eq!((found[0].pmid.as_deref(), found[0].date.as_deref()), (Some("42"), Some("2020-03-05")));
    assert_eq!(
        (found[0].r#type.as_deref(), found[0].extra["teaser"][0].as_str()),
        (Some("research-article"), "New!")
    );
    let alone = format!("<!DOCTYPE article PUBLIC \"-//NLM//DTD JATS\" \"x.dtd\">{second}");
    assert_eq!(references(&alone)[0].title, "Second");
}

#[test]
fn one_blank_line_separates_pubmed_summaries() {
    let text = "1: Roe A, Doe B, Test Study Group. First. J Tests. 2020 May\n15;1(2):3-9. PMID: 42.\n\n\
        2: Poe E. Second. J Tests. 2021;1:2. PMID: 43.\n";
    let found = references(text);
    assert_eq!((found.len(), found[0].title.as_str()), (2, "First."));
    assert_eq!(found[0].authors, ["Roe, A", "Doe, B", "Test Study Group"]);
    assert_eq!((found[1].pmid.as_deref(), found[1].title.as_str()), (Some("43"), "Second."));
}

#[test]
fn proquest_values_end_at_the_next_name() {
    let text = "____________\nDocument 1 of 1\n\nTests\n\nAuthor: Roe, Ann\n\nISSN: 12345678\n\n\
        Document URL: https://example.org/1\n\nProQuest document ID: 2512345679\n\nDatabase: ProQuest Nursing\n";
    let found = &references(text)[0];
    assert_eq!(found.url.as_deref(), Some("https://example.org/1"));
    assert_eq!((found.accession.as_deref(), found.authors.len()), (Some("2512345679"), 1));
}

#[test]
fn addresses_behind_authors_of_proquest_are_separated() {
    let author = |value: &str| {
        let text = format!("Document 1 of 1\n\nTests\n\nAuthor: {value}\n\nPublication title: J Tests\n");
        references(&text).remove(0).authors
    };
    assert_eq!(author("Roe, Ann11 Dept Tests, School of Town, UK"), ["Roe, Ann"]);
    assert_eq!(author("Roe, Ann-Eve1; Doe, B1 School, Town; 2 Centre, Town"), ["Roe, Ann-Eve", "Doe, B"]);
    assert_eq!(author("Roe, Ann11 \"Home\", 36 Road, Town 400050 roe@example.org"), ["Roe, Ann"]);
    assert_eq!(author("Roe, D1; Van Doe, M; Poe, R1 Centre, Town"), ["Roe, D", "Van Doe, M", "Poe, R"]);
    assert_eq!(author("Ren&#233;, A1; Poe, R1 Centre, Town"), ["René, A", "Poe, R"]);
    assert_eq!(author("[Unknown]"), Vec::<String>::new());
    assert_eq!(author("Roe, Ann; COVID19 Study Group"), ["Roe, Ann", "COVID19 Study Group"]);
    let text =
        "Document 1 of 1\n\nTests\n\nAuthor: Roe, Ann11 School, UK\n\nhttp://example.org/1\n\nTitle: Tests\n";
    assert_eq!(references(text).remove(0).extra["Author affiliation"], ["11 School, UK"]);
}

#[test]
fn missing_title_of_proquest_is_no_title() {
    let text = "Document 1 of 1\n\nTranslated title not available.\n\nAuthor: Roe, Ann\n\n\
        Title: Translated title not available.\n\nAlternate title: Transliterated title not available.\n\nISSN: 0219-2462\n\n\
        CODEN: HKJWEQ\n\nPublication title: J Tests\n";
    let found = references(text).remove(0);
    assert_eq!((found.title.as_str(), found.extra["ISSN"][0].as_str()), ("", "0219-2462"));
}

#[test]
fn subjects_and_dates_of_proquest_are_separated() {
    let text = "Document 1 of 1\n\nTests\n\nSubject: *Welfare State; United Kingdom\n\nPublication year: 1999\n\n\
        Year: 1999\n\nSource type: Scholarly Journals\n\nPeer reviewed: Yes\n\nDocument type: Journal Article\n\n\
        Update: 2007-04-01\n\nAccession number: 200002671\n";
    let found = references(text).remove(0);
    assert_eq!(found.keywords, ["Welfare State", "United Kingdom"]);
    assert_eq!((found.year, found.r#type.as_deref()), (Some(1999), Some("Journal Article")));
    assert_eq!(
        (found.extra["Update"][0].as_str(), found.extra["Source type"][0].as_str()),
        ("2007-04-01", "Scholarly Journals")
    );
}

#[test]
fn full_names_of_ovid_replace_short_ones() {
    let text = "<1>\nTitle\n  a\nAuthors\n  Roe A; Doe B\nAuthors Full Name\n  Roe, Ann; Doe, Bob.\n\n<2>\nTitle\n  b\nAuthors\n  Roe A\n";
    let found = references(text);
    assert_eq!(found[0].authors, ["Roe, Ann", "Doe, Bob"]);
    assert_eq!(found[1].authors, ["Roe, A"]);
}

#[test]
fn texts_may_have_line_ends_of_old_macs() {
    let text = "Document 1 of 1\n\nTests of readers\n\nAuthor: Roe, Ann\n\nPublication year: 2020\n";
    let found = &references(&text.replace('\n', "\r"))[0];
    assert_eq!((found.title.as_str(), found.year), ("Tests of readers", Some(2020)));
    let text = "1. J Tests. 2020 Jan;1(2):3.\n\nTests.\n\nRoe A.\n\nPMCID: PMC7012345\nPMID: 7\n";
    let found = &references(&text.replace('\n', "\r"))[0];
    assert_eq!((found.title.as_str(), found.pmcid.as_deref()), ("Tests.", Some("PMC7012345")));
}

#[test]
fn month_is_read_in_separate_fields() {
    let date = |text: &str| references(text)[0].date.clone();
    assert_eq!(date("TY  - JOUR\nTI  - a\nDA  - JUN\nPY  - 2020\nER  -\n").as_deref(), Some("2020-06"));
    assert_eq!(date("TY  - JOUR\nTI  - a\nDA  - JUN 8\nPY  - 2020\nER  -\n").as_deref(), Some("2020-06-08"));
    assert_eq!(date("@article{a, title = {b}, year = 2020, month = {06}}").as_deref(), Some("2020-06"));
    assert_eq!(date("@article{a, title = {b}, year = 2020, month = {00}}"), None);
}

#[test]
fn suffix_follows_given_names() {
    let text = "PMID- 1\nTI  - a\nFAU - Roe, Ann B Jr\nFAU - Ivanov, I II\nFAU - Doe, Bob 3rd\n";
    assert_eq!(references(text)[0].authors, ["Roe, Ann B, Jr", "Ivanov, I II", "Doe, Bob, 3rd"]);
}

#[test]
fn columns_named_by_paths_are_one_header() {
    let text = "id,doi,title,ids.pmid,primary_location.source.display_name,authorships.author.display_name,abstract\n\
        W1,10.5555/a,Tests,42,J Tests,Ann Roe|Bob Doe,We test.\n";
    let found = references(text);
    assert_eq!((found.len(), found[0].title.as_str(), found[0].pmid.as_deref()), (1, "Tests", Some("42")));
    assert_eq!((found[0].journal.as_deref(), found[0].authors.len()), (Some("J Tests"), 2));
}

#[test]
fn full_names_are_preferred_in_tables() {
    let text = "Authors,Author full names,Title,Year\nRoe A.; Doe B.,\"Roe, Ann (7001); Doe, Bob (7002)\",Tests,2020\n\
        Roe A.,,More,2020\n";
    let found = references(text);
    assert_eq!(
        (found[0].authors.as_slice(), found[1].authors.len()),
        (["Roe, Ann", "Doe, Bob"].map(String::from).as_slice(), 1)
    );
}

#[test]
fn numbers_of_records_are_distinguished() {
    let accession =
        |line: &str| references(&format!("TY  - JOUR\nTI  - a\n{line}\nER  -\n"))[0].accession.clone();
    assert_eq!(accession("ID  - 2019-65183-001").as_deref(), Some("2019-65183-001"));
    assert_eq!(accession("AN  - rayyan-100000001"), None);
}

#[test]
fn ris_without_types_is_read() {
    let text = "T1  - a\nA1  - Roe, Ann\nY1  - 2020\nER  - \n\nT1  - b\nA1  - Doe, Bob\nER  - \n";
    let (_, report) = read(text.as_bytes()).unwrap();
    assert_eq!((report.format, report.records, report.quarantined), (Format::Ris, 2, 0));
    assert!(read(b"T1  - a\nA1  - b\nY1  - 2020\nVL  - 1\n").is_err());
}

#[test]
fn names_of_fields_may_contain_slash() {
    let text = "<1>\nTitle\n  Tests\nJournal Name\n  Journal of Tests\nIssue/Part\n  3\n";
    assert_eq!(references(text)[0].issue.as_deref(), Some("3"));
    let text = "Reference Type:  Journal Article\nTitle: Tests\nPages: 123-129\nISBN/ISSN: 0165-0327\n";
    assert_eq!(references(text)[0].pages.as_deref(), Some("123-129"));
}

#[test]
fn wrapped_summary_and_contributor_marks_are_read() {
    let text = "1: Roe AB, Doe C. Effects of tests. J Tests. 2020 May 1;12(3):123-129. doi:\n10.5555/a. PMID:\n30000001.\n";
    let found = &references(text)[0];
    assert_eq!((found.pmid.as_deref(), found.doi.as_deref()), (Some("30000001"), Some("10.5555/a")));
    let text = "1. J Tests. 2021 Jul;27(7):1-9.\n\nTests.\n\nKhoury DS(#)(1), Cromer D(#)(1)(2).\n\nText.\n\nPMID: 30000001\n";
    assert_eq!(references(text)[0].authors, ["Khoury, DS", "Cromer, D"]);
}

#[test]
fn identifiers_cited_in_abstract_are_ignored() {
    let text = "1. J Tests. 2021 Jul;27(7):1-9.\n\nTests.\n\nRoe A(1).\n\nAs before (PMID:22222222, doi:10.5555/b).\n\nPMID: 30000001\n";
    let found = &references(text)[0];
    assert_eq!((found.pmid.as_deref(), found.doi.as_deref()), (Some("30000001"), None));
}

#[test]
fn title_of_proquest_may_begin_like_a_field() {
    let text = "____________\n\nDocument 1 of 1\n\nLocation: a study of places\n\nAuthor: Roe, Ann\n\nPublication title: J Tests\n";
    assert_eq!(references(text)[0].title, "Location: a study of places");
}

#[test]
fn authors_of_pubmed_summaries_are_read() {
    for (list, authors, title) in [
        ("Roe A, Doe B, et al.", &["Roe, A", "Doe, B"][..], "Tests."),
        ("Roe A, Doe B; Test Study Group.", &["Roe, A", "Doe, B", "Test Study Group"], "Tests."),
        ("World Health Organization.", &["World Health Organization"], "Tests."),
        ("Mental Health Services.", &[], "Mental Health Services. Tests."),
        ("Effects on a group.", &[], "Effects on a group. Tests."),
    ] {
        let text = format!(
            "1: {list} Tests. J Trials. 2020 May;12(3):123-9. PMID: 31234568.\n\n2: Roe A. B. J Trials. 2020. PMID: 31234569.\n"
        );
        let found = references(&text).remove(0);
        assert_eq!(
            (found.authors.as_slice(), found.title.as_str()),
            (authors.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().as_slice(), title),
            "{list}"
        );
    }
}

#[test]
fn ovid_texts_without_brackets_are_read() {
    let first = "Unique Identifier\n  42\nTitle\n  Tests of readers: a trial.\nSource\n  J Tests. 12(3):123-129, 2020 Mar.\n\
        Authors\n  Roe RA\n  van der Doe J\nAbstract\n  AIM: To test.\n  RESULT: It works.\n\
        Digital Object Identifier\n  https://dx.doi.org/10.5555/t.1\n\n";
    for (number, next) in [("1.\n", "2.\n"), ("1 \n", "2 \n"), ("1. ", "2. "), ("", "")] {
        let second = "Unique Identifier\n  43\nTitle\n  Second\nSource\n  Unheard of 12\n";
        let text = [number, first, next, second].concat();
        let found = check(&text, Format::Ovid, true);
        let numbers = found.iter().map(|found| found.extra["Unique Identifier"][0].as_str());
        assert_eq!(numbers.collect::<Vec<_>>(), ["42", "43"], "{text}");
    }
    let error = read(b"1. Roe RA.\nTests of readers.\nJ Tests. 12(3):123-129, 2020.\n").unwrap_err();
    assert!(matches!(error, references::Error::UnknownFormat { .. }), "{error}");
}

#[test]
fn ovid_record_without_title_is_kept() {
    let text = "1.\nTitle\n  First\nVolume\n  12\n\n2.\nAuthors\n  Roe A\n\n3.\nTitle\n  Third\n";
    let found = references(text);
    assert_eq!((found.len(), found[1].authors.len(), found[2].title.as_str()), (3, 1, "Third"));
}

#[test]
fn tagged_lines_of_ebsco_are_read() {
    let text = "TI- Psychometric properties of tests.\nTI- Propiedades\nPS- Publication Status: Fully Published\n\
        AU- Roe, Ann\nAU- van der Doe, J. M.\nAF- Roe, Ann, School of Tests, Town\nSO- Social Tests: The Journal\nVI- 24\n\
        IP- 6\nSD- Nov, 2014\nYR- 2014\nPM- Nov, 2014\nPG- 676-684\nPC- 9\nSP- 676\nSN- 1049-7315, Print\n\
        DO- 10.5555/t.1\nLA- English\nKP- nursing home\nSU- Measurement; Test Validity\nAB- AIM: To test.\n\
        MJ- Measurement; Test Validity\nTM- Checklist DOI: 10.1037/t06631-000\nPT- Journal\nAT- Journal Article\nRD- 20141208\n\
        AN- 2014-43498-004\nUR- http://search.ebscohost.com/login.aspx?direct=true&db=psyh&AN=2014-43498-004\n\n\
        TI- Second\nAU- Poe, Eve1\nSO- J Tests. 2015; 76(4): 201-210\n";
    let (outcomes, report) = read(text.as_bytes()).unwrap();
    assert_eq!((report.format, report.skipped), (Format::EbscoTagged, None));
    let found: Vec<_> = outcomes.into_iter().map(reference).collect();
    let [first, second] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(first.title, "Psychometric properties of tests.");
    assert_eq!(first.authors, ["Roe, Ann", "van der Doe, J. M."]);
    assert_eq!((first.year, first.date.as_deref()), (Some(2014), Some("2014-11")));
    assert_eq!(first.journal.as_deref(), Some("Social Tests: The Journal"));
    assert_eq!((first.volume.as_deref(), first.issue.as_deref()), (Some("24"), Some("6")));
    assert_eq!((first.pages.as_deref(), first.doi.as_deref()), (Some("676-684"), Some("10.5555/t.1")));
    assert_eq!(first.keywords, ["nursing home", "Measurement", "Test Validity"]);
    assert_eq!(
        (first.r#abstract.as_deref(), first.r#type.as_deref()),
        (Some("AIM: To test."), Some("Journal Article"))
    );
    assert_eq!(first.accession.as_deref(), Some("2014-43498-004"));
    assert_eq!(second.authors, ["Poe, Eve"]);
    assert_eq!((second.journal.as_deref(), second.pages.as_deref()), (Some("J Tests"), Some("201-210")));
    assert_eq!(
        (second.year, second.volume.as_deref(), second.issue.as_deref()),
        (Some(2015), Some("76"), Some("4"))
    );
}

#[test]
fn engineering_village_texts_are_read() {
    let text = "<RECORD 1>\n\nAccession number:20201508392432\n\nTitle:Tests of readers: a trial\n\n\
        Authors:Roe, R. A. (1, 2); van der Doe, Jane (2)\n\nAuthor affiliation:(1) School of Tests, Town; (2) Institute\n\n\
        Corresponding author:Roe, R. A.(roe@example.org)\n\nSource title:J Tests\n\nAbbreviated source title:J. Tests\n\n\
        Volume:12\n\nPart number:1 of 2\n\nIssue:3\n\nIssue date:March 2020\n\nPublication year:2020\n\nPages:123-129\n\n\
        Language:English\n\nDocument type:Journal article (JA)\n\n\
        Abstract:<div data-language=\"eng\" data-ev-field=\"abstract\">AIM: To test.\nRESULT: It works.</div>\n\n\
        Number of references:45\n\nControlled terms:Learning systems - X-ray analysis\n\nUncontrolled terms:Test-retest - Readers\n\n\
        Classification code:461.4 Ergonomics - 723.4 Artificial Intelligence\n\nDOI:10.5555/t.1\n\nDatabase:Compendex\n\n\
        Compilation and indexing terms, Copyright 2020 Elsevier Inc.\n\nData Provider:Engineering Village\n\n\
        <RECORD 2>\n\nTitle:Second\n\nAuthors:Poe, E.\n\nArticle number:9000001\n\nDatabase:Inspec\n";
    let found = references(text);
    let [first, second] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(first.title, "Tests of readers: a trial");
    assert_eq!(first.authors, ["Roe, R. A.", "van der Doe, Jane"]);
    assert_eq!((first.year, first.date.as_deref()), (Some(2020), Some("2020-03")));
    assert_eq!((first.journal.as_deref(), first.volume.as_deref()), (Some("J Tests"), Some("12")));
    assert_eq!((first.issue.as_deref(), first.pages.as_deref()), (Some("3"), Some("123-129")));
    assert_eq!(first.keywords, ["Learning systems", "X-ray analysis", "Test-retest", "Readers"]);
    assert_eq!(first.r#abstract.as_deref(), Some("AIM: To test. RESULT: It works."));
    assert_eq!(
        (first.doi.as_deref(), first.accession.as_deref()),
        (Some("10.5555/t.1"), Some("20201508392432"))
    );
    assert_eq!(
        (first.extra["Part number"][0].as_str(), first.extra["Database"][0].as_str()),
        ("1 of 2", "Compendex")
    );
    assert_eq!((second.title.as_str(), second.pages.as_deref()), ("Second", Some("9000001")));
    let citations = "<RECORD 1>\nTests of readers\nRoe, R. A. (1)\nSource: J Tests, v 12, p 123-129, 2020\n";
    let error = read(citations.as_bytes()).unwrap_err().to_string();
    assert!(
        error.contains("it is text of Engineering Village") && error.contains("export RIS or CSV"),
        "{error}"
    );
}

#[test]
fn words_of_abstract_begin_no_field_of_engineering_village() {
    let text = |blank: &str| {
        let lines =
            "<RECORD 1>\n\nTitle:=Volume: a test\n\nAbstract:=AIM: to test.\nMethods: ok.\n\nIssue:=7\n\n";
        lines.replace('=', blank)
    };
    for blank in ["", " "] {
        let found = &references(&text(blank))[0];
        assert_eq!(
            (found.title.as_str(), found.issue.as_deref()),
            ("Volume: a test", Some("7")),
            "{blank:?}"
        );
        assert_eq!(found.r#abstract.as_deref(), Some("AIM: to test. Methods: ok."), "{blank:?}");
    }
    let found = &references(&text("").replace("Methods:", "Issue: none.\nMethods:"))[0];
    assert_eq!(found.r#abstract.as_deref(), Some("AIM: to test. Issue: none. Methods: ok."));
}
