//! What a file is, from its first bytes.

mod binary;
mod foreign;
mod xml;

use crate::{
    Error, Format,
    encoding::{Certainty, Encoding, Legacy, Shown, Utf16},
    read::header,
    split::{bibtex, lines, nbib, ris, wos},
};

/// How many bytes are looked at before the format is decided: large enough for any preamble or header row
/// seen in real exports, small enough to hold without a thought.
pub const DETECTION_WINDOW: usize = 64 * 1024;

/// How much of a file is shown when nothing about it is recognised.
const START_CHARS: usize = 60;

/// What the window shows.
#[derive(Debug)]
pub(crate) struct Detected {
    pub(crate) encoding: Encoding,
    pub(crate) certainty: Certainty,
    /// The older encoding of what is not UTF-8.
    pub(crate) legacy: Legacy,
    pub(crate) mark_length: usize,
    pub(crate) format: Format,
}

/// Decides encoding and format from the first bytes of a file, which is all of it when `end`.
pub(crate) fn detect(window: &[u8], end: bool) -> Result<Detected, Error> {
    if window.is_empty() {
        return Err(Error::Empty);
    }
    if let Some(what) = binary::magic(window) {
        return Err(Error::Binary { what });
    }
    let Shown { encoding, certainty, mark_length, legacy } = Encoding::detect(window);
    let text = text_of(&window[mark_length..], encoding, &legacy);
    if text.contains('\0') {
        return Err(Error::Binary { what: "binary data" });
    }
    if end && text.trim().is_empty() {
        return Err(Error::Empty);
    }
    let format = format(&text)?;
    Ok(Detected { encoding, certainty, legacy, mark_length, format })
}

/// The window as text. A character cut off at its end does not matter here.
fn text_of(window: &[u8], encoding: Encoding, legacy: &Legacy) -> String {
    if encoding.is_utf16() {
        let mut out = Vec::new();
        Utf16::new(encoding).push(window, &mut out);
        return String::from_utf8_lossy(&out).into_owned();
    }
    match encoding {
        Encoding::Utf8 | Encoding::Utf8Bom => String::from_utf8_lossy(window).into_owned(),
        _ => legacy.decoder().decode_without_bom_handling(window).0.into_owned(),
    }
}

fn format(text: &str) -> Result<Format, Error> {
    let start = text.trim_start();
    if start.starts_with('<') {
        return xml::detect(start);
    }
    if let Some(name) = foreign::by_start(start) {
        return Err(Error::UnsupportedFormat { name });
    }
    if let Some(tagged) = tagged(text) {
        return Ok(tagged);
    }
    if let Some(delimiter) = header::find(text) {
        return Ok(Format::Csv { delimiter });
    }
    match foreign::by_lines(text) {
        Some(name) => Err(Error::UnsupportedFormat { name }),
        None => Err(Error::UnknownFormat { start: start_of(start) }),
    }
}

/// The first line that begins a record of a tagged format decides; anything may stand before it.
fn tagged(text: &str) -> Option<Format> {
    lines::all(text).find_map(|line| {
        if ris::is_type_line(line.as_bytes()) {
            Some(Format::Ris)
        } else if nbib::is_first_line(line.as_bytes()) {
            Some(Format::Nbib)
        } else if wos::is_type_line(line.as_bytes()) {
            Some(Format::WebOfScience)
        } else if bibtex::is_first_line(line.as_bytes()) {
            Some(Format::BibTex)
        } else {
            None
        }
    })
}

/// The first characters of the file on one line.
fn start_of(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(START_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Delimiter;

    fn format_of(text: &str) -> Format {
        detect(text.as_bytes(), true).unwrap().format
    }

    #[test]
    fn formats_are_told_by_their_content() {
        assert_eq!(format_of("1.\nTY  - JOUR\n"), Format::Ris);
        assert_eq!(format_of("  ty  - jour\r\n"), Format::Ris);
        assert_eq!(format_of("\nPMC - PMC1\nPMID- 1\n"), Format::Nbib);
        assert_eq!(format_of("<?xml version=\"1.0\"?><xml><records/></xml>"), Format::EndNoteXml);
        assert_eq!(format_of("<PubmedArticleSet><PubmedArticle>"), Format::PubMedXml);
        assert_eq!(format_of("FN Clarivate\nVR 1.0\nPT J\nTI a\nER\n"), Format::WebOfScience);
        assert_eq!(format_of("% export\n@article{smith2020,\n title = {A}}"), Format::BibTex);
        assert_eq!(format_of("Title;Year\na;1999\n"), Format::Csv { delimiter: Delimiter::Semicolon });
    }

    #[test]
    fn blank_text_is_an_empty_file() {
        assert_eq!(detect(b"", true).unwrap_err(), Error::Empty);
        assert_eq!(detect(b"\xEF\xBB\xBF \r\n", true).unwrap_err(), Error::Empty);
    }

    #[test]
    fn text_of_no_format_shows_how_it_starts() {
        let error = detect(b"Dear all,\nplease find attached", true).unwrap_err();
        assert_eq!(error, Error::UnknownFormat { start: "Dear all, please find attached".into() });
    }
}
