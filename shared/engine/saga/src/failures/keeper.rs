//! The collection of failures from dead-letter queues and outboxes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use messages::queue::MAX_BATCH;
use messages::{
    Disposition, InspectQueues, MessageId, Metric, Queue, ReceiveMessages, ReceivedMessage, Reporter,
    SendMessages, StoreError,
};
use outbox::{Entry, EntryResult, InspectOutbox, Owner};

use super::ids::FailureId;
use super::record::{Failure, FailureReport, FailureStatus, Origin, State};
use super::selection::Selection;
use super::store::{Change, KeepFailures};
use crate::history::KeepHistory;
use crate::operator::Operator;
use crate::ports::Outboxes;

/// The time for which a dead letter is hidden while it is recorded.
const VISIBILITY: Duration = Duration::from_secs(60);
/// The delay between two checks for a due step.
const PACE: Duration = Duration::from_millis(250);
/// The number of open failures.
pub const OPEN_FAILURES: Metric = Metric("OpenFailures");
/// The maximum number of batches that are drained from one queue before the next queue has its turn.
const BATCHES: usize = 100;
/// The number of records with exhausted entries, and of failures, that are read in one call.
const PAGE: usize = 200;
/// The maximum number of outboxes that are read at the same time.
const CONCURRENT_READS: usize = 10;
/// The reason of a dead letter if its queue does not report one.
const NO_REASON: &str = "received too often; the queue gives no reason";

/// Collects failures and retries them.
#[derive(Clone)]
pub struct Failures {
    /// Stores failures.
    pub store: Arc<dyn KeepFailures>,
    /// Requeues effects.
    pub operator: Operator,
    /// Sends messages that are retried.
    pub send: Arc<dyn SendMessages>,
    /// Receives dead letters.
    pub receive: Arc<dyn ReceiveMessages>,
    /// The dead-letter queues that are drained, each with the queue that its messages were sent to.
    pub drains: Vec<(Queue, Queue)>,
    /// Reports whether a queue still contains a message.
    pub inspect: Arc<dyn InspectQueues>,
    /// The function that consumes each queue.
    pub functions: BTreeMap<Queue, &'static str>,
    /// Reads the decisions about messages; `None` without a history.
    pub history: Option<Arc<dyn KeepHistory>>,
    /// The clock and the observer.
    pub reporter: Reporter,
}

impl Failures {
    /// Records all failures, and takes the steps of operations until the deadline is near. Without a deadline it takes
    /// one step, if it is due. The first step precedes the recording, which may take the rest of the time if there are
    /// very many failures.
    ///
    /// # Errors
    /// Returns an error if a store or queue is unavailable. The next call continues the work.
    pub async fn run(&self, deadline: Option<Timestamp>) -> Result<(), StoreError> {
        let mut is_more = self.run_step(deadline).await;
        let collected = self.collect(deadline).await;
        while is_more? && deadline.is_some() && !self.reporter.host.is_past(deadline) {
            self.reporter.host.sleep(PACE).await;
            is_more = self.run_step(deadline).await;
        }
        collected.map(drop)
    }

    /// Records all failures. Returns the number of dead letters among them. A queue, store or failure that fails does
    /// not stop the others.
    ///
    /// # Errors
    /// Returns the first error if a store or queue is unavailable, or the store refuses a failure. Dead letters that are
    /// not recorded stay in their queue for the next call.
    pub async fn collect(&self, deadline: Option<Timestamp>) -> Result<usize, StoreError> {
        let (mut collected, mut results) = (0, Vec::new());
        for (dead, source) in &self.drains {
            results.push(self.drain_queue(dead, source, deadline, &mut collected).await);
        }
        // The count precedes the collection of effects, because an invocation may end during that. Their failures are
        // counted in the next call.
        results.push(self.count_open().await);
        results.push(self.collect_effects(deadline).await);
        results.push(self.reopen_abandoned().await);
        for error in results.iter().filter_map(|result| result.as_ref().err()) {
            let (function, error) = (self.reporter.function, error.chain());
            tracing::warn!(function, error, "failures are collected without some of them");
        }
        results.into_iter().collect::<Result<(), _>>().map(|()| collected)
    }

