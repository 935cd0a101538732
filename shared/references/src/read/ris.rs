//! One RIS record.

use biblib::RisParser;

use super::{citation, fields::Fields, from_citation, names, values};
use crate::{
    Reference,
    split::{lines, ris::tag},
};

/// Authors, and those who stand in for them where there are none: editors, series editors, translators.
const AUTHORS: [&[&str]; 2] = [&["AU", "A1"], &["A2", "ED", "A3", "A4"]];
/// What `biblib` reads here, each tag once: of repeated tags it takes the first, in time that grows with the
/// square of their number. `VO` is how some exports write `VL`.
const ONCE: [&[&str]; 15] = [
    &["TI"],
    &["T1"],
    &["ST"],
    &["JF"],
    &["JO"],
    &["SO"],
    &["T2"],
    &["JA"],
    &["J2"],
    &["PY"],
    &["Y1"],
    &["DA"],
    &["VL", "VO"],
    &["IS"],
    &["M3"],
];
/// Links, the record's own first, then full texts, files and related records.
const LINKS: [&str; 6] = ["UR", "LK", "L2", "L1", "L3", "L4"];
/// Tags where a line without a tag is one more value rather than the rest of the last one.
const ONE_PER_LINE: [&str; 5] = ["KW", "AU", "A1", "A2", "ED"];

pub(super) fn read(text: &str) -> Result<Reference, String> {
    let fields = fields(text);
    let canonical = canonical(&fields);
    let citation = citation(&RisParser::new(), &canonical)?;
    let mut reference = from_citation(&citation);
    reference.authors = authors(&fields);
    reference.pages = values::pages(fields.first(&["SP"]), fields.first(&["EP"]));
    reference.keywords = values::unique(fields.all(&["KW"]).flat_map(|keywords| keywords.split(';')));
    reference.doi = doi(&fields);
    // A repeated tag goes on with the text; N2 is what some databases write for AB, and what others repeat there.
    let texts = |tag: &str| values::text(&fields.all(&[tag]).collect::<Vec<_>>().join("\n"));
    reference.r#abstract = texts("AB").or_else(|| texts("N2"));
    reference.url = fields.first(&LINKS).and_then(values::line);
    if reference.title.is_empty() {
        reference.title = fields.first(&["BT", "CT"]).and_then(values::line).unwrap_or_default();
    }
    if reference.journal.is_none() {
        reference.journal = fields.first(&["BT", "J1", "T3"]).and_then(values::line);
        reference.journal.take_if(|journal| *journal == reference.title);
    }
    if reference.pmid.is_none() && is_pubmed(&fields) {
        reference.pmid = fields.first(&["AN"]).and_then(values::pmid);
    }
    Ok(reference)
}

fn fields(text: &str) -> Fields {
    let mut fields = Fields::default();
    for line in lines::all(text) {
        if let Some((name, value)) = tag(line.as_bytes()) {
            fields.push(&String::from_utf8_lossy(&name), &line[value..]);
        } else if !line.trim().is_empty() {
            match fields.last_tag() {
                Some(tag) if ONE_PER_LINE.contains(&tag) => {
                    let tag = tag.to_owned();
                    fields.push(&tag, line);
                }
                _ => fields.extend_last(line),
            }
        }
    }
    fields
}

/// The record in the one shape that `biblib` reads without surprises.
fn canonical(fields: &Fields) -> String {
    let mut text = String::new();
    let mut line = |tag: &str, value: &str| text.push_str(&format!("{tag}  - {value}\n"));
    if let Some(value) = fields.first(&["TY"]) {
        line("TY", &kind(value));
    }
    for tags in ONCE {
        if let Some(value) = fields.first(tags) {
            line(tags[0], value);
        }
    }
    for value in fields.all(&["C2"]) {
        line("C2", value);
    }
    line("ER", "");
    text
}

/// The record's DOI, or the one that its links lead to.
fn doi(fields: &Fields) -> Option<String> {
    fields.all(&["DO"]).find_map(values::doi).or_else(|| fields.all(&LINKS).find_map(values::doi_in_url))
}

/// Codes such as `JOUR` are looked up in upper case.
fn kind(value: &str) -> String {
    let code = value.len() <= 5 && value.bytes().all(|byte| byte.is_ascii_alphabetic());
    if code { value.to_ascii_uppercase() } else { value.to_owned() }
}

fn authors(fields: &Fields) -> Vec<String> {
    AUTHORS
        .iter()
        .map(|tags| fields.all(tags).flat_map(names::of_value).collect::<Vec<_>>())
        .find(|names| !names.is_empty())
        .unwrap_or_default()
}

/// Whether the accession number is PubMed's.
fn is_pubmed(fields: &Fields) -> bool {
    fields.all(&["DP", "DB"]).any(|database| {
        let database = database.to_ascii_lowercase();
        database == "nlm" || database.contains("pubmed") || database.contains("medline")
    })
}
