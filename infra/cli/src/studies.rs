//! Listing the studies of a search.

use imports::{Duplicate, FileId, Job, JobFile, Outcome, ReadStudies, Study};
use local::output;
use serde_json::{Value, json};

use crate::args;
use crate::workspace::{self, Workspace};

/// How many studies are read at a time.
const PAGE: usize = 1_000;

/// Lists the studies of every file that was read to its end, in the order of files and records.
pub(crate) async fn run(args: &args::Inspect) -> anyhow::Result<bool> {
    let workspace = Workspace::look_into(workspace::settings(&args.output.place)?).await?;
    let Some(job) = workspace.jobs()?.job(args.search).await? else {
        anyhow::bail!("there is no search {} in {}", args.search, workspace.name());
    };
    // What a file under way has stored so far may yet be taken back.
    for file in job.files.iter().filter(|file| matches!(file.outcome, Some(Outcome::Completed(_)))) {
        list(workspace.library()?.read_studies.as_ref(), &job, file, args.output.json).await?;
    }
    Ok(true)
}

async fn list(studies: &dyn ReadStudies, job: &Job, file: &JobFile, as_json: bool) -> anyhow::Result<()> {
    let mut after = 0;
    loop {
        let page = studies.studies(job.search_id, file.file_id, after, PAGE).await?;
        for study in &page {
            if as_json {
                output::json(&object(study, job)?)?;
            } else {
                output::line(&in_one_line(study, job))?;
            }
        }
        match page.last() {
            Some(last) => after = last.record,
            None => return Ok(()),
        }
    }
}

fn name_of(job: &Job, file: FileId) -> String {
    let file_name = job.files.iter().find(|known| known.file_id == file).and_then(|file| file.name.clone());
    file_name.unwrap_or_else(|| file.to_string())
}

/// The study's own fields, where it came from, and which earlier study it repeats.
fn object(study: &Study, job: &Job) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(&study.reference)?;
    let file = name_of(job, study.file_id);
    value["source"] = json!({ "file": file, "record": study.record, "line": study.line });
    if let Some(Duplicate { file_id, record, reason, .. }) = study.duplicate {
        value["duplicate"] = json!({ "file": name_of(job, file_id), "record": record, "reason": reason });
    }
    Ok(value)
}

fn in_one_line(study: &Study, job: &Job) -> String {
    let reference = &study.reference;
    let authors = match reference.authors.as_slice() {
        [] => String::new(),
        [one] => format!("{one}. "),
        [first, ..] => format!("{first} et al. "),
    };
    let year = reference.year.map_or_else(String::new, |year| format!(" ({year})"));
    let journal = reference.journal.as_ref().map_or_else(String::new, |journal| format!(". {journal}"));
    let duplicate =
        study.duplicate.map_or_else(String::new, |Duplicate { file_id, record, reason, .. }| {
            format!(" [duplicate of record {record} of {}: {reason}]", name_of(job, file_id))
        });
    format!("{:>6}  {authors}{}{year}{journal}{duplicate}", study.record, reference.title)
}
