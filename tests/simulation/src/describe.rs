//! Short texts for traces.

use messages::Message;

/// Returns the end of an id, which distinguishes it from others in a trace.
pub fn short(id: &impl ToString) -> String {
    let text = id.to_string();
    text.get(text.len().saturating_sub(5)..).unwrap_or(&text).to_owned()
}

/// Returns a message's name and the end of its id.
pub(crate) fn describe(body: &str) -> String {
    Message::decode(body).map_or_else(
        |_| "something unreadable".to_owned(),
        |message| format!("{} {}", message.body.name, short(&message.id)),
    )
}
