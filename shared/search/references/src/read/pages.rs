//! Parses page ranges.

use std::borrow::Cow;

use super::{
    dates::{self, SpreadsheetDate},
    tidy::tidied,
};

/// Joins first and last page unchanged. A first page that is already a range includes both.
pub(super) fn joined(first: Option<&str>, last: Option<&str>) -> Option<String> {
    let (first, last) = (first.and_then(tidied), last.and_then(tidied));
    match (first, last) {
        (Some(first), Some(last)) if first == last || ends_in(&first, &last) => Some(first.into_owned()),
        (Some(first), Some(last)) if begins_in(&last, &first) => Some(last.into_owned()),
        (Some(first), Some(last)) => Some([first.as_ref(), "-", &last].concat()),
        (first, last) => first.or(last).map(Cow::into_owned),
    }
}

/// Numbers that a spreadsheet may have turned into a date.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Restoration {
    /// The text is not such a date.
    Same,
    /// The numbers that the spreadsheet turned into a date.
    Range(String),
    /// The date has several meanings.
    Unclear,
}

/// Restores pages that a spreadsheet turned into a date: `Dec-19` was `12-19`, and `07-Mar` was `3-7`, as a range
/// ascends.
pub(super) fn restored(pages: &str) -> Restoration {
    match dates::of_spreadsheet(pages, true) {
        None => Restoration::Same,
        Some(SpreadsheetDate::DayAndMonth(day, month)) => ascending(day, month),
        Some(SpreadsheetDate::MonthAndYear(month, year)) => after(month, year),
        Some(SpreadsheetDate::Whole(date)) => of_day(date),
    }
}

/// Restores a double issue that a spreadsheet turned into a date: `05-Jun` was `5-6`. Other dates may be names of issues.
pub(super) fn restored_issue(issue: &str) -> Restoration {
    let (day, month) = match dates::of_spreadsheet(issue, false) {
        None => return Restoration::Same,
        Some(SpreadsheetDate::DayAndMonth(day, month)) => (day, month),
        Some(SpreadsheetDate::MonthAndYear(..)) if issue.contains(['-', '/']) => return Restoration::Unclear,
        // `Oct. 5`
        Some(SpreadsheetDate::MonthAndYear(..)) => return Restoration::Same,
        Some(SpreadsheetDate::Whole(date)) => (date.day.unwrap_or(0), date.month.unwrap_or(0)),
    };
    if day.abs_diff(month) == 1 { ascending(day, month) } else { Restoration::Unclear }
}

fn ascending(one: u8, other: u8) -> Restoration {
    range(one.min(other), one.max(other))
}

fn range(first: u8, last: u8) -> Restoration {
    if 0 < first && first < last {
        Restoration::Range(format!("{first}-{last}"))
    } else {
        Restoration::Unclear
    }
}

/// A spreadsheet takes a number for a year only if it cannot be a month.
fn after(month: u8, year: u8) -> Restoration {
    if year > 12 { range(month, year) } else { Restoration::Unclear }
}

/// The first day of a month stands for a month and a year, or for two numbers.
fn of_day(date: dates::Date) -> Restoration {
    /// Spreadsheets complete a day and a month with the current year, and two digits with a year of this century below
    /// 30.
    const FIRST_CURRENT: i32 = 1990;
    const YEARS: std::ops::RangeInclusive<i32> = 1930..=2029;
    let (Some(year), Some(month), Some(day)) = (date.year, date.month, date.day) else {
        return Restoration::Unclear;
    };
    let of_two = if year < FIRST_CURRENT { Restoration::Unclear } else { ascending(day, month) };
    let of_month = match u8::try_from(year % 100) {
        Ok(year_of_two_digits) if day == 1 && YEARS.contains(&year) => after(month, year_of_two_digits),
        _ => Restoration::Unclear,
    };
    match (of_two, of_month) {
        (found @ Restoration::Range(_), Restoration::Unclear) | (Restoration::Unclear, found) => found,
        _ => Restoration::Unclear,
    }
}

