//! Handlers that announce, list, show, cancel and delete searches.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use futures::stream::{self, StreamExt, TryStreamExt};
use imports::{Job, JobState};
use messages::StoreError;
use operate::http::extract::Parameters;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{AuthorizedProject, AuthorizedSearch};
use super::paging::{self, List};
use super::problem::{CommonErrors, Problem};
use super::view::{AnnouncedView, Details, SearchList, SearchView};
use super::{Api, HttpResult, choices, etag};
use service::{Cancellation, CreateOutcome, Deletion, NewSearch, SearchFilter, SearchService};

/// The header that makes a request idempotent
/// (<https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/>).
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The maximum length of a key, in bytes.
const MAX_KEY_BYTES: usize = 255;
/// The default and maximum number of searches in a page.
pub(super) const PAGE: usize = 50;
pub(super) const MAX_PAGE: usize = 200;
/// The number of imports of a page whose totals are read concurrently.
const CONCURRENT_DETAILS: usize = 16;

/// Announces an import (search): its name, and the files that will be uploaded.
///
/// The response has an upload form for each file.
#[utoipa::path(
    post,
    path = "/projects/{project}/searches",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated request with the same key returns the same import"),
    ),
    request_body = NewSearch,
    responses(
        (status = 201, description = "The import was announced, by this request or by an earlier one with the same key", body = AnnouncedView),
        (status = 400, description = "The request cannot be read", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "The review does not exist or the caller has no access to it", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The request is too large", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "The key was used before, for an import that is not stored, or that ended before all files arrived", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The manifest is not valid, or the key was used for another import", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The review has too many unfinished imports", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The service is temporarily unavailable; try again", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn create_search(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    headers: HeaderMap,
    request: Result<Json<NewSearch>, JsonRejection>,
) -> HttpResult {
    let key = idempotency_key(&headers)?;
    let Json(request) = request.map_err(|rejection| Problem::unreadable(&rejection, "an import"))?;
    let announced = match key {
        None => api.service.create(project, &request).await?,
        Some(key) => match api.service.create_once(project, &request, &key).await? {
            CreateOutcome::Announced(announced) => announced,
            CreateOutcome::Ended(search) => return Err(Problem::ended(search)),
            CreateOutcome::Differs => {
                let detail = "the idempotency key was used for another import before";
                return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
            }
            CreateOutcome::Unknown => {
                let detail = "an earlier request used the idempotency key, but its import is not stored; try again in a \
                              few minutes, or use a new key";
                return Err(Problem::new(StatusCode::CONFLICT, detail));
            }
        },
    };
    let place = format!("/projects/{project}/searches/{}", announced.search_id);
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], Json(AnnouncedView::from(announced)))
        .into_response())
}

/// Returns one import (search): its progress, its files and their results.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
        ("If-None-Match" = Option<String>, Header, description = "The ETag of the client's copy"),
    ),
    responses(
        (status = 200, description = "The import", body = SearchView, headers(("ETag" = String, description = "Identifies this content"))),
        (status = 304, description = "The client's copy is current"),
        CommonErrors,
    ),
)]
pub(super) async fn show_search(
    State(api): State<Arc<Api>>,
    AuthorizedSearch { caller, search }: AuthorizedSearch,
    headers: HeaderMap,
) -> HttpResult {
    let found = api.service.status(&caller, search).await?;
    let (job, progress) = found.ok_or_else(Problem::no_such_search)?;
    let details = Details::of(&api.service, &job, progress).await?;
    etag::answer(&headers, &SearchView::of(job, Some(&details)))
}

