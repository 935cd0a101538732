//! Compares two records value by value.

use std::collections::HashSet;

use references::work::spend;

pub(crate) use crate::agreement::Match;
use crate::companions::are_companions;
use crate::fields::{BETWEEN_WORDS, Fields};
use crate::journal::{have_same_journal, journals};
use crate::place::is_month;
use crate::position::{has_large_page, has_low_page, is_in_collection, is_sole, may_share_page};
use crate::text::has_other_script;
use crate::title::numbers;
use crate::title_match::{TitleMatch, similarity, titles};

/// Two records, compared value by value.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) titles: TitleMatch,
    /// The titles differ in minor details at most.
    pub(crate) near: bool,
    /// A word shows that the similar titles belong to companion works. Less similar titles are examined only if the
    /// pages or DOIs agree.
    pub(crate) companions: bool,
    /// The titles are in different languages.
    pub(crate) translated: bool,
    /// Both titles are long enough to be significant.
    pub(crate) long: bool,
    /// A title has a single word.
    pub(crate) brief: bool,
    pub(crate) author: Match,
    pub(crate) journal: Match,
    pub(crate) volume: Match,
    pub(crate) issue: Match,
    pub(crate) page: Match,
    pub(crate) doi: Match,
    pub(crate) pmid: Match,
    /// Embase or Web of Science has the same number for both.
    pub(crate) same_number: bool,
    /// PubMed Central has the same number for both.
    pub(crate) same_pmcid: bool,
    /// A database has different numbers for both.
    pub(crate) other_number: bool,
    pub(crate) summary: Match,
    /// The difference between the years, or `None` if a year is missing.
    pub(crate) years: Option<u32>,
    /// The names of the journals are equal, or so are their ISSNs.
    pub(crate) same_journal: bool,
    /// The issues of a volume differ.
    pub(crate) other_issue: bool,
    /// Only one record has a volume, an issue or a page.
    pub(crate) one_is_unplaced: bool,
    /// Both have the same range of pages.
    pub(crate) same_range: bool,
    /// The page belongs to a Cochrane review, whose page is the same in each version.
    pub(crate) has_versions: bool,
    /// Only one title names its work a protocol or a summary.
    pub(crate) other_label: bool,
    /// One record is an abstract of a meeting, and the other an article.
    pub(crate) abstract_and_article: bool,
    /// The records are works of different types, such as a thesis and an article.
    pub(crate) other_kind: bool,
    /// One record is a preprint, and the other is not known to be a preprint.
    pub(crate) one_is_preprint: bool,
    /// The first pages agree, and their number is large. Each issue of some journals begins with page 1.
    pub(crate) same_large_page: bool,
    /// The first pages agree, and several works may be on that page, such as the abstracts of a meeting.
    pub(crate) shared_page: bool,
    /// Several works may have the position of the records, because they share a page, a supplement or a book.
    pub(crate) crowded: bool,
    /// The first pages agree, and their number is low: they identify nothing outside of their issue.
    pub(crate) low_page: bool,
    /// No other work can have the pages that both records state.
    pub(crate) sole: bool,
}

