//! What the API shows, which may change otherwise than what is stored.

use std::collections::BTreeMap;

use imports::{FileId, Job, JobFile, Outcome, Part, PresignedPost, Progress};
use messages::StoreError;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::sources::SourceView;
use service::sources;
use service::{Announced, Fate, FileOf, Known, Repaired, SearchService, Upload};

/// An announced search.
#[derive(Serialize, ToSchema)]
pub(super) struct AnnouncedView {
    /// The id under which the search can be read.
    search_id: Uuid,
    /// The files to upload, in the order of the request; in the answer to a repeated request those that have not
    /// arrived.
    files: Vec<UploadView>,
}

/// A file to upload.
#[derive(Serialize, ToSchema)]
struct UploadView {
    /// The file's id within the search.
    file_id: Uuid,
    /// Its name as announced.
    name: String,
    /// The form that uploads it.
    upload: FormView,
}

/// A form that uploads one file: to be sent as `multipart/form-data` with all of `fields` first and the file last, as
/// `file`.
#[derive(Serialize, ToSchema)]
struct FormView {
    /// Where to send it.
    url: String,
    /// The fields to send unchanged.
    fields: BTreeMap<String, String>,
    /// When the form ends, as RFC 3339 has it.
    expires_at: String,
}

/// A search.
#[derive(Serialize, ToSchema)]
pub(super) struct SearchView {
    /// The search's id.
    search_id: Uuid,
    /// The review that it is for.
    project_id: Uuid,
    /// Its name. Unknown while only files that nobody announced have arrived.
    #[schema(required)]
    name: Option<String>,
    /// `Uploading`, `Uploaded`, `Parsing`, `Completed` or `Error`.
    state: String,
    /// Why it ended in `Error`.
    #[schema(required)]
    reason: Option<String>,
    /// Studies stored so far, of files that were read to their end.
    studies: u64,
    /// What was found in all files that were read to their end; only where a search is asked for by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    totals: Option<TotalsView>,
    /// What was found in all files that were read to their end, with those of the searches that repair it; only where a
    /// search that was repaired is asked for by itself. Unreadable records that were mended are not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    totals_with_repairs: Option<TotalsView>,
    /// The search that it repairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    repairs: Option<Uuid>,
    /// Its files, in the order of the announcement.
    files: Vec<FileView>,
    /// When it was announced, as RFC 3339 has it.
    created_at: String,
    /// When it ended.
    #[schema(required)]
    completed_at: Option<String>,
}

/// What was found in the files of a search. Each record is accounted for: `records` = `studies` + `unread`, and `studies`
/// = `unique` + `duplicates`.
#[derive(Default, Serialize, ToSchema)]
struct TotalsView {
    /// Records in the files.
    records: u64,
    /// Records that were read.
    studies: u64,
    /// Records that could not be read.
    unread: u64,
    /// Studies that repeat no earlier one of the project.
    unique: u64,
    /// Studies that repeat an earlier one of the project.
    duplicates: u64,
}

/// A file of a search.
#[derive(Serialize, ToSchema)]
struct FileView {
    /// The file's id within the search.
    file_id: Uuid,
    /// Its name; unknown until it is announced or has arrived.
    #[schema(required)]
    name: Option<String>,
    /// Its size in bytes, as announced until it arrives and as stored from then on.
    #[schema(required)]
    size_bytes: Option<u64>,
    /// Whether it has arrived.
    received: bool,
    /// What is happening to it; only where a search is asked for by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<PhaseView>,
    /// How many per cent of its bytes are read, while it is being read.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_percent: Option<u8>,
    /// How far it has been read.
    #[schema(required)]
    progress: Option<ProgressView>,
    /// What came of it.
    #[schema(required)]
    outcome: Option<OutcomeView>,
    /// Where its records come from, once it is read or somebody has said it; only where a search is asked for by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<SourceView>,
    /// What it is read instead of; only where a search is asked for by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    repairs: Option<RepairedView>,
    /// What is read instead of it, or of some of its records; only where a search is asked for by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repaired_by: Vec<RepairedView>,
}

