//! How the bytes of a file become text.
//!
//! The file's encoding is what its first window says. For the encodings that contain ASCII the splitting is
//! done on raw bytes and each record is decoded by itself, under one rule whatever the window said: a record
//! that is valid UTF-8 is UTF-8; any other is Windows-1252 if that gives printable text; otherwise it is
//! quarantined. Files merged from two databases do mix the two.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize};

/// The encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Encoding {
    /// UTF-8, plain ASCII included.
    #[serde(rename = "utf-8")]
    Utf8,
    /// UTF-8 that begins with a byte-order mark.
    #[serde(rename = "utf-8-bom")]
    Utf8Bom,
    /// UTF-16, little-endian, with or without a byte-order mark.
    #[serde(rename = "utf-16le")]
    Utf16Le,
    /// UTF-16, big-endian, with or without a byte-order mark.
    #[serde(rename = "utf-16be")]
    Utf16Be,
    /// Windows-1252, the usual encoding of older Windows programs in western Europe.
    #[serde(rename = "windows-1252")]
    Windows1252,
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utf8 => "UTF-8",
            Self::Utf8Bom => "UTF-8 with BOM",
            Self::Utf16Le => "UTF-16 (little-endian)",
            Self::Utf16Be => "UTF-16 (big-endian)",
            Self::Windows1252 => "Windows-1252",
        })
    }
}

impl Encoding {
    pub(crate) fn is_utf16(self) -> bool {
        matches!(self, Self::Utf16Le | Self::Utf16Be)
    }

    /// The encoding that the first bytes of a file show, and the length of its byte-order mark.
    pub(crate) fn detect(window: &[u8]) -> (Self, usize) {
        if window.starts_with(&[0xEF, 0xBB, 0xBF]) {
            return (Self::Utf8Bom, 3);
        }
        if window.starts_with(&[0xFF, 0xFE]) {
            return (Self::Utf16Le, 2);
        }
        if window.starts_with(&[0xFE, 0xFF]) {
            return (Self::Utf16Be, 2);
        }
        if let Some(utf16) = utf16_without_mark(window) {
            return (utf16, 0);
        }
        match std::str::from_utf8(window) {
            Ok(_) => (Self::Utf8, 0),
            // Only cut off at the end of the window: the rest of the character follows in the file.
            Err(error) if error.error_len().is_none() => (Self::Utf8, 0),
            Err(_) => (Self::Windows1252, 0),
        }
    }
}

/// UTF-16 shows by the zero bytes that its ASCII characters leave on one side only: tags, digits, spaces and
/// line ends make up more than a tenth of any reference file, in every script.
fn utf16_without_mark(window: &[u8]) -> Option<Encoding> {
    let (mut even, mut odd) = (0_usize, 0_usize);
    for pair in window.chunks_exact(2) {
        even += usize::from(pair[0] == 0);
        odd += usize::from(pair[1] == 0);
    }
    let units = window.len() / 2;
    let many = |zeros: usize| units > 0 && zeros * 10 > units;
    let none = |zeros: usize| zeros * 100 <= units;
    if many(odd) && none(even) {
        Some(Encoding::Utf16Le)
    } else if many(even) && none(odd) {
        Some(Encoding::Utf16Be)
    } else {
        None
    }
}

/// The text of one record.
///
/// # Errors
/// A reason to quarantine the record.
pub(crate) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, &'static str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0,
    };
    if may_be_unprintable(text.as_bytes()) && text.contains(is_unprintable) {
        return Err("it contains bytes that are not text in UTF-8 or Windows-1252");
    }
    Ok(text)
}

