//! Performing outbox entries: the fresh ones of an attempt, and what is overdue.

use std::sync::Arc;
use std::time::Duration;

use messages::queue::MAX_BATCH;
use messages::store::chain;
use messages::{Measure, Message, Outgoing, Queue, Reporter, SendError, SendMessages, StoreError, Verdict};
use serde_json::Value;

use crate::entry::{Entry, Kind};
use crate::policy::{Failure, Policy, Settlement};
use crate::sweep::{Owner, SweepOutbox};
use crate::views::{View, WriteViews};

/// Performs entries.
#[derive(Clone)]
pub struct Dispatcher {
    /// Where messages are sent.
    pub send: Arc<dyn SendMessages>,
    /// Where views are written.
    pub views: Arc<dyn WriteViews>,
    /// Reads the views that earlier releases have staged; see [`View::from_payload`].
    pub earlier_view: fn(Value) -> Option<View>,
    /// What a failure leads to.
    pub policy: Policy,
    /// Takes notes for the function on whose behalf it works.
    pub reporter: Reporter,
}

impl Dispatcher {
    /// Performs the entries and says how each is to be settled. One that fails does not keep the others back.
    pub async fn perform(&self, entries: &[Entry]) -> Vec<Settlement> {
        let mut results = self.write_views(entries).await;
        results.extend(self.send_messages(entries).await);
        let now = self.reporter.host.now();
        let settled = results
            .into_iter()
            .map(|(entry, result)| self.policy.settle(entry, result, now, self.reporter.host.unit_random()));
        let settlements: Vec<Settlement> = settled.collect();
        let poisoned =
            |settlement: &&Settlement| settlement.keep.as_ref().is_some_and(|entry| entry.poisoned);
        let poisoned = settlements.iter().filter(poisoned).count();
        self.reporter.measure(Measure::POISONED_ENTRIES, poisoned as u64);
        settlements
    }

    /// Writes all views in one call.
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
            self.reporter.measure(Measure::STORAGE_CALLS, 1);
            let written = self.views.write(&views).await.map_err(|error| store_failure(&error));
            results.extend(readable.into_iter().map(|entry| (entry, written.clone())));
        }
        results
    }

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
        for batch in ready.chunks(MAX_BATCH) {
            let messages: Vec<Outgoing> = batch.iter().map(|(_, _, outgoing)| outgoing.clone()).collect();
            let sent = self.send.send(&messages).await;
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

    /// Claims, performs and settles what is ready in one record. Returns how many entries it took.
    ///
    /// # Errors
    /// When the record's store does not answer. Entries that were performed but not settled are performed again.
    pub async fn dispatch_record(&self, store: &dyn SweepOutbox, owner: Owner) -> Result<usize, StoreError> {
        let now = self.reporter.host.now();
        self.reporter.measure(Measure::STORAGE_CALLS, 1);
        let entries = store.claim_due(owner, now, self.policy.claim_until(now)).await?;
        let Some(due_at) = entries.iter().map(|entry| entry.due_at).min() else { return Ok(0) };
        let age = u64::try_from(now.duration_since(due_at).as_secs()).unwrap_or(0);
        self.reporter.measure(Measure::OUTBOX_AGE, age);
        self.reporter.measure(Measure::STORAGE_CALLS, 1);
        let settlements = self.perform(&entries).await;
        store.settle(owner, &settlements).await?;
        Ok(entries.len())
    }
}

/// Performs everything that is due, record by record, until nothing is. An entry that fails is not due again
/// until later, so this ends even when everything fails.
///
/// # Errors
/// When a store does not answer. Whatever was not settled by then is found again by the next sweep.
pub async fn sweep(stores: &[Arc<dyn SweepOutbox>], dispatcher: &Dispatcher) -> Result<usize, StoreError> {
    let mut performed = 0;
    for store in stores {
        loop {
            dispatcher.reporter.measure(Measure::STORAGE_CALLS, 1);
            let owners = store.due(dispatcher.reporter.host.now(), dispatcher.policy.batch).await?;
            let mut taken = 0;
            for owner in owners {
                taken += dispatcher.dispatch_record(store.as_ref(), owner).await?;
            }
            performed += taken;
            // Nothing was there, or somebody else was quicker with all of it.
            if taken == 0 {
                break;
            }
        }
    }
    Ok(performed)
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
