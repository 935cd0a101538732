//! Decodes the bytes of a file.
//!
//! The encoding of a file is detected from its first window. In ASCII-compatible encodings, records are split on raw
//! bytes and decoded one by one, always by the same rule: a record that is valid UTF-8 is decoded as UTF-8. All other
//! records are decoded with the one legacy encoding that is most likely for all such bytes of the file. If the result
//! is not printable, the record is quarantined. Files merged from two databases do mix encodings.

mod decoder;
mod jis;
mod joined;
mod legacy;
mod name;
mod parts;
mod utf16;

use std::{borrow::Cow, fmt};

use encoding_rs::ISO_2022_JP;
use serde::{Deserialize, Serialize};

use crate::work::spend;
pub(crate) use decoder::Decoder;
pub(crate) use jis::Jis;
pub(crate) use joined::WidthCheck;
pub(crate) use legacy::{LegacyEncoding, LegacyState};
pub(crate) use utf16::{Utf16, utf16_units};

/// The encoding of a file. It serializes as its name: `"utf-8"`, `"windows-1252"`, `"shift_jis"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// UTF-8, including plain ASCII.
    Utf8,
    /// UTF-8 that begins with a byte-order mark.
    Utf8Bom,
    /// UTF-16, little-endian, with or without a byte-order mark.
    Utf16Le,
    /// UTF-16, big-endian, with or without a byte-order mark.
    Utf16Be,
    /// Windows-1252, the usual encoding of older Windows programs in western Europe.
    Windows1252,
    /// ISO-8859-1, which lacks the quotes, dashes and letters that Windows-1252 adds to it.
    Iso8859_1,
    /// MacRoman, the encoding of older Macintosh programs in western Europe.
    MacRoman,
    /// Code page 850, the encoding of DOS programs in western Europe.
    Cp850,
    /// Another ASCII-compatible encoding.
    Other(OtherEncoding),
}

/// A clearly detected encoding without its own variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OtherEncoding(pub(crate) &'static encoding_rs::Encoding);

/// The certainty of a detected encoding or format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Other candidates are about as likely.
    #[default]
    Guess,
    /// Other candidates are much less likely.
    Likely,
    /// Proved by the file, by a byte-order mark or by the way its records begin.
    Certain,
}

impl fmt::Display for Certainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Guess => "guess",
            Self::Likely => "likely",
            Self::Certain => "certain",
        })
    }
}

impl Encoding {
    /// Decodes one record of a file in this encoding, by the rule for reading records. Undecodable bytes are replaced
    /// for display. With `is_cut` the bytes may end inside a character, whose partial sequence is dropped.
    #[must_use]
    pub fn text(self, record: &[u8], is_cut: bool) -> String {
        if self.is_utf16() {
            let (mut utf16, mut text) = (Utf16::new(self), Vec::new());
            utf16.push(record, &mut text);
            if !is_cut {
                utf16.finish(&mut text);
            }
            return String::from_utf8_lossy(&text).into_owned();
        }
        let decode = if is_cut { decode_cut } else { decode_for_display };
        decode(record, self.legacy()).into_owned()
    }

    /// The encoding of records that are not UTF-8.
    fn legacy(self) -> Decoder {
        match self {
            Self::MacRoman => Decoder::Web(encoding_rs::MACINTOSH),
            Self::Cp850 => Decoder::Cp850,
            Self::Other(OtherEncoding(encoding)) => Decoder::Web(encoding),
            Self::Utf8
            | Self::Utf8Bom
            | Self::Utf16Le
            | Self::Utf16Be
            | Self::Windows1252
            | Self::Iso8859_1 => Decoder::Web(encoding_rs::WINDOWS_1252),
        }
    }

    pub(crate) fn is_utf16(self) -> bool {
        matches!(self, Self::Utf16Le | Self::Utf16Be)
    }

    pub(crate) fn is_iso_2022_jp(self) -> bool {
        self == Self::Other(OtherEncoding(ISO_2022_JP))
    }

    /// Detects the encoding of a file from its first bytes.
    pub(crate) fn detect(window: &[u8]) -> EncodingDetection {
        /// The byte-order mark of UTF-8 in a text that was encoded twice.
        const MARK_TWICE: &[u8] = "ï»¿".as_bytes();
        let rest = window.strip_prefix(MARK_TWICE).unwrap_or(window);
        let mut found = Self::detect_once(rest);
        if found.encoding == Self::Utf8Bom && rest[found.mark_length..].starts_with(MARK_TWICE) {
            found.mark_length += MARK_TWICE.len();
        }
        found.mark_length += window.len() - rest.len();
        found
    }

