//! The partition ledger: the holder of each partition, and the messages that it still admits.
//!
//! [`Item::claim`] and [`Item::release`] define claims and releases as pure functions over one ledger item. A store
//! with transactions runs them in one. A store without (DynamoDB) expresses the same rules as the conditions of a
//! single update.

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use messages::{AttemptId, PartitionKey, StoreError, Token};
use serde::{Deserialize, Serialize};

/// The time by which a ledger item outlives the last message that its partition waits for: 30 days. This is twice the
/// maximum retention of a queue (14 days, and the age continues in the dead-letter queue;
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>). When the item
/// expires, its tokens are absent too, so no old message is admitted.
pub const ITEM_LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The end of a wait without a deadline, 1 January 2200: late enough for every reply, and within the range of every
/// store.
pub const OPEN_END: Timestamp = Timestamp::constant(7_258_118_400, 0);

/// The time by which an item may outlast its required lifetime, so that differing clocks cost no extra call.
pub const SLACK: SignedDuration = SignedDuration::from_hours(1);

/// The maximum number of claims with the fence of the last refusal. Each refusal means that another worker came first.
const CLAIMS: usize = 4;

/// A request for the exclusive use of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The partition.
    pub partition: PartitionKey,
    /// The attempt that claims the partition.
    pub attempt: AttemptId,
    /// The time of the request.
    pub now: Timestamp,
    /// The maximum duration of the claim.
    pub lease: SignedDuration,
    /// An attempt whose change is stored, according to the partition's document. If it still holds the partition, the
    /// claim is granted nevertheless, because that attempt changes nothing any more and releases the partition only in
    /// special cases.
    pub supersedes: Option<AttemptId>,
    /// The condition of the claim.
    pub requires: ClaimCondition,
    /// New tokens for the messages that the partition may expect afterwards.
    pub new_tokens: Vec<Token>,
    /// The maximum number of tokens in the item for the new ones to be added. Beyond it, the claim is granted without
    /// them.
    pub max_tokens: usize,
    /// The fence of the partition as far as the caller knows it: the fence of the document, or 0 without a document.
    /// The claim is granted only at this fence, and increments it. Therefore, a duplicate of the request, which may
    /// arrive much later, is refused.
    pub fence: u64,
    /// The fence of the partition's document; 0 without a document. The granted fence is greater, even if the item
    /// expired and its fences restarted.
    pub above: u64,
    /// The time until which the document waits for a message. The item outlives it by [`ITEM_LIFETIME`].
    pub until: Timestamp,
}

impl Claim {
    /// Returns when the item expires once the claim is granted, unless it is extended later.
    pub fn expires_at(&self) -> Timestamp {
        expiry(self.now.max(self.until))
    }

    /// Returns the latest expiry at which the claim may replace the expiry of an item. A later expiry belongs to a wait
    /// that the caller does not know of.
    pub fn max_expiry(&self) -> Timestamp {
        saturating(self.expires_at(), SLACK)
    }

    /// Returns the fence of the claim once it is granted. If the item has counted fewer claims than the document, one
    /// number is skipped: the loaded document may be an earlier version, and must not look like the latest.
    pub fn next_fence(&self) -> u64 {
        match self.fence < self.above {
            true => self.above.saturating_add(2),
            false => self.fence.saturating_add(1),
        }
    }

    /// Returns the same claim at the fence of a refusal. The item keeps at least its current lifetime.
    #[must_use]
    pub fn at(self, fence: u64, expires_at: Timestamp) -> Self {
        let until = expires_at.checked_sub(ITEM_LIFETIME).unwrap_or(self.until).max(self.until);
        Self { fence, until, ..self }
    }
}

/// The condition of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimCondition {
    /// The token is present. The condition is for a single message, so that a duplicate costs one call.
    TokenPresent(Token),
    /// The item exists. The condition is for several messages, whose tokens are looked up in the answer.
    ItemExists,
    /// No condition, for messages that are admitted by a setting because their clients cannot send tokens.
    Always,
}

/// The answer to a [`Claim`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// The claim is granted.
    Admitted(AdmittedClaim),
    /// The condition is not met: the message was processed before.
    Duplicate,
    /// Another worker holds the partition.
    Busy {
        /// The end of the lease, unless the worker releases the partition earlier.
        until: Timestamp,
    },
    /// The partition's fence differs from the fence of the claim, or its item lasts longer than the caller knows. The
    /// caller may claim again with these values.
    Moved {
        /// The partition's fence.
        fence: u64,
        /// The expiry of the partition's item.
        expires_at: Timestamp,
    },
}

