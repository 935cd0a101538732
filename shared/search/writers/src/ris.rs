//! RIS: a line for each value, which ends with a carriage return and a line feed.
//!
//! No byte-order mark, since programs take it for a part of the first tag. A value is one line whatever is in it, so that
//! none can end its entry: `ER  -` inside an abstract stays inside the abstract.

use crate::clean::line;
use crate::date::Parts;
use crate::kind::Kind;
use crate::{Study, known};

pub(crate) fn push(study: &Study<'_>, out: &mut Vec<u8>) {
    let reference = study.reference;
    tag(out, "TY", Kind::ris(reference));
    tag(out, "ID", &study.key.to_string());
    tag(out, "TI", &reference.title);
    for author in &reference.authors {
        // Programs take a semicolon for the end of a name.
        tag(out, "AU", &author.replace(';', ","));
    }
    let date = Parts::of(reference);
    if let Some(year) = date.year {
        tag(out, "PY", &year.to_string());
        if let Some(month) = date.month {
            let day = date.day.map_or_else(String::new, |day| format!("{day:02}"));
            tag(out, "DA", &format!("{year}/{month:02}/{day}/"));
        }
    }
    let optional = |out: &mut Vec<u8>, name, value: Option<&str>| tag(out, name, value.unwrap_or_default());
    optional(out, "T2", reference.journal.as_deref());
    optional(out, "VL", reference.volume.as_deref());
    optional(out, "IS", reference.issue.as_deref());
    match reference.pages.as_deref().and_then(range) {
        Some((first, last)) => {
            tag(out, "SP", first);
            tag(out, "EP", last);
        }
        None => optional(out, "SP", reference.pages.as_deref()),
    }
    optional(out, "DO", reference.doi.as_deref());
    optional(out, pmid_tag(study), reference.pmid.as_deref());
    optional(out, "AB", reference.r#abstract.as_deref());
    for keyword in &reference.keywords {
        tag(out, "KW", &keyword.replace(';', ","));
    }
    optional(out, "UR", reference.url.as_deref());
    optional(out, "SN", known::issn(reference).as_deref());
    optional(out, "LA", known::language(reference).as_deref());
    optional(out, "PB", known::publisher(reference).as_deref());
    optional(out, "DB", study.source.database.as_deref());
    optional(out, "DP", study.source.platform.as_deref());
    out.extend_from_slice(b"ER  - \r\n\r\n");
}

/// Where a PMID is: the accession number of a study that was found in PubMed or MEDLINE. With another database beside it, that
/// would be a number of that one.
fn pmid_tag(study: &Study<'_>) -> &'static str {
    let database = study.source.database.as_deref().unwrap_or_default().to_lowercase();
    if ["pubmed", "medline"].iter().any(|name| database.contains(name)) { "AN" } else { "C2" }
}

/// A line; none without a value.
fn tag(out: &mut Vec<u8>, name: &str, value: &str) {
    let value = line(value);
    if value.is_empty() {
        return;
    }
    for part in [name, "  - ", &value, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// The first and last page of a plain range; anything else, also `8-8`, is the first page as a whole.
fn range(pages: &str) -> Option<(&str, &str)> {
    let (first, last) = pages.split_once('-')?;
    let is_page = |page: &str| !page.is_empty() && page.chars().all(char::is_alphanumeric);
    (is_page(first) && is_page(last) && first != last).then_some((first, last))
}
