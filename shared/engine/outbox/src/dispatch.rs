//! The performing of outbox entries: the new ones of an attempt, and overdue ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::{StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use messages::queue::MAX_BATCH;
use messages::store::chain;
use messages::{
    Message, MessageId, Metric, Outgoing, Queue, Reporter, SendError, SendMessages, StoreError, Verdict,
};
use serde_json::Value;

use crate::entry::{Entry, Kind};
use crate::policy::{Failure, Policy, Settlement};
use crate::records::{OwnedRecord, WriteRecords};
use crate::sweep::{Owner, SweepOutbox, Unreadable, UnreadableAction};
use crate::views::{View, WriteViews};

/// Performs entries.
#[derive(Clone)]
pub struct Dispatcher {
    /// Sends messages.
    pub send: Arc<dyn SendMessages>,
    /// Writes views.
    pub views: Arc<dyn WriteViews>,
    /// Writes the records of instances.
    pub records: Arc<dyn WriteRecords>,
    /// Reads the views that earlier versions staged; see [`View::from_payload`].
    pub earlier_view: fn(Value) -> Option<View>,
    /// The handling of failures.
    pub policy: Policy,
    /// Reports decisions for the function that this dispatcher belongs to.
    pub reporter: Reporter,
}

impl Dispatcher {
    /// Performs the entries. Returns the settlement of each. An entry that fails does not stop the others.
    pub async fn perform(&self, entries: &[Entry]) -> Vec<Settlement> {
        let mut results = self.write_views(entries).await;
        results.extend(self.send_messages(entries).await);
        results.extend(self.write_records(entries).await);
        self.log_failures(&results);
        let now = self.reporter.host.now();
        let settled = results
            .into_iter()
            .map(|(entry, result)| self.policy.settle(entry, result, now, self.reporter.host.unit_random()));
        let settlements: Vec<Settlement> = settled.collect();
        self.report_exhausted(&settlements);
        settlements
    }

    /// Counts the exhausted entries and logs each: an operator has to handle them.
    fn report_exhausted(&self, settlements: &[Settlement]) {
        let kept = settlements.iter().filter_map(|settlement| settlement.keep.as_ref());
        let exhausted: Vec<&Entry> = kept.filter(|entry| entry.poisoned).collect();
        for Entry { id, attempts, error, .. } in &exhausted {
            let function = self.reporter.function;
            tracing::error!(function, entry_id = %id, attempts, error, "an outbox entry is exhausted");
        }
        self.reporter.measure(Metric::POISONED_ENTRIES, exhausted.len() as u64);
    }

    /// Logs one line for all entries that failed together, so that an outage does not flood the log.
    fn log_failures(&self, results: &[(&Entry, Result<(), Failure>)]) {
        let mut failed = results.iter().filter_map(|(entry, result)| Some((entry, result.as_ref().err()?)));
        let count = failed.clone().count();
        if let Some((entry, Failure { error, permanent })) = failed.next() {
            let (function, entry_id) = (self.reporter.function, entry.id);
            tracing::error!(function, count, %entry_id, error, permanent, "outbox entries were not performed; the first of them");
        }
    }

