//! An operator's event for one instance of a saga, given as data.
//!
//! The table of the system declares the events of each saga ([`QueueSpec::with_events`]), so an event that its saga
//! could not read is refused. A session stores the event together with a record of its key, so a repeated command sends
//! it once.

use messages::{
    Body, EventTypes, Json, Kind, Message, MessageId, PartitionKey, Queue, QueueSpec, ReadError, StoreError,
};
use outbox::session::CommitError;
use outbox::{Key, StageError};
use serde_json::{Value, json};

use crate::control::OPERATOR;
use crate::document::{Content, Document};
use crate::engine::Engine;
use crate::failures::AuditEntry;
use crate::system::{MissingSetting, System};

/// The type of the records of sent events.
const RECORDS: &str = "operator-event";

/// The number of attempts at a session that conflicts with the same command.
const TRIES: usize = 3;

/// An event for one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorEvent {
    /// The instance.
    pub partition: PartitionKey,
    /// The queue of the saga; `None` if only one saga has an event with this name.
    pub queue: Option<Queue>,
    /// The name of the event, such as `Paid`.
    pub name: String,
    /// The data of the event, in the current version.
    pub data: Value,
    /// The id of the command. A repeated command with the same id sends the event once.
    pub key: String,
    /// `true` if the event may begin an instance that does not exist.
    pub may_begin: bool,
}

/// The result of sending an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventDelivery {
    /// The event is stored, and sent.
    Sent(MessageId),
    /// An earlier command with the same id has sent it.
    SentBefore,
}

