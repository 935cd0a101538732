//! Handlers for the list of reviews.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use service::{ProjectAccess, Review, ReviewChange, ReviewDeletion, ReviewRefusal};
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::{AuthorizedActor, AuthorizedProject};
use super::problem::{CommonErrors, Problem};
use super::{Api, HttpResult};

/// A review (project).
#[derive(Serialize, ToSchema)]
pub(super) struct ReviewView {
    /// Its id.
    project_id: Uuid,
    /// Its name, which no other review has, regardless of case.
    name: String,
    /// The time at which it was listed, in RFC 3339 format.
    #[schema(format = DateTime)]
    created_at: String,
    /// The user who listed it: the `sub` of the token, or a fixed name if there are no tokens.
    created_by: String,
    /// The time at which it was archived; null if it is not.
    #[schema(required, format = DateTime)]
    archived_at: Option<String>,
}

impl From<Review> for ReviewView {
    fn from(Review { project_id, name, created_at, created_by, archived_at }: Review) -> Self {
        Self {
            project_id: project_id.as_uuid(),
            name,
            created_at: created_at.to_string(),
            created_by,
            archived_at: archived_at.map(|at| at.to_string()),
        }
    }
}

/// The listed reviews.
#[derive(Serialize, ToSchema)]
pub(super) struct ReviewList {
    /// The reviews, sorted by name; up to 1,000.
    items: Vec<ReviewView>,
}

/// A review to create.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewReview {
    /// Its name.
    #[schema(min_length = 1, max_length = 255)]
    name: String,
}

/// A change of a review. Absent fields keep their value.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangedReview {
    /// The new name.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 255)]
    name: Option<String>,
    /// `true` archives the review, `false` restores it.
    #[serde(default)]
    archived: Option<bool>,
}

fn refused(refusal: &ReviewRefusal) -> Problem {
    let status = match refusal {
        ReviewRefusal::Taken(_) => StatusCode::CONFLICT,
        ReviewRefusal::Name(_) | ReviewRefusal::TooMany | ReviewRefusal::Unnamed => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
    };
    Problem::new(status, &refusal.to_string())
}

/// Lists the reviews that the caller can access.
///
/// A review without a name is not listed, but can be read and changed by its id.
#[utoipa::path(
    get,
    path = "/projects",
    responses((status = 200, description = "The reviews", body = ReviewList), CommonErrors),
)]
pub(super) async fn list_reviews(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<ProjectAccess>,
) -> HttpResult {
    let items = api.service.reviews(&caller).await?.into_iter().map(ReviewView::from).collect();
    Ok(Json(ReviewList { items }).into_response())
}

/// Creates a review, or returns the one with this name, regardless of case.
///
/// Callers whose token lists reviews cannot create one, because the token would not list it.
#[utoipa::path(
    post,
    path = "/projects",
    request_body = NewReview,
    responses(
        (status = 200, description = "There already is a review with this name", body = ReviewView),
        (status = 201, description = "The review was created", body = ReviewView),
        (status = 403, description = "The caller can access only the reviews of their token", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The name is invalid, or there are too many reviews", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn create_review(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<ProjectAccess>,
    AuthorizedActor(person): AuthorizedActor,
    new: Result<Json<NewReview>, JsonRejection>,
) -> HttpResult {
    let Json(new) = new.map_err(|rejection| Problem::unreadable(&rejection, "a review"))?;
    if caller != ProjectAccess::All {
        let detail = "the token of the caller lists their reviews, so they cannot create one";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let created = api.service.create_review(&new.name, &person).await?;
    let created = created.map_err(|refusal| refused(&refusal))?;
    let status = if created.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let location = [(header::LOCATION, format!("/projects/{}", created.review.project_id))];
    Ok((status, location, Json(ReviewView::from(created.review))).into_response())
}

/// Renames, archives or restores a review. A review that is not listed becomes listed under its new name.
///
/// An archived review keeps its data and can still be read and changed.
#[utoipa::path(
    post,
    path = "/projects/{project}",
    params(("project" = Uuid, Path, description = "The review")),
    request_body = ChangedReview,
    responses(
        (status = 200, description = "The changed review", body = ReviewView),
        (status = 409, description = "Another review has this name", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The name is invalid or missing, or there are too many reviews", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn change_review(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    AuthorizedActor(person): AuthorizedActor,
    new: Result<Json<ChangedReview>, JsonRejection>,
) -> HttpResult {
    let Json(ChangedReview { name, archived }) =
        new.map_err(|rejection| Problem::unreadable(&rejection, "a change of a review"))?;
    let change = ReviewChange { name, archived };
    let changed = api.service.change_review(project, &change, &person).await?;
    let review = changed.map_err(|refusal| refused(&refusal))?;
    Ok(Json(ReviewView::from(review)).into_response())
}

/// Deletes a review with all of its imports and decisions.
///
/// One request deletes up to 100 imports. Repeat it while it returns 202.
#[utoipa::path(
    delete,
    path = "/projects/{project}",
    params(("project" = Uuid, Path, description = "The review")),
    responses(
        (status = 202, description = "Some imports are deleted; repeat the request for the others"),
        (status = 204, description = "The review is no longer visible; its data is deleted within minutes"),
        (status = 409, description = "An import of the review has not ended; cancel it first", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn delete_review(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
) -> HttpResult {
    match api.service.delete_review(project).await? {
        ReviewDeletion::Accepted => Ok(StatusCode::NO_CONTENT.into_response()),
        ReviewDeletion::More => Ok(StatusCode::ACCEPTED.into_response()),
        ReviewDeletion::Running(search) => {
            let detail = format!("import {search} of the review has not ended; cancel it first");
            Err(Problem::new(StatusCode::CONFLICT, &detail))
        }
    }
}
