//! Detects the format and encoding of a file from its first bytes.

mod binary;
mod closest;
mod foreign;
mod table;
mod text;
mod xml;

use crate::{
    Error, Format,
    encoding::{Certainty, Encoding, EncodingDetection, LegacyEncoding, Utf16, WidthCheck, without_nuls},
    split::{
        self, PartKind, cnki, ebsco_tagged, endnote_text, engineering_village::is_cut_off, entries, eu_ctr,
        lines, nbib, noteexpress, refer, refworks, ris, wos,
    },
};
use table::TableDetection;
pub(crate) use table::has_field_rows;
pub(crate) use text::ovid_format;

/// The number of bytes that are inspected to detect the format: enough for any preamble or header row of real exports,
/// and few enough to keep in memory.
pub const DETECTION_WINDOW: usize = 64 * 1024;

/// The maximum number of lines that real exports have before their records.
const PREAMBLE_LINES: usize = 10;

/// The number of characters shown of an unrecognized file.
const START_CHARS: usize = 60;

/// The result of the detection.
#[derive(Debug)]
pub(crate) struct Detection {
    pub(crate) encoding: Encoding,
    pub(crate) certainty: Certainty,
    /// The legacy encoding of bytes that are not UTF-8.
    pub(crate) legacy: LegacyEncoding,
    pub(crate) mark_length: usize,
    pub(crate) format: Format,
    pub(crate) format_certainty: Certainty,
    /// The reason for text at the beginning of the file that is not read.
    pub(crate) unread: Option<&'static str>,
}

/// Detects encoding and format from the first bytes of a file. With `end`, these bytes are the complete file.
pub(crate) fn detect(window: &[u8], end: bool) -> Result<Detection, Error> {
    if window.is_empty() {
        return Err(Error::Empty);
    }
    if let Some(what) = binary::magic(window) {
        return Err(Error::Binary { what });
    }
    let EncodingDetection { encoding, certainty, mark_length, legacy } = Encoding::detect(window);
    if WidthCheck::new(encoding.is_utf16()).is_joined(window) {
        return Err(Error::JoinedEncodings);
    }
    let mut text = text_of(&window[mark_length..], encoding, &legacy);
    let is_binary = Error::Binary { what: "binary data" };
    let has_nuls = text.contains('\0');
    if has_nuls {
        text = without_nuls(&text).ok_or_else(|| is_binary.clone())?;
    }
    if end && text.trim().is_empty() {
        return Err(Error::Empty);
    }
    let (unread, (format, format_certainty)) = match format(&text) {
        Ok(format) => (None, format),
        Err(_) if has_nuls => return Err(is_binary),
        // Another file may follow a web page that was saved instead of an export.
        Err(error) => match part_behind(&text, &error) {
            Some(format) => (Some(reason(&error)), (format, Certainty::Likely)),
            None => return Err(error),
        },
    };
    Ok(Detection { encoding, certainty, legacy, mark_length, format, format_certainty, unread })
}

/// Decodes the window. A truncated character at its end does not matter here.
fn text_of(window: &[u8], encoding: Encoding, legacy: &LegacyEncoding) -> String {
    if encoding.is_utf16() {
        let mut out = Vec::new();
        Utf16::new(encoding).push(window, &mut out);
        return String::from_utf8_lossy(&out).into_owned();
    }
    match encoding {
        Encoding::Utf8 | Encoding::Utf8Bom => String::from_utf8_lossy(window).into_owned(),
        _ => legacy.decoder().decode(window).into_owned(),
    }
}

