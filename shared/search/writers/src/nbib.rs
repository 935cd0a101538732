//! PubMed's MEDLINE display format: a tag of four letters, a dash, and a value on one line.
//!
//! A record begins with `PMID`. Without a PMID it begins with `OWN - NOTNLM`, PubMed's mark for records that are not
//! its own. The study's key is written as an identifier of type `study-key`.

use crate::clean::line;
use crate::date::DateParts;
use crate::{Study, extra};

pub(crate) fn push(study: &Study<'_>, out: &mut Vec<u8>) {
    let reference = study.reference;
    let optional = |out: &mut Vec<u8>, name, value: Option<&str>| tag(out, name, value.unwrap_or_default());
    match reference.pmid.as_deref() {
        Some(pmid) => tag(out, "PMID", pmid),
        None => tag(out, "OWN", "NOTNLM"),
    }
    optional(out, "PMC", reference.pmcid.as_deref());
    tag(out, "TI", &reference.title);
    for author in &reference.authors {
        // A name without a comma is the name of a group.
        tag(out, if author.contains(',') { "FAU" } else { "CN" }, author);
    }
    let date = DateParts::from_reference(reference);
    if let Some(year) = date.year {
        let month = date.month_name().map(|month| format!(" {month}")).unwrap_or_default();
        let day = date.day.map(|day| format!(" {day}")).unwrap_or_default();
        tag(out, "DP", &format!("{year}{month}{day}"));
    }
    optional(out, "JT", reference.journal.as_deref());
    optional(out, "VI", reference.volume.as_deref());
    optional(out, "IP", reference.issue.as_deref());
    optional(out, "PG", reference.pages.as_deref());
    if let Some(issn) = extra::issn(reference).as_deref().and_then(issn) {
        tag(out, "IS", &format!("{issn} (Undetermined)"));
    }
    optional(out, "LA", extra::language(reference).as_deref());
    optional(out, "AB", reference.r#abstract.as_deref());
    for keyword in &reference.keywords {
        tag(out, "OT", keyword);
    }
    for kind in reference.r#type.as_deref().unwrap_or_default().split("; ") {
        tag(out, "PT", kind);
    }
    if let Some(doi) = &reference.doi {
        // PubMed writes the DOI under two tags, and programs read either.
        tag(out, "LID", &format!("{doi} [doi]"));
        tag(out, "AID", &format!("{doi} [doi]"));
    }
    tag(out, "AID", &format!("{} [study-key]", study.key));
    for (kind, value) in
        [("embase", &reference.embase_id), ("wos", &reference.wos_id), ("accession", &reference.accession)]
    {
        if let Some(value) = value {
            tag(out, "AID", &format!("{value} [{kind}]"));
        }
    }
    for trial in &reference.trial_ids {
        tag(out, "SI", trial);
    }
    optional(out, "DB", study.source.database.as_deref());
    out.extend_from_slice(b"\r\n");
}

/// Returns the ISSN at the front. Programs reject a file with anything else in this tag, such as an ISBN.
fn issn(text: &str) -> Option<&str> {
    let (issn, rest) = text.split_at_checked(9)?;
    let is_digit = |(at, byte): (usize, u8)| match at {
        4 => byte == b'-',
        8 => byte.is_ascii_digit() || byte == b'X',
        _ => byte.is_ascii_digit(),
    };
    let is_one = issn.bytes().enumerate().all(is_digit)
        && !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-');
    is_one.then_some(issn)
}

fn tag(out: &mut Vec<u8>, name: &str, value: &str) {
    let value = line(value);
    if value.is_empty() {
        return;
    }
    out.extend_from_slice(format!("{name:<4}- {value}\r\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issn_is_extracted_alone() {
        for (text, expected) in [
            ("1234-567X", Some("1234-567X")),
            ("1234-5678 (Electronic)", Some("1234-5678")),
            ("1234-5678; 0000-0000", Some("1234-5678")),
            ("978-3-16-148410-0", None),
            ("1234-56789", None),
            ("12345678", None),
            ("ä234-5678é", None),
        ] {
            assert_eq!(issn(text), expected, "{text}");
        }
    }
}
