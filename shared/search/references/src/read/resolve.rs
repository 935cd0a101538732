//! Assigns each value to its field, and resolves fields that depend on several values.

use std::borrow::Cow;

use super::{
    dates::{self, Date},
    field::{Field, Value},
    identifiers, pages,
    placeholders::{is_placeholder, without_unknown_side},
    tidy,
};
use crate::Reference;

/// Returns `true` for a text that is longer than the name of a special issue, or that contains an e-mail address.
fn is_no_issue(text: &str) -> bool {
    const MAX_ISSUE: usize = 200;
    const MAX_WITH_SIGN: usize = 60;
    text.len() > if text.contains('@') { MAX_WITH_SIGN } else { MAX_ISSUE }
}

/// Values assigned to fields, and values that wait for all others.
#[derive(Default)]
pub(super) struct FieldResolver<'a> {
    reference: Reference,
    dates: Vec<Value<'a>>,
    month_day: Option<Date>,
    book: Option<Value<'a>>,
    series: Option<Value<'a>>,
    first_page: Option<Value<'a>>,
    last_page: Option<Value<'a>>,
    accession: Option<Value<'a>>,
    pubmed: bool,
    types: Vec<String>,
    doi_in_link: Option<String>,
    pmid_in_link: Option<String>,
}

impl<'a> FieldResolver<'a> {
    /// Assigns a value to its field. Returns the value if it has no field and is not a repetition.
    pub(super) fn assign(&mut self, value: Value<'a>, wins: bool) -> Option<Value<'a>> {
        let reference = &mut self.reference;
        let slot = match value.field {
            Field::Title => {
                if !wins || !reference.title.is_empty() {
                    return Some(value);
                }
                reference.title = tidy::line_of(value.text).unwrap_or_default();
                return None;
            }
            // CENTRAL writes the link to a registration there.
            Field::Journal if is_link(&value.text) => return Some(value),
            Field::Journal => &mut reference.journal,
            Field::Volume => &mut reference.volume,
            // Some programs write the affiliations of the authors there.
            Field::Issue if is_no_issue(&value.text) => return Some(value),
            Field::Issue => &mut reference.issue,
            Field::Pages => &mut reference.pages,
            Field::Book => return keep_first(&mut self.book, value, wins),
            Field::Series => return keep_first(&mut self.series, value, wins),
            Field::FirstPage => return keep_first(&mut self.first_page, value, wins),
            Field::LastPage => return keep_first(&mut self.last_page, value, wins),
            Field::Accession => return keep_first(&mut self.accession, of_database(value), wins),
            Field::Doi => return identify(&mut reference.doi, identifiers::doi(&value.text), value),
            Field::Pmid => return identify(&mut reference.pmid, identifiers::pmid(&value.text), value),
            Field::Abstract => return self.paragraph(value, wins),
            // A column of preprints holds the DOI of the article under a name for dates.
            Field::Date if is_link(&value.text) || identifiers::is_doi(value.text.trim_start()) => {
                return Some(value);
            }
            // Web of Science writes the month under a tag for dates.
            Field::Date if is_month(&value) => return self.month_day(value),
            Field::Date => {
                self.dates.push(value);
                return None;
            }
            Field::MonthDay => return self.month_day(value),
            Field::Url => return self.link(value, wins),
            Field::Type => {
                if wins {
                    self.types.extend(tidy::line_of(value.text));
                    return None;
                }
                return Some(value);
            }
            Field::Database => {
                self.pubmed |= is_pubmed(&value.text);
                return Some(value);
            }
            _ => return Some(value),
        };
        if !wins || slot.is_some() {
            return Some(value);
        }
        let is_pages = value.field == Field::Pages;
        *slot = tidy::line_of(value.text);
        // BIOSIS on Web of Science writes the number of an article like this.
        if let Some(number) =
            slot.as_deref().filter(|_| is_pages).and_then(|text| text.strip_prefix("Article No.:"))
        {
            *slot = tidy::line(number);
        }
        None
    }

    /// A complete date where month and day are expected must agree with the year like any other date.
    fn month_day(&mut self, value: Value<'a>) -> Option<Value<'a>> {
        let mut date = dates::date(&value.text);
        if date.year.is_some() {
            self.dates.push(Value { rank: u8::MAX, ..value });
            return None;
        }
        let number = value.text.trim().parse().ok();
        let known = self.month_day.unwrap_or_default();
        if value.tag.eq_ignore_ascii_case("day") {
            date = Date { day: number.filter(|day| (1..=31).contains(day)), ..known };
            if date.day.is_none() || known.day.is_some() {
                return Some(value);
            }
        } else {
            if value.tag.eq_ignore_ascii_case("month") {
                date.month = date.month.or(number.filter(|month| (1..=12).contains(month)));
            }
            if date.month.is_none() || known.month.is_some() {
                return Some(value);
            }
            date.day = date.day.or(known.day);
        }
        self.month_day = Some(date);
        None
    }

    fn paragraph(&mut self, value: Value<'a>, wins: bool) -> Option<Value<'a>> {
        if !wins {
            return Some(value);
        }
        let mut text = tidy::text_of(value.text)?;
        // Crossref and publishers repeat the heading in the text.
        if let Some(rest) = text.strip_prefix("Abstract\n") {
            text = rest.trim_start().to_owned();
        }
        match &mut self.reference.r#abstract {
            Some(before) => {
                before.push('\n');
                before.push_str(&text);
            }
            None => self.reference.r#abstract = Some(text),
        }
        None
    }

    fn link(&mut self, value: Value<'a>, wins: bool) -> Option<Value<'a>> {
        // A file in the library of a program or on the computer of a reviewer.
        const LOCAL: [&str; 5] = ["internal-pdf:", "file:", "papers2:", "papers3:", "zotero:"];
        if LOCAL.iter().any(|scheme| value.text.trim_start().starts_with(scheme)) {
            return Some(value);
        }
        // A DOI without its resolver has no address.
        if identifiers::is_doi(value.text.trim()) && !value.text.trim().contains(' ') {
            self.doi_in_link = self.doi_in_link.take().or_else(|| identifiers::doi(&value.text));
            return Some(value);
        }
        self.doi_in_link = self.doi_in_link.take().or_else(|| identifiers::doi_in_url(&value.text));
        self.pmid_in_link = self.pmid_in_link.take().or_else(|| identifiers::pmid_in_url(&value.text));
        if !wins || self.reference.url.is_some() {
            return Some(value);
        }
        let line = tidy::line_of(value.text)?;
        let (first, others) = first_link(&line);
        self.reference.url = Some(first.to_owned());
        (!others.is_empty()).then(|| Value { text: Cow::Owned(others.to_owned()), ..value })
    }

    /// Resolves fields that depend on several values, and adds values without a field to `left`.
    pub(super) fn complete(mut self, left: &mut Vec<Value<'a>>) -> Reference {
        let reference = &mut self.reference;
        if let Some(book) = self.book {
            if reference.title.is_empty() {
                reference.title = tidy::line_of(book.text).unwrap_or_default();
            } else if reference.journal.is_none() {
                reference.journal = tidy::line_of(book.text);
            } else {
                left.push(book);
            }
        }
        match self.series {
            Some(series) if reference.journal.is_none() => {
                reference.journal = tidy::line_of(series.text);
            }
            series => left.extend(series),
        }
        match self.accession {
            Some(accession) if self.pubmed && reference.pmid.is_none() => {
                reference.pmid = identifiers::pmid(&accession.text);
                left.extend(reference.pmid.is_none().then_some(accession));
            }
            accession => left.extend(accession),
        }
        reference.pmid = reference.pmid.take().or(self.pmid_in_link);
        let pages = self.first_page.into_iter().chain(self.last_page);
        match reference.pages.as_deref() {
            // Some databases export the page range together with the first and last page.
            Some(range) => left.extend(pages.filter(|page| !range.contains(page.text.trim()))),
            // APA PsycInfo divides its placeholder at the hyphen: `No-Pagination Specified`.
            None => reference.pages = joined(pages).filter(|pages| !is_placeholder(Field::Pages, pages)),
        }
        if let Some(pages) = &mut reference.pages
            && let Some(known) = without_unknown_side(pages).filter(|known| known.len() < pages.len())
        {
            *pages = known.to_owned();
        }
        reference.pages_normalized = reference.pages.as_deref().and_then(pages::normalized);
        remove_counters(reference);
        if reference.doi.is_none() {
            reference.doi = self.doi_in_link;
        }
        let date = choose_date(self.dates, self.month_day, left);
        (reference.year, reference.date) = (date.year, date.iso());
        let mut types = tidy::unique(self.types);
        reference.r#type = if types.len() > 1 { Some(types.join("; ")) } else { types.pop() };
        self.reference
    }
}

/// Returns `true` for a link and nothing else.
fn is_link(text: &str) -> bool {
    let text = text.trim();
    (text.starts_with("http://") || text.starts_with("https://")) && !text.contains(char::is_whitespace)
}

/// Returns `true` for a month without a year, under a tag that is not the preferred one for dates.
fn is_month(value: &Value<'_>) -> bool {
    let begins_with_letter = value.text.trim_start().starts_with(|c: char| c.is_ascii_alphabetic());
    value.rank > 0 && begins_with_letter && {
        let date = dates::date(&value.text);
        date.year.is_none() && date.month.is_some()
    }
}

/// Splits off the first link of several, or of a link and the tags of another program behind it.
fn first_link(line: &str) -> (&str, &str) {
    const NEXT: [&str; 4] = [" http://", " https://", " U2 - ", " LK - "];
    let at = NEXT.iter().filter_map(|next| line.find(next)).chain(glued_link(line)).min();
    // A link to a proxy may have a blank before its target.
    let is_end = |at: &usize| line.starts_with("http") && !line[..*at].ends_with('=');
    let Some(at) = at.filter(is_end) else { return (line, "") };
    let first = line[..at].trim_end_matches([';', ',']);
    (first.strip_suffix(" and").unwrap_or(first), line[at..].trim_start())
}

/// The position of a second link directly behind the first. A link inside the address of another follows a slash or a
/// parameter, and a repeated scheme follows a host without a path.
fn glued_link(line: &str) -> Option<usize> {
    let (_, first) = line.split_once("://")?;
    let start = line.len() - first.len();
    let path =
        first.find('/').filter(|path| first[path + 1..].starts_with(|c: char| c.is_ascii_alphanumeric()))?;
    let mut links =
        memchr::memmem::find_iter(&line.as_bytes()[start + path..], "http").map(|at| start + path + at);
    links.find(|at| {
        let is_link = line[*at..].starts_with("http://") || line[*at..].starts_with("https://");
        is_link && line[..*at].ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, ';' | ','))
    })
}

/// Joins the first and last page to a range.
fn joined<'a>(values: impl Iterator<Item = Value<'a>>) -> Option<String> {
    let (mut first, mut last) = (None, None);
    for value in values {
        let page = if value.field == Field::FirstPage { &mut first } else { &mut last };
        *page = Some(value.text);
    }
    pages::joined(first.as_deref(), last.as_deref())
}

