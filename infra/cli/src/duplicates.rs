//! Duplicate studies of a project, and reviewers' decisions about them.

use anyhow::{Context, bail};
use imports::{Duplicate, Job, JobState, ReadStudies, Selection, Study, StudyRef, Tier, readable};
use local::{output, user_name};
use messages::StoreError;
use messages::escape::escape_for_terminal;
use serde_json::{Value, json};
use service::{DecisionKind, DecisionOutcome, DecisionRequest, SearchService};

use crate::args::{self, Decision};
use crate::damaged::DamagedStudies;
use crate::find;
use crate::studies::Names;
use crate::workspace::{self, Workspace};

/// The number of studies read at a time.
const PAGE: usize = 500;

/// Lists the studies of a project that repeat an earlier study, each together with the earlier study.
pub(crate) async fn run(args: &args::Duplicates) -> anyhow::Result<bool> {
    let workspace = Workspace::open_read_only(workspace::settings(&args.output.location)?).await?;
    let jobs = workspace.jobs()?;
    let mut list = DuplicateList {
        workspace: &workspace,
        names: Names::default(),
        damaged: DamagedStudies::default(),
        min_tier: args.min_certainty.into(),
        as_json: args.output.json,
    };
    let project = workspace.project(&args.project).await?;
    let (mut pages, mut is_empty) = (find::Pages::of(&jobs, project), true);
    while let Some(page) = pages.next().await? {
        is_empty &= page.is_empty();
        for job in page.iter().filter(|job| matches!(job.state, JobState::Completed | JobState::Error)) {
            list.names.add(job);
            list.print(job).await?;
        }
    }
    if is_empty {
        output::remark(&find::no_searches(&workspace, &args.project));
    }
    Ok(list.damaged.report())
}

/// Prints duplicates.
struct DuplicateList<'a> {
    workspace: &'a Workspace,
    names: Names,
    damaged: DamagedStudies,
    min_tier: Tier,
    as_json: bool,
}

/// One of the two compared studies.
struct Side<'a> {
    at: StudyRef,
    /// The index of the study's file in the search.
    position: u32,
    /// `None` if it is not stored or cannot be read.
    study: Option<&'a Study>,
}

impl DuplicateList<'_> {
    /// Prints the duplicates of a search.
    async fn print(&mut self, job: &Job) -> anyhow::Result<()> {
        let studies = self.workspace.study_stores()?.read_studies.as_ref();
        for file in studies.parsed(job.search_id).await? {
            let mut after = 0;
            loop {
                let read = |after, limit| {
                    let selection =
                        Selection { marked: Some(self.min_tier), after, limit, bytes: usize::MAX };
                    studies.select(job.search_id, file.file_id, selection)
                };
                let page = readable(after, PAGE, |study: &Study| study.record, read).await?;
                let Some(last) = page.last else { break };
                after = last;
                if let Some((record, why)) = &page.damaged {
                    self.damaged.add(&self.names.file(job.search_id, file.file_id), *record, why);
                }
                for study in &page.items {
                    let Some(duplicate) = study.duplicate else { continue };
                    self.names.load(self.workspace, duplicate.search_id).await?;
                    let of = duplicate.of();
                    let original = match find_study(studies, of).await? {
                        Ok(original) => original,
                        Err(why) => {
                            self.damaged.add(&self.names.file(of.search_id, of.file_id), of.record, &why);
                            None
                        }
                    };
                    let at =
                        StudyRef { search_id: study.search_id, file_id: study.file_id, record: study.record };
                    let later = Side { at, position: file.position, study: Some(study) };
                    let earlier = Side { at: of, position: duplicate.position, study: original.as_ref() };
                    self.print_pair(duplicate, &later, &earlier)?;
                }
            }
        }
        Ok(())
    }

    fn print_pair(&self, duplicate: Duplicate, later: &Side<'_>, earlier: &Side<'_>) -> anyhow::Result<()> {
        let Duplicate { tier, reason, .. } = duplicate;
        if self.as_json {
            output::json(&json!({
                "study": later.object(&self.names),
                "of": earlier.object(&self.names),
                "tier": tier,
                "reason": reason,
                "because": reason.to_string(),
            }))?;
            return Ok(());
        }
        output::line(&format!("{tier}: {reason}"))?;
        for side in [later, earlier] {
            let at = side.at;
            let search = self.names.search(at.search_id);
            let file = self.names.file(at.search_id, at.file_id);
            output::line(&format!("  {}", side.name()))?;
            output::line(&format!(
                "    record {} of {} of import {}",
                at.record,
                escape_for_terminal(&file),
                escape_for_terminal(&search)
            ))?;
            if let Some(study) = side.study {
                output::line(&format!("    {}", escape_for_terminal(&study.reference.title)))?;
            }
        }
        Ok(())
    }
}

