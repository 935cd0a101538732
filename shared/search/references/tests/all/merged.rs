//! Files that were merged from files of two or more formats.

use proptest::prelude::*;
use references::{Error, Format, Limits, Outcome};

use crate::{properties::limits, read, read_in_chunks};

/// The syntax of the files of a format.
pub(crate) struct Writer {
    pub(crate) format: &'static str,
    pub(crate) begin: &'static str,
    pub(crate) record: fn(&str, usize) -> String,
    pub(crate) between: &'static str,
    pub(crate) end: &'static str,
}

/// The writers of all formats.
pub(crate) const WRITERS: [Writer; 33] = [
    Writer {
        format: "RIS",
        begin: "",
        record: |title, _| format!("TY  - JOUR\nTI  - {title}\nAU  - Roe, A\nPY  - 2020\nER  - "),
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "nbib",
        begin: "",
        record: |title, n| format!("PMID- {n}\nOWN - NLM\nTI  - {title}\nFAU - Roe, Ann\nSO  - J. 2020."),
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "EndNote XML",
        begin: "<?xml version=\"1.0\" encoding=\"UTF-8\"?><xml><records>",
        record: |title, _| format!("<record><titles><title>{title}</title></titles></record>"),
        between: "",
        end: "</records></xml>",
    },
    Writer {
        format: "PubMed XML",
        begin: "<?xml version=\"1.0\" ?>\n<!DOCTYPE PubmedArticleSet PUBLIC \"-//NLM//DTD\" \"https://example.org/a.dtd\">\n<PubmedArticleSet>\n",
        record: |title, _| format!("<PubmedArticle><ArticleTitle>{title}</ArticleTitle></PubmedArticle>"),
        between: "\n",
        end: "\n</PubmedArticleSet>",
    },
    Writer {
        format: "EndNote text",
        begin: "",
        record: |title, _| {
            format!("Reference Type:  Journal Article\nAuthor: Roe, A\nYear: 2020\nTitle: {title}")
        },
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "BibTeX",
        begin: "",
        record: |title, n| format!("@article{{roe{n},\n  title = {{{title}}},\n  year = {{2020}}\n}}"),
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "Web of Science",
        begin: "FN Clarivate Analytics Web of Science\nVR 1.0\n",
        record: |title, _| format!("PT J\nAU Roe, A\nTI {title}\nPY 2020\nER"),
        between: "\n\n",
        end: "\n\nEF",
    },
    Writer {
        format: "CSV",
        begin: "Title,Authors,Year,DOI\n",
        record: |title, n| format!("{title},\"Roe, Ann\",2020,10.5555/{n}"),
        between: "\n",
        end: "",
    },
    Writer {
        format: "semicolons",
        begin: "Authors;Title;Year\n",
        record: |title, _| format!("Roe, Ann;{title};2020"),
        between: "\n",
        end: "",
    },
    Writer {
        format: "tabs",
        begin: "PT\tAU\tTI\tSO\tPY\n",
        record: |title, _| format!("J\tRoe, A\t{title}\tJ\t2020"),
        between: "\n",
        end: "",
    },
    Writer {
        format: "field rows",
        begin: "",
        record: |title, _| {
            format!("\"TITLE\",\"{title}\"\n\"AUTHOR NAMES\",\"Roe A.\"\n\"DOI\",\"10.5555/a\"")
        },
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "EndNote tagged",
        begin: "",
        record: |title, _| format!("%0 Journal Article\n%T {title}\n%A Roe, A\n%D 2020"),
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "RefWorks",
        begin: "",
        record: |title, _| format!("RT Journal Article\nA1 Roe,A.\nT1 {title}\nYR 2020"),
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "Ovid",
        begin: "",
        record: |title, n| format!("<{n}>\nTitle\n  {title}\nSource\n  J. 1(2):3, 2020."),
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "Cochrane",
        begin: "",
        record: |title, n| format!("Record #{n} of 9\nID: CN-1\nAU: Roe A\nTI: {title}\nYR: 2020"),
        between: "\n\n\n",
        end: "",
    },
    Writer {
        format: "ProQuest",
        begin: "",
        record: |title, n| {
            format!("Document {n} of 9\n\n{title}\n\nAuthor: Roe, A\n\nPublication year: 2020")
        },
        between: "\n\n____________________________________________________________\n\n",
        end: "",
    },
    Writer {
        format: "PubMed text",
        begin: "",
        record: |title, n| format!("{n}. J Asthma. 2020 Jan;1(2):3.\n\n{title}.\n\nRoe A.\n\nPMID: {n}"),
        between: "\n\n\n",
        end: "",
    },
    Writer {
        format: "CSL-JSON",
        begin: "[",
        record: |title, _| format!("{{\"id\": 1, \"type\": \"book\", \"title\": \"{title}\"}}"),
        between: ", ",
        end: "]",
    },
    Writer {
        format: "JSON",
        begin: "{\"status\":\"ok\",\"message\":{\"items\":[",
        record: |title, _| {
            format!("{{\"title\":[\"{title}\"],\"DOI\":\"10.5555/a\",\"type\":\"journal-article\"}}")
        },
        between: ",",
        end: "]}}",
    },
    Writer {
        format: "NoteExpress",
        begin: "",
        record: |title, _| {
            format!(
                "{{Reference Type}}: Journal Article\n{{Title}}: {title}\n{{Author}}: Roe\n{{Year}}: 2020"
            )
        },
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "CNKI",
        begin: "",
        record: |title, _| {
            format!("SrcDatabase-来源库: 期刊\nTitle-题名: {title}\nAuthor-作者: 张一;王二;\nYear-年: 2020")
        },
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "SinoMed",
        begin: "",
        record: |title, n| {
            format!(
                "【流水号】: {n}\n【标题】: {title}\n【作者】: 张一; 王二\n【出处】: 示例 2020; 1(2): 3-4"
            )
        },
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "SinoMed without brackets",
        begin: "",
        record: |title, n| {
            format!("流水号：{n}\n标题：{title}\n作者：张一; 王二\n出处：示例 2020; 1(2): 3-4")
        },
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "Engineering Village",
        begin: "",
        record: |title, n| {
            format!(
                "<RECORD {n}>\n\nAccession number:{n}\n\nTitle:{title}\n\nAuthors:Roe, Ann (1)\n\nVolume:1"
            )
        },
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "ICTRP",
        begin: "<?xml version='1.0' encoding='UTF-8' ?>\n<Trials_downloaded_from_ICTRP>\n",
        record: |title, n| {
            format!("<Trial><TrialID>X{n}</TrialID><Scientific_title>{title}\n</Scientific_title></Trial>")
        },
        between: "\n",
        end: "\n</Trials_downloaded_from_ICTRP>",
    },
    Writer {
        format: "ISRCTN",
        begin: "<allTrials xmlns=\"http://www.67bricks.com/isrctn\" totalCount=\"9\">\n",
        record: |title, n| {
            format!(
                "<fullTrial><trial><isrctn>1000000{n}</isrctn><trialDescription><title>{title}</title></trialDescription></trial></fullTrial>"
            )
        },
        between: "\n",
        end: "\n</allTrials>",
    },
    Writer {
        format: "EU CTR",
        begin: "",
        record: |title, n| {
            format!(
                "EudraCT Number:          2019-00123{n}-12\nSponsor Protocol Number: A-{n}\nFull Title:              {title}\n\
                 Population Age:          Adults\nGender:                  Male, Female"
            )
        },
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "EBSCO",
        begin: "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<records>\n",
        record: |title, n| {
            format!(
                "<rec resultID=\"{n}\"><header uiTerm=\"{n}\"><controlInfo><artinfo><tig><atl>{title}</atl></tig></artinfo>\
                 </controlInfo></header></rec>"
            )
        },
        between: "\n",
        end: "\n</records>",
    },
    Writer {
        format: "EBSCO tagged",
        begin: "",
        record: |title, n| format!("TI- {title}\nAU- Roe, Ann\nSO- J Tests\nYR- 2020\nAN- 2020-{n}-001"),
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "MODS",
        begin: "<?xml version=\"1.0\"?>\n<modsCollection>\n",
        record: |title, _| format!("<mods><titleInfo><title>{title}</title></titleInfo></mods>"),
        between: "\n",
        end: "\n</modsCollection>",
    },
    Writer {
        format: "Zotero RDF",
        begin: "<rdf:RDF xmlns:z=\"http://www.zotero.org/namespaces/export#\">\n",
        record: |title, n| {
            format!(
                "<bib:Article rdf:about=\"#{n}\"><z:itemType>journalArticle</z:itemType>\n<dc:title>{title}</dc:title></bib:Article>"
            )
        },
        between: "\n",
        end: "\n</rdf:RDF>",
    },
    Writer {
        format: "Europe PMC",
        begin: "<?xml version=\"1.0\"?><responseWrapper><resultList>",
        record: |title, _| format!("<result><title>{title}</title></result>"),
        between: "",
        end: "</resultList></responseWrapper>",
    },
    Writer {
        format: "JATS",
        begin: "<?xml version=\"1.0\"?><pmc-articleset>",
        record: |title, _| {
            format!(
                "<article><front><article-meta><title-group><article-title>{title}</article-title></title-group>\
                 </article-meta></front></article>"
            )
        },
        between: "",
        end: "</pmc-articleset>",
    },
];

