//! Workbooks.

use archives::{Error, Limits, Workbook};

use crate::pack::{file, zip};

const LIST: &str = r#"<workbook xmlns:r="r"><workbookPr/><sheets><sheet name="Records &amp; more" r:id="r1"/>
    <sheet name="Old" state="hidden" r:id="r2"/><sheet name="Chart" r:id="r3"/></sheets></workbook>"#;
const RELATIONS: &str = r#"<Relationships><Relationship Id="r1" Target="worksheets/sheet1.xml"/>
    <Relationship Id="r2" Target="/xl/worksheets/sheet2.xml"/>
    <Relationship Id="r3" Target="chartsheets/sheet1.xml"/></Relationships>"#;
const STRINGS: &str = "<sst><si><t>Title</t></si><si><r><t>Rich </t></r><r><t xml:space=\"preserve\">&amp; bold</t></r>\
    <rPh><t>no</t></rPh></si><si/><si><t>a_x000D_b, \"c\"</t></si></sst>";
const STYLES: &str = "<styleSheet><numFmts><numFmt numFmtId=\"164\" formatCode=\"dd/mm/yyyy\"/></numFmts>\
    <cellStyleXfs><xf numFmtId=\"14\"/></cellStyleXfs>\
    <cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"164\"/></cellXfs></styleSheet>";

fn workbook(sheet: &str, strings: &str) -> Vec<u8> {
    zip(&[
        file("xl/workbook.xml", LIST.as_bytes()),
        file("xl/_rels/workbook.xml.rels", RELATIONS.as_bytes()),
        file("xl/sharedStrings.xml", strings.as_bytes()),
        file("xl/styles.xml", STYLES.as_bytes()),
        file("xl/worksheets/sheet1.xml", sheet.as_bytes()),
        file("xl/worksheets/sheet2.xml", b"<worksheet><sheetData/></worksheet>"),
    ])
}

fn open(file: &[u8]) -> Result<Workbook, Error> {
    Workbook::open(file.into(), Limits::default())
}

fn text(sheet: &str) -> Result<(String, u64), Error> {
    let mut text = open(&workbook(sheet, STRINGS))?.text(0)?.unwrap();
    let mut out = Vec::new();
    while text.next_piece(&mut out)? {}
    Ok((String::from_utf8(out).unwrap(), text.unsaved()))
}

fn rows(rows: &str) -> String {
    text(&format!("<worksheet><sheetData>{rows}</sheetData></worksheet>")).unwrap().0
}

#[test]
fn hidden_sheets_and_charts_are_listed() {
    let book = open(&workbook("<worksheet/>", STRINGS)).unwrap();
    let parse_entry: Vec<_> =
        book.sheets().iter().map(|sheet| (sheet.name.as_str(), sheet.is_visible)).collect();
    assert_eq!(parse_entry, [("Records & more", true), ("Old", false), ("Chart", true)]);
    assert!(
        book.text(1).unwrap().is_some() && book.text(2).unwrap().is_none() && book.text(3).unwrap().is_none()
    );
}

#[test]
fn every_cell_type_becomes_text() {
    for (cell, expected) in [
        ("<c r=\"A1\" t=\"s\"><v>1</v></c>", "Rich & bold"),
        ("<c r=\"A1\" t=\"s\"><v>3</v></c>", "\"a\rb, \"\"c\"\"\""),
        ("<c r=\"A1\" t=\"s\"><v>99</v></c>", ""),
        ("<c r=\"A1\" t=\"inlineStr\"><is><t>in</t></is></c>", "in"),
        ("<c r=\"A1\" t=\"str\"><f>A2</f><v>made &lt;</v></c>", "made <"),
        ("<c r=\"A1\"><f>1+1</f><v>2</v></c>", "2"),
        ("<c r=\"A1\"><v>3.2487951E7</v></c>", "32487951"),
        ("<c r=\"A1\" s=\"1\"><v>43237</v></c>", "2018-05-17"),
        ("<c r=\"A1\" s=\"0\"><v>43237</v></c>", "43237"),
        ("<c r=\"A1\" t=\"b\"><v>1</v></c>", "TRUE"),
        ("<c r=\"A1\" t=\"e\"><v>#N/A</v></c>", "#N/A"),
        ("<x:c r=\"A1\" t=\"str\"><x:v>prefix</x:v></x:c>", "prefix"),
        ("<c t=\"str\"><v><![CDATA[a<b]]>&#228;</v></c>", "a<bä"),
    ] {
        assert_eq!(rows(&format!("<row r=\"1\">{cell}</row>")), format!("{expected}\n"), "{cell}");
    }
}

