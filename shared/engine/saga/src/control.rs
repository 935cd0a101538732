//! An operator's control of one instance: pause, resume and terminate.
//!
//! The decision is part of the document, and the plan of each attempt obeys it, so every worker does.
//!
//! - A *paused* instance postpones its messages. They stay in their queues, with the delays and the limit of
//!   [`Decision::Postpone`](crate::Decision::Postpone), and a message that reaches the limit becomes a failure that an
//!   operator can retry. Effects that were decided before are still performed. The events of due timers are sent, and
//!   postponed like other messages.
//! - A *terminated* instance has ended. Its state does not change any more, and messages that arrive later are ignored.
//!   Its timers are cancelled. Effects that were decided before are still performed, because the state reports them as
//!   decided. A guarded handler does not execute a command whose reply is no longer expected.

use std::collections::{BTreeMap, BTreeSet};

use dedup::Release;
use messages::{AttemptId, DecisionRecord, Message, MessageId, PartitionKey, StoreError, Verdict};
use outbox::{Entry, Kind, View};
use uuid::Uuid;

use crate::document::{Content, Document, Persist, PersistOutcome, next_version};
use crate::engine::Engine;
use crate::failures::AuditEntry;
use crate::intervention::Intervention;
use crate::operator::Operator;
use crate::system::MissingSetting;

/// The name of operators in the history, where others are functions.
pub const OPERATOR: &str = "operator";

/// An action of an operator on one instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Postpones the messages of the instance until an operator resumes it.
    Pause,
    /// Ends a pause.
    Resume,
    /// Ends the instance.
    Terminate,
}

impl Control {
    /// Returns the name of the completed action.
    pub fn done(self) -> &'static str {
        match self {
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Terminate => "terminated",
        }
    }
}

/// The result of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlOutcome {
    /// The instance was changed.
    Changed,
    /// The instance was in the requested condition before.
    Unchanged,
}

/// The reason why an action was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The instance has no document: it has not begun, or ended and was removed.
    #[error("there is no instance {0}")]
    Unknown(PartitionKey),
    /// The instance has ended.
    #[error("instance {0} has ended")]
    Ended(PartitionKey),
    /// Another worker holds the partition, or has changed it at the same time.
    #[error("another worker holds instance {0}; try again in a minute")]
    Busy(PartitionKey),
    /// A service is not configured.
    #[error(transparent)]
    Missing(#[from] MissingSetting),
    /// A store is unavailable. The action may have been carried out, and can be repeated.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns whether an action changes a document; `None` if the document has ended by itself.
fn changes(control: Control, content: &Content) -> Option<bool> {
    match (control, &content.terminated) {
        (Control::Terminate, Some(_)) => Some(false),
        _ if content.ended_at.is_some() => None,
        (Control::Pause, _) => Some(content.paused.is_none()),
        (Control::Resume, _) => Some(content.paused.is_some()),
        (Control::Terminate, None) => Some(true),
    }
}

/// The attempt of an operator at an instance.
struct OperatorAttempt<'a> {
    id: AttemptId,
    fence: u64,
    intervention: &'a Intervention,
    /// The written view of the instance.
    written: Option<View>,
}

/// Returns the write of an action that changes a document.
fn write(control: Control, document: &Document, attempt: OperatorAttempt<'_>) -> Persist {
    let OperatorAttempt { id, fence, intervention, written } = attempt;
    let content = Content { attempt: id, fence, keeps_claim: false, ..document.content.clone() };
    let (partition, loaded) = (document.partition, Some(document.version));
    let version = next_version(loaded, intervention.at);
    let (mut add, mut cancel) = (Vec::new(), Vec::new());
    let content = match control {
        Control::Pause => Content { paused: Some(intervention.clone()), ..content },
        Control::Resume => Content { paused: None, ..content },
        Control::Terminate => {
            cancel.extend(document.outbox.iter().filter(|entry| is_timer(entry)).map(|entry| entry.id));
            if let Some(view) = last_shown(document, written) {
                let earlier = document.outbox.iter().filter(|entry| entry.kind == Kind::View);
                cancel.extend(earlier.map(|entry| entry.id));
                let view = View { ended: true, ..view }.at_revision(version);
                let entry = MessageId::from_uuid(Uuid::new_v5(&id.as_uuid(), b"terminated"));
                add.push(Entry::view(entry, view, intervention.at));
            }
            Content {
                ended_at: Some(intervention.at),
                expected: Vec::new(),
                timers: BTreeMap::new(),
                paused: None,
                terminated: Some(intervention.clone()),
                ..content
            }
        }
    };
    Persist { partition, loaded, version, content, add, cancel }
}

