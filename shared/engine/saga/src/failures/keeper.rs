//! Gathering what was given up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use messages::queue::MAX_BATCH;
use messages::{
    Disposition, InspectQueues, Measure, MessageId, Queue, ReceiveMessages, Received, Reporter, SendMessages,
    StoreError,
};
use outbox::{Entry, InspectOutbox, Owner, Stored};

use super::record::{Failure, FailureId, Origin, Sighting, Standing, State};
use super::store::{Change, KeepFailures, Selection};
use crate::history::KeepHistory;
use crate::operator::Operator;

/// How long a dead letter is hidden while it is written down.
const VISIBILITY: Duration = Duration::from_secs(60);
/// How long to wait between two looks for a step to take.
const PACE: Duration = Duration::from_millis(250);
/// Failures that nobody has done anything about.
pub const OPEN_FAILURES: Measure = Measure("OpenFailures");
/// How many batches of one queue are gathered before it is another one's turn.
const BATCHES: usize = 100;
/// How many records with poisoned entries are read at a time, and how many failures.
const PAGE: usize = 200;
/// What is said of a dead letter whose queue does not say why.
const NO_REASON: &str = "received too often; its queue does not say why";

/// Gathers what was given up, and puts it back to work.
#[derive(Clone)]
pub struct Failures {
    /// Where failures are kept.
    pub store: Arc<dyn KeepFailures>,
    /// Puts effects back to work.
    pub operator: Operator,
    /// Takes messages that are put back to work.
    pub send: Arc<dyn SendMessages>,
    /// Has the dead letters.
    pub receive: Arc<dyn ReceiveMessages>,
    /// The dead-letter queues that are emptied, each with the queue that gives messages up.
    pub drains: Vec<(Queue, Queue)>,
    /// Tells whether a queue still holds a message.
    pub inspect: Arc<dyn InspectQueues>,
    /// The functions that work on queues.
    pub functions: BTreeMap<Queue, &'static str>,
    /// Has the decisions about messages; none without a history.
    pub history: Option<Arc<dyn KeepHistory>>,
    /// Time, and who wants to know.
    pub reporter: Reporter,
}

impl Failures {
    /// Writes down everything that was given up, and takes the steps of operations until the deadline is near. Without one
    /// it takes one step, if it is time for one.
    ///
    /// # Errors
    /// When a store or queue does not answer; the next time goes on from there.
    pub async fn work(&self, deadline: Option<Timestamp>) -> Result<(), StoreError> {
        let gathered = self.gather(deadline).await;
        while self.step().await? && deadline.is_some() && !self.reporter.host.is_past(deadline) {
            self.reporter.host.sleep(PACE).await;
        }
        gathered.map(drop)
    }

    /// Writes down everything that was given up. Returns how many dead letters that were.
    ///
    /// # Errors
    /// When a store or queue does not answer; nothing is lost, and the next time goes on from there.
    pub async fn gather(&self, deadline: Option<Timestamp>) -> Result<usize, StoreError> {
        let (mut gathered, mut failed) = (0, None);
        for (dead, source) in &self.drains {
            match self.drain(dead, source, deadline).await {
                Ok(count) => gathered += count,
                // Where no address is set for it, somebody else empties it.
                Err(error) if !error.is_retryable() => {
                    tracing::debug!(
                        queue = dead.name(),
                        error = error.chain(),
                        "dead letters are left alone"
                    );
                }
                // One queue that does not answer does not keep the others.
                Err(error) => failed = Some(error),
            }
        }
        self.gather_effects(deadline).await?;
        self.reopen_abandoned().await?;
        let open = self.store.groups(&Selection::of(Standing::Open)).await?;
        // Also when there are none, so that an alarm has something to look at.
        self.reporter.measure(OPEN_FAILURES, open.iter().map(|group| group.count).sum());
        failed.map_or(Ok(gathered), Err)
    }

