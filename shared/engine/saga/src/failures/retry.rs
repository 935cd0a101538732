//! Putting failures back to work: many of them, at a pace, in steps that may be repeated.
//!
//! An operation is stored, and whoever comes by takes its next step ([`Failures::step`]); so it goes on after a crash, and
//! two who come by at once do not double the pace. A failure is put back in three writes: it is *retrying*, its message is
//! sent, it is *retried*. After a crash in between it is sent once more, as a message of the same id, which takes effect
//! once. One whose partition somebody is inside just now is open again, for a later step: as a rule that is the worker on
//! another failure of the same partition, put back a moment ago.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use messages::store::chain;
use messages::{Message, MessageId, Outgoing, PartitionKey, StoreError, uuid_ids};
use outbox::{Entry, Owner, Treatment};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::canary::Outcome;
use super::keeper::Failures;
use super::record::{Act, Failure, FailureId, Origin, Standing, State};
use super::store::{Change, Group, Selection};
use crate::operator::Access;

uuid_ids! {
    /// One operation.
    OperationId,
}

/// How fast failures may be put back to work at most, per second.
pub const MAX_PER_SECOND: u32 = 1_000;
/// How many may go ahead at most.
pub const MAX_CANARIES: u32 = 10;
/// How many failures may be named one by one.
pub const MAX_NAMED: usize = 1_000;
/// The time after which those that went ahead are judged, and judged again while a worker is on them.
pub const CANARY_WAIT: SignedDuration = SignedDuration::from_mins(1);
/// The time after which an operation stops if those that went ahead are not processed, from its beginning.
pub const CANARY_LIMIT: SignedDuration = SignedDuration::from_mins(5);
/// How long a step has before another one repeats what it has left behind.
const STEP_LIMIT: SignedDuration = SignedDuration::from_mins(1);
/// How many are put back at the same time.
const AT_ONCE: usize = 10;
/// The time between two steps.
const STEP: SignedDuration = SignedDuration::from_secs(1);
/// How long an operation stays once it has ended.
pub const RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What is to be put back to work, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// Which failures, as a snapshot has them.
    pub selection: Selection,
    /// How many at most; all of them otherwise.
    pub limit: Option<u64>,
    /// How many in a second, 1 to [`MAX_PER_SECOND`].
    pub per_second: u32,
    /// The number of failures that go ahead, up to [`MAX_CANARIES`]. The others stay unless workers process all of them, see
    /// [`CANARY_WAIT`] and [`CANARY_LIMIT`].
    pub canary: u32,
}

/// What a retry would put back to work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Which failures: none that is seen later is among them.
    pub selection: Selection,
    /// By cause.
    pub groups: Vec<Group>,
    /// How many.
    pub count: u64,
}

/// An operation on failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Its id.
    pub id: OperationId,
    /// Who asked for it.
    pub by: String,
    /// When.
    pub begun_at: Timestamp,
    /// Which failures it is about.
    pub selection: Selection,
    /// How many it takes at most.
    pub limit: Option<u64>,
    /// How many in a second.
    pub per_second: u32,
    /// How many go ahead.
    pub canary: u32,
    /// Those that went ahead.
    pub canaries: Vec<FailureId>,
    /// How many there were when it began.
    pub total: u64,
    /// How many were put back to work.
    pub retried: u64,
    /// How far it is.
    #[serde(flatten)]
    pub phase: Phase,
    /// When the next step may be taken.
    pub next_step_at: Timestamp,
    /// Counts the writes, from 1.
    #[serde(skip)]
    pub revision: u64,
}

/// How far an operation is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "phase")]
pub enum Phase {
    /// It puts failures back to work.
    Running,
    /// Some have gone ahead, and are watched.
    Watching {
        /// Until then.
        until: Timestamp,
    },
    /// It has put back all that there was.
    Done {
        /// When.
        at: Timestamp,
    },
    /// It ended before.
    Stopped {
        /// When.
        at: Timestamp,
        /// Why.
        why: String,
    },
}

