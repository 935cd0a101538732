//! One failure, and what seeing it again makes of it.

use jiff::{SignedDuration, Timestamp};
use messages::{Message, MessageId, PartitionKey, Queue, uuid_ids};
use outbox::Owner;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::fingerprint::fingerprint;
use super::retry::OperationId;
use super::store::Place;

uuid_ids! {
    /// Something that was given up; derived from what it is, so that it is one failure however often it is given up.
    FailureId,
}

/// How long a failure stays that nobody has to look at any more.
pub const RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How many sightings of a failure are remembered, the latest. A queue delivers a message again within days, and by then
/// it has not failed so often.
const MAX_MARKS: usize = 10;

/// Where a failure comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A dead-letter queue.
    DeadLetter {
        /// The dead-letter queue.
        queue: Queue,
        /// The queue that gave it up, which it goes back to.
        source: Queue,
    },
    /// An outbox, which has it still.
    Effect {
        /// The record that it is stored in.
        owner: Owner,
        /// Its id there.
        entry: MessageId,
    },
    /// An outbox, which has something that cannot be read.
    Unreadable {
        /// Where, in the store's own words.
        place: String,
        /// Whether it is in the outbox of sessions, and not in that of sagas.
        of_sessions: bool,
    },
}

impl Origin {
    /// The queue that it goes to when it is put back to work; none for an effect, which knows where it goes.
    pub fn source(&self) -> Option<&Queue> {
        match self {
            Self::DeadLetter { source, .. } => Some(source),
            Self::Effect { .. } | Self::Unreadable { .. } => None,
        }
    }

    /// The queue that has it, or the name of all outboxes.
    pub fn place(&self) -> &str {
        match self {
            Self::DeadLetter { queue, .. } => queue.name(),
            Self::Effect { .. } | Self::Unreadable { .. } => "outbox",
        }
    }
}

/// What has become of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum State {
    /// Nobody has done anything about it.
    Open,
    /// An operation is putting it back to work.
    Retrying {
        /// Which.
        operation: OperationId,
        /// Since when.
        since: Timestamp,
    },
    /// It was put back to work, and has not failed since.
    Retried {
        /// When.
        at: Timestamp,
    },
    /// There is nothing to be done about it here.
    Closed {
        /// Why.
        why: String,
    },
    /// Somebody has put it aside.
    Archived {
        /// Why.
        why: String,
    },
}

/// A [`State`] by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// [`State::Open`].
    Open,
    /// [`State::Retrying`].
    Retrying,
    /// [`State::Retried`].
    Retried,
    /// [`State::Closed`].
    Closed,
    /// [`State::Archived`].
    Archived,
}

impl Standing {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Open, Self::Retrying, Self::Retried, Self::Closed, Self::Archived];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Retrying => "retrying",
            Self::Retried => "retried",
            Self::Closed => "closed",
            Self::Archived => "archived",
        }
    }
}

impl std::str::FromStr for Standing {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|standing| standing.name() == text).ok_or(())
    }
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl State {
    /// Its name.
    pub fn standing(&self) -> Standing {
        match self {
            Self::Open => Standing::Open,
            Self::Retrying { .. } => Standing::Retrying,
            Self::Retried { .. } => Standing::Retried,
            Self::Closed { .. } => Standing::Closed,
            Self::Archived { .. } => Standing::Archived,
        }
    }
}

/// Something that was given up, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// Where.
    pub origin: Origin,
    /// The message, or the effect's payload, as it is.
    pub body: String,
    /// Why it was given up, in words.
    pub reason: String,
    /// Tells this sighting from the one before, and not from itself when it is reported again: what the queue calls its
    /// copy, or how often the effect was requeued.
    pub mark: String,
    /// Why there is nothing to be done about it here, if there is not.
    pub closed: Option<String>,
}

