//! The handler that lists changes since a client's last request.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use messages::StoreError;
use operate::http::extract::Parameters;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::extract::AuthorizedProject;
use super::problem::{CommonErrors, Problem};
use super::view::{Details, SearchView};
use super::{Api, HttpResult, etag, paging};
use service::{Change, ChangeCursor, MAX_SEEN, SearchService, changes};

/// The default number of changes in a response.
const PAGE: usize = 50;

/// A changed import.
#[derive(Serialize, ToSchema)]
pub(super) struct ChangeView {
    /// The id of the import.
    search_id: Uuid,
    /// `true` if the import was deleted.
    deleted: bool,
    /// The current import, as in the response for a single import; null if it was deleted.
    #[schema(required)]
    search: Option<SearchView>,
}

/// A page of changes.
#[derive(Serialize, ToSchema)]
pub(super) struct ChangeList {
    /// The changed imports, each in its current state. If there are as many as `limit`, more may follow immediately.
    items: Vec<ChangeView>,
    /// The cursor for the `since` of the next request.
    next: String,
}

impl ChangeView {
    async fn of(function: &SearchService, Change { search_id, now }: Change) -> Result<Self, StoreError> {
        let search = match now {
            None => None,
            Some(job) => {
                let progress = function.jobs.progress(search_id).await?;
                let details = Details::of(function, &job, progress).await?;
                Some(SearchView::of(job, Some(&details)))
            }
        };
        Ok(Self { search_id: search_id.as_uuid(), deleted: search.is_none(), search })
    }
}

/// Selects changes.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangesQuery {
    /// The `next` cursor of the previous response. Without it, the response lists no changes and returns a cursor to
    /// start from.
    since: Option<String>,
    /// Maximum number of changes to return, from 1 to 100. The default is 50.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

/// Lists the imports of a review that have changed since the client's last request.
///
/// First send a request without `since`, then list the imports. From then on, send the `next` of the previous
/// response: no change is missed. A change is reported as the current state of the import, so several changes may be
/// reported as one. A repair is reported as a change of the repairing import, which names the repaired one. If a
/// review has more than 100 unfinished imports, some are reported again without a change.
#[utoipa::path(
    get,
    path = "/projects/{project}/changes",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ChangesQuery,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of the client's copy"),
    ),
    responses(
        (status = 200, description = "The changes", body = ChangeList, headers(("ETag" = String, description = "Identifies this content"))),
        (status = 304, description = "The client's copy is current"),
        CommonErrors,
    ),
)]
pub(super) async fn list_changes(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    headers: HeaderMap,
    Parameters(query): Parameters<ChangesQuery>,
) -> HttpResult {
    let limit = paging::limit(query.limit, PAGE, MAX_SEEN)?;
    let refused = || Problem::bad("since is not the \"next\" of a response with the changes of this review");
    let seen = query.since.map(|text| ChangeCursor::read(project, &text).ok_or_else(refused)).transpose()?;
    let function = &api.service;
    let (found, next) = changes(&function.jobs, project, seen.as_ref(), limit).await?;
    let mut items = Vec::with_capacity(found.len());
    for change in found {
        items.push(ChangeView::of(function, change).await?);
    }
    etag::answer(&headers, &ChangeList { items, next: next.to_string() })
}
