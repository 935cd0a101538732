//! The partition ledger: who is inside a partition, and which messages it still admits.
//!
//! [`Item::claim`] and [`Item::release`] say what a claim and a release mean, as pure functions over one ledger
//! item. A store that can run them in a transaction does just that; one that cannot (DynamoDB) says the same in
//! the conditions of a single update.

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use messages::{AttemptId, PartitionKey, StoreError, Token};
use serde::{Deserialize, Serialize};

/// How long a ledger item outlives the last thing that its partition waits for: 30 days, twice the longest time that a
/// message can live in a queue (14 days, and its age goes on in the dead-letter queue;
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>).
/// With the item gone its tokens are absent too, so nothing comes back to life.
pub const ITEM_LIFETIME: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The end of a wait without a deadline, 1 January 2200: far enough for every answer, and near enough for every store.
pub const OPEN_END: Timestamp = Timestamp::constant(7_258_118_400, 0);

/// How much longer than it has to an item may last, so that clocks which differ cost no call.
pub const SLACK: SignedDuration = SignedDuration::from_hours(1);

/// How often a claim is repeated with the fence that its refusal named. Each time another worker must have come first.
const CLAIMS: usize = 4;

/// The request to work inside a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The partition.
    pub partition: PartitionKey,
    /// Who asks.
    pub attempt: AttemptId,
    /// The time of asking.
    pub now: Timestamp,
    /// How long the claim is to last at most.
    pub lease: SignedDuration,
    /// An attempt whose change is stored, as the partition's document says. Should it be inside still, nobody has to wait
    /// for it: it changes nothing any more, and gives the partition back only where there is a reason to.
    pub finished: Option<AttemptId>,
    /// What must be so for the claim to make sense.
    pub requires: Requirement,
    /// Fresh tokens for the messages that the partition may come to expect.
    pub mint: Vec<Token>,
    /// The most tokens that may be there for fresh ones to be added. The claim is granted all the same, without them.
    pub room: usize,
    /// The fence of the partition, as far as the caller knows: the document's, and 0 without a document. The claim is
    /// granted at this fence alone, and moves it. So a second copy of the request, which may arrive much later, is
    /// refused.
    pub fence: u64,
    /// The fence of the partition's document; 0 without a document. The granted fence is greater, even where the item
    /// was forgotten and counts from the beginning.
    pub above: u64,
    /// The time until which the document waits for something. The item outlives it by [`ITEM_LIFETIME`].
    pub until: Timestamp,
}

impl Claim {
    /// When the item is to be forgotten once the claim is granted, unless a later touch extends it.
    pub fn expires_at(&self) -> Timestamp {
        expiry(self.now.max(self.until))
    }

    /// The latest expiry that an item may have for the claim to set its own. An item that lasts longer waits for something
    /// that the caller does not know of.
    pub fn most(&self) -> Timestamp {
        saturating(self.expires_at(), SLACK)
    }

    /// The fence of the claim once it is granted. Where the item has counted fewer claims than the document says, one
    /// number is left out: the document that was loaded may be an earlier version, and must not look like the latest.
    pub fn next_fence(&self) -> u64 {
        match self.fence < self.above {
            true => self.above.saturating_add(2),
            false => self.fence.saturating_add(1),
        }
    }

    /// The same claim at the fence that a refusal named. The item keeps at least the lifetime that it has.
    #[must_use]
    pub fn at(self, fence: u64, expires_at: Timestamp) -> Self {
        let until = expires_at.checked_sub(ITEM_LIFETIME).unwrap_or(self.until).max(self.until);
        Self { fence, until, ..self }
    }
}

/// What must be so for a claim to make sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirement {
    /// This token is present: for one message, so that a duplicate costs a single call.
    Token(Token),
    /// The partition is known: for several messages, whose tokens are looked up in the answer.
    Known,
    /// Nothing: for a message from outside that cannot carry a token and is admitted by a setting.
    Nothing,
}

/// The answer to a [`Claim`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// The partition is the caller's.
    Admitted(Admitted),
    /// The requirement is not met: whatever was to be done has been done.
    Duplicate,
    /// Another worker is inside.
    Busy {
        /// When its lease ends, unless it is released earlier.
        until: Timestamp,
    },
    /// The partition's fence is not the one that the claim names, or its item lasts longer than the caller knows. The caller
    /// asks again with these.
    Moved {
        /// The partition's fence.
        fence: u64,
        /// When its item is to be forgotten.
        expires_at: Timestamp,
    },
}

/// What an admitted worker knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// Grows with each claim of this partition.
    pub fence: u64,
    /// The tokens that are in the partition now, the fresh ones included if there was room for them.
    pub tokens: Tokens,
}

