//! What an entry takes over from the one that its `crossref` names.
//!
//! BibTeX wants that entry behind those that refer to it. It is looked for in as much of the file as the splitter keeps for
//! that ([`Ahead`]); one that is further away, or before, is not found.

use std::borrow::Cow;

use memchr::memmem;

use super::{
    abbreviations::Abbreviations,
    entry::{self, Entry},
};
use crate::encoding::decode;

/// A book in a series of books may refer to that.
const MOST_PARENTS: usize = 3;
/// How many places that look like the entry are looked at.
const MOST_PLACES: usize = 1000;
/// Longest entry that is taken over from.
const MOST_ENTRY: usize = 16 * 1024;

/// The part of the file behind an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ahead<'a> {
    pub(crate) bytes: &'a [u8],
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
        let Some(wanted) = key.filter(|key| !key.is_empty() && !ahead.bytes.is_empty()) else { break };
        let Some(text) = find(ahead.bytes, &wanted) else { break };
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

/// The entry of this key.
fn find<'a>(ahead: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let places = memmem::find_iter(ahead, key.as_bytes()).take(MOST_PLACES);
    places.into_iter().find_map(|at| {
        let after = ahead[at + key.len()..].trim_ascii_start();
        let before = ahead[..at].trim_ascii_end();
        let opened = before.strip_suffix(b"{").or_else(|| before.strip_suffix(b"("))?.trim_ascii_end();
        let kind = opened.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let start = (opened.len() - kind).checked_sub(1).filter(|&start| opened[start] == b'@')?;
        if !after.starts_with(b",") {
            return None;
        }
        let entry = &ahead[start..ahead.len().min(start + MOST_ENTRY)];
        let brace = before.len() - 1 - start;
        Some(&entry[..entry_end(entry, brace)?])
    })
}

/// Where an entry ends whose brace is at `brace`.
fn entry_end(entry: &[u8], brace: usize) -> Option<usize> {
    let (close, mut depth) = if entry[brace] == b'{' { (b'}', 0_usize) } else { (b')', 1) };
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
        assert_eq!(find(file, "p"), Some(b"@proceedings ( p , title={(1) \"p\"})".as_slice()));
        assert_eq!(find(file, "title"), None);
        assert_eq!(find(b"@x{p, a = {", "p"), None);
    }
}
