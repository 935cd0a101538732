//! Parses dates with the available precision.

use std::ops::RangeInclusive;

use jiff::{ToSpan, civil};

use crate::work::spend;

/// The range of years in references. Any other number is not a year. Lower numbers are years of the calendars of Islam,
/// whose years begin in other months, so the year here is not certain.
const YEARS: RangeInclusive<i32> = 1450..=2999;
/// The years of the calendars of Islam in the twentieth and twenty-first centuries.
const ISLAMIC: RangeInclusive<i32> = 1300..=1449;
/// The years of the Buddhist calendar that are years from 1900 to 2100.
const BUDDHIST: RangeInclusive<i32> = 2443..=2643;
/// The difference to a year of the Buddhist calendar.
const BUDDHIST_OFFSET: i32 = 543;
/// The eras of Japan and Taiwan, and the year before each.
const ERAS: [(&str, i32); 5] =
    [("令和", 2018), ("平成", 1988), ("昭和", 1925), ("民國", 1911), ("民国", 1911)];

/// A date. Usually only the year is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: Option<i32>,
    pub(super) month: Option<u8>,
    pub(super) day: Option<u8>,
}

impl Date {
    /// Formats the date as ISO 8601 if more than the year is known: `"2018-05"`, `"2018-05-17"`.
    pub(super) fn iso(self) -> Option<String> {
        let (year, month) = (self.year?, self.month?);
        // A year has four digits.
        let mut date = String::with_capacity("2018-05-17".len());
        push(&mut date, year / 100);
        push(&mut date, year % 100);
        for part in [Some(month), self.day].into_iter().flatten() {
            date.push('-');
            push(&mut date, part.into());
        }
        Some(date)
    }
}

/// Appends a two-digit number.
fn push(date: &mut String, number: i32) {
    for digit in [number / 10, number % 10] {
        date.extend(u32::try_from(digit).ok().and_then(|digit| char::from_digit(digit, 10)));
    }
}

/// Parses the date in a value: `2014/05/17/`, `2018 May 17`, `25 Aug 2004`, `20190102`, `JUN 8`, `2014`.
///
/// The beginning of a range (`Nov-Dec`) counts. Numbers before the year are a day and a month only if one of them cannot be
/// a month: `05/06/2014` has two meanings, so only its year is used. The day precedes the month in `05.06.2014`.
pub(super) fn date(value: &str) -> Date {
    if let Some(year) = four_digits(value) {
        return Date { year: Some(year), ..Date::default() };
    }
    if !spend(value.len()) {
        return Date::default();
    }
    if value.contains(|c: char| digit_elsewhere(c).is_some()) {
        let narrow = |c: char| digit_elsewhere(c).and_then(|digit| char::from_digit(digit, 10)).unwrap_or(c);
        return date(&value.chars().map(narrow).collect::<String>());
    }
    if let Some(value) = without_era(value) {
        return date(&value);
    }
    if let Some(day) = before_time(value) {
        return date(day);
    }
    if let Some(value) = without_clock(value) {
        return date(&value);
    }
    // Chinese, Japanese and Korean dates have a letter after each number.
    let separates = |c: char| !c.is_alphanumeric() || matches!(c, '年' | '月' | '日' | '년' | '월' | '일');
    let words = || value.split(separates).filter(|word| !word.is_empty());
    if let Some(date) = words().find_map(compact) {
        return date;
    }
    if let Some(date) = two_digits(words).or_else(|| year_last(value)).or_else(|| month_and_year(value)) {
        return date;
    }
    let mut date = Date::default();
    // A number next to an unknown word, such as a month in another language, does not count as a month.
    let (mut named, mut numbers) = (false, 0);
    for word in words() {
        if let Some(year) = four_digits(word).or_else(|| lettered(word)) {
            if date.year.is_some() {
                break;
            }
            date.year = Some(year);
        } else if let Some(month) = month(word) {
            if date.month.is_none() {
                (date.month, named) = (Some(month), true);
            }
        } else if let Some((month, year)) = joined(word) {
            if date.year.is_none() {
                (date.month, date.year, named) = (date.month.or(Some(month)), Some(year), true);
            }
        } else if let Some(number) = small(word) {
            numbers += 1;
            if named || date.year.is_none() || numbers > 1 {
                date.day = date.day.or(Some(number));
            } else {
                date.month = Some(number);
            }
        } else if let Some(number) = ordinal(word) {
            date.day = date.day.or(Some(number));
        } else if word.len() == 4 && word.parse().is_ok_and(|year: i32| ISLAMIC.contains(&year)) {
            // A year of this era may follow: `1399 [2020]`.
            numbers += 2;
        } else if word.bytes().next().is_some_and(|first| first.is_ascii_digit()) {
            // Texts such as "14:30h" are not followed by parts of a date.
            break;
        } else if date.year.is_some() {
            named = true;
        }
    }
    plausible(date, named)
}