impl Comparison {
    pub(crate) fn new(a: &Fields, b: &Fields) -> Self {
        let titles = titles(a, b);
        let similarity = titles.similarity();
        let summary = match (a.summary(), b.summary()) {
            (Some(one), Some(other)) => Match::from_equality(one == other),
            _ => Match::Unknown,
        };
        let page = pages(a, b);
        let author = match authors(a, b) {
            // Databases name a group of authors or its members.
            Match::Differ if a.is_by_group() != b.is_by_group() && have_same_range(a, b, page) => {
                Match::Unknown
            }
            compared => compared,
        };
        let journal = journals(a, b);
        let issue = issues(a, b);
        let doi = Match::text(a.doi(), b.doi());
        let is_examined = similarity >= 0.9 || similarity >= 0.6 && (page.agrees() || doi.agrees());
        let companions = is_examined && are_companions(a, b, titles);
        let same_range = a.has_page_range() && have_same_range(a, b, page);
        let shared_page = page.agrees() && may_share_page(a, b, summary);
        Self {
            titles,
            near: similarity >= 0.9 && !companions,
            companions,
            translated: a.is_foreign() != b.is_foreign(),
            long: a.is_long() && b.is_long(),
            brief: a.title().len().min(b.title().len()) < 2,
            author,
            journal,
            volume: Match::text(a.volume(), b.volume()),
            issue,
            page,
            doi,
            pmid: Match::text(a.pmid(), b.pmid()),
            same_number: shares_number(a, b, false),
            same_pmcid: shares_number(a, b, true),
            other_number: have_other_number(a, b),
            summary,
            same_journal: have_same_journal(a, b, journal),
            years: a.year().zip(b.year()).map(|(one, other)| one.abs_diff(other)),
            other_issue: have_other_issue(a, b, author),
            one_is_unplaced: a.has_place() != b.has_place(),
            same_range,
            has_versions: page.agrees() && has_number_of_versions(a),
            other_label: !page.agrees() && have_other_label(a, b),
            abstract_and_article: are_abstract_and_article(a, b),
            other_kind: !page.agrees() && have_other_kind(a, b),
            one_is_preprint: a.is_preprint() != b.is_preprint(),
            same_large_page: page.agrees() && has_large_page(a) && has_large_page(b),
            shared_page,
            crowded: shared_page || is_in_collection(a, b),
            low_page: page.agrees() && (has_low_page(a) || has_low_page(b)),
            sole: same_range && is_sole(a, b, issue, doi),
        }
    }

    /// Returns `true` if both appeared in different issues or years, or are different kinds of work: reports, guidelines
    /// and reviews appear again under the same title, as do preprints, theses and abstracts of meetings.
    ///
    /// Volumes of one year may differ: databases give the number of a supplement as its volume. A record without a place
    /// may be the online form of an article that is printed in the next year.
    pub(crate) fn is_other_edition(&self) -> bool {
        let years = self.years.unwrap_or_default();
        let is_online_first = self.one_is_unplaced && years <= 1;
        let is_other_year = years > 0 && (self.has_versions || !(self.volume.agrees() || is_online_first));
        self.other_issue
            || is_other_year
            || self.other_label
            || self.abstract_and_article
            || self.one_is_preprint
            || self.other_kind
    }

    /// Returns `true` if the titles may belong to one work, because they are similar, or one is a translation. The
    /// titles of companion works resemble each other more than others do.
    pub(crate) fn has_compatible_titles(&self) -> bool {
        self.near || self.translated || (self.titles.similarity() >= 0.6 && !self.has_companion_titles())
    }

    /// Returns `true` if the titles are similar, and no word shows that they belong to companion works.
    pub(crate) fn has_alike_titles(&self) -> bool {
        self.titles.similarity() >= 0.6 && !self.companions
    }

    /// Returns `true` if the titles may belong to one work at this position. Where several works may be, such as the
    /// abstracts of a meeting, one different word is enough for another work.
    pub(crate) fn has_titles_of_position(&self) -> bool {
        if self.crowded || self.low_page {
            self.translated || self.has_alike_titles()
        } else {
            self.has_compatible_titles()
        }
    }

    /// Returns `true` if the abstracts or the numbers of a database differ. The records may still be one work: databases
    /// also shorten and translate abstracts, and some have a work twice.
    pub(crate) fn is_contradicted(&self) -> bool {
        self.summary.differs() || self.other_number
    }

    /// Returns `true` if the titles are nearly equal, but belong to companion works.
    pub(crate) fn has_companion_titles(&self) -> bool {
        self.titles.similarity() >= 0.9 && self.companions
    }

