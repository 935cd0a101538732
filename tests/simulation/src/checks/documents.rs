//! Checks of each write of a saga document.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use messages::{Message, MessageId, PartitionKey, Token};
use outbox::{Entry, Key, Kind, OwnedRecord, Owner, View};
use saga::{Content, ExpectedMessage, Persist, ProcessedMessage};
use serde_json::Value;

use super::{EffectKind, StoredContent};
use crate::model::{ExpectedWrite, ObservedWrite, State, WantedMessage};
use crate::options::{Invariant, Mode};
use crate::world::World;

/// The parsed additions of a write to the outbox.
#[derive(Default)]
struct OutboxAdditions {
    messages: Vec<Message>,
    views: Vec<(MessageId, View)>,
    records: BTreeMap<Key, Option<Value>>,
    /// The time of the decision, if an effect contains it.
    decided_at: Option<Timestamp>,
}

/// The document that the attempt had loaded.
type Base = Option<(Arc<Content>, State)>;

impl World {
    /// Checks a write that is about to be stored. Returns the state of the document, or `None` if the state cannot be
    /// read.
    pub(crate) fn check_write(&mut self, write: &Persist, now: Timestamp) -> Option<State> {
        let application = Arc::clone(&self.application);
        let state = match application.read(&self.checks.queue_of(write.partition), &write.content) {
            Ok(state) => state,
            Err(why) => {
                let detail = || format!("partition {}: the state cannot be read: {why}", write.partition);
                self.violate(Invariant::EffectsWithTheirChange, detail);
                return None;
            }
        };
        let base = self.base(write);
        let known: &[ProcessedMessage] = base.as_ref().map_or(&[], |(content, _)| &content.processed);
        let is_fresh = |processed: &&ProcessedMessage| !known.iter().any(|known| known.id == processed.id);
        let fresh: Vec<&ProcessedMessage> = write.content.processed.iter().filter(is_fresh).collect();
        for processed in &fresh {
            if !self.checks.changed.insert(processed.id) {
                self.violate(Invariant::OneChangePerMessage, || {
                    format!("message {} changed partition {} again", processed.id, write.partition)
                });
            }
            self.check_admitted(write, base.as_ref(), processed);
        }
        self.check_obeyed(write.partition, base.as_ref(), !fresh.is_empty());
        let added = self.added(write);
        if let Err(detail) = self.follows(write, base.as_ref(), &fresh, &added, now) {
            self.violate(Invariant::EffectsWithTheirChange, || {
                format!("partition {}: {detail}", write.partition)
            });
        }
        let views: Vec<View> = added.views.into_iter().map(|(_, view)| view).collect();
        let before = base.as_ref().map(|(_, state)| state);
        let messages = &added.messages;
        self.hold(application.changed(&ObservedWrite {
            write,
            before,
            after: &state,
            messages,
            views: &views,
        }));
        let version = write.version;
        let stored =
            StoredContent { version, content: Arc::new(write.content.clone()), state: Arc::clone(&state) };
        self.checks.history.entry(write.partition).or_default().push(stored);
        Some(state)
    }

    fn base(&self, write: &Persist) -> Base {
        let loaded = write.loaded?;
        let history = self.checks.history.get(&write.partition)?;
        let stored = history.iter().rev().find(|stored| stored.version == loaded)?;
        Some((Arc::clone(&stored.content), Arc::clone(&stored.state)))
    }

    /// A token of an attempt admits a message only if a stored document contained it.
    fn check_admitted(
        &mut self,
        write: &Persist,
        base: Option<&(Arc<Content>, State)>,
        processed: &ProcessedMessage,
    ) {
        let Some(token) = processed.token.as_ref().filter(|token| token.is_from_attempt()) else { return };
        let expected =
            base.is_some_and(|(content, _)| content.expected.iter().any(|expected| expected.token == *token));
        if !expected {
            self.violate(Invariant::TokensAreKept, || {
                let (id, partition) = (processed.id, write.partition);
                format!(
                    "message {id} changed partition {partition} with token {token}, which was never given out"
                )
            });
        }
    }

