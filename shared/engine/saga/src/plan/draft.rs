//! The draft of a plan: the decisions about a group, message after message.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use messages::{Message, MessageId, PartitionKey, Payload, Token, Verdict};
use outbox::{Entry, Key, Kind, Settlement};

use super::{IncomingEvent, MessageDecision, Plan, PlanError, PlanInput, REPORT};
use crate::decision::{Advance, Decision};
use crate::document::{self, Content, ExpectedMessage, ExpectedToken, Persist, ProcessedMessage};
use crate::state_machine::{Event, Saga};

/// The state of the partition after the messages that are decided so far, and what the plan has to do for them.
pub(super) struct Draft<'a, S: Saga> {
    pub(super) saga: &'a S,
    pub(super) input: &'a PlanInput<'a, S::State>,
    pub(super) state: S::State,
    pub(super) timers: BTreeMap<String, MessageId>,
    pub(super) expected: Vec<ExpectedToken>,
    /// Tokens that may be handed out: minted, and not handed out yet.
    pub(super) available_tokens: VecDeque<Token>,
    /// The number of tokens that the effects need.
    pub(super) needed: usize,
    /// `true` if the effects need more tokens than the attempt has.
    pub(super) lacks_tokens: bool,
    pub(super) add: Vec<Entry>,
    /// The tokens of events for other partitions.
    pub(super) grants: Vec<(PartitionKey, Token)>,
    pub(super) cancel: Vec<MessageId>,
    /// The effects that write records.
    pub(super) records: BTreeMap<Key, MessageId>,
    /// Tokens of messages that need no further delivery.
    pub(super) processed_tokens: BTreeSet<Token>,
    /// `true` if the document is going to be stored.
    pub(super) changed: bool,
    pub(super) processed: Vec<ProcessedMessage>,
    /// `true` if an earlier attempt processed a message of the group. That attempt may have crashed before it sent its
    /// entries, so this one sends those that are due.
    recovered: bool,
    /// `true` if a report about a dead-lettered command changes the document.
    has_report: bool,
}

impl<'a, S: Saga> Draft<'a, S> {
    pub(super) fn new(saga: &'a S, input: &'a PlanInput<'a, S::State>) -> Self {
        let content = input.document.map(|document| &document.content);
        let state = content.map_or_else(S::State::default, |content| content.state.clone());
        let timers = content.map_or_else(BTreeMap::new, |content| content.timers.clone());
        // An id is dropped only now that the claim's answer shows its token to be gone. Dropping it earlier would let a
        // redelivery with that token change the state again.
        let still_admitted = |processed: &&ProcessedMessage| {
            processed.token.as_ref().is_none_or(|token| input.tokens.admit(token))
        };
        Self {
            saga,
            input,
            timers: if timers.is_empty() { saga.timers(&state) } else { timers },
            state,
            processed: content.map_or_else(Vec::new, |content| {
                content.processed.iter().filter(still_admitted).cloned().collect()
            }),
            expected: content.map_or_else(Vec::new, |content| content.expected.clone()),
            available_tokens: input.available_tokens(),
            needed: 0,
            lacks_tokens: false,
            add: Vec::new(),
            grants: Vec::new(),
            cancel: Vec::new(),
            records: BTreeMap::new(),
            processed_tokens: BTreeSet::new(),
            changed: false,
            recovered: false,
            has_report: false,
        }
    }

