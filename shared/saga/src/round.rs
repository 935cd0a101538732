//! One round: one attempt at each of several groups, step by step and side by side.
//!
//! Each group has an attempt, a claim and a plan of its own. What they share are the calls: one load, one write,
//! one clearing for all of them, and one send for every ten messages. A group that falls behind at one step
//! (a duplicate, a busy partition, a conflict) leaves the round; the others go on.

use std::collections::BTreeMap;

use dedup::{Admission, Admitted, Claim, Release};
use futures::future::{join, join_all};
use jiff::Timestamp;
use messages::store::chain;
use messages::{AttemptId, Measure, MessageId, PartitionKey, StoreError, Token, Verdict};
use outbox::{Entry, Settlement};

use crate::document::{Document, Loaded, Persist, Persisted};
use crate::plan::{self, Judgement, Known, Need, Plan, PlanError, admission};
use crate::runner::{Group, Runner};
use crate::state_machine::Saga;

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// All steps were done.
    Done(Vec<Judgement>),
    /// Another worker is inside the partition.
    Busy,
    /// Another worker stored something in between. A new attempt may go better.
    Conflict,
    /// The attempt had too few tokens; a new one needs these.
    TooFewTokens(Need),
    /// A store did not answer. The messages are to be delivered again; why is for the log.
    BrokenOff(String),
    /// The document is not for this release to read. The messages are to wait for one that can; why is for the log.
    Unreadable(String),
}

/// One group's attempt.
struct Attempt<'a, E> {
    group: &'a Group<E>,
    id: AttemptId,
    minted: Vec<Token>,
    now: Timestamp,
}

/// An attempt that was admitted, and what it is going to do.
struct Planned<'a, E, S> {
    attempt: Attempt<'a, E>,
    fence: u64,
    plan: Plan<S>,
    /// Its place in the round.
    index: usize,
}

impl<S: Saga> Runner<S> {
    /// Makes one attempt at each group, from the claim on. One answer for each, in order.
    pub(crate) async fn round(&self, groups: &[&Group<S::Event>]) -> Vec<Ended> {
        let attempts: Vec<Attempt<'_, S::Event>> = groups.iter().map(|group| self.attempt(group)).collect();
        let (admissions, loaded) = self.claim_and_load(&attempts).await;
        let mut ended: Vec<Option<Ended>> = groups.iter().map(|_| None).collect();
        let mut planned = Vec::new();
        for (index, ((attempt, admission), loaded)) in
            attempts.into_iter().zip(admissions).zip(loaded).enumerate()
        {
            match self.plan(attempt, admission, loaded, index).await {
                Ok(plan) => planned.push(plan),
                Err(why) => ended[index] = Some(why),
            }
        }
        let stored = self.store(planned, &mut ended).await;
        let settlements = self.send(&stored).await;
        self.release(stored, settlements, &mut ended).await;
        let lost = || Ended::BrokenOff("the group was not worked on".to_owned());
        ended.into_iter().map(|ended| ended.unwrap_or_else(lost)).collect()
    }

