//! Parses citations on one line: journal, year, volume, issue and pages.

use std::borrow::Cow;

use super::{
    dates,
    draft::Draft,
    entities,
    field::{Field, FieldName},
    tidy,
};
use crate::work::spend;

/// The maximum length of a date in parentheses.
const MAX_DATE: usize = 64;
/// The maximum length of a name of a journal where other text may precede.
const MAX_JOURNAL: usize = 160;
/// The longest citation without a volume, with the names of a conference.
const MAX_CITATION: usize = 2_048;
/// The maximum length of pages where other text may follow.
const MAX_PAGES: usize = 24;

/// The parts of a citation, unchanged; empty if missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Citation<'a> {
    pub(super) journal: &'a str,
    pub(super) date: &'a str,
    pub(super) volume: &'a str,
    pub(super) issue: &'a str,
    pub(super) pages: &'a str,
}

/// Adds the parts of a citation to the draft. Returns `false` if the text is not a citation.
pub(super) fn add(draft: &mut Draft<'_>, name: &'static str, text: &str) -> bool {
    let Some(found) = parse(text) else { return false };
    add_parts(draft, name, &found);
    true
}

/// Adds the parts to the draft, where more specific tags have precedence.
pub(super) fn add_parts(draft: &mut Draft<'_>, name: &'static str, found: &Citation<'_>) {
    let parts = [
        (Field::Journal, found.journal),
        (Field::Date, found.date),
        (Field::Volume, found.volume),
        (Field::Issue, found.issue),
        (Field::Pages, found.pages),
    ];
    for (field, text) in parts {
        let named = FieldName::new(field, name, u8::MAX);
        draft.add_decoded(named, Cow::Owned(text.to_owned()));
    }
}

/// Adds the source on Ovid: a citation, or the name of the journal alone for a work that is published before its issue.
/// Other texts are kept unchanged.
pub(super) fn add_source(draft: &mut Draft<'_>, name: &'static str, value: &str) {
    let Some(text) = tidy::line(&entities::decode(value)) else { return };
    let journal = text.trim_end_matches(['.', ' ']).trim_end_matches(". Publish Ahead of Print");
    // Books have a place and a publisher there, and reports a conference.
    let is_other = |c: char| c.is_ascii_digit() || matches!(c, ':' | ';' | '[' | '(');
    if let Some(found) = parse_on_ovid(&text) {
        add_parts(draft, name, &found);
    } else if journal.len() < MAX_JOURNAL && !journal.contains(is_other) && !journal.contains(". ") {
        add_parts(draft, name, &Citation { journal, ..Citation::default() });
    } else {
        draft.extra.push(name, &text);
    }
}

/// Parses the volume and issue of RISS: `Vol.12 No.3 [2020]`. A hyphen stands for a missing number.
pub(super) fn volume_and_issue(text: &str) -> Option<(&str, &str)> {
    let (volume, rest) = text.trim().strip_prefix("Vol.")?.trim_start().split_once(' ')?;
    let issue = rest.trim_start().strip_prefix("No.")?.trim_start();
    let (issue, year) = issue.split_once(' ').unwrap_or((issue, ""));
    let is_number = |number: &str| {
        number.contains(|c: char| c.is_ascii_digit())
            && number.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_year = year.is_empty() || (year.starts_with('[') && year.ends_with(']'));
    let known = |number: &'_ str| number == "-" || is_number(number);
    let given = |number| if number == "-" { "" } else { number };
    let volume = volume.trim_end_matches(',');
    (is_year && known(volume) && known(issue)).then(|| (given(volume), given(issue)))
}

/// Replaces wide punctuation by ASCII behind the first digit: `中国医学 2020；12(3)：123-129`. VIP writes `.-` before pages.
pub(super) fn narrow(text: &str) -> Cow<'_, str> {
    let Some(at) = text.find(|c: char| c.is_ascii_digit()).filter(|_| !text.is_ascii()) else {
        return Cow::Borrowed(text);
    };
    spend(text.len());
    let (journal, numbers) = text.split_at(at);
    let narrow = |c: char| match c {
        '；' => ';',
        '：' => ':',
        '（' => '(',
        '）' => ')',
        '，' => ',',
        other => other,
    };
    let numbers: String = numbers.chars().map(narrow).collect();
    Cow::Owned(format!("{journal}{}", numbers.replace(").-", "):")))
}

/// Parses `2020,12(3)` and `2020,12(3):123-129`, as Wanfang and VIP write in one column.
pub(super) fn numbers_of_year(text: &str) -> Option<Citation<'_>> {
    const MAX_TEXT: usize = 48;
    if text.len() > MAX_TEXT {
        return None;
    }
    let (date, numbers) = text.trim().split_once([',', ';'])?;
    let date = date.trim();
    let (volume, issue, pages) = numbers_of(numbers);
    let is_number = |text: &str| text.len() < 8 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let has_issue = numbers.contains('(') && !issue.is_empty() && is_number(volume);
    (is_year(date) && has_issue && (pages.is_empty() || are_pages(pages))).then_some(Citation {
        journal: "",
        date,
        volume,
        issue,
        pages,
    })
}

