//! Listing the studies of a search.

use contracts::{Job, JobFile, Outcome};
use embedded::Store;
use imports::{ReadJobs, ReadStudies, Study};
use serde_json::{Value, json};

use crate::args;
use crate::{output, workspace};

/// How many studies are read at a time.
const PAGE: usize = 1_000;

/// Lists the studies of every file that was read to its end, in the order of files and records.
pub(crate) async fn run(args: &args::Inspect) -> anyhow::Result<bool> {
    let config = workspace::settings(&args.output)?;
    let store = workspace::look_into(&config.data_dir)?;
    let Some(job) = store.job(args.search).await? else {
        anyhow::bail!("there is no search {} in {}", args.search, config.data_dir.display());
    };
    // What a file under way has stored so far may yet be taken back.
    for file in job.files.iter().filter(|file| matches!(file.outcome, Some(Outcome::Completed(_)))) {
        list(&store, &job, file, args.output.json).await?;
    }
    Ok(true)
}

async fn list(store: &Store, job: &Job, file: &JobFile, as_json: bool) -> anyhow::Result<()> {
    let name = file.name.clone().unwrap_or_else(|| file.file_id.to_string());
    let mut after = 0;
    loop {
        let page = store.studies(job.search_id, file.file_id, after, PAGE).await?;
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
