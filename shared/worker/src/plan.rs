//! What one attempt at one group of messages is going to do: a pure function of what was claimed and loaded.

use std::collections::{BTreeSet, VecDeque};

use contracts::message::UploadTimeout;
use contracts::{AttemptId, Body, Message, MessageId, SearchId, Token, Verdict};
use dedup::{Requirement, Tokens};
use jiff::Timestamp;
use outbox::{Entry, Kind, StageError};
use saga::{Decision, Effect, Event, State, transition};

use crate::document::{Awaited, Content, Document, Expected, Persist, Processed};

/// One message of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The message.
    pub message: Message,
    /// The event it brings.
    pub event: Event,
}

/// What was found out about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// What was decided.
    pub verdict: Verdict,
    /// Why.
    pub why: String,
}

/// What an attempt knows when it decides.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The search.
    pub search_id: SearchId,
    /// Its document, if there is one.
    pub document: Option<&'a Document>,
    /// The claim's answer.
    pub tokens: &'a Tokens,
    /// The fence of the claim.
    pub fence: u64,
    /// The attempt.
    pub attempt: AttemptId,
    /// The tokens it minted.
    pub minted: &'a [Token],
    /// The time.
    pub now: Timestamp,
    /// Until when the attempt claims the outbox entries it is about to perform.
    pub claim_until: Timestamp,
}

/// What an attempt is going to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// One for each message, in order.
    pub judgements: Vec<Judgement>,
    /// The write to make, unless nothing changes.
    pub persist: Option<Persist>,
    /// Entries to perform once that is stored.
    pub dispatch: Vec<Entry>,
    /// Tokens to remove at release if all this went well.
    pub remove: BTreeSet<Token>,
    /// Whether the search is over.
    pub ended: bool,
}

/// What a group's claim has to require: one message puts its token into the condition, so that a duplicate costs
/// one call; several look theirs up in the answer. One without a token asks for nothing.
pub fn requirement(group: &[Incoming]) -> Requirement {
    let mut tokens = group.iter().map(|incoming| &incoming.message.token);
    match group {
        [only] => only.message.token.clone().map_or(Requirement::Nothing, Requirement::Token),
        _ if tokens.any(Option::is_none) => Requirement::Nothing,
        _ => Requirement::Known,
    }
}

/// The tokens that an attempt at this group mints with its claim.
///
/// Parsing starts once in a search, and the event that starts it announces as many tokens as that needs; at most
/// one other event of the group starts the search's only timeout.
pub fn mint(group: &[Incoming], attempt: &AttemptId) -> Vec<Token> {
    let most = group.iter().map(|incoming| incoming.event.tokens_needed()).max().unwrap_or(0);
    let count = if most == 0 { 0 } else { most + 1 };
    let partition = group.first().map(|incoming| incoming.message.correlation_id);
    partition
        .map(|partition| (0..count).map(|n| Token::minted_by_attempt(partition, attempt, n)).collect())
        .unwrap_or_default()
}

/// Decides about a group.
///
/// # Errors
/// When the attempt was overtaken or an effect cannot be staged; then nothing of the group is done.
pub fn decide(known: &Known<'_>, group: &[Incoming]) -> Result<Plan, PlanError> {
    // Loading runs beside the claim, so the document may be one that a later claim's holder has written. Its release
    // removes this attempt's mints, which it does not know of as expected; so they must not be given out.
    if known.document.is_some_and(|document| document.content.fence > known.fence) {
        return Err(PlanError::Overtaken);
    }
    let mut draft = Draft::new(known);
    let judgements = group.iter().map(|incoming| draft.judge(incoming)).collect::<Result<Vec<_>, _>>()?;
    Ok(draft.finish(judgements))
}

/// Why a plan could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// An effect could not be staged.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// Another worker took the partition over and stored something; only a new attempt can go on.
    #[error("another worker has taken the partition over")]
    Overtaken,
    /// An event needed more tokens than it announced.
    #[error("the attempt minted too few tokens")]
    TooFewTokens,
}

