//! Tidying of single values.

use std::ops::RangeInclusive;

/// Years that a reference can have. Others are a misread number.
pub(super) const YEARS: RangeInclusive<i32> = 1000..=2999;

/// The value on one line, or none if it is blank.
pub(super) fn line(value: &str) -> Option<String> {
    let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    (!line.is_empty()).then_some(line)
}

/// Running text: paragraphs are kept, other white space is collapsed.
pub(super) fn text(value: &str) -> Option<String> {
    let paragraphs: Vec<String> = value.split(['\n', '\r']).filter_map(line).collect();
    (!paragraphs.is_empty()).then(|| paragraphs.join("\n"))
}

/// Each value once, in order, blank ones left out.
pub(super) fn unique<S: AsRef<str>>(values: impl IntoIterator<Item = S>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    values
        .into_iter()
        .filter_map(|value| line(value.as_ref()))
        .filter(|value| seen.insert(value.clone()))
        .collect()
}

/// The first year in a date: four digits by themselves, or at the front of eight.
pub(super) fn year(date: &str) -> Option<i32> {
    date.split(|c: char| !c.is_ascii_digit())
        .filter(|digits| matches!(digits.len(), 4 | 8))
        .find_map(|digits| digits[..4].parse().ok().filter(|year| YEARS.contains(year)))
}

/// A PubMed identifier: at most nine digits, whatever label stands before them.
pub(super) fn pmid(value: &str) -> Option<String> {
    let value = value.trim();
    let value = value.strip_prefix("PMID").map_or(value, |rest| rest.trim_start_matches([':', ' ']));
    let digits = (1..=9).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| value.to_owned())
}

/// How much of a value is searched for a DOI or a citation. Searching for pairs in a value of megabytes would
/// take minutes.
const SEARCHED: usize = 4096;

/// The front of a value that is worth searching.
pub(super) fn front(value: &str) -> &str {
    &value[..value.floor_char_boundary(SEARCHED)]
}

/// A DOI without what people put around it, in lower case, because DOIs do not distinguish case.
pub(super) fn doi(value: &str) -> Option<String> {
    let value = front(value);
    let found = value.match_indices("10.").map(|(at, _)| &value[at..]).find(|rest| is_doi(rest))?;
    let end = found.find(|c: char| c.is_whitespace() || c.is_control()).unwrap_or(found.len());
    let doi = trim_doi(&found[..end]).to_lowercase();
    is_doi(&doi).then_some(doi)
}

/// `10.`, a registrant of four to nine digits (perhaps subdivided), a slash and a suffix.
fn is_doi(text: &str) -> bool {
    let Some((registrant, suffix)) = text.strip_prefix("10.").and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    let digits = registrant.split('.').next().unwrap_or_default().len();
    (4..=9).contains(&digits)
        && registrant.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && suffix.starts_with(|c: char| !c.is_whitespace())
}

/// Cuts off the punctuation of the sentence around a DOI; brackets belong to it only in pairs.
fn trim_doi(mut doi: &str) -> &str {
    loop {
        let unpaired = |open: char, close: char| {
            doi.ends_with(close) && doi.matches(close).count() > doi.matches(open).count()
        };
        let trimmed = doi.strip_suffix("[doi]").unwrap_or(doi).trim_end_matches(['.', ',', ';', '"', '\'']);
        let trimmed = if trimmed.len() == doi.len() && (unpaired('(', ')') || unpaired('[', ']')) {
            &doi[..doi.len() - 1]
        } else {
            trimmed
        };
        if trimmed.len() == doi.len() {
            return doi;
        }
        doi = trimmed;
    }
}

/// The DOI that a link leads to: a resolver's, or one passed along as `id=doi:`.
pub(super) fn doi_in_url(url: &str) -> Option<String> {
    let url = percent_decoded(front(url));
    let marks = ["doi.org/", "doi:"];
    let rest = marks.iter().find_map(|mark| url.find(mark).map(|at| &url[at + mark.len()..]))?;
    doi(rest.split('&').next().unwrap_or_default())
}

fn percent_decoded(url: &str) -> String {
    let mut out = Vec::with_capacity(url.len());
    let mut bytes = url.as_bytes();
    while let Some((&byte, rest)) = bytes.split_first() {
        let hex = rest.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| byte == b'%') {
            Some(decoded) => {
                out.push(decoded);
                bytes = &rest[2..];
            }
            None => {
                out.push(byte);
                bytes = rest;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// First and last page joined, as given. A first page that is a range already says it all.
pub(super) fn pages(first: Option<&str>, last: Option<&str>) -> Option<String> {
    let (first, last) = (first.and_then(line), last.and_then(line));
    match (first, last) {
        (Some(first), Some(last)) if first == last || first.contains(['-', '–']) => Some(first),
        (Some(first), Some(last)) => Some(format!("{first}-{last}")),
        (first, last) => first.or(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doi_loses_what_is_put_around_it() {
        let bare = Some("10.5555/abc(1)".to_owned());
        for given in [
            "10.5555/ABC(1)",
            "https://doi.org/10.5555/abc(1)",
            "http://dx.doi.org/10.5555/abc(1).",
            "doi: 10.5555/abc(1) [doi]",
            "(10.5555/abc(1))",
        ] {
            assert_eq!(doi(given), bare, "{given}");
        }
        assert_eq!(doi("10.1 p"), None);
        assert_eq!(doi("see 10.5 and 10.5555/x"), Some("10.5555/x".into()));
    }

    #[test]
    fn a_doi_is_found_in_a_link() {
        let link = "http://sfx.example.org/?sid=EMBASE&id=doi:10.5555%2Fab.12&atitle=A";
        assert_eq!(doi_in_url(link), Some("10.5555/ab.12".into()));
        assert_eq!(doi_in_url("https://example.org/100%"), None);
    }

    #[test]
    fn pages_are_joined_and_otherwise_left_alone() {
        assert_eq!(pages(Some("152"), Some("160")).as_deref(), Some("152-160"));
        assert_eq!(pages(Some("338-41"), Some("341")).as_deref(), Some("338-41"));
        assert_eq!(pages(Some("e7"), Some("e7")).as_deref(), Some("e7"));
        assert_eq!(pages(None, None), None);
    }

    #[test]
    fn years_are_found_in_dates() {
        assert_eq!(year("2014//"), Some(2014));
        assert_eq!(year("Date: 25 Aug 2004"), Some(2004));
        assert_eq!(year("20190102"), Some(2019));
        assert_eq!(year("12345"), None);
    }
}