impl Phase {
    /// Whether nothing is left to do.
    pub fn has_ended(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Stopped { .. })
    }
}

impl Operation {
    /// When it may be removed; none as long as it is running.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Done { at } | Phase::Stopped { at, .. } => {
                Some(at.checked_add(RETENTION).unwrap_or(Timestamp::MAX))
            }
            Phase::Running | Phase::Watching { .. } => None,
        }
    }

    /// How many the next step takes.
    fn share(&self) -> u64 {
        let left = self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.retried));
        let ahead = u64::from(self.canary).saturating_sub(self.retried);
        let most = if ahead > 0 { ahead } else { u64::MAX };
        u64::from(self.per_second).min(left).min(most)
    }
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Something that was asked for makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// There is no such failure.
    #[error("there is no failure {0}")]
    Unknown(FailureId),
    /// It is in a state in which this cannot be done.
    #[error("failure {id} is {standing}{}", .why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    Not {
        /// The failure.
        id: FailureId,
        /// Its state.
        standing: Standing,
        /// What is known of that.
        why: Option<String>,
    },
    /// Nothing of what was selected is open.
    #[error("none of these failures is open any more")]
    Nothing,
    /// Another operation is running.
    #[error("operation {0} is running; wait for its end, or stop it")]
    Busy(OperationId),
    /// There is no such operation, or it has ended.
    #[error("operation {0} is not running")]
    NotRunning(OperationId),
    /// Somebody else changed it at the same moment.
    #[error("somebody else has changed it at the same moment")]
    Overtaken,
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Failures {
    /// What a selection has now. Nothing changes.
    ///
    /// # Errors
    /// When a failure that is named is not open, or the store does not answer.
    pub async fn snapshot(&self, selection: Selection) -> Result<Snapshot, Refused> {
        if selection.ids.len() > MAX_NAMED {
            return Err(Refused::Invalid(format!("at most {MAX_NAMED} failures can be named")));
        }
        let ids: Vec<FailureId> = selection.ids.iter().copied().collect();
        for (id, failure) in ids.iter().zip(self.store.failures(&ids).await?) {
            let failure = failure.ok_or(Refused::Unknown(*id))?;
            is_open(&failure)?;
        }
        let until = selection.until.unwrap_or(Timestamp::MAX).min(self.now());
        let selection = Selection { standing: Standing::Open, until: Some(until), ..selection };
        let groups = self.store.groups(&selection).await?;
        let count = groups.iter().map(|group| group.count).sum();
        Ok(Snapshot { selection, groups, count })
    }

    /// Begins to put failures back to work.
    ///
    /// # Errors
    /// When there are none, another operation is running, or the store does not answer.
    pub async fn retry(&self, retry: Retry, by: &str) -> Result<Operation, Refused> {
        let Retry { limit, per_second, canary, .. } = retry;
        if !(1..=MAX_PER_SECOND).contains(&per_second) {
            return Err(Refused::Invalid(format!("per second it is 1 to {MAX_PER_SECOND} failures")));
        }
        if canary > MAX_CANARIES {
            return Err(Refused::Invalid(format!("at most {MAX_CANARIES} failures go ahead")));
        }
        if limit == Some(0) {
            return Err(Refused::Invalid("the limit is 1 or more".to_owned()));
        }
        if let Some(running) = self.store.running().await? {
            return Err(Refused::Busy(running.id));
        }
        let Snapshot { selection, count, .. } = self.snapshot(retry.selection).await?;
        if count == 0 {
            return Err(Refused::Nothing);
        }
        let now = self.now();
        let operation = Operation {
            id: OperationId::from_uuid(self.reporter.host.fresh_id()),
            by: by.to_owned(),
            begun_at: now,
            selection,
            limit,
            per_second,
            canary,
            canaries: Vec::new(),
            total: limit.map_or(count, |limit| limit.min(count)),
            retried: 0,
            phase: Phase::Running,
            next_step_at: now,
            revision: 1,
        };
        let what = format!("failures: {}, {per_second} a second", operation.total);
        self.act(by, "began a retry", operation.id.to_string(), what).await?;
        if self.store.advance(0, &operation).await? {
            return Ok(operation);
        }
        let running = self.store.running().await?;
        Err(running.map_or(Refused::Overtaken, |running| Refused::Busy(running.id)))
    }

    /// Stops an operation. What it has put back to work stays so.
    ///
    /// # Errors
    /// When it is not running, or the store does not answer.
    pub async fn stop(&self, id: OperationId, by: &str) -> Result<Operation, Refused> {
        loop {
            let operation = self.store.operation(id).await?;
            let operation = operation.filter(|operation| !operation.phase.has_ended());
            let operation = operation.ok_or(Refused::NotRunning(id))?;
            self.act(by, "stopped a retry", id.to_string(), String::new()).await?;
            let phase = Phase::Stopped { at: self.now(), why: format!("stopped by {by}") };
            // A step may have been taken meanwhile; there are not so many that this would not end.
            if let Some(stopped) = self.advance(&operation, phase).await? {
                return Ok(stopped);
            }
        }
    }

    /// Takes the next step of the operation that is running, if it is time for one. Tells whether one is running still.
    ///
    /// # Errors
    /// When a store does not answer; the next step goes on.
    pub async fn step(&self) -> Result<bool, StoreError> {
        let Some(operation) = self.store.running().await? else { return Ok(false) };
        let now = self.now();
        if now < operation.next_step_at {
            return Ok(true);
        }
        if let Phase::Watching { until } = operation.phase {
            return if now < until { Ok(true) } else { self.watched(&operation).await };
        }
        // Whoever makes this write takes the step.
        let next_step_at = now.checked_add(STEP).unwrap_or(Timestamp::MAX);
        let claimed = Operation { next_step_at, revision: operation.revision + 1, ..operation.clone() };
        if !self.store.advance(operation.revision, &claimed).await? {
            return Ok(true);
        }
        let left = self.left_behind(&claimed).await?;
        let is_any_left = !left.is_empty();
        let taken = self.take(&claimed, left, now).await?;
        if taken.is_empty() {
            if is_any_left {
                // A step was broken off a moment ago, or is just being taken.
                return Ok(true);
            }
            let phase = Phase::Done { at: now };
            return Ok(self.advance(&claimed, phase).await?.is_none());
        }
        let (retried, failed) = self.perform(taken).await?;
        self.account(&claimed, &retried, failed).await
    }

    /// The failures that this operation has taken, and of which nobody has said yet what became of them.
    async fn left_behind(&self, operation: &Operation) -> Result<Vec<Failure>, StoreError> {
        let taken = Selection { standing: Standing::Retrying, ..operation.selection.clone() };
        let mut found = self.store.select(&taken, None, MAX_PER_SECOND as usize).await?;
        found.retain(|failure| taken_by(failure).is_some_and(|(by, _)| by == operation.id));
        Ok(found)
    }

    /// The failures of the next step, which are this operation's from now on: first what a step has left that was broken
    /// off.
    async fn take(
        &self,
        operation: &Operation,
        left: Vec<Failure>,
        now: Timestamp,
    ) -> Result<Vec<Failure>, StoreError> {
        let share = usize::try_from(operation.share()).unwrap_or(usize::MAX);
        let mut found = left;
        found.retain(|failure| is_broken_off(failure, now));
        if found.len() < share {
            let open = self.store.select(&operation.selection, None, share - found.len()).await?;
            found.extend(open);
        }
        let taken = found.into_iter().map(|failure| {
            let state = State::Retrying { operation: operation.id, since: now };
            let again = u32::from(matches!(failure.state, State::Open));
            let retried = failure.retried.saturating_add(again);
            Failure { retried, ..failure.into_state(state, now) }
        });
        self.write(taken.collect()).await
    }

    /// Opens what operations have left behind that are over: stopped in the middle of a step that was broken off.
    pub(super) async fn reopen_abandoned(&self) -> Result<(), StoreError> {
        let taken =
            self.store.select(&Selection::of(Standing::Retrying), None, MAX_PER_SECOND as usize).await?;
        if taken.is_empty() {
            return Ok(());
        }
        let (running, now) = (self.store.running().await?.map(|operation| operation.id), self.now());
        let is_abandoned = |failure: &Failure| {
            is_broken_off(failure, now) && taken_by(failure).is_some_and(|(by, _)| Some(by) != running)
        };
        let abandoned = taken.into_iter().filter(is_abandoned);
        self.write(abandoned.map(|failure| failure.into_state(State::Open, now)).collect()).await.map(drop)
    }

    /// Writes failures that were read and changed. Returns those that nobody else has changed meanwhile.
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

    /// Puts failures back to work, those of one partition one after the other. Those that could not be are open again;
    /// returns the others, and why not, unless they only have to wait for their turn.
    async fn perform(&self, taken: Vec<Failure>) -> Result<(Vec<FailureId>, Option<String>), StoreError> {
        let is_effect = |failure: &Failure| !matches!(failure.origin, Origin::DeadLetter { .. });
        let poisoned = if taken.iter().any(is_effect) { self.poisoned().await? } else { BTreeMap::new() };
        let put_back = stream::iter(by_partition(taken))
            .map(async |failures| {
                let mut done = Vec::with_capacity(failures.len());
                for failure in failures {
                    let outcome = self.put_back(&failure, &poisoned).await;
                    done.push((failure, outcome));
                }
                stream::iter(done)
            })
            .buffer_unordered(AT_ONCE)
            .flatten();
        let (now, mut failed) = (self.now(), None);
        let ended: Vec<Failure> = put_back
            .map(|(failure, outcome)| match outcome {
                Ok(Access::Gained) => failure.into_state(State::Retried { at: now }, now),
                Ok(Access::Busy) => {
                    let retried = failure.retried.saturating_sub(1);
                    Failure { retried, ..failure.into_state(State::Open, now) }
                }
                Err(why) => {
                    failed = Some(why);
                    failure.into_state(State::Open, now)
                }
            })
            .collect()
            .await;
        let is_retried = |failure: &&Failure| failure.state.standing() == Standing::Retried;
        let retried = ended.iter().filter(is_retried).map(|failure| failure.id).collect();
        // One that has failed again meanwhile is open, and stays so.
        self.write(ended).await?;
        Ok((retried, failed))
    }

    async fn put_back(
        &self,
        failure: &Failure,
        poisoned: &BTreeMap<(Owner, MessageId), Entry>,
    ) -> Result<Access, String> {
        match &failure.origin {
            Origin::DeadLetter { source, .. } => {
                if let Ok(message) = Message::decode(&failure.body)
                    && self.operator.readmit(&message).await.map_err(|error| error.chain())? == Access::Busy
                {
                    return Ok(Access::Busy);
                }
                let outgoing = Outgoing {
                    id: failure.message_id.unwrap_or(MessageId::from_uuid(failure.id.as_uuid())),
                    partition: failure.partition.unwrap_or(PartitionKey::from_uuid(Uuid::nil())),
                    queue: source.clone(),
                    body: failure.body.clone(),
                    delay: Duration::ZERO,
                };
                match self.send.send(&[outgoing]).await.into_iter().collect() {
                    Ok(()) => Ok(Access::Gained),
                    Err(error) => Err(chain(&error)),
                }
            }
            // One that is not poisoned any more was put back by somebody else.
            Origin::Effect { owner, entry } => match poisoned.get(&(*owner, *entry)) {
                Some(entry) => self.operator.try_requeue(*owner, entry).await.map_err(|error| error.chain()),
                None => Ok(Access::Gained),
            },
            Origin::Unreadable { place, of_sessions } => {
                let treatment = Treatment::Requeue(self.now());
                let treated = self.outbox(*of_sessions).treat(place, &treatment).await;
                treated.map(|()| Access::Gained).map_err(|error| error.chain())
            }
        }
    }

    /// Adds what a step has done to the operation.
    async fn account(
        &self,
        claimed: &Operation,
        retried: &[FailureId],
        failed: Option<String>,
    ) -> Result<bool, StoreError> {
        let now = self.now();
        let mut known = claimed.clone();
        loop {
            let mut next = known.clone();
            next.retried += retried.len() as u64;
            let ahead = (next.canary as usize).saturating_sub(next.canaries.len());
            next.canaries.extend(retried.iter().take(ahead));
            if !next.phase.has_ended() {
                let are_all_ahead = ahead > 0 && next.canaries.len() == next.canary as usize;
                next.phase = match &failed {
                    Some(why) => Phase::Stopped { at: now, why: why.clone() },
                    None if next.limit.is_some_and(|limit| next.retried >= limit) => Phase::Done { at: now },
                    None if are_all_ahead => {
                        Phase::Watching { until: now.checked_add(CANARY_WAIT).unwrap_or(Timestamp::MAX) }
                    }
                    None => next.phase,
                };
            }
            next.revision = known.revision + 1;
            if self.store.advance(known.revision, &next).await? {
                return Ok(!next.phase.has_ended());
            }
            // Somebody has stopped it meanwhile.
            match self.store.operation(claimed.id).await? {
                Some(operation) => known = operation,
                None => return Ok(false),
            }
        }
    }

    /// Continues once every failure that went ahead was processed. Stops if one failed again, or if no worker tries them.
    async fn watched(&self, operation: &Operation) -> Result<bool, StoreError> {
        // Otherwise a message that failed again may still be in its dead-letter queue.
        self.gather(None).await?;
        let mut outcomes = Vec::new();
        for failure in self.store.failures(&operation.canaries).await?.iter().flatten() {
            outcomes.push(self.outcome(failure).await?);
        }
        let next = self.advance(operation, judged(operation, &outcomes, self.now())).await?;
        Ok(next.is_none_or(|next| !next.phase.has_ended()))
    }

    /// Stores an operation in another phase; none when it has changed meanwhile.
    async fn advance(&self, operation: &Operation, phase: Phase) -> Result<Option<Operation>, StoreError> {
        let next = Operation { phase, revision: operation.revision + 1, ..operation.clone() };
        Ok(self.store.advance(operation.revision, &next).await?.then_some(next))
    }

    /// Puts failures aside: nobody is shown them any more unless they ask.
    ///
    /// # Errors
    /// When one is unknown or neither open nor closed, somebody changed one at the same moment, or the store does not
    /// answer. Those before it are put aside then.
    pub async fn archive(&self, ids: &[FailureId], why: &str, by: &str) -> Result<(), Refused> {
        self.end(ids, why, by, "archived").await
    }

    /// Deletes failures for good, and a poisoned effect from its outbox too: what it should have done is never done.
    ///
    /// # Errors
    /// As [`Failures::archive`].
    pub async fn delete(&self, ids: &[FailureId], why: &str, by: &str) -> Result<(), Refused> {
        self.end(ids, why, by, "deleted").await
    }

    async fn end(&self, ids: &[FailureId], why: &str, by: &str, did: &str) -> Result<(), Refused> {
        if ids.len() > MAX_NAMED {
            return Err(Refused::Invalid(format!("at most {MAX_NAMED} failures can be named")));
        }
        if why.trim().is_empty() || why.chars().count() > 1_000 {
            return Err(Refused::Invalid("the reason has 1 to 1,000 characters".to_owned()));
        }
        let found = self.store.failures(ids).await?;
        for (id, failure) in ids.iter().zip(found) {
            let failure = failure.ok_or(Refused::Unknown(*id))?;
            if matches!(failure.state, State::Retrying { .. }) {
                return Err(refusal(&failure));
            }
            self.act(by, did, id.to_string(), why.to_owned()).await?;
            if did == "deleted" {
                self.discard_effect(&failure).await?;
            }
            let (revision, now) = (failure.revision, self.now());
            let archived = || failure.into_state(State::Archived { why: why.to_owned() }, now);
            let next = (did == "archived").then(archived);
            if self.store.change(&[Change { id: *id, revision, next }]).await? != [true] {
                return Err(Refused::Overtaken);
            }
        }
        Ok(())
    }

    /// Otherwise the outbox would have it still, and it would be found again. A failure that is over has left its effect to
    /// somebody else.
    async fn discard_effect(&self, failure: &Failure) -> Result<(), StoreError> {
        if !matches!(failure.state, State::Open | State::Archived { .. }) {
            return Ok(());
        }
        match &failure.origin {
            Origin::DeadLetter { .. } => Ok(()),
            Origin::Effect { owner, entry } => match self.poisoned().await?.get(&(*owner, *entry)) {
                Some(entry) => self.operator.discard(*owner, entry).await,
                None => Ok(()),
            },
            Origin::Unreadable { place, of_sessions } => {
                self.outbox(*of_sessions).treat(place, &Treatment::Delete).await
            }
        }
    }

    /// Notes what somebody did to what, and why, for whoever asks later.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn act(&self, by: &str, did: &str, to: String, why: String) -> Result<(), StoreError> {
        let act = Act { at: self.now(), by: by.to_owned(), did: did.to_owned(), to, why };
        self.store.note(&act).await
    }
}