#[test]
fn missing_rows_and_cells_keep_positions() {
    let cell = |at: &str| format!("<c r=\"{at}\" t=\"str\"><v>{at}</v></c>");
    let sheet = format!(
        "<row r=\"2\">{}{}<c r=\"E2\"/></row><row>{}</row><row r=\"5\"/>",
        cell("A2"),
        cell("C2"),
        cell("B3")
    );
    assert_eq!(rows(&sheet), "\nA2,,C2\n,B3\n\n\n");
    assert_eq!(rows(&format!("<row r=\"2\">{0}</row><row r=\"4\">{0}</row>", cell("A2"))), "\nA2\n\nA2\n");
}

#[test]
fn merged_cells_repeat_text_in_each_row() {
    let sheet = "<worksheet><sheetData><row r=\"1\"><c r=\"A1\" t=\"str\"><v>2018</v></c><c r=\"B1\" t=\"str\"><v>a</v></c></row>\
        <row r=\"2\"><c r=\"B2\" t=\"str\"><v>b</v></c></row><row r=\"3\"><c r=\"B3\" t=\"str\"><v>c</v></c></row></sheetData>\
        <mergeCells><mergeCell ref=\"A1:A2\"/><mergeCell ref=\"B3:D3\"/></mergeCells></worksheet>";
    assert_eq!(text(sheet).unwrap().0, "2018,a\n2018,b\n,c\n");
}

#[test]
fn formulas_without_results_are_counted() {
    let sheet =
        "<worksheet><sheetData><row><c><f>A2</f></c><c><f/><v>1</v></c></row></sheetData></worksheet>";
    assert_eq!(text(sheet).unwrap(), (",1\n".to_owned(), 1));
}

#[test]
fn hostile_workbooks_are_refused() {
    let of = |rows: &str| text(&format!("<worksheet><sheetData>{rows}</sheetData></worksheet>")).unwrap_err();
    assert!(matches!(of("<row r=\"2\"/><row r=\"1\"/>"), Error::Workbook { .. }));
    assert!(matches!(of("<row r=\"9999999\"/>"), Error::Workbook { .. }));
    assert!(matches!(of("<row><c r=\"XFD1\"/></row>"), Error::WorkbookTooLarge { what: "columns" }));
    assert!(matches!(of(&"<a>".repeat(100)), Error::Workbook { .. }));
    assert!(matches!(of("<row>"), Error::Workbook { .. }));
    assert!(matches!(of("</row>"), Error::Workbook { .. }));
    let doctype = text("<!DOCTYPE a [<!ENTITY b \"c\">]><worksheet/>").unwrap_err();
    assert_eq!(doctype, Error::Workbook { fault: "its XML declares a DOCTYPE" });
    let long: String = (0..400_000).map(|n: u32| format!("{:x}", n.wrapping_mul(2_654_435_761))).collect();
    let long = of(&format!("<row><c t=\"str\"><v>{long}</v></c></row>"));
    assert_eq!(long, Error::WorkbookTooLarge { what: "characters in a cell" });
}

/// One stored string that many cells reference.
#[test]
fn repeated_strings_count_towards_the_limits() {
    let long: String = (0..60_000).map(|n: u32| format!("{:x}", n.wrapping_mul(2_654_435_761))).collect();
    let sheet = format!(
        "<worksheet><sheetData>{}</sheetData></worksheet>",
        "<row><c t=\"s\"><v>0</v></c></row>".repeat(5_000)
    );
    let book = open(&workbook(&sheet, &format!("<sst><si><t>{long}</t></si></sst>"))).unwrap();
    let (mut text, mut made) = (book.text(0).unwrap().unwrap(), 0);
    let refused = loop {
        let mut out = Vec::new();
        match text.next_piece(&mut out) {
            Ok(true) => made += out.len(),
            other => break other,
        }
    };
    assert!(matches!(refused, Err(Error::Bomb { .. } | Error::TooLarge { .. })), "{refused:?} after {made}");
}

#[test]
fn workbook_without_required_parts_is_refused() {
    let alone = zip(&[file("xl/workbook.xml", LIST.as_bytes())]);
    assert_eq!(open(&alone).unwrap_err(), Error::Workbook { fault: "the list of its sheets is missing" });
}