    /// Writes all views in one call. If a store permanently refuses the call, it may refuse only one of the views. Each
    /// view is then written separately.
    async fn write_views<'a>(&self, entries: &'a [Entry]) -> Vec<(&'a Entry, Result<(), Failure>)> {
        let mut results = Vec::new();
        let (mut readable, mut views) = (Vec::new(), Vec::new());
        for entry in entries.iter().filter(|entry| entry.kind == Kind::View) {
            match View::from_payload(&entry.payload, self.earlier_view) {
                Ok(view) => {
                    readable.push(entry);
                    views.push(view);
                }
                Err(error) => results.push((entry, Err(unreadable(&error)))),
            }
        }
        if !views.is_empty() {
            self.reporter.measure(Metric::STORAGE_CALLS, 1);
            let written = self.views.write(&views).await.map_err(|error| store_failure(&error));
            let is_refused = written.as_ref().is_err_and(|failure| failure.permanent);
            for (entry, view) in readable.into_iter().zip(&views) {
                let written = match is_refused && views.len() > 1 {
                    true => {
                        let alone = self.views.write(std::slice::from_ref(view)).await;
                        alone.map_err(|error| store_failure(&error))
                    }
                    false => written.clone(),
                };
                results.push((entry, written));
            }
        }
        results
    }

    /// Writes the records, all of them at the same time, so that a slow store delays them as little as one of them.
    async fn write_records<'a>(&self, entries: &'a [Entry]) -> Vec<(&'a Entry, Result<(), Failure>)> {
        let (mut results, mut readable) = (Vec::new(), Vec::<(&Entry, OwnedRecord)>::new());
        for entry in entries.iter().filter(|entry| entry.kind == Kind::Record) {
            match serde_json::from_str(&entry.payload) {
                Ok(record) => readable.push((entry, record)),
                Err(error) => results.push((entry, Err(unreadable(&error)))),
            }
        }
        if !readable.is_empty() {
            self.reporter.measure(Metric::STORAGE_CALLS, readable.len() as u64);
        }
        let writes = readable.iter().map(|(_, record)| self.records.advance_record(record));
        let written = join_all(writes).await;
        let written = written.into_iter().map(|written| written.map_err(|error| store_failure(&error)));
        results.extend(readable.iter().map(|(entry, _)| *entry).zip(written));
        results
    }

    /// Sends messages. Messages of timers come first, because they have waited for the longest time.
    async fn send_messages<'a>(&self, entries: &'a [Entry]) -> Vec<(&'a Entry, Result<(), Failure>)> {
        let mut results = Vec::new();
        let mut ready = Vec::new();
        for entry in entries {
            let Kind::Message(queue) = &entry.kind else { continue };
            match outgoing(entry, queue) {
                Ok((message, outgoing)) => ready.push((entry, message, outgoing)),
                Err(failure) => results.push((entry, Err(failure))),
            }
        }
        ready.sort_by_key(|(_, message, _)| message.timer.is_none());
        let send = async |batch: &[(&Entry, Message, Outgoing)]| {
            let messages: Vec<Outgoing> = batch.iter().map(|(_, _, outgoing)| outgoing.clone()).collect();
            self.send.send(&messages).await
        };
        // The calls start in order, and their results are returned in the same order.
        let mut answers = stream::iter(ready.chunks(MAX_BATCH)).map(send).buffered(self.policy.sends.max(1));
        for batch in ready.chunks(MAX_BATCH) {
            let sent = answers.next().await.unwrap_or_default();
            for ((entry, message, outgoing), result) in batch.iter().zip(sent) {
                if result.is_ok() {
                    let why = format!("to {}", outgoing.queue);
                    self.reporter.note(Some(message), Verdict::Dispatched, &why);
                }
                let failed =
                    |error: SendError| Failure { error: chain(&error), permanent: !error.is_retryable() };
                results.push((entry, result.map_err(failed)));
            }
        }
        results
    }

    /// Claims the ready entries of some records in one call, then performs and settles them in parts, at least one. If
    /// a slow queue would keep the next part beyond `deadline` or the end of the claim, the claims of the remaining
    /// entries are released. Unreadable entries are set aside and do not stop the other entries.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. Later failures are part of the result: entries that were performed
    /// but not settled are performed again.
    pub async fn dispatch_records(
        &self,
        store: &dyn SweepOutbox,
        owners: &[Owner],
        deadline: Option<Timestamp>,
    ) -> Result<DispatchOutcome, StoreError> {
        let now = self.reporter.host.now();
        self.reporter.measure(Metric::STORAGE_CALLS, 1);
        let claimed_until = self.claim_until(now);
        let claimed = store.claim_due(owners, now, claimed_until).await?;
        let (mut taken, mut entries) = (DispatchOutcome::default(), Vec::new());
        let (mut owner_of, mut unreadable) = (BTreeMap::new(), Vec::new());
        for (owner, claimed) in owners.iter().zip(claimed) {
            match claimed {
                Ok(stored) if stored.is_empty() => taken.idle.push(*owner),
                Ok(stored) => stored.into_iter().for_each(|stored| match stored {
                    Ok(entry) => {
                        owner_of.insert(entry.id, *owner);
                        entries.push(entry);
                    }
                    Err(found) => unreadable.push(found),
                }),
                Err(error) => {
                    taken.failed.push(*owner);
                    taken.error.get_or_insert(error);
                }
            }
        }
        taken.entries = unreadable.len();
        self.set_aside(store, &unreadable).await?;
        if let Some(due_at) = entries.iter().map(|entry| entry.due_at).min() {
            let age = u64::try_from(now.duration_since(due_at).as_secs()).unwrap_or(0);
            self.reporter.measure(Metric::OUTBOX_AGE, age);
        }
        let last_start = self.policy.last_start(claimed_until, deadline);
        let mut left = entries.as_slice();
        while !left.is_empty()
            && (left.len() == entries.len() || !self.reporter.host.is_past(Some(last_start)))
        {
            let (part, rest) = left.split_at(left.len().min(self.policy.sends.max(1) * MAX_BATCH));
            let settlements = self.perform(part).await;
            taken.entries += part.len();
            self.settle(store, by_owner(settlements, &owner_of), &mut taken).await;
            if taken.is_unsettled {
                // Further parts could not be settled either, and would be performed again.
                return Ok(taken);
            }
            left = rest;
        }
        if !left.is_empty() {
            taken.given_back = left.len();
            let given_back = left.iter().map(Settlement::give_back).collect();
            self.settle(store, by_owner(given_back, &owner_of), &mut taken).await;
        }
        Ok(taken)
    }

    /// Settles entries, and keeps the first error.
    async fn settle(
        &self,
        store: &dyn SweepOutbox,
        settlements: Vec<(Owner, Vec<Settlement>)>,
        taken: &mut DispatchOutcome,
    ) {
        self.reporter.measure(Metric::STORAGE_CALLS, 1);
        if let Err(error) = store.settle(&settlements).await {
            taken.is_unsettled |= error.is_retryable();
            taken.error.get_or_insert(error);
        }
    }

    /// Returns the end of a claim that begins now. Its fraction of a second distinguishes it from other claims: many
    /// records are claimed in one call, and the claimed entries are found by this value.
    fn claim_until(&self, now: Timestamp) -> Timestamp {
        let fraction =
            SignedDuration::try_from_secs_f64(self.reporter.host.unit_random()).unwrap_or_default();
        self.policy.claim_until(now).checked_add(fraction).unwrap_or(Timestamp::MAX)
    }

    /// Marks unreadable entries as exhausted, so that no sweep returns them before an operator requeues them.
    async fn set_aside(&self, store: &dyn SweepOutbox, unreadable: &[Unreadable]) -> Result<(), StoreError> {
        for Unreadable { place, why } in unreadable {
            let function = self.reporter.function;
            tracing::error!(function, place, error = why, "an outbox entry cannot be read and is set aside");
            self.reporter.measure(Metric::STORAGE_CALLS, 1);
            store.resolve_unreadable(place, &UnreadableAction::Poison(why.clone())).await?;
            self.reporter.measure(Metric::POISONED_ENTRIES, 1);
        }
        Ok(())
    }

    /// Performs one batch of the entries of a store that were due at `began`. The sweep does not claim more than one
    /// batch ahead: a claim that the deadline cuts off would block its entries until it expires.
    async fn sweep_next(&self, sweep: &mut StoreSweep<'_>, began: Timestamp, deadline: Option<Timestamp>) {
        match self.sweep_some(sweep.store, &sweep.passed, began, deadline).await {
            Ok(None) => {
                sweep.outcome.to_the_end = true;
                sweep.has_ended = true;
            }
            Ok(Some(taken)) => {
                sweep.outcome.entries += taken.entries;
                sweep.passed.extend(taken.failed);
                sweep.passed.extend(taken.idle);
                if let Some(error) = taken.error {
                    let (function, why) = (self.reporter.function, error.chain());
                    tracing::warn!(function, error = why, "a sweep continues without some records");
                    // A record that its store refuses for good must not hide whether sweeps complete.
                    if error.is_retryable() {
                        sweep.failure.get_or_insert(error);
                    }
                }
                sweep.has_ended = taken.is_unsettled;
            }
            Err(error) => {
                sweep.failure.get_or_insert(error);
                sweep.has_ended = true;
            }
        }
    }

    /// Performs one batch of entries that were due at `began`, the oldest first. Returns `None` if none is left.
    async fn sweep_some(
        &self,
        store: &dyn SweepOutbox,
        passed: &BTreeSet<Owner>,
        began: Timestamp,
        deadline: Option<Timestamp>,
    ) -> Result<Option<DispatchOutcome>, StoreError> {
        self.reporter.measure(Metric::STORAGE_CALLS, 1);
        let due = store.due(began, self.policy.batch + passed.len()).await?;
        let (mut owners, mut unreadable) = (Vec::new(), Vec::new());
        for found in due {
            match found {
                Ok(owner) if passed.contains(&owner) => {}
                Ok(owner) => owners.push(owner),
                Err(found) => unreadable.push(found),
            }
        }
        if owners.is_empty() && unreadable.is_empty() {
            return Ok(None);
        }
        self.set_aside(store, &unreadable).await?;
        let mut taken = match owners.is_empty() {
            true => DispatchOutcome::default(),
            false => self.dispatch_records(store, &owners, deadline).await?,
        };
        taken.entries += unreadable.len();
        Ok(Some(taken))
    }
}