/// Parses a citation in the form of PubMed, Ovid or ProQuest.
pub(super) fn parse(text: &str) -> Option<Citation<'_>> {
    if !spend(6 * text.len()) {
        return None;
    }
    parse_japanese(text)
        .or_else(|| parse_publication(text))
        .or_else(|| parse_pubmed(text))
        .or_else(|| parse_ovid(text))
        .or_else(|| parse_proquest(text))
        .or_else(|| parse_chapter(text))
}

/// Parses a citation in a field that has nothing else.
fn parse_on_ovid(text: &str) -> Option<Citation<'_>> {
    parse(text)
        .or_else(|| parse_issue(text))
        .or_else(|| parse_pages_last(text))
        .or_else(|| parse_without_volume(text))
}

/// Parses a citation in a column for the journal, in the form of Ovid or SinoMed. The pages show that the text is a
/// citation.
pub(super) fn parse_source(text: &str) -> Option<Citation<'_>> {
    if !spend(6 * text.len()) {
        return None;
    }
    let has_none = text.contains("(no pagination), ");
    parse_issue(text)
        .or_else(|| parse_dense(text))
        .or_else(|| parse_japanese(text))
        .or_else(|| parse_lilacs(text))
        .or_else(|| parse_ovid(text))
        .filter(|found| has_none || !found.pages.is_empty())
        .or_else(|| parse_without_volume(text).filter(|found| has_none || !found.pages.is_empty()))
        .filter(|found| !found.journal.is_empty())
}

/// Parses a citation in a tag for the journal. The volume and the pages have their usual shape.
pub(super) fn parse_journal(text: &str) -> Option<Citation<'_>> {
    // Most names of journals have no digit.
    if !text.bytes().any(|byte| byte.is_ascii_digit()) || !spend(9 * text.len()) {
        return None;
    }
    let has_numbers = |found: &Citation<'_>| {
        let is_volume =
            (1..8).contains(&found.volume.len()) && found.volume.bytes().all(|byte| byte.is_ascii_digit());
        is_volume && is_journal(found.journal) && are_pages(found.pages)
    };
    parse_journal_of_ovid(text)
        .or_else(|| parse_issue(text).filter(has_numbers))
        .or_else(|| parse_year_first(text).filter(has_numbers))
        .or_else(|| parse_dense(text).filter(has_numbers))
        .or_else(|| parse_numbers(text).filter(has_numbers))
}

/// Parses a citation of Ovid in a tag for the journal.
fn parse_journal_of_ovid(text: &str) -> Option<Citation<'_>> {
    let has_none = text.contains("(no pagination), ");
    let is_volume = |text: &str| text.len() < 8 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    parse_ovid(text).filter(|found| is_volume(found.volume)).or_else(|| parse_without_volume(text)).filter(
        |found| {
            !found.journal.is_empty()
                && (are_pages(found.pages.split(';').next().unwrap_or_default())
                    || (has_none && found.pages.is_empty()))
        },
    )
}

/// `Journal of Tests 2020;12(3):123-129`, also with commas.
fn parse_dense(text: &str) -> Option<Citation<'_>> {
    text.match_indices([';', ',', '；', '，']).find_map(|(at, separator)| {
        let before = text[..at].trim_end();
        let start = before.len().checked_sub(4)?;
        let date = before.get(start..).filter(|date| date.bytes().all(|byte| byte.is_ascii_digit()))?;
        dates::year(date)?;
        let journal = before[..start].trim_end_matches([' ', ',', '，', '.', '．', '\u{3000}']);
        let is_whole = journal.len() < start || !journal.ends_with(|c: char| c.is_ascii_alphanumeric());
        let rest = text[at + separator.len()..].trim_start();
        let (volume, issue, pages) = numbers_of(rest);
        let is_number = volume.len() < 8 && rest.starts_with(|c: char| c.is_ascii_digit() || c == '(');
        let pages = pages.trim_end_matches('.').trim();
        (is_whole && is_number && journal.chars().any(char::is_alphabetic)).then_some(Citation {
            journal,
            date,
            volume,
            issue,
            pages,
        })
    })
}

/// `Journal of Tests (Online);12(3): 123-130, jul.-set. 2019. tab`
fn parse_lilacs(text: &str) -> Option<Citation<'_>> {
    let (journal, rest) = text.split_once(';')?;
    let (numbers, rest) = rest.split_once(':')?;
    let (pages, date) = rest.split_once(',')?;
    let (volume, issue) = numbers.trim().split_once('(').unwrap_or((numbers.trim(), ""));
    let (issue, pages) = (issue.trim_end_matches([')', ' ']), pages.trim());
    let is_number =
        |text: &str| text.len() < 16 && text.bytes().next().is_some_and(|first| first.is_ascii_digit());
    let is_page = |text: &str| text.len() < 24 && text.bytes().any(|byte| byte.is_ascii_digit());
    // The Western Pacific index writes only the issue: `Journal of Tests ; (12): 123-130, 2019.`
    let has_number = is_number(volume) || (volume.trim().is_empty() && is_number(issue));
    (has_number && is_page(pages) && dates::year(date).is_some()).then_some(Citation {
        journal: journal.trim(),
        date: date.trim(),
        volume: volume.trim(),
        issue,
        pages,
    })
}