    /// Decides about the next message, and changes the draft accordingly.
    pub(super) fn decide(
        &mut self,
        incoming: &IncomingEvent<S::Event>,
    ) -> Result<MessageDecision, PlanError> {
        let message = &incoming.message;
        // The order of the checks matters. A token that is gone proves that the message was processed. An existing
        // token does not prove the opposite, so the processed ids are compared next.
        if message.token.as_ref().is_some_and(|token| !self.admits(token)) {
            return Ok(decision(Verdict::Duplicate, "its token was used before"));
        }
        if let Some(processed) = self.processed.iter().find(|processed| is_same_message(processed, message)) {
            let is_copy = processed.id == message.id;
            self.recovered = true;
            self.processed_tokens.extend(message.token.clone());
            return Ok(if is_copy {
                decision(Verdict::Recovered, "it changed the state before; completing the rest")
            } else {
                decision(Verdict::Duplicate, "another message has used its token; completing the rest")
            });
        }
        if self.is_stale_reply(message) {
            self.processed_tokens.extend(message.token.clone());
            return Ok(decision(Verdict::Ignored, "the partition does not expect this reply"));
        }
        if self.is_superseded(message) {
            self.processed_tokens.extend(message.token.clone());
            return Ok(decision(Verdict::Ignored, "an old timer, which was cancelled or set again"));
        }
        if let Some(controlled) = self.controlled(message) {
            return Ok(controlled);
        }
        let event = Event::of(message, &incoming.event);
        let state = self.saga.state_name(&self.state);
        let judged = match self.saga.transition(&self.state, &event, self.input.now) {
            Decision::Advance(advance) => {
                let why = advance.why.clone();
                self.advance(message, advance)?;
                decision(Verdict::Handled, why)
            }
            Decision::Ignore { why } => {
                // An expected message is used up although it changes nothing. Otherwise the partition would wait for it
                // forever, and a later claim would restore its token.
                if self.awaits(message) {
                    self.use_up(message);
                } else {
                    self.processed_tokens.extend(message.token.clone());
                }
                decision(Verdict::Ignored, why)
            }
            // The token remains for the redelivery.
            Decision::Postpone { why } => decision(Verdict::Retried, why),
            // The token remains, so that an operator may send the message again once the cause is removed.
            Decision::Reject { why } => decision(Verdict::Rejected, why),
        };
        Ok(MessageDecision { state, ..judged })
    }

    /// Returns the decision about a new message of an instance that an operator has paused or terminated; `None` if the
    /// state machine decides.
    fn controlled(&mut self, message: &Message) -> Option<MessageDecision> {
        let content = &self.input.document?.content;
        if let Some(by_operator) = &content.terminated {
            self.processed_tokens.extend(message.token.clone());
            return Some(decision(Verdict::Ignored, format!("the instance was terminated by {by_operator}")));
        }
        // The token stays for the redelivery, as for a message that the saga postpones.
        let by_operator = content.paused.as_ref()?;
        Some(decision(Verdict::Retried, format!("the instance was paused by {by_operator}")))
    }

    /// Returns `true` if a message with this token may be processed. The document lists the unused tokens that it
    /// handed out, so it admits them even if the ledger has forgotten its item.
    fn admits(&self, token: &Token) -> bool {
        self.input.tokens.admit(token) || self.expected.iter().any(|expected| expected.token == *token)
    }

    /// Returns `true` if the ledger admits a reply that the document does not expect. A document contains every token
    /// that its attempts handed out. Therefore, either a later document expects the reply, or the document that
    /// expected it was lost in a restore of the database, together with the data that the reply reports.
    fn is_stale_reply(&self, message: &Message) -> bool {
        let is_of_attempt = message.token.as_ref().is_some_and(Token::is_from_attempt);
        self.input.is_counted() && is_of_attempt && !self.awaits(message)
    }

    /// Returns `true` if the document waits for this message: a reply, or the event of a running timer.
    fn awaits(&self, message: &Message) -> bool {
        let is_expected = |expected: &ExpectedToken| Some(&expected.token) == message.token.as_ref();
        self.expected.iter().any(is_expected) || self.timers.values().any(|id| *id == message.id)
    }

    /// Records that a message has used its token, whether or not the state changes: the partition no longer waits for
    /// it, and redeliveries of it are duplicates.
    fn use_up(&mut self, message: &Message) {
        // A timer that has fired is no longer running.
        self.timers.retain(|_, id| *id != message.id);
        self.cancel_sent_entries(message);
        self.has_report |= is_report(message);
        // The removal of the token is a later call. Until then the id marks the message as processed.
        self.changed = true;
        self.processed.push(ProcessedMessage { id: message.id, token: message.token.clone() });
        self.expected.retain(|expected| Some(&expected.token) != message.token.as_ref());
        self.processed_tokens.extend(message.token.clone());
    }

    /// Returns `true` for the event of a timer that was cancelled or set again. The token check has the same result,
    /// but needs a ledger.
    fn is_superseded(&self, message: &Message) -> bool {
        message.timer.as_ref().is_some_and(|timer| self.timers.get(timer) != Some(&message.id))
    }

