//! Variants that programs, languages and libraries write, of names, identifiers, placeholders and columns.

use references::{DETECTION_WINDOW, Error, Format, Limits, Outcome, Reference, Report};

use crate::{read, read_in_chunks, reference, references};

/// The reference of a RIS record with these lines.
fn with(lines: &[&str]) -> Reference {
    let text = format!("TY  - JOUR\nTI  - A trial of tests\n{}\nER  - \n", lines.join("\n"));
    references(&text).remove(0)
}

fn own(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn people(value: &str) -> Vec<String> {
    with(&[&format!("AU  - {value}")]).authors
}

#[test]
fn name_shapes_split_lists_of_people() {
    for (value, names) in [
        ("Roe, Ann|Doe, Bob", &["Roe, Ann", "Doe, Bob"][..]),
        ("Roe, Ann / Doe, Bob", &["Roe, Ann", "Doe, Bob"]),
        ("ROE A, DOE BC", &["ROE, A", "DOE, BC"]),
        ("Ramón y Cajal S, Golgi C", &["Ramón y Cajal, S", "Golgi, C"]),
        ("García-Pérez, J. y López, M.", &["García-Pérez, J.", "López, M."]),
        ("Roe A1, Doe B1,2", &["Roe, A", "Doe, B"]),
        ("Roe, A., Test Study Group", &["Roe, A.", "Test Study Group"]),
        ("Test Study Group, Roe A, Doe B", &["Test Study Group", "Roe, A", "Doe, B"]),
        ("王伟[1],李娜[2]", &["王伟", "李娜"]),
        ("王伟1)、李娜2)", &["王伟", "李娜"]),
        ("王小明,李娜", &["王小明", "李娜"]),
        ("欧阳娜娜,司马光", &["欧阳娜娜", "司马光"]),
        ("王伟 李娜 张三", &["王伟", "李娜", "张三"]),
        ("山田太郎, 鈴木花子", &["山田太郎", "鈴木花子"]),
        ("日本循環器学会, 日本心臓病学会", &["日本循環器学会", "日本心臓病学会"]),
        ("محمد أحمد، علي حسن", &["محمد أحمد", "علي حسن"]),
        ("محمد أحمد؛ علي حسن", &["محمد أحمد", "علي حسن"]),
        ("สมชาย ใจดี, สมหญิง ดีใจ", &["สมชาย ใจดี", "สมหญิง ดีใจ"]),
        ("Иванов Иван Иванович, Петрова Анна Петровна", &["Иванов Иван Иванович", "Петрова Анна Петровна"]),
        // A comma between family and given name.
        ("כהן, דוד", &["כהן, דוד"]),
        ("山田, 太郎", &["山田, 太郎"]),
        ("高橋, 健太郎", &["高橋, 健太郎"]),
        ("山田 太郎", &["山田 太郎"]),
        // The names of organisations are not split.
        ("Test Institute, Boston MA", &["Test Institute, Boston MA"]),
        ("Ministerio de Salud y Protección Social", &["Ministerio de Salud y Protección Social"]),
    ] {
        assert_eq!(people(value), names, "{value}");
    }
}

#[test]
fn additions_in_other_languages_are_no_names() {
    for (value, names) in [
        ("Иванов И.И. и др.", &["Иванов, И.И."][..]),
        ("Петров П.П. [и др.]", &["Петров, П.П."]),
        ("Roe A et coll.", &["Roe, A"]),
        ("Roe A y cols.", &["Roe, A"]),
        ("Roe A u.a.", &["Roe, A"]),
        ("王伟 等", &["王伟"]),
        ("王伟,李娜,等", &["王伟", "李娜"]),
        ("王伟，李娜等", &["王伟", "李娜"]),
        ("Roe, Ann https://orcid.org/0000-0002-1825-0097", &["Roe, Ann"]),
        ("Roe, Ann (correspondence)", &["Roe, Ann"]),
        ("佚名", &[]),
        ("[Без автора]", &[]),
        ("s.n.", &[]),
        ("nan", &[]),
        ("&NA;", &[]),
        ("17", &[]),
        ("ann.roe@example.org", &[]),
    ] {
        assert_eq!(people(value), names, "{value}");
    }
}

#[test]
fn placeholders_of_programs_are_empty_values() {
    let found =
        with(&["VL  - nan", "IS  - NaN", "SP  - 12", "EP  - nan", "JO  - [object Object]", "UR  - 暂无"]);
    assert_eq!((found.volume, found.issue, found.pages.as_deref()), (None, None, Some("12")));
    assert_eq!((found.journal, found.url), (None, None));
    assert_eq!(with(&["AB  - Resumen no disponible"]).r#abstract, None);
    assert_eq!(with(&["SP  - No", "EP  - Pagination Specified"]).pages, None);
    assert_eq!(with(&["IS  - 3, SI"]).issue.as_deref(), Some("3"));
}

#[test]
fn keywords_of_chinese_are_separated_by_commas() {
    for (value, keywords) in [
        ("试验,感冒、随机", &["试验", "感冒", "随机"][..]),
        ("试验；感冒", &["试验", "感冒"]),
        ("1,25-二羟维生素D3,N,N-二甲基甲酰胺,感冒", &["1,25-二羟维生素D3,N,N-二甲基甲酰胺", "感冒"]),
        ("Neoplasms, Second Primary", &["Neoplasms, Second Primary"]),
        ("Épidémiologie, médicale; Asthme", &["Épidémiologie, médicale", "Asthme"]),
    ] {
        assert_eq!(references(&format!("%0 Book\n%T a\n%K {value}\n"))[0].keywords, keywords, "{value}");
    }
}

#[test]
fn affiliations_in_brackets_are_no_names() {
    for (value, names) in [
        ("山田 太郎(東京大学), 鈴木 花子(京都大学)", &["山田 太郎", "鈴木 花子"][..]),
        ("山田太郎(東京大学 医学部)", &["山田太郎"]),
        ("Roe A (Univ X), Doe B (Univ Y)", &["Roe, A", "Doe, B"]),
        ("Zinc Group (ZG)", &["Zinc Group (ZG)"]),
    ] {
        let table = format!("Title,Authors,Year\nTests,\"{value}\",2020\n");
        assert_eq!(references(&table)[0].authors, names, "{value}");
    }
}

#[test]
fn database_number_follows_proquest_number() {
    let found = with(&["AN  - 2389000001; 32000001", "DB  - MEDLINE®"]);
    assert_eq!(found.pmid.as_deref(), Some("32000001"));
    let found = with(&["AN  - 2389000000; 2020-12345-001", "DB  - APA PsycInfo®"]);
    assert_eq!(found.accession.as_deref(), Some("2020-12345-001"));
    assert_eq!(
        with(&["N1  - Accession Number: 109600001. PMID: NLM32000001."]).pmid.as_deref(),
        Some("32000001")
    );
}

#[test]
fn quoted_spreadsheet_row_is_read() {
    let table = "Title,Authors,Year\n\"Zinc: a trial,\"\"Roe A, Doe B\"\",2021\"\nIron,Poe C,2022\n";
    let found = references(table);
    assert_eq!((found.len(), found[0].title.as_str(), found[0].year), (2, "Zinc: a trial", Some(2021)));
    assert_eq!(found[0].authors, ["Roe, A", "Doe, B"]);
    assert_eq!(references("Title,Authors,Year\n\"Zinc, a trial\"\n")[0].title, "Zinc, a trial");
    let quoted = table.replacen("Title,Authors,Year", "\"Title,Authors,Year\"", 1);
    assert_eq!(references(&quoted), found);
}

#[test]
fn month_column_completes_year() {
    for (day, month, date) in [
        ("", "5", Some("2020-05")),
        ("0", "May", Some("2020-05")),
        ("17", "5", Some("2020-05-17")),
        ("17", "0", None),
        ("", "", None),
    ] {
        for table in [
            format!("title,day,month,year\nTests,{day},{month},2020\n"),
            format!("title,year,month,day\nTests,2020,{month},{day}\n"),
        ] {
            let found = references(&table).remove(0);
            assert_eq!((found.year, found.date.as_deref()), (Some(2020), date), "{table}");
        }
    }
}

#[test]
fn identifiers_are_found_in_links_through_proxies() {
    let found = with(&[
        "UR  - https://doi-org.proxy.example.org/10.5555/a",
        "L2  - https://pubmed-ncbi-nlm-nih-gov.proxy.example.org/30000001/",
    ]);
    assert_eq!((found.doi.as_deref(), found.pmid.as_deref()), (Some("10.5555/a"), Some("30000001")));
    let entry = "@article{a, title = {Tests}, eprint = {30000001}, eprinttype = {pmid}}";
    assert_eq!(references(entry)[0].pmid.as_deref(), Some("30000001"));
}

#[test]
fn tables_of_more_registers_are_read() {
    for (table, id, date) in [
        (
            "ISRCTN,Title,EudraCT/CTIS number,Date assigned\nISRCTN12345678,A trial,2004-001234-12,2019-02-01\n",
            "ISRCTN12345678",
            "2019-02-01",
        ),
        (
            "Trial ID,Title,Date registered\nACTRN12612000001808,A trial,2012-02-01\n",
            "ACTRN12612000001808",
            "2012-02-01",
        ),
        (
            "DRKS-ID;Titel;Registrierungsdatum\nDRKS00012345;A trial;2019-02-01\n",
            "DRKS00012345",
            "2019-02-01",
        ),
        (
            "注册号,注册题目,注册时间\nChiCTR2000029308,试验题目,2020-01-25\n",
            "ChiCTR2000029308",
            "2020-01-25",
        ),
        (
            "臨床研究実施計画番号,研究の名称,初回公表日\njRCTs031200001,試験,2019年2月1日\n",
            "jRCTs031200001",
            "2019-02-01",
        ),
        (
            "TRIAL ID,ACTRN,PUBLIC TITLE,DATE REGISTERED\n379001,ACTRN12620000123976p,A trial,2020-02-14\n",
            "ACTRN12620000123976",
            "2020-02-14",
        ),
        ("jRCT番号,研究名称,公開日\njRCT1031180123,試験,2019-02-01\n", "jRCT1031180123", "2019-02-01"),
    ] {
        let found = references(table).remove(0);
        assert_eq!((found.trial_ids[0].as_str(), found.date.as_deref()), (id, Some(date)), "{table}");
    }
}

#[test]
fn columns_of_more_languages_are_read() {
    for header in [
        "Tytuł;Autorzy;Rok;Czasopismo;Tom;Numer;Strony;Streszczenie;Słowa kluczowe",
        "Başlık;Yazarlar;Yıl;Dergi;Cilt;Sayı;Sayfa;Özet;Anahtar kelimeler",
        "Titel;Auteurs;Jaar;Tijdschrift;Jaargang;Nummer;Pagina's;Samenvatting;Trefwoorden",
        "Título;Autores;Ano;Periódico;Volume;Número;Páginas;Resumo;Palavras-chave",
        "Titre;Auteurs;Année;Revue;Volume;Numéro;Pages;Résumé;Mots-clés",
        "Назва;Автори;Рік;Журнал;Том;Номер;Сторінки;Анотація;Ключові слова",
        "篇名;作者;出版年;刊名;卷;期;頁次;摘要;關鍵詞",
    ] {
        let found = references(&format!("{header}\nA trial;Roe, Ann;2020;J Tests;3;2;1-9;We tried.;care\n"))
            .remove(0);
        assert_eq!(
            (found.title.as_str(), found.authors.len(), found.year),
            ("A trial", 1, Some(2020)),
            "{header}"
        );
        assert_eq!(
            (found.journal.as_deref(), found.volume.as_deref()),
            (Some("J Tests"), Some("3")),
            "{header}"
        );
        assert_eq!((found.issue.as_deref(), found.pages.as_deref()), (Some("2"), Some("1-9")), "{header}");
        assert_eq!((found.r#abstract.as_deref(), found.keywords.len()), (Some("We tried."), 1), "{header}");
    }
    for year in [
        "Año de publicación",
        "Ano de publicação",
        "Année de publication",
        "Anno di pubblicazione",
        "Jaar van publicatie",
        "Rok wydania",
        "Год издания",
        "Рік видання",
        "출판연도",
        "سال انتشار",
    ] {
        assert_eq!(references(&format!("Title,{year}\nA trial,2020\n"))[0].year, Some(2020), "{year}");
    }
    let arabic = "العنوان,المؤلفون,السنة\nدراسة,محمد أحمد؛ علي حسن,2020\n";
    assert_eq!((references(arabic)[0].title.as_str(), references(arabic)[0].authors.len()), ("دراسة", 2));
}

#[test]
fn columns_of_interfaces_and_programs_are_read() {
    for table in [
        "citation_title,citation_authors,citation_journal_name,citation_journal_volume,citation_pub_year\nTests,Roe A,J Tests,3,2020\n",
        "title,authorString,journalTitle,journalVolume,pubYear,pageInfo,pubType\nTests,Roe A.,J Tests,3,2020,1-9,x\n",
        "title,author_names,publicationName,volume,coverDate,issueIdentifier\nTests,\"Roe, A\",J Tests,3,2020-02-01,2\n",
        "dc:title,dc:creator,prism:publicationName,prism:volume,prism:coverDate\nTests,Roe A.,J Tests,3,2020-02-01\n",
        "search URL:,https://example.org\nid,title,inventor/author,publication date,journal,volume\nX,Tests,A. Roe,2020-01-01,J Tests,3\n",
    ] {
        let found = references(table).remove(0);
        assert_eq!(
            (found.title.as_str(), found.authors.len(), found.year),
            ("Tests", 1, Some(2020)),
            "{table}"
        );
        assert_eq!(
            (found.journal.as_deref(), found.volume.as_deref()),
            (Some("J Tests"), Some("3")),
            "{table}"
        );
    }
    let table = "Title,Source,Journal\nTests,\"J Tests ; (12): 11-19, 2019.\",J Tests\n";
    let found = references(table).remove(0);
    assert_eq!((found.issue.as_deref(), found.pages.as_deref()), (Some("12"), Some("11-19")));
}

#[test]
fn citations_of_ichushi_are_split() {
    let table = "文献番号,標題,著者名,収載誌名,巻号頁,発行年\n1,試験,\"山田太郎, 鈴木花子(例大学)\",日本医学会誌,12巻3号 Page123-129(2020.03),2020\n";
    let found = references(table).remove(0);
    assert_eq!((found.volume.as_deref(), found.issue.as_deref()), (Some("12"), Some("3")));
    assert_eq!((found.pages.as_deref(), found.date.as_deref()), (Some("123-129"), Some("2020-03")));
    assert_eq!((found.journal.as_deref(), found.authors.len()), (Some("日本医学会誌"), 2));
}

#[test]
fn texts_of_vip_are_read() {
    let text = "【题名】试验一\n【作者】王伟 李娜 张三\n【刊名】示例医学\n\n【题名】试验二\n【作者】李娜\n";
    assert_eq!(read(text.as_bytes()).unwrap().1.format, Format::CnkiText);
    let found = references(text);
    assert_eq!((found.len(), found[0].title.as_str()), (2, "试验一"));
    assert_eq!((found[0].authors.len(), found[0].journal.as_deref()), (3, Some("示例医学")));
}

#[test]
fn listed_people_and_trial_ids_are_read() {
    let europe_pmc = r#"{"resultList":{"result":[{"id":"PPR1","title":"Tests","authorList":{"author":[
        {"fullName":"Roe A","firstName":"Ann","lastName":"Roe"},{"collectiveName":"Test Study Group"},{"fullName":"Doe B"}]}}]}}"#;
    assert_eq!(references(europe_pmc)[0].authors, ["Roe, Ann", "Test Study Group", "Doe, B"]);
    let trial = r#"{"studies":[{"protocolSection":{"identificationModule":{"nctId":"NCT00000001","briefTitle":"Tests",
        "secondaryIdInfos":[{"id":"2004-001234-12","type":"EUDRACT_NUMBER"},{"id":"A1"}]}}}]}"#;
    assert_eq!(references(trial)[0].trial_ids, ["NCT00000001", "EUCTR2004-001234-12"]);
}

