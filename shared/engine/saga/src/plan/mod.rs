//! What one attempt at one group of messages is going to do: a pure function of what was claimed and loaded.
//!
//! - [`admission`]: what the claim requires, and which tokens it mints;
//! - `draft`: message after message, from the loaded state to the next;
//! - `staging`: effects as outbox entries, timers, and the tokens that answers will carry;
//! - `garbage`: which tokens are not needed any more;
//! - `room`: what to do when the ledger took no more of them.

pub mod admission;
mod draft;
mod garbage;
mod room;
mod staging;
#[cfg(test)]
mod toy;

use std::collections::BTreeSet;

use dedup::Tokens;
use dedup::ledger::{ITEM_LIFETIME, SLACK};
use jiff::{SignedDuration, Timestamp};
use messages::{AttemptId, Message, PartitionKey, Token, Verdict};
use outbox::{Entry, StageError};

use crate::document::{Document, Persist};
use crate::state_machine::Saga;

/// One message of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Incoming<E> {
    /// The message.
    pub message: Message,
    /// The event it brings.
    pub event: E,
}

/// What was found out about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// What was decided.
    pub verdict: Verdict,
    /// Why.
    pub why: String,
    /// In which state, by its name; none where the state machine was not asked.
    pub state: Option<&'static str>,
}

/// What an attempt knows when it decides.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a, S> {
    /// The function on whose behalf it works, the source of what it sends.
    pub function: &'a str,
    /// The partition.
    pub partition: PartitionKey,
    /// Its document, if there is one.
    pub document: Option<&'a Document<S>>,
    /// The claim's answer.
    pub tokens: &'a Tokens,
    /// The fence of the claim.
    pub fence: u64,
    /// The attempt.
    pub attempt: AttemptId,
    /// The tokens it asked for; the answer shows whether there was room for them.
    pub minted: &'a [Token],
    /// The time.
    pub now: Timestamp,
    /// Until when the attempt claims the outbox entries it is about to perform.
    pub claim_until: Timestamp,
    /// The most tokens that it may leave to be removed by a later one.
    pub keep: usize,
    /// When the partition's ledger item is forgotten, as its claim has it.
    pub expires_at: Timestamp,
}

/// How long the ledger item outlives the last thing that is waited for, at least: a day more than the longest time that a
/// queue keeps the message.
pub(crate) const MARGIN: SignedDuration = SignedDuration::from_hours(15 * 24);

/// Whether an item that is forgotten at `expires_at` lasts much longer than a wait until `until` needs.
fn outlasts(expires_at: Timestamp, until: Timestamp) -> bool {
    until.checked_add(ITEM_LIFETIME + SLACK).is_ok_and(|most| expires_at > most)
}

/// Whether an item that is forgotten at `expires_at` lasts for a wait until `until`.
fn lasts(expires_at: Timestamp, until: Timestamp) -> bool {
    until.checked_add(MARGIN).is_ok_and(|needed| needed <= expires_at)
}

/// What an attempt is going to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan<S> {
    /// One for each message, in order.
    pub judgements: Vec<Judgement>,
    /// The write to make, unless nothing changes.
    pub persist: Option<Persist<S>>,
    /// Entries to perform once that is stored.
    pub dispatch: Vec<Entry>,
    /// Tokens to remove at release if all this went well.
    pub remove: BTreeSet<Token>,
    /// Whether the partition has ended.
    pub ended: bool,
    /// The time until which the stored document waits for something; none when nothing is stored.
    pub until: Option<Timestamp>,
    /// Whether the partition is given back, which is a call of its own. An attempt whose document says that it leaves its
    /// claim to the next one does not: nobody waits for it, and what it would remove the next one finds again.
    pub gives_back: bool,
    /// What the next attempt needs: this one only makes room for it, and judges nothing.
    pub again: Option<Need>,
}

/// The tokens that an attempt needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// How many it has to mint.
    pub tokens: usize,
    /// How many may be there before, because the partition waits for them.
    pub room: usize,
}

