//! Deduplication for an entity without a saga: a record of the application that messages change.
//!
//! The sender obtains a token for each message ([`Entities::issue`]) and sends it with the message. The receiver loads
//! the entity, claims its partition with the token ([`Entities::admit`]), stores the change together with
//! [`Visit::receipts`], and releases the token ([`Entities::complete`]). A duplicate is detected at any age, because
//! its token is absent or in the receipts.
//!
//! # What the application has to do
//! - The application loads the entity *before* it calls [`Entities::admit`].
//! - The application stores the change and the receipts in one write, on condition that the stored version is the
//!   loaded one. If the condition fails, another worker came first: drop the visit, and handle the message again.
//! - The application calls [`Entities::complete`] only after the write. A crash before the call costs one lease.
//!
//! # Why a message takes effect once
//! A token leaves the ledger only after a write that contains it as a receipt. Until then, every later write keeps the
//! receipt, because the claim reports the tokens that are still in the ledger. Therefore, a duplicate finds its token
//! absent, or its receipt stored. Two workers at the same time have loaded the same version, and only one of their
//! writes succeeds.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use messages::{AttemptId, Host, PartitionKey, StoreError, Token};
use serde::{Deserialize, Serialize};

use crate::ledger::{Admission, Claim, ClaimCondition, ClaimPartition, GrantTokens, Release, Tokens, ask};

/// The entities of an application, each with one partition of the ledger.
#[derive(Clone)]
pub struct Entities {
    /// Claims and releases partitions.
    pub ledger: Arc<dyn ClaimPartition>,
    /// Grants tokens.
    pub tokens: Arc<dyn GrantTokens>,
    /// The clock, and random ids.
    pub host: Arc<dyn Host>,
    /// The time after which another worker may take over a claim: longer than a message takes.
    pub lease: SignedDuration,
}

/// The messages whose effects an entity contains, as far as their tokens may still be in the ledger. The application
/// stores them with the entity. The default belongs to an entity that no message has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipts {
    /// The fence of the claim under which the entity was last written.
    fence: u64,
    /// The tokens of the messages that changed the entity.
    tokens: BTreeSet<Token>,
}

/// The answer to a message.
#[derive(Debug)]
pub enum Entry {
    /// The message is new: change the entity.
    Admitted(Visit),
    /// The message took effect before: acknowledge it.
    Duplicate,
    /// Another worker holds the entity: deliver the message again later.
    Busy {
        /// The end of the holder's lease.
        until: Timestamp,
    },
}

/// An admitted message, and the claim of its entity. If it is dropped, the claim ends with its lease, and the message
/// is admitted again.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Visit {
    partition: PartitionKey,
    attempt: AttemptId,
    token: Token,
    receipts: Receipts,
    released: BTreeSet<Token>,
}

impl Entities {
    /// Issues the permission for one message to take effect once. The sender sends it with the message.
    ///
    /// Each call permits a further message. A client that repeats a request after a timeout sends two messages, unless
    /// it repeats the same token. A message that is delivered for the first time more than 30 days later counts as a
    /// duplicate ([`crate::ledger::ITEM_LIFETIME`]).
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The call may be repeated; it then issues another token.
    pub async fn issue(&self, entity: PartitionKey) -> Result<Token, StoreError> {
        let token = Token::minted_at_entry(entity, self.host.random_id());
        self.tokens.grant(entity, std::slice::from_ref(&token), self.host.now()).await?;
        Ok(token)
    }

    /// Withdraws permissions that were issued for messages which are not sent. Otherwise they remain in the ledger.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The call may be repeated.
    pub async fn revoke(&self, entity: PartitionKey, tokens: &[Token]) -> Result<(), StoreError> {
        self.tokens.revoke(entity, tokens, self.host.now()).await
    }

    /// Claims an entity for a message. `stored` are the receipts of the entity, loaded before this call.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The entity may be claimed; the claim ends with its lease. Returns a
    /// permanent error if the token was issued for another entity: the message is faulty, and no duplicate.
    pub async fn admit(
        &self,
        entity: PartitionKey,
        token: &Token,
        stored: &Receipts,
    ) -> Result<Entry, StoreError> {
        if !token.is_for(entity) {
            let doing = format!("admitting a message to entity {entity}");
            return Err(StoreError::unusable(doing, "its token was issued for another entity"));
        }
        let attempt = AttemptId::from_uuid(self.host.fresh_id());
        let claim = stored.claim(entity, attempt, token, self.host.now(), self.lease);
        let (_, admission) = ask(self.ledger.as_ref(), claim).await?;
        match stored.entry(entity, attempt, token, admission) {
            Entry::Admitted(visit) if visit.took_effect_before() => {
                self.complete(visit).await?;
                Ok(Entry::Duplicate)
            }
            entry => Ok(entry),
        }
    }

    /// Releases the entity after the change is stored. The token of the message is used up.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The message may be acknowledged nevertheless: its receipt
    /// is stored.
    pub async fn complete(&self, visit: Visit) -> Result<(), StoreError> {
        self.ledger.release(&visit.release(self.host.now())).await.map(drop)
    }

    /// Releases the entity without a change. The message is admitted again.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The claim then ends with its lease.
    pub async fn abandon(&self, visit: Visit) -> Result<(), StoreError> {
        let release = Release { remove: BTreeSet::new(), ..visit.release(self.host.now()) };
        self.ledger.release(&release).await.map(drop)
    }
}

impl Receipts {
    fn claim(
        &self,
        partition: PartitionKey,
        attempt: AttemptId,
        token: &Token,
        now: Timestamp,
        lease: SignedDuration,
    ) -> Claim {
        Claim {
            partition,
            attempt,
            now,
            lease,
            supersedes: None,
            requires: ClaimCondition::TokenPresent(token.clone()),
            new_tokens: Vec::new(),
            max_tokens: 0,
            fence: self.fence,
            above: self.fence,
            until: now,
        }
    }

    fn entry(&self, partition: PartitionKey, attempt: AttemptId, token: &Token, answer: Admission) -> Entry {
        let admitted = match answer {
            Admission::Admitted(admitted) => admitted,
            Admission::Duplicate => return Entry::Duplicate,
            Admission::Busy { until } => return Entry::Busy { until },
            // Other workers were faster each time, which is equivalent to busy.
            Admission::Moved { .. } => return Entry::Busy { until: Timestamp::UNIX_EPOCH },
        };
        let kept = |token: &&Token| match &admitted.tokens {
            Tokens::Listed(listed) => listed.contains(*token),
            Tokens::Unchecked => true,
        };
        let released: BTreeSet<Token> = self.tokens.iter().filter(kept).cloned().collect();
        let receipts = Self { fence: admitted.fence, tokens: released.clone() };
        Entry::Admitted(Visit { partition, attempt, token: token.clone(), receipts, released })
    }
}

impl Visit {
    /// Returns the receipts to store with the change of the entity, in the same write.
    pub fn receipts(&self) -> Receipts {
        let mut receipts = self.receipts.clone();
        receipts.tokens.insert(self.token.clone());
        receipts
    }

    /// Returns `true` if the entity contains the effect already, and only the release is missing.
    fn took_effect_before(&self) -> bool {
        self.receipts.tokens.contains(&self.token)
    }

    fn release(self, now: Timestamp) -> Release {
        let mut remove = self.released;
        remove.insert(self.token);
        let (partition, attempt, fence) = (self.partition, self.attempt, self.receipts.fence);
        Release { partition, attempt, fence, remove, ended: false, until: None, now }
    }
}

#[cfg(test)]
mod tests;
