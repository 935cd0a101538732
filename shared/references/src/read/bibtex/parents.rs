//! What an entry takes over from the one that its `crossref` names.
//!
//! BibTeX wants that entry behind those that refer to it, other programs write it before them. It is looked for in as much of
//! the file as the splitter keeps for that ([`Ahead`]); one that is further away is not found.

use std::borrow::Cow;

use memchr::memchr_iter;

use super::{
    abbreviations::Abbreviations,
    entry::{self, Entry},
};
use crate::{
    encoding::decode,
    split::{
        bibtex::word,
        wholes::{MOST_ENTRY, MOST_PARENTS},
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
        let Some(text) = find(ahead.bytes, &wanted).or_else(|| find(ahead.before, &wanted)) else { break };
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
                "crossref" => continue,
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
        let kind = word(&text[start + 1..], usize::MAX);
        let opened = text[start + 1 + kind..].trim_ascii_start();
        if kind == 0 || !opened.starts_with(b"{") && !opened.starts_with(b"(") {
            return None;
        }
        let (front, after) = opened[1..].trim_ascii_start().split_at_checked(key.len())?;
        if !front.eq_ignore_ascii_case(key.as_bytes()) || !after.trim_ascii_start().starts_with(b",") {
            return None;
        }
        let brace = text.len() - start - opened.len();
        let entry = &text[start..text.len().min(start + MOST_ENTRY)];
        Some(&entry[..entry_end(entry, brace)?])
    })
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
    }
}
