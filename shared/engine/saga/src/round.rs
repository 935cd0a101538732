//! One round: one attempt at each of several groups, step by step and concurrently.
//!
//! Each group has its own attempt, claim and plan. The groups share the calls: one load, one write, one settlement, and
//! one send for every ten messages. A group that fails at a step (a duplicate, a busy partition, a conflict) leaves the
//! round; the others continue.
//!
//! Loading comes before claiming, because the document can save calls to the ledger. It shows which messages are
//! already processed, and which attempt has finished and kept its claim, so that the next one need not wait for the
//! lease.

use std::collections::{BTreeMap, BTreeSet};

use dedup::{Admission, AdmittedClaim, Claim, Release, ledger};
use futures::future::{join, join_all};
use jiff::Timestamp;
use messages::panics::contain;
use messages::store::chain;
use messages::{AttemptId, MessageId, Metric, PartitionKey, Payload, StoreError, Token};
use outbox::{Entry, Settlement};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::document::{Document, LoadResult, Persist, PersistOutcome};
use crate::instance::{by_partition, grant_all};
use crate::plan::{self, IncomingEvent, MessageDecision, Plan, PlanError, PlanInput, TokenDemand, admission};
use crate::ports::Ports;
use crate::settings::Settings;
use crate::state_machine::Saga;

/// A saga with its ports and settings, which makes attempts at groups of messages.
pub(crate) struct Runner<S> {
    pub(crate) saga: S,
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
}

/// Messages of one partition, in order.
pub(crate) struct Group<E> {
    pub(crate) partition: PartitionKey,
    pub(crate) messages: Vec<IncomingEvent<E>>,
    /// The tokens that an attempt needs, once this is known.
    pub(crate) demand: Option<TokenDemand>,
    /// The place of each message.
    pub(crate) places: Vec<BatchPlace>,
}

/// The place of a message in its batch.
#[derive(Clone, Copy)]
pub(crate) struct BatchPlace {
    pub(crate) index: usize,
    pub(crate) receive_count: u32,
}

#[derive(Debug)]
pub(crate) enum AttemptOutcome {
    /// All steps are done.
    Done(Vec<MessageDecision>),
    /// Another worker holds the partition.
    Busy,
    /// Another worker stored a change in between. A new attempt may succeed.
    Conflict,
    /// The attempt had too few tokens; a new one needs this many.
    TooFewTokens(TokenDemand),
    /// A store is unavailable. The messages are redelivered. Holds the reason for the log.
    BrokenOff(String),
    /// The messages themselves are the cause: the state machine panics, or the result cannot be stored. Each message of
    /// the group is attempted alone. Holds the reason for the log.
    Faulty(String),
    /// This version cannot read the document. The messages wait for a version that can read the document. Holds the
    /// reason for the log.
    Unreadable(String),
}

/// The attempt at one group.
struct Attempt<'a, S: Saga> {
    group: &'a Group<S::Event>,
    id: AttemptId,
    minted: Vec<Token>,
    now: Timestamp,
    /// The loaded document; possibly an earlier version.
    document: Option<Document<S::State>>,
    /// The index of the group in the round.
    index: usize,
}

/// The claim as it was made last, and the ledger's answer.
type ClaimAnswer = Result<(Claim, Admission), StoreError>;

/// An admitted attempt with its plan.
struct PlannedAttempt<'a, S: Saga> {
    attempt: Attempt<'a, S>,
    fence: u64,
    plan: Plan<S::State>,
}