/// Text to show of a record that may not be text.
pub(crate) fn decode_for_display(bytes: &[u8]) -> Cow<'_, str> {
    match decode(bytes) {
        Ok(text) => text,
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// Whether there may be unprintable characters: control characters, or the byte that begins those beyond ASCII. One
/// pass without branches, because every byte of a file comes by here.
fn may_be_unprintable(text: &[u8]) -> bool {
    text.iter().fold(false, |found, &byte| {
        found | ((byte < 0x20) & (byte != b'\n') & (byte != b'\r')) | (byte == 0xC2)
    })
}

/// Control characters that no text has. The five bytes that Windows-1252 leaves undefined decode to such. The
/// C0 separators (0x1C to 0x1F), vertical tab, form feed and the substitute 0x1A occur in real exports and
/// harm nobody; NUL and the rest mean that this is not text.
fn is_unprintable(c: char) -> bool {
    matches!(c, '\u{0}'..='\u{8}' | '\u{E}'..='\u{19}' | '\u{1B}' | '\u{81}' | '\u{8D}' | '\u{8F}' | '\u{90}' | '\u{9D}')
}

/// Turns UTF-16 into UTF-8, however the bytes are cut. An unpaired surrogate or a last odd byte becomes
/// U+FFFD, which keeps one unit of input one unit of output, so original offsets can be counted back.
#[derive(Debug)]
pub(crate) struct Utf16 {
    big_endian: bool,
    odd: Option<u8>,
    high: Option<u16>,
}

impl Utf16 {
    pub(crate) fn new(encoding: Encoding) -> Self {
        Self { big_endian: encoding == Encoding::Utf16Be, odd: None, high: None }
    }

    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        out.reserve(bytes.len());
        for &byte in bytes {
            match self.odd.take() {
                None => self.odd = Some(byte),
                Some(first) if self.big_endian => self.unit(u16::from_be_bytes([first, byte]), out),
                Some(first) => self.unit(u16::from_le_bytes([first, byte]), out),
            }
        }
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        let left = usize::from(self.high.take().is_some()) + usize::from(self.odd.take().is_some());
        for _ in 0..left {
            append(out, char::REPLACEMENT_CHARACTER);
        }
    }

    fn unit(&mut self, unit: u16, out: &mut Vec<u8>) {
        let units = self.high.take().into_iter().chain([unit]);
        for decoded in char::decode_utf16(units) {
            match decoded {
                Ok(c) => append(out, c),
                Err(error) => match error.unpaired_surrogate() {
                    // A high surrogate just read waits for its other half.
                    high @ 0xD800..=0xDBFF if high == unit && self.high.is_none() => self.high = Some(high),
                    _ => append(out, char::REPLACEMENT_CHARACTER),
                },
            }
        }
    }
}

fn append(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// How many UTF-16 units the text takes: one per character, two per character beyond the basic plane.
pub(crate) fn utf16_units(utf8: &[u8]) -> u64 {
    utf8.iter().map(|&byte| u64::from(byte & 0xC0 != 0x80) + u64::from(byte >= 0xF0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf8(chunks: &[&[u8]]) -> String {
        let (mut utf16, mut out) = (Utf16::new(Encoding::Utf16Le), Vec::new());
        for chunk in chunks {
            utf16.push(chunk, &mut out);
        }
        utf16.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_surrogate_pair_survives_being_cut_anywhere() {
        let bytes: Vec<u8> = "a𝛼b".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for at in 0..bytes.len() {
            assert_eq!(utf8(&[&bytes[..at], &bytes[at..]]), "a𝛼b");
        }
        assert_eq!(utf16_units("a𝛼b".as_bytes()), 4);
    }

    #[test]
    fn unpaired_surrogates_stay_one_unit_each() {
        let two_highs: Vec<u8> = [0xD835_u16, 0xD835, 0x61].iter().flat_map(|u| u.to_le_bytes()).collect();
        assert_eq!(utf8(&[&two_highs]), "\u{FFFD}\u{FFFD}a");
        assert_eq!(utf8(&[&[0x61, 0, 0x62]]), "a\u{FFFD}");
        assert_eq!(utf8(&[&[0x35, 0xD8]]), "\u{FFFD}");
    }

    #[test]
    fn a_record_is_utf8_or_printable_windows_1252_or_refused() {
        assert_eq!(decode("Müller".as_bytes()).unwrap(), "Müller");
        assert_eq!(decode(b"M\xFCller \x96 caf\xE9").unwrap(), "Müller – café");
        assert!(decode(b"M\xFCller \x81").is_err());
        assert!(decode(b"a\0b").is_err());
    }

    #[test]
    fn utf16_is_seen_without_a_mark() {
        let bytes: Vec<u8> =
            "TY  - JOUR\nTI  - Состояние\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(Encoding::detect(&bytes), (Encoding::Utf16Be, 0));
        assert_eq!(Encoding::detect("déjà".as_bytes()), (Encoding::Utf8, 0));
        assert_eq!(Encoding::detect(&"é".as_bytes()[..1]), (Encoding::Utf8, 0));
        assert_eq!(Encoding::detect(b"d\xE9j\xE0 vu"), (Encoding::Windows1252, 0));
    }
}
