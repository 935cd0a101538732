//! Workbooks: a ZIP archive of XML files in which every cell is text.

use std::io::{Cursor, Read};

use references::Reference;
use writers::{Format, MAX_CELL_UNITS};

use crate::hostile::{HOSTILE, all_of};
use crate::written;

/// The first sheet of a workbook.
fn sheet(studies: &[Reference]) -> String {
    let mut archive = zip::ZipArchive::new(Cursor::new(written(Format::Xlsx, studies))).unwrap();
    let mut sheet = String::new();
    archive.by_name("xl/worksheets/sheet1.xml").unwrap().read_to_string(&mut sheet).unwrap();
    sheet
}

/// The cells of each row, as Excel reads them.
fn rows(sheet: &str) -> Vec<Vec<String>> {
    let rows = sheet.split("<row>").skip(1);
    let cells = |row: &str| {
        let cells = row.split("<c ").skip(1).map(|cell| {
            let text = cell.split_once("preserve\">").map_or("", |(_, text)| text.split('<').next().unwrap());
            assert!(cell.starts_with("s=\"1\" t=\"inlineStr\"") || cell.starts_with("s=\"1\"/>"), "{cell}");
            let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
            text.replace("_x005F_", "_")
        });
        cells.collect()
    };
    rows.map(cells).collect()
}

#[test]
fn every_workbook_cell_is_text() {
    for hostile in HOSTILE {
        let rows = rows(&sheet(&[all_of(hostile), all_of("After")]));
        assert_eq!(rows.len(), 3, "{hostile:?}");
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{hostile:?}");
        let expected: String = hostile
            .chars()
            .filter(|c| c.is_whitespace() || !c.is_control() && !"\u{feff}\u{fffe}\u{ffff}".contains(*c))
            .collect();
        assert_eq!(rows[1][1], expected.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(rows[2][1], "After");
    }
}

#[test]
fn workbook_keeps_paragraphs_and_truncates_long_cells() {
    let study = |text: &str| Reference {
        title: "_x000D_".to_owned(),
        r#abstract: Some(text.to_owned()),
        ..Reference::default()
    };
    let rows = rows(&sheet(&[study("One.\nTwo."), study(&"é".repeat(40_000))]));
    let column = rows[0].iter().position(|name| name == "abstract").unwrap();
    assert_eq!((rows[1][1].as_str(), rows[1][column].as_str()), ("_x000D_", "One.\nTwo."));
    let cut = &rows[2][column];
    assert!(cut.ends_with(" […]") && cut.chars().count() == MAX_CELL_UNITS, "{}", cut.chars().count());
}

/// Programs identify a workbook by the first part of the archive.
#[test]
fn workbook_begins_with_content_types() {
    let file = written(Format::Xlsx, &[]);
    assert_eq!(&file[30..49], b"[Content_Types].xml");
}
