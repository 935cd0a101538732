//! The retry of many failures at a limited rate, in steps that may be repeated.
//!
//! An operation is stored, and any worker may take its next step ([`Failures::run_step`]). Therefore, it continues
//! after a crash, and two workers at the same time do not double the rate.
//!
//! Each failure is retried in three writes: it becomes *retrying*, its message is sent, it becomes *retried*. After a
//! crash in between, the message is sent again with the same id, which takes effect once. If the partition of a failure
//! is busy, the failure is opened again for a later step. Usually a worker then handles another failure of the same
//! partition, which was retried a moment ago.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use messages::store::chain;
use messages::{Message, MessageId, Outgoing, PartitionKey, Queue, SendError, StoreError};
use outbox::UnreadableAction;
use uuid::Uuid;

use super::canary::Outcome;
use super::ids::{FailureId, OperationId};
use super::keeper::Failures;
use super::operation::{Operation, Phase};
use super::record::{AuditEntry, Failure, FailureStatus, Origin, State};
use super::selection::{CauseGroup, Causes, Selection};
use super::store::Change;
use crate::operator::{FORGOTTEN, Readmission};

/// The maximum rate of retries, in failures per second.
pub const MAX_PER_SECOND: u32 = 1_000;
/// The maximum number of failures that are retried before the others.
pub const MAX_CANARIES: u32 = 10;
/// The maximum number of failures that a request may list by id.
pub const MAX_NAMED: usize = 1_000;
/// The time after which an operation stops if the failures that went ahead are not processed, from its beginning.
pub const CANARY_LIMIT: SignedDuration = SignedDuration::from_mins(5);
/// The time limit of a step. After it, another step repeats the retries that this one left unfinished.
const STEP_LIMIT: SignedDuration = SignedDuration::from_mins(1);
/// The maximum number of concurrent retries within a step.
const CONCURRENT_RETRIES: usize = 10;
/// The time between two steps.
const STEP: SignedDuration = SignedDuration::from_secs(1);

/// A request to retry failures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The failures, usually as returned in a snapshot.
    pub selection: Selection,
    /// The maximum number of failures; `None` for all.
    pub limit: Option<u64>,
    /// The rate in failures per second, 1 to [`MAX_PER_SECOND`].
    pub per_second: u32,
    /// The number of canary failures, which are retried before the others, up to [`MAX_CANARIES`]. The others are
    /// retried only if workers process all of these; see [`CANARY_WAIT`](super::operation::CANARY_WAIT) and
    /// [`CANARY_LIMIT`].
    pub canary: u32,
}

/// A preview of a retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The failures. Failures that are seen later are excluded.
    pub selection: Selection,
    /// The most frequent causes.
    pub groups: Vec<CauseGroup>,
    /// The number of failures.
    pub count: u64,
}

/// The reason why a request was refused.
#[derive(Debug, thiserror::Error)]
pub enum RequestRefusal {
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The failure does not exist.
    #[error("there is no failure {0}")]
    Unknown(FailureId),
    /// The failure is in a state that does not allow the request.
    #[error("failure {id} is {standing}{}", .why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    Not {
        /// The failure.
        id: FailureId,
        /// The state of the failure.
        standing: FailureStatus,
        /// Details of the state.
        why: Option<String>,
    },
    /// None of the selected failures is open.
    #[error("none of these failures is open")]
    Nothing,
    /// Another operation is running.
    #[error("operation {0} is running; wait until it ends, or stop it")]
    Busy(OperationId),
    /// The operation does not exist, or has ended.
    #[error("operation {0} is not running")]
    NotRunning(OperationId),
    /// Another request changed the failure at the same time.
    #[error("another request has changed it at the same time")]
    Overtaken,
    /// The store is unavailable.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The reason why a failure could not be retried.
struct Obstacle {
    why: String,
    is_permanent: bool,
}

impl From<SendError> for Obstacle {
    fn from(error: SendError) -> Self {
        // A process without the address of a declared queue says nothing about the message.
        let is_permanent = !error.is_retryable() && !matches!(error, SendError::UnknownQueue(_));
        Self { why: chain(&error), is_permanent }
    }
}