    /// Returns `true` if the records may be two works on one page, whose titles are not the same.
    pub(crate) fn is_shared_by_two(&self) -> bool {
        self.shared_page && !matches!(self.titles, TitleMatch::Same | TitleMatch::Missing)
    }

    /// Returns `true` unless the years are known to be more than one year apart: works appear online first and in print
    /// later.
    pub(crate) fn has_compatible_years(&self) -> bool {
        self.years.is_none_or(|years| years <= 1)
    }
}

/// Returns `true` if a database has the same number for both: PubMed Central, or another one.
fn shares_number(a: &Fields, b: &Fields, in_pmc: bool) -> bool {
    let mut numbers = a.accessions().iter().filter(|number| number.starts_with("pmc") == in_pmc);
    numbers.any(|number| b.accessions().contains(number))
}

/// Returns `true` if a database has different numbers for both. Embase has numbers of two lengths for one work.
fn have_other_number(a: &Fields, b: &Fields) -> bool {
    /// The database and the length of its numbers, if that varies, and the number.
    fn parts(number: &str) -> ((&str, usize), &str) {
        const PMC: &str = "pmc";
        match number.split_once(':') {
            Some((database, number)) => ((database, 0), number),
            None if number.starts_with(PMC) => ((PMC, 0), number),
            None => {
                let digits = number.trim_start_matches('l');
                (("embase", digits.len()), digits)
            }
        }
    }
    let differ = |one: &str, other: &str| {
        let ((series, one), (of_other, other)) = (parts(one), parts(other));
        series == of_other && one != other
    };
    a.accessions().iter().any(|one| b.accessions().iter().any(|other| differ(one, other)))
}

/// Returns `true` if the kinds of work differ. A work of unknown kind in a journal is an article.
fn have_other_kind(a: &Fields, b: &Fields) -> bool {
    let is_known =
        |record: &Fields| !record.kind().is_other() || record.has_place() || !record.journal().is_empty();
    a.kind() != b.kind() && is_known(a) && is_known(b)
}

/// Compares first pages. Some databases omit the letter before a number: `S25` and `25`.
pub(crate) fn pages(a: &Fields, b: &Fields) -> Match {
    let (one, other) = (a.page(), b.page());
    let (short, long) = if one.len() <= other.len() { (a, b) } else { (b, a) };
    match Match::text(one, other) {
        Match::Differ if is_without_letter(short, long) => Match::Agree,
        Match::Differ if is_article_number(a, b) || is_article_number(b, a) => Match::Unknown,
        compared => compared,
    }
}

/// Returns `true` if both begin and end on the same pages.
pub(crate) fn have_same_range(a: &Fields, b: &Fields, page: Match) -> bool {
    page.agrees() && !a.last_page().is_empty() && a.last_page() == b.last_page()
}

/// Returns `true` for the same page with and without its letter. Several works begin on one-digit pages, so the last
/// pages have to agree as well.
fn is_without_letter(short: &Fields, long: &Fields) -> bool {
    fn number(page: &str) -> &str {
        page.trim_start_matches(|c: char| c.is_ascii_lowercase())
    }
    let (page, other) = (short.page(), long.page());
    let same_end = !short.last_page().is_empty() && number(short.last_page()) == number(long.last_page());
    number(page) == page
        && number(other) == page
        && other.len() - page.len() == 1
        && (page.len() > 1 || same_end)
}

/// Returns `true` if one record has the number of an article, and the other counts its pages from 1.
fn is_article_number(one: &Fields, other: &Fields) -> bool {
    let page = one.page();
    let is_number =
        page.starts_with('e') || page.len() >= 5 && page.bytes().all(|byte| byte.is_ascii_digit());
    is_number && !one.has_page_range() && other.page() == "1" && other.has_page_range()
}

