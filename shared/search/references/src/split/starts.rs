//! Recognizes lines that begin a file of another format.
//!
//! Reviewers merge exports with programs that only append one file to another. The formats may differ, and the last
//! line of a file may lack its line break, so that a line holds the end of one file and the beginning of the next.

use std::sync::LazyLock;

use memchr::memmem;

use super::{
    PartKind, cnki, ebsco_tagged, endnote_text, engineering_village, entries, eu_ctr,
    lines::{MARK_LENGTH, unmarked},
    nbib, noteexpress, numbered, record_number, refer, refworks, ris, wos,
};
use crate::{
    Delimiter, Format, detect,
    read::field::Field,
    table::{
        header::{self, known_columns},
        joined::{MAX_HEADER, has_values, joined_name, unclear_name},
    },
};

/// The number of bytes after a line that may be needed to recognize it.
pub(super) const LOOKAHEAD: usize = 1024;
/// The maximum length of a line that begins a file of tagged lines.
const MAX_FIRST: usize = 256;
/// The number of bytes at the end of a line that may begin the next file.
const MAX_JOINED: usize = 96;
/// The maximum number of cells of a line with which a header may begin.
const MAX_TRIED: usize = 32;
/// The maximum number of brackets and entries that are inspected in a line.
const MAX_BRACKETS: usize = 16;

// Every line is searched for these, so their searchers are built once.

/// The beginning of the header of Web of Science.
static WEB_OF_SCIENCE: Needle = needle(|| memmem::Finder::new(b"PT\tAU\t"));
/// A part of the name of each column of titles, except in Web of Science.
static TITLE: Needle = needle(|| memmem::Finder::new(b"itle"));
static CAPITAL_TITLE: Needle = needle(|| memmem::Finder::new(b"ITLE"));
/// The beginning of field rows.
static FIELD_ROWS: Needle = needle(|| memmem::Finder::new(b"\"TITLE\","));

type Needle = LazyLock<memmem::Finder<'static>>;

const fn needle(build: fn() -> memmem::Finder<'static>) -> Needle {
    LazyLock::new(build)
}

/// Finds the last occurrence of a needle. It builds no searcher, which takes longer than the search of a line.
fn rfind(line: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memrchr_iter(*needle.first()?, line).find(|at| line[*at..].starts_with(needle))
}

/// The beginning of a file in the middle of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    /// The offset in the line.
    pub(super) at: usize,
    pub(super) kind: PartKind,
}

/// Finds the beginning of a file in a line. `whole` is `false` if the beginning of the line was consumed before.
/// `after` is the text after the line. Only its first [`LOOKAHEAD`] bytes count.
pub(super) fn find(line: &[u8], whole: bool, after: &[u8], current: Format) -> Option<Start> {
    let after = &after[..after.len().min(LOOKAHEAD)];
    let plain = unmarked(line);
    let start = if whole || plain.len() < line.len() { at_start(plain, after) } else { None };
    if let Some(kind) = start {
        if !matches!(kind, PartKind::Read(Format::Csv { .. })) {
            return Some(Start { at: 0, kind });
        }
        // The first name of a header may be joined to the last value of a file.
        let joined = || {
            let (at, delimiter) = joined_header(line, true, None)?;
            Some(Start { at: before_mark(line, at), kind: PartKind::Read(Format::Csv { delimiter }) })
        };
        return marked(line, after).or_else(joined).or(Some(Start { at: 0, kind }));
    }
    if let Some(start) = marked(line, after) {
        return Some(start);
    }
    // The next file begins after the end of the last record.
    let behind = |end: usize| {
        let at = line.len() - line[end..].trim_ascii_start().len();
        let kind = at_start(unmarked(&line[at..]), after).filter(|_| at > 0)?;
        Some(Start { at, kind })
    };
    let next = match current {
        Format::Ris if !may_be_end(line) => None,
        Format::Ris => ris::tag(line).filter(|(name, _)| name == b"ER").and_then(|(_, value)| behind(value)),
        Format::BibTex => {
            let may_follow = |end: &usize| may_begin(unmarked(line[*end..].trim_ascii_start()));
            // Prose has a blank behind a parenthesis.
            let is_end = |at: &usize| line[*at] == b'}' || line.get(at + 1) != Some(&b' ');
            let ends = memchr::memchr2_iter(b'}', b')', line).filter(is_end).map(|brace| brace + 1);
            ends.filter(may_follow).take(MAX_BRACKETS).find_map(behind)
        }
        Format::WebOfScience if line.starts_with(b"EF") || line.starts_with(b"ER") => behind(2),
        _ => None,
    };
    next.or_else(|| joined(line, after, current))
}

/// Finds the file behind a byte-order mark in the middle of a line.
fn marked(line: &[u8], after: &[u8]) -> Option<Start> {
    let mut marks = memchr::memchr_iter(0xEF, line)
        .filter(|at| *at > 0 && unmarked(&line[*at..]).len() + MARK_LENGTH == line.len() - at);
    let at = marks.next()?;
    Some(Start { at, kind: at_start(unmarked(&line[at..]), after)? })
}