/// The tokens of an admitted partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tokens {
    /// These.
    Listed(BTreeSet<Token>),
    /// There is no ledger (optimistic mode): versions, processed ids and states alone tell duplicates.
    Unchecked,
}

impl Tokens {
    /// Whether a message with this token may be processed.
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
    /// Who held it.
    pub attempt: AttemptId,
    /// The fence of its claim.
    pub fence: u64,
    /// Tokens that are done with.
    pub remove: BTreeSet<Token>,
    /// Whether the partition has ended, so that its remaining tokens go as well.
    pub ended: bool,
    /// The time until which the document waits for something, if the caller has stored that document. Without it the
    /// item keeps its lifetime.
    pub until: Option<Timestamp>,
    /// The time of release.
    pub now: Timestamp,
}

impl Release {
    /// When the item is to be forgotten; none where its lifetime stays as it is.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self.ended {
            true => Some(expiry(self.now)),
            false => self.until.map(|until| expiry(self.now.max(until))),
        }
    }
}

/// Asks for a partition, and again where the answer names another fence. Returns the claim as it was asked last.
///
/// # Errors
/// When the store does not answer.
pub async fn ask(ledger: &dyn ClaimPartition, mut claim: Claim) -> Result<(Claim, Admission), StoreError> {
    for _ in 1..CLAIMS {
        match ledger.claim(&claim).await? {
            Admission::Moved { fence, expires_at } => claim = claim.at(fence, expires_at),
            answer => return Ok((claim, answer)),
        }
    }
    let answer = ledger.claim(&claim).await?;
    Ok((claim, answer))
}

/// Claims partitions and gives them back. An attempt that has stored a change may leave its claim to the next one.
#[async_trait]
pub trait ClaimPartition: Send + Sync {
    /// Asks for the partition; atomic.
    ///
    /// # Errors
    /// When the store does not answer. The claim may have been granted; its lease then runs out by itself.
    async fn claim(&self, claim: &Claim) -> Result<Admission, StoreError>;

    /// Gives the partition back; `false` when it was not the caller's any more, and then nothing changed.
    ///
    /// # Errors
    /// When the store does not answer. The lease then runs out by itself.
    async fn release(&self, release: &Release) -> Result<bool, StoreError>;
}

/// Puts tokens into a partition: the right of entry points.
#[async_trait]
pub trait GrantTokens: Send + Sync {
    /// Adds tokens to a partition, which comes into being if need be; repeating it changes nothing.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn grant(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Brings a partition into being, with tokens. One that is there already stays as it is: tokens that were used do
    /// not come back, however often and however late somebody begins it again. Answers whether all of them are there.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn begin(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<bool, StoreError>;
}

/// Looks a token up without claiming its partition: for handlers that answer commands and have no state.
#[async_trait]
pub trait CheckTokens: Send + Sync {
    /// Whether the partition still admits a message with this token at `now`. The answer is never older than the call.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn is_granted(
        &self,
        partition: PartitionKey,
        token: &Token,
        now: Timestamp,
    ) -> Result<bool, StoreError>;
}

/// One partition's entry in the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Who is inside, and until when at most.
    pub holder: Option<(AttemptId, Timestamp)>,
    /// The number of claims so far.
    pub fence: u64,
    /// The messages still admitted.
    pub tokens: BTreeSet<Token>,
    /// When the item is to be forgotten. Deletion by the store may be late, so readers check it themselves.
    pub expires_at: Timestamp,
}

impl Item {
    /// An item that nobody has claimed yet.
    pub fn new(now: Timestamp) -> Self {
        Self { holder: None, fence: 0, tokens: BTreeSet::new(), expires_at: expiry(now) }
    }

    /// What beginning a partition comes to: the item to store, if any, and whether these tokens are there then.
    pub fn begin(stored: Option<Self>, tokens: &[Token], now: Timestamp) -> (bool, Option<Self>) {
        match stored.filter(|item| item.expires_at > now) {
            Some(item) => (tokens.iter().all(|token| item.tokens.contains(token)), None),
            None => (true, Some(Self::granted(None, tokens, now))),
        }
    }

    /// The item once tokens were granted. One that has expired is absent, and its tokens stay so.
    pub fn granted(stored: Option<Self>, tokens: &[Token], now: Timestamp) -> Self {
        let mut item = stored.filter(|item| item.expires_at > now).unwrap_or_else(|| Self::new(now));
        item.grant(tokens, now);
        item
    }

    /// An entry point does not know what the document waits for, so it shortens no lifetime.
    fn grant(&mut self, tokens: &[Token], now: Timestamp) {
        self.tokens.extend(tokens.iter().cloned());
        self.expires_at = self.expires_at.max(expiry(now));
    }

