//! Merged files in which a format has another form: on one line, or without its usual first line.
//!
//! The last line of a file may lack its line break. The next file then begins in the middle of this line, and its whole
//! first record may be there.

use crate::merged::{SEPARATORS, WRITERS, Writer, file, titles};

/// Other forms of the formats.
const FORMS: [Writer; 25] = [
    Writer {
        format: "BibTeX on one line",
        begin: "",
        record: |title, n| {
            let text = "{\\textit{In vitro}} studies of {DNA} in nurses. ".repeat(8);
            format!(
                "@article{{roe{n}, author = {{Roe, Ann}}, title = {{{title}}}, abstract = {{{text}}}, year = {{2020}}}}"
            )
        },
        between: "\n",
        end: "",
    },
    Writer {
        format: "BibTeX, all entries on one line",
        begin: "",
        record: |title, n| format!("@article{{roe{n},title=\"{title}\",year=2020}}"),
        between: " ",
        end: "",
    },
    Writer {
        format: "BibTeX in parentheses",
        begin: "",
        record: |title, n| format!("@book(roe{n}, title = {{{title}}}, year = 2020)"),
        between: "\n",
        end: "",
    },
    Writer {
        format: "RIS of one record with a number",
        begin: "1.\n",
        record: |title, _| format!("TY  - JOUR\r\nT1  - {title}\r\nA1  - Roe, A\r\nER  - "),
        between: "\r\n\r\n",
        end: "\r\n",
    },
    Writer {
        format: "nbib of PubMed Central",
        begin: "",
        record: |title, n| format!("PMC - PMC123{n}\nPMID- {n}\nTI  - {title}\nSO  - J. 2020."),
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "nbib of ERIC",
        begin: "",
        record: |title, _| format!("OWN - ERIC\nTI  - {title}\nAU  - Roe, Ann\nDP  - 2020"),
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "MEDLARS of Ovid",
        begin: "",
        record: |title, n| format!("<{n}. >\nVN  - Ovid Technologies\nUI  - {n}\nTI  - {title}\nAU  - Roe A"),
        between: "\n\n",
        end: "",
    },
    Writer {
        format: "EndNote XML without prolog",
        begin: "<xml><records>",
        record: |title, _| format!("<record><titles><title>{title}</title></titles></record>"),
        between: "",
        end: "</records></xml>",
    },
    Writer {
        format: "PubMed XML without prolog",
        begin: "<PubmedArticleSet>",
        record: |title, n| {
            format!("<PubmedArticle><PMID>{n}</PMID><ArticleTitle>{title}</ArticleTitle></PubmedArticle>")
        },
        between: "",
        end: "</PubmedArticleSet>",
    },
    Writer {
        format: "EBSCO XML without prolog",
        begin: "<records>",
        record: |title, n| {
            format!("<rec resultID=\"{n}\"><header><tig><atl>{title}</atl></tig></header></rec>")
        },
        between: "",
        end: "</records>",
    },
    Writer {
        format: "MODS without prolog",
        begin: "<modsCollection xmlns=\"http://www.loc.gov/mods/v3\">",
        record: |title, _| format!("<mods><titleInfo><title>{title}</title></titleInfo></mods>"),
        between: "",
        end: "</modsCollection>",
    },
    Writer {
        format: "Europe PMC without prolog",
        begin: "<responseWrapper><resultList>",
        record: |title, _| format!("<result><title>{title}</title></result>"),
        between: "",
        end: "</resultList></responseWrapper>",
    },
    Writer {
        format: "JATS without prolog",
        begin: "<pmc-articleset>",
        record: |title, _| {
            format!(
                "<article><front><article-meta><title-group><article-title>{title}</article-title></title-group>\
                 </article-meta></front></article>"
            )
        },
        between: "",
        end: "</pmc-articleset>",
    },
    Writer {
        format: "ICTRP without prolog",
        begin: "<Trials_downloaded_from_ICTRP>",
        record: |title, n| {
            format!("<Trial><TrialID>X{n}</TrialID><Scientific_title>{title}</Scientific_title></Trial>")
        },
        between: "",
        end: "</Trials_downloaded_from_ICTRP>",
    },
    Writer {
        format: "indented CSL-JSON",
        begin: "[\n",
        record: |title, n| {
            format!("  {{\n    \"id\": \"{n}\",\n    \"type\": \"book\",\n    \"title\": \"{title}\"\n  }}")
        },
        between: ",\n",
        end: "\n]",
    },
    Writer {
        format: "indented JSON",
        begin: "{\n  \"meta\": {\"count\": 2},\n  \"results\": [\n",
        record: |title, n| {
            format!(
                "    {{\n      \"id\": \"https://openalex.org/W{n}\",\n      \"display_name\": \"{title}\",\n      \"ids\": {{}}\n    }}"
            )
        },
        between: ",\n",
        end: "\n  ]\n}",
    },
    Writer {
        format: "spaced JSON",
        begin: "{ \"results\" : [ ",
        record: |title, n| format!("{{ \"id\" : \"W{n}\", \"display_name\" : \"{title}\", \"ids\" : {{}} }}"),
        between: " , ",
        end: " ] }",
    },
    Writer {
        format: "JSON lines",
        begin: "",
        record: |title, n| format!("{{\"paperId\": \"a{n}\", \"title\": \"{title}\", \"year\": 2020}}"),
        between: "\n",
        end: "",
    },
    Writer {
        format: "quoted CSV",
        begin: "\u{feff}\"Authors\",\"Title\",\"Year\",\"Source title\",\"DOI\"\n",
        record: |title, n| format!("\"Roe A.\",\"{title}\",\"2020\",\"J Tests\",\"10.5555/{n}\""),
        between: "\r\n",
        end: "\r\n",
    },
    Writer {
        format: "CSV with a separator line",
        begin: "sep=;\nTitle;Authors;Year\n",
        record: |title, _| format!("{title};Roe A;2020"),
        between: "\n",
        end: "\n",
    },
    Writer {
        format: "CSV of a register",
        begin: "TrialID|Public title|Scientific title|Date registration|web address\n",
        record: |title, n| format!("NCT0000000{n}|{title}|{title}|2020-01-02|https://example.org/{n}"),
        between: "\n",
        end: "\n",
    },
    Writer {
        format: "CSV in lower case",
        begin: "pmid,title,authors,journal,year,doi\n",
        record: |title, n| format!("{n},{title},Roe A,J Tests,2020,10.5555/{n}"),
        between: "\n",
        end: "",
    },
    Writer {
        format: "Web of Science without a header",
        begin: "",
        record: |title, _| format!("PT J\nAU Roe, A\nTI {title}\nPY 2020\nER"),
        between: "\n\n",
        end: "\n",
    },
    Writer {
        format: "loose RIS",
        begin: "",
        record: |title, _| format!("TY-JOUR\nTI-{title}\nAU-Roe, A\nPY-2020\nER-"),
        between: "\n\n",
        end: "\n",
    },
    Writer {
        format: "RIS with tabs",
        begin: "",
        record: |title, _| format!("TY\t-\tJOUR\nTI\t-\t{title}\nAU\t-\tRoe, A\nER\t-"),
        between: "\n",
        end: "",
    },
];