/// A file with this number of records, and their titles.
pub(crate) fn file(writer: &Writer, part: usize, records: usize) -> (String, Vec<String>) {
    let titles: Vec<String> = (1..=records).map(|n| format!("Trial {part} {n} of nurses")).collect();
    let records: Vec<String> =
        titles.iter().enumerate().map(|(at, title)| (writer.record)(title, at + 1)).collect();
    ([writer.begin, &records.join(writer.between), writer.end].concat(), titles)
}

/// The titles of the records that were read, and the reasons for those that were not.
pub(crate) fn titles(text: &str, chunk: usize) -> Vec<String> {
    let (outcomes, report) = match read_in_chunks(text.as_bytes(), chunk, limits()) {
        Ok(read) => read,
        Err(error) => return vec![format!("refused: {error}")],
    };
    if report.skipped.is_some() {
        return vec![format!("skipped {:?}", report.skipped)];
    }
    let title = |outcome| match outcome {
        Outcome::Read(record) => record.reference.title.trim_end_matches('.').to_owned(),
        Outcome::Quarantined(quarantine) => format!("quarantined: {}", quarantine.reason),
    };
    outcomes.into_iter().map(title).collect()
}

pub(crate) const SEPARATORS: [&str; 5] = ["", "\n", "\n\n", "\r\n", "\u{feff}"];

