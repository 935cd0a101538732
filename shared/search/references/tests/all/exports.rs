//! Exports in layouts of former versions and of less common programs.

use references::{Format, Reference};

use crate::{read, reference, references};

fn own(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

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

#[test]
fn marks_inside_of_quoted_values_are_text() {
    let text = "@article{a,\n author = \"Roe, Ann and Doe, Bob\",\n title = \"He said \"no\", then \"yes\": tests\",\n \
        abstract = \"A 12\" ruler, \"here\"\",\n year = \"2001\"\n}\n\
        @article{b, title = \"Say \"no\" to it\", year = \"2001\"}\n";
    let found = references(text);
    assert_eq!((found[0].title.as_str(), found[0].year), ("He said \"no\", then \"yes\": tests", Some(2001)));
    assert_eq!(found[0].r#abstract.as_deref(), Some("A 12\" ruler, \"here\""));
    assert_eq!(found[0].extra["repaired"], ["its braces or quotes do not match"]);
    assert_eq!((found[1].title.as_str(), found[1].year), ("Say \"no\" to it", Some(2001)));
    // Text behind a value remains text.
    let text = "@article{a,\n title = \"Tests\" note,\n author = \"Roe, Ann\",\n year = \"2001\"\n}\n";
    let found = references(text);
    assert_eq!((found[0].title.as_str(), found[0].authors.len(), found[0].year), ("Tests", 1, Some(2001)));
}

#[test]
fn other_quotation_marks_enclose_values() {
    for (open, close) in [("“", "”"), ("”", "”"), ("'", "'"), ("‘", "’"), ("``", "''"), ("«", "»"), ("", "")]
    {
        let text = format!(
            "@article{{a,\n  author = {open}Roe, Ann and O'Doe, Bob{close},\n  title = {open}Tests, trials and more{close},\n  \
             journal = {open}J Tests{close}, year = {open}2001{close}, early access date = {{MAY 2001}},\n  \
             month = may\n}}\n"
        );
        let found = references(&text);
        assert_eq!(found[0].title, "Tests, trials and more", "{open}");
        assert_eq!(found[0].authors, ["Roe, Ann", "O'Doe, Bob"], "{open}");
        assert_eq!((found[0].journal.as_deref(), found[0].year), (Some("J Tests"), Some(2001)), "{open}");
    }
}

#[test]
fn organisations_without_braces_keep_their_order() {
    let names =
        ["World Federation of Nurses", "Society for Tests", "Ministerio de Salud", "Centre for Tests"];
    let text = format!(
        "@misc{{a, title = {{Tests}}, author = {{{} and Ludwig van Beethoven}}}}\n",
        names.join(" and ")
    );
    let found = references(&text).remove(0).authors;
    assert_eq!(
        (&found[..4], found[4].as_str()),
        (names.map(String::from).as_slice(), "van Beethoven, Ludwig")
    );
}

#[test]
fn issues_and_pages_under_other_tags_are_read() {
    let with = |kind: &str, lines: &str| {
        references(&format!("TY  - {kind}\nTI  - Tests\n{lines}\nER  - \n")).remove(0)
    };
    for (lines, issue, pages) in [
        ("M1  - 3\nPG  - 12-19", Some("3"), Some("12-19")),
        ("M1  - Suppl. 2\nPG  - e123", Some("Suppl. 2"), Some("e123")),
        ("IS  - 7\nM1  - 3\nSP  - 12\nEP  - 19\nPG  - 8", Some("7"), Some("12-19")),
        ("M1  - 1228150341\nPG  - 8 p.", None, None),
        ("M1  - vwt, 1307333\nM1  - Roe, A. (2017). Tests. J Tests, 5, 94-100.", None, None),
    ] {
        let found = with("JOUR", lines);
        assert_eq!((found.issue.as_deref(), found.pages.as_deref()), (issue, pages), "{lines}");
    }
    let book = with("BOOK", "M1  - 3\nPG  - 350");
    assert_eq!((book.issue, book.pages, &book.extra["M1"]), (None, None, &vec!["3".to_owned()]));
}

#[test]
fn columns_of_dspace_have_languages() {
    let text = "id,collection,dc.contributor.author[en_US],dc.date.accessioned,dc.date.issued[],dc.description.abstract[en],\
        dc.identifier.doi,dc.relation.ispartof,dc.subject[es],dc.title[en],dc.title[es],dc.type\n\
        1,10/11,\"Roe, Ann::0b4f-11::600||Doe, Bob\",2021-01-01T10:00:00Z,2019-05,We test.,10.5555/ABC,J Tests,maíz||suelo,Tests,Pruebas,Thesis\n";
    let found = references(text).remove(0);
    assert_eq!((found.title.as_str(), found.authors), ("Tests", own(&["Roe, Ann", "Doe, Bob"])));
    assert_eq!((found.year, found.keywords), (Some(2019), own(&["maíz", "suelo"])));
    assert_eq!((found.doi.as_deref(), found.journal.as_deref()), (Some("10.5555/abc"), Some("J Tests")));
    assert_eq!((found.r#abstract.as_deref(), found.r#type.as_deref()), (Some("We test."), Some("Thesis")));
}

#[test]
fn elements_of_web_pages_around_text_are_removed() {
    let read = |text: &str| {
        let text = format!(
            "@article{{a, title = {{<div data-ev-field=\"title\">Tests of CO<inf>2</inf></div>}}, abstract = {{{text}}}}}\n"
        );
        let found = references(&text).remove(0);
        assert_eq!(found.title, "Tests of CO<inf>2</inf>");
        found.r#abstract.unwrap()
    };
    for (text, plain) in [
        ("<div data-language=\"eng\">We test.<br/></div> &copy; 2020 Roe", "We test.\n© 2020 Roe"),
        (
            "<p><strong>Aim:</strong> a.</p>  <p class=\"x\">Result: p&lt;0.05.</p>",
            "Aim: a.\nResult: p<0.05.",
        ),
        ("Aim: a.<br>Result: b", "Aim: a.\nResult: b"),
        // Other signs and elements are text.
        ("We test <i>a</i>, p<0.05 and <p1>", "We test <i>a</i>, p<0.05 and <p1>"),
    ] {
        assert_eq!(read(text), plain);
    }
}

#[test]
fn values_that_were_encoded_twice_are_decoded() {
    let text = "TY  - JOUR\nTI  - “Étude” de la fièvre\nAU  - Müller, JÃ¶rg\nAU  - GarcÃ\u{ad}a, José\n\
        AB  - We donâ€™t know, 5Â°C\nER  - \n";
    let found = references(text).remove(0);
    assert_eq!(
        (found.title.as_str(), found.authors),
        ("“Étude” de la fièvre", own(&["Müller, Jörg", "García, José"]))
    );
    assert_eq!(found.r#abstract.as_deref(), Some("We don’t know, 5°C"));
    assert_eq!(found.extra["repaired"], ["parts of it were encoded in UTF-8 twice"]);
}

#[test]
fn two_names_in_natural_order_are_split() {
    for (value, names) in [
        ("Ann Roe, Bob Doe", &["Ann Roe", "Bob Doe"][..]),
        ("Sarah van Roe, John Mc Doe", &["Sarah van Roe", "John Mc Doe"]),
        // A family name of two words, or two given names.
        ("García López, Ana María", &["García López, Ana María"]),
        ("Roe Doe, Mary Ann", &["Roe Doe, Mary Ann"]),
        ("Martin Roe, Ann", &["Martin Roe, Ann"]),
        ("Ann Mary, John Peter", &["Ann Mary, John Peter"]),
    ] {
        let table = format!("Title,Authors,Year\nTests,\"{value}\",2020\n");
        assert_eq!(references(&table)[0].authors, names, "{value}");
    }
    // Programs that always write commas between names.
    for columns in ["Consensus Link,Year", "DOI link,Venue", "TL;DR,Paper Title"] {
        let table = format!("Title,Authors,{columns}\nTests,\"Wei Zhang, Li Wang, Jr.\",,\n");
        assert_eq!(references(&table)[0].authors, ["Wei Zhang", "Li Wang, Jr."], "{columns}");
    }
}

#[test]
fn further_columns_and_tags_of_programs_are_read() {
    // RefWorks, Papers and packages of R.
    let text = "TY  - JOUR\nT1  - Tests\nSP  - 12\nOP  - 19\nUR  - papers3://publication/a\nER  - \n\
        TY  - JOUR\nT1  - Tests\nSP  - 12\nOP  - Original Publication\nER  - \n\
        TY  - ARTICLE\nTI  - Tests\nPG  - 12-19\nER  - \n";
    let found = references(text);
    let pages: Vec<_> = found.iter().map(|reference| reference.pages.as_deref()).collect();
    assert_eq!(pages, [Some("12-19"), Some("12"), Some("12-19")]);
    assert_eq!(found[0].url, None);
    let table = "title,subtitle,published.print,journal,Full journal\nTests:,a trial,2019-04,J T,J Tests\n\
        Tests. A trial,A trial,2019,J T,\n";
    let found = references(table);
    assert_eq!((found[0].title.as_str(), found[1].title.as_str()), ("Tests: a trial", "Tests. A trial"));
    assert_eq!((found[0].date.as_deref(), found[1].year), (Some("2019-04"), Some(2019)));
    assert_eq!((found[0].journal.as_deref(), found[1].journal.as_deref()), (Some("J Tests"), Some("J T")));
    // A date that a spreadsheet wrote as a number.
    let found = references("Title,Authors,Date\nTests,\"Roe, A\",43556\n");
    assert_eq!((found[0].year, found[0].date.as_deref()), (Some(2019), Some("2019-04-01")));
}

#[test]
fn tables_in_greek_and_arabic_encodings_are_read() {
    // Windows-1253 and Windows-1256.
    let greek = b"\xD4\xDF\xF4\xEB\xEF\xF2;\xC8\xED\xEE\xDC\xF1\xE9\xEF\xF2;\xDD\xF4\xEF\xF2\n\xCC\xE5\xEB\xDD\xF4\xE7;a;2015\n";
    let arabic = b"\xC7\xE1\xDA\xE4\xE6\xC7\xE4;\xC7\xE1\xE3\xC4\xE1\xDD\xE6\xE4;\xC7\xE1\xD3\xE4\xC9\n\xCF\xD1\xC7\xD3\xC9 \xC7\xE1\xE4\xE6\xE3;a;2015\n";
    for (bytes, title) in [(greek.as_slice(), "Μελέτη"), (arabic, "دراسة النوم")] {
        let (outcomes, _) = read(bytes).unwrap();
        assert_eq!(outcomes.into_iter().map(reference).next().unwrap().title, title);
    }
    let table = "Study ID,First author last name,Year of publication,Title of article,DOI number\n1,Roe,2015,Tests,10.5555/a\n";
    let found = references(table).remove(0);
    assert_eq!((found.title.as_str(), found.authors), ("Tests", own(&["Roe"])));
    assert_eq!((found.year, found.doi.as_deref()), (Some(2015), Some("10.5555/a")));
}
