//! The routes of the API, and its description.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{Extensions, StatusCode};
use axum::middleware::{from_fn, map_request};
use axum::routing::{MethodRouter, get};
use axum::{Json, Router};
use operate::http::{continue_trace, failures};
use pastey::paste;
use service::{Principal, ProjectAccess, SearchService};
use utoipa::openapi::{HttpMethod, OpenApi as OpenApiDocument};
use utoipa::{OpenApi, Path};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::{PathItemExt, routes};

use super::export_slots::Exports;
use super::known_damage::KnownDamage;
use super::problem::Problem;
use super::run_trials::RunTrials;
use super::searches::{cancel_search, show_search};
use super::state::{Api, BodyMode};
use super::{
    activity, admin, after_restore, aliases, bulk, changes, config, duplicates, export, health, history,
    live, members, openapi, overview, repair, results, reviews, searches, sources, states, trial,
};

/// The maximum size of a request body, in bytes. 50 file names of 255 characters fit several times.
pub const MAX_BODY_BYTES: usize = 256 * 1024;

/// The path of the health check that `serve` has, and of its Prometheus metrics.
pub const HEALTH: &str = "/health";
/// The path of the Prometheus metrics; see [`HEALTH`].
pub const METRICS: &str = "/metrics";

#[derive(OpenApi)]
#[openapi(info(
    title = "Search import",
    description = "Imports of reference files into systematic reviews."
))]
struct Description;

/// Returns the API for a host that authorizes callers itself and streams responses. Callers can access every project.
/// Besides its operations, the router serves its description at `GET /openapi.json`, and [`METRICS`].
pub fn router(service: SearchService) -> Router {
    router_of(service, BodyMode::Streaming, None, |_| ProjectAccess::All)
}

/// Like [`router`], with fault trials.
pub fn router_with_trials(service: SearchService, trials: Arc<dyn RunTrials>) -> Router {
    router_of(service, BodyMode::Streaming, Some(trials), |_| ProjectAccess::All)
}

/// Returns the API for callers with limited access. `identify` returns the principal of a request from the extensions
/// that the host has added to it.
pub fn router_for<I, W>(service: SearchService, body_mode: BodyMode, identify: I) -> Router
where
    I: Fn(&Extensions) -> W + Clone + Send + Sync + 'static,
    W: Into<Principal>,
{
    router_of(service, body_mode, None, identify)
}

fn router_of<I, W>(
    service: SearchService,
    body_mode: BodyMode,
    trials: Option<Arc<dyn RunTrials>>,
    identify: I,
) -> Router
where
    I: Fn(&Extensions) -> W + Clone + Send + Sync + 'static,
    W: Into<Principal>,
{
    let identified = move |mut request: Request| {
        let principal: Principal = identify(request.extensions()).into();
        request.extensions_mut().insert(principal);
        std::future::ready(request)
    };
    let router = OPERATIONS.iter().fold(Router::new(), |router, operations| (operations.serve)(router));
    let router = match body_mode {
        BodyMode::Streaming => router.route(METRICS, get(health::show_metrics)),
        // Lambda deployments have CloudWatch metrics instead.
        BodyMode::Buffered => router,
    };
    router
        .route(aliases::SEARCH, get(show_search).delete(cancel_search))
        .with_state(Arc::new(Api {
            failures: service.failures.clone(),
            service,
            body_mode,
            streams: AtomicUsize::new(0),
            exports: Exports::default(),
            damage: KnownDamage::default(),
            trials,
        }))
        .route("/openapi.json", get(async || Json(description())))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this method is not supported here")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(map_request(identified))
        .layer(from_fn(continue_trace))
}

/// Returns the OpenAPI description. `docs/openapi.json` is a copy of it.
pub fn description() -> OpenApiDocument {
    let router = OpenApiRouter::with_openapi(Description::openapi());
    let described = OPERATIONS.iter().fold(router, |router, operations| (operations.describe)(router));
    let mut description = described.into_openapi();
    aliases::describe(&mut description);
    openapi::complete(&mut description);
    description
}

/// The operations of one path. Describing them all is slow, so it is done on request and not at startup.
struct Operations {
    serve: fn(Router<Arc<Api>>) -> Router<Arc<Api>>,
    describe: fn(OpenApiRouter<Arc<Api>>) -> OpenApiRouter<Arc<Api>>,
}

/// Builds [`Operations`] from handlers. Path and methods are taken from each handler's `#[utoipa::path]`.
macro_rules! operations {
    ($module:ident::$handler:ident $(, $others:ident::$other:ident)*) => {
        paste! {
            Operations {
                serve: |router| {
                    let routes = MethodRouter::new();
                    let routes = on(routes, &$module::[<__path_ $handler>]::methods(), &$module::$handler);
                    $(let routes = on(routes, &$others::[<__path_ $other>]::methods(), &$others::$other);)*
                    router.route(&$module::[<__path_ $handler>]::path(), routes)
                },
                describe: |router| router.routes(routes!($module::$handler $(, $others::$other)*)),
            }
        }
    };
}

fn on<H, T>(routes: MethodRouter<Arc<Api>>, methods: &[HttpMethod], handler: &H) -> MethodRouter<Arc<Api>>
where
    H: axum::handler::Handler<T, Arc<Api>>,
    T: 'static,
{
    methods.iter().fold(routes, |routes, method| routes.on(method.to_method_filter(), handler.clone()))
}

const OPERATIONS: &[Operations] = &[
    operations!(reviews::create_review, reviews::list_reviews),
    operations!(reviews::change_review, reviews::delete_review),
    operations!(members::list_members, members::set_member),
    operations!(members::remove_member),
    operations!(searches::create_search, searches::list_searches),
    operations!(searches::show_search, searches::delete_search),
    operations!(searches::cancel_search),
    operations!(changes::list_changes),
    operations!(repair::repair_search),
    operations!(sources::set_sources),
    operations!(sources::change_sources),
    operations!(sources::show_flow),
    operations!(results::list_studies),
    operations!(results::list_review_studies),
    operations!(results::show_study),
    operations!(results::list_unread),
    operations!(results::show_unread),
    operations!(duplicates::list_duplicates),
    operations!(duplicates::list_all_duplicates),
    operations!(duplicates::decide, duplicates::list_decisions),
    operations!(bulk::decide_in_bulk, bulk::list_bulk),
    operations!(bulk::undo_bulk),
    operations!(bulk::show_progress),
    operations!(activity::list_activity),
    operations!(export::export_studies),
    operations!(export::export_review),
    operations!(export::make_review_export),
    operations!(export::make_export),
    operations!(export::show_export),
    operations!(history::list_history),
    operations!(live::follow_project),
    operations!(live::follow_search),
    operations!(config::show_config),
    operations!(states::show_states),
    operations!(health::show_health),
    operations!(health::show_report),
    operations!(overview::list_all_searches),
    operations!(overview::list_effects),
    operations!(history::list_any_history),
    operations!(admin::list_failures),
    operations!(admin::list_failure_groups),
    operations!(admin::show_failure, failures::delete_failure),
    operations!(failures::archive_failure),
    operations!(admin::retry_failures),
    operations!(failures::list_operations),
    operations!(failures::show_operation),
    operations!(failures::stop_operation),
    operations!(failures::list_audit_entries),
    operations!(after_restore::recover_restored),
    operations!(after_restore::compare_decided),
    operations!(trial::run_trial),
];