    /// Collects failures for an operator, who can handle the others if one of them cannot be recorded. The log names
    /// the failure.
    ///
    /// # Errors
    /// Returns an error if a store or queue is unavailable. The call may be repeated: a dead letter stays in its queue
    /// until it is recorded.
    pub async fn collect_for_operator(&self) -> Result<(), StoreError> {
        match self.collect(None).await {
            Err(error) if error.is_retryable() => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Records the number of open failures. It is recorded at zero too, so that an alarm has data.
    async fn count_open(&self) -> Result<(), StoreError> {
        let open = self.store.causes(&Selection::of(FailureStatus::Open)).await?;
        self.reporter.measure(OPEN_FAILURES, open.count);
        Ok(())
    }

    /// Drains the dead-letter queues of some failures.
    pub(super) async fn drain_queues_of(
        &self,
        failures: impl Iterator<Item = &Failure>,
        deadline: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let queue = |failure: &'_ Failure| match &failure.origin {
            Origin::DeadLetter { queue, .. } => Some(queue.clone()),
            Origin::Effect { .. } | Origin::Unreadable { .. } => None,
        };
        let queues: BTreeSet<Queue> = failures.filter_map(queue).collect();
        for (dead, source) in self.drains.iter().filter(|(dead, _)| queues.contains(dead)) {
            self.drain_queue(dead, source, deadline, &mut 0).await?;
        }
        Ok(())
    }

    /// Drains a dead-letter queue, and counts its messages. A message that was recorded but not acknowledged before a
    /// crash is received again, and its failure is known by then.
    async fn drain_queue(
        &self,
        dead: &Queue,
        source: &Queue,
        deadline: Option<Timestamp>,
        collected: &mut usize,
    ) -> Result<(), StoreError> {
        let mut first = Ok(());
        for _ in 0..BATCHES {
            if self.reporter.host.is_past(deadline) {
                break;
            }
            let batch = match self.receive.receive(dead, MAX_BATCH, VISIBILITY).await {
                // The queue has no address in this configuration, so another process drains it.
                Err(error) if !error.is_retryable() => {
                    let (queue, error) = (dead.name(), error.chain());
                    tracing::debug!(queue, error, "a dead-letter queue is not drained");
                    break;
                }
                received => received?,
            };
            if batch.is_empty() {
                break;
            }
            let reports: Vec<FailureReport> =
                batch.iter().map(|received| dead_letter(received, dead, source)).collect();
            let refused = self.record_or_refuse(&reports).await?;
            for (received, report) in batch.iter().zip(&reports) {
                if !refused.contains_key(&report.id()) {
                    self.receive.answer(dead, &received.receipt, &Disposition::Acknowledge).await?;
                    *collected += 1;
                }
            }
            first = first.and(first_of(refused));
        }
        first
    }

    /// Records failures. If the store refuses them permanently, it may refuse only one of them, so each is then recorded
    /// alone. Returns the refused ones.
    async fn record_or_refuse(
        &self,
        reports: &[FailureReport],
    ) -> Result<BTreeMap<FailureId, StoreError>, StoreError> {
        let mut refused = BTreeMap::new();
        match self.record(reports).await {
            Err(error) if error.is_retryable() => return Err(error),
            Err(_) => {}
            Ok(()) => return Ok(refused),
        }
        for report in reports {
            match self.record(std::slice::from_ref(report)).await {
                Err(error) if error.is_retryable() => return Err(error),
                Err(error) => {
                    let (function, failure_id) = (self.reporter.function, report.id());
                    let (place, why) = (report.origin.place(), error.chain());
                    tracing::error!(function, %failure_id, place, error = why, "a failure cannot be recorded");
                    refused.insert(failure_id, error);
                }
                Ok(()) => {}
            }
        }
        Ok(refused)
    }

    /// Records failures as they were found. A report that was recorded before changes nothing.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. Some of them may be recorded; the call may be repeated with all.
    pub async fn record(&self, reports: &[FailureReport]) -> Result<(), StoreError> {
        let mut left: Vec<&FailureReport> = reports.iter().collect();
        while !left.is_empty() {
            // Two reports of one failure have to be two changes in sequence, since each change needs the current
            // revision.
            let mut ids = BTreeSet::new();
            let (now, later): (Vec<_>, Vec<_>) = left.into_iter().partition(|report| ids.insert(report.id()));
            left = later;
            left.extend(self.record_each(&now).await?);
        }
        Ok(())
    }

    /// Returns how often a failure was retried. This marks reports whose source has no marker.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    pub async fn retried(&self, failure: FailureId) -> Result<u32, StoreError> {
        Ok(self.known(failure).await?.map_or(0, |known| known.retried))
    }

    async fn known(&self, failure: FailureId) -> Result<Option<Failure>, StoreError> {
        Ok(self.store.failures(&[failure]).await?.into_iter().next().flatten())
    }

