//! PRISMA 2020 counts of a project: records identified by source, records removed before screening by reason, and
//! records that remain (<https://www.prisma-statement.org/prisma-2020-flow-diagram>).

use std::collections::BTreeMap;

use imports::{DuplicateCounts, FileId, FileRef, Job, JobState, Outcome, ProjectId};
use messages::StoreError;

use super::{Method, Source};
use crate::{Fate, SearchService, TooManyImports};

/// Errors of the PRISMA report.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// The project has more searches than one request counts.
    #[error(transparent)]
    TooMany(#[from] TooManyImports),
    /// A store is unavailable.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// PRISMA counts of records. Invariants: `records = unread + studies` and `studies = duplicates + left`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Files that were read completely.
    pub files: u64,
    /// Records identified: all records of the files. A record that was corrected by a repair counts once.
    pub records: u64,
    /// Records that could not be read.
    pub unread: u64,
    /// Records that were read.
    pub studies: u64,
    /// Studies that repeat an earlier one of the project: all `marked` ones except those that are only possible
    /// duplicates.
    pub duplicates: u64,
    /// The marks by how they were determined, including possible duplicates.
    pub marked: DuplicateCounts,
    /// Studies that remain for screening.
    pub left: u64,
}

/// The counts of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The source; empty if it was neither set nor guessed from the files.
    pub source: Source,
    /// How its records were identified.
    pub method: Method,
    /// `true` if some of it is guessed.
    pub is_guessed: bool,
    /// The counts.
    pub sums: Sums,
}

/// The PRISMA counts of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flow {
    /// The sources ordered by method and name, with the unknown one first.
    pub lines: Vec<Line>,
    /// The totals.
    pub sums: Sums,
    /// The number of completed searches, which are counted.
    pub searches: u64,
    /// The number of unfinished searches; the counts will change.
    pub open: u64,
    /// The number of failed files that no repair has read.
    pub failed_files: u64,
}

impl Flow {
    /// Returns the sources whose records were identified by a method.
    pub fn of(&self, method: Method) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| line.method == method)
    }
}

impl Sums {
    fn add(&mut self, other: Self) {
        self.files += other.files;
        self.records += other.records;
        self.unread += other.unread;
        self.studies += other.studies;
        self.duplicates += other.duplicates;
        self.marked = self.marked.with(other.marked);
        self.left += other.left;
    }
}

/// Counts all searches of a project.
pub(super) async fn flow(service: &SearchService, project: ProjectId) -> Result<Flow, FlowError> {
    let (mut flow, mut lines) = (Flow::default(), BTreeMap::<(Method, Source), (bool, Sums)>::new());
    for job in &service.jobs_of_review(project).await?? {
        match job.state {
            JobState::Completed | JobState::Error => add(service, job, &mut flow, &mut lines).await?,
            JobState::Uploading | JobState::Uploaded | JobState::Parsing => flow.open += 1,
        }
    }
    for ((method, source), (is_guessed, sums)) in lines {
        flow.sums.add(sums);
        flow.lines.push(Line { source, method, is_guessed, sums });
    }
    Ok(flow)
}

async fn add(
    service: &SearchService,
    job: &Job,
    flow: &mut Flow,
    lines: &mut BTreeMap<(Method, Source), (bool, Sums)>,
) -> Result<(), FlowError> {
    flow.searches += u64::from(job.state == JobState::Completed);
    let known = service.repairs(job).await?;
    let fate = |file| known.fate(file);
    let marked: BTreeMap<FileId, DuplicateCounts> = service.marked(job).await?.into_iter().collect();
    let mut sources = service.sources(job, &known.repairs).await?;
    for file in &job.files {
        let this = FileRef::new(job.search_id, file.file_id);
        let Some(Outcome::Completed(counts)) = &file.outcome else {
            let is_repaired = known.repairs.reread_by(this, fate).is_some();
            // A repair that failed is another attempt at a file that is counted in its own import.
            flow.failed_files += u64::from(!is_repaired && job.repairs.is_none());
            continue;
        };
        // Corrected records are counted in the file that corrects them.
        let read = known.repairs.files.iter().filter(|repaired| {
            repaired.of == this && !repaired.is_whole() && known.fate(repaired.by) == Fate::Read
        });
        let corrected: u64 = read.map(|repaired| repaired.records.len() as u64).sum();
        let corrected = corrected.min(counts.quarantined);
        let marked = marked.get(&file.file_id).copied().unwrap_or_default();
        let repeated = marked.duplicates().min(counts.studies);
        let sums = Sums {
            files: 1,
            records: counts.records - corrected,
            unread: counts.quarantined - corrected,
            studies: counts.studies,
            duplicates: repeated,
            marked,
            left: counts.studies - repeated,
        };
        let known = sources.remove(&file.file_id).unwrap_or_default();
        let (is_guessed, all) = lines.entry((known.source.method(), known.source)).or_default();
        *is_guessed |= !known.is_given;
        all.add(sums);
    }
    Ok(())
}