/// `日本医学会誌 12巻3号 Page123-129(2020.03)`, as Ichushi writes, possibly without the journal. A journal without volumes
/// has only numbers: `123号`.
pub(super) fn parse_japanese(text: &str) -> Option<Citation<'_>> {
    let at = text.find('巻').or_else(|| text.find("号 Page"))?;
    let start = text[..at].trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let number = &text[start..at];
    let (volume, (issue, rest)) = match text[at..].strip_prefix('巻') {
        Some(rest) => (number, japanese_issue(rest)),
        None => ("", (number, text[at..].trim_start_matches('号'))),
    };
    let rest = rest.trim_start();
    let pages = rest.strip_prefix("Page").or(rest.strip_prefix("p."))?.trim_start();
    let end = pages.find(['(', ' ', ',']).unwrap_or(pages.len());
    let date = pages[end..].trim_start().strip_prefix('(').and_then(|date| bracketed(date, MAX_DATE));
    let is_citation = !number.is_empty() && pages.starts_with(|c: char| c.is_ascii_alphanumeric());
    is_citation.then(|| Citation {
        journal: without_issn(text[..start].trim_end_matches([' ', '\u{3000}', ','])).trim(),
        date: date.map_or("", |(date, _)| date),
        volume,
        issue: issue.trim(),
        pages: &pages[..end],
    })
}

/// Splits the issue from the pages: `3号 Page123`, `臨増 Page123`.
fn japanese_issue(text: &str) -> (&str, &str) {
    text.split_once('号')
        .or_else(|| text.split_once(" Page").map(|(issue, _)| (issue, &text[issue.len()..])))
        .filter(|(issue, _)| issue.len() < 24)
        .unwrap_or(("", text))
}

/// Removes an ISSN in brackets after the name of a journal.
fn without_issn(journal: &str) -> &str {
    let is_issn = |text: &str| {
        text.len() == 9
            && text.bytes().enumerate().all(|(at, byte)| match at {
                4 => byte == b'-',
                8 => byte.is_ascii_digit() || byte == b'X',
                _ => byte.is_ascii_digit(),
            })
    };
    let bracket = journal.strip_suffix(')').and_then(|text| text.rsplit_once('('));
    bracket.filter(|(_, issn)| is_issn(issn)).map_or(journal, |(name, _)| name.trim_end())
}

/// `Journal of Tests; London Vol. 12, Iss. 3,  (Mar 1, 2020): 123-129.`, as ProQuest writes in `Publication info`.
fn parse_publication(text: &str) -> Option<Citation<'_>> {
    let at = text.find(" Vol. ").or_else(|| text.find(" Iss. "))?;
    let (numbers, rest) = text[at..].split_once(" (")?;
    let (date, rest) = bracketed(rest, MAX_DATE)?;
    dates::year(date)?;
    let number = |name: &str| {
        let (_, value) = numbers.split_once(name)?;
        Some(value.split(',').next().unwrap_or_default().trim())
    };
    let journal = without_city(&text[..at]);
    let pages = rest.trim_start_matches(':').trim_start().split(". ").next().unwrap_or_default();
    Some(Citation {
        journal: journal.trim().trim_end_matches(',').trim_end(),
        date,
        volume: number(" Vol. ").unwrap_or_default(),
        issue: number(" Iss. ").unwrap_or_default(),
        pages: pages.trim_end_matches('.').trim(),
    })
}

/// Removes the city that ProQuest writes after a journal: `Journal of Tests; London`.
pub(super) fn without_city(journal: &str) -> &str {
    journal.rsplit_once(';').map_or(journal, |(journal, _)| journal)
}

/// `J Tests. 2020 Mar;12(3):123-129.`
pub(super) fn parse_pubmed(text: &str) -> Option<Citation<'_>> {
    // A month may also end in a full stop: `Journal of Tests 12(3), Feb. 2020: 123-129.`
    let is_month = |at: usize| {
        let word = text[..at].rsplit(' ').next().unwrap_or_default();
        word.len() < 5 && dates::is_month(word) && text[..at - word.len()].ends_with(", ")
    };
    let stops = text.match_indices(". ").filter(|(at, _)| begins_with_year(&text[at + 2..]));
    let (at, _) = stops.filter(|(at, _)| !is_month(*at)).last()?;
    let journal = text[..at].trim();
    let rest = &text[at + 2..];
    let end = rest.find([';', ':', '.']).unwrap_or(rest.len());
    let (date, rest) = rest.split_at(end);
    let numbers = rest.strip_prefix(';').or_else(|| rest.strip_prefix(':').map(|_| rest)).unwrap_or_default();
    let (volume, issue, pages) = numbers_of(numbers);
    let pages = pages.split(". ").next().unwrap_or_default().trim_end_matches('.').trim();
    Some(Citation { journal, date: date.trim(), volume, issue, pages })
}