    /// Whether a message with this token is still admitted; an item that has expired admits nothing.
    pub fn is_granted(&self, token: &Token, now: Timestamp) -> bool {
        self.expires_at > now && self.tokens.contains(token)
    }

    /// What a claim answers, and the item from then on when it is granted.
    ///
    /// An absent token is reported before a held lease: the message is a duplicate whoever is inside.
    pub fn claim(stored: Option<Self>, claim: &Claim) -> (Admission, Option<Self>) {
        let stored = stored.filter(|item| item.expires_at > claim.now);
        let met = match (&claim.requires, &stored) {
            (Requirement::Token(token), Some(item)) => item.tokens.contains(token),
            (Requirement::Known, item) => item.is_some(),
            (Requirement::Token(_), None) => false,
            (Requirement::Nothing, _) => true,
        };
        if !met {
            return (Admission::Duplicate, None);
        }
        let mut item = stored.unwrap_or_else(|| Self::new(claim.now));
        match item.holder {
            // The same attempt asking again is one whose first answer was lost. It has to name the fence of now.
            Some((holder, until))
                if until > claim.now && holder != claim.attempt && Some(holder) != claim.finished =>
            {
                return (Admission::Busy { until }, None);
            }
            Some(_) | None => {}
        }
        if item.fence != claim.fence || item.expires_at > claim.most() {
            return (Admission::Moved { fence: item.fence, expires_at: item.expires_at }, None);
        }
        item.holder = Some((claim.attempt, saturating(claim.now, claim.lease)));
        item.fence = claim.next_fence();
        let mint = if item.has_room(claim) { claim.mint.as_slice() } else { &[] };
        item.tokens.extend(mint.iter().cloned());
        item.expires_at = claim.expires_at();
        let admitted = Admitted { fence: item.fence, tokens: Tokens::Listed(item.tokens.clone()) };
        (Admission::Admitted(admitted), Some(item))
    }

    /// Whether the tokens of a claim may be added.
    pub fn has_room(&self, claim: &Claim) -> bool {
        self.tokens.len() <= claim.room
    }

    /// The item after a release; none when the caller does not hold the partition any more.
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

/// Stands for the ledger in optimistic mode, where nothing is kept: every claim is admitted.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLedger;

#[async_trait]
impl ClaimPartition for NoLedger {
    async fn claim(&self, _: &Claim) -> Result<Admission, StoreError> {
        Ok(Admission::Admitted(Admitted { fence: 0, tokens: Tokens::Unchecked }))
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

    fn claim(n: u128, second: i64, requires: Requirement) -> Claim {
        Claim {
            partition: partition(),
            attempt: attempt(n),
            now: at(second),
            lease: SignedDuration::from_secs(30),
            finished: None,
            requires,
            mint: vec![Token::minted_by_attempt(partition(), &attempt(n), 0)],
            room: 2,
            fence: 0,
            above: 0,
            until: at(second),
        }
    }

    /// What an item answers to a claim at its own fence.
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
        Item::granted(None, &[token(1)], at(0))
    }

    fn admitted(answer: (Admission, Option<Item>)) -> (Admitted, Item) {
        match answer {
            (Admission::Admitted(admitted), Some(item)) => (admitted, item),
            other => panic!("not admitted: {other:?}"),
        }
    }

    #[test]
    fn a_token_admits_until_it_is_released_and_never_again() {
        let (first, item) = admitted(ask(granted(), claim(1, 0, Requirement::Token(token(1)))));
        let item = item.release(&release(1, first.fence, &[token(1)])).unwrap();
        let (answer, _) = ask(item, claim(2, 1, Requirement::Token(token(1))));
        assert_eq!(answer, Admission::Duplicate);
    }

    #[test]
    fn a_held_partition_is_busy_until_its_lease_ends_and_the_fence_grows() {
        let (first, item) = admitted(ask(granted(), claim(1, 0, Requirement::Known)));
        let (answer, _) = ask(item.clone(), claim(2, 29, Requirement::Known));
        assert_eq!(answer, Admission::Busy { until: at(30) });
        let (second, item) = admitted(ask(item, claim(2, 30, Requirement::Known)));
        assert!(second.fence > first.fence);
        assert_eq!(item.release(&release(1, first.fence, &[token(1)])), None, "the zombie releases nothing");
    }

    #[test]
    fn nobody_waits_for_an_attempt_whose_change_is_stored() {
        let (first, item) = admitted(ask(granted(), claim(1, 0, Requirement::Known)));
        let after = |finished| Claim { finished: Some(attempt(finished)), ..claim(2, 1, Requirement::Known) };
        let (answer, _) = ask(item.clone(), after(3));
        assert_eq!(answer, Admission::Busy { until: at(30) }, "somebody else is inside");
        let (second, item) = admitted(ask(item, after(1)));
        assert_eq!((second.fence, item.holder), (first.fence + 1, Some((attempt(2), at(31)))));
        assert_eq!(item.release(&release(1, first.fence, &[token(1)])), None, "it is too late for that");
    }

