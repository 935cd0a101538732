//! The matching table: the values that two records have to share to count as the same work, and the certainty of the
//! match.
//!
//! The first line that matches decides. The order and the bounds were derived from record sets labelled by people; the
//! example `evaluate` measures them again.

use crate::comparison::{Comparison, Match, are_nearby, have_same_range, numbers_differ};
use crate::fields::Fields;
use crate::place::without_version;
use crate::reason::{Reason, Tier};
use crate::title_match::TitleMatch;
use crate::trials::{are_other_trials, is_registration};

use Tier::{Certain, Likely, Possible};

/// Compares two records. Returns the certainty and the reason, or `None` if no line of the table matches. The order of
/// the arguments does not matter.
#[must_use]
pub fn compare(a: &Fields, b: &Fields) -> Option<(Tier, Reason)> {
    let alike = Comparison::new(a, b);
    if alike.doi.agrees() && is_registration(a.doi()) {
        return Some((Certain, Reason::Number));
    }
    if are_other_trials(a.doi(), b.doi()) {
        return None;
    }
    if let Some(reason) = veto(a, b, &alike) {
        let is_worth_a_look =
            (alike.titles.similarity() >= 0.9 || alike.doi.agrees()) && !alike.author.differs();
        return is_worth_a_look.then_some((Possible, reason));
    }
    if alike.pmid.agrees() {
        return Some(by_pmid(&alike));
    }
    if (alike.same_number && is_confirmed(&alike)) || (alike.same_pmcid && is_confirmed_article(&alike)) {
        return Some((Certain, Reason::Number));
    }
    if alike.doi.agrees() {
        return Some(first_that_fits(&by_doi(&alike)).unwrap_or((Possible, Reason::Doi)));
    }
    first_that_fits(&by_title(a, b, &alike))
        .or_else(|| first_that_fits(&by_place(a, b, &alike)))
        .or_else(|| first_that_fits(&by_weak_evidence(&alike)))
        .or_else(|| (a == b && a.known() >= 2).then_some((Possible, Reason::Copy)))
}

/// A line of the table: its condition, certainty and reason.
type Line = (bool, Tier, Reason);

fn first_that_fits(lines: &[Line]) -> Option<(Tier, Reason)> {
    lines.iter().find(|(fits, ..)| *fits).map(|(_, tier, reason)| (*tier, *reason))
}

/// Returns a reason against a match that overrides any similarity.
fn veto(a: &Fields, b: &Fields, alike: &Comparison) -> Option<Reason> {
    let Comparison { near, author, journal, volume, page, doi, pmid, shared_page, .. } = *alike;
    if pmid.agrees() && near && !page.differs() {
        return None;
    }
    // Both records state the same position in print.
    let cited = page.agrees()
        && volume.agrees()
        && !author.differs()
        && !journal.differs()
        && alike.has_compatible_years();
    // One title lacks the subtitle of the other.
    let is_subtitle = matches!(alike.titles, TitleMatch::Begins | TitleMatch::Ends) && !page.differs();
    let lines = [
        (pmid.differs(), Reason::OtherPmid),
        (a.is_notice() != b.is_notice() && !(cited && near), Reason::Notice),
        (a.is_reply() != b.is_reply(), Reason::Reply),
        (
            numbers_differ(a, b, alike.titles, page)
                && (!cited || shared_page)
                && !(doi.agrees() && author.agrees() && !shared_page && (page.agrees() || is_subtitle)),
            Reason::Numbers,
        ),
        (doi.differs() && without_version(a.doi()) == without_version(b.doi()), Reason::Versions),
    ];
    lines.into_iter().find(|(fits, _)| *fits).map(|(_, reason)| reason)
}

fn by_pmid(alike: &Comparison) -> (Tier, Reason) {
    if is_confirmed(alike) && !is_elsewhere(alike) {
        (Certain, Reason::Pmid)
    } else {
        (Possible, Reason::PmidAlone)
    }
}

/// Returns `true` if only the author confirms an equal identifier, and title, journal and position contradict it: one
/// record has the identifier of another article by its author.
fn is_elsewhere(alike: &Comparison) -> bool {
    let Comparison { titles, translated, journal, volume, page, doi, .. } = *alike;
    let is_other_title = titles != TitleMatch::Missing && titles.similarity() < 0.5 && !translated;
    let is_other_place = page.differs() || volume.differs() || !alike.has_compatible_years();
    is_other_title && journal.differs() && is_other_place && !doi.agrees()
}

/// Returns `true` if title or author confirm an equal identifier. Exports also contain the identifiers of other
/// articles.
fn is_confirmed(alike: &Comparison) -> bool {
    alike.titles == TitleMatch::Missing || alike.titles.similarity() >= 0.5 || alike.author.agrees()
}

/// Returns `true` if title or page confirm an equal number in PubMed Central, which has one number for all abstracts of a
/// supplement.
fn is_confirmed_article(alike: &Comparison) -> bool {
    is_confirmed(alike)
        && (alike.titles.similarity() >= 0.5 || alike.titles == TitleMatch::Missing || alike.page.agrees())
}