    fn advance(&mut self, message: &Message, advance: Advance<S::State>) -> Result<(), PlanError> {
        let Advance { next, effects, why: _ } = advance;
        self.use_up(message);
        for (index, effect) in effects.into_iter().enumerate() {
            self.stage(message, &next, index, effect)?;
        }
        self.state = *next;
        Ok(())
    }

    /// Cancels outbox entries that were evidently sent: the message itself, and the request that it answers. If entries
    /// can be sent but not settled, each sweep would send them again. Only this removal prevents the duplicates from
    /// multiplying.
    fn cancel_sent_entries(&mut self, message: &Message) {
        // The reply of a saga may be caused by a later message than the request.
        let mut expected =
            self.expected.iter().filter(|expected| Some(&expected.token) == message.token.as_ref());
        let request = expected.find_map(|expected| match expected.by {
            ExpectedMessage::Reply(id) => Some(MessageId::from_uuid(id)),
            ExpectedMessage::Timeout(_) => None,
        });
        let causes = [Some(message.id), message.causation_id, request];
        let was_sent = |entry: &&Entry| causes.contains(&Some(entry.id));
        self.cancel.extend(self.input.outbox().iter().filter(was_sent).map(|entry| entry.id));
    }

    /// Turns the draft into the plan of the attempt.
    pub(super) fn finish(mut self, decisions: Vec<MessageDecision>) -> Result<Plan<S::State>, PlanError> {
        let input = self.input;
        // This check comes first, because a plan with effects that lack their tokens must not be carried out.
        if self.lacks_tokens {
            return self.reclaim_tokens();
        }
        let content = input.document.map(|document| &document.content);
        let paused = content.and_then(|content| content.paused.clone());
        let terminated = content.and_then(|content| content.terminated.clone());
        // The retention begins with the write, in case the saga names an earlier time.
        let earliest = content.and_then(|content| content.ended_at).unwrap_or(input.now);
        let ended_at = self.saga.ended_at(&self.state).map(|at| at.max(earliest));
        let ended_at = terminated.as_ref().map(|terminated| terminated.at).or(ended_at);
        if ended_at.is_some() {
            // Replies that arrive after the end are duplicates or too late, so their tokens are removed too.
            self.expected.clear();
        }
        for entry in self.add.iter_mut().filter(|entry| is_immediate(entry, input.now)) {
            // The write that stores the entry also claims it, so that no sweep performs it at the same time.
            entry.claimed_until = Some(input.claim_until);
        }
        let remove = self.garbage();
        let takeovers = self.takeovers();
        let new = self.add.iter().filter(|entry| is_immediate(entry, input.now));
        let dispatch = takeovers.iter().filter_map(|taken| taken.keep.as_ref()).chain(new).cloned().collect();
        let until = self.waits_until();
        // A message that was dropped leaves no trace in the document, so no later attempt would find its token. Such a
        // token has to be removed by this attempt.
        let is_found_again =
            |token: &&Token| self.processed.iter().any(|processed| processed.token.as_ref() == Some(*token));
        // A kept claim saves a call per attempt. Its conditions: the next attempt reads this write, few tokens have to
        // be removed, and the ledger item expires neither before the partition's wait ends nor much later. The token of
        // a command that was reported as failed is removed at once: a handler executes a late copy of the command as long
        // as it finds the token.
        let keeps_claim = self.changed
            && !self.has_report
            && input.is_counted()
            && ended_at.is_none()
            && remove.len() <= input.max_leftover
            && self.processed_tokens.iter().all(|token| is_found_again(&token))
            && super::lasts(input.expires_at, until)
            && !super::outlasts(input.expires_at, until);
        let until = self.changed.then_some(until);
        let persist = self.changed.then(|| Persist {
            partition: input.partition,
            loaded: input.document.map(|document| document.version),
            version: input.next_version(),
            content: Content {
                state: self.state,
                state_version: S::STATE_VERSION,
                queue: Some(S::Event::QUEUE.name().to_owned()),
                ended_at,
                processed: self.processed,
                expected: self.expected,
                timers: self.timers,
                attempt: input.attempt,
                fence: input.fence,
                keeps_claim,
                paused,
                terminated,
            },
            add: self.add,
            cancel: self.cancel,
        });
        let (ended, releases_claim, grants) = (ended_at.is_some(), !keeps_claim, self.grants);
        Ok(Plan {
            decisions,
            grants,
            persist,
            takeovers,
            dispatch,
            remove,
            ended,
            until,
            releases_claim,
            retry_with: None,
        })
    }