impl From<StoreError> for Obstacle {
    fn from(error: StoreError) -> Self {
        Self { why: error.chain(), is_permanent: !error.is_retryable() }
    }
}

/// The way in which an operator removes failures.
#[derive(Clone, Copy)]
enum Removal {
    Archive,
    Delete,
}

impl Removal {
    /// Returns the name of the action in the audit log.
    fn did(self) -> &'static str {
        match self {
            Self::Archive => "archived",
            Self::Delete => "deleted",
        }
    }
}

/// The outcome of a step. Failures whose partition was busy are not part of it.
#[derive(Default)]
struct StepOutcome {
    retried: Vec<FailureId>,
    /// The reasons of failures that can never be retried.
    refused: Vec<String>,
    /// The reason of a failure for which a later retry may succeed. It stops the operation.
    failed: Option<String>,
}

impl Failures {
    /// Returns the failures of a selection by cause, without changing anything.
    ///
    /// # Errors
    /// Returns an error if a listed failure is not open, or the store is unavailable.
    pub async fn snapshot(&self, selection: Selection) -> Result<Snapshot, RequestRefusal> {
        if selection.ids.len() > MAX_NAMED {
            return Err(RequestRefusal::Invalid(format!("at most {MAX_NAMED} failures can be listed by id")));
        }
        let ids: Vec<FailureId> = selection.ids.iter().copied().collect();
        for (id, failure) in ids.iter().zip(self.store.failures(&ids).await?) {
            let failure = failure.ok_or(RequestRefusal::Unknown(*id))?;
            is_open(&failure)?;
        }
        let selection = Selection { standing: FailureStatus::Open, ..selection };
        let Causes { groups, count, last_seen } = self.store.causes(&selection).await?;
        // Failures that are seen after the preview stay out of the retry that an operator bases on it. The limit is the
        // time of the last failure, because the clock of the worker that recorded it may be ahead of this one.
        let last = last_seen.unwrap_or_else(|| self.now());
        let until = selection.until.map_or(last, |until| until.min(last));
        let selection = Selection { until: Some(until), ..selection };
        Ok(Snapshot { selection, groups, count })
    }

    /// Begins to retry failures.
    ///
    /// # Errors
    /// Returns an error if no failure is selected, another operation is running, or the store is unavailable.
    pub async fn retry(&self, retry: Retry, by: &str) -> Result<Operation, RequestRefusal> {
        let Retry { limit, per_second, canary, .. } = retry;
        if !(1..=MAX_PER_SECOND).contains(&per_second) {
            return Err(RequestRefusal::Invalid(format!(
                "the rate must be 1 to {MAX_PER_SECOND} failures per second"
            )));
        }
        if canary > MAX_CANARIES {
            return Err(RequestRefusal::Invalid(format!("at most {MAX_CANARIES} failures can go ahead")));
        }
        if limit == Some(0) {
            return Err(RequestRefusal::Invalid("the limit must be at least 1".to_owned()));
        }
        // This check only saves work and an audit entry. The conditional write below ensures that only one operation
        // runs.
        if let Some(running) = self.store.running().await? {
            return Err(RequestRefusal::Busy(running.id));
        }
        let Snapshot { selection, count, .. } = self.snapshot(retry.selection).await?;
        if count == 0 {
            return Err(RequestRefusal::Nothing);
        }
        let now = self.now();
        let total = limit.map_or(count, |limit| limit.min(count));
        let operation = Operation {
            id: OperationId::from_uuid(self.reporter.host.fresh_id()),
            by: by.to_owned(),
            begun_at: now,
            selection,
            limit,
            per_second,
            canary: canary.min(u32::try_from(total).unwrap_or(u32::MAX)),
            canaries: Vec::new(),
            total,
            retried: 0,
            refused: 0,
            phase: Phase::Running,
            next_step_at: now,
            revision: 1,
        };
        let what = format!("failures: {}, {per_second} a second", operation.total);
        // The audit entry comes first: an action without an entry is worse than an entry without an action.
        self.record_action(by, "began a retry", operation.id.to_string(), what).await?;
        if self.store.advance(0, &operation).await? {
            return Ok(operation);
        }
        let running = self.store.running().await?;
        Err(running.map_or(RequestRefusal::Overtaken, |running| RequestRefusal::Busy(running.id)))
    }