impl Side<'_> {
    /// Returns the name of the study, which `decide` takes.
    fn name(&self) -> String {
        format!("{}:{}-{}", self.at.search_id, self.position, self.at.record)
    }

    fn object(&self, names: &Names) -> Value {
        json!({
            "name": self.name(),
            "search": self.at.search_id,
            "file": names.file(self.at.search_id, self.at.file_id),
            "record": self.at.record,
            "title": self.study.map(|study| &study.reference.title),
        })
    }
}

/// Returns a study if it is stored, or the reason why it cannot be read if it is damaged.
async fn find_study(
    studies: &dyn ReadStudies,
    at: StudyRef,
) -> Result<Result<Option<Study>, String>, StoreError> {
    let read = |after, limit| studies.studies(at.search_id, at.file_id, after, limit);
    let mut page = readable(at.record.saturating_sub(1), 1, |study: &Study| study.record, read).await?;
    Ok(match page.damaged {
        Some((record, why)) if record == at.record => Err(why),
        Some(_) | None => Ok(page.items.pop().filter(|study| study.record == at.record)),
    })
}

/// Records a decision about studies.
pub(crate) async fn decide(args: &args::Decide) -> anyhow::Result<bool> {
    let workspace = Workspace::open_or_operate(workspace::settings(&args.output.location)?).await?;
    let project = workspace.project(&args.project).await?;
    let mut studies = Vec::new();
    for study in &args.studies {
        studies.push(named(&workspace, &args.project, study).await?);
    }
    let service = SearchService::over(workspace.ports(), &functions::SYSTEM)?;
    let request = DecisionRequest {
        decision: args.decision.into(),
        studies: &studies,
        if_undecided: false,
        undoes: None,
    };
    let is_new = match service.decide(project, request, &user_name()).await? {
        DecisionOutcome::Accepted { is_new } => is_new,
        DecisionOutcome::Decided(first) => bail!("{} decided about these studies first", first.by),
        DecisionOutcome::Refused(fault) => {
            bail!("{fault}; `search-import duplicates` prints the names of studies")
        }
        DecisionOutcome::Unknown(index) => {
            let study = args.studies.get(index).map_or("", String::as_str);
            let review = workspace.review_label(&args.project);
            bail!("{review} has no study {study}; `search-import duplicates` lists possible duplicates")
        }
    };
    workspace.run_until_idle(&args.output.location).await?;
    if args.output.json {
        output::json(&json!({ "result": if is_new { "recorded" } else { "unchanged" } }))?;
    } else {
        output::line(if is_new { "recorded" } else { "unchanged" })?;
    }
    Ok(true)
}

/// Finds a study by its name, `SEARCH:FILE-RECORD`.
async fn named(workspace: &Workspace, review: &args::Project, text: &str) -> anyhow::Result<StudyRef> {
    let parts = || {
        let (search, place) = text.rsplit_once(':')?;
        let (position, record) = place.split_once('-')?;
        Some((search, position.parse::<usize>().ok()?, record.parse().ok()?))
    };
    let (search, position, record) = parts()
        .with_context(|| format!("\"{text}\" is not the name of a study, such as 0198c2f4:0-17; `search-import duplicates` prints the names"))?;
    let job = find::search(workspace, review, search).await?;
    let file = job.files.get(position).with_context(|| {
        format!(
            "import {} has {} files, numbered from 0, and no file {position}",
            job.search_id,
            job.files.len()
        )
    })?;
    Ok(StudyRef { search_id: job.search_id, file_id: file.file_id, record })
}

impl From<Decision> for DecisionKind {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Same => Self::Same,
            Decision::Different => Self::Different,
            Decision::Undo => Self::Undo,
            Decision::Keep => Self::Keep,
            Decision::Unkeep => Self::Unkeep,
        }
    }
}

impl From<args::Certainty> for Tier {
    fn from(certainty: args::Certainty) -> Self {
        match certainty {
            args::Certainty::Certain => Self::Certain,
            args::Certainty::Likely => Self::Likely,
            args::Certainty::Possible => Self::Possible,
        }
    }
}
