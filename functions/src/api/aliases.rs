//! The paths of the release before, whose searches were not below their projects.

use utoipa::openapi::{Deprecated, OpenApi, RefOr};

/// A search without its project: it may be any that the caller may see.
pub(super) const SEARCH: &str = "/searches/{search}";
/// What that is an alias of.
const BELOW_PROJECT: &str = "/projects/{project}/searches/{search}";
/// What deleting it is an alias of: the release before deleted nothing.
const CANCEL: &str = "/projects/{project}/searches/{search}/cancel";

/// Describes the alias like what it stands for, without the project, and as deprecated.
pub(super) fn describe(api: &mut OpenApi) {
    let Some(mut alias) = api.paths.paths.get(BELOW_PROJECT).cloned() else { return };
    alias.delete = api.paths.paths.get(CANCEL).and_then(|cancel| cancel.post.clone());
    for operation in [&mut alias.get, &mut alias.delete].into_iter().flatten() {
        operation.deprecated = Some(Deprecated::True);
        operation.operation_id = operation.operation_id.take().map(|id| id + "_anywhere");
        if let Some(parameters) = &mut operation.parameters {
            parameters.retain(|parameter| !matches!(parameter, RefOr::T(named) if named.name == "project"));
        }
    }
    api.paths.paths.insert(SEARCH.to_owned(), alias);
}