/// `Journal of Tests. 12(3):123-9, 2020 Mar.`
fn parse_ovid(text: &str) -> Option<Citation<'_>> {
    // Embase repeats the date: `9(4) (no pagination), 2019. Article Number: e025123. Date of Publication: 01 Apr 2019.`
    let text = text.split_once(" Date of Publication:").map_or(text, |(text, _)| text);
    let (text, article) = article_number(text);
    let is_number = |at: &usize| {
        let rest = text[at + 2..].trim_start_matches("Vol.").trim_start_matches("Vol ").trim_start();
        rest.starts_with(|c: char| c.is_ascii_digit())
    };
    let mut stops = stops(text).into_iter();
    let (journal, at) = match text.split_once(". Conference:") {
        // The numbers follow the name, the place and sometimes the date of the conference.
        Some((journal, _)) => (journal, stops.rfind(is_number)?),
        None => stops.find(is_number).or_else(|| text.find(", Vol ")).map(|at| (&text[..at], at))?,
    };
    let rest = text[at + 2..].trim_start_matches("Vol.").trim_start_matches("Vol ").trim();
    let end = numbers_end(rest);
    let (volume, issue, _) = numbers_of(&rest[..end]);
    // A volume without issues.
    let (issue, own_pages) = match pages_in_bracket(issue) {
        Some(pages) => ("", pages),
        None => (issue, ""),
    };
    let (mut date, mut pages) = ("", if article.is_empty() { own_pages } else { article });
    // The beginning of a month whose year is in the next part: `12(3), Mar. 5, 2020.`
    let (mut month, mut at) = (None, end);
    for whole in rest[end..].split([',', ':']) {
        let (start, part) = (at, whole.trim().trim_end_matches('.'));
        at += whole.len() + 1;
        let numbers =
            part.trim_matches(['(', ')', ' ']).trim_start_matches("pp.").trim_start_matches("pp ").trim();
        let before = month.take();
        if date.is_empty() && dates::year(part).is_some() && may_be_date(part) {
            date = before.map_or(part, |month| rest[month..start + whole.len()].trim().trim_end_matches('.'));
        } else if date.is_empty() && part.split(['.', ' ']).next().is_some_and(dates::is_month) {
            month = Some(start);
        } else if pages.is_empty() && numbers.contains(|c: char| c.is_ascii_digit()) {
            pages = numbers;
        }
    }
    dates::year(date)?;
    Some(Citation { journal: journal.trim(), date, volume, issue, pages })
}

/// Returns `false` for a range of pages with numbers like years: `1999-2005`. A date may be a range of months or seasons:
/// `2020 Mar-Apr`.
fn may_be_date(part: &str) -> bool {
    let begins_with_year =
        || part.split_once(' ').is_some_and(|(year, _)| year.len() == 4 && dates::year(year).is_some());
    let has_month = || part.split([' ', '-', '–', '.']).any(dates::is_month);
    !part.contains(['-', '–']) || begins_with_year() || has_month()
}

/// The positions of the full stops before a blank, except those in brackets: `140 (5 SUPPL. 1)`.
fn stops(text: &str) -> Vec<usize> {
    let (mut found, mut open) = (Vec::new(), None);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => open = Some(found.len()),
            b')' => found.truncate(open.take().unwrap_or(found.len())),
            b'.' if text.as_bytes().get(at + 1) == Some(&b' ') => found.push(at),
            _ => {}
        }
    }
    found
}

/// The end of the numbers before the pages, or before the date if that comes first:
/// `Vol.12(3), Mar 2020, pp. 123-129.`
fn numbers_end(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth < 2 => return at + 1,
            b')' => depth -= 1,
            b':' | b',' => return at,
            _ => {}
        }
    }
    text.len()
}

/// The pages in a bracket of Embase, `pp 123-129` or `no pagination`, where other sources have an issue.
fn pages_in_bracket(text: &str) -> Option<&str> {
    if text == "no pagination" { Some("") } else { text.strip_prefix("pp ").map(str::trim) }
}

/// A citation on Ovid without a volume: `Journal of Tests. (2):CD001234, 2005.`, `Journal of Tests. Suppl 1:S5-9, 2001.`,
/// `Journal of Tests. (pp 12-15), 2021.`, `Journal of Tests. , 2019 Jul 05.` or `Handbook of tests. 2019, pp. 12-34.`
fn parse_without_volume(text: &str) -> Option<Citation<'_>> {
    // The function searches the text after each of the few full stops in the name of a journal.
    if text.len() > MAX_CITATION {
        return None;
    }
    let text = text.split_once(" Date of Publication:").map_or(text, |(text, _)| text);
    let (text, article) = article_number(text);
    let names = stops(text).into_iter().take_while(|at| *at < MAX_CITATION / 4);
    let text = text.trim_end_matches(['.', ' ']);
    names.into_iter().find_map(|at| {
        let rest = text.get(at + 2..).filter(|_| spend(2 * text.len()))?;
        let journal = text[..at].split_once(". Conference:").map_or(&text[..at], |(journal, _)| journal);
        let (numbers, date) = rest.split_once(", ")?;
        let is_journal = journal.len() < MAX_JOURNAL && journal.contains(char::is_alphabetic);
        if is_journal && is_year(numbers) {
            let pages = date.strip_prefix("pp. ")?.split(". ").next()?;
            return are_pages(pages).then_some(Citation {
                journal,
                date: numbers,
                pages,
                ..Citation::default()
            });
        }
        let (issue, pages) = numbers_without_volume(numbers)?;
        let pages = if article.is_empty() { pages } else { article };
        (is_journal && is_date(date)).then_some(Citation { journal, date, issue, pages, volume: "" })
    })
}

