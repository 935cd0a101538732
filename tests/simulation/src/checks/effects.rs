//! Each effect performed.

use contracts::{Body, Destination, Job, Message, MessageId, Observation, SearchId};
use imports::Write;
use jiff::Timestamp;
use outbox::{Entry, Outgoing, Owner, Queue, SessionRecord};

use super::{Effect, EffectKind};
use crate::options::Invariant;
use crate::world::{World, short};

/// The messages to the saga that only an outbox may send, as they are on the wire.
const FROM_OUTBOX: [&str; 3] = [
    "search-import.SearchUploadStarted.v1",
    "search-import.SearchWithdrawn.v1",
    "search-import.UploadTimeout.v1",
];

/// Whether only an outbox may send a message. Those from outside and the replies have senders of their own.
fn needs_outbox(message: &Outgoing) -> bool {
    match message.destination {
        Destination::Parse | Destination::Events => true,
        Destination::Saga => FROM_OUTBOX.iter().any(|name| message.body.contains(name)),
        Destination::Control => false,
    }
}

impl World {
    /// Checks a message on its way out.
    pub(crate) fn check_sent(&mut self, message: &Outgoing) {
        let sent = || (Queue::from(message.destination), message.body.clone());
        self.checks.sent.entry(message.id).or_insert_with(sent);
        if message.destination == Destination::Control {
            self.control_sent(message);
        }
        if !needs_outbox(message) {
            return;
        }
        let (id, search) = (message.id, message.search_id);
        match self.checks.effects.get_mut(&(search, id)) {
            Some(effect) if effect.payload == message.body => {
                effect.performed += 1;
                // The timer may have gone off already; anything else is never taken back.
                if effect.cancelled && effect.kind != EffectKind::Timeout {
                    let detail = || format!("search {search} performed effect {id}, which was cancelled");
                    self.violate(Invariant::EffectsTakeEffectOnce, detail);
                }
            }
            Some(_) => self.violate(Invariant::EffectsWithTheirChange, || {
                format!("search {search} sent message {id} otherwise than it was stored")
            }),
            None => self.violate(Invariant::TokensAreKept, || {
                format!("search {search} sent message {id}, an effect of an attempt that stored nothing")
            }),
        }
    }

    fn control_sent(&mut self, message: &Outgoing) {
        if let Ok(Message { body: Body::SettleSession(look), .. }) = Message::decode(&message.body) {
            self.checks.sessions.insert(look.session_id, message.search_id);
        }
    }

    /// Checks a job that is written by a saga; the first is a session's.
    pub(crate) fn check_job(&mut self, job: &Job) {
        let (search, revision) = (job.search_id, job.revision);
        let id = self.checks.jobs.get(&(search, revision)).copied();
        match id.and_then(|id| self.checks.effects.get_mut(&(search, id))) {
            Some(effect) => effect.performed += 1,
            None => self.violate(Invariant::TokensAreKept, || {
                format!("job {search} got revision {revision} from an attempt that stored nothing")
            }),
        }
    }

    /// Takes note of a committed session.
    pub(crate) fn check_commit(&mut self, record: &SessionRecord, writes: &[Write]) {
        if !self.checks.sessions.contains_key(&record.id) {
            let detail =
                || format!("session {} was committed before its control message was sent", record.id);
            self.violate(Invariant::SessionIsAtomic, detail);
        }
        for entry in &record.entries {
            let message = Message::decode(&entry.payload);
            let search = message.as_ref().ok().map(|message| message.correlation_id);
            let kind = match (message.map(|message| message.body), writes) {
                (Ok(Body::SearchUploadStarted(_)), [Write::CreateJob(job)])
                    if Some(job.search_id) == search =>
                {
                    EffectKind::Started
                }
                (Ok(Body::SearchWithdrawn(_)), []) => EffectKind::Withdrawn,
                _ => {
                    let detail = || format!("session {} was committed without its data", record.id);
                    return self.violate(Invariant::SessionIsAtomic, detail);
                }
            };
            let effect = Effect { kind, payload: entry.payload.clone(), performed: 0, cancelled: false };
            self.checks.effects.extend(search.map(|search| ((search, entry.id), effect)));
        }
    }

    /// Two workers never have one entry at the same time while a claim lasts.
    pub(crate) fn check_claimed(&mut self, owner: Owner, taken: &[Entry], now: Timestamp, until: Timestamp) {
        for entry in taken {
            let before = self.checks.held.insert((owner, entry.id), until);
            if before.is_some_and(|before| before > now) {
                self.violate(Invariant::EffectsTakeEffectOnce, || {
                    format!("entry {} of {owner} was claimed by two at once", entry.id)
                });
            }
        }
    }

    /// An entry was settled.
    pub(crate) fn check_unclaimed(&mut self, owner: Owner, id: MessageId) {
        self.checks.held.remove(&(owner, id));
    }

    /// A parse command took effect.
    pub(crate) fn took_effect(&mut self, observation: &Observation) {
        let (Some(search), Some(id)) = (observation.search_id, observation.message_id) else { return };
        let Some(EffectKind::Parse(file)) = self.effect(search, id) else {
            let detail = || format!("search {search} had a file parsed by {id}, which it never stored");
            return self.violate(Invariant::TokensAreKept, detail);
        };
        let parsed = self.checks.parsed.entry((search, file)).or_default();
        parsed.insert(id);
        let count = parsed.len();
        if count > 1 {
            self.violate(Invariant::EffectsTakeEffectOnce, || {
                format!("file {} of search {search} was parsed by {count} commands", short(&file))
            });
        }
    }

    pub(super) fn effect(&self, search: SearchId, id: MessageId) -> Option<EffectKind> {
        self.checks.effects.get(&(search, id)).map(|effect| effect.kind)
    }

    /// A message was given up.
    pub(crate) fn buried(&mut self, queue: Queue, body: &str) {
        if let (Queue::Parse, Ok(message)) = (queue, Message::decode(body))
            && let Body::StartParsing(command) = message.body
        {
            self.checks.given_up.insert((message.correlation_id, command.file_id));
        }
    }
}