#[test]
fn two_merged_files_are_read_completely() {
    let mut wrong = Vec::new();
    for (first, second) in WRITERS.iter().flat_map(|first| WRITERS.iter().map(move |second| (first, second)))
    {
        let ((one, mut wanted), (two, more)) = (file(first, 1, 2), file(second, 2, 2));
        wanted.extend(more);
        for separator in SEPARATORS {
            let found = titles(&[one.as_str(), separator, &two].concat(), usize::MAX);
            if found != wanted {
                wrong.push(format!(
                    "{} and {} joined by {separator:?}: {found:?}",
                    first.format, second.format
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn many_merged_files_are_read_in_any_chunking(
        parts in prop::collection::vec((0..WRITERS.len(), 1_usize..5), 1..5),
        separator in prop::sample::select(SEPARATORS.as_slice()),
        chunk in 1_usize..200,
    ) {
        let files: Vec<_> =
            parts.iter().enumerate().map(|(at, (writer, records))| file(&WRITERS[*writer], at, *records)).collect();
        let texts: Vec<&str> = files.iter().map(|(text, _)| text.as_str()).collect();
        let wanted: Vec<String> = files.iter().flat_map(|(_, titles)| titles.clone()).collect();
        prop_assert_eq!(titles(&texts.join(separator), chunk), wanted);
    }
}

/// The formats whose records begin at a line that may be missing.
const TAGGED: [&str; 14] = [
    "RIS",
    "nbib",
    "EndNote text",
    "Web of Science",
    "EndNote tagged",
    "RefWorks",
    "Ovid",
    "Cochrane",
    "NoteExpress",
    "CNKI",
    "SinoMed",
    "SinoMed without brackets",
    "Engineering Village",
    "ProQuest",
];

#[test]
fn record_without_first_line_is_read() {
    let mut wrong = Vec::new();
    for writer in WRITERS.iter().filter(|writer| TAGGED.contains(&writer.format)) {
        let (_, wanted) = file(writer, 1, 3);
        let records = wanted.iter().enumerate().map(|(at, title)| {
            // A record without its last line too, which some formats do not have.
            let record = (writer.record)(title, at + 1);
            let record =
                record.strip_suffix("\nER  - ").or_else(|| record.strip_suffix("\nER")).unwrap_or(&record);
            if at == 1 { record.split_once('\n').unwrap().1.to_owned() } else { record.to_owned() }
        });
        let text = [writer.begin, &records.collect::<Vec<_>>().join(writer.between), writer.end].concat();
        for text in [text.replace('\n', "\r\n"), text] {
            for chunk in [1, 7, usize::MAX] {
                let found = titles(&text, chunk);
                if found != wanted {
                    wrong.push(format!("{}, {chunk}: {found:?}", writer.format));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns the text of the first file, cut off `cut` bytes after the beginning of its first record, and the titles of
/// the records that are complete.
fn cut_file(writer: &Writer, cut: usize) -> (Vec<u8>, Vec<String>) {
    let (text, titles) = file(writer, 1, 2);
    let cut = writer.begin.len() + 1 + cut % (text.len() - writer.begin.len());
    let mut end = writer.begin.len();
    let mut is_complete = |title: &String| {
        let at = titles.iter().position(|other| other == title).unwrap();
        end += (writer.record)(title, at + 1).len() + if at > 0 { writer.between.len() } else { 0 };
        end <= cut
    };
    let complete = titles.iter().take_while(|title| is_complete(title)).cloned().collect();
    (text.as_bytes()[..cut].to_vec(), complete)
}

/// Checks the records that are read if a file was cut off before another file: all records of the second file, and all
/// but the last record of the first.
fn check_cut(first: &Writer, second: &Writer, cut: usize, chunk: usize) -> Result<(), String> {
    let (one, complete) = cut_file(first, cut);
    let (two, more) = file(second, 2, 2);
    let text = [one.as_slice(), b"\n", two.as_bytes()].concat();
    let names = format!("{} cut after {} bytes and {}, {chunk}", first.format, one.len(), second.format);
    let (outcomes, _) =
        read_in_chunks(&text, chunk, limits()).map_err(|error| format!("{names}: {error}"))?;
    let title = |outcome: &Outcome| match outcome {
        Outcome::Read(record) => record.reference.title.trim_end_matches('.').to_owned(),
        Outcome::Quarantined(quarantine) => format!("quarantined: {}", quarantine.reason),
    };
    let titles: Vec<String> = outcomes.iter().map(title).collect();
    let is_right = titles.starts_with(&complete)
        && titles.ends_with(&more)
        && titles.len() >= complete.len() + more.len()
        // The format of a file may be misinterpreted without a complete record.
        && titles.len() <= complete.len() + more.len() + if complete.is_empty() { 2 } else { 1 };
    if is_right { Ok(()) } else { Err(format!("{names}: {titles:?}")) }
}

/// A list that ends after a comma may continue with any object, a value of EndNote's text after a blank line, and a title
/// of EBSCOhost with its translation.
fn is_ambiguous(first: &Writer, second: &Writer, cut: usize) -> bool {
    let (one, _) = cut_file(first, cut);
    let last_line = one.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    if first.format == "EndNote text" && b"Reference Type:".starts_with(last_line) {
        return true;
    }
    let is_title = last_line.starts_with(b"TI- ") || last_line.len() < 3;
    if first.format == "EBSCO tagged" && second.format == first.format && is_title {
        return true;
    }
    first.begin.ends_with('[') && second.begin.starts_with('{') && one.trim_ascii_end().ends_with(b",")
}

#[test]
fn records_after_truncated_file_are_read() {
    let mut wrong = Vec::new();
    for (first, second) in WRITERS.iter().flat_map(|first| WRITERS.iter().map(move |second| (first, second)))
    {
        let length = file(first, 1, 2).0.len() - first.begin.len();
        for cut in (0..length).step_by(3).filter(|cut| !is_ambiguous(first, second, *cut)) {
            wrong.extend(check_cut(first, second, cut, usize::MAX).err());
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn files_are_truncated_at_any_byte(
        (first, second) in (0..WRITERS.len(), 0..WRITERS.len()),
        cut in 0_usize..1000,
        chunk in 1_usize..200,
    ) {
        let (first, second) = (&WRITERS[first], &WRITERS[second]);
        prop_assume!(!is_ambiguous(first, second, cut));
        prop_assert_eq!(check_cut(first, second, cut, chunk), Ok(()));
    }
}

/// The rest of the file does not have to fit in a record.
#[test]
fn long_file_after_truncated_record_is_read() {
    let limits = Limits { max_record_bytes: 4_000, ..Limits::default() };
    let (ris, titles) = file(&WRITERS[0], 2, 500);
    for first in ["EndNote XML", "CSV", "BibTeX", "CSL-JSON"] {
        let writer = WRITERS.iter().find(|writer| writer.format == first).unwrap();
        let (one, _) = file(writer, 1, 2);
        let cut = one.rfind(if first == "CSV" { "Ann" } else { "nurses" }).unwrap();
        for chunk in [100, 5_000, usize::MAX] {
            let (outcomes, _) =
                read_in_chunks(format!("{}\n{ris}", &one[..cut]).as_bytes(), chunk, limits).unwrap();
            assert_eq!(outcomes.len(), 2 + titles.len(), "{first}, {chunk}");
        }
        let large = format!("{}{}", &one[..cut], "x".repeat(5_000));
        assert!(read_in_chunks(large.as_bytes(), 100, limits).is_err(), "nothing follows");
    }
}

/// For each of these parts, the rest of the file may be read again.
#[test]
fn number_of_truncated_files_is_bounded() {
    let parts: Vec<String> = (0..200)
        .map(|part| {
            let (document, _) = file(&WRITERS[if part % 2 == 0 { 2 } else { 16 }], part, 2);
            document[..document.rfind("nurses").unwrap()].to_owned()
        })
        .collect();
    let (outcomes, report) = read(parts.join("\n").as_bytes()).unwrap();
    assert!(outcomes.len() > 30 && report.quarantined >= 15, "{} of {}", report.quarantined, outcomes.len());
}

#[test]
fn web_page_in_a_merged_file_is_quarantined() {
    let page = "<!DOCTYPE html>\n<html><head><script>\n{\"title\": \"x\"}\n</script></head>\n<body>\nLog in</body></html>";
    let rdf = "<?xml version=\"1.0\"?>\n<rdf:RDF xmlns:rdf=\"https://example.org/\"><a>Log in</a></rdf:RDF>";
    for (first, second) in WRITERS.iter().flat_map(|first| WRITERS.iter().map(move |second| (first, second)))
    {
        let ((one, wanted), (two, more)) = (file(first, 1, 2), file(second, 2, 2));
        for (between, reason) in
            [(page, "this part is a web page (HTML)"), (rdf, "this part is in a format that is not read")]
        {
            let wanted = [&wanted[..], &[format!("quarantined: {reason}")], &more].concat();
            for chunk in [1, usize::MAX] {
                let found = titles(&[&one, "\n", between, "\n", &two].concat(), chunk);
                assert_eq!(found, wanted, "{} and {}, {chunk}", first.format, second.format);
            }
        }
    }
}

#[test]
fn format_changes_are_ignored_inside_of_values() {
    for text in [
        "Title,Abstract,DOI\n\"a\",\"b\nTY  - JOUR\nc\",10.5555/a\n",
        "@article{a, title = {b},\nabstract = {c\n%A d\nRT Journal Article\n}}",
        "TY  - JOUR\nTI  - a\nAB  - we read title, abstract, authors\nand keywords, see TY  - B\nER  - \n",
        "<xml><records><record><titles><title>a\nPT J\nTY  - JOUR\n</title></titles></record></records></xml>",
        "PMID- 1\nTI  - One. PMID- 7\nAB  - a @article{x, title={b\n",
        "TY  - JOUR\nTI  - a\nAB  - Cite it as \"@article{k, title={A}, year=2020}\"\nER  - \n",
        "PMID- 1\nTI  - a\nAB  - The entry @article{k, title={A}, year=2020}\n",
        "PMID- 1\nTI  - a\nAB  - The entry:@article{k, title={A}, year=2020}\n      is valid.\nSO  - J. 2020.\n",
        "PMID- 1\nTI  - a\nAB  - The page had:<article class=\"a\"><p>One</p>\n      and<records> of it.\n",
        "TY  - JOUR\nTI  - a\nAB  - It begins with (TY  - JOUR) or TY-JOUR, and PMC - PMC12.\nER  - \n",
        "PMID- 1\nTI  - a\nAB  - We searched\n      author,title,abstract,keywords,year\n      and more, as above.\n",
        "TY  - JOUR\nTI  - a\nAB  - Fields: title,abstract,keywords,year,authors\nKW  - b, c\nER  - \n",
        "Title;Cite as;Year\na;@article{k, title={A}};2020\n",
        "Year;Title;BibTeX\n2020;a;@article{k, title={A}}\n",
        "TY  - JOUR\nTI  - a\nAB  - 1. We wrote to <someone@example.org>.\n1. J. 2020 is no journal\nER  - \n",
    ] {
        let (outcomes, report) = read(text.as_bytes()).unwrap();
        assert_eq!((outcomes.len(), report.quarantined), (1, 0), "{text}");
    }
}

#[test]
fn files_in_utf16_and_other_encodings_are_refused() {
    let ris =
        |title: &str| format!("TY  - JOUR\nTI  - {title}\nAU  - Roe, Ann\nPY  - 2020\nER  - \n\n").repeat(2);
    let utf16: Vec<u8> =
        format!("\u{feff}{}", ris("Zwölf")).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let long = ris("Drei").repeat(2_000);
    for file in [
        [ris("Eins").as_bytes(), &utf16].concat(),
        [&utf16, ris("Eins").as_bytes()].concat(),
        [long.as_bytes(), &utf16].concat(),
        [utf16.repeat(1_000).as_slice(), long.as_bytes()].concat(),
    ] {
        for chunk in [7, 8192] {
            let error = read_in_chunks(&file, chunk, Limits::default()).unwrap_err();
            assert_eq!(error, Error::JoinedEncodings);
        }
    }
}

#[test]
fn report_names_the_formats_of_all_parts() {
    let file = "TY  - JOUR\nTI  - a\nER  - \n\nPMID- 7\nTI  - b\n\nTY  - JOUR\nTI  - c\nER  - \n\nPMID- 8\nTI  - d\n\n";
    for part in [file, &file[..file.rfind("PMID").unwrap()]] {
        let (outcomes, report) = read(part.as_bytes()).unwrap();
        assert!(outcomes.len() >= 3);
        let others = match report.format {
            Format::Nbib => [Format::Ris],
            Format::Ris => [Format::Nbib],
            other => panic!("{other}"),
        };
        assert_eq!(report.other_formats, others);
    }
    let (_, report) = read(b"TY  - JOUR\nTI  - a\nER  - \n").unwrap();
    assert_eq!(report.other_formats, []);
}

#[test]
fn end_tag_followed_by_text_ends_record() {
    let text = "TY  - JOUR\nTI  - a\nER  - TY  - JOUR\nTI  - b\nER  - 12\nTY  - JOUR\nTI  - c\nER  -\n";
    let (outcomes, report) = read(text.as_bytes()).unwrap();
    assert_eq!((outcomes.len(), report.format), (3, Format::Ris));
}

#[test]
fn broken_part_is_quarantined_others_are_read() {
    let ris = |title: &str| format!("TY  - JOUR\nTI  - {title}\nER  - \n\n");
    let broken = "<?xml version=\"1.0\"?>\n<xml><records><record><titles><title>b</title></titles></record></wrong></xml>\n";
    let nbib = "PMID- 7\nTI  - c\n\n";
    for file in [
        format!("{}{broken}{nbib}", ris("a")),
        format!("{broken}{}{nbib}", ris("a")),
        format!("{}{nbib}{broken}", ris("a")),
        format!("{}{nbib}{}", ris("a"), &broken[..70]),
    ] {
        for chunk in [1, 7, 8192] {
            let (outcomes, _) = read_in_chunks(file.as_bytes(), chunk, Limits::default()).unwrap();
            let (mut titles, mut reasons) = (Vec::new(), Vec::new());
            for outcome in outcomes {
                match outcome {
                    Outcome::Read(record) => titles.push(record.reference.title),
                    Outcome::Quarantined(quarantine) => reasons.push(quarantine.reason),
                }
            }
            assert!(
                titles.iter().any(|title| title == "a") && titles.iter().any(|title| title == "c"),
                "{file}"
            );
            assert_eq!(reasons.len(), 1, "{file}: {titles:?} {reasons:?}");
        }
    }
    // A file of one format is still rejected.
    assert!(read(broken.as_bytes()).is_err());
}

#[test]
fn ovid_without_brackets_is_merged() {
    let ovid = "1.\nTitle\n  Second\nAuthors\n  Roe A\n\n2.\nTitle\n  Third\n";
    for first in ["TY  - JOUR\nTI  - First\nER  - \n", "<1>\nTitle\n  First\n\n", "PMID- 1\nTI  - First\n"] {
        let titles: Vec<String> =
            crate::references(&[first, ovid].concat()).into_iter().map(|found| found.title).collect();
        assert_eq!(titles, ["First", "Second", "Third"], "{first}");
    }
}
