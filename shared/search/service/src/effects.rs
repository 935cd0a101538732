//! Effects that are stored and not performed yet, as operators see them.

use jiff::Timestamp;
use messages::StoreError;
use outbox::{InspectOutbox, Owner, Pending, Stored};
use saga::Stores;

/// How many records with effects are read at a time, and looked through for one page.
const AT_ONCE: usize = 200;
const MOST_RECORDS: usize = 1_000;

/// The outboxes of one kind of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outboxes {
    /// Those of sagas.
    Sagas,
    /// Those of committed sessions.
    Sessions,
}

impl Outboxes {
    const ALL: [Self; 2] = [Self::Sagas, Self::Sessions];

    /// Where they are.
    pub fn of(self, stores: &Stores) -> &dyn InspectOutbox {
        match self {
            Self::Sagas => &*stores.saga_outbox,
            Self::Sessions => &*stores.session_outbox,
        }
    }
}

/// A stored effect.
#[derive(Debug, Clone)]
pub struct Effect {
    /// Where it is.
    pub outboxes: Outboxes,
    /// The record that it is stored in; none when the record's id cannot be read.
    pub owner: Option<Owner>,
    /// The effect, or why it cannot be read.
    pub stored: Stored,
}

/// What an effect waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// To be performed, at its time.
    Waiting,
    /// Somebody is performing it.
    Claimed,
    /// For an operator: it was given up, or cannot be read.
    Poisoned,
}

impl State {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Claimed => "claimed",
            Self::Poisoned => "poisoned",
        }
    }
}

impl Effect {
    /// What an operator names it by: its message's id, or its place where it cannot be read.
    pub fn id(&self) -> String {
        match &self.stored {
            Ok(entry) => entry.id.to_string(),
            Err(unreadable) => unreadable.place.clone(),
        }
    }

    /// What it waits for.
    pub fn state(&self, now: Timestamp) -> State {
        match &self.stored {
            Ok(entry) if entry.poisoned => State::Poisoned,
            Ok(entry) if entry.claimed_until.is_some_and(|until| until > now) => State::Claimed,
            Ok(_) => State::Waiting,
            Err(_) => State::Poisoned,
        }
    }
}

/// Which effects are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Those that wait for this; all when there is none.
    pub state: Option<State>,
    /// Those that were due by then, and those that do not say.
    pub due_by: Timestamp,
}

impl Wanted {
    fn has(&self, effect: &Effect, now: Timestamp) -> bool {
        let is_due = effect.stored.as_ref().map_or(true, |entry| entry.due_at <= self.due_by);
        is_due && self.state.is_none_or(|state| state == effect.state(now))
    }
}

/// Where a page of effects ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// In which outboxes.
    pub outboxes: Outboxes,
    /// After this record, in the store's own words; before the first one when there is none.
    pub after: Option<String>,
}

/// Some effects, those of sagas first, in the order of their records; and where they end, if more may follow. The effects of one
/// record are not divided, so there may be more of them than `limit`. At most 1,000 records are looked through: there may be
/// few, or none, although more follow.
///
/// # Errors
/// When the store does not answer, or the place is none of its own.
pub async fn effects(
    stores: &Stores,
    wanted: &Wanted,
    now: Timestamp,
    after: Option<Place>,
    limit: usize,
) -> Result<(Vec<Effect>, Option<Place>), StoreError> {
    let mut place = after.unwrap_or(Place { outboxes: Outboxes::Sagas, after: None });
    let (mut found, mut left) = (Vec::new(), MOST_RECORDS);
    loop {
        if found.len() >= limit || left == 0 {
            return Ok((found, Some(place)));
        }
        let page = records(stores, wanted, &place, AT_ONCE.min(left)).await?;
        if page.is_empty() {
            let next = Outboxes::ALL.into_iter().find(|outboxes| *outboxes > place.outboxes);
            let Some(outboxes) = next else { return Ok((found, None)) };
            place = Place { outboxes, after: None };
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

/// Of what was given up there is an index of its own.
async fn records(
    stores: &Stores,
    wanted: &Wanted,
    Place { outboxes, after }: &Place,
    limit: usize,
) -> Result<Vec<Pending>, StoreError> {
    let (outbox, after) = (outboxes.of(stores), after.as_deref());
    match wanted.state {
        Some(State::Poisoned) => outbox.poisoned(after, limit).await,
        Some(State::Waiting | State::Claimed) | None => outbox.pending(after, limit).await,
    }
}
