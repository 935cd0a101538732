//! The studies that a list or an export selects, as requests name them.

use axum::http::StatusCode;
use imports::{FileId, ProjectId, SearchId, StudyFilter, WordQuery};
use service::selection::StudySelection;
use service::{Scope, SearchService};
use uuid::Uuid;

use super::problem::Problem;

/// Returns the selection that a request names.
pub(super) fn selection(studies: Option<&str>, text: Option<&str>) -> Result<StudySelection, Problem> {
    let all = [StudyFilter::All, StudyFilter::Unique, StudyFilter::Duplicates];
    let which = studies
        .map_or(Some(StudyFilter::All), |studies| all.into_iter().find(|which| name(*which) == studies));
    let which = which.ok_or_else(|| Problem::bad("studies is one of all, unique and duplicates"))?;
    Ok(StudySelection { which, text: words(text)? })
}

/// Returns the words to search for.
pub(super) fn words(text: Option<&str>) -> Result<Option<WordQuery>, Problem> {
    let words = text.map(WordQuery::new).transpose();
    words.map_err(|error| Problem::bad(&error.to_string()))
}

/// Returns the scope that a request names.
pub(super) async fn scope(
    service: &SearchService,
    project: ProjectId,
    search: Option<Uuid>,
    file: Option<Uuid>,
) -> Result<Scope, Problem> {
    if file.is_some() && search.is_none() {
        return Err(Problem::bad("file requires search"));
    }
    let (search, file) = (search.map(SearchId::from_uuid), file.map(FileId::from_uuid));
    let scope = service.scope(project, search, file).await?;
    scope.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "the review has no such import or file"))
}

/// Returns the name of a selection in requests.
pub(super) fn name(studies: StudyFilter) -> &'static str {
    match studies {
        StudyFilter::All => "all",
        StudyFilter::Unique => "unique",
        StudyFilter::Duplicates => "duplicates",
    }
}
