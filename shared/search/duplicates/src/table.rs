//! The table: what two records have to have in common to count as the same work, and how sure that is.
//!
//! Lines are in order, and the first that fits decides. Their order and bounds were found on sets of records that people
//! have labelled; the example `evaluate` measures them again.

use crate::alike::{Alike, Match, Titles, are_nearby, numbers_differ};
use crate::fields::Fields;
use crate::place::without_version;
use crate::reason::{Reason, Tier};

use Tier::{Certain, Likely, Possible};

/// Whether two records are the same work, how sure that is, and why; none when nothing says that they are. The order of the
/// two makes no difference.
#[must_use]
pub fn compare(a: &Fields, b: &Fields) -> Option<(Tier, Reason)> {
    let alike = Alike::new(a, b);
    if let Some(reason) = veto(a, b, &alike) {
        let is_worth_a_look = (alike.near || alike.doi.agrees()) && !alike.author.differs();
        return is_worth_a_look.then_some((Possible, reason));
    }
    if alike.pmid.agrees() {
        return Some(by_pmid(&alike));
    }
    if alike.doi.agrees() {
        return Some(first_that_fits(&by_doi(&alike)).unwrap_or((Possible, Reason::Doi)));
    }
    first_that_fits(&by_title(a, b, &alike))
        .or_else(|| first_that_fits(&by_place(a, b, &alike)))
        .or_else(|| first_that_fits(&by_little(&alike)))
}

/// A line: whether it fits, and what it says.
type Line = (bool, Tier, Reason);

fn first_that_fits(lines: &[Line]) -> Option<(Tier, Reason)> {
    lines.iter().find(|(fits, ..)| *fits).map(|(_, tier, reason)| (*tier, *reason))
}

/// What tells two records apart, however alike they are.
fn veto(a: &Fields, b: &Fields, alike: &Alike) -> Option<Reason> {
    let Alike { near, author, journal, volume, page, doi, pmid, .. } = *alike;
    // The same place in print.
    let cited = page.agrees()
        && volume.agrees()
        && !author.differs()
        && !journal.differs()
        && alike.about_the_same_year();
    let lines = [
        (pmid.differs(), Reason::OtherPmid),
        (a.is_notice() != b.is_notice() && !(cited && near), Reason::Notice),
        (a.is_reply() != b.is_reply(), Reason::Reply),
        (
            numbers_differ(a, b, alike.titles, page)
                && !cited
                && !(doi.agrees() && author.agrees() && !page.differs()),
            Reason::Numbers,
        ),
        (doi.differs() && without_version(a.doi()) == without_version(b.doi()), Reason::Versions),
    ];
    lines.into_iter().find(|(fits, _)| *fits).map(|(_, reason)| reason)
}

fn by_pmid(alike: &Alike) -> (Tier, Reason) {
    // Exports put the identifiers of other articles into this field, too.
    let says_so =
        alike.titles == Titles::Missing || alike.titles.similarity() >= 0.5 || alike.author.agrees();
    if says_so { (Certain, Reason::Pmid) } else { (Possible, Reason::PmidAlone) }
}

/// The DOIs agree. All abstracts of a supplement may have the supplement's.
fn by_doi(alike: &Alike) -> [Line; 8] {
    let Alike { near, long, author, journal, volume, page, summary, .. } = *alike;
    let similarity = alike.titles.similarity();
    let is_untitled = alike.titles == Titles::Missing;
    [
        (near && !page.differs() && !author.differs(), Certain, Reason::DoiTitle),
        (near && page.agrees(), Certain, Reason::DoiTitlePage),
        (
            similarity >= 0.95 && long && !page.differs() && !volume.differs() && !journal.differs(),
            Likely,
            Reason::DoiTitleJournal,
        ),
        (
            near && author.agrees() && long && (!volume.differs() || journal.agrees()) && !summary.differs(),
            Likely,
            Reason::DoiTitleAuthor,
        ),
        (is_untitled && !author.differs() && !page.differs(), Likely, Reason::DoiUntitled),
        (author.agrees() && page.agrees(), Certain, Reason::DoiAuthorPage),
        (
            author.agrees() && page.is_unknown() && (similarity >= 0.6 || summary.agrees()),
            Likely,
            Reason::DoiAuthorAlike,
        ),
        (author.agrees() && !page.differs() && alike.about_the_same_year(), Likely, Reason::DoiAuthor),
    ]
}

