//! Workbooks of Excel (ECMA-376), written without going back: each row is compressed as it comes.
//!
//! Every cell is text, so nothing is computed and no number changes. A sheet takes as many rows as Excel does
//! (<https://support.microsoft.com/office/1672b34d-7043-467e-8e27-269d656771c3>); then another one begins. A text that is
//! longer than a cell is cut and ends in `[…]`.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use references::work::spend;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::Study;
use crate::table::PLAIN;

/// The most that a cell has, in units of UTF-16.
pub const MOST_CELL: usize = 32_767;
/// The rows of a sheet below its header.
const MOST_ROWS: u64 = 1_048_575;
/// The most of a sheet before it is compressed, in bytes: beyond 4 GiB archives need an extension that not every program
/// reads.
const MOST_SHEET_BYTES: u64 = 3 << 30;
/// What a text ends in that was cut.
const CUT: &str = " […]";

const TYPES: &str = concat!(
    r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>"#,
    r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">"#,
    r#"<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>"#,
    // All other parts are sheets, however many there will be.
    r#"<Default Extension="xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>"#,
    r#"<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>"#,
    r#"<Override PartName="/xl/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/>"#,
    "</Types>"
);
const PACKAGE: &str = concat!(
    r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>"#,
    r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">"#,
    r#"<Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/>"#,
    "</Relationships>"
);
/// One style for all cells: the format 49, which is text.
const STYLES: &str = concat!(
    r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>"#,
    r#"<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">"#,
    r#"<fonts count="1"><font><sz val="11"/><name val="Calibri"/></font></fonts>"#,
    r#"<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills>"#,
    r#"<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>"#,
    r#"<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>"#,
    r#"<cellXfs count="2"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>"#,
    r#"<xf numFmtId="49" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/></cellXfs>"#,
    r#"<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>"#,
    "</styleSheet>"
);
/// The header stays in view.
const SHEET: &str = concat!(
    r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>"#,
    r#"<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">"#,
    r#"<sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>"#,
    "<sheetData>"
);
const SHEET_END: &str = "</sheetData></worksheet>";

/// A workbook that is being written.
pub(crate) struct Workbook {
    zip: ZipWriter<StreamWriter<Sink>>,
    sink: Sink,
    sheets: usize,
    rows: u64,
    bytes: u64,
    most_rows: u64,
}

/// Where the archive is written to, and taken from after each study.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn take(&self) -> Vec<u8> {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Debug for Workbook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workbook")
            .field("sheets", &self.sheets)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl Default for Workbook {
    fn default() -> Self {
        let sink = Sink::default();
        let zip = ZipWriter::new_stream(sink.clone());
        Self { zip, sink, sheets: 0, rows: 0, bytes: 0, most_rows: MOST_ROWS }
    }
}

impl Workbook {
    pub(crate) fn push(&mut self, study: &Study<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        let is_full = self.rows >= self.most_rows || self.bytes >= MOST_SHEET_BYTES;
        if self.sheets == 0 || is_full {
            self.open()?;
        }
        self.row(PLAIN.iter().map(|(_, cell)| cell(study)))?;
        self.rows += 1;
        out.append(&mut self.sink.take());
        Ok(())
    }