/// The kinds of dates that spreadsheets make of two numbers with a hyphen between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpreadsheetDate {
    /// `07-Mar`, `12. Dez`
    DayAndMonth(u8, u8),
    /// `Dec-19`, with two digits of the year.
    MonthAndYear(u8, u8),
    /// `2019-12-01`, of the cell of a workbook.
    Whole(Date),
}

/// Parses a date in the forms in which spreadsheets show it. Only blanks separate month and number in names of issues
/// too: `Dec 19`.
pub(super) fn of_spreadsheet(value: &str, with_blanks: bool) -> Option<SpreadsheetDate> {
    /// The maximum length of a date.
    const MAX_DATE: usize = 24;
    let value = value.trim();
    if value.len() > MAX_DATE || !value.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Some(day) = iso_day(value) {
        return Some(SpreadsheetDate::Whole(day));
    }
    // Most values are numbers.
    if !value.contains(char::is_alphabetic) {
        return None;
    }
    let separates = |c: char| matches!(c, '-' | '/' | '.' | ' ');
    let (first, second) = value.split_once(separates)?;
    if !with_blanks && !value.contains(['-', '/', '.']) {
        return None;
    }
    let (first, second) = (first, second.trim_start().trim_end_matches('.'));
    match (small(first), month(first), small(second), month(second)) {
        (Some(day), _, _, Some(month)) => Some(SpreadsheetDate::DayAndMonth(day, month)),
        (_, Some(month), Some(year), _) => Some(SpreadsheetDate::MonthAndYear(month, year)),
        (_, Some(month), ..) if second == "00" => Some(SpreadsheetDate::MonthAndYear(month, 0)),
        // French abbreviations: `janv.-45`.
        (_, Some(month), ..) => {
            let year = small(second.trim_start_matches(separates))?;
            Some(SpreadsheetDate::MonthAndYear(month, year))
        }
        _ => None,
    }
}

/// Parses `2019-12-01`, also with midnight behind it.
fn iso_day(value: &str) -> Option<Date> {
    let midnights = ["T00:00:00", " 00:00:00"];
    let day = midnights.iter().find_map(|time| value.strip_suffix(time)).unwrap_or(value);
    let mut parts = day.split('-');
    let part = |part: Option<&str>| part.filter(|part| part.len() == 2).and_then(small);
    let year = parts.next().and_then(four_digits)?;
    let (month, day) = (part(parts.next())?, part(parts.next())?);
    let found = plausible(Date { year: Some(year), month: Some(month), day: Some(day) }, true);
    found.day.filter(|_| parts.next().is_none()).map(|_| found)
}

/// The digit that a character of another script stands for: wide, Arabic, Persian, Devanagari, Bengali and Thai.
fn digit_elsewhere(c: char) -> Option<u32> {
    const ZEROS: [u32; 6] = [0xff10, 0x660, 0x6f0, 0x966, 0x9e6, 0xe50];
    let code = u32::from(c);
    ZEROS.iter().find_map(|zero| code.checked_sub(*zero).filter(|digit| *digit < 10))
}

/// Replaces the year of an era: `令和2年5月`, `民國109年`. The first year may be a word: `令和元年`.
fn without_era(value: &str) -> Option<String> {
    if value.is_ascii() {
        return None;
    }
    let (rest, before) =
        ERAS.iter().find_map(|(era, before)| Some((value.trim().strip_prefix(era)?, before)))?;
    let rest = rest.trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = match rest.strip_prefix('元') {
        Some(rest) => (1, rest),
        None => {
            (rest[..digits].parse::<i32>().ok().filter(|number| (1..200).contains(number))?, &rest[digits..])
        }
    };
    rest.starts_with('年').then(|| format!("{}{rest}", before + number))
}

/// Parses the year in a value.
pub(super) fn year(value: &str) -> Option<i32> {
    date(value).year
}

/// Drops invalid parts, such as a thirteenth month, a day without a month, or the last of April with the number 31.
fn plausible(mut date: Date, named: bool) -> Date {
    let year_first = named || date.month.is_some();
    date.month = date.month.filter(|month| (1..=12).contains(month) && year_first);
    let days = match date.month {
        Some(2) => 29,
        Some(4 | 6 | 9 | 11) => 30,
        Some(_) => 31,
        None => 0,
    };
    date.day = date.day.filter(|day| (1..=days).contains(day));
    date
}

