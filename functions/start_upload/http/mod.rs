//! The function's face: JSON in and out, errors as problem details (RFC 9457), and its own description (OpenAPI).

mod aliases;
mod asked;
mod problem;
mod view;

use std::sync::Arc;

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::{Extensions, HeaderMap, StatusCode, header};
use axum::middleware::map_request;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use utoipa::{IntoParams, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::asked::{AskedProject, AskedSearch};
use self::problem::Problem;
use self::view::{AnnouncedView, SearchList, SearchView};
use crate::start_upload::{Caller, Keyed, NewSearch, StartUpload, Withdrawal};

/// The largest request body read, in bytes: 50 names of 255 characters fit several times.
pub const MAX_BODY_BYTES: usize = 256 * 1024;
/// The header that makes a request repeatable
/// (<https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/>).
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The longest key, in bytes.
const MAX_KEY_BYTES: usize = 255;
/// How many searches a page has by default, and at most.
const PAGE: usize = 50;
const MAX_PAGE: usize = 200;

type Function = State<Arc<StartUpload>>;
type Answer = Result<Response, Problem>;

#[derive(OpenApi)]
#[openapi(info(
    title = "Search import",
    description = "Imports of reference files into systematic reviews."
))]
struct Description;

/// The API over a function, for callers who may see every project because another door has let them in. Besides its
/// operations it answers `GET /openapi.json` with its description.
pub fn router(function: StartUpload) -> Router {
    router_for(function, |_| Caller::Everywhere)
}

/// The same for callers who may see some projects: `identify` says who made a request, by what its host has put into the
/// request's extensions.
pub fn router_for<I>(function: StartUpload, identify: I) -> Router
where
    I: Fn(&Extensions) -> Caller + Clone + Send + Sync + 'static,
{
    let identified = move |mut request: Request| {
        let caller = identify(request.extensions());
        request.extensions_mut().insert(caller);
        std::future::ready(request)
    };
    let (router, mut description) = OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(create_search, list_searches))
        .routes(routes!(show_search, withdraw_search))
        .split_for_parts();
    // None is given yet, and an empty one is not valid.
    description.info.license = None;
    aliases::describe(&mut description);
    router
        .route(aliases::SEARCH, get(show_search).delete(withdraw_search))
        .with_state(Arc::new(function))
        .route("/openapi.json", get(async move || Json(description)))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this method is not supported here")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(map_request(identified))
}

/// Announce a search: a name, and the files that are going to be uploaded. Each file gets a form that uploads it.
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
        (status = 409, description = "An earlier request with this key was given up", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The request is too large", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The manifest is not valid, or the key was used for another search", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The project has too many searches under way", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn create_search(
    State(function): Function,
    AskedProject(project): AskedProject,
    headers: HeaderMap,
    request: Result<Json<NewSearch>, JsonRejection>,
) -> Answer {
    let key = idempotency_key(&headers)?;
    let Json(request) = request.map_err(|rejection| Problem::unreadable(&rejection))?;
    let announced = match key {
        None => function.create(project, &request).await?,
        Some(key) => match function.create_once(project, &request, &key).await? {
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

/// One search: how far it is, and each of its files.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
    ),
    responses(
        (status = 200, description = "The search", body = SearchView),
        (status = 400, description = "An id is none", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such search for the caller", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn show_search(State(function): Function, AskedSearch { caller, search }: AskedSearch) -> Answer {
    match function.status(&caller, search).await.map_err(|error| Problem::unavailable(&error))? {
        Some((job, progress)) => Ok(Json(SearchView::of(job, &progress)).into_response()),
        None => Err(Problem::no_such_search()),
    }
}

/// Withdraw a search whose files are not being read yet. It ends in `Error`; files that arrive later are not read.
#[utoipa::path(
    delete,
    path = "/projects/{project}/searches/{search}",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
    ),
    responses(
        (status = 202, description = "It will end, unless its last file is stored just now; or it has ended before anything was read"),
        (status = 400, description = "An id is none", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such search for the caller", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "Its files are being read, or were", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn withdraw_search(State(function): Function, AskedSearch { caller, search }: AskedSearch) -> Answer {
    match function.withdraw(&caller, search).await? {
        Withdrawal::Accepted => Ok(StatusCode::ACCEPTED.into_response()),
        Withdrawal::TooLate => Err(Problem::new(
            StatusCode::CONFLICT,
            "the search has started: its files are being read, or were",
        )),
        Withdrawal::Unknown => Err(Problem::no_such_search()),
    }
}

/// Which page of a list to return.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Paging {
    /// How many searches, from 1 to 200; 50.
    limit: Option<usize>,
    /// Where the page before ended: its `next`.
    after: Option<String>,
}

/// The searches of a project, the latest first.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches",
    params(("project" = Uuid, Path, description = "The review"), Paging),
    responses(
        (status = 200, description = "Some of them", body = SearchList),
        (status = 400, description = "The request cannot be read", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such project for the caller", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Try again", body = Problem, content_type = "application/problem+json"),
    ),
)]
async fn list_searches(
    State(function): Function,
    AskedProject(project): AskedProject,
    paging: Result<Query<Paging>, QueryRejection>,
) -> Answer {
    let Query(paging) = paging.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
    let limit = paging.limit.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Problem::bad("limit is from 1 to 200"));
    }
    let after = paging.after.as_deref().map(view::parse_cursor).transpose();
    let after = after.map_err(|()| Problem::bad("after is not the \"next\" of a page"))?;
    let page = function.list(project, after, limit).await.map_err(|error| Problem::unavailable(&error))?;
    Ok(Json(SearchList::from(page)).into_response())
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()));
    match key {
        Some(key) => Ok(Some(key.to_owned())),
        None => Err(Problem::bad("the idempotency key is 1 to 255 visible ASCII characters")),
    }
}
