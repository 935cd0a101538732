//! The outcome of each entry of a batch.

use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchResultEntry};

use crate::failure::may_pass;

/// The outcome of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The message is in the queue.
    Sent,
    /// The message was not queued, for a temporary reason.
    Failed(String),
    /// The message can never be queued.
    Refused(String),
}

/// Returns the outcome of the entry with this id. An entry that the answer does not mention may be in the queue;
/// sending it again is safe, since every message may be delivered twice.
pub(crate) fn outcome(
    id: &str,
    successful: &[SendMessageBatchResultEntry],
    failed: &[BatchResultErrorEntry],
) -> Outcome {
    match failed.iter().find(|entry| entry.id() == id) {
        Some(entry) => {
            let why = format!("{}: {}", entry.code(), entry.message().unwrap_or("no explanation"));
            let is_refused = entry.sender_fault() && !may_pass(entry.code(), 0);
            if is_refused { Outcome::Refused(why) } else { Outcome::Failed(why) }
        }
        None if successful.iter().any(|entry| entry.id() == id) => Outcome::Sent,
        None => Outcome::Failed("the answer does not mention it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(id: &str, sender_fault: bool) -> BatchResultErrorEntry {
        with_code(id, "Code", sender_fault)
    }

    fn with_code(id: &str, code: &str, sender_fault: bool) -> BatchResultErrorEntry {
        let entry = BatchResultErrorEntry::builder().id(id).code(code).message("words");
        entry.sender_fault(sender_fault).build().unwrap()
    }

    fn sent(id: &str) -> SendMessageBatchResultEntry {
        let entry = SendMessageBatchResultEntry::builder().id(id).message_id("m").md5_of_message_body("5");
        entry.build().unwrap()
    }

    #[test]
    fn entries_are_matched_by_id() {
        let (successful, failed) = ([sent("0")], [failed("1", false), failed("2", true)]);
        let of = |id| outcome(id, &successful, &failed);
        assert_eq!(of("0"), Outcome::Sent);
        assert_eq!(of("1"), Outcome::Failed("Code: words".into()));
        assert_eq!(of("2"), Outcome::Refused("Code: words".into()));
        assert_eq!(of("3"), Outcome::Failed("the answer does not mention it".into()));
    }

    #[test]
    fn throttled_entry_is_sent_again_although_sender_is_at_fault() {
        for code in [
            "RequestThrottled",
            "ThrottlingException",
            "KmsThrottled",
            "KmsDisabled",
            "KMS.DisabledException",
        ] {
            let outcome = outcome("0", &[], &[with_code("0", code, true)]);
            assert_eq!(outcome, Outcome::Failed(format!("{code}: words")));
        }
    }
}