    /// Stops an operation. Failures that it has retried stay retried.
    ///
    /// # Errors
    /// Returns an error if the operation is not running, or the store is unavailable.
    pub async fn stop(&self, id: OperationId, by: &str) -> Result<Operation, RequestRefusal> {
        loop {
            let operation = self.store.operation(id).await?;
            let operation = operation.filter(|operation| !operation.phase.has_ended());
            let operation = operation.ok_or(RequestRefusal::NotRunning(id))?;
            self.record_action(by, "stopped a retry", id.to_string(), String::new()).await?;
            let phase = Phase::Stopped { at: self.now(), why: format!("stopped by {by}") };
            // A step may have been taken in between. The loop ends, because there is at most one step a second.
            if let Some(stopped) = self.advance(&operation, phase).await? {
                return Ok(stopped);
            }
        }
    }

    /// Takes the next step of the running operation if it is due. Returns `true` if an operation is still running. After
    /// the deadline, no more dead letters are collected.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable. The next step continues.
    pub async fn run_step(&self, deadline: Option<Timestamp>) -> Result<bool, StoreError> {
        let Some(operation) = self.store.running().await? else { return Ok(false) };
        let now = self.now();
        if now < operation.next_step_at {
            return Ok(true);
        }
        if let Phase::Watching { until } = operation.phase {
            return if now < until { Ok(true) } else { self.assess(&operation, deadline).await };
        }
        // Several workers may get here at once. The conditional write lets one of them take the step, so that the rate
        // holds.
        let next_step_at = now.checked_add(STEP).unwrap_or(Timestamp::MAX);
        let Some(claimed) = self.replace(&operation, Operation { next_step_at, ..operation.clone() }).await?
        else {
            return Ok(true);
        };
        let left = self.unfinished_failures(&claimed).await?;
        let is_any_left = !left.is_empty();
        let taken = self.claim_batch(&claimed, left, now).await?;
        if taken.is_empty() {
            if is_any_left {
                // Another worker is taking a step, or was interrupted less than the time limit ago. The operation must
                // not end before its outcome is known.
                return Ok(true);
            }
            let next = self.replace(&claimed, claimed.after_last(now)).await?;
            return Ok(next.is_none_or(|next| !next.phase.has_ended()));
        }
        let step = self.retry_batch(&claimed, taken).await?;
        self.finish_step(&claimed, &step).await
    }

    /// Returns the failures that this operation has claimed and whose retry has no recorded outcome.
    async fn unfinished_failures(&self, operation: &Operation) -> Result<Vec<Failure>, StoreError> {
        let taken = Selection { standing: FailureStatus::Retrying, ..operation.selection.clone() };
        let mut found = self.store.select(&taken, None, MAX_PER_SECOND as usize).await?;
        found.retain(|failure| claimed_by(failure).is_some_and(|(by, _)| by == operation.id));
        Ok(found)
    }

    /// Claims the failures of the next step for this operation, beginning with those that an interrupted step left.
    async fn claim_batch(
        &self,
        operation: &Operation,
        left: Vec<Failure>,
        now: Timestamp,
    ) -> Result<Vec<Failure>, StoreError> {
        let share = usize::try_from(operation.share()).unwrap_or(usize::MAX);
        let mut found = left;
        found.retain(|failure| is_interrupted(failure, now));
        if found.len() < share {
            let open = self.store.select(&operation.selection, None, share - found.len()).await?;
            found.extend(open);
        }
        let taken = found.into_iter().map(|failure| {
            let state = State::Retrying { operation: operation.id, since: now };
            // A failure that an interrupted step left was counted when it was claimed for the first time.
            let again = u32::from(matches!(failure.state, State::Open));
            let retried = failure.retried.saturating_add(again);
            Failure { retried, ..failure.into_state(state, now) }
        });
        self.write(taken.collect()).await
    }