/// The other file of a repair.
#[derive(Serialize, ToSchema)]
struct RepairedView {
    /// The search that it is of.
    search_id: Uuid,
    /// The file's id within that search.
    file_id: Uuid,
    /// The records that are mended, by their places in the file that is repaired; empty where the whole file is read anew.
    records: Vec<u64>,
    /// What has become of the repair: `open`, `read` or `failed`.
    state: FateView,
}

/// What has become of a repair of a file.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum FateView {
    /// It may yet be read.
    Open,
    /// It was read to its end.
    Read,
    /// It failed, or was deleted. It may be repaired again.
    Failed,
}

/// How far a file has been read.
#[derive(Serialize, ToSchema)]
struct ProgressView {
    /// Records found so far.
    records: u64,
    /// Bytes read so far.
    bytes: u64,
}

/// What is happening to a file.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum PhaseView {
    /// It has not arrived.
    Awaited,
    /// It has arrived, and is not being read yet.
    Waiting,
    /// It is being read.
    Reading,
    /// All of it is read; its duplicates are being looked for.
    MarkingDuplicates,
    /// It was read to its end.
    Done,
    /// It was refused, or the search ended without it.
    Failed,
}

/// What came of a file.
#[derive(Serialize, ToSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum OutcomeView {
    /// It was read to its end.
    Completed {
        /// The format that was detected from its content, such as `RIS`.
        format: String,
        /// How certain the format is: `guess`, `likely` or `certain`; empty for files that an earlier release read.
        format_certainty: String,
        /// The encoding that was detected from its content, such as `UTF-8`.
        encoding: String,
        /// How certain the encoding is, as with the format.
        encoding_certainty: String,
        /// Records in the file: studies and those that could not be read.
        records: u64,
        /// Records that were read.
        studies: u64,
        /// Records that could not be read.
        quarantined: u64,
        /// The files of an archive, or the sheets of a workbook, that were read; left out where the file is not packed.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        parts: Vec<PartView>,
        /// What else is to be said of the file, in sentences for the reviewer: what was passed over, and what is missing in
        /// many records. Left out where there is nothing to say.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        notes: Vec<String>,
        /// Studies that repeat an earlier one of the project; only where a search is asked for by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        duplicates: Option<u64>,
    },
    /// It was refused or could not be read; nothing of it is stored.
    Failed {
        /// Why, in words for the reviewer.
        reason: String,
    },
}

/// A file inside an archive, or a sheet of a workbook.
#[derive(Serialize, ToSchema)]
struct PartView {
    /// Its path in the archive, or the name of the sheet; empty for what is in a gzip file.
    name: String,
    /// The number of its first record: records are numbered through all parts.
    first: u64,
    /// How many records it has, those that could not be read included.
    records: u64,
    /// The format that was detected from its content.
    format: String,
    /// The encoding that was detected from its content.
    encoding: String,
}

impl From<Part> for PartView {
    fn from(part: Part) -> Self {
        let Part { name, first, records, format, encoding, .. } = part;
        Self { name, first, records, format, encoding }
    }
}

/// Some searches.
#[derive(Serialize, ToSchema)]
pub(super) struct SearchList {
    /// The searches.
    pub(super) items: Vec<SearchView>,
    /// Where the page ends, for the `after` of the next one; null when nothing follows. A page may be short, or empty,
    /// although more follows.
    #[schema(required)]
    pub(super) next: Option<String>,
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

/// What is asked for of one search that is left out in lists, as it takes several reads.
pub(super) struct Details {
    /// How far its files are.
    pub(super) progress: Vec<(FileId, Progress)>,
    /// How many studies of its files are duplicates, and of the searches that repair it, for those that were read.
    pub(super) duplicates: Vec<(FileId, u64)>,
    /// What repairs it, and what it repairs.
    pub(super) known: Known,
    /// Where its files come from.
    pub(super) sources: BTreeMap<FileId, sources::Known>,
}

impl Details {
    pub(super) async fn of(
        function: &SearchService,
        job: &Job,
        progress: Vec<(FileId, Progress)>,
    ) -> Result<Self, StoreError> {
        let known = function.repairs(job).await?;
        let mut marked = function.marked(job).await?;
        if known.original == job.search_id {
            for repair in known.jobs.values() {
                marked.extend(function.marked(repair).await?);
            }
        }
        let duplicates = marked.into_iter().map(|(file, marked)| (file, marked.duplicates())).collect();
        let sources = function.sources(job, &known.repairs).await?;
        Ok(Self { progress, duplicates, known, sources })
    }

