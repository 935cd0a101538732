//! The fields that an entry inherits from the entries that it refers to by `crossref`.
//!
//! BibTeX wants such an entry behind those that refer to it, other programs write it before them. The splitter finds it.

use std::{borrow::Cow, collections::HashSet};

use super::{
    abbreviations::Abbreviations,
    entry::{self, Entry},
};
use crate::encoding::decode;

/// The entries that one refers to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parents<'a> {
    /// The nearest one first: each refers to the next.
    pub(crate) records: &'a [Vec<u8>],
    /// The encoding of what is not UTF-8.
    pub(crate) legacy: &'static encoding_rs::Encoding,
}

impl Parents<'_> {
    /// Their size in bytes.
    pub(crate) fn bytes(self) -> usize {
        self.records.iter().map(Vec::len).sum()
    }
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
        // One without a title of its own is the same work again, as for a version of a program.
        let untitled = !own("title");
        let booked = own("booktitle") || own("journal") || own("journaltitle");
        let has_book = parent.fields.iter().any(|(name, _)| name == "booktitle");
        let mut more = Vec::new();
        for (name, value) in &parent.fields {
            let name = match name.as_ref() {
                "crossref" | "ids" => continue,
                name if untitled && !own(name) => name,
                "title" if !booked && !has_book => "booktitle",
                "subtitle" if !booked && !has_book => "booksubtitle",
                "year" | "date" if dated => continue,
                "author" if people => continue,
                name if TAKEN_OVER.contains(&name) && !own(name) => name,
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

/// Whether an entry is known by a key, in any case.
fn has_key(entry: &Entry<'_>, wanted: &str) -> bool {
    let is_wanted = |key: &str| key.trim().eq_ignore_ascii_case(wanted);
    let mut aliases = entry.fields.iter().filter(|(name, _)| name == "ids").map(|(_, keys)| keys);
    is_wanted(entry.key) || aliases.any(|keys| keys.split(',').any(is_wanted))
}

fn crossref(fields: &[Field<'_>]) -> Option<String> {
    fields.iter().find(|(name, _)| name == "crossref").map(|(_, key)| key.trim().to_owned())
}