/// Returns `true` for different issues of a volume. Larger numbers are ignored within a volume or for the same author:
/// they count the issues of all volumes, whose pages are mostly counted by volume, or the records of a file.
fn have_other_issue(a: &Fields, b: &Fields, author: Match) -> bool {
    /// The number of issues of a weekly journal in a year.
    const MAX_ISSUE: u32 = 53;
    let is_known = author.agrees() || Match::text(a.volume(), b.volume()).agrees();
    let issue = |record: &Fields| {
        record.issue().parse::<u32>().ok().filter(|number| *number <= MAX_ISSUE || !is_known)
    };
    issue(a).zip(issue(b)).is_some_and(|(one, other)| one != other) || have_other_parts(a, b)
}

/// Compares the numbers of issues. The months of one may be the number of the other.
fn issues(a: &Fields, b: &Fields) -> Match {
    let has_number = |months: &Fields, number: &Fields| {
        months.issue().is_empty() && months.months().is_some_and(|months| months.have_number(number.issue()))
    };
    if has_number(a, b) || has_number(b, a) { Match::Agree } else { Match::text(a.issue(), b.issue()) }
}

/// Returns `true` if the issues have different parts of one kind: two seasons, months, supplements or letters. Ranges of
/// months may overlap.
fn have_other_parts(a: &Fields, b: &Fields) -> bool {
    let have_same_month = a.months().zip(b.months()).is_some_and(|(one, other)| one.overlap(other));
    let is_other = |one: &String, other: &String| {
        one != other
            && one.split(' ').next() == other.split(' ').next()
            && !(have_same_month && is_month(one))
    };
    a.issue_parts().iter().any(|one| b.issue_parts().iter().any(|other| is_other(one, other)))
}

/// Returns `true` if one is an abstract of a meeting, and the other an article of several pages elsewhere.
pub(crate) fn are_abstract_and_article(a: &Fields, b: &Fields) -> bool {
    let is_article = |record: &Fields| !record.is_meeting_abstract() && record.has_several_pages();
    let is_pair = |one: &Fields, other: &Fields| one.is_meeting_abstract() && is_article(other);
    (is_pair(a, b) || is_pair(b, a)) && !pages(a, b).agrees()
}

/// Returns `true` if only one title names its work a protocol or a summary.
fn have_other_label(a: &Fields, b: &Fields) -> bool {
    let has = |record: &Fields, word: &str| record.title().iter().any(|other| other == word);
    let labels = |record: &Fields| {
        let is_protocol = has(record, "protocol") || has(record, "rationale") && has(record, "design");
        (is_protocol, has(record, "executive") && has(record, "summary"))
    };
    labels(a) != labels(b)
}

/// Returns `true` for the pages of Cochrane reviews, protocols and editorials, whose number is the same in each version.
fn has_number_of_versions(record: &Fields) -> bool {
    let digits = ["cd", "mr", "me", "ed"].iter().find_map(|letters| record.page().strip_prefix(letters));
    digits.is_some_and(|digits| digits.len() >= 3)
}

fn authors(a: &Fields, b: &Fields) -> Match {
    let (one, other) = (a.first_author(), b.first_author());
    if one.is_empty() || other.is_empty() {
        return Match::Unknown;
    }
    if is_same_family(one, other) || is_reversed(a, b) {
        return Match::Agree;
    }
    if has_other_script(one, other) {
        return Match::Unknown;
    }
    let [one, other] = [one, other].map(|name| name.replace(BETWEEN_WORDS, ""));
    let (short, long) = if one.len() <= other.len() { (&one, &other) } else { (&other, &one) };
    let letters = short.chars().count();
    let is_part = letters >= 4 && (long.starts_with(short) || long.ends_with(short));
    let is_alike = letters >= 5 && similarity(&one, &other) >= 0.8;
    Match::from_equality(
        is_part || is_alike || without_umlauts(&one) == without_umlauts(&other) || {
            let (few, many) = (a.families(), b.families());
            let (few, many) = if few.len() <= many.len() { (few, many) } else { (many, few) };
            let shared = shared(few, many);
            shared >= 1 && 2 * shared >= few.len()
        },
    )
}