/// A plan in the making.
struct Draft<'a> {
    known: &'a Known<'a>,
    state: State,
    processed: Vec<Processed>,
    expected: Vec<Expected>,
    spare: VecDeque<Token>,
    add: Vec<Entry>,
    cancel: Vec<MessageId>,
    done_with: BTreeSet<Token>,
    changed: bool,
    recovered: bool,
}

impl<'a> Draft<'a> {
    fn new(known: &'a Known<'a>) -> Self {
        let content = known.document.map(|document| &document.content);
        // An id may leave only now: this claim's answer shows that its token is gone.
        let still_admitted =
            |processed: &&Processed| processed.token.as_ref().is_none_or(|token| known.tokens.admit(token));
        Self {
            known,
            state: content.map_or(State::Initial, |content| content.state.clone()),
            processed: content.map_or_else(Vec::new, |content| {
                content.processed.iter().filter(still_admitted).cloned().collect()
            }),
            expected: content.map_or_else(Vec::new, |content| content.expected.clone()),
            spare: match known.tokens {
                Tokens::Listed(_) => known.minted.iter().cloned().collect(),
                Tokens::Unchecked => VecDeque::new(),
            },
            add: Vec::new(),
            cancel: Vec::new(),
            done_with: BTreeSet::new(),
            changed: false,
            recovered: false,
        }
    }

    fn judge(&mut self, incoming: &Incoming) -> Result<Judgement, PlanError> {
        let message = &incoming.message;
        if message.token.as_ref().is_some_and(|token| !self.known.tokens.admit(token)) {
            return Ok(judgement(Verdict::Duplicate, "its token was used before"));
        }
        if self.processed.iter().any(|processed| processed.id == message.id) {
            self.recovered = true;
            self.done_with.extend(message.token.clone());
            return Ok(judgement(Verdict::Recovered, "it changed the state before; finishing what was left"));
        }
        Ok(match transition(&self.state, &incoming.event, self.known.now) {
            Decision::Advance { next, effects, note } => {
                self.advance(message, *next, effects)?;
                judgement(Verdict::Handled, note)
            }
            Decision::Ignore { reason } => {
                self.done_with.extend(message.token.clone());
                judgement(Verdict::Ignored, reason)
            }
            // Its token stays, so that an operator may send it again once the reason is gone.
            Decision::Reject { reason } => judgement(Verdict::Rejected, reason),
        })
    }

    fn advance(&mut self, message: &Message, next: State, effects: Vec<Effect>) -> Result<(), PlanError> {
        for (index, effect) in effects.into_iter().enumerate() {
            self.stage(message, index, effect)?;
        }
        self.state = next;
        self.changed = true;
        self.processed.push(Processed { id: message.id, token: message.token.clone() });
        self.expected.retain(|expected| Some(&expected.token) != message.token.as_ref());
        self.done_with.extend(message.token.clone());
        Ok(())
    }

    fn stage(&mut self, cause: &Message, index: usize, effect: Effect) -> Result<(), PlanError> {
        let id = cause.id.derive(index);
        let now = self.known.now;
        match effect {
            Effect::WriteJob(mut job) => {
                job.revision = self.known.document.map_or(0, |document| document.version) + 1;
                // All writes of one attempt have one revision, so only the last of them may remain; and those of
                // earlier revisions are out of date.
                self.add.retain(|entry| entry.kind != Kind::Job);
                let outbox = self.known.document.map_or(&[][..], |document| &document.outbox);
                let earlier = outbox.iter().filter(|entry| entry.kind == Kind::Job && !entry.poisoned);
                self.cancel.extend(earlier.map(|entry| entry.id));
                self.add.push(Entry::job(id, &job, now)?);
            }
            Effect::StartParsing(mut command) => {
                command.reply_token = self.token_for(Awaited::File(command.file_id))?;
                let message = caused(cause, id, None, Body::StartParsing(command), now);
                self.add.push(Entry::message(&message, now)?);
            }
            Effect::Publish(body) => {
                self.add.push(Entry::message(&caused(cause, id, None, *body, now), now)?);
            }
            Effect::ScheduleTimeout { timeout_id, due_at } => {
                let token = self.token_for(Awaited::Timeout(timeout_id))?;
                let body = Body::UploadTimeout(UploadTimeout { timeout_id });
                let id = MessageId::from_uuid(timeout_id.as_uuid());
                self.add.push(Entry::message(&caused(cause, id, token, body, due_at), due_at)?);
            }
            Effect::CancelTimeout { timeout_id } => {
                let id = MessageId::from_uuid(timeout_id.as_uuid());
                self.add.retain(|entry| entry.id != id);
                self.cancel.push(id);
                self.expected.retain(|expected| expected.by != Awaited::Timeout(timeout_id));
            }
        }
        Ok(())
    }

