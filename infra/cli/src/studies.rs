//! Listing the studies of a search.

use contracts::{Job, JobFile, Outcome};
use imports::{ReadStudies, Study};
use serde_json::{Value, json};

use crate::args;
use crate::output;
use crate::workspace::{self, Workspace};

/// How many studies are read at a time.
const PAGE: usize = 1_000;

/// Lists the studies of every file that was read to its end, in the order of files and records.
pub(crate) async fn run(args: &args::Inspect) -> anyhow::Result<bool> {
    let workspace = Workspace::look_into(workspace::settings(&args.output.place)?).await?;
    let documents = workspace.documents()?;
    let Some(job) = documents.read_jobs.job(args.search).await? else {
        anyhow::bail!("there is no search {} in {}", args.search, workspace.name());
    };
    // What a file under way has stored so far may yet be taken back.
    for file in job.files.iter().filter(|file| matches!(file.outcome, Some(Outcome::Completed(_)))) {
        list(documents.read_studies.as_ref(), &job, file, args.output.json).await?;
    }
    Ok(true)
}

async fn list(studies: &dyn ReadStudies, job: &Job, file: &JobFile, as_json: bool) -> anyhow::Result<()> {
    let name = file.name.clone().unwrap_or_else(|| file.file_id.to_string());
    let mut after = 0;
    loop {
        let page = studies.studies(job.search_id, file.file_id, after, PAGE).await?;
        for study in &page {
            output::line(&if as_json { object(study, &name)?.to_string() } else { in_one_line(study) })?;
        }
        match page.last() {
            Some(last) => after = last.record,
            None => return Ok(()),
        }
    }
}

/// The study's own fields and where it came from.
fn object(study: &Study, file: &str) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(&study.reference)?;
    value["source"] = json!({ "file": file, "record": study.record, "line": study.line });
    Ok(value)
}

fn in_one_line(study: &Study) -> String {
    let reference = &study.reference;
    let authors = match reference.authors.as_slice() {
        [] => String::new(),
        [one] => format!("{one}. "),
        [first, ..] => format!("{first} et al. "),
    };
    let year = reference.year.map_or_else(String::new, |year| format!(" ({year})"));
    let journal = reference.journal.as_ref().map_or_else(String::new, |journal| format!(". {journal}"));
    format!("{:>6}  {authors}{}{year}{journal}", study.record, reference.title)
}
