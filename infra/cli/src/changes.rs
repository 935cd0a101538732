//! Listing the searches of a project that changed.

use anyhow::Context;
use imports::ProjectId;
use local::output;
use serde_json::{Value, json};
use service::{Change, ChangeCursor, MAX_SEEN, changes};

use crate::args;
use crate::humanize::counted;
use crate::searches::SearchItem;
use crate::table::{Column, table};
use crate::workspace::{self, Workspace};

/// Lists the searches that changed since an earlier call, and prints the cursor for the next call.
pub(crate) async fn run(args: &args::Changes) -> anyhow::Result<bool> {
    let workspace = Workspace::open_read_only(workspace::settings(&args.output.location)?).await?;
    let project = workspace.project(&args.project).await?;
    let read = |text: &String| {
        ChangeCursor::read(project, text).with_context(|| {
            let review = workspace.review_label(&args.project);
            format!("--since is not a cursor of {review}; call `search-import changes` without it")
        })
    };
    let since = args.since.as_ref().map(read).transpose()?;
    let (found, next) = all(&workspace, project, since).await?;
    if args.output.json {
        let items: Vec<Value> = found.iter().map(object).collect::<Result<_, _>>()?;
        output::json(&json!({ "items": items, "next": next.to_string() }))?;
        return Ok(true);
    }
    if !found.is_empty() {
        let columns = [Column::Whole("import"), Column::Whole("state"), Column::Text("name")];
        output::block(&table(&columns, found.iter().map(row)))?;
    }
    output::line(&format!("{}; continue with", counted(found.len() as u64, "change", "changes")))?;
    output::line(&format!("--since {next}"))?;
    Ok(true)
}

async fn all(
    workspace: &Workspace,
    project: ProjectId,
    mut since: Option<ChangeCursor>,
) -> anyhow::Result<(Vec<Change>, ChangeCursor)> {
    let jobs = workspace.jobs()?;
    let mut all = Vec::new();
    loop {
        let (found, next) = changes(&jobs, project, since.as_ref(), MAX_SEEN).await?;
        all.extend(found);
        if since.is_none() || next.is_whole() {
            return Ok((all, next));
        }
        since = Some(next);
    }
}

fn object(change: &Change) -> serde_json::Result<Value> {
    let search = change.now.as_ref().map(|job| serde_json::to_value(SearchItem::from(job))).transpose()?;
    Ok(json!({ "search_id": change.search_id, "deleted": search.is_none(), "search": search }))
}

fn row(change: &Change) -> Vec<String> {
    let job = change.now.as_ref();
    vec![
        change.search_id.to_string(),
        job.map_or("deleted".to_owned(), |job| job.state.to_string()),
        job.and_then(|job| job.name.clone()).unwrap_or_default(),
    ]
}
