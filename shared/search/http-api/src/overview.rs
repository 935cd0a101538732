//! Handlers for operators that span all projects: searches, and effects that are still to be performed.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use imports::{AgePlace, ByAge, ProjectId};
use jiff::Timestamp;
use messages::Message;
use outbox::{Cursor, Entry, Kind, Owner};
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
use service::effects::{self, Effect, Outboxes};

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
    query: Result<Query<AllSearchesQuery>, QueryRejection>,
) -> HttpResult {
    let Query(query) = query.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
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

/// The default and maximum number of effects in a page.
const EFFECTS_PAGE: usize = 50;
const MAX_EFFECTS_PAGE: usize = 200;

const EFFECTS: List = List { of: "effects", owner: Uuid::nil() };

/// An effect in an outbox that is still to be performed.
#[derive(Serialize, ToSchema)]
pub(super) struct EffectView {
    /// The id of its message; if it cannot be read, the store's own id of the entry.
    effect_id: String,
    /// `waiting` until it is due or retried, `claimed` while a worker performs it, or `poisoned` if it has exhausted
    /// its retries.
    state: &'static str,
    /// The type of the effect: `message`, `view`, or `unreadable` if it cannot be read.
    kind: &'static str,
    /// The queue that the message is sent to.
    #[schema(required)]
    queue: Option<String>,
    /// The message's name; empty if the effect is not a message or cannot be read.
    message: String,
    /// The import that it belongs to.
    #[schema(required)]
    search_id: Option<Uuid>,
    /// The id of the session that stored it; null if the import's saga stored it.
    #[schema(required)]
    session_id: Option<Uuid>,
    /// The time at which it is due, or since which it fails, in RFC 3339 format; null if it cannot be read.
    #[schema(required)]
    due_at: Option<String>,
    /// The earliest time of the next attempt; null if it has exhausted its retries.
    #[schema(required)]
    next_attempt_at: Option<String>,
    /// Number of failed attempts since an operator last requeued it.
    attempts: u32,
    /// Number of times that an operator requeued it.
    requeued: u32,
    /// The error of the last attempt.
    #[schema(required)]
    error: Option<String>,
}

impl EffectView {
    fn of(effect: Effect, now: Timestamp) -> Self {
        let (search, session) = match effect.owner {
            Some(Owner::Saga(search)) => (Some(search), None),
            Some(Owner::Session(session)) => (None, Some(session.as_uuid())),
            None => (None, None),
        };
        let view = Self {
            effect_id: effect.id(),
            state: effect.state(now).name(),
            kind: "unreadable",
            queue: None,
            message: String::new(),
            search_id: search.map(|search| search.as_uuid()),
            session_id: session,
            due_at: None,
            next_attempt_at: None,
            attempts: 0,
            requeued: 0,
            error: None,
        };
        match effect.stored {
            Ok(entry) => view.with(entry),
            Err(unreadable) => Self { error: Some(unreadable.why), ..view },
        }
    }

    fn with(self, entry: Entry) -> Self {
        let next_attempt_at = entry.ready_at().map(|at| at.to_string());
        let message = Message::decode(&entry.payload).ok();
        let (kind, queue) = match entry.kind {
            Kind::Message(queue) => ("message", Some(queue.name().to_owned())),
            Kind::View => ("view", None),
        };
        Self {
            kind,
            queue,
            search_id: self.search_id.or(message.as_ref().map(|message| message.partition.as_uuid())),
            message: message.map(|message| message.body.name).unwrap_or_default(),
            due_at: Some(entry.due_at.to_string()),
            next_attempt_at,
            attempts: entry.attempts,
            requeued: entry.requeued,
            error: entry.error,
            ..self
        }
    }
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

/// The entry's id is the store's own and may contain characters that a URL cannot.
impl ListCursor for effects::EffectCursor {
    fn written(&self) -> String {
        let of = match self.outboxes {
            Outboxes::Sagas => "searches",
            Outboxes::Sessions => "sessions",
        };
        let after = self.after.as_deref().unwrap_or_default();
        let after: String = after.bytes().map(|byte| format!("{byte:02x}")).collect();
        format!("{of}.{after}")
    }

    fn read(text: &str) -> Option<Self> {
        let (of, after) = text.split_once('.')?;
        let outboxes = match of {
            "searches" => Outboxes::Sagas,
            "sessions" => Outboxes::Sessions,
            _ => return None,
        };
        let is_hex = after.len().is_multiple_of(2) && after.bytes().all(|digit| digit.is_ascii_hexdigit());
        let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        let bytes = after.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>().filter(|_| is_hex)?;
        let after = String::from_utf8(bytes).ok()?;
        Some(Self { outboxes, after: (!after.is_empty()).then_some(after) })
    }
}

fn effect_state(asked: Option<&str>) -> Result<Option<effects::EffectState>, Problem> {
    let state = |name: &str| choices::EFFECT_STATES.into_iter().find(|state| state.name() == name);
    let refused = || Problem::bad("state is waiting, claimed or poisoned");
    asked.map(|name| state(name).ok_or_else(refused)).transpose()
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
    query: Result<Query<EffectsQuery>, QueryRejection>,
) -> HttpResult {
    let Query(query) = query.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
    let limit = paging::limit(query.limit, EFFECTS_PAGE, MAX_EFFECTS_PAGE)?;
    let now = api.service.host().now();
    let due_by = before(query.older_than.as_deref(), now)?;
    let wanted = effects::EffectFilter { state: effect_state(query.state.as_deref())?, due_by };
    let after = EFFECTS.after(query.after.as_deref())?;
    let goes_on = after.is_some();
    let found = effects::effects(api.service.health.stores(), &wanted, now, after, limit).await;
    let (found, next) = found.map_err(|error| match goes_on && !error.is_retryable() {
        // Only the store can determine whether an id is valid.
        true => Problem::bad("after is not the \"next\" of a page of this list"),
        false => Problem::from(error),
    })?;
    let items = found.into_iter().map(|effect| EffectView::of(effect, now)).collect();
    Ok(Json(EffectList { items, next: next.map(|next| EFFECTS.next(&next)) }).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effect_cursor_round_trips_any_store_id() {
        for after in [None, Some("{\"_id\":{\"$oid\":\"ä/+\"}}".to_owned())] {
            for outboxes in [Outboxes::Sagas, Outboxes::Sessions] {
                let place = effects::EffectCursor { outboxes, after: after.clone() };
                assert_eq!(EFFECTS.after(Some(&EFFECTS.next(&place))).unwrap(), Some(place));
            }
        }
        for wrong in ["searches", "others.", "searches.0", "searches.xx", "searches.ff", "searches.+1"] {
            assert_eq!(<effects::EffectCursor as ListCursor>::read(wrong), None, "{wrong}");
        }
    }
}