#[test]
fn typographic_blanks_and_dashes_follow_tags() {
    for (blanks, dash) in [("\u{a0}\u{a0}", "-"), (" \u{a0}", "-"), ("  ", "–"), ("  ", "—"), ("  ", "−")]
    {
        let record = "TY@ JOUR\nTI@ A trial\nAU@ Roe, Ann\nAB@ We tried.\nER@ \n";
        let text = record.repeat(2).replace('@', &format!("{blanks}{dash}"));
        let found = references(&text);
        assert_eq!((found.len(), found[0].title.as_str()), (2, "A trial"), "{text}");
        assert_eq!(
            (&found[1].authors[..], found[1].r#abstract.as_deref()),
            (&["Roe, Ann".to_owned()][..], Some("We tried."))
        );
    }
    let (windows_1252, ..) =
        encoding_rs::WINDOWS_1252.encode("TY  – JOUR\nTI  – Überblick\nAU  – Roe, Ann\nER  – \n");
    let (outcomes, _) = read(&windows_1252).unwrap();
    assert_eq!(outcomes.into_iter().map(reference).next().unwrap().title, "Überblick");
    // One blank before such a dash is common in prose.
    assert_eq!(
        with(&["AB  - We tried", "ER – and more"]).r#abstract.as_deref(),
        Some("We tried ER – and more")
    );
}

#[test]
fn letters_of_a_name_on_separate_lines_are_no_people() {
    let spelled =
        |tag: &str, name: &str| name.chars().map(|letter| format!("{tag}  - {letter}\n")).collect::<String>();
    for (lines, names, text) in [
        (spelled("A1", "Smith,J."), &[][..], Some("Smith,J.")),
        (spelled("AU", "Li"), &[], Some("Li")),
        (spelled("AU", "LI J"), &[], Some("LIJ")),
        (spelled("A2", "Müller"), &[], Some("Müller")),
        (spelled("AU", "Smith") + "AU  - Roe, Ann\n" + &spelled("AU", "Doe"), &["Roe, Ann"], Some("Smith")),
        ("AU  - X\nAU  - Roe, Ann\n".to_owned(), &["X", "Roe, Ann"], None),
        ("AU  - A\nAU  - B\n".to_owned(), &["A", "B"], None),
        ("AU  - 王\nAU  - 李\nAU  - 张\n".to_owned(), &["王", "李", "张"], None),
        ("AU  - ,\nAU  - Roe, Ann\nAU  - .\n".to_owned(), &["Roe, Ann"], None),
    ] {
        let found = with(&[lines.trim_end()]);
        let kept = found.extra.get("authors").and_then(|values| values.first());
        assert_eq!((found.authors.as_slice(), kept.map(String::as_str)), (&own(names)[..], text), "{lines}");
    }
    let found = &references("%0 Book\n%T a\n%A S\n%A m\n%A i\n")[0];
    assert_eq!((found.authors.len(), found.extra["authors"].as_slice()), (0, &["Smi".to_owned()][..]));
}

#[test]
fn letters_of_a_printed_list_are_people() {
    let spelled = |list: &str| list.chars().map(|letter| format!("A1  - {letter}\n")).collect::<String>();
    for (list, names) in [
        ("['Roe,Ann','Doe,Bob']", &["Roe, Ann", "Doe, Bob"][..]),
        ("['Roe, Ann Kay', 'Doe, Bob']", &["Roe, Ann Kay", "Doe, Bob"]),
        ("\"Roe, Ann\", \"Doe, Bob\"", &["Roe, Ann", "Doe, Bob"]),
        ("c(\"Roe, Ann\", \"Doe, Bob\")", &["Roe, Ann", "Doe, Bob"]),
    ] {
        let found = with(&[&spelled(list), "AU  - Poe, Kay", "A1  - "]);
        assert_eq!(found.authors, own(&[names, &["Poe, Kay"]].concat()), "{list}");
        assert_eq!(found.extra.get("authors"), None, "{list}");
    }
    let found = with(&[&spelled("[Roe, Ann]")]);
    assert_eq!((found.authors.len(), found.extra["authors"].as_slice()), (0, &own(&["[Roe,Ann]"])[..]));
    assert_eq!(with(&["AU  - X", "AU  - ", "AU  - Roe, Ann"]).authors, ["X", "Roe, Ann"]);
}

#[test]
fn type_in_an_abstract_of_ris_is_text() {
    let found = with(&["AB  - It shows", "TY  - of the disease is important", "in tests", "KW  - b"]);
    assert_eq!(found.r#abstract.as_deref(), Some("It shows TY - of the disease is important in tests"));
    assert_eq!((found.r#type.as_deref(), &*found.keywords), (Some("Journal Article"), &own(&["b"])[..]));
}

#[test]
fn text_around_end_of_ris_record_is_kept() {
    let found = references(
        "TY  - JOUR\nTI  - a\nER  - estrogen\nAU  - Roe, A\nTI  - b\nER  - \nJOUR\nA title\nYR  - 2020\nTI  - c\nER  - \n\n\
         TY  - JOUR\nTI  - d\nER  - TI  - e\nAU  - Doe, B\nER  -\n",
    );
    let titles: Vec<_> = found.iter().map(|reference| reference.title.as_str()).collect();
    assert_eq!(titles, ["a", "b", "c", "d", "e"]);
    assert_eq!(found[0].extra["ER"], ["estrogen"]);
    assert_eq!((found[1].authors.as_slice(), found[1].extra.is_empty()), (&["Roe, A".to_owned()][..], true));
    assert_eq!(
        (found[2].extra["text"].as_slice(), found[2].year),
        (&["JOUR A title".to_owned()][..], Some(2020))
    );
    assert_eq!(found[4].authors, ["Doe, B"]);
}

#[test]
fn record_ends_at_end_tag_without_dash() {
    for end in ["ER\n", "ER", "ER-\n\n", "ER\n\n2.\n"] {
        let record = format!("TY  - JOUR\nAU  - Roe, Ann\nTI  - A trial\n{end}");
        for file in [record.clone(), format!("{record}\nTY  - JOUR\nTI  - Another\nER\n")] {
            assert_eq!(references(&file)[0].title, "A trial", "{file}");
        }
    }
    assert_eq!(with(&["KW  - cancer", "ER", "PR"]).keywords, ["cancer", "ER", "PR"]);
}

#[test]
fn japanese_columns_are_found_in_iso_2022_jp() {
    let table = "タイトル,著者名,発行年\n試験,山田 太郎,2020\n二番目,鈴木 花子,2021\n";
    for text in [table.to_owned(), table.replace(',', "\t")] {
        let (bytes, ..) = encoding_rs::ISO_2022_JP.encode(&text);
        for chunk in [1, bytes.len()] {
            let (outcomes, _) = read_in_chunks(&bytes, chunk, Limits::default()).unwrap();
            let found: Vec<_> = outcomes.into_iter().map(reference).collect();
            assert_eq!((found.len(), found[1].title.as_str(), found[1].year), (2, "二番目", Some(2021)));
            assert_eq!(found[0].authors, ["山田 太郎"]);
        }
    }
}

#[test]
fn lists_in_pandas_notation_are_read() {
    let table = "paperId,title,venue,year,authors,externalIds\n\
        abc,First,Lancet,2010,\"[{'authorId': '1', 'name': 'Ann Roe'}, {'authorId': '2', 'name': \"\"Pat O'Neil\"\"}]\",\
        \"{'DOI': '10.1016/x', 'PubMed': '21111111', 'PubMedCentral': '300', 'CorpusId': 7}\"\n";
    let read = references(table);
    let first = &read[0];
    assert_eq!(first.authors, ["Ann Roe", "Pat O'Neil"]);
    assert_eq!((first.doi.as_deref(), first.pmid.as_deref()), (Some("10.1016/x"), Some("21111111")));
    assert_eq!(first.extra["PMC"], ["PMC300"]);
    assert_eq!(first.extra["externalIds"], ["CorpusId: 7"]);
    let table = "paperId,title,journal\nabc,First,\"{'name': 'J Tests', 'volume': '5', 'pages': '1-9'}\"\n";
    let first = references(table).remove(0);
    assert_eq!((first.journal.as_deref(), first.volume.as_deref()), (Some("J Tests"), Some("5")));
    let crossref =
        "title,year,author\nFirst,2010,\"[{'given': 'Ann', 'family': 'Roe', 'affiliation': []}]\"\n";
    assert_eq!(references(crossref)[0].authors, ["Roe, Ann"]);
}

#[test]
fn whole_numbers_of_pandas_are_read() {
    let table = "title,authors,year,volume,issue,pages,pmid,journal\n\
        A trial,Roe A,2020.0,12.0,3.0,7.0,30000001.0,nan\nNan bread,\"nan, nan\",nan,nan,nan,nan,nan,Nan Journal\n";
    let found = references(table);
    assert_eq!(
        (found[0].year, found[0].volume.as_deref(), found[0].issue.as_deref()),
        (Some(2020), Some("12"), Some("3"))
    );
    assert_eq!((found[0].pages.as_deref(), found[0].pmid.as_deref()), (Some("7"), Some("30000001")));
    assert_eq!((found[1].title.as_str(), &found[1].authors[..], found[1].year), ("Nan bread", &[][..], None));
    assert_eq!((found[0].journal.as_deref(), found[1].journal.as_deref()), (None, Some("Nan Journal")));
    let people = with(&["AU  - Nan, A", "AU  - Nan Li", "AU  - nan", "KW  - nan"]);
    assert_eq!(
        (&people.authors[..], people.keywords.len()),
        (&["Nan, A".to_owned(), "Nan Li".to_owned()][..], 0)
    );
}

#[test]
fn records_inside_of_web_pages_are_read() {
    let nbib =
        "PMID- 30000001\nOWN - NLM\nTI  - A trial\n\nPMID- 30000002\nOWN - NLM\nTI  - Another\nJT  - J Tests";
    let ris = "TY  - JOUR\nTI  - A trial\nER  - \n\nTY  - JOUR\nTI  - Another\nJO  - J Tests\nER  - ";
    for records in [nbib, ris] {
        for (before, after) in [
            ("<pre>", "</pre>"),
            ("<pre>\n", "\n</pre>\n"),
            ("<html><body><pre>", "</pre></body></html>"),
            ("<!DOCTYPE html>\n<html>\n<body>\n<pre class=\"a\">", "\n</pre>\n</body>\n</html>\n"),
        ] {
            let file = format!("{before}{records}{after}");
            for chunk in [1, file.len()] {
                let (outcomes, report) = read_in_chunks(file.as_bytes(), chunk, Limits::default()).unwrap();
                assert_eq!((report.records, report.quarantined), (3, 1), "{file}");
                let found: Vec<_> = outcomes.into_iter().skip(1).map(reference).collect();
                assert_eq!(
                    (found[0].title.as_str(), found[1].title.as_str()),
                    ("A trial", "Another"),
                    "{file}"
                );
                assert_eq!(found[1].journal.as_deref(), Some("J Tests"), "{file}");
            }
        }
    }
}

#[test]
fn dictionaries_of_citation_processors_are_read() {
    let item = |key: &str, title: &str| {
        format!(
            r#""{key}": {{"type": "book", "title": "{title}", "author": [{{"family": "Roe"}}], "issued": {{"date-parts": [[2020]]}}}}"#
        )
    };
    let text = format!("{{\n  {},\n  {}\n}}\n", item("roe2020", "A trial"), item("ITEM-2", "Another"));
    for chunk in [1, 16, text.len()] {
        let (outcomes, report) = read_in_chunks(text.as_bytes(), chunk, Limits::default()).unwrap();
        assert_eq!((report.format, report.skipped), (Format::CslJson, None));
        let found: Vec<_> = outcomes.into_iter().map(reference).collect();
        let titles: Vec<_> = found.iter().map(|found| found.title.as_str()).collect();
        assert_eq!((titles, found[1].year), (vec!["A trial", "Another"], Some(2020)));
    }
}

#[test]
fn tables_with_vertical_bars_are_read() {
    let table =
        "Title|Authors|Year|DOI\n\"A, b; c | d\"|Roe, Ann; Doe, Bob|2020|10.5555/a\nAnother|Roe A|2021|\n";
    let ris = "TY  - JOUR\nTI  - Before\nER  - \n";
    for (file, before) in
        [(table.to_owned(), 0), (format!("{ris}{table}"), 1), (format!("sep=|\n{table}"), 0)]
    {
        for chunk in [1, file.len()] {
            let (outcomes, report) = read_in_chunks(file.as_bytes(), chunk, Limits::default()).unwrap();
            assert_eq!(report.format.to_string(), "CSV (vertical bar)");
            let found: Vec<_> = outcomes.into_iter().skip(before).map(reference).collect();
            assert_eq!(
                (found.len(), found[0].title.as_str(), found[0].authors.len()),
                (2, "A, b; c | d", 2),
                "{file}"
            );
            assert_eq!(
                (found[1].authors.as_slice(), found[1].year),
                (&["Roe, A".to_owned()][..], Some(2021))
            );
        }
    }
}

#[test]
fn database_in_source_column_is_not_a_journal() {
    let found =
        references("Title,Authors,Year,Source\nA trial,Roe A,2020,Scopus\nAnother,Doe B,2021,J Tests\n");
    assert_eq!((found[0].journal.as_deref(), found[1].journal.as_deref()), (None, Some("J Tests")));
    assert_eq!(found[0].extra["Source"], ["Scopus"]);
}

#[test]
fn entries_of_bibtex_as_json_are_read() {
    let entry = r#"{"title": "A trial", "author": "Roe, Ann and Doe, Bob", "year": "2020", "journal": "J Tests",
        "volume": "3", "number": "2", "pages": "1--9", "doi": "10.5555/a", "ENTRYTYPE": "article"}"#;
    for file in
        [format!("[{entry}]"), format!(r#"{{"roe2020": {entry}}}"#), format!(r#"{{"papers": [{entry}]}}"#)]
    {
        let found = references(&file).remove(0);
        assert_eq!(
            (&found.authors[..], found.year),
            (&["Roe, Ann".to_owned(), "Doe, Bob".to_owned()][..], Some(2020))
        );
        assert_eq!((found.journal.as_deref(), found.issue.as_deref()), (Some("J Tests"), Some("2")));
        assert_eq!(
            (found.doi.as_deref(), found.extra["ENTRYTYPE"][0].as_str()),
            (Some("10.5555/a"), "article")
        );
    }
}

/// The references of a file that are the same for pushes of any size, and the number of quarantined records.
fn in_any_chunks(file: &[u8]) -> (Vec<Reference>, Report) {
    let (outcomes, report) = read(file).unwrap_or_else(|error| panic!("{error}"));
    for chunk in [1, 7, file.len()] {
        let read = read_in_chunks(file, chunk, Limits::default()).unwrap();
        assert_eq!(read, (outcomes.clone(), report.clone()), "in chunks of {chunk}");
    }
    let found = outcomes.into_iter().filter_map(|outcome| match outcome {
        Outcome::Read(record) => Some(record.reference),
        Outcome::Quarantined(_) => None,
    });
    (found.collect(), report)
}

const RIS: &str = "TY  - JOUR\nTI  - Diet &amp; sleep: 5 &lt; 7, caf&eacute;\nAU  - Roe, Ann\nAU  - M&uuml;ller, Bob\nPY  - 2020\n\
    AB  - We tried p < 0.05 and\nmore.\nDO  - 10.5555/a\nER  - \n\nTY  - BOOK\nTI  - Another\nAU  - Doe, C\nER  - \n";

fn assert_is_ris(found: &[Reference], file: &str) {
    assert_eq!(found.len(), 2, "{file}");
    assert_eq!(
        (found[0].title.as_str(), found[1].title.as_str()),
        ("Diet & sleep: 5 < 7, café", "Another"),
        "{file}"
    );
    assert_eq!(found[0].authors, ["Roe, Ann", "Müller, Bob"], "{file}");
    assert_eq!((found[0].year, found[0].doi.as_deref()), (Some(2020), Some("10.5555/a")), "{file}");
    assert_eq!(found[0].r#abstract.as_deref(), Some("We tried p < 0.05 and more."), "{file}");
    assert_eq!(
        (found[0].r#type.as_deref(), found[1].r#type.as_deref()),
        (Some("Journal Article"), Some("Book")),
        "{file}"
    );
}

#[test]
fn elements_between_lines_of_ris_end_them() {
    let lines: Vec<&str> = RIS.trim_end().split('\n').collect();
    for (before, after) in [
        ("", "<br>"),
        ("", "<br/>"),
        ("", "<BR />"),
        ("", "<br>\n"),
        ("", "<br />\r\n"),
        ("<p>", "</p>"),
        ("<div>", "</div>"),
        ("<p>", "</p>\n"),
        (" ", "<br>"),
    ] {
        let body: String = lines.iter().map(|line| format!("{before}{line}{after}")).collect();
        for body in [body.clone(), body.replace("  - ", "&nbsp;&nbsp;-&nbsp;"), body.replace("  - ", " - ")] {
            let (found, report) = in_any_chunks(body.as_bytes());
            assert_is_ris(&found, &body);
            assert_eq!((report.format, report.quarantined, report.records), (Format::Ris, 0, 2), "{body}");
        }
        for (start, end) in [
            ("<html><head><title>Export</title></head><body>", "</body></html>"),
            ("<!DOCTYPE html>\n<html>\n<body>\n<div class=\"a\">", "</div>\n</body>\n</html>\n"),
            ("<table><tr><td>", "</td></tr></table>"),
        ] {
            let page = format!("{start}{body}{end}");
            let (found, report) = in_any_chunks(page.as_bytes());
            assert_eq!((report.records, report.quarantined), (3, 1), "{page}");
            assert_is_ris(&found, &page);
        }
    }
}

#[test]
fn long_lines_of_web_pages_are_records() {
    let record = RIS.replace('\n', "<br>");
    let body = record.repeat(600);
    assert!(body.len() > 2 * DETECTION_WINDOW);
    for page in
        [body.clone(), format!("<html><body>{body}</body></html>"), format!("PMID- 1\nTI  - a\n\n{body}")]
    {
        let (outcomes, report) = read(page.as_bytes()).unwrap();
        let found = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Read(_))).count();
        assert!(found >= 1_200, "{found} of {}", report.records);
        assert_eq!(report.skipped, None);
    }
}

#[test]
fn elements_in_values_of_ris_stay() {
    let found = with(&["AB  - We tried<br>and <p>more</p>", "KW  - care<br>"]);
    assert_eq!(
        found.r#abstract.as_deref(),
        with(&["AB  - We tried<br>and <p>more</p>"]).r#abstract.as_deref()
    );
    assert_eq!(references("TY  - JOUR\nTI  - a <br> TI-b\nER  - \n")[0].title, "a <br> TI-b");
}

#[test]
fn ris_with_other_blanks_and_dashes_is_read() {
    for tag in ["-", " -", "- ", " - ", "   - ", "\t-\t", ":", ":  ", " : ", "–", " – "] {
        let file = RIS.replace("  - ", tag);
        let (found, report) = in_any_chunks(file.as_bytes());
        assert_is_ris(&found, &file);
        assert_eq!((report.quarantined, report.skipped), (0, None), "{file}");
    }
    let numbered = RIS.replace("TY  - ", "1.\nTY  - ").replace("  - ", "-");
    assert_is_ris(&in_any_chunks(numbered.as_bytes()).0, &numbered);
}

#[test]
fn wrapped_lines_of_loose_ris_are_no_tags() {
    let file = "TY-JOUR\nT1-Imaging\nAB-We compared\nT1-weighted and\nST-elevation images of\nER-positive tumours\n\
        KW-care\nUR-https://example.org/a\nER-\n";
    let found = references(file).remove(0);
    assert_eq!(found.title, "Imaging");
    assert_eq!(
        found.r#abstract.as_deref(),
        Some("We compared T1-weighted and ST-elevation images of ER-positive tumours")
    );
    assert_eq!(
        (&found.keywords[..], found.url.as_deref()),
        (&["care".to_owned()][..], Some("https://example.org/a"))
    );
}

#[test]
fn text_with_dashes_is_not_ris() {
    for text in [
        "TY-based methods\nTI-Nspire\nER-positive\n",
        "TY-JOUR\nis a code of RIS.\n",
        "TY: JOUR\nDear all,\nTI: a\nER-positive\n",
        "TI-a\nAU-b\nTY-JOUR\nER-\n",
        "TY-JOUR\nER-\n",
        "TY-JOUR\nTI-a\nAU-b\nER-\nDear all, this is a letter.\n",
    ] {
        assert!(matches!(read(text.as_bytes()), Err(Error::UnknownFormat { .. })), "{text}");
    }
    let table = "Title,Authors,Year\nTY-JOUR,TI-a,2020\n";
    assert_eq!(references(table)[0].title, "TY-JOUR");
}

#[test]
fn loose_ris_is_a_part_of_merged_files() {
    let loose = RIS.replace("  - ", "-");
    for (file, records) in [
        (format!("{RIS}\n{loose}"), 4),
        (format!("{loose}\n{RIS}"), 4),
        (format!("PMID- 1\nTI  - a\n\n{loose}"), 3),
        (format!("{loose}PMID- 1\nTI  - a\n"), 3),
    ] {
        let (found, report) = in_any_chunks(file.as_bytes());
        assert_eq!((found.len(), report.quarantined), (records, 0), "{file}");
        assert!(found.iter().all(|found| !found.title.is_empty()), "{found:?}");
    }
}

const LABELLED: &str = "Reference Type:  Journal Article\nRecord Number: 1\nAuthor: Roe, A., Doe, B. C. and van der Berg, D.\n\
    Year: 2020\nTitle: Diet and sleep:\na trial\nJournal: J Tests\nVolume: 12\nIssue: 3\nPages: 123-9\nDate: May 4\n\
    Short Title: Diet\nISSN: 1234-5678\nDOI: 10.5555/a\nAccession Number: 30000001\nKeywords: diet\nsleep\nadult\n\
    Abstract: BACKGROUND: We tried.\n\nRESULTS: It worked.\nNotes: First note: a\nURL: https://example.org/a\n\
    Author Address: Test Institute, Boston\nName of Database: PubMed\nLanguage: eng\n\n\n\
    Reference Type:  Book Section\nRecord Number: 2\nAuthor: Roe, Ann\nDoe, Bob\nYear: 2019\nTitle: A chapter\nEditor: Poe, C.\n\
    Book Title: The book\nPublisher: Press\nPages: 1-9\nLanguage: \n";

#[test]
fn labelled_text_of_endnote_is_read() {
    for file in [LABELLED.to_owned(), LABELLED.replace('\n', "\r\n"), format!("\u{feff}{LABELLED}")] {
        let (found, report) = in_any_chunks(file.as_bytes());
        assert_eq!((report.records, report.quarantined, report.skipped), (2, 0, None));
        assert_eq!(report.format.to_string(), "EndNote text");
        let first = &found[0];
        assert_eq!((first.title.as_str(), first.year), ("Diet and sleep: a trial", Some(2020)));
        assert_eq!(first.authors, ["Roe, A.", "Doe, B. C.", "van der Berg, D."]);
        assert_eq!((first.journal.as_deref(), first.volume.as_deref()), (Some("J Tests"), Some("12")));
        assert_eq!((first.issue.as_deref(), first.pages.as_deref()), (Some("3"), Some("123-9")));
        assert_eq!((first.doi.as_deref(), first.pmid.as_deref()), (Some("10.5555/a"), Some("30000001")));
        assert_eq!(first.date.as_deref(), Some("2020-05-04"));
        assert_eq!(first.keywords, ["diet", "sleep", "adult"]);
        assert_eq!(first.r#abstract.as_deref(), Some("BACKGROUND: We tried.\nRESULTS: It worked."));
        assert_eq!(
            (first.url.as_deref(), first.r#type.as_deref()),
            (Some("https://example.org/a"), Some("Journal Article"))
        );
        assert_eq!(
            (&first.extra["Notes"][0][..], &first.extra["ISSN"][0][..]),
            ("First note: a", "1234-5678")
        );
        let second = &found[1];
        assert_eq!(
            (second.title.as_str(), &second.authors[..]),
            ("A chapter", &["Roe, Ann".to_owned(), "Doe, Bob".to_owned()][..])
        );
        assert_eq!((second.journal.as_deref(), second.pages.as_deref()), (Some("The book"), Some("1-9")));
    }
}

#[test]
fn merged_files_may_contain_labelled_text() {
    for (file, records) in [
        (format!("{RIS}\n{LABELLED}"), 4),
        (format!("{LABELLED}{RIS}"), 4),
        (format!("Library of Ann\n\n{LABELLED}"), 2),
    ] {
        let (found, report) = in_any_chunks(file.as_bytes());
        assert_eq!((found.len(), report.quarantined), (records, 0), "{file}");
    }
    let table = "Reference Type,Title,Author\nReference Type: Book,a,b\n";
    assert_eq!(references(table)[0].title, "a");
    assert!(read(b"Reference Type: a letter\nto all of you\n").is_err());
}

#[test]
fn cells_in_iso_2022_jp_have_line_breaks() {
    // The second bytes of several letters are quotation marks, commas, braces and angle brackets: い, う, か.
    let table = "タイトル,著者名,抄録,発行年\n\"いろは, い\nいい\",\"山田 太郎; いい 花子\",\"一行目 い\r\n二行目 \"\"い\"\" い,い\n三行目\",2020\n\
        いいい,鈴木 花子,いいい,2021\n";
    for text in
        [table.to_owned(), table.replace(',', "\t"), table.replace('\n', "\r\n").replace("\r\r", "\r")]
    {
        let (bytes, ..) = encoding_rs::ISO_2022_JP.encode(&text);
        let (found, report) = in_any_chunks(&bytes);
        assert_eq!((report.records, report.quarantined, report.skipped), (2, 0, None), "{text}");
        assert!(
            found[0].title.starts_with("いろは") && found[0].title.ends_with(" い いい"),
            "{:?}",
            found[0].title
        );
        assert_eq!(found[0].authors, ["山田 太郎", "いい 花子"]);
        assert!(found[0].r#abstract.as_deref().unwrap().contains("二行目 \"い\" い"), "{:?}", found[0]);
        assert_eq!((found[1].title.as_str(), found[1].year), ("いいい", Some(2021)));
    }
}

#[test]
fn iso_2022_jp_letters_are_not_syntax() {
    // The text contains an odd number of quotation marks, braces and angle brackets.
    let all: String = ('ぁ'..='ん').chain("飲絢唖".chars()).chain('ァ'..='ヶ').collect();
    for (text, records) in [
        (
            format!("@article{{a, title = {{試験 {all}}}, year = 2020}}\n@article{{b, title = {{{all}}}}}\n"),
            2,
        ),
        (
            format!(
                "<xml><records><record><title>試験 {all}</title></record><record><title>{all}</title></record></records></xml>"
            ),
            2,
        ),
        (
            format!(
                "[{{\"type\":\"book\",\"title\":\"試験 {all}\",\"author\":[]}},{{\"type\":\"book\",\"title\":\"{all}\"}}]"
            ),
            2,
        ),
        (format!("TY  - JOUR\nTI  - 試験 {all}\nER  - \nTY  - JOUR\nTI  - {all}\nER  - \n"), 2),
    ] {
        let (bytes, ..) = encoding_rs::ISO_2022_JP.encode(&text);
        let (found, report) = in_any_chunks(&bytes);
        assert_eq!((found.len(), report.quarantined), (records, 0), "{text}");
        assert_eq!(
            (found[0].title.as_str(), found[1].title.as_str()),
            (format!("試験 {all}").as_str(), all.as_str())
        );
    }
}

const REFER: &str =
    "%0 Journal Article\n%T A trial\n%A Roe, Ann\n%X We tried.\n\n%0 Book\n%T Another\n%A Doe, B\n";
const NBIB: &str = "PMID- 1\nOWN - NLM\nTI  - A trial\n      of tests\nAB  - We tried.\n\nPMID- 2\nOWN - NLM\nTI  - Another\nAB  - We did.\n";
const ABSTRACTS: &str = "1. J Tests. 2020;1(2):3.\n\nA trial.\n\nRoe A.\n\nWe tried.\n\nPMID: 1\n\n\n\
    2. J Tests. 2021;1(2):3.\n\nAnother.\n\nDoe B.\n\nWe did.\n\nPMID: 2\n";
const TABLE: &str =
    "Title,Authors,Year,Abstract\nA trial,\"Roe, A\",2020,\"We\ntried.\"\nAnother,\"Doe, B\",2021,\n";

#[test]
fn blank_lines_and_trailing_blanks_change_nothing() {
    for text in [RIS, REFER, NBIB, TABLE, LABELLED] {
        let (found, _) = in_any_chunks(text.as_bytes());
        for line_end in ["\r\r\n", "\n\n", "  \n"] {
            // A blank line in a cell is a paragraph.
            let file = if text == TABLE { text.replace("We\n", "We ") } else { text.to_owned() };
            let (same, report) = in_any_chunks(file.replace('\n', line_end).as_bytes());
            let titles = |found: &[Reference]| {
                found.iter().map(|found| (found.title.clone(), found.authors.clone())).collect::<Vec<_>>()
            };
            assert_eq!((titles(&same), report.quarantined), (titles(&found), 0), "{line_end:?} in {text}");
        }
    }
    let (found, _) = in_any_chunks(ABSTRACTS.as_bytes());
    assert_eq!(in_any_chunks(ABSTRACTS.replace('\n', "  \n").as_bytes()).0, found);
    assert_eq!((found[0].title.as_str(), found[1].r#abstract.as_deref()), ("A trial.", Some("We did.")));
}

#[test]
fn end_of_code_block_is_no_value() {
    for text in [RIS, REFER, NBIB, TABLE, LABELLED] {
        let (found, _) = in_any_chunks(text.as_bytes());
        let (same, report) = in_any_chunks(format!("```\n{text}```\n").as_bytes());
        assert_eq!((same, report.quarantined), (found, 0), "{text}");
    }
}

#[test]
fn types_of_endnote_and_publishers_have_names() {
    for (code, name) in
        [("CPAPER", "Conference Paper"), ("EJOU", "Electronic Article"), ("UNPD", "Unpublished Work")]
    {
        let found = &references(&format!("TY  - {code}\nTI  - Tests\nER  - \n"))[0];
        assert_eq!(found.r#type.as_deref(), Some(name));
    }
}

#[test]
fn journal_code_of_ovid_is_not_an_issue() {
    for (issue, database, read) in [
        ("eag, 7805975", "Ovid MEDLINE(R) <2024>", None),
        ("0401664, du5", "Ovid MEDLINE(R)", None),
        ("7805975", "Ovid MEDLINE(R)", None),
        ("12", "Ovid MEDLINE(R)", Some("12")),
        ("7805975", "Other", Some("7805975")),
    ] {
        let found = with(&[&format!("IS  - {issue}"), &format!("DB  - {database}")]);
        assert_eq!(
            (found.issue.as_deref(), found.extra.contains_key("IS")),
            (read, read.is_none()),
            "{issue}"
        );
    }
}

#[test]
fn crossref_and_html_elements_are_removed() {
    let found = with(&[
        "AB  - <jats:title>Abstract</jats:title> <jats:sec><jats:title>Aim</jats:title> <jats:p>We test.</jats:p></jats:sec>",
        "DO  - <br />",
        "VL  - 12<br />",
        "SP  - <br />-<br />",
        "JO  - <br>",
        "N1  - <br />",
    ]);
    assert_eq!((found.r#abstract.as_deref(), found.volume.as_deref()), (Some("Aim\nWe test."), Some("12")));
    assert_eq!((found.doi, found.pages, found.journal, found.extra.len()), (None, None, None, 0));
}

#[test]
fn number_labels_and_keyword_weights_are_removed() {
    let found = with(&["VL  - v. 40", "IS  - no. 2", "SP  - pp 278-98"]);
    assert_eq!((found.volume.as_deref(), found.issue.as_deref()), (Some("40"), Some("2")));
    assert_eq!(found.pages_normalized.as_deref(), Some("278-298"));
    let cnki = &references("RT Journal Article\nA1 张一\nT1 支持的研究\nK1 黄芪:7;多糖:3;test 1:2\n")[0];
    assert_eq!(cnki.keywords, ["黄芪", "多糖", "test 1:2"]);
    let eric = &references("OWN - ERIC\nTI  - Tests\nLID - http://eric.example/?id=ED1\n")[0];
    assert_eq!(eric.url.as_deref(), Some("http://eric.example/?id=ED1"));
    let proquest = &references("Title\tAuthor\tSubject\nTests\tRoe, Ann\tone; two\n")[0];
    assert_eq!(proquest.keywords, ["one", "two"]);
}

#[test]
fn unclosed_quotation_mark_joins_no_rows() {
    let titles = |rows: &str| {
        let text = format!("Key,Title,Abstract,Authors,Year\n0,First,\"a, b\",Roe A,2000\n{rows}");
        let of = |size| -> Vec<_> {
            let outcomes = read_in_chunks(text.as_bytes(), size, Limits::default()).unwrap().0;
            let title = |outcome| match outcome {
                Outcome::Read(read) => read.reference.title,
                Outcome::Quarantined(_) => "quarantined".to_owned(),
            };
            outcomes.into_iter().map(title).collect()
        };
        assert_eq!(of(1), of(text.len()), "{text}");
        of(7).split_off(1).join("; ")
    };
    for (rows, expected) in [
        ("1,A,\"open,Doe B,2001\n2,B,\"b\",Poe C,2002\n3,C,\"c\",Poe C,2002", "A; B; C"),
        ("1,A,\"open,Doe B,2001\r\n2,B,b,Poe C,2002\r\n3,C,\"c\",Poe C,2002\r\n", "A; B; C"),
        ("1,A,\"open,Doe B,2001\n2,B,\"open,Poe C,2002\n3,C,\"c\nd\",Poe C,2002\n", "A; B; C"),
        ("1,A,\"open\nand,Doe B,2001\n2,B,\"b\nc\",Poe C,2002\n3,C,c,Poe C,2002\n", "A; B; C"),
        ("1,A,\"open,Doe B,2001\n2,B,b,Poe C,2002\n", "A; B"),
        ("1,A,\"open\n2,B,b,Poe C,2002\n", "quarantined; B"),
        ("1,A,\"open,Doe B,2001\n2,B,b\n", "quarantined"),
        ("1,A,\"a\nsays \"b\", c\",Doe B,2001\n2,B,b,Poe C,2002\n", "quarantined; B"),
    ] {
        assert_eq!(titles(rows), expected, "{rows}");
    }
}

#[test]
fn labelled_pmids_are_found_in_any_tag() {
    for (line, pmid) in [
        ("U2  - PMID: 31234567.", Some("31234567")),
        ("U2  - PMID: NLM31234567", Some("31234567")),
        ("U1  - PubMed ID: 31234567", Some("31234567")),
        ("C3  - PMID 31234567", Some("31234567")),
        ("U1  - PubMed ID", None),
        ("U1  - PMID 12 of 20", None),
    ] {
        assert_eq!(with(&[line]).pmid.as_deref(), pmid, "{line}");
    }
}

#[test]
fn signs_of_formulas_in_a_doi_are_replaced() {
    let text =
        "@article{a, title={A}, doi={10.5555/(SICI)1097-0258(1998)17:15/16$<$1661::AID-SIM968$>$3.0.CO;2-2}}";
    let found = references(text).remove(0).doi;
    assert_eq!(found.as_deref(), Some("10.5555/(sici)1097-0258(1998)17:15/16<1661::aid-sim968>3.0.co;2-2"));
}

#[test]
fn conditionals_of_tex_keep_the_text() {
    let authors =
        |list: &str| references(&format!("@article{{a, title={{A}}, author={{{list}}}}}")).remove(0).authors;
    let name = r"Skibi\ifmmode \acute{n}\else \'{n}\fi{}ski";
    assert_eq!(authors(&format!("{name}, R. and Golak, J.")), ["Skibiński, R.", "Golak, J."]);
    assert_eq!(authors(&format!("R. {name} and J. Golak")), ["Skibiński, R.", "Golak, J."]);
}

#[test]
fn lists_as_programs_print_them_are_split() {
    for value in ["['Roe, Ann', \"O'Neil, Pat\"]", "c(\"Roe, Ann\", \"O'Neil, Pat\")"] {
        assert_eq!(people(value), ["Roe, Ann", "O'Neil, Pat"], "{value}");
        let keywords = with(&[&format!("KW  - {value}")]).keywords;
        assert_eq!(keywords, ["Roe, Ann", "O'Neil, Pat"], "{value}");
    }
    let cell = |header: &str, row: &str| {
        references(&format!("Title,Year,{header}\nTests,2020,{row}\n")).remove(0).authors
    };
    assert_eq!(cell("Authors", "\"Roe, A.<br>Doe, B.<br />Poe, C.<br>\""), ["Roe, A.", "Doe, B.", "Poe, C."]);
    assert_eq!(cell("Author 1,Author 2,Author 3", "\"Roe, A\",Doe B,"), ["Roe, A", "Doe, B"]);
    assert_eq!(cell("Author 1,Authors", "x,\"Roe, A\""), ["Roe, A"]);
}

#[test]
fn tags_of_more_than_two_letters_are_read() {
    let found =
        with(&["DESCRIPTORS  - *Falls; *Gait", "DOI  - 10.5555/a", "PMID  - 30000001", "ISSN  - 1234-5678"]);
    assert_eq!(
        (found.keywords, found.r#type.as_deref()),
        (own(&["*Falls", "*Gait"]), Some("Journal Article"))
    );
    assert_eq!((found.doi.as_deref(), found.pmid.as_deref()), (Some("10.5555/a"), Some("30000001")));
    assert_eq!(found.extra["SN"], ["1234-5678"]);
}

#[test]
fn numbers_of_people_and_files_of_a_library_are_left_out() {
    let entry = "@article{a, title={Tests}, author={Ann Roe 0001 and J{\\\"u}rgen Doe}, pages={{+}}, article-number={12}}";
    let found = references(entry).remove(0);
    assert_eq!((found.authors, found.pages.as_deref()), (own(&["Roe, Ann", "Doe, Jürgen"]), Some("12")));
    let found = with(&["L1  - internal-pdf://1234/Roe-2020.pdf"]);
    assert_eq!((found.url, found.extra["L1"].len()), (None, 1));
}

#[test]
fn blanks_in_field_names_of_bibtex_are_ignored() {
    let entry = "@article{a, title={Tests}, key words = {Zinc, Iron}, Book Title={B}, no te={c}}";
    let found = references(entry).remove(0);
    assert_eq!((found.keywords, found.journal.as_deref()), (own(&["Zinc", "Iron"]), Some("B")));
    assert_eq!(found.extra["no te"], ["c"]);
}

#[test]
fn chapter_of_bibtex_may_be_the_title() {
    let chapter = |fields: &str| references(&format!("@inbook{{a, {fields}}}")).remove(0);
    let found = chapter("booktitle={Handbook of Tests}, chapter={Zinc and its tests}");
    assert_eq!(
        (found.title.as_str(), found.journal.as_deref()),
        ("Zinc and its tests", Some("Handbook of Tests"))
    );
    let found = chapter("title={Handbook}, chapter={Zinc and its tests}");
    assert_eq!((found.title.as_str(), found.extra["chapter"].len()), ("Handbook", 1));
    for number in ["12", "Chapter 12", "chapter~XII", "3.2", "Chapter One"] {
        let found = chapter(&format!("booktitle={{Handbook}}, chapter={{{number}}}"));
        assert_eq!((found.title.as_str(), found.extra["chapter"].len()), ("Handbook", 1), "{number}");
    }
}

#[test]
fn day_field_of_bibtex_completes_date() {
    let date = |fields: &str| references(&format!("@article{{a, title={{A}}, {fields}}}")).remove(0).date;
    assert_eq!(date("month={10}, day={5}, year={2001}").as_deref(), Some("2001-10-05"));
    assert_eq!(date("day=5, month=oct, year={2001}").as_deref(), Some("2001-10-05"));
    assert_eq!(date("month={10}, day={5--7}, year={2001}").as_deref(), Some("2001-10"));
    assert_eq!(date("day={5}, year={2001}"), None);
}

#[test]
fn people_in_one_element_of_endnote_are_split() {
    let record = |author: &str| {
        let record =
            format!("<record><titles><title>Tests</title></titles><author>{author}</author></record>");
        references(&format!("<xml><records>{record}</records></xml>")).remove(0).authors
    };
    assert_eq!(record("Roe, A.&#xD;Doe, B."), ["Roe, A.", "Doe, B."]);
    assert_eq!(record("World Health\r\n  Organization"), ["World Health Organization"]);
}

#[test]
fn source_in_rows_of_embase_is_divided() {
    let source = "\"SOURCE\",\"J Tests (2020) 5:2 (11-19). Date of Publication: 1 Mar 2020\"\n";
    for title in ["", "\"SOURCE TITLE\",\"J Tests\"\n\"PUBLICATION YEAR\",\"2020\"\n"] {
        let text = format!(
            "\"TITLE\",\"Tests\"\n\"AUTHOR NAMES\",\"Roe A.\"\n{source}{title}\"DOI\",\"10.5555/a\"\n"
        );
        let found = references(&text).remove(0);
        assert_eq!((found.journal.as_deref(), found.year), (Some("J Tests"), Some(2020)), "{title}");
        assert_eq!((found.volume.as_deref(), found.issue.as_deref()), (Some("5"), Some("2")), "{title}");
        assert_eq!(found.pages.as_deref(), Some("11-19"), "{title}");
    }
}

#[test]
fn type_behind_fields_of_tagged_endnote_begins_no_record() {
    let text = "%A Roe, Ann\n%D 2020\n%T Tests\n%B 2020\n%X We tried.\n%0 Journal Article\n%R 10.5555/a\n%& 11\n%P 9\n%J J Tests\n";
    let found = references(text);
    assert_eq!((found.len(), found[0].r#type.as_deref()), (1, Some("Journal Article")));
    assert_eq!((found[0].journal.as_deref(), found[0].pages.as_deref()), (Some("J Tests"), Some("11-19")));
    let ris = "TI  - One\nAU  - Roe, A\nTY  - JOUR\nTI  - Two\nER  -\n";
    assert_eq!(references(ris).len(), 2);
}

#[test]
fn nbib_with_collapsed_columns_is_read() {
    let text = "PMID - 30000001\nOWN - NLM\nVI - 3\nIP - 2\nDP - 2019 May 16\nTI - Tests\n of nurses.\nPG - 11-9\n\
                LID - 10.5555/a [doi]\nAB - METHODS: In double-blind\n trials.\nFAU - Roe, Ann\nAU - Roe A\n\
                PT - Journal Article\nJT - J Tests\nMH - Asthma\n\nPMID - 30000002\nTI - More.\n";
    for text in [text.to_owned(), text.replace("PMID -", "PMID-"), text.replace('\n', "\r\n")] {
        let found = references(&text);
        assert_eq!((found.len(), found[1].title.as_str()), (2, "More."));
        let first = &found[0];
        assert_eq!((first.title.as_str(), first.pmid.as_deref()), ("Tests of nurses.", Some("30000001")));
        assert_eq!(
            (first.authors.as_slice(), first.doi.as_deref()),
            (&own(&["Roe, Ann"])[..], Some("10.5555/a"))
        );
        assert_eq!((first.date.as_deref(), first.journal.as_deref()), (Some("2019-05-16"), Some("J Tests")));
        assert_eq!(first.r#abstract.as_deref(), Some("METHODS: In double-blind trials."));
    }
}

/// A long word at many places would become far longer than its record.
#[test]
fn abstract_by_places_of_words_is_bounded() {
    let places: Vec<String> = (0..20_000).map(|place| place.to_string()).collect();
    let word = "x".repeat(10_000);
    let file = format!(
        r#"{{"results":[{{"id":"https://openalex.org/W1","title":"A trial","publication_year":2020,
        "authorships":[],"abstract_inverted_index":{{"{word}":[{}]}}}}]}}"#,
        places.join(",")
    );
    let text = references(&file).remove(0).r#abstract.unwrap();
    assert!((200_000..300_000).contains(&text.len()), "{}", text.len());
}

#[test]
fn json_of_hal_is_read() {
    let text = r#"{"response":{"numFound":2,"docs":[
        {"docid":"1","halId_s":"hal-00000001","uri_s":"https://hal.science/hal-00000001","docType_s":"ART",
         "doiId_s":"10.5555/a","title_s":["Tests","Essais"],"authFullName_s":["Ann De La Rue","Bob Doe"],
         "authLastName_s":["De La Rue","Doe"],"authFirstName_s":["Ann","Bob"],"producedDateY_i":2021,
         "producedDate_s":"2021-03-05","journalTitle_s":"J Tests","volume_s":"12","issue_s":["3"],"page_s":"12-19",
         "abstract_s":["We tested."],"keyword_s":["one","two"],"pubmedId_s":"30000001"},
        {"title_s":["Thèse"],"authFullName_s":["Ann Roe"],"producedDateY_i":2019,"docType_s":"THESE"}]}}"#;
    let found = references(text);
    assert_eq!((found.len(), found[1].title.as_str(), found[1].year), (2, "Thèse", Some(2019)));
    let first = &found[0];
    assert_eq!((first.title.as_str(), first.r#type.as_deref()), ("Tests", Some("Journal Article")));
    assert_eq!(first.authors, ["De La Rue, Ann", "Doe, Bob"]);
    assert_eq!((first.date.as_deref(), first.journal.as_deref()), (Some("2021-03-05"), Some("J Tests")));
    assert_eq!((first.volume.as_deref(), first.issue.as_deref()), (Some("12"), Some("3")));
    assert_eq!((first.doi.as_deref(), first.pmid.as_deref()), (Some("10.5555/a"), Some("30000001")));
    assert_eq!(
        (first.keywords.as_slice(), first.pages.as_deref()),
        (&own(&["one", "two"])[..], Some("12-19"))
    );
    assert_eq!(first.url.as_deref(), Some("https://hal.science/hal-00000001"));
    let table = "docid,uri_s,title_s,authFullName_s,producedDateY_i,journalTitle_s,page_s,doiId_s\n\
                 1,https://hal.science/hal-00000001,Tests,\"Ann De La Rue,Bob Doe\",2021,J Tests,12-19,10.5555/a\n";
    let row = references(table).remove(0);
    assert_eq!((row.authors.len(), row.year, row.journal.as_deref()), (2, Some(2021), Some("J Tests")));
    assert_eq!((row.doi.as_deref(), row.url), (first.doi.as_deref(), first.url.clone()));
}

#[test]
fn earlier_json_of_clinical_trials_is_read() {
    let study = r#"{"Rank":1,"Study":{"ProtocolSection":{"IdentificationModule":{"NCTId":"NCT00000001",
        "BriefTitle":"Short","OfficialTitle":"Tests","SecondaryIdInfoList":{"SecondaryIdInfo":[{"SecondaryId":
        "2011-001234-12"}]}},"StatusModule":{"StartDateStruct":{"StartDate":"January 2013"}},
        "DescriptionModule":{"BriefSummary":"We test."},"ConditionsModule":{"ConditionList":{"Condition":["A"]},
        "KeywordList":{"Keyword":["B"]}},"DesignModule":{"StudyType":"Observational"}}}}"#;
    for text in [
        format!(r#"{{"FullStudiesResponse":{{"NStudiesFound":2,"FullStudies":[{study},{study}]}}}}"#),
        format!(r#"{{"FullStudy":{study}}}"#),
    ] {
        let found = references(&text);
        assert_eq!(found.len(), if text.contains("Response") { 2 } else { 1 });
        assert_eq!((found[0].title.as_str(), found[0].date.as_deref()), ("Tests", Some("2013-01")));
        assert_eq!((found[0].keywords.len(), found[0].trial_ids.len()), (2, 2));
        assert_eq!(found[0].r#abstract.as_deref(), Some("We test."));
        assert_eq!(found[0].url.as_deref(), Some("https://clinicaltrials.gov/study/NCT00000001"));
    }
    let text = r#"{"StudyFieldsResponse":{"FieldList":["NCTId","BriefTitle"],"StudyFields":[
        {"Rank":1,"NCTId":["NCT00000001"],"BriefTitle":["One"],"Condition":["A","B"],"StartDate":["May 2012"]},
        {"Rank":2,"NCTId":["NCT00000002"],"BriefTitle":["Two"],"OfficialTitle":[]}]}}"#;
    let found = references(text);
    assert_eq!((found.len(), found[1].title.as_str()), (2, "Two"));
    assert_eq!((found[0].date.as_deref(), &found[0].keywords), (Some("2012-05"), &own(&["A", "B"])));
    assert_eq!(found[0].trial_ids, ["NCT00000001"]);
}

#[test]
fn values_of_r_in_cells_are_read() {
    let cell = |column: &str, cell: &str| {
        let cell = cell.replace('"', "\"\"");
        references(&format!("Title,Year,{column}\nTests,2020,\"{cell}\"\n")).remove(0)
    };
    for authors in [
        "c(\"Roe A\", \"Doe B\")",
        "list(\"Roe A\", \"Doe B\")",
        "list(c(\"Roe A\", \"Doe B\"))",
        "list(id = c(\"https://openalex.org/A1\", \"A2\"), display_name = c(\"Roe A\", \"Doe B\"), orcid = c(NA, \"x\"))",
        "list(given = c(\"A\", \"B\"), family = c(\"Roe\", \"Doe\"), sequence = c(\"first\", \"additional\"))",
    ] {
        assert_eq!(cell("Authors", authors).authors, ["Roe, A", "Doe, B"], "{authors}");
    }
    assert_eq!(
        cell("Keywords", "list(id = c(\"x\", \"y\"), display_name = c(\"a, b\", \"c\"))").keywords,
        ["a, b", "c"]
    );
    assert_eq!(cell("Keywords", "list(\"a, b\", \"c\")").keywords, ["a, b", "c"]);
    for absent in ["NULL", "character(0)", "list()", "NA"] {
        let found = cell("Keywords,Abstract", absent);
        assert_eq!((found.keywords.len(), found.r#abstract), (0, None), "{absent}");
    }
    let ids = "c(openalex = \"https://openalex.org/W1\", doi = \"https://doi.org/10.5555/a\", \
               pmid = \"https://pubmed.ncbi.nlm.nih.gov/30000001\")";
    let found = cell("ids", ids);
    assert_eq!((found.doi.as_deref(), found.pmid.as_deref()), (Some("10.5555/a"), Some("30000001")));
    assert_eq!(cell("doi", "c(\"10.5555/a\")").doi.as_deref(), Some("10.5555/a"));
}

#[test]
fn nested_cells_of_openalex_are_read() {
    let header = "title,publication_year,authorships,primary_location,biblio,abstract_inverted_index";
    let cells = [
        "[{'author': {'id': 'A1', 'display_name': \"\"Roe, Ann\"\"}, 'institutions': [], 'raw_author_name': 'A'}]",
        "{'is_oa': True, 'pdf_url': None, 'source': {'id': 'S1', 'display_name': 'J Tests'}}",
        "{'volume': '6', 'issue': None, 'first_page': '11', 'last_page': '19'}",
        "{'We': [0, 2], 'tested': [1], 'agreed': [3]}",
    ];
    let found = references(&format!("{header}\nTests,2020,\"{}\"\n", cells.join("\",\""))).remove(0);
    assert_eq!((found.authors, found.journal.as_deref()), (own(&["Roe, Ann"]), Some("J Tests")));
    assert_eq!((found.volume.as_deref(), found.pages.as_deref()), (Some("6"), Some("11-19")));
    assert_eq!(found.r#abstract.as_deref(), Some("We tested We agreed"));
}

#[test]
fn tables_of_packages_of_r_are_read() {
    let header = "\"\",\"AU\",\"DE\",\"ID\",\"JI\",\"AB\",\"DT\",\"DI\",\"BP\",\"EP\",\"SO\",\"LA\",\"UT\",\"PY\",\"VL\",\"IS\",\"TI\",\"SR\"";
    let row = "\"ROE A, 2010, J\",\"ROE A;DOE BC\",\"ONE;TWO\",\"THREE\",\"J. T.\",\"TEXT.\",\"ARTICLE\",\"10.5555/a\",\"12\",\"19\",\
               \"J TESTS\",\"ENGLISH\",\"ISI000276344500004\",\"2010\",\"4\",\"2\",\"TESTS\",\"ROE A, 2010, J\"";
    let found = references(&format!("{header}\n{row}\n")).remove(0);
    assert_eq!((found.authors, found.keywords), (own(&["ROE, A", "DOE, BC"]), own(&["ONE", "TWO", "THREE"])));
    assert_eq!(
        (found.pages.as_deref(), found.wos_id.as_deref()),
        (Some("12-19"), Some("WOS:000276344500004"))
    );
    let table = "pmid,title,year,journal,lastname,firstname\n30000001,Tests,2020,J Tests,Roe,Ann B\n";
    assert_eq!(references(table).remove(0).authors, ["Roe, Ann B"]);
}

#[test]
fn json_of_paperpile_is_read() {
    let text = r#"[{"_id":"a","title":"Tests","author":[{"first":"Ann B","last":"Roe","formatted":"Roe AB"}],
        "journal":"J T","journalfull":"J Tests","pages":"12-19","published":{"year":"2019"},"doi":"10.5555/a",
        "pmid":"30000001","keywords":"one;two","kind":"Journal Article","url":["http://example.org"]}]"#;
    let found = references(text).remove(0);
    assert_eq!((found.authors, found.journal.as_deref()), (own(&["Roe, Ann B"]), Some("J Tests")));
    assert_eq!((found.year, found.pages.as_deref()), (Some(2019), Some("12-19")));
    assert_eq!((found.doi.as_deref(), found.keywords), (Some("10.5555/a"), own(&["one", "two"])));
}

#[test]
fn repeated_author_column_is_read_once() {
    let table = "title,author,year,author\nTests,\"Roe, Ann and Doe, B\",2020,\"Roe, Ann and Doe, B\"\n";
    assert_eq!(references(table).remove(0).authors, ["Roe, Ann", "Doe, B"]);
    assert_eq!(with(&["JO  - https://clinicaltrials.gov/show/NCT00000001"]).journal, None);
}

#[test]
fn invisible_characters_are_removed() {
    let text = "TY  - JOUR\nTI  - \u{feff}Medi\u{ad}cine\u{200b} tests\nAU  - \u{feff}Roe, Ann\nKW  - zi\u{2060}nc\n\
        AB  - \u{200b}We test.\nER  - \n";
    let found = &references(text)[0];
    assert_eq!((found.title.as_str(), found.authors[0].as_str()), ("Medicine tests", "Roe, Ann"));
    assert_eq!((found.keywords[0].as_str(), found.r#abstract.as_deref()), ("zinc", Some("We test.")));
    let (outcomes, _) = read("TY  - JOUR\nTI  - \u{feff}\nN1  - \u{200b}\nER  - \n".as_bytes()).unwrap();
    assert!(matches!(outcomes[..], [Outcome::Quarantined(_)]), "{outcomes:?}");
}

#[test]
fn years_of_islamic_calendars_stay_as_given() {
    let found = &references("Title,Year,Volume\nTests,1399/05/17,3\n")[0];
    assert_eq!((found.year, found.date.as_deref()), (None, None));
    assert_eq!(found.extra["Year"], ["1399/05/17"]);
}

#[test]
fn character_references_in_json_are_decoded_once() {
    let crossref = r#"{"message":{"items":[{"title":["A &amp; B &amp;lt;"],"author":[{"given":"J&ouml;rg","family":"M&uuml;ller"}],
        "subject":["R &amp; D"],"DOI":"10.5555/a","type":"journal-article"}]}}"#;
    let found = &references(crossref)[0];
    assert_eq!((found.title.as_str(), found.authors[0].as_str()), ("A & B &lt;", "Müller, Jörg"));
    let other = r#"[{"title":"A &amp; B","authors":[{"name":"Pat O&#39;Neil"},{"name":"J. M&uuml;ller"}],"year":"2020","doi":"10.5555/a"}]"#;
    let found = &references(other)[0];
    assert_eq!(found.title, "A & B");
    assert_eq!(found.authors.len(), 2, "{:?}", found.authors);
    assert!(!found.authors.concat().contains('&'), "{:?}", found.authors);
}

#[test]
fn quotation_marks_inside_cells_need_no_escape() {
    let text = "Title,Authors,Year\n\"A \"new\" test\",\"Roe, Ann; Doe, Bob\",2020\nNaN,nan,nan\n";
    let (outcomes, _) = read(text.as_bytes()).unwrap();
    let [Outcome::Read(first), Outcome::Quarantined(_)] = outcomes.as_slice() else { panic!("{outcomes:?}") };
    assert_eq!((first.reference.title.as_str(), first.reference.year), ("A \"new\" test", Some(2020)));
    assert_eq!(first.reference.authors, ["Roe, Ann", "Doe, Bob"]);
}
