//! Receipts: what it takes to answer for a message.
//!
//! SQS's own handle is not enough. To give a message up is to send it again elsewhere, which takes its body; and
//! whether a handle is outdated SQS tells for some calls and not for others, so the receipt knows its end. The clock
//! does no harm when it is wrong: a message that was not answered for comes again, and one that was answered for too
//! late had been delivered twice anyway.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A receipt that this adapter has not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a receipt")]
pub struct MalformedReceipt;

/// What answering for a message takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// SQS's own.
    pub handle: String,
    /// When the visibility timeout ends.
    pub until: Timestamp,
    /// How often the message was received, this time included; 0 where that is unknown.
    #[serde(default)]
    pub received: u32,
    /// The message; none where there is no dead-letter queue that it could be sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

impl Receipt {
    pub(crate) fn parse(text: &str) -> Result<Self, MalformedReceipt> {
        serde_json::from_str(text).map_err(|_| MalformedReceipt)
    }

    /// The receipt as [`messages::ReceiveMessages::answer`] takes it.
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
    fn a_receipt_reads_back_as_what_it_was_written_from() {
        for body in [None, Some("{\"a\": \"ä\\n\"}".to_owned())] {
            let receipt =
                Receipt { handle: "AQEB+/=".into(), until: Timestamp::UNIX_EPOCH, received: 2, body };
            assert_eq!(Receipt::parse(&receipt.text().unwrap()), Ok(receipt));
        }
        assert_eq!(Receipt::parse("AQEB"), Err(MalformedReceipt));
    }
}
