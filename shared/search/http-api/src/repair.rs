//! The handler that repairs a search that has ended.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;

use super::extract::AuthorizedSearch;
use super::problem::{CommonErrors, Problem};
use super::searches::idempotency_key;
use super::view::AnnouncedView;
use super::{Api, HttpResult};
use service::{NewRepair, Repair};

/// Repairs an import that has ended: reads its failed files again.
///
/// The repair is a separate import, which names the repaired one. Files that were read completely stay as they are. A
/// failed file that is still stored is read again; or a new file is uploaded and read instead; or a file is uploaded
/// that contains some of the records that were not imported, in corrected form. A repair of a repair is a repair of the
/// original import.
#[utoipa::path(
    post,
    path = "/projects/{project}/searches/{search}/repair",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated request with the same key returns the same import"),
    ),
    request_body = NewRepair,
    responses(
        (status = 201, description = "The repairing import was announced, by this request or by an earlier one with the same key; it lists the files to upload", body = AnnouncedView),
        (status = 409, description = "The import has not ended, there is nothing to repair, another import is repairing it, or the key was used before, for a repair that is not stored, or that ended before all files arrived; nothing is changed", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The request is too large", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The request is not valid, or the key was used for another request", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The review has too many unfinished imports", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn repair_search(
    State(api): State<Arc<Api>>,
    AuthorizedSearch { caller, search }: AuthorizedSearch,
    headers: HeaderMap,
    request: Result<Json<NewRepair>, JsonRejection>,
) -> HttpResult {
    let key = idempotency_key(&headers)?;
    let Json(request) = request.map_err(|rejection| Problem::unreadable(&rejection, "a repair"))?;
    match api.service.repair(&caller, search, &request, key.as_deref()).await? {
        Repair::Announced(announced) => {
            let place = [(header::LOCATION, format!("../{}", announced.search_id))];
            Ok((StatusCode::CREATED, place, Json(AnnouncedView::from(announced))).into_response())
        }
        Repair::Refused(refusal) => Err(Problem::not_repaired(&refusal)),
        Repair::Unknown => Err(Problem::no_such_search()),
    }
}
