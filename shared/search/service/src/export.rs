//! Exports that are created as objects.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use imports::exports::ExportContent;
use imports::messages::{MakeExport, SearchToExport};
use imports::{
    ExportFolder, ExportId, ExportKey, ExportLink, FileId, Job, ParseCommand, ProjectId, SearchId,
};
use messages::StoreError;
use outbox::session::CommitError;
use outbox::{Key, Record};
use serde::{Deserialize, Serialize};
use writers::Format;

use crate::content;
use crate::exported_studies::{DamagedStudy, ExportOptions, FileToExport};
use crate::selection::StudySelection;
use crate::tries::MAX_TRIES;
use crate::{Error, FilesToExport, ProjectAccess, SearchService};

/// The maximum number of stored exports of one search, or of several searches of one review. Exports in progress do not
/// count.
const MAX_EXPORTS: usize = 20;
/// The maximum number of stored objects in a folder without studies. They are empty, and do not prevent exports of other
/// studies.
const MAX_FAILED_EXPORTS: usize = 200;
/// The maximum number of exports of one project in progress, waiting or running. Each may occupy a parser for 15
/// minutes, and all projects share the parsers.
pub const MAX_IN_PROGRESS: usize = 4;
/// The last word of each file name.
const STUDIES: &str = "studies";
/// The kind of the record that lists a project's exports in progress.
const IN_PROGRESS: &str = "exports-under-way";
/// The lifetime of a link. The credentials of the function's role that sign it may expire earlier, but not within
/// minutes.
const LINK_VALID_FOR: Duration = Duration::from_secs(15 * 60);

/// The maximum length of a name in a file name, in characters.
const MAX_NAME: usize = 80;

/// Returns the file name of a downloaded export, from the name of its review or import, or both.
pub fn export_file(names: &[Option<&str>], format: Format) -> String {
    let name = |name: &str| {
        let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join("-").chars().take(MAX_NAME).collect::<String>()
    };
    let names = names.iter().flatten().map(|text| name(text)).filter(|name| !name.is_empty());
    let names = names.chain([STUDIES.to_owned()]).collect::<Vec<_>>();
    format!("{}.{}", names.join("-"), format.ending())
}

/// The state of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportState {
    /// The export can be downloaded.
    Ready(ExportLink),
    /// The export was requested and is not ready.
    Awaited,
    /// The export cannot be created.
    Failed(DamagedStudy),
    /// The export was never requested, could not be created, was removed with an import, or has expired.
    Unknown,
}

/// Reasons to refuse an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExportRefusal {
    /// The folder has the maximum number of stored exports.
    #[error(
        "there are {MAX_EXPORTS} exports, which is the maximum; download one of them, or try again when the oldest \
         of them is a day old"
    )]
    TooMany,
    /// The review has no imports.
    #[error("the review has no imports")]
    Empty,
    /// The project has the maximum number of exports in progress.
    #[error(
        "{MAX_IN_PROGRESS} exports of this review are being created, which is the maximum; try again when one of them is \
         ready"
    )]
    TooManyUnderWay,
    /// The list of files exceeds the size of a command.
    #[error(
        "the export has too many files: {0}; export the imports of the review in several parts, or as JSON Lines"
    )]
    TooManyFiles(usize),
}

/// A requested export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ExportInProgress {
    search_id: SearchId,
    export_id: ExportId,
}

fn in_progress(project: ProjectId) -> Key {
    Key::new(IN_PROGRESS, project.to_string())
}

fn read_in_progress(project: ProjectId, record: Option<Record>) -> Result<Vec<ExportInProgress>, StoreError> {
    content::or_default(record, || format!("reading the exports in progress of project {project}"))
}

