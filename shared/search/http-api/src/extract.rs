//! Extractors for authorized requests. A handler gets the id of a project or a search only through these, so it
//! cannot skip the authorization.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::Method;
use axum::http::request::Parts;
use imports::{ExportId, ProjectId, SearchId};
use serde::Deserialize;
use uuid::Uuid;

use super::Api;
use super::paging::ListCursor;
use super::problem::Problem;
use service::study_view::RecordPlace;
use service::{Principal, ProjectAccess, Role, SearchService, StoredSearch};

/// The ids in a path.
#[derive(Deserialize)]
struct Ids {
    project: Option<String>,
    search: Option<String>,
}

impl Ids {
    async fn of<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::from_request_parts(parts, state).await;
        path.map(|Path(ids)| ids).map_err(|_| Problem::bad("the path cannot be read"))
    }

    fn project(&self) -> Result<Option<ProjectId>, Problem> {
        let project = self.project.as_deref().map(|text| id("project", text)).transpose()?;
        Ok(project.map(ProjectId::from_uuid))
    }
}

fn id(kind: &str, text: &str) -> Result<Uuid, Problem> {
    Uuid::parse_str(text).map_err(|_| Problem::bad(&format!("the {kind} id in the path is not a UUID")))
}

/// Returns the principal; without the authorizing layer the caller can access nothing.
pub(super) fn principal(parts: &Parts) -> Principal {
    parts.extensions.get().cloned().unwrap_or_else(|| ProjectAccess::none().into())
}

/// Returns `true` for a request that changes no review, such as one that creates an export.
pub(super) fn only_reads(method: &Method, path: &str) -> bool {
    method.is_safe() || path.ends_with("/exports")
}

/// Returns the role that a request about a review needs.
fn needed_role(parts: &Parts) -> Role {
    if only_reads(&parts.method, parts.uri.path()) { Role::Reader } else { Role::Reviewer }
}

/// The caller of a request.
pub(super) struct Caller {
    /// The projects that the caller can access, by token or as a member.
    pub(super) access: ProjectAccess,
    /// The identity, if the caller has signed in.
    pub(super) identity: Option<String>,
    /// `true` for an operator of the deployment.
    pub(super) is_operator: bool,
}

impl FromRequestParts<Arc<Api>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let Principal { caller, operator, identity } = principal(parts);
        let access = api.service.access_of(caller, identity.as_deref()).await?;
        Ok(Self { access, identity, is_operator: operator.is_some() })
    }
}

/// A project that the caller can access in any role.
pub(super) struct ProjectInRole {
    pub(super) project: ProjectId,
    pub(super) role: Role,
}

impl FromRequestParts<Arc<Api>> for ProjectInRole {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let project = Ids::of(parts, api).await?.project()?;
        let Caller { access, .. } = Caller::from_request_parts(parts, api).await?;
        let found = project.and_then(|project| Some(Self { project, role: access.role(project)? }));
        found.ok_or_else(Problem::no_such_project)
    }
}

impl ProjectInRole {
    /// Returns the project if the role of the caller is at least this one.
    fn at_least(self, needed: Role) -> Result<ProjectId, Problem> {
        if self.role >= needed { Ok(self.project) } else { Err(Problem::role_too_low()) }
    }
}

/// A project in which the caller has the role that the method of the request needs.
pub(super) struct AuthorizedProject(pub(super) ProjectId);

impl FromRequestParts<Arc<Api>> for AuthorizedProject {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let found = ProjectInRole::from_request_parts(parts, api).await?;
        found.at_least(needed_role(parts)).map(Self)
    }
}

/// A project that the caller owns.
pub(super) struct OwnedProject(pub(super) ProjectId);

impl FromRequestParts<Arc<Api>> for OwnedProject {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let found = ProjectInRole::from_request_parts(parts, api).await?;
        found.at_least(Role::Owner).map(Self)
    }
}

/// `true` if a token makes the caller an owner of the project, even without a membership.
pub(super) struct OwnsByToken(pub(super) bool);

impl FromRequestParts<Arc<Api>> for OwnsByToken {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let project = Ids::of(parts, api).await?.project()?;
        let role = project.and_then(|project| principal(parts).caller.role(project));
        Ok(Self(role == Some(Role::Owner)))
    }
}

/// The name of the caller of a request, for records of their actions.
pub(super) struct AuthorizedActor(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for AuthorizedActor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(principal(parts).name()))
    }
}

/// A search and the access of the caller. Handlers compare it with the project that is stored in the search.
pub(super) struct AuthorizedSearch {
    pub(super) caller: ProjectAccess,
    pub(super) search: SearchId,
}

impl AuthorizedSearch {
    /// Returns the stored search.
    pub(super) async fn stored(&self, function: &SearchService) -> Result<StoredSearch, Problem> {
        function.stored(&self.caller, self.search).await?.ok_or_else(Problem::no_such_search)
    }
}

/// A record of a search's file, named `study` or `record` in the path.
pub(super) struct RecordParam(pub(super) RecordPlace);

/// An export of a search.
pub(super) struct ExportParam(pub(super) ExportId);

#[derive(Deserialize)]
struct ExportInPath {
    export: String,
}

impl<S: Send + Sync> FromRequestParts<S> for ExportParam {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<ExportInPath>::from_request_parts(parts, state).await;
        let Path(ExportInPath { export }) = path.map_err(|_| Problem::bad("the path cannot be read"))?;
        id("export", &export).map(|export| Self(ExportId::from_uuid(export)))
    }
}

#[derive(Deserialize)]
struct RecordInPath {
    study: Option<String>,
    record: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for RecordParam {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = Path::<RecordInPath>::from_request_parts(parts, state).await;
        let place = path.ok().and_then(|Path(path)| RecordPlace::read(path.study.or(path.record)?.as_str()));
        let is_record = |place: &RecordPlace| place.record > 0;
        place
            .filter(is_record)
            .map(Self)
            .ok_or_else(|| Problem::bad("the id in the path is not one such as 0-17"))
    }
}

impl FromRequestParts<Arc<Api>> for AuthorizedSearch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let ids = Ids::of(parts, api).await?;
        let search = ids.search.as_deref().ok_or_else(Problem::no_such_search)?;
        let search = SearchId::from_uuid(id("search", search)?);
        let Caller { access, .. } = Caller::from_request_parts(parts, api).await?;
        // Below the path of a project, the search has to belong to that project.
        let access = ids.project()?.map(|project| access.within(project)).unwrap_or(access);
        let caller = access.clone().at_least(needed_role(parts));
        if caller != access {
            let visible = api.service.find(&access, search).await?;
            if visible.is_some_and(|job| !caller.can_access(job.project_id)) {
                return Err(Problem::role_too_low());
            }
        }
        Ok(Self { caller, search })
    }
}
