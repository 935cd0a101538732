//! The assessment of the canary failures, which are retried before the others.
//!
//! A failure that does not come back proves nothing until a worker has tried it. Therefore, a retry continues only
//! after each canary message was processed. Three sources are consulted, in this order:
//!
//! 1. the queue, if it can find a single message (a data directory);
//! 2. the history, which has the decision of the worker that processed the message;
//! 3. the number of messages in the queue (SQS): an empty queue contains none that went ahead.
//!
//! An outbox entry was performed once it has left its outbox.

use jiff::{SignedDuration, Timestamp};
use messages::{Depth, MessageId, PartitionKey, Presence, Queue, StoreError, Verdict};
use outbox::{InspectOutbox, OutboxRecord, Owner};

use super::keeper::Failures;
use super::record::{Failure, Origin, State};

/// The maximum difference between the clocks of two machines.
const CLOCKS: SignedDuration = SignedDuration::from_secs(5);
/// The number of decisions and of outbox records that are read in one call, and the maximum number of calls.
const PAGE: usize = 200;
const MAX_PAGES: usize = 50;

/// The outcome of a failure that went ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A worker processed the message.
    Processed,
    /// The retry failed again.
    Failed,
    /// A worker has tried the message, but has not processed it yet.
    Taken,
    /// No worker has tried the message.
    Waiting,
    /// An operator has archived or deleted the failure.
    Removed,
}

impl Failures {
    /// Returns the outcome of a failure since it was retried.
    pub(super) async fn outcome(&self, failure: &Failure) -> Result<Outcome, StoreError> {
        let since = match &failure.state {
            State::Open | State::Closed { .. } => return Ok(Outcome::Failed),
            State::Archived { .. } => return Ok(Outcome::Removed),
            State::Retrying { since, .. } => *since,
            State::Retried { at } => *at,
        };
        match &failure.origin {
            Origin::DeadLetter { queue, source } => self.of_message(failure, queue, source, since).await,
            Origin::Effect { owner, entry } => self.of_effect(*owner, *entry).await,
            Origin::Unreadable { place, of_sessions } => {
                of_unreadable(self.outbox(*of_sessions), place).await
            }
        }
    }

    async fn of_message(
        &self,
        failure: &Failure,
        dead: &Queue,
        source: &Queue,
        since: Timestamp,
    ) -> Result<Outcome, StoreError> {
        let message = failure.message_id.unwrap_or(MessageId::from_uuid(failure.id.as_uuid()));
        if let Some(presence) = self.inspect.locate(source, message).await? {
            let is_dead = self.inspect.locate(dead, message).await? != Some(Presence::Absent);
            return Ok(match presence {
                Presence::Waiting => Outcome::Waiting,
                Presence::Received => Outcome::Taken,
                Presence::Absent if is_dead => Outcome::Failed,
                Presence::Absent => Outcome::Processed,
            });
        }
        let function = self.functions.get(source).copied();
        let decided = self.decided(failure.partition, message, function, since).await?;
        if decided == Outcome::Processed {
            return Ok(decided);
        }
        let mut depths = self.inspect.depths().await;
        let mut depth = |queue| depths.remove(queue).and_then(Result::ok);
        let (depth, dead) = (depth(source), depth(dead));
        let is_empty = |depth: Option<Depth>| depth.is_some_and(|depth| depth.total() == 0);
        Ok(match decided {
            // Without a history, the message was processed if neither queue contains it. A rejected message is dead-lettered.
            Outcome::Waiting if is_empty(depth) && is_empty(dead) => Outcome::Processed,
            // The message in flight may be the dead letter, or a worker may be processing it. Therefore, the operation
            // does not end yet.
            Outcome::Waiting if depth.is_none_or(|depth| depth.in_flight > 0 || depth.total() == 0) => {
                Outcome::Taken
            }
            decided => decided,
        })
    }

    /// Returns the outcome in the history. Only decisions of the function behind the queue count, because another
    /// function may have sent the message.
    async fn decided(
        &self,
        partition: Option<PartitionKey>,
        message: MessageId,
        function: Option<&str>,
        since: Timestamp,
    ) -> Result<Outcome, StoreError> {
        let Some(history) = &self.history else { return Ok(Outcome::Waiting) };
        let since = since.checked_sub(CLOCKS).unwrap_or(Timestamp::MIN);
        let (mut outcome, mut after) = (Outcome::Waiting, None);
        for _ in 0..MAX_PAGES {
            let page = history.history(partition, after, PAGE).await?;
            let Some((place, _)) = page.last() else { break };
            after = Some(*place);
            let decisions = page.iter().map(|(_, decision)| decision).filter(|each| {
                each.message_id == Some(message) && function == Some(&each.function) && each.at >= since
            });
            for decision in decisions {
                match decision.verdict.known() {
                    Some(Verdict::Handled | Verdict::Duplicate | Verdict::Ignored | Verdict::Recovered) => {
                        return Ok(Outcome::Processed);
                    }
                    Some(Verdict::Rejected | Verdict::Retried) => outcome = Outcome::Taken,
                    Some(Verdict::Dispatched) | None => {}
                }
            }
        }
        Ok(outcome)
    }

    async fn of_effect(&self, owner: Owner, entry: MessageId) -> Result<Outcome, StoreError> {
        if let Owner::Saga(partition) = owner {
            self.operator.stores.read_documents.reach_latest_data(partition, self.now()).await?;
        }
        // The outbox of an instance exists longer than its document can be loaded.
        let entries = self.operator.outbox(owner).entries_of(owner).await?;
        Ok(match entries.iter().flatten().find(|found| found.id == entry) {
            None => Outcome::Processed,
            Some(found) if found.poisoned => Outcome::Failed,
            Some(found) if found.attempts > 0 || found.claimed_until.is_some() => Outcome::Taken,
            Some(_) => Outcome::Waiting,
        })
    }
}

/// Returns the outcome of an entry that cannot be read. It is [`Outcome::Waiting`] also if the outbox has too many
/// records to read them all.
async fn of_unreadable(outbox: &dyn InspectOutbox, place: &str) -> Result<Outcome, StoreError> {
    let has_it = |record: &OutboxRecord| {
        record.entries.iter().flat_map(|stored| stored.as_ref().err()).any(|found| found.place == place)
    };
    let mut after: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let page = outbox.pending(after.as_deref(), PAGE).await?;
        if page.iter().any(has_it) {
            break;
        }
        let Some(last) = page.last() else { return Ok(Outcome::Processed) };
        after = Some(last.id.clone());
    }
    Ok(Outcome::Waiting)
}