/// The DOIs agree. All abstracts of a supplement may share the supplement's DOI, and all chapters that of the book.
fn by_doi(alike: &Comparison) -> [Line; 9] {
    let Comparison { near, long, author, journal, volume, page, summary, .. } = *alike;
    let contradicted = alike.is_contradicted();
    // Two abstracts of a meeting.
    let apart = alike.crowded && contradicted;
    let similarity = alike.titles.similarity();
    let is_untitled = alike.titles == TitleMatch::Missing;
    let is_alike = alike.has_titles_of_position();
    // Front matter of one or two words has the DOI of an issue.
    let is_same = alike.titles == TitleMatch::Same && !alike.brief && !volume.differs() && !journal.differs();
    [
        (
            near && !page.differs() && !author.differs() && !alike.is_shared_by_two(),
            Certain,
            Reason::DoiTitle,
        ),
        (near && page.agrees() && !alike.is_shared_by_two(), Certain, Reason::DoiTitlePage),
        (
            near && similarity >= 0.95 && long && !page.differs() && !volume.differs() && !journal.differs(),
            Likely,
            Reason::DoiTitleJournal,
        ),
        (
            near && author.agrees()
                && (long || is_same)
                && (!volume.differs() || journal.agrees())
                && !summary.differs(),
            Likely,
            Reason::DoiTitleAuthor,
        ),
        (is_untitled && !author.differs() && !page.differs(), Likely, Reason::DoiUntitled),
        (
            author.agrees()
                && page.agrees()
                && (alike.translated || alike.has_alike_titles())
                && !contradicted
                && !alike.is_shared_by_two(),
            Certain,
            Reason::DoiAuthorPage,
        ),
        (
            author.agrees() && page.is_unknown() && is_alike && (similarity >= 0.6 || summary.agrees()),
            Likely,
            Reason::DoiAuthorAlike,
        ),
        (
            author.agrees() && !page.differs() && is_alike && !apart && alike.has_compatible_years(),
            Likely,
            Reason::DoiAuthor,
        ),
        // Titles that were translated from one language in two ways may have no words in common.
        (author.agrees() && alike.sole && !contradicted, Likely, Reason::DoiAuthorPage),
    ]
}

/// The titles are nearly equal. Unless a line states otherwise, DOIs only have to be compatible.
fn by_title(a: &Fields, b: &Fields, alike: &Comparison) -> [Line; 13] {
    let Comparison {
        titles, near, long, author, journal, volume, issue, page, summary, same_journal, ..
    } = *alike;
    let same_doi = !alike.doi.differs();
    let same_year = alike.years == Some(0);
    let soon = alike.has_compatible_years();
    let similarity = alike.titles.similarity();
    let page_fits = near
        && page.agrees()
        && !author.differs()
        && (volume.agrees() || journal.agrees() || alike.years.is_some_and(|years| years <= 1));
    // Sister journals do not have the same work on the same pages.
    let same_place = volume.agrees() && author.agrees() && alike.same_range;
    let other_edition = alike.is_other_edition();
    let by_year = near
        && author.agrees()
        && same_year
        && same_doi
        && !other_edition
        && ![page, volume, journal].iter().any(|value| value.differs());
    let within_two_years = alike.years.is_none_or(|years| years <= if journal.agrees() { 2 } else { 0 });
    [
        (
            page_fits && !same_doi && (journal.differs() || volume.differs()),
            Possible,
            Reason::TitlePageElsewhere,
        ),
        // Journals have an editorial or a preface on the same page of many issues, by the same authors.
        (
            page_fits
                && !long
                && (journal.differs()
                    || volume.differs()
                    || other_edition
                    || !same_doi
                    || !(same_journal || (volume.agrees() && journal.is_unknown()))),
            Possible,
            Reason::TitlePage,
        ),
        // A series has the same page in many issues, and sister journals print the same article.
        (
            page_fits
                && (other_edition || (journal.differs() && volume.differs()))
                && !(alike.same_large_page && author.agrees()),
            Possible,
            Reason::TitlePage,
        ),
        (page_fits && !long && !(is_same_issue(alike) && a.has_issue_of(b)), Likely, Reason::TitlePage),
        (
            page_fits
                && (!same_doi
                    || volume.differs()
                    || journal.differs()
                    || alike.other_issue
                    || alike.is_shared_by_two()
                    || (!same_journal && !journal.is_unknown() && !same_place)),
            Likely,
            Reason::TitlePage,
        ),
        (page_fits, Certain, Reason::TitlePage),
        (by_year && similarity >= 0.97 && long && same_journal, Certain, Reason::TitleYearAuthor),
        (by_year, Likely, Reason::TitleYearAuthor),
        (
            near && long
                && same_doi
                && soon
                && !other_edition
                && [author, journal, volume].iter().all(|value| value.agrees())
                && (!page.differs() || (issue.agrees() && titles == TitleMatch::Same)),
            Likely,
            Reason::TitleVolumeAuthor,
        ),
        (
            near && long
                && same_doi
                && !other_edition
                && author.agrees()
                && ![journal, page, volume].iter().any(|value| value.differs())
                && within_two_years,
            Likely,
            Reason::TitleAuthor,
        ),
        (
            near && long
                && same_doi
                && soon
                && !other_edition
                && !author.differs()
                && journal.agrees()
                && (!volume.differs() || page.agrees())
                && (!page.differs() || summary.agrees()),
            Likely,
            Reason::TitleJournal,
        ),
        (
            near && similarity >= 0.97
                && long
                && same_doi
                && same_year
                && !other_edition
                && [author, journal, volume].iter().all(|value| value.agrees())
                && are_nearby(a.page(), b.page()),
            Likely,
            Reason::TitleNearbyPage,
        ),
        (
            alike.titles == TitleMatch::Same
                && a.title().len() >= 3
                && same_doi
                && same_year
                && !other_edition
                && author.is_unknown()
                && journal.agrees()
                && volume.agrees()
                && !issue.differs()
                && !page.differs(),
            Likely,
            Reason::TitleJournalVolume,
        ),
    ]
}

