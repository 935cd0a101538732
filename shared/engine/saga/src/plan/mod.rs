//! The plan of one attempt at one group of messages: a pure function of the claim's answer and the loaded document.
//!
//! - [`admission`]: the condition of the claim, and the tokens that it mints;
//! - `draft`: the decisions, message after message, from the loaded state to the next one;
//! - `staging`: effects as outbox entries, timers, and the tokens of replies;
//! - `token_gc`: the tokens that are no longer needed;
//! - `token_capacity`: the case that the ledger accepted no more tokens.

pub mod admission;
mod draft;
mod staging;
mod token_capacity;
mod token_gc;
#[cfg(test)]
pub(crate) mod toy;

use std::collections::{BTreeSet, VecDeque};

use dedup::Tokens;
use dedup::ledger::{ITEM_LIFETIME, SLACK};
use jiff::{SignedDuration, Timestamp};
use messages::{AttemptId, Message, PartitionKey, Token, Verdict};
use outbox::{Entry, Settlement, StageError};

use crate::document::{Document, Persist, next_version};
use crate::state_machine::Saga;

/// One message of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingEvent<E> {
    /// The message.
    pub message: Message,
    /// The event in the message.
    pub event: E,
}

/// The decision about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageDecision {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason.
    pub why: String,
    /// The name of the state in which the state machine decided; `None` if the state machine was not called.
    pub state: Option<&'static str>,
}

/// The input of a decision.
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a, S> {
    /// The function that the attempt belongs to, and the source of the messages that it sends.
    pub function: &'a str,
    /// The partition.
    pub partition: PartitionKey,
    /// The partition's document, if any.
    pub document: Option<&'a Document<S>>,
    /// The tokens in the claim's answer.
    pub tokens: &'a Tokens,
    /// The fence of the claim.
    pub fence: u64,
    /// The attempt.
    pub attempt: AttemptId,
    /// The tokens that the attempt minted; the answer contains them only if the capacity was sufficient.
    pub minted: &'a [Token],
    /// The time.
    pub now: Timestamp,
    /// The time until which the attempt claims the outbox entries that it is about to perform.
    pub claim_until: Timestamp,
    /// The maximum number of tokens that the attempt may leave for a later attempt to remove.
    pub max_leftover: usize,
    /// The time at which the partition's ledger item expires, according to the claim.
    pub expires_at: Timestamp,
}

impl<'a, S> PlanInput<'a, S> {
    /// Returns the version of the document that the attempt writes.
    fn next_version(&self) -> u64 {
        next_version(self.document.map(|document| document.version), self.now)
    }

    /// Returns the effects of the stored document that are not performed yet.
    fn outbox(&self) -> &'a [Entry] {
        self.document.map_or(&[], |document| &document.outbox)
    }
}

/// The index of the report about a dead-lettered command among the replies to the command. A handler's own replies begin
/// at 0.
pub(crate) const REPORT: usize = 1_000_000;

/// The minimum time by which the ledger item outlives the last awaited message: one day more than the maximum retention
/// of a queue.
pub(crate) const MARGIN: SignedDuration = SignedDuration::from_hours(15 * 24);

/// Returns `true` if an item that expires at `expires_at` lasts much longer than a wait until `until` needs.
fn outlasts(expires_at: Timestamp, until: Timestamp) -> bool {
    until.checked_add(ITEM_LIFETIME + SLACK).is_ok_and(|max| expires_at > max)
}

/// Returns `true` if an item that expires at `expires_at` lasts long enough for a wait until `until`.
fn lasts(expires_at: Timestamp, until: Timestamp) -> bool {
    until.checked_add(MARGIN).is_ok_and(|needed| needed <= expires_at)
}

/// The plan of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<S> {
    /// One decision for each message, in order.
    pub decisions: Vec<MessageDecision>,
    /// The tokens of events for other partitions. They are granted before the write, so that each is in its partition
    /// before its event is sent.
    pub grants: Vec<(PartitionKey, Token)>,
    /// The write; `None` if nothing changes.
    pub persist: Option<Persist<S>>,
    /// The takeovers of entries that another worker left. They are stored before the entries are performed.
    pub takeovers: Vec<Settlement>,
    /// The entries to perform after the write, including those that are taken over.
    pub dispatch: Vec<Entry>,
    /// The tokens to remove at the release, if all earlier steps succeeded.
    pub remove: BTreeSet<Token>,
    /// `true` if the partition has ended.
    pub ended: bool,
    /// The time until which the stored document waits for a message; `None` without a write.
    pub until: Option<Timestamp>,
    /// `true` if the partition is released, which takes a separate call. An attempt saves this call if its document
    /// states that it keeps its claim. No worker waits for such an attempt, and the next attempt finds the tokens to
    /// remove.
    pub releases_claim: bool,
    /// The tokens that the next attempt needs. This attempt only reclaims tokens and decides about no message.
    pub retry_with: Option<TokenDemand>,
}

/// The tokens that an attempt needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenDemand {
    /// The number of tokens to mint.
    pub tokens: usize,
    /// The number of tokens that may be in the ledger already, because the partition waits for their messages.
    pub capacity: usize,
}

