//! Extractors for authorized requests. A handler gets the id of a project or a search only through these, so it
//! cannot skip the authorization.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use imports::{ExportId, ProjectId, SearchId};
use serde::Deserialize;
use uuid::Uuid;

use super::paging::ListCursor;
use super::problem::Problem;
use service::study_view::RecordPlace;
use service::{ProjectAccess, SearchService, StoredSearch};

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

/// Returns the caller's access; without the authorizing layer the caller can access nothing.
fn caller(parts: &Parts) -> ProjectAccess {
    parts.extensions.get().cloned().unwrap_or_else(|| ProjectAccess::Only([].into()))
}

/// A project that the caller may read and change.
pub(super) struct AuthorizedProject(pub(super) ProjectId);

impl<S: Send + Sync> FromRequestParts<S> for AuthorizedProject {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let project = Ids::of(parts, state).await?.project()?;
        let project = project.filter(|project| caller(parts).can_access(*project));
        project.map(Self).ok_or_else(Problem::no_such_project)
    }
}

/// The name of the caller, for records of their actions.
#[derive(Clone)]
pub(super) struct ActorName(pub(super) String);

/// The name of the caller of a request.
pub(super) struct AuthorizedActor(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for AuthorizedActor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let person = parts.extensions.get::<ActorName>().cloned();
        // Without the authorizing layer no caller can access a project.
        person.map(|ActorName(name)| Self(name)).ok_or_else(Problem::no_such_project)
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

impl<S: Send + Sync> FromRequestParts<S> for AuthorizedSearch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let ids = Ids::of(parts, state).await?;
        let search = ids.search.as_deref().ok_or_else(Problem::no_such_search)?;
        let search = SearchId::from_uuid(id("search", search)?);
        let caller = caller(parts);
        // Below the path of a project, the search has to belong to that project.
        let caller = ids.project()?.map(|project| caller.within(project)).unwrap_or(caller);
        Ok(Self { caller, search })
    }
}
