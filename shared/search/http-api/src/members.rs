//! Handlers for the members of a review.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use service::{Member, MemberEditor, MemberRefusal, Role};
use utoipa::ToSchema;

use super::extract::{AuthorizedActor, AuthorizedProject, OwnedProject, OwnsByToken, ProjectInRole};
use super::problem::{CommonErrors, Problem};
use super::{Api, HttpResult};

/// A member of a review.
#[derive(Serialize, ToSchema)]
struct MemberView {
    /// The identity of the person: the `sub` of their token.
    name: String,
    /// Their role.
    role: Role,
    /// The time at which they became a member.
    #[schema(value_type = String, format = DateTime)]
    added_at: Timestamp,
    /// The user who added them.
    added_by: String,
}

impl From<Member> for MemberView {
    fn from(Member { name, role, added_at, added_by }: Member) -> Self {
        Self { name, role, added_at, added_by }
    }
}

/// The members of a review.
#[derive(Serialize, ToSchema)]
struct MemberList {
    /// The members, sorted by name; up to 50.
    items: Vec<MemberView>,
}

/// The role of a person in a review.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangedMember {
    /// The identity of the person: the `sub` of their token. `GET /config.json` shows their own to the person.
    #[schema(min_length = 1, max_length = 255)]
    name: String,
    /// Their role.
    role: Role,
}

/// A person who is to be removed from a review.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RemovedMember {
    /// The identity of the person.
    #[schema(min_length = 1, max_length = 255)]
    name: String,
}

fn refused(refusal: &MemberRefusal) -> Problem {
    let status = match refusal {
        MemberRefusal::LastOwner => StatusCode::CONFLICT,
        MemberRefusal::Name | MemberRefusal::TooManyMembers | MemberRefusal::TooManyReviews => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
    };
    Problem::new(status, &refusal.to_string())
}

/// Lists the members of a review. People whose token lists the review are not members.
#[utoipa::path(
    get,
    path = "/projects/{project}/members",
    params(("project" = Uuid, Path, description = "The review")),
    responses((status = 200, description = "The members", body = MemberList), CommonErrors),
)]
pub(super) async fn list_members(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
) -> HttpResult {
    let items = api.service.members(project).await?.into_iter().map(MemberView::from).collect();
    Ok(Json(MemberList { items }).into_response())
}

/// Makes a person a member of a review, or changes their role. Only owners can do this.
#[utoipa::path(
    post,
    path = "/projects/{project}/members",
    params(("project" = Uuid, Path, description = "The review")),
    request_body = ChangedMember,
    responses(
        (status = 200, description = "The member", body = MemberView),
        (status = 409, description = "The only owner takes another role", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The name is invalid, or there are too many members", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn set_member(
    State(api): State<Arc<Api>>,
    OwnedProject(project): OwnedProject,
    OwnsByToken(owns_by_token): OwnsByToken,
    AuthorizedActor(person): AuthorizedActor,
    new: Result<Json<ChangedMember>, JsonRejection>,
) -> HttpResult {
    let Json(new) = new.map_err(|rejection| Problem::unreadable(&rejection, "a member"))?;
    let by = MemberEditor { name: &person, owns_by_token };
    let member = api.service.set_member(project, &new.name, new.role, by).await?;
    let member = member.map_err(|refusal| refused(&refusal))?;
    Ok(Json(MemberView::from(member)).into_response())
}

/// Removes a person from the members of a review. Owners can remove every member, and the others themselves.
#[utoipa::path(
    post,
    path = "/projects/{project}/members/remove",
    params(("project" = Uuid, Path, description = "The review")),
    request_body = RemovedMember,
    responses(
        (status = 204, description = "The person is not a member"),
        (status = 409, description = "The only owner leaves", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn remove_member(
    State(api): State<Arc<Api>>,
    ProjectInRole { project, role }: ProjectInRole,
    OwnsByToken(owns_by_token): OwnsByToken,
    AuthorizedActor(person): AuthorizedActor,
    removed: Result<Json<RemovedMember>, JsonRejection>,
) -> HttpResult {
    let Json(removed) = removed.map_err(|rejection| Problem::unreadable(&rejection, "a member"))?;
    if role != Role::Owner && removed.name != person {
        return Err(Problem::role_too_low());
    }
    let by = MemberEditor { name: &person, owns_by_token };
    let removed = api.service.remove_member(project, &removed.name, by).await?;
    removed.map_err(|refusal| refused(&refusal))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