/// The outcome for some records.
#[derive(Debug, Default)]
pub struct DispatchOutcome {
    /// The number of entries that were performed, attempted or set aside.
    pub entries: usize,
    /// The number of entries whose claim was given back, because the deadline or the end of the claim was near.
    pub given_back: usize,
    /// The records that could not be claimed.
    pub failed: Vec<Owner>,
    /// The records without a ready entry: another worker has claimed or performed them.
    pub idle: Vec<Owner>,
    /// `true` if the store was unavailable for a settlement. The entries are performed again after the claim.
    pub is_unsettled: bool,
    /// The first error that affected some of the records while the others continued.
    pub error: Option<StoreError>,
}

/// The result of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SweepOutcome {
    /// The number of entries that were performed, attempted or set aside.
    pub entries: usize,
    /// `true` if no due entry remains, except those of records that their store refuses to change; `false` if the
    /// deadline passed earlier.
    pub to_the_end: bool,
}

/// The progress of a sweep in one store.
struct StoreSweep<'a> {
    store: &'a dyn SweepOutbox,
    /// Records that could not be claimed remain due. An index that lags behind also lists records that another worker
    /// has claimed. The sweep looks past them for other due records.
    passed: BTreeSet<Owner>,
    outcome: SweepOutcome,
    failure: Option<StoreError>,
    has_ended: bool,
}

