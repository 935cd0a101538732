//! Excel workbooks, read as one table per sheet.
//!
//! A workbook is a ZIP archive of XML files. The packed archive is held in memory, and so are the shared strings, which
//! cells reference by index. Sheets are unpacked while they are read and become comma-separated rows, so a workbook
//! with any number of rows takes bounded memory.

mod numbers;
mod sheet;
mod strings;
mod xml;

use std::sync::Arc;

pub use sheet::SheetText;

use self::{
    numbers::Formats,
    strings::Strings,
    xml::{EntryReader, Node, Xml, attribute, name},
};
use crate::{Directory, EndRecord, Entry, Error, Limits, local_header};

/// Largest packed workbook, in bytes: it is held in memory.
pub const MAX_WORKBOOK_BYTES: u64 = 8 << 20;
/// The maximum number of sheets.
const MAX_SHEETS: usize = 200;
/// Largest XML of the shared strings, in bytes. The strings themselves have 12 MiB at most, the rest is markup.
const MAX_STRINGS_XML: u64 = 128 << 20;
/// Largest XML of each other part that is read before the sheets, in bytes.
const MAX_XML: u64 = 16 << 20;
/// The maximum length of a name of a sheet, in bytes: Excel allows 31 characters.
const MAX_SHEET_NAME: usize = 1_000;
/// The part that lists the workbook's sheets.
const BOOK: &str = "xl/workbook.xml";

/// A workbook in memory.
#[derive(Debug)]
pub struct Workbook {
    file: Arc<Vec<u8>>,
    tail: EndRecord,
    directory: Directory,
    limits: Limits,
    sheets: Vec<Sheet>,
    strings: Arc<Strings>,
    formats: Arc<Formats>,
}

/// One sheet of a workbook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sheet {
    /// The name of the sheet.
    pub name: String,
    /// `true` unless the sheet is hidden in Excel.
    pub is_visible: bool,
    /// The archive entry, or `None` for a chart.
    entry: Option<usize>,
}

impl Workbook {
    /// Returns `true` if an archive with these entries is a workbook.
    #[must_use]
    pub fn is_workbook(directory: &Directory) -> bool {
        directory.entries.iter().any(|entry| entry.name == BOOK)
    }

    /// Reads the parts that all sheets share.
    ///
    /// # Errors
    /// Returns an error if the workbook is damaged, or too large to be held in memory.
    pub fn open(file: Vec<u8>, limits: Limits) -> Result<Self, Error> {
        let tail =
            EndRecord::find(&file[file.len().saturating_sub(crate::END_RECORD_BYTES)..], file.len() as u64)?;
        let start = usize::try_from(tail.start).unwrap_or(usize::MAX);
        let list = file.get(start..start.saturating_add(tail.length)).unwrap_or_default();
        let directory = Directory::read(list, &tail, &limits)?;
        let (strings, formats) = (Arc::default(), Arc::default());
        let file = Arc::new(file);
        let mut book = Self { file, tail, directory, limits, sheets: Vec::new(), strings, formats };
        let (sheets, from_1904) = book.list()?;
        book.sheets = sheets;
        let mut formats = match book.find("xl/styles.xml") {
            Some(entry) => Formats::read(book.small_xml(entry, "formats of cells")?)?,
            None => Formats::default(),
        };
        formats.from_1904 = from_1904;
        book.formats = Arc::new(formats);
        if let Some(entry) = book.find("xl/sharedStrings.xml") {
            let bytes = book.size(entry);
            if bytes > MAX_STRINGS_XML {
                return Err(Error::WorkbookTooLarge { what: "text" });
            }
            book.strings = Arc::new(Strings::read(book.xml(entry)?, bytes)?);
        }
        Ok(book)
    }

    /// The sheets, in the workbook's order.
    #[must_use]
    pub fn sheets(&self) -> &[Sheet] {
        &self.sheets
    }

