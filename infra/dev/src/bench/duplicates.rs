//! How much memory the marking of duplicates takes, and how long it looks.
//!
//! The studies are made up page by page, as `parse-references` reads them from the database, and shown to a matcher for
//! each share; those that it finds are made up once more, and compared. So what is measured is the matching, without a
//! database.

use std::time::{Duration, Instant};

use imports::{Identity, Matcher, Share};
use references::Reference;
use serde::Serialize;

use super::memory;

/// The most memory that marking may add to a function, whatever the number of studies, in MiB.
pub const PEAK_BOUND: f64 = 60.0;

/// How many studies are looked at together.
const PAGE: usize = 1_000;

/// One study in this many repeats an earlier one.
const REPEATED: u64 = 10;

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// How many studies there were, each with all that is compared.
    pub studies: u64,
    /// How many repeat an earlier one.
    pub marked: u64,
    /// How often all of them were looked at.
    pub passes: u32,
    /// The time that making them up, folding and matching took.
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
            let began = Instant::now();
            let studies: Vec<Identity> = (0..marks.len()).map(|n| study((page * PAGE + n) as u64)).collect();
            for (mark, study_here) in marks.iter_mut().zip(&studies) {
                let earlier = matcher.look(0, study_here);
                *mark |=
                    earlier.iter().any(|(_, record)| study_here.repeats(&study(record - 1).fields).is_some());
            }
            left.extend(matcher.confine());
            took += began.elapsed();
        }
    }
    let added_mib = memory::peak_mib().zip(before).map(|(peak, before)| peak - before);
    let marked = marks.into_iter().filter(|mark| *mark).count() as u64;
    Report { studies, marked, passes, seconds: took.as_secs_f64(), added_mib }
}

/// Every tenth is the one before, as another database has it.
fn study(n: u64) -> Identity {
    let is_repeated = n % REPEATED == REPEATED - 1;
    let work = if is_repeated { n - 1 } else { n };
    let text = |text: String| Some(text);
    let reference = Reference {
        title: format!(
            "Effects of intervention {work} on the outcomes of adults: a randomised controlled trial"
        ),
        authors: vec![if is_repeated { "Family G".to_owned() } else { "Family, Given".to_owned() }],
        year: Some(2020),
        journal: text(if is_repeated {
            "J Interv".to_owned()
        } else {
            "Journal of Interventions".to_owned()
        }),
        volume: text(format!("{}", work / 1_000)),
        pages: text(format!("{}-{}", work % 1_000, work % 1_000 + 9)),
        doi: (!is_repeated).then(|| format!("10.5555/journal.2020.{work}")),
        pmid: text(format!("{}", 30_000_000 + work)),
        r#abstract: text(format!("Intervention {work} was given to adults. ").repeat(20)),
        ..Reference::default()
    };
    Identity::of(n + 1, &reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_repetition_is_to_be_found_within_the_bound() {
        let report = measure(5_000);
        assert_eq!((report.marked, report.passes), (500, 1));
        let report = Report { added_mib: Some(60.0), ..report };
        assert!(report.holds());
        assert!(!Report { marked: 499, ..report.clone() }.holds());
        assert!(!Report { added_mib: Some(60.1), ..report }.holds());
    }
}