/// Finds the beginning of a file in the front of a line that is too long for [`find`]: a whole document, or a whole
/// file of BibTeX, may be on one line.
pub(super) fn find_in_long(front: &[u8], whole: bool, current: Format) -> Option<Start> {
    let is_long = |kind: PartKind| match kind {
        PartKind::Read(format) => {
            format.is_xml() || matches!(format, Format::BibTex | Format::CslJson | Format::Json)
        }
        PartKind::Unread(_) => true,
    };
    find(front, whole, &[], current).filter(|start| is_long(start.kind))
}

/// Returns `false` for a line that has no tag `ER`. Nearly every line is rejected by its first byte.
fn may_be_end(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'E' | b'e' | b' ' | b'\t' | 0xEF))
}

/// The part that begins with this line.
fn at_start(line: &[u8], after: &[u8]) -> Option<PartKind> {
    if !may_begin(line) {
        return None;
    }
    let format = match line.first()? {
        _ if noteexpress::is_type_line(line) => Some(Format::NoteExpress),
        _ if cnki::is_type_line(line) || cnki::is_bare_number(line) => Some(Format::CnkiText),
        b'<' if numbered::is_ovid(line) => Some(detect::ovid_format(next_line(after).unwrap_or_default())),
        b'<' if engineering_village::is_first_line(line) => {
            engineering_village::begins(line, after).then_some(Format::EngineeringVillage)
        }
        b'<' => return markup(line, after),
        b'[' | b'{' => is_json(line, after).then_some(Format::Json),
        b'@' => is_bibtex(line).then_some(Format::BibTex),
        _ if line.len() <= MAX_FIRST => tagged(line, after).or_else(|| table(line, after)),
        _ if is_ris(line) => Some(Format::Ris),
        _ => table(line, after),
    };
    format.map(PartKind::Read)
}

/// Returns `false` for a line that [`at_start`] rejects anyway. Nearly every line is rejected by its first bytes.
fn may_begin(line: &[u8]) -> bool {
    may_begin_tagged(line) || matches!(line.first(), Some(b'<' | b'[' | b'{')) || may_be_table(line)
}

/// Returns `false` if the first two bytes begin neither a line of [`tagged`] or CNKI nor a byte-order mark.
fn may_begin_tagged(line: &[u8]) -> bool {
    // Only RIS may be indented, but the other lines need no second check.
    let first =
        if line.first().is_some_and(u8::is_ascii_whitespace) { line.trim_ascii_start() } else { line };
    matches!(
        first,
        [b'@' | 0xEF, ..]
            | [b'0'..=b'9', b'0'..=b'9' | b'.' | b':', ..]
            | [b'%', b'0', ..]
            | [b'T', b'Y' | b'y', ..]
            | [b'T', b'I', b'-', ..]
            | [b'P', b'M' | b'T', ..]
            | [b'O', b'W', ..]
            | [b'V', b'N', ..]
            | [b'E', b'u', ..]
            | [b'F', b'N', ..]
            | [b'R', b'T' | b'e', ..]
            | [b'D', b'o' | b'a', ..]
            | [b'S', b'c' | b'r', ..]
            // `【` and `流` in UTF-8 and GBK.
            | [0xE3, 0x80, ..]
            | [0xA1, 0xBE, ..]
            | [0xE6, 0xB5, ..]
            | [0xC1, 0xF7, ..]
    )
}

/// Returns `false` for a line whose first cell is too long for the name of a column.
fn may_be_table(line: &[u8]) -> bool {
    let front = &line[..line.len().min(header::MAX_NAME + 1)];
    let Some(at) = memchr::memchr3(b',', b';', b'\t', front) else {
        return memchr::memchr(b'|', front).is_some() || header::is_separator_line(line);
    };
    // A blank after a delimiter shows that it is part of a text, unless another delimiter follows.
    line.get(at + 1) != Some(&b' ') || memchr::memchr3(b',', b';', b'\t', &line[at + 1..]).is_some()
}

/// Returns the format of a file of tagged lines that begins with this line.
fn tagged(line: &[u8], after: &[u8]) -> Option<Format> {
    if !may_begin_tagged(line) {
        return None;
    }
    if is_ris(line) || (is_number(line) && next_line(after).is_some_and(is_ris)) {
        Some(Format::Ris)
    } else if numbered::begins_bare_ovid(line, after) {
        Some(Format::Ovid)
    } else if is_loose_ris(line, after) {
        Some(Format::LooseRis)
    } else if ebsco_tagged::begins(line, after) {
        Some(Format::EbscoTagged)
    } else if is_nbib(line) && !precedes_ris(after) {
        Some(Format::Nbib)
    } else if wos::is_type_line(line) || line.starts_with(b"FN Clarivate") || line.starts_with(b"FN Thomson")
    {
        Some(Format::WebOfScience)
    } else if is_bibtex(line) || (line.starts_with(b"Scopus") && is_scopus(after)) {
        Some(Format::BibTex)
    } else if refer::is_type_line(line) && is_refer(line) {
        Some(Format::Refer)
    } else if endnote_text::is_first_line(line) && endnote_text::begins(line, &String::from_utf8_lossy(after))
    {
        Some(Format::EndNoteText)
    } else if refworks::is_type_line(line) {
        Some(Format::RefWorks)
    } else if numbered::is_cochrane(line) {
        Some(if is_cochrane(after) { Format::Cochrane } else { Format::Ris })
    } else if record_number::is_proquest(line) {
        Some(Format::ProQuest)
    } else if numbered::is_pubmed_text(line, after) {
        Some(Format::PubMedText)
    } else if is_eu_ctr(line, after) {
        Some(Format::EuCtrText)
    } else {
        None
    }
}

