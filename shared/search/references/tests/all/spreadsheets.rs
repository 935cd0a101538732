//! Values that spreadsheets and reviewers change, and columns and rows that are not part of the references.

use references::{Outcome, Reference};

use crate::{read, references};

/// The only reference of a table with these columns and this row.
fn row(columns: &str, values: &str) -> Reference {
    let mut found = references(&format!("Title,{columns}\nA trial of tests,{values}\n"));
    assert_eq!(found.len(), 1, "{values}");
    found.remove(0)
}

#[test]
fn joined_placeholders_are_no_pages() {
    for (pages, read) in [
        ("NA-NA", None),
        ("nan-nan", None),
        ("None-None", None),
        ("null-null", None),
        ("undefined-undefined", None),
        ("N/A–N/A", None),
        ("EPub", None),
        ("12-NA", Some("12")),
        ("12-undefined", Some("12")),
        ("nan-19", Some("19")),
        ("12-19", Some("12-19")),
        ("N12-N19", Some("N12-N19")),
        ("NA12-NA19", Some("NA12-NA19")),
        ("12-", Some("12-")),
        ("12+", Some("12+")),
    ] {
        assert_eq!(row("Pages", pages).pages.as_deref(), read, "{pages}");
        let ris = format!("TY  - JOUR\nTI  - A trial of tests\nSP  - {pages}\nER  - \n");
        assert_eq!(references(&ris)[0].pages.as_deref(), read, "{pages}");
    }
}

#[test]
fn names_of_rows_are_no_cells() {
    for table in [
        "\"title\",\"author\",\"year\"\n\"1\",\"A trial, of tests\",\"Roe, Ann\",2015\n",
        "title\tauthor\tyear\n2001\tA trial, of tests\tRoe, Ann\t2015\n",
        "\"title\",\"author\",\"year\"\n\"ROE A, 2015\",\"A trial, of tests\",\"Roe, Ann\",2015\n",
        "\"id\",\"title\",\"author\",\"year\"\n\"1\",17,\"A trial, of tests\",\"Roe, Ann\",2015\n",
    ] {
        let found = references(table).remove(0);
        assert_eq!((found.title.as_str(), found.year), ("A trial, of tests", Some(2015)), "{table}");
        assert_eq!(found.authors, ["Roe, Ann"], "{table}");
    }
    let found = references("title,author,year\n123,Roe A,2015,\n").remove(0);
    assert_eq!((found.title.as_str(), found.year), ("123", Some(2015)));
    // A cell lacks its quotation marks, or has no column.
    for table in [
        "title,author,year\nA trial, of tests,Roe A,2015\n",
        "title,author,year\n1984, a trial of tests,Roe A,2015\n",
        "id,title,author,year\n1,A trial, of tests,Roe A,2015\n",
        "\"title\",\"author\",\"year\"\n\"A trial\",\"Roe, Ann\",2015,\"a note\"\n",
    ] {
        let (outcomes, _) = read(table.as_bytes()).unwrap();
        assert!(matches!(outcomes.as_slice(), [Outcome::Quarantined(_)]), "{table}");
    }
}

