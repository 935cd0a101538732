//! Operator actions on exhausted and dead-lettered effects.

use std::collections::BTreeSet;
use std::sync::Arc;

use dedup::ledger::{ITEM_LIFETIME, SLACK};
use dedup::{Admission, AdmittedClaim, CheckTokens, Claim, ClaimCondition, Release, Tokens, ledger};
use jiff::{SignedDuration, Timestamp};
use messages::{AttemptId, Host, Message, PartitionKey, StoreError, Token};
use outbox::{Entry, InspectOutbox, Owner, Settlement};

use crate::document::{Content, Document, ExpectedMessage, Persist, PersistOutcome, next_version};
use crate::ports::{Outboxes, Partitions, Stores};
use crate::system::MissingSetting;

/// Requeues or deletes effects that are exhausted or dead-lettered.
///
/// By that time the partition's ledger item may be missing: after a restore, after its expiry, or because the partition
/// has not started. The reply to a requeued request, or the message of a timer, would then be dropped as a duplicate.
/// Therefore the tokens are restored first. The operation grants the tokens that the stored document *expects*. A token
/// leaves that list in the write that accepts its message, so no token on the list was used. The garbage collection
/// removes only tokens that are not on the list, so it keeps the restored ones. Repeating the operation is harmless.
#[derive(Clone)]
pub struct Operator {
    /// Documents and outboxes.
    pub stores: Stores,
    /// The ledger.
    pub partitions: Partitions,
    /// Reports which tokens a partition still admits. It is needed for events that waited for so long that the ledger
    /// may have forgotten them.
    pub check_tokens: Result<Arc<dyn CheckTokens>, MissingSetting>,
    /// Clock and random ids.
    pub host: Arc<dyn Host>,
    /// Maximum duration of a claim of a partition.
    pub lease: SignedDuration,
}

/// The result of preparing a partition for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Readmission {
    /// The partition admits the message, unless the message was already processed.
    Granted,
    /// Another worker holds the partition, for at most the lease.
    Busy,
    /// The partition does not show whether the message was processed, so the message must not be sent again.
    Forgotten,
}

/// The error of [`Readmission::Forgotten`].
pub(crate) const FORGOTTEN: &str = "the partition has forgotten whether this message was processed, because the message is more \
    than a month old, or its instance has ended; inspect its state, then delete this message, and send the event again \
    if it is missing";

/// The replies that a partition admits after a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmittedReplies {
    /// The replies that the instance's document expects.
    Expected,
    /// No replies are admitted, because the data that a reply reports may be lost.
    None,
}

impl AdmittedReplies {
    /// Returns the tokens that a partition with this document admits.
    fn tokens(self, document: Option<&Document>) -> BTreeSet<Token> {
        let content = document.map(|document| &document.content).filter(|content| content.ended_at.is_none());
        let expected = content.into_iter().flat_map(|content| &content.expected);
        let is_admitted =
            |by: ExpectedMessage| self == Self::Expected || matches!(by, ExpectedMessage::Timeout(_));
        expected.filter(|expected| is_admitted(expected.by)).map(|expected| expected.token.clone()).collect()
    }
}

/// The state of a message as an event from an entry point, as far as its partition shows it.
enum EntryEvent {
    /// The message was used, or is not an event from an entry point.
    Used,
    /// The message may have been used.
    MayBeUsed,
    /// The message was not used. The token of the message may have to be granted again.
    Open(Token),
}

/// The treatment of tokens that attempts have minted and that the document does not contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnknownTokens {
    /// The tokens are kept, because a delayed worker may be about to store a document that contains them.
    Keep,
    /// The tokens are removed.
    Remove,
}

impl Operator {
    /// Returns the outbox of a record.
    pub fn outbox(&self, owner: Owner) -> &dyn InspectOutbox {
        Outboxes::from(owner).of(&self.stores)
    }

