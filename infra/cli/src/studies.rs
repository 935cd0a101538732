//! Listing the studies of a search.

use std::collections::BTreeMap;

use imports::{Duplicate, FileId, Job, JobFile, Outcome, SearchId, Study, Tier, readable};
use local::output;
use serde_json::{Value, json};

use crate::damaged::Skipped;
use crate::words::sentence;
use crate::workspace::{self, Workspace};
use crate::{args, find};

/// How many studies are read at a time.
const PAGE: usize = 1_000;

/// Lists the studies of every file that was read to its end, in the order of files and records.
pub(crate) async fn run(args: &args::Inspect) -> anyhow::Result<bool> {
    let workspace = Workspace::look_into(workspace::settings(&args.output.place)?).await?;
    let job = find::search(&workspace, workspace.project(args.search.project), &args.search.search).await?;
    let (mut names, mut skipped) = (Names::default(), Skipped::default());
    names.add(&job);
    // What a file under way has stored so far may yet be taken back.
    for file in job.files.iter().filter(|file| matches!(file.outcome, Some(Outcome::Completed(_)))) {
        list(&workspace, (&mut names, &mut skipped), (&job, file), args.output.json).await?;
    }
    Ok(skipped.tell())
}

async fn list(
    workspace: &Workspace,
    (names, skipped): (&mut Names, &mut Skipped),
    (job, file): (&Job, &JobFile),
    as_json: bool,
) -> anyhow::Result<()> {
    let studies = &workspace.study_stores()?.read_studies;
    let mut after = 0;
    loop {
        let read = |after, limit| studies.studies(job.search_id, file.file_id, after, limit);
        let page = readable(after, PAGE, |study: &Study| study.record, read).await?;
        if let Some((record, why)) = &page.damaged {
            skipped.add(&names.file(job.search_id, file.file_id), *record, why);
        }
        for study in &page.items {
            if let Some(duplicate) = study.duplicate {
                names.learn(workspace, duplicate.search_id).await?;
            }
            if as_json {
                output::json(&object(study, names)?)?;
            } else {
                output::line(&in_one_line(study, names))?;
            }
        }
        match page.last {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

/// What searches and their files are called.
#[derive(Default)]
pub(crate) struct Names {
    searches: BTreeMap<SearchId, String>,
    files: BTreeMap<(SearchId, FileId), String>,
}

impl Names {
    pub(crate) fn add(&mut self, job: &Job) {
        let name = job.name.clone().unwrap_or_else(|| job.search_id.to_string());
        self.searches.insert(job.search_id, name);
        let ids = job.files.iter().map(|file| (job.search_id, file.file_id));
        self.files.extend(ids.zip(job.file_names()));
    }

    /// Looks up what a search is called, unless it is known.
    pub(crate) async fn learn(&mut self, workspace: &Workspace, search: SearchId) -> anyhow::Result<()> {
        if !self.searches.contains_key(&search)
            && let Some(job) = workspace.jobs()?.job(search).await?
        {
            self.add(&job);
        }
        Ok(())
    }

    pub(crate) fn search(&self, search: SearchId) -> String {
        self.searches.get(&search).cloned().unwrap_or_else(|| search.to_string())
    }

    pub(crate) fn file(&self, search: SearchId, file: FileId) -> String {
        self.files.get(&(search, file)).cloned().unwrap_or_else(|| file.to_string())
    }
}

/// The study's own fields, where it came from, and which earlier study it repeats.
fn object(study: &Study, names: &Names) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(&study.reference)?;
    let file = names.file(study.search_id, study.file_id);
    value["source"] = json!({ "file": file, "record": study.record, "line": study.line });
    if let Some(Duplicate { search_id, file_id, record, tier, reason, .. }) = study.duplicate {
        value["duplicate"] = json!({
            "search": search_id,
            "file": names.file(search_id, file_id),
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
    let duplicate = study.duplicate.map_or_else(String::new, |duplicate| {
        let Duplicate { search_id, file_id, record, tier, reason, .. } = duplicate;
        let sureness = if tier == Tier::Certain { String::new() } else { format!("{tier} ") };
        let elsewhere = if search_id == study.search_id {
            String::new()
        } else {
            format!(" of search {}", names.search(search_id))
        };
        let file = names.file(search_id, file_id);
        format!(" [{sureness}duplicate of record {record} of {file}{elsewhere}: {reason}]")
    });
    format!("{:>6}  {}{duplicate}", study.record, said.join(" "))
}