/// The reason why an event was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendEventError {
    /// No saga has such an event.
    #[error("no saga has an event {name}; {}", known_text(known))]
    UnknownEvent {
        /// The name.
        name: String,
        /// The names of the events that are declared.
        known: Vec<&'static str>,
    },
    /// Several sagas have an event with this name.
    #[error("several sagas have an event {name}; name one of their queues: {}", queues.join(", "))]
    SeveralSagas {
        /// The name.
        name: String,
        /// The queues of the sagas.
        queues: Vec<String>,
    },
    /// The saga cannot read the event.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// The instance has no document: it has not begun, or ended and was removed.
    #[error("there is no instance {0}")]
    UnknownInstance(PartitionKey),
    /// The instance belongs to the saga of this queue, which has no such event.
    #[error("instance {0} belongs to the saga of queue {1}, which does not handle this event")]
    OtherSaga(PartitionKey, String),
    /// The instance has ended, so it would ignore the event.
    #[error("instance {0} has ended")]
    Ended(PartitionKey),
    /// Another command has this id.
    #[error("the id {0} belongs to another event")]
    KeyInUse(String),
    /// A service is not configured.
    #[error(transparent)]
    Missing(#[from] MissingSetting),
    /// The event cannot be encoded.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// A store is unavailable. Nothing was sent.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The event was not stored, or the outcome is unknown. The command can be repeated with the same id.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

fn known_text(known: &[&'static str]) -> String {
    match known {
        [] => "the table of the system declares none".to_owned(),
        known => format!("the events are {}", known.join(", ")),
    }
}

/// Returns the event as a message body, and the queue of its saga.
fn body_of(table: &[QueueSpec], event: &OperatorEvent) -> Result<(Queue, Body), SendEventError> {
    let declared = table.iter().filter_map(|spec| Some((&spec.queue, spec.events.as_ref()?)));
    let declared: Vec<(&Queue, &EventTypes)> =
        declared.filter(|(queue, _)| event.queue.as_ref().is_none_or(|wanted| wanted == *queue)).collect();
    let kind = |events: &EventTypes| events.kinds.iter().find(|kind| kind.name == event.name);
    let found: Vec<(&Queue, &EventTypes, &Kind)> =
        declared.iter().filter_map(|(queue, events)| Some((*queue, *events, kind(events)?))).collect();
    let name = event.name.clone();
    let (queue, events, kind) = match found.as_slice() {
        [one] => *one,
        [] => {
            let known = declared.iter().flat_map(|(_, events)| events.kinds);
            return Err(SendEventError::UnknownEvent { name, known: known.map(|kind| kind.name).collect() });
        }
        several => {
            let queues = several.iter().map(|(queue, ..)| queue.name().to_owned()).collect();
            return Err(SendEventError::SeveralSagas { name, queues });
        }
    };
    let data = Json::from(event.data.clone());
    let body = Body { system: events.system.to_owned(), name, version: kind.version, data };
    let unsent = MessageId::from_uuid(uuid::Uuid::nil());
    let now = jiff::Timestamp::UNIX_EPOCH;
    events.check(&Message::new(unsent, OPERATOR, event.partition, now, body.clone()))?;
    Ok((queue.clone(), body))
}

impl Engine {
    /// Sends an event to one instance of any saga of the system, and adds it to the history of the instance.
    ///
    /// # Errors
    /// Returns an error if the saga cannot read the event, the instance does not exist or has ended, or a store is
    /// unavailable. The command can be repeated with the same id.
    pub async fn send_event<P>(
        &self,
        system: &System<P>,
        event: &OperatorEvent,
        by: &str,
    ) -> Result<EventDelivery, SendEventError> {
        let (queue, body) = body_of(system.queues, event)?;
        let mut tries = 1..TRIES;
        loop {
            match self.try_to_send_event(&queue, &body, event, by).await {
                // The same command was carried out at the same time.
                Err(SendEventError::Commit(CommitError::Changed)) if tries.next().is_some() => {}
                done => return done,
            }
        }
    }

    async fn try_to_send_event(
        &self,
        queue: &Queue,
        body: &Body,
        event: &OperatorEvent,
        by: &str,
    ) -> Result<EventDelivery, SendEventError> {
        let (stores, now, partition) = (self.stores()?, self.host.now(), event.partition);
        let entry = self.entry_point(OPERATOR)?;
        let mut session = entry.session(partition);
        let key = Key::new(RECORDS, event.key.clone());
        let record =
            json!({ "partition": partition, "queue": queue.name(), "event": body.name, "data": event.data });
        if let Some(sent) = session.read(key.clone()).await? {
            return match sent.body == record {
                true => Ok(EventDelivery::SentBefore),
                false => Err(SendEventError::KeyInUse(event.key.clone())),
            };
        }
        match stores.read_documents.load_latest(partition, now).await? {
            Some(Document { content: Content { queue: Some(owner), .. }, .. }) if owner != queue.name() => {
                return Err(SendEventError::OtherSaga(partition, owner));
            }
            Some(document) if document.content.ended_at.is_some() => {
                return Err(SendEventError::Ended(partition));
            }
            None if !event.may_begin => return Err(SendEventError::UnknownInstance(partition)),
            Some(_) | None => {}
        }
        let did = format!("sent {}", body.name);
        let entry = AuditEntry {
            at: now,
            by: by.to_owned(),
            did,
            to: partition.to_string(),
            why: format!("id {}", event.key),
        };
        // The audit entry comes first: an action without an entry is worse than an entry without an action.
        stores.failures.note(&entry).await?;
        session.write(key, record);
        let sent = session.send_body(queue.clone(), body.clone())?;
        session.commit().await?;
        self.add_to_history(partition, Some(&sent), format!("sent by {by}")).await;
        Ok(EventDelivery::Sent(sent.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::SAGA;
    use crate::plan::toy::{self, Event, OtherEvent};

    fn table() -> [QueueSpec; 3] {
        [
            QueueSpec::standard(SAGA, Queue::named("saga-dead")).with_events::<Event>(),
            QueueSpec::standard(Queue::named("other"), Queue::named("other-dead"))
                .with_events::<OtherEvent>(),
            QueueSpec::standard(Queue::named("desk"), Queue::named("desk-dead")),
        ]
    }

    fn event(name: &str, queue: Option<Queue>) -> OperatorEvent {
        let (partition, name, data) = (toy::partition(), name.to_owned(), json!({}));
        OperatorEvent { partition, queue, name, data, key: "1".to_owned(), may_begin: false }
    }

    #[test]
    fn event_goes_to_queue_of_its_saga() {
        let (queue, body) = body_of(&table(), &event("Closed", None)).unwrap();
        assert_eq!((queue, body.system.as_str(), body.version), (SAGA, "toy", 1));
        let (queue, _) = body_of(&table(), &event("Asked", None)).unwrap();
        assert_eq!(queue, Queue::named("other"));
    }

    #[test]
    fn unknown_event_is_refused_with_known_ones() {
        let error = body_of(&table(), &event("Vanished", None)).unwrap_err().to_string();
        assert_eq!(
            error,
            "no saga has an event Vanished; the events are Opened, Prolonged, Closed, Broken, Early, Asked"
        );
        let error = body_of(&table(), &event("Closed", Some(Queue::named("other")))).unwrap_err().to_string();
        assert_eq!(error, "no saga has an event Closed; the events are Asked");
        let error = body_of(&table()[2..], &event("Closed", None)).unwrap_err().to_string();
        assert_eq!(error, "no saga has an event Closed; the table of the system declares none");
    }

    #[test]
    fn event_of_several_sagas_needs_queue() {
        let mut table = table();
        table[2] = table[2].clone().with_events::<Event>();
        let error = body_of(&table, &event("Closed", None)).unwrap_err().to_string();
        assert_eq!(error, "several sagas have an event Closed; name one of their queues: saga, desk");
        assert!(body_of(&table, &event("Closed", Some(SAGA))).is_ok());
    }

    #[test]
    fn data_that_saga_cannot_read_is_refused() {
        let wrong = OperatorEvent { data: json!([1]), ..event("Closed", None) };
        let error = body_of(&table(), &wrong).unwrap_err().to_string();
        assert!(error.starts_with("the data of Closed is malformed"), "{error}");
    }
}