/// Detects the format, and its certainty.
fn format(text: &str) -> Result<(Format, Certainty), Error> {
    let start = text.trim_start();
    // Cells with several lines may resemble records of any other format.
    if let Some(delimiter) = table::begins(text) {
        return Ok((Format::Csv { delimiter }, Certainty::Certain));
    }
    if let Some(format) = text::detect_numbered(start) {
        return Ok((format, Certainty::Certain));
    }
    if let Some(name) = foreign::by_start(start) {
        return Err(Error::UnsupportedFormat { name });
    }
    if start.starts_with('<') {
        if ris::line_elements(start.as_bytes()).is_some_and(|at| ris::is_type_line(&start.as_bytes()[at..])) {
            return Ok((Format::Ris, Certainty::Certain));
        }
        return Ok((xml::detect(start)?, Certainty::Certain));
    }
    if let Some(name) = foreign::json(start) {
        return Err(Error::UnsupportedFormat { name });
    }
    if noteexpress::is_type_line(start.trim_start_matches('\u{feff}').as_bytes()) {
        return Ok((Format::NoteExpress, Certainty::Certain));
    }
    let is_of_cssci =
        || lines::all(start).take(PREAMBLE_LINES).any(|line| cnki::is_of_cssci(line.as_bytes()));
    if cnki::is_type_line(start.as_bytes())
        || cnki::begins_with_number(start)
        || cnki::begins_bare(start)
        || is_of_cssci()
    {
        return Ok((Format::CnkiText, Certainty::Certain));
    }
    if let Some(format) = text::json(start) {
        return Ok((format, Certainty::Likely));
    }
    let tagged = tagged(text);
    // A file of tagged lines may follow a file without a line that names the format.
    let before = tagged.map_or(text, |(at, ..)| &text[..at]);
    if text::is_refer(before.trim_start()) {
        return Ok((Format::Refer, Certainty::Likely));
    }
    if table::has_field_rows(before) {
        return Ok((Format::FieldRows, Certainty::Likely));
    }
    if ris::is_loose(before) {
        return Ok((Format::LooseRis, Certainty::Likely));
    }
    if is_ebsco_tagged(before) {
        return Ok((Format::EbscoTagged, Certainty::Likely));
    }
    if let Some((at, format, certainty)) = tagged {
        if at > 0
            && let Some(TableDetection::WithHeader(delimiter, 2..)) = table::find(before)
        {
            return Ok((Format::Csv { delimiter }, Certainty::Likely));
        }
        return Ok((format, certainty));
    }
    if text::is_pubmed_below_head(text) {
        return Ok((Format::PubMedText, Certainty::Likely));
    }
    match table::find(text) {
        Some(TableDetection::WithHeader(delimiter, columns)) => {
            // One known column may be a coincidence; three make a table.
            let certainty = match columns {
                1 => Certainty::Guess,
                2 => Certainty::Likely,
                _ => Certainty::Certain,
            };
            return Ok((Format::Csv { delimiter }, certainty));
        }
        Some(TableDetection::WithoutTitles(columns)) => return Err(Error::Untitled { columns }),
        None if text::is_untyped_ris(text) => return Ok((Format::Ris, Certainty::Likely)),
        None => {}
    }
    match foreign::by_lines(text) {
        Some(name) => Err(Error::UnsupportedFormat { name }),
        None => Err(Error::UnknownFormat { start: start_of(start), closest: closest::guesses(text) }),
    }
}

/// The reason for a web page.
pub(crate) const WEB_PAGE: &str = "this part is a web page (HTML)";
const DOCTYPE: &str = "this part declares a DOCTYPE, which is refused because it can define entities";
/// The reason for a document of an unknown type.
pub(crate) const UNKNOWN_DOCTYPE: &str = "this part declares an unknown DOCTYPE";

/// The XML document that begins here, if its type is known.
pub(crate) fn markup(text: &str) -> Option<PartKind> {
    match xml::detect(text) {
        Ok(format) => Some(PartKind::Read(format)),
        Err(Error::UnknownFormat { .. }) => None,
        Err(error) => Some(PartKind::Unread(reason(&error))),
    }
}