/// The date in front of a time: `2019-07-15T00:00:00Z`.
fn before_time(value: &str) -> Option<&str> {
    let at = value.find('T').filter(|at| *at > 0)?;
    let digit = |at: usize| value.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    (digit(at - 1) && digit(at + 1)).then(|| &value[..at])
}

/// The date around a time, before a year: `Thu Mar 05 00:00:00 UTC 2020` of Java and Unix.
fn without_clock(value: &str) -> Option<String> {
    let colon = value.find(':')?;
    let start = value[..colon].rfind(' ')?;
    let end = colon + value[colon..].find(' ')?;
    let is_clock = value[start + 1..end].split(':').all(|part| part.len() == 2 && part.parse::<u8>().is_ok());
    let year = value[end..].rsplit(' ').next().and_then(four_digits);
    (is_clock && year.is_some()).then(|| format!("{}{}", &value[..start], &value[end..]))
}

/// Parses a date as spreadsheets write it, with two digits for the year: `15-Jul-19`.
fn two_digits<'a, Words: Iterator<Item = &'a str>>(words: impl Fn() -> Words) -> Option<Date> {
    /// Spreadsheets take lower numbers for years after 1999.
    const PIVOT: i32 = 30;
    let mut words = words();
    let (day, month, year) = (small(words.next()?)?, month(words.next()?)?, words.next()?);
    if year.len() != 2 || words.next().is_some() {
        return None;
    }
    let year = i32::from(small(year).or((year == "00").then_some(0))?);
    let year = if year < PIVOT { 2000 + year } else { 1900 + year };
    Some(plausible(Date { year: Some(year), month: Some(month), day: Some(day) }, true))
}

/// Parses a date in numbers with the year at its end, if only one order of day and month is possible: `05.08.2000`,
/// `8/22/2000`.
fn year_last(value: &str) -> Option<Date> {
    let word = value.split_whitespace().next()?.trim_end_matches(['.', ',', ';']);
    let separator = ['.', '/', '-'].into_iter().find(|separator| word.contains(*separator))?;
    let mut parts = word.split(separator);
    let (first, second) = (small(parts.next()?)?, small(parts.next()?)?);
    let year = parts.next().and_then(four_digits).filter(|_| parts.next().is_none())?;
    let (day, month) = match (first, second) {
        (13.., 1..=12) => (first, second),
        (1..=12, 13..) => (second, first),
        // Dates with full stops begin with the day.
        (_, 1..=12) if separator == '.' || first == second => (first, second),
        _ => return None,
    };
    let date = plausible(Date { year: Some(year), month: Some(month), day: Some(day) }, true);
    date.day.map(|_| date)
}

/// Parses a month and its year in numbers: `12/2012`.
fn month_and_year(value: &str) -> Option<Date> {
    let (month, year) = value.trim().split_once(['/', '-', '.'])?;
    let (month, year) = (small(month)?, four_digits(year)?);
    (1..=12).contains(&month).then_some(Date { year: Some(year), month: Some(month), day: None })
}

/// Parses the number of a day: `1st`, `22nd`, `3rd`, `4th`.
fn ordinal(word: &str) -> Option<u8> {
    ["st", "nd", "rd", "th"].iter().find_map(|end| small(word.strip_suffix(end)?))
}

/// Parses a date in eight digits: `20190102`.
fn compact(word: &str) -> Option<Date> {
    let digits = word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_digit());
    let date = digits.then_some(word)?;
    let found =
        Date { year: Some(four_digits(&date[..4])?), month: small(&date[4..6]), day: small(&date[6..]) };
    Some(plausible(found, false))
}

/// Parses the value of a field for the date of publication, which may also be a year and a month: `202003`. In citations,
/// six digits are the number of an article.
pub(super) fn of_publication(value: &str) -> Date {
    month_of_year(value).unwrap_or_else(|| date(before_numbers(value)))
}

/// Removes the volume, issue and pages behind a year: `2019;12(3):12-19`.
fn before_numbers(value: &str) -> &str {
    let is_number = |rest: &str| rest.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '(');
    match value.split_once(';') {
        Some((before, rest)) if is_number(rest) && date(before).year.is_some() => before,
        _ => value,
    }
}

