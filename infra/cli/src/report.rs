//! The result of an import.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use imports::{Job, JobFile, JobState, Outcome, SearchId};
use local::output;
use messages::{DecisionRecord, RecordedVerdict, Verdict};
use serde::Serialize;

use crate::humanize::counted;
use crate::table::{Column, table};
use crate::workspace::Workspace;

/// The outcome of a file that was read to its end.
const COMPLETED: &str = "completed";
/// The columns of the table. The last column is omitted if all files completed.
const COLUMNS: [Column; 7] = [
    Column::Text("file"),
    Column::Text("format"),
    Column::Number("records"),
    Column::Number("studies"),
    Column::Number("duplicates"),
    Column::Number("not imported"),
    Column::Whole("outcome"),
];

/// The report of one search, which scripts read as JSON.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// `None` if the files were rejected before a search was announced.
    pub(crate) search_id: Option<SearchId>,
    pub(crate) state: String,
    pub(crate) files: Vec<FileReport>,
    pub(crate) studies: u64,
    /// The number of studies that repeat an earlier study.
    pub(crate) duplicates: u64,
    /// `None` if no history is kept.
    pub(crate) messages: Option<Messages>,
    pub(crate) elapsed_ms: u64,
    #[serde(skip)]
    pub(crate) reason: Option<String>,
}

/// The result of one file.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FileReport {
    pub(crate) name: String,
    pub(crate) format: Option<String>,
    pub(crate) format_certainty: Option<String>,
    pub(crate) encoding: Option<String>,
    pub(crate) encoding_certainty: Option<String>,
    pub(crate) records: u64,
    pub(crate) studies: u64,
    pub(crate) duplicates: u64,
    pub(crate) quarantined: u64,
    /// The files of an archive, or the sheets of a workbook, that were read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<String>,
    /// Remarks about the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    pub(crate) outcome: &'static str,
    pub(crate) error: Option<String>,
}

/// Counts of messages from the decision log.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Messages {
    /// Deliveries to the functions that consume messages.
    pub(crate) received: usize,
    /// Deliveries that were recognized as duplicates.
    pub(crate) duplicates_dropped: usize,
    /// Deliveries that changed nothing.
    pub(crate) ignored: usize,
    /// Messages sent from an outbox.
    pub(crate) dispatched: usize,
    /// Distinct parse commands that were handled.
    pub(crate) parse_commands: usize,
}

impl Report {
    /// Builds the report of a stored search.
    pub(crate) async fn of(
        workspace: &Workspace,
        search: SearchId,
        elapsed: Duration,
    ) -> anyhow::Result<Self> {
        let studies = &workspace.study_stores()?.read_studies;
        let job = workspace.jobs()?.job(search).await?;
        let mut files: Vec<FileReport> = Vec::new();
        let names = job.as_ref().map(Job::file_names).unwrap_or_default();
        for (file, name) in job.iter().flat_map(|job| &job.files).zip(names) {
            let duplicates = match file.outcome {
                Some(Outcome::Completed(_)) => studies.marked(search, file.file_id).await?.duplicates(),
                Some(Outcome::Failed { .. }) | None => 0,
            };
            files.push(FileReport { duplicates, ..FileReport::of(file, name) });
        }
        let decisions = workspace.decisions(search).await?;
        let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        Ok(Self {
            search_id: Some(search),
            state: job.as_ref().map_or_else(|| "Initial".to_owned(), |job| job.state.to_string()),
            reason: job.as_ref().and_then(|job| job.reason.clone()),
            studies: job.as_ref().map_or(0, Job::studies),
            duplicates: files.iter().map(|file| file.duplicates).sum(),
            files,
            messages: decisions.as_deref().map(Messages::count),
            elapsed_ms,
        })
    }

    /// Returns the report of files that were rejected before a search was announced.
    pub(crate) fn refused(files: Vec<FileReport>, reason: Option<String>, elapsed: Duration) -> Self {
        Self {
            search_id: None,
            state: "Refused".to_owned(),
            files,
            studies: 0,
            duplicates: 0,
            messages: Some(Messages::default()),
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            reason,
        }
    }

    pub(crate) fn is_completed(&self) -> bool {
        self.state == JobState::Completed.to_string()
    }

    /// Prints the report. Errors go to standard error, one line for each file.
    pub(crate) fn print(&self, json: bool) -> anyhow::Result<()> {
        for file in &self.files {
            if let Some(error) = &file.error {
                output::complain(&format!("{}: {error}", file.name));
            }
        }
        if let (Some(reason), true) = (&self.reason, self.files.iter().all(|file| file.error.is_none())) {
            output::complain(reason);
        }
        if json {
            output::json(self)?;
        } else {
            self.print_table()?;
        }
        Ok(())
    }

