//! What a review reports by PRISMA 2020: how many records were identified in which source, how many were removed before
//! screening and why, and how many are left (<https://www.prisma-statement.org/prisma-2020-flow-diagram>).

use std::collections::BTreeMap;

use imports::{FileId, Job, JobState, Marked, Outcome, ProjectId};
use messages::StoreError;

use super::Source;
use crate::{Fate, FileOf, SearchService};

/// The most searches of a project that are added up: each takes several reads.
const MOST_SEARCHES: usize = 1_000;

/// Why nothing can be reported.
#[derive(Debug, thiserror::Error)]
pub enum FlowError {
    /// More searches than one request looks at.
    #[error("the project has more than {MOST_SEARCHES} searches")]
    TooMany,
    /// A store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What was found, and what became of it. It closes: `records` = `unread` + `studies`, `studies` = `duplicates` + `left`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Files that were read to their end.
    pub files: u64,
    /// Records identified: all that are in the files. One that was mended counts once.
    pub records: u64,
    /// Records that could not be read.
    pub unread: u64,
    /// Records that were read.
    pub studies: u64,
    /// Studies that repeat an earlier one of the project: all that are `marked`, but those that are only possible.
    pub duplicates: u64,
    /// How it is known that they do, and how many possibly do.
    pub marked: Marked,
    /// Studies that are left for screening.
    pub left: u64,
}

/// A source, and what was found there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The source; empty where nobody has said it and the files do not show it.
    pub source: Source,
    /// Whether some of it is guessed.
    pub is_guessed: bool,
    /// What was found there.
    pub sums: Sums,
}

/// What a review reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flow {
    /// The sources in the order of their names, the unknown one first.
    pub lines: Vec<Line>,
    /// All of them together.
    pub sums: Sums,
    /// Searches that were added up: those that have completed.
    pub searches: u64,
    /// Searches that have not ended: the sums will change.
    pub open: u64,
    /// Files that were refused, and that no repair has read.
    pub failed_files: u64,
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

/// Everything that is known of the searches of a project.
pub(super) async fn flow(function: &SearchService, project: ProjectId) -> Result<Flow, FlowError> {
    let (mut flow, mut lines) = (Flow::default(), BTreeMap::<Source, (bool, Sums)>::new());
    let (mut after, mut looked_at) = (None, 0);
    loop {
        let page = function.jobs.of_project(project, after, 200).await?;
        looked_at += page.items.len();
        for job in &page.items {
            match job.state {
                JobState::Completed | JobState::Error => add(function, job, &mut flow, &mut lines).await?,
                JobState::Uploading | JobState::Uploaded | JobState::Parsing => flow.open += 1,
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
        if looked_at >= MOST_SEARCHES {
            return Err(FlowError::TooMany);
        }
    }
    for (source, (is_guessed, sums)) in lines {
        flow.sums.add(sums);
        flow.lines.push(Line { source, is_guessed, sums });
    }
    Ok(flow)
}

async fn add(
    function: &SearchService,
    job: &Job,
    flow: &mut Flow,
    lines: &mut BTreeMap<Source, (bool, Sums)>,
) -> Result<(), FlowError> {
    flow.searches += u64::from(job.state == JobState::Completed);
    let known = function.repairs(job).await?;
    let fate = |file| known.fate(file);
    let marked: BTreeMap<FileId, Marked> = function.marked(job).await?.into_iter().collect();
    let mut sources = function.sources(job, &known.repairs).await?;
    for file in &job.files {
        let this = FileOf { search_id: job.search_id, file_id: file.file_id };
        let Some(Outcome::Completed(counts)) = &file.outcome else {
            let is_repaired = known.repairs.reads_anew(this, fate).is_some();
            flow.failed_files += u64::from(!is_repaired);
            continue;
        };
        // Records that were mended are counted where they were read.
        let read = known.repairs.files.iter().filter(|repaired| {
            repaired.of == this && !repaired.is_whole() && known.fate(repaired.by) == Fate::Read
        });
        let mended: u64 = read.map(|repaired| repaired.records.len() as u64).sum();
        let mended = mended.min(counts.quarantined);
        let marked = marked.get(&file.file_id).copied().unwrap_or_default();
        let repeated = marked.duplicates().min(counts.studies);
        let sums = Sums {
            files: 1,
            records: counts.records - mended,
            unread: counts.quarantined - mended,
            studies: counts.studies,
            duplicates: repeated,
            marked,
            left: counts.studies - repeated,
        };
        let known = sources.remove(&file.file_id).unwrap_or_default();
        let (is_guessed, all) = lines.entry(known.source).or_default();
        *is_guessed |= !known.is_given;
        all.add(sums);
    }
    Ok(())
}