/// Only recent years count, because most other numbers of six digits begin differently.
fn month_of_year(value: &str) -> Option<Date> {
    const RECENT: RangeInclusive<i32> = 1950..=2049;
    let value = value.trim();
    let digits = value.len() == 6 && value.bytes().all(|byte| byte.is_ascii_digit());
    let year = four_digits(value.get(..4).filter(|_| digits)?).filter(|year| RECENT.contains(year))?;
    let month = small(&value[4..]).filter(|month| (1..=12).contains(month))?;
    Some(Date { year: Some(year), month: Some(month), day: None })
}

fn four_digits(word: &str) -> Option<i32> {
    let digits = word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    let year = digits.then(|| word.parse().ok()).flatten().filter(|year| YEARS.contains(year))?;
    Some(if BUDDHIST.contains(&year) { year - BUDDHIST_OFFSET } else { year })
}

/// Parses a year with a letter that distinguishes works of the same author, `1992a`, with a copyright mark, `c1992`, or
/// with the Russian word for a year, `1992г`.
fn lettered(word: &str) -> Option<i32> {
    let follows =
        word.strip_suffix("ff").or_else(|| word.strip_suffix(|c: char| c.is_ascii_lowercase() || c == 'г'));
    let year = follows.or_else(|| word.strip_prefix('c'))?;
    four_digits(year)
}

/// Parses a month with the year directly after it, as EBSCOhost writes: `Jun2020`.
fn joined(word: &str) -> Option<(u8, i32)> {
    let digits = word.bytes().position(|byte| byte.is_ascii_digit()).filter(|at| *at > 2)?;
    Some((month(&word[..digits])?, four_digits(&word[digits..])?))
}

/// Parses a number of one or two digits.
fn small(word: &str) -> Option<u8> {
    let digits = word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| word.parse().ok()).flatten().filter(|number| *number > 0)
}

/// The months in Spanish, Portuguese, French, Italian and German, and the stems of the Russian ones.
#[rustfmt::skip]
const OTHER_MONTHS: [&[&str]; 12] = [
    &["enero", "janeiro", "janvier", "gennaio", "januar", "jänner", "январ"],
    &["febrero", "fevereiro", "février", "fevrier", "febbraio", "februar", "феврал"],
    &["marzo", "março", "mars", "märz", "maerz", "mrz", "март"],
    &["abril", "avril", "aprile", "апрел"],
    &["mayo", "maio", "mai", "maggio", "май", "мая"],
    &["junio", "junho", "juin", "giugno", "juni", "июн"],
    &["julio", "julho", "juillet", "luglio", "juli", "июл"],
    &["agosto", "août", "aout", "август"],
    &["septiembre", "setiembre", "setembro", "septembre", "settembre", "сентябр"],
    &["octubre", "outubro", "octobre", "ottobre", "oktober", "октябр"],
    &["noviembre", "novembro", "novembre", "ноябр"],
    &["diciembre", "dezembro", "décembre", "decembre", "dicembre", "dezember", "декабр"],
];

/// Parses a month of [`OTHER_MONTHS`], whole or abbreviated to three letters.
fn other_month(word: &str) -> Option<u8> {
    if !word.chars().all(char::is_alphabetic) || word.chars().count() < 3 {
        return None;
    }
    let word = word.to_lowercase();
    let is_same = |name: &&str| name.starts_with(&word) || (!name.is_ascii() && word.starts_with(*name));
    let at = OTHER_MONTHS.iter().position(|names| names.iter().any(is_same))?;
    u8::try_from(at + 1).ok()
}

/// Parses a month in another language than Chinese, Japanese or Korean.
fn month(word: &str) -> Option<u8> {
    english_month(word).or_else(|| other_month(word))
}

/// Returns `true` for an English month, whole or abbreviated to three letters.
pub(super) fn is_month(word: &str) -> bool {
    english_month(word).is_some()
}

/// Parses an English month, whole or abbreviated to three letters.
fn english_month(word: &str) -> Option<u8> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let known = |month: &&str| {
        word.len() >= 3 && word.len() <= month.len() && month[..word.len()].eq_ignore_ascii_case(word)
    };
    // Only ASCII words can be compared with the first three letters.
    let at = word.is_ascii().then(|| MONTHS.iter().position(known))??;
    u8::try_from(at + 1).ok()
}

