//! Effects that are still to be performed.

use jiff::Timestamp;
use messages::{Message, PartitionKey};
use outbox::{Entry, Kind, Owner};
use saga::Stores;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::failures::Page;
use super::paging::{self, List, ListCursor, foreign_cursor};
use super::problem::Problem;
use crate::{Effect, EffectFilter, EffectState};

/// The default and maximum number of effects in a page.
const PAGE: usize = 50;
const MAX_PAGE: usize = 200;

const EFFECTS: List = List { of: "effects", owner: Uuid::nil() };

/// The states of effects.
pub const STATES: [EffectState; 3] = [EffectState::Waiting, EffectState::Claimed, EffectState::Poisoned];

/// The fields of an effect, without the instance that it belongs to.
#[derive(Serialize, ToSchema)]
pub struct EffectFields {
    /// The id of its message; if it cannot be read, the store's own id of the entry.
    effect_id: String,
    /// `waiting` until it is due or retried, `claimed` while a worker performs it, or `poisoned` if it has exhausted
    /// its retries.
    state: &'static str,
    /// The type of the effect: `message`, `view`, `record`, or `unreadable` if it cannot be read.
    kind: &'static str,
    /// The queue that the message is sent to.
    #[schema(required)]
    queue: Option<String>,
    /// The message's name; empty if the effect is not a message or cannot be read.
    message: String,
    /// The id of the session that stored it; null if an instance stored it.
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

impl EffectFields {
    /// Returns the fields of an effect, and the instance that it belongs to.
    pub fn of(effect: Effect, now: Timestamp) -> (Self, Option<PartitionKey>) {
        let (instance, session_id) = match effect.owner {
            Some(Owner::Saga(instance)) => (Some(instance), None),
            Some(Owner::Session(session)) => (None, Some(session.as_uuid())),
            None => (None, None),
        };
        let fields = Self {
            effect_id: effect.id(),
            state: effect.state(now).name(),
            kind: "unreadable",
            queue: None,
            message: String::new(),
            session_id,
            due_at: None,
            next_attempt_at: None,
            attempts: 0,
            requeued: 0,
            error: None,
        };
        match effect.stored {
            Ok(entry) => fields.with(entry, instance),
            Err(unreadable) => (Self { error: Some(unreadable.why), ..fields }, instance),
        }
    }

    fn with(self, entry: Entry, instance: Option<PartitionKey>) -> (Self, Option<PartitionKey>) {
        let next_attempt_at = entry.ready_at().map(|at| at.to_string());
        let message = Message::decode(&entry.payload).ok();
        let (kind, queue) = match entry.kind {
            Kind::Message(queue) => ("message", Some(queue.name().to_owned())),
            Kind::View => ("view", None),
            Kind::Record => ("record", None),
        };
        let instance = instance.or(message.as_ref().map(|message| message.partition));
        let fields = Self {
            kind,
            queue,
            message: message.map(|message| message.body.name).unwrap_or_default(),
            due_at: Some(entry.due_at.to_string()),
            next_attempt_at,
            attempts: entry.attempts,
            requeued: entry.requeued,
            error: entry.error,
            ..self
        };
        (fields, instance)
    }
}

/// Reads the name of a state.
///
/// # Errors
/// Returns the problem of an unknown name.
pub fn state(asked: Option<&str>) -> Result<Option<EffectState>, Problem> {
    let state = |name: &str| STATES.into_iter().find(|state| state.name() == name);
    let refused = || Problem::bad("state is waiting, claimed or poisoned");
    asked.map(|name| state(name).ok_or_else(refused)).transpose()
}

/// Returns a page of effects, those of sagas first.
///
/// # Errors
/// Returns the problem of a limit or cursor that is not permitted, or of an unavailable store.
pub async fn page<V>(
    stores: &Stores,
    wanted: &EffectFilter,
    now: Timestamp,
    limit: Option<usize>,
    after: Option<&str>,
    view: impl Fn(EffectFields, Option<PartitionKey>) -> V,
) -> Result<Page<V>, Problem> {
    let limit = paging::limit(limit, PAGE, MAX_PAGE)?;
    let after = EFFECTS.after(after, ListCursor::read)?;
    let goes_on = after.is_some();
    let found = crate::effects(stores, wanted, now, after, limit).await;
    let (found, next) = found.map_err(|error| match goes_on && !error.is_retryable() {
        // Only the store can determine whether an id is valid.
        true => foreign_cursor(),
        false => Problem::from(error),
    })?;
    let items = found.into_iter().map(|effect| EffectFields::of(effect, now));
    let items = items.map(|(fields, instance)| view(fields, instance)).collect();
    Ok(Page { items, next: next.map(|next| EFFECTS.next(&next.written())) })
}
