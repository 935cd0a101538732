//! Formats that several lines have to show.

use crate::{
    Format,
    split::{lines, numbered, refer},
};

/// How many lines above the first record are looked at.
const MOST_LINES: usize = 40;
/// How many lines with a tag make a file of EndNote's whose records do not begin with their type.
const ENOUGH_TAGS: usize = 2;

/// A format whose records are numbered, by the line of the first one and what follows it.
pub(super) fn by_numbers(start: &str) -> Option<Format> {
    let all: Vec<&str> = lines::all(start).filter(|line| !line.trim().is_empty()).take(MOST_LINES).collect();
    let first = all.first()?.as_bytes();
    if numbered::is_ovid(first) {
        return Some(Format::Ovid);
    }
    if numbered::is_pubmed(first) && start.contains("PMID: ") {
        return Some(Format::PubMedText);
    }
    let next = |is_first: fn(&[u8]) -> bool| {
        let at = all.iter().position(|line| is_first(line.as_bytes()))?;
        Some(all[at + 1..].first().copied().unwrap_or_default())
    };
    // Cochrane writes RIS below the same line.
    let tagged = |line: &str| line.split_once(": ").is_some_and(|(tag, _)| matches!(tag, "ID" | "AU" | "TI"));
    if next(numbered::is_cochrane).is_some_and(tagged) {
        return Some(Format::Cochrane);
    }
    next(numbered::is_proquest).map(|_| Format::ProQuest)
}

/// Whether the text is JSON whose objects have a title and what else items of CSL-JSON have.
pub(super) fn is_csl_json(start: &str) -> bool {
    let has = |name: &str| start.contains(name);
    start.starts_with(['[', '{'])
        && has("\"title\"")
        && ["\"type\"", "\"author\"", "\"issued\"", "\"DOI\""].into_iter().any(has)
}

/// Whether the first lines have tags of EndNote.
pub(super) fn is_refer(start: &str) -> bool {
    let lines = lines::all(start).filter(|line| !line.trim().is_empty()).take(MOST_LINES);
    let tagged =
        |line: &&str| refer::tag(line).is_some_and(|(tag, _)| tag.as_bytes()[1].is_ascii_uppercase());
    start.starts_with('%') && lines.filter(tagged).count() >= ENOUGH_TAGS
}