    /// Opens the failures that ended operations left behind: the operation was stopped during a step that was
    /// interrupted.
    pub(super) async fn reopen_abandoned(&self) -> Result<(), StoreError> {
        let taken =
            self.store.select(&Selection::of(FailureStatus::Retrying), None, MAX_PER_SECOND as usize).await?;
        if taken.is_empty() {
            return Ok(());
        }
        let (running, now) = (self.store.running().await?.map(|operation| operation.id), self.now());
        let is_abandoned = |failure: &Failure| {
            is_interrupted(failure, now) && claimed_by(failure).is_some_and(|(by, _)| Some(by) != running)
        };
        let abandoned = taken.into_iter().filter(is_abandoned);
        self.write(abandoned.map(|failure| failure.into_state(State::Open, now)).collect()).await.map(drop)
    }

    /// Writes changed failures. Returns the failures that no other process has changed in between.
    pub(super) async fn write(&self, failures: Vec<Failure>) -> Result<Vec<Failure>, StoreError> {
        let change = |failure: &Failure| Change {
            id: failure.id,
            revision: failure.revision,
            next: Some(failure.clone()),
        };
        let changes: Vec<Change> = failures.iter().map(change).collect();
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let made = self.store.change(&changes).await?;
        let written = failures.into_iter().zip(made).filter(|(_, made)| *made);
        Ok(written.map(|(failure, _)| Failure { revision: failure.revision + 1, ..failure }).collect())
    }

    /// Retries failures. The failures of one partition are retried in sequence. Failures that could not be retried are
    /// opened again.
    async fn retry_batch(
        &self,
        operation: &Operation,
        taken: Vec<Failure>,
    ) -> Result<StepOutcome, StoreError> {
        // Retries of one partition at the same time would only block each other's claim.
        let outcomes = stream::iter(by_partition(taken))
            .map(async |failures| {
                let mut done = Vec::with_capacity(failures.len());
                for failure in failures {
                    let outcome = self.retry_one(&failure).await;
                    done.push((failure, outcome));
                }
                stream::iter(done)
            })
            .buffer_unordered(CONCURRENT_RETRIES)
            .flatten();
        let (now, mut step) = (self.now(), StepOutcome::default());
        let refuse = |step: &mut StepOutcome, failure: Failure, why: String| {
            let (function, failure_id) = (self.reporter.function, failure.id);
            tracing::error!(function, %failure_id, error = why, "a failure cannot be retried");
            let refused = failure.not_retried(&why, now.max(operation.selection.just_after()));
            step.refused.push(why);
            refused
        };
        let ended: Vec<Failure> = outcomes
            .map(|(failure, outcome)| match outcome {
                Ok(Readmission::Granted) => {
                    step.retried.push(failure.id);
                    failure.into_state(State::Retried { at: now }, now)
                }
                // A busy partition does not count as an attempt.
                Ok(Readmission::Busy) => {
                    let retried = failure.retried.saturating_sub(1);
                    Failure { retried, ..failure.into_state(State::Open, now) }
                }
                Ok(Readmission::Forgotten) => refuse(&mut step, failure, FORGOTTEN.to_owned()),
                Err(Obstacle { why, is_permanent: true }) => refuse(&mut step, failure, why),
                Err(Obstacle { why, is_permanent: false }) => {
                    step.failed = Some(why);
                    failure.into_state(State::Open, now)
                }
            })
            .collect()
            .await;
        // A failure that has failed again in between is open. The revision of the failure has changed, so this write
        // leaves the failure open.
        self.write(ended).await?;
        Ok(step)
    }

    /// Returns `true` if the system has a queue. Failures may have been recorded by a version with other queues.
    fn declares(&self, queue: &Queue) -> bool {
        self.functions.contains_key(queue) || self.drains.iter().any(|(_, source)| source == queue)
    }