    /// Records the effects of a write.
    fn added(&mut self, write: &Persist) -> OutboxAdditions {
        let mut added = OutboxAdditions::default();
        for id in &write.cancel {
            self.check_cancelled(write.partition, *id);
        }
        for entry in &write.add {
            let Some(kind) = self.meaning(write, entry, &mut added) else {
                let detail = || format!("partition {}: effect {} cannot be read", write.partition, entry.id);
                self.violate(Invariant::EffectsWithTheirChange, detail);
                continue;
            };
            // All effects except timers are due immediately.
            if !kind.is_timer() {
                added.decided_at = Some(entry.due_at);
            }
            self.checks.add_effect(write.partition, entry, kind);
            if let Some(until) = entry.claimed_until {
                self.checks.held.insert((Owner::Saga(write.partition), entry.id), until);
            }
        }
        added
    }

    /// Checks an effect that a write removed from the outbox. Only timers, views and records may be removed before they were
    /// performed. The last state of each record is checked at the end.
    fn check_cancelled(&mut self, partition: PartitionKey, id: MessageId) {
        let Some(effect) = self.checks.effects.get_mut(&(partition, id)) else { return };
        let may_be_taken_back =
            effect.kind.is_timer() || matches!(effect.kind, EffectKind::View | EffectKind::Record);
        effect.cancelled = may_be_taken_back;
        if !may_be_taken_back && effect.performed == 0 && !effect.undone {
            let detail = || format!("partition {partition} took effect {id} for sent, which was not");
            self.violate(Invariant::EffectsTakeEffectOnce, detail);
        }
    }

    fn meaning(&mut self, write: &Persist, entry: &Entry, added: &mut OutboxAdditions) -> Option<EffectKind> {
        if entry.kind == Kind::View {
            let view = View::from_payload(&entry.payload, |_| None).ok()?;
            self.checks.views.insert((write.partition, view.revision), entry.id);
            self.checks.shown.insert(write.partition, view.clone());
            added.views.push((entry.id, view));
            return Some(EffectKind::View);
        }
        if entry.kind == Kind::Record {
            let record: OwnedRecord = serde_json::from_str(&entry.payload).ok()?;
            if record.revision != write.version {
                return None;
            }
            self.checks.records.insert((record.key.clone(), record.revision), (write.partition, entry.id));
            self.checks.kept.insert(record.key.clone(), record.clone());
            let body = record.stored().body;
            added.records.insert(record.key, body);
            return Some(EffectKind::Record);
        }
        let message = Message::decode(&entry.payload).ok()?;
        // A partition that ends expects no more messages.
        if write.content.ended_at.is_none() {
            if message.timer.is_some() {
                self.check_token_origin(
                    write,
                    message.token.as_ref(),
                    ExpectedMessage::Timeout(entry.id.as_uuid()),
                );
            }
            if let Some(token) = &message.reply_token {
                self.check_token_origin(write, Some(token), ExpectedMessage::Reply(entry.id.as_uuid()));
            }
        }
        if message.partition != write.partition {
            self.checks.owners.insert(entry.id, write.partition);
        }
        added.messages.push(message.clone());
        Some(EffectKind::Message(Box::new(message)))
    }

    /// The recipient of a request has a reply token that the same write expects.
    fn check_token_origin(&mut self, write: &Persist, token: Option<&Token>, by: ExpectedMessage) {
        let fits = match (self.config.mode, token) {
            (Mode::Ledger, Some(token)) => {
                let expected = &write.content.expected;
                expected.iter().any(|expected| expected.token == *token && expected.by == by)
            }
            (Mode::Optimistic, None) => true,
            (Mode::Ledger, None) | (Mode::Optimistic, Some(_)) => false,
        };
        if !fits {
            self.violate(Invariant::TokensAreKept, || {
                let partition = write.partition;
                format!("partition {partition}: {by:?} was sent token {token:?}, which is not expected")
            });
        }
    }

    /// Checks that a write equals the result of the saga's transitions for the processed messages.
    fn follows(
        &self,
        write: &Persist,
        base: Option<&(Arc<Content>, State)>,
        fresh: &[&ProcessedMessage],
        added: &OutboxAdditions,
        now: Timestamp,
    ) -> Result<(), String> {
        let others = fresh.iter().filter_map(|processed| self.checks.sent.get(&processed.id));
        let max = others.map(|sent| sent.otherwise.len()).max().unwrap_or(0);
        let follows = |nth| self.follows_version(nth, write, base, fresh, added, now);
        (1..=max).map(follows).fold(follows(0), Result::or)
    }

