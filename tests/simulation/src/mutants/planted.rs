//! The planted defects.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dedup::ledger::{ITEM_LIFETIME, Item};
use dedup::{Admission, AdmittedClaim, Claim, ClaimCondition, Release, Tokens};
use jiff::Timestamp;
use messages::{
    AttemptId, Consumer, Delivery, Disposition, Host, Message, MessageId, Outgoing, PartitionKey, StoreError,
    Token,
};
use outbox::session::CONTROL;
use outbox::{Entry, Kind, Settlement};
use saga::{Content, Document, LoadResult, Persist, Settings};
use uuid::Uuid;

use crate::coverage::Call;
use crate::damage::is_of_later_release;
use crate::options::Mutant;
use crate::port::Port;
use crate::time::timestamp;
use crate::world::World;

/// The beginning of the reason of a postponed message, in the workload that is used for this defect.
const POSTPONED: &str = "postponed";
/// The beginning of the reason of a message for a paused instance.
const PAUSED: &str = "the instance was paused";

impl World {
    pub(crate) fn has(&self, mutant: Mutant) -> bool {
        self.config.mutant == Some(mutant)
    }

    /// Removes the effects that the attempt will perform itself, for the outbox in memory.
    pub(crate) fn stored_entries<'a>(&self, write: &'a Persist) -> impl Iterator<Item = &'a Entry> + use<'a> {
        let in_memory = self.has(Mutant::OutboxInMemory);
        write.add.iter().filter(move |entry| !(in_memory && entry.claimed_until.is_some()))
    }

    /// Replaces the tokens of a stored request each time it is sent again.
    pub(crate) fn mint_again(&mut self, entries: &mut [Entry]) {
        if !self.has(Mutant::TokensMintedAgain) {
            return;
        }
        for entry in entries.iter_mut().filter(|entry| entry.is_message()) {
            let Ok(mut message) = Message::decode(&entry.payload) else { continue };
            if message.reply_token.is_none() {
                continue;
            }
            let partition = message.reply_partition();
            let token = Token::minted_at_entry(partition, self.fresh_id());
            let queue = self.checks.queue_of(partition);
            self.application.embed_reply_token(&queue, &mut message.body, &token);
            if let Some(item) = self.items.get_mut(&partition) {
                item.tokens.insert(token.clone());
            }
            message.reply_token = Some(token);
            entry.payload = message.encode().unwrap_or_default();
        }
    }

    /// Records the answer to a claim, and consumes its token immediately.
    pub(crate) fn after_claim(&mut self, claim: &Claim, answer: &Admission) {
        if self.has(Mutant::TokenRemovedAtClaim)
            && let (Admission::Admitted(_), ClaimCondition::TokenPresent(token)) = (answer, &claim.requires)
            && let Some(item) = self.items.get_mut(&claim.partition)
        {
            item.tokens.remove(token);
        }
        if self.has(Mutant::LeaseByOwnClock)
            && let (Admission::Admitted(_), Ok(until)) = (answer, claim.now.checked_add(claim.lease))
        {
            self.mutants.leases.insert(claim.attempt, until);
        }
        if self.has(Mutant::GarbageWithoutPersist)
            && let Admission::Admitted(AdmittedClaim { tokens: Tokens::Listed(tokens), .. }) = answer
        {
            self.mutants.answers.insert(claim.attempt, tokens.clone());
        }
    }

    /// Records writes with an unknown outcome.
    pub(crate) fn in_doubt(&mut self, writes: &[Persist]) {
        let Some(process) = self.acting.filter(|_| self.has(Mutant::EarlierIsConflict)) else { return };
        let writes = writes.iter().map(|write| ((process, write.partition), write.clone()));
        self.mutants.in_doubt.extend(writes);
    }

    /// Records a new attempt of a worker.
    pub(crate) fn record_new_attempt(&mut self, partition: PartitionKey) {
        if let Some(process) = self.acting {
            self.mutants.in_doubt.remove(&(process, partition));
        }
    }

    /// Records the loaded documents, and makes a document that is not newer than an unknown write look like a newer
    /// write of another worker.
    pub(crate) fn mistake(&mut self, partition: PartitionKey, found: &mut Option<Document>) {
        let Some(process) = self.acting else { return };
        if self.has(Mutant::StaleDropBelieved) {
            self.mutants.loaded.insert((process, partition), found.clone());
        }
        if let Some(write) = self.mutants.in_doubt.get(&(process, partition))
            && found.as_ref().is_none_or(|document| Some(document.version) <= write.loaded)
        {
            let (version, outbox) = (write.version, Vec::new());
            let content = Content { attempt: AttemptId::from_uuid(Uuid::nil()), ..write.content.clone() };
            *found = Some(Document { partition, version, content, outbox });
        }
    }

    /// Removes an operator's decision from a document that a worker of a saga loads.
    pub(crate) fn disobey(&self, document: &mut Document) {
        if !self.acting.is_some_and(|worker| self.runs_saga[worker]) {
            return;
        }
        if self.has(Mutant::PauseIgnored) {
            document.content.paused = None;
        }
        if self.has(Mutant::TerminationIgnored) && document.content.terminated.take().is_some() {
            document.content.ended_at = None;
        }
    }

    pub(crate) fn after_load(&mut self, document: &Document) {
        if let (true, Some(process)) = (self.has(Mutant::GarbageWithoutPersist), self.acting) {
            let expected = document.content.expected.iter().map(|expected| expected.token.clone());
            self.mutants.expected.insert((process, document.partition), expected.collect());
        }
    }

    pub(crate) fn after_persist(&mut self, attempt: AttemptId) {
        if self.has(Mutant::GarbageWithoutPersist) {
            self.mutants.persisted.insert(attempt);
        }
    }

    fn is_within_own_lease(&self, release: &Release) -> bool {
        let now = self.acting.map_or_else(|| timestamp(self.now), |worker| self.time_of(worker));
        self.mutants.leases.get(&release.attempt).is_some_and(|until| *until > now)
    }

    pub(crate) fn forget_early(&self, item: &mut Item) {
        if self.has(Mutant::ItemForgottenAfterMonth) {
            let month = timestamp(self.now).checked_add(ITEM_LIFETIME).unwrap_or(item.expires_at);
            item.expires_at = item.expires_at.min(month);
        }
        if self.has(Mutant::ItemForgottenEarly) {
            let early = ITEM_LIFETIME - Settings::default().lease;
            item.expires_at = item.expires_at.checked_sub(early).unwrap_or(item.expires_at);
        }
    }

    /// Returns the claim to perform.
    pub(crate) fn mutated_claim(&self, claim: &Claim) -> Claim {
        let max_tokens = if self.has(Mutant::MintsWithoutRoom) { usize::MAX } else { claim.max_tokens };
        let inside = self.items.get(&claim.partition).and_then(|item| item.holder);
        let inside = inside.filter(|_| self.has(Mutant::NobodyIsWaitedFor));
        let supersedes = inside.map(|(attempt, _)| attempt).or(claim.supersedes);
        let item = self.items.get(&claim.partition).filter(|_| self.has(Mutant::ClaimWithoutFence));
        let fence = item.filter(|item| item.expires_at > claim.now).map_or(claim.fence, |item| item.fence);
        Claim { max_tokens, supersedes, fence, ..claim.clone() }
    }

    /// Returns `true` if an operator does not notice that its release was refused.
    pub(crate) fn is_refusal_missed(&self) -> bool {
        let is_operator = self.acting.is_some_and(|worker| !self.runs_saga[worker]);
        is_operator && self.has(Mutant::OperatorReleaseBelieved)
    }

    /// Returns `true` if a write only removes an expected message, and the defect omits this.
    pub(crate) fn is_omitted(&self, write: &Persist) -> bool {
        self.has(Mutant::DroppedIsAwaited)
            && self.documents.get(&write.partition).is_some_and(|stored| {
                let content = &stored.document.content;
                write.add.is_empty()
                    && content.state == write.content.state
                    && content.expected.len() > write.content.expected.len()
            })
    }

    /// Returns the entries that a write removes from the outbox.
    pub(crate) fn cancelled(&self, write: &Persist) -> Vec<MessageId> {
        let was_sent = |id: &&MessageId| self.checks.sent.contains_key(id);
        match self.has(Mutant::SentStays) {
            true => write.cancel.iter().filter(|id| !was_sent(id)).copied().collect(),
            false => write.cancel.clone(),
        }
    }

    /// Returns the release to perform.
    pub(crate) fn mutated_release(&self, release: &Release) -> Release {
        let mut release = release.clone();
        let item = self.items.get(&release.partition);
        if (self.has(Mutant::ReleaseWithoutFence) || self.is_within_own_lease(&release))
            && let Some(item) = item
        {
            release.fence = item.fence;
            release.attempt = item.holder.map_or(release.attempt, |(attempt, _)| attempt);
        }
        if self.has(Mutant::GarbageWithoutPersist) && !self.mutants.persisted.contains(&release.attempt) {
            let key = self.acting.map(|process| (process, release.partition));
            let expected = key.and_then(|key| self.mutants.expected.get(&key));
            let answer = self.mutants.answers.get(&release.attempt).into_iter().flatten();
            let needed = |token: &Token| expected.is_some_and(|expected| expected.contains(token));
            release.remove.extend(answer.filter(|token| token.is_from_attempt() && !needed(token)).cloned());
        }
        if self.has(Mutant::DroppedKeepsToken)
            && let Some(stored) = self.documents.get(&release.partition)
            && stored.document.content.attempt == release.attempt
            && !release.ended
        {
            let processed = &stored.document.content.processed;
            let is_known = |token: &Token| processed.iter().any(|known| known.token.as_ref() == Some(token));
            release.remove.retain(|token| token.is_from_attempt() || is_known(token));
        }
        release
    }
}