    async fn retry_one(&self, failure: &Failure) -> Result<Readmission, Obstacle> {
        match &failure.origin {
            Origin::DeadLetter { source, .. } => {
                if !self.declares(source) {
                    let why = format!(
                        "this version has no queue {source}; install one that has it, or delete the failure"
                    );
                    return Err(Obstacle { why, is_permanent: true });
                }
                // The partition may have forgotten the message's token since; without it the message would be a
                // duplicate.
                if let Ok(message) = Message::decode(&failure.body)
                    && let refused @ (Readmission::Busy | Readmission::Forgotten) =
                        self.operator.restore_token(&message).await?
                {
                    return Ok(refused);
                }
                let outgoing = Outgoing {
                    id: failure.message_id.unwrap_or(MessageId::from_uuid(failure.id.as_uuid())),
                    partition: failure.partition.unwrap_or(PartitionKey::from_uuid(Uuid::nil())),
                    queue: source.clone(),
                    body: failure.body.clone(),
                    delay: Duration::ZERO,
                };
                let sent: Result<(), SendError> = self.send.send(&[outgoing]).await.into_iter().collect();
                sent?;
                Ok(Readmission::Granted)
            }
            // An entry that is no longer exhausted was requeued by an operator in the meantime.
            Origin::Effect { owner, entry } => match self.exhausted(*owner, *entry).await? {
                Some(entry) => Ok(self.operator.try_requeue(*owner, &entry).await?),
                None => Ok(Readmission::Granted),
            },
            Origin::Unreadable { place, of_sessions } => {
                let treatment = UnreadableAction::Requeue(self.now());
                self.outbox(*of_sessions).resolve_unreadable(place, &treatment).await?;
                Ok(Readmission::Granted)
            }
        }
    }

    /// Records the outcome of a step in the operation.
    async fn finish_step(&self, claimed: &Operation, step: &StepOutcome) -> Result<bool, StoreError> {
        let now = self.now();
        let mut known = claimed.clone();
        loop {
            let mut next = known.clone();
            next.retried += step.retried.len() as u64;
            next.refused += step.refused.len() as u64;
            // Counters and phase are recomputed from the latest revision, since a stop may have been stored in between.
            let ahead = (next.canary as usize).saturating_sub(next.canaries.len());
            next.canaries.extend(step.retried.iter().take(ahead));
            if !next.phase.has_ended() {
                let are_all_ahead = ahead > 0 && next.canaries.len() == next.canary as usize;
                // A canary failure that cannot be retried is just as informative about the other failures.
                let obstacle = step.failed.as_ref().or(step.refused.first().filter(|_| ahead > 0));
                next.phase = match obstacle {
                    Some(why) => Phase::Stopped { at: now, why: why.clone() },
                    None if are_all_ahead => Phase::watching(now),
                    None if next.limit.is_some_and(|limit| next.retried + next.refused >= limit) => {
                        next.end(now)
                    }
                    None => next.phase,
                };
            }
            next.revision = known.revision + 1;
            if self.store.advance(known.revision, &next).await? {
                return Ok(!next.phase.has_ended());
            }
            // The operation was stopped during the step. The counters of the operation are still updated.
            match self.store.operation(claimed.id).await? {
                Some(operation) => known = operation,
                None => return Ok(false),
            }
        }
    }

    /// Continues once every canary failure was processed. Stops if a canary failed again, or if no worker handles the
    /// canaries.
    async fn assess(&self, operation: &Operation, deadline: Option<Timestamp>) -> Result<bool, StoreError> {
        // A canary message that failed again may still be in its dead-letter queue. Nothing else is collected: after an
        // outage, very many effects may be exhausted.
        let canaries = self.store.failures(&operation.canaries).await?;
        if let Err(error) = self.drain_queues_of(canaries.iter().flatten(), deadline).await {
            let now = self.now();
            if !is_late(operation, now) {
                return Err(error);
            }
            let why = format!("the outcome of those that went ahead is unknown: {}", error.chain());
            let phase = Phase::Stopped { at: now, why };
            return Ok(self.advance(operation, phase).await?.is_none());
        }
        let mut outcomes = Vec::new();
        for failure in self.store.failures(&operation.canaries).await? {
            outcomes.push(match failure {
                Some(failure) => self.outcome(&failure).await?,
                None => Outcome::Removed,
            });
        }
        let next = self.advance(operation, phase_after(operation, &outcomes, self.now())).await?;
        Ok(next.is_none_or(|next| !next.phase.has_ended()))
    }