/// Returns `true` for `TY  - JOUR`.
fn is_ris(line: &[u8]) -> bool {
    ris::type_code(line).is_some_and(|(code, _)| ris::is_type_code(code))
}

/// Returns `true` for `TY-JOUR`, if two other tags with the same separator follow.
fn is_loose_ris(line: &[u8], after: &[u8]) -> bool {
    let Some((_, separator, value)) = ris::loose_tag(line) else { return false };
    let is_tag = |next: &[u8]| ris::tag_before(next, separator).is_some_and(|(name, _)| &name != b"ER");
    ris::is_loose_type_line(line)
        && is_code(line[value..].trim_ascii())
        && lines_of(after).take(2).filter(|next| is_tag(next)).count() == 2
}

/// Returns `true` for the code of a known type.
fn is_code(code: &[u8]) -> bool {
    crate::read::RIS_KINDS.iter().any(|(kind, _)| code.eq_ignore_ascii_case(kind.as_bytes()))
}

/// Finds the first record in a line of a web page: `<body>TY  - JOUR<br>TI  - a<br>`.
pub(super) fn in_page(line: &[u8]) -> Option<Start> {
    let begins = |at: &usize| {
        let is_separate = line[..*at].last().is_none_or(|byte| *byte == b'>' || byte.is_ascii_whitespace());
        is_separate && is_known_type(&line[*at..], true)
    };
    let at = memmem::find_iter(line, b"TY").find(begins)?;
    Some(Start { at, kind: PartKind::Read(Format::Ris) })
}

/// Returns the start of RIS text in a web page, if the text begins with this line.
pub(super) fn page_line(line: &[u8]) -> Option<Start> {
    is_known_type(line, true).then_some(Start { at: 0, kind: PartKind::Read(Format::Ris) })
}

/// Returns `true` for a line with the code of a known type, or for a line that ends in a markup element.
fn is_known_type(line: &[u8], needs_element: bool) -> bool {
    let Some((code, is_ended)) = ris::type_code(line) else { return false };
    (is_ended || !needs_element) && is_code(code)
}

/// Returns `true` for `1.`, which Ovid writes before a record.
fn is_number(line: &[u8]) -> bool {
    let number = line.trim_ascii_end().strip_suffix(b".").unwrap_or_default();
    (1..=9).contains(&number.len()) && number.iter().all(u8::is_ascii_digit)
}

/// The lines that are not blank.
fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.trim_ascii().is_empty())
}

/// The next line that is not blank.
fn next_line(after: &[u8]) -> Option<&[u8]> {
    lines_of(after).next()
}

/// Returns `true` for `@article{key,`.
fn is_bibtex(line: &[u8]) -> bool {
    line.first() == Some(&b'@') && entries::is_first_line(line) && has_key(line)
}

/// Returns `true` if the date of an export and a BibTeX entry follow.
fn is_scopus(after: &[u8]) -> bool {
    let mut lines = lines_of(after);
    lines.next().is_some_and(|line| line.starts_with(b"EXPORT DATE")) && lines.next().is_some_and(is_bibtex)
}

/// Returns `true` for lines that begin a record of PubMed, PubMed Central, ERIC or Ovid.
fn is_nbib(line: &[u8]) -> bool {
    let number = |text: &[u8]| {
        let text = text.trim_ascii();
        (1..=9).contains(&text.len()) && text.iter().all(u8::is_ascii_digit)
    };
    let line = nbib::unnumbered(line);
    nbib::is_first_line(line)
        && match line.get(..5) {
            Some(b"PMID-") => number(&line[5..]),
            Some(b"PMID ") => number(&line[6..]),
            Some(b"PMC -") => line[5..].trim_ascii().strip_prefix(b"PMC").is_some_and(number),
            Some(b"OWN -") => true,
            Some(b"VN  -") => line[5..].trim_ascii().starts_with(b"Ovid"),
            _ => false,
        }
}

/// Returns `true` if the line after these identifiers has a tag of RIS that nbib lacks. They are fields of RIS then.
fn precedes_ris(after: &[u8]) -> bool {
    const TAGS: [&[u8; 2]; 20] = [
        b"ER", b"VL", b"SP", b"EP", b"JO", b"JF", b"T1", b"T2", b"Y1", b"PY", b"UR", b"N1", b"N2", b"A1",
        b"DA", b"ID", b"SN", b"L1", b"M1", b"C1",
    ];
    let is_identifier = |line: &&[u8]| line.starts_with(b"PMID") || line.starts_with(b"PMC ");
    let next = lines_of(after).find(|line| !is_identifier(line));
    next.and_then(ris::tag).is_some_and(|(name, _)| TAGS.contains(&&name))
}