    fn attempt<'a>(&self, group: &'a Group<S::Event>) -> Attempt<'a, S::Event> {
        let id = AttemptId::from_uuid(self.ports.host.random_id());
        let events: Vec<&S::Event> = group.messages.iter().map(|incoming| &incoming.event).collect();
        let count = group.need.map_or_else(|| self.saga.tokens(&events), |need| need.tokens);
        let minted = admission::mint(group.partition, &id, count);
        Attempt { group, id, minted, now: self.ports.host.now() }
    }

    /// A claim for each group, and one load for all.
    async fn claim_and_load(
        &self,
        attempts: &[Attempt<'_, S::Event>],
    ) -> (Vec<Result<Admission, StoreError>>, Vec<Result<Loaded, String>>) {
        let claims: Vec<Claim> = attempts.iter().map(|attempt| self.claim(attempt)).collect();
        let partitions: Vec<PartitionKey> = attempts.iter().map(|attempt| attempt.group.partition).collect();
        self.count_calls(attempts.len() + 1);
        let claimed = join_all(claims.iter().map(|claim| self.ports.ledger.claim(claim)));
        let (admissions, loaded) =
            join(claimed, self.ports.read.load(&partitions, self.ports.host.now())).await;
        let loaded = match loaded {
            Ok(loaded) => loaded.into_iter().map(Ok).collect(),
            Err(error) => attempts.iter().map(|_| Err(error.chain())).collect(),
        };
        (admissions, loaded)
    }

    fn claim(&self, attempt: &Attempt<'_, S::Event>) -> Claim {
        Claim {
            partition: attempt.group.partition,
            attempt: attempt.id,
            now: attempt.now,
            lease: self.settings.lease,
            requires: admission::requirement(&attempt.group.messages),
            mint: attempt.minted.clone(),
            room: attempt.group.need.map_or(self.settings.room, |need| need.room.max(self.settings.room)),
        }
    }

    /// What an attempt is going to do, or how it ended already.
    async fn plan<'a>(
        &self,
        attempt: Attempt<'a, S::Event>,
        admission: Result<Admission, StoreError>,
        loaded: Result<Loaded, String>,
        index: usize,
    ) -> Result<Planned<'a, S::Event, S::State>, Ended> {
        let admitted = match admission {
            Ok(Admission::Admitted(admitted)) => admitted,
            Ok(Admission::Busy { .. }) => {
                self.contended(&attempt, Measure::BUSY_PARTITIONS, "another worker is inside the partition");
                return Err(Ended::Busy);
            }
            Ok(Admission::Duplicate) => return Err(Ended::Done(duplicates(attempt.group))),
            // The claim may have been granted; its lease runs out by itself.
            Err(error) => return Err(Ended::BrokenOff(error.chain())),
        };
        match self.decide_on_the_latest(&attempt, &admitted, loaded).await {
            Ok(plan) => Ok(Planned { attempt, fence: admitted.fence, plan, index }),
            Err(ended) => {
                if matches!(ended, Ended::Conflict) {
                    self.contended(
                        &attempt,
                        Measure::CONFLICTS,
                        "another worker has taken the partition over",
                    );
                }
                self.abandon(&attempt, admitted.fence).await;
                Err(ended)
            }
        }
    }

    /// Decides; and once more where a message would be dropped for what an earlier version of the document says.
    async fn decide_on_the_latest(
        &self,
        attempt: &Attempt<'_, S::Event>,
        admitted: &Admitted,
        loaded: Result<Loaded, String>,
    ) -> Result<Plan<S::State>, Ended> {
        let version = loaded.as_ref().map_or(None, version_of);
        let plan = self.decide(attempt, admitted, loaded)?;
        if !plan.trusts_what_was_loaded() {
            return Ok(plan);
        }
        self.count_calls(1);
        let latest = self.ports.read.load_latest(attempt.group.partition, self.ports.host.now()).await;
        if latest.is_ok() {
            if version_of(&latest) == version {
                return Ok(plan);
            }
            self.contended(attempt, Measure::STALE_LOADS, "an earlier version of the document was loaded");
        }
        self.decide(attempt, admitted, Ok(latest))
    }

    fn decide(
        &self,
        attempt: &Attempt<'_, S::Event>,
        admitted: &Admitted,
        loaded: Result<Loaded, String>,
    ) -> Result<Plan<S::State>, Ended> {
        let unreadable = |error: StoreError| Ended::Unreadable(error.chain());
        let stored = loaded.map_err(Ended::BrokenOff)?.map_err(|error| match error.is_retryable() {
            true => Ended::BrokenOff(error.chain()),
            false => unreadable(error),
        })?;
        let document = stored.map(|document| document.open(&self.saga)).transpose().map_err(unreadable)?;
        let now = self.ports.host.now();
        let known = Known {
            function: self.ports.dispatcher.reporter.function,
            partition: attempt.group.partition,
            document: document.as_ref(),
            tokens: &admitted.tokens,
            fence: admitted.fence,
            attempt: attempt.id,
            minted: &attempt.minted,
            now,
            claim_until: self.ports.dispatcher.policy.claim_until(now),
        };
        plan::decide(&self.saga, &known, &attempt.group.messages).map_err(|error| match error {
            PlanError::Overtaken => Ended::Conflict,
            PlanError::TooFewTokens(need) => Ended::TooFewTokens(need),
            PlanError::Stage(_) | PlanError::Broken(_) => Ended::BrokenOff(chain(&error)),
        })
    }

    /// Makes all writes in one call. Returns the attempts whose plan now holds.
    async fn store<'a>(
        &self,
        mut planned: Vec<Planned<'a, S::Event, S::State>>,
        ended: &mut [Option<Ended>],
    ) -> Vec<Planned<'a, S::Event, S::State>> {
        let mut writes = Vec::new();
        // What each one waits for: an answer of the store, or none.
        let waiting: Vec<Result<bool, String>> = planned
            .iter_mut()
            .map(|planned| match planned.plan.persist.take().map(Persist::close).transpose() {
                Ok(write) => Ok(write.map(|write| writes.push(write)).is_some()),
                Err(error) => Err(format!("the state cannot be written: {error}")),
            })
            .collect();
        let mut answers = self.persist(&writes).await.into_iter();
        let mut stored = Vec::new();
        for (planned, waits) in planned.into_iter().zip(waiting) {
            let answer = match waits {
                Ok(true) => answers.next().unwrap_or_else(|| Err("the store gave no answer".to_owned())),
                Ok(false) => Ok(Persisted::Stored),
                Err(why) => Err(why),
            };
            match answer {
                Ok(Persisted::Stored) => stored.push(planned),
                Ok(Persisted::Conflict) => {
                    let what = "another worker has changed the partition";
                    self.contended(&planned.attempt, Measure::CONFLICTS, what);
                    self.abandon(&planned.attempt, planned.fence).await;
                    ended[planned.index] = Some(Ended::Conflict);
                }
                Err(why) => ended[planned.index] = Some(Ended::BrokenOff(why)),
            }
        }
        stored
    }

    /// Makes the writes. When a call fails and their outcome is unknown, the documents are read again: each names the
    /// attempt that wrote it.
    async fn persist(&self, writes: &[Persist]) -> Vec<Result<Persisted, String>> {
        if writes.is_empty() {
            return Vec::new();
        }
        let now = self.ports.host.now();
        self.count_calls(1);
        let error = match self.ports.write.persist(writes, now).await {
            Ok(answers) => return answers.into_iter().map(Ok).collect(),
            Err(error) => error,
        };
        self.count_calls(1);
        let partitions: Vec<PartitionKey> = writes.iter().map(|write| write.partition).collect();
        match self.ports.read.load(&partitions, now).await {
            Ok(loaded) => writes
                .iter()
                .zip(loaded)
                .map(|(write, loaded)| loaded.ok().and_then(|found| look_for(write, found.as_ref())))
                .map(|found| found.ok_or_else(|| error.chain()))
                .collect(),
            Err(_) => writes.iter().map(|_| Err(error.chain())).collect(),
        }
    }

    /// Performs the entries of all attempts together, and says how each attempt's are to be settled.
    async fn send(&self, stored: &[Planned<'_, S::Event, S::State>]) -> Vec<(PartitionKey, Vec<Settlement>)> {
        let owners: BTreeMap<MessageId, PartitionKey> = stored
            .iter()
            .flat_map(|planned| planned.plan.dispatch.iter().map(|entry| (entry.id, planned.partition())))
            .collect();
        let entries: Vec<Entry> = stored.iter().flat_map(|planned| planned.plan.dispatch.clone()).collect();
        let mut settlements: BTreeMap<PartitionKey, Vec<Settlement>> = BTreeMap::new();
        for settlement in self.ports.dispatcher.perform(&entries).await {
            if let Some(partition) = owners.get(&settlement.id) {
                settlements.entry(*partition).or_default().push(settlement);
            }
        }
        settlements.into_iter().collect()
    }

    /// Gives the partitions back beside clearing the outboxes.
    async fn release(
        &self,
        stored: Vec<Planned<'_, S::Event, S::State>>,
        settlements: Vec<(PartitionKey, Vec<Settlement>)>,
        ended: &mut [Option<Ended>],
    ) {
        let now = self.ports.host.now();
        let releases: Vec<Release> = stored.iter().map(|planned| planned.release(now)).collect();
        self.count_calls(releases.len() + usize::from(!settlements.is_empty()));
        let released = join_all(releases.iter().map(|release| self.ports.ledger.release(release)));
        let cleared = async {
            if settlements.is_empty() { Ok(()) } else { self.ports.write.settle(&settlements).await }
        };
        let (released, cleared) = join(released, cleared).await;
        for (planned, released) in stored.into_iter().zip(released) {
            ended[planned.index] = Some(match (released, &cleared) {
                (Ok(true), Ok(())) => match planned.plan.again {
                    Some(need) => Ended::TooFewTokens(need),
                    None => Ended::Done(planned.plan.judgements),
                },
                // What was not finished is finished by the next delivery: above all, the tokens have to go.
                (Ok(false), _) => Ended::BrokenOff("the lease was lost before the release".to_owned()),
                (Err(error), _) => Ended::BrokenOff(error.chain()),
                (Ok(true), Err(error)) => Ended::BrokenOff(error.chain()),
            });
        }
    }

    /// Gives the partition back after an attempt that certainly stored nothing: only its own mints go.
    async fn abandon(&self, attempt: &Attempt<'_, S::Event>, fence: u64) {
        let release = Release {
            partition: attempt.group.partition,
            attempt: attempt.id,
            fence,
            remove: attempt.minted.iter().cloned().collect(),
            ended: false,
            now: self.ports.host.now(),
        };
        self.count_calls(1);
        if let Err(error) = self.ports.ledger.release(&release).await {
            // The lease runs out by itself, and a later attempt collects the mints.
            self.warn(attempt.group, &error.chain(), "giving a partition back failed");
        }
    }

    /// Counts and logs an attempt that others stood in the way of.
    fn contended(&self, attempt: &Attempt<'_, S::Event>, measure: Measure, what: &'static str) {
        let reporter = &self.ports.dispatcher.reporter;
        reporter.measure(measure, 1);
        let (function, correlation_id, attempt) = (reporter.function, attempt.group.partition, attempt.id);
        tracing::info!(function, %correlation_id, %attempt, "{what}");
    }

    fn count_calls(&self, calls: usize) {
        self.ports.dispatcher.reporter.measure(Measure::STORAGE_CALLS, calls as u64);
    }
}

