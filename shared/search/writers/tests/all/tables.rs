//! Tables: their headers, and cells that a spreadsheet would evaluate.

use references::Reference;
use writers::Format;

use crate::fields::full;
use crate::text;

fn header(format: Format) -> String {
    text(format, &[]).trim_end().to_owned()
}

/// The header of Rayyan's own exports, in the order that it imports.
#[test]
fn rayyan_columns_match_its_exports() {
    assert_eq!(
        header(Format::Rayyan),
        "key,title,year,month,day,journal,issn,volume,issue,pages,authors,url,language,publisher,location,abstract,\
         notes,doi,keywords,pubmed_id,pmc_id"
    );
    let file = text(Format::Rayyan, &[full()]);
    assert!(file.contains(",2018,5,17,Journal of Tests,1234-5678,12,3 Suppl 1,123-9,"), "{file}");
    assert!(
        file.contains("\"van der Berg, Anna B. and Smith, John, Jr. and World Health Organization\""),
        "{file}"
    );
}

#[test]
fn asreview_columns_have_expected_names() {
    let header = header(Format::Asreview);
    for column in ["title", "abstract", "keywords", "authors", "doi", "url"] {
        assert!(header.split(',').any(|name| name == column), "{header}");
    }
}

#[test]
fn formula_cells_are_guarded_in_tables_for_people() {
    for begin in ["=1+1", "+1", "-1", "@SUM(A1)", "＝1"] {
        let reference = Reference { title: begin.to_owned(), ..Reference::default() };
        let file = text(Format::Csv, std::slice::from_ref(&reference));
        assert!(file.contains(&format!(",'{begin},")), "{file}");
        for format in [Format::Rayyan, Format::Asreview] {
            let file = text(format, std::slice::from_ref(&reference));
            assert!(file.contains(&format!(",{begin},")), "{format}: {file}");
        }
    }
    for (title, guarded) in [
        ("x;=cmd|' /C calc'!A0", "x;'=cmd|' /C calc'!A0"),
        ("x; \"=1", "x;' \"\"=1"),
        ("a|@b;-1;c", "a|'@b;'-1;c"),
        (";＝1", ";'＝1"),
    ] {
        let reference = Reference { title: title.to_owned(), ..Reference::default() };
        let file = text(Format::Csv, std::slice::from_ref(&reference));
        assert!(file.contains(guarded), "a cell after another locale's separator: {file}");
    }
    let plain = Reference { title: "a; b, -1 | c-d; \"e\"".to_owned(), ..Reference::default() };
    let file = text(Format::Csv, &[plain]);
    assert!(
        file.contains("\"a; b, -1 | c-d; \"\"e\"\"\""),
        "text that does not begin a formula stays: {file}"
    );
    let spaced = Reference { title: "\t =1".to_owned(), ..Reference::default() };
    assert!(text(Format::Csv, &[spaced]).contains(",'=1,"), "leading white space does not protect");
}

/// The beginnings of the fields that a spreadsheet would create if it split a line at `separator` even inside quotes.
fn beginnings(line: &str, separator: char) -> impl Iterator<Item = &str> {
    let is_skipped = |c: char| c.is_whitespace() || matches!(c, '"' | '\u{200b}' | '\u{200e}' | '\u{2060}');
    line.split(separator).map(move |field| field.trim_start_matches(is_skipped))
}

#[test]
fn formula_stays_guarded_under_any_separator() {
    let formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "＝1", "＋1", "－1", "＠A1"];
    let separators = [';', '\t', '|', '\n', '\r', '；', '｜', '؛'];
    let betweens = ["", " ", "\u{a0}", "\"", " \"\"", "\u{1}", "\u{200b}", "\u{200e}\u{2060}", "\u{feff}"];
    for formula in formulas {
        for (separator, between) in separators.iter().flat_map(|one| betweens.map(|between| (one, between))) {
            let hostile = format!("x{separator}{between}{formula}");
            let reference = Reference {
                title: hostile.clone(),
                authors: vec![hostile.clone(), formula.to_owned()],
                keywords: vec![hostile.clone(), formula.to_owned()],
                r#abstract: Some(format!("{between}{formula}; {formula}")),
                journal: Some(hostile.clone()),
                ..Reference::default()
            };
            let file = text(Format::Csv, &[reference]);
            for separator in separators {
                for field in file.lines().skip(1).flat_map(|line| beginnings(line, separator)) {
                    let is_formula = formulas.iter().any(|formula| field.starts_with(formula));
                    assert!(!is_formula, "{hostile:?} split at {separator:?}: {field:?}");
                }
            }
        }
    }
}

#[test]
fn sign_inside_a_sentence_is_not_guarded() {
    let title = "Anti-TNF + steroids = remission; p < 0.05 | n=12 (a@b.example)";
    let reference = Reference { title: title.to_owned(), ..Reference::default() };
    assert!(text(Format::Csv, &[reference]).contains(title));
}