/// Returns `true` for `%0 Journal Article`.
fn is_refer(line: &[u8]) -> bool {
    line.get(3..).is_some_and(|kind| kind.trim_ascii_start().first().is_some_and(u8::is_ascii_uppercase))
}

/// Returns `true` if a key or a field follows the brace of a BibTeX entry.
fn has_key(line: &[u8]) -> bool {
    line.contains(&b',') || line.contains(&b'=') || line.trim_ascii_end().ends_with(b"{")
}

/// Returns `true` if the lines of a Cochrane record follow. RIS of Cochrane has the same first line.
fn is_cochrane(after: &[u8]) -> bool {
    let next = after.trim_ascii_start();
    [b"ID: ".as_slice(), b"AU: ", b"TI: ", b"SO: "].iter().any(|tag| next.starts_with(tag))
}

/// Returns `true` for the first line of a record of the EU Clinical Trials Register, which the sponsor follows. The
/// number also stands alone on lines of abstracts.
fn is_eu_ctr(line: &[u8], after: &[u8]) -> bool {
    eu_ctr::is_first_line(line) && next_line(after).is_some_and(|next| next.starts_with(b"Sponsor"))
}

/// Returns `true` if a JSON document begins: an object with a name, possibly in a list.
fn is_json(line: &[u8], after: &[u8]) -> bool {
    let mut bytes = line.iter().chain(after).filter(|byte| !byte.is_ascii_whitespace());
    let first = bytes.next();
    let is_object = first == Some(&b'{') || (first == Some(&b'[') && bytes.next() == Some(&b'{'));
    is_object
        && bytes.next() == Some(&b'"')
        && bytes.by_ref().any(|byte| *byte == b'"')
        && bytes.next() == Some(&b':')
}

/// The names of the outermost elements of documents.
const ROOTS: [&[u8]; 17] = [
    b"xml",
    b"records",
    b"PubmedArticleSet",
    b"PubmedBookArticleSet",
    b"MedlineCitationSet",
    b"responseWrapper",
    b"pmc-articleset",
    b"articles",
    b"article",
    b"Trials_downloaded_from_ICTRP",
    b"trials",
    b"allTrials",
    b"fullTrial",
    b"modsCollection",
    b"mods",
    b"rdf:RDF",
    b"html",
];

/// Returns `true` for the name of an element that may be the outermost one of a document.
pub(super) fn is_root(name: &[u8]) -> bool {
    ROOTS.contains(&name)
}

/// The name of the element whose tag begins a text.
fn element_name(tag: &[u8]) -> &[u8] {
    /// The maximum length of a name, with the bracket before it.
    const MAX_NAME: usize = 40;
    let name = &tag[1..tag.len().min(MAX_NAME)];
    &name[..name.iter().position(|byte| matches!(byte, b' ' | b'>' | b'\t')).unwrap_or(name.len())]
}

/// The document that begins here.
fn markup(line: &[u8], after: &[u8]) -> Option<PartKind> {
    let name = element_name(line);
    let is_prolog = name == b"?xml" || name.eq_ignore_ascii_case(b"!DOCTYPE");
    if !is_prolog && !is_root(name) && !name.eq_ignore_ascii_case(b"html") {
        return None;
    }
    document(&[&line[..line.len().min(LOOKAHEAD)], b"\n", after].concat())
}

/// The document that begins a text. Only its first [`LOOKAHEAD`] bytes count.
pub(super) fn document(text: &[u8]) -> Option<PartKind> {
    detect::markup(&String::from_utf8_lossy(&text[..text.len().min(LOOKAHEAD)]))
}

/// The table that begins with this row.
fn table(line: &[u8], after: &[u8]) -> Option<Format> {
    if line.len() > MAX_HEADER {
        return None;
    }
    let header = if header::is_separator_line(line) { next_line(after)? } else { line };
    let columns = Delimiter::ALL.map(|delimiter| (known_columns(header, delimiter), delimiter));
    let known = columns.into_iter().filter(|(columns, _)| *columns > 0);
    if let Some((_, delimiter)) = known.max_by_key(|(columns, _)| *columns) {
        return Some(Format::Csv { delimiter });
    }
    let is_title = line.starts_with(b"\"TITLE\",") || line.starts_with(b"TITLE,");
    let text = || [line, b"\n", after].concat();
    (is_title && detect::has_field_rows(&String::from_utf8_lossy(&text()))).then_some(Format::FieldRows)
}