    /// Returns the time until which the partition waits for a message once this plan is carried out.
    fn waits_until(&self) -> Timestamp {
        let left = self.input.outbox().iter().filter(|entry| !self.cancel.contains(&entry.id));
        document::waits_until(&self.expected, left.chain(&self.add), self.input.now)
    }

    /// Takes over the due entries that the worker of a redelivered message left.
    fn takeovers(&self) -> Vec<Settlement> {
        let left = if self.recovered { self.input.outbox() } else { &[] };
        left.iter()
            .filter(|entry| !self.cancel.contains(&entry.id) && is_immediate(entry, self.input.now))
            .map(|entry| Settlement::takeover(entry, self.input.claim_until))
            .collect()
    }
}

/// Returns `true` if a message reports that a command was dead-lettered.
fn is_report(message: &Message) -> bool {
    message.causation_id.is_some_and(|command| command.derive(REPORT) == message.id)
}

/// Returns `true` if the attempt that stores an entry also performs it. Views are left to the sweep, which writes the
/// views of many partitions in one call. They are not urgent, because readers of a running saga use its document.
pub(super) fn is_immediate(entry: &Entry, now: Timestamp) -> bool {
    entry.is_due(now) && entry.kind != Kind::View
}

/// Returns `true` if a message is the processed message, or has the same token. A token admits one message, but it may
/// still be in the ledger if the worker that used it has crashed.
pub(super) fn is_same_message(processed: &ProcessedMessage, message: &Message) -> bool {
    processed.id == message.id || (message.token.is_some() && processed.token == message.token)
}

pub(super) fn decision(verdict: Verdict, why: impl Into<String>) -> MessageDecision {
    MessageDecision { verdict, why: why.into(), state: None }
}

#[cfg(test)]
mod tests {
    use messages::Verdict;
    use outbox::Settlement;

    use crate::plan::toy::{self, Event, Toy};
    use crate::plan::{PlanError, admission, already_processed, decide};

    use super::is_immediate;