/// Returns `true` if no known field contradicts that both records are in the same issue.
fn is_same_issue(alike: &Comparison) -> bool {
    let Comparison { author, volume, issue, doi, same_journal, .. } = *alike;
    author.agrees()
        && same_journal
        && volume.agrees()
        && !issue.differs()
        && !doi.differs()
        && alike.years == Some(0)
}

/// The position in print or the abstract agrees: titles may be translated or truncated.
fn by_place(a: &Fields, b: &Fields, alike: &Comparison) -> [Line; 5] {
    let Comparison { titles, author, journal, volume, issue, page, summary, .. } = *alike;
    let same_doi = !alike.doi.differs();
    let same_year = alike.years == Some(0);
    let soon = alike.has_compatible_years();
    let similarity = titles.similarity();
    let placed =
        page.agrees() && volume.agrees() && same_doi && (!alike.other_issue || alike.same_large_page);
    let same_range = have_same_range(a, b, page);
    // Abstracts of a research group begin with the same sentences.
    let is_alike = alike.has_compatible_titles() || titles == TitleMatch::Missing;
    let alone = is_only_work(alike, is_alike, same_range);
    [
        (
            placed
                && author.agrees()
                && soon
                && !journal.differs()
                && (similarity >= 0.55 || summary.agrees() && is_alike)
                && alone,
            Likely,
            Reason::PageVolumeAuthor,
        ),
        (
            placed
                && author.agrees()
                && journal.agrees()
                && same_year
                && (!issue.differs() || same_range)
                && alone,
            Likely,
            Reason::PageJournalAuthor,
        ),
        (
            summary.agrees()
                && is_alike
                && author.agrees()
                && soon
                && same_doi
                && !alike.one_is_preprint
                && !alike.other_kind
                && !alike.other_issue
                && ![page, volume, journal].iter().any(|value| value.differs()),
            Likely,
            Reason::AbstractAuthor,
        ),
        (
            placed
                && !author.differs()
                && journal.agrees()
                && same_year
                && (same_range || similarity >= 0.55)
                && a.page().len() > 1
                && alone,
            Likely,
            Reason::PageJournal,
        ),
        (placed && author.agrees() && journal.agrees() && same_year, Possible, Reason::PageJournalAuthor),
    ]
}

/// Returns `true` if the position of two records has no other work, as far as its pages, titles and abstracts show.
fn is_only_work(alike: &Comparison, is_alike: bool, same_range: bool) -> bool {
    if alike.summary.agrees() && is_alike {
        return same_range || !alike.has_companion_titles();
    }
    if alike.shared_page {
        return false;
    }
    if alike.crowded || alike.low_page {
        // Titles in two languages say as little as a missing one.
        let is_untold = alike.translated || alike.titles == TitleMatch::Missing;
        let is_placed = alike.issue.agrees() || same_range;
        return (alike.has_alike_titles() || is_untold && is_placed || alike.sole)
            && !alike.is_contradicted();
    }
    (same_range || !alike.has_companion_titles()) && (is_alike || !alike.is_contradicted())
}

/// Matches that are too weak for grouping.
fn by_weak_evidence(alike: &Comparison) -> [Line; 4] {
    let Comparison { author, journal, volume, issue, page, doi, .. } = *alike;
    let values = [author, journal, volume, issue, page, doi];
    let nothing_differs =
        !values.iter().any(|value| value.differs()) && alike.years.is_none_or(|years| years == 0);
    [
        (alike.near && alike.long && alike.author != Match::Differ, Possible, Reason::Title),
        // Databases put a group of authors first, last, or nowhere.
        (
            alike.near
                && alike.long
                && page.agrees()
                && volume.agrees()
                && !journal.differs()
                && alike.has_compatible_years(),
            Possible,
            Reason::Title,
        ),
        (alike.titles == TitleMatch::Same && nothing_differs, Possible, Reason::Title),
        (alike.summary.agrees() && alike.author.agrees(), Possible, Reason::AbstractElsewhere),
    ]
}
