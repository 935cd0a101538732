//! How much memory the marking of duplicates takes, and how long it looks.
//!
//! The studies are made up page by page, as `parse-references` reads them from the database, and shown to a matcher for
//! each share. So what is measured is the matching, without a database.

use std::time::{Duration, Instant};

use imports::{Identity, Matcher, Share};
use serde::Serialize;

use super::memory;

/// The most memory that marking may add to a function, whatever the number of studies, in MiB.
pub const PEAK_BOUND: f64 = 25.0;

/// How many studies are looked at together.
const PAGE: usize = 1_000;

/// One study in this many repeats an earlier one.
const REPEATED: u64 = 10;

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// How many studies there were, each with a DOI, a PubMed identifier, and title, year and author.
    pub studies: u64,
    /// How many repeat an earlier one.
    pub marked: u64,
    /// How often all of them were looked at.
    pub passes: u32,
    /// The time that matching took.
    pub seconds: f64,
    /// The most memory that was added meanwhile, in MiB; none where the system does not tell.
    pub added_mib: Option<f64>,
}

impl Report {
    /// Whether every repeated study was found, within the bound.
    pub fn holds(&self) -> bool {
        self.marked == self.studies / REPEATED && self.added_mib.is_none_or(|added| added <= PEAK_BOUND)
    }
}

/// Marks the duplicates among so many studies.
pub fn measure(studies: u64) -> Report {
    // What a share gives up is found once more in another one.
    let mut marks: Vec<bool> = (0..studies).map(|_| false).collect();
    memory::reset_peak();
    let before = memory::resident_mib();
    let (mut passes, mut took) = (0, Duration::ZERO);
    let mut left = vec![Share::ALL];
    while let Some(share) = left.pop() {
        let mut matcher = Matcher::of(share);
        passes += 1;
        for (page, marks) in marks.chunks_mut(PAGE).enumerate() {
            let studies: Vec<Identity> = (0..marks.len()).map(|n| study((page * PAGE + n) as u64)).collect();
            let began = Instant::now();
            for (mark, study) in marks.iter_mut().zip(&studies) {
                *mark |= matcher.look(0, study).is_some();
            }
            left.extend(matcher.confine());
            took += began.elapsed();
        }
    }
    let added_mib = memory::peak_mib().zip(before).map(|(peak, before)| peak - before);
    let marked = marks.into_iter().filter(|mark| *mark).count() as u64;
    Report { studies, marked, passes, seconds: took.as_secs_f64(), added_mib }
}

/// Every tenth has the PubMed identifier of the one before, and nothing else in common with it.
fn study(n: u64) -> Identity {
    let pmid = if n % REPEATED == REPEATED - 1 { n - 1 } else { n };
    Identity {
        record: n + 1,
        title: format!(
            "Effects of intervention {n} on the outcomes of adults: a randomised controlled trial"
        ),
        year: Some(2020),
        first_author: Some("Family, Given".to_owned()),
        doi: Some(format!("10.5555/journal.2020.{n}")),
        pmid: Some(format!("{}", 30_000_000 + pmid)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_repetition_is_to_be_found_within_the_bound() {
        let report = measure(5_000);
        assert_eq!((report.marked, report.passes), (500, 1));
        let report = Report { added_mib: Some(25.0), ..report };
        assert!(report.holds());
        assert!(!Report { marked: 499, ..report.clone() }.holds());
        assert!(!Report { added_mib: Some(25.1), ..report }.holds());
    }
}