/// Selects the preferred value with a year. Other values with the same year may add the month and day.
fn choose_date<'a>(mut values: Vec<Value<'a>>, month_day: Option<Date>, left: &mut Vec<Value<'a>>) -> Date {
    values.sort_by_key(|value| value.rank);
    let mut settled = Date::default();
    // Month and day in their own tag belong to the preferred year, unlike the date of an earlier publication online.
    let complete = |settled: &mut Date| {
        if let (Some(_), None, Some(Date { month: month @ Some(_), day, .. })) =
            (settled.year, settled.month, month_day)
        {
            (settled.month, settled.day) = (month, day);
        }
    };
    for value in values {
        let date = dates::of_publication(&value.text);
        let more = settled.day.is_none() && date.day.is_some();
        match (settled.year, date.year) {
            (None, Some(_)) => {
                settled = date;
                complete(&mut settled);
            }
            (Some(known), Some(year)) if known == year => {
                if settled.month.is_none() || (more && settled.month == date.month) {
                    settled = date;
                }
            }
            _ => left.push(value),
        }
    }
    settled
}

/// Removes labels before a number: `Vol. 12`, `Issue 3`. An abbreviation of one letter ends in a full stop.
fn without_label<'a>(number: &'a str, labels: &[&str]) -> Option<&'a str> {
    labels.iter().find_map(|label| {
        let front = number.get(..label.len())?;
        let rest = number[label.len()..]
            .strip_prefix('.')
            .map_or_else(|| number[label.len()..].strip_prefix(' ').filter(|_| label.len() > 1), Some)?;
        let bare = rest.trim_start();
        let is_number = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && front.eq_ignore_ascii_case(label)).then_some(bare)
    })
}

