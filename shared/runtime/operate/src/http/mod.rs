//! The operator's HTTP routes of any system.
//!
//! - [`router`] serves all routes of a system, and [`description`] describes them (OpenAPI);
//! - [`extract`] authorizes requests and reads their parameters, [`paging`] reads lists, [`problem`] is the error
//!   response;
//! - [`failures`], [`effects`], [`history`]: views, and handlers that do not depend on the system. An application with
//!   its own operator routes, such as the search import, uses them too;
//! - `instances`, `routes`: the handlers for single instances and for the rest of the system.

pub mod effects;
pub mod extract;
pub mod failures;
pub mod history;
mod instances;
pub mod openapi;
pub mod paging;
pub mod problem;
mod routes;

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderValue};
use axum::middleware::{Next, from_fn, map_request};
use axum::response::Response;
use messages::{QueueSpec, Traceparent, trace};
use saga::control::OPERATOR;
use saga::{Engine, EventDelivery, Failures, MissingSetting, OperatorEvent, SendEventError, System};
use utoipa::{IntoResponses, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::extract::OperatorState;
use self::problem::{BodyErrors, CommonErrors, Problem};
use crate::health::Report;
use crate::{Health, Operator};

/// The result of a handler.
pub type HttpResult = Result<Response, Problem>;

/// The maximum size of a request body, in bytes.
pub const MAX_BODY_BYTES: usize = 256 * 1024;

/// The system of a router, without the type of its ports.
#[async_trait]
trait AnySystem: Send + Sync {
    fn name(&self) -> &'static str;
    fn queues(&self) -> &'static [QueueSpec];
    async fn report(&self, health: &Health, program: &str) -> Report;
    async fn send_event(
        &self,
        engine: &Engine,
        event: &OperatorEvent,
        by: &str,
    ) -> Result<EventDelivery, SendEventError>;
}

#[async_trait]
impl<P> AnySystem for System<P> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn queues(&self) -> &'static [QueueSpec] {
        self.queues
    }

    async fn report(&self, health: &Health, program: &str) -> Report {
        health.report(self, program).await
    }

    async fn send_event(
        &self,
        engine: &Engine,
        event: &OperatorEvent,
        by: &str,
    ) -> Result<EventDelivery, SendEventError> {
        engine.send_event(self, event, by).await
    }
}

/// The operator's functions of a system, for its router.
pub struct OperatorApi {
    engine: Engine,
    system: &'static dyn AnySystem,
    health: Health,
    failures: Failures,
    program: String,
}

impl OperatorApi {
    /// Returns the functions over an engine. `program` is the command line that shows and retries failures, such as
    /// `orders-tools operate`; the health report names it.
    pub fn over<P>(
        engine: Engine,
        system: &'static System<P>,
        program: String,
    ) -> Result<Self, MissingSetting> {
        let (health, failures) = (Health::over(&engine)?, engine.failures(OPERATOR, system)?);
        Ok(Self { engine, system, health, failures, program })
    }

    /// Returns the collection and retry of failures.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }
}

impl OperatorState for OperatorApi {
    fn failures(&self) -> &Failures {
        &self.failures
    }

    fn operator(parts: &Parts) -> Option<Operator> {
        parts.extensions.get().cloned()
    }
}

#[derive(OpenApi)]
#[openapi(info(
    title = "Operator",
    description = "The operation of a system: instances, failures, effects and health."
))]
struct Description;

fn all_routes() -> OpenApiRouter<Arc<OperatorApi>> {
    let router = OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(routes::show_system))
        .routes(routes!(routes::show_report))
        .routes(routes!(routes::list_effects));
    with_failures(with_instances(router))
}

fn with_instances(router: OpenApiRouter<Arc<OperatorApi>>) -> OpenApiRouter<Arc<OperatorApi>> {
    router
        .routes(routes!(instances::list_instances))
        .routes(routes!(instances::show_instance))
        .routes(routes!(instances::list_history))
        .routes(routes!(instances::pause_instance))
        .routes(routes!(instances::resume_instance))
        .routes(routes!(instances::terminate_instance))
        .routes(routes!(instances::send_event))
}

fn with_failures(router: OpenApiRouter<Arc<OperatorApi>>) -> OpenApiRouter<Arc<OperatorApi>> {
    router
        .routes(routes!(routes::list_failures))
        .routes(routes!(routes::list_failure_groups))
        .routes(routes!(routes::show_failure, failures::delete_failure))
        .routes(routes!(failures::archive_failure))
        .routes(routes!(routes::retry_failures))
        .routes(routes!(failures::list_operations))
        .routes(routes!(failures::show_operation))
        .routes(routes!(failures::stop_operation))
        .routes(routes!(failures::list_audit_entries))
}

/// Returns the operator's routes of a system. `identify` returns the operator who sends a request from the extensions
/// that the host has added to it, such as the claims of a verified token ([`Operator::of`]); other callers are refused
/// with 403. The routes have no fallback, so they can be merged with those of the application.
pub fn router<I>(api: Arc<OperatorApi>, identify: I) -> Router
where
    I: Fn(&Extensions) -> Option<Operator> + Clone + Send + Sync + 'static,
{
    let identified = move |mut request: Request| {
        // An operator that another layer has added is not trusted.
        request.extensions_mut().remove::<Operator>();
        if let Some(operator) = identify(request.extensions()) {
            request.extensions_mut().insert(operator);
        }
        std::future::ready(request)
    };
    let (router, _) = all_routes().split_for_parts();
    router
        .with_state(api)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(map_request(identified))
        .layer(from_fn(continue_trace))
}

/// Returns the OpenAPI description. `docs/operator-api.json` is a copy of it.
pub fn description() -> utoipa::openapi::OpenApi {
    let mut description = all_routes().into_openapi();
    // An empty license is invalid.
    description.info.license = None;
    openapi::merge_fields(&mut description);
    let (errors, of_bodies) = (CommonErrors::responses(), BodyErrors::responses());
    openapi::share_errors(&mut description, &errors, &of_bodies, &BTreeMap::new());
    description
}

/// Continues the trace of a request in the messages that it sends.
pub async fn continue_trace(request: Request, next: Next) -> Response {
    let headers = request.headers().get_all("traceparent").iter().map(HeaderValue::as_bytes);
    let parent = Traceparent::of_headers(headers);
    trace::continued(parent, next.run(request)).await
}
