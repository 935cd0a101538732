//! What an operator does with effects that were given up.

use std::collections::BTreeSet;
use std::sync::Arc;

use dedup::{Admission, Admitted, Claim, ClaimCondition, Release, ledger};
use jiff::{SignedDuration, Timestamp};
use messages::{AttemptId, Host, Message, PartitionKey, StoreError, Token};
use outbox::{Entry, InspectOutbox, Owner, Settlement};

use crate::document::Document;
use crate::ports::{Partitions, Stores};

/// Puts effects that were given up back to work.
///
/// By then the partition's ledger item may have expired, as after a restore, or of a partition that has not begun. A
/// requeued request's answer, or a timer's message, would count as a duplicate. So the tokens are granted again first.
/// Which ones follows from what is stored, and not from the entry: those that the document *expects*. A token leaves that
/// list in the very write that takes its message, so none of them was ever used; and garbage is what is not on it, so
/// none of them is collected. That makes it harmless to repeat.
#[derive(Clone)]
pub struct Operator {
    /// The documents, and the outboxes.
    pub stores: Stores,
    /// The ledger.
    pub partitions: Partitions,
    /// Time and ids.
    pub host: Arc<dyn Host>,
    /// How long a claim of a partition lasts at most.
    pub lease: SignedDuration,
}

/// Whether a partition could be prepared for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Access {
    /// It admits the message, unless the message was handled before.
    Gained,
    /// Somebody is inside, who leaves within the lease.
    Busy,
}

impl Operator {
    /// The outbox of a record.
    pub fn outbox(&self, owner: Owner) -> &dyn InspectOutbox {
        match owner {
            Owner::Saga(_) => self.stores.saga_outbox.as_ref(),
            Owner::Session(_) => self.stores.session_outbox.as_ref(),
        }
    }

    /// Requeues an entry, unless it was claimed or requeued since it was seen.
    ///
    /// # Errors
    /// When a store does not answer, or somebody is inside the partition just now. It may be repeated.
    pub async fn requeue(&self, owner: Owner, entry: &Entry) -> Result<(), StoreError> {
        match self.try_requeue(owner, entry).await? {
            Access::Gained => Ok(()),
            Access::Busy => Err(StoreError::unavailable(
                format!("putting entry {} of {owner} back to work", entry.id),
                "another worker is inside the partition; try again in a minute",
            )),
        }
    }

    /// Deletes an entry from its outbox, unless it was claimed or requeued since it was seen: what it should have done is never
    /// done. One that failed again in between is deleted too.
    ///
    /// # Errors
    /// When a store does not answer. It may be repeated.
    pub async fn discard(&self, owner: Owner, entry: &Entry) -> Result<(), StoreError> {
        let settlement = Settlement { id: entry.id, claim: entry.claimed_until, keep: None };
        self.outbox(owner).settle(&[(owner, vec![settlement])]).await
    }

    /// The same as [`Operator::requeue`], unless somebody is inside the partition just now.
    pub(crate) async fn try_requeue(&self, owner: Owner, entry: &Entry) -> Result<Access, StoreError> {
        if let Ok(message) = Message::decode(&entry.payload)
            && self.readmit(&message).await? == Access::Busy
        {
            return Ok(Access::Busy);
        }
        let keep = Some(entry.requeued(self.host.now()));
        let settlement = Settlement { id: entry.id, claim: entry.claimed_until, keep };
        self.outbox(owner).settle(&[(owner, vec![settlement])]).await?;
        Ok(Access::Gained)
    }

    /// Makes a message's partition admit again what it waits for, unless somebody is inside it just now.
    pub(crate) async fn readmit(&self, message: &Message) -> Result<Access, StoreError> {
        let partition = message.partition;
        let document = self.load(partition).await?;
        if let Some(token) = self.entry_token(message, &document).await? {
            // A token that is absent from an item which lives was used; such an item stays as it is.
            self.partitions.tokens.begin(partition, &[token], self.host.now()).await?;
        }
        self.admit(partition, document.as_ref()).await
    }

