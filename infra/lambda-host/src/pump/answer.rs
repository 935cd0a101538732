//! What an answer means for each message of a batch, as Lambda reads it
//! (<https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>).

use serde_json::Value;

/// What came of an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The function answered.
    Payload(Vec<u8>),
    /// It failed, or was not reached.
    Failed(String),
}

/// What becomes of a batch: the places of the messages that are done with, and of those that stay in the queue until
/// their visibility timeout ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// To be deleted.
    pub delete: Vec<usize>,
    /// To be left.
    pub keep: Vec<usize>,
    /// Why all of them are left; none when each was answered for.
    pub fault: Option<String>,
}

impl Settled {
    fn none(count: usize, fault: impl Into<String>) -> Self {
        Self { delete: Vec::new(), keep: (0..count).collect(), fault: Some(fault.into()) }
    }
}

/// Settles a batch of messages with these ids by the answer to it. An answer that cannot be understood counts as a
/// failure of the whole batch, so that nothing is deleted which nobody has handled.
pub fn settle(ids: &[&str], answer: &Answer) -> Settled {
    let payload = match answer {
        Answer::Failed(why) => return Settled::none(ids.len(), why),
        Answer::Payload(payload) => payload,
    };
    let failed = match failures(payload) {
        Ok(failed) => failed,
        Err(why) => return Settled::none(ids.len(), why),
    };
    if let Some(unknown) = failed.iter().find(|id| !ids.contains(&id.as_str())) {
        return Settled::none(
            ids.len(),
            format!("the answer names message {unknown:?}, which is not in the batch"),
        );
    }
    let (keep, delete) = (0..ids.len()).partition(|place| failed.iter().any(|id| id == ids[*place]));
    Settled { delete, keep, fault: None }
}

/// The messages that an answer names. No answer, and none that names any, says that all is well.
fn failures(payload: &[u8]) -> Result<Vec<String>, String> {
    if payload.is_empty() {
        return Ok(Vec::new());
    }
    let answer: Value =
        serde_json::from_slice(payload).map_err(|error| format!("the answer is no JSON: {error}"))?;
    let failures = match answer.get("batchItemFailures") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(failures)) => failures,
        Some(_) => return Err("batchItemFailures of the answer is no list".to_owned()),
    };
    let named = failures.iter().map(|failure| match failure.get("itemIdentifier").and_then(Value::as_str) {
        Some(id) if !id.is_empty() => Ok(id.to_owned()),
        _ => Err("a failure in the answer has no itemIdentifier".to_owned()),
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 3] = ["a", "b", "c"];

    fn settled(payload: &str) -> Settled {
        settle(&IDS, &Answer::Payload(payload.as_bytes().to_vec()))
    }

    #[test]
    fn what_the_answer_does_not_name_is_deleted() {
        let settled = settled(r#"{"batchItemFailures": [{"itemIdentifier": "b"}]}"#);
        assert_eq!(settled, Settled { delete: vec![0, 2], keep: vec![1], fault: None });
    }

    #[test]
    fn an_answer_that_names_nothing_is_a_success() {
        for payload in ["", "null", "{}", r#"{"batchItemFailures": null}"#, r#"{"batchItemFailures": []}"#] {
            assert_eq!(settled(payload).delete, [0, 1, 2], "{payload}");
        }
    }

    #[test]
    fn nothing_is_deleted_by_an_answer_that_cannot_be_understood() {
        for payload in [
            "{",
            r#"{"batchItemFailures": "b"}"#,
            r#"{"batchItemFailures": [{"itemIdentifier": ""}]}"#,
            r#"{"batchItemFailures": [{"itemIdentifier": null}]}"#,
            r#"{"batchItemFailures": [{"id": "b"}]}"#,
            r#"{"batchItemFailures": [{"itemIdentifier": "d"}]}"#,
        ] {
            let settled = settled(payload);
            assert_eq!((settled.delete.len(), settled.keep.len()), (0, 3), "{payload}");
            assert!(settled.fault.is_some(), "{payload}");
        }
    }

    #[test]
    fn a_failed_function_keeps_its_batch() {
        let settled = settle(&IDS, &Answer::Failed("it panicked".into()));
        assert_eq!(
            settled,
            Settled { delete: vec![], keep: vec![0, 1, 2], fault: Some("it panicked".into()) }
        );
    }
}