    /// The repairs in which a file is on one side, and its other side.
    fn repairs(&self, side: impl Fn(&Repaired) -> (FileOf, FileOf), file: FileOf) -> Vec<RepairedView> {
        let views = self.known.repairs.files.iter().filter_map(|repaired| {
            let (this, other) = side(repaired);
            (this == file).then(|| RepairedView {
                search_id: other.search_id.as_uuid(),
                file_id: other.file_id.as_uuid(),
                records: repaired.records.iter().copied().collect(),
                state: self.known.fate(repaired.by).into(),
            })
        });
        views.collect()
    }
}

impl From<Fate> for FateView {
    fn from(fate: Fate) -> Self {
        match fate {
            Fate::Open => Self::Open,
            Fate::Read => Self::Read,
            Fate::Failed => Self::Failed,
        }
    }
}

impl SearchView {
    pub(super) fn of(job: Job, details: Option<&Details>) -> Self {
        let (has_ended, search_id) = (job.state.has_ended(), job.search_id);
        let file_of = |file: &JobFile| FileOf { search_id, file_id: file.file_id };
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

    /// The same with the searches that repair it, if there are any.
    fn with_repairs(job: &Job, details: &Details) -> Option<Self> {
        let known = &details.known;
        if known.original != job.search_id || known.jobs.is_empty() {
            return None;
        }
        let mut totals = Self::default();
        std::iter::once(job).chain(known.jobs.values()).for_each(|job| totals.add(job, details));
        let is_there =
            |file: FileOf| file.search_id == job.search_id || known.jobs.contains_key(&file.search_id);
        let read = known
            .repairs
            .files
            .iter()
            .filter(|repaired| is_there(repaired.of) && known.fate(repaired.by) == Fate::Read);
        let mended: u64 = read.map(|repaired| repaired.records.len() as u64).sum();
        // They are counted where they were mended.
        totals.records = totals.records.saturating_sub(mended);
        totals.unread = totals.unread.saturating_sub(mended);
        Some(totals)
    }

    fn add(&mut self, job: &Job, details: &Details) {
        let totals = self;
        for file in &job.files {
            let Some(Outcome::Completed(counts)) = &file.outcome else { continue };
            // A mark more than there are studies would be one of a study that is gone.
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
    fn of(this: FileOf, file: JobFile, has_ended: bool, details: Option<&Details>) -> Self {
        let repairs =
            details.and_then(|details| details.repairs(|repaired| (repaired.by, repaired.of), this).pop());
        let repaired_by = details.map(|details| details.repairs(|repaired| (repaired.of, repaired.by), this));
        let progress = details.and_then(|details| of_file(&details.progress, file.file_id));
        let phase = details.map(|_| PhaseView::of(&file, has_ended, progress));
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

impl PhaseView {
    fn of(file: &JobFile, has_ended: bool, progress: Option<Progress>) -> Self {
        match (&file.outcome, progress) {
            (Some(Outcome::Completed(_)), _) => Self::Done,
            (Some(Outcome::Failed { .. }), _) => Self::Failed,
            (None, _) if has_ended => Self::Failed,
            (None, _) if !file.received => Self::Awaited,
            (None, None) => Self::Waiting,
            (None, Some(progress)) if file.size_bytes.is_some_and(|size| progress.bytes >= size) => {
                Self::MarkingDuplicates
            }
            (None, Some(_)) => Self::Reading,
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
                parts: counts.parts.into_iter().map(PartView::from).collect(),
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
            known: Known { original, repairs: Repairs::default(), jobs },
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
    fn a_file_is_in_the_phase_that_follows_from_what_is_known_of_it() {
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
    fn every_record_is_accounted_for() {
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
    fn a_list_says_nothing_that_was_not_read_for_it() {
        let shown = shown(JobState::Parsing, file(true, completed()), None);
        assert_eq!(shown.get("totals"), None);
        assert_eq!(shown["files"][0].get("phase"), None);
        assert_eq!(shown["files"][0]["outcome"].get("duplicates"), None);
    }
}