/// Divides `Vol. 12, No. 3` into volume and issue.
fn labelled_parts(text: &str) -> Option<[String; 3]> {
    const MARKS: [&str; 8] = [" no. ", " no ", " no.", " issue ", " iss. ", " nr. ", " number ", " n. "];
    const MAX_TEXT: usize = 40;
    if text.len() > MAX_TEXT {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let (volume, issue) = MARKS.iter().find_map(|label| lower.split_once(label))?;
    let volume = volume.trim_end_matches([',', ';', ' ']);
    let volume = without_label(volume, VOLUMES).unwrap_or(volume);
    let is_number = |text: &str| (1..=4).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
    (is_number(volume) && is_number(issue.trim())).then(|| [volume, issue.trim(), ""].map(str::to_owned))
}

/// Labels before the number of a volume.
const VOLUMES: &[&str] = &["volume", "vol", "v"];
/// Labels before the number of an issue.
const ISSUES: &[&str] = &["issue", "iss", "number", "no", "nr", "n"];

/// Divides `12(3)` and `12(3):123-129` under the name for volumes or issues, if the issue has no other value.
fn divide_numbers(reference: &mut Reference) {
    const MAX_NUMBER: usize = 4;
    const MAX_ISSUE: usize = 16;
    let parts = |text: &str| {
        let Some((volume, rest)) = text.split_once('(') else { return labelled_parts(text) };
        let (issue, pages) = rest.split_once(')')?;
        let (volume, issue) = (volume.trim(), issue.trim());
        let is_volume =
            (1..=MAX_NUMBER).contains(&volume.len()) && volume.bytes().all(|c| c.is_ascii_digit());
        let is_issue = issue.len() <= MAX_ISSUE
            && !issue.contains('(')
            && (issue.starts_with(|c: char| c.is_ascii_digit()) || issue.starts_with("Suppl"));
        let pages = if pages.is_empty() { "" } else { pages.strip_prefix(':')?.trim() };
        let are_pages = pages.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '–'));
        (is_volume && is_issue && are_pages).then(|| [volume, issue, pages].map(str::to_owned))
    };
    let (Some(found), only) = (match (&reference.volume, &reference.issue) {
        (Some(volume), None) => (parts(volume), true),
        (None, Some(issue)) => (parts(issue), true),
        (Some(volume), Some(issue)) => {
            let known = parts(issue).filter(|[own, ..]| own == volume);
            (known.or_else(|| parts(volume).filter(|[_, own, _]| own == issue)), false)
        }
        (None, None) => (None, false),
    }) else {
        return;
    };
    let [volume, issue, pages] = found;
    // Pages are lost if the record has others.
    if !pages.is_empty() && (!only || reference.pages.is_some()) {
        return;
    }
    (reference.volume, reference.issue) = (Some(volume), Some(issue));
    if !pages.is_empty() {
        reference.pages_normalized = pages::normalized(&pages);
        reference.pages = Some(pages);
    }
}