impl<E, S> Planned<'_, E, S> {
    fn partition(&self) -> PartitionKey {
        self.attempt.group.partition
    }

    fn release(&self, now: Timestamp) -> Release {
        Release {
            partition: self.partition(),
            attempt: self.attempt.id,
            fence: self.fence,
            remove: self.plan.remove.clone(),
            ended: self.plan.ended,
            now,
        }
    }
}

/// What a document says of a write whose answer was lost; nothing when the write may be on its way still, or made after
/// the version that was read. Then the partition must not be released: the lease has to run out first.
fn look_for(write: &Persist, document: Option<&Document>) -> Option<Persisted> {
    let document = document?;
    let is_later = write.loaded.is_none_or(|loaded| document.version > loaded);
    match document.content.attempt == write.content.attempt {
        true => Some(Persisted::Stored),
        false => is_later.then_some(Persisted::Conflict),
    }
}

fn version_of(loaded: &Loaded) -> Option<u64> {
    loaded.as_ref().ok()?.as_ref().map(|document| document.version)
}

fn duplicates<E>(group: &Group<E>) -> Vec<Judgement> {
    let why = "its token was used before".to_owned();
    let judgement = Judgement { verdict: Verdict::Duplicate, why, state: None };
    vec![judgement; group.messages.len()]
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use messages::{AttemptId, Json};
    use uuid::Uuid;

    use super::*;
    use crate::document::Content;

    fn content(attempt: u128) -> Content {
        Content {
            state: Json::default(),
            state_version: 1,
            ended_at: None::<Timestamp>,
            processed: Vec::new(),
            expected: Vec::new(),
            timers: BTreeMap::new(),
            attempt: AttemptId::from_uuid(Uuid::from_u128(attempt)),
            fence: 1,
        }
    }

    /// A write of attempt 1 over version 4.
    #[test]
    fn only_a_later_version_shows_that_a_write_was_not_made() {
        let partition = PartitionKey::from_uuid(Uuid::from_u128(1));
        let write =
            Persist { partition, loaded: Some(4), content: content(1), add: Vec::new(), cancel: Vec::new() };
        let found = |version, attempt| {
            let document = Document { partition, version, content: content(attempt), outbox: Vec::new() };
            look_for(&write, Some(&document))
        };
        assert_eq!(found(5, 1), Some(Persisted::Stored));
        assert_eq!(found(5, 2), Some(Persisted::Conflict));
        assert_eq!([found(4, 2), found(3, 2), look_for(&write, None)], [None; 3], "it may be on its way");
    }
}