impl Port {
    /// Returns the settlements that are stored. Settlements of attempts remove an entry or contain its error.
    /// Settlements of takeovers do neither.
    pub(crate) fn stored_settlements(
        &self,
        settlements: &[(PartitionKey, Vec<Settlement>)],
    ) -> Vec<(PartitionKey, Vec<Settlement>)> {
        let mut stored = settlements.to_vec();
        if self.has(Mutant::TakeoverIsNotStored) {
            let is_takeover = |of: &Settlement| of.keep.as_ref().is_some_and(|entry| entry.error.is_none());
            stored.iter_mut().for_each(|(_, some)| some.retain(|of| !is_takeover(of)));
        }
        stored
    }

    /// Returns the loaded documents, or an error if one is unreadable and the defect fails all of them.
    pub(crate) fn all_or_nothing(&self, loaded: Vec<LoadResult>) -> Result<Vec<LoadResult>, StoreError> {
        if self.has(Mutant::UnreadableFailsBatch) {
            return loaded.into_iter().map(|one| one.map(Ok)).collect();
        }
        Ok(loaded)
    }

    pub(crate) fn has(&self, mutant: Mutant) -> bool {
        self.universe.with(|world| world.has(mutant))
    }

    /// Sends the messages of a write before it is made.
    pub(crate) async fn send_early(&self, writes: &[Persist]) {
        if !self.has(Mutant::SentBeforePersisted) {
            return;
        }
        let urgent = writes.iter().flat_map(|write| &write.add).filter(|entry| entry.claimed_until.is_some());
        for entry in urgent {
            let Kind::Message(queue) = &entry.kind else { continue };
            let Ok(message) = Message::decode(&entry.payload) else { continue };
            if let Ok(outgoing) = Outgoing::new(&message, queue.clone(), Duration::ZERO) {
                // A failure does not matter, because the message is sent again.
                let _ = self.call(Call::QUEUE_SEND, move |world| world.send(&outgoing)).await;
            }
        }
    }