/// The answer to a granted claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedClaim {
    /// The fence of the claim. It grows with each claim of the partition.
    pub fence: u64,
    /// The tokens in the partition, including the new ones if the capacity was sufficient.
    pub tokens: Tokens,
}

/// The tokens of an admitted partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tokens {
    /// The tokens in the item.
    Listed(BTreeSet<Token>),
    /// Without a ledger (optimistic mode): only versions, processed ids and states detect duplicates.
    Unchecked,
}

impl Tokens {
    /// Returns `true` if a message with this token may be processed.
    pub fn admit(&self, token: &Token) -> bool {
        match self {
            Self::Listed(tokens) => tokens.contains(token),
            Self::Unchecked => true,
        }
    }
}

/// The end of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The partition.
    pub partition: PartitionKey,
    /// The attempt that holds the partition.
    pub attempt: AttemptId,
    /// The fence of the attempt's claim.
    pub fence: u64,
    /// Tokens of processed messages, and garbage.
    pub remove: BTreeSet<Token>,
    /// `true` if the partition has ended. The release then removes the remaining tokens too.
    pub ended: bool,
    /// The time until which the document waits for a message, if the attempt has stored it. With `None` the item keeps
    /// its lifetime.
    pub until: Option<Timestamp>,
    /// The time of release.
    pub now: Timestamp,
}

impl Release {
    /// Returns the new expiry of the item; `None` if it stays unchanged.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self.ended {
            true => Some(expiry(self.now)),
            false => self.until.map(|until| expiry(self.now.max(until))),
        }
    }
}

/// Claims a partition, and again if the answer contains another fence. Returns the last claim and its answer.
///
/// # Errors
/// Returns an error if the store is unavailable. The claim may have been granted; its lease then expires by itself.
pub async fn ask(ledger: &dyn ClaimPartition, claim: Claim) -> Result<(Claim, Admission), StoreError> {
    ask_with(ledger, claim, Claim::at).await
}

/// Works like [`ask`]. `at` returns the claim that follows a refusal, for its fence and expiry.
///
/// A refusal because of the fence may be the answer to a copy of a claim that was granted: the store's client sends a
/// request again if its answer is late. If the lease of that grant has ended, other attempts may use its tokens.
///
/// # Errors
/// Returns the errors of [`ask`].
pub async fn ask_with(
    ledger: &dyn ClaimPartition,
    mut claim: Claim,
    at: fn(Claim, u64, Timestamp) -> Claim,
) -> Result<(Claim, Admission), StoreError> {
    for _ in 1..CLAIMS {
        match ledger.claim(&claim).await? {
            Admission::Moved { fence, expires_at } => claim = at(claim, fence, expires_at),
            answer => return Ok((claim, answer)),
        }
    }
    let answer = ledger.claim(&claim).await?;
    Ok((claim, answer))
}

/// Claims and releases partitions. An attempt that has stored a change may keep its claim for the next one.
#[async_trait]
pub trait ClaimPartition: Send + Sync {
    /// Claims a partition atomically.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The claim may have been granted; its lease then expires by itself.
    async fn claim(&self, claim: &Claim) -> Result<Admission, StoreError>;

    /// Releases a partition. Returns `false` if the caller no longer holds it; nothing changes then.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The lease then expires by itself.
    async fn release(&self, release: &Release) -> Result<bool, StoreError>;
}

/// Grants tokens to partitions, for entry points.
#[async_trait]
pub trait GrantTokens: Send + Sync {
    /// Adds tokens to a partition, and creates its item if necessary. Idempotent. If the store's client sends a request
    /// again, a copy that arrives after the partition was claimed adds nothing, because its tokens may have been used.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; the call may be repeated.
    async fn grant(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Creates a partition with tokens. An existing item stays unchanged, so repeating the call never restores used
    /// tokens. Returns `true` if all of the tokens are present.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; the call may be repeated.
    async fn begin(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Removes tokens of messages that will never be sent. Idempotent. Absent partitions and tokens are ignored.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; the call may be repeated.
    async fn revoke(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<(), StoreError>;
}

/// Checks a token without claiming its partition, for stateless handlers that reply to commands.
#[async_trait]
pub trait CheckTokens: Send + Sync {
    /// Returns `true` if the partition admits a message with this token at `now`. The read is strongly consistent.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn is_granted(
        &self,
        partition: PartitionKey,
        token: &Token,
        now: Timestamp,
    ) -> Result<bool, StoreError>;
}

/// The ledger item of one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The holder, and the end of its lease.
    pub holder: Option<(AttemptId, Timestamp)>,
    /// The number of claims so far.
    pub fence: u64,
    /// The tokens of the messages that are still admitted.
    pub tokens: BTreeSet<Token>,
    /// The time at which the item expires. The store may delete it later, so readers check this time.
    pub expires_at: Timestamp,
}

impl Item {
    /// Creates an item without claims.
    pub fn new(now: Timestamp) -> Self {
        Self { holder: None, fence: 0, tokens: BTreeSet::new(), expires_at: expiry(now) }
    }