impl<'a> StoreSweep<'a> {
    fn new(store: &'a dyn SweepOutbox) -> Self {
        let outcome = SweepOutcome::default();
        Self { store, passed: BTreeSet::new(), outcome, failure: None, has_ended: false }
    }
}

/// Performs everything that was due when the sweep began, until nothing is left or the deadline has passed. An entry
/// that fails or is stored during the sweep is left to the next one, so the sweep ends even if everything fails. The
/// stores take turns, so that a slow queue in the entries of one does not stop those of the others.
///
/// # Errors
/// Returns an error if a store is unavailable. The other stores are swept nevertheless. The next sweep finds every
/// entry that was not settled.
pub async fn sweep(
    stores: &[Arc<dyn SweepOutbox>],
    dispatcher: &Dispatcher,
    deadline: Option<Timestamp>,
) -> Result<SweepOutcome, StoreError> {
    let host = &dispatcher.reporter.host;
    let began = host.now();
    // A deadline that is shorter than a call admits one batch nevertheless.
    let last_start = deadline.map(|deadline| match dispatcher.policy.last_call(deadline) {
        last if began < last => last,
        _ => deadline,
    });
    let mut sweeps: Vec<_> = stores.iter().map(|store| StoreSweep::new(store.as_ref())).collect();
    while !host.is_past(last_start) && sweeps.iter().any(|sweep| !sweep.has_ended) {
        for sweep in sweeps.iter_mut().filter(|sweep| !sweep.has_ended) {
            if !host.is_past(last_start) {
                dispatcher.sweep_next(sweep, began, deadline).await;
            }
        }
    }
    let (mut all, mut failure) = (SweepOutcome { entries: 0, to_the_end: true }, None);
    for StoreSweep { outcome, failure: failed, .. } in sweeps {
        all.entries += outcome.entries;
        all.to_the_end &= outcome.to_the_end;
        failure = failure.or(failed);
    }
    failure.map_or(Ok(all), Err)
}

fn by_owner(
    settlements: Vec<Settlement>,
    owner_of: &BTreeMap<MessageId, Owner>,
) -> Vec<(Owner, Vec<Settlement>)> {
    let mut settled: BTreeMap<Owner, Vec<Settlement>> = BTreeMap::new();
    for settlement in settlements {
        if let Some(owner) = owner_of.get(&settlement.id) {
            settled.entry(*owner).or_default().push(settlement);
        }
    }
    settled.into_iter().collect()
}

fn outgoing(entry: &Entry, queue: &Queue) -> Result<(Message, Outgoing), Failure> {
    let message = Message::decode(&entry.payload).map_err(|error| unreadable(&error))?;
    let outgoing = Outgoing {
        id: message.id,
        partition: message.partition,
        queue: queue.clone(),
        body: entry.payload.clone(),
        delay: Duration::ZERO,
    };
    Ok((message, outgoing))
}

fn unreadable(error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure { error: format!("the stored effect cannot be read: {}", chain(error)), permanent: true }
}

fn store_failure(error: &StoreError) -> Failure {
    Failure { error: error.chain(), permanent: !error.is_retryable() }
}