    /// Stores an operation in another phase; `None` if it has changed in between.
    async fn advance(&self, operation: &Operation, phase: Phase) -> Result<Option<Operation>, StoreError> {
        self.replace(operation, Operation { phase, ..operation.clone() }).await
    }

    /// Stores the next revision of an operation; `None` if it has changed in between.
    async fn replace(&self, operation: &Operation, next: Operation) -> Result<Option<Operation>, StoreError> {
        let next = Operation { revision: operation.revision + 1, ..next };
        Ok(self.store.advance(operation.revision, &next).await?.then_some(next))
    }

    /// Archives failures, which excludes them from the usual lists.
    ///
    /// # Errors
    /// Returns an error if a failure is unknown or being retried, if another request changed it at the same time, or if
    /// the store is unavailable. Failures that precede the faulty one in the list are archived.
    pub async fn archive(&self, ids: &[FailureId], why: &str, by: &str) -> Result<(), RequestRefusal> {
        self.remove_all(ids, why, by, Removal::Archive).await
    }

    /// Deletes failures permanently. An exhausted effect is also deleted from its outbox, so it is never performed.
    ///
    /// # Errors
    /// Returns the errors of [`Failures::archive`].
    pub async fn delete(&self, ids: &[FailureId], why: &str, by: &str) -> Result<(), RequestRefusal> {
        self.remove_all(ids, why, by, Removal::Delete).await
    }

    async fn remove_all(
        &self,
        ids: &[FailureId],
        why: &str,
        by: &str,
        removal: Removal,
    ) -> Result<(), RequestRefusal> {
        if ids.len() > MAX_NAMED {
            return Err(RequestRefusal::Invalid(format!("at most {MAX_NAMED} failures can be listed by id")));
        }
        if why.trim().is_empty() || why.chars().count() > 1_000 {
            return Err(RequestRefusal::Invalid("the reason must have 1 to 1,000 characters".to_owned()));
        }
        let found = self.store.failures(ids).await?;
        for (id, failure) in ids.iter().zip(found) {
            let failure = failure.ok_or(RequestRefusal::Unknown(*id))?;
            if matches!(failure.state, State::Retrying { .. }) {
                return Err(refusal(&failure));
            }
            self.record_action(by, removal.did(), id.to_string(), why.to_owned()).await?;
            match removal {
                Removal::Archive => drop(self.archive_one(failure, why).await?),
                Removal::Delete => self.delete_one(failure, why).await?,
            }
        }
        Ok(())
    }

    /// Archives a failure, and returns it as it is stored.
    async fn archive_one(&self, failure: Failure, why: &str) -> Result<Failure, RequestRefusal> {
        let (id, revision) = (failure.id, failure.revision);
        let archived = failure.into_state(State::Archived { why: why.to_owned() }, self.now());
        let change = Change { id, revision, next: Some(archived.clone()) };
        self.change_one(change).await?;
        Ok(Failure { revision: revision + 1, ..archived })
    }

    /// Deletes a failure and its effect. An open failure is archived first, so that no operation retries the effect in
    /// between. The effect precedes the failure: after a crash in between, the deletion can be repeated.
    async fn delete_one(&self, failure: Failure, why: &str) -> Result<(), RequestRefusal> {
        let failure = match failure.state {
            State::Open => self.archive_one(failure, why).await?,
            _ => failure,
        };
        self.discard_effect(&failure).await?;
        self.change_one(Change { id: failure.id, revision: failure.revision, next: None }).await
    }

    async fn change_one(&self, change: Change) -> Result<(), RequestRefusal> {
        let made = self.store.change(&[change]).await?;
        if made == [true] { Ok(()) } else { Err(RequestRefusal::Overtaken) }
    }

