//! What an operator has done with searches that had not ended when the database or the ledger was restored.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use imports::SearchId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::admin::AskedOperator;
use super::problem::{Problem, Refused};
use super::{Answer, Api};
use service::{AfterRestore, ProjectAccess, Reading, Restored};

/// What was restored.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Restoration {
    /// The ledger was restored, and the database was not: searches that are being read go on.
    #[serde(default)]
    ledger_alone: bool,
}

/// What was done with the search.
#[derive(Serialize, ToSchema)]
pub(super) struct RestoredView {
    /// The search.
    search_id: Uuid,
    /// `busy` is to be tried again in a minute.
    done: Restored,
    /// The same in words.
    words: &'static str,
}

/// Let a search go on, or end, that had not ended when the database or the ledger was restored.
///
/// It is for every search that `GET /admin/searches` has in another state than `Completed` and `Error`. Repeating it does no harm.
#[utoipa::path(
    post,
    path = "/admin/searches/{search}/after-restore",
    params(("search" = Uuid, Path, description = "The search")),
    request_body = Restoration,
    responses(
        (status = 200, description = "What was done with it", body = RestoredView),
        Refused,
    ),
)]
pub(super) async fn settle_restored(
    State(api): State<Arc<Api>>,
    AskedOperator(operator): AskedOperator,
    search: Result<Path<SearchId>, PathRejection>,
    request: Result<Json<Restoration>, JsonRejection>,
) -> Answer {
    let Path(search) = search.map_err(|_| Problem::bad("the search id in the path is not a UUID"))?;
    let Json(request) = request.map_err(|rejection| Problem::unreadable(&rejection, "a restoration"))?;
    if api.function.find(&ProjectAccess::All, search).await?.is_none() {
        return Err(Problem::no_such_search());
    }
    let reading = if request.ledger_alone { Reading::GoesOn } else { Reading::Ends };
    let done = AfterRestore::new(api.function.clone(), reading, operator.name).settle(search).await?;
    Ok(Json(RestoredView { search_id: search.as_uuid(), done, words: done.words() }).into_response())
}
