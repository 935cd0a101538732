//! Texts of counterexamples: the messages of each action, and the state and the phases after it. Workers have no
//! numbers, because they are interchangeable: the normal form of a system sorts them.

use messages::{Message, MessageId};
use outbox::Kind;
use saga::Saga;

use crate::actions::Action;
use crate::keyed::Of;
use crate::system::{Batch, Phase, System};

impl<S: Saga> System<S> {
    /// Returns an action that is about to happen, with the names of its messages.
    pub(crate) fn describe(&self, action: Action) -> String {
        match action {
            Action::Load(_, batch) => {
                format!("a worker receives {} and loads the document", self.names(batch))
            }
            Action::LoadEarlier(_, batch) => {
                format!("a worker receives {} and loads an earlier document", self.names(batch))
            }
            Action::Step(worker) => format!("the worker that {} continues", self.phase(worker)),
            Action::GiveUp(_, id, answered) => {
                let reply = if answered { " after a reply" } else { "" };
                format!("a worker sends; {} fails permanently{reply}", self.name(id))
            }
            Action::ClearFirst(_) => "a worker clears the outbox before the release".to_owned(),
            Action::Crash(worker) => format!("the worker that {} crashes", self.phase(worker)),
            Action::ExpireLease => "the lease expires".to_owned(),
            Action::FireTimer(id) => format!("the timer of {} fires", self.name(id)),
            Action::Sweep => "the sweeper sends all due effects".to_owned(),
            Action::SettleSweep => "the sweeper settles them".to_owned(),
            Action::DelayGrant(_) => {
                "a worker grants tokens to the other saga; the call fails, and arrives later".to_owned()
            }
            Action::RepeatGrant(_) => {
                "a worker grants tokens to the other saga; a copy of the call arrives later".to_owned()
            }
            Action::DeadLetter(id) => format!("{} is dead-lettered and reported", self.name(id)),
            Action::ExpireDocument => "the retention of the document passes".to_owned(),
            Action::ExpireItem => "the ledger item expires".to_owned(),
        }
    }

    /// Returns the stored state, the phases of the workers that are not idle, and the messages in the queue.
    pub(crate) fn summary(&self) -> String {
        let mut text = match self.state() {
            Some(state) => format!("state {state:?}"),
            None => "no document".to_owned(),
        };
        for worker in 0..self.workers.len() {
            if self.workers[worker] != Phase::Idle {
                text += &format!("; a worker {}", self.phase(worker));
            }
        }
        let waiting = self.queue.value.iter().filter(|(_, queued)| !queued.acknowledged);
        let waiting: Vec<String> = waiting.map(|(id, _)| self.name(*id)).collect();
        if !waiting.is_empty() {
            text += &format!("; in the queue: {}", waiting.join(", "));
        }
        text
    }

    fn phase(&self, worker: usize) -> String {
        let phase = &self.workers[worker];
        let batch = phase.batch().map_or_else(String::new, |batch| format!(" {}", self.names(batch)));
        format!("{}{batch}", phase.label())
    }

    fn names(&self, batch: Batch) -> String {
        let names: Vec<String> = batch.iter().map(|id| self.name(id)).collect();
        names.join(" and ")
    }

    /// Returns the name of a message in the queue or in the outbox; otherwise its id.
    fn name(&self, id: MessageId) -> String {
        let queued = self.queue.value.get(&id).map(|queued| queued.incoming.value.message.body.name.clone());
        let stored = || {
            let document = self.document.as_ref()?;
            let mut outbox = document.document.value.outbox.iter();
            let entry = outbox.find(|entry| entry.id == id && matches!(entry.kind, Kind::Message(_)))?;
            Message::decode(&entry.payload).ok().map(|message| message.body.name)
        };
        queued.or_else(stored).unwrap_or_else(|| id.to_string())
    }
}

impl<S: Saga> Phase<Of<S>> {
    fn label(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Loaded(..) => "has loaded the document for",
            Self::Claimed(..) => "has claimed the partition for",
            Self::Decided(..) => "has decided",
            Self::Granted(..) => "has granted the tokens of the effects of",
            Self::Conflicted(..) => "has a conflict about",
            Self::Refused(..) => "could not grant tokens for",
            Self::Short(..) => "has too few tokens for",
            Self::Again(..) => "claims again for",
            Self::Stored(..) => "has stored the result of",
            Self::Dispatched(..) => "has sent the effects of",
            Self::Released(..) => "has released the partition after",
            Self::Cleared(..) => "has cleared the outbox after",
        }
    }
}