/// The titles are nearly the same. Nothing further is asked of DOIs than that they do not differ, unless it says so.
fn by_title(a: &Fields, b: &Fields, alike: &Alike) -> [Line; 9] {
    let Alike { near, long, author, journal, volume, issue, page, summary, .. } = *alike;
    let same_doi = !alike.doi.differs();
    let same_year = alike.years == Some(0);
    let soon = alike.about_the_same_year();
    let similarity = alike.titles.similarity();
    let page_fits = near
        && page.agrees()
        && !author.differs()
        && (volume.agrees() || journal.agrees() || alike.years.is_some_and(|years| years <= 1));
    let by_year = near
        && author.agrees()
        && same_year
        && same_doi
        && ![page, volume, journal].iter().any(|value| value.differs());
    let within_two_years = alike.years.is_none_or(|years| years <= if journal.agrees() { 2 } else { 0 });
    [
        (
            page_fits && !same_doi && (journal.differs() || volume.differs()),
            Possible,
            Reason::TitlePageElsewhere,
        ),
        (page_fits, Certain, Reason::TitlePage),
        (by_year && similarity >= 0.97 && long && journal.agrees(), Certain, Reason::TitleYearAuthor),
        (by_year, Likely, Reason::TitleYearAuthor),
        (
            near && long
                && same_doi
                && soon
                && [author, journal, volume].iter().all(|value| value.agrees())
                && (!page.differs() || issue.agrees()),
            Likely,
            Reason::TitleVolumeAuthor,
        ),
        (
            near && long
                && same_doi
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
                && !author.differs()
                && journal.agrees()
                && (!volume.differs() || page.agrees())
                && (!page.differs() || summary.agrees()),
            Likely,
            Reason::TitleJournal,
        ),
        (
            similarity >= 0.97
                && long
                && same_doi
                && same_year
                && [author, journal, volume].iter().all(|value| value.agrees())
                && are_nearby(a.page(), b.page()),
            Likely,
            Reason::TitleNearbyPage,
        ),
        (
            alike.titles == Titles::Same
                && a.title().len() >= 3
                && same_doi
                && same_year
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

/// The place agrees, or the abstract: titles are translated, and exports cut them off.
fn by_place(a: &Fields, b: &Fields, alike: &Alike) -> [Line; 4] {
    let Alike { author, journal, volume, issue, page, summary, .. } = *alike;
    let same_doi = !alike.doi.differs();
    let same_year = alike.years == Some(0);
    let soon = alike.about_the_same_year();
    let similarity = alike.titles.similarity();
    let placed = page.agrees() && volume.agrees() && same_doi;
    let same_range = page.agrees() && !a.last_page().is_empty() && a.last_page() == b.last_page();
    [
        (
            placed
                && author.agrees()
                && soon
                && !journal.differs()
                && (similarity >= 0.55 || summary.agrees()),
            Likely,
            Reason::PageVolumeAuthor,
        ),
        (
            placed && author.agrees() && journal.agrees() && same_year && (!issue.differs() || same_range),
            Likely,
            Reason::PageJournalAuthor,
        ),
        (
            summary.agrees()
                && author.agrees()
                && soon
                && same_doi
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
                && a.page().len() > 1,
            Likely,
            Reason::PageJournal,
        ),
    ]
}

/// Too little to group them by.
fn by_little(alike: &Alike) -> [Line; 2] {
    [
        (alike.near && alike.long && alike.author != Match::Differ, Possible, Reason::Title),
        (alike.summary.agrees() && alike.author.agrees(), Possible, Reason::AbstractElsewhere),
    ]
}