/// Finds the first position after other text on the same line at which a file begins.
fn joined(line: &[u8], after: &[u8], current: Format) -> Option<Start> {
    // A line that is followed by one of the same record can only end in the first line of that format.
    if is_tagged(after, current)
        && joined_line(line, after, Some(current)).is_none()
        && !(may_begin_tagged(after) && is_followed_by_record(after))
    {
        return None;
    }
    let is_open = matches!(line.trim_ascii_end().last(), Some(b'[' | b'{'));
    // Only BibTeX and documents have a second line with the indentation of a continued value.
    if is_continued(after, current) && !is_open && memchr::memchr3(b'@', b'<', b'{', line).is_none() {
        return None;
    }
    let end = &line[line.len().saturating_sub(MAX_JOINED)..];
    let read = |(at, format): (usize, Format)| (at, PartKind::Read(format));
    let of = |format: Format| move |at: usize| (at, PartKind::Read(format));
    let mut first = joined_preface(line, after).map(read);
    let mut add = |found: Option<(usize, PartKind)>| {
        first = first.into_iter().chain(found).min_by_key(|(at, _)| *at);
    };
    if holds(end, is_in_last_line) {
        add(joined_line(line, after, None).map(read));
        add(joined_citation(line, after, current).map(of(Format::PubMedText)));
        add(joined_trial(line, after).map(of(Format::EuCtrText)));
    }
    if memchr::memchr(b'@', line).is_some() {
        add(joined_entry(line, after, current).map(of(Format::BibTex)));
    }
    if is_open || holds(line, is_in_document) {
        let is_rows = |at: &usize| *at > 0 && table(&line[*at..], after) == Some(Format::FieldRows);
        add(FIELD_ROWS.find(line).filter(is_rows).map(of(Format::FieldRows)));
        add(joined_json(line, after, current).map(read));
        add(joined_table(line, after, current).map(read));
        add(joined_document(line, after));
    }
    first.map(|(at, kind)| Start { at: before_mark(line, at), kind })
}

/// Returns `true` if the line before this text is the last one of its record: the text is blank, or its first line
/// begins a record of any format.
fn is_followed_by_record(after: &[u8]) -> bool {
    let next = after.trim_ascii_start();
    let stop = memchr::memchr2(b'\n', b'\r', next).unwrap_or(next.len());
    let line = unmarked(&next[..stop]);
    next.is_empty() || matches!(line.first(), Some(b'@' | b'%')) || at_start(line, &next[stop..]).is_some()
}

/// The number of bytes that are compared at once.
const LANES: usize = 32;

/// Returns `true` if a pair of adjacent bytes satisfies the condition. The condition must not branch, so that the
/// compiler compares many bytes with one instruction.
fn holds(line: &[u8], is_pair: impl Fn(u8, u8) -> bool) -> bool {
    let mut found = [false; LANES];
    let mut compare = |block: &[u8; LANES + 1]| {
        for (at, found) in found.iter_mut().enumerate() {
            *found |= is_pair(block[at], block[at + 1]);
        }
    };
    let mut rest = line;
    while let Some(block) = rest.first_chunk() {
        compare(block);
        rest = &rest[LANES..];
    }
    // The last block overlaps the one before it.
    match line.last_chunk() {
        Some(block) => compare(block),
        None => {
            let mut block = [0; LANES + 1];
            block[..line.len()].copy_from_slice(line);
            compare(&block);
        }
    }
    found.into_iter().fold(false, |any, found| any | found)
}

/// Returns `true` for a pair that the beginnings in [`joined_document`], [`joined_json`], [`joined_table`] and
/// [`FIELD_ROWS`] contain.
fn is_in_document(first: u8, second: u8) -> bool {
    (first == b'<')
        | ((first == b'{') & ((second == b'"') | (second == b' ')))
        | ((first == b'[') & ((second == b'{') | (second == b' ')))
        | ((first == b'\t') & (second == b'A'))
        | ((first | 0x20 == b't') & (second | 0x20 == b'l'))
}

/// Returns `true` for a pair that the beginnings in [`joined_line`] and [`joined_citation`] contain.
fn is_in_last_line(first: u8, second: u8) -> bool {
    let is_numbered = (first == b'1') & ((second == b'.') | (second == b':') | (second == b' '));
    // `RT `, `PT `, `FN `, `OWN - ` and `%0 `.
    let is_tag = (second == b' ') & ((first == b'T') | (first == b'N') | (first == b'0'));
    // `TY`, `PMC -`, `VN  -`, `PMID-`, `TI-`, `#1`, `Type:`, `{R` and the first byte of a Chinese letter of CNKI.
    let is_word = ((first == b'T') & (second == b'Y'))
        | ((first == b'M') & (second == b'C'))
        | ((first == b'V') & (second == b'N'))
        | ((first == b'D') & (second == b'-'))
        | ((first == b'I') & (second == b'-'))
        | ((first == b'#') & (second == b'1'))
        | ((first == b'e') & (second == b':'))
        | ((first == b'{') & (second == b'R'));
    let is_chinese = (first == 0xE6) | ((first == 0xE3) & (second == 0x80));
    is_numbered | is_tag | is_word | is_chinese | (first == b'<')
}

