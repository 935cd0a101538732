//! Each write of a saga document.

use std::collections::BTreeSet;
use std::sync::Arc;

use contracts::{Body, FileId, Job, Message, MessageId, Token};
use outbox::{Entry, Kind, Owner};
use saga::{Import, State};
use worker::{Awaited, Content, Persist};

use super::{Effect, EffectKind};
use crate::options::{Invariant, Mode};
use crate::world::{World, short};

/// What a write adds to the outbox, by meaning.
#[derive(Default)]
struct Added {
    parse: BTreeSet<FileId>,
    ended: Vec<&'static str>,
    timeouts: Vec<MessageId>,
    revisions: Vec<u64>,
}

impl World {
    /// Checks a write that is about to be stored.
    pub(crate) fn check_write(&mut self, write: &Persist) {
        let base = self.base(write);
        let known: &[worker::Processed] = base.as_ref().map_or(&[], |content| &content.processed);
        let fresh: Vec<&worker::Processed> = write
            .content
            .processed
            .iter()
            .filter(|processed| !known.iter().any(|known| known.id == processed.id))
            .collect();
        for processed in &fresh {
            if !self.checks.changed.insert(processed.id) {
                self.violate(Invariant::OneChangePerMessage, || {
                    format!("message {} changed search {} again", processed.id, write.search_id)
                });
            }
            self.check_admitted(write, base.as_deref(), processed);
        }
        let added = self.added(write);
        if let Err(detail) = complete(write, base.as_deref(), &fresh, &added) {
            self.violate(Invariant::EffectsWithTheirChange, || {
                format!("search {}: {detail}", write.search_id)
            });
        }
        let version = write.loaded.unwrap_or(0) + 1;
        let content = Arc::new(write.content.clone());
        self.checks.history.entry(write.search_id).or_default().push((version, content));
    }

    /// What the attempt had loaded.
    fn base(&self, write: &Persist) -> Option<Arc<Content>> {
        let loaded = write.loaded?;
        let history = self.checks.history.get(&write.search_id)?;
        history.iter().rev().find(|(version, _)| *version == loaded).map(|(_, content)| Arc::clone(content))
    }

    /// A token of an attempt admits a message only if a stored document gave it out.
    fn check_admitted(&mut self, write: &Persist, base: Option<&Content>, processed: &worker::Processed) {
        let Some(token) = processed.token.as_ref().filter(|token| token.is_from_attempt()) else { return };
        let expected =
            base.is_some_and(|content| content.expected.iter().any(|expected| expected.token == *token));
        if !expected {
            self.violate(Invariant::TokensAreKept, || {
                let (id, search) = (processed.id, write.search_id);
                format!("message {id} changed search {search} with token {token}, which was never given out")
            });
        }
    }

    /// Takes note of the effects of a write.
    fn added(&mut self, write: &Persist) -> Added {
        let mut added = Added::default();
        for id in &write.cancel {
            if let Some(effect) = self.checks.effects.get_mut(&(write.search_id, *id)) {
                effect.cancelled = true;
            }
        }
        for entry in &write.add {
            let Some(kind) = self.meaning(write, entry, &mut added) else {
                let detail = || format!("search {}: effect {} cannot be read", write.search_id, entry.id);
                self.violate(Invariant::EffectsWithTheirChange, detail);
                continue;
            };
            let effect = Effect { kind, payload: entry.payload.clone(), performed: 0, cancelled: false };
            self.checks.effects.insert((write.search_id, entry.id), effect);
            if let Some(until) = entry.claimed_until {
                self.checks.held.insert((Owner::Saga(write.search_id), entry.id), until);
            }
        }
        added
    }