/// Splits `(2):CD001234`, `(pp 12-15)` or `Suppl 1:S5-9` into issue and pages. Both may be missing.
fn numbers_without_volume(numbers: &str) -> Option<(&str, &str)> {
    if numbers.is_empty() {
        return Some(("", ""));
    }
    let Some(bracket) = numbers.strip_prefix('(') else {
        return numbers
            .split_once(':')
            .filter(|(issue, pages)| issue.starts_with("Suppl") && are_pages(pages));
    };
    let (inner, pages) = bracketed(bracket, MAX_PAGES)?;
    if let Some(own) = pages_in_bracket(inner) {
        return pages.is_empty().then_some(("", own));
    }
    let pages = pages.strip_prefix(':').unwrap_or(pages);
    (inner.starts_with(|c: char| c.is_ascii_digit()) && are_pages(pages)).then_some((inner, pages))
}

fn is_year(text: &str) -> bool {
    text.len() == 4 && begins_with_year(text)
}

/// Returns `true` for a year, possibly with a month and a day after it.
fn is_date(text: &str) -> bool {
    let is_part = |word: &str| {
        let is_day = word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
        is_day || word.split(['-', '/']).all(dates::is_month)
    };
    begins_with_year(text) && text.split(' ').skip(1).all(is_part)
}

/// Splits ` Article Number: e025123.` off a citation. Embase writes it instead of pages.
pub(super) fn article_number(text: &str) -> (&str, &str) {
    let Some((before, rest)) = text.split_once(" Article Number:") else { return (text, "") };
    let number = rest.trim_start().split(['.', ' ']).next().unwrap_or_default();
    (before, number)
}

/// `Journal of Tests 12.3 (Mar 2020): 123-129.`
fn parse_proquest(text: &str) -> Option<Citation<'_>> {
    let (at, (date, rest)) = text.match_indices(" (").find_map(|(at, opening)| {
        let (date, rest) = bracketed(&text[at + opening.len()..], MAX_DATE)?;
        dates::year(date).map(|_| (at, (date, rest)))
    })?;
    let before = text[..at].trim_end();
    let (journal, numbers) = match before.rsplit_once(' ') {
        Some((journal, numbers)) if numbers.starts_with(|c: char| c.is_ascii_digit()) => (journal, numbers),
        _ => (before, ""),
    };
    let (volume, issue) = numbers.split_once('.').unwrap_or((numbers, ""));
    // The source of a chapter continues with the title of the book.
    if rest.strip_prefix(". ").is_some_and(|book| !book.trim().is_empty()) {
        return None;
    }
    let pages = rest.trim_start_matches(':').trim().split(". ").next().unwrap_or_default();
    let pages = pages.trim_end_matches('.').trim();
    Some(Citation { journal: journal.trim_end_matches(',').trim(), date, volume, issue, pages })
}

/// `Roe, Ann [Ed]. (2020). Handbook of tests. (pp. 1-20). New York: Press.` of PsycInfo on Ovid.
fn parse_chapter(text: &str) -> Option<Citation<'_>> {
    let (before, pages) = text.split_once(". (pp. ")?;
    let (date, book) = before.rmatch_indices(" (").find_map(|(at, opening)| {
        bracketed(&before[at + opening.len()..], MAX_DATE).filter(|(date, _)| dates::year(date).is_some())
    })?;
    let (pages, _) = bracketed(pages, MAX_DATE)?;
    Some(Citation { journal: book.strip_prefix(". ")?, date, volume: "", issue: "", pages })
}

/// `Journal of Tests May/June 2020;12(3):123-129` of Journals@Ovid.
fn parse_issue(text: &str) -> Option<Citation<'_>> {
    if !spend(text.len()) {
        return None;
    }
    let (front, numbers) = text.split_once(';')?;
    let (journal, date) = before_date(front.trim_end())?;
    let (volume, issue, pages) = numbers_of(numbers);
    let pages = pages.trim_end_matches('.');
    let is_number = numbers.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '(');
    (is_number && volume.len() < 16 && is_journal(journal) && are_pages(pages)).then_some(Citation {
        journal,
        date,
        volume,
        issue,
        pages,
    })
}

/// `Journal of Tests 2020 Mar;12(3):123-129` of registers of trials and of PEDro.
fn parse_year_first(text: &str) -> Option<Citation<'_>> {
    /// The maximum number of words of a date.
    const MAX_WORDS: usize = 3;
    let (front, numbers) = text.split_once(';')?;
    let starts = front.rmatch_indices(' ').map(|(at, _)| at).take(MAX_WORDS);
    let at = starts.into_iter().find(|at| is_date(front[at + 1..].trim_end()))?;
    let (volume, issue, pages) = numbers_of(numbers);
    Some(Citation {
        journal: front[..at].trim_end_matches([' ', '.', ',']),
        date: front[at + 1..].trim_end(),
        volume,
        issue,
        pages: pages.trim_end_matches('.'),
    })
}

/// `Journal of Tests, 12(3), 123-129`, also with a colon before the pages, and with a date behind them.
fn parse_numbers(text: &str) -> Option<Citation<'_>> {
    /// The maximum length of an issue.
    const MAX_ISSUE: usize = 12;
    let (front, rest) = text.split_once('(')?;
    let (issue, rest) = bracketed(rest, MAX_ISSUE)?;
    let rest = rest.strip_prefix([',', ':'])?.trim().trim_end_matches('.');
    let (pages, date) = rest.rsplit_once(", ").filter(|(_, date)| is_date(date)).unwrap_or((rest, ""));
    let (journal, volume) = front.trim_end().rsplit_once(' ')?;
    let is_number = issue.starts_with(|c: char| c.is_ascii_digit());
    is_number.then(|| Citation {
        journal: journal.trim_end_matches([',', ' ', ';']),
        date,
        volume,
        issue,
        pages,
    })
}