    /// Makes a partition admit again what its document waits for, unless somebody is inside it just now. It is for a
    /// database and a ledger that were restored to different times: tokens may be missing, and the ledger may count its
    /// fences from before the one that the document names.
    ///
    /// # Errors
    /// When a store does not answer. It may be repeated.
    pub async fn admit_awaited(&self, partition: PartitionKey) -> Result<Access, StoreError> {
        let document = self.load(partition).await?;
        self.admit(partition, document.as_ref()).await
    }

    async fn admit(
        &self,
        partition: PartitionKey,
        document: Option<&Document>,
    ) -> Result<Access, StoreError> {
        let expected = waits_for(document);
        if expected.is_empty() {
            return Ok(Access::Gained);
        }
        let attempt = AttemptId::from_uuid(self.host.random_id());
        let mint: Vec<Token> = expected.iter().cloned().collect();
        let Some(Admitted { fence, .. }) = self.claim(partition, attempt, document, &mint).await? else {
            return Ok(Access::Busy);
        };
        // Another worker may have used a token between the load and the claim; while the claim lasts none does.
        let latest = self.load(partition).await?;
        let still = waits_for(latest.as_ref());
        let remove: BTreeSet<Token> = expected.difference(&still).cloned().collect();
        let now = self.host.now();
        let until = latest.map(|document| document.content.waits_until(&document.outbox, now));
        let release = Release { partition, attempt, fence, remove, ended: false, until, now };
        // Should this fail, or come too late, the lease runs out by itself.
        self.partitions.ledger.release(&release).await?;
        Ok(Access::Gained)
    }

    /// The token of an event from an entry point, if it may never have been used: neither document nor view knows of it.
    async fn entry_token(
        &self,
        message: &Message,
        document: &Option<Document>,
    ) -> Result<Option<Token>, StoreError> {
        let Some(token) = message.token.clone().filter(|token| !token.is_from_attempt()) else {
            return Ok(None);
        };
        let was_used = match document {
            Some(document) => {
                let processed = document.content.processed.iter().any(|processed| processed.id == message.id);
                processed || document.content.ended_at.is_some()
            }
            None => self.stores.read_views.view(message.partition).await?.is_some_and(|view| view.ended),
        };
        Ok((!was_used).then_some(token))
    }

    /// An earlier version would hide what the partition waits for.
    async fn load(&self, partition: PartitionKey) -> Result<Option<Document>, StoreError> {
        self.stores.read_documents.load_latest(partition, self.host.now()).await
    }

    /// None when somebody is inside.
    async fn claim(
        &self,
        partition: PartitionKey,
        attempt: AttemptId,
        document: Option<&Document>,
        mint: &[Token],
    ) -> Result<Option<Admitted>, StoreError> {
        let now: Timestamp = self.host.now();
        let requires = ClaimCondition::Always;
        // What the document waits for is bounded by itself.
        let (lease, mint, room) = (self.lease, mint.to_vec(), usize::MAX);
        let finished = document.and_then(|document| document.content.finished());
        // An item that came into being just now counts its fences from the beginning, and workers that come after must not be
        // taken for ones that have lost the partition long ago.
        let fence = document.map_or(0, |document| document.content.fence);
        let until = document.map_or(now, |document| document.content.waits_until(&document.outbox, now));
        let claim = Claim {
            partition,
            attempt,
            now,
            lease,
            finished,
            requires,
            mint,
            room,
            fence,
            above: fence,
            until,
        };
        let (_, answer) = ledger::ask(self.partitions.ledger.as_ref(), claim).await?;
        Ok(match answer {
            Admission::Admitted(admitted) => Some(admitted),
            Admission::Busy { .. } | Admission::Duplicate | Admission::Moved { .. } => None,
        })
    }
}

/// The tokens that a document waits for.
fn waits_for(document: Option<&Document>) -> BTreeSet<Token> {
    let content = document.map(|document| &document.content).filter(|content| content.ended_at.is_none());
    content.into_iter().flat_map(|content| &content.expected).map(|expected| expected.token.clone()).collect()
}