    /// A fresh token for an awaited message; none when there is no ledger.
    fn token_for(&mut self, by: Awaited) -> Result<Option<Token>, PlanError> {
        if matches!(self.known.tokens, Tokens::Unchecked) {
            return Ok(None);
        }
        let token = self.spare.pop_front().ok_or(PlanError::TooFewTokens)?;
        self.expected.push(Expected { token: token.clone(), by });
        Ok(Some(token))
    }

    fn finish(mut self, judgements: Vec<Judgement>) -> Plan {
        let known = self.known;
        let ended = self.state.completed_at().is_some();
        if ended {
            self.expected.clear();
        }
        for entry in self.add.iter_mut().filter(|entry| is_urgent(entry, known.now)) {
            entry.claimed_until = Some(known.claim_until);
        }
        let remove = self.garbage();
        let dispatch = self.to_dispatch();
        let persist = self.changed.then(|| Persist {
            search_id: known.search_id,
            loaded: known.document.map(|document| document.version),
            content: Content {
                state: self.state,
                processed: self.processed,
                expected: self.expected,
                attempt: known.attempt,
                fence: known.fence,
            },
            add: self.add,
            cancel: self.cancel,
        });
        Plan { judgements, persist, dispatch, remove, ended }
    }

    /// The tokens that nobody needs once this plan is carried out.
    ///
    /// Only an attempt that stores the document knows what it expects, and may judge other attempts' tokens; any
    /// other removes what it is done with and what it minted itself.
    fn garbage(&self) -> BTreeSet<Token> {
        let expected: BTreeSet<&Token> = self.expected.iter().map(|expected| &expected.token).collect();
        let answer: Vec<&Token> = match self.known.tokens {
            Tokens::Listed(tokens) => tokens.iter().collect(),
            Tokens::Unchecked => Vec::new(),
        };
        let may_judge = |token: &Token| self.changed || token.is_from(&self.known.attempt);
        let garbage = answer
            .into_iter()
            .filter(|token| token.is_from_attempt() && may_judge(token) && !expected.contains(token))
            .cloned();
        garbage.chain(self.done_with.iter().cloned()).collect()
    }

    /// Fresh entries that are due and, after a crash of somebody else, what that left behind.
    fn to_dispatch(&self) -> Vec<Entry> {
        let left =
            self.known.document.filter(|_| self.recovered).map_or(&[][..], |document| &document.outbox);
        left.iter()
            .filter(|entry| !self.cancel.contains(&entry.id))
            .chain(&self.add)
            .filter(|entry| is_urgent(entry, self.known.now))
            .cloned()
            .collect()
    }
}

/// Whether an entry is performed by the attempt that stores it. Jobs are left to the sweep, which writes those of many
/// searches in one call: nobody waits for them, because a running import is read from its document.
fn is_urgent(entry: &Entry, now: Timestamp) -> bool {
    entry.is_due(now) && entry.kind != Kind::Job
}

fn judgement(verdict: Verdict, why: impl Into<String>) -> Judgement {
    Judgement { verdict, why: why.into() }
}

fn caused(cause: &Message, id: MessageId, token: Option<Token>, body: Body, time: Timestamp) -> Message {
    Message {
        id,
        source: "run-saga".into(),
        time,
        correlation_id: cause.correlation_id,
        causation_id: Some(cause.id),
        token,
        traceparent: Some(cause.traceparent_of_effects().to_string()),
        body,
    }
}