fn all() -> impl Iterator<Item = &'static Writer> {
    FORMS.iter().chain(&WRITERS)
}

#[test]
fn other_forms_are_read_at_any_join() {
    let mut wrong = Vec::new();
    for (first, second) in all().flat_map(|first| all().map(move |second| (first, second))) {
        let ((one, mut wanted), (two, more)) = (file(first, 1, 2), file(second, 2, 2));
        let (three, last) = file(first, 3, 2);
        wanted.extend(more);
        let wanted_of_three = [&wanted[..], &last].concat();
        for separator in
            SEPARATORS.into_iter().filter(|mark| mark.is_empty() || !second.begin.starts_with(mark))
        {
            let found = titles(&[one.as_str(), separator, &two].concat(), usize::MAX);
            if found != wanted {
                wrong.push(format!(
                    "{} and {} joined by {separator:?}: {found:?}",
                    first.format, second.format
                ));
            }
            let found = titles(&[one.as_str(), separator, &two, "\n", &three].concat(), usize::MAX);
            if found != wanted_of_three {
                wrong.push(format!(
                    "{}, {} and the first, joined by {separator:?}: {found:?}",
                    first.format, second.format
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A whole document or BibTeX file on one line may be longer than the lines that are inspected otherwise.
#[test]
fn long_line_is_read_at_any_join() {
    const FIRST: [&str; 8] =
        ["RIS", "nbib", "CSV", "BibTeX on one line", "JSON lines", "EndNote XML", "Ovid", "CNKI"];
    let mut wrong = Vec::new();
    let is_on_one_line = |writer: &&Writer| !file(writer, 1, 2).0.contains('\n');
    let firsts = all().filter(|writer| FIRST.contains(&writer.format));
    for (first, second) in
        firsts.flat_map(|first| all().filter(is_on_one_line).map(move |second| (first, second)))
    {
        let ((one, mut wanted), (two, more)) = (file(first, 1, 2), file(second, 2, 1_500));
        let (three, last) = file(first, 3, 2);
        wanted.extend([more, last].concat());
        for separator in ["", "\n"] {
            let found = titles(&[one.as_str(), separator, &two, "\n", &three].concat(), usize::MAX);
            if found != wanted {
                wrong.push(format!(
                    "{} and {} joined by {separator:?}: {:?}",
                    first.format,
                    second.format,
                    &found[..found.len().min(4)]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The header of a table joined to the last row of another one with the same delimiter.
#[test]
fn header_behind_last_row_is_found() {
    const ROWS: [&str; 5] = [
        "Title,Year,DOI\nOne,2020,10.5555/a",
        "\"Title\",\"Year\",\"Notes\"\n\"One\",\"2020\",\"a \"\"b\"\"\"",
        "Title,Year,Notes\nOne,2020,",
        "Key,Title,Year,Extra\n1,One,2020,PMID: 30000001",
        "Title,Year,Language\nOne,2020,NO",
    ];
    const HEADERS: [&str; 7] = [
        "Title,Authors,Year,DOI",
        "\"\",\"title\",\"authors\",\"year\"",
        "\"Refid\",\"Author\",\"Title\",\"Abstract\",\"Year\"",
        "Key,Item Type,Title,Author,Year",
        "record_id,title,abstract,authors,year",
        "pmid,title,authors,journal,year",
        "(internal) id,pubmed id,keywords,abstract,title,authors",
    ];
    for (first, header) in ROWS.into_iter().flat_map(|first| HEADERS.map(|header| (first, header))) {
        let cell = |name: &str| if name.to_lowercase().trim_matches('"') == "title" { "Two" } else { "7" };
        let row: Vec<&str> = header.split(',').map(cell).collect();
        let found = titles(&format!("{first}{header}\n{}\n", row.join(",")), usize::MAX);
        assert_eq!(found, ["One", "Two"], "{first}{header}");
    }
}

#[test]
fn file_behind_an_empty_cell_is_found() {
    let table = "Title,Year,Notes\nOne,2020,";
    for next in [
        "@article{k, title={Two}}\n@article{l, title={Two}}\n",
        "@article{k,\n  title={Two}\n}\n@article{l, title={Two}}\n",
        "TY  - JOUR\nTI  - Two\nER  - \nTY  - JOUR\nTI  - Two\nER  - \n",
    ] {
        assert_eq!(titles(&format!("{table}{next}"), usize::MAX), ["One", "Two", "Two"], "{next}");
    }
    for remark in ["\"About the data: exported today. Criteria: x.\"", "% Encoding: UTF-8"] {
        let text = format!("{table}\n{remark}\nRank,Title,DOI,Year\n1,Two,10.5555/a,2020\n");
        let (outcomes, _) = crate::read(text.as_bytes()).unwrap();
        assert_eq!(outcomes.len(), 2, "{remark}");
    }
}

#[test]
fn byte_order_mark_in_a_line_begins_a_file() {
    let german = "\u{feff}Autor;Titel;Jahr;Zeitschrift\nRoe, A;Two;2020;J Tests\n";
    for first in [
        "PMID- 1\nTI  - One\nSO  - J. 2020 May;1(2):3-4.",
        "Title,Year,DOI\nOne,2020,10.5555/a",
        "TY  - JOUR\nTI  - One\nER  - ",
    ] {
        assert_eq!(titles(&format!("{first}{german}"), usize::MAX), ["One", "Two"], "{first}");
    }
    let comma = "Autor;Titel;Jahr;PMID\nRoe, A;One;2020;30000001Article ID,Status,Title,Journal,Authors\n1,a,Two,J,Roe A\n";
    assert_eq!(titles(comma, usize::MAX), ["One", "Two"]);
    let fields = "\"Rank\",\"NCTId\",\"Condition\",\"BriefTitle\"\n\"1\",\"NCT00000001\",\"A|B\",\"Two\"\n";
    assert_eq!(titles(&format!("TY  - JOUR\nTI  - One\nER  - \n{fields}"), usize::MAX), ["One", "Two"]);
}