    /// Records failures once. Returns the failures that another process changed at the same time.
    async fn record_each<'a>(
        &self,
        reports: &[&'a FailureReport],
    ) -> Result<Vec<&'a FailureReport>, StoreError> {
        let now = self.now();
        let ids: Vec<FailureId> = reports.iter().map(|report| report.id()).collect();
        let known = self.store.failures(&ids).await?;
        let (mut changes, mut changing) = (Vec::new(), Vec::new());
        for (report, known) in reports.iter().zip(known) {
            let next = match &known {
                Some(failure) => failure.again(report, now),
                None => Some(Failure::first(report, now)),
            };
            if let Some(next) = next {
                changes.push(Change { id: next.id, revision: next.revision, next: Some(next) });
                changing.push(*report);
            }
        }
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let made = self.store.change(&changes).await?;
        for (change, made) in changes.iter().zip(&made) {
            if let (Some(failure), true) = (&change.next, made) {
                let (function, correlation_id) = (self.reporter.function, failure.partition);
                let correlation_id = correlation_id.map(|id| id.to_string());
                let (failure_id, place, reason) = (failure.id, failure.origin.place(), &failure.reason);
                tracing::info!(function, correlation_id, %failure_id, place, reason, "a failure was recorded");
            }
        }
        Ok(changing.into_iter().zip(made).filter(|(_, made)| !made).map(|(report, _)| report).collect())
    }

    /// Records exhausted effects page by page, and closes the failures of effects that are no longer exhausted. If the
    /// deadline passes before the last page, no failure is closed. The next call gets further, since recorded effects
    /// cost less.
    async fn collect_effects(&self, deadline: Option<Timestamp>) -> Result<(), StoreError> {
        // The failures are read before the outboxes. Therefore, an effect that is known but not found was requeued or
        // deleted in between, and not just found too late.
        let known = self.known_effects(deadline).await;
        let mut refused = BTreeMap::new();
        let of_sagas = self.record_effects(Outboxes::Sagas, deadline, &mut refused).await;
        let of_sessions = self.record_effects(Outboxes::Sessions, deadline, &mut refused).await;
        if let (Some(known), Some(of_sagas), Some(of_sessions)) = (known?, of_sagas?, of_sessions?) {
            let is_gone = |id: &&FailureId| !of_sagas.contains(id) && !of_sessions.contains(id);
            let gone: Vec<FailureId> = known.keys().filter(is_gone).copied().collect();
            self.close_effects(&gone, &known).await?;
        }
        first_of(refused)
    }

    /// Records the exhausted effects of outboxes. Returns the ids of their failures; `None` if the deadline passed.
    async fn record_effects(
        &self,
        outboxes: Outboxes,
        deadline: Option<Timestamp>,
        refused: &mut BTreeMap<FailureId, StoreError>,
    ) -> Result<Option<BTreeSet<FailureId>>, StoreError> {
        let outbox = outboxes.of(&self.operator.stores);
        let (mut found, mut after) = (BTreeSet::new(), None);
        while let Some((page, last)) = exhausted_page(outbox, after.as_deref()).await? {
            let reports = self.reports(page, outboxes).await?;
            found.extend(reports.iter().map(FailureReport::id));
            refused.extend(self.record_or_refuse(&reports).await?);
            if self.reporter.host.is_past(deadline) {
                return Ok(None);
            }
            after = Some(last);
        }
        Ok(Some(found))
    }

    /// Closes the failures of effects that are no longer exhausted, and were not found. The outbox of each is read once
    /// more, because the list of exhausted entries may be incomplete for a moment.
    async fn close_effects(
        &self,
        gone: &[FailureId],
        known: &BTreeMap<FailureId, u64>,
    ) -> Result<(), StoreError> {
        for gone in gone.chunks(PAGE) {
            let (now, failures) = (self.now(), self.store.failures(gone).await?);
            // A failure that has changed since was reported again.
            let unchanged = |failure: &Failure| known.get(&failure.id) == Some(&failure.revision);
            let closed = stream::iter(failures.into_iter().flatten().filter(unchanged))
                .map(|failure| async {
                    let is_exhausted = match &failure.origin {
                        Origin::Effect { owner, entry } => self.exhausted(*owner, *entry).await?.is_some(),
                        Origin::DeadLetter { .. } | Origin::Unreadable { .. } => false,
                    };
                    let why = "it was requeued or deleted in its outbox".to_owned();
                    Ok((!is_exhausted).then(|| failure.into_state(State::Closed { why }, now)))
                })
                .buffer_unordered(CONCURRENT_READS);
            let closed: Vec<Option<Failure>> = closed.try_collect().await?;
            self.write(closed.into_iter().flatten().collect()).await?;
        }
        Ok(())
    }

    /// Returns the open and archived failures of effects, each with its revision; `None` if the deadline passed.
    async fn known_effects(
        &self,
        deadline: Option<Timestamp>,
    ) -> Result<Option<BTreeMap<FailureId, u64>>, StoreError> {
        let mut found = BTreeMap::new();
        for standing in [FailureStatus::Open, FailureStatus::Archived] {
            let selection = Selection { place: Some("outbox".to_owned()), ..Selection::of(standing) };
            let mut after = None;
            loop {
                let page = self.store.select(&selection, after, PAGE).await?;
                let is_last = page.len() < PAGE;
                after = page.last().map(Failure::place);
                found.extend(page.into_iter().map(|failure| (failure.id, failure.revision)));
                if is_last {
                    break;
                }
                if self.reporter.host.is_past(deadline) {
                    return Ok(None);
                }
            }
        }
        Ok(Some(found))
    }

    /// Converts exhausted entries to reports.
    async fn reports(
        &self,
        entries: Vec<(Option<Owner>, EntryResult)>,
        outboxes: Outboxes,
    ) -> Result<Vec<FailureReport>, StoreError> {
        let mut reports = Vec::new();
        for (owner, stored) in entries {
            match (owner, stored) {
                (Some(owner), Ok(entry)) => reports.push(effect(owner, entry)),
                (_, Err(unreadable)) => {
                    let of_sessions = outboxes == Outboxes::Sessions;
                    let origin = Origin::Unreadable { place: unreadable.place, of_sessions };
                    reports.push(self.unreadable(origin, unreadable.why).await?);
                }
                // This case cannot occur, because a readable entry belongs to a record with a readable id.
                (None, Ok(_)) => {}
            }
        }
        Ok(reports)
    }

    /// Reports an entry that cannot be read. It has no requeue counter, so its marker is derived from the recorded
    /// failure.
    async fn unreadable(&self, origin: Origin, reason: String) -> Result<FailureReport, StoreError> {
        let mut report =
            FailureReport { origin, body: String::new(), reason, mark: "0".to_owned(), closed: None };
        if let Some(known) = self.known(report.id()).await? {
            report.mark = match known.state {
                State::Open | State::Retrying { .. } | State::Archived { .. } => {
                    known.marks.last().cloned().unwrap_or_default()
                }
                State::Retried { .. } | State::Closed { .. } => known.seen.to_string(),
            };
        }
        Ok(report)
    }

    /// Returns an effect if it is still exhausted. Reads only the record that contains it: after an outage, many others
    /// may be exhausted too.
    pub(super) async fn exhausted(
        &self,
        owner: Owner,
        entry: MessageId,
    ) -> Result<Option<Entry>, StoreError> {
        let entries = self.operator.outbox(owner).entries_of(owner).await?;
        Ok(entries.into_iter().flatten().find(|found| found.id == entry && found.poisoned))
    }

    /// Returns the outbox that [`Origin::Unreadable`] names.
    pub(super) fn outbox(&self, of_sessions: bool) -> &dyn InspectOutbox {
        let outboxes = if of_sessions { Outboxes::Sessions } else { Outboxes::Sagas };
        outboxes.of(&self.operator.stores)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.reporter.host.now()
    }
}