    #[test]
    fn an_absent_token_is_a_duplicate_even_while_another_worker_is_inside() {
        let (_, item) = admitted(ask(granted(), claim(1, 0, Requirement::Known)));
        let (answer, _) = ask(item, claim(2, 1, Requirement::Token(token(9))));
        assert_eq!(answer, Admission::Duplicate);
    }

    #[test]
    fn an_expired_item_is_absent_even_before_the_store_deletes_it() {
        let later = ITEM_LIFETIME.as_secs();
        let (answer, _) = ask(granted(), claim(1, later, Requirement::Token(token(1))));
        assert_eq!(answer, Admission::Duplicate);
    }

    #[test]
    fn an_attempt_whose_answer_was_lost_may_ask_again() {
        let (_, item) = admitted(ask(granted(), claim(1, 0, Requirement::Known)));
        let (again, _) = admitted(ask(item, claim(1, 1, Requirement::Known)));
        assert_eq!(again.fence, 2);
    }

    #[test]
    fn claims_that_are_never_given_back_add_tokens_only_while_there_is_room() {
        let mut item = granted();
        for n in 1..=5 {
            let later = i64::try_from(n).unwrap() * 30;
            (_, item) = admitted(ask(item, claim(n, later, Requirement::Known)));
        }
        assert_eq!(item.fence, 5, "each of them is admitted");
        assert_eq!(item.tokens.len(), 3);
    }

    #[test]
    fn the_end_of_a_partition_takes_all_its_tokens() {
        let (first, item) = admitted(ask(granted(), claim(1, 0, Requirement::Known)));
        let item = item.release(&Release { ended: true, ..release(1, first.fence, &[]) }).unwrap();
        assert_eq!(item.tokens, BTreeSet::new());
    }

    #[test]
    fn a_second_copy_of_a_claim_changes_nothing() {
        let request = claim(1, 0, Requirement::Known);
        let (first, item) = admitted(ask(granted(), request.clone()));
        let item = item.release(&release(1, first.fence, &request.mint)).unwrap();
        let (answer, next) = Item::claim(Some(item.clone()), &request);
        assert_eq!((answer, next), (Admission::Moved { fence: 1, expires_at: item.expires_at }, None));
    }

    #[test]
    fn a_forgotten_item_counts_on_from_the_fence_of_its_document() {
        let request = Claim { fence: 0, above: 7, ..claim(1, 0, Requirement::Nothing) };
        let (lifted, item) = admitted(Item::claim(None, &request));
        assert_eq!(lifted.fence, 9, "8 would make an earlier version of the document look like the latest");
        let (next, _) = admitted(ask(item, Claim { above: 9, ..claim(2, 31, Requirement::Nothing) }));
        assert_eq!(next.fence, 10);
    }

    #[test]
    fn an_item_outlives_what_its_document_waits_for() {
        let year = 365 * 86_400;
        let (first, item) = admitted(ask(granted(), claim(1, 0, Requirement::Known)));
        let forgotten = |item: &Item| item.expires_at.as_second() - ITEM_LIFETIME.as_secs();
        assert_eq!(forgotten(&item), 0);
        let stored = Release { until: Some(at(year)), ..release(1, first.fence, &[]) };
        let item = item.release(&stored).unwrap();
        assert_eq!(forgotten(&item), year, "a timer of a year was stored");
        let item = Item::granted(Some(item), &[token(2)], at(20));
        assert_eq!(forgotten(&item), year, "an entry point shortens nothing");
        let (answer, _) = ask(item.clone(), claim(2, 30, Requirement::Known));
        assert_eq!(answer, Admission::Moved { fence: 1, expires_at: item.expires_at }, "it would shorten it");
        let (second, item) =
            admitted(ask(item, Claim { until: at(year), ..claim(2, 30, Requirement::Known) }));
        assert_eq!(forgotten(&item), year, "the document says so");
        let unchanged = item.clone().release(&release(2, second.fence, &[])).unwrap();
        assert_eq!(forgotten(&unchanged), year, "nothing was stored");
        let ended = item.release(&Release { ended: true, ..release(2, second.fence, &[]) }).unwrap();
        assert_eq!(forgotten(&ended), 10);
    }

    #[test]
    fn a_claim_that_was_refused_for_its_fence_keeps_the_lifetime() {
        let year = 365 * 86_400;
        let request = claim(1, 0, Requirement::Known).at(4, at(year + ITEM_LIFETIME.as_secs()));
        assert_eq!((request.fence, request.until), (4, at(year)));
    }
}