impl<S> Plan<S> {
    /// Returns `true` if a message is dropped because of a document that may be outdated. The store refuses a write
    /// that is based on an outdated document. An attempt without a write has to load the latest document. A partition
    /// that has ended stays ended.
    pub fn needs_reread(&self) -> bool {
        let drops =
            |decision: &MessageDecision| matches!(decision.verdict, Verdict::Ignored | Verdict::Rejected);
        self.persist.is_none() && !self.ended && self.decisions.iter().any(drops)
    }
}

/// The reason why no plan was made. The attempt performs nothing for the group.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// An effect could not be staged.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// A message of the saga cannot be serialized as JSON.
    #[error("a message cannot be serialized: {0}")]
    Broken(String),
    /// An instance that ends with an event would wait for a reply or a timer, which it could not receive.
    #[error(
        "the instance ends with this event, so it cannot wait for {0}; send a message without a reply, and set no timer"
    )]
    Unawaited(String),
    /// The saga's view is in more lists than [`outbox::MAX_FURTHER_LISTS`].
    #[error("the view is in {0} further lists, more than {max}", max = outbox::MAX_FURTHER_LISTS)]
    TooManyLists(usize),
    /// Another worker took the partition over and stored a change; only a new attempt can succeed.
    #[error("another worker has taken the partition over")]
    Overtaken,
    /// The events need more tokens than the attempt has. A new attempt mints as many tokens as the events need.
    #[error("{} tokens are needed, more than there are", .0.tokens)]
    TooFewTokens(TokenDemand),
}

impl<S> PlanInput<'_, S> {
    /// Returns `true` if the document is certainly the latest. In this case, there was no claim between the claim of
    /// the attempt that wrote the document and the current claim, and every write needs a claim.
    pub fn is_latest(&self) -> bool {
        let fence = self.document.map(|document| document.content.fence);
        self.is_counted() && fence.is_some_and(|fence| fence + 1 == self.fence)
    }

    /// Returns the tokens that an attempt may hand out, its own first.
    fn available_tokens(&self) -> VecDeque<Token> {
        let Tokens::Listed(tokens) = self.tokens else { return VecDeque::new() };
        let own = self.minted.iter().filter(|token| tokens.contains(*token));
        // Before a document exists, tokens of other attempts are free, because none was handed out; see
        // `token_capacity`. Tokens of other attempts are used only without capacity for new tokens, because the
        // document may have been lost in a restore of the database.
        let was_refused = self.minted.iter().any(|token| !tokens.contains(token));
        let of_others = tokens.iter().filter(|token| {
            was_refused && self.document.is_none() && token.is_from_attempt() && !token.is_from(&self.attempt)
        });
        own.chain(of_others).cloned().collect()
    }

    /// Returns `true` if claims are numbered; without a ledger they are not.
    fn is_counted(&self) -> bool {
        matches!(self.tokens, Tokens::Listed(_))
    }
}

/// Decides about a group from its document alone, before anything is claimed. Returns the decisions if every message
/// was processed before and nothing is left to do; otherwise `None`. An outdated document gives the same answer, only
/// later.
///
/// A partition that has ended is excluded: its last attempt may have left tokens, and once the document is deleted they
/// would restart the saga.
pub fn already_processed<S, E>(
    document: &Document<S>,
    group: &[IncomingEvent<E>],
    now: Timestamp,
) -> Option<Vec<MessageDecision>> {
    let content = &document.content;
    if content.ended_at.is_some() || document.outbox.iter().any(|entry| draft::is_immediate(entry, now)) {
        return None;
    }
    // The attempt that wrote the document had to extend the life of the ledger's item, and may have crashed before
    // that.
    let until = content.waits_until(&document.outbox, now);
    if !content.keeps_claim && !now.checked_add(ITEM_LIFETIME).is_ok_and(|least| lasts(least, until)) {
        return None;
    }
    let was_processed = |incoming: &IncomingEvent<E>| {
        content.processed.iter().any(|processed| draft::is_same_message(processed, &incoming.message))
    };
    group.iter().all(was_processed).then(|| all_duplicates(group))
}

/// Returns the decisions for a group whose messages were all processed before.
pub fn all_duplicates<E>(group: &[IncomingEvent<E>]) -> Vec<MessageDecision> {
    let why = "it, or another message with its token, was processed before";
    vec![draft::decision(Verdict::Duplicate, why); group.len()]
}

/// Decides about a group.
///
/// # Errors
/// Returns an error if the attempt was overtaken, has too few tokens, or an effect cannot be staged.
pub fn decide<S: Saga>(
    saga: &S,
    input: &PlanInput<'_, S::State>,
    group: &[IncomingEvent<S::Event>],
) -> Result<Plan<S::State>, PlanError> {
    // The latest document is loaded after the claim, so the holder of a later claim may have written it. That worker
    // removes the tokens that this attempt minted, because its document does not expect them, so they must not be
    // handed out. An item that expired restarts its fences, and a fence may then repeat.
    if input.is_counted() && input.document.is_some_and(|document| document.content.fence >= input.fence) {
        return Err(PlanError::Overtaken);
    }
    let mut draft = draft::Draft::new(saga, input);
    let decisions = group.iter().map(|incoming| draft.decide(incoming)).collect::<Result<Vec<_>, _>>()?;
    draft.finish(decisions)
}
