//! One failure, and the effect of seeing it again.

use jiff::{SignedDuration, Timestamp};
use messages::{Message, MessageId, PartitionKey, Queue};
use outbox::Owner;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::fingerprint::fingerprint;
use super::ids::{FailureId, OperationId};

/// The retention of a failure that needs no more attention.
pub const RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The maximum number of markers of a failure; the latest are kept. A queue redelivers a message within days, and a
/// message does not fail that often in this time.
const MAX_MARKS: usize = 10;

/// The text between the reason of a failure and the reason why it cannot be retried.
const NOT_RETRIED: &str = "; it cannot be retried: ";
/// The maximum number of characters of both.
const MAX_REASON_CHARS: usize = 2_000;

/// The origin of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A dead-letter queue.
    DeadLetter {
        /// The dead-letter queue.
        queue: Queue,
        /// The queue that the message was sent to. A retry sends it there again.
        source: Queue,
    },
    /// An exhausted outbox entry, which is still in its outbox.
    Effect {
        /// The record that contains the entry.
        owner: Owner,
        /// The id of the entry.
        entry: MessageId,
    },
    /// An outbox entry or record that cannot be read.
    Unreadable {
        /// The location of the entry or record, in a format of the store.
        place: String,
        /// `true` for the outbox of sessions; `false` for the outbox of sagas.
        of_sessions: bool,
    },
}

impl Origin {
    /// Returns the queue that a retry sends the message to; `None` for an effect, which contains its destination.
    pub fn source(&self) -> Option<&Queue> {
        match self {
            Self::DeadLetter { source, .. } => Some(source),
            Self::Effect { .. } | Self::Unreadable { .. } => None,
        }
    }

    /// Returns the name of the dead-letter queue, or `outbox`.
    pub fn place(&self) -> &str {
        match self {
            Self::DeadLetter { queue, .. } => queue.name(),
            Self::Effect { .. } | Self::Unreadable { .. } => "outbox",
        }
    }
}

/// The state of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum State {
    /// No operator has handled the failure yet.
    Open,
    /// An operation is retrying the failure.
    Retrying {
        /// The operation.
        operation: OperationId,
        /// The time at which the operation claimed the failure.
        since: Timestamp,
    },
    /// The failure was retried and has not occurred since.
    Retried {
        /// The time at which the failure was retried.
        at: Timestamp,
    },
    /// The failure needs no retry here.
    Closed {
        /// The reason.
        why: String,
    },
    /// An operator has archived the failure.
    Archived {
        /// The operator's reason.
        why: String,
    },
}

/// The name of a [`State`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureStatus {
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

impl FailureStatus {
    /// All statuses.
    pub const ALL: [Self; 5] = [Self::Open, Self::Retrying, Self::Retried, Self::Closed, Self::Archived];

    /// Returns the name.
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

impl std::str::FromStr for FailureStatus {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|standing| standing.name() == text).ok_or(())
    }
}

impl std::fmt::Display for FailureStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl State {
    /// Returns the status.
    pub fn standing(&self) -> FailureStatus {
        match self {
            Self::Open => FailureStatus::Open,
            Self::Retrying { .. } => FailureStatus::Retrying,
            Self::Retried { .. } => FailureStatus::Retried,
            Self::Closed { .. } => FailureStatus::Closed,
            Self::Archived { .. } => FailureStatus::Archived,
        }
    }
}

/// A report of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureReport {
    /// The queue or outbox in which the failure was found.
    pub origin: Origin,
    /// The message, or the effect's payload, unchanged.
    pub body: String,
    /// The reason of the failure.
    pub reason: String,
    /// Distinguishes this report from the previous one, but not from a repetition of the same report: the queue's id of
    /// the delivered message, or the number of times that the effect was requeued.
    pub mark: String,
    /// The reason why the failure needs no retry here; `None` if the failure needs one.
    pub closed: Option<String>,
}

/// A failed message or effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The id of the failure.
    pub id: FailureId,
    /// The origin of the failure.
    pub origin: Origin,
    /// The partition of the message; `None` if it is unknown.
    pub partition: Option<PartitionKey>,
    /// The message's id; `None` if the body is not a message.
    pub message_id: Option<MessageId>,
    /// The message's name, such as `Paid`; empty if the body is not a message.
    pub message: String,
    /// The message, or the effect's payload, unchanged.
    pub body: String,
    /// The reason of the latest failure.
    pub reason: String,
    /// The fingerprint of the reason; see [`fingerprint`](fn@super::fingerprint).
    pub fingerprint: String,
    /// The time at which the failure was first found.
    pub first_seen: Timestamp,
    /// The time at which the failure was last found.
    pub last_seen: Timestamp,
    /// The number of times that the message or effect has failed.
    pub seen: u32,
    /// The number of times that it was retried.
    pub retried: u32,
    /// The state of the failure.
    #[serde(flatten)]
    pub state: State,
    /// The markers of the latest reports.
    pub marks: Vec<String>,
    /// The time at which the failure may be removed; `None` as long as it needs attention.
    pub expires_at: Option<Timestamp>,
    /// The number of writes. This value is not part of the serialized failure.
    #[serde(skip)]
    pub revision: u64,
}

