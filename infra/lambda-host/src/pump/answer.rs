//! The meaning of a function's response for each message of a batch, as on Lambda
//! (<https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>).

use serde_json::Value;

/// The result of an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The function's response.
    Payload(Vec<u8>),
    /// The reason why the function failed or was not reached.
    Failed(String),
}

/// The result of a batch, with its messages by their indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchResult {
    /// Messages to delete.
    pub delete: Vec<usize>,
    /// Messages that stay in the queue until their visibility timeout ends.
    pub keep: Vec<usize>,
    /// The reason why all messages are kept; `None` if the response covers each of them.
    pub fault: Option<String>,
}

impl BatchResult {
    fn none(count: usize, fault: impl Into<String>) -> Self {
        Self { delete: Vec::new(), keep: (0..count).collect(), fault: Some(fault.into()) }
    }
}

/// Applies a response to a batch of messages with these ids. An invalid response counts as a failure of the whole
/// batch, so that no unhandled message is deleted.
pub fn settle(ids: &[&str], answer: &Answer) -> BatchResult {
    let payload = match answer {
        Answer::Failed(why) => return BatchResult::none(ids.len(), why),
        Answer::Payload(payload) => payload,
    };
    let failed = match failures(payload) {
        Ok(failed) => failed,
        Err(why) => return BatchResult::none(ids.len(), why),
    };
    if let Some(unknown) = failed.iter().find(|id| !ids.contains(&id.as_str())) {
        return BatchResult::none(
            ids.len(),
            format!("the response names message {unknown:?}, which is not in the batch"),
        );
    }
    let (keep, delete) = (0..ids.len()).partition(|index| failed.iter().any(|id| id == ids[*index]));
    BatchResult { delete, keep, fault: None }
}

/// Returns the failed messages that a response names. An empty response, or one without names, is a success.
fn failures(payload: &[u8]) -> Result<Vec<String>, String> {
    if payload.is_empty() {
        return Ok(Vec::new());
    }
    let answer: Value =
        serde_json::from_slice(payload).map_err(|error| format!("the response is not JSON: {error}"))?;
    let failures = match answer.get("batchItemFailures") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(failures)) => failures,
        Some(_) => return Err("batchItemFailures of the response is not a list".to_owned()),
    };
    let named = failures.iter().map(|failure| match failure.get("itemIdentifier").and_then(Value::as_str) {
        Some(id) if !id.is_empty() => Ok(id.to_owned()),
        _ => Err("a failure in the response has no itemIdentifier".to_owned()),
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 3] = ["a", "b", "c"];

    fn result(payload: &str) -> BatchResult {
        settle(&IDS, &Answer::Payload(payload.as_bytes().to_vec()))
    }

    #[test]
    fn messages_not_named_are_deleted() {
        let result = result(r#"{"batchItemFailures": [{"itemIdentifier": "b"}]}"#);
        assert_eq!(result, BatchResult { delete: vec![0, 2], keep: vec![1], fault: None });
    }

    #[test]
    fn response_without_failures_is_a_success() {
        for payload in ["", "null", "{}", r#"{"batchItemFailures": null}"#, r#"{"batchItemFailures": []}"#] {
            assert_eq!(result(payload).delete, [0, 1, 2], "{payload}");
        }
    }

    #[test]
    fn invalid_response_deletes_nothing() {
        for payload in [
            "{",
            r#"{"batchItemFailures": "b"}"#,
            r#"{"batchItemFailures": [{"itemIdentifier": ""}]}"#,
            r#"{"batchItemFailures": [{"itemIdentifier": null}]}"#,
            r#"{"batchItemFailures": [{"id": "b"}]}"#,
            r#"{"batchItemFailures": [{"itemIdentifier": "d"}]}"#,
        ] {
            let result = result(payload);
            assert_eq!((result.delete.len(), result.keep.len()), (0, 3), "{payload}");
            assert!(result.fault.is_some(), "{payload}");
        }
    }

    #[test]
    fn failed_function_keeps_its_batch() {
        let result = settle(&IDS, &Answer::Failed("it panicked".into()));
        assert_eq!(
            result,
            BatchResult { delete: vec![], keep: vec![0, 1, 2], fault: Some("it panicked".into()) }
        );
    }
}
