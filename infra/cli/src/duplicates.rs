//! Studies of a project that are there twice, and what people say of them.

use anyhow::{Context, bail};
use imports::{Duplicate, Job, JobState, ProjectId, ReadStudies, Selection, Study, StudyRef, Tier, readable};
use local::output;
use messages::StoreError;
use messages::shown::shown;
use serde_json::json;
use service::{DecisionKind, DecisionOutcome, SearchService};

use crate::args::{self, Decision};
use crate::damaged::Skipped;
use crate::end::{open, settled};
use crate::find;
use crate::studies::Names;
use crate::workspace::{self, Workspace};

/// How many studies are read at a time.
const PAGE: usize = 500;

/// Lists the studies of a project that repeat an earlier one, each beside that one.
pub(crate) async fn run(args: &args::Duplicates) -> anyhow::Result<bool> {
    let workspace = Workspace::look_into(workspace::settings(&args.output.place)?).await?;
    let jobs = workspace.jobs()?;
    let (mut names, mut skipped) = (Names::default(), Skipped::default());
    let project = workspace.project(args.project);
    let (mut pages, mut is_empty) = (find::Pages::of(&jobs, project), true);
    while let Some(page) = pages.next().await? {
        is_empty &= page.is_empty();
        for job in page.iter().filter(|job| matches!(job.state, JobState::Completed | JobState::Error)) {
            names.add(job);
            list(&workspace, (&mut names, &mut skipped), job, args).await?;
        }
    }
    if is_empty {
        output::remark(&find::no_searches(&workspace, project));
    }
    Ok(skipped.tell())
}

async fn list(
    workspace: &Workspace,
    (names, skipped): (&mut Names, &mut Skipped),
    job: &Job,
    args: &args::Duplicates,
) -> anyhow::Result<()> {
    let studies = workspace.study_stores()?.read_studies.as_ref();
    for file in studies.parsed(job.search_id).await? {
        let mut after = 0;
        loop {
            let read = |after, limit| {
                let selection =
                    Selection { marked: Some(args.least.into()), after, limit, bytes: usize::MAX };
                studies.select(job.search_id, file.file_id, selection)
            };
            let page = readable(after, PAGE, |study: &Study| study.record, read).await?;
            let Some(last) = page.last else { break };
            after = last;
            if let Some((record, why)) = &page.damaged {
                skipped.add(&names.file(job.search_id, file.file_id), *record, why);
            }
            for study in &page.items {
                let Some(duplicate) = study.duplicate else { continue };
                names.learn(workspace, duplicate.search_id).await?;
                let of = duplicate.of();
                let original = match find_study(studies, of).await? {
                    Ok(original) => original,
                    Err(why) => {
                        skipped.add(&names.file(of.search_id, of.file_id), of.record, &why);
                        None
                    }
                };
                tell(names, (file.position, study), (duplicate, original.as_ref()), args.output.json)?;
            }
        }
    }
    Ok(())
}

/// Returns a study, if it is stored; why it cannot be read, if it is damaged.
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

fn tell(
    names: &Names,
    (position, study): (u32, &Study),
    (duplicate, original): (Duplicate, Option<&Study>),
    as_json: bool,
) -> anyhow::Result<()> {
    let at = StudyRef { search_id: study.search_id, file_id: study.file_id, record: study.record };
    let of = duplicate.of();
    let Duplicate { tier, reason, .. } = duplicate;
    let name = |at: StudyRef, position| format!("{}:{position}-{}", at.search_id, at.record);
    if as_json {
        let side = |at: StudyRef, position, study: Option<&Study>| {
            json!({
                "name": name(at, position),
                "search": at.search_id,
                "file": names.file(at.search_id, at.file_id),
                "record": at.record,
                "title": study.map(|study| &study.reference.title),
            })
        };
        output::json(&json!({
            "study": side(at, position, Some(study)),
            "of": side(of, duplicate.position, original),
            "tier": tier,
            "reason": reason,
            "because": reason.to_string(),
        }))?;
        return Ok(());
    }
    output::line(&format!("{tier}: {reason}"))?;
    let sides = [(at, position, Some(study)), (of, duplicate.position, original)];
    for (at, position, study) in sides {
        let (search, file) = (names.search(at.search_id), names.file(at.search_id, at.file_id));
        output::line(&format!("  {}", name(at, position)))?;
        output::line(&format!("    record {} of {} of search {}", at.record, shown(&file), shown(&search)))?;
        if let Some(study) = study {
            output::line(&format!("    {}", shown(&study.reference.title)))?;
        }
    }
    Ok(())
}

/// Writes down what somebody says of studies.
pub(crate) async fn decide(args: &args::Decide) -> anyhow::Result<bool> {
    let workspace = open(&args.output).await?;
    let project = workspace.project(args.project);
    let mut studies = Vec::new();
    for study in &args.studies {
        studies.push(named(&workspace, project, study).await?);
    }
    let start = SearchService::over(workspace.ports(), &functions::SYSTEM)?;
    let said = match start.decide(project, args.decision.into(), &studies, &somebody()).await? {
        DecisionOutcome::Accepted { is_new: true } => "noted",
        DecisionOutcome::Accepted { is_new: false } => "as it was",
        DecisionOutcome::Refused(fault) => bail!("{fault}; `search-import duplicates` names studies"),
        DecisionOutcome::Unknown(place) => {
            let study = args.studies.get(place).map_or("", String::as_str);
            bail!(
                "project {project} has no study {study}; `search-import duplicates` lists those that may be the same"
            )
        }
    };
    settled(&workspace).await?;
    if args.output.json {
        output::json(&json!({ "decision": said }))?;
    } else {
        output::line(said)?;
    }
    Ok(true)
}

/// Who works here, for the record.
fn somebody() -> String {
    std::env::var("USER").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "somebody".to_owned())
}

/// A study by its name: `SEARCH:FILE-RECORD`.
async fn named(workspace: &Workspace, project: ProjectId, text: &str) -> anyhow::Result<StudyRef> {
    let parts = || {
        let (search, place) = text.rsplit_once(':')?;
        let (position, record) = place.split_once('-')?;
        Some((search, position.parse::<usize>().ok()?, record.parse().ok()?))
    };
    let (search, position, record) = parts()
        .with_context(|| format!("\"{text}\" does not name a study: a name is such as 0198c2f4:0-17; `search-import duplicates` prints names"))?;
    let job = find::search(workspace, project, search).await?;
    let file = job.files.get(position).with_context(|| {
        format!(
            "search {} has {} files, numbered from 0, and no file {position}",
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

impl From<args::Least> for Tier {
    fn from(least: args::Least) -> Self {
        match least {
            args::Least::Certain => Self::Certain,
            args::Least::Likely => Self::Likely,
            args::Least::Possible => Self::Possible,
        }
    }
}
