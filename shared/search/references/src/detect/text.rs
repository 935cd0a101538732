//! Detects formats that require several lines as evidence.

use crate::{
    Format,
    read::{after_bare_number, is_ovid_name},
    split::{engineering_village, lines, nbib, numbered, record_number, refer, ris},
};

/// The maximum number of lines that are inspected.
const MAX_LINES: usize = 40;
/// The maximum number of lines within which numbered records begin.
const MAX_HEAD: usize = 200;
/// The minimum number of tagged lines in an EndNote file whose records do not begin with their type.
const MIN_TAGS: usize = 2;

/// Returns the format of a record by the line below its number in angle brackets. Ovid also exports RIS and nbib.
pub(crate) fn ovid_format(next: &[u8]) -> Format {
    if ris::type_code(next).is_some_and(|(code, _)| ris::is_type_code(code)) {
        Format::Ris
    } else if nbib::tagged(next).is_some() {
        Format::Nbib
    } else {
        Format::Ovid
    }
}

/// Detects formats with numbered records by the first record's line and the line after it. A search strategy may precede
/// them.
pub(super) fn detect_numbered(start: &str) -> Option<Format> {
    let all: Vec<&str> = lines::all(start).filter(|line| !line.trim().is_empty()).take(MAX_HEAD).collect();
    let first = all.first()?.as_bytes();
    let is_tagged = |line: &&str| ris::tag(line.as_bytes()).is_some();
    let head = all.iter().position(is_tagged).unwrap_or(all.len());
    let next = |is_first: fn(&[u8]) -> bool| {
        let at = all[..head].iter().position(|line| is_first(line.as_bytes()))?;
        Some(all.get(at + 1).copied().unwrap_or_default())
    };
    if is_engineering_village(start, &all[..head]) {
        return Some(Format::EngineeringVillage);
    }
    if let Some(next) = next(numbered::is_ovid) {
        return Some(ovid_format(next.as_bytes()));
    }
    if is_unmarked_ovid(&all[..head]) {
        return Some(Format::Ovid);
    }
    // Numbers also precede the records of other formats.
    if numbered::is_pubmed(first) && !nbib::is_first_line(first) && start.contains("PMID:") && head != 1 {
        return Some(Format::PubMedText);
    }
    // Cochrane also exports RIS below the same line.
    let tagged = |line: &str| line.split_once(": ").is_some_and(|(tag, _)| matches!(tag, "ID" | "AU" | "TI"));
    if next(numbered::is_cochrane).is_some_and(tagged) {
        return Some(Format::Cochrane);
    }
    let has_id = || memchr::memmem::find(start.as_bytes(), numbered::PROQUEST_ID).is_some();
    let is_proquest = next(record_number::is_proquest).is_some() || (numbered::is_rule(first) && has_id());
    is_proquest.then_some(Format::ProQuest)
}

/// Returns `true` for Ovid's text whose records have no numbers in angle brackets: names of different fields above
/// indented values, among them a title.
fn is_unmarked_ovid(head: &[&str]) -> bool {
    /// The minimum number of names below a number, and without one.
    const MIN_NAMES: (usize, usize) = (2, 3);
    let mut names: Vec<&[u8]> = Vec::new();
    let mut has_number = false;
    for (at, pair) in head.windows(2).enumerate() {
        let (line, next) = (pair[0].as_bytes(), pair[1].as_bytes());
        let before = at.checked_sub(1).and_then(|before| head.get(before));
        let number = after_bare_number(line).filter(|rest| !rest.is_empty());
        let name = number.unwrap_or(line.trim_ascii_end());
        if !numbered::is_indented(next) || !is_ovid_name(name) {
            continue;
        }
        let is_number = |line: &&str| after_bare_number(line.as_bytes()).is_some_and(<[u8]>::is_empty);
        has_number |= names.is_empty() && (number.is_some() || before.is_some_and(is_number));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let min = if has_number { MIN_NAMES.0 } else { MIN_NAMES.1 };
    names.len() >= min && (names.contains(&b"Title".as_slice()) || names.contains(&b"TI".as_slice()))
}

/// Returns `true` if a record of Engineering Village begins in one of the first lines.
fn is_engineering_village(start: &str, head: &[&str]) -> bool {
    let first = head.iter().find(|line| engineering_village::is_first_line(line.as_bytes()));
    first.is_some_and(|first| {
        let after = start.split_once(*first).map_or("", |(_, after)| after);
        engineering_village::begins(first.as_bytes(), after.as_bytes())
    })
}

/// Returns `true` for PubMed's text below other lines, such as the title of a report.
pub(super) fn is_pubmed_below_head(text: &str) -> bool {
    let is_blank = |line: &&str| line.trim().is_empty();
    lines::all(text)
        .filter(|line| !is_blank(line))
        .take(MAX_HEAD)
        .any(|line| numbered::is_pubmed_text(line.as_bytes(), text.as_bytes()))
}

/// Names that only the JSON of a database or a program has.
const DATABASES: [&str; 26] = [
    "primary_title",
    "display_name",
    "dc:title",
    "paperId",
    "externalIds",
    "protocolSection",
    "message-version",
    "authorString",
    "article_url",
    "cites",
    "ItemId",
    "itemType",
    "doi",
    "journal",
    "container_title",
    "Title",
    "publicationTypes",
    "is-referenced-by-count",
    "abstractNote",
    "abstractText",
    "fulljournalname",
    "ctNumber",
    "title_s",
    "halId_s",
    "ProtocolSection",
    "NCTId",
];

/// Detects JSON by the names in its objects.
pub(super) fn json(start: &str) -> Option<Format> {
    let has = |name: &&str| start.contains(&format!("\"{name}\""));
    if !start.starts_with(['[', '{']) {
        None
    } else if DATABASES.iter().any(has) {
        Some(Format::Json)
    } else if has(&"title") && ["type", "author", "issued", "DOI"].iter().any(has) {
        Some(Format::CslJson)
    } else {
        (has(&"title") && ["authors", "year", "abstract"].iter().any(has)).then_some(Format::Json)
    }
}

/// Returns `true` for records of RIS without the line that names their type: a title and other tags, and the line that
/// ends a record.
pub(super) fn is_untyped_ris(text: &str) -> bool {
    /// The minimum number of lines with a tag.
    const MIN_LINES: usize = 4;
    let tags: Vec<[u8; 2]> =
        lines::all(text).filter_map(|line| ris::tag(line.as_bytes())).map(|(name, _)| name).collect();
    tags.len() >= MIN_LINES && tags.contains(b"ER") && (tags.contains(b"TI") || tags.contains(b"T1"))
}

/// Returns `true` if the first lines have EndNote tags.
pub(super) fn is_refer(start: &str) -> bool {
    let lines = lines::all(start).filter(|line| !line.trim().is_empty()).take(MAX_LINES);
    let tagged =
        |line: &&str| refer::tag(line).is_some_and(|(tag, _)| tag.as_bytes()[1].is_ascii_uppercase());
    start.starts_with('%') && lines.filter(tagged).count() >= MIN_TAGS
}