/// Finds the first line of a file of tagged lines, of one format or of any.
fn joined_line(line: &[u8], after: &[u8], wanted: Option<Format>) -> Option<(usize, Format)> {
    let from = line.len().saturating_sub(MAX_JOINED);
    let beginnings: &[&[Beginning]] = match wanted {
        None => &[RIS_LINES, NBIB_LINES, REFER_LINES, WEB_OF_SCIENCE_LINES, OTHER_LINES],
        Some(Format::Ris) => &[RIS_LINES],
        // The second line of RIS is like a line of nbib.
        Some(Format::Nbib) => &[RIS_LINES, NBIB_LINES],
        Some(Format::Refer) => &[REFER_LINES],
        Some(Format::WebOfScience) => &[WEB_OF_SCIENCE_LINES],
        Some(_) => &[],
    };
    beginnings.iter().copied().flatten().find_map(|(needle, format, begins)| {
        let at = from + rfind(&line[from..], needle)?;
        let format = match *format {
            Format::Cochrane if !is_cochrane(after) => Format::Ris,
            Format::Ovid => detect::ovid_format(next_line(after).unwrap_or_default()),
            Format::Ris if !is_known_type(&line[at..], false) => Format::LooseRis,
            format => format,
        };
        // A blank before it shows that it is part of a text.
        let is_joined = line[..at].last().is_some_and(|before| !before.is_ascii_whitespace())
            && (format != Format::LooseRis || is_loose_ris(&line[at..], after))
            && (format != Format::EndNoteText
                || endnote_text::begins(&line[at..], &String::from_utf8_lossy(after)))
            && (format != Format::EbscoTagged || ebsco_tagged::begins(&line[at..], after));
        (is_joined && begins(&line[at..])).then_some((at, format))
    })
}

/// Finds the first BibTeX entry. An entry that is closed on its line may also be quoted by a text, which then continues
/// behind it, or on the next line.
fn joined_entry(line: &[u8], after: &[u8], current: Format) -> Option<usize> {
    let before = |at: usize| line[..at].last().copied().filter(|before| !before.is_ascii_whitespace());
    let may_begin = |at: &usize| before(*at).is_some() && entries::is_first_line(&line[*at..]);
    let begins = |at: &usize| {
        // The last cell of a row may be empty, or contain an entry.
        let is_cell = matches!(current, Format::Csv { delimiter } if before(*at) == Some(delimiter.byte()));
        has_key(&line[*at..]) && is_entry(&line[*at..], after, is_cell)
    };
    memchr::memchr_iter(b'@', line).filter(may_begin).take(MAX_BRACKETS).find(begins)
}

/// Returns `true` unless an apparent entry is quoted by a text or is a cell.
fn is_entry(entry: &[u8], after: &[u8], is_cell: bool) -> bool {
    let Some(end) = entries::closed_end(entry) else { return !entry.trim_ascii_end().ends_with(b"}") };
    let rest = entry[end..].trim_ascii();
    let is_last = || {
        let is_end =
            if is_cell { after.trim_ascii_start().starts_with(b"@") } else { is_followed_by_record(after) };
        rest.is_empty() && is_end
    };
    rest.starts_with(b"@") || is_last() || at_start(unmarked(rest), after).is_some()
}

/// Finds the first line of PubMed's text. The number of a citation is joined to the text before it, and is not a word
/// of this text.
fn joined_citation(line: &[u8], after: &[u8], current: Format) -> Option<usize> {
    // The dates of a citation may follow its DOI: `10.5555/1. Epub 2020 Jan 2.`
    if current == Format::PubMedText && !line.starts_with(b"PM") && !line.starts_with(b"DOI") {
        return None;
    }
    let from = line.len().saturating_sub(MAX_JOINED);
    [b"1. ".as_slice(), b"1: "].into_iter().find_map(|needle| {
        let at = from + rfind(&line[from..], needle)?;
        let before = *line[..at].last()?;
        // A blank line follows the citation.
        let is_cited = needle == b"1. " && after.first().is_some_and(|byte| matches!(byte, b'\n' | b'\r'));
        let is_joined = if before.is_ascii_digit() { is_cited } else { !before.is_ascii_whitespace() };
        (is_joined && numbered::is_pubmed_text(&line[at..], after)).then_some(at)
    })
}

/// Finds the first line of a record of the EU Clinical Trials Register.
fn joined_trial(line: &[u8], after: &[u8]) -> Option<usize> {
    let from = line.len().saturating_sub(MAX_JOINED);
    let at = from + rfind(&line[from..], eu_ctr::FIRST)?;
    let is_joined = line[..at].last().is_some_and(|before| !before.is_ascii_whitespace());
    (is_joined && is_eu_ctr(&line[at..], after)).then_some(at)
}

/// Finds the beginning of an XML document.
fn joined_document(line: &[u8], after: &[u8]) -> Option<(usize, PartKind)> {
    let begins = |at: &usize| *at > 0 && is_document(&line[*at..], after);
    let mut places = memchr::memchr_iter(b'<', line).filter(begins).take(MAX_BRACKETS);
    places.find_map(|at| Some((at, markup(&line[at..], after)?)))
}

