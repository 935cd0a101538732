//! The text of a file outside of its records.

use serde::{Deserialize, Serialize};

use crate::{
    Format,
    detect::Detection,
    encoding::decode_cut,
    outcome::{EXCERPT_CHARS, SkippedText},
    position::Position,
    split::{eu_ctr, numbered, ris, wos},
};

/// The number of bytes of a line that are kept for display: the maximum size of the characters of an excerpt.
const KEPT_BYTES: usize = 4 * EXCERPT_CHARS;
/// The maximum number of digits in a record number of a database.
const MAX_DIGITS: usize = 9;

/// The text between records: its extent, and its first line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Gaps {
    /// Lines with words that are not part of the format.
    lines: u64,
    /// The number and excerpt of the first such line.
    first: Option<(u64, String)>,
    /// The number and beginning of the current line, from its first byte that is not blank.
    open: Option<(u64, String)>,
    /// `true` if that line has words after the part that is kept.
    #[serde(default)]
    goes_on: bool,
}

impl Gaps {
    /// Adds bytes outside of records, which begin at this position. They may be cut anywhere.
    pub(crate) fn add(&mut self, text: &[u8], place: Position, file: &Detection) {
        if self.open.as_ref().is_some_and(|(line, _)| *line != place.line) {
            // The text between the two lines was part of the format.
            self.end(file);
        }
        let (mut line, mut after_cr) = (place.line, place.after_cr);
        for &byte in text {
            match byte {
                b'\n' | b'\r' => {
                    self.end(file);
                    line += u64::from(byte == b'\r' || !after_cr);
                }
                _ if self.open.is_none() && byte.is_ascii_whitespace() => {}
                _ => {
                    let (_, kept) = self.open.get_or_insert_with(|| (line, String::new()));
                    if kept.len() < KEPT_BYTES {
                        // Each byte is kept as the character with its number, because it may be part of a multi-byte
                        // character.
                        kept.push(char::from(byte));
                    } else {
                        self.goes_on |= byte.is_ascii_alphanumeric() || !byte.is_ascii();
                    }
                }
            }
            after_cr = byte == b'\r';
        }
    }

    /// Ends the current line, because a record begins or the file ends.
    pub(crate) fn end(&mut self, file: &Detection) {
        let goes_on = std::mem::take(&mut self.goes_on);
        let Some((line, kept)) = self.open.take() else { return };
        let bytes: Vec<u8> = kept.chars().filter_map(|c| u8::try_from(c).ok()).collect();
        let text = decode_cut(&bytes, file.legacy.decoder());
        let text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\0'));
        if !goes_on && (!has_words(text, file.format) || is_expected(text, file.format)) {
            return;
        }
        self.lines += 1;
        if self.first.is_none() {
            self.first = Some((line, text.chars().take(EXCERPT_CHARS).collect()));
        }
    }

    /// Adds a remark about the text, which is reported like a line.
    pub(crate) fn note(&mut self, line: u64, remark: &str) {
        self.lines += 1;
        self.first.get_or_insert_with(|| (line, remark.chars().take(EXCERPT_CHARS).collect()));
    }

    /// The skipped text so far, if any.
    pub(crate) fn found(&self) -> Option<SkippedText> {
        let (line, excerpt) = self.first.clone()?;
        Some(SkippedText { lines: self.lines, line, excerpt })
    }
}

/// Returns `true` if a line has content. In line-based formats, a number alone is a record number.
fn has_words(line: &str, format: Format) -> bool {
    let words = line.trim_matches(|c: char| !c.is_alphanumeric());
    let is_number = words.len() <= MAX_DIGITS && words.bytes().all(|byte| byte.is_ascii_digit());
    match format {
        Format::Csv { .. } | Format::FieldRows | Format::BibTex | Format::CslJson | Format::Json => {
            !words.is_empty()
        }
        _ if format.is_xml() => !words.is_empty(),
        _ => !is_number,
    }
}

/// Returns `true` for lines that a format has between its records.
fn is_expected(line: &str, format: Format) -> bool {
    match format {
        Format::WebOfScience => wos::is_around(line.as_bytes()),
        Format::BibTex => line.starts_with('%'),
        // Cochrane writes these lines above RIS.
        Format::Ris => {
            numbered::is_cochrane(line.as_bytes())
                || ris::PREAMBLES.iter().any(|start| line.starts_with(start))
        }
        Format::EuCtrText => eu_ctr::is_around(line),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::detect;

    fn found(text: &[u8], start: &str) -> Option<SkippedText> {
        let file = detect(&[start.as_bytes(), text].concat(), true).unwrap();
        let whole = {
            let mut gaps = Gaps::default();
            gaps.add(text, Position::START, &file);
            gaps.end(&file);
            gaps.found()
        };
        let (mut pieces, mut place) = (Gaps::default(), Position::START);
        for byte in text {
            pieces.add(&[*byte], place, &file);
            place = place.behind(&[*byte], false);
        }
        pieces.end(&file);
        assert_eq!(pieces.found(), whole);
        whole
    }

    fn skipped(lines: u64, line: u64, excerpt: &str) -> Option<SkippedText> {
        Some(SkippedText { lines, line, excerpt: excerpt.to_owned() })
    }

    const RIS: &str = "TY  - JOUR\n";

    #[test]
    fn skipped_words_are_reported_but_not_structure() {
        assert_eq!(found(b"1.\n\n<2>\n____\n", RIS), None);
        assert_eq!(found("\r\n A title ä\nby Roe\n".as_bytes(), RIS), skipped(2, 2, "A title ä"));
        assert_eq!(found(b"FN Clarivate\nVR 1.0\nEF", "PT J\n"), None);
        assert_eq!(found(b"EFFECTS", "PT J\n"), skipped(1, 1, "EFFECTS"));
        assert_eq!(found(b"Record #1 of 2\nProvider: John Wiley\n", RIS), None);
        assert_eq!(found(b"[\n,]", "[{\"title\": 1, \"type\": 2}"), None);
    }

    #[test]
    fn lone_number_is_ignored_in_line_formats_only() {
        assert_eq!(found(b"12", "Title,Year\n"), skipped(1, 1, "12"));
        assert_eq!(found(b", 5]", "[{\"title\": 1, \"type\": 2}"), skipped(1, 1, ", 5]"));
        assert_eq!(found(b"10.5555/12", RIS), skipped(1, 1, "10.5555/12"));
    }

    #[test]
    fn words_count_anywhere_in_any_encoding() {
        let far = [vec![b'-'; KEPT_BYTES + 1], b"words".to_vec()].concat();
        assert_eq!(found(&far, RIS).map(|skipped| skipped.lines), Some(1));
        let blank = [vec![b' '; KEPT_BYTES + 1], b"words".to_vec()].concat();
        assert_eq!(found(&blank, RIS), skipped(1, 1, "words"));
        assert_eq!(found(b"\xC2\xE5\xF1\xED\xE0 \xE8 \xEB\xE5\xF2\xEE", RIS), skipped(1, 1, "Весна и лето"));
    }
}
