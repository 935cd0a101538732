//! The draft of a plan: the decisions about a group, message after message.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use messages::{Message, MessageId, Token, Verdict};
use outbox::{Entry, Kind};

use super::{Incoming, Judgement, Known, Plan, PlanError, room};
use crate::decision::{Advance, Decision};
use crate::document::{self, Content, Expected, Persist, Processed};
use crate::state_machine::{Event, Saga};

pub(super) struct Draft<'a, S: Saga> {
    pub(super) saga: &'a S,
    pub(super) known: &'a Known<'a, S::State>,
    pub(super) state: S::State,
    pub(super) timers: BTreeMap<String, MessageId>,
    pub(super) expected: Vec<Expected>,
    /// Tokens that may be handed out: minted, and not handed out yet.
    pub(super) spare: VecDeque<Token>,
    /// The number of tokens that the effects need.
    pub(super) needed: usize,
    /// `true` if the effects need more tokens than there are.
    pub(super) lacks_tokens: bool,
    pub(super) add: Vec<Entry>,
    pub(super) cancel: Vec<MessageId>,
    /// Tokens of messages that need no further delivery.
    pub(super) done_with: BTreeSet<Token>,
    /// `true` if the document is going to be stored.
    pub(super) changed: bool,
    pub(super) processed: Vec<Processed>,
    recovered: bool,
}

impl<'a, S: Saga> Draft<'a, S> {
    pub(super) fn new(saga: &'a S, known: &'a Known<'a, S::State>) -> Self {
        let content = known.document.map(|document| &document.content);
        let state = content.map_or_else(S::State::default, |content| content.state.clone());
        let timers = content.map_or_else(BTreeMap::new, |content| content.timers.clone());
        // An id is dropped only now that the claim's answer shows its token to be gone. Dropping it earlier would let a
        // redelivery with that token change the state again.
        let still_admitted =
            |processed: &&Processed| processed.token.as_ref().is_none_or(|token| known.tokens.admit(token));
        Self {
            saga,
            known,
            timers: if timers.is_empty() { saga.timers(&state) } else { timers },
            state,
            processed: content.map_or_else(Vec::new, |content| {
                content.processed.iter().filter(still_admitted).cloned().collect()
            }),
            expected: content.map_or_else(Vec::new, |content| content.expected.clone()),
            spare: room::spare(known),
            needed: 0,
            lacks_tokens: false,
            add: Vec::new(),
            cancel: Vec::new(),
            done_with: BTreeSet::new(),
            changed: false,
            recovered: false,
        }
    }

    pub(super) fn judge(&mut self, incoming: &Incoming<S::Event>) -> Result<Judgement, PlanError> {
        let message = &incoming.message;
        // The order of the checks matters. A token that is gone proves that the message was processed. A token that is still
        // there does not prove the opposite, so the processed ids are compared next.
        if message.token.as_ref().is_some_and(|token| !self.admits(token)) {
            return Ok(judgement(Verdict::Duplicate, "its token was used before"));
        }
        if let Some(processed) = self.processed.iter().find(|processed| stands_for(processed, message)) {
            let is_copy = processed.id == message.id;
            self.recovered = true;
            self.done_with.extend(message.token.clone());
            return Ok(if is_copy {
                judgement(Verdict::Recovered, "it changed the state before; completing the rest")
            } else {
                judgement(Verdict::Duplicate, "another message has used its token; completing the rest")
            });
        }
        if self.is_superseded(message) {
            self.done_with.extend(message.token.clone());
            return Ok(judgement(Verdict::Ignored, "an old timer, which was cancelled or set again"));
        }
        let event = Event { id: message.id, partition: message.partition, body: &incoming.event };
        let state = self.saga.name_of(&self.state);
        let judged = match self.saga.transition(&self.state, &event, self.known.now) {
            Decision::Advance(advance) => {
                let why = advance.why.clone();
                self.advance(message, advance)?;
                judgement(Verdict::Handled, why)
            }
            Decision::Ignore { why } => {
                // Otherwise the partition would wait for it forever, and a later claim would restore its token.
                if self.awaits(message) {
                    self.use_up(message);
                } else {
                    self.done_with.extend(message.token.clone());
                }
                judgement(Verdict::Ignored, why)
            }
            // The token stays, so that an operator may send the message again once the cause is removed.
            Decision::Reject { why } => judgement(Verdict::Rejected, why),
        };
        Ok(Judgement { state, ..judged })
    }

