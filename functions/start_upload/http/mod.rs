//! The function's face: JSON in and out, errors as problem details (RFC 9457), and its own description (OpenAPI).

mod admin;
mod aliases;
mod asked;
mod changes;
mod config;
mod duplicates;
mod etag;
mod export;
mod health;
mod history;
mod live;
mod metrics;
mod overview;
mod paging;
mod problem;
mod repair;
mod restored;
mod results;
mod searches;
mod shelves;
mod sources;
mod states;
mod study;
mod trial;
mod view;
mod walk;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{Extensions, StatusCode};
use axum::middleware::map_request;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use saga::Failures;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::asked::Person;
pub(crate) use self::export::study_lines;
pub(crate) use self::paging::RecordPlace;
use self::problem::Problem;
use self::searches::{cancel_search, show_search};
pub use self::sources::FlowView;
pub use self::trial::{RunTrials, Trial, Tried};
use crate::start_upload::{Caller, StartUpload, Whoever};

/// The largest request body read, in bytes: 50 names of 255 characters fit several times.
pub const MAX_BODY_BYTES: usize = 256 * 1024;

/// Where `serve` has its health, and its metrics as Prometheus reads them.
pub const HEALTH: &str = "/health";
/// See [`HEALTH`].
pub const METRICS: &str = "/metrics";

type Answer = Result<Response, Problem>;

/// How whoever hosts the API sends its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// As they come: they may be of any size.
    Streamed,
    /// As a whole, and of 6 MB at most: a Lambda function behind an HTTP API
    /// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
    Whole,
}

/// What requests are answered with.
struct Api {
    function: StartUpload,
    failures: Failures,
    answers: Answers,
    /// How many clients follow changes.
    streams: AtomicUsize,
    /// Where something is made to fail on purpose.
    trials: Option<Arc<dyn RunTrials>>,
}

#[derive(OpenApi)]
#[openapi(info(
    title = "Search import",
    description = "Imports of reference files into systematic reviews."
))]
struct Description;

/// The API over a function, for callers who may see every project because another door has let them in, and on a host that
/// streams answers. Besides its operations it answers `GET /openapi.json` with its description, and [`METRICS`].
pub fn router(function: StartUpload) -> Router {
    router_of(function, Answers::Streamed, None, |_| Caller::Everywhere)
}

/// The same with trials.
pub fn router_with_trials(function: StartUpload, trials: Arc<dyn RunTrials>) -> Router {
    router_of(function, Answers::Streamed, Some(trials), |_| Caller::Everywhere)
}

/// The same for callers who may see some projects, or operate the deployment: `identify` says who made a request, by what
/// its host has put into the request's extensions.
pub fn router_for<I, W>(function: StartUpload, answers: Answers, identify: I) -> Router
where
    I: Fn(&Extensions) -> W + Clone + Send + Sync + 'static,
    W: Into<Whoever>,
{
    router_of(function, answers, None, identify)
}

fn router_of<I, W>(
    function: StartUpload,
    answers: Answers,
    trials: Option<Arc<dyn RunTrials>>,
    identify: I,
) -> Router
where
    I: Fn(&Extensions) -> W + Clone + Send + Sync + 'static,
    W: Into<Whoever>,
{
    let identified = move |mut request: Request| {
        let Whoever { caller, operator, name } = identify(request.extensions()).into();
        request.extensions_mut().insert(caller);
        request.extensions_mut().insert(Person(name));
        if let Some(operator) = operator {
            request.extensions_mut().insert(operator);
        }
        std::future::ready(request)
    };
    let (router, description) = operations().split_for_parts();
    let (description, failures) = (finished(description), function.failures.clone());
    let router = match answers {
        Answers::Streamed => router.route(METRICS, get(health::show_metrics)),
        // CloudWatch has its own.
        Answers::Whole => router,
    };
    router
        .route(aliases::SEARCH, get(show_search).delete(cancel_search))
        .with_state(Arc::new(Api { failures, function, answers, streams: AtomicUsize::new(0), trials }))
        .route("/openapi.json", get(async move || Json(description)))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this method is not supported here")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(map_request(identified))
}

/// What the API says of itself. `docs/openapi.json` is a copy of it.
pub fn description() -> utoipa::openapi::OpenApi {
    finished(operations().split_for_parts().1)
}

fn operations() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(searches::create_search, searches::list_searches))
        .routes(routes!(searches::show_search, searches::delete_search))
        .routes(routes!(searches::cancel_search))
        .routes(routes!(changes::list_changes))
        .routes(routes!(repair::repair_search))
        .routes(routes!(sources::say_sources))
        .routes(routes!(sources::show_flow))
        .merge(of_results())
        .merge(of_operators())
}

fn of_results() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new()
        .routes(routes!(results::list_studies))
        .routes(routes!(results::show_study))
        .routes(routes!(results::list_unread))
        .routes(routes!(results::show_unread))
        .routes(routes!(duplicates::list_duplicates))
        .routes(routes!(duplicates::list_all_duplicates))
        .routes(routes!(duplicates::decide, duplicates::list_decisions))
        .routes(routes!(export::export_studies))
        .routes(routes!(export::make_export))
        .routes(routes!(export::show_export))
        .routes(routes!(history::list_history))
        .routes(routes!(live::follow_project))
        .routes(routes!(live::follow_search))
        .routes(routes!(config::show_config))
        .routes(routes!(states::show_states))
        .routes(routes!(health::show_health))
}

fn of_operators() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::new()
        .routes(routes!(health::show_report))
        .routes(routes!(overview::list_all_searches))
        .routes(routes!(overview::list_effects))
        .routes(routes!(history::list_any_history))
        .routes(routes!(admin::list_failures))
        .routes(routes!(admin::list_failure_groups))
        .routes(routes!(admin::show_failure, admin::delete_failure))
        .routes(routes!(admin::archive_failure))
        .routes(routes!(admin::retry_failures))
        .routes(routes!(admin::list_operations))
        .routes(routes!(admin::show_operation))
        .routes(routes!(admin::stop_operation))
        .routes(routes!(admin::list_acts))
        .routes(routes!(restored::settle_restored))
        .routes(routes!(trial::try_to_fail))
}

fn finished(mut description: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    // None is given yet, and an empty one is not valid.
    description.info.license = None;
    aliases::describe(&mut description);
    description
}