/// The reason for a part with this error.
fn reason(error: &Error) -> &'static str {
    match error {
        Error::UnsupportedFormat { name: xml::WEB_PAGE } => WEB_PAGE,
        Error::UnsupportedFormat { .. } => "this part is in a format that is not read",
        Error::Doctype { name: Some(_) } => DOCTYPE,
        Error::Doctype { name: None } => UNKNOWN_DOCTYPE,
        _ => "this part is in no known format",
    }
}

/// Returns `true` if a text begins with an element or a declaration.
fn is_markup(text: &str) -> bool {
    text.strip_prefix('<')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || matches!(c, '?' | '!')))
}

/// Finds the first file in a text whose beginning is not read.
fn part_behind(text: &str, error: &Error) -> Option<Format> {
    let is_page = reason(error) == WEB_PAGE;
    let lines = match error {
        _ if is_page => usize::MAX,
        // The elements of an unknown document may belong to another format.
        _ if is_markup(text.trim_start())
            && !is_cut_off(lines::all(text.trim_start()).next().unwrap_or_default()) =>
        {
            return None;
        }
        Error::UnsupportedFormat { .. } | Error::UnknownFormat { .. } | Error::Untitled { .. } => {
            PREAMBLE_LINES
        }
        _ => return None,
    };
    split::format_behind(text.as_bytes(), lines, is_page)
}

/// Detects a tagged format by the first line that begins a record, and returns the offset of that line.
fn tagged(text: &str) -> Option<(usize, Format, Certainty)> {
    let lines = lines::spans(text).filter(|line| !text[line.clone()].trim().is_empty());
    let (before, (at, format)) = lines.enumerate().find_map(|(number, line)| {
        let (start, end) = (line.start, line.end);
        let bytes = &text.as_bytes()[line];
        let is_endnote = || endnote_text::begins(bytes, &text[end..]).then_some(Format::EndNoteText);
        Some((number, (start, tagged_line(bytes).or_else(is_endnote)?)))
    })?;
    // After many other lines, the match may be a coincidence.
    Some((at, format, if before <= PREAMBLE_LINES { Certainty::Certain } else { Certainty::Likely }))
}

/// Returns `true` if a record with EBSCOhost's tags begins in one of the first lines.
fn is_ebsco_tagged(text: &str) -> bool {
    let mut lines =
        lines::spans(text).filter(|line| !text[line.clone()].trim().is_empty()).take(PREAMBLE_LINES);
    lines.any(|line| {
        let (end, bytes) = (line.end, text.as_bytes());
        ebsco_tagged::begins(&bytes[line], &bytes[end..])
    })
}

