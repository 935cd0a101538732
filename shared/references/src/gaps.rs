//! The text of a file that belongs to none of its records.

use serde::{Deserialize, Serialize};

use crate::{Format, outcome::EXCERPT_CHARS, stream::Place};

/// How many bytes of a line are kept to show it: what the characters of an excerpt take at most.
const KEPT: usize = 4 * EXCERPT_CHARS;

/// The text between the records: how much there is, and what its first line is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Gaps {
    /// Lines that have words in them, and are nothing that the format has there.
    lines: u64,
    /// The first of them.
    first: Option<(u64, String)>,
    /// The beginning of the line that is looked at, and its number.
    open: Option<(u64, String)>,
    /// Whether an XML tag is open.
    in_tag: bool,
}

/// Text that belongs to no record, and is no part of the format either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// How many lines it has, blank ones and mere numbers not counted.
    pub lines: u64,
    /// The number of the first of them, from 1.
    pub line: u64,
    /// How that line begins, in at most [`EXCERPT_CHARS`] characters.
    pub excerpt: String,
}

impl Gaps {
    /// Takes the next bytes that belong to no record, which begin at this place. They may be cut anywhere.
    pub(crate) fn add(&mut self, text: &[u8], place: Place, format: Format) {
        if text.iter().all(u8::is_ascii_whitespace) && self.open.is_none() {
            return;
        }
        let is_xml = is_xml(format);
        let (mut line, mut after_cr) = (place.line, place.after_cr);
        for &byte in text {
            match byte {
                b'\n' | b'\r' => {
                    self.end_line(format);
                    line += u64::from(byte == b'\r' || !after_cr);
                }
                b'<' if is_xml => self.in_tag = true,
                b'>' if self.in_tag => self.in_tag = false,
                _ if self.in_tag => {}
                _ => {
                    // Each byte is kept as the character of its number, as this may be half of a character.
                    let (_, kept) = self.open.get_or_insert_with(|| (line, String::new()));
                    if kept.chars().count() < KEPT {
                        kept.push(char::from(byte));
                    }
                }
            }
            after_cr = byte == b'\r';
        }
    }

    /// A record begins, or the file ends.
    pub(crate) fn end(&mut self, format: Format) {
        self.end_line(format);
        self.in_tag = false;
    }

    fn end_line(&mut self, format: Format) {
        let Some((line, kept)) = self.open.take() else { return };
        let bytes: Vec<u8> = kept.chars().filter_map(|c| u8::try_from(c).ok()).collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        if !text.contains(char::is_alphabetic) || is_expected(text, format) {
            return;
        }
        self.lines += 1;
        if self.first.is_none() {
            self.first = Some((line, text.chars().take(EXCERPT_CHARS).collect()));
        }
    }

    /// What there was.
    pub(crate) fn found(&self) -> Option<Skipped> {
        let (line, excerpt) = self.first.clone()?;
        Some(Skipped { lines: self.lines, line, excerpt })
    }
}

fn is_xml(format: Format) -> bool {
    matches!(format, Format::EndNoteXml | Format::PubMedXml | Format::EuropePmcXml | Format::JatsXml)
}

/// Whether a line is one that a format has between its records.
fn is_expected(line: &str, format: Format) -> bool {
    let expected: &[&str] = match format {
        Format::WebOfScience => &["FN ", "VR ", "EF"],
        Format::BibTex => &["%"],
        Format::Ris | Format::Cochrane => &["Record #", "Provider:", "Content:", "Database:"],
        Format::ProQuest | Format::Ovid => &["Document "],
        Format::Csv { .. } => &["sep=", "SEP="],
        _ => &[],
    };
    expected.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, format: Format) -> Option<Skipped> {
        let whole = {
            let mut gaps = Gaps::default();
            gaps.add(text.as_bytes(), Place::START, format);
            gaps.end(format);
            gaps.found()
        };
        let (mut pieces, mut place) = (Gaps::default(), Place::START);
        for byte in text.bytes() {
            pieces.add(&[byte], place, format);
            place = place.behind(&[byte], false);
        }
        pieces.end(format);
        assert_eq!(pieces.found(), whole);
        whole
    }

    #[test]
    fn words_are_named_and_what_the_format_has_there_is_not() {
        let skipped = |lines, line, excerpt: &str| Some(Skipped { lines, line, excerpt: excerpt.to_owned() });
        assert_eq!(found("1.\n\n2.\n____\n", Format::Ris), None);
        assert_eq!(found("\r\n A title ä\nby Roe\n", Format::Ris), skipped(2, 2, "A title ä"));
        assert_eq!(found("FN Clarivate\nVR 1.0\nEF", Format::WebOfScience), None);
        assert_eq!(
            found("<records>\n<a b='c'/>\nwords</records>", Format::EndNoteXml),
            skipped(1, 3, "words")
        );
        assert_eq!(found("[\n,]", Format::CslJson), None);
    }
}
