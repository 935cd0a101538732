//! The entry point for clients: JSON over HTTP.

use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use onceward::messages::store::chain;
use onceward::messages::{Traceparent, trace};
use onceward::outbox::StageError;
use onceward::prelude::*;
use onceward::saga::Views;
use onceward::serde_json::{Value, json};

use crate::{Job, JobEvent, Jobs};

/// Accepts and shows jobs.
#[derive(Clone)]
pub struct Api {
    entry: EntryPoint,
    views: Views<Jobs>,
}

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The job is unknown.
    #[error("the job is unknown")]
    Unknown,
    /// There is a job with this name and another input.
    #[error("there is a job with this name and another input")]
    Conflict,
    /// A store is unavailable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The event cannot be written.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The session was not committed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// Returns the partition of a job.
pub fn partition(name: &str) -> PartitionKey {
    PartitionKey::named(Jobs::NAME, name)
}

impl Api {
    /// Creates the API over an engine.
    pub fn new(engine: &Engine) -> Result<Self, MissingSetting> {
        Ok(Self { entry: engine.entry_point("http")?, views: engine.views(Jobs)? })
    }

    /// Requests a job. A repeated request changes nothing.
    ///
    /// # Errors
    /// Returns an error if the name is used for another input, or a store is unavailable. Then the request may be
    /// repeated.
    pub async fn request(&self, name: &str, input: &str) -> Result<(), Refusal> {
        let is_conflict = |error: &Refusal| matches!(error, Refusal::Commit(CommitError::Changed));
        self.entry.repeat_conflicts(|| self.try_request(name, input), is_conflict).await
    }

    async fn try_request(&self, name: &str, input: &str) -> Result<(), Refusal> {
        let (key, mut session) = (Key::new("job", name), self.entry.session(partition(name)));
        if let Some(known) = session.read(key.clone()).await? {
            return if known.body == json!(input) { Ok(()) } else { Err(Refusal::Conflict) };
        }
        session.write(key, json!(input));
        session.send(&JobEvent::Requested { input: input.to_owned() })?;
        // Readers find the job at once.
        if let Some(view) = Jobs.view(partition(name), &Job::Running { since: self.views.host.now() }) {
            session.show(view);
        }
        session.commit().await?;
        Ok(())
    }

    /// Returns the state of a job.
    ///
    /// # Errors
    /// Returns an error if the job is unknown, or a store is unavailable.
    pub async fn job(&self, name: &str) -> Result<Value, Refusal> {
        Ok(self.views.view(partition(name)).await?.ok_or(Refusal::Unknown)?.body)
    }
}

/// Returns the routes.
pub fn router(api: Api) -> Router {
    let routes = Router::new().route("/jobs/{name}", post(request).get(job)).with_state(api);
    routes.layer(from_fn(continue_trace)).layer(from_fn(finish))
}

/// Finishes a request even if its client disconnects. Otherwise, a session could be interrupted after its commit, and its
/// messages would be sent minutes later.
async fn finish(request: Request, next: Next) -> Response {
    let response = tokio::spawn(next.run(request)).await;
    response.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// Continues the trace of a request in the messages that it sends.
async fn continue_trace(request: Request, next: Next) -> Response {
    let headers = request.headers().get_all("traceparent").iter().map(HeaderValue::as_bytes);
    let parent = Traceparent::of_headers(headers);
    trace::continued(parent, next.run(request)).await
}

async fn request(
    State(api): State<Api>,
    Path(name): Path<String>,
    Json(input): Json<String>,
) -> Result<StatusCode, Refusal> {
    api.request(&name, &input).await.map(|()| StatusCode::ACCEPTED)
}

async fn job(State(api): State<Api>, Path(name): Path<String>) -> Result<Json<Value>, Refusal> {
    api.job(&name).await.map(Json)
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self {
            Self::Unknown => StatusCode::NOT_FOUND,
            Self::Conflict => StatusCode::CONFLICT,
            Self::Stage(_) | Self::Commit(CommitError::Unsupported { .. }) => StatusCode::BAD_REQUEST,
            Self::Store(_) | Self::Commit(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        (status, Json(json!({ "error": chain(&self) }))).into_response()
    }
}