    /// Works like [`Self::follows`], for the `nth` content of those messages.
    fn follows_version(
        &self,
        nth: usize,
        write: &Persist,
        base: Option<&(Arc<Content>, State)>,
        fresh: &[&ProcessedMessage],
        added: &OutboxAdditions,
        now: Timestamp,
    ) -> Result<(), String> {
        let message = |processed: &&ProcessedMessage| {
            let sent = self.checks.sent.get(&processed.id).and_then(|sent| sent.version(nth));
            sent.ok_or_else(|| format!("message {} was processed but never sent", processed.id))
        };
        let messages = fresh.iter().map(message).collect::<Result<Vec<_>, _>>()?;
        let base = base.map(|(content, state)| (&**content, state));
        if let (Some((content, _)), Some(_)) = (base, &write.content.terminated) {
            return self.ends_instance(write, content, added);
        }
        let queue = self.checks.queue_of(write.partition);
        let wanted = self.application.follow(&queue, base, &messages, added.decided_at.unwrap_or(now))?;
        if added.decided_at.is_some() && wanted.state != write.content.state {
            return Err(format!("the state is {}, and not {}", write.content.state, wanted.state));
        }
        same_effects(write, &wanted, added, self.config.mode)
    }
}

impl World {
    /// Checks that a write of an operator ends an instance and changes nothing else.
    fn ends_instance(
        &self,
        write: &Persist,
        before: &Content,
        added: &OutboxAdditions,
    ) -> Result<(), String> {
        let after = &write.content;
        let stored = self.documents.get(&write.partition);
        let outbox = stored.map_or(&[][..], |stored| &stored.document.outbox);
        let is_timer = |id: &MessageId| before.timers.values().any(|timer| timer == id);
        let readable = outbox.iter().filter(|entry| !self.unreadable.contains(&entry.id));
        let mut timers = readable.map(|entry| entry.id).filter(is_timer);
        let is_right = after.state == before.state
            && after.processed == before.processed
            && after.ended_at.is_some()
            && (after.expected.is_empty() && after.timers.is_empty())
            && (added.messages.is_empty() && added.records.is_empty())
            && added.views.iter().all(|(_, view)| view.ended && Some(view.revision) == next(write))
            && timers.all(|timer| write.cancel.contains(&timer));
        if is_right { Ok(()) } else { Err("an operator's termination changed something else".to_owned()) }
    }
}

fn next(write: &Persist) -> Option<u64> {
    write.loaded.map(|loaded| loaded + 1)
}

fn same_effects(
    write: &Persist,
    wanted: &ExpectedWrite,
    added: &OutboxAdditions,
    mode: Mode,
) -> Result<(), String> {
    let OutboxAdditions { messages, views, records, .. } = added;
    let entries = write.add.iter().filter(|entry| entry.is_message());
    for (entry, message) in entries.zip(messages) {
        let Some(known) = wanted.messages.get(&entry.id) else {
            return Err(format!("{} is an effect of nothing", message.body.name));
        };
        let WantedMessage { queue, partition, name, asks, is_timer, answers } = known;
        let is_answer = answers.is_none() || message.token == *answers;
        let goes_there = entry.kind == Kind::Message(queue.clone())
            && message.partition == *partition
            && message.body.name == *name
            && is_answer;
        let may_be_answered = message.reply_token.is_some() == (*asks && mode == Mode::Ledger);
        if !goes_there || !may_be_answered || message.timer.is_some() != *is_timer {
            return Err(format!("{} is stored otherwise than it was decided", message.body.name));
        }
    }
    if messages.len() != wanted.messages.len() {
        let (count, all) = (messages.len(), wanted.messages.len());
        return Err(format!("{count} of {all} messages are stored with the change that causes them"));
    }
    if *records != wanted.records {
        return Err(format!("records {records:?} are stored, and not {:?}", wanted.records));
    }
    if views.iter().map(|(id, _)| *id).ne(wanted.shown) {
        return Err(format!("{} views are stored, and only one is the last", views.len()));
    }
    if views.iter().any(|(_, view)| view.revision != write.version) {
        return Err(format!("a view of another revision is stored over {:?}", write.loaded));
    }
    if wanted.timers != write.content.timers {
        return Err(format!("timers {:?} run, and not {:?}", write.content.timers, wanted.timers));
    }
    match wanted.cancelled.iter().find(|id| !write.cancel.contains(id)) {
        Some(id) => Err(format!("timer {id} is not cancelled")),
        None => Ok(()),
    }
}