fn is_timer(entry: &Entry) -> bool {
    entry.is_message() && Message::decode(&entry.payload).is_ok_and(|message| message.timer.is_some())
}

/// Returns the last view that the saga has shown, written or not; `None` if the view does not exist or was removed.
fn last_shown(document: &Document, written: Option<View>) -> Option<View> {
    let staged = document.outbox.iter().filter(|entry| entry.kind == Kind::View);
    let staged = staged.filter_map(|entry| View::from_payload(&entry.payload, |_| None).ok());
    staged.chain(written).max_by_key(|view| view.revision).filter(|view| !view.is_removed())
}

impl Operator {
    /// Carries out an action on an instance. A repeated action changes nothing, and completes an interrupted one.
    ///
    /// # Errors
    /// Returns an error if the instance does not exist or has ended, another worker holds it, or a store is
    /// unavailable.
    pub async fn control(
        &self,
        partition: PartitionKey,
        control: Control,
        intervention: &Intervention,
    ) -> Result<ControlOutcome, ControlError> {
        let document = self.load(partition).await?.ok_or(ControlError::Unknown(partition))?;
        let is_change = changes(control, &document.content).ok_or(ControlError::Ended(partition))?;
        // An interrupted termination may have left tokens in the ledger.
        if !is_change && control != Control::Terminate {
            return Ok(ControlOutcome::Unchanged);
        }
        if is_change {
            // The audit entry comes first: an action without an entry is worse than an entry without an action.
            let (did, to) = (control.done().to_owned(), partition.to_string());
            let Intervention { at, by, why } = intervention.clone();
            self.stores.failures.note(&AuditEntry { at, by, did, to, why }).await?;
        }
        self.control_claimed(&document, control, intervention).await
    }

    /// Claims the partition, and decides again on the latest document.
    async fn control_claimed(
        &self,
        document: &Document,
        control: Control,
        intervention: &Intervention,
    ) -> Result<ControlOutcome, ControlError> {
        let partition = document.partition;
        let attempt = AttemptId::from_uuid(self.host.random_id());
        // No token is granted, because the action does not need one.
        let held = self.claim(partition, attempt, Some(document), Vec::new()).await?;
        let held = held.ok_or(ControlError::Busy(partition))?;
        let fence = held.admitted.fence;
        let latest = self.load(partition).await?.ok_or(ControlError::Unknown(partition))?;
        let release = Release {
            partition,
            attempt,
            fence,
            remove: BTreeSet::new(),
            ended: latest.content.ended_at.is_some(),
            until: Some(latest.content.waits_until(&latest.outbox, self.host.now())),
            now: self.host.now(),
        };
        let is_change = match changes(control, &latest.content) {
            _ if held.is_overtaken(Some(&latest)) => Err(ControlError::Busy(partition)),
            Some(is_change) => Ok(is_change),
            None => Err(ControlError::Ended(partition)),
        };
        let Ok(true) = is_change else {
            let is_released = self.partitions.ledger.release(&release).await?;
            return match is_change {
                Ok(_) if release.ended && !is_released => Err(ControlError::Busy(partition)),
                answer => answer.map(|_| ControlOutcome::Unchanged),
            };
        };
        let written = match control {
            Control::Terminate => self.stores.read_views.view(partition).await?,
            Control::Pause | Control::Resume => None,
        };
        let write = write(control, &latest, OperatorAttempt { id: attempt, fence, intervention, written });
        let ended = write.content.ended_at.is_some();
        // A write with an unknown outcome may still be made, so the claim is kept until its lease expires.
        let persisted = self.stores.write_documents.persist(&[write], self.host.now()).await?;
        let is_stored = persisted.first() == Some(&PersistOutcome::Stored);
        let release = Release { ended: is_stored && ended, ..release };
        let is_released = self.partitions.ledger.release(&release).await?;
        // If the lease expired before the write, another attempt may hold the partition, and the ended instance keeps
        // its tokens. The repeated command removes them.
        let is_complete = is_stored && (is_released || !ended);
        if is_complete { Ok(ControlOutcome::Changed) } else { Err(ControlError::Busy(partition)) }
    }
}