    fn detect_once(window: &[u8]) -> EncodingDetection {
        let marks: [(&[u8], Self); 3] = [
            (&[0xEF, 0xBB, 0xBF], Self::Utf8Bom),
            (&[0xFF, 0xFE], Self::Utf16Le),
            (&[0xFE, 0xFF], Self::Utf16Be),
        ];
        if let Some((mark, encoding)) = marks.into_iter().find(|(mark, _)| window.starts_with(mark)) {
            let mut shown = EncodingDetection::new(encoding, Certainty::Certain);
            shown.mark_length = mark.len();
            return shown;
        }
        if let Some(utf16) = utf16_without_mark(window) {
            return EncodingDetection::new(utf16, Certainty::Likely);
        }
        let mut legacy = LegacyEncoding::default();
        match std::str::from_utf8(window) {
            Ok(_) if is_iso_2022_jp(window) => {
                let encoding = Self::Other(OtherEncoding(ISO_2022_JP));
                let legacy = LegacyEncoding::of(Decoder::Web(ISO_2022_JP));
                return EncodingDetection { encoding, certainty: Certainty::Likely, mark_length: 0, legacy };
            }
            Ok(_) => return EncodingDetection::new(Self::Utf8, Certainty::Certain),
            Err(_) if is_cut_utf8(window) => {
                return EncodingDetection::new(Self::Utf8, Certainty::Likely);
            }
            // Only the end of the window is truncated: the rest of the character follows in the file.
            Err(error) if error.error_len().is_none() => {
                return EncodingDetection::new(Self::Utf8, Certainty::Certain);
            }
            Err(_) => match declared(window) {
                Some(declared) => legacy = LegacyEncoding::of(Decoder::Web(declared)),
                None => legacy.inspect(window),
            },
        }
        let (encoding, certainty) = legacy.found();
        EncodingDetection { encoding, certainty, mark_length: 0, legacy }
    }
}

/// The encoding of a file, as far as its first bytes show.
#[derive(Debug)]
pub(crate) struct EncodingDetection {
    pub(crate) encoding: Encoding,
    pub(crate) certainty: Certainty,
    pub(crate) mark_length: usize,
    /// The legacy encoding of bytes that are not UTF-8.
    pub(crate) legacy: LegacyEncoding,
}

impl EncodingDetection {
    fn new(encoding: Encoding, certainty: Certainty) -> Self {
        Self { encoding, certainty, mark_length: 0, legacy: LegacyEncoding::default() }
    }
}

/// The encoding in the declaration of an XML document, unless it is UTF-8 or UTF-16.
fn declared(window: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    /// The maximum length of a declaration.
    const MAX: usize = 200;
    let window = &window[..window.len().min(MAX)];
    let end = memchr::memmem::find(window, b"?>").filter(|_| window.starts_with(b"<?xml"))?;
    let declaration = std::str::from_utf8(&window[..end]).ok()?;
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let label = value.strip_prefix(['"', '\''])?.split(['"', '\'']).next()?;
    let declared = encoding_rs::Encoding::for_label(label.as_bytes())?;
    declared.is_single_byte().then_some(declared)
}

/// Detects UTF-16 by the zero bytes that ASCII characters have on one side only: in every script, tags, digits, spaces
/// and line ends make up more than a tenth of a reference file.
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

/// Decodes one record, from `legacy` if it is not UTF-8. Returns the text and the number of dropped control characters.
///
/// # Errors
/// Returns the reason to quarantine the record.
pub(crate) fn decode<'a>(bytes: &'a [u8], legacy: Decoder) -> Result<(Cow<'a, str>, usize), &'static str> {
    if legacy.is_iso_2022_jp() && has_escape(bytes) {
        return printable(legacy.decode(bytes));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => printable_utf8(text.into()),
        Err(_) if is_cut_utf8(bytes) => printable_utf8(String::from_utf8_lossy(bytes)),
        Err(_) => printable(legacy.decode(bytes)),
    }
}

/// A text with characters that were encoded in UTF-8 twice.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EncodedTwice {
    /// All characters were. The text is decoded.
    Whole(String),
    /// Some characters were, because a program combined values from two sources. These are decoded.
    Partly(String),
}

