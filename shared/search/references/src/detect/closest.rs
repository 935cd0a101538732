//! Finds the formats that resemble an unknown text most, for the message to the reviewer.

use crate::split::{lines, ris, wos};

/// The number of lines that must match a format before it is suggested: two might be prose.
const MIN_LINES: usize = 3;

/// Returns the suggestions, ordered by the number of matching lines.
pub(super) fn guesses(text: &str) -> Vec<&'static str> {
    let count = |like: fn(&str) -> bool| lines::all(text).filter(|line| like(line)).count();
    let mut guesses = vec![
        (count(|line| ris::tag(line.as_bytes()).is_some()), "RIS (no line begins a record with TY)"),
        (count(is_nbib), "PubMed nbib (no line begins a record with PMID)"),
        (count(is_wos), "Web of Science plain text (no line begins a record with PT)"),
        (
            count(|line| line.trim_start().starts_with('@')),
            "BibTeX (no line begins an entry with its type and a brace)",
        ),
    ];
    guesses.retain(|(lines, _)| *lines >= MIN_LINES);
    guesses.sort_by_key(|(lines, _)| std::cmp::Reverse(*lines));
    let first = lines::all(text).find(|line| !line.trim().is_empty()).unwrap_or_default();
    if guesses.is_empty() && first.contains([',', ';', '\t']) {
        guesses.push((1, "CSV (no column is called title)"));
    }
    guesses.into_iter().map(|(_, guess)| guess).collect()
}

fn is_nbib(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes.get(4) == Some(&b'-') && bytes[..2].iter().all(u8::is_ascii_uppercase)
}

/// Two capitals and a blank also begin sentences, but are rarely a known tag.
fn is_wos(line: &str) -> bool {
    let known = ["AU", "AF", "TI", "SO", "PY", "VL", "AB", "DI", "UT", "DT"];
    wos::tag(line.as_bytes()).is_some() && known.iter().any(|tag| line.starts_with(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closest_format_has_most_matching_lines() {
        let first = |text: &str| guesses(text).first().and_then(|guess| guess.split(' ').next());
        assert_eq!(first("XX  - a\nZZ  - b\nYY  - c\n"), Some("RIS"));
        assert_eq!(first("STAT- NLM\nSTAT- x\nDCOM- 1\nVI  - 2\n"), Some("PubMed"));
        assert_eq!(first("TI a\nSO b\nPY 1999\n"), Some("Web"));
        assert_eq!(first("name,size\na,1\n"), Some("CSV"));
        assert_eq!(first("Dear all"), None);
    }
}
