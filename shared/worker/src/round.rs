//! One round: one attempt at each of several groups, step by step and side by side.
//!
//! Each group has an attempt, a claim and a plan of its own. What they share are the calls: one load, one write,
//! one clearing for all of them, and one send for every ten messages. A group that falls behind at one step
//! (a duplicate, a busy partition, a conflict) leaves the round; the others go on.

use std::collections::BTreeMap;

use contracts::store::chain;
use contracts::{AttemptId, Measure, MessageId, SearchId, StoreError, Token};
use dedup::{Admission, Admitted, Claim, Release};
use futures::future::{join, join_all};
use jiff::Timestamp;
use outbox::{Entry, Settlement};

use crate::document::{Document, Persist, Persisted};
use crate::group::{Group, Worker};
use crate::plan::{self, Judgement, Known, Plan, PlanError};

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// All steps were done.
    Done(Vec<Judgement>),
    /// Another worker is inside the partition.
    Busy,
    /// Another worker stored something in between. A new attempt may go better.
    Conflict,
    /// A store did not answer. The messages are to be delivered again; why is for the log.
    BrokenOff(String),
}

/// One group's attempt.
struct Attempt<'a> {
    group: &'a Group,
    id: AttemptId,
    minted: Vec<Token>,
    now: Timestamp,
}

/// An attempt that was admitted, and what it is going to do.
struct Planned<'a> {
    attempt: &'a Attempt<'a>,
    fence: u64,
    plan: Plan,
    /// Its place in the round.
    index: usize,
}

impl Worker {
    /// Makes one attempt at each group, from the claim on. One answer for each, in order.
    pub(crate) async fn round(&self, groups: &[&Group]) -> Vec<Ended> {
        let attempts: Vec<Attempt<'_>> = groups.iter().map(|group| self.attempt(group)).collect();
        let searches: Vec<SearchId> = groups.iter().map(|group| group.search_id).collect();
        let now = self.ports.host.now();
        // A claim for each group, and one load for all.
        self.count_calls(groups.len() + 1);
        let (admissions, loaded) =
            join(self.claim_all(&attempts), self.ports.read.load(&searches, now)).await;
        let mut answers: Vec<Option<Ended>> = groups.iter().map(|_| None).collect();
        let mut planned = Vec::new();
        for (index, (attempt, admission)) in attempts.iter().zip(admissions).enumerate() {
            let document = match &loaded {
                Ok(documents) => Ok(documents.get(index).and_then(Option::as_ref)),
                Err(error) => Err(error),
            };
            match self.decide(attempt, admission, document).await {
                Ok((fence, plan)) => planned.push(Planned { attempt, fence, plan, index }),
                Err(ended) => answers[index] = Some(ended),
            }
        }
        for (index, ended) in self.carry_out(planned).await {
            answers[index] = Some(ended);
        }
        let lost = || Ended::BrokenOff("the group was not worked on".to_owned());
        answers.into_iter().map(|answer| answer.unwrap_or_else(lost)).collect()
    }