/// `Journal of Tests, 2020(3): 123-129.` or `Journal of Tests 12(3), Winter 2020: 123-129.` of other databases on Ovid.
fn parse_pages_last(text: &str) -> Option<Citation<'_>> {
    if !spend(text.len()) {
        return None;
    }
    let (front, pages) = text.trim_end_matches(['.', ' ']).rsplit_once(':')?;
    let (front, date) = front.rsplit_once(", ")?;
    let (date, issue_of_year) = match date.split_once('(') {
        Some((year, issue)) => (year.trim_end(), issue.strip_suffix(')')?),
        None => (date, ""),
    };
    let is_date = before_date(date).is_some_and(|(before, _)| before.is_empty());
    let (before, issue) = match front.strip_suffix(')').and_then(|front| front.rsplit_once('(')) {
        Some((before, issue))
            if issue.contains(|c: char| c.is_ascii_digit()) || issue.starts_with("Suppl") =>
        {
            (before.trim_end(), issue)
        }
        _ => (front, issue_of_year),
    };
    let (journal, volume) = match before.rsplit_once(' ') {
        Some((journal, volume)) if volume.bytes().all(|byte| byte.is_ascii_digit()) => (journal, volume),
        _ => (before, ""),
    };
    let (journal, pages) = (journal.trim_end_matches([',', ' ']), pages.trim());
    (is_date && is_journal(journal) && are_pages(pages)).then_some(Citation {
        journal,
        date,
        volume,
        issue,
        pages,
    })
}

/// Splits a text before the date at its end: a year, possibly after a month, a day or a season. The date begins at the
/// start of the text if nothing else precedes it.
fn before_date(text: &str) -> Option<(&str, &str)> {
    const SEASONS: [&str; 5] = ["Spring", "Summer", "Autumn", "Fall", "Winter"];
    let year_at = text.rfind(' ').map_or(0, |at| at + 1);
    let year = &text[year_at..];
    if year.len() != 4 || dates::year(year).is_none() {
        return None;
    }
    let last = |before: &'_ str| {
        let before = before.trim_end();
        let at = before.rfind(' ').map_or(0, |at| at + 1);
        (at, before[at..].trim_end_matches([',', '.']).len() + at)
    };
    let is_month = |word: &str| {
        !word.is_empty()
            && word.split(['/', '-', '–']).all(|part| dates::is_month(part) || SEASONS.contains(&part))
    };
    let is_day = |word: &str| (1..=2).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
    let (first, first_end) = last(&text[..year_at]);
    let (second, second_end) = last(&text[..first]);
    let (first_word, second_word) = (&text[first..first_end], &text[second..second_end]);
    let start = match (is_month(first_word), is_month(second_word)) {
        (true, _) if is_day(second_word) => second,
        (true, _) => first,
        (_, true) if is_day(first_word) => second,
        _ => year_at,
    };
    Some((text[..start].trim_end_matches([' ', ',', '.']), &text[start..]))
}

/// Returns `false` for a text in which more than the name of a journal precedes the numbers.
fn is_journal(text: &str) -> bool {
    let last = text.rsplit(' ').next().unwrap_or_default();
    text.len() < MAX_JOURNAL
        && text.contains(char::is_alphabetic)
        && !text.starts_with("In:")
        && !text.contains(". ")
        && !text.ends_with([':', ')'])
        && !dates::is_month(last)
        && !last.contains(|c: char| c.is_ascii_digit())
}

fn are_pages(text: &str) -> bool {
    text.len() < MAX_PAGES
        && !text.ends_with(" p")
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '–' | ',' | ' '))
        && text.split_whitespace().all(|part| part.len() == 1 || part.contains(|c: char| c.is_ascii_digit()))
}

/// Splits a text after an opening bracket into the content of the bracket and the rest. Returns `None` if the content
/// has more than `most` bytes or contains a bracket, so that many brackets do not share one search for an end.
pub(super) fn bracketed(text: &str, max: usize) -> Option<(&str, &str)> {
    let front = &text[..text.floor_char_boundary(max + 1)];
    let end = front.find(['(', ')'])?;
    text[end..].strip_prefix(')').map(|rest| (&text[..end], rest))
}

/// Splits `12(3):123-9` into volume, issue and the rest after the colon.
fn numbers_of(text: &str) -> (&str, &str, &str) {
    let (numbers, rest) = text.split_once(':').unwrap_or((text, ""));
    let (volume, issue) = numbers.split_once('(').unwrap_or((numbers, ""));
    // `80(1-B(E))`
    let nested = issue.find('(').filter(|inner| issue.find(')').is_some_and(|end| *inner < end));
    let issue = match (nested, issue.find("))")) {
        (Some(_), Some(end)) => &issue[..=end],
        _ => issue.split(')').next().unwrap_or_default(),
    };
    (volume.trim().trim_end_matches('.'), issue.trim(), rest.trim())
}

