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
fn dois_without_resolver_are_found_under_other_names() {
    for line in [
        "ID  - https://dx.doi.org/10.5555/a",
        "ID  - 10.5555/a",
        "AN  - 10.5555/a",
        "C3  - doi:10.5555/a",
        "L3  - 10.5555/a",
        "UR  - 10.5555/A",
    ] {
        let found = with(&[line]);
        assert_eq!((found.doi, found.url), (text("10.5555/a"), None), "{line}");
    }
    let found = with(&["L3  - 10.5555/a", "UR  - https://example.org", "DO  - 10.5555/b"]);
    assert_eq!((found.doi, found.url), (text("10.5555/b"), text("https://example.org")));
    assert_eq!(found.extra["L3"], ["10.5555/a"]);
    assert_eq!(with(&["ID  - 10.1002/central/CN-01900001"]).doi, None);
    for key in ["10.5555/a", "https://doi.org/10.5555/a", "doi:10.5555/a"] {
        let found = references(&format!("@article{{{key},\n title={{Tests}}, year={{2020}}}}")).remove(0);
        assert_eq!(found.doi, text("10.5555/a"), "{key}");
    }
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
fn volume_and_issue_in_one_value_are_divided() {
    for (lines, [volume, issue, pages]) in [
        (&["VL  - 12(3)"][..], ["12", "3", ""]),
        (&["VL  - 12 (Suppl 1)"], ["12", "Suppl 1", ""]),
        (&["VL  - 12(3):123-129"], ["12", "3", "123-129"]),
        (&["IS  - 12(3)"], ["12", "3", ""]),
        (&["VL  - 12", "IS  - 12(3)"], ["12", "3", ""]),
        (&["VL  - Vol. 12, No. 3"], ["12", "3", ""]),
        (&["VL  - 12, no. 3"], ["12", "3", ""]),
        (&["VL  - Volume 12", "IS  - Issue 3"], ["12", "3", ""]),
        (&["VL  - v.12", "IS  - (3)"], ["12", "3", ""]),
        // Other values stay as they are.
        (&["VL  - 12(3)", "IS  - 4"], ["12(3)", "4", ""]),
        (&["VL  - 12(3):5-6", "SP  - 7"], ["12(3):5-6", "", "7"]),
        (&["VL  - 12 (Basel)"], ["12 (Basel)", "", ""]),
        (&["VL  - V12", "IS  - no"], ["V12", "no", ""]),
    ] {
        let found = with(lines);
        let parts = [&found.volume, &found.issue, &found.pages].map(|part| part.as_deref().unwrap_or(""));
        assert_eq!(parts, [volume, issue, pages], "{lines:?}");
    }
}

#[test]
fn citation_in_a_journal_tag_is_split() {
    for (journal, year) in [
        ("J Tests 2020 Mar;12(3):123-129", Some(2020)),
        ("J Tests. 2020 Mar 5;12(3):123-129.", Some(2020)),
        ("J Tests. 2020;12(3):123-129.", Some(2020)),
        ("J Tests March 2020;12(3):123-129", Some(2020)),
        ("J Tests; 12(3): 123-129, 2020", Some(2020)),
        ("J Tests, 12(3), 123-129", None),
        ("J Tests 12 (3), 123-129", None),
    ] {
        let table = format!("Title,Authors,Journal\nTests,Roe A,\"{journal}\"\n");
        let entry = format!("@article{{a, title={{Tests}}, journal={{{journal}}}}}");
        let others = [table, entry].map(|file| references(&file).remove(0));
        for found in others.into_iter().chain([with(&[&format!("JO  - {journal}")])]) {
            let parts = (found.journal, found.volume, found.issue, found.pages);
            assert_eq!(parts, (text("J Tests"), text("12"), text("3"), text("123-129")), "{journal}");
            assert_eq!(found.year, year, "{journal}");
        }
    }
    for journal in [
        "Proceedings of the Conference on Tests, 5-8 May 2019, 12",
        "Lecture Notes in Tests 2019;12",
        "Tests (Basel), 12",
        "Transactions on Tests 12 (3)",
        "IEEE 12th Conference (ICT), 2019",
    ] {
        assert_eq!(with(&[&format!("JO  - {journal}")]).journal, text(journal));
    }
    // Other tags have the numbers.
    let given = "J Tests 2020;12(3):123-129";
    assert_eq!(with(&[&format!("JO  - {given}"), "VL  - 12"]).journal, text(given));
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

#[test]
fn remarks_and_alternatives_in_column_names_are_known() {
    let file = "Titre / Title,Author(s) Name,Journal/Conference,Publication Year (YYYY),Volume No.,Issue No.,Pages (from-to),\
        DOI (if available),Abstract / Summary,Link to article\n\
        Tests,\"Roe A, Doe B\",J Tests,2020,12,3,1-9,10.5555/a,We test.,https://example.org\n";
    let found = references(file).remove(0);
    assert_eq!((found.title.as_str(), found.authors.len(), found.year), ("Tests", 2, Some(2020)));
    assert_eq!((found.journal, found.volume, found.issue), (text("J Tests"), text("12"), text("3")));
    assert_eq!(
        (found.pages, found.doi, found.r#abstract),
        (text("1-9"), text("10.5555/a"), text("We test."))
    );
    assert_eq!(found.url, text("https://example.org"));
    // A plain name is preferred, and other remarks and alternatives have their own meaning.
    let file = "Title (English),Title,Authors (Raw Affiliation),Authors,Author/Year,Title/Abstract screening\n\
        Uno,Tests,Bonn,Roe A,Roe 2020,include\n";
    let found = references(file).remove(0);
    assert_eq!((found.title.as_str(), found.authors, found.year), ("Tests", vec!["Roe, A".to_owned()], None));
}

#[test]
fn blank_lines_in_tagged_endnote_end_no_record() {
    let record = |title: &str| {
        format!(
            "%0 Journal Article\n%A Roe, A\n%T {title}\n%X First.\n\nSecond.\n\n%U https://example.org\n\n%D 2020\n\n"
        )
    };
    let found = references(&[record("Tests"), record("More tests")].concat());
    assert_eq!(found.len(), 2);
    for found in found {
        assert_eq!((found.r#abstract, found.year), (text("First. Second."), Some(2020)));
        assert_eq!(found.url, text("https://example.org"));
    }
    // A second title begins a record without a type.
    let file = format!("{}%A Doe, B\n%T Others\n", record("Tests"));
    assert_eq!(references(&file).last().unwrap().authors, ["Doe, B"]);
}

#[test]
fn names_in_one_text_of_json_are_split() {
    for names in ["Roe, Ann; Doe, Bob", "Roe, Ann and Doe, Bob"] {
        let file =
            format!(r#"[{{"title":"Tests","type":"article-journal","issued":"2020","author":"{names}"}}]"#);
        assert_eq!(references(&file)[0].authors, ["Roe, Ann", "Doe, Bob"]);
    }
    let file = r#"[{"title":"Tests","type":"report","issued":"2020","author":"World Health Organization"}]"#;
    assert_eq!(references(file)[0].authors, ["World Health Organization"]);
}

#[test]
fn numbers_of_listed_people_are_no_names() {
    for (value, names) in [
        ("1. Roe, Ann", &["Roe, Ann"][..]),
        ("2) Doe B", &["Doe, B"]),
        ("(1) Roe, Ann; (2) Doe, Bob", &["Roe, Ann", "Doe, Bob"]),
        ("1. Roe A; 2. Doe B", &["Roe, A", "Doe, B"]),
        ("3M Company", &["3M Company"]),
        ("23andMe Research Team", &["23andMe Research Team"]),
    ] {
        assert_eq!(with(&[&format!("AU  - {value}")]).authors, names, "{value}");
    }
}

#[test]
fn dates_of_java_have_their_year_last() {
    let found = with(&["PY  - Thu Mar 05 00:00:00 UTC 2020"]);
    assert_eq!((found.year, found.date), (Some(2020), text("2020-03-05")));
    assert_eq!(with(&["PY  - 2020-03-05 10:20:30"]).date, text("2020-03-05"));
    // Citavi writes the day first, and the number in PubMed with its own label.
    let found = with(&["PY  - 2020", "DA  - 05.03.2020", "N1  - PubMedID: 30000001"]);
    assert_eq!((found.date, found.pmid), (text("2020-03-05"), text("30000001")));
}

#[test]
fn cells_of_packages_are_split() {
    let file = "pmid,title,authors,mesh_terms,keywords\n30000001,Tests,Roe|Ann|A;Doe|Bob|B|0000-0002-1825-0097,\
        D006801:Humans; D000328:Adult,falls and gait and balance\n30000002,More,Roe A|Doe B|Poe C,,\"{falls,gait}\"\n\
        30000003,Others,Roe|Ann|A,,health and safety\n";
    let found = references(file);
    assert_eq!(found[0].authors, ["Roe, Ann", "Doe, Bob"]);
    assert_eq!(found[0].keywords, ["falls", "gait", "balance", "Humans", "Adult"]);
    assert_eq!(found[1].authors, ["Roe, A", "Doe, B", "Poe, C"]);
    assert_eq!(found[1].keywords, ["falls", "gait"]);
    assert_eq!(
        (&*found[2].authors, &*found[2].keywords),
        (&["Roe, Ann".to_owned()][..], &["health and safety".to_owned()][..])
    );
}

#[test]
fn wide_punctuation_separates_numbers_and_keywords() {
    let sinomed = "【流水号】：2020000001\n【标题】：试验\n【出处】：示例医学 2020；12(3)：123-129\n【关键词】：跌倒；老年人\n";
    let vip =
        "【题  名】试验\n【作  者】王伟\n【刊  名】示例医学.2020,12(3).-123-129\n【关键词】跌倒；老年人\n";
    let table = "标题,刊名,\"年,卷(期)\",页码,关键词\n试验,示例医学,\"2020,12(3)\",123-129,跌倒，老年人\n";
    let ris = "TY  - JOUR\nTI  - 试验\nJO  - 示例医学 2020；12(3)：123-129\nKW  - 跌倒、老年人\nER  - \n";
    for file in [sinomed, vip, table, ris] {
        let found = references(file).remove(0);
        assert_eq!(
            (found.title.as_str(), found.journal, found.year),
            ("试验", text("示例医学"), Some(2020)),
            "{file}"
        );
        let numbers = (found.volume, found.issue, found.pages);
        assert_eq!(numbers, (text("12"), text("3"), text("123-129")), "{file}");
        assert_eq!(found.keywords, ["跌倒", "老年人"], "{file}");
    }
    // The name of a journal keeps its punctuation, and so does a keyword with brackets.
    let found = with(&["JO  - 示例（英文版）", "KW  - 跌倒（老年人、儿童）"]);
    assert_eq!(
        (found.journal, found.keywords),
        (text("示例（英文版）"), vec!["跌倒（老年人、儿童）".to_owned()])
    );
}

#[test]
fn authors_under_both_tags_are_read_once() {
    let found = with(&["AU  - Roe, Ann", "AU  - Doe, Bob", "A1  - Roe, Ann", "A1  - Doe, Bob"]);
    assert_eq!(found.authors, ["Roe, Ann", "Doe, Bob"]);
    assert_eq!(with(&["AU  - Roe, Ann", "A1  - Doe, Bob"]).authors, ["Roe, Ann", "Doe, Bob"]);
    // Two people may have one name.
    assert_eq!(with(&["AU  - Wang, Y", "AU  - Wang, Y"]).authors.len(), 2);
}

#[test]
fn formulas_of_spreadsheets_are_text() {
    let file = "Title,Authors,Year,DOI,PMID,Link\n\"=\"\"Tests\"\"\",\"=\"\"Roe A\"\"\",\"=\"\"2020\"\"\",\"=\"\"10.5555/a\"\"\",\
        \"=\"\"30000001\"\"\",\"=HYPERLINK(\"\"https://example.org\"\",\"\"link\"\")\"\n\
        \"=HYPERLINK(\"\"https://example.org\"\";\"\"Tests\"\")\",Roe A,2020,10.5555/a,3.0000001E7,https://example.org\n";
    for found in references(file) {
        assert_eq!(
            (found.title.as_str(), found.authors, found.year),
            ("Tests", vec!["Roe, A".to_owned()], Some(2020))
        );
        assert_eq!((found.doi, found.pmid), (text("10.5555/a"), text("30000001")));
        assert_eq!(found.url, text("https://example.org"));
    }
    // Digits are missing, and a title may begin with the sign.
    let file = "Title,Year,PMID\n= is a sign,2020,3.00E+07\n";
    let found = references(file).remove(0);
    assert_eq!((found.title.as_str(), found.pmid), ("= is a sign", None));
}

#[test]
fn initial_of_only_author_keeps_its_full_stop() {
    for (cell, names) in [
        ("Roe, A.", &["Roe, A."][..]),
        ("Roe, Ann B.", &["Roe, Ann B."]),
        // PubMed ends a list with a full stop.
        ("Roe A, Doe B.", &["Roe, A", "Doe, B"]),
        ("Roe A.", &["Roe, A"]),
    ] {
        let found = references(&format!("Title,Authors,Year\nTests,\"{cell}\",2020\n")).remove(0);
        assert_eq!(found.authors, names, "{cell}");
    }
}

#[test]
fn accents_of_tex_are_read_in_other_formats() {
    for (value, read) in [
        (r#"M{\"u}ller, J{\"{o}}rg"#, "Müller, Jörg"),
        (r#"M\"{u}ller, Jos\'{e}"#, "Müller, José"),
        (r"Nov{\'a}k, {\v C}en{\v{e}}k", "Novák, Čeněk"),
        (r"S{\o}rensen, {\'I}ris", "Sørensen, Íris"),
        (r"Gar{\c c}on, R", "Garçon, R"),
    ] {
        assert_eq!(with(&[&format!("AU  - {value}")]).authors, [read], "{value}");
        let file = format!("Title,Authors,Year\nTests,\"{}\",2020\n", value.replace('"', "\"\""));
        assert_eq!(references(&file)[0].authors, [read], "{value}");
    }
    // Other backslashes and braces are text.
    for title in [r"Tests of {\LaTeX} and C:\{x}", r"A \ b", r#"{\"quoted"}"#] {
        let file = format!("TY  - JOUR\nTI  - {title}\nER  - \n");
        assert_eq!(references(&file)[0].title, title);
    }
}

#[test]
fn columns_in_json_are_no_record() {
    for file in [
        r#"{"title":{"0":"Tests","1":"More"},"abstract":{"0":"a","1":"b"},"year":{"0":2020,"1":2019}}"#,
        r#"{"title":["Tests","More"],"abstract":["a","b"],"year":[2020,2019]}"#,
    ] {
        let (outcomes, report) = read(file.as_bytes()).unwrap();
        assert_eq!((outcomes.len(), report.quarantined), (1, 1), "{file}");
    }
    let crossref = r#"{"title":["Tests"],"abstract":"a","DOI":"10.5555/a","type":"journal-article"}"#;
    assert_eq!(references(crossref)[0].title, "Tests");
}

/// The list of authors is in a column that holds the abstract in other tables.
#[test]
fn earlier_tables_of_pubmed_have_citations() {
    let table = "Title,URL,Description,Details,ShortDetails,Resource,Type,Identifiers,Db,EntrezUID,Properties\n\
        Tests of sleep.,/pubmed/30000001,\"Roe AB, Doe C.\",\"J Tests. 2019 Jul 22;34(28):e192. doi: 10.5555/a. Review.\",\
        J Tests.  2019,PubMed,citation,PMID:30000001,pubmed,30000001,create date:2019/07/22\n";
    let found = references(table).remove(0);
    assert_eq!((found.authors, found.r#abstract), (vec!["Roe, AB".to_owned(), "Doe, C".to_owned()], None));
    assert_eq!((found.pmid, found.doi, found.url), (text("30000001"), text("10.5555/a"), None));
    assert_eq!((found.journal, found.year, found.date), (text("J Tests"), Some(2019), text("2019-07-22")));
    assert_eq!((found.volume, found.issue, found.pages), (text("34"), text("28"), text("e192")));
}

#[test]
fn field_rows_may_have_unknown_names() {
    let record = |title: &str| {
        format!(
            "\"TITLE\",\"{title}\"\n\"AUTHOR NAMES\",\"Roe A.\",\"Doe B.\"\n\"AiP/IP ENTRY DATE\",\"2026-08-11\"\n\
             \"SOURCE\",\"J Tests (2026) 750 Article Number: 141489\"\n\"VOLUME\",\"750\"\n\"DOI\",\"10.5555/a\"\n\n"
        )
    };
    let found = references(&[record("First"), record("Second")].concat());
    assert_eq!(found.iter().map(|found| &*found.title).collect::<Vec<_>>(), ["First", "Second"]);
    assert_eq!(found[1].authors, ["Roe, A", "Doe, B"]);
}

/// The day of a less preferred date does not replace the day of the preferred one.
#[test]
fn preferred_date_keeps_its_day() {
    let table = "Title,Authors,First Posted,Start Date\nTests,Roe A,2024-04-08,2024-04-25\n";
    assert_eq!(references(table)[0].date, text("2024-04-08"));
    assert_eq!(with(&["PY  - 2018/03/01", "DA  - 2018/03/21"]).date, text("2018-03-01"));
    assert_eq!(with(&["PY  - 2018/03", "DA  - 2018/03/21"]).date, text("2018-03-21"));
    assert_eq!(with(&["DA  - 12/2012"]).date, text("2012-12"));
}

#[test]
fn values_of_single_databases_are_read() {
    let cssci = "数字文献处理系统\n\n【来源篇名】一\n【来源作者】李强/赵一方\n【期    刊】科学\n\
        【第一作者】李强\n【年代卷期】2019,40(010):3-19\n【关 键 词】科技评价/关键词\n----\n\n【来源篇名】二\n【来源作者】徐峰\n";
    let found = references(cssci);
    assert_eq!(found.iter().map(|found| &*found.title).collect::<Vec<_>>(), ["一", "二"]);
    assert_eq!(
        (&found[0].authors[..], found[0].year),
        (&["李强".to_owned(), "赵一方".to_owned()][..], Some(2019))
    );
    assert_eq!((found[0].volume.as_deref(), found[0].pages.as_deref()), (Some("40"), Some("3-19")));
    assert_eq!(found[0].keywords, ["科技评价", "关键词"]);

    let acm = "%0 Journal Article\n%T Tests\n%K politics, social media, voting, trust\n";
    assert_eq!(references(acm)[0].keywords, ["politics", "social media", "voting", "trust"]);
    let heading = "%0 Journal Article\n%T Tests\n%K Neoplasms, Second Primary\n";
    assert_eq!(references(heading)[0].keywords, ["Neoplasms, Second Primary"]);
    let cnki = "%0 Journal Article\n%T Tests\n%X Abstract(#br)We test.\n";
    assert_eq!(references(cnki)[0].r#abstract, text("We test."));
    assert_eq!(references("@article{10.5555/2627435.2670314,\n title={Tests}}")[0].doi, None);

    assert_eq!(with(&["DO  - 10.1638/2009-0160.1.short"]).doi, text("10.1638/2009-0160.1"));
    assert_eq!(with(&["VL  - v. v. 176"]).volume, text("176"));
    assert_eq!(with(&["ID  - S0073-47212018000100221-scl"]).accession, text("S0073-47212018000100221"));

    assert_eq!(with(&["DO  - 10.1177/tobeassigned"]).doi, None);
    let ads = "@ARTICLE{a, title={Tests}, journal={\\mnras}, year=2020}";
    assert_eq!(references(ads)[0].journal, text("Monthly Notices of the Royal Astronomical Society"));
    let europe_pmc = "SOURCE,EXTERNAL_ID,AUTHORS,PUBLICATION_YEAR,TITLE,JOURNAL,FIRST_PUB_DATE (dd/mm/yyyy)\n\
        MED,4264362,\"Roe, A\",1972,Tests,J Tests,1972-12-01\nPPR,12345,\"Roe, A\",2020,More,J Tests,\n";
    let found = references(europe_pmc);
    assert_eq!((&found[0].pmid, &found[0].date), (&text("4264362"), &text("1972-12-01")));
    assert_eq!(found[1].pmid, None, "the number of a preprint");

    let covidence = "Title,Authors,Covidence #,Tags\nTests,Roe A,#12,\"For Ann's review?\"\n";
    assert!(references(covidence)[0].keywords.is_empty(), "remarks of reviewers");
    let medline = "PT\tUT\tTI\tMH\tPY\tDA\nJ\tMEDLINE:30000001\tTests\tAnimals. Birds. *Climate Change / history; trends\t2018\t2018-06-21\n";
    let found = references(medline).remove(0);
    assert_eq!((found.keywords.len(), found.date), (3, None), "the day of the export is not used");
    let plain = "PT J\nTI Tests\nMH Animals. Birds.\n   Climate Change. Humans.\nUT MEDLINE:30000001\nER\n";
    assert_eq!(references(plain)[0].keywords, ["Animals", "Birds", "Climate Change", "Humans"]);
    let pubmed = "PMID,TI,DP,JT,TA,MH\n30000001,Tests,2020,J Tests,J Tests,\"Humans; Encephalitis, St. Louis; Culex\"\n";
    assert_eq!(references(pubmed)[0].keywords, ["Humans", "Encephalitis, St. Louis", "Culex"]);
}
