//! What has changed since a client asked last.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use messages::StoreError;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::extract::AskedProject;
use super::problem::{Problem, Refused};
use super::view::{Details, SearchView};
use super::{Answer, Api, etag, paging};
use service::{Change, MOST_SEEN, SearchService, Seen, changes};

/// How many changes an answer has by default.
const PAGE: usize = 50;

/// A search that has changed.
#[derive(Serialize, ToSchema)]
pub(super) struct ChangeView {
    /// The search's id.
    search_id: Uuid,
    /// Whether it was deleted.
    deleted: bool,
    /// The search as it is now, as when it is asked for by itself; null when it was deleted.
    #[schema(required)]
    search: Option<SearchView>,
}

/// What has changed.
#[derive(Serialize, ToSchema)]
pub(super) struct ChangeList {
    /// The searches that have changed, each as it is now. After as many as the `limit` more may follow at once.
    items: Vec<ChangeView>,
    /// For the `since` of the next request.
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

/// Since when changes are asked for.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ChangesQuery {
    /// The `next` of the answer before. Without it nothing has changed, and the answer says where to begin.
    since: Option<String>,
    /// How many changes, from 1 to 100; 50.
    limit: Option<usize>,
}

/// The searches of a project that have changed since the client asked last.
///
/// Ask without `since` first, then list the searches, and from then on ask with the `next` of the answer before: nothing is
/// missed. A change is told as the search that it has led to, so several may be told as one. What repairs a search is told
/// as a change of the search that repairs, which names the other one. In a project with more than 100 searches under way,
/// some are told again without a change.
#[utoipa::path(
    get,
    path = "/projects/{project}/changes",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ChangesQuery,
        ("If-None-Match" = Option<String>, Header, description = "The ETag of what the client has"),
    ),
    responses(
        (status = 200, description = "What has changed", body = ChangeList, headers(("ETag" = String, description = "Stands for what is said"))),
        (status = 304, description = "The client has it"),
        Refused,
    ),
)]
pub(super) async fn list_changes(
    State(api): State<Arc<Api>>,
    AskedProject(project): AskedProject,
    headers: HeaderMap,
    query: Result<Query<ChangesQuery>, QueryRejection>,
) -> Answer {
    let Query(query) = query.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
    let limit = paging::limit(query.limit, PAGE, MOST_SEEN)?;
    let refused = || Problem::bad("since is not the \"next\" of an answer about the changes of this project");
    let seen = query.since.map(|text| Seen::read(project, &text).ok_or_else(refused)).transpose()?;
    let function = &api.function;
    let (found, next) = changes(&function.jobs, project, seen.as_ref(), limit).await?;
    let mut items = Vec::with_capacity(found.len());
    for change in found {
        items.push(ChangeView::of(function, change).await?);
    }
    etag::answer(&headers, &ChangeList { items, next: next.to_string() })
}