    /// Requeues an entry, unless it was claimed or requeued after it was read.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable or another worker holds the partition. The call may be repeated. The
    /// error is permanent if the partition may have processed the message ([`Readmission::Forgotten`]).
    pub async fn requeue(&self, owner: Owner, entry: &Entry) -> Result<(), StoreError> {
        let doing = || format!("putting entry {} of {owner} back to work", entry.id);
        match self.try_requeue(owner, entry).await? {
            Readmission::Granted => Ok(()),
            Readmission::Busy => {
                let why = "another worker is inside the partition; try again in a minute";
                Err(StoreError::unavailable(doing(), why))
            }
            Readmission::Forgotten => Err(StoreError::unusable(doing(), FORGOTTEN)),
        }
    }

    /// Deletes an entry from its outbox without performing its effect, unless it was claimed or requeued after it was
    /// read. The operator also deletes an entry that failed again in between.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable. The call may be repeated.
    pub async fn discard(&self, owner: Owner, entry: &Entry) -> Result<(), StoreError> {
        let settlement = Settlement { id: entry.id, claim: entry.claimed_until, keep: None };
        self.outbox(owner).settle(&[(owner, vec![settlement])]).await
    }

    /// Requeues an entry like [`Operator::requeue`] if its partition admits the message. Otherwise nothing changes, and
    /// the outcome states the reason.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable. The call may be repeated.
    pub async fn try_requeue(&self, owner: Owner, entry: &Entry) -> Result<Readmission, StoreError> {
        if let Ok(message) = Message::decode(&entry.payload)
            && let refused @ (Readmission::Busy | Readmission::Forgotten) =
                self.restore_token(&message).await?
        {
            return Ok(refused);
        }
        let keep = Some(entry.requeued(self.host.now()));
        let settlement = Settlement { id: entry.id, claim: entry.claimed_until, keep };
        self.outbox(owner).settle(&[(owner, vec![settlement])]).await?;
        Ok(Readmission::Granted)
    }

    /// Restores the tokens that a message's partition expects, unless another worker holds the partition.
    pub(crate) async fn restore_token(&self, message: &Message) -> Result<Readmission, StoreError> {
        let partition = message.partition;
        let document = self.load(partition).await?;
        match self.entry_event(message, document.as_ref()).await? {
            EntryEvent::Used => {}
            EntryEvent::MayBeUsed => return Ok(Readmission::Forgotten),
            // If the ledger item exists without the token, the token was used. The operator does not change such an
            // item.
            EntryEvent::Open(token) => {
                self.partitions.tokens.begin(partition, &[token], self.host.now()).await?;
            }
        }
        let receiver =
            self.admit(partition, document.as_ref(), AdmittedReplies::Expected, UnknownTokens::Keep).await?;
        // The reply to a request between sagas has another partition.
        let replies_to = message.reply_partition();
        if receiver == Readmission::Busy || replies_to == partition {
            return Ok(receiver);
        }
        let requester = self.load(replies_to).await?;
        self.admit(replies_to, requester.as_ref(), AdmittedReplies::Expected, UnknownTokens::Keep).await
    }

    /// Aligns the ledger of a partition with its document, unless a worker holds the partition. The functions must be
    /// stopped. It is needed after a database and a ledger were restored to different times:
    ///
    /// - The ledger may lack tokens that the document expects.
    /// - The ledger may contain tokens of a later document. A reply to a command of that document would be accepted as
    ///   the reply to a later command.
    /// - The fence of the ledger may be lower than the fence of the document.
    /// - Without a document, the ledger may contain tokens of a document that the restore has removed.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable. The call can be repeated.
    pub async fn align(
        &self,
        partition: PartitionKey,
        replies: AdmittedReplies,
    ) -> Result<Readmission, StoreError> {
        match self.load(partition).await? {
            None => self.remove_attempt_tokens(partition).await,
            document => self.admit(partition, document.as_ref(), replies, UnknownTokens::Remove).await,
        }
    }