    /// Returns the result of creating a partition: whether these tokens are present afterwards, and the item to store,
    /// if any.
    pub fn create_if_absent(stored: Option<Self>, tokens: &[Token], now: Timestamp) -> (bool, Option<Self>) {
        match stored.filter(|item| item.expires_at > now) {
            Some(item) => (tokens.iter().all(|token| item.tokens.contains(token)), None),
            None => (true, Some(Self::with_tokens(None, tokens, now))),
        }
    }

    /// Returns the item with these tokens added. An expired item counts as absent, together with its tokens.
    pub fn with_tokens(stored: Option<Self>, tokens: &[Token], now: Timestamp) -> Self {
        let mut item = stored.filter(|item| item.expires_at > now).unwrap_or_else(|| Self::new(now));
        item.grant(tokens, now);
        item
    }

    /// Returns the item without these tokens. An expired item counts as absent.
    pub fn without_tokens(stored: Option<Self>, tokens: &[Token], now: Timestamp) -> Option<Self> {
        let mut item = stored.filter(|item| item.expires_at > now)?;
        item.tokens.retain(|token| !tokens.contains(token));
        Some(item)
    }

    /// An entry point does not know what the document waits for, so it never shortens the lifetime.
    fn grant(&mut self, tokens: &[Token], now: Timestamp) {
        self.tokens.extend(tokens.iter().cloned());
        self.expires_at = self.expires_at.max(expiry(now));
    }

    /// Returns `true` if a message with this token is admitted. An expired item admits none.
    pub fn is_granted(&self, token: &Token, now: Timestamp) -> bool {
        self.expires_at > now && self.tokens.contains(token)
    }

    /// Returns the answer to a claim, and the new item if the claim is granted.
    ///
    /// An absent token is reported before a held lease: the message is a duplicate even if another worker holds the
    /// partition.
    pub fn claim(stored: Option<Self>, claim: &Claim) -> (Admission, Option<Self>) {
        let stored = stored.filter(|item| item.expires_at > claim.now);
        let met = match (&claim.requires, &stored) {
            (ClaimCondition::TokenPresent(token), Some(item)) => item.tokens.contains(token),
            (ClaimCondition::ItemExists, item) => item.is_some(),
            (ClaimCondition::TokenPresent(_), None) => false,
            (ClaimCondition::Always, _) => true,
        };
        if !met {
            return (Admission::Duplicate, None);
        }
        let mut item = stored.unwrap_or_else(|| Self::new(claim.now));
        match item.holder {
            // A repeated claim of the holder means that it lost the first answer. The fence of the repeated claim has
            // to be the current fence.
            Some((holder, until))
                if until > claim.now && holder != claim.attempt && Some(holder) != claim.supersedes =>
            {
                return (Admission::Busy { until }, None);
            }
            Some(_) | None => {}
        }
        if item.fence != claim.fence || item.expires_at > claim.max_expiry() {
            return (Admission::Moved { fence: item.fence, expires_at: item.expires_at }, None);
        }
        item.holder = Some((claim.attempt, saturating(claim.now, claim.lease)));
        item.fence = claim.next_fence();
        let mint = if item.has_capacity(claim) { claim.new_tokens.as_slice() } else { &[] };
        item.tokens.extend(mint.iter().cloned());
        item.expires_at = claim.expires_at();
        let admitted = AdmittedClaim { fence: item.fence, tokens: Tokens::Listed(item.tokens.clone()) };
        (Admission::Admitted(admitted), Some(item))
    }

    /// Returns `true` if the tokens of a claim may be added.
    pub fn has_capacity(&self, claim: &Claim) -> bool {
        self.tokens.len() <= claim.max_tokens
    }

