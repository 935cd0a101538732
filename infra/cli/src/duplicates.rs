//! Studies of a project that are there twice, and what people say of them.

use anyhow::{Context, bail};
use functions::start_upload::{Decided, StartUpload, Word};
use imports::{Duplicate, Job, JobState, ProjectId, ReadStudies, Selection, Study, StudyAt, Tier};
use local::output;
use messages::shown::shown;
use serde_json::json;

use crate::args::{self, Decision};
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
    let mut names = Names::default();
    let mut pages = find::Pages::of(&jobs, workspace.project(args.project));
    while let Some(page) = pages.next().await? {
        for job in page.iter().filter(|job| matches!(job.state, JobState::Completed | JobState::Error)) {
            names.add(job);
            list(&workspace, &mut names, job, args).await?;
        }
    }
    Ok(true)
}

async fn list(
    workspace: &Workspace,
    names: &mut Names,
    job: &Job,
    args: &args::Duplicates,
) -> anyhow::Result<()> {
    let studies = workspace.library()?.read_studies.as_ref();
    for file in studies.parsed(job.search_id).await? {
        let mut after = 0;
        loop {
            let selection =
                Selection { marked: Some(args.least.into()), after, limit: PAGE, bytes: usize::MAX };
            let page = studies.select(job.search_id, file.file_id, selection).await?;
            let Some(last) = page.last() else { break };
            after = last.record;
            for study in &page {
                let Some(duplicate) = study.duplicate else { continue };
                names.learn(workspace, duplicate.search_id).await?;
                let original = find_study(studies, duplicate.of()).await?;
                tell(names, (file.position, study), (duplicate, original.as_ref()), args.output.json)?;
            }
        }
    }
    Ok(())
}

async fn find_study(studies: &dyn ReadStudies, at: StudyAt) -> anyhow::Result<Option<Study>> {
    let found = studies.studies(at.search_id, at.file_id, at.record.saturating_sub(1), 1).await?.pop();
    Ok(found.filter(|study| study.record == at.record))
}

fn tell(
    names: &Names,
    (position, study): (u32, &Study),
    (duplicate, original): (Duplicate, Option<&Study>),
    as_json: bool,
) -> anyhow::Result<()> {
    let at = StudyAt { search_id: study.search_id, file_id: study.file_id, record: study.record };
    let of = duplicate.of();
    let Duplicate { tier, reason, .. } = duplicate;
    let name = |at: StudyAt, position| format!("{}:{position}-{}", at.search_id, at.record);
    if as_json {
        let side = |at: StudyAt, position, study: Option<&Study>| {
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
    let start = StartUpload::over(workspace.ports())?;
    let said = match start.decide(project, args.decision.into(), &studies, &somebody()).await? {
        Decided::Accepted { is_new: true } => "noted",
        Decided::Accepted { is_new: false } => "as it was",
        Decided::Refused(fault) => bail!("{fault}"),
        Decided::Unknown(place) => {
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
async fn named(workspace: &Workspace, project: ProjectId, text: &str) -> anyhow::Result<StudyAt> {
    let parts = || {
        let (search, place) = text.rsplit_once(':')?;
        let (position, record) = place.split_once('-')?;
        Some((search, position.parse::<usize>().ok()?, record.parse().ok()?))
    };
    let (search, position, record) = parts()
        .with_context(|| format!("\"{text}\" does not name a study: a name is such as 0198c2f4:0-17"))?;
    let job = find::search(workspace, project, search).await?;
    let file = job
        .files
        .get(position)
        .with_context(|| format!("search {} has no file {position}", job.search_id))?;
    Ok(StudyAt { search_id: job.search_id, file_id: file.file_id, record })
}

impl From<Decision> for Word {
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
