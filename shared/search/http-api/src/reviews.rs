//! Handlers for the list of reviews.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use service::{ProjectAccess, Review, ReviewChange, ReviewDeletion, ReviewRefusal, Role};
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::{AuthorizedActor, Caller, OwnedProject};
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
    /// The role of the caller.
    role: Role,
}

impl ReviewView {
    fn of(Review { project_id, name, created_at, created_by, archived_at }: Review, role: Role) -> Self {
        Self {
            project_id: project_id.as_uuid(),
            name,
            created_at: created_at.to_string(),
            created_by,
            archived_at: archived_at.map(|at| at.to_string()),
            role,
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
        ReviewRefusal::Name(_)
        | ReviewRefusal::TooMany
        | ReviewRefusal::TooManyOwn
        | ReviewRefusal::Unnamed => StatusCode::UNPROCESSABLE_ENTITY,
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
pub(super) async fn list_reviews(State(api): State<Arc<Api>>, Caller { access, .. }: Caller) -> HttpResult {
    let listed = api.service.reviews(&access).await?;
    let items = listed.into_iter().filter_map(|review| {
        let role = access.role(review.project_id)?;
        Some(ReviewView::of(review, role))
    });
    let items = items.collect();
    Ok(Json(ReviewList { items }).into_response())
}

/// Creates a review, or returns the one with this name, regardless of case.
///
/// Callers whose token lists reviews become the owner of the new one.
#[utoipa::path(
    post,
    path = "/projects",
    request_body = NewReview,
    responses(
        (status = 200, description = "There already is a review with this name", body = ReviewView),
        (status = 201, description = "The review was created", body = ReviewView),
        (status = 409, description = "A review that the caller cannot access has this name", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The name is invalid, or there are too many reviews", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn create_review(
    State(api): State<Arc<Api>>,
    Caller { access, identity, .. }: Caller,
    AuthorizedActor(person): AuthorizedActor,
    new: Result<Json<NewReview>, JsonRejection>,
) -> HttpResult {
    let Json(new) = new.map_err(|rejection| Problem::unreadable(&rejection, "a review"))?;
    let created = match (&access, identity) {
        (ProjectAccess::All, _) => api.service.create_review(&new.name, &person).await?,
        (ProjectAccess::Only(_), Some(owner)) => {
            api.service.create_own_review(&new.name, &access, &owner).await?
        }
        // Without an identity the caller could not access the review.
        (ProjectAccess::Only(_), None) => return Err(Problem::role_too_low()),
    };
    let created = created.map_err(|refusal| refused(&refusal))?;
    let status = if created.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let location = [(header::LOCATION, format!("/projects/{}", created.review.project_id))];
    let role = access.role(created.review.project_id).unwrap_or(Role::Owner);
    Ok((status, location, Json(ReviewView::of(created.review, role))).into_response())
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
    OwnedProject(project): OwnedProject,
    AuthorizedActor(person): AuthorizedActor,
    new: Result<Json<ChangedReview>, JsonRejection>,
) -> HttpResult {
    let Json(ChangedReview { name, archived }) =
        new.map_err(|rejection| Problem::unreadable(&rejection, "a change of a review"))?;
    let change = ReviewChange { name, archived };
    let changed = api.service.change_review(project, &change, &person).await?;
    let review = changed.map_err(|refusal| refused(&refusal))?;
    Ok(Json(ReviewView::of(review, Role::Owner)).into_response())
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
    OwnedProject(project): OwnedProject,
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
