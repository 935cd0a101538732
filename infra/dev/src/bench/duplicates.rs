//! How much memory the marking of duplicates takes, and how long.
//!
//! The studies are made up and stored in a database of its own, as `parse-references` stores them; then the file counts as
//! read, and they are compared and marked, as it does that.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backend::SystemHost;
use embedded::Store;
use functions::parse_references::Duplicates;
use imports::messages::ObjectRef;
use imports::{
    Fenced, FileId, ParsedFile, ProjectId, ReadStudies, SearchId, Study, StudyAt, TrackReading, WriteStudies,
};
use messages::Host;
use references::{READER_VERSION, Reference};
use serde::Serialize;

use super::memory;

/// The most memory that marking may add to a function, whatever the number of studies, in MiB.
pub const PEAK_BOUND: f64 = 60.0;

/// How many studies are stored together.
const BATCH: u64 = 1_000;

/// One study in this many repeats an earlier one.
const REPEATED: u64 = 10;

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// How many studies there were, each with all that is compared.
    pub studies: u64,
    /// How many repeat an earlier one.
    pub marked: u64,
    /// The time that storing them took.
    pub storing_s: f64,
    /// The time that comparing and marking them took.
    pub marking_s: f64,
    /// The most memory that was added by marking, in MiB; none where the system does not tell.
    pub added_mib: Option<f64>,
}

impl Report {
    /// Whether every repeated study was found, within the bound.
    pub fn holds(&self) -> bool {
        self.marked == self.studies / REPEATED && self.added_mib.is_none_or(|added| added <= PEAK_BOUND)
    }
}

/// Marks the duplicates among so many studies, in a data directory below `dir`.
///
/// # Errors
/// When the database does not answer.
pub async fn measure(dir: &Path, studies: u64) -> anyhow::Result<Report> {
    let folder = tempfile::tempdir_in(dir)?;
    let host = Arc::new(SystemHost);
    let store = Arc::new(Store::open(
        folder.path(),
        host.clone(),
        embedded::Settings::new(&imports::queues::QUEUES),
    )?);
    let id = || host.fresh_id();
    let (project, search_id, file_id) =
        (ProjectId::from_uuid(id()), SearchId::from_uuid(id()), FileId::from_uuid(id()));
    let fence = store.begin(search_id, file_id, READER_VERSION).await?.fence;
    let held = Fenced { search_id, file_id, fence };
    let mut storing = Duration::ZERO;
    for first in (0..studies).step_by(BATCH as usize) {
        let batch: Vec<Study> = (first..studies.min(first + BATCH))
            .map(|n| {
                let at = StudyAt { search_id, file_id, record: n + 1 };
                let reference = reference(n);
                Study {
                    id: at.id(),
                    project_id: project,
                    search_id,
                    file_id,
                    record: at.record,
                    line: at.record,
                    bytes: None,
                    reference,
                    duplicate: None,
                }
            })
            .collect();
        let began = Instant::now();
        store.store(&held, &batch, &[]).await?;
        storing += began.elapsed();
    }
    let object =
        ObjectRef { bucket: "uploads".to_owned(), key: "made up".to_owned(), version: None, size_bytes: 1 };
    let name = "made up".to_owned();
    let announced_at = Some(host.now());
    store
        .finish(&ParsedFile {
            search_id,
            file_id,
            position: 0,
            name,
            object,
            parts: Vec::new(),
            announced_at,
        })
        .await?;
    memory::reset_peak();
    let before = memory::resident_mib();
    let duplicates = Duplicates { stored: store.clone(), compare: store.clone(), records: store.clone() };
    let began = Instant::now();
    duplicates.grown(project, (search_id, file_id), 0, || false).await?;
    let marking = began.elapsed();
    let added_mib = memory::peak_mib().zip(before).map(|(peak, before)| peak - before);
    let marked = store.marked(search_id, file_id).await?.duplicates();
    let (storing_s, marking_s) = (storing.as_secs_f64(), marking.as_secs_f64());
    Ok(Report { studies, marked, storing_s, marking_s, added_mib })
}

/// Every tenth is the one before, as another database has it.
fn reference(n: u64) -> Reference {
    let is_repeated = n % REPEATED == REPEATED - 1;
    let work = if is_repeated { n - 1 } else { n };
    let text = |text: String| Some(text);
    Reference {
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_repetition_is_to_be_found_within_the_bound() {
        let report = measure(&std::env::temp_dir(), 1_000).await.unwrap();
        assert_eq!(report.marked, 100);
        let report = Report { added_mib: Some(60.0), ..report };
        assert!(report.holds());
        assert!(!Report { marked: 99, ..report.clone() }.holds());
        assert!(!Report { added_mib: Some(60.1), ..report }.holds());
    }
}
