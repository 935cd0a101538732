//! The sources of files, and the PRISMA counts of a review.

use anyhow::bail;
use http_api::FlowView;
use imports::{FileId, Job};
use local::{output, user_name};
use serde::Serialize;
use service::sources::{Flow, NewSource, NewSources, Source, SourcesOutcome, Sums};
use service::{ProjectAccess, SearchService};

use crate::args;
use crate::find;
use crate::flow_chart::svg;
use crate::humanize::counted;
use crate::table::{Column, table};
use crate::workspace::{self, Workspace};

/// Shows or sets the sources of a search's files.
pub(crate) async fn run(args: &args::Sources) -> anyhow::Result<bool> {
    let settings = workspace::settings(&args.output.location)?;
    let source = args.source.read();
    let changes = source.is_some() || args.forget;
    let workspace = if changes {
        Workspace::open_or_operate(settings).await?
    } else {
        Workspace::open_read_only(settings).await?
    };
    let job = find::search(&workspace, &args.search.project, &args.search.search).await?;
    let service = SearchService::over(workspace.ports(), &functions::SYSTEM)?;
    if changes {
        let files = match args.file.as_slice() {
            [] => job.files.iter().map(|file| file.file_id).collect::<Vec<_>>(),
            names => names.iter().map(|name| find::file(&job, name)).collect::<anyhow::Result<Vec<_>>>()?,
        };
        let given = service.sources(&job, &service.repairs(&job).await?.repairs).await?;
        let new = files.into_iter().map(|file_id: FileId| {
            let given = given.get(&file_id).filter(|known| known.is_given);
            let source = source.clone().map(|source| match given {
                Some(given) => source.or(&given.source),
                None => source,
            });
            NewSource { file_id, source }
        });
        store(&service, &job, new.collect()).await?;
    }
    show(&service, &job, args.output.json).await?;
    Ok(true)
}

/// Stores the sources of files, or removes those that are `None`.
pub(crate) async fn store(service: &SearchService, job: &Job, files: Vec<NewSource>) -> anyhow::Result<()> {
    let new = NewSources { files };
    match service.set_sources(&ProjectAccess::All, job.search_id, &new, &user_name()).await? {
        SourcesOutcome::Accepted => Ok(()),
        SourcesOutcome::Refused(fault) => bail!("{fault}"),
        SourcesOutcome::Unknown => {
            bail!("import {} was deleted in the meantime; there is nothing left to do", job.search_id)
        }
    }
}

/// The source of a file in JSON output.
#[derive(Serialize)]
struct FileSource<'a> {
    file_id: FileId,
    name: &'a str,
    #[serde(flatten)]
    source: &'a Source,
    guessed: bool,
}

async fn show(service: &SearchService, job: &Job, as_json: bool) -> anyhow::Result<()> {
    let known = service.sources(job, &service.repairs(job).await?.repairs).await?;
    let names = job.file_names();
    let files = || {
        job.files
            .iter()
            .zip(&names)
            .filter_map(|(file, name)| Some((name, known.get(&file.file_id)?, file.file_id)))
    };
    if as_json {
        for (name, known, file_id) in files() {
            output::json(&FileSource { file_id, name, source: &known.source, guessed: !known.is_given })?;
        }
        return Ok(());
    }
    let columns = [
        Column::Text("file"),
        Column::Text("database"),
        Column::Text("platform"),
        Column::Whole("searched"),
        Column::Whole(""),
    ];
    let rows = files().map(|(name, known, _)| {
        let [database, platform, searched] = cells(&known.source);
        let guessed = if known.is_given { "" } else { "guessed" };
        vec![name.clone(), database, platform, searched, guessed.to_owned()]
    });
    Ok(output::block(&table(&columns, rows))?)
}

fn cells(source: &Source) -> [String; 3] {
    let searched = source.searched_on.map(|date| date.to_string());
    [source.database.clone(), source.platform.clone(), searched].map(Option::unwrap_or_default)
}

/// Prints the PRISMA 2020 counts of a project.
pub(crate) async fn prisma(args: &args::Prisma) -> anyhow::Result<bool> {
    let workspace = Workspace::open_read_only(workspace::settings(&args.output.location)?).await?;
    let project = workspace.project(&args.project).await?;
    let flow = SearchService::over(workspace.ports(), &functions::SYSTEM)?.flow(project).await?;
    let is_empty = flow.lines.is_empty() && flow.open == 0 && flow.failed_files == 0;
    if args.svg {
        output::block(&svg(&flow.drawing()))?;
    } else if args.output.json {
        output::json(&FlowView::from(flow))?;
    } else {
        print_counts(&flow)?;
    }
    if is_empty {
        let jobs = workspace.jobs()?;
        let first = find::Pages::of(&jobs, project).next().await?;
        if first.is_none_or(|page| page.is_empty()) {
            output::remark(&find::no_searches(&workspace, &args.project));
        }
    }
    Ok(true)
}

fn print_counts(flow: &Flow) -> anyhow::Result<()> {
    let columns = [
        Column::Text("source"),
        Column::Number("records"),
        Column::Number("not imported"),
        Column::Number("duplicates"),
        Column::Number("left"),
    ];
    let row = |name: String, sums: Sums| {
        let Sums { records, unread, duplicates, left, .. } = sums;
        let numbers = [records, unread, duplicates, left].map(|number| number.to_string());
        [vec![name], numbers.to_vec()].concat()
    };
    let lines = flow.lines.iter().map(|line| row(line.source.name(), line.sums));
    output::block(&table(&columns, lines.chain([row("all".to_owned(), flow.sums)])))?;
    output::line("")?;
    output::line(&flow.sentence())?;
    if flow.open > 0 {
        let open = counted(flow.open, "import has", "imports have");
        output::remark(&format!("{open} not ended; the counts will change"));
    }
    if flow.failed_files > 0 {
        let files = counted(flow.failed_files, "file", "files");
        output::remark(&format!("{files} could not be read; no record of an unreadable file is counted"));
    }
    Ok(())
}
