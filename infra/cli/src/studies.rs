//! Listing the studies of a search.

use std::collections::BTreeMap;

use imports::{Duplicate, FileId, Job, JobFile, Outcome, ReadStudies, Study, Tier};
use local::output;
use serde_json::{Value, json};

use crate::words::sentence;
use crate::workspace::{self, Workspace};
use crate::{args, find};

/// How many studies are read at a time.
const PAGE: usize = 1_000;

/// Lists the studies of every file that was read to its end, in the order of files and records.
pub(crate) async fn run(args: &args::Inspect) -> anyhow::Result<bool> {
    let workspace = Workspace::look_into(workspace::settings(&args.output.place)?).await?;
    let job = find::search(&workspace, workspace.project(args.search.project), &args.search.search).await?;
    // What a file under way has stored so far may yet be taken back.
    for file in job.files.iter().filter(|file| matches!(file.outcome, Some(Outcome::Completed(_)))) {
        list(workspace.library()?.read_studies.as_ref(), &job, file, args.output.json).await?;
    }
    Ok(true)
}

async fn list(studies: &dyn ReadStudies, job: &Job, file: &JobFile, as_json: bool) -> anyhow::Result<()> {
    let names = Names::of_files(job);
    let mut after = 0;
    loop {
        let page = studies.studies(job.search_id, file.file_id, after, PAGE).await?;
        for study in &page {
            if as_json {
                output::json(&object(study, &names)?)?;
            } else {
                output::line(&in_one_line(study, &names))?;
            }
        }
        match page.last() {
            Some(last) => after = last.record,
            None => return Ok(()),
        }
    }
}

/// What the files of a search are called.
struct Names(BTreeMap<FileId, String>);

impl Names {
    fn of_files(job: &Job) -> Self {
        Self(job.files.iter().map(|file| file.file_id).zip(job.file_names()).collect())
    }

    fn of(&self, file: FileId) -> String {
        self.0.get(&file).cloned().unwrap_or_else(|| file.to_string())
    }
}

/// The study's own fields, where it came from, and which earlier study it repeats.
fn object(study: &Study, names: &Names) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(&study.reference)?;
    let file = names.of(study.file_id);
    value["source"] = json!({ "file": file, "record": study.record, "line": study.line });
    if let Some(Duplicate { file_id, record, tier, reason, .. }) = study.duplicate {
        value["duplicate"] = json!({
            "search": study.search_id,
            "file": names.of(file_id),
            "record": record,
            "tier": tier,
            "reason": reason,
        });
    }
    Ok(value)
}

fn in_one_line(study: &Study, names: &Names) -> String {
    let reference = &study.reference;
    let authors = match reference.authors.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        [first, ..] => Some(format!("{first} et al.")),
    };
    let year = reference.year.map_or_else(String::new, |year| format!(" ({year})"));
    let title = format!("{}{year}", reference.title);
    let mut said = authors.iter().map(|authors| sentence(authors)).collect::<Vec<_>>();
    match &reference.journal {
        Some(journal) => said.extend([sentence(&title), journal.to_string()]),
        None => said.push(title),
    }
    let duplicate =
        study.duplicate.map_or_else(String::new, |Duplicate { file_id, record, tier, reason, .. }| {
            let likely = if tier == Tier::Certain { "" } else { "likely " };
            format!(" [{likely}duplicate of record {record} of {}: {reason}]", names.of(file_id))
        });
    format!("{:>6}  {}{duplicate}", study.record, said.join(" "))
}
