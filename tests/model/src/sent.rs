//! Messages as entry points and handlers send them.

use jiff::Timestamp;
use messages::{Message, MessageId, PartitionKey, Payload, Token};
use uuid::Uuid;

/// The one moment at which everything happens; leases run out and timers fire by a step of the model, not by the clock.
pub const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// The one partition.
pub fn partition() -> PartitionKey {
    PartitionKey::from_uuid(Uuid::from_u128(1))
}

/// The `n`-th message of an entry point, with a token of its own.
///
/// # Panics
/// When the event cannot be written as JSON.
pub fn input(n: u32, event: &impl Payload) -> Message {
    let unique = Uuid::from_u128(u128::from(n));
    let message =
        Message::new(MessageId::from_uuid(unique), "entry", partition(), NOW, event.body().unwrap());
    Message { token: Some(Token::minted_at_entry(partition(), unique)), ..message }
}

/// What a handler replies to a command: under an id that is the same at each copy of it, and with the token that the
/// command brought.
///
/// # Panics
/// When the event cannot be written as JSON.
pub fn reply(command: &Message, event: &impl Payload) -> Message {
    let message = command.causes(command.id.derive(0), "handler", NOW, event.body().unwrap());
    Message { token: command.reply_token.clone(), ..message }
}

/// What is answered to a command that its handler has given up: under an id of its own, and with the same token, which
/// admits one of the two.
///
/// # Panics
/// When the event cannot be written as JSON.
pub fn report(command: &Message, event: &impl Payload) -> Message {
    Message { id: report_id(command), ..reply(command, event) }
}

/// Whether an answer is such a report.
pub(crate) fn is_report(command: &Message, answer: &Message) -> bool {
    answer.id == report_id(command)
}

fn report_id(command: &Message) -> MessageId {
    command.id.derive(1)
}