    /// Removes the tokens of attempts from the ledger item of a partition without a document.
    ///
    /// Until an attempt stores a document, it has handed out none of its tokens. Each of these tokens is therefore
    /// unused, or belongs to a message of a document that the restore has removed. Such a message would be admitted,
    /// and an attempt without capacity for new tokens would hand out its token again.
    async fn remove_attempt_tokens(&self, partition: PartitionKey) -> Result<Readmission, StoreError> {
        let attempt = AttemptId::from_uuid(self.host.random_id());
        let claim = self.new_claim(partition, attempt, None, Vec::new());
        let claim = Claim { requires: ClaimCondition::ItemExists, ..claim };
        let admitted = match ledger::ask(self.partitions.ledger.as_ref(), claim).await?.1 {
            Admission::Admitted(admitted) => admitted,
            Admission::Duplicate => return Ok(Readmission::Granted),
            Admission::Busy { .. } | Admission::Moved { .. } => return Ok(Readmission::Busy),
        };
        let remove = match admitted.tokens {
            Tokens::Listed(tokens) => tokens.into_iter().filter(Token::is_from_attempt).collect(),
            Tokens::Unchecked => BTreeSet::new(),
        };
        let (fence, now) = (admitted.fence, self.host.now());
        let release = Release { partition, attempt, fence, remove, ended: false, until: None, now };
        Ok(match self.partitions.ledger.release(&release).await? {
            true => Readmission::Granted,
            false => Readmission::Busy,
        })
    }

    async fn admit(
        &self,
        partition: PartitionKey,
        document: Option<&Document>,
        replies: AdmittedReplies,
        unknown: UnknownTokens,
    ) -> Result<Readmission, StoreError> {
        let expected = replies.tokens(document);
        let is_open = document.is_some_and(|document| document.content.ended_at.is_none());
        if !is_open || (expected.is_empty() && unknown == UnknownTokens::Keep) {
            return Ok(Readmission::Granted);
        }
        let attempt = AttemptId::from_uuid(self.host.random_id());
        let Some(held) = self.claim(partition, attempt, document, expected.into_iter().collect()).await?
        else {
            return Ok(Readmission::Busy);
        };
        let Some((held, latest)) = self.grant_expected(held, replies).await? else {
            return Ok(Readmission::Busy);
        };
        let admitted = held.admitted;
        let expected = replies.tokens(latest.as_ref());
        let remove = match (unknown, &admitted.tokens) {
            (UnknownTokens::Remove, Tokens::Listed(tokens)) => {
                let listed = tokens.iter().filter(|token| token.is_from_attempt());
                listed.filter(|token| !expected.contains(*token)).cloned().collect()
            }
            _ => BTreeSet::new(),
        };
        let (fence, now) = (admitted.fence, self.host.now());
        // A document admits the replies that it expects even if the ledger lacks their tokens.
        if let (AdmittedReplies::None, Some(document)) = (replies, latest.as_ref())
            && self.stop_expecting_replies(document, attempt, fence).await? == PersistOutcome::Conflict
        {
            return Ok(Readmission::Busy);
        }
        let ended = latest.as_ref().is_some_and(|document| document.content.ended_at.is_some());
        let until = latest.map(|document| document.content.waits_until(&document.outbox, now));
        let release = Release { partition, attempt, fence, remove, ended, until, now };
        // If this fails or is late, the lease expires.
        self.partitions.ledger.release(&release).await?;
        Ok(Readmission::Granted)
    }