    /// Returns `true` if a message with this token may be processed. The document lists the unused tokens that it
    /// handed out, so it admits them even if the ledger has forgotten its item.
    fn admits(&self, token: &Token) -> bool {
        self.known.tokens.admit(token) || self.expected.iter().any(|expected| expected.token == *token)
    }

    /// Returns `true` if the document waits for this message: a reply, or the event of a running timer.
    fn awaits(&self, message: &Message) -> bool {
        let is_expected = |expected: &Expected| Some(&expected.token) == message.token.as_ref();
        self.expected.iter().any(is_expected) || self.timers.values().any(|id| *id == message.id)
    }

    /// Records that a message has used its token, whether or not the state changes: the partition no longer waits for
    /// it, and redeliveries of it are duplicates.
    fn use_up(&mut self, message: &Message) {
        // A timer that has fired is no longer running.
        self.timers.retain(|_, id| *id != message.id);
        self.strike_off(message);
        // The removal of the token is a later call. Until then the id marks the message as processed.
        self.changed = true;
        self.processed.push(Processed { id: message.id, token: message.token.clone() });
        self.expected.retain(|expected| Some(&expected.token) != message.token.as_ref());
        self.done_with.extend(message.token.clone());
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
    /// can be sent but not settled, each sweep would send them again, and only this stops the duplicates from
    /// multiplying.
    fn strike_off(&mut self, message: &Message) {
        let was_sent = |entry: &&Entry| entry.id == message.id || Some(entry.id) == message.causation_id;
        let outbox = self.known.document.map_or(&[][..], |document| &document.outbox);
        self.cancel.extend(outbox.iter().filter(was_sent).map(|entry| entry.id));
    }

    pub(super) fn finish(mut self, judgements: Vec<Judgement>) -> Result<Plan<S::State>, PlanError> {
        let known = self.known;
        // Before anything else: a plan with effects that lack their tokens must not be carried out.
        if self.lacks_tokens {
            return self.make_room();
        }
        let ended_at = self.saga.ended_at(&self.state);
        if ended_at.is_some() {
            // Replies that arrive after the end are duplicates or too late, so their tokens are removed too.
            self.expected.clear();
        }
        for entry in self.add.iter_mut().filter(|entry| is_urgent(entry, known.now)) {
            // Claimed within the same write, so that no sweep performs the entry at the same time.
            entry.claimed_until = Some(known.claim_until);
        }
        let remove = self.garbage();
        let dispatch = self.to_dispatch();
        let until = self.waits_until();
        // A message that was dropped leaves no trace in the document, so no later attempt would find its token. Such a
        // token has to be removed by this attempt.
        let is_found_again =
            |token: &&Token| self.processed.iter().any(|processed| processed.token.as_ref() == Some(*token));
        // Keeping the claim saves a call per attempt. It needs a write that the next attempt reads, few tokens to remove,
        // and an item that expires neither too early nor much too late for what the partition waits for.
        let leaves_claim = self.changed
            && known.is_counted()
            && ended_at.is_none()
            && remove.len() <= known.keep
            && self.done_with.iter().all(|token| is_found_again(&token))
            && super::lasts(known.expires_at, until)
            && !super::outlasts(known.expires_at, until);
        let until = self.changed.then_some(until);
        let persist = self.changed.then(|| Persist {
            partition: known.partition,
            loaded: known.document.map(|document| document.version),
            content: Content {
                state: self.state,
                state_version: S::STATE_VERSION,
                ended_at,
                processed: self.processed,
                expected: self.expected,
                timers: self.timers,
                attempt: known.attempt,
                fence: known.fence,
                leaves_claim,
            },
            add: self.add,
            cancel: self.cancel,
        });
        let (ended, gives_back) = (ended_at.is_some(), !leaves_claim);
        Ok(Plan { judgements, persist, dispatch, remove, ended, until, gives_back, again: None })
    }

    /// Returns the time until which the partition waits for a message once this plan is carried out.
    fn waits_until(&self) -> Timestamp {
        let left = self.known.document.map_or(&[][..], |document| &document.outbox);
        let left = left.iter().filter(|entry| !self.cancel.contains(&entry.id));
        document::waits_until(&self.expected, left.chain(&self.add), self.known.now)
    }

    /// Returns the new entries that are due and, after another worker's crash, the due entries that it left.
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

/// Returns `true` if the attempt that stores an entry also performs it. Views are left to the sweep, which writes those
/// of many partitions in one call. They are not urgent, because readers of a running saga use its document.
pub(super) fn is_urgent(entry: &Entry, now: Timestamp) -> bool {
    entry.is_due(now) && entry.kind != Kind::View
}

/// Returns `true` if a message is the processed one, or another one with the same token. A token admits one message,
/// but it may still be in the ledger if the worker that used it has crashed.
pub(super) fn stands_for(processed: &Processed, message: &Message) -> bool {
    processed.id == message.id || (message.token.is_some() && processed.token == message.token)
}

pub(super) fn judgement(verdict: Verdict, why: impl Into<String>) -> Judgement {
    Judgement { verdict, why: why.into(), state: None }
}

#[cfg(test)]
mod tests {
    use messages::Verdict;

    use crate::plan::toy::{self, Event, Toy};
    use crate::plan::{PlanError, decide, done_before};

    use super::is_urgent;

    #[test]
    fn an_attempt_that_loaded_the_work_of_a_later_one_is_overtaken() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        for (fence, overtaken) in [(stored.content.fence, true), (stored.content.fence + 1, false)] {
            let known = toy::Known { fence, ..toy::known(Some(&stored)) };
            let plan = decide(&Toy, &known, &[toy::incoming(2, Event::Closed {})]);
            assert_eq!(matches!(plan, Err(PlanError::Overtaken)), overtaken, "fence {fence}");
        }
    }

    #[test]
    fn each_verdict_has_its_situation() {
        let opened = toy::incoming(1, Event::Opened {});
        let stored = toy::stored(std::slice::from_ref(&opened));
        let used = toy::with_token(toy::incoming(2, Event::Closed {}), &toy::foreign_token());
        let ignored = toy::incoming(3, Event::Opened {});
        let rejected = toy::incoming(4, Event::Broken {});
        let judged = |incoming: &toy::In| {
            let plan = decide(&Toy, &toy::known(Some(&stored)), std::slice::from_ref(incoming)).unwrap();
            (plan.judgements[0].verdict, plan.persist.is_some())
        };
        assert_eq!(judged(&toy::incoming(5, Event::Closed {})), (Verdict::Handled, true));
        assert_eq!(judged(&used), (Verdict::Duplicate, false));
        assert_eq!(judged(&opened), (Verdict::Recovered, false));
        assert_eq!(judged(&ignored), (Verdict::Ignored, false));
        assert_eq!(judged(&rejected), (Verdict::Rejected, false));
    }

    #[test]
    fn a_decision_of_the_state_machine_says_in_which_state_it_was_made() {
        let group = [Event::Opened {}, Event::Prolonged {}, Event::Opened {}, Event::Broken {}];
        let group: Vec<_> =
            (1..).zip(group).map(|(n, event)| toy::untokened(toy::incoming(n, event))).collect();
        let states = |document, group: &[toy::In]| {
            let plan = decide(&Toy, &toy::known(document), group).unwrap();
            plan.judgements.iter().map(|judgement| judgement.state).collect::<Vec<_>>()
        };
        assert_eq!(states(None, &group), [Some("New"), Some("Open"), Some("Open"), Some("Open")]);
        let stored = toy::stored(&group[..1]);
        assert_eq!(states(Some(&stored), &group[..2]), [None, Some("Open")], "a copy needs no state machine");
    }

    #[test]
    fn of_two_messages_with_one_token_one_changes_the_state() {
        let opened = toy::incoming(1, Event::Opened {});
        let stored = toy::stored(std::slice::from_ref(&opened));
        let token = stored.content.expected[0].token.clone();
        let answer = |n, event| toy::with_token(toy::incoming(n, event), &token);
        let (one, other) = (answer(2, Event::Prolonged {}), answer(3, Event::Closed {}));
        let tokens = toy::listed(&[&toy::minted(10)[..], std::slice::from_ref(&token)].concat());
        let known = toy::Known { tokens: &tokens, ..toy::known(Some(&stored)) };
        let together = decide(&Toy, &known, &[one.clone(), other.clone()]).unwrap();
        let verdicts: Vec<_> = together.judgements.iter().map(|judgement| judgement.verdict).collect();
        assert_eq!(verdicts, [Verdict::Handled, Verdict::Duplicate]);

        // The worker of the first one has crashed before it removed the token.
        let persist = decide(&Toy, &known, &[one]).unwrap().persist.unwrap();
        let later = crate::Document { version: 2, content: persist.content, outbox: persist.add, ..stored };
        let known = toy::Known { document: Some(&later), fence: known.fence + 1, ..known };
        let plan = decide(&Toy, &known, &[other]).unwrap();
        assert_eq!((plan.judgements[0].verdict, plan.persist.is_none()), (Verdict::Duplicate, true));
        assert!(plan.remove.contains(&token));
    }

    #[test]
    fn a_claim_is_left_to_the_next_one_while_few_tokens_are_and_never_at_the_end() {
        let opened = toy::incoming(1, Event::Opened {});
        let stored = toy::stored(std::slice::from_ref(&opened));
        // Removed tokens: that of the message, those that were minted for the document, and the attempt's own unused
        // ones.
        let leaves = |event, keep| {
            let known = toy::Known { keep, ..toy::known(Some(&stored)) };
            let plan = decide(&Toy, &known, &[toy::incoming(2, event)]).unwrap();
            assert!(keep > 0 || plan.gives_back);
            (plan.remove.len(), !plan.gives_back)
        };
        let (count, _) = leaves(Event::Prolonged {}, 0);
        assert_eq!(leaves(Event::Prolonged {}, count), (count, true));
        assert_eq!(leaves(Event::Prolonged {}, count - 1), (count, false));
        assert!(!leaves(Event::Closed {}, 100).1, "no attempt follows the end");
        assert!(!leaves(Event::Opened {}, 100).1, "nothing was stored");
    }

    #[test]
    fn what_was_left_is_removed_with_the_next_change_and_forgotten_once_it_is_gone() {
        let opened = toy::incoming(1, Event::Opened {});
        let left = opened.message.token.clone().unwrap();
        let stored = toy::stored(&[opened]);
        let prolonged = |tokens: &dedup::Tokens| {
            let known = toy::Known { tokens, ..toy::known(Some(&stored)) };
            let plan = decide(&Toy, &known, &[toy::incoming(2, Event::Prolonged {})]).unwrap();
            let remembered = plan.persist.unwrap().content.processed.len();
            (plan.remove.contains(&left), remembered)
        };
        assert_eq!(prolonged(toy::known(None).tokens), (true, 2));
        let gone = toy::listed(&[&toy::minted(10)[..], &[toy::token(2)]].concat());
        assert_eq!(prolonged(&gone), (false, 1));
    }

    #[test]
    fn a_document_answers_for_what_it_remembers_while_nothing_is_left_to_be_sent() {
        let [opened, prolonged] =
            [(1, Event::Opened {}), (2, Event::Prolonged {})].map(|(n, event)| toy::incoming(n, event));
        let mut stored = toy::stored(&[opened.clone(), prolonged.clone()]);
        let now = toy::known(None).now;
        let group = [opened.clone(), prolonged];
        assert_eq!(done_before(&stored, &group, now), None, "the request is in the outbox");
        stored.outbox.retain(|entry| !is_urgent(entry, now));
        assert_eq!(done_before(&stored, &group, now).map(|judgements| judgements.len()), Some(2));
        let other =
            toy::with_token(toy::incoming(7, Event::Closed {}), opened.message.token.as_ref().unwrap());
        assert!(done_before(&stored, &[other], now).is_some(), "its token was used by another message");
        assert_eq!(done_before(&stored, &[opened.clone(), toy::incoming(3, Event::Closed {})], now), None);
        stored.content.ended_at = Some(now);
        assert_eq!(done_before(&stored, &[opened], now), None, "its tokens may still be there");
    }

    #[test]
    fn an_awaited_answer_that_is_ignored_is_awaited_no_more() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let token = stored.content.expected[0].token.clone();
        let timer = toy::id(1).named("patience");
        let answer = toy::with_token(toy::incoming(2, Event::Opened {}), &token);
        let mut fired = toy::untokened(toy::timer_event(3, &timer));
        fired.event = Event::Opened {};
        for (incoming, expected, timers) in [(answer, 1, 1), (fired, 2, 0)] {
            let plan = decide(&Toy, &toy::known(Some(&stored)), std::slice::from_ref(&incoming)).unwrap();
            assert_eq!(plan.judgements[0].verdict, Verdict::Ignored);
            let content = plan.persist.expect("the document no longer waits for it").content;
            assert_eq!(content.state, stored.content.state);
            assert_eq!((content.expected.len(), content.timers.len()), (expected, timers));
            let later = crate::Document { version: 2, content, ..stored.clone() };
            let known = toy::Known { fence: 7, ..toy::known(Some(&later)) };
            let copy = decide(&Toy, &known, &[incoming]).unwrap();
            assert!(copy.persist.is_none() && copy.judgements[0].verdict != Verdict::Ignored);
        }
    }