/// Decodes a text that a program encoded in UTF-8 twice, because it took the bytes for Windows-1252: `MÃ¼ller`.
pub(crate) fn encoded_twice(text: &str) -> Option<EncodedTwice> {
    if !has_first_byte(text.as_bytes()) || !spend(2 * text.len()) {
        return None;
    }
    // The program may have taken the bytes for ISO-8859-1.
    let latin = if has_c1(text) { text.chars().map(windows_1252).collect() } else { Cow::Borrowed(text) };
    let (bytes, _, has_errors) = encoding_rs::WINDOWS_1252.encode(&latin);
    let whole = if has_errors { None } else { String::from_utf8(bytes.into_owned()).ok() };
    whole.map(EncodedTwice::Whole).or_else(|| parts::decoded(text).map(EncodedTwice::Partly))
}

/// Returns `true` for a text with a first byte of a letter of European alphabets or of punctuation as a character of
/// Windows-1252: `Â` to `Æ`, `Ð`, `Ñ` or `â`. All of them begin with the same byte.
fn has_first_byte(text: &[u8]) -> bool {
    memchr::memchr_iter(0xc3, text)
        .any(|at| matches!(text.get(at + 1), Some(0x82..=0x86 | 0x90 | 0x91 | 0xa2)))
}

/// The characters of Windows-1252 that ISO-8859-1 has as the control characters U+0080 to U+009F. Five are undefined.
#[rustfmt::skip]
const C1: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// Returns `true` for a text with control characters beyond ASCII.
fn has_c1(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr_iter(0xc2, bytes).any(|at| matches!(bytes.get(at + 1), Some(0x80..=0x9f)))
}

/// The character of Windows-1252 with the number of this control character. Other characters remain.
fn windows_1252(c: char) -> char {
    (c as usize).checked_sub(0x80).and_then(|at| C1.get(at)).copied().unwrap_or(c)
}

/// Replaces control characters beyond ASCII by the characters of Windows-1252 with the same numbers. Undefined ones are
/// dropped, and so are the marks of libraries around the article before a title. Returns the text and the number of
/// dropped characters.
pub(crate) fn without_c1(text: Cow<'_, str>) -> (Cow<'_, str>, usize) {
    /// The marks that begin and end text that is ignored in sorting.
    const MARKS: [(char, char); 2] = [('\u{88}', '\u{89}'), ('\u{98}', '\u{9c}')];
    // U+0085 alone is a line break of other systems.
    let bytes = text.as_bytes();
    let is_found = memchr::memchr_iter(0xc2, bytes)
        .any(|at| matches!(bytes.get(at + 1), Some(0x80..=0x84 | 0x86..=0x9f)));
    if !is_found || !spend(text.len()) {
        return (text, 0);
    }
    let found = MARKS.map(|(begin, _)| text.contains(begin));
    let is_mark = |c: char| {
        MARKS.iter().zip(found).any(|((begin, end), is_found)| is_found && (c == *begin || c == *end))
    };
    let (mut out, mut dropped) = (String::with_capacity(text.len()), 0);
    for c in text.chars() {
        match c {
            _ if is_mark(c) => {}
            _ if is_undefined(c) => dropped += 1,
            _ => out.push(windows_1252(c)),
        }
    }
    (Cow::Owned(out), dropped)
}

/// Returns `true` for UTF-8 in which one or two characters were cut, by a program that merged or shortened files. Text in
/// an older encoding contains hardly any characters of UTF-8.
pub(crate) fn is_cut_utf8(bytes: &[u8]) -> bool {
    /// The minimum number of whole characters for each truncated character.
    const MIN_WHOLE: usize = 8;
    let (mut whole, mut cut) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        whole += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        cut += usize::from(!chunk.invalid().is_empty());
        if cut > 2 {
            return false;
        }
    }
    cut > 0 && whole >= cut * MIN_WHOLE
}

/// Removes control characters from the text of a record, and returns their number.
///
/// # Errors
/// Returns the reason to quarantine the record.
pub(crate) fn printable(text: Cow<'_, str>) -> Result<(Cow<'_, str>, usize), &'static str> {
    if has_c1(&text) && text.contains(is_undefined) {
        return Err(NO_TEXT);
    }
    printable_utf8(text)
}

