//! The forms of the numbers that databases give to records.

use std::borrow::Cow;

use super::super::identifiers::{pmid, running_number};

/// The longest number of a record in a database.
pub(super) const MAX_NUMBER: usize = 40;

/// Adds the collection to a number of Web of Science, which earlier versions of EndNote omit. The package bibliometrix of
/// R only omits the colon: `ISI000276344500004`.
pub(super) fn with_collection(number: &str) -> Cow<'_, str> {
    let number = number.trim();
    let plain = number.strip_prefix("ISI").or_else(|| number.strip_prefix("WOS")).unwrap_or(number);
    let is_number = plain.len() == 15
        && ["000", "001", "A19"].iter().any(|start| plain.starts_with(start))
        && plain.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_number { Cow::Owned(format!("WOS:{plain}")) } else { Cow::Borrowed(number) }
}

/// Parses the number of PubMed Central: `PMC7012345`, also after a label, and with a version.
pub(super) fn pmcid(value: &str) -> Option<String> {
    let label = value.get(..6).filter(|label| label.eq_ignore_ascii_case("PMCID:"));
    let value = value[label.map_or(0, str::len)..].trim_start();
    let digits = value.strip_prefix("PMC").or_else(|| value.strip_prefix("pmc"))?;
    let digits = digits.split_once('.').map_or(digits, |(digits, _)| digits);
    pmid(digits).filter(|_| is_digits(digits)).map(|digits| format!("PMC{digits}"))
}

/// Parses the identifier of embase.com: `L2004567890`.
pub(super) fn pui(value: &str) -> Option<String> {
    let digits = value.strip_prefix(['L', 'l'])?;
    ((6..=12).contains(&digits.len()) && is_digits(digits) && digits.bytes().any(|byte| byte != b'0'))
        .then(|| format!("L{digits}"))
}

/// Parses the number of a record in any database, but not the running number of a record in a file.
pub(super) fn accession(value: &str) -> Option<String> {
    let value = value.trim().trim_end_matches('.');
    let is_number = (4..=MAX_NUMBER).contains(&value.len())
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'/' | b':'))
        && value.bytes().any(|byte| (b'1'..=b'9').contains(&byte))
        && !running_number(value)
        && !value.starts_with("10.")
        // Rayyan's key of a record.
        && !value.starts_with("rayyan-");
    is_number.then(|| value.to_owned())
}

/// Returns `true` for the form of APA `PsycInfo`: `2019-65183-001`.
pub(super) fn is_apa(value: &str) -> bool {
    value.len() == 14
        && value
            .bytes()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 4 | 10) { byte == b'-' } else { byte.is_ascii_digit() })
}

/// Parses the number of SciELO, without its collection: `S0073-47212018000100221-scl`.
pub(super) fn of_scielo(value: &str) -> Option<&str> {
    let (number, collection) = value.rsplit_once('-')?;
    let is_number = number.len() == 23 && number.starts_with('S') && number.as_bytes()[5] == b'-';
    (is_number && collection.len() == 3 && collection.bytes().all(|byte| byte.is_ascii_lowercase()))
        .then_some(number)
}

/// Returns `true` for the form of ERIC: `EJ1251011` or `ED395726`.
pub(super) fn is_eric(value: &str) -> bool {
    let number = value.strip_prefix("EJ").or_else(|| value.strip_prefix("ED"));
    number.is_some_and(|number| (5..=8).contains(&number.len()) && is_digits(number))
}

/// Returns `true` for a value that consists of a DOI, possibly after a label or a resolver.
pub(super) fn is_doi(value: &str) -> bool {
    const LABELS: [&str; 8] = [
        "doi:",
        "10.",
        "doi.org/",
        "dx.doi.org/",
        "https://doi.org/",
        "http://doi.org/",
        "https://dx.doi.org/",
        "http://dx.doi.org/",
    ];
    let begins =
        |label: &str| value.get(..label.len()).is_some_and(|found| found.eq_ignore_ascii_case(label));
    (!value.contains(' ') || begins("doi: ")) && LABELS.iter().any(|label| begins(label))
}

pub(super) fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}
