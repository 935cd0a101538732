//! Where the records of files come from, and what a review reports of them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use imports::Marked;
use serde::Serialize;
use utoipa::ToSchema;

use super::extract::{AskedProject, AskedSearch};
use super::problem::{Problem, Refused};
use super::{Answer, Api};
use service::sources::{Drawing, Flow, FlowError, Known, Line, NewSources, Said, Source, Sums};

/// Where the records of a file come from.
#[derive(Clone, Serialize, ToSchema)]
pub(super) struct SourceView {
    /// What it is called: made of the others, and `unknown source` without them.
    name: String,
    /// The database or register that was searched.
    #[schema(required)]
    database: Option<String>,
    /// What it was searched through.
    #[schema(required)]
    platform: Option<String>,
    /// The date of the search, such as `2026-05-17`.
    #[schema(required)]
    searched_on: Option<String>,
    /// Whether nobody has said it, and it is what the file shows.
    is_guessed: bool,
}

impl From<Known> for SourceView {
    fn from(known: Known) -> Self {
        Self::of(known.source, !known.is_given)
    }
}

impl SourceView {
    fn of(source: Source, is_guessed: bool) -> Self {
        let name = source.name();
        let Source { database, platform, searched_on } = source;
        Self { name, database, platform, searched_on: searched_on.map(|date| date.to_string()), is_guessed }
    }
}

/// What was found, and what became of it. It closes: `records` = `unread` + `studies`, and `studies` = `duplicates` + `left`.
#[derive(Serialize, ToSchema)]
struct SumsView {
    /// Files that were read to their end.
    files: u64,
    /// Records identified: all that are in the files. One that was mended counts once.
    records: u64,
    /// Records that could not be read.
    unread: u64,
    /// Records that were read.
    studies: u64,
    /// Studies that repeat an earlier one of the project, in whichever source that was found.
    duplicates: u64,
    /// How that is known.
    duplicates_by: ByView,
    /// Studies that possibly repeat an earlier one: they are left until somebody says that they do.
    possible_duplicates: u64,
    /// Studies that are left for screening.
    left: u64,
}

/// How it is known that studies repeat earlier ones.
#[derive(Serialize, ToSchema)]
struct ByView {
    /// By rules of which one in some thousand cases is wrong.
    certain: u64,
    /// By rules of which one in some hundred cases is wrong.
    likely: u64,
    /// Somebody has said so.
    said: u64,
}

impl From<Sums> for SumsView {
    fn from(Sums { files, records, unread, studies, duplicates, marked, left }: Sums) -> Self {
        let Marked { certain, likely, said, possible } = marked;
        let duplicates_by = ByView { certain, likely, said };
        Self {
            files,
            records,
            unread,
            studies,
            duplicates,
            duplicates_by,
            possible_duplicates: possible,
            left,
        }
    }
}

/// A source, and what was found there.
#[derive(Serialize, ToSchema)]
struct LineView {
    /// The source; without a name where nobody has said it and the files do not show it.
    source: SourceView,
    /// What was found there.
    found: SumsView,
}

impl From<Line> for LineView {
    fn from(Line { source, is_guessed, sums }: Line) -> Self {
        Self { source: SourceView::of(source, is_guessed), found: sums.into() }
    }
}

/// What a review reports by PRISMA 2020 of how records were identified.
#[derive(Serialize, ToSchema)]
pub struct FlowView {
    /// What is reported, as a sentence for the methods section.
    sentence: String,
    /// The same as a flow diagram.
    drawing: Drawing,
    /// What was found in each source.
    sources: Vec<LineView>,
    /// All of them together.
    total: SumsView,
    /// Searches that are added up: those that have completed.
    searches: u64,
    /// Searches that have not ended; the sums will change.
    open_searches: u64,
    /// Files that were refused, and that no repair has read: nothing of them is counted.
    failed_files: u64,
}

impl From<Flow> for FlowView {
    fn from(flow: Flow) -> Self {
        let (sentence, drawing) = (flow.sentence(), flow.drawing());
        let Flow { lines, sums, searches, open, failed_files } = flow;
        let sources = lines.into_iter().map(LineView::from).collect();
        Self { sentence, drawing, sources, total: sums.into(), searches, open_searches: open, failed_files }
    }
}

/// Say where the records of a search's files come from.
///
/// What is not said is guessed from the file. It may be said at any time, and be changed; of files that are not named nothing
/// changes.
#[utoipa::path(
    post,
    path = "/projects/{project}/searches/{search}/sources",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
    ),
    request_body = NewSources,
    responses(
        (status = 204, description = "It is written down"),
        (status = 422, description = "A file is none of the search, or a name is empty or too long", body = Problem, content_type = "application/problem+json"),
        Refused,
    ),
)]
pub(super) async fn say_sources(
    State(api): State<Arc<Api>>,
    AskedSearch { caller, search }: AskedSearch,
    new: Result<Json<NewSources>, JsonRejection>,
) -> Answer {
    let Json(new) = new.map_err(|rejection| Problem::unreadable(&rejection, "what sources are"))?;
    match api.function.say_sources(&caller, search, &new).await? {
        Said::Accepted => Ok(StatusCode::NO_CONTENT.into_response()),
        Said::Refused(fault) => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, &fault.to_string())),
        Said::Unknown => Err(Problem::no_such_search()),
    }
}

/// What a review reports by PRISMA 2020 of the searches of a project: how many records were identified in which source, how many
/// could not be read, how many repeat others, and how many are left.
#[utoipa::path(
    get,
    path = "/projects/{project}/prisma",
    params(("project" = Uuid, Path, description = "The review")),
    responses(
        (status = 200, description = "The sums", body = FlowView),
        (status = 422, description = "The project has more than 1,000 searches", body = Problem, content_type = "application/problem+json"),
        Refused,
    ),
)]
pub(super) async fn show_flow(State(api): State<Arc<Api>>, AskedProject(project): AskedProject) -> Answer {
    let flow = api.function.flow(project).await.map_err(|error| match error {
        FlowError::TooMany => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()),
        FlowError::Store(error) => Problem::from(error),
    })?;
    Ok(Json(FlowView::from(flow)).into_response())
}