/// The format in which this line begins a record.
fn tagged_line(line: &[u8]) -> Option<Format> {
    if ris::is_type_line(line) {
        Some(Format::Ris)
    } else if nbib::is_first_line(line) {
        Some(Format::Nbib)
    } else if wos::is_type_line(line) {
        Some(Format::WebOfScience)
    } else if entries::is_first_line(line) {
        Some(Format::BibTex)
    } else if refer::is_type_line(line) {
        Some(Format::Refer)
    } else if refworks::is_type_line(line) {
        Some(Format::RefWorks)
    } else if eu_ctr::is_first_line(line) {
        Some(Format::EuCtrText)
    } else {
        None
    }
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
    fn formats_are_detected_by_content() {
        for (text, format) in [
            ("1.\nTY  - JOUR\n", Format::Ris),
            ("  ty  - jour\r\n", Format::Ris),
            ("T1  - a\nA1  - b\nPY  - 2020\nER  - \n", Format::Ris),
            ("\nPMC - PMC1\nPMID- 1\n", Format::Nbib),
            ("<?xml version=\"1.0\"?><xml><records/></xml>", Format::EndNoteXml),
            ("<PubmedArticleSet><PubmedArticle>", Format::PubMedXml),
            ("FN Clarivate\nVR 1.0\nPT J\nTI a\nER\n", Format::WebOfScience),
            ("<1>\nTitle\n  a\n", Format::Ovid),
            ("Database: Ovid MEDLINE(R)\n1     a.mp. (12)\n\n<1>\nTitle\n  a\n", Format::Ovid),
            ("TY  - JOUR\nTI  - a\nN1  - The class\n<1>\nis small\nER  - \n", Format::Ris),
            ("a report\n\n1. J A. 2020;1:2.\n\nT\n\nDoe J.\n\nPMID: 1\n", Format::PubMedText),
            ("1. \nTY  - JOUR\nTI  - a\nN1  - PMID: 1\nER  - \n", Format::Ris),
            ("Record #1 of 1\nID: CN-1\nTI: a\n", Format::Cochrane),
            ("Record #1 of 1\nProvider: John Wiley\nTY  - JOUR\n", Format::Ris),
            ("_____\nReport\n\nDocument 1 of 2\n\na\n", Format::ProQuest),
            ("1: Doe J. A. J. 2020. PMID: 1.\n", Format::PubMedText),
            ("%0 Book\n%T a\n", Format::Refer),
            ("[{\"id\": 1, \"type\": \"book\", \"title\": \"A\"}]", Format::CslJson),
            ("<responseWrapper><resultList>", Format::EuropePmcXml),
            ("<modsCollection xmlns=\"http://www.loc.gov/mods/v3\"><mods>", Format::ModsXml),
            ("<!DOCTYPE article PUBLIC \"a\" \"b.dtd\"><article>", Format::JatsXml),
            ("%A b\n%T a\n", Format::Refer),
            ("RT Journal Article\nT1 a\n", Format::RefWorks),
            ("UI  - 1\nTI  - a\n", Format::Nbib),
            (
                "Summary\nEudraCT Number: 2019-001234-12\nSponsor's Protocol Code Number: 1\n",
                Format::EuCtrText,
            ),
            ("<allTrials totalCount=\"1\"><fullTrial><trial>", Format::IsrctnXml),
            ("% export\n@article{smith2020,\n title = {A}}", Format::BibTex),
            ("article{smith2020,\n title = {A}}", Format::BibTex),
            ("Title,Year,DOI\n\"a\nTY  - JOUR\n\",1999,\n", Format::Csv { delimiter: Delimiter::Comma }),
            ("Title;Year\na;1999\n", Format::Csv { delimiter: Delimiter::Semicolon }),
            ("Title|Year\na, b|1999\n", Format::Csv { delimiter: Delimiter::Bar }),
        ] {
            assert_eq!(format_of(text), format, "{text}");
        }
    }

    #[test]
    fn blank_text_counts_as_empty_file() {
        assert_eq!(detect(b"", true).unwrap_err(), Error::Empty);
        assert_eq!(detect(b"\xEF\xBB\xBF \r\n", true).unwrap_err(), Error::Empty);
    }

    #[test]
    fn unknown_format_error_shows_the_beginning() {
        let error = detect(b"Dear all,\nplease find attached", true).unwrap_err();
        let start = "Dear all, please find attached".to_owned();
        let closest = vec!["CSV (no column is called title)"];
        assert_eq!(error, Error::UnknownFormat { start, closest });
    }

    #[test]
    fn format_certainty_follows_the_evidence() {
        let sure = |text: &str| detect(text.as_bytes(), true).unwrap().format_certainty;
        assert_eq!(sure("Record 1\n1.\nTY  - JOUR\n"), Certainty::Certain);
        assert_eq!(sure(&format!("{}TY  - JOUR\n", "a line\n".repeat(20))), Certainty::Likely);
        assert_eq!(sure("Title,Year,DOI\na,1999,\n"), Certainty::Certain);
        assert_eq!(sure("Title,Year\na,1999\n"), Certainty::Likely);
        assert_eq!(sure("Title\na\n"), Certainty::Guess);
    }
}
