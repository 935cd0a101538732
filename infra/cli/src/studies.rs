//! Listing the studies of a search.

use std::collections::BTreeMap;

use imports::{Duplicate, FileId, FileRef, Job, Outcome, SearchId, Study, Tier, readable};
use local::output;
use serde_json::{Value, json};

use crate::damaged::DamagedStudies;
use crate::humanize::sentence;
use crate::workspace::{self, Workspace};
use crate::{args, find};

/// The number of studies read at a time.
const PAGE: usize = 1_000;

/// Lists the studies of every file that was read to its end, in the order of files and records.
pub(crate) async fn run(args: &args::Inspect) -> anyhow::Result<bool> {
    let workspace = Workspace::open_read_only(workspace::settings(&args.output.location)?).await?;
    let job = find::search(&workspace, &args.search.project, &args.search.search).await?;
    let mut list = StudyList {
        workspace: &workspace,
        names: Names::default(),
        damaged: DamagedStudies::default(),
        as_json: args.output.json,
    };
    for job in find::with_repairs(&workspace, job).await? {
        list.names.add(&job);
        // Studies of a file that is still being read may yet be deleted, so only completed files are listed.
        for file in job.files.iter().filter(|file| matches!(file.outcome, Some(Outcome::Completed(_)))) {
            list.print(job.search_id, file.file_id).await?;
        }
    }
    Ok(list.damaged.report())
}

/// Prints the studies of files.
struct StudyList<'a> {
    workspace: &'a Workspace,
    names: Names,
    damaged: DamagedStudies,
    as_json: bool,
}

impl StudyList<'_> {
    async fn print(&mut self, search: SearchId, file: FileId) -> anyhow::Result<()> {
        let studies = &self.workspace.study_stores()?.read_studies;
        let mut after = 0;
        loop {
            let read = |after, limit| studies.studies(search, file, after, limit);
            let page = readable(after, PAGE, |study: &Study| study.record, read).await?;
            if let Some((record, why)) = &page.damaged {
                self.damaged.add(&self.names.file(search, file), *record, why);
            }
            for study in &page.items {
                if let Some(duplicate) = study.duplicate {
                    self.names.load(self.workspace, duplicate.search_id).await?;
                }
                if self.as_json {
                    output::json(&object(study, &self.names)?)?;
                } else {
                    output::line(&in_one_line(study, &self.names))?;
                }
            }
            match page.last {
                Some(last) => after = last,
                None => return Ok(()),
            }
        }
    }
}

/// The names of searches and their files.
#[derive(Default)]
pub(crate) struct Names {
    searches: BTreeMap<SearchId, String>,
    files: BTreeMap<FileRef, String>,
}

impl Names {
    pub(crate) fn add(&mut self, job: &Job) {
        let name = job.name.clone().unwrap_or_else(|| job.search_id.to_string());
        self.searches.insert(job.search_id, name);
        let ids = job.files.iter().map(|file| FileRef::new(job.search_id, file.file_id));
        self.files.extend(ids.zip(job.file_names()));
    }

    /// Loads the names of a search, unless they are known.
    pub(crate) async fn load(&mut self, workspace: &Workspace, search: SearchId) -> anyhow::Result<()> {
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
        self.files.get(&FileRef::new(search, file)).cloned().unwrap_or_else(|| file.to_string())
    }
}

/// Returns the study's fields, its source, and the earlier study that it repeats.
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
    let mut citation = authors.iter().map(|authors| sentence(authors)).collect::<Vec<_>>();
    match &reference.journal {
        Some(journal) => citation.extend([sentence(&title), journal.to_string()]),
        None => citation.push(title),
    }
    let duplicate = study.duplicate.map_or_else(String::new, |duplicate| {
        let Duplicate { search_id, file_id, record, tier, reason, .. } = duplicate;
        let certainty = if tier == Tier::Certain { String::new() } else { format!("{tier} ") };
        let other_search = if search_id == study.search_id {
            String::new()
        } else {
            format!(" of import {}", names.search(search_id))
        };
        let file = names.file(search_id, file_id);
        format!(" [{certainty}duplicate of record {record} of {file}{other_search}: {reason}]")
    });
    format!("{:>6}  {}{duplicate}", study.record, citation.join(" "))
}