fn begins_with_year(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits == 4
        && dates::year(&text[..4]).is_some()
        && text[4..].bytes().next().is_none_or(|byte| matches!(byte, b' ' | b';' | b':' | b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_are_parsed() {
        let whole = |journal, date| Citation { journal, date, volume: "12", issue: "3", pages: "123-9" };
        assert_eq!(parse("J Tests. 2020 Mar;12(3):123-9. doi: x"), Some(whole("J Tests", "2020 Mar")));
        assert_eq!(
            parse("Journal of Tests. 12(3):123-9, 2020 Mar."),
            Some(whole("Journal of Tests", "2020 Mar"))
        );
        assert_eq!(
            parse("Journal of Tests 12.3 (Mar 2020): 123-9."),
            Some(whole("Journal of Tests", "Mar 2020"))
        );
        for text in [
            "Journal of Tests; London Vol. 12, Iss. 3,  (Mar 1, 2020): 123-9.",
            "Journal of Tests ; New York, N.Y. Vol. 12, Iss. 3,  (Mar 1, 2020): 123-9.  DOI:10.5555/a",
        ] {
            assert_eq!(parse(text), Some(whole("Journal of Tests", "Mar 1, 2020")));
        }
        assert_eq!(
            parse("Tests; Bonn Iss. 3,  (2020): 1.").map(|found| (found.volume, found.issue)),
            Some(("", "3"))
        );
        let embase = "Lancet. 395 (10220) (pp 100-109), 2020. Date of Publication: 15 May 2020.";
        assert_eq!(parse(embase).map(|found| found.pages), Some("100-109"));
        let embase = "BMJ Open. 9(4) (no pagination), 2019. Article Number: e025123. Date of Publication: 01 Apr 2019.";
        let article =
            Citation { journal: "BMJ Open", date: "2019", volume: "9", issue: "4", pages: "e025123" };
        assert_eq!(parse(embase), Some(article));
        let conference = "Gut. Conference: Meeting No. 12 of Tests. Bonn Germany. 68(Supplement 1) (pp A12), 2019. Date of \
            Publication: June 2019.";
        let meeting =
            Citation { journal: "Gut", date: "2019", volume: "68", issue: "Supplement 1", pages: "A12" };
        assert_eq!(parse(conference), Some(meeting));
        let number =
            Citation { journal: "J Tests", date: "2020 May", volume: "152", issue: "20", pages: "201101" };
        assert_eq!(parse("J Tests. 152(20):201101, 2020 May."), Some(number));
        assert_eq!(parse("日本医学会誌 12巻3号 Page123-9(2020.03)"), Some(whole("日本医学会誌", "2020.03")));
        assert_eq!(parse("12巻3号 Page123-9(2020.03)"), Some(whole("", "2020.03")));
        let issn = "日本医学会誌(0123-456X)12巻3号 Page123-9(2020.03)";
        assert_eq!(parse(issn), Some(whole("日本医学会誌", "2020.03")));
        let extra = parse("日本医学会誌12巻臨増 Page123-9(2020.03)");
        assert_eq!(extra, Some(Citation { issue: "臨増", ..whole("日本医学会誌", "2020.03") }));
        let number = parse("日本医学会誌 123号 Page123-9(2020.03)");
        assert_eq!(number, Some(Citation { volume: "", issue: "123", ..whole("日本医学会誌", "2020.03") }));
        assert_eq!(parse("第12巻の研究"), None);
        let bare = Citation { journal: "J Tests", date: "2020", ..Citation::default() };
        assert_eq!(parse("J Tests. 2020."), Some(bare));
        assert_eq!(parse("Journal of Tests"), None);
        assert_eq!(
            parse("Sex. 2000 people"),
            Some(Citation { journal: "Sex", date: "2000 people", ..Citation::default() })
        );
    }

    #[test]
    fn citations_of_ovid_may_lack_numbers() {
        for (text, parts) in [
            (
                "J Tests. 8 (no pagination), 2017. Article Number: e1. Date of Publication: 3 Feb 2017.",
                ["J Tests", "2017", "8", "", "e1"],
            ),
            ("J Tests. 12 (pp 1-9), 2017.", ["J Tests", "2017", "12", "", "1-9"]),
            (
                "J Tests. Conference: 52nd Meeting. Bonn. 140 (5 SUPPL. 1) (pp S1), 2011.",
                ["J Tests", "2011", "140", "5 SUPPL. 1", "S1"],
            ),
            (
                "J Tests. Vol.80(1-B(E)), 2019, pp. No Pagination Specified.",
                ["J Tests", "2019", "80", "1-B(E)", ""],
            ),
            ("J Tests, Vol 12(3), May, 2019, 123-129.", ["J Tests", "May, 2019", "12", "3", "123-129"]),
            ("J Tests. 12(3):S12-S19, 2020 Mar-Apr.", ["J Tests", "2020 Mar-Apr", "12", "3", "S12-S19"]),
            ("J Tests. 12(3):12-19, Jan-Feb 2020.", ["J Tests", "Jan-Feb 2020", "12", "3", "12-19"]),
            (
                "J Tests. 12:1999-2005, 2020 Spring-Summer.",
                ["J Tests", "2020 Spring-Summer", "12", "", "1999-2005"],
            ),
            ("J Tests. (2):CD001234, 2005.", ["J Tests", "2005", "", "2", "CD001234"]),
            ("J Tests. (2)CD001234, 2020 03 05.", ["J Tests", "2020 03 05", "", "2", "CD001234"]),
            ("J Tests. , 2019 Jul 05.", ["J Tests", "2019 Jul 05", "", "", ""]),
            ("J Tests. Suppl 1:S5-9, 2001 Jan-Feb.", ["J Tests", "2001 Jan-Feb", "", "Suppl 1", "S5-9"]),
            ("J Tests. (no pagination), 2021. Date of Publication: 2021.", ["J Tests", "2021", "", "", ""]),
            ("J Tests. Part A. (pp 12-15), 2021.", ["J Tests. Part A", "2021", "", "", "12-15"]),
            ("Handbook. 2019, pp. 12-34. New York, NY: Press; US.", ["Handbook", "2019", "", "", "12-34"]),
        ] {
            let [journal, date, volume, issue, pages] = parts;
            assert_eq!(parse_on_ovid(text), Some(Citation { journal, date, volume, issue, pages }), "{text}");
        }
        for text in [
            "J Tests. , Boston, 2019.",
            "J Tests. (2) of 3, 2005.",
            "J Tests. (see above), 2005.",
            "J Tests. Supplement to a book: its pages, 2005.",
            "J Tests. , 2019 people.",
        ] {
            assert_eq!(parse_on_ovid(text), None, "{text}");
        }
    }

    #[test]
    fn name_of_a_journal_is_no_citation() {
        let found = |text| parse_journal(text).map(|found| (found.journal, found.volume, found.pages));
        assert_eq!(
            found("J Tests. 12(3):123-9; discussion 5, 2020."),
            Some(("J Tests", "12", "123-9; discussion 5"))
        );
        assert_eq!(found("J Tests. 6 (7) (no pagination), 2016."), Some(("J Tests", "6", "")));
        assert_eq!(
            found("J Tests. 9 (pp 1-9), 2016. Date of Publication: 26 Jul 2016."),
            Some(("J Tests", "9", "1-9"))
        );
        for text in [
            "J Tests. 2016",
            "Proc. 12th Conf. on Tests, 3-5 May, 2019",
            "Proc. 12th Conf. on Tests, Bonn, 2019",
            "Conference of Tests, 2019, 12: The future",
            "Tests. 2nd, 3-5 May, 2019",
            "Lecture Notes in Tests. Vol. 12",
            "Tests. Series 3, Vol. 5: 1990-2000",
            "Tests (Basel, 2012)",
            "J Tests. , 2019 Jul 05.",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn citations_of_ovid_have_seasons_and_months() {
        let whole =
            |date, volume, issue| Citation { journal: "J Tests", date, volume, issue, pages: "123-9" };
        for (text, found) in [
            ("J Tests August 2020;12(3):123-9", whole("August 2020", "12", "3")),
            ("J Tests May/June 2020;12:123-9", whole("May/June 2020", "12", "")),
            ("J Tests 5 March 2020;12(3):123-9", whole("5 March 2020", "12", "3")),
            ("J Tests March 5, 2020;12(3):123-9", whole("March 5, 2020", "12", "3")),
            ("J Tests, 2020(3): 123-9.", whole("2020", "", "3")),
            ("J Tests 12, Winter 2020: 123-9.", whole("Winter 2020", "12", "")),
            ("J Tests 12(3), Feb. 2020: 123-9.", whole("Feb. 2020", "12", "3")),
            ("J Tests. 12(3), Nov. 16, 2020.", Citation { pages: "", ..whole("Nov. 16, 2020", "12", "3") }),
        ] {
            assert_eq!(parse_on_ovid(text), Some(found), "{text}");
        }
        for text in [
            "Tests in 2020: a review",
            "We found 12, 2020: 5 of them are gone",
            "May 2020;12(3):1-2",
            "Roe A. Study three. Journal of Tests 12(3), 2020: 123-129.",
            "Roe A, Doe B. Study one: a review. BMJ 2020;370:m2980",
            "Report - Survey of Tests, Bulletin 12, 2020: 15 p.",
            "Proceedings of Tests, Rome, Italy, 5-8 May, 2010: 12-15.",
            "Tests 98: 12, 2020: 5-7",
        ] {
            assert_eq!(parse_on_ovid(text), None, "{text}");
        }
        let found = parse("J Tests. 12, Mar, 123-129, 2020.").map(|found| (found.pages, found.date));
        assert_eq!(found, Some(("123-129", "2020")));
    }

    #[test]
    fn citation_of_chapter_is_parsed() {
        let chapter = "Roe, Ann [Ed]; Doe, Carl [Ed]. (2020). Handbook of tests. (pp. 1-20). xx, 500 pp. New York: Press.";
        let found =
            Citation { journal: "Handbook of tests", date: "2020", pages: "1-20", ..Citation::default() };
        assert_eq!(parse(chapter), Some(found));
        let pages = |text| parse(text).map(|found| found.pages);
        assert_eq!(pages("Journal of Tests 12.3 (Mar 2020): 1-20. DOI:10.5555/a"), Some("1-20"));
        assert_eq!(pages("Journal of Tests 12.3 (Mar 2020): iii-v."), Some("iii-v"));
    }
}