    #[test]
    fn an_acknowledged_message_leaves_no_token_behind() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let known = toy::Known { keep: 100, ..toy::known(Some(&stored)) };
        let (handled, ignored) = (toy::incoming(2, Event::Prolonged {}), toy::incoming(3, Event::Opened {}));
        let alone = decide(&Toy, &known, std::slice::from_ref(&handled)).unwrap();
        assert!(
            !alone.gives_back,
            "the document remembers the message, and the next attempt finds its token"
        );
        let token = ignored.message.token.clone().unwrap();
        let together = decide(&Toy, &known, &[handled, ignored]).unwrap();
        assert!(together.gives_back && together.remove.contains(&token));
        assert!(!together.persist.unwrap().content.leaves_claim);
    }

    #[test]
    fn the_document_admits_what_it_awaits_although_the_ledger_has_forgotten_it() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let expected =
            stored.content.expected.iter().find(|expected| {
                expected.by == crate::Awaited::Timeout(toy::id(1).named("patience").as_uuid())
            });
        let token = &expected.unwrap().token;
        let fired = toy::with_token(toy::timer_event(1, &toy::id(1).named("patience")), token);
        let forgotten = toy::listed(&toy::minted(2));
        let known = toy::Known { tokens: &forgotten, ..toy::known(Some(&stored)) };
        let plan = decide(&Toy, &known, std::slice::from_ref(&fired)).unwrap();
        assert_eq!(plan.judgements[0].verdict, Verdict::Handled);
        let over = toy::stored(&[toy::incoming(1, Event::Opened {}), toy::incoming(2, Event::Closed {})]);
        let known = toy::Known { document: Some(&over), ..known };
        let late = decide(&Toy, &known, &[fired]).unwrap();
        assert_eq!(late.judgements[0].verdict, Verdict::Duplicate);
    }

    #[test]
    fn a_long_timer_extends_the_life_of_the_ledger_item_once() {
        let known = |document, days: i64| {
            let expires_at = jiff::Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(24 * days);
            toy::Known { keep: 100, expires_at, ..toy::known(document) }
        };
        // The timer is due within an hour, and its message may be delivered for two weeks.
        for (days, gives_back) in [(15, true), (16, false)] {
            let plan = decide(&Toy, &known(None, days), &[toy::incoming(1, Event::Opened {})]).unwrap();
            assert_eq!(plan.gives_back, gives_back, "{days} days");
            let hour = jiff::Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_hours(1);
            assert_eq!(plan.until, Some(hour));
        }
        // After a crash before the extension, the redelivered message extends the life.
        let opened = toy::incoming(1, Event::Opened {});
        let mut stored = toy::stored(std::slice::from_ref(&opened));
        stored
            .outbox
            .retain(|entry| entry.kind == outbox::Kind::View || !is_urgent(entry, known(None, 0).now));
        let before = |document: &_| done_before(document, std::slice::from_ref(&opened), known(None, 0).now);
        assert!(before(&stored).is_some());
        for entry in &mut stored.outbox {
            entry.due_at += jiff::SignedDuration::from_hours(24 * 365);
        }
        assert!(before(&stored).is_none());
        stored.content.leaves_claim = true;
        assert!(before(&stored).is_some(), "its claim was long enough");
    }

    #[test]
    fn only_a_dropped_message_rests_on_the_document_being_the_latest() {
        let opened = toy::incoming(1, Event::Opened {});
        let stored = toy::stored(std::slice::from_ref(&opened));
        let trusts = |group: &[toy::In]| {
            decide(&Toy, &toy::known(Some(&stored)), group).unwrap().trusts_what_was_loaded()
        };
        let ignored = toy::incoming(3, Event::Opened {});
        assert!(trusts(std::slice::from_ref(&ignored)) && trusts(&[toy::incoming(4, Event::Broken {})]));
        assert!(!trusts(&[opened]) && !trusts(&[toy::incoming(5, Event::Closed {})]));
        assert!(!trusts(&[ignored, toy::incoming(5, Event::Prolonged {})]), "the write is conditional");
    }

    #[test]
    fn a_recovered_message_has_what_was_left_performed_again() {
        let opened = toy::incoming(1, Event::Opened {});
        let stored = toy::stored(std::slice::from_ref(&opened));
        let plan = decide(&Toy, &toy::known(Some(&stored)), &[opened]).unwrap();
        let left: Vec<_> = plan.dispatch.iter().map(|entry| entry.id).collect();
        assert_eq!(left, [toy::id(1).derive(1)], "the request is due; view and timer are not");
    }

    #[test]
    fn what_evidently_was_sent_leaves_the_outbox() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let (request, timer) = (toy::id(1).derive(1), toy::id(1).named("patience"));
        let struck_off = |incoming: toy::In| {
            let plan = decide(&Toy, &toy::known(Some(&stored)), &[incoming]).unwrap();
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
    fn the_end_waits_for_nothing() {
        let group = [toy::incoming(1, Event::Opened {}), toy::incoming(2, Event::Closed {})];
        let plan = decide(&Toy, &toy::known(None), &group).unwrap();
        let content = plan.persist.unwrap().content;
        assert!(plan.ended && content.expected.is_empty() && content.ended_at.is_some());
        assert!(content.timers.is_empty());
    }
}
