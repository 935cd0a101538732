//! Splits texts of the EU Clinical Trials Register: summaries, and protocols with the lines `A.3 Full title of the
//! trial: …`.
//!
//! Each record begins at the number of its trial. Protocols of one trial from several countries are separate records.

use super::{
    lines::{MARK_LENGTH, unmarked},
    tagged::{LineRole, TaggedSplitter},
};

/// The beginning of a record.
pub(crate) const FIRST: &[u8] = b"EudraCT Number:";
/// The number of bytes that determine whether a line begins a record.
const PREFIX: usize = MARK_LENGTH + 48;
/// The length of a number: `2004-001234-12`.
const NUMBER: usize = 14;
/// The heading above a record in a file of protocols.
pub(crate) const HEADING: &str = "Summary";

/// The names of values without a code.
const NAMES: [&str; 21] = [
    "EudraCT Number",
    "Sponsor Protocol Number",
    "Sponsor's Protocol Code Number",
    "Sponsor Name",
    "National Competent Authority",
    "Clinical Trial Type",
    "Trial Status",
    "Date on which this record was first entered in the EudraCT database",
    "Link",
    "Trial results",
    "Full Title",
    "Start Date",
    "Start Date*",
    "Medical condition",
    "Disease",
    "Population Age",
    "Gender",
    "Trial protocol",
    "MedDRA Classification",
    "Index",
    HEADING,
];
/// The headings of sections, after their letter.
const SECTIONS: [&str; 12] = [
    "Protocol Information",
    "Sponsor Information",
    "Applicant Identification",
    "IMP Identification",
    "General Information",
    "Population of Trial",
    "Investigator Networks",
    "Review by",
    "Competent Authority",
    "Date of",
    "Ethics Committee",
    "End of Trial",
];

/// Returns `true` for a line that begins a record: `EudraCT Number: 2004-001234-12`.
pub(crate) fn is_first_line(line: &[u8]) -> bool {
    let Some(rest) = unmarked(line).strip_prefix(FIRST) else { return false };
    let rest = rest.trim_ascii();
    rest.len() == NUMBER && begins_with_number(rest)
}

/// Returns `true` for a text that begins with the number of a European trial: `2004-001234-12`.
pub(crate) fn begins_with_number(text: &[u8]) -> bool {
    let is_expected = |(at, byte): (usize, &u8)| match at {
        4 | 11 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.get(..NUMBER).is_some_and(|number| number.iter().enumerate().all(is_expected))
}

/// Returns `true` for lines that the register writes before the first record.
pub(crate) fn is_around(line: &str) -> bool {
    line == HEADING || line.starts_with("This file contains")
}

/// The name at the beginning of a line, and the offset of its value.
pub(crate) fn tag(line: &str) -> Option<(&str, usize)> {
    let end = line.find(':').unwrap_or(line.len());
    let name = line[..end].trim_end();
    let is_known = match code(line) {
        Some(_) => true,
        None => {
            let section = line.get(1..).and_then(|rest| rest.strip_prefix(". "));
            NAMES.contains(&name)
                || section.is_some_and(|rest| {
                    line.starts_with(|first: char| first.is_ascii_uppercase())
                        && SECTIONS.iter().any(|known| rest.starts_with(known))
                })
        }
    };
    is_known.then_some((name, (end + 1).min(line.len())))
}

/// The code at the beginning of a line: `E.1.1`.
pub(crate) fn code(line: &str) -> Option<&str> {
    let end = line.find([' ', ':']).unwrap_or(line.len());
    let code = &line[..end];
    let (letter, numbers) = code.split_once('.')?;
    let is_letter = matches!(letter.as_bytes(), [b'A'..=b'P']);
    let is_numbers = numbers
        .split('.')
        .all(|part| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()));
    (is_letter && (is_numbers || matches!(numbers, "IMP" | "Sponsor"))).then_some(code)
}

/// Splits texts of the register.
pub(crate) fn splitter(limit: usize) -> TaggedSplitter {
    let kind = |line: &[u8]| {
        let line = &line[..line.len().min(PREFIX)];
        if is_first_line(line) { LineRole::Type } else { LineRole::Other }
    };
    TaggedSplitter::by_type(kind, PREFIX, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    #[test]
    fn records_begin_at_their_number() {
        let text = "This file contains 2 trials\n\nEudraCT Number:          2019-001234-12\nSponsor Name: a\n\n\
            Summary\nEudraCT Number: 2020-001234-12\nA.2 EudraCT number: 2020-001234-12\n";
        assert_eq!(cut(&mut splitter(1000), text).len(), 2);
        assert!(
            !is_first_line(b"EudraCT Number: unknown") && !is_first_line(b"EudraCT Number: 2019-001234-12).")
        );
    }

    #[test]
    fn names_end_at_a_colon() {
        assert_eq!(tag("E.1.1 Medical condition(s): Pain: acute"), Some(("E.1.1 Medical condition(s)", 27)));
        assert_eq!(tag("D.IMP: 1"), Some(("D.IMP", 6)));
        assert_eq!(tag("P. End of Trial"), Some(("P. End of Trial", 15)));
        assert_eq!(tag("Link: https://example.org"), Some(("Link", 5)));
        for text in ["E. coli: a", "1. Age: 18", "Note: a", "é. Review by", ""] {
            assert_eq!(tag(text), None, "{text}");
        }
        assert_eq!(code("E.2.2.1 a"), Some("E.2.2.1"));
    }
}