impl Engine {
    /// Carries out an operator's action on an instance of any saga, and adds it to the history of the instance.
    ///
    /// # Errors
    /// Returns the errors of [`Operator::control`], and an error if a service that it uses is not configured.
    pub async fn control(
        &self,
        partition: PartitionKey,
        control: Control,
        by: &str,
        why: &str,
    ) -> Result<ControlOutcome, ControlError> {
        let (at, by, why) = (self.host.now(), by.to_owned(), why.to_owned());
        let intervention = Intervention { at, by, why };
        let controlled = self.operator()?.control(partition, control, &intervention).await?;
        if controlled == ControlOutcome::Changed {
            let why = format!("{} by {intervention}", control.done());
            self.add_to_history(partition, None, why).await;
        }
        Ok(controlled)
    }

    /// Adds an operator's action to the history of an instance. The history is for people, so a store that fails does
    /// not fail the action.
    pub(crate) async fn add_to_history(&self, partition: PartitionKey, event: Option<&Message>, why: String) {
        let Some(history) = &self.history else { return };
        let action = DecisionRecord {
            at: self.host.now(),
            function: OPERATOR.to_owned(),
            partition: Some(partition),
            message_id: event.map(|event| event.id),
            message: event.map(|event| event.body.name.clone()).unwrap_or_default(),
            verdict: Verdict::Handled,
            why,
            source: OPERATOR.to_owned(),
            traceparent: None,
            began_at: None,
            attempt: None,
            state: None,
        };
        if let Err(error) = history.append(&[action]).await {
            let error = error.chain();
            tracing::warn!(%partition, error, "an action of an operator is missing from the history");
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use messages::{Json, Verdict};
    use outbox::View;

    use super::*;
    use crate::plan::toy::{self, Event, PlanInput, Toy};
    use crate::plan::{Plan, decide};

    fn intervention() -> Intervention {
        Intervention { at: Timestamp::UNIX_EPOCH, by: "ann".to_owned(), why: "wrong price".to_owned() }
    }

    /// An opened instance with a request, a timer and a view in its outbox.
    fn opened() -> Document<toy::State> {
        toy::stored(&[toy::incoming(1, Event::Opened {})])
    }

    fn unparsed(document: &Document<toy::State>) -> Document {
        let Document { partition, version, content, outbox } = document.clone();
        let (add, cancel) = (Vec::new(), Vec::new());
        let write = Persist { partition, loaded: None, version, content, add, cancel };
        Document { partition, version, content: write.close().unwrap().content, outbox }
    }

    /// Returns the write of an action, and the document that it leads to.
    fn act(control: Control, document: &Document) -> (Persist, Document) {
        let (id, fence) = (toy::attempt(9), document.content.fence + 1);
        let attempt = OperatorAttempt { id, fence, intervention: &intervention(), written: None };
        let persist = write(control, document, attempt);
        let mut outbox = document.outbox.clone();
        outbox.retain(|entry| !persist.cancel.contains(&entry.id));
        outbox.extend(persist.add.clone());
        let (content, version) = (persist.content.clone(), persist.version);
        (persist, Document { partition: document.partition, version, content, outbox })
    }

    /// Returns the plan for a message that arrives later.
    fn plan(document: Document, incoming: &toy::In) -> Plan<toy::State> {
        let document = document.open(&Toy).unwrap();
        let fence = document.content.fence + 1;
        let input = PlanInput { fence, ..toy::input(Some(&document)) };
        decide(&Toy, &input, std::slice::from_ref(incoming)).unwrap()
    }

    #[test]
    fn paused_instance_postpones_messages_with_their_tokens() {
        let (_, paused) = act(Control::Pause, &unparsed(&opened()));
        let closed = toy::incoming(2, Event::Closed {});
        let plan_of_paused = plan(paused.clone(), &closed);
        let [decision] = plan_of_paused.decisions.as_slice() else { panic!("one decision") };
        assert_eq!(decision.verdict, Verdict::Retried);
        assert_eq!(decision.why, "the instance was paused by ann: wrong price");
        assert!(plan_of_paused.persist.is_none());
        assert!(plan_of_paused.remove.is_disjoint(&closed.message.token.clone().into_iter().collect()));

        let (_, resumed) = act(Control::Resume, &paused);
        assert_eq!(plan(resumed, &closed).decisions[0].verdict, Verdict::Handled);
    }

    #[test]
    fn paused_instance_recognizes_duplicates() {
        let (_, paused) = act(Control::Pause, &unparsed(&opened()));
        let plan = plan(paused, &toy::incoming(1, Event::Opened {}));
        assert_eq!(plan.decisions[0].verdict, Verdict::Recovered);
    }

    #[test]
    fn pause_and_resume_keep_state_outbox_and_tokens() {
        let document = unparsed(&opened());
        for (control, is_paused) in [(Control::Pause, true), (Control::Resume, false)] {
            let (persist, after) = act(control, &document);
            assert_eq!(after.content.paused.is_some(), is_paused);
            assert_eq!(after.outbox, document.outbox);
            let kept = |content: &Content| {
                (content.state.clone(), content.expected.clone(), content.timers.clone(), content.ended_at)
            };
            assert_eq!(kept(&persist.content), kept(&document.content));
        }
    }

    #[test]
    fn terminated_instance_ignores_messages_and_releases_all_tokens() {
        let (_, terminated) = act(Control::Terminate, &unparsed(&opened()));
        let plan = plan(terminated, &toy::incoming(2, Event::Closed {}));
        let [decision] = plan.decisions.as_slice() else { panic!("one decision") };
        assert_eq!(decision.verdict, Verdict::Ignored);
        assert_eq!(decision.why, "the instance was terminated by ann: wrong price");
        assert!(plan.persist.is_none() && plan.ended && plan.releases_claim);
    }

    #[test]
    fn termination_cancels_timers_keeps_requests_and_ends_view() {
        let document = unparsed(&opened());
        let (persist, terminated) = act(Control::Terminate, &document);
        let is_request = |entry: &Entry| entry.is_message() && !is_timer(entry);
        let requests = |document: &Document| {
            document.outbox.iter().filter(|entry| is_request(entry)).cloned().collect::<Vec<_>>()
        };
        assert_eq!((requests(&terminated).len(), requests(&terminated)), (1, requests(&document)));
        assert!(!terminated.outbox.iter().any(is_timer));
        let [entry] = persist.add.as_slice() else { panic!("one view") };
        let view = View::from_payload(&entry.payload, |_| None).unwrap();
        assert!(view.ended && view.revision == terminated.version);
        assert_eq!(view.body["state"], Json::of(&toy::State::Open).unwrap().value());
        let content = terminated.content;
        assert!(content.expected.is_empty() && content.timers.is_empty() && content.ended_at.is_some());
        assert_eq!(content.state, document.content.state);
    }

    #[test]
    fn repeated_action_changes_nothing_and_ended_instance_refuses() {
        let open = unparsed(&opened());
        let (_, paused) = act(Control::Pause, &open);
        let (_, terminated) = act(Control::Terminate, &open);
        let mut ended = open.clone();
        ended.content.ended_at = Some(Timestamp::UNIX_EPOCH);
        let all = [Control::Pause, Control::Resume, Control::Terminate];
        let answers = |document: &Document| all.map(|control| changes(control, &document.content));
        assert_eq!(answers(&open), [Some(true), Some(false), Some(true)]);
        assert_eq!(answers(&paused), [Some(false), Some(true), Some(true)]);
        assert_eq!(answers(&terminated), [None, None, Some(false)]);
        assert_eq!(answers(&ended), [None, None, None]);
    }

    #[test]
    fn documents_of_earlier_versions_are_not_controlled() {
        let content = unparsed(&opened()).content;
        let stored = serde_json::to_value(&content).unwrap();
        assert!(stored.get("paused").is_none() && stored.get("terminated").is_none());
        assert_eq!(serde_json::from_value::<Content>(stored).unwrap(), content);
    }
}
