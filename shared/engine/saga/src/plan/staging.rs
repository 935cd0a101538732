//! Effects as outbox entries.

use dedup::Tokens;
use messages::{Body, Message, MessageId, PartitionKey, Payload, Queue, ReplyAddress, Token};
use outbox::{Entry, Key, Kind, MAX_FURTHER_LISTS, OwnedRecord};
use serde_json::Value;

use super::PlanError;
use super::draft::Draft;
use crate::decision::Effect;
use crate::document::{ExpectedMessage, ExpectedToken};
use crate::instance;
use crate::state_machine::Saga;

impl<S: Saga> Draft<'_, S> {
    /// Stages one effect of a message that leads to the state `next`. The id of the effect is derived from its index.
    pub(super) fn stage(
        &mut self,
        cause: &Message,
        next: &S::State,
        index: usize,
        effect: Effect,
    ) -> Result<(), PlanError> {
        let (id, now) = (cause.id.derive(index), self.input.now);
        if let Some(wait) = wait_of(&effect)
            && self.saga.ended_at(next).is_some()
        {
            return Err(PlanError::Unawaited(wait));
        }
        match effect {
            Effect::Send { to, body } => {
                let message = cause.caused_message(id, self.input.function, now, body);
                self.add.push(Entry::message(&message, to, now)?);
            }
            Effect::Request { to, body } => self.ask(cause, id, to, body)?,
            // The reply token belongs to this partition, which waits for the reply. The token of the message belongs to
            // the receiving partition, and is granted there before the message is stored.
            Effect::Notify { to, partition, body, is_request } => {
                let message = cause.caused_message(id, self.input.function, now, body);
                let (reply_token, reply_to) = match is_request {
                    true => {
                        (self.token_for(ExpectedMessage::Reply(id.as_uuid())), Some(self.reply_address()))
                    }
                    false => (None, None),
                };
                let token = self.entry_token(partition, id);
                let message = Message { token, reply_token, reply_to, ..message }.in_partition(partition);
                self.add.push(Entry::message(&message, to, now)?);
            }
            Effect::Reply { to, partition, token, body } => {
                let message = cause.caused_message(id, self.input.function, now, body);
                let message = Message { token, ..message }.in_partition(partition);
                self.add.push(Entry::message(&message, to, now)?);
            }
            Effect::Schedule { timer, due_at, to, body } => {
                self.cancel_timer(&timer);
                let id = cause.id.for_timer(&timer);
                let token = self.token_for(ExpectedMessage::Timeout(id.as_uuid()));
                self.timers.insert(timer.clone(), id);
                let message = cause.caused_message(id, self.input.function, due_at, body);
                let message = Message { token, timer: Some(timer), ..message };
                self.add.push(Entry::message(&message, to, due_at)?);
            }
            Effect::Cancel { timer } => self.cancel_timer(&timer),
            Effect::UpdateView => self.show(id, next)?,
            Effect::Write { key, body } => self.write(id, key, body)?,
            Effect::Broken(why) => return Err(PlanError::Broken(why)),
        }
        Ok(())
    }

    fn ask(&mut self, cause: &Message, id: MessageId, to: Queue, mut body: Body) -> Result<(), PlanError> {
        let reply_token = self.token_for(ExpectedMessage::Reply(id.as_uuid()));
        if let Some(token) = &reply_token {
            self.saga.embed_reply_token(&mut body, token);
        }
        let message = cause.caused_message(id, self.input.function, self.input.now, body);
        self.add.push(Entry::message(&Message { reply_token, ..message }, to, self.input.now)?);
        Ok(())
    }

    fn reply_address(&self) -> ReplyAddress {
        ReplyAddress { queue: S::Event::QUEUE, partition: self.input.partition }
    }

    /// Returns the token of an event for another partition; `None` without a ledger. Each attempt has a new token. If
    /// attempts shared a token, a delayed attempt could grant it again after its use.
    fn entry_token(&mut self, partition: PartitionKey, event: MessageId) -> Option<Token> {
        if matches!(self.input.tokens, Tokens::Unchecked) {
            return None;
        }
        let token = instance::entry_token(partition, event, self.input.attempt.as_uuid().as_bytes());
        self.grants.push((partition, token.clone()));
        Some(token)
    }

    fn cancel_timer(&mut self, timer: &str) {
        let Some(id) = self.timers.remove(timer) else { return };
        self.add.retain(|entry| entry.id != id);
        self.cancel.push(id);
        self.expected.retain(|expected| expected.by != ExpectedMessage::Timeout(id.as_uuid()));
    }

    /// Adds the view. All views of one attempt have the same revision, so only the last one may stay, and views of
    /// earlier revisions are outdated, also one that its store refuses.
    fn show(&mut self, id: MessageId, next: &S::State) -> Result<(), PlanError> {
        let Some(view) = self.saga.view(self.input.partition, next) else { return Ok(()) };
        if view.also_in.len() > MAX_FURTHER_LISTS {
            return Err(PlanError::TooManyLists(view.also_in.len()));
        }
        self.add.retain(|entry| entry.kind != Kind::View);
        let earlier = self.input.outbox().iter().filter(|entry| entry.kind == Kind::View);
        self.cancel.extend(earlier.map(|entry| entry.id));
        self.add.push(Entry::view(id, view.at_revision(self.input.next_version()), self.input.now));
        Ok(())
    }

    /// Adds an effect that writes the record, or removes it if `body` is `None`. All writes of one attempt have the same
    /// revision, so only the last one of a record may stay. A removal cancels earlier writes, because a store forgets it
    /// after some days, and an operator may requeue an exhausted write later.
    fn write(&mut self, id: MessageId, key: Key, body: Option<Value>) -> Result<(), PlanError> {
        let earlier = self.records.insert(key.clone(), id);
        self.add.retain(|entry| Some(entry.id) != earlier);
        let removed_at = body.is_none().then_some(self.input.now);
        if removed_at.is_some() {
            let writes = self.input.outbox().iter().filter(|entry| entry.record_key().as_ref() == Some(&key));
            self.cancel.extend(writes.map(|entry| entry.id));
        }
        let body = body.unwrap_or_default();
        let record = OwnedRecord { key, revision: self.input.next_version(), body, removed_at };
        self.add.push(Entry::record(id, &record, self.input.now)?);
        Ok(())
    }

    /// Returns a token for an awaited message; `None` without a ledger. If too few tokens exist, the remaining effects
    /// are staged without tokens, to count the required tokens. Such a plan is never carried out.
    fn token_for(&mut self, by: ExpectedMessage) -> Option<Token> {
        if matches!(self.input.tokens, Tokens::Unchecked) {
            return None;
        }
        self.needed += 1;
        let token = self.available_tokens.pop_front();
        self.lacks_tokens |= token.is_none();
        self.expected.extend(token.clone().map(|token| ExpectedToken { token, by }));
        token
    }
}

