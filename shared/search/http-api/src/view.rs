//! Views of searches: the API's representation, which is independent of the stored one.

use std::collections::BTreeMap;

use imports::{FileId, FilePhase, FileRef, Job, JobFile, Outcome, Part, PresignedPost, Progress};
use messages::StoreError;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::sources::SourceView;
use service::sources;
use service::{AnnouncedSearch, Fate, RepairedFile, SearchRepairs, SearchService, Upload};

/// An announced import.
#[derive(Serialize, ToSchema)]
pub(super) struct AnnouncedView {
    /// The import's id.
    search_id: Uuid,
    /// The files to upload, in the order of the request. The response to a repeated request lists only files that
    /// have not arrived.
    files: Vec<UploadView>,
}

/// A file to upload.
#[derive(Serialize, ToSchema)]
struct UploadView {
    /// The file's id within the import.
    file_id: Uuid,
    /// Its name as announced.
    name: String,
    /// The form that uploads it.
    upload: FormView,
}

/// A form that uploads one file. Send it as `multipart/form-data`, with all `fields` first and the file last, as
/// `file`.
#[derive(Serialize, ToSchema)]
struct FormView {
    /// The URL to send the form to.
    url: String,
    /// The fields to send unchanged.
    fields: BTreeMap<String, String>,
    /// The time at which the form expires, in RFC 3339 format.
    expires_at: String,
}

/// An import of a set of files (a search).
#[derive(Serialize, ToSchema)]
pub(super) struct SearchView {
    /// The import's id.
    search_id: Uuid,
    /// The id of the review that it belongs to.
    project_id: Uuid,
    /// Its name; null if only unannounced files have arrived so far.
    #[schema(required)]
    name: Option<String>,
    /// `Uploading`, `Uploaded`, `Parsing`, `Completed` or `Error`.
    state: String,
    /// The reason why the import ended in `Error`.
    #[schema(required)]
    reason: Option<String>,
    /// Number of studies stored so far, from files that were read completely.
    studies: u64,
    /// Counts over all files that were read completely; absent from the list of all reviews. Corrected records are
    /// counted as not imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    totals: Option<TotalsView>,
    /// Counts over all files that were read completely, including those of imports that repair this one; present only
    /// for a repaired import. Corrected records are not counted again.
    #[serde(skip_serializing_if = "Option::is_none")]
    totals_with_repairs: Option<TotalsView>,
    /// The id of the import that this one repairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    repairs: Option<Uuid>,
    /// Its files, in the order of the announcement.
    files: Vec<FileView>,
    /// The time at which it was announced, in RFC 3339 format.
    created_at: String,
    /// The time at which it ended.
    #[schema(required)]
    completed_at: Option<String>,
}

/// Counts over the files of an import. Invariants: `records` = `studies` + `unread`, and `studies` = `unique` +
/// `duplicates`.
#[derive(Default, Serialize, ToSchema)]
struct TotalsView {
    /// Records in the files.
    records: u64,
    /// Records that were read.
    studies: u64,
    /// Records that were not imported because they could not be read.
    unread: u64,
    /// Studies that do not repeat an earlier one of the review.
    unique: u64,
    /// Studies that repeat an earlier one of the review.
    duplicates: u64,
}

/// A file of an import.
#[derive(Serialize, ToSchema)]
struct FileView {
    /// The file's id within the import.
    file_id: Uuid,
    /// Its name; null until it is announced or has arrived.
    #[schema(required)]
    name: Option<String>,
    /// Its size in bytes: the announced size until it arrives, then the stored size.
    #[schema(required)]
    size_bytes: Option<u64>,
    /// `true` if the file has arrived.
    received: bool,
    /// The processing phase; present only if a single import is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<PhaseView>,
    /// The percentage of bytes that have been read; present only while the file is being read.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_percent: Option<u8>,
    /// The number of records and bytes read so far.
    #[schema(required)]
    progress: Option<ProgressView>,
    /// The result of reading the file.
    #[schema(required)]
    outcome: Option<OutcomeView>,
    /// The source of its records, once the file is read or a reviewer has set it; present only if a single import is
    /// requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<SourceView>,
    /// The file that this one replaces; present only if a single import is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    repairs: Option<RepairedFileView>,
    /// The files that replace this one or some of its records; present only if a single import is requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repaired_by: Vec<RepairedFileView>,
}