    /// Grants the tokens that the latest document expects and the ledger lacks, and returns that document. Returns
    /// `None` if another worker has taken the partition over.
    ///
    /// The second claim names the fence of the first one, so it is refused if another worker has claimed the partition
    /// in between. Only an attempt that has lost its lease can end the instance at the same fence. Its release is
    /// refused, so its message is redelivered, and that attempt removes all tokens. If the end was stored before the
    /// second load, the operator removes them.
    async fn grant_expected(
        &self,
        held: HeldPartition,
        replies: AdmittedReplies,
    ) -> Result<Option<(HeldPartition, Option<Document>)>, StoreError> {
        let partition = held.claim.partition;
        let latest = self.load(partition).await?;
        if held.is_overtaken(latest.as_ref()) {
            return Ok(None);
        }
        let mut missing = replies.tokens(latest.as_ref());
        missing.retain(|token| !held.admitted.tokens.admit(token));
        if missing.is_empty() {
            return Ok(Some((held, latest)));
        }
        let Some(held) = self.claim_again(held, missing).await? else { return Ok(None) };
        let latest = self.load(partition).await?;
        Ok((!held.is_overtaken(latest.as_ref())).then_some((held, latest)))
    }

    /// Stores the document without the replies that it expects.
    async fn stop_expecting_replies(
        &self,
        document: &Document,
        attempt: AttemptId,
        fence: u64,
    ) -> Result<PersistOutcome, StoreError> {
        let admitted = AdmittedReplies::None.tokens(Some(document));
        let mut expected = document.content.expected.clone();
        expected.retain(|expected| admitted.contains(&expected.token));
        if expected.len() == document.content.expected.len() {
            return Ok(PersistOutcome::Stored);
        }
        let content = Content { expected, attempt, fence, keeps_claim: false, ..document.content.clone() };
        let (partition, loaded) = (document.partition, Some(document.version));
        let (now, add, cancel) = (self.host.now(), Vec::new(), Vec::new());
        let version = next_version(loaded, now);
        let write = Persist { partition, loaded, version, content, add, cancel };
        let persisted = self.stores.write_documents.persist(&[write], now).await?;
        // A store that returns no outcome for a write has not stored it.
        Ok(persisted.into_iter().next().unwrap_or(PersistOutcome::Conflict))
    }

    /// Returns the state of an event from an entry point, by the document, the view and the ledger.
    async fn entry_event(
        &self,
        message: &Message,
        document: Option<&Document>,
    ) -> Result<EntryEvent, StoreError> {
        let Some(token) = message.token.clone().filter(|token| !token.is_from_attempt()) else {
            return Ok(EntryEvent::Used);
        };
        let may_be_used = match document {
            Some(document) => {
                let processed = document.content.processed.iter().any(|processed| processed.id == message.id);
                if processed || document.content.ended_at.is_some() {
                    return Ok(EntryEvent::Used);
                }
                self.may_be_forgotten(message, &token).await?
            }
            None => match self.stores.read_views.view(message.partition).await? {
                // The instance has not begun.
                Some(view) if !view.ended => false,
                // The instance has ended, and its document has expired. If the token of the event that ended the
                // instance was not removed, the event would begin the instance again.
                Some(_) => {
                    if !self.is_granted(message, &token).await? {
                        return Ok(EntryEvent::Used);
                    }
                    true
                }
                // The instance has not begun, or it has no view.
                None => self.may_be_forgotten(message, &token).await?,
            },
        };
        Ok(if may_be_used { EntryEvent::MayBeUsed } else { EntryEvent::Open(token) })
    }

    /// Returns `true` if the ledger may have forgotten the token of an event, used or not. An idle partition's item
    /// expires, together with its tokens, and the document names a processed message only until a later one is admitted.
    async fn may_be_forgotten(&self, message: &Message, token: &Token) -> Result<bool, StoreError> {
        // A claim that processed the message came after its creation, and extended the item's lifetime.
        let lived_until = message.time.checked_add(ITEM_LIFETIME - SLACK).unwrap_or(Timestamp::MAX);
        Ok(lived_until <= self.host.now() && !self.is_granted(message, token).await?)
    }

    async fn is_granted(&self, message: &Message, token: &Token) -> Result<bool, StoreError> {
        let check = self.check_tokens.as_ref();
        let check = check.map_err(|missing| StoreError::unavailable("checking a token", missing.clone()))?;
        check.is_granted(message.partition, token, self.host.now()).await
    }