/// Something that was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its id.
    pub id: FailureId,
    /// Where it comes from.
    pub origin: Origin,
    /// The partition it belongs to; none when it does not say.
    pub partition: Option<PartitionKey>,
    /// The message's id; none when it is no message.
    pub message_id: Option<MessageId>,
    /// The message's name, such as `Paid`; empty when it is no message.
    pub message: String,
    /// The message, or the effect's payload, unchanged.
    pub body: String,
    /// Why it was given up at last, in words.
    pub reason: String,
    /// The cause that the reason names; see [`fingerprint`](fn@super::fingerprint).
    pub fingerprint: String,
    /// When it was found first.
    pub first_seen: Timestamp,
    /// When it was found last.
    pub last_seen: Timestamp,
    /// How often it was given up.
    pub seen: u32,
    /// How often it was put back to work.
    pub retried: u32,
    /// What has become of it.
    #[serde(flatten)]
    pub state: State,
    /// The marks of the latest sightings.
    pub marks: Vec<String>,
    /// When it goes; none as long as somebody has to look at it.
    pub expires_at: Option<Timestamp>,
    /// Counts the writes, from 1. Not part of what is stored as text, but beside it.
    #[serde(skip)]
    pub revision: u64,
}

impl Sighting {
    /// The failure that it is one of.
    pub fn id(&self) -> FailureId {
        let parts = match &self.origin {
            Origin::DeadLetter { queue, .. } => {
                // What is no message is the same one when it says the same.
                let id = Message::decode(&self.body).map_or_else(
                    |_| Uuid::new_v5(&Uuid::nil(), self.body.as_bytes()),
                    |message| message.id.as_uuid(),
                );
                format!("{queue}\n{id}")
            }
            Origin::Effect { owner, entry } => format!("{owner}\n{entry}"),
            Origin::Unreadable { place, of_sessions } => format!("unreadable\n{of_sessions}\n{place}"),
        };
        FailureId::from_uuid(Uuid::new_v5(&Uuid::nil(), parts.as_bytes()))
    }
}

impl Failure {
    /// What a first sighting makes.
    pub fn first(sighting: &Sighting, now: Timestamp) -> Self {
        let message = Message::decode(&sighting.body).ok();
        let partition = match &sighting.origin {
            Origin::Effect { owner: Owner::Saga(partition), .. } => Some(*partition),
            Origin::Effect { .. } | Origin::Unreadable { .. } | Origin::DeadLetter { .. } => None,
        };
        let failure = Self {
            id: sighting.id(),
            origin: sighting.origin.clone(),
            partition: message.as_ref().map(|message| message.partition).or(partition),
            message_id: message.as_ref().map(|message| message.id),
            message: message.map(|message| message.body.name).unwrap_or_default(),
            body: sighting.body.clone(),
            reason: String::new(),
            fingerprint: String::new(),
            first_seen: now,
            last_seen: now,
            seen: 0,
            retried: 0,
            state: State::Open,
            marks: Vec::new(),
            expires_at: None,
            revision: 0,
        };
        failure.with(sighting, now)
    }

    /// What a sighting makes of it; none when it is one of those that are known.
    pub fn again(&self, sighting: &Sighting, now: Timestamp) -> Option<Self> {
        (!self.marks.contains(&sighting.mark)).then(|| self.clone().with(sighting, now))
    }

    /// It is open again, whatever had become of it: it failed once more.
    fn with(mut self, sighting: &Sighting, now: Timestamp) -> Self {
        self.marks.push(sighting.mark.clone());
        let forgotten = self.marks.len().saturating_sub(MAX_MARKS);
        self.marks.drain(..forgotten);
        let state = sighting.closed.clone().map_or(State::Open, |why| State::Closed { why });
        Self {
            origin: sighting.origin.clone(),
            reason: sighting.reason.clone(),
            fingerprint: fingerprint(&sighting.reason),
            last_seen: now.max(self.last_seen),
            seen: self.seen.saturating_add(1),
            ..self
        }
        .into_state(state, now)
    }

    /// Where it is among those of its state.
    pub fn place(&self) -> Place {
        Place { last_seen: self.last_seen, id: self.id }
    }

    /// The same in another state, from `now` on.
    #[must_use]
    pub fn into_state(self, state: State, now: Timestamp) -> Self {
        let expires_at = match &state {
            State::Open | State::Retrying { .. } => None,
            State::Retried { .. } | State::Closed { .. } | State::Archived { .. } => {
                Some(now.checked_add(RETENTION).unwrap_or(Timestamp::MAX))
            }
        };
        Self { state, expires_at, ..self }
    }
}

/// What somebody did about failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// When.
    pub at: Timestamp,
    /// Who, as whoever let them in calls them.
    pub by: String,
    /// What, such as `archived`.
    pub did: String,
    /// To what: the id of a failure, of an operation or of a partition.
    pub to: String,
    /// Why, or what exactly.
    pub why: String,
}