/// Cancels an import that has not ended.
///
/// The import ends in the state `Error`. Files that are being read are abandoned, and their studies are deleted.
/// Files that arrive later are not read.
#[utoipa::path(
    post,
    path = "/projects/{project}/searches/{search}/cancel",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
    ),
    responses(
        (status = 202, description = "Cancellation is accepted, or the import was cancelled before; the import still completes if its last file has just been read"),
        (status = 409, description = "The import has already ended", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn cancel_search(
    State(api): State<Arc<Api>>,
    AuthorizedSearch { caller, search }: AuthorizedSearch,
) -> HttpResult {
    match api.service.cancel(&caller, search).await? {
        Cancellation::Accepted => Ok(StatusCode::ACCEPTED.into_response()),
        Cancellation::TooLate => Err(Problem::new(StatusCode::CONFLICT, "the import has ended")),
        Cancellation::Unknown => Err(Problem::no_such_search()),
    }
}

/// Deletes an import that has ended, with all of its data.
///
/// This deletes its studies, its records that were not imported, its history and its uploaded files. A bucket with
/// versioning keeps the files for a while.
#[utoipa::path(
    delete,
    path = "/projects/{project}/searches/{search}",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
    ),
    responses(
        (status = 202, description = "The import is no longer visible; its data is deleted within minutes"),
        (status = 409, description = "The import, or one that repairs it, has not ended; cancel it first", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn delete_search(
    State(api): State<Arc<Api>>,
    AuthorizedSearch { caller, search }: AuthorizedSearch,
) -> HttpResult {
    match api.service.delete(&caller, search).await? {
        Deletion::Accepted => Ok(StatusCode::ACCEPTED.into_response()),
        Deletion::Running => {
            Err(Problem::new(StatusCode::CONFLICT, "the import has not ended; cancel it first"))
        }
        Deletion::Needed(by) => {
            let detail = format!("import {by}, which repairs it, reads one of its files; cancel that first");
            Err(Problem::new(StatusCode::CONFLICT, &detail))
        }
        Deletion::Unknown => Err(Problem::no_such_search()),
    }
}

/// Selects a page of the imports.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchesQuery {
    /// Maximum number of imports to return, from 1 to 200. The default is 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `next` cursor of the previous page.
    after: Option<String>,
    /// Returns only imports in one of these states, separated by commas: `Uploading`, `Uploaded`, `Parsing`,
    /// `Completed`, `Error`.
    #[param(inline, value_type = Option<choices::SearchStates>)]
    state: Option<String>,
    /// Returns only imports whose name contains this text, ignoring case; 1 to 255 characters.
    #[param(min_length = 1, max_length = 255)]
    text: Option<String>,
}

/// Lists the imports of a review, newest first.
///
/// Up to 1,000 imports are examined for one page. With a filter, a page may therefore be short or empty even if more
/// pages follow.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches",
    params(
        ("project" = Uuid, Path, description = "The review"),
        SearchesQuery,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of the client's copy"),
    ),
    responses(
        (status = 200, description = "A page of imports", body = SearchList, headers(("ETag" = String, description = "Identifies this content"))),
        (status = 304, description = "The client's copy is current"),
        CommonErrors,
    ),
)]
pub(super) async fn list_searches(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    headers: HeaderMap,
    Parameters(query): Parameters<SearchesQuery>,
) -> HttpResult {
    let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
    let wanted =
        SearchFilter { states: states(query.state.as_deref())?, text: paging::text(query.text.as_deref())? };
    let list = List { of: "searches", owner: project.as_uuid() };
    let after = list.after(query.after.as_deref())?;
    let page = api.service.list(project, &wanted, after, limit).await?;
    let items = views(&api.service, page.items).await?;
    etag::answer(&headers, &SearchList { items, next: page.next.map(|next| list.next(&next)) })
}

/// Returns the views of searches in a list, with their totals.
async fn views(service: &SearchService, jobs: Vec<Job>) -> Result<Vec<SearchView>, StoreError> {
    let views = stream::iter(jobs).map(async |job| {
        let details = Details::of_listed(service, &job).await?;
        Ok(SearchView::listed(job, &details))
    });
    views.buffered(CONCURRENT_DETAILS).try_collect().await
}

pub(super) fn states(asked: Option<&str>) -> Result<Vec<JobState>, Problem> {
    let known = |name: &str| choices::STATES.into_iter().find(|state| state.to_string() == name);
    let refused = || {
        let names = choices::STATES.map(|state| state.to_string()).join(", ");
        Problem::bad(&format!("state is one or several of {names}, separated by commas"))
    };
    let names = asked.into_iter().flat_map(|asked| asked.split(','));
    names.map(|name| known(name).ok_or_else(refused)).collect()
}

pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()));
    match key {
        Some(key) => Ok(Some(key.to_owned())),
        None => Err(Problem::bad("the idempotency key is 1 to 255 visible ASCII characters")),
    }
}