impl<S: Saga> Runner<S> {
    /// Makes one attempt at each group, all steps included. Returns one outcome for each, in order.
    pub(crate) async fn round(&self, groups: &[&Group<S::Event>]) -> Vec<AttemptOutcome> {
        let mut ended: Vec<Option<AttemptOutcome>> = groups.iter().map(|_| None).collect();
        let mut open = Vec::new();
        for (index, (group, loaded)) in groups.iter().zip(self.load(groups).await).enumerate() {
            match self.begin(group, loaded, index) {
                Ok(attempt) => open.push(attempt),
                Err(why) => ended[index] = Some(why),
            }
        }
        let admissions = self.claim(&open).await;
        let mut planned = Vec::new();
        for (attempt, admission) in open.into_iter().zip(admissions) {
            let index = attempt.index;
            match self.plan(attempt, admission).await {
                Ok(plan) => planned.push(plan),
                Err(why) => ended[index] = Some(why),
            }
        }
        let granted = self.grant(planned, &mut ended).await;
        let stored = self.store(granted, &mut ended).await;
        let taken_over = self.take_over(&stored).await;
        let settlements = self.send(&stored, taken_over.is_ok()).await;
        self.release(stored, settlements, &taken_over, &mut ended).await;
        let lost = || AttemptOutcome::BrokenOff("the group was not attempted".to_owned());
        ended.into_iter().map(|ended| ended.unwrap_or_else(lost)).collect()
    }

    /// Loads the documents of all groups in one call.
    async fn load(&self, groups: &[&Group<S::Event>]) -> Vec<Result<LoadResult, String>> {
        let partitions: Vec<PartitionKey> = groups.iter().map(|group| group.partition).collect();
        self.count_calls(1);
        match self.ports.read.load(&partitions, self.ports.host.now()).await {
            Ok(loaded) => loaded.into_iter().map(Ok).collect(),
            Err(error) => groups.iter().map(|_| Err(error.chain())).collect(),
        }
    }

