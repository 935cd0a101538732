//! RIS: one line per value, terminated by CRLF.
//!
//! A byte-order mark is not written: programs read it as part of the first tag. Every value is written on one line,
//! so it cannot end its record: `ER  -` inside an abstract stays inside the abstract.

use std::borrow::Cow;

use crate::clean::line;
use crate::date::DateParts;
use crate::work_type::WorkType;
use crate::{Study, extra, identifiers};

pub(crate) fn push(study: &Study<'_>, out: &mut Vec<u8>) {
    let reference = study.reference;
    tag(out, "TY", WorkType::ris(reference));
    tag(out, "ID", &study.key.to_string());
    tag(out, "TI", &reference.title);
    for author in &reference.authors {
        // Programs treat a semicolon as the end of a name.
        tag(out, "AU", &author.replace(';', ","));
    }
    let date = DateParts::from_reference(reference);
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
    // Programs also number their records in this tag, so that readers ignore short numbers without a label.
    let pmid = reference.pmid.as_deref().map(|pmid| match pmid_tag(study) {
        "C2" if pmid.len() < 5 => format!("PMID: {pmid}").into(),
        _ => Cow::Borrowed(pmid),
    });
    optional(out, pmid_tag(study), pmid.as_deref());
    for note in identifiers::notes(reference) {
        tag(out, "N1", &note);
    }
    optional(out, "AB", reference.r#abstract.as_deref());
    for keyword in &reference.keywords {
        tag(out, "KW", &keyword.replace(';', ","));
    }
    optional(out, "UR", reference.url.as_deref());
    optional(out, "SN", extra::issn(reference).as_deref());
    optional(out, "LA", extra::language(reference).as_deref());
    optional(out, "PB", extra::publisher(reference).as_deref());
    optional(out, "DB", study.source.database.as_deref());
    optional(out, "DP", study.source.platform.as_deref());
    out.extend_from_slice(b"ER  - \r\n\r\n");
}

/// The tag for the PMID: the accession number if the study was found in PubMed or MEDLINE. In exports of any other
/// database, this tag would contain the record number of that database.
fn pmid_tag(study: &Study<'_>) -> &'static str {
    if study.source.is_pubmed() { "AN" } else { "C2" }
}

/// Writes a line, or nothing if the value is empty.
fn tag(out: &mut Vec<u8>, name: &str, value: &str) {
    let value = line(value);
    if value.is_empty() {
        return;
    }
    for part in [name, "  - ", &value, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// Splits a plain page range into first and last page. Returns `None` for anything else, including `8-8`.
fn range(pages: &str) -> Option<(&str, &str)> {
    let (first, last) = pages.split_once('-')?;
    let is_page = |page: &str| !page.is_empty() && page.chars().all(char::is_alphanumeric);
    (is_page(first) && is_page(last) && first != last).then_some((first, last))
}