/// Returns `true` for a prolog, or for an outermost element with another element inside. Texts name elements too.
fn is_document(text: &[u8], after: &[u8]) -> bool {
    /// The maximum length of the tag of an outermost element.
    const MAX_TAG: usize = 512;
    const DOCTYPE: &[u8] = b"<!DOCTYPE ";
    if text.starts_with(b"<?xml ")
        || text.get(..DOCTYPE.len()).is_some_and(|start| start.eq_ignore_ascii_case(DOCTYPE))
    {
        return true;
    }
    let name = element_name(text);
    if !is_root(name) {
        return false;
    }
    let tag = &text[..text.len().min(MAX_TAG)];
    let Some(end) = memchr::memchr(b'>', tag) else { return text.len() < MAX_TAG };
    let inner = text[end + 1..].trim_ascii_start();
    let inner = if inner.is_empty() { after.trim_ascii_start() } else { inner };
    // Web pages have an element with the name of JATS.
    let is_page = name == b"article"
        && memmem::find(&tag[..end], b"article-type").is_none()
        && memmem::find(&tag[..end], b"dtd-version").is_none()
        && !inner.starts_with(b"<front");
    inner.starts_with(b"<") && !inner.starts_with(b"</") && !is_page
}

/// Finds the beginning of a JSON document.
fn joined_json(line: &[u8], after: &[u8], current: Format) -> Option<(usize, Format)> {
    if matches!(current, Format::BibTex | Format::CslJson | Format::Json) {
        return None;
    }
    let begins = |at: &usize| {
        let is_joined = line[..*at].last().is_some_and(|before| !before.is_ascii_whitespace());
        let next = line[at + 1..].trim_ascii_start().first();
        let is_object = matches!((line[*at], next), (_, None) | (b'{', Some(b'"')) | (b'[', Some(b'{')));
        is_joined && is_object && is_json(&line[*at..], after)
    };
    memchr::memchr2_iter(b'{', b'[', line).find(begins).map(|at| (at, Format::Json))
}

/// Finds the line before the first record of a file that says nothing: `1.` above RIS, and `sep=;` above a header.
fn joined_preface(line: &[u8], after: &[u8]) -> Option<(usize, Format)> {
    const NUMBER: &[u8] = b"1.";
    const SEPARATOR: usize = b"sep=;".len();
    let front = |length: usize| line.split_at_checked(line.len().checked_sub(length)?);
    if let Some((before, NUMBER)) = front(NUMBER.len())
        && before.last().is_some_and(|last| !last.is_ascii_digit() && !last.is_ascii_whitespace())
    {
        if next_line(after).is_some_and(is_ris) {
            return Some((before.len(), Format::Ris));
        }
        if numbered::begins_bare_ovid(NUMBER, after) {
            return Some((before.len(), Format::Ovid));
        }
    }
    let (before, separator) = front(SEPARATOR)?;
    if before.is_empty() || !header::is_separator_line(separator) {
        return None;
    }
    table(separator, after).map(|format| (before.len(), format))
}

/// Finds the header of a table.
fn joined_table(line: &[u8], after: &[u8], current: Format) -> Option<(usize, Format)> {
    // The splitter of a table finds the header behind a row with the same delimiter.
    let own = if let Format::Csv { delimiter } = current { Some(delimiter) } else { None };
    let (at, delimiter) = joined_header(line, false, own)?;
    let next = next_line(after)?;
    let is_row = next.contains(&delimiter.byte()) && !is_tagged(next, current);
    is_row.then_some((at, Format::Csv { delimiter }))
}

/// Checks whether a file begins at a needle.
type Check = fn(&[u8]) -> bool;

