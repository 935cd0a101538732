//! Distinguishes positions in print that only one work can have from those of several works.

use crate::agreement::Match;
use crate::fields::Fields;

/// The first page from which its number identifies a work in a volume. Each issue of many journals begins with page 1,
/// and so does each article of some.
const LARGE_PAGE: u64 = 100;
/// The maximum number of pages of an article. Longer ranges are mostly those of the supplement or the book that
/// contains a work.
const MAX_PAGES: u64 = 60;

/// The number of a page without its letters, or `None` if the page is unknown.
fn number(page: &str) -> Option<u64> {
    page.trim_start_matches(|c: char| c.is_ascii_lowercase()).parse().ok()
}

/// Returns `true` for a first page that articles in several issues may have.
pub(crate) fn has_low_page(record: &Fields) -> bool {
    number(record.page()).is_some_and(|page| page < LARGE_PAGE)
}

/// The number of pages of a work, as far as its record has a first and a last page.
fn length(record: &Fields) -> Option<u64> {
    let (first, last) = number(record.page()).zip(number(record.last_page()))?;
    last.checked_sub(first)?.checked_add(1)
}

fn has_long_range(record: &Fields) -> bool {
    length(record).is_some_and(|pages| pages > MAX_PAGES)
}

fn is_in_supplement(a: &Fields, b: &Fields) -> bool {
    a.is_meeting_abstract() || b.is_meeting_abstract()
}

/// Returns `true` for a first page that is a plain number of at least three digits.
pub(crate) fn has_large_page(record: &Fields) -> bool {
    record.page().len() >= 3 && record.page().bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns `true` if two records with the same first page may be two works on that page: the abstracts differ, or a
/// record is on one page, or its page has a letter and no end. A work that continues on the next page is alone at its
/// position.
pub(crate) fn may_share_page(a: &Fields, b: &Fields, summary: Match) -> bool {
    /// The letter before the number of an article, which no other article has.
    const ARTICLE: char = 'e';
    let is_single = |record: &Fields| {
        let has_letter = record.page().starts_with(|c: char| c.is_ascii_lowercase() && c != ARTICLE);
        has_letter || record.last_page() == record.page()
    };
    !a.has_page_range() && !b.has_page_range() && (summary.differs() || is_single(a) || is_single(b))
}

/// Returns `true` if the records may be two works in a supplement or a book: its abstracts and chapters may have its DOI,
/// and all of its pages.
pub(crate) fn is_in_collection(a: &Fields, b: &Fields) -> bool {
    is_in_supplement(a, b) || has_long_range(a) || has_long_range(b)
}

/// Returns `true` if only one work can have the range of pages that both records state, whatever the titles: a work of
/// three or more pages outside of supplements and books. Low pages count in one issue or with one DOI, and page 1 never.
pub(crate) fn is_sole(a: &Fields, b: &Fields, issue: Match, doi: Match) -> bool {
    let is_in_one_issue = issue.agrees() || doi.agrees();
    let is_telling = !has_low_page(a) || is_in_one_issue && number(a.page()) > Some(1);
    is_telling && a.has_several_pages() && !is_in_collection(a, b)
}
