//! Repairing a search that has ended.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;

use super::extract::AskedSearch;
use super::problem::{Problem, Refused};
use super::searches::idempotency_key;
use super::view::AnnouncedView;
use super::{Answer, Api};
use service::{NewRepair, Repair};

/// Repair a search that has ended: read what of it has failed anew.
///
/// That is done by a search of its own, which names the one that it repairs; files that were read to their end stay as they
/// are. A file that is still stored is read again, or another one is uploaded and read instead, or a file with some of its
/// records that could not be read in a form that can. A repair of a repair is one of the original search.
#[utoipa::path(
    post,
    path = "/projects/{project}/searches/{search}/repair",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
        ("Idempotency-Key" = Option<String>, Header, description = "Repeating a request with the same key answers with the same search"),
    ),
    request_body = NewRepair,
    responses(
        (status = 201, description = "A search that repairs it is announced, now or by an earlier request with this key; its files are those that have to be uploaded", body = AnnouncedView),
        (status = 409, description = "It has not ended, there is nothing to repair, or another search repairs it: nothing is changed", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The request is too large", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The request is not valid, or the key was used for something else", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The project has too many searches under way", body = Problem, content_type = "application/problem+json"),
        Refused,
    ),
)]
pub(super) async fn repair_search(
    State(api): State<Arc<Api>>,
    AskedSearch { caller, search }: AskedSearch,
    headers: HeaderMap,
    request: Result<Json<NewRepair>, JsonRejection>,
) -> Answer {
    let key = idempotency_key(&headers)?;
    let Json(request) = request.map_err(|rejection| Problem::unreadable(&rejection, "a repair"))?;
    match api.function.repair(&caller, search, &request, key.as_deref()).await? {
        Repair::Announced(announced) => {
            let place = [(header::LOCATION, format!("../{}", announced.search_id))];
            Ok((StatusCode::CREATED, place, Json(AnnouncedView::from(announced))).into_response())
        }
        Repair::Refused(refusal) => Err(Problem::not_repaired(&refusal)),
        Repair::Unknown => Err(Problem::no_such_search()),
    }
}