/// Exhausted entries, and the cursor of the next page.
type Page = (Vec<(Option<Owner>, EntryResult)>, String);

/// Returns the exhausted entries of some records of an outbox; `None` at the end.
async fn exhausted_page(outbox: &dyn InspectOutbox, after: Option<&str>) -> Result<Option<Page>, StoreError> {
    let page = outbox.poisoned(after, PAGE).await?;
    let Some(last) = page.last().map(|record| record.id.clone()) else { return Ok(None) };
    let entries = page.into_iter().flat_map(|record| {
        let owner = record.owner;
        record.entries.into_iter().map(move |stored| (owner, stored))
    });
    Ok(Some((entries.collect(), last)))
}

fn first_of(refused: BTreeMap<FailureId, StoreError>) -> Result<(), StoreError> {
    refused.into_values().next().map_or(Ok(()), Err)
}

fn dead_letter(received: &ReceivedMessage, dead: &Queue, source: &Queue) -> FailureReport {
    FailureReport {
        origin: Origin::DeadLetter { queue: dead.clone(), source: source.clone() },
        body: received.delivery.body.clone(),
        reason: received.delivery.reason.clone().unwrap_or_else(|| NO_REASON.to_owned()),
        mark: received.delivery.record_id.clone(),
        closed: None,
    }
}

fn effect(owner: Owner, entry: Entry) -> FailureReport {
    FailureReport {
        origin: Origin::Effect { owner, entry: entry.id },
        reason: entry.error.unwrap_or_default(),
        body: entry.payload,
        mark: entry.requeued.to_string(),
        closed: None,
    }
}
