//! Handlers for the sources of files and for the PRISMA report.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use imports::DuplicateCounts;
use serde::Serialize;
use utoipa::ToSchema;

use super::extract::{AuthorizedActor, AuthorizedProject, AuthorizedSearch};
use super::problem::{CommonErrors, Problem};
use super::{Api, HttpResult};
use service::sources::{
    Drawing, Flow, FlowError, KnownSource, Line, Method, NewSources, ReviewSources, Source, SourcesOutcome,
    Sums,
};

/// The source of a file's records.
#[derive(Clone, Serialize, ToSchema)]
pub(super) struct SourceView {
    /// The display name, composed of the other fields; `unknown source` if they are all empty.
    name: String,
    /// The database or register that was searched.
    #[schema(required)]
    database: Option<String>,
    /// The platform through which it was searched.
    #[schema(required)]
    platform: Option<String>,
    /// The date of the search, such as `2026-05-17`.
    #[schema(required)]
    searched_on: Option<String>,
    /// `true` if no reviewer has set the source and it was guessed from the file.
    is_guessed: bool,
}

impl From<KnownSource> for SourceView {
    fn from(known: KnownSource) -> Self {
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

/// PRISMA counts of records. Invariants: `records` = `unread` + `studies`, and `studies` = `duplicates` + `left`.
#[derive(Serialize, ToSchema)]
struct RecordCountsView {
    /// Number of files that were read completely.
    files: u64,
    /// Records identified: all records of the files. A record that was corrected by a repair counts once.
    records: u64,
    /// Records that were not imported because they could not be read.
    unread: u64,
    /// Records that were read.
    studies: u64,
    /// Studies that repeat an earlier study of the review, from any source.
    duplicates: u64,
    /// The duplicates by how they were identified.
    duplicates_by: DuplicateCountsView,
    /// Studies that may repeat an earlier one. They are kept for screening unless a reviewer decides otherwise.
    possible_duplicates: u64,
    /// Studies that remain for screening.
    left: u64,
}

/// Duplicates by how they were identified.
#[derive(Serialize, ToSchema)]
struct DuplicateCountsView {
    /// By rules that are wrong about once in several thousand cases.
    certain: u64,
    /// By rules that are wrong about once in several hundred cases.
    likely: u64,
    /// By a reviewer's decision.
    said: u64,
}

impl From<Sums> for RecordCountsView {
    fn from(Sums { files, records, unread, studies, duplicates, marked, left }: Sums) -> Self {
        let DuplicateCounts { certain, likely, said, possible } = marked;
        let duplicates_by = DuplicateCountsView { certain, likely, said };
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

/// The counts of one source.
#[derive(Serialize, ToSchema)]
struct SourceCountsView {
    /// The source. It has no name if it was neither set nor guessed from the files.
    source: SourceView,
    /// How its records were identified. A source that is not in the list of known sources counts as a database.
    method: Method,
    /// The records found in this source.
    found: RecordCountsView,
}

impl From<Line> for SourceCountsView {
    fn from(Line { source, method, is_guessed, sums }: Line) -> Self {
        Self { source: SourceView::of(source, is_guessed), method, found: sums.into() }
    }
}

/// The identification of records in a review, as reported by PRISMA 2020.
#[derive(Serialize, ToSchema)]
pub struct FlowView {
    /// The report as a sentence for the methods section.
    sentence: String,
    /// The report as a flow diagram.
    drawing: Drawing,
    /// The counts of each source.
    sources: Vec<SourceCountsView>,
    /// The counts of all sources.
    total: RecordCountsView,
    /// Number of completed imports, which are included in the counts.
    searches: u64,
    /// Number of unfinished imports. The counts will change when they complete.
    open_searches: u64,
    /// Number of files that failed and were not replaced by a repair. They are not included in the counts.
    failed_files: u64,
}

impl From<Flow> for FlowView {
    fn from(flow: Flow) -> Self {
        let (sentence, drawing) = (flow.sentence(), flow.drawing());
        let Flow { lines, sums, searches, open, failed_files } = flow;
        let sources = lines.into_iter().map(SourceCountsView::from).collect();
        Self { sentence, drawing, sources, total: sums.into(), searches, open_searches: open, failed_files }
    }
}

/// Sets the sources of an import's files.
///
/// A source that is not set is guessed from the file. Sources can be set and changed at any time; files that the
/// request does not name keep their source.
#[utoipa::path(
    post,
    path = "/projects/{project}/searches/{search}/sources",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
    ),
    request_body = NewSources,
    responses(
        (status = 204, description = "The sources are stored"),
        (status = 422, description = "A file does not belong to the import, or a name is empty or too long", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn set_sources(
    State(api): State<Arc<Api>>,
    AuthorizedSearch { caller, search }: AuthorizedSearch,
    AuthorizedActor(person): AuthorizedActor,
    new: Result<Json<NewSources>, JsonRejection>,
) -> HttpResult {
    let Json(new) = new.map_err(|rejection| Problem::unreadable(&rejection, "a list of sources"))?;
    match api.service.set_sources(&caller, search, &new, &person).await? {
        SourcesOutcome::Accepted => Ok(StatusCode::NO_CONTENT.into_response()),
        SourcesOutcome::Refused(fault) => {
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, &fault.to_string()))
        }
        SourcesOutcome::Unknown => Err(Problem::no_such_search()),
    }
}

/// The outcome of a change of sources.
#[derive(Serialize, ToSchema)]
struct ChangedFiles {
    /// Number of files whose source has changed.
    files: usize,
}

/// Changes the sources of all files of a review: replaces one source by another, or sets one date for all.
///
/// Each import changes on its own. A request that was interrupted can be repeated.
#[utoipa::path(
    post,
    path = "/projects/{project}/sources",
    params(("project" = Uuid, Path, description = "The review")),
    request_body = ReviewSources,
    responses(
        (status = 200, description = "The sources are stored", body = ChangedFiles),
        (status = 422, description = "A name is empty or too long, or the review has more than 1,000 imports", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn change_sources(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    AuthorizedActor(person): AuthorizedActor,
    new: Result<Json<ReviewSources>, JsonRejection>,
) -> HttpResult {
    let Json(new) = new.map_err(|rejection| Problem::unreadable(&rejection, "a change of sources"))?;
    let changed = api.service.change_sources(project, &new, &person).await?;
    let files =
        changed.map_err(|fault| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, &fault.to_string()))?;
    Ok(Json(ChangedFiles { files }).into_response())
}

/// Returns the PRISMA 2020 counts of a review: records identified in each source, records that were not imported,
/// duplicates, and records that remain.
#[utoipa::path(
    get,
    path = "/projects/{project}/prisma",
    params(("project" = Uuid, Path, description = "The review")),
    responses(
        (status = 200, description = "The counts", body = FlowView),
        (status = 422, description = "The review has more than 1,000 imports", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn show_flow(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
) -> HttpResult {
    let flow = api.service.flow(project).await.map_err(|error| match error {
        FlowError::TooMany(_) => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()),
        FlowError::Store(error) => Problem::from(error),
    })?;
    Ok(Json(FlowView::from(flow)).into_response())
}
