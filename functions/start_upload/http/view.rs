//! What the API shows, which may change otherwise than what is stored.

use std::collections::BTreeMap;

use imports::{FileId, Job, JobFile, Outcome, SearchId};
use imports::{PresignedPost, Progress};
use jiff::Timestamp;
use outbox::{Cursor, Page};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::start_upload::{Announced, Upload};

/// An announced search.
#[derive(Serialize, ToSchema)]
pub(super) struct AnnouncedView {
    search_id: Uuid,
    /// The files to upload, in the order of the request; in the answer to a repeated request those that have not
    /// arrived.
    files: Vec<UploadView>,
}

/// A file to upload.
#[derive(Serialize, ToSchema)]
struct UploadView {
    file_id: Uuid,
    name: String,
    upload: FormView,
}

/// A form that uploads one file: to be sent as `multipart/form-data` with all of `fields` first and the file last, as
/// `file`.
#[derive(Serialize, ToSchema)]
struct FormView {
    url: String,
    fields: BTreeMap<String, String>,
    /// When the form ends, as RFC 3339 has it.
    expires_at: String,
}

/// A search.
#[derive(Serialize, ToSchema)]
pub(super) struct SearchView {
    search_id: Uuid,
    project_id: Uuid,
    /// Unknown while only files that nobody announced have arrived.
    name: Option<String>,
    /// `Uploading`, `Uploaded`, `Parsing`, `Completed` or `Error`.
    state: String,
    /// Why it ended in `Error`.
    reason: Option<String>,
    /// Studies stored so far, of files that were read to their end.
    studies: u64,
    files: Vec<FileView>,
    created_at: String,
    completed_at: Option<String>,
}

/// A file of a search.
#[derive(Serialize, ToSchema)]
struct FileView {
    file_id: Uuid,
    name: Option<String>,
    size_bytes: Option<u64>,
    /// Whether it has arrived.
    received: bool,
    /// How far it has been read.
    progress: Option<ProgressView>,
    /// What came of it.
    outcome: Option<OutcomeView>,
}

/// How far a file has been read.
#[derive(Serialize, ToSchema)]
struct ProgressView {
    records: u64,
    bytes: u64,
}

/// What came of a file.
#[derive(Serialize, ToSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum OutcomeView {
    /// It was read to its end.
    Completed { format: String, encoding: String, records: u64, studies: u64, quarantined: u64 },
    /// It was refused or could not be read; nothing of it is stored.
    Failed { reason: String },
}

/// Some of the searches of a project.
#[derive(Serialize, ToSchema)]
pub(super) struct SearchList {
    searches: Vec<SearchView>,
    /// Where the page ends, for the next one's `after`; none when nothing follows.
    next: Option<String>,
}

impl From<Announced> for AnnouncedView {
    fn from(announced: Announced) -> Self {
        let files = announced.files.into_iter().map(UploadView::from).collect();
        Self { search_id: announced.search_id.as_uuid(), files }
    }
}

impl From<Upload> for UploadView {
    fn from(Upload { file_id, name, upload }: Upload) -> Self {
        let PresignedPost { url, fields, expires_at } = upload;
        Self {
            file_id: file_id.as_uuid(),
            name,
            upload: FormView { url, fields, expires_at: expires_at.to_string() },
        }
    }
}

impl SearchView {
    pub(super) fn of(job: Job, progress: &[(FileId, Progress)]) -> Self {
        Self {
            search_id: job.search_id.as_uuid(),
            project_id: job.project_id.as_uuid(),
            studies: job.studies(),
            name: job.name,
            state: job.state.to_string(),
            reason: job.reason,
            files: job.files.into_iter().map(|file| FileView::of(file, progress)).collect(),
            created_at: job.created_at.to_string(),
            completed_at: job.completed_at.map(|at| at.to_string()),
        }
    }
}

impl FileView {
    fn of(file: JobFile, progress: &[(FileId, Progress)]) -> Self {
        let progress = progress.iter().find(|(id, _)| *id == file.file_id).map(|(_, progress)| progress);
        Self {
            file_id: file.file_id.as_uuid(),
            name: file.name,
            size_bytes: file.size_bytes,
            received: file.received,
            progress: progress
                .map(|Progress { records, bytes }| ProgressView { records: *records, bytes: *bytes }),
            outcome: file.outcome.map(OutcomeView::from),
        }
    }
}

impl From<Outcome> for OutcomeView {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed(counts) => Self::Completed {
                format: counts.format,
                encoding: counts.encoding,
                records: counts.records,
                studies: counts.studies,
                quarantined: counts.quarantined,
            },
            Outcome::Failed { reason } => Self::Failed { reason },
        }
    }
}

impl From<Page<Job>> for SearchList {
    fn from(page: Page<Job>) -> Self {
        Self {
            searches: page.items.into_iter().map(|job| SearchView::of(job, &[])).collect(),
            next: page.next.map(|next| format!("{}.{}", next.created_at.as_nanosecond(), next.partition)),
        }
    }
}

/// Reads the `next` of a page.
pub(super) fn parse_cursor(text: &str) -> Result<Cursor, ()> {
    let (created_at, search_id) = text.split_once('.').ok_or(())?;
    let nanoseconds = created_at.parse().map_err(|_| ())?;
    Ok(Cursor {
        created_at: Timestamp::from_nanosecond(nanoseconds).map_err(|_| ())?,
        partition: search_id.parse::<SearchId>().map_err(|_| ())?,
    })
}
