//! One PubMed nbib record.

use biblib::PubMedParser;

use super::{citation, fields::Fields, from_citation, values};
use crate::{Reference, split::lines};

/// Of these `biblib` joins several values with "AND"; the first one is meant.
const ONCE: [&str; 8] = ["PMID", "TI", "BTI", "TT", "JT", "TA", "VI", "IP"];
/// These are lists, and the order among the authors' tags matters.
const LISTS: [&str; 9] = ["FAU", "AU", "CN", "FED", "ED", "MH", "OT", "LID", "AID"];

pub(super) fn read(text: &str) -> Result<Reference, String> {
    let fields = fields(text);
    let canonical = canonical(&fields);
    let citation = citation(&PubMedParser::new(), &canonical)?;
    let mut reference = from_citation(&citation);
    reference.pages = fields.first(&["PG"]).and_then(values::line);
    let kinds = values::unique(fields.all(&["PT"]));
    reference.r#type = (!kinds.is_empty()).then(|| kinds.join("; "));
    Ok(reference)
}

/// A tag fills the first four columns and the fifth is a dash; every other line continues a value.
fn fields(text: &str) -> Fields {
    let mut fields = Fields::default();
    for line in lines::all(text).filter(|line| !line.trim().is_empty()) {
        match tag(line) {
            Some((tag, value)) => fields.push(tag, value),
            None => fields.extend_last(line),
        }
    }
    fields
}

fn tag(line: &str) -> Option<(&str, &str)> {
    let (tag, value) = (line.get(..4)?, line.get(4..)?.strip_prefix('-')?);
    let name = tag.trim_end();
    let known = name.len() > 1 && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    known.then_some((name, value))
}

/// The record in the one shape that `biblib` reads without surprises.
fn canonical(fields: &Fields) -> String {
    let mut text = String::new();
    let mut line = |tag: &str, value: &str| text.push_str(&format!("{tag:<4}- {value}\n"));
    for tag in ONCE {
        if let Some(value) = fields.first(&[tag]) {
            line(tag, value);
        }
    }
    // biblib refuses the whole record for a date without a year.
    if let Some(date) = fields.first(&["DP"]).filter(|date| values::year(date).is_some()) {
        line("DP", date);
    }
    for (tag, value) in fields.iter().filter(|(tag, _)| LISTS.contains(tag)) {
        line(tag, value);
    }
    let texts = fields.all(&["AB"]).collect::<Vec<_>>().join(" ");
    if !texts.is_empty() {
        line("AB", &texts);
    }
    text
}
