//! What came of an import.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use imports::{Job, JobFile, JobState, Outcome, SearchId};
use local::output;
use messages::{Observation, Verdict};
use serde::Serialize;

use crate::workspace::Workspace;

/// The report of one search; as JSON, the object that scripts read.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// None when the files were refused before there was a search.
    pub(crate) search_id: Option<SearchId>,
    pub(crate) state: String,
    pub(crate) files: Vec<FileReport>,
    pub(crate) studies: u64,
    /// How many of them repeat an earlier one.
    pub(crate) duplicates: u64,
    /// None when only the logs of a deployment could tell.
    pub(crate) messages: Option<Messages>,
    pub(crate) elapsed_ms: u64,
    #[serde(skip)]
    pub(crate) reason: Option<String>,
}

/// What came of one file.
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
    pub(crate) outcome: &'static str,
    pub(crate) error: Option<String>,
}

/// What became of the messages, counted from the decision log.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Messages {
    /// Deliveries to the functions that consume messages.
    pub(crate) received: usize,
    /// Deliveries that were recognised as copies of something done before.
    pub(crate) duplicates_dropped: usize,
    /// Deliveries that changed nothing where they arrived.
    pub(crate) ignored: usize,
    /// Messages sent from an outbox.
    pub(crate) dispatched: usize,
    /// Distinct parse commands that took effect.
    pub(crate) parse_commands: usize,
}

impl Report {
    /// The report of a stored search.
    pub(crate) async fn of(
        workspace: &Workspace,
        search: SearchId,
        elapsed: Duration,
    ) -> anyhow::Result<Self> {
        let studies = &workspace.library()?.read_studies;
        let job = workspace.jobs()?.job(search).await?;
        let mut files: Vec<FileReport> = Vec::new();
        for file in job.iter().flat_map(|job| &job.files) {
            let duplicates = match file.outcome {
                Some(Outcome::Completed(_)) => studies.duplicates(search, file.file_id).await?,
                Some(Outcome::Failed { .. }) | None => 0,
            };
            files.push(FileReport { duplicates, ..FileReport::of(file) });
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

    /// The report of files that never became a search.
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

    /// Prints it; errors go to standard error, one line for each file.
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
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED);
        table.set_header([
            "file",
            "format",
            "encoding",
            "records",
            "studies",
            "duplicates",
            "quarantined",
            "outcome",
        ]);
        for file in &self.files {
            table.add_row([
                output::cell(&file.name),
                with_certainty(file.format.as_deref(), file.format_certainty.as_deref()),
                with_certainty(file.encoding.as_deref(), file.encoding_certainty.as_deref()),
                file.records.to_string(),
                file.studies.to_string(),
                file.duplicates.to_string(),
                file.quarantined.to_string(),
                file.outcome.to_owned(),
            ]);
        }
        output::block(&table.to_string())?;
        match self.search_id {
            Some(id) => {
                let messages = self.messages.map(|messages| messages.to_string()).unwrap_or_default();
                let duplicates = match self.duplicates {
                    0 => String::new(),
                    count => format!(", {count} of them duplicates"),
                };
                let (state, studies) = (&self.state, self.studies);
                output::line(&format!("search {id}: {state}, {studies} studies{duplicates}{messages}"))?;
            }
            None => output::line("nothing was imported")?,
        }
        Ok(())
    }
}

impl FileReport {
    fn of(file: &JobFile) -> Self {
        let name = file.name.clone().unwrap_or_else(|| file.file_id.to_string());
        match &file.outcome {
            Some(Outcome::Completed(counts)) => Self {
                format: told(&counts.format),
                format_certainty: told(&counts.format_certainty),
                encoding: told(&counts.encoding),
                encoding_certainty: told(&counts.encoding_certainty),
                records: counts.records,
                studies: counts.studies,
                quarantined: counts.quarantined,
                ..Self::without_counts(name, "completed", None)
            },
            Some(Outcome::Failed { reason }) => Self::without_counts(name, "failed", Some(reason.clone())),
            None => Self::without_counts(name, "pending", None),
        }
    }

    /// A file of which nothing was read.
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
            outcome,
            error,
        }
    }
}

fn told(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// What was detected, and how sure that is unless it is certain.
fn with_certainty(what: Option<&str>, certainty: Option<&str>) -> String {
    output::cell(&match (what, certainty) {
        (Some(what), None | Some("certain")) => what.to_owned(),
        (Some(what), Some(certainty)) => format!("{what} ({certainty})"),
        (None, _) => String::new(),
    })
}

impl fmt::Display for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { received, duplicates_dropped, ignored, .. } = self;
        write!(
            f,
            "; {received} messages received, {duplicates_dropped} duplicates dropped, {ignored} ignored"
        )
    }
}

impl Messages {
    fn count(decisions: &[Observation]) -> Self {
        // Notifications become messages; they are none themselves.
        let consumed = |decision: &&Observation| {
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
