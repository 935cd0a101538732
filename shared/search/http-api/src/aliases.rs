//! Deprecated paths of an earlier version, which addressed searches without their project.

use utoipa::openapi::{Deprecated, OpenApi, RefOr};

/// A search without its project; it may belong to any project that the caller can access.
pub(super) const SEARCH: &str = "/searches/{search}";
/// The path that [`SEARCH`] is an alias of.
const BELOW_PROJECT: &str = "/projects/{project}/searches/{search}";
/// The path that `DELETE` on [`SEARCH`] is an alias of: in the earlier version it cancelled the search.
const CANCEL: &str = "/projects/{project}/searches/{search}/cancel";

/// Describes the alias like the operations it stands for, but without the project and as deprecated.
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
