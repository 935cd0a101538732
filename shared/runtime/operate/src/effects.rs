//! Effects that are stored and still to be performed, and changes of exhausted ones, for operators.

use jiff::Timestamp;
use messages::StoreError;
use outbox::{EntryResult, OutboxRecord, Owner, UnreadableAction};
use saga::failures::AuditEntry;
use saga::{AccessError, Engine, Outboxes, Stores};

/// The number of records with effects that are read at a time, and the maximum for one page.
const READ_BATCH: usize = 200;
const MAX_RECORDS: usize = 1_000;

/// A stored effect.
#[derive(Debug, Clone)]
pub struct Effect {
    /// The outboxes that contain the effect.
    pub outboxes: Outboxes,
    /// The record that contains the effect; `None` if the record's id cannot be read.
    pub owner: Option<Owner>,
    /// The effect, or why it cannot be read.
    pub stored: EntryResult,
}

/// The state of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectState {
    /// The effect is due later, or waits to be performed.
    Waiting,
    /// A worker is performing the effect.
    Claimed,
    /// The effect has exhausted its retries or cannot be read, and needs an operator.
    Poisoned,
}

impl EffectState {
    /// Returns the name in requests and responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Claimed => "claimed",
            Self::Poisoned => "poisoned",
        }
    }
}

impl Effect {
    /// Returns the id for operators: the id of the effect's message, or the location of an unreadable effect.
    pub fn id(&self) -> String {
        match &self.stored {
            Ok(entry) => entry.id.to_string(),
            Err(unreadable) => unreadable.place.clone(),
        }
    }

    /// Changes an exhausted effect, unless it was changed concurrently. The audit entry is stored first, so that no
    /// change is without an entry. `by` is the name of the operator.
    ///
    /// # Errors
    /// Returns an error if a service is not configured, a store is unavailable, or another worker holds the partition
    /// of the effect. The call may be repeated.
    pub async fn change(&self, engine: &Engine, change: EffectChange, by: &str) -> Result<(), AccessError> {
        let (at, by, did) = (engine.host.now(), by.to_owned(), change.done().to_owned());
        let entry = AuditEntry { at, by, did, to: self.id(), why: String::new() };
        engine.stores()?.failures.note(&entry).await?;
        match (&self.stored, self.owner, change) {
            (Ok(entry), Some(owner), EffectChange::Requeue) => {
                engine.operator()?.requeue(owner, entry).await?;
            }
            (Ok(entry), Some(owner), EffectChange::Delete) => {
                engine.operator()?.discard(owner, entry).await?;
            }
            // Without its owner or its content, only its place is known.
            (Ok(_), None, _) | (Err(_), ..) => {
                let action = match change {
                    EffectChange::Requeue => UnreadableAction::Requeue(engine.host.now()),
                    EffectChange::Delete => UnreadableAction::Delete,
                };
                self.outboxes.of(engine.stores()?).resolve_unreadable(&self.id(), &action).await?;
            }
        }
        Ok(())
    }

    /// Returns the state.
    pub fn state(&self, now: Timestamp) -> EffectState {
        match &self.stored {
            Ok(entry) if entry.poisoned => EffectState::Poisoned,
            Ok(entry) if entry.claimed_until.is_some_and(|until| until > now) => EffectState::Claimed,
            Ok(_) => EffectState::Waiting,
            Err(_) => EffectState::Poisoned,
        }
    }
}

/// A change of an exhausted effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectChange {
    /// Performs the effect again.
    Requeue,
    /// Deletes the effect, so that it is never performed.
    Delete,
}

impl EffectChange {
    /// Returns the action for the audit log and the operator.
    pub fn done(self) -> &'static str {
        match self {
            Self::Requeue => "requeued",
            Self::Delete => "deleted",
        }
    }
}

/// A filter of effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectFilter {
    /// Selects effects in this state; all if `None`.
    pub state: Option<EffectState>,
    /// Selects effects that were due by then, and those without a due time.
    pub due_by: Timestamp,
}

impl EffectFilter {
    fn has(&self, effect: &Effect, now: Timestamp) -> bool {
        let is_due = effect.stored.as_ref().map_or(true, |entry| entry.due_at <= self.due_by);
        is_due && self.state.is_none_or(|state| state == effect.state(now))
    }
}

/// A cursor in the effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectCursor {
    /// The outboxes.
    pub outboxes: Outboxes,
    /// The id of the last record, in the store's own notation; `None` before the first one.
    pub after: Option<String>,
}

/// Returns a page of effects, those of sagas first, in the order of their records, and the cursor of its end if more
/// may follow. The effects of one record are not split, so a page may exceed `limit`. Up to 1,000 records are
/// examined, so a page may be short or empty even if more pages follow.
///
/// # Errors
/// Returns an error if the store is unavailable or the cursor does not belong to it.
pub async fn effects(
    stores: &Stores,
    wanted: &EffectFilter,
    now: Timestamp,
    after: Option<EffectCursor>,
    limit: usize,
) -> Result<(Vec<Effect>, Option<EffectCursor>), StoreError> {
    let mut place = after.unwrap_or(EffectCursor { outboxes: Outboxes::Sagas, after: None });
    let (mut found, mut left) = (Vec::new(), MAX_RECORDS);
    loop {
        if found.len() >= limit || left == 0 {
            return Ok((found, Some(place)));
        }
        let page = records(stores, wanted, &place, READ_BATCH.min(left)).await?;
        if page.is_empty() {
            let next = Outboxes::ALL.into_iter().find(|outboxes| *outboxes > place.outboxes);
            let Some(outboxes) = next else { return Ok((found, None)) };
            place = EffectCursor { outboxes, after: None };
        }
        left = left.saturating_sub(page.len());
        for record in page {
            if found.len() >= limit {
                break;
            }
            place.after = Some(record.id);
            let of_record = |stored| Effect { outboxes: place.outboxes, owner: record.owner, stored };
            found.extend(record.entries.into_iter().map(of_record).filter(|effect| wanted.has(effect, now)));
        }
    }
}

/// Returns all effects that a filter selects; see [`effects()`].
pub async fn all(stores: &Stores, wanted: &EffectFilter, now: Timestamp) -> Result<Vec<Effect>, StoreError> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let (found, next) = effects(stores, wanted, now, after, READ_BATCH).await?;
        all.extend(found);
        if next.is_none() {
            return Ok(all);
        }
        after = next;
    }
}

/// Returns all exhausted effects that were due by a time, including unreadable ones that no sweep has processed yet and
/// that are therefore not in the index of exhausted effects.
pub async fn exhausted(
    stores: &Stores,
    due_by: Timestamp,
    now: Timestamp,
) -> Result<Vec<Effect>, StoreError> {
    let mut found = all(stores, &EffectFilter { state: None, due_by }, now).await?;
    found.retain(|effect| effect.state(now) == EffectState::Poisoned);
    Ok(found)
}

/// Exhausted effects have their own index.
async fn records(
    stores: &Stores,
    wanted: &EffectFilter,
    EffectCursor { outboxes, after }: &EffectCursor,
    limit: usize,
) -> Result<Vec<OutboxRecord>, StoreError> {
    let (outbox, after) = (outboxes.of(stores), after.as_deref());
    match wanted.state {
        Some(EffectState::Poisoned) => outbox.poisoned(after, limit).await,
        Some(EffectState::Waiting | EffectState::Claimed) | None => outbox.pending(after, limit).await,
    }
}