    fn meaning(&mut self, write: &Persist, entry: &Entry, added: &mut Added) -> Option<EffectKind> {
        if entry.kind == Kind::Job {
            let job: Job = serde_json::from_str(&entry.payload).ok()?;
            added.revisions.push(job.revision);
            self.checks.jobs.insert((write.search_id, job.revision), entry.id);
            return Some(EffectKind::Job);
        }
        let message = Message::decode(&entry.payload).ok()?;
        match &message.body {
            Body::StartParsing(command) => {
                added.parse.insert(command.file_id);
                self.check_given_out(write, &command.reply_token, Awaited::File(command.file_id));
                Some(EffectKind::Parse(command.file_id))
            }
            Body::UploadTimeout(timeout) => {
                added.timeouts.push(entry.id);
                self.check_given_out(write, &message.token, Awaited::Timeout(timeout.timeout_id));
                Some(EffectKind::Timeout)
            }
            Body::SearchImportCompleted(_) | Body::SearchImportFailed(_) => {
                added.ended.push(message.body.name());
                Some(EffectKind::Ended)
            }
            _ => None,
        }
    }

    /// Whoever is to answer has a token that the same write expects.
    fn check_given_out(&mut self, write: &Persist, token: &Option<Token>, by: Awaited) {
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
                format!("search {}: {by:?} was sent token {token:?}, which is not expected", write.search_id)
            });
        }
    }
}

/// Whether the effects are those of the change.
fn complete(
    write: &Persist,
    base: Option<&Content>,
    fresh: &[&worker::Processed],
    added: &Added,
) -> Result<(), String> {
    let before = base.map(|content| &content.state);
    let after = &write.content.state;
    let mut files = BTreeSet::new();
    if let State::Parsing(import) = after
        && !matches!(before, Some(State::Parsing(_)))
    {
        files.extend(import.files.iter().filter(|(_, file)| file.object.is_some()).map(|(id, _)| *id));
    }
    if added.parse != files {
        return Err(format!("{} parse commands for {} files", added.parse.len(), files.len()));
    }
    let ended = match after {
        _ if before.is_some_and(|state| state.completed_at().is_some()) => None,
        State::Completed(_) => Some("SearchImportCompleted"),
        State::Error(_) => Some("SearchImportFailed"),
        State::Initial | State::Uploading(_) | State::Uploaded(_) | State::Parsing(_) => None,
    };
    if added.ended.iter().copied().ne(ended) {
        return Err(format!("{} is told by {:?}", after.name(), added.ended));
    }
    let shown = before.is_none() || ended.is_some();
    let revisions = shown.then_some(write.loaded.unwrap_or(0) + 1);
    if added.revisions.iter().copied().ne(revisions) {
        return Err(format!("jobs of revisions {:?} are written over {:?}", added.revisions, write.loaded));
    }
    timeouts(write, before, fresh, added)
}

/// Whether the running timeout is scheduled, and one that runs no longer is cancelled.
fn timeouts(
    write: &Persist,
    before: Option<&State>,
    fresh: &[&worker::Processed],
    added: &Added,
) -> Result<(), String> {
    let timeout = |state: &State| {
        let id = import(state)?.timeout?;
        Some(MessageId::from_uuid(id.as_uuid()))
    };
    let (ran, runs) = (before.and_then(timeout), timeout(&write.content.state));
    let scheduled = runs.filter(|id| ran != Some(*id));
    if added.timeouts.iter().copied().ne(scheduled) {
        return Err(format!("timeouts {:?} are scheduled, not {scheduled:?}", added.timeouts));
    }
    if let Some(id) = ran.filter(|id| runs != Some(*id)) {
        let fired = fresh.iter().any(|processed| processed.id == id);
        if !fired && !write.cancel.contains(&id) {
            return Err(format!("timeout {} is not cancelled", short(&id)));
        }
    }
    Ok(())
}

fn import(state: &State) -> Option<&Import> {
    match state {
        State::Initial => None,
        State::Uploading(import) | State::Uploaded(import) | State::Parsing(import) => Some(import),
        State::Completed(ended) | State::Error(ended) => Some(&ended.import),
    }
}
