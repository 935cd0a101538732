//! Listing and changing reviews.

use anyhow::bail;
use imports::ProjectId;
use local::{output, user_name};
use messages::escape::escape_for_terminal;
use service::{CreatedReview, ProjectAccess, Review, ReviewChange, ReviewDeletion, SearchService};

use crate::args::{
    Output, ReviewName, ReviewsChange, ReviewsCommand, ReviewsCreate, ReviewsDelete, ReviewsList,
    ReviewsRename,
};
use crate::consent;
use crate::humanize::counted;
use crate::table::{Column, table};
use crate::workspace::{self, Workspace};

pub(crate) async fn run(command: ReviewsCommand) -> anyhow::Result<bool> {
    match command {
        ReviewsCommand::List(args) => list(&args).await,
        ReviewsCommand::Create(args) => make(&args).await,
        ReviewsCommand::Rename(ReviewsRename { change, name }) => {
            edit(&change, ReviewChange { name: Some(name), archived: None }, "is renamed").await
        }
        ReviewsCommand::Archive(args) => {
            edit(&args, ReviewChange { name: None, archived: Some(true) }, "is archived").await
        }
        ReviewsCommand::Restore(args) => {
            edit(&args, ReviewChange { name: None, archived: Some(false) }, "is restored").await
        }
        ReviewsCommand::Delete(args) => delete(&args).await,
    }
}

async fn list(args: &ReviewsList) -> anyhow::Result<bool> {
    let workspace = Workspace::open_read_only(workspace::settings(&args.output.location)?).await?;
    let mut reviews = service(&workspace)?.reviews(&ProjectAccess::All).await?;
    reviews.retain(|review| args.archived || review.archived_at.is_none());
    if args.output.json {
        for review in &reviews {
            output::json(review)?;
        }
        return Ok(true);
    }
    let row = |review: &Review| {
        let state = if review.archived_at.is_some() { "archived" } else { "" };
        vec![review.name.clone(), review.project_id.to_string(), state.to_owned()]
    };
    if !reviews.is_empty() {
        let columns = [Column::Text("name"), Column::Whole("id"), Column::Whole("state")];
        output::block(&table(&columns, reviews.iter().map(row)))?;
    }
    output::line(&counted(reviews.len() as u64, "review", "reviews"))?;
    Ok(true)
}

async fn make(args: &ReviewsCreate) -> anyhow::Result<bool> {
    let settings = workspace::settings(&args.output.location)?;
    let workspace = match workspace::is_unused(&settings.data_dir) {
        true => Workspace::open(settings).await?,
        false => Workspace::open_or_operate(settings).await?,
    };
    let CreatedReview { review, is_new } = create(&service(&workspace)?, &args.name).await?;
    if !is_new {
        bail!("there is already a review with the name \"{}\", {}", review.name, review.project_id);
    }
    print(&args.output, &review, "is created")
}

/// Creates a review, or returns the one with this name.
pub(crate) async fn create(service: &SearchService, name: &str) -> anyhow::Result<CreatedReview> {
    Ok(service.create_review(name, &user_name()).await??)
}

async fn edit(args: &ReviewsChange, change: ReviewChange, done: &str) -> anyhow::Result<bool> {
    let workspace = Workspace::open_or_operate(workspace::settings(&args.output.location)?).await?;
    let project = existing(&workspace, &args.review).await?;
    let review = service(&workspace)?.change_review(project, &change, &user_name()).await??;
    print(&args.output, &review, done)
}

async fn delete(args: &ReviewsDelete) -> anyhow::Result<bool> {
    let ReviewsChange { review, output } = &args.change;
    let workspace = Workspace::open_or_operate(workspace::settings(&output.location)?).await?;
    let project = existing(&workspace, review).await?;
    let what = review.name.as_deref().map_or_else(|| project.to_string(), |name| format!("\"{name}\""));
    let question = format!("Delete review {what} with all its imports and decisions? This cannot be undone.");
    consent::ask(args.consent, &question)?;
    let service = service(&workspace)?;
    loop {
        match service.delete_review(project).await? {
            ReviewDeletion::Accepted => break,
            ReviewDeletion::More => {}
            ReviewDeletion::Running(search) => {
                bail!("import {search} of the review has not ended; `search-import cancel` cancels it")
            }
        }
    }
    workspace.run_until_idle(&output.location).await?;
    if output.json {
        output::json(&serde_json::json!({ "project_id": project, "done": "deleted" }))?;
    } else {
        output::line(&format!("review {} is deleted", escape_for_terminal(&what)))?;
    }
    Ok(true)
}

/// Returns the review with a name that is listed or has imports, or the one with an id. Another name is mistyped.
async fn existing(workspace: &Workspace, named: &ReviewName) -> anyhow::Result<ProjectId> {
    let project = workspace.review(named).await?;
    let Some(name) = &named.name else { return Ok(project) };
    let is_listed = service(workspace)?.review(project).await?.is_some();
    if !is_listed && workspace.jobs()?.of_project(project, None, 1).await?.items.is_empty() {
        bail!(
            "there is no review \"{name}\" in {}; `search-import reviews list` lists the reviews",
            workspace.name()
        );
    }
    Ok(project)
}

fn service(workspace: &Workspace) -> anyhow::Result<SearchService> {
    Ok(SearchService::over(workspace.ports(), &functions::SYSTEM)?)
}

fn print(output: &Output, review: &Review, done: &str) -> anyhow::Result<bool> {
    if output.json {
        output::json(review)?;
    } else {
        output::line(&format!(
            "review \"{}\" {done}: {}",
            escape_for_terminal(&review.name),
            review.project_id
        ))?;
    }
    Ok(true)
}
