//! Compares two records value by value.

use std::collections::HashSet;

use rapidfuzz::distance::indel;
use references::work::spend;

use crate::companions::are_companions;
use crate::fields::{BETWEEN_WORDS, Fields};

/// The result of comparing one value of two records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    Agree,
    /// At least one value is missing.
    Unknown,
    Differ,
}

impl Match {
    pub(crate) fn agrees(self) -> bool {
        self == Self::Agree
    }

    pub(crate) fn differs(self) -> bool {
        self == Self::Differ
    }

    pub(crate) fn is_unknown(self) -> bool {
        self == Self::Unknown
    }

    fn from_equality(is_equal: bool) -> Self {
        if is_equal { Self::Agree } else { Self::Differ }
    }

    fn text(one: &str, other: &str) -> Self {
        if one.is_empty() || other.is_empty() { Self::Unknown } else { Self::from_equality(one == other) }
    }
}

/// The similarity of two titles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TitleMatch {
    Missing,
    Same,
    /// One is the beginning of the other, which adds a subtitle.
    Begins,
    /// One is the end of the other.
    Ends,
    /// The proportion of letters that they share, in order.
    Similar(f64),
}

impl TitleMatch {
    /// Between 0 and 1, or negative if a title is missing.
    pub(crate) fn similarity(self) -> f64 {
        match self {
            Self::Missing => -1.0,
            Self::Same => 1.0,
            Self::Begins => 0.97,
            Self::Ends => 0.95,
            Self::Similar(similarity) => similarity,
        }
    }
}

/// Two records, compared value by value.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) titles: TitleMatch,
    /// The titles differ in minor details at most.
    pub(crate) near: bool,
    /// The titles are in different languages or scripts.
    pub(crate) translated: bool,
    /// Both titles are long enough to be significant.
    pub(crate) long: bool,
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
    pub(crate) summary: Match,
    /// The difference between the years, or `None` if a year is missing.
    pub(crate) years: Option<u32>,
    /// The names of the journals are equal, or so are their ISSNs.
    pub(crate) same_journal: bool,
    /// The issues of a volume differ.
    pub(crate) other_issue: bool,
    /// Only one has a volume, an issue or a page.
    pub(crate) one_is_unplaced: bool,
    /// They are works of different kinds, such as a thesis and an article.
    pub(crate) other_kind: bool,
    /// One is a preprint, and the other is not known to be one.
    pub(crate) one_is_preprint: bool,
    /// The first pages agree, and their number is large. Each issue of some journals begins with page 1.
    pub(crate) same_large_page: bool,
    /// The first pages agree, and several works may be on that page, such as the abstracts of a meeting.
    pub(crate) shared_page: bool,
}

impl Comparison {
    pub(crate) fn new(a: &Fields, b: &Fields) -> Self {
        let titles = titles(a, b);
        let similarity = titles.similarity();
        let summary = match (a.summary(), b.summary()) {
            (Some(one), Some(other)) => Match::from_equality(one == other),
            _ => Match::Unknown,
        };
        let page = pages(a.page(), b.page());
        Self {
            titles,
            near: similarity >= 0.9 && !are_companions(a, b, titles),
            translated: a.is_foreign() != b.is_foreign() || a.has_other_script(b),
            long: a.is_long() && b.is_long(),
            author: authors(a, b),
            journal: journals(a, b),
            volume: Match::text(a.volume(), b.volume()),
            issue: Match::text(a.issue(), b.issue()),
            page,
            doi: Match::text(a.doi(), b.doi()),
            pmid: Match::text(a.pmid(), b.pmid()),
            same_number: shares_number(a, b, false),
            same_pmcid: shares_number(a, b, true),
            summary,
            same_journal: have_same_journal(a, b),
            years: a.year().zip(b.year()).map(|(one, other)| one.abs_diff(other)),
            other_issue: have_other_issue(a.issue(), b.issue()),
            one_is_unplaced: a.has_place() != b.has_place(),
            other_kind: !page.agrees() && have_other_kind(a, b),
            one_is_preprint: a.is_preprint() != b.is_preprint(),
            same_large_page: page.agrees() && has_large_page(a) && has_large_page(b),
            shared_page: page.agrees() && may_share_page(a, b, summary),
        }
    }