    fn attempt<'a>(&self, group: &'a Group) -> Attempt<'a> {
        let id = AttemptId::from_uuid(self.ports.host.fresh_id());
        Attempt { group, id, minted: plan::mint(&group.messages, &id), now: self.ports.host.now() }
    }

    async fn claim_all(&self, attempts: &[Attempt<'_>]) -> Vec<Result<Admission, StoreError>> {
        let claims: Vec<Claim> = attempts.iter().map(|attempt| self.claim(attempt)).collect();
        join_all(claims.iter().map(|claim| self.ports.ledger.claim(claim))).await
    }

    fn claim(&self, attempt: &Attempt<'_>) -> Claim {
        Claim {
            partition: attempt.group.search_id,
            attempt: attempt.id,
            now: attempt.now,
            lease: self.settings.lease,
            requires: plan::requirement(&attempt.group.messages),
            mint: attempt.minted.clone(),
        }
    }

    /// What an attempt is going to do, or how it ended already.
    async fn decide(
        &self,
        attempt: &Attempt<'_>,
        admission: Result<Admission, StoreError>,
        document: Result<Option<&Document>, &StoreError>,
    ) -> Result<(u64, Plan), Ended> {
        let admitted = match admission {
            Ok(Admission::Admitted(admitted)) => admitted,
            Ok(Admission::Busy { .. }) => return Err(Ended::Busy),
            Ok(Admission::Duplicate) => return Err(Ended::Done(duplicates(attempt.group))),
            // The claim may have been granted; its lease runs out by itself.
            Err(error) => return Err(Ended::BrokenOff(error.chain())),
        };
        let plan = match document {
            Ok(document) => self.plan(attempt, &admitted, document),
            Err(error) => Err(Ended::BrokenOff(error.chain())),
        };
        if plan.is_err() {
            self.abandon(attempt, admitted.fence).await;
        }
        Ok((admitted.fence, plan?))
    }

    fn plan(
        &self,
        attempt: &Attempt<'_>,
        admitted: &Admitted,
        document: Option<&Document>,
    ) -> Result<Plan, Ended> {
        let now = self.ports.host.now();
        let known = Known {
            search_id: attempt.group.search_id,
            document,
            tokens: &admitted.tokens,
            fence: admitted.fence,
            attempt: attempt.id,
            minted: &attempt.minted,
            now,
            claim_until: self.ports.dispatcher.policy.claim_until(now),
        };
        plan::decide(&known, &attempt.group.messages).map_err(|error| match error {
            PlanError::Overtaken => Ended::Conflict,
            PlanError::Stage(_) | PlanError::TooFewTokens => Ended::BrokenOff(chain(&error)),
        })
    }

    /// Stores, dispatches and releases what was planned.
    async fn carry_out(&self, planned: Vec<Planned<'_>>) -> Vec<(usize, Ended)> {
        let (stored, mut ended) = self.persist_all(planned).await;
        let settlements = self.dispatch_all(&stored).await;
        let (released, cleared) = join(self.release_all(&stored), self.clear(settlements)).await;
        for (planned, released) in stored.into_iter().zip(released) {
            let done = match (released, &cleared) {
                (Ok(true), Ok(())) => Ended::Done(planned.plan.judgements),
                // What was not finished is finished by the next delivery: above all, the tokens have to go.
                (Ok(false), _) => Ended::BrokenOff("the lease was lost before the release".to_owned()),
                (Err(error), _) => Ended::BrokenOff(error.chain()),
                (Ok(true), Err(error)) => Ended::BrokenOff(error.chain()),
            };
            ended.push((planned.index, done));
        }
        ended
    }

    /// Makes all writes in one call. Returns the attempts whose plan now holds, and how the others ended.
    async fn persist_all<'a>(&self, planned: Vec<Planned<'a>>) -> (Vec<Planned<'a>>, Vec<(usize, Ended)>) {
        let writes: Vec<Persist> =
            planned.iter().filter_map(|planned| planned.plan.persist.clone()).collect();
        let mut answers = self.persist(&writes).await.into_iter();
        let (mut stored, mut ended) = (Vec::new(), Vec::new());
        for planned in planned {
            let answer = match planned.plan.persist {
                Some(_) => answers.next().unwrap_or_else(|| Err("the store gave no answer".to_owned())),
                None => Ok(Persisted::Stored),
            };
            match answer {
                Ok(Persisted::Stored) => stored.push(planned),
                Ok(Persisted::Conflict) => {
                    self.abandon(planned.attempt, planned.fence).await;
                    ended.push((planned.index, Ended::Conflict));
                }
                Err(why) => ended.push((planned.index, Ended::BrokenOff(why))),
            }
        }
        (stored, ended)
    }

    /// Makes the writes. When nobody knows whether they were made, the documents tell: each names the attempt that
    /// wrote it.
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
        let searches: Vec<SearchId> = writes.iter().map(|write| write.search_id).collect();
        match self.ports.read.load(&searches, now).await {
            Ok(documents) => writes
                .iter()
                .zip(documents)
                .map(|(write, document)| look_for(write, document.as_ref()).ok_or_else(|| error.chain()))
                .collect(),
            Err(_) => writes.iter().map(|_| Err(error.chain())).collect(),
        }
    }

    /// Performs the entries of all attempts together, and says how each attempt's are to be settled.
    async fn dispatch_all(&self, stored: &[Planned<'_>]) -> Vec<(SearchId, Vec<Settlement>)> {
        let owners: BTreeMap<MessageId, SearchId> = stored
            .iter()
            .flat_map(|planned| planned.plan.dispatch.iter().map(|entry| (entry.id, planned.search_id())))
            .collect();
        let entries: Vec<Entry> = stored.iter().flat_map(|planned| planned.plan.dispatch.clone()).collect();
        let mut settlements: BTreeMap<SearchId, Vec<Settlement>> = BTreeMap::new();
        for settlement in self.ports.dispatcher.perform(&entries).await {
            if let Some(search) = owners.get(&settlement.id) {
                settlements.entry(*search).or_default().push(settlement);
            }
        }
        settlements.into_iter().collect()
    }

    fn count_calls(&self, calls: usize) {
        self.ports.dispatcher.reporter.measure(Measure::StorageCalls, calls as u64);
    }

    async fn clear(&self, settlements: Vec<(SearchId, Vec<Settlement>)>) -> Result<(), StoreError> {
        if settlements.is_empty() {
            return Ok(());
        }
        self.count_calls(1);
        self.ports.write.settle(&settlements).await
    }

    async fn release_all(&self, stored: &[Planned<'_>]) -> Vec<Result<bool, StoreError>> {
        let now = self.ports.host.now();
        self.count_calls(stored.len());
        let releases: Vec<Release> = stored.iter().map(|planned| planned.release(now)).collect();
        join_all(releases.iter().map(|release| self.ports.ledger.release(release))).await
    }

    /// Gives the partition back after an attempt that certainly stored nothing: only its own mints go.
    async fn abandon(&self, attempt: &Attempt<'_>, fence: u64) {
        let release = Release {
            partition: attempt.group.search_id,
            attempt: attempt.id,
            fence,
            remove: attempt.minted.iter().cloned().collect(),
            ended: false,
            now: self.ports.host.now(),
        };
        self.count_calls(1);
        if let Err(error) = self.ports.ledger.release(&release).await {
            // The lease runs out by itself, and a later attempt collects the mints.
            attempt.group.warn(
                self.ports.dispatcher.reporter.function,
                &error.chain(),
                "giving a partition back failed",
            );
        }
    }
}

impl Planned<'_> {
    fn search_id(&self) -> SearchId {
        self.attempt.group.search_id
    }

    fn release(&self, now: Timestamp) -> Release {
        Release {
            partition: self.search_id(),
            attempt: self.attempt.id,
            fence: self.fence,
            remove: self.plan.remove.clone(),
            ended: self.plan.ended,
            now,
        }
    }
}

/// What the stored document says of a write whose answer was lost; nothing when the write may still arrive. Then
/// the partition must not be released: the lease has to run out first.
fn look_for(write: &Persist, document: Option<&Document>) -> Option<Persisted> {
    match document {
        Some(document) if document.content.attempt == write.content.attempt => Some(Persisted::Stored),
        document if document.map(|document| document.version) == write.loaded => None,
        _ => Some(Persisted::Conflict),
    }
}

fn duplicates(group: &Group) -> Vec<Judgement> {
    let judgement =
        Judgement { verdict: contracts::Verdict::Duplicate, why: "its token was used before".to_owned() };
    vec![judgement; group.messages.len()]
}
