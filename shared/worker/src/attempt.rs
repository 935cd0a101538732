//! One attempt at one group of messages, step by step.

use contracts::{AttemptId, SearchId, StoreError, Token};
use dedup::{Admission, Admitted, Claim, Release};
use futures::future::join;
use jiff::Timestamp;
use outbox::Settlement;

use crate::document::{Document, Persist, Persisted};
use crate::group::Worker;
use crate::plan::{self, Incoming, Judgement, Known, Plan, PlanError};

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// All steps were done.
    Done(Vec<Judgement>),
    /// Another worker is inside the partition.
    Busy,
    /// Another worker stored something in between. A new attempt may go better.
    Conflict,
}

/// Why an attempt was broken off. Its messages are to be delivered again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttemptError {
    /// A store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The decision could not be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// The claim that an attempt works under.
struct Held<'a> {
    search_id: SearchId,
    attempt: AttemptId,
    minted: &'a [Token],
    admitted: Admitted,
}

impl Worker {
    /// Makes one attempt, from the claim on.
    pub(crate) async fn attempt(
        &self,
        search_id: SearchId,
        group: &[Incoming],
    ) -> Result<Ended, AttemptError> {
        let attempt = AttemptId::from_uuid(self.ports.host.fresh_id());
        let minted = plan::mint(group, &attempt);
        let claim = self.claim(search_id, attempt, group, &minted);
        let (admission, loaded) =
            join(self.ports.ledger.claim(&claim), self.load(search_id, claim.now)).await;
        let admitted = match admission? {
            Admission::Admitted(admitted) => admitted,
            Admission::Busy { .. } => return Ok(Ended::Busy),
            Admission::Duplicate => return Ok(Ended::Done(duplicates(group))),
        };
        let held = Held { search_id, attempt, minted: &minted, admitted };
        let plan = match loaded
            .map_err(AttemptError::from)
            .and_then(|document| self.decide(&held, group, document.as_ref()))
        {
            Ok(plan) => plan,
            Err(error) => {
                self.abandon(&held).await;
                return Err(error);
            }
        };
        self.carry_out(&held, plan).await
    }

    fn claim(&self, partition: SearchId, attempt: AttemptId, group: &[Incoming], minted: &[Token]) -> Claim {
        Claim {
            partition,
            attempt,
            now: self.ports.host.now(),
            lease: self.settings.lease,
            requires: plan::requirement(group),
            mint: minted.to_vec(),
        }
    }

    async fn load(&self, search_id: SearchId, now: Timestamp) -> Result<Option<Document>, StoreError> {
        Ok(self.ports.read.load(&[search_id], now).await?.pop().flatten())
    }

    fn decide(
        &self,
        held: &Held<'_>,
        group: &[Incoming],
        document: Option<&Document>,
    ) -> Result<Plan, AttemptError> {
        let now = self.ports.host.now();
        let known = Known {
            search_id: held.search_id,
            document,
            tokens: &held.admitted.tokens,
            attempt: held.attempt,
            minted: held.minted,
            now,
            claim_until: self.ports.dispatcher.policy.claim_until(now),
        };
        Ok(plan::decide(&known, group)?)
    }

    async fn carry_out(&self, held: &Held<'_>, plan: Plan) -> Result<Ended, AttemptError> {
        if let Some(persist) = &plan.persist
            && self.persist(persist).await? == Persisted::Conflict
        {
            self.abandon(held).await;
            return Ok(Ended::Conflict);
        }
        let settlements = self.ports.dispatcher.perform(&plan.dispatch).await;
        let (released, cleared) =
            join(self.release(held, &plan), self.clear(held.search_id, settlements)).await;
        released?;
        cleared?;
        Ok(Ended::Done(plan.judgements))
    }

    /// Makes the write. When nobody knows whether it was made, the document tells: each write names its attempt.
    async fn persist(&self, persist: &Persist) -> Result<Persisted, StoreError> {
        let now = self.ports.host.now();
        match self.ports.write.persist(std::slice::from_ref(persist), now).await {
            Ok(answers) => Ok(answers.into_iter().next().unwrap_or(Persisted::Conflict)),
            Err(error) => match self.load(persist.search_id, now).await? {
                Some(document) if document.content.attempt == persist.content.attempt => {
                    Ok(Persisted::Stored)
                }
                // It may still arrive, and the partition must not be released before its lease ends.
                document if document.as_ref().map(|document| document.version) == persist.loaded => {
                    Err(error)
                }
                _ => Ok(Persisted::Conflict),
            },
        }
    }

    async fn clear(&self, search_id: SearchId, settlements: Vec<Settlement>) -> Result<(), StoreError> {
        if settlements.is_empty() {
            return Ok(());
        }
        self.ports.write.settle(&[(search_id, settlements)]).await
    }

    async fn release(&self, held: &Held<'_>, plan: &Plan) -> Result<bool, StoreError> {
        let release = Release {
            partition: held.search_id,
            attempt: held.attempt,
            fence: held.admitted.fence,
            remove: plan.remove.clone(),
            ended: plan.ended,
            now: self.ports.host.now(),
        };
        self.ports.ledger.release(&release).await
    }

    /// Gives the partition back after an attempt that certainly stored nothing: only its own mints go.
    async fn abandon(&self, held: &Held<'_>) {
        let release = Release {
            partition: held.search_id,
            attempt: held.attempt,
            fence: held.admitted.fence,
            remove: held.minted.iter().cloned().collect(),
            ended: false,
            now: self.ports.host.now(),
        };
        if let Err(error) = self.ports.ledger.release(&release).await {
            // The lease runs out by itself, and a later attempt collects the mints.
            tracing::warn!(search_id = %held.search_id, error = %error.chain(), "giving a partition back failed");
        }
    }
}

fn duplicates(group: &[Incoming]) -> Vec<Judgement> {
    let judgement =
        Judgement { verdict: contracts::Verdict::Duplicate, why: "its token was used before".to_owned() };
    vec![judgement; group.len()]
}