    /// Begins an attempt, unless the document shows that nothing is left to do, or cannot be read.
    fn begin<'a>(
        &self,
        group: &'a Group<S::Event>,
        loaded: Result<LoadResult, String>,
        index: usize,
    ) -> Result<Attempt<'a, S>, AttemptOutcome> {
        let document = self.open(loaded.map_err(AttemptOutcome::BrokenOff)?)?;
        let now = self.ports.host.now();
        // A redelivery of finished work costs one load and no call to the ledger.
        let done =
            document.as_ref().and_then(|document| plan::already_processed(document, &group.messages, now));
        if let Some(decisions) = done {
            return Err(AttemptOutcome::Done(decisions));
        }
        let id = AttemptId::from_uuid(self.ports.host.random_id());
        let events: Vec<&S::Event> = group.messages.iter().map(|incoming| &incoming.event).collect();
        let count =
            contain(|| group.demand.map_or_else(|| self.saga.tokens(&events), |demand| demand.tokens));
        let count = count.map_err(|panicked| AttemptOutcome::Faulty(panicked.to_string()))?;
        // Tokens are minted before the decision, so that the claim can add them to the ledger in the same call.
        let minted = admission::mint(group.partition, &id, count);
        Ok(Attempt { group, id, minted, now, document, index })
    }

    fn open(&self, loaded: LoadResult) -> Result<Option<Document<S::State>>, AttemptOutcome> {
        let unreadable = |error: StoreError| AttemptOutcome::Unreadable(error.chain());
        let stored = loaded.map_err(|error| match error.is_retryable() {
            true => AttemptOutcome::BrokenOff(error.chain()),
            false => unreadable(error),
        })?;
        // No version of this saga can read the instance, so another attempt would not help.
        if let Some(why) = stored.as_ref().and_then(|document| document.other_saga(&S::Event::QUEUE)) {
            return Err(AttemptOutcome::Faulty(why));
        }
        let opened = contain(|| stored.map(|document| document.open(&self.saga)).transpose());
        opened.map_err(|panicked| AttemptOutcome::Unreadable(panicked.to_string()))?.map_err(unreadable)
    }

    /// Claims the partition of each attempt.
    async fn claim(&self, attempts: &[Attempt<'_, S>]) -> Vec<ClaimAnswer> {
        join_all(attempts.iter().map(|attempt| self.claim_one(attempt))).await
    }

    async fn claim_one(&self, attempt: &Attempt<'_, S>) -> ClaimAnswer {
        let (claim, answer) = self.ask(self.claim_of(attempt)).await?;
        if answer != Admission::Duplicate {
            return Ok((claim, answer));
        }
        // The ledger may have forgotten the partition although its document still waits for the message. The claim is
        // then repeated without a condition; the conditional write protects against an outdated document.
        let (document, group) = (attempt.document.as_ref(), &attempt.group.messages);
        match admission::condition_if_expected(&claim.requires, document, group) {
            Some(requires) => self.ask(Claim { requires, ..claim }).await,
            None => Ok((claim, answer)),
        }
    }

    async fn ask(&self, claim: Claim) -> ClaimAnswer {
        self.count_calls(1);
        let fence = claim.fence;
        let answered = ledger::ask_with(self.ports.ledger.as_ref(), claim, admission::claim_at).await;
        // The document holds the latest fence, unless an attempt in between claimed the partition and stored nothing.
        // In that case the claim took a second call.
        let was_moved = answered.as_ref().is_ok_and(|(claim, _)| claim.fence != fence);
        self.count_calls(usize::from(was_moved));
        answered
    }

    fn claim_of(&self, attempt: &Attempt<'_, S>) -> Claim {
        // An earlier attempt may have found that the document expects more messages than the maximum number of tokens
        // in the settings. Its demand then raises the maximum, because otherwise no attempt would ever get the tokens
        // that it needs.
        Claim {
            partition: attempt.group.partition,
            attempt: attempt.id,
            now: attempt.now,
            lease: self.settings.lease,
            supersedes: attempt.document.as_ref().and_then(|document| document.content.finished()),
            requires: admission::condition(&attempt.group.messages),
            new_tokens: attempt.minted.clone(),
            max_tokens: attempt
                .group
                .demand
                .map_or(self.settings.max_tokens, |demand| demand.capacity.max(self.settings.max_tokens)),
            fence: attempt.fence(),
            above: attempt.fence(),
            until: attempt.waits_until(),
        }
    }

    /// Returns the plan of an admitted attempt, or the outcome of an attempt that ends here.
    async fn plan<'a>(
        &self,
        attempt: Attempt<'a, S>,
        answered: ClaimAnswer,
    ) -> Result<PlannedAttempt<'a, S>, AttemptOutcome> {
        let (claim, admitted) = match answered {
            Ok((claim, Admission::Admitted(admitted))) => (claim, admitted),
            // The claim was repeated at the latest fence. If the fence moved again, other workers are claiming the
            // partition.
            Ok((_, Admission::Busy { .. } | Admission::Moved { .. })) => {
                self.contended(&attempt, Metric::BUSY_PARTITIONS, "another worker holds the partition");
                return Err(AttemptOutcome::Busy);
            }
            Ok((_, Admission::Duplicate)) => {
                return Err(AttemptOutcome::Done(plan::all_duplicates(&attempt.group.messages)));
            }
            // The claim may have been granted. It is not released, because its lease expires by itself.
            Err(error) => return Err(AttemptOutcome::BrokenOff(error.chain())),
        };
        let expires_at = claim.expires_at();
        let attempt = Attempt { id: claim.attempt, minted: claim.new_tokens, ..attempt };
        match self.decide_with_reread(&attempt, &admitted, expires_at).await {
            Ok(plan) => Ok(PlannedAttempt { attempt, fence: admitted.fence, plan }),
            Err(ended) => {
                if matches!(ended, AttemptOutcome::Conflict) {
                    self.contended(
                        &attempt,
                        Metric::CONFLICTS,
                        "another worker has taken the partition over",
                    );
                }
                // Without a document, the minted tokens stay: any attempt may hand them out, see
                // [`plan::token_capacity`]. After a conflict, the tokens also remain, because the worker that overtook
                // this attempt may have handed them out already.
                let is_conflict = matches!(ended, AttemptOutcome::Conflict);
                let remove = if is_conflict { Vec::new() } else { attempt.own_tokens() };
                self.abandon(&attempt, admitted.fence, remove).await;
                Err(ended)
            }
        }
    }

    /// Decides, and decides again on the latest document if a message would be dropped because of a document that may
    /// be outdated.
    async fn decide_with_reread(
        &self,
        attempt: &Attempt<'_, S>,
        admitted: &AdmittedClaim,
        expires_at: Timestamp,
    ) -> Result<Plan<S::State>, AttemptOutcome> {
        let input = self.input(attempt, admitted, attempt.document.as_ref(), expires_at);
        let plan = self.decide(&input, attempt)?;
        if !plan.needs_reread() || input.is_latest() {
            return Ok(plan);
        }
        // A plan with a write needs no second load, because a write on top of an earlier version is refused.
        self.count_calls(1);
        let partition = attempt.group.partition;
        let latest = self.open(self.ports.read.load_latest(partition, self.ports.host.now()).await)?;
        let version = |document: Option<&Document<S::State>>| document.map(|document| document.version);
        if version(latest.as_ref()) == version(attempt.document.as_ref()) {
            return Ok(plan);
        }
        self.contended(attempt, Metric::STALE_LOADS, "an earlier version of the document was loaded");
        self.decide(&self.input(attempt, admitted, latest.as_ref(), expires_at), attempt)
    }

    fn input<'a>(
        &'a self,
        attempt: &'a Attempt<'_, S>,
        admitted: &'a AdmittedClaim,
        document: Option<&'a Document<S::State>>,
        expires_at: Timestamp,
    ) -> PlanInput<'a, S::State> {
        let now = self.ports.host.now();
        PlanInput {
            function: self.ports.dispatcher.reporter.function,
            partition: attempt.group.partition,
            document,
            tokens: &admitted.tokens,
            fence: admitted.fence,
            attempt: attempt.id,
            minted: &attempt.minted,
            now,
            claim_until: self.ports.dispatcher.policy.claim_until(now),
            max_leftover: self.settings.max_leftover,
            expires_at,
        }
    }

    fn decide(
        &self,
        input: &PlanInput<'_, S::State>,
        attempt: &Attempt<'_, S>,
    ) -> Result<Plan<S::State>, AttemptOutcome> {
        let planned = contain(|| plan::decide(&self.saga, input, &attempt.group.messages));
        planned.map_err(|panicked| AttemptOutcome::Faulty(panicked.to_string()))?.map_err(|error| match error
        {
            PlanError::Overtaken => AttemptOutcome::Conflict,
            PlanError::TooFewTokens(demand) => AttemptOutcome::TooFewTokens(demand),
            PlanError::Stage(_)
            | PlanError::Broken(_)
            | PlanError::Unawaited(_)
            | PlanError::TooManyLists(_) => AttemptOutcome::Faulty(chain(&error)),
        })
    }

    /// Grants the tokens of events for other partitions, before the writes that store the events. Returns the attempts
    /// that may continue.
    async fn grant<'a>(
        &self,
        planned: Vec<PlannedAttempt<'a, S>>,
        ended: &mut [Option<AttemptOutcome>],
    ) -> Vec<PlannedAttempt<'a, S>> {
        let now = self.ports.host.now();
        let grants = planned.iter().map(async |planned| {
            let tokens = by_partition(&planned.plan.grants);
            if tokens.is_empty() {
                return Ok(());
            }
            self.count_calls(tokens.len());
            grant_all(self.ports.tokens.as_ref(), &tokens, now).await
        });
        let answers = join_all(grants).await;
        let mut granted = Vec::new();
        for (planned, answer) in planned.into_iter().zip(answers) {
            match answer {
                Ok(()) => granted.push(planned),
                // No message will carry the tokens that were granted. They are removed when their partition ends.
                Err(error) => {
                    self.abandon(&planned.attempt, planned.fence, planned.attempt.own_tokens()).await;
                    ended[planned.attempt.index] = Some(AttemptOutcome::BrokenOff(error.chain()));
                }
            }
        }
        granted
    }

    /// Makes all writes in one call. Returns the attempts whose plan is stored or needs no write.
    async fn store<'a>(
        &self,
        mut planned: Vec<PlannedAttempt<'a, S>>,
        ended: &mut [Option<AttemptOutcome>],
    ) -> Vec<PlannedAttempt<'a, S>> {
        let mut writes = Vec::new();
        // The result for each attempt: `true` if the attempt has a write, or the reason why its state cannot be
        // serialized.
        let waiting: Vec<Result<bool, String>> = planned
            .iter_mut()
            .map(|planned| {
                let closed = close(planned.plan.persist.take());
                closed.map(|write| write.map(|write| writes.push(write)).is_some())
            })
            .collect();
        let mut answers = self.persist(&writes).await.into_iter();
        let mut stored = Vec::new();
        for (planned, waits) in planned.into_iter().zip(waiting) {
            let answer = match waits {
                Ok(true) => answers
                    .next()
                    .unwrap_or_else(|| Err(AttemptOutcome::BrokenOff("the store gave no answer".to_owned()))),
                Ok(false) => Ok(PersistOutcome::Stored),
                Err(why) => Err(AttemptOutcome::Faulty(why)),
            };
            match answer {
                Ok(PersistOutcome::Stored) => stored.push(planned),
                Ok(PersistOutcome::Conflict) => {
                    let what = "another worker has changed the partition";
                    self.contended(&planned.attempt, Metric::CONFLICTS, what);
                    // The minted tokens are not removed: the other worker may have handed them out.
                    self.abandon(&planned.attempt, planned.fence, Vec::new()).await;
                    ended[planned.attempt.index] = Some(AttemptOutcome::Conflict);
                }
                // A state that cannot be serialized, or that the store has refused, is not stored. Other messages of the
                // group must not wait for the lease.
                Err(AttemptOutcome::Faulty(why)) => {
                    self.abandon(&planned.attempt, planned.fence, Vec::new()).await;
                    ended[planned.attempt.index] = Some(AttemptOutcome::Faulty(why));
                }
                // After an unknown outcome the write may still be made, so the claim is kept until its lease expires.
                Err(why) => ended[planned.attempt.index] = Some(why),
            }
        }
        stored
    }

    /// Makes the writes. If a call fails with an unknown outcome, the documents are read again: each contains the
    /// attempt that wrote it.
    ///
    /// If a store refuses one of several writes permanently, it may refuse all writes of the call, so each is then made
    /// alone.
    async fn persist(&self, writes: &[Persist]) -> Vec<Result<PersistOutcome, AttemptOutcome>> {
        let (answers, is_refused) = self.try_to_persist(writes).await;
        if !is_refused || writes.len() < 2 {
            return answers;
        }
        let alone = writes.iter().zip(answers).map(async |(write, answer)| match answer {
            Err(_) => {
                let (mut answers, _) = self.try_to_persist(std::slice::from_ref(write)).await;
                answers.pop().unwrap_or(answer)
            }
            answer => answer,
        });
        join_all(alone).await
    }

    /// Makes the writes in one call. The flag is `true` if the store refuses the call permanently.
    async fn try_to_persist(
        &self,
        writes: &[Persist],
    ) -> (Vec<Result<PersistOutcome, AttemptOutcome>>, bool) {
        if writes.is_empty() {
            return (Vec::new(), false);
        }
        let now = self.ports.host.now();
        self.count_calls(1);
        let error = match self.ports.write.persist(writes, now).await {
            Ok(answers) => return (answers.into_iter().map(Ok).collect(), false),
            Err(error) => error,
        };
        // The answer may have been lost after the write was made, so a failed call does not mean that nothing is
        // stored.
        let failed = || match error.is_retryable() {
            true => AttemptOutcome::BrokenOff(error.chain()),
            false => AttemptOutcome::Faulty(error.chain()),
        };
        self.count_calls(1);
        let partitions: Vec<PartitionKey> = writes.iter().map(|write| write.partition).collect();
        let answers = match self.ports.read.load(&partitions, now).await {
            Ok(loaded) => writes
                .iter()
                .zip(loaded)
                .map(|(write, loaded)| {
                    loaded.ok().and_then(|found| resolve_unknown_write(write, found.as_ref()))
                })
                .map(|found| found.ok_or_else(failed))
                .collect(),
            Err(_) => writes.iter().map(|_| Err(failed())).collect(),
        };
        (answers, !error.is_retryable())
    }

    /// Takes over the entries that other workers left, in one call.
    async fn take_over(&self, stored: &[PlannedAttempt<'_, S>]) -> Result<(), StoreError> {
        let taken = stored.iter().filter(|planned| !planned.plan.takeovers.is_empty());
        let taken: Vec<_> =
            taken.map(|planned| (planned.partition(), planned.plan.takeovers.clone())).collect();
        if taken.is_empty() {
            return Ok(());
        }
        self.count_calls(1);
        self.ports.write.settle(&taken).await
    }

    /// Performs the entries of all attempts together, so that messages of several partitions share a call. Entries that
    /// could not be taken over are left. Returns the settlements by partition.
    async fn send(
        &self,
        stored: &[PlannedAttempt<'_, S>],
        has_taken_over: bool,
    ) -> Vec<(PartitionKey, Vec<Settlement>)> {
        let performed = stored.iter().filter(|planned| has_taken_over || planned.plan.takeovers.is_empty());
        let owners: BTreeMap<MessageId, PartitionKey> = performed
            .clone()
            .flat_map(|planned| planned.plan.dispatch.iter().map(|entry| (entry.id, planned.partition())))
            .collect();
        let entries: Vec<Entry> = performed.flat_map(|planned| planned.plan.dispatch.clone()).collect();
        let mut settlements: BTreeMap<PartitionKey, Vec<Settlement>> = BTreeMap::new();
        for settlement in self.ports.dispatcher.perform(&entries).await {
            if let Some(partition) = owners.get(&settlement.id) {
                settlements.entry(*partition).or_default().push(settlement);
            }
        }
        settlements.into_iter().collect()
    }

    /// Releases the partitions that do not keep their claim, and settles the outboxes at the same time.
    async fn release(
        &self,
        stored: Vec<PlannedAttempt<'_, S>>,
        settlements: Vec<(PartitionKey, Vec<Settlement>)>,
        taken_over: &Result<(), StoreError>,
        ended: &mut [Option<AttemptOutcome>],
    ) {
        let now = self.ports.host.now();
        // The calls are independent. If a worker dies after the release and before the settlement, the entries stay in
        // the outbox and are performed again.
        let release = |planned: &PlannedAttempt<'_, S>| {
            let release = planned.plan.releases_claim.then(|| planned.release(now))?;
            // The tokens stay for the redelivery, which takes the entries over.
            let is_left = taken_over.is_err() && !planned.plan.takeovers.is_empty();
            Some(if is_left { Release { remove: BTreeSet::new(), ended: false, ..release } } else { release })
        };
        let releases: Vec<Option<Release>> = stored.iter().map(release).collect();
        self.count_calls(releases.iter().flatten().count() + usize::from(!settlements.is_empty()));
        let released = join_all(releases.iter().map(async |release| match release {
            Some(release) => self.ports.ledger.release(release).await,
            None => Ok(true),
        }));
        let cleared = async {
            if settlements.is_empty() { Ok(()) } else { self.ports.write.settle(&settlements).await }
        };
        let (released, cleared) = join(released, cleared).await;
        for (planned, released) in stored.into_iter().zip(released) {
            let cleared = match taken_over {
                Err(_) if !planned.plan.takeovers.is_empty() => taken_over,
                _ => &cleared,
            };
            ended[planned.attempt.index] = Some(match (released, cleared) {
                (Ok(true), Ok(())) => match planned.plan.retry_with {
                    Some(demand) => AttemptOutcome::TooFewTokens(demand),
                    None => AttemptOutcome::Done(planned.plan.decisions),
                },
                // A redelivery completes the rest, in particular removing the tokens.
                (Ok(false), _) => {
                    AttemptOutcome::BrokenOff("the lease was lost before the release".to_owned())
                }
                (Err(error), _) => AttemptOutcome::BrokenOff(error.chain()),
                (Ok(true), Err(error)) => AttemptOutcome::BrokenOff(error.chain()),
            });
        }
    }

    /// Releases the partition after an attempt that certainly stored nothing. A later attempt removes the minted tokens
    /// that are not in `remove`.
    async fn abandon(&self, attempt: &Attempt<'_, S>, fence: u64, remove: Vec<Token>) {
        let release = Release {
            partition: attempt.group.partition,
            attempt: attempt.id,
            fence,
            remove: remove.into_iter().collect(),
            ended: false,
            until: None,
            now: self.ports.host.now(),
        };
        self.count_calls(1);
        if let Err(error) = self.ports.ledger.release(&release).await {
            // No retry: the lease expires by itself.
            self.warn(attempt.group, &error.chain(), "releasing a partition failed");
        }
    }

    /// Logs a failure with the first of the group's messages.
    pub(crate) fn warn(&self, group: &Group<S::Event>, error: &str, what: &'static str) {
        let (function, correlation_id) = (self.ports.dispatcher.reporter.function, group.partition);
        let message_id = group.messages.first().map(|incoming| incoming.message.id.to_string());
        tracing::warn!(function, %correlation_id, message_id, error, "{what}");
    }

    /// Counts and logs an attempt that lost against another worker.
    fn contended(&self, attempt: &Attempt<'_, S>, measure: Metric, what: &'static str) {
        let reporter = &self.ports.dispatcher.reporter;
        reporter.measure(measure, 1);
        let (function, correlation_id, attempt) = (reporter.function, attempt.group.partition, attempt.id);
        tracing::info!(function, %correlation_id, %attempt, "{what}");
    }

    fn count_calls(&self, calls: usize) {
        self.ports.dispatcher.reporter.measure(Metric::STORAGE_CALLS, calls as u64);
    }
}