    fn print_table(&self) -> anyhow::Result<()> {
        let Some(id) = self.search_id else {
            output::line("nothing was imported")?;
            return Ok(());
        };
        // If every file was read, the line below the table says so, and names get the space of the column.
        let with_outcome = self.files.iter().any(|file| file.outcome != COMPLETED);
        let columns = if with_outcome { &COLUMNS[..] } else { &COLUMNS[..COLUMNS.len() - 1] };
        let row = |file: &FileReport| file.row().into_iter().take(columns.len()).collect();
        output::block(&table(columns, self.files.iter().map(row)))?;
        for file in &self.files {
            if !file.parts.is_empty() {
                output::line(&format!("{}: read {}", file.name, file.parts.join(", ")))?;
            }
            for note in &file.notes {
                output::line(&format!("{}: {note}", file.name))?;
            }
        }
        let studies = counted(self.studies, "study", "studies");
        let duplicates = match self.duplicates {
            0 => String::new(),
            1 => ", 1 of them a duplicate".to_owned(),
            count => format!(", {count} of them duplicates"),
        };
        let messages = self.messages.map(|messages| messages.to_string()).unwrap_or_default();
        output::line(&format!("import {id}: {}, {studies}{duplicates}{messages}", self.state))?;
        self.print_next_steps(id);
        Ok(())
    }

    fn print_next_steps(&self, id: SearchId) {
        if self.state == JobState::Error.to_string() {
            output::remark(&format!(
                "`search-import repair {id}` reads failed files again; with --replace FILE NEW, it reads another file instead"
            ));
        }
        if self.files.iter().any(|file| file.quarantined > 0) {
            output::remark(&format!(
                "`search-import quarantine {id} --out DIR` exports the records not imported"
            ));
        }
    }
}

impl FileReport {
    fn of(file: &JobFile, name: String) -> Self {
        match &file.outcome {
            Some(Outcome::Completed(counts)) => Self {
                format: non_empty(&counts.format),
                format_certainty: non_empty(&counts.format_certainty),
                encoding: non_empty(&counts.encoding),
                encoding_certainty: non_empty(&counts.encoding_certainty),
                records: counts.records,
                studies: counts.studies,
                quarantined: counts.quarantined,
                parts: counts
                    .parts
                    .iter()
                    .map(|part| part.name.clone())
                    .filter(|name| !name.is_empty())
                    .collect(),
                notes: counts.notes.clone(),
                ..Self::without_counts(name, COMPLETED, None)
            },
            Some(Outcome::Failed { reason }) => Self::without_counts(name, "failed", Some(reason.clone())),
            None => Self::without_counts(name, "pending", None),
        }
    }

    fn row(&self) -> Vec<String> {
        let format = with_certainty(self.format.as_deref(), self.format_certainty.as_deref());
        let encoding = with_certainty(self.encoding.as_deref(), self.encoding_certainty.as_deref());
        let form = [format, encoding].into_iter().flatten().collect::<Vec<_>>().join(", ");
        let counts = [self.records, self.studies, self.duplicates, self.quarantined];
        let mut row = vec![self.name.clone(), form];
        row.extend(counts.map(|count| count.to_string()));
        row.push(self.outcome.to_owned());
        row
    }

    /// Returns the result of a file without imported records.
    pub(crate) fn without_counts(name: String, outcome: &'static str, error: Option<String>) -> Self {
        Self {
            name,
            format: None,
            format_certainty: None,
            encoding: None,
            encoding_certainty: None,
            records: 0,
            studies: 0,
            duplicates: 0,
            quarantined: 0,
            parts: Vec::new(),
            notes: Vec::new(),
            outcome,
            error,
        }
    }
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Formats a detected property, with its certainty unless that is `certain`.
fn with_certainty(what: Option<&str>, certainty: Option<&str>) -> Option<String> {
    what.map(|what| match certainty {
        None | Some("certain") => what.to_owned(),
        Some(certainty) => format!("{what} ({certainty})"),
    })
}

impl fmt::Display for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { received, duplicates_dropped, ignored, .. } = self;
        let received = counted(*received as u64, "message", "messages");
        let dropped = counted(*duplicates_dropped as u64, "duplicate", "duplicates");
        write!(f, "; {received} received, {dropped} dropped, {ignored} ignored")
    }
}

impl Messages {
    fn count(decisions: &[DecisionRecord<RecordedVerdict>]) -> Self {
        // Upload notifications are not messages of the system, although they cause one.
        let consumed = |decision: &&DecisionRecord<RecordedVerdict>| {
            decision.verdict != Verdict::Dispatched && decision.function != functions::notify_upload::NAME
        };
        let count = |verdict| decisions.iter().filter(|decision| decision.verdict == verdict).count();
        let parsed: BTreeSet<_> = decisions
            .iter()
            .filter(|decision| decision.message == "StartParsing" && decision.verdict == Verdict::Handled)
            .filter_map(|decision| decision.message_id)
            .collect();
        Self {
            received: decisions.iter().filter(consumed).count(),
            duplicates_dropped: count(Verdict::Duplicate),
            ignored: count(Verdict::Ignored),
            dispatched: count(Verdict::Dispatched),
            parse_commands: parsed.len(),
        }
    }
}