impl<S> Plan<S> {
    /// Whether a message is dropped for what a document says that may be an earlier version. A write on top of such a
    /// document is refused; where nothing is written, the latest has to be asked for. What has ended stays ended.
    pub fn trusts_what_was_loaded(&self) -> bool {
        let drops = |judgement: &Judgement| matches!(judgement.verdict, Verdict::Ignored | Verdict::Rejected);
        self.persist.is_none() && !self.ended && self.judgements.iter().any(drops)
    }
}

/// Why a plan could not be made. Nothing of the group is done then.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// An effect could not be staged.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// A message of the saga cannot be written as JSON.
    #[error("a message cannot be written: {0}")]
    Broken(String),
    /// Another worker took the partition over and stored something; only a new attempt can go on.
    #[error("another worker has taken the partition over")]
    Overtaken,
    /// The events need more tokens than the attempt has. A new one mints as many.
    #[error("{} tokens are needed, more than there are", .0.tokens)]
    TooFewTokens(Need),
}

impl<S> Known<'_, S> {
    /// Whether the document is certainly the latest: no claim came between the one of the attempt that wrote it and this
    /// one, and nobody writes a document without a claim.
    pub fn has_the_latest(&self) -> bool {
        let fence = self.document.map(|document| document.content.fence);
        self.is_counted() && fence.is_some_and(|fence| fence + 1 == self.fence)
    }

    /// Whether claims are counted: without a ledger there are none.
    fn is_counted(&self) -> bool {
        matches!(self.tokens, Tokens::Listed(_))
    }
}

/// What a document says by itself of a group, before anything is claimed: all of it changed the state before, and has been
/// seen to. Nothing where something is left to be done. An earlier version of a document says the same, only later.
///
/// A partition that has ended is not among them: its last attempt may have left tokens, and once the document is gone they
/// would bring it back.
pub fn done_before<S, E>(
    document: &Document<S>,
    group: &[Incoming<E>],
    now: Timestamp,
) -> Option<Vec<Judgement>> {
    let content = &document.content;
    if content.ended_at.is_some() || document.outbox.iter().any(|entry| draft::is_urgent(entry, now)) {
        return None;
    }
    // The attempt that wrote this had to extend the life of the ledger's item, and may have died before it did.
    let until = content.waits_until(&document.outbox, now);
    if !content.leaves_claim && !now.checked_add(ITEM_LIFETIME).is_ok_and(|least| lasts(least, until)) {
        return None;
    }
    let was_processed = |incoming: &Incoming<E>| {
        content.processed.iter().any(|processed| draft::stands_for(processed, &incoming.message))
    };
    group.iter().all(was_processed).then(|| duplicates(group))
}

/// All of a group was seen to before.
pub fn duplicates<E>(group: &[Incoming<E>]) -> Vec<Judgement> {
    let why = "it, or another message with its token, was seen to before";
    vec![draft::judgement(Verdict::Duplicate, why); group.len()]
}

/// Decides about a group.
///
/// # Errors
/// When the attempt was overtaken, has too few tokens, or an effect cannot be staged.
pub fn decide<S: Saga>(
    saga: &S,
    known: &Known<'_, S::State>,
    group: &[Incoming<S::Event>],
) -> Result<Plan<S::State>, PlanError> {
    // The latest is loaded after the claim, so the document may be one that a later claim's holder has written. It removes
    // this attempt's mints, which it does not know of as expected; so they must not be given out. An item that was
    // forgotten counts its fences anew; then a fence may be one that was there before.
    if known.is_counted() && known.document.is_some_and(|document| document.content.fence >= known.fence) {
        return Err(PlanError::Overtaken);
    }
    let mut draft = draft::Draft::new(saga, known);
    let judgements = group.iter().map(|incoming| draft.judge(incoming)).collect::<Result<Vec<_>, _>>()?;
    draft.finish(judgements)
}
