//! Recognizes binary files by their magic numbers.

/// The offset and the magic number in the header of the first file of a tar archive.
const TAR: (usize, &[u8]) = (257, b"ustar");

/// Returns the name of a binary file type, with its article.
pub(super) fn magic(window: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 12] = [
        (b"%PDF-", "a PDF document"),
        (b"\x1F\x8B", "a gzip file"),
        (b"BZh", "a bzip2 file"),
        (b"\xFD7zXZ\0", "an xz file"),
        (b"\x28\xB5\x2F\xFD", "a Zstandard file"),
        (b"7z\xBC\xAF\x27\x1C", "a 7-Zip archive"),
        (b"Rar!\x1A\x07", "a RAR archive"),
        (b"\x89PNG\r\n\x1A\n", "a PNG image"),
        (b"\xFF\xD8\xFF", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"II*\0", "a TIFF image"),
        (b"MM\0*", "a TIFF image"),
    ];
    if window.starts_with(b"PK\x03\x04") || window.starts_with(b"PK\x05\x06") {
        return Some(zip(window));
    }
    if window.starts_with(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1") {
        return Some(ole(window));
    }
    if window.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) {
        return Some("a tar archive");
    }
    if window.starts_with(b"SQLite format 3\0") {
        return Some(sqlite(window));
    }
    MAGIC.iter().find(|(magic, _)| window.starts_with(magic)).map(|(_, what)| *what)
}

/// Distinguishes Office documents, which are ZIP archives, by the names of their entries.
fn zip(window: &[u8]) -> &'static str {
    let names = |name: &[u8]| memchr::memmem::find(window, name).is_some();
    if names(b"xl/") {
        "an Excel workbook"
    } else if names(b"word/") {
        "a Word document"
    } else if names(b"opendocument.spreadsheet") {
        "an OpenDocument spreadsheet"
    } else {
        "a ZIP archive"
    }
}

/// Distinguishes databases of reference managers by the names of their tables.
fn sqlite(window: &[u8]) -> &'static str {
    let has = |name: &[u8]| memchr::memmem::find(window, name).is_some();
    if has(b"itemAttachments") || has(b"itemDataValues") {
        "a Zotero library (zotero.sqlite)"
    } else {
        "an EndNote library (.enl) or another SQLite database"
    }
}

/// Distinguishes old Office documents by the names of their streams, which are in UTF-16.
fn ole(window: &[u8]) -> &'static str {
    let names = |name: &str| {
        let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        memchr::memmem::find(window, &name).is_some()
    };
    if names("EncryptedPackage") {
        "a document that is protected by a password"
    } else if names("Workbook") {
        "an old Excel workbook (.xls)"
    } else if names("WordDocument") {
        "an old Word document (.doc)"
    } else {
        "an old Office document (such as an .xls workbook)"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workbook_is_distinguished_from_other_archives() {
        assert_eq!(magic(b"PK\x03\x04....xl/workbook.xml"), Some("an Excel workbook"));
        assert_eq!(magic(b"PK\x03\x04....readme.txt"), Some("a ZIP archive"));
        let ole = |name: &str| {
            let name: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
            magic(&[b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1....".as_slice(), &name].concat())
        };
        assert_eq!(ole("Workbook"), Some("an old Excel workbook (.xls)"));
        assert_eq!(ole("EncryptedPackage"), Some("a document that is protected by a password"));
        assert_eq!(ole("WordDocument"), Some("an old Word document (.doc)"));
        assert_eq!(ole("x"), Some("an old Office document (such as an .xls workbook)"));
        assert_eq!(
            magic(b"SQLite format 3\0....CREATE TABLE itemDataValues"),
            Some("a Zotero library (zotero.sqlite)")
        );
        let library = "an EndNote library (.enl) or another SQLite database";
        assert_eq!(magic(b"SQLite format 3\0....CREATE TABLE refs"), Some(library));
        let tar = [b"export.ris".as_slice(), &[0; 247], b"ustar\x0000"].concat();
        assert_eq!(magic(&tar), Some("a tar archive"));
        assert_eq!(magic(b"%PDF-1.7"), Some("a PDF document"));
        assert_eq!(magic(b"TY  - JOUR"), None);
    }
}