/// Returns the phase that follows the watching.
fn judged(operation: &Operation, outcomes: &[Outcome], now: Timestamp) -> Phase {
    let count = |outcome| outcomes.iter().filter(|found| **found == outcome).count();
    let ahead = operation.canaries.len();
    let stopped = |why| Phase::Stopped { at: now, why };
    let is_late = now.duration_since(operation.begun_at) >= CANARY_LIMIT;
    match (count(Outcome::Failed), count(Outcome::Taken), count(Outcome::Waiting)) {
        (0, 0, 0) => Phase::Running,
        (0, 0, waiting) => stopped(format!(
            "no worker has taken {waiting} of the {ahead} that went ahead; start the workers, then retry the others"
        )),
        (0, taken, waiting) if is_late => stopped(format!(
            "{} of the {ahead} that went ahead were not processed within {} min; see why, then retry the others",
            taken + waiting,
            CANARY_LIMIT.as_mins()
        )),
        (0, ..) => Phase::Watching { until: now.checked_add(CANARY_WAIT).unwrap_or(Timestamp::MAX) },
        (failed, ..) => stopped(format!(
            "{failed} of the {ahead} that went ahead failed again; the others stay as they were"
        )),
    }
}

/// The failures of each partition, and each that belongs to none by itself.
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

/// Which operation has taken it, and when.
fn taken_by(failure: &Failure) -> Option<(OperationId, Timestamp)> {
    match &failure.state {
        State::Retrying { operation, since } => Some((*operation, *since)),
        State::Open | State::Retried { .. } | State::Closed { .. } | State::Archived { .. } => None,
    }
}

/// Whether it was taken so long ago that whoever did it is gone.
fn is_broken_off(failure: &Failure, now: Timestamp) -> bool {
    taken_by(failure).is_some_and(|(_, since)| now.duration_since(since) >= STEP_LIMIT)
}

fn is_open(failure: &Failure) -> Result<(), Refused> {
    if failure.state == State::Open { Ok(()) } else { Err(refusal(failure)) }
}

fn refusal(failure: &Failure) -> Refused {
    let why = match &failure.state {
        State::Closed { why } | State::Archived { why } => Some(why.clone()),
        State::Retrying { operation, .. } => Some(format!("by operation {operation}")),
        State::Retried { at } => Some(format!("at {at:.0}")),
        State::Open => None,
    };
    Refused::Not { id: failure.id, standing: failure.state.standing(), why }
}