/// Does the same for UTF-8, in which an undefined character is not evidence of other bytes than text.
///
/// # Errors
/// Returns the reason to quarantine the record.
pub(crate) fn printable_utf8(text: Cow<'_, str>) -> Result<(Cow<'_, str>, usize), &'static str> {
    if !may_be_unprintable(text.as_bytes()) || !text.contains(is_control) {
        return Ok((text, 0));
    }
    if is_iso_2022_jp(text.as_bytes()) {
        let (text, has_errors) = ISO_2022_JP.decode_without_bom_handling(text.as_bytes());
        if !has_errors {
            return Ok((Cow::Owned(text.into_owned()), 0));
        }
    }
    let controls = |text: &str| text.chars().filter(|c| is_control(*c)).count();
    let inner = without_padding(&text);
    if !is_text(inner) {
        return Err(NO_TEXT);
    }
    Ok((Cow::Owned(inner.replace(is_control, "")), controls(&text)))
}

/// The text without the NULs that programs append to fill a block of memory.
fn without_padding(text: &str) -> &str {
    text.trim_end_matches(|c: char| c == '\0' || c.is_whitespace())
}

/// Returns `false` for many control characters, or a NUL in a short text, which show that the bytes are not text.
fn is_text(text: &str) -> bool {
    /// The minimum length of the text for each NUL.
    const PER_NUL: usize = 32;
    let controls = text.chars().filter(|c| is_control(*c)).count();
    let nuls = memchr::memchr_iter(0, text.as_bytes()).count();
    controls <= MAX_CONTROLS.max(text.len() / 500) && nuls * PER_NUL <= text.len()
}

/// The beginning of a file without the few NULs that text may contain. Returns `None` for other bytes than text.
pub(crate) fn without_nuls(text: &str) -> Option<String> {
    let inner = without_padding(text);
    (!inner.is_empty() && is_text(inner)).then(|| inner.replace('\0', ""))
}

/// Returns `true` for a text that may have letters of ISO-2022-JP.
pub(crate) fn has_escape(bytes: &[u8]) -> bool {
    memchr::memchr(jis::ESCAPE, bytes).is_some()
}

/// Returns `true` for ASCII with a sequence that begins Japanese characters, as old exports and e-mails contain it.
pub(crate) fn is_iso_2022_jp(bytes: &[u8]) -> bool {
    let begins = |at: usize| matches!(bytes.get(at + 1..at + 3), Some(b"$B" | b"$@"));
    bytes.is_ascii() && memchr::memchr_iter(0x1b, bytes).any(begins)
}

/// The reason to quarantine a record that is not text.
const NO_TEXT: &str = "it contains bytes that are not text in UTF-8 or any likely older encoding";

/// The maximum number of control characters in a short record that counts as text.
const MAX_CONTROLS: usize = 4;

/// Control characters that do not occur in text, and are dropped. The C0 separators (0x1C to 0x1F), vertical tab, form
/// feed and the substitute 0x1A occur in real exports and are accepted.
fn is_control(c: char) -> bool {
    matches!(c, '\u{0}'..='\u{8}' | '\u{E}'..='\u{19}' | '\u{1B}')
}

/// Decodes a record that may not be text, for display.
pub(crate) fn decode_for_display<'a>(bytes: &'a [u8], legacy: Decoder) -> Cow<'a, str> {
    match decode(bytes, legacy) {
        Ok((text, _)) => text,
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// Decodes a slice that may end inside a character, for display. Drops a partial UTF-8 sequence at the end, which would
/// make the slice look like another encoding.
pub(crate) fn decode_cut<'a>(bytes: &'a [u8], legacy: Decoder) -> Cow<'a, str> {
    let whole = match std::str::from_utf8(bytes) {
        // The letters have their high bit set.
        Err(_) if legacy.is_iso_2022_jp() => bytes,
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    };
    decode_for_display(whole, legacy)
}

/// Returns `true` if the text may contain unprintable characters. A single branchless pass, because every byte of a file
/// is checked.
fn may_be_unprintable(text: &[u8]) -> bool {
    text.iter().fold(false, |found, &byte| found | ((byte < 0x20) & (byte != b'\n') & (byte != b'\r')))
}