/// The date of a number of days since 1899, which spreadsheets write in place of a date: `43556` is `2019-04-01`. A year
/// has fewer digits.
pub(super) fn of_day_number(cell: &str) -> Option<String> {
    /// The days of 1940 to 2049.
    const DAYS: RangeInclusive<i32> = 14_611..=54_788;
    let days: i32 = cell.trim().parse().ok().filter(|days| DAYS.contains(days))?;
    Some(civil::date(1899, 12, 30).checked_add(days.days()).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_days_are_dates() {
        for (cell, date) in [
            ("43556", Some("2019-04-01")),
            ("14611", Some("1940-01-01")),
            ("36585", Some("2000-02-29")),
            ("36586", Some("2000-03-01")),
            ("54788", Some("2049-12-31")),
            ("2019", None),
            ("99999", None),
            ("43556.5", None),
        ] {
            assert_eq!(of_day_number(cell).as_deref(), date, "{cell}");
        }
    }

    #[test]
    fn dates_keep_their_precision() {
        for (value, year, iso) in [
            ("2014//", Some(2014), None),
            ("2014", Some(2014), None),
            ("2019/04/12/", Some(2019), Some("2019-04-12")),
            ("2019-04", Some(2019), Some("2019-04")),
            ("2018 May 17", Some(2018), Some("2018-05-17")),
            ("2018 Sept", Some(2018), Some("2018-09")),
            ("2022 Nov-Dec", Some(2022), Some("2022-11")),
            ("2018 Dec-2019 Jan", Some(2018), Some("2018-12")),
            ("2020 Spring", Some(2020), None),
            ("25 Aug 2004", Some(2004), Some("2004-08-25")),
            ("Date: 25 Aug 2004", Some(2004), Some("2004-08-25")),
            ("August 5, 2004", Some(2004), Some("2004-08-05")),
            ("20190102", Some(2019), Some("2019-01-02")),
            ("20190002", Some(2019), None),
            ("2014/13/40", Some(2014), None),
            ("2019 juin 3", Some(2019), Some("2019-06-03")),
            ("15 mai 2019", Some(2019), Some("2019-05-15")),
            ("2019/ago.", Some(2019), Some("2019-08")),
            ("jul.-set. 2019", Some(2019), Some("2019-07")),
            ("12. Dezember 2019", Some(2019), Some("2019-12-12")),
            ("1 января 2019 г.", Some(2019), Some("2019-01-01")),
            ("2019 tavasz 3", Some(2019), None),
            ("2019-07-15T00:00:00Z", Some(2019), Some("2019-07-15")),
            ("July 1st, 2019", Some(2019), Some("2019-07-01")),
            ("2nd quarter 2019", Some(2019), None),
            ("2019 Apr 31", Some(2019), Some("2019-04")),
            ("15-Jul-19", Some(2019), Some("2019-07-15")),
            ("03-Feb-98", Some(1998), Some("1998-02-03")),
            ("05/06/2014", Some(2014), None),
            ("22.08.2000", Some(2000), Some("2000-08-22")),
            ("8/22/2000 10:15", Some(2000), Some("2000-08-22")),
            ("07-07-2000.", Some(2000), Some("2000-07-07")),
            ("22/23/2000", Some(2000), None),
            ("31.02.2000", Some(2000), None),
            ("22(8) 2000", Some(2000), None),
            ("May 2022", Some(2022), Some("2022-05")),
            ("Jun2020", Some(2020), Some("2020-06")),
            ("2020/06//Jun2020", Some(2020), Some("2020-06")),
            ("2020年5月17日", Some(2020), Some("2020-05-17")),
            ("2020년 5월", Some(2020), Some("2020-05")),
            ("２０２０年５月", Some(2020), Some("2020-05")),
            ("1992a", Some(1992), None),
            ("c1992", Some(1992), None),
            ("1992г.", Some(1992), None),
            ("12345", None, None),
            ("in press", None, None),
            ("٢٠١٤", Some(2014), None),
            ("๒๕๖๓", Some(2020), None),
            ("พ.ศ. 2563", Some(2020), None),
            ("17 May 2563", Some(2020), Some("2020-05-17")),
            ("令和2年5月", Some(2020), Some("2020-05")),
            ("平成元年", Some(1989), None),
            ("民國109年", Some(2020), None),
            ("令和", None, None),
            ("1399", None, None),
            ("۱۳۹۹/۰۵/۱۷", None, None),
            ("1399 [2020]", Some(2020), None),
            ("1441 AH", None, None),
        ] {
            let found = date(value);
            assert_eq!((found.year, found.iso().as_deref()), (year, iso), "{value}");
        }
    }

    #[test]
    fn month_and_day_are_read_without_year() {
        assert_eq!(date("JUN 8"), Date { year: None, month: Some(6), day: Some(8) });
        assert_eq!(date("MAY-JUN"), Date { year: None, month: Some(5), day: None });
        assert_eq!(date("04"), Date::default());
    }
}