/// Returns `true` for `Zhang, Wei` and `Wei, Zhang`.
fn is_reversed(a: &Fields, b: &Fields) -> bool {
    !a.given().is_empty() && a.given() == b.first_author() && a.first_author() == b.given()
}

/// The letters of a name without the `e` that some databases write for an umlaut.
fn without_umlauts(name: &str) -> String {
    name.replace("ae", "a").replace("oe", "o").replace("ue", "u")
}

/// Returns `true` for equal names, and for `Wei Li` and `Li`, where either word may be the family name.
fn is_same_family(one: &str, other: &str) -> bool {
    match (family_words(one), family_words(other)) {
        (None, None) => one == other,
        (Some((first, last)), None) => other == first || other == last || joins(one, other),
        (None, Some((first, last))) => one == first || one == last || joins(other, one),
        (Some(words), Some((first, last))) => words == (first, last) || words == (last, first),
    }
}

/// The first and the last word of a name whose family name is unknown.
fn family_words(name: &str) -> Option<(&str, &str)> {
    Some((name.split_once(BETWEEN_WORDS)?.0, name.rsplit_once(BETWEEN_WORDS)?.1))
}

/// Returns `true` if the words form this name.
fn joins(words: &str, name: &str) -> bool {
    words.split(BETWEEN_WORDS).try_fold(name, |rest, word| rest.strip_prefix(word)) == Some("")
}

/// The number of names of the first list that occur in the second one. Only the last word of `Wei Li` counts as a family
/// name, because given names repeat in a list.
fn shared(few: &[String], many: &[String]) -> usize {
    fn family(name: &str) -> &str {
        family_words(name).map_or(name, |(_, last)| last)
    }
    /// Up to this number, comparing all pairs is faster than a set.
    const FEW: usize = 16;
    if many.len() <= FEW {
        spend(few.len() * many.len());
        return few
            .iter()
            .filter(|name| many.iter().any(|other| family(name) == family(other) || name == &other))
            .count();
    }
    spend(few.len() + many.len());
    let many: HashSet<&str> = many.iter().flat_map(|name| [name.as_str(), family(name)]).collect();
    few.iter().filter(|name| many.contains(family(name)) || many.contains(name.as_str())).count()
}

/// Returns `true` if two first pages may differ by a typing error: plain numbers of at least three digits that differ
/// by at most five, or in two exchanged digits.
pub(crate) fn are_nearby(a: &str, b: &str) -> bool {
    let plain = |page: &str| page.bytes().all(|byte| byte.is_ascii_digit()) && page.len() >= 3;
    let (Ok(one), Ok(other)) = (a.parse::<u64>(), b.parse::<u64>()) else { return false };
    let differing: Vec<(u8, u8)> = a.bytes().zip(b.bytes()).filter(|(one, other)| one != other).collect();
    let exchanged = a.len() == b.len() && matches!(differing[..], [(p, q), (r, s)] if (p, q) == (s, r));
    plain(a) && plain(b) && (one.abs_diff(other) <= 5 || exchanged)
}

/// Returns `true` if numbers in the titles distinguish two records.
pub(crate) fn numbers_differ(a: &Fields, b: &Fields, titles: TitleMatch, page: Match) -> bool {
    match titles {
        TitleMatch::Missing | TitleMatch::Same => false,
        // An omitted subtitle may have contained a number, unless the first page agrees.
        TitleMatch::Begins | TitleMatch::Ends => {
            let lacks = |one: &Fields, other: &Fields| {
                one.numbers().iter().any(|number| !other.numbers().contains(number))
            };
            !page.agrees() && (lacks(a, b) || lacks(b, a))
        }
        // `one` and `first` are numbers only if the other title has digits.
        TitleMatch::Similar(_) => {
            let in_digits = |one: &Fields| numbers(one.title_in_digits().unwrap_or(one.title()));
            a.numbers() != b.numbers() && in_digits(a) != in_digits(b)
        }
    }
}
