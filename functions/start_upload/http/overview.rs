//! What operators see of all projects.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use imports::{AgePlace, ByAge, ProjectId};
use jiff::Timestamp;
use outbox::Cursor;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::admin::AskedOperator;
use super::paging::{self, List, Place};
use super::problem::{Problem, Refused};
use super::searches::{MAX_PAGE, PAGE, states};
use super::view::{SearchList, SearchView};
use super::{Answer, Api};
use crate::start_upload::age;

const SEARCHES: List = List { of: "searches of all projects", owner: Uuid::nil() };

/// Which searches of all projects are meant.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct AllSearchesQuery {
    /// Only those in one of these states: `Uploading`, `Uploaded`, `Parsing`, `Completed`, `Error`, separated by commas.
    state: Option<String>,
    /// Only those that were announced so long ago: seconds, or such as `2h` or `1d 12h`.
    older_than: Option<String>,
    /// Only those of this project.
    project: Option<Uuid>,
    /// How many searches, from 1 to 200; 50.
    limit: Option<usize>,
    /// Where the page before ended: its `next`.
    after: Option<String>,
}

impl Place for AgePlace {
    fn written(&self) -> String {
        let group = if self.ended { "ended" } else { "open" };
        match &self.after {
            Some(after) => format!("{group}.{}", after.written()),
            None => group.to_owned(),
        }
    }

    fn read(text: &str) -> Option<Self> {
        let (group, after) = text.split_once('.').map_or((text, None), |(group, after)| (group, Some(after)));
        let ended = match group {
            "open" => false,
            "ended" => true,
            _ => return None,
        };
        let after = match after {
            Some(after) => Some(Cursor::read(after)?),
            None => None,
        };
        Some(Self { ended, after })
    }
}

/// The moment before which something was that is so old.
fn before(older_than: Option<&str>, now: Timestamp) -> Result<Timestamp, Problem> {
    let Some(text) = older_than else { return Ok(Timestamp::MAX) };
    let age = age(text)
        .ok_or_else(|| Problem::bad("older_than is a number of seconds, or such as 2h or 1d 12h"))?;
    Ok(now.checked_sub(age).unwrap_or(Timestamp::MIN))
}

/// The searches of all projects, first those that have not ended, the oldest first, and then the others, the latest first.
///
/// At most 1,000 of them are looked through for a page, so with a filter it may be short, or empty, although more follows. One
/// that nobody has announced, or that has ended in the last minute, may be missing.
#[utoipa::path(
    get,
    path = "/admin/searches",
    params(AllSearchesQuery),
    responses((status = 200, description = "Some of them", body = SearchList), Refused),
)]
pub(super) async fn list_all_searches(
    State(api): State<Arc<Api>>,
    _: AskedOperator,
    query: Result<Query<AllSearchesQuery>, QueryRejection>,
) -> Answer {
    let Query(query) = query.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
    let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
    let wanted = ByAge {
        project: query.project.map(ProjectId::from_uuid),
        states: states(query.state.as_deref())?,
        before: before(query.older_than.as_deref(), api.function.host().now())?,
    };
    let after = SEARCHES.after(query.after.as_deref())?;
    let (jobs, next) = api.function.jobs.by_age(&wanted, after, limit).await?;
    let items = jobs.into_iter().map(|job| SearchView::of(job, None)).collect();
    Ok(Json(SearchList { items, next: next.map(|next| SEARCHES.next(&next)) }).into_response())
}