impl<S: Saga> Attempt<'_, S> {
    /// Returns the fence of the document; 0 without one.
    fn fence(&self) -> u64 {
        self.document.as_ref().map_or(0, |document| document.content.fence)
    }

    /// Returns the tokens that only this attempt may hand out: the tokens that it minted for an existing document.
    fn own_tokens(&self) -> Vec<Token> {
        if self.document.is_some() { self.minted.clone() } else { Vec::new() }
    }

    fn waits_until(&self) -> Timestamp {
        let document = self.document.as_ref();
        document.map_or(self.now, |document| document.content.waits_until(&document.outbox, self.now))
    }
}

impl<S: Saga> PlannedAttempt<'_, S> {
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
            until: self.plan.until,
            now,
        }
    }
}

/// Serializes the state if the attempt has a write.
fn close<S: Serialize + DeserializeOwned>(write: Option<Persist<S>>) -> Result<Option<Persist>, String> {
    let closed = contain(|| write.map(Persist::close).transpose());
    closed
        .map_err(|panicked| panicked.to_string())?
        .map_err(|error| format!("the state cannot be represented in JSON: {error}"))
}

/// Determines from the document whether a write with an unknown outcome was made. Returns `None` if it may still be on
/// its way, or was made after the version that was read. In this case, the partition must not be released: its lease
/// has to expire first.
fn resolve_unknown_write(write: &Persist, document: Option<&Document>) -> Option<PersistOutcome> {
    let document = document?;
    let is_later = write.loaded.is_none_or(|loaded| document.version > loaded);
    match document.content.attempt == write.content.attempt {
        true => Some(PersistOutcome::Stored),
        false => is_later.then_some(PersistOutcome::Conflict),
    }
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
            queue: None,
            ended_at: None::<Timestamp>,
            processed: Vec::new(),
            expected: Vec::new(),
            timers: BTreeMap::new(),
            attempt: AttemptId::from_uuid(Uuid::from_u128(attempt)),
            fence: 1,
            keeps_claim: false,
            paused: None,
            terminated: None,
        }
    }

    /// The write belongs to attempt 1, on top of version 4.
    #[test]
    fn only_later_version_proves_lost_write() {
        let partition = PartitionKey::from_uuid(Uuid::from_u128(1));
        let (add, cancel) = (Vec::new(), Vec::new());
        let write = Persist { partition, loaded: Some(4), version: 5, content: content(1), add, cancel };
        let found = |version, attempt| {
            let document = Document { partition, version, content: content(attempt), outbox: Vec::new() };
            resolve_unknown_write(&write, Some(&document))
        };
        assert_eq!(found(5, 1), Some(PersistOutcome::Stored));
        assert_eq!(found(5, 2), Some(PersistOutcome::Conflict));
        assert_eq!(
            [found(4, 2), found(3, 2), resolve_unknown_write(&write, None)],
            [None; 3],
            "it may still be on its way"
        );
    }
}
