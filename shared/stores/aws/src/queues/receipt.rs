//! Receipts: the data that answering a message requires.
//!
//! SQS's own handle is not enough. Dead-lettering a message sends it to another queue, which requires its body. SQS
//! reports an expired handle for some calls only, so the receipt contains its own expiry. A wrong clock is safe: an
//! unanswered message is redelivered, and a message that is answered too late had been delivered twice anyway.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A receipt that this adapter has not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a receipt")]
pub struct MalformedReceipt;

/// The data that answering a message requires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The handle of SQS.
    pub handle: String,
    /// The end of the visibility timeout.
    pub until: Timestamp,
    /// The receive count of the message, including this delivery; 0 if it is unknown.
    #[serde(default)]
    pub received: u32,
    /// The message; `None` if its queue has no dead-letter queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

impl Receipt {
    pub(crate) fn parse(text: &str) -> Result<Self, MalformedReceipt> {
        serde_json::from_str(text).map_err(|_| MalformedReceipt)
    }

    /// Returns the receipt in the form of [`messages::ReceiveMessages::answer`].
    ///
    /// # Errors
    /// Never, for text and a time.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipt_round_trips() {
        for body in [None, Some("{\"a\": \"ä\\n\"}".to_owned())] {
            let receipt =
                Receipt { handle: "AQEB+/=".into(), until: Timestamp::UNIX_EPOCH, received: 2, body };
            assert_eq!(Receipt::parse(&receipt.text().unwrap()), Ok(receipt));
        }
        assert_eq!(Receipt::parse("AQEB"), Err(MalformedReceipt));
    }
}