    /// Loads the latest version of the document: an older one would lack tokens that the partition expects.
    pub(crate) async fn load(&self, partition: PartitionKey) -> Result<Option<Document>, StoreError> {
        self.stores.read_documents.load_latest(partition, self.host.now()).await
    }

    /// Claims the partition. Returns `None` if another worker holds it.
    ///
    /// The operator grants the tokens that the document expects. They are granted only if no other attempt has claimed
    /// the partition since the document was written, or if the ledger has forgotten the partition. Otherwise the
    /// instance may have ended in between. A request that arrives late, or whose answer is lost, would leave the tokens
    /// with the ended instance.
    pub(crate) async fn claim(
        &self,
        partition: PartitionKey,
        attempt: AttemptId,
        document: Option<&Document>,
        tokens: Vec<Token>,
    ) -> Result<Option<HeldPartition>, StoreError> {
        let claim = self.new_claim(partition, attempt, document, tokens);
        let (claim, answer) = ledger::ask_with(self.partitions.ledger.as_ref(), claim, granted_at).await?;
        Ok(HeldPartition::of(claim, answer))
    }

    fn new_claim(
        &self,
        partition: PartitionKey,
        attempt: AttemptId,
        document: Option<&Document>,
        tokens: Vec<Token>,
    ) -> Claim {
        let now: Timestamp = self.host.now();
        // A newly created ledger item restarts its fence. Without this minimum, later workers would look as if they had
        // lost the lease.
        let fence = document.map_or(0, |document| document.content.fence);
        Claim {
            partition,
            attempt,
            now,
            lease: self.lease,
            supersedes: document.and_then(|document| document.content.finished()),
            requires: ClaimCondition::Always,
            new_tokens: tokens,
            // The number of expected tokens is already limited by the document.
            max_tokens: usize::MAX,
            fence,
            above: fence,
            until: document.map_or(now, |document| document.content.waits_until(&document.outbox, now)),
        }
    }

    /// Claims a held partition again, and grants these tokens. Returns `None` if another worker has claimed the
    /// partition since then.
    async fn claim_again(
        &self,
        held: HeldPartition,
        tokens: BTreeSet<Token>,
    ) -> Result<Option<HeldPartition>, StoreError> {
        let HeldPartition { claim, admitted } = held;
        let (now, fence) = (self.host.now(), admitted.fence);
        let claim = Claim { now, fence, new_tokens: tokens.into_iter().collect(), ..claim };
        let answer = self.partitions.ledger.claim(&claim).await?;
        Ok(HeldPartition::of(claim, answer))
    }
}

/// Returns the claim at the fence of a refusal, without its tokens if another attempt has claimed the partition. The
/// fence is 0 if the ledger has forgotten the partition.
fn granted_at(mut claim: Claim, fence: u64, expires_at: Timestamp) -> Claim {
    if fence != claim.fence && fence != 0 {
        claim.new_tokens.clear();
    }
    claim.at(fence, expires_at)
}

/// A partition that the operator holds.
pub(crate) struct HeldPartition {
    /// The claim as it was granted.
    claim: Claim,
    /// The ledger's answer.
    pub(crate) admitted: AdmittedClaim,
}

impl HeldPartition {
    fn of(claim: Claim, answer: Admission) -> Option<Self> {
        match answer {
            Admission::Admitted(admitted) => Some(Self { claim, admitted }),
            Admission::Busy { .. } | Admission::Duplicate | Admission::Moved { .. } => None,
        }
    }

    /// Returns `true` if a later claim wrote the document. Without a ledger, claims are not numbered.
    pub(crate) fn is_overtaken(&self, document: Option<&Document>) -> bool {
        let fence = self.admitted.fence;
        fence > 0 && document.is_some_and(|document| document.content.fence >= fence)
    }
}