    /// Empties a dead-letter queue. What is not acknowledged after a crash comes again, and is known by then.
    async fn drain(
        &self,
        dead: &Queue,
        source: &Queue,
        deadline: Option<Timestamp>,
    ) -> Result<usize, StoreError> {
        let mut gathered = 0;
        for _ in 0..BATCHES {
            if self.reporter.host.is_past(deadline) {
                break;
            }
            let batch = self.receive.receive(dead, MAX_BATCH, VISIBILITY).await?;
            if batch.is_empty() {
                break;
            }
            let sightings: Vec<Sighting> =
                batch.iter().map(|received| dead_letter(received, dead, source)).collect();
            self.record(&sightings).await?;
            for received in &batch {
                self.receive.answer(dead, &received.receipt, &Disposition::Acknowledge).await?;
            }
            gathered += batch.len();
        }
        Ok(gathered)
    }

    /// Writes sightings down, each once.
    ///
    /// # Errors
    /// When the store does not answer; some of them may be written down, and all may be given again.
    pub async fn record(&self, sightings: &[Sighting]) -> Result<(), StoreError> {
        let mut left: Vec<&Sighting> = sightings.iter().collect();
        while !left.is_empty() {
            // Two sightings of one failure are two changes of it, one after the other.
            let mut ids = BTreeSet::new();
            let (now, later): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|sighting| ids.insert(sighting.id()));
            left = later;
            left.extend(self.record_each(&now).await?);
        }
        Ok(())
    }

    /// How often this was put back to work. It marks sightings of what does not say so itself.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn retried(&self, failure: FailureId) -> Result<u32, StoreError> {
        Ok(self.known(failure).await?.map_or(0, |known| known.retried))
    }

    async fn known(&self, failure: FailureId) -> Result<Option<Failure>, StoreError> {
        Ok(self.store.failures(&[failure]).await?.into_iter().next().flatten())
    }

    /// Returns those whose failure somebody else has changed at the same moment.
    async fn record_each<'a>(&self, sightings: &[&'a Sighting]) -> Result<Vec<&'a Sighting>, StoreError> {
        let now = self.now();
        let ids: Vec<FailureId> = sightings.iter().map(|sighting| sighting.id()).collect();
        let known = self.store.failures(&ids).await?;
        let (mut changes, mut changing) = (Vec::new(), Vec::new());
        for (sighting, known) in sightings.iter().zip(known) {
            let next = match &known {
                Some(failure) => failure.again(sighting, now),
                None => Some(Failure::first(sighting, now)),
            };
            if let Some(next) = next {
                changes.push(Change { id: next.id, revision: next.revision, next: Some(next) });
                changing.push(*sighting);
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
                tracing::info!(function, correlation_id, %failure_id, place, reason, "something was given up");
            }
        }
        Ok(changing.into_iter().zip(made).filter(|(_, made)| !made).map(|(sighting, _)| sighting).collect())
    }

    /// Writes poisoned effects down, a page at a time, and closes the failures of those that are not poisoned any more. When
    /// the time is over before that, none is closed: the next time sees more, as it finds what is written down already.
    async fn gather_effects(&self, deadline: Option<Timestamp>) -> Result<(), StoreError> {
        // First what is known, then what is there: so what is known and not there was put back in between.
        let known = self.open_effects().await?;
        let mut there = BTreeSet::new();
        for of_sessions in [false, true] {
            let mut after = None;
            while let Some((page, last)) = poisoned(self.outbox(of_sessions), after.as_deref()).await? {
                let sightings = self.sightings(page, of_sessions).await?;
                there.extend(sightings.iter().map(Sighting::id));
                self.record(&sightings).await?;
                if self.reporter.host.is_past(deadline) {
                    return Ok(());
                }
                after = Some(last);
            }
        }
        let gone: Vec<FailureId> = known.keys().filter(|id| !there.contains(id)).copied().collect();
        for gone in gone.chunks(PAGE) {
            let (now, failures) = (self.now(), self.store.failures(gone).await?);
            // What has changed meanwhile was seen again.
            let unchanged = |failure: &Failure| known.get(&failure.id) == Some(&failure.revision);
            let closed = failures.into_iter().flatten().filter(unchanged).map(|failure| {
                let why = "it was put back to work or deleted in its outbox".to_owned();
                failure.into_state(State::Closed { why }, now)
            });
            self.write(closed.collect()).await?;
        }
        Ok(())
    }

    /// The open failures of effects, each with its revision.
    async fn open_effects(&self) -> Result<BTreeMap<FailureId, u64>, StoreError> {
        let selection = Selection { place: Some("outbox".to_owned()), ..Selection::of(Standing::Open) };
        let (mut found, mut after) = (BTreeMap::new(), None);
        loop {
            let page = self.store.select(&selection, after, PAGE).await?;
            let is_last = page.len() < PAGE;
            after = page.last().map(Failure::place);
            found.extend(page.into_iter().map(|failure| (failure.id, failure.revision)));
            if is_last {
                return Ok(found);
            }
        }
    }

    /// Poisoned entries, as sightings.
    async fn sightings(
        &self,
        entries: Vec<(Option<Owner>, Stored)>,
        of_sessions: bool,
    ) -> Result<Vec<Sighting>, StoreError> {
        let mut sightings = Vec::new();
        for (owner, stored) in entries {
            match (owner, stored) {
                (Some(owner), Ok(entry)) => sightings.push(effect(owner, entry)),
                (_, Err(unreadable)) => {
                    let origin = Origin::Unreadable { place: unreadable.place, of_sessions };
                    sightings.push(self.unreadable(origin, unreadable.why).await?);
                }
                // What can be read is in a record whose id can be.
                (None, Ok(_)) => {}
            }
        }
        Ok(sightings)
    }

    /// Nothing that can be read says how often it was put back; that it had been is known from the failure itself.
    async fn unreadable(&self, origin: Origin, reason: String) -> Result<Sighting, StoreError> {
        let mut sighting =
            Sighting { origin, body: String::new(), reason, mark: "0".to_owned(), closed: None };
        if let Some(known) = self.known(sighting.id()).await? {
            sighting.mark = match known.state {
                State::Open | State::Retrying { .. } | State::Archived { .. } => {
                    known.marks.last().cloned().unwrap_or_default()
                }
                State::Retried { .. } | State::Closed { .. } => known.seen.to_string(),
            };
        }
        Ok(sighting)
    }

    /// The poisoned entries, by what they are known by.
    pub(super) async fn poisoned(&self) -> Result<BTreeMap<(Owner, MessageId), Entry>, StoreError> {
        let mut found = BTreeMap::new();
        for of_sessions in [false, true] {
            let mut after = None;
            while let Some((page, last)) = poisoned(self.outbox(of_sessions), after.as_deref()).await? {
                for (owner, stored) in page {
                    if let (Some(owner), Ok(entry)) = (owner, stored) {
                        found.insert((owner, entry.id), entry);
                    }
                }
                after = Some(last);
            }
        }
        Ok(found)
    }

    pub(super) fn outbox(&self, of_sessions: bool) -> &dyn InspectOutbox {
        let stores = &self.operator.stores;
        if of_sessions { stores.session_outbox.as_ref() } else { stores.saga_outbox.as_ref() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.reporter.host.now()
    }
}