/// The characters that result from the five bytes that Windows-1252 leaves undefined.
fn is_undefined(c: char) -> bool {
    matches!(c, '\u{81}' | '\u{8D}' | '\u{8F}' | '\u{90}' | '\u{9D}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS_1252: Decoder = Decoder::Web(encoding_rs::WINDOWS_1252);

    #[test]
    fn record_decodes_as_utf8_or_legacy_or_fails() {
        assert_eq!(decode("Müller".as_bytes(), WINDOWS_1252).unwrap().0, "Müller");
        assert_eq!(decode(b"M\xFCller \x96 caf\xE9", WINDOWS_1252).unwrap().0, "Müller – café");
        assert_eq!(decode(b"300\x0F to 900\x0FC", WINDOWS_1252).unwrap(), ("300 to 900C".into(), 2));
        assert_eq!(decode(b"\x1b$B;3ED\x1b(B, T", WINDOWS_1252).unwrap(), ("山田, T".into(), 0));
        assert!(decode(b"a\x01\x02\x03\x04\x05", WINDOWS_1252).is_err());
        assert!(decode(b"M\xFCller \x81", WINDOWS_1252).is_err());
        assert!(decode(b"a\0b", WINDOWS_1252).is_err());
    }

    #[test]
    fn declared_encoding_is_used() {
        let detect = |text: &[u8]| Encoding::detect(text).encoding;
        let declared = b"<?xml version='1.0' encoding=\"ISO-8859-2\"?><xml>\xB9</xml>";
        assert_eq!(detect(declared), Encoding::Other(OtherEncoding(encoding_rs::ISO_8859_2)));
        assert_eq!(
            detect(b"<?xml version='1.0' encoding='UTF-8'?><xml>M\xFCller</xml>"),
            Encoding::Iso8859_1
        );
    }

    #[test]
    fn text_encoded_twice_is_decoded_again() {
        let whole = |text: &str| Some(EncodedTwice::Whole(text.to_owned()));
        assert_eq!(encoded_twice("MÃ¼ller â€“ FranÃ§ois"), whole("Müller – François"));
        let partly = Some(EncodedTwice::Partly("Müller and Müller".to_owned()));
        assert_eq!(encoded_twice("MÃ¼ller and Müller"), partly);
        for text in ["Müller", "SÃO PAULO", "Ã", "Muller"] {
            assert_eq!(encoded_twice(text), None, "{text}");
        }
    }

    #[test]
    fn controls_are_characters_of_windows_1252() {
        let whole = |text: &str| Some(EncodedTwice::Whole(text.to_owned()));
        assert_eq!(encoded_twice("\u{c3}\u{81}lvarez \u{e2}\u{80}\u{9c}a"), whole("Álvarez “a"));
        assert_eq!(encoded_twice("â€œaâ€\u{9d}"), whole("“a”"));
        for (text, read, dropped) in [
            ("O\u{92}Roe \u{96} c\u{9c}ur", "O’Roe – cœur", 0),
            ("\u{98}Das\u{9c} Herz", "Das Herz", 0),
            ("M\u{fc}ller a\u{9d}b", "Müller ab", 1),
            ("25 \u{b0}C", "25 °C", 0),
            ("O\u{92}Roe\u{85}", "O’Roe…", 0),
            ("a\u{85}b", "a\u{85}b", 0),
        ] {
            assert_eq!(without_c1(text.into()), (read.into(), dropped));
        }
    }

    #[test]
    fn displayed_text_matches_read_text() {
        let utf16: Vec<u8> = "é𝄞".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (name, bytes, is_cut, text) in [
            ("UTF-8", "Müller".as_bytes(), false, "Müller"),
            ("UTF-8", &"Mü".as_bytes()[..2], true, "M"),
            ("ISO-8859-1", b"M\xFCller caf\xE9", false, "Müller café"),
            // A file merged from two databases.
            ("Windows-1252", "Müller".as_bytes(), false, "Müller"),
            ("MacRoman", b"M\x9Fller", false, "Müller"),
            ("CP850", b"M\x81ller", false, "Müller"),
            ("Shift_JIS", b"\x83\x89", false, "ラ"),
            ("UTF-16 (little-endian)", &utf16, false, "é𝄞"),
            ("UTF-16 (little-endian)", &utf16[..5], true, "é"),
            ("UTF-8", b"a\0b\xFF", false, "a\0b\u{FFFD}"),
        ] {
            assert_eq!(Encoding::named(name).unwrap().text(bytes, is_cut), text, "{name}");
        }
    }

    #[test]
    fn utf16_is_detected_without_bom() {
        let bytes: Vec<u8> =
            "TY  - JOUR\nTI  - Состояние\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let shown = |bytes: &[u8]| (Encoding::detect(bytes).encoding, Encoding::detect(bytes).certainty);
        assert_eq!(shown(&bytes), (Encoding::Utf16Be, Certainty::Likely));
        assert_eq!(shown("déjà".as_bytes()), (Encoding::Utf8, Certainty::Certain));
        assert_eq!(shown(&"é".as_bytes()[..1]), (Encoding::Utf8, Certainty::Certain));
        assert_eq!(shown(b"d\xE9j\xE0 vu").0, Encoding::Iso8859_1);
    }
}
