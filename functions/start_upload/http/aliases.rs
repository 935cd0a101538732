//! The paths of the release before, whose searches were not below their projects.

use utoipa::openapi::{Deprecated, OpenApi, RefOr};

/// A search without its project: it may be any that the caller may see.
pub(super) const SEARCH: &str = "/searches/{search}";
/// What that is an alias of.
const BELOW_PROJECT: &str = "/projects/{project}/searches/{search}";

/// Describes the alias like what it stands for, without the project, and as deprecated.
pub(super) fn describe(api: &mut OpenApi) {
    let Some(mut alias) = api.paths.paths.get(BELOW_PROJECT).cloned() else { return };
    for operation in [&mut alias.get, &mut alias.delete].into_iter().flatten() {
        operation.deprecated = Some(Deprecated::True);
        operation.operation_id = operation.operation_id.take().map(|id| id + "_anywhere");
        if let Some(parameters) = &mut operation.parameters {
            parameters.retain(|parameter| !matches!(parameter, RefOr::T(named) if named.name == "project"));
        }
    }
    api.paths.paths.insert(SEARCH.to_owned(), alias);
}
