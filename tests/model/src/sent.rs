//! Messages of entry points and handlers.

use jiff::Timestamp;
use messages::{Message, MessageId, PartitionKey, Payload, Token};
use outbox::{Entry, Kind};
use uuid::Uuid;

/// The time of all events. Leases expire and timers fire by steps of the model, not by the clock.
pub const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// Returns the partition that the model consists of.
pub fn partition() -> PartitionKey {
    PartitionKey::from_uuid(Uuid::from_u128(1))
}

/// Creates the `n`-th message of an entry point, with its own token.
///
/// # Panics
/// Panics if the event cannot be written as JSON.
pub fn input(n: u32, event: &impl Payload) -> Message {
    input_of(partition(), n, event)
}

/// Works like [`input`], for a partition of a [`Pair`](crate::pair::Pair).
///
/// # Panics
/// Panics if the event cannot be written as JSON.
pub fn input_of(partition: PartitionKey, n: u32, event: &impl Payload) -> Message {
    let unique = Uuid::from_u128(u128::from(n));
    let message = Message::new(MessageId::from_uuid(unique), "entry", partition, NOW, event.body().unwrap());
    Message { token: Some(Token::minted_at_entry(partition, unique)), ..message }
}

/// Creates a handler's reply to a command, or a saga's to a request of another saga. It has the command's token, and the
/// same id for every copy of the command.
///
/// # Panics
/// Panics if the event cannot be written as JSON.
pub fn reply(command: &Message, event: &impl Payload) -> Message {
    let message = command.caused_message(command.id.derive(0), "handler", NOW, event.body().unwrap());
    Message { token: command.reply_token.clone(), ..message }.in_partition(command.reply_partition())
}

/// Creates the report that a command has failed permanently. It has its own id and the command's token, which admits
/// either the report or the reply.
///
/// # Panics
/// Panics if the event cannot be written as JSON.
pub fn report(command: &Message, event: &impl Payload) -> Message {
    Message { id: report_id(command), ..reply(command, event) }
}

/// Returns `true` if a reply is a report of a permanent failure.
pub(crate) fn is_report(command: &Message, answer: &Message) -> bool {
    answer.id == report_id(command)
}

fn report_id(command: &Message) -> MessageId {
    command.id.derive(1)
}

/// Returns `true` if an entry is a message whose sender expects a reply.
pub(crate) fn is_request(entry: &Entry) -> bool {
    matches!(entry.kind, Kind::Message(_)) && Message::decode(&entry.payload).unwrap().reply_token.is_some()
}