    /// Returns the item after a release; `None` if the caller no longer holds the partition.
    pub fn release(mut self, release: &Release) -> Option<Self> {
        let holds = self.holder.is_some_and(|(attempt, _)| attempt == release.attempt);
        if !holds || self.fence != release.fence {
            return None;
        }
        self.holder = None;
        if release.ended {
            self.tokens.clear();
        } else {
            self.tokens.retain(|token| !release.remove.contains(token));
        }
        self.expires_at = release.expires_at().unwrap_or(self.expires_at);
        Some(self)
    }
}

fn expiry(now: Timestamp) -> Timestamp {
    saturating(now, ITEM_LIFETIME)
}

fn saturating(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// Replaces the ledger in optimistic mode. This replacement stores nothing and grants every claim.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLedger;

#[async_trait]
impl ClaimPartition for NoLedger {
    async fn claim(&self, _: &Claim) -> Result<Admission, StoreError> {
        Ok(Admission::Admitted(AdmittedClaim { fence: 0, tokens: Tokens::Unchecked }))
    }

    async fn release(&self, _: &Release) -> Result<bool, StoreError> {
        Ok(true)
    }
}

#[async_trait]
impl GrantTokens for NoLedger {
    async fn grant(&self, _: PartitionKey, _: &[Token], _: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    async fn begin(&self, _: PartitionKey, _: &[Token], _: Timestamp) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn revoke(&self, _: PartitionKey, _: &[Token], _: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl CheckTokens for NoLedger {
    async fn is_granted(&self, _: PartitionKey, _: &Token, _: Timestamp) -> Result<bool, StoreError> {
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn attempt(n: u128) -> AttemptId {
        AttemptId::from_uuid(Uuid::from_u128(n))
    }

    fn partition() -> PartitionKey {
        PartitionKey::from_uuid(Uuid::from_u128(1))
    }

    fn token(n: u128) -> Token {
        Token::minted_at_entry(partition(), Uuid::from_u128(n))
    }

    fn claim(n: u128, second: i64, requires: ClaimCondition) -> Claim {
        Claim {
            partition: partition(),
            attempt: attempt(n),
            now: at(second),
            lease: SignedDuration::from_secs(30),
            supersedes: None,
            requires,
            new_tokens: vec![Token::minted_by_attempt(partition(), &attempt(n), 0)],
            max_tokens: 2,
            fence: 0,
            above: 0,
            until: at(second),
        }
    }

    /// Returns the answer of an item to a claim at its own fence.
    fn ask(item: Item, claim: Claim) -> (Admission, Option<Item>) {
        let fence = item.fence;
        Item::claim(Some(item), &Claim { fence, ..claim })
    }

    fn release(n: u128, fence: u64, remove: &[Token]) -> Release {
        Release {
            partition: partition(),
            attempt: attempt(n),
            fence,
            remove: remove.iter().cloned().collect(),
            ended: false,
            until: None,
            now: at(10),
        }
    }

    fn granted() -> Item {
        Item::with_tokens(None, &[token(1)], at(0))
    }

    fn admitted(answer: (Admission, Option<Item>)) -> (AdmittedClaim, Item) {
        match answer {
            (Admission::Admitted(admitted), Some(item)) => (admitted, item),
            other => panic!("not admitted: {other:?}"),
        }
    }

    #[test]
    fn token_admits_until_released() {
        let (first, item) = admitted(ask(granted(), claim(1, 0, ClaimCondition::TokenPresent(token(1)))));
        let item = item.release(&release(1, first.fence, &[token(1)])).unwrap();
        let (answer, _) = ask(item, claim(2, 1, ClaimCondition::TokenPresent(token(1))));
        assert_eq!(answer, Admission::Duplicate);
    }

    #[test]
    fn held_partition_is_busy_until_lease_ends() {
        let (first, item) = admitted(ask(granted(), claim(1, 0, ClaimCondition::ItemExists)));
        let (answer, _) = ask(item.clone(), claim(2, 29, ClaimCondition::ItemExists));
        assert_eq!(answer, Admission::Busy { until: at(30) });
        let (second, item) = admitted(ask(item, claim(2, 30, ClaimCondition::ItemExists)));
        assert!(second.fence > first.fence);
        assert_eq!(item.release(&release(1, first.fence, &[token(1)])), None, "the zombie releases nothing");
    }

    #[test]
    fn finished_attempt_does_not_block_claim() {
        let (first, item) = admitted(ask(granted(), claim(1, 0, ClaimCondition::ItemExists)));
        let after = |finished| Claim {
            supersedes: Some(attempt(finished)),
            ..claim(2, 1, ClaimCondition::ItemExists)
        };
        let (answer, _) = ask(item.clone(), after(3));
        assert_eq!(answer, Admission::Busy { until: at(30) }, "somebody else is inside");
        let (second, item) = admitted(ask(item, after(1)));
        assert_eq!((second.fence, item.holder), (first.fence + 1, Some((attempt(2), at(31)))));
        assert_eq!(item.release(&release(1, first.fence, &[token(1)])), None, "it is too late for that");
    }

    #[test]
    fn absent_token_is_duplicate_in_held_partition() {
        let (_, item) = admitted(ask(granted(), claim(1, 0, ClaimCondition::ItemExists)));
        let (answer, _) = ask(item, claim(2, 1, ClaimCondition::TokenPresent(token(9))));
        assert_eq!(answer, Admission::Duplicate);
    }

    #[test]
    fn expired_item_counts_as_absent() {
        let later = ITEM_LIFETIME.as_secs();
        let (answer, _) = ask(granted(), claim(1, later, ClaimCondition::TokenPresent(token(1))));
        assert_eq!(answer, Admission::Duplicate);
    }

    #[test]
    fn holder_may_repeat_its_claim() {
        let (_, item) = admitted(ask(granted(), claim(1, 0, ClaimCondition::ItemExists)));
        let (again, _) = admitted(ask(item, claim(1, 1, ClaimCondition::ItemExists)));
        assert_eq!(again.fence, 2);
    }

    #[test]
    fn unreleased_claims_add_tokens_up_to_maximum() {
        let mut item = granted();
        for n in 1..=5 {
            let later = i64::try_from(n).unwrap() * 30;
            (_, item) = admitted(ask(item, claim(n, later, ClaimCondition::ItemExists)));
        }
        assert_eq!(item.fence, 5, "each of them is admitted");
        assert_eq!(item.tokens.len(), 3);
    }

    #[test]
    fn ended_partition_loses_all_tokens() {
        let (first, item) = admitted(ask(granted(), claim(1, 0, ClaimCondition::ItemExists)));
        let item = item.release(&Release { ended: true, ..release(1, first.fence, &[]) }).unwrap();
        assert_eq!(item.tokens, BTreeSet::new());
    }

    #[test]
    fn duplicate_claim_changes_nothing() {
        let request = claim(1, 0, ClaimCondition::ItemExists);
        let (first, item) = admitted(ask(granted(), request.clone()));
        let item = item.release(&release(1, first.fence, &request.new_tokens)).unwrap();
        let (answer, next) = Item::claim(Some(item.clone()), &request);
        assert_eq!((answer, next), (Admission::Moved { fence: 1, expires_at: item.expires_at }, None));
    }

    #[test]
    fn expired_item_continues_from_document_fence() {
        let request = Claim { fence: 0, above: 7, ..claim(1, 0, ClaimCondition::Always) };
        let (lifted, item) = admitted(Item::claim(None, &request));
        assert_eq!(lifted.fence, 9, "8 would make an earlier version of the document look like the latest");
        let (next, _) = admitted(ask(item, Claim { above: 9, ..claim(2, 31, ClaimCondition::Always) }));
        assert_eq!(next.fence, 10);
    }

    #[test]
    fn item_outlives_awaited_messages() {
        let year = 365 * 86_400;
        let (first, item) = admitted(ask(granted(), claim(1, 0, ClaimCondition::ItemExists)));
        let forgotten = |item: &Item| item.expires_at.as_second() - ITEM_LIFETIME.as_secs();
        assert_eq!(forgotten(&item), 0);
        let stored = Release { until: Some(at(year)), ..release(1, first.fence, &[]) };
        let item = item.release(&stored).unwrap();
        assert_eq!(forgotten(&item), year, "a timer of a year was stored");
        let item = Item::with_tokens(Some(item), &[token(2)], at(20));
        assert_eq!(forgotten(&item), year, "an entry point shortens nothing");
        let (answer, _) = ask(item.clone(), claim(2, 30, ClaimCondition::ItemExists));
        assert_eq!(answer, Admission::Moved { fence: 1, expires_at: item.expires_at }, "it would shorten it");
        let (second, item) =
            admitted(ask(item, Claim { until: at(year), ..claim(2, 30, ClaimCondition::ItemExists) }));
        assert_eq!(forgotten(&item), year, "the document says so");
        let unchanged = item.clone().release(&release(2, second.fence, &[])).unwrap();
        assert_eq!(forgotten(&unchanged), year, "nothing was stored");
        let ended = item.release(&Release { ended: true, ..release(2, second.fence, &[]) }).unwrap();
        assert_eq!(forgotten(&ended), 10);
    }

    #[test]
    fn claim_after_moved_fence_keeps_lifetime() {
        let year = 365 * 86_400;
        let request = claim(1, 0, ClaimCondition::ItemExists).at(4, at(year + ITEM_LIFETIME.as_secs()));
        assert_eq!((request.fence, request.until), (4, at(year)));
    }
}