    /// Deletes the effect of a failure from its outbox. Otherwise the next collection would find it again. A failure
    /// that was closed or retried no longer owns its effect.
    async fn discard_effect(&self, failure: &Failure) -> Result<(), StoreError> {
        if !matches!(failure.state, State::Archived { .. }) {
            return Ok(());
        }
        match &failure.origin {
            Origin::DeadLetter { .. } => Ok(()),
            Origin::Effect { owner, entry } => match self.exhausted(*owner, *entry).await? {
                Some(entry) => self.operator.discard(*owner, &entry).await,
                None => Ok(()),
            },
            Origin::Unreadable { place, of_sessions } => {
                self.outbox(*of_sessions).resolve_unreadable(place, &UnreadableAction::Delete).await
            }
        }
    }

    /// Records an operator's action in the audit log.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. A repeated call may record the action twice.
    pub async fn record_action(
        &self,
        by: &str,
        did: &str,
        to: String,
        why: String,
    ) -> Result<(), StoreError> {
        let entry = AuditEntry { at: self.now(), by: by.to_owned(), did: did.to_owned(), to, why };
        self.store.note(&entry).await
    }
}

/// Returns the phase after an assessment.
fn phase_after(operation: &Operation, outcomes: &[Outcome], now: Timestamp) -> Phase {
    let count = |outcome| outcomes.iter().filter(|found| **found == outcome).count();
    let ahead = operation.canaries.len();
    let stopped = |why| Phase::Stopped { at: now, why };
    // One failed canary stops the operation at once. Otherwise, a canary that no worker has tried indicates that no
    // worker is running. A canary that a worker has tried gets more time.
    match (count(Outcome::Failed), count(Outcome::Taken), count(Outcome::Waiting)) {
        (0, 0, 0) if count(Outcome::Processed) > 0 => Phase::Running,
        (0, 0, 0) => stopped(format!(
            "all {ahead} that went ahead were removed before a worker processed one; retry the others with another canary"
        )),
        (0, 0, waiting) => stopped(format!(
            "no worker has taken {waiting} of the {ahead} that went ahead; start the workers, then retry the others"
        )),
        (0, taken, waiting) if is_late(operation, now) => stopped(format!(
            "{} of the {ahead} that went ahead were not processed within {} min; see why, then retry the others",
            taken + waiting,
            CANARY_LIMIT.as_mins()
        )),
        (0, ..) => Phase::watching(now),
        (failed, ..) => stopped(format!(
            "{failed} of the {ahead} that went ahead failed again; the others stay as they were"
        )),
    }
}

fn is_late(operation: &Operation, now: Timestamp) -> bool {
    now.duration_since(operation.begun_at) >= CANARY_LIMIT
}

/// Groups failures by partition. Failures without a partition form separate groups.
fn by_partition(failures: Vec<Failure>) -> Vec<Vec<Failure>> {
    let (mut together, mut alone) = (BTreeMap::<PartitionKey, Vec<Failure>>::new(), Vec::new());
    for failure in failures {
        match failure.partition {
            Some(partition) => together.entry(partition).or_default().push(failure),
            None => alone.push(vec![failure]),
        }
    }
    alone.extend(together.into_values());
    alone
}

/// Returns the operation that claimed a failure, and when.
fn claimed_by(failure: &Failure) -> Option<(OperationId, Timestamp)> {
    match &failure.state {
        State::Retrying { operation, since } => Some((*operation, *since)),
        State::Open | State::Retried { .. } | State::Closed { .. } | State::Archived { .. } => None,
    }
}

/// Returns `true` if a failure was claimed so long ago that the worker must have been interrupted.
fn is_interrupted(failure: &Failure, now: Timestamp) -> bool {
    claimed_by(failure).is_some_and(|(_, since)| now.duration_since(since) >= STEP_LIMIT)
}

fn is_open(failure: &Failure) -> Result<(), RequestRefusal> {
    if failure.state == State::Open { Ok(()) } else { Err(refusal(failure)) }
}

fn refusal(failure: &Failure) -> RequestRefusal {
    let why = match &failure.state {
        State::Closed { why } | State::Archived { why } => Some(why.clone()),
        State::Retrying { operation, .. } => Some(format!("by operation {operation}")),
        State::Retried { at } => Some(format!("at {at:.0}")),
        State::Open => None,
    };
    RequestRefusal::Not { id: failure.id, standing: failure.state.standing(), why }
}