    #[test]
    fn attempt_with_older_fence_is_overtaken() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        for (fence, overtaken) in [(stored.content.fence, true), (stored.content.fence + 1, false)] {
            let input = toy::PlanInput { fence, ..toy::input(Some(&stored)) };
            let plan = decide(&Toy, &input, &[toy::incoming(2, Event::Closed {})]);
            assert_eq!(matches!(plan, Err(PlanError::Overtaken)), overtaken, "fence {fence}");
        }
    }

    #[test]
    fn each_verdict_is_reached() {
        let opened = toy::incoming(1, Event::Opened {});
        let stored = toy::stored(std::slice::from_ref(&opened));
        let used = toy::with_token(toy::incoming(2, Event::Closed {}), &toy::foreign_token());
        let ignored = toy::incoming(3, Event::Opened {});
        let rejected = toy::incoming(4, Event::Broken {});
        let postponed = toy::incoming(6, Event::Early {});
        let judged = |incoming: &toy::In| {
            let plan = decide(&Toy, &toy::input(Some(&stored)), std::slice::from_ref(incoming)).unwrap();
            (plan.decisions[0].verdict, plan.persist.is_some())
        };
        assert_eq!(judged(&toy::incoming(5, Event::Closed {})), (Verdict::Handled, true));
        assert_eq!(judged(&used), (Verdict::Duplicate, false));
        assert_eq!(judged(&opened), (Verdict::Recovered, false));
        assert_eq!(judged(&ignored), (Verdict::Ignored, false));
        assert_eq!(judged(&rejected), (Verdict::Rejected, false));
        assert_eq!(judged(&postponed), (Verdict::Retried, false));
    }

    #[test]
    fn postponed_message_keeps_its_token() {
        let (early, opened) = (toy::incoming(1, Event::Early {}), toy::incoming(2, Event::Opened {}));
        let token = early.message.token.clone().unwrap();
        let plan = decide(&Toy, &toy::input(None), &[early.clone(), opened]).unwrap();
        assert_eq!(plan.decisions[0].verdict, Verdict::Retried);
        assert!(!plan.remove.contains(&token));
        let processed = plan.persist.unwrap().content.processed;
        assert!(processed.iter().all(|processed| processed.id != early.message.id), "{processed:?}");
    }

    #[test]
    fn end_removes_token_of_postponed_message() {
        let (opened, early) = (toy::incoming(1, Event::Opened {}), toy::incoming(2, Event::Early {}));
        let stored = toy::stored(&[opened]);
        let input = toy::input(Some(&stored));
        let plan = decide(&Toy, &input, &[early.clone(), toy::incoming(3, Event::Closed {})]).unwrap();
        assert_eq!((plan.decisions[0].verdict, plan.ended), (Verdict::Retried, true));
        // The release of an ended partition removes all tokens.
        let ended = crate::Document { version: 2, content: plan.persist.unwrap().content, ..stored };
        let input = toy::PlanInput {
            document: Some(&ended),
            tokens: &toy::listed(&[]),
            fence: 7,
            ..toy::input(None)
        };
        let plan = decide(&Toy, &input, &[early]).unwrap();
        assert_eq!((plan.decisions[0].verdict, plan.persist), (Verdict::Duplicate, None));
    }

    /// The ledger contains the token of a document that was lost in a restore.
    #[test]
    fn reply_that_document_does_not_expect_is_ignored() {
        let opened = toy::incoming(1, Event::Opened {});
        let stored = toy::stored(std::slice::from_ref(&opened));
        let lost = admission::mint(toy::partition(), &toy::attempt(77), 1).remove(0);
        let reply = toy::with_token(toy::incoming(2, Event::Closed {}), &lost);
        let tokens = toy::listed(std::slice::from_ref(&lost));
        for document in [Some(&stored), None] {
            let input = toy::PlanInput { tokens: &tokens, ..toy::input(document) };
            let plan = decide(&Toy, &input, std::slice::from_ref(&reply)).unwrap();
            assert_eq!(plan.decisions[0].verdict, Verdict::Ignored);
            assert!(plan.needs_reread() && plan.remove.contains(&lost));
        }
    }

    #[test]
    fn decision_names_state_of_state_machine() {
        let group = [Event::Opened {}, Event::Prolonged {}, Event::Opened {}, Event::Broken {}];
        let group: Vec<_> =
            (1..).zip(group).map(|(n, event)| toy::untokened(toy::incoming(n, event))).collect();
        let states = |document, group: &[toy::In]| {
            let plan = decide(&Toy, &toy::input(document), group).unwrap();
            plan.decisions.iter().map(|decision| decision.state).collect::<Vec<_>>()
        };
        assert_eq!(states(None, &group), [Some("New"), Some("Open"), Some("Open"), Some("Open")]);
        let stored = toy::stored(&group[..1]);
        assert_eq!(states(Some(&stored), &group[..2]), [None, Some("Open")], "a copy needs no state machine");
    }

    #[test]
    fn messages_sharing_token_change_state_once() {
        let opened = toy::incoming(1, Event::Opened {});
        let stored = toy::stored(std::slice::from_ref(&opened));
        let token = stored.content.expected[0].token.clone();
        let answer = |n, event| toy::with_token(toy::incoming(n, event), &token);
        let (one, other) = (answer(2, Event::Prolonged {}), answer(3, Event::Closed {}));
        let tokens = toy::listed(&[&toy::minted(10)[..], std::slice::from_ref(&token)].concat());
        let input = toy::PlanInput { tokens: &tokens, ..toy::input(Some(&stored)) };
        let together = decide(&Toy, &input, &[one.clone(), other.clone()]).unwrap();
        let verdicts: Vec<_> = together.decisions.iter().map(|decision| decision.verdict).collect();
        assert_eq!(verdicts, [Verdict::Handled, Verdict::Duplicate]);

        // The worker of the first one has crashed before it removed the token.
        let persist = decide(&Toy, &input, &[one]).unwrap().persist.unwrap();
        let later = crate::Document { version: 2, content: persist.content, outbox: persist.add, ..stored };
        let input = toy::PlanInput { document: Some(&later), fence: input.fence + 1, ..input };
        let plan = decide(&Toy, &input, &[other]).unwrap();
        assert_eq!((plan.decisions[0].verdict, plan.persist.is_none()), (Verdict::Duplicate, true));
        assert!(plan.remove.contains(&token));
    }

    #[test]
    fn claim_is_kept_while_few_tokens_remain() {
        let opened = toy::incoming(1, Event::Opened {});
        let stored = toy::stored(std::slice::from_ref(&opened));
        // Removed tokens: the token of the message, the tokens that were minted for the document, and the attempt's own
        // unused tokens.
        let leaves = |event, keep| {
            let input = toy::PlanInput { max_leftover: keep, ..toy::input(Some(&stored)) };
            let plan = decide(&Toy, &input, &[toy::incoming(2, event)]).unwrap();
            assert!(keep > 0 || plan.releases_claim);
            (plan.remove.len(), !plan.releases_claim)
        };
        let (count, _) = leaves(Event::Prolonged {}, 0);
        assert_eq!(leaves(Event::Prolonged {}, count), (count, true));
        assert_eq!(leaves(Event::Prolonged {}, count - 1), (count, false));
        assert!(!leaves(Event::Closed {}, 100).1, "no attempt follows the end");
        assert!(!leaves(Event::Opened {}, 100).1, "nothing was stored");
    }

    #[test]
    fn leftover_tokens_are_removed_then_forgotten() {
        let opened = toy::incoming(1, Event::Opened {});
        let left = opened.message.token.clone().unwrap();
        let stored = toy::stored(&[opened]);
        let prolonged = |tokens: &dedup::Tokens| {
            let input = toy::PlanInput { tokens, ..toy::input(Some(&stored)) };
            let plan = decide(&Toy, &input, &[toy::incoming(2, Event::Prolonged {})]).unwrap();
            let remembered = plan.persist.unwrap().content.processed.len();
            (plan.remove.contains(&left), remembered)
        };
        assert_eq!(prolonged(toy::input(None).tokens), (true, 2));
        let gone = toy::listed(&[&toy::minted(10)[..], &[toy::token(2)]].concat());
        assert_eq!(prolonged(&gone), (false, 1));
    }

    #[test]
    fn document_answers_duplicates_once_outbox_is_sent() {
        let [opened, prolonged] =
            [(1, Event::Opened {}), (2, Event::Prolonged {})].map(|(n, event)| toy::incoming(n, event));
        let mut stored = toy::stored(&[opened.clone(), prolonged.clone()]);
        let now = toy::input(None).now;
        let group = [opened.clone(), prolonged];
        assert_eq!(already_processed(&stored, &group, now), None, "the request is in the outbox");
        stored.outbox.retain(|entry| !is_immediate(entry, now));
        assert_eq!(already_processed(&stored, &group, now).map(|decisions| decisions.len()), Some(2));
        let other =
            toy::with_token(toy::incoming(7, Event::Closed {}), opened.message.token.as_ref().unwrap());
        assert!(already_processed(&stored, &[other], now).is_some(), "its token was used by another message");
        assert_eq!(
            already_processed(&stored, &[opened.clone(), toy::incoming(3, Event::Closed {})], now),
            None
        );
        stored.content.ended_at = Some(now);
        assert_eq!(already_processed(&stored, &[opened], now), None, "its tokens may still be there");
    }

    #[test]
    fn ignored_reply_is_no_longer_expected() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let token = stored.content.expected[0].token.clone();
        let timer = toy::id(1).for_timer("patience");
        let answer = toy::with_token(toy::incoming(2, Event::Opened {}), &token);
        let mut fired = toy::untokened(toy::timer_event(3, &timer));
        fired.event = Event::Opened {};
        for (incoming, expected, timers) in [(answer, 1, 1), (fired, 2, 0)] {
            let plan = decide(&Toy, &toy::input(Some(&stored)), std::slice::from_ref(&incoming)).unwrap();
            assert_eq!(plan.decisions[0].verdict, Verdict::Ignored);
            let content = plan.persist.expect("the document no longer waits for it").content;
            assert_eq!(content.state, stored.content.state);
            assert_eq!((content.expected.len(), content.timers.len()), (expected, timers));
            let later = crate::Document { version: 2, content, ..stored.clone() };
            let input = toy::PlanInput { fence: 7, ..toy::input(Some(&later)) };
            let copy = decide(&Toy, &input, &[incoming]).unwrap();
            assert!(copy.persist.is_none() && copy.decisions[0].verdict != Verdict::Ignored);
        }
    }

    /// A handler executes a copy of the command as long as it finds the reply token.
    #[test]
    fn report_of_dead_letter_frees_its_token() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let input = toy::PlanInput { max_leftover: 100, ..toy::input(Some(&stored)) };
        let command = toy::id(7);
        for (index, releases_claim) in [(0, false), (super::REPORT, true)] {
            let mut reply = toy::incoming(2, Event::Prolonged {});
            (reply.message.id, reply.message.causation_id) = (command.derive(index), Some(command));
            let plan = decide(&Toy, &input, std::slice::from_ref(&reply)).unwrap();
            assert_eq!(plan.releases_claim, releases_claim, "{index}");
            assert!(plan.remove.contains(&reply.message.token.unwrap()), "a release removes it");
        }
    }

    #[test]
    fn acknowledged_message_leaves_no_token() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let input = toy::PlanInput { max_leftover: 100, ..toy::input(Some(&stored)) };
        let (handled, ignored) = (toy::incoming(2, Event::Prolonged {}), toy::incoming(3, Event::Opened {}));
        let alone = decide(&Toy, &input, std::slice::from_ref(&handled)).unwrap();
        assert!(
            !alone.releases_claim,
            "the document remembers the message, and the next attempt finds its token"
        );
        let token = ignored.message.token.clone().unwrap();
        let together = decide(&Toy, &input, &[handled, ignored]).unwrap();
        assert!(together.releases_claim && together.remove.contains(&token));
        assert!(!together.persist.unwrap().content.keeps_claim);
    }

    #[test]
    fn document_admits_expected_token_missing_in_ledger() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let expected = stored.content.expected.iter().find(|expected| {
            expected.by == crate::ExpectedMessage::Timeout(toy::id(1).for_timer("patience").as_uuid())
        });
        let token = &expected.unwrap().token;
        let fired = toy::with_token(toy::timer_event(1, &toy::id(1).for_timer("patience")), token);
        let forgotten = toy::listed(&toy::minted(2));
        let input = toy::PlanInput { tokens: &forgotten, ..toy::input(Some(&stored)) };
        let plan = decide(&Toy, &input, std::slice::from_ref(&fired)).unwrap();
        assert_eq!(plan.decisions[0].verdict, Verdict::Handled);
        let over = toy::stored(&[toy::incoming(1, Event::Opened {}), toy::incoming(2, Event::Closed {})]);
        let input = toy::PlanInput { document: Some(&over), ..input };
        let late = decide(&Toy, &input, &[fired]).unwrap();
        assert_eq!(late.decisions[0].verdict, Verdict::Duplicate);
    }

    #[test]
    fn long_timer_extends_ledger_item_once() {
        let input = |document, days: i64| {
            let expires_at = jiff::Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(24 * days);
            toy::PlanInput { max_leftover: 100, expires_at, ..toy::input(document) }
        };
        // The timer is due within an hour, and its message may be delivered for two weeks.
        for (days, releases_claim) in [(15, true), (16, false)] {
            let plan = decide(&Toy, &input(None, days), &[toy::incoming(1, Event::Opened {})]).unwrap();
            assert_eq!(plan.releases_claim, releases_claim, "{days} days");
            let hour = jiff::Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(1);
            assert_eq!(plan.until, Some(hour));
        }
        // After a crash before the extension, the redelivered message extends the life.
        let opened = toy::incoming(1, Event::Opened {});
        let mut stored = toy::stored(std::slice::from_ref(&opened));
        stored
            .outbox
            .retain(|entry| entry.kind == outbox::Kind::View || !is_immediate(entry, input(None, 0).now));
        let before =
            |document: &_| already_processed(document, std::slice::from_ref(&opened), input(None, 0).now);
        assert!(before(&stored).is_some());
        for entry in &mut stored.outbox {
            entry.due_at += jiff::SignedDuration::from_hours(24 * 365);
        }
        assert!(before(&stored).is_none());
        stored.content.keeps_claim = true;
        assert!(before(&stored).is_some(), "its claim was long enough");
    }

    #[test]
    fn only_dropped_message_needs_latest_document() {
        let opened = toy::incoming(1, Event::Opened {});
        let stored = toy::stored(std::slice::from_ref(&opened));
        let trusts =
            |group: &[toy::In]| decide(&Toy, &toy::input(Some(&stored)), group).unwrap().needs_reread();
        let ignored = toy::incoming(3, Event::Opened {});
        assert!(trusts(std::slice::from_ref(&ignored)) && trusts(&[toy::incoming(4, Event::Broken {})]));
        assert!(!trusts(&[opened]) && !trusts(&[toy::incoming(5, Event::Closed {})]));
        assert!(!trusts(&[ignored, toy::incoming(5, Event::Prolonged {})]), "the write is conditional");
    }

    #[test]
    fn recovered_message_performs_leftover_entries() {
        let opened = toy::incoming(1, Event::Opened {});
        let stored = toy::stored(std::slice::from_ref(&opened));
        let input = toy::input(Some(&stored));
        let plan = decide(&Toy, &input, &[opened]).unwrap();
        let left: Vec<_> = plan.dispatch.iter().map(|entry| entry.id).collect();
        assert_eq!(left, [toy::id(1).derive(1)], "the request is due; view and timer are not");
        let entry = stored.outbox.iter().find(|entry| entry.id == left[0]).unwrap();
        assert_eq!(plan.takeovers, [Settlement::takeover(entry, input.claim_until)]);
        assert_eq!(plan.takeovers[0].keep.as_ref(), plan.dispatch.first(), "its settlement needs this claim");
    }

    #[test]
    fn leftover_entry_is_repeated_once_per_claim() {
        let opened = toy::incoming(1, Event::Opened {});
        let mut stored = toy::stored(std::slice::from_ref(&opened));
        let (now, until) = (toy::input(None).now, toy::input(None).claim_until);
        stored.outbox.iter_mut().for_each(|entry| *entry = Settlement::takeover(entry, until).keep.unwrap());
        let repeats = |now| {
            let input = toy::PlanInput { now, ..toy::input(Some(&stored)) };
            let plan = decide(&Toy, &input, std::slice::from_ref(&opened)).unwrap();
            assert_eq!(plan.decisions[0].verdict, Verdict::Recovered);
            plan.dispatch.len()
        };
        assert_eq!(repeats(now), 0, "a sweep repeats it after its claim");
        assert_eq!(repeats(until), 1);
    }

    #[test]
    fn evidently_sent_entries_leave_outbox() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let (request, timer) = (toy::id(1).derive(1), toy::id(1).for_timer("patience"));
        let struck_off = |incoming: toy::In| {
            let plan = decide(&Toy, &toy::input(Some(&stored)), &[incoming]).unwrap();
            let cancel = plan.persist.unwrap().cancel;
            [request, timer].map(|id| cancel.iter().filter(|cancelled| **cancelled == id).count())
        };
        let mut answer = toy::incoming(2, Event::Closed {});
        answer.message.causation_id = Some(request);
        assert_eq!(struck_off(answer)[0], 1, "its answer is here");
        assert_eq!(struck_off(toy::incoming(2, Event::Closed {}))[0], 0, "it may still be there");
        assert_eq!(struck_off(toy::untokened(toy::timer_event(1, &timer))), [0, 1], "it went off");
    }

    #[test]
    fn ended_partition_expects_nothing() {
        let group = [toy::incoming(1, Event::Opened {}), toy::incoming(2, Event::Closed {})];
        let plan = decide(&Toy, &toy::input(None), &group).unwrap();
        let content = plan.persist.unwrap().content;
        assert!(plan.ended && content.expected.is_empty() && content.ended_at.is_some());
        assert!(content.timers.is_empty());
    }
}