/// Removes a label in front of a page.
fn unlabelled(page: &str) -> &str {
    const LABELS: [&str; 6] = ["pp.", "p.", "pp ", "p ", "S. ", "Pages "];
    LABELS.iter().find_map(|label| page.strip_prefix(label)).unwrap_or(page).trim()
}

/// Returns `true` if the last page is a range from the first page.
fn begins_in(last: &str, first: &str) -> bool {
    unlabelled(last)
        .strip_prefix(first)
        .is_some_and(|rest| rest.starts_with(['-', '–']) && !first.contains('-'))
}

/// Returns `true` if the first page is a range up to the last page, possibly shortened. Pages may contain hyphens:
/// `S21-1`.
fn ends_in(first: &str, last: &str) -> bool {
    let hyphens = ['-', '–'];
    let end = first.rsplit(hyphens).next().filter(|end| end.len() < first.len());
    end.is_some_and(|end| !last.contains(hyphens) && last.ends_with(end))
}

/// Normalizes a range to a plain hyphen and complete pages: `123-9` becomes `123-129`. Returns `None` if it is already
/// in this form.
pub(super) fn normalized(pages: &str) -> Option<String> {
    if is_plain(pages) {
        return None;
    }
    let bare = without_count(unlabelled(pages));
    let bare = bare.strip_prefix('p').filter(|rest| is_range(rest)).unwrap_or(bare);
    let (first, last) = match bare.split_once(['-', '–', '—', '‐', '‑', '−', '~', '～', '∼']) {
        // BibTeX uses two hyphens.
        // Web of Science writes a plus sign for further pages.
        Some((first, last)) => {
            (first.trim(), unlabelled(last.trim_start_matches(['-', ' '])).trim_end_matches('+'))
        }
        None => (bare, ""),
    };
    let number = |page: &str| !page.is_empty() && page.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !number(first) || (!last.is_empty() && !number(last)) {
        return None;
    }
    let digits = |page: &str| page.bytes().all(|byte| byte.is_ascii_digit());
    // Only leading digits of a last page may be omitted, and only if the first page has the same letters.
    let at = first.find(|c: char| c.is_ascii_digit()).unwrap_or(first.len());
    let (letters, counted) = first.split_at(at);
    let whole = if digits(last) && digits(counted) && last.len() < counted.len() {
        format!("{letters}{}{last}", &counted[..counted.len() - last.len()])
    } else {
        last.to_owned()
    };
    let range =
        if whole.is_empty() || whole == first { first.to_owned() } else { format!("{first}-{whole}") };
    (range != pages).then_some(range)
}

/// Removes the number of pages in brackets: `12-15(4쪽)`.
fn without_count(pages: &str) -> &str {
    let bracket = pages.strip_suffix(')').and_then(|pages| pages.rsplit_once('('));
    let is_count = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    bracket.filter(|(_, count)| is_count(count)).map_or(pages, |(pages, _)| pages.trim_end())
}

/// Returns `true` for two numbers with a hyphen between them. ERIC writes `p` before them. In a single page, the letter
/// may be part of the page.
fn is_range(pages: &str) -> bool {
    let is_number = |page: &str| !page.is_empty() && page.bytes().all(|byte| byte.is_ascii_digit());
    pages.split_once(['-', '–']).is_some_and(|(first, last)| is_number(first) && is_number(last))
}

