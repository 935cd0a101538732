//! What an entry takes over from the one that its `crossref` names.
//!
//! BibTeX wants that entry behind those that refer to it, other programs write it before them. It is looked for in as much of
//! the file as the splitter keeps for that ([`Ahead`]); one that is further away is not found.

use std::borrow::Cow;

use memchr::{memchr_iter, memrchr_iter};

use super::{
    abbreviations::Abbreviations,
    entry::{self, Entry},
};
use crate::{
    encoding::decode,
    split::{
        bibtex::word,
        wholes::{MOST_ENTRY, MOST_PARENTS, place_of_alias},
    },
};

/// The part of the file behind an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ahead<'a> {
    pub(crate) bytes: &'a [u8],
    /// The entries before it that it refers to.
    pub(crate) before: &'a [u8],
    /// The encoding of what is not UTF-8.
    pub(crate) legacy: &'static encoding_rs::Encoding,
}

/// What a part says of its whole. The title of the whole is not that of the part.
const TAKEN_OVER: [&str; 17] = [
    "booktitle",
    "booksubtitle",
    "date",
    "year",
    "month",
    "editor",
    "series",
    "volume",
    "number",
    "journal",
    "journaltitle",
    "publisher",
    "address",
    "location",
    "isbn",
    "issn",
    "author",
];

type Field<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The fields that the entry takes over.
pub(super) fn inherited<'a>(
    entry: &Entry<'_>,
    ahead: Ahead<'_>,
    abbreviations: Option<&Abbreviations>,
) -> Vec<Field<'a>> {
    let mut found: Vec<Field<'a>> = Vec::new();
    let mut key = crossref(&entry.fields);
    for _ in 0..MOST_PARENTS {
        let Some(wanted) = key.filter(|key| !key.is_empty()) else { break };
        let places = [ahead.bytes, ahead.before];
        let by_key = places.into_iter().find_map(|text| find(text, &wanted));
        let by_alias = || places.into_iter().find_map(|text| find_by_alias(text, &wanted));
        let Some(text) = by_key.or_else(by_alias) else { break };
        let Ok((text, _)) = decode(text, ahead.legacy) else { break };
        let Some(parent) = entry::parse(&text, abbreviations, |_| false) else { break };
        let own = |name: &str| entry.fields.iter().chain(&found).any(|(known, _)| known == name);
        let people = own("author") || own("editor");
        let dated = own("year") || own("date");
        // One without a title of its own is the same work again, as for a version of a program.
        let untitled = !own("title");
        let booked = own("booktitle") || own("journal") || own("journaltitle");
        let mut more = Vec::new();
        for (name, value) in &parent.fields {
            let name = match name.as_ref() {
                "crossref" | "ids" => continue,
                name if untitled && !own(name) => name,
                "title" if !booked && !has(&parent, "booktitle") => "booktitle",
                "subtitle" if !booked && !has(&parent, "booktitle") => "booksubtitle",
                "year" | "date" if dated => continue,
                "author" if people => continue,
                name if TAKEN_OVER.contains(&name) && !own(name) => name,
                _ => continue,
            };
            more.push((Cow::Owned(name.to_owned()), Cow::Owned(value.clone().into_owned())));
        }
        key = crossref(&parent.fields);
        found.extend(more);
    }
    found
}

fn has(entry: &Entry<'_>, wanted: &str) -> bool {
    entry.fields.iter().any(|(name, _)| name == wanted)
}

fn crossref(fields: &[Field<'_>]) -> Option<String> {
    fields.iter().find(|(name, _)| name == "crossref").map(|(_, key)| key.trim().to_owned())
}

/// The entry of this key, in any case.
fn find<'a>(text: &'a [u8], key: &str) -> Option<&'a [u8]> {
    memchr_iter(b'@', text).find_map(|start| {
        let brace = brace(text, start)?;
        let (front, after) = text[brace + 1..].trim_ascii_start().split_at_checked(key.len())?;
        if !front.eq_ignore_ascii_case(key.as_bytes()) || !after.trim_ascii_start().starts_with(b",") {
            return None;
        }
        whole(text, start, brace)
    })
}

/// The entry that has this key among its other keys, in any case.
fn find_by_alias<'a>(text: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let place = place_of_alias(text, key.as_bytes())?;
    let first = place.saturating_sub(MOST_ENTRY);
    memrchr_iter(b'@', &text[first..place]).find_map(|start| {
        let start = first + start;
        whole(text, start, brace(text, start)?).filter(|entry| start + entry.len() > place)
    })
}

/// Where the brace of an entry is whose sign is at `start`.
fn brace(text: &[u8], start: usize) -> Option<usize> {
    let rest = &text[start + 1..];
    let kind = word(rest, usize::MAX);
    let opened = rest[kind..].trim_ascii_start();
    (kind > 0 && matches!(opened.first(), Some(b'{' | b'('))).then(|| text.len() - opened.len())
}

/// The entry between its sign and where it ends.
fn whole(text: &[u8], start: usize, brace: usize) -> Option<&[u8]> {
    let entry = &text[start..text.len().min(start + MOST_ENTRY)];
    Some(&entry[..entry_end(entry, brace - start)?])
}

/// Where an entry ends whose brace is at `brace`.
fn entry_end(entry: &[u8], brace: usize) -> Option<usize> {
    let (close, mut depth) = if *entry.get(brace)? == b'{' { (b'}', 0_usize) } else { (b')', 1) };
    for (at, byte) in entry.iter().enumerate().skip(brace) {
        match byte {
            b')' if close == b')' && depth == 1 && at > brace => return Some(at + 1),
            b'{' => depth += 1,
            b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 && close == b'}' {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_of_a_key_is_found_whole() {
        let file = b"@book{pa, title={P {a}}}\n@proceedings ( p , title={(1) \"p\"}) @x{p,";
        assert_eq!(find(file, "pa"), Some(b"@book{pa, title={P {a}}}".as_slice()));
        assert_eq!(find(file, "P"), Some(b"@proceedings ( p , title={(1) \"p\"})".as_slice()));
        assert_eq!(find(file, "title"), None);
        assert_eq!(find(b"@x{p, a = {", "p"), None);
        let file = b"@book{a, note = {b@c}, ids = {d, e}}\n@article{f, title={ids={g}}} @x{h, ids = {i";
        assert_eq!(find_by_alias(file, "E"), Some(b"@book{a, note = {b@c}, ids = {d, e}}".as_slice()));
        assert_eq!(find_by_alias(file, "i"), None);
    }
}