    /// Returns `true` if both appeared in different issues or years, or one is a preprint or another kind of work: reports, guidelines and
    /// reviews appear again under the same title.
    ///
    /// Volumes of one year may differ: databases give the number of a supplement as its volume. A record without a place
    /// may be the online form of an article that is printed in the next year.
    pub(crate) fn is_other_edition(&self) -> bool {
        let years = self.years.unwrap_or_default();
        let is_online_first = self.one_is_unplaced && years <= 1;
        let is_other_year = years > 0 && !self.volume.agrees() && !is_online_first;
        self.other_issue || is_other_year || self.one_is_preprint || self.other_kind
    }

    /// Returns `true` if the titles may be those of one work: they are similar, or one is a translation. The titles of
    /// companion works resemble each other more than others do.
    pub(crate) fn has_compatible_titles(&self) -> bool {
        self.near || self.translated || (self.titles.similarity() >= 0.6 && !self.has_companion_titles())
    }

    /// Returns `true` if the titles are nearly equal, but those of companion works.
    pub(crate) fn has_companion_titles(&self) -> bool {
        self.titles.similarity() >= 0.9 && !self.near
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

/// Returns `true` if the kinds of work differ. A work of unknown kind in a journal is an article.
fn have_other_kind(a: &Fields, b: &Fields) -> bool {
    let is_known =
        |record: &Fields| !record.kind().is_other() || record.has_place() || !record.journal().is_empty();
    a.kind() != b.kind() && is_known(a) && is_known(b)
}

/// Compares first pages. Some databases omit the letter before a number: `S25` and `25`.
fn pages(one: &str, other: &str) -> Match {
    let number = |page: &str| page.trim_start_matches(|c: char| c.is_ascii_lowercase()).len();
    let is_shortened = |short: &str, long: &str| {
        number(short) == short.len()
            && short.len() > 1
            && long.len() - short.len() <= 1
            && long.ends_with(short)
    };
    match Match::text(one, other) {
        Match::Differ
            if one.len() < other.len() && is_shortened(one, other) && number(other) == one.len() =>
        {
            Match::Agree
        }
        Match::Differ
            if other.len() < one.len() && is_shortened(other, one) && number(one) == other.len() =>
        {
            Match::Agree
        }
        compared => compared,
    }
}

/// Returns `true` for different issues of a volume. Larger numbers are ignored: they count the issues of all volumes,
/// whose pages are mostly counted by volume, or the records of a file.
fn have_other_issue(one: &str, other: &str) -> bool {
    /// The number of issues of a weekly journal in a year.
    const MAX_ISSUE: u32 = 53;
    let issue = |number: &str| number.parse::<u32>().ok().filter(|number| *number <= MAX_ISSUE);
    issue(one).zip(issue(other)).is_some_and(|(one, other)| one != other)
}

/// Returns `true` for a first page that is a plain number of at least three digits.
fn has_large_page(record: &Fields) -> bool {
    record.page().len() >= 3 && record.page().bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns `true` if two records with the same first page may be two works on that page: the abstracts differ, or a
/// record is on one page, or its page has a letter and no end. A work that continues on the next page is alone at its
/// position.
fn may_share_page(a: &Fields, b: &Fields, summary: Match) -> bool {
    /// The letter before the number of an article, which no other article has.
    const ARTICLE: char = 'e';
    let is_single = |record: &Fields| {
        let has_letter = record.page().starts_with(|c: char| c.is_ascii_lowercase() && c != ARTICLE);
        has_letter || record.last_page() == record.page()
    };
    !a.has_page_range() && !b.has_page_range() && (summary.differs() || is_single(a) || is_single(b))
}

/// The proportion of letters that two texts share, in order: 1 for equal texts.
pub(crate) fn similarity(a: &str, b: &str) -> f64 {
    // Each letter of one text is compared with 64 letters of the other at a time.
    spend(a.len() * (1 + b.len() / 64));
    if a.is_ascii() && b.is_ascii() {
        indel::normalized_similarity(a.bytes(), b.bytes())
    } else {
        indel::normalized_similarity(a.chars(), b.chars())
    }
}

fn titles(a: &Fields, b: &Fields) -> TitleMatch {
    let (one, other) = (a.letters(), b.letters());
    if one.is_empty() || other.is_empty() {
        return TitleMatch::Missing;
    }
    if one == other {
        return TitleMatch::Same;
    }
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    // `XII` begins like `XI`. East Asian titles have no spaces before a subtitle.
    let has_more_words = a.title().len() != b.title().len() || !long.is_ascii();
    let have_length =
        |words, letters| has_more_words && a.has_length(words, letters) && b.has_length(words, letters);
    if long.starts_with(short) && have_length(4, 25) {
        return TitleMatch::Begins;
    }
    if long.ends_with(short) && have_length(5, 35) {
        return TitleMatch::Ends;
    }
    TitleMatch::Similar(similarity(one, other))
}

fn authors(a: &Fields, b: &Fields) -> Match {
    let (one, other) = (a.first_author(), b.first_author());
    if one.is_empty() || other.is_empty() {
        return Match::Unknown;
    }
    if is_same_family(one, other) {
        return Match::Agree;
    }
    let [one, other] = [one, other].map(|name| name.replace(BETWEEN_WORDS, ""));
    let (short, long) = if one.len() <= other.len() { (&one, &other) } else { (&other, &one) };
    let letters = short.chars().count();
    let is_part = letters >= 4 && (long.starts_with(short) || long.ends_with(short));
    let is_alike = letters >= 5 && similarity(&one, &other) >= 0.8;
    Match::from_equality(
        is_part || is_alike || {
            let (few, many) = (a.families(), b.families());
            let (few, many) = if few.len() <= many.len() { (few, many) } else { (many, few) };
            let shared = shared(few, many);
            shared >= 1 && 2 * shared >= few.len()
        },
    )
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

/// Returns `true` for journals with the same ISSN, or with the same name, possibly with abbreviated words. Sister
/// journals have names that begin alike, with more words.
fn have_same_journal(a: &Fields, b: &Fields) -> bool {
    let (one, other) = (a.journal(), b.journal());
    let is_equal = !one.is_empty() && one == other;
    let is_abbreviated =
        !one.is_empty() && one.len() == other.len() && (abbreviates(one, other) || abbreviates(other, one));
    is_equal
        || is_abbreviated
        || are_initials(one, other)
        || are_initials(other, one)
        || a.issns().iter().any(|issn| b.issns().contains(issn))
}

/// Compares names of journals, which databases abbreviate in different ways.
pub(crate) fn journals(a: &Fields, b: &Fields) -> Match {
    if a.issns().iter().any(|issn| b.issns().contains(issn)) {
        return Match::Agree;
    }
    let (one, other) = (a.journal(), b.journal());
    if one.is_empty() || other.is_empty() {
        return Match::Unknown;
    }
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    Match::from_equality(
        one == other
            || abbreviates(short, long)
            // If both have the same length, either may be the abbreviation.
            || short.len() == long.len() && abbreviates(long, short)
            || are_initials(short, long)
            || (!have_own_words(short, long) && similarity(&short.join(" "), &long.join(" ")) >= 0.8),
    )
}

/// Returns `true` for names with equally many words that differ in one place. Sister journals have long
/// names that resemble each other.
fn have_own_words(one: &[String], other: &[String]) -> bool {
    let is_alike = |one: &str, other: &str| {
        is_abbreviation_of(one, other) || is_abbreviation_of(other, one) || similarity(one, other) >= 0.75
    };
    one.len() == other.len() && one.iter().zip(other).any(|(one, other)| !is_alike(one, other))
}

/// Returns `true` if each word of the shorter name abbreviates a word of the longer name, in order.
fn abbreviates(short: &[String], long: &[String]) -> bool {
    let mut left = short.iter().peekable();
    for word in long {
        if left.next_if(|abbreviation| is_abbreviation_of(abbreviation, word)).is_none()
            && left.peek().is_none()
        {
            break;
        }
    }
    left.peek().is_none()
}

/// Returns `true` if a word abbreviates another: by its beginning, its first and last letter, or some of its letters in
/// order.
fn is_abbreviation_of(short: &str, word: &str) -> bool {
    let mut letters = word.chars();
    let mut is_among = |letter: char| letters.any(|other| other == letter);
    short.starts_with(word)
        || word.starts_with(short)
        || short.chars().count() > 2
            && short.chars().next() == word.chars().next()
            && (short.chars().next_back() == word.chars().next_back() || short.chars().all(&mut is_among))
}

fn are_initials(short: &[String], long: &[String]) -> bool {
    let [initials] = short else { return false };
    let count = initials.chars().count();
    let of_long: String = long.iter().filter_map(|word| word.chars().next()).take(count).collect();
    count >= 3 && *initials == of_long
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
        TitleMatch::Similar(_) => a.numbers() != b.numbers(),
    }
}