/// The beginning of a file of tagged lines, its format, and a check of the line that begins with it.
type Beginning = (&'static [u8], Format, Check);

const RIS_LINES: &[Beginning] =
    &[(b"TY", Format::Ris, |line| ris::is_type_line(line) || ris::is_loose_type_line(line))];
const NBIB_LINES: &[Beginning] = &[
    (b"PMID- ", Format::Nbib, is_nbib),
    (b"OWN - ", Format::Nbib, is_nbib),
    (b"PMC - ", Format::Nbib, is_nbib),
    (b"VN  - ", Format::Nbib, is_nbib),
];
const REFER_LINES: &[Beginning] = &[(b"%0 ", Format::Refer, is_refer)];
const WEB_OF_SCIENCE_LINES: &[Beginning] = &[
    (b"FN ", Format::WebOfScience, |line| {
        line[3..].starts_with(b"Clarivate") || line[3..].starts_with(b"Thomson")
    }),
    (b"PT ", Format::WebOfScience, wos::is_type_line),
];
const OTHER_LINES: &[Beginning] = &[
    ("SrcDatabase-来源库".as_bytes(), Format::CnkiText, cnki::is_type_line),
    (b"{Reference Type}: ", Format::NoteExpress, noteexpress::is_type_line),
    (b"RT ", Format::RefWorks, refworks::is_type_line),
    (b"Record #1 of ", Format::Cochrane, numbered::is_cochrane),
    (b"Document 1 of ", Format::ProQuest, record_number::is_proquest),
    (b"<RECORD 1>", Format::EngineeringVillage, engineering_village::is_first_line),
    (b"<1>", Format::Ovid, numbered::is_ovid),
    (b"<1. >", Format::Ovid, numbered::is_ovid),
    ("【流水号】".as_bytes(), Format::CnkiText, cnki::is_type_line),
    ("流水号".as_bytes(), Format::CnkiText, cnki::is_bare_number),
    ("【タイトル】".as_bytes(), Format::CnkiText, cnki::is_type_line),
    (b"Reference Type:", Format::EndNoteText, endnote_text::is_first_line),
    (b"TI- ", Format::EbscoTagged, |_| true),
];

/// The offset of a byte-order mark that is directly before `at`, else `at`.
fn before_mark(line: &[u8], at: usize) -> usize {
    if at >= MARK_LENGTH && unmarked(&line[at - MARK_LENGTH..]).len() == line.len() - at {
        at - MARK_LENGTH
    } else {
        at
    }
}

/// Finds a header whose first name is joined to other text: `2020.Title,Authors,DOI`. If the line itself is a header
/// (`is_header`), its first name may be an unknown one. The delimiter `except` is ignored.
fn joined_header(line: &[u8], is_header: bool, except: Option<Delimiter>) -> Option<(usize, Delimiter)> {
    if let Some(at) = WEB_OF_SCIENCE.find(line).filter(|at| known_columns(&line[*at..], Delimiter::Tab) > 0) {
        return Some((at, Delimiter::Tab));
    }
    if !is_header {
        TITLE.find(line).or_else(|| CAPITAL_TITLE.find(line))?;
    }
    let is_table = |delimiter: &Delimiter| {
        except != Some(*delimiter)
            && memchr::memchr_iter(delimiter.byte(), line).nth(header::SURE_COLUMNS - 2).is_some()
    };
    Delimiter::ALL.into_iter().filter(is_table).find_map(|delimiter| {
        let (mut end, mut first, mut unclear, mut tried) = (line.len(), None, None, 0);
        // The number of known names behind the cell.
        let (mut known, mut has_title) = (0, false);
        // The header may extend back to the first cell that is too long for the name of a column.
        while line.len() - end <= MAX_HEADER {
            let start = memchr::memrchr(delimiter.byte(), &line[..end]).map_or(0, |at| at + 1);
            let cell = &line[start..end];
            let mut begins = |at: &usize| {
                tried += 1;
                tried <= MAX_TRIED && known_columns(&line[*at..], delimiter) > 0
            };
            let may_be_joined = !is_header || has_values(cell);
            // The first name of the header itself may be unknown: `entryDate`.
            let is_name =
                !may_be_joined && cell.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
            let name = joined_name(cell).filter(|_| !is_name);
            first = name.map(|length| end - length).filter(&mut begins).or(first);
            let name = Some(cell).filter(|cell| cell.len() <= header::MAX_NAME);
            let name = name.and_then(|name| std::str::from_utf8(name).ok());
            let named = name.and_then(|name| header::column(name.trim_matches('"'), 0).named);
            if may_be_joined && named.is_none() && has_title && known >= header::SURE_COLUMNS {
                let length = unclear_name(cell).filter(|length| *length < cell.len());
                unclear = length.map(|length| end - length).filter(begins).or(unclear);
            }
            if start == 0 || end - start > header::MAX_NAME {
                break;
            }
            known += usize::from(named.is_some());
            has_title |= named.is_some_and(|named| named.field == Field::Title);
            end = start - 1;
        }
        first.or(unclear).map(|at| (at, delimiter))
    })
}

/// Returns `true` if a text begins with a line that has a tag of its format.
fn is_tagged(text: &[u8], format: Format) -> bool {
    match format {
        Format::Ris => {
            let usual = matches!(text, [b'A'..=b'Z', b'A'..=b'Z' | b'0'..=b'9', b' ', b' ', b'-', ..]);
            usual || ris::tag(text).is_some()
        }
        Format::WebOfScience => wos::tag(text).is_some() || text.starts_with(b"ER\n"),
        Format::Nbib => {
            (text.get(4) == Some(&b'-') && !ris::is_type_line(text)) || nbib::tagged(text).is_some()
        }
        Format::Refer => text.starts_with(b"%"),
        Format::BibTex => is_field(text),
        _ => false,
    }
}

/// Returns `true` if a text begins with a line that continues the value of a tag.
fn is_continued(text: &[u8], format: Format) -> bool {
    match format {
        Format::Nbib => text.starts_with(b"      "),
        Format::WebOfScience => text.starts_with(b"   "),
        _ => false,
    }
}

/// Returns `true` for the beginning of a field of a BibTeX entry: `title = {`.
fn is_field(text: &[u8]) -> bool {
    /// The maximum length of a name of a field that is recognized.
    const MAX_FIELD: usize = 32;
    let text = text[..text.len().min(2 * MAX_FIELD)].trim_ascii_start();
    let name = text.iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
    name > 0 && text[name..].trim_ascii_start().first() == Some(&b'=')
}
