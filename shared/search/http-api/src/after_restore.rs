//! The handler that settles unfinished searches after a restore of the database or the ledger.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use imports::{ProjectId, SearchId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::admin::AuthorizedOperator;
use super::problem::{CommonErrors, Problem};
use super::{Api, HttpResult};
use service::{AfterRestore, OpenReads, ProjectAccess, RestoreOutcome};

/// Describes what was restored.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Restoration {
    /// `true` if only the ledger was restored and the database was not: imports that are being read continue.
    #[serde(default)]
    ledger_alone: bool,
}

/// The outcome for one import.
#[derive(Serialize, ToSchema)]
pub(super) struct RestoredView {
    /// The id of the import.
    search_id: Uuid,
    /// The outcome. If it is `busy`, try again in a minute.
    done: RestoreOutcome,
    /// The outcome as a sentence.
    words: &'static str,
}

/// The decided studies of a review that are compared again.
#[derive(Serialize, ToSchema)]
pub(super) struct ComparedStudies {
    /// Number of studies.
    compared: usize,
}

/// Compares the decided studies of a review again, after a restore of the database.
///
/// Call it for every review, once the unfinished imports are handled. It is safe to repeat.
#[utoipa::path(
    post,
    path = "/admin/projects/{project}/after-restore",
    params(("project" = Uuid, Path, description = "The review")),
    responses(
        (status = 200, description = "The comparisons are requested", body = ComparedStudies),
        CommonErrors,
    ),
)]
pub(super) async fn compare_decided(
    State(api): State<Arc<Api>>,
    AuthorizedOperator(operator): AuthorizedOperator,
    project: Result<Path<ProjectId>, PathRejection>,
) -> HttpResult {
    let Path(project) = project.map_err(|_| Problem::bad("the review id in the path is not a UUID"))?;
    let after = AfterRestore::new(api.service.clone(), OpenReads::End, operator.name);
    let compared = after.compare_decided(project).await?;
    Ok(Json(ComparedStudies { compared }).into_response())
}

/// Resumes or ends an unfinished import after a restore of the database or the ledger.
///
/// Call it for every import that `GET /admin/searches` lists in a state other than `Completed` and `Error`, and for every
/// import of an effect of type `view` in `GET /admin/effects`, which the first list may lack. It is safe to repeat.
#[utoipa::path(
    post,
    path = "/admin/searches/{search}/after-restore",
    params(("search" = Uuid, Path, description = "The import")),
    request_body = Restoration,
    responses(
        (status = 200, description = "The outcome", body = RestoredView),
        CommonErrors,
    ),
)]
pub(super) async fn recover_restored(
    State(api): State<Arc<Api>>,
    AuthorizedOperator(operator): AuthorizedOperator,
    search: Result<Path<SearchId>, PathRejection>,
    request: Result<Json<Restoration>, JsonRejection>,
) -> HttpResult {
    let Path(search) = search.map_err(|_| Problem::bad("the id of the import in the path is not a UUID"))?;
    let Json(request) = request.map_err(|rejection| Problem::unreadable(&rejection, "a restoration"))?;
    if api.service.find(&ProjectAccess::All, search).await?.is_none() {
        return Err(Problem::no_such_search());
    }
    let reading = if request.ledger_alone { OpenReads::Continue } else { OpenReads::End };
    let done = AfterRestore::new(api.service.clone(), reading, operator.name).settle(search).await?;
    Ok(Json(RestoredView { search_id: search.as_uuid(), done, words: done.words() }).into_response())
}
