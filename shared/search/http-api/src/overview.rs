//! Handlers for operators that span all projects: searches, and effects that are still to be performed.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use imports::{AgePlace, ByAge, ProjectId, SearchId};
use jiff::Timestamp;
use operate::EffectFilter;
use operate::http::effects::{self, EffectFields};
use operate::http::extract::Parameters;
use operate::http::failures::Page;
use outbox::Cursor;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::admin::AuthorizedOperator;
use super::paging::{self, List, ListCursor};
use super::problem::{CommonErrors, Problem};
use super::searches::{MAX_PAGE, PAGE, states};
use super::view::{SearchList, SearchView};
use super::{Api, HttpResult, choices};
use service::age;

const SEARCHES: List = List { of: "searches of all projects", owner: Uuid::nil() };

/// Selects imports of all reviews.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct AllSearchesQuery {
    /// Returns only imports in one of these states, separated by commas: `Uploading`, `Uploaded`, `Parsing`,
    /// `Completed`, `Error`.
    #[param(inline, value_type = Option<choices::SearchStates>)]
    state: Option<String>,
    /// Returns only imports that were announced at least this long ago: a number of seconds, or a duration such as
    /// `2h` or `1d 12h`.
    older_than: Option<String>,
    /// Returns only imports of this review.
    project: Option<Uuid>,
    /// Maximum number of imports to return, from 1 to 200. The default is 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `next` cursor of the previous page.
    after: Option<String>,
}

impl ListCursor for AgePlace {
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

/// Returns the latest time that is at least `older_than` ago.
fn before(older_than: Option<&str>, now: Timestamp) -> Result<Timestamp, Problem> {
    let Some(text) = older_than else { return Ok(Timestamp::MAX) };
    let age = age(text).ok_or_else(|| {
        Problem::bad("older_than is a number of seconds, or a duration such as 2h or 1d 12h")
    })?;
    Ok(now.checked_sub(age).unwrap_or(Timestamp::MIN))
}

/// Lists the imports of all reviews: unfinished ones first, oldest first, then the others, newest first.
///
/// Up to 1,000 imports are examined for one page. With a filter, a page may therefore be short or empty even if more
/// pages follow. An import that was never announced, or that ended within the last minute, may be missing.
#[utoipa::path(
    get,
    path = "/admin/searches",
    params(AllSearchesQuery),
    responses((status = 200, description = "A page of imports", body = SearchList), CommonErrors),
)]
pub(super) async fn list_all_searches(
    State(api): State<Arc<Api>>,
    _: AuthorizedOperator,
    Parameters(query): Parameters<AllSearchesQuery>,
) -> HttpResult {
    let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
    let wanted = ByAge {
        project: query.project.map(ProjectId::from_uuid),
        states: states(query.state.as_deref())?,
        before: before(query.older_than.as_deref(), api.service.host().now())?,
    };
    let after = SEARCHES.after(query.after.as_deref())?;
    let (jobs, next) = api.service.jobs.by_age(&wanted, after, limit).await?;
    let items = jobs.into_iter().map(|job| SearchView::of(job, None)).collect();
    Ok(Json(SearchList { items, next: next.map(|next| SEARCHES.next(&next)) }).into_response())
}

/// An effect in an outbox that is still to be performed.
#[derive(Serialize, ToSchema)]
pub(super) struct EffectView {
    /// The import that it belongs to.
    #[schema(required)]
    search_id: Option<Uuid>,
    #[serde(flatten)]
    effect: EffectFields,
}

/// A page of effects.
#[derive(Serialize, ToSchema)]
pub(super) struct EffectList {
    /// The effects; those of sagas come first.
    items: Vec<EffectView>,
    /// The cursor for the `after` of the next request; null if no more items follow.
    #[schema(required)]
    next: Option<String>,
}

/// Selects effects.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct EffectsQuery {
    /// Returns only effects in this state: `waiting`, `claimed` or `poisoned`.
    #[param(inline, value_type = Option<choices::EffectState>)]
    state: Option<String>,
    /// Returns only effects that have been due for at least this long: a number of seconds, or a duration such as
    /// `2h` or `1d 12h`.
    older_than: Option<String>,
    /// Maximum number of effects to return, from 1 to 200. The default is 50. The effects of one import are not
    /// split, so a page may have a few more.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `next` cursor of the previous page.
    after: Option<String>,
}

/// Lists the effects that are still to be performed: messages to send, timers, and updates of views.
///
/// Up to 1,000 imports are examined for one page. With a filter, a page may therefore be short or empty even if more
/// pages follow.
#[utoipa::path(
    get,
    path = "/admin/effects",
    params(EffectsQuery),
    responses((status = 200, description = "A page of effects", body = EffectList), CommonErrors),
)]
pub(super) async fn list_effects(
    State(api): State<Arc<Api>>,
    _: AuthorizedOperator,
    Parameters(query): Parameters<EffectsQuery>,
) -> HttpResult {
    let now = api.service.host().now();
    let due_by = before(query.older_than.as_deref(), now)?;
    let wanted = EffectFilter { state: effects::state(query.state.as_deref())?, due_by };
    let view = |effect, search: Option<SearchId>| EffectView {
        search_id: search.map(|search| search.as_uuid()),
        effect,
    };
    let (stores, after) = (api.service.health.stores(), query.after.as_deref());
    let Page { items, next } = effects::page(stores, &wanted, now, query.limit, after, view).await?;
    Ok(Json(EffectList { items, next }).into_response())
}