/// Removes the counters of Chinese, Japanese and Korean from volume and issue (`12巻`, `第3期`), labels, and other marks.
fn remove_counters(reference: &mut Reference) {
    let numbers = [(&mut reference.volume, VOLUMES), (&mut reference.issue, ISSUES)];
    for (number, labels) in numbers {
        // AGRIS repeats the label: `v. v. 176`.
        if let Some(number) = number
            && let Some(bare) =
                without_label(number, labels).or_else(|| without_label(number.strip_prefix("v. ")?, labels))
        {
            *number = bare.to_owned();
        }
    }
    if let Some(issue) = &mut reference.issue
        && let Some(bare) = issue.strip_prefix('(').and_then(|issue| issue.strip_suffix(')'))
        && !bare.contains(['(', ')'])
        && bare.starts_with(|c: char| c.is_ascii_digit())
    {
        *issue = bare.to_owned();
    }
    divide_numbers(reference);
    for number in [&mut reference.volume, &mut reference.issue].into_iter().flatten() {
        if !number.is_ascii() {
            let bare = number.trim_matches(['第', '巻', '号', '號', '卷', '期', '권', '호']).trim();
            if bare.starts_with(|c: char| c.is_ascii_digit()) {
                *number = bare.to_owned();
            }
        }
    }
    // Web of Science marks special issues in its BibTeX.
    if let Some(issue) = &mut reference.issue
        && let Some(bare) = issue.strip_suffix(", SI")
    {
        issue.truncate(bare.len());
    }
}

/// Keeps the first value of the preferred tag.
fn keep_first<'a>(slot: &mut Option<Value<'a>>, value: Value<'a>, wins: bool) -> Option<Value<'a>> {
    if slot.is_some() || !wins {
        return Some(value);
    }
    *slot = Some(value);
    None
}

/// Removes the number of ProQuest before the number of the database: `2389000001; 32000001`.
fn of_database(value: Value<'_>) -> Value<'_> {
    /// The minimum number of digits of ProQuest's numbers.
    const MIN_DIGITS: usize = 8;
    match value.text.split_once("; ") {
        Some((own, other)) if own.len() >= MIN_DIGITS && own.bytes().all(|byte| byte.is_ascii_digit()) => {
            let text = Cow::Owned(other.to_owned());
            Value { text, ..value }
        }
        _ => value,
    }
}

/// Keeps the first identifier; a repetition of it is dropped.
fn identify<'a>(slot: &mut Option<String>, found: Option<String>, value: Value<'a>) -> Option<Value<'a>> {
    match (found, slot.as_deref()) {
        (Some(found), Some(known)) if found == known => None,
        (Some(found), None) => {
            *slot = Some(found);
            None
        }
        _ => Some(value),
    }
}

/// Returns `true` if the record numbers of a database are PMIDs.
pub(super) fn is_pubmed(database: &str) -> bool {
    let database = database.trim().to_ascii_lowercase();
    matches!(database.as_str(), "nlm" | "cmedm" | "mdc" | "mnh" | "mdl")
        || database.contains("pubmed")
        || database.contains("medline")
}
