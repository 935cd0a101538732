//! Excel workbooks (ECMA-376), written in one pass: each row is compressed immediately.
//!
//! Every cell is text, so nothing is evaluated and no number changes. A sheet holds as many rows as Excel supports
//! (<https://support.microsoft.com/office/1672b34d-7043-467e-8e27-269d656771c3>); further rows go into another sheet.
//! Text that exceeds a cell is truncated and ends in `[…]`.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use references::work::spend;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::Study;
use crate::table::PLAIN;

/// The maximum length of a cell in UTF-16 code units.
pub const MAX_CELL_UNITS: usize = 32_767;
/// The maximum number of rows below a sheet's header.
const MAX_ROWS: u64 = 1_048_575;
/// The maximum size of a sheet before compression, in bytes. Archives of more than 4 GiB need an extension that not
/// every program reads.
const MAX_SHEET_BYTES: u64 = 3 << 30;
/// The marker at the end of truncated text.
const ELLIPSIS: &str = " […]";

const TYPES: &str = concat!(
    r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>"#,
    r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">"#,
    r#"<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>"#,
    // All other parts are sheets, whose number is not known yet.
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
/// A single style for all cells: number format 49, which is text.
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
/// Freezes the header row.
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
    max_rows: u64,
}

/// The archive's output buffer, which is emptied after each study.
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
        Self { zip, sink, sheets: 0, rows: 0, bytes: 0, max_rows: MAX_ROWS }
    }
}

impl Workbook {
    pub(crate) fn push(&mut self, study: &Study<'_>, out: &mut Vec<u8>) -> io::Result<()> {
        let is_full = self.rows >= self.max_rows || self.bytes >= MAX_SHEET_BYTES;
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

    /// Starts the next sheet, and before the first one the workbook.
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
        // A fixed modification time, the earliest that a ZIP archive can express, keeps the output reproducible.
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
                escape(&truncate(&cell), &mut row);
                row.push_str("</t></is></c>");
            }
        }
        row.push_str("</row>");
        self.bytes += row.len() as u64;
        self.zip.write_all(row.as_bytes())
    }
}

/// Truncates text to the maximum length of a cell.
fn truncate(text: &str) -> std::borrow::Cow<'_, str> {
    spend(text.len());
    // Text has at most as many UTF-16 units as UTF-8 bytes.
    if text.len() <= MAX_CELL_UNITS || text.encode_utf16().count() <= MAX_CELL_UNITS {
        return text.into();
    }
    let mut left = MAX_CELL_UNITS - ELLIPSIS.encode_utf16().count();
    let end = text.char_indices().find(|(_, c)| {
        let fits = left >= c.len_utf16();
        left = left.saturating_sub(c.len_utf16());
        !fits
    });
    let end = end.map_or(text.len(), |(at, _)| at);
    format!("{}{ELLIPSIS}", &text[..end]).into()
}

/// Escapes text for XML and for Excel, where `_x000D_` in a cell means a carriage return: the first underscore of text
/// in that form is escaped.
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

/// Returns `true` if the text begins with a code such as `_x000D_`.
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
    fn long_cell_is_truncated_between_characters() {
        let fits = "x".repeat(MAX_CELL_UNITS);
        assert_eq!(truncate(&fits), fits);
        for text in [format!("{fits}y"), "😀".repeat(20_000), "é".repeat(40_000)] {
            let cut = truncate(&text);
            let units = cut.encode_utf16().count();
            assert!((MAX_CELL_UNITS - 1..=MAX_CELL_UNITS).contains(&units), "{units}");
            let kept = cut.strip_suffix(ELLIPSIS).unwrap();
            assert!(text.starts_with(kept));
        }
        let wide = "é".repeat(MAX_CELL_UNITS);
        assert_eq!(truncate(&wide), wide);
    }

    #[test]
    fn text_resembling_a_code_is_escaped() {
        let mut out = String::new();
        escape("a_x000D_b <&> _x00_ _xZZZZ_", &mut out);
        assert_eq!(out, "a_x005F_x000D_b &lt;&amp;&gt; _x00_ _xZZZZ_");
    }

    #[test]
    fn full_sheet_is_followed_by_another() {
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
        let mut workbook = Workbook { max_rows: 2, ..Workbook::default() };
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