    pub(crate) fn finish(mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if self.sheets == 0 {
            self.open()?;
        }
        self.zip.write_all(SHEET_END.as_bytes())?;
        let (mut sheets, mut relations) = (String::new(), String::new());
        for sheet in 1..=self.sheets {
            let name = if sheet == 1 { "Studies".to_owned() } else { format!("Studies {sheet}") };
            // Writing to a string does not fail.
            let _ = write!(sheets, r#"<sheet name="{name}" sheetId="{sheet}" r:id="rId{sheet}"/>"#);
            let _ = write!(
                relations,
                r#"<Relationship Id="rId{sheet}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet{sheet}.xml"/>"#
            );
        }
        let styles = self.sheets + 1;
        self.part(
            "xl/workbook.xml",
            &format!(
                r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><bookViews><workbookView/></bookViews><sheets>{sheets}</sheets></workbook>"#
            ),
        )?;
        self.part(
            "xl/_rels/workbook.xml.rels",
            &format!(
                r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{relations}<Relationship Id="rId{styles}" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/></Relationships>"#
            ),
        )?;
        let Self { zip, sink, .. } = self;
        zip.finish()?;
        out.append(&mut sink.take());
        Ok(())
    }

    /// Begins the next sheet, and the workbook with the first one.
    fn open(&mut self) -> io::Result<()> {
        if self.sheets == 0 {
            self.part("[Content_Types].xml", TYPES)?;
            self.part("_rels/.rels", PACKAGE)?;
            self.part("xl/styles.xml", STYLES)?;
        } else {
            self.zip.write_all(SHEET_END.as_bytes())?;
        }
        self.sheets += 1;
        (self.rows, self.bytes) = (0, 0);
        self.part(&format!("xl/worksheets/sheet{}.xml", self.sheets), SHEET)?;
        self.row(PLAIN.iter().map(|(name, _)| (*name).to_owned()))
    }

    fn part(&mut self, name: &str, text: &str) -> io::Result<()> {
        // The clock has no part in it: the time is that at which such archives begin.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(6))
            .last_modified_time(DateTime::default());
        self.zip.start_file(name, options)?;
        self.zip.write_all(text.as_bytes())
    }

    fn row(&mut self, cells: impl Iterator<Item = String>) -> io::Result<()> {
        let mut row = String::from("<row>");
        for cell in cells {
            if cell.is_empty() {
                row.push_str(r#"<c s="1"/>"#);
            } else {
                row.push_str(r#"<c s="1" t="inlineStr"><is><t xml:space="preserve">"#);
                escape(&cut(&cell), &mut row);
                row.push_str("</t></is></c>");
            }
        }
        row.push_str("</row>");
        self.bytes += row.len() as u64;
        self.zip.write_all(row.as_bytes())
    }
}

/// As much of a text as a cell takes.
fn cut(text: &str) -> std::borrow::Cow<'_, str> {
    spend(text.len());
    // As many bytes have no more units.
    if text.len() <= MOST_CELL || text.encode_utf16().count() <= MOST_CELL {
        return text.into();
    }
    let mut left = MOST_CELL - CUT.encode_utf16().count();
    let end = text.char_indices().find(|(_, c)| {
        let fits = left >= c.len_utf16();
        left = left.saturating_sub(c.len_utf16());
        !fits
    });
    let end = end.map_or(text.len(), |(at, _)| at);
    format!("{}{CUT}", &text[..end]).into()
}

/// Text in XML, and in cells: there `_x000D_` is a carriage return, so a text that has that in it has its first sign
/// written so.
fn escape(text: &str, out: &mut String) {
    for (at, c) in text.char_indices() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '_' if is_code(&text[at..]) => out.push_str("_x005F_"),
            c => out.push(c),
        }
    }
}

/// Whether the text begins like `_x000D_`.
fn is_code(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 7 && bytes[1] == b'x' && bytes[2..6].iter().all(u8::is_ascii_hexdigit) && bytes[6] == b'_'
}

#[cfg(test)]
mod tests {
    use references::Reference;
    use uuid::Uuid;

    use super::*;
    use crate::Source;

    #[test]
    fn what_a_cell_does_not_take_is_cut_between_characters() {
        let fits = "x".repeat(MOST_CELL);
        assert_eq!(cut(&fits), fits);
        for text in [format!("{fits}y"), "😀".repeat(20_000), "é".repeat(40_000)] {
            let cut = cut(&text);
            let units = cut.encode_utf16().count();
            assert!((MOST_CELL - 1..=MOST_CELL).contains(&units), "{units}");
            let kept = cut.strip_suffix(CUT).unwrap();
            assert!(text.starts_with(kept));
        }
        let wide = "é".repeat(MOST_CELL);
        assert_eq!(cut(&wide), wide);
    }

    #[test]
    fn what_looks_like_a_code_is_text() {
        let mut out = String::new();
        escape("a_x000D_b <&> _x00_ _xZZZZ_", &mut out);
        assert_eq!(out, "a_x005F_x000D_b &lt;&amp;&gt; _x00_ _xZZZZ_");
    }

    #[test]
    fn a_full_sheet_is_followed_by_another() {
        let (source, reference) =
            (Source::default(), Reference { title: "T".into(), ..Reference::default() });
        let key = Uuid::nil();
        let study = Study {
            key,
            search: key,
            file: "f",
            record: 1,
            source: &source,
            duplicate_of: None,
            reference: &reference,
        };
        let mut workbook = Workbook { most_rows: 2, ..Workbook::default() };
        let mut out = Vec::new();
        for _ in 0..5 {
            workbook.push(&study, &mut out).unwrap();
        }
        assert_eq!(workbook.sheets, 3);
        workbook.finish(&mut out).unwrap();
        let archive = zip::ZipArchive::new(io::Cursor::new(out)).unwrap();
        let names: Vec<String> = archive.file_names().map(|name| name.unwrap().into_owned()).collect();
        assert_eq!(names.len(), 8, "{names:?}");
        assert!(names.iter().any(|name| name == "xl/worksheets/sheet3.xml"));
    }
}
