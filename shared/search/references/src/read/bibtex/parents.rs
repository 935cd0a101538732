//! Inherits fields from the entries that an entry refers to by `crossref` or `xdata`.
//!
//! BibTeX requires a parent to follow the entries that refer to it, and other programs write it before them. The
//! splitter finds it in both cases.

use std::{borrow::Cow, collections::HashSet};

use super::{
    abbreviations::Abbreviations,
    entry::{self, Entry},
};
use crate::encoding::{Decoder, decode};

/// The parents of an entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parents<'a> {
    /// The nearest parent first; each refers to the next.
    pub(crate) records: &'a [Vec<u8>],
    /// The encoding of entries that are not UTF-8.
    pub(crate) legacy: Decoder,
}

impl Parents<'_> {
    /// The total size in bytes.
    pub(crate) fn bytes(self) -> usize {
        self.records.iter().map(Vec::len).sum()
    }
}

/// The fields that an entry inherits from a parent unchanged. The parent's title becomes the book title.
const INHERITED: [&str; 17] = [
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

/// Returns the fields that the entry inherits.
pub(super) fn inherited<'a>(
    entry: &Entry<'_>,
    parents: Parents<'_>,
    abbreviations: Option<&Abbreviations>,
) -> Vec<Field<'a>> {
    let mut found: Vec<Field<'a>> = Vec::new();
    if parents.records.is_empty() {
        return found;
    }
    let mut names: HashSet<String> = entry.fields.iter().map(|(name, _)| name.clone().into_owned()).collect();
    let mut key = crossref(&entry.fields);
    for text in parents.records {
        let Some(wanted) = key.filter(|key| !key.is_empty()) else { break };
        let Ok((text, _)) = decode(text, parents.legacy) else { break };
        let Some(parent) = entry::parse(&text, abbreviations, |_| false) else { break };
        if !has_key(&parent, &wanted) {
            break;
        }
        let own = |name: &str| names.contains(name);
        let people = own("author") || own("editor");
        let dated = own("year") || own("date");
        // An entry without its own title describes the same work, for example another version of a program.
        let untitled = !own("title") || parent.kind.eq_ignore_ascii_case("xdata");
        let booked = own("booktitle") || own("journal") || own("journaltitle");
        let has_book = parent.fields.iter().any(|(name, _)| name == "booktitle");
        let mut more = Vec::new();
        for (name, value) in &parent.fields {
            let name = match name.as_ref() {
                "crossref" | "ids" | "xdata" => continue,
                name if untitled && !own(name) => name,
                "title" if !booked && !has_book => "booktitle",
                "subtitle" if !booked && !has_book => "booksubtitle",
                "year" | "date" if dated => continue,
                "author" if people => continue,
                name if INHERITED.contains(&name) && !own(name) => name,
                _ => continue,
            };
            more.push((Cow::Owned(name.to_owned()), Cow::Owned(value.clone().into_owned())));
        }
        key = crossref(&parent.fields);
        names.extend(more.iter().map(|(name, _): &Field<'_>| name.clone().into_owned()));
        found.extend(more);
    }
    found
}

/// Returns `true` if the entry has this key, compared case-insensitively.
fn has_key(entry: &Entry<'_>, wanted: &str) -> bool {
    let is_wanted = |key: &str| key.trim().eq_ignore_ascii_case(wanted);
    let mut aliases = entry.fields.iter().filter(|(name, _)| name == "ids").map(|(_, keys)| keys);
    is_wanted(entry.key) || aliases.any(|keys| keys.split(',').any(is_wanted))
}

fn crossref(fields: &[Field<'_>]) -> Option<String> {
    let key = |wanted: &str| {
        let found = fields.iter().find(|(name, keys)| name == wanted && !keys.trim().is_empty());
        found.map(|(_, keys)| keys)
    };
    key("crossref")
        .or_else(|| key("xdata"))
        .map(|keys| keys.split(',').next().unwrap_or_default().trim().to_owned())
}