#[test]
fn backslash_may_precede_quotation_marks() {
    for (row, title, authors) in [
        (r#""The \"good\" study, part","Roe, A",2020"#, r#"The "good" study, part"#, "Roe, A"),
        (r#""Use of \"rest\"","Roe, A",2020"#, r#"Use of "rest""#, "Roe, A"),
        (r#""\"Rest\", and more","Roe, A","2020""#, r#""Rest", and more"#, "Roe, A"),
        (r#""7","Use of \"rest\", and more","Roe, A",2020"#, r#"Use of "rest", and more"#, "Roe, A"),
        ("\"Use of \\\"rest\\\"\nand more\",\"Roe, A\",2020", "Use of \"rest\" and more", "Roe, A"),
        (r#""Files in C:\","Roe, A",2020"#, "Files in C:\\", "Roe, A"),
    ] {
        let found = references(&format!("title,author,year\n{row}\n\"B\",\"Doe, C\",2021\n")).remove(0);
        assert_eq!((found.title.as_str(), found.year), (title, Some(2020)));
        assert_eq!(found.authors, [authors], "{row}");
    }
    let found = references("title,author,volume\n\"A trial\",\\N,\\N\n").remove(0);
    assert_eq!((found.authors, found.volume), (Vec::new(), None));
}

#[test]
fn columns_with_tags_of_medline_are_read() {
    let table = "PMID,STAT,TI,AB,FAU,AU,DP,TA,JT,VI,IP,PG,LID,AID,MH,OT,PT\n30000009,MEDLINE,A trial,We test.,\
        \"['Roe, Ann', 'Doe, Bob']\",\"['Roe A', 'Doe B']\",2015 May 17,J T,J Tests,3,2,1-9,S1-2 [pii],\
        \"['10.5555/a [doi]', 'S1-2 [pii]']\",['Humans'],['sleep'],\"['Journal Article', 'Trial']\"\n";
    let found = references(table).remove(0);
    assert_eq!(found.authors, ["Roe, Ann", "Doe, Bob"]);
    let texts = [&found.date, &found.journal, &found.volume, &found.issue, &found.pages, &found.doi];
    let texts = texts.map(|text| text.as_deref().unwrap_or_default());
    assert_eq!(texts, ["2015-05-17", "J Tests", "3", "2", "1-9", "10.5555/a"]);
    assert_eq!(
        (found.pmid.as_deref(), &found.extra["LID"][..]),
        (Some("30000009"), &["S1-2 [pii]".into()][..])
    );
    assert_eq!((found.keywords.len(), found.r#type.as_deref()), (2, Some("Journal Article; Trial")));
}

#[test]
fn names_of_less_common_columns_are_known() {
    let found = row(
        "First Author,Other Authors,Abstract(s),Source title/Anthology title,LPAGES,UPAGES,Digital Object Identifier (DOI)",
        "Roe A,\"Doe B, Poe C\",We test.,J Tests,1,9,10.5555/a",
    );
    assert_eq!(found.authors, ["Roe, A", "Doe, B", "Poe, C"]);
    let texts = [&found.r#abstract, &found.journal, &found.pages, &found.doi].map(Option::as_deref);
    assert_eq!(texts.map(Option::unwrap_or_default), ["We test.", "J Tests", "1-9", "10.5555/a"]);
    let found = row(
        "authors,externalIds.DOI,externalIds.PubMed,externalIds.PubMedCentral,journal.name,journal.pages",
        "Roe A,10.5555/a,30000009,6000009,J Tests,1-9",
    );
    let texts = [&found.doi, &found.pmid, &found.pmcid, &found.journal, &found.pages].map(Option::as_deref);
    assert_eq!(
        texts.map(Option::unwrap_or_default),
        ["10.5555/a", "30000009", "PMC6000009", "J Tests", "1-9"]
    );
    let json = r#"{"corpusid": 1, "externalids": {"DOI": "10.5555/a", "PubMed": "30000009", "PubMedCentral": "6000009"},
        "title": "A trial", "authors": [{"name": "Ann Roe"}], "year": 2018, "publicationdate": "2018-01-02"}"#;
    let found = references(json).remove(0);
    let texts = [&found.doi, &found.pmid, &found.pmcid, &found.date].map(Option::as_deref);
    assert_eq!(texts.map(Option::unwrap_or_default), ["10.5555/a", "30000009", "PMC6000009", "2018-01-02"]);
}

#[test]
fn first_pmid_of_a_cell_is_read() {
    let found = row("pubmed_id,doi", "\"30000009\n12345\",\"10.5555/a\n10.5555/b\"");
    assert_eq!((found.pmid.as_deref(), found.doi.as_deref()), (Some("30000009"), Some("10.5555/a")));
    assert_eq!(found.extra["pubmed_id"], ["30000009 12345"]);
    for pmid in ["'30000009", "\"30,000,009\""] {
        let found = row("PMID", pmid);
        assert_eq!((found.pmid.as_deref(), found.extra.len()), (Some("30000009"), 0), "{pmid}");
    }
}

#[test]
fn lists_of_other_programs_are_read() {
    for cell in [
        "\"['Roe, Ann' 'Doe, Bob']\"",
        "\"('Roe, Ann', 'Doe, Bob')\"",
        "\"{\"\"Roe, Ann\"\",\"\"Doe, Bob\"\"}\"",
    ] {
        assert_eq!(row("Authors,Year", &format!("{cell},2015")).authors, ["Roe, Ann", "Doe, Bob"], "{cell}");
    }
}

#[test]
fn errors_of_spreadsheets_are_no_values() {
    for error in ["#NAME?", "#VALUE!", "#REF!", "#DIV/0!", "#NUM!", "#NULL!", "#N/A", "#WERT!", "########"] {
        let values = [error; 9].join(",");
        let found = row("Authors,Date,Journal,Volume,Abstract,Keywords,DOI,Accession Number,Notes", &values);
        let expected = Reference { title: "A trial of tests".into(), ..Reference::default() };
        assert_eq!(found, expected, "{error}");
        let ris = format!("TY  - JOUR\nTI  - A trial of tests\nAU  - {error}\nAB  - {error}\nER  - \n");
        let found = references(&ris).remove(0);
        assert_eq!((found.authors, found.r#abstract), (Vec::new(), None), "{error}");
    }
    let found = row("Authors,Keywords", "Roe A,#MeToo!");
    assert_eq!((found.authors.len(), found.keywords), (1, vec!["#MeToo!".to_owned()]));
    assert_eq!(row("Notes", "#").extra["Notes"], ["#"]);
}

#[test]
fn dates_in_pages_and_issues_are_reversed() {
    for (issue, pages, read) in [
        ("05-Jun", "Dec-19", [Some("5-6"), Some("12-19")]),
        ("01-Feb", "07-Mar", [Some("1-2"), Some("3-7")]),
        ("3", "Jan-45", [Some("3"), Some("1-45")]),
        ("2020-06-05", "2020-03-07", [Some("5-6"), Some("3-7")]),
        ("01. Feb", "07. Mrz", [Some("1-2"), Some("3-7")]),
        ("Jan-Feb", "12-19", [Some("Jan-Feb"), Some("12-19")]),
        ("March 2019", "12", [Some("March 2019"), Some("12")]),
        ("Dec", "e12", [Some("Dec"), Some("e12")]),
    ] {
        let found = row("Issue,Pages", &format!("{issue},{pages}"));
        assert_eq!([found.issue.as_deref(), found.pages.as_deref()], read, "{issue} {pages}");
        assert!(found.extra.is_empty(), "{issue} {pages}");
    }
    for (issue, pages) in [("07-Mar", "12. Dez"), ("Dec-19", "2019-12-01")] {
        let found = row("Issue,Pages", &format!("{issue},{pages}"));
        assert_eq!((found.issue, found.pages), (None, None), "{issue} {pages}");
        assert_eq!((&*found.extra["Issue"][0], &*found.extra["Pages"][0]), (issue, pages));
    }
}

#[test]
fn running_number_is_not_an_issue() {
    for table in [
        "\"\",\"No\",\"Title\",\"Year\"\n\"1\",\"7\",\"Tests\",\"2020\"\n",
        ",Unnamed: 0,number,Title,Year\n0,0,7,Tests,2020\n",
        "No.,Title,Year\n7,Tests,2020\n",
    ] {
        assert_eq!(references(table)[0].issue, None, "{table}");
    }
    assert_eq!(references("\"\",Title,No,Year\n1,Tests,7,2020\n")[0].issue.as_deref(), Some("7"));
}

#[test]
fn rows_about_the_table_are_no_studies() {
    let table = "Title,Authors,Year\nZinc,Roe A,2019\nTotal,1,\nDownloaded from X on 5 May 2024,,\n";
    assert_eq!(references(table).len(), 1);
}

#[test]
fn identifier_is_not_a_date() {
    let found = row("DOI,Published", "10.1101/2020.03.01.20029999,10.1016/j.cell.2020.05.001");
    assert_eq!((found.year, found.doi.as_deref()), (None, Some("10.1101/2020.03.01.20029999")));
    let found = row("Date,Published", "2020-03-01,10.1016/j.cell.2021.05.001");
    assert_eq!(found.date.as_deref(), Some("2020-03-01"));
    assert_eq!(row("Published", "10.05.2020").year, Some(2020));
}

#[test]
fn label_of_a_search_is_not_a_journal() {
    for column in ["Source", "来源", "Источник"] {
        for label in
            ["PubMed, Embase", "Ovid MEDLINE", "Hand search", "Reference list(s)", "Scopus (Elsevier)"]
        {
            let found = row(column, &format!("\"{label}\""));
            assert_eq!(found.journal, None, "{column} {label}");
            assert_eq!(found.extra[column], [label]);
        }
        assert_eq!(row(column, "J Tests").journal.as_deref(), Some("J Tests"));
    }
    assert_eq!(row("Journal", "PubMed").journal.as_deref(), Some("PubMed"));
}

#[test]
fn numbers_in_one_column_are_separated() {
    for (number, read) in [
        ("12 (3), 12-19", [Some("12"), Some("3"), Some("12-19")]),
        ("12, 12-19", [Some("12"), None, Some("12-19")]),
        ("12 (3)", [Some("12"), Some("3"), None]),
        ("3", [None, Some("3"), None]),
        ("3, 4", [None, Some("3, 4"), None]),
        ("Suppl (a)", [None, Some("Suppl (a)"), None]),
    ] {
        let found = row("journal,number", &format!("J Tests,\"{number}\""));
        let parts = [found.volume.as_deref(), found.issue.as_deref(), found.pages.as_deref()];
        assert_eq!(parts, read, "{number}");
    }
    assert_eq!(row("volume,number", "1,2 (3)").issue.as_deref(), Some("2 (3)"));
}

#[test]
fn exports_in_more_languages_are_read() {
    for table in [
        "作者,作者全名,文献标题,年份,来源出版物名称,卷,期,论文编号,起始页码,结束页码,DOI,链接,摘要,作者关键字,索引关键字,文献类型,来源出版物\n\
         \"Roe A.; Doe B.\",\"Roe, Ann (1); Doe, Bob (2)\",Tests,2021,J Tests,12,3,,12,19,10.5555/a,https://example.org,We tried.,\
         a; b,c,Article,Scopus\n",
        "著者,著者(フルネーム),タイトル,年,出版物名,巻,号,論文番号,開始ページ,終了ページ,DOI,リンク,抄録,著者キーワード,索引キーワード,文献タイプ,情報源\n\
         \"Roe A.; Doe B.\",\"Roe, Ann (1); Doe, Bob (2)\",Tests,2021,J Tests,12,3,,12,19,10.5555/a,https://example.org,We tried.,\
         a; b,c,Article,Scopus\n",
    ] {
        let found = references(table).remove(0);
        assert_eq!(found.authors, ["Roe, Ann", "Doe, Bob"]);
        assert_eq!((found.year, found.journal.as_deref()), (Some(2021), Some("J Tests")));
        let numbers = [found.volume.as_deref(), found.issue.as_deref(), found.pages.as_deref()];
        assert_eq!(numbers, [Some("12"), Some("3"), Some("12-19")]);
        assert_eq!((found.keywords.len(), found.r#type.as_deref()), (3, Some("Article")));
        assert_eq!(found.url.as_deref(), Some("https://example.org"));
        assert!(found.extra.values().flatten().any(|value| value == "Scopus"));
    }
    assert_eq!(row("来源出版物名称,论文编号", "J Tests,e12").pages.as_deref(), Some("e12"));
    assert_eq!(row("出版物名,論文番号", "J Tests,e12").pages.as_deref(), Some("e12"));
}

#[test]
fn columns_of_more_programs_are_read() {
    let found =
        row("\"Autor, Herausgeber oder Institution\",Jahr,Jahr ermittelt", "\"Roe, Ann; Doe, Bob\",,2019");
    assert_eq!((found.authors.len(), found.year), (2, Some(2019)));
    assert_eq!(row("Year,Year derived", ",2019").year, Some(2019));
    assert_eq!(row("publish_time", "2001-07-04").date.as_deref(), Some("2001-07-04"));
    for (numbers, read) in [
        ("Vol.12 No.3", [Some("12"), Some("3")]),
        ("Vol.12 No.3 [2020]", [Some("12"), Some("3")]),
        ("Vol.- No.3", [None, Some("3")]),
        ("12권", [None, None]),
    ] {
        let table = format!(
            "번호,제목,저자,학술지명,권호사항,수록면\n1,시험,\"김철수 ( Chul Soo Kim ) ; 이영희 ( Young Hee Lee )\",학술지,{numbers},12~19\n"
        );
        let found = references(&table).remove(0);
        assert_eq!([found.volume.as_deref(), found.issue.as_deref()], read, "{numbers}");
        assert_eq!(found.authors, ["김철수", "이영희"]);
        assert_eq!(found.pages_normalized.as_deref(), Some("12-19"));
    }
}

#[test]
fn family_names_in_capitals_come_first() {
    for (names, read) in [
        (&["Hanako SATO"][..], &["SATO, Hanako"][..]),
        (&["Wei WANG", "Na LI"], &["WANG, Wei", "LI, Na"]),
        (&["WANG Wei", "LI Na"], &["WANG, Wei", "LI, Na"]),
        (&["WANG Wei, LI Na, ZHAO Ming"], &["WANG, Wei", "LI, Na", "ZHAO, Ming"]),
        (&["LI Na, WANG Wei"], &["LI, Na", "WANG, Wei"]),
        (&["Wei LI; Na WU; Jun MA"], &["LI, Wei", "WU, Na", "MA, Jun"]),
        (&["Ann ROE"], &["ROE, Ann"]),
        (&["Smith JA", "Smith JAB"], &["Smith, JA", "Smith, JAB"]),
        (&["Smith JA", "Na LI"], &["Smith, JA", "Na, LI"]),
        (&["van der Berg JRM"], &["van der Berg, JRM"]),
        (&["Smith, JOHN"], &["Smith, JOHN"]),
        (&["World Health Organization WHO"], &["World Health Organization WHO"]),
        (&["WANG Wei", "Test Study Group"], &["WANG Wei", "Test Study Group"]),
    ] {
        let lines: String = names.iter().map(|name| format!("AU  - {name}\n")).collect();
        let ris = format!("TY  - JOUR\nTI  - A trial of tests\n{lines}ER  - \n");
        assert_eq!(references(&ris)[0].authors, read, "{names:?}");
    }
    for names in ["Wei LI; Na WU; Jun MA", "Wei LI, Na WU, Jun MA", "LI Wei; WU Na; MAO Jun"] {
        let found = row("Authors", &format!("\"{names}\""));
        assert!(
            found.authors.iter().all(|name| name.starts_with(|c| "LWM".contains(c))),
            "{:?}",
            found.authors
        );
    }
}

#[test]
fn signs_between_names_and_degrees_are_no_names() {
    for (names, read) in [
        ("Roe A • Doe B", &["Roe, A", "Doe, B"][..]),
        ("Roe A，Doe B", &["Roe, A", "Doe, B"]),
        ("Roe A、Doe B", &["Roe, A", "Doe, B"]),
        ("Roe, Ann • Doe, Bob", &["Roe, Ann", "Doe, Bob"]),
        ("SUN Li-na，GAO Feng", &["SUN, Li-na", "GAO, Feng"]),
        ("Roe，Ann", &["Roe，Ann"]),
        ("王伟，李娜", &["王伟", "李娜"]),
        ("Roe, Ann; MD", &["Roe, Ann"]),
        ("Roe, Ann; PhD; Doe, Bob", &["Roe, Ann", "Doe, Bob"]),
        ("Anonymous", &["Anonymous"]),
    ] {
        let ris = format!("TY  - JOUR\nTI  - A trial of tests\nAU  - {names}\nER  - \n");
        assert_eq!(references(&ris)[0].authors, read, "{names}");
        assert_eq!(row("Authors", &format!("\"{names}\"")).authors, read, "{names}");
    }
}

#[test]
fn numbers_behind_a_year_are_no_date() {
    for (value, date) in [
        ("2019;12(3):12-19", None),
        ("2019 Mar;12(3):12-19", Some("2019-03")),
        ("2019;May", Some("2019-05")),
        ("2019/03/02/", Some("2019-03-02")),
    ] {
        let ris = format!("TY  - JOUR\nTI  - A trial of tests\nPY  - {value}\nER  - \n");
        let found = references(&ris).remove(0);
        assert_eq!((found.year, found.date.as_deref()), (Some(2019), date), "{value}");
    }
}

#[test]
fn accession_number_has_no_fraction() {
    assert_eq!(row("Accession Number", "2004567890.0").accession.as_deref(), Some("2004567890"));
}