/// The other file of a repair.
#[derive(Serialize, ToSchema)]
struct RepairedFileView {
    /// The import that the file belongs to.
    search_id: Uuid,
    /// The file's id within that import.
    file_id: Uuid,
    /// The numbers of the records that are corrected, in the repaired file; empty if the whole file is read again.
    records: Vec<u64>,
    /// The state of the repair: `open`, `read` or `failed`.
    state: FileRepairView,
}

/// The state of a file's repair.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum FileRepairView {
    /// The repair has not ended.
    Open,
    /// The file was read completely.
    Read,
    /// The file failed or was deleted. It can be repaired again.
    Failed,
}

/// Progress of reading a file.
#[derive(Serialize, ToSchema)]
struct ProgressView {
    /// Number of records found so far.
    records: u64,
    /// Number of bytes read so far.
    bytes: u64,
}

/// The processing phase of a file.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum PhaseView {
    /// The file has not arrived.
    Awaited,
    /// The file has arrived and is waiting to be read.
    Waiting,
    /// The file is being read.
    Reading,
    /// The file has been read; its duplicates are being marked.
    MarkingDuplicates,
    /// The file was processed completely.
    Done,
    /// The file was rejected, or the import ended without it.
    Failed,
}

/// The result of reading a file.
#[derive(Serialize, ToSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum OutcomeView {
    /// The file was read completely.
    Completed {
        /// The format that was detected from the content, such as `RIS`.
        format: String,
        /// Confidence in the format: `guess`, `likely` or `certain`; empty for files that an earlier version read.
        format_certainty: String,
        /// The encoding that was detected from the content, such as `UTF-8`.
        encoding: String,
        /// Confidence in the encoding, with the same values as for the format.
        encoding_certainty: String,
        /// Number of records in the file, including those that were not imported.
        records: u64,
        /// Number of records that were read.
        studies: u64,
        /// Number of records that were not imported because they could not be read.
        quarantined: u64,
        /// The files of an archive, or the sheets of a workbook, that were read; omitted if the file is not a
        /// container.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        parts: Vec<FilePartView>,
        /// Notes for the reviewer, in sentences: content that was skipped, and fields that are missing in many
        /// records. Omitted if empty.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        notes: Vec<String>,
        /// Studies that repeat an earlier one of the review; present only if a single import is requested.
        #[serde(skip_serializing_if = "Option::is_none")]
        duplicates: Option<u64>,
    },
    /// The file was rejected or could not be read; none of its records are stored.
    Failed {
        /// The reason, in plain language for the reviewer.
        reason: String,
    },
}

/// A file inside an archive, or a sheet of a workbook.
#[derive(Serialize, ToSchema)]
struct FilePartView {
    /// Its path in the archive, or the name of the sheet; empty for the content of a gzip file.
    name: String,
    /// The number of its first record. Records are numbered consecutively across all parts.
    first: u64,
    /// Number of records, including those that were not imported.
    records: u64,
    /// The format that was detected from the content.
    format: String,
    /// The encoding that was detected from the content.
    encoding: String,
}

impl From<Part> for FilePartView {
    fn from(part: Part) -> Self {
        let Part { name, first, records, format, encoding, .. } = part;
        Self { name, first, records, format, encoding }
    }
}

/// A page of imports.
#[derive(Serialize, ToSchema)]
pub(super) struct SearchList {
    /// The imports.
    pub(super) items: Vec<SearchView>,
    /// The cursor for the `after` of the next request; null if no more items follow. A page may be short or empty
    /// even if more pages follow.
    #[schema(required)]
    pub(super) next: Option<String>,
}