impl FailureReport {
    /// Returns the id of the failure.
    pub fn id(&self) -> FailureId {
        let parts = match &self.origin {
            Origin::DeadLetter { queue, .. } => {
                // Bodies that are not messages are identified by their content.
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
    /// Creates the failure of a first report.
    pub fn first(report: &FailureReport, now: Timestamp) -> Self {
        let message = Message::decode(&report.body).ok();
        let partition = match &report.origin {
            Origin::Effect { owner: Owner::Saga(partition), .. } => Some(*partition),
            Origin::Effect { .. } | Origin::Unreadable { .. } | Origin::DeadLetter { .. } => None,
        };
        let failure = Self {
            id: report.id(),
            origin: report.origin.clone(),
            partition: message.as_ref().map(|message| message.partition).or(partition),
            message_id: message.as_ref().map(|message| message.id),
            message: message.map(|message| message.body.name).unwrap_or_default(),
            body: report.body.clone(),
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
        failure.with(report, now)
    }

    /// Returns the failure after another report; `None` if the report is known.
    pub fn again(&self, report: &FailureReport, now: Timestamp) -> Option<Self> {
        (!self.marks.contains(&report.mark)).then(|| self.clone().with(report, now))
    }

    /// The failure is open again whatever its state was, because it has failed again.
    fn with(mut self, report: &FailureReport, now: Timestamp) -> Self {
        self.marks.push(report.mark.clone());
        let forgotten = self.marks.len().saturating_sub(MAX_MARKS);
        self.marks.drain(..forgotten);
        let state = report.closed.clone().map_or(State::Open, |why| State::Closed { why });
        let failure = Self { origin: report.origin.clone(), ..self };
        failure.seen_again(report.reason.clone(), now).into_state(state, now)
    }

    /// Returns the failure after it has failed again for this reason.
    fn seen_again(self, reason: String, now: Timestamp) -> Self {
        Self {
            fingerprint: fingerprint(&reason),
            reason,
            last_seen: now.max(self.last_seen),
            seen: self.seen.saturating_add(1),
            ..self
        }
    }

    /// Returns the failure after a retry that cannot succeed, for this reason. The retried message has failed again, at
    /// `at`.
    pub(super) fn not_retried(self, why: &str, at: Timestamp) -> Self {
        let before = self.reason.split(NOT_RETRIED).next().unwrap_or_default();
        let reason = format!("{before}{NOT_RETRIED}{why}").chars().take(MAX_REASON_CHARS).collect();
        self.seen_again(reason, at).into_state(State::Open, at)
    }

    /// Returns its position among the failures with its status.
    pub fn place(&self) -> FailureCursor {
        FailureCursor { last_seen: self.last_seen, id: self.id }
    }

    /// Returns the failure in another state, which begins at `now`.
    #[must_use]
    pub fn into_state(self, state: State, now: Timestamp) -> Self {
        let is_kept = match (&state, &self.origin) {
            (State::Open | State::Retrying { .. }, _) => true,
            // The entry is still in its outbox. Without the failure, the next collection would report it again.
            (State::Archived { .. }, Origin::Effect { .. } | Origin::Unreadable { .. }) => true,
            (State::Archived { .. }, Origin::DeadLetter { .. })
            | (State::Retried { .. } | State::Closed { .. }, _) => false,
        };
        let expires_at = (!is_kept).then(|| now.checked_add(RETENTION).unwrap_or(Timestamp::MAX));
        Self { state, expires_at, ..self }
    }
}

/// The cursor after a page of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureCursor {
    /// The time at which the last failure of the page was last found.
    pub last_seen: Timestamp,
    /// The id of this failure.
    pub id: FailureId,
}

/// An operator's action, for the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The time of the action.
    pub at: Timestamp,
    /// The operator's name, as returned by the authentication.
    pub by: String,
    /// The action, such as `archived`.
    pub did: String,
    /// The target: the id of a failure, of an operation or of a partition.
    pub to: String,
    /// The reason, or details.
    pub why: String,
}