    /// Removes the messages that are about to be sent from the outbox.
    pub(crate) async fn clear_early(&self, messages: &[Outgoing]) {
        if !self.has(Mutant::ClearedBeforeSending) {
            return;
        }
        let owner = |message: &Outgoing| {
            self.universe.with(|world| world.checks.owner_of(message.partition, message.id))
        };
        let ids: Vec<_> = messages.iter().map(|message| (owner(message), message.id)).collect();
        let clear = move |world: &mut World| {
            for (partition, id) in ids {
                if let Some(stored) = world.documents.get_mut(&partition) {
                    stored.document.outbox.retain(|entry| entry.id != id);
                }
            }
        };
        let _ = self.call(Call::SAGA_SETTLE, clear).await;
    }

    /// Returns the messages to send, with new ids for the mutant that does not derive them from the cause.
    pub(crate) fn renamed(&self, messages: &[Outgoing]) -> Vec<Outgoing> {
        let mut messages = messages.to_vec();
        if self.has(Mutant::RandomEffectIds) {
            let effects = messages.iter_mut().filter(|message| message.queue != CONTROL);
            for outgoing in effects {
                let id: Uuid = self.perform(World::fresh_id);
                outgoing.body = outgoing.body.replace(&outgoing.id.to_string(), &id.to_string());
                outgoing.id = MessageId::from_uuid(id);
            }
        }
        messages
    }
}