/// Returns `true` for two different numbers of equal length with a hyphen between them, the most common form.
fn is_plain(pages: &str) -> bool {
    let Some((first, last)) = pages.split_once('-') else { return false };
    let digits = |page: &str| page.bytes().all(|byte| byte.is_ascii_digit());
    first.len() == last.len() && first != last && !first.is_empty() && digits(first) && digits(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_joined_unchanged() {
        assert_eq!(joined(Some("152"), Some("160")).as_deref(), Some("152-160"));
        assert_eq!(joined(Some("338-41"), Some("341")).as_deref(), Some("338-41"));
        assert_eq!(joined(Some("S21-1"), Some("S21-8")).as_deref(), Some("S21-1-S21-8"));
        assert_eq!(joined(Some("12-1"), Some("12-11")).as_deref(), Some("12-1-12-11"));
        assert_eq!(joined(Some("12"), Some("S. 12-15")).as_deref(), Some("S. 12-15"));
        assert_eq!(joined(Some("e7"), Some("e7")).as_deref(), Some("e7"));
        assert_eq!(joined(None, None), None);
    }

    #[test]
    fn dates_of_spreadsheets_become_ranges() {
        let range = |text: &str| Restoration::Range(text.to_owned());
        for (pages, read) in [
            ("Dec-19", range("12-19")),
            ("Jan-45", range("1-45")),
            ("janv.-45", range("1-45")),
            ("Mrz 45", range("3-45")),
            ("07-Mar", range("3-7")),
            ("7-Mar", range("3-7")),
            ("07. Mrz", range("3-7")),
            ("19/dez", range("12-19")),
            ("03-Jul", range("3-7")),
            ("2020-03-07", range("3-7")),
            ("1945-01-01", range("1-45")),
            ("2020-03-07 00:00:00", range("3-7")),
            // `12-19`, or `1-12`.
            ("2019-12-01", Restoration::Unclear),
            ("12. Dez", Restoration::Unclear),
            ("Dec-05", Restoration::Unclear),
            ("Jan-00", Restoration::Unclear),
            ("12-19", Restoration::Same),
            ("e12-19", Restoration::Same),
            ("Dec 2019", Restoration::Same),
            ("Jan-Feb", Restoration::Same),
            ("2019-13-01", Restoration::Same),
            ("2019-12", Restoration::Same),
        ] {
            assert_eq!(restored(pages), read, "{pages}");
        }
        for (issue, read) in [
            ("05-Jun", range("5-6")),
            ("01-Feb", range("1-2")),
            ("2020-06-05", range("5-6")),
            ("07-Mar", Restoration::Unclear),
            ("Dec-19", Restoration::Unclear),
            ("Dec 19", Restoration::Same),
            ("Oct. 5", Restoration::Same),
            ("Jan-Feb", Restoration::Same),
            ("March 2019", Restoration::Same),
            ("Dec", Restoration::Same),
            ("5-6", Restoration::Same),
        ] {
            assert_eq!(restored_issue(issue), read, "{issue}");
        }
    }

    #[test]
    fn shortened_last_page_is_completed() {
        for (given, whole) in [
            ("123-9", Some("123-129")),
            ("283-98", Some("283-298")),
            ("S12-9", Some("S12-S19")),
            ("S12-S19", None),
            ("p123-129", Some("123-129")),
            ("p123-9", Some("123-129")),
            ("p123", None),
            ("p12-p15", None),
            ("P12-5", Some("P12-P15")),
            ("123–129", Some("123-129")),
            ("123--129", Some("123-129")),
            ("12~19", Some("12-19")),
            ("12～19(8쪽)", Some("12-19")),
            ("pp. 5-7", Some("5-7")),
            ("pp 278-98", Some("278-298")),
            ("S. 12-15", Some("12-15")),
            ("p. 12-p. 15", Some("12-15")),
            ("12-15(4쪽)", Some("12-15")),
            ("7-7", Some("7")),
            ("75-+", Some("75")),
            ("152-160", None),
            ("10-9", Some("10-19")),
            ("e0815", None),
            ("iv-x", None),
            ("1-5, 9", None),
            ("S2213-2600(18)30123-4", None),
        ] {
            assert_eq!(normalized(given).as_deref(), whole, "{given}");
        }
    }
}