/// Poisoned entries, and after what the next ones are.
type Page = (Vec<(Option<Owner>, Stored)>, String);

/// The poisoned entries of some records of an outbox; none at the end.
async fn poisoned(outbox: &dyn InspectOutbox, after: Option<&str>) -> Result<Option<Page>, StoreError> {
    let page = outbox.poisoned(after, PAGE).await?;
    let Some(last) = page.last().map(|record| record.id.clone()) else { return Ok(None) };
    let entries = page.into_iter().flat_map(|record| {
        let owner = record.owner;
        record.entries.into_iter().map(move |stored| (owner, stored))
    });
    Ok(Some((entries.collect(), last)))
}

fn dead_letter(received: &Received, dead: &Queue, source: &Queue) -> Sighting {
    Sighting {
        origin: Origin::DeadLetter { queue: dead.clone(), source: source.clone() },
        body: received.delivery.body.clone(),
        reason: received.reason.clone().unwrap_or_else(|| NO_REASON.to_owned()),
        mark: received.delivery.record_id.clone(),
        closed: None,
    }
}

fn effect(owner: Owner, entry: Entry) -> Sighting {
    Sighting {
        origin: Origin::Effect { owner, entry: entry.id },
        reason: entry.error.unwrap_or_default(),
        body: entry.payload,
        mark: entry.requeued.to_string(),
        closed: None,
    }
}