    /// Returns the table of the sheet at an index, or `None` if it has no cells, such as a chart.
    ///
    /// # Errors
    /// Returns an error if the sheet is not at the offset that the archive states.
    pub fn text(&self, sheet: usize) -> Result<Option<SheetText>, Error> {
        let Some(entry) = self.sheets.get(sheet).and_then(|sheet| sheet.entry) else { return Ok(None) };
        let packed = self.file.len() as u64;
        let (strings, formats) = (Arc::clone(&self.strings), Arc::clone(&self.formats));
        let (xml, ahead) = (self.xml(entry)?, self.xml(entry)?);
        Ok(Some(SheetText::new(xml, ahead, strings, formats, self.limits, packed)))
    }

    /// The unpacked size of an entry, as declared by the archive. Unpacking more than that is an error.
    fn size(&self, entry: usize) -> u64 {
        self.directory.entries.get(entry).map_or(0, |entry| entry.unpacked)
    }

    /// Opens a part that is read completely before any sheet.
    fn small_xml(&self, entry: usize, what: &'static str) -> Result<Xml, Error> {
        if self.size(entry) > MAX_XML {
            return Err(Error::WorkbookTooLarge { what });
        }
        self.xml(entry)
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.directory.entries.iter().position(|entry| entry.name == name)
    }

    fn xml(&self, entry: usize) -> Result<Xml, Error> {
        const GONE: Error = Error::Workbook { fault: "a part of it is missing" };
        let behind = self.directory.next_offset(entry, &self.tail);
        let entry: &Entry = self.directory.entries.get(entry).ok_or(GONE)?;
        let start = usize::try_from(entry.header).unwrap_or(usize::MAX);
        let before = local_header(self.file.get(start..).unwrap_or_default(), entry, behind)?;
        Ok(Xml::new(EntryReader::new(Arc::clone(&self.file), entry, before, self.limits)))
    }

    /// Returns the sheets, and whether days are counted from 1904.
    fn list(&self) -> Result<(Vec<Sheet>, bool), Error> {
        const NONE: Error = Error::Workbook { fault: "the list of its sheets is missing" };
        let relations = self.find("xl/_rels/workbook.xml.rels").ok_or(NONE)?;
        let relations = strings::relations(self.small_xml(relations, "relationships")?)?;
        let entry_of = |id: String| {
            let (_, target) = relations.iter().find(|(known, _)| *known == id)?;
            let path = target.strip_prefix('/').map_or_else(|| format!("xl/{target}"), str::to_owned);
            self.find(&path).filter(|_| path.contains("worksheets/"))
        };
        let mut xml = self.small_xml(self.find(BOOK).ok_or(NONE)?, "sheets")?;
        let (mut sheets, mut from_1904) = (Vec::new(), false);
        loop {
            match xml.next()? {
                Node::Start(start) | Node::Empty(start) if name(&start) == "sheet" => {
                    let name = attribute(&start, "name").unwrap_or_default();
                    if sheets.len() == MAX_SHEETS {
                        return Err(Error::WorkbookTooLarge { what: "sheets" });
                    }
                    if name.len() > MAX_SHEET_NAME {
                        return Err(Error::WorkbookTooLarge { what: "characters in the name of a sheet" });
                    }
                    let is_visible = attribute(&start, "state").is_none_or(|state| state == "visible");
                    // A part that is listed as several sheets would be unpacked for each of them.
                    let is_new =
                        |entry: &usize| sheets.iter().all(|sheet: &Sheet| sheet.entry != Some(*entry));
                    let entry = attribute(&start, "id").and_then(entry_of).filter(is_new);
                    sheets.push(Sheet { name, is_visible, entry });
                }
                Node::Start(start) | Node::Empty(start) if name(&start) == "workbookPr" => {
                    let is_set = |value: String| matches!(value.as_str(), "1" | "true");
                    from_1904 = attribute(&start, "date1904").is_some_and(is_set);
                }
                Node::Eof => return Ok((sheets, from_1904)),
                _ => {}
            }
        }
    }
}