/// Returns a consumer. If this defect is planted, a wrapper around the consumer retries everything or refuses unknown
/// messages.
pub(crate) fn around(port: &Port, consumer: Arc<dyn Consumer>) -> Arc<dyn Consumer> {
    if port.has(Mutant::RetryOnEveryError) {
        Arc::new(RetryingConsumer { port: port.clone(), consumer })
    } else if port.has(Mutant::LaterVersionRefused) {
        Arc::new(RefusingConsumer { consumer })
    } else if port.has(Mutant::PostponedIsDropped) {
        Arc::new(ImpatientConsumer { consumer, drops: POSTPONED })
    } else if port.has(Mutant::PausedIsDropped) {
        Arc::new(ImpatientConsumer { consumer, drops: PAUSED })
    } else {
        consumer
    }
}

/// Dead-letters messages of a newer version.
struct RefusingConsumer {
    consumer: Arc<dyn Consumer>,
}

#[async_trait]
impl Consumer for RefusingConsumer {
    async fn consume(&self, batch: &[Delivery], deadline: Option<Timestamp>) -> Vec<Disposition> {
        let mut answers = self.consumer.consume(batch, deadline).await;
        for (delivery, answer) in batch.iter().zip(&mut answers) {
            if is_of_later_release(&delivery.body) {
                *answer = Disposition::DeadLetter { reason: "nobody knows it".to_owned() };
            }
        }
        answers
    }
}

/// Acknowledges messages that are postponed for a reason with this beginning.
struct ImpatientConsumer {
    consumer: Arc<dyn Consumer>,
    drops: &'static str,
}

#[async_trait]
impl Consumer for ImpatientConsumer {
    async fn consume(&self, batch: &[Delivery], deadline: Option<Timestamp>) -> Vec<Disposition> {
        let mut answers = self.consumer.consume(batch, deadline).await;
        for answer in &mut answers {
            if matches!(answer, Disposition::Retry { reason, .. } if reason.starts_with(self.drops)) {
                *answer = Disposition::Acknowledge;
            }
        }
        answers
    }
}

/// Retries all failures in place, and not only conflicts.
struct RetryingConsumer {
    port: Port,
    consumer: Arc<dyn Consumer>,
}

#[async_trait]
impl Consumer for RetryingConsumer {
    async fn consume(&self, batch: &[Delivery], deadline: Option<Timestamp>) -> Vec<Disposition> {
        let mut answers = self.consumer.consume(batch, deadline).await;
        for delay in Settings::default().conflict_delays {
            for (delivery, answer) in batch.iter().zip(&mut answers) {
                if matches!(answer, Disposition::Retry { .. }) {
                    self.port.sleep(delay).await;
                    let again = self.consumer.consume(std::slice::from_ref(delivery), None).await;
                    *answer = again.into_iter().next().unwrap_or_else(|| answer.clone());
                }
            }
        }
        answers
    }
}
