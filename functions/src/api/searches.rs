//! Searches: announced, listed, looked at, cancelled and deleted.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use imports::JobState;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{AskedProject, AskedSearch};
use super::paging::{self, List};
use super::problem::{Problem, Refused};
use super::view::{AnnouncedView, Details, SearchList, SearchView};
use super::{Answer, Api, etag};
use service::{Deletion, Keyed, NewSearch, Wanted, Withdrawal};

/// The header that makes a request repeatable
/// (<https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/>).
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The longest key, in bytes.
const MAX_KEY_BYTES: usize = 255;
/// How many searches a page has by default, and at most.
pub(super) const PAGE: usize = 50;
pub(super) const MAX_PAGE: usize = 200;

const STATES: [JobState; 5] =
    [JobState::Uploading, JobState::Uploaded, JobState::Parsing, JobState::Completed, JobState::Error];

/// Announce a search: a name, and the files that are going to be uploaded.
///
/// Each file gets a form that uploads it.
#[utoipa::path(
    post,
    path = "/projects/{project}/searches",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("Idempotency-Key" = Option<String>, Header, description = "Repeating a request with the same key answers with the same search"),
    ),
    request_body = NewSearch,
    responses(
        (status = 201, description = "Announced, now or by an earlier request with this key", body = AnnouncedView),
        (status = 400, description = "The request cannot be read", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such project for the caller", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The request is too large", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The manifest is not valid, or the key was used for another search", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The project has too many searches under way", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn create_search(
    State(api): State<Arc<Api>>,
    AskedProject(project): AskedProject,
    headers: HeaderMap,
    request: Result<Json<NewSearch>, JsonRejection>,
) -> Answer {
    let key = idempotency_key(&headers)?;
    let Json(request) = request.map_err(|rejection| Problem::unreadable(&rejection, "a search"))?;
    let announced = match key {
        None => api.function.create(project, &request).await?,
        Some(key) => match api.function.create_once(project, &request, &key).await? {
            Keyed::Announced(announced) => announced,
            Keyed::Differs => {
                let detail = "the idempotency key was used for another search before";
                return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
            }
        },
    };
    let place = format!("/projects/{project}/searches/{}", announced.search_id);
    Ok((StatusCode::CREATED, [(header::LOCATION, place)], Json(AnnouncedView::from(announced)))
        .into_response())
}

/// One search: how far it is, each of its files, and what was found in them.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
        ("If-None-Match" = Option<String>, Header, description = "The ETag of what the client has"),
    ),
    responses(
        (status = 200, description = "The search", body = SearchView, headers(("ETag" = String, description = "Stands for what is said"))),
        (status = 304, description = "The client has it"),
        Refused,
    ),
)]
pub(super) async fn show_search(
    State(api): State<Arc<Api>>,
    AskedSearch { caller, search }: AskedSearch,
    headers: HeaderMap,
) -> Answer {
    let found = api.function.status(&caller, search).await?;
    let (job, progress) = found.ok_or_else(Problem::no_such_search)?;
    let details = Details::of(&api.function, &job, progress).await?;
    etag::answer(&headers, &SearchView::of(job, Some(&details)))
}

/// Cancel a search that has not ended.
///
/// It ends in `Error`. If its files were being read, reading stops and what was stored of them is taken back; files that
/// arrive later are not read.
#[utoipa::path(
    post,
    path = "/projects/{project}/searches/{search}/cancel",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
    ),
    responses(
        (status = 202, description = "It will end, unless its last file is read just now; or it has ended like that"),
        (status = 409, description = "It has ended", body = Problem, content_type = "application/problem+json"),
        Refused,
    ),
)]
pub(super) async fn cancel_search(
    State(api): State<Arc<Api>>,
    AskedSearch { caller, search }: AskedSearch,
) -> Answer {
    match api.function.withdraw(&caller, search).await? {
        Withdrawal::Accepted => Ok(StatusCode::ACCEPTED.into_response()),
        Withdrawal::TooLate => Err(Problem::new(StatusCode::CONFLICT, "the search has ended")),
        Withdrawal::Unknown => Err(Problem::no_such_search()),
    }
}

/// Delete a search that has ended, with everything that it has stored.
///
/// Its studies, its unreadable records, its history and its uploaded files go; a bucket that keeps versions keeps the files for
/// a while.
#[utoipa::path(
    delete,
    path = "/projects/{project}/searches/{search}",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
    ),
    responses(
        (status = 202, description = "It is seen no more, and what it has stored goes within minutes"),
        (status = 409, description = "It has not ended, or a search that repairs it has not; cancel that first", body = Problem, content_type = "application/problem+json"),
        Refused,
    ),
)]
pub(super) async fn delete_search(
    State(api): State<Arc<Api>>,
    AskedSearch { caller, search }: AskedSearch,
) -> Answer {
    match api.function.delete(&caller, search).await? {
        Deletion::Accepted => Ok(StatusCode::ACCEPTED.into_response()),
        Deletion::Running => {
            Err(Problem::new(StatusCode::CONFLICT, "the search has not ended; cancel it first"))
        }
        Deletion::Needed(by) => {
            let detail = format!("search {by}, which repairs it, reads one of its files; cancel that first");
            Err(Problem::new(StatusCode::CONFLICT, &detail))
        }
        Deletion::Unknown => Err(Problem::no_such_search()),
    }
}

/// Which page of a list to return, and of which searches.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SearchesQuery {
    /// How many searches, from 1 to 200; 50.
    limit: Option<usize>,
    /// Where the page before ended: its `next`.
    after: Option<String>,
    /// Only those in one of these states: `Uploading`, `Uploaded`, `Parsing`, `Completed`, `Error`, separated by commas.
    state: Option<String>,
    /// Only those with this in their names, whatever its case; 1 to 255 characters.
    text: Option<String>,
}

/// The searches of a project, the latest first.
///
/// At most 1,000 of them are looked through for a page, so with a filter it may be short, or empty, although more follows.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches",
    params(
        ("project" = Uuid, Path, description = "The review"),
        SearchesQuery,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of what the client has"),
    ),
    responses(
        (status = 200, description = "Some of them", body = SearchList, headers(("ETag" = String, description = "Stands for what is said"))),
        (status = 304, description = "The client has it"),
        Refused,
    ),
)]
pub(super) async fn list_searches(
    State(api): State<Arc<Api>>,
    AskedProject(project): AskedProject,
    headers: HeaderMap,
    query: Result<Query<SearchesQuery>, QueryRejection>,
) -> Answer {
    let Query(query) = query.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
    let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
    let wanted =
        Wanted { states: states(query.state.as_deref())?, text: paging::text(query.text.as_deref())? };
    let list = List { of: "searches", owner: project.as_uuid() };
    let after = list.after(query.after.as_deref())?;
    let page = api.function.list(project, &wanted, after, limit).await?;
    let items = page.items.into_iter().map(|job| SearchView::of(job, None)).collect();
    etag::answer(&headers, &SearchList { items, next: page.next.map(|next| list.next(&next)) })
}

pub(super) fn states(asked: Option<&str>) -> Result<Vec<JobState>, Problem> {
    let known = |name: &str| STATES.into_iter().find(|state| state.to_string() == name);
    let refused = || {
        let names = STATES.map(|state| state.to_string()).join(", ");
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