/// Returns the message that an instance waits for after an effect: a reply, or the event of a timer.
fn wait_of(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Request { body, .. } | Effect::Notify { body, is_request: true, .. } => {
            Some(format!("the reply to {}", body.name))
        }
        Effect::Schedule { body, .. } => Some(format!("the timer of {}", body.name)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use dedup::Tokens;
    use dedup::ledger::ITEM_LIFETIME;
    use jiff::Timestamp;
    use messages::{Message, Payload, ReplyAddress, Token};
    use outbox::{Key, Kind, OwnedRecord, View};

    use crate::plan::toy::{self, Event, OtherEvent, Toy};
    use crate::plan::{IncomingEvent, Plan, PlanError, PlanInput, TokenDemand, decide};

    fn staged(group: &[toy::In]) -> Vec<Message> {
        let plan = decide(&Toy, &toy::input(None), group).unwrap();
        let entries = plan.persist.unwrap().add;
        let messages = entries.iter().filter(|entry| entry.is_message());
        messages.map(|entry| Message::decode(&entry.payload).unwrap()).collect()
    }

    #[test]
    fn effects_derive_id_and_trace_from_cause() {
        let opened = toy::incoming(1, Event::Opened {});
        let messages = staged(std::slice::from_ref(&opened));
        let ids: Vec<_> = messages.iter().map(|message| message.id).collect();
        assert_eq!(ids, [toy::id(1).derive(1), toy::id(1).for_timer("patience")]);
        for message in messages {
            assert_eq!(message.causation_id, Some(opened.message.id));
            let trace = opened.message.traceparent_of_effects().to_string();
            assert_eq!((message.traceparent, message.source.as_str()), (Some(trace), "toy"));
        }
    }

    #[test]
    fn request_carries_reply_token_timer_its_own() {
        let messages = staged(&[toy::incoming(1, Event::Opened {})]);
        let [request, timer] = messages.as_slice() else { panic!("{messages:?}") };
        assert!(request.reply_token.is_some() && request.token.is_none() && request.timer.is_none());
        assert_eq!(request.body.data.value()["stamped"], request.reply_token.as_ref().unwrap().as_str());
        assert!(timer.token.is_some() && timer.reply_token.is_none());
        assert_eq!(timer.timer.as_deref(), Some("patience"));
        assert_ne!(timer.token, request.reply_token);
    }

    fn input_of<'a>(tokens: &'a Tokens, minted: &'a [Token]) -> PlanInput<'a, bool> {
        PlanInput {
            function: "other",
            partition: toy::partition(),
            document: None,
            tokens,
            fence: 5,
            attempt: toy::attempt(1),
            minted,
            now: Timestamp::UNIX_EPOCH,
            claim_until: Timestamp::UNIX_EPOCH,
            max_leftover: 0,
            expires_at: Timestamp::UNIX_EPOCH + ITEM_LIFETIME,
        }
    }

    /// The plan of the other saga for an event, with the messages that it sends.
    fn between(message: Message, tokens: &Tokens, minted: &[Token]) -> (Plan<bool>, Vec<Message>) {
        let input = input_of(tokens, minted);
        let incoming = IncomingEvent { message, event: OtherEvent::Asked {} };
        let plan = decide(&toy::Other, &input, &[incoming]).unwrap();
        let entries = &plan.persist.as_ref().unwrap().add;
        let messages = entries.iter().map(|entry| Message::decode(&entry.payload).unwrap()).collect();
        (plan, messages)
    }

    /// A saga whose only event ends it, and which may then ask a handler, request an event of another saga, or set a timer.
    #[derive(Clone, Copy)]
    enum Curious {
        Asks,
        Requests,
        Waits,
        Ends,
    }

    impl crate::Saga for Curious {
        const NAME: &'static str = "curious";
        type State = bool;
        type Event = OtherEvent;

        fn transition(
            &self,
            _: &bool,
            _: &crate::Event<'_, OtherEvent>,
            _: Timestamp,
        ) -> crate::Decision<bool> {
            let advance = crate::Decision::to(true, "ended");
            let receiver = crate::Instance::<toy::Toy>::at(toy::receiver());
            match self {
                Self::Asks => advance.ask(&toy::Request::Advise {}).into(),
                Self::Requests => advance.request(&receiver, &toy::Event::Opened {}).into(),
                Self::Ends => advance.into(),
                Self::Waits => advance.schedule("timer", Timestamp::MAX, &OtherEvent::Asked {}).into(),
            }
        }

        fn ended_at(&self, _: &bool) -> Option<Timestamp> {
            Some(Timestamp::UNIX_EPOCH)
        }
    }

    #[test]
    fn ending_instance_cannot_wait() {
        let minted = toy::minted(4);
        let tokens = toy::listed(&[&[toy::token(1)], &minted[..]].concat());
        let input = input_of(&tokens, &minted);
        for saga in [Curious::Asks, Curious::Requests, Curious::Waits] {
            let incoming = IncomingEvent { message: asked(), event: OtherEvent::Asked {} };
            let error = decide(&saga, &input, &[incoming]).unwrap_err();
            assert!(matches!(error, PlanError::Unawaited(_)), "{error}");
        }
    }

    /// A saga may end at a time of its business, which may have passed long ago.
    #[test]
    fn retention_begins_with_the_write() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let minted = toy::minted(4);
        let tokens = toy::listed(&[&[toy::token(1)], &minted[..]].concat());
        let incoming = IncomingEvent { message: asked(), event: OtherEvent::Asked {} };
        let plan =
            decide(&Curious::Ends, &PlanInput { now, ..input_of(&tokens, &minted) }, &[incoming]).unwrap();
        assert_eq!(plan.persist.unwrap().content.ended_at, Some(now));
    }

    fn asked() -> Message {
        let body = OtherEvent::Asked {}.body().unwrap();
        let message = Message::new(toy::id(1), "test", toy::partition(), Timestamp::UNIX_EPOCH, body);
        Message { token: Some(toy::token(1)), ..message }
    }

    #[test]
    fn token_of_event_is_granted_before_write() {
        let minted = toy::minted(1);
        let tokens = toy::listed(&[toy::token(1), minted[0].clone()]);
        let (plan, messages) = between(asked(), &tokens, &minted);
        let [request, event] = messages.as_slice() else { panic!("{messages:?}") };
        for message in [request, event] {
            assert_eq!(message.partition, toy::receiver());
            let token = message.token.clone().unwrap();
            assert!(token.is_for(toy::receiver()) && !token.is_from_attempt());
            assert!(plan.grants.contains(&(toy::receiver(), token)));
        }
        assert_eq!((plan.grants.len(), event.reply_to.clone()), (2, None));
        let reply_to = ReplyAddress { queue: OtherEvent::QUEUE, partition: toy::partition() };
        assert_eq!(
            (request.reply_to.clone(), request.reply_token.clone()),
            (Some(reply_to), Some(minted[0].clone()))
        );
        let (again, _) = between(asked(), &tokens, &minted);
        assert_eq!(again.grants, plan.grants, "the tokens follow from the attempt");
    }

    #[test]
    fn no_token_is_granted_without_ledger() {
        let (plan, messages) = between(asked(), &Tokens::Unchecked, &[]);
        assert!(plan.grants.is_empty() && messages.iter().all(|message| message.token.is_none()));
        assert!(messages[0].reply_to.is_some() && messages[0].reply_token.is_none());
    }

    #[test]
    fn reply_with_token_goes_to_requesting_partition() {
        let minted = toy::minted(1);
        let tokens = toy::listed(&[toy::token(1), minted[0].clone()]);
        let token = Token::minted_by_attempt(toy::receiver(), &toy::attempt(7), 0);
        let request = |queue| Message {
            reply_to: Some(ReplyAddress { queue, partition: toy::receiver() }),
            reply_token: Some(token.clone()),
            ..asked()
        };
        let (_, messages) = between(request(Event::QUEUE), &tokens, &minted);
        let reply = messages.last().unwrap();
        assert_eq!((reply.body.name.as_str(), reply.partition), ("Closed", toy::receiver()));
        assert_eq!(reply.token, Some(token.clone()));
        let (_, messages) = between(request(OtherEvent::QUEUE), &tokens, &minted);
        assert_eq!(messages.len(), 2, "another saga requested it");
    }

    #[test]
    fn resetting_timer_cancels_running_one() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let retry_with = toy::incoming(2, Event::Prolonged {});
        let plan = decide(&Toy, &toy::input(Some(&stored)), std::slice::from_ref(&retry_with)).unwrap();
        let persist = plan.persist.unwrap();
        assert_eq!(persist.cancel, [toy::id(1).for_timer("patience")]);
        assert_eq!(persist.content.timers["patience"], toy::id(2).for_timer("patience"));
        let timeouts = persist.content.expected.len();
        assert_eq!(timeouts, 2, "the answer and one timer: {:?}", persist.content.expected);
        let old = toy::timer_event(7, &toy::id(1).for_timer("patience"));
        let renewed = toy::stored(&[toy::incoming(1, Event::Opened {}), retry_with]);
        let plan = decide(&Toy, &toy::input(Some(&renewed)), &[old]).unwrap();
        assert_eq!(plan.decisions[0].why, "an old timer, which was cancelled or set again");
    }

    #[test]
    fn timer_cancelled_in_same_attempt_is_not_stored() {
        let plan = decide(
            &Toy,
            &toy::input(None),
            &[toy::incoming(1, Event::Opened {}), toy::incoming(2, Event::Closed {})],
        );
        let persist = plan.unwrap().persist.unwrap();
        assert!(persist.add.iter().all(|entry| entry.id != toy::id(1).for_timer("patience")));
    }

    #[test]
    fn only_last_view_of_attempt_remains() {
        let group = [toy::incoming(1, Event::Opened {}), toy::incoming(2, Event::Closed {})];
        let persist = decide(&Toy, &toy::input(None), &group).unwrap().persist.unwrap();
        let views: Vec<_> = persist.add.iter().filter(|entry| entry.kind == Kind::View).collect();
        let [view] = views.as_slice() else { panic!("{views:?}") };
        let view = View::from_payload(&view.payload, |_| None).unwrap();
        assert!(view.revision == 1 && view.ended);
    }

    #[test]
    fn refused_view_is_replaced_by_the_next() {
        let mut stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        for is_refused in [false, true] {
            let view = stored.outbox.iter_mut().find(|entry| entry.kind == Kind::View).unwrap();
            view.poisoned = is_refused;
            let earlier = view.id;
            let plan = decide(&Toy, &toy::input(Some(&stored)), &[toy::incoming(2, Event::Closed {})]);
            assert!(plan.unwrap().persist.unwrap().cancel.contains(&earlier), "{is_refused}");
        }
    }

    #[test]
    fn only_last_write_of_record_remains() {
        let group = [
            toy::incoming(1, Event::Opened {}),
            toy::incoming(2, Event::Prolonged {}),
            toy::incoming(3, Event::Prolonged {}),
        ];
        let persist = decide(&Toy, &toy::input(None), &group).unwrap().persist.unwrap();
        let records: Vec<_> = persist.add.iter().filter(|entry| entry.kind == Kind::Record).collect();
        let [record] = records.as_slice() else { panic!("{records:?}") };
        assert_eq!(record.id, toy::id(3).derive(1));
        let stored = toy::stored(&group[..1]);
        for (document, revision) in [(None, 1), (Some(&stored), 2)] {
            let group = if document.is_some() { &group[1..] } else { &group[..] };
            let persist = decide(&Toy, &toy::input(document), group).unwrap().persist.unwrap();
            let record = persist.add.iter().find(|entry| entry.kind == Kind::Record).unwrap();
            let OwnedRecord { key, revision: found, body, removed_at } =
                serde_json::from_str(&record.payload).unwrap();
            assert_eq!(removed_at, None);
            assert_eq!((key, found), (Key::new("toy", "due"), revision));
            assert_eq!(body, "1970-01-01T01:00:00Z");
        }
    }

    /// Its store forgets a removal after some days, and an operator may requeue an exhausted write later.
    #[test]
    fn removal_cancels_earlier_writes_of_record() {
        let stored =
            toy::stored(&[toy::incoming(1, Event::Opened {}), toy::incoming(2, Event::Prolonged {})]);
        let earlier: Vec<_> = stored.outbox.iter().filter(|entry| entry.kind == Kind::Record).collect();
        let [earlier] = earlier.as_slice() else { panic!("{earlier:?}") };
        let persist = decide(&Toy, &toy::input(Some(&stored)), &[toy::incoming(3, Event::Closed {})]);
        let persist = persist.unwrap().persist.unwrap();
        assert!(persist.cancel.contains(&earlier.id), "{:?}", persist.cancel);
        let added: Vec<_> = persist.add.iter().filter(|entry| entry.kind == Kind::Record).collect();
        let [removal] = added.as_slice() else { panic!("{added:?}") };
        let removal: OwnedRecord = serde_json::from_str(&removal.payload).unwrap();
        assert_eq!((removal.key.clone(), removal.revision), (Key::new("toy", "due"), 2));
        assert!(removal.removed_at.is_some() && removal.stored().body.is_none());
    }

    #[test]
    fn too_few_tokens_reports_demand() {
        let group = [toy::incoming(1, Event::Opened {})];
        let minted = toy::minted(1);
        let tokens = toy::listed(&[toy::token(1), minted[0].clone()]);
        let input = toy::PlanInput { minted: &minted, tokens: &tokens, ..toy::input(None) };
        let demand = TokenDemand { tokens: 2, capacity: 1 };
        assert!(
            matches!(decide(&Toy, &input, &group), Err(PlanError::TooFewTokens(found)) if found == demand)
        );
    }

    #[test]
    fn no_tokens_needed_without_ledger() {
        let input = toy::PlanInput { minted: &[], tokens: &dedup::Tokens::Unchecked, ..toy::input(None) };
        let plan = decide(&Toy, &input, &[toy::incoming(1, Event::Opened {})]).unwrap();
        assert!(plan.persist.unwrap().content.expected.is_empty() && plan.remove.len() == 1);
    }
}