impl From<AnnouncedSearch> for AnnouncedView {
    fn from(announced: AnnouncedSearch) -> Self {
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

/// The details of a single search, which lists omit because they take several reads.
pub(super) struct Details {
    /// The reading progress of its files.
    pub(super) progress: Vec<(FileId, Progress)>,
    /// The number of duplicates of each file that was read, including the files of the searches that repair it.
    pub(super) duplicates: Vec<(FileId, u64)>,
    /// Its repairs, and the search that it repairs.
    pub(super) known: SearchRepairs,
    /// The sources of its files.
    pub(super) sources: BTreeMap<FileId, sources::KnownSource>,
}

impl Details {
    pub(super) async fn of(
        function: &SearchService,
        job: &Job,
        progress: Vec<(FileId, Progress)>,
    ) -> Result<Self, StoreError> {
        let listed = Self::of_listed(function, job).await?;
        let sources = function.sources(job, &listed.known.repairs).await?;
        Ok(Self { progress, sources, ..listed })
    }

    /// Returns only what the totals of a search need.
    pub(super) async fn of_listed(function: &SearchService, job: &Job) -> Result<Self, StoreError> {
        let known = function.repairs(job).await?;
        let mut marked = function.marked(job).await?;
        if known.original == job.search_id {
            for repair in known.jobs.values() {
                marked.extend(function.marked(repair).await?);
            }
        }
        let duplicates = marked.into_iter().map(|(file, marked)| (file, marked.duplicates())).collect();
        Ok(Self { progress: Vec::new(), duplicates, known, sources: BTreeMap::new() })
    }

    /// Returns the repairs that have `file` on one side, as views of the other side.
    fn repairs(
        &self,
        side: impl Fn(&RepairedFile) -> (FileRef, FileRef),
        file: FileRef,
    ) -> Vec<RepairedFileView> {
        let views = self.known.repairs.files.iter().filter_map(|repaired| {
            let (this, other) = side(repaired);
            (this == file).then(|| RepairedFileView {
                search_id: other.search_id.as_uuid(),
                file_id: other.file_id.as_uuid(),
                records: repaired.records.iter().copied().collect(),
                state: self.known.fate(repaired.by).into(),
            })
        });
        views.collect()
    }
}

impl From<Fate> for FileRepairView {
    fn from(fate: Fate) -> Self {
        match fate {
            Fate::Open => Self::Open,
            Fate::Read => Self::Read,
            Fate::Failed => Self::Failed,
        }
    }
}

impl SearchView {
    /// Returns the view of a search in a list, with its totals.
    pub(super) fn listed(job: Job, details: &Details) -> Self {
        let totals = TotalsView::of(&job, details);
        let totals_with_repairs = TotalsView::with_repairs(&job, details);
        Self { totals: Some(totals), totals_with_repairs, ..Self::of(job, None) }
    }

    pub(super) fn of(job: Job, details: Option<&Details>) -> Self {
        let (has_ended, search_id) = (job.state.has_ended(), job.search_id);
        let file_of = |file: &JobFile| FileRef::new(search_id, file.file_id);
        Self {
            search_id: job.search_id.as_uuid(),
            project_id: job.project_id.as_uuid(),
            studies: job.studies(),
            totals: details.map(|details| TotalsView::of(&job, details)),
            totals_with_repairs: details.and_then(|details| TotalsView::with_repairs(&job, details)),
            repairs: job.repairs.map(|search| search.as_uuid()),
            name: job.name,
            state: job.state.to_string(),
            reason: job.reason,
            files: job
                .files
                .into_iter()
                .map(|file| FileView::of(file_of(&file), file, has_ended, details))
                .collect(),
            created_at: job.created_at.to_string(),
            completed_at: job.completed_at.map(|at| at.to_string()),
        }
    }
}

fn of_file<T: Copy>(known: &[(FileId, T)], file: FileId) -> Option<T> {
    known.iter().find(|(id, _)| *id == file).map(|(_, value)| *value)
}

impl TotalsView {
    fn of(job: &Job, details: &Details) -> Self {
        let mut totals = Self::default();
        totals.add(job, details);
        totals
    }

    /// Returns the totals including the searches that repair this one, or `None` if it has no repairs.
    fn with_repairs(job: &Job, details: &Details) -> Option<Self> {
        let known = &details.known;
        if known.original != job.search_id || known.jobs.is_empty() {
            return None;
        }
        let mut totals = Self::default();
        std::iter::once(job).chain(known.jobs.values()).for_each(|job| totals.add(job, details));
        let is_there =
            |file: FileRef| file.search_id == job.search_id || known.jobs.contains_key(&file.search_id);
        let read = known
            .repairs
            .files
            .iter()
            .filter(|repaired| is_there(repaired.of) && known.fate(repaired.by) == Fate::Read);
        let corrected: u64 = read.map(|repaired| repaired.records.len() as u64).sum();
        // Corrected records are counted in the file of the repair.
        totals.records = totals.records.saturating_sub(corrected);
        totals.unread = totals.unread.saturating_sub(corrected);
        Some(totals)
    }

    fn add(&mut self, job: &Job, details: &Details) {
        let totals = self;
        for file in &job.files {
            let Some(Outcome::Completed(counts)) = &file.outcome else { continue };
            // Duplicates that exceed the number of studies are marks of studies that were deleted.
            let duplicates =
                of_file(&details.duplicates, file.file_id).unwrap_or_default().min(counts.studies);
            totals.records += counts.records;
            totals.studies += counts.studies;
            totals.unread += counts.quarantined;
            totals.unique += counts.studies - duplicates;
            totals.duplicates += duplicates;
        }
    }
}

impl FileView {
    fn of(this: FileRef, file: JobFile, has_ended: bool, details: Option<&Details>) -> Self {
        let repairs =
            details.and_then(|details| details.repairs(|repaired| (repaired.by, repaired.of), this).pop());
        let repaired_by = details.map(|details| details.repairs(|repaired| (repaired.of, repaired.by), this));
        let progress = details.and_then(|details| of_file(&details.progress, file.file_id));
        let phase = details.map(|_| PhaseView::from(FilePhase::of(&file, has_ended, progress)));
        let percent = |Progress { bytes, .. }: Progress| {
            let size = file.size_bytes.unwrap_or_default().max(1);
            u8::try_from(u128::from(bytes.min(size)) * 100 / u128::from(size)).unwrap_or(100)
        };
        let duplicates = details.and_then(|details| of_file(&details.duplicates, file.file_id));
        Self {
            file_id: file.file_id.as_uuid(),
            name: file.name,
            size_bytes: file.size_bytes,
            received: file.received,
            phase,
            read_percent: progress.filter(|_| phase == Some(PhaseView::Reading)).map(percent),
            progress: progress.map(|Progress { records, bytes }| ProgressView { records, bytes }),
            outcome: file.outcome.map(|outcome| OutcomeView::of(outcome, duplicates)),
            source: details.and_then(|details| details.sources.get(&file.file_id).cloned()).map(Into::into),
            repairs,
            repaired_by: repaired_by.unwrap_or_default(),
        }
    }
}

impl From<FilePhase> for PhaseView {
    fn from(phase: FilePhase) -> Self {
        match phase {
            FilePhase::Awaited => Self::Awaited,
            FilePhase::Waiting => Self::Waiting,
            FilePhase::Reading => Self::Reading,
            FilePhase::MarkingDuplicates => Self::MarkingDuplicates,
            FilePhase::Done => Self::Done,
            FilePhase::Failed => Self::Failed,
        }
    }
}

impl OutcomeView {
    fn of(outcome: Outcome, duplicates: Option<u64>) -> Self {
        match outcome {
            Outcome::Completed(counts) => Self::Completed {
                format: counts.format,
                format_certainty: counts.format_certainty,
                encoding: counts.encoding,
                encoding_certainty: counts.encoding_certainty,
                records: counts.records,
                studies: counts.studies,
                quarantined: counts.quarantined,
                parts: counts.parts.into_iter().map(FilePartView::from).collect(),
                notes: counts.notes,
                duplicates,
            },
            Outcome::Failed { reason } => Self::Failed { reason },
        }
    }
}

#[cfg(test)]
mod tests {
    use imports::ids::SearchId;
    use imports::{Counts, JobState, ProjectId};
    use jiff::Timestamp;
    use uuid::Uuid;

    use super::*;
    use service::Repairs;

    const FILE: FileId = FileId::from_uuid(Uuid::nil());

    fn file(received: bool, outcome: Option<Outcome>) -> JobFile {
        let (name, size_bytes) = (Some("a.ris".to_owned()), Some(200));
        JobFile { file_id: FILE, name, size_bytes, announced_bytes: None, received, outcome }
    }

    fn details(progress: Vec<(FileId, Progress)>, duplicates: Vec<(FileId, u64)>) -> Details {
        let (original, jobs) = (SearchId::from_uuid(Uuid::nil()), BTreeMap::new());
        Details {
            progress,
            duplicates,
            known: SearchRepairs { original, repairs: Repairs::default(), jobs },
            sources: BTreeMap::new(),
        }
    }

    fn completed() -> Option<Outcome> {
        let counts = Counts { records: 10, studies: 8, quarantined: 2, ..Counts::default() };
        Some(Outcome::Completed(counts))
    }

    fn shown(state: JobState, file: JobFile, details: Option<&Details>) -> serde_json::Value {
        let job = Job {
            search_id: SearchId::from_uuid(Uuid::nil()),
            project_id: ProjectId::from_uuid(Uuid::nil()),
            name: None,
            state,
            reason: None,
            files: vec![file],
            repairs: None,
            created_at: Timestamp::UNIX_EPOCH,
            completed_at: None,
            revision: 1,
        };
        serde_json::to_value(SearchView::of(job, details)).unwrap()
    }

    #[test]
    fn file_phase_follows_from_progress_and_outcome() {
        let failed = Some(Outcome::Failed { reason: "no text".into() });
        let parsing = JobState::Parsing;
        for (state, file, bytes, phase, percent) in [
            (JobState::Uploading, file(false, None), None, "awaited", None),
            (parsing, file(true, None), None, "waiting", None),
            (parsing, file(true, None), Some(0), "reading", Some(0)),
            (parsing, file(true, None), Some(199), "reading", Some(99)),
            (parsing, file(true, None), Some(200), "marking_duplicates", None),
            (parsing, file(true, completed()), Some(200), "done", None),
            (parsing, file(true, failed), Some(20), "failed", None),
            (JobState::Error, file(false, None), None, "failed", None),
        ] {
            let progress = bytes.map(|bytes| (FILE, Progress { records: 1, bytes })).into_iter().collect();
            let shown = shown(state, file, Some(&details(progress, Vec::new())));
            let shown = &shown["files"][0];
            assert_eq!((&shown["phase"], shown["read_percent"].as_u64()), (&phase.into(), percent));
        }
    }

    #[test]
    fn totals_account_for_every_record() {
        for duplicates in [0, 3, 8, 9] {
            let details = details(Vec::new(), vec![(FILE, duplicates)]);
            let shown = shown(JobState::Completed, file(true, completed()), Some(&details));
            let total = |name: &str| shown["totals"][name].as_u64().unwrap();
            assert_eq!(total("records"), total("studies") + total("unread"));
            assert_eq!(total("studies"), total("unique") + total("duplicates"));
            assert_eq!(total("duplicates"), duplicates.min(8));
        }
    }

    #[test]
    fn lists_omit_details() {
        let shown = shown(JobState::Parsing, file(true, completed()), None);
        assert_eq!(shown.get("totals"), None);
        assert_eq!(shown["files"][0].get("phase"), None);
        assert_eq!(shown["files"][0]["outcome"].get("duplicates"), None);
    }
}