impl SearchService {
    /// Requests the creation of an export of these imports, unless there are too many. The export belongs to the first
    /// import that has files. The session that sends the command also counts the export, so concurrent requests cannot
    /// exceed the limit.
    ///
    /// # Errors
    /// Returns an error if a store or queue is unavailable; the export may or may not be created.
    pub async fn make_export(
        &self,
        project_id: ProjectId,
        wanted: &ExportOptions,
        files: &FilesToExport,
    ) -> Result<Result<(SearchId, ExportId), ExportRefusal>, Error> {
        let mut searches: Vec<SearchToExport> = Vec::new();
        for FileToExport { search, file } in &files.files {
            match searches.last_mut().filter(|last| last.search_id == *search) {
                Some(last) => drop(last.files.insert(file.file_id)),
                None => searches
                    .push(SearchToExport { search_id: *search, files: BTreeSet::from([file.file_id]) }),
            }
        }
        let mut searches = searches.into_iter();
        let first = searches.next().or_else(|| {
            files.jobs.first().map(|job| SearchToExport { search_id: job.search_id, files: BTreeSet::new() })
        });
        let Some(SearchToExport { search_id: search, files: own }) = first else {
            return Ok(Err(ExportRefusal::Empty));
        };
        let others: Vec<_> = searches.collect();
        let folder = ExportFolder::of(project_id, search, !others.is_empty() || wanted.merged);
        let stored = self.bucket.find(&folder.to_string()).await?;
        let with_studies = stored.iter().filter(|object| ExportKey::has_studies(&object.key)).count();
        if with_studies >= MAX_EXPORTS || stored.len() >= MAX_EXPORTS + MAX_FAILED_EXPORTS {
            return Ok(Err(ExportRefusal::TooMany));
        }
        let sources = self.sources_for(&files.jobs, wanted).await?;
        let ExportOptions { format, studies: StudySelection { which: studies, text }, merged } = wanted;
        for _ in 0..MAX_TRIES {
            let mut session = self.entry.session(search);
            let stored = read_in_progress(project_id, session.read(in_progress(project_id)).await?)?;
            let mut exports = self.still_in_progress(project_id, stored).await?;
            if exports.len() >= MAX_IN_PROGRESS {
                return Ok(Err(ExportRefusal::TooManyUnderWay));
            }
            let export_id = ExportId::from_uuid(self.host().fresh_id());
            exports.push(ExportInProgress { search_id: search, export_id });
            session.write(
                in_progress(project_id),
                content::of(&exports, "serializing the exports in progress")?,
            );
            let command = MakeExport {
                project_id,
                export_id,
                files: own.clone(),
                format: *format,
                studies: *studies,
                text: text.as_ref().map(|text| text.as_str().to_owned()),
                others: others.clone(),
                merged: *merged,
                sources: sources.clone(),
            };
            match session.send(&ParseCommand::MakeExport(command)) {
                Err(error) if error.is_too_large() => {
                    return Ok(Err(ExportRefusal::TooManyFiles(files.files.len())));
                }
                sent => sent?,
            }
            if self.committed(session, "requested an export").await? {
                return Ok(Ok((search, export_id)));
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    /// Returns the exports that are neither ready nor expired.
    async fn still_in_progress(
        &self,
        project: ProjectId,
        exports: Vec<ExportInProgress>,
    ) -> Result<Vec<ExportInProgress>, StoreError> {
        let mut open = Vec::with_capacity(exports.len());
        for export in exports {
            let ExportInProgress { search_id, export_id } = export;
            if export_id.is_awaited(self.host().now())
                && self.stored_export(project, search_id, export_id).await?.is_empty()
            {
                open.push(export);
            }
        }
        Ok(open)
    }

    /// Returns the keys of an export's objects. Only the keys contain its format, and whether it is of one search.
    async fn stored_export(
        &self,
        project: ProjectId,
        search: SearchId,
        export: ExportId,
    ) -> Result<Vec<ExportKey>, StoreError> {
        for folder in [ExportFolder::Search(project, search), ExportFolder::Review(project)] {
            let found = self.bucket.find(&folder.beginning(export)).await?;
            if !found.is_empty() {
                let keys = found.iter().filter_map(|object| ExportKey::read(folder, &object.key));
                return Ok(keys.collect());
            }
        }
        Ok(Vec::new())
    }

    /// Returns the state of an export, or `None` if the search does not exist or the caller cannot access it.
    pub async fn export(
        &self,
        caller: &ProjectAccess,
        search: SearchId,
        export: ExportId,
    ) -> Result<Option<ExportState>, StoreError> {
        let Some(job) = self.find(caller, search).await? else { return Ok(None) };
        let review = self.review(job.project_id).await?.map(|review| review.name);
        let project = job.project_id;
        let (mut damaged, mut is_removed) = (None, false);
        for key in self.stored_export(project, search, export).await? {
            match key.content {
                // A repeated command finds the study intact after a restore.
                ExportContent::Studies(format) => {
                    let name = export_file(&[review.as_deref()], format);
                    if let Some(link) = self.exports.link(&key, &name, LINK_VALID_FOR).await? {
                        return Ok(Some(ExportState::Ready(link)));
                    }
                }
                ExportContent::Damaged(study) => damaged = Some(study),
                ExportContent::Removed => is_removed = true,
            }
        }
        Ok(Some(match damaged {
            Some(study) => {
                let files = self.studies.parsed(study.search_id).await?;
                let file = files.into_iter().find(|file| file.file_id == study.file_id);
                let file = file.map_or_else(|| study.file_id.to_string(), |file| file.name);
                ExportState::Failed(DamagedStudy { study, file })
            }
            None if !is_removed && export.is_awaited(self.host().now()) => ExportState::Awaited,
            None => ExportState::Unknown,
        }))
    }

    /// Returns the database and platform of each file of these searches, for the formats that state them.
    pub async fn sources_for(
        &self,
        jobs: &[Job],
        wanted: &ExportOptions,
    ) -> Result<BTreeMap<FileId, writers::Source>, StoreError> {
        // Exports as JSON Lines do not contain sources.
        if wanted.format == Format::Jsonl { Ok(BTreeMap::new()) } else { self.labels_of(jobs).await }
    }

    /// Returns the source of each file of a search, as it is written with its studies.
    pub async fn labels(&self, job: &Job) -> Result<BTreeMap<FileId, writers::Source>, StoreError> {
        let known = self.sources(job, &self.repairs(job).await?.repairs).await?;
        Ok(known.into_iter().map(|(file, known)| (file, known.source.into())).collect())
    }
}
